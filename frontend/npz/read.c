// Reads .npz files.
#include "frontend/npz/npz.h"

#include "frontend/file.h"
#include "frontend/npy/npy.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zip.h>

static void describe(zip_error_t *error, char problem[PROBLEM_BYTES]) {
  if (zip_error_system_type(error) == ZIP_ET_SYS) file_problem(zip_error_code_system(error), problem);
  else if (zip_error_code_zip(error) == ZIP_ER_CRC) snprintf(problem, PROBLEM_BYTES, "damaged: its checksum is wrong");
  else if (zip_error_code_zip(error) == ZIP_ER_EXISTS)
    snprintf(problem, PROBLEM_BYTES, "damaged: it has two entries of the same name");
  else snprintf(problem, PROBLEM_BYTES, "damaged: %s", zip_error_strerror(error));
}

static bool read_stored(void *context, void *to, size_t nbytes, char problem[PROBLEM_BYTES]) {
  zip_file_t *file = context;
  for (size_t done = 0; done < nbytes;) {
    const zip_int64_t n = zip_fread(file, (char *)to + done, nbytes - done);
    if (n < 0) describe(zip_file_get_error(file), problem);
    if (n == 0) snprintf(problem, PROBLEM_BYTES, "damaged: the entry ends early");
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

// libzip reports a wrong checksum only to a read past the last byte.
static bool checksum_is_right(zip_file_t *file, const char *prefix, Position at, Diagnostics *d) {
  char behind, problem[PROBLEM_BYTES];
  const zip_int64_t n = zip_fread(file, &behind, 1);
  if (n == 0) return true;
  if (n < 0) describe(zip_file_get_error(file), problem);
  else snprintf(problem, sizeof problem, "damaged: the entry is longer than it says");
  return error_at(d, at, "%s%s", prefix, problem);
}

static Shape shape_of(const Tensor *t) {
  Shape shape = {.rank = t->rank};
  for (int i = 0; i < t->rank; i++) shape.extent[i] = t->extent[i] < 0 ? EXTENT_UNKNOWN : EXTENT(t->extent[i]);
  return shape;
}

static bool read_layout(NpzEntry *entry, NpyStream *stream, const char *prefix, Position at, const Allocator *allocator,
                        Diagnostics *d) {
  Tensor *t = &entry->tensor, as_read;
  const Shape shape = shape_of(t);
  if (!npy_read_stream(stream, prefix, at, t->type, &shape, &as_read, allocator, d)) return false;
  const Layout layout = t->layout;
  *t = as_read;
  if (layout_is_row_major(&layout)) return true;
  t->layout = layout;
  const bool ok = tensor_alloc(t, allocator) || error_out_of_memory(d);
  if (ok) tensor_copy(&as_read, t);
  tensor_free(&as_read, allocator);
  return ok;
}

static bool read_entry(zip_t *zip, zip_uint64_t i, NpzEntry *entry, Position at, const Allocator *allocator,
                       Diagnostics *d) {
  char prefix[PROBLEM_BYTES], problem[PROBLEM_BYTES];
  zip_stat_t stat;
  snprintf(prefix, sizeof prefix, "%s: ", entry->name);
  zip_file_t *file =
      zip_stat_index(zip, i, 0, &stat) == 0 && stat.valid & ZIP_STAT_SIZE ? zip_fopen_index(zip, i, 0) : NULL;
  if (!file) {
    describe(zip_get_error(zip), problem);
    return error_at(d, at, "%s%s", prefix, problem);
  }
  NpyStream stream = {read_stored, file, stat.size};
  const bool ok = read_layout(entry, &stream, prefix, at, allocator, d) && checksum_is_right(file, prefix, at, d);
  zip_fclose(file);
  return ok;
}

static const char *entry_file_name(const NpzEntry *entry, Arena *scratch) {
  return arena_format(scratch, "%s.npy", entry->name);
}

static bool is_wanted(const char *name, const NpzEntry *entries, size_t count) {
  const size_t length = strlen(name);
  for (size_t i = 0; i < count; i++)
    if (strlen(entries[i].name) + 4 == length && strncmp(name, entries[i].name, length - 4) == 0) return true;
  return false;
}

// Whether `name` is `end` behind further parts of a name.
static bool has_last_parts(const char *name, const char *end) {
  const size_t length = strlen(name), nend = strlen(end);
  if (!nend || length < nend + 2 || strcmp(name + length - nend, end) != 0) return false;
  return strchr("./_", name[length - nend - 1]) != NULL;
}

// Adds the entries' names that were not asked for: the one that is most like the missing one, else the first ones.
static void add_others(zip_t *zip, const NpzEntry *missing, const NpzEntry *entries, size_t count, Text *out) {
  enum { MOST_NAMES = 8 };
  Arena scratch;
  arena_init(&scratch, out->allocator);
  const zip_int64_t n = zip_get_num_entries(zip, 0);
  const char **names = ARENA_ARRAY(&scratch, const char *, n > 0 ? (size_t)n + 1 : 1);
  size_t nothers = 0;
  for (zip_int64_t i = 0; names && i < n; i++) {
    const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
    const size_t length = name ? strlen(name) : 0;
    if (length < 4 || *name == '.' || is_wanted(name, entries, count)) continue;
    names[nothers] = arena_format(&scratch, "%.*s", (int)(length - 4), name);
    if (names[nothers]) nothers++;
  }
  const char *nearest = names ? nearest_word(missing->name, names, nothers) : NULL;
  for (size_t i = 0; !nearest && i < nothers; i++) // as net.w of a w
    if (has_last_parts(names[i], missing->name) || has_last_parts(missing->name, names[i])) nearest = names[i];
  if (nearest) text_format(out, "; did you mean %s.npy", nearest);
  for (size_t i = 0; !nearest && i < nothers && i < MOST_NAMES; i++)
    text_format(out, "%s%s.npy", i ? ", " : "; it has ", names[i]);
  if (!nearest && nothers > MOST_NAMES) text_format(out, " and %zu more", nothers - MOST_NAMES);
  arena_deinit(&scratch);
}

// Reports a missing entry, and the archive's entries that were not asked for: one of them may be meant.
static bool tell_missing(zip_t *zip, const NpzEntry *missing, const NpzEntry *entries, size_t count, Position at,
                         Diagnostics *d) {
  char shape_text[128];
  const Tensor *t = &missing->tensor;
  const Shape shape = shape_of(t);
  Text others;
  text_init(&others, d->arena.allocator);
  add_others(zip, missing, entries, count, &others);
  if (strcmp(missing->name, ".fit") == 0) // a position in the training
    error_at(d, at, "no %s.npy in it, which only ngrad fit writes: --state begins with the states in it",
             missing->name);
  else
    error_at(d, at, "no %s.npy in it, expected %s %s%s", missing->name, type_name(t->type),
             shape_string(&shape, shape_text, sizeof shape_text), others.nbytes ? text_string(&others) : "");
  text_deinit(&others);
  return false;
}

static bool read_entries(zip_t *zip, NpzEntry *entries, size_t count, bool takes_some, Position at,
                         const Allocator *allocator, Diagnostics *d) {
  Arena scratch;
  bool ok = true;
  arena_init(&scratch, allocator);
  for (size_t i = 0; i < count && !d->out_of_memory; i++) {
    const char *name = entry_file_name(&entries[i], &scratch);
    const zip_int64_t at_index = name ? zip_name_locate(zip, name, 0) : -1;
    if (!name) ok = error_out_of_memory(d);
    else if (at_index >= 0) ok &= read_entry(zip, (zip_uint64_t)at_index, &entries[i], at, allocator, d);
    else if (!takes_some) ok = tell_missing(zip, &entries[i], entries, count, at, d);
  }
  arena_deinit(&scratch);
  return ok;
}

static zip_t *open_archive(int fd, Position at, Diagnostics *d) {
  char problem[PROBLEM_BYTES];
  int code;
  zip_t *zip = zip_fdopen(fd, ZIP_CHECKCONS, &code);
  if (zip) return zip;
  close(fd);
  zip_error_t error;
  zip_error_init_with_code(&error, code);
  if (code == ZIP_ER_MEMORY) error_out_of_memory(d);
  else if (code == ZIP_ER_NOZIP)
    error_at(
        d, at,
        "not a whole .npz file, as numpy.savez and ngrad fit write: of another kind, damaged, or its end is missing");
  else {
    describe(&error, problem);
    error_at(d, at, "%s", problem);
  }
  zip_error_fini(&error);
  return NULL;
}

bool npz_read(const char *path, NpzEntry *entries, size_t count, bool takes_some, const Allocator *allocator,
              Diagnostics *d) {
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  size_t nbytes;
  for (size_t i = 0; i < count; i++) entries[i].tensor.data = NULL;
  const int fd = file_open(path, &nbytes, at, "", d);
  zip_t *zip = fd < 0 ? NULL : open_archive(fd, at, d);
  const bool ok = zip && read_entries(zip, entries, count, takes_some, at, allocator, d);
  if (zip) zip_discard(zip);
  for (size_t i = 0; !ok && i < count; i++) tensor_free(&entries[i].tensor, allocator);
  return ok;
}

bool npz_names(const char *path, Text *names, Diagnostics *d) {
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  size_t nbytes;
  const int fd = file_open(path, &nbytes, at, "", d);
  zip_t *zip = fd < 0 ? NULL : open_archive(fd, at, d);
  const zip_int64_t n = zip ? zip_get_num_entries(zip, 0) : 0;
  for (zip_int64_t i = 0; i < n; i++) {
    const char *name = zip_get_name(zip, (zip_uint64_t)i, 0);
    const size_t length = name ? strlen(name) : 0;
    if (length > 4 && *name != '.') text_format(names, "%.*s\n", (int)(length - 4), name);
  }
  if (zip) zip_discard(zip);
  return zip && (!names->out_of_memory || error_out_of_memory(d));
}
