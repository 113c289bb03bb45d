// Writes .npz files.
#include "frontend/npz/npz.h"

#include "frontend/file.h"
#include "frontend/npy/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

enum { DOS_TIME = 0, DOS_DATE = 1 << 5 | 1 }; // 1980-01-01 00:00:00

// libzip's view of the new file: an archive that does not exist yet, and is written to a descriptor.
typedef struct Sink {
  int fd;
  zip_error_t error;
} Sink;

static zip_int64_t sink_fail(Sink *sink, int code, int error) {
  zip_error_set(&sink->error, code, error);
  return -1;
}

static zip_int64_t sink_seek(Sink *sink, void *data, zip_uint64_t nbytes) {
  const zip_source_args_seek_t *to = ZIP_SOURCE_GET_ARGS(zip_source_args_seek_t, data, nbytes, &sink->error);
  if (!to) return -1;
  return lseek(sink->fd, to->offset, to->whence) < 0 ? sink_fail(sink, ZIP_ER_SEEK, errno) : 0;
}

static zip_int64_t sink_command(void *user, void *data, zip_uint64_t nbytes, zip_source_cmd_t command) {
  Sink *sink = user;
  switch (command) {
  case ZIP_SOURCE_SUPPORTS:
    return zip_source_make_command_bitmap(
        ZIP_SOURCE_OPEN, ZIP_SOURCE_READ, ZIP_SOURCE_CLOSE, ZIP_SOURCE_STAT, ZIP_SOURCE_ERROR, ZIP_SOURCE_FREE,
        ZIP_SOURCE_SEEK, ZIP_SOURCE_TELL, ZIP_SOURCE_BEGIN_WRITE, ZIP_SOURCE_COMMIT_WRITE, ZIP_SOURCE_ROLLBACK_WRITE,
        ZIP_SOURCE_WRITE, ZIP_SOURCE_SEEK_WRITE, ZIP_SOURCE_TELL_WRITE, ZIP_SOURCE_REMOVE, -1);
  case ZIP_SOURCE_ERROR: return zip_error_to_data(&sink->error, data, nbytes);
  case ZIP_SOURCE_STAT: return sink_fail(sink, ZIP_ER_READ, ENOENT);
  case ZIP_SOURCE_WRITE:
    return file_write_all(sink->fd, data, nbytes) ? (zip_int64_t)nbytes : sink_fail(sink, ZIP_ER_WRITE, errno);
  case ZIP_SOURCE_SEEK_WRITE: return sink_seek(sink, data, nbytes);
  case ZIP_SOURCE_TELL_WRITE: return lseek(sink->fd, 0, SEEK_CUR);
  case ZIP_SOURCE_BEGIN_WRITE:
  case ZIP_SOURCE_COMMIT_WRITE:
  case ZIP_SOURCE_ROLLBACK_WRITE:
  case ZIP_SOURCE_FREE: return 0;
  default: return sink_fail(sink, ZIP_ER_OPNOTSUPP, 0);
  }
}

typedef struct Part { // memory of an archive while it is open
  char header[NPY_HEADER_BYTES];
  Tensor data;
  bool is_copy;
} Part;

// False: out of memory, or the entry cannot be made; the archive's error tells which.
static bool add_entry(zip_t *zip, const NpzEntry *entry, Part *part, Arena *scratch) {
  const char *name = arena_format(scratch, "%s.npy", entry->name);
  if (!name || !npy_data(&entry->tensor, &part->data, &part->is_copy, scratch->allocator)) return false;
  zip_buffer_fragment_t fragments[] = {
      {(zip_uint8_t *)part->header, npy_header(&entry->tensor, part->header)},
      {part->data.data, tensor_nbytes(&part->data)},
  };
  zip_source_t *source = zip_source_buffer_fragment(zip, fragments, 2, 0);
  const zip_int64_t i = source ? zip_file_add(zip, name, source, 0) : -1;
  if (i < 0) {
    zip_source_free(source);
    return false;
  }
  return zip_set_file_compression(zip, (zip_uint64_t)i, ZIP_CM_STORE, 0) == 0 &&
         zip_file_set_dostime(zip, (zip_uint64_t)i, DOS_TIME, DOS_DATE, 0) == 0;
}

// An archive's error as an errno value.
static int errno_of(zip_error_t *error) {
  if (zip_error_system_type(error) == ZIP_ET_SYS && zip_error_code_system(error)) return zip_error_code_system(error);
  return zip_error_code_zip(error) == ZIP_ER_EXISTS ? EEXIST : ENOMEM;
}

typedef struct Archive {
  const NpzEntry *entries;
  size_t count;
  const Allocator *allocator;
} Archive;

// Returns 0 or an errno value. Closes the archive.
static int write_entries(zip_t *zip, const Archive *archive, Part *parts, Arena *scratch) {
  bool ok = true;
  for (size_t i = 0; ok && i < archive->count; i++) ok = add_entry(zip, &archive->entries[i], &parts[i], scratch);
  if (ok && zip_close(zip) == 0) return 0;
  const int error = errno_of(zip_get_error(zip));
  zip_discard(zip);
  return error;
}

static bool write_archive(int fd, const void *content) {
  const Archive *archive = content;
  int error = ENOMEM;
  Sink sink = {.fd = fd};
  Arena scratch;
  arena_init(&scratch, archive->allocator);
  zip_error_init(&sink.error);
  Part *parts = ARENA_ARRAY(&scratch, Part, archive->count + 1);
  zip_source_t *source = parts ? zip_source_function_create(sink_command, &sink, NULL) : NULL;
  zip_t *zip = source ? zip_open_from_source(source, ZIP_CREATE | ZIP_TRUNCATE, NULL) : NULL;
  if (zip) error = write_entries(zip, archive, parts, &scratch);
  else zip_source_free(source);
  for (size_t i = 0; parts && i < archive->count; i++)
    if (parts[i].is_copy) tensor_free(&parts[i].data, archive->allocator);
  zip_error_fini(&sink.error);
  arena_deinit(&scratch);
  if (!error && fsync(fd) != 0 && errno != EINVAL) error = errno; // some file systems cannot flush
  errno = error;
  return !error;
}

// A rename is on the disk only after its folder is flushed. If that is impossible, the file is still whole.
static void flush_folder_of(const char *path) {
  char folder[PATH_MAX];
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash) slash[slash == folder] = 0;
  const int fd = open(slash ? folder : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;
  fsync(fd);
  close(fd);
}

bool npz_write(const char *path, const NpzEntry *entries, size_t count, const Allocator *allocator, Diagnostics *d) {
  const Archive archive = {entries, count, allocator};
  file_remove_abandoned(path);
  if (!file_replace(path, write_archive, &archive, d)) return false;
  flush_folder_of(path);
  return true;
}
