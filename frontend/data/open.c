// Opens data files: maps or unpacks them, then reads the format that their first bytes identify.
#include "frontend/data/data.h"

#include "frontend/file.h"
#include "frontend/npy/npy.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

static bool is_npy(const unsigned char *bytes, size_t nbytes) {
  return nbytes && bytes[0] == 0x93;
}

static bool whole_nbytes(const char *path, const void *start, size_t nbytes, uint64_t *whole, const Allocator *a,
                         Diagnostics *d) {
  return is_npy(start, nbytes) ? npy_whole_nbytes(path, start, nbytes, whole, a, d)
                               : idx_whole_nbytes(path, start, nbytes, whole, d);
}

// Reads a file's bytes as a tensor, whose data is in the bytes or a copy.
static bool read_tensor(const char *path, const void *bytes, size_t nbytes, DataSet *data, const Allocator *a,
                        Diagnostics *d) {
  if (!is_npy(bytes, nbytes)) return idx_read_bytes(path, bytes, nbytes, &data->tensor, &data->is_copy, a, d);
  if (!npy_view_bytes(path, bytes, nbytes, &data->tensor, a, d)) return false;
  data->is_copy = !data->tensor.data;
  return !data->is_copy || npy_read_bytes(path, bytes, nbytes, TYPE_NONE, NULL, &data->tensor, a, d);
}

// Unpacks up to nbytes; returns their number, or -1 after a message.
static int64_t unpack(gzFile file, void *to, uint64_t nbytes, Position at, Diagnostics *d) {
  const unsigned most = 1U << 30;
  uint64_t done = 0;
  while (done < nbytes) {
    const int n = gzread(file, (char *)to + done, nbytes - done < most ? (unsigned)(nbytes - done) : most);
    int code = Z_OK;
    const char *problem = gzerror(file, &code);
    if (n > 0) done += (uint64_t)n;
    if (code == Z_MEM_ERROR) error_out_of_memory(d);
    else if (n < 0 || code < 0)
      error_at(d, at, "damaged: %s",
               code == Z_DATA_ERROR  ? "its checksum or compression is wrong"
               : code == Z_BUF_ERROR ? "the file ends early"
                                     : problem);
    if (n < 0 || code < 0) return -1;
    if (n == 0) break;
  }
  return (int64_t)done;
}

// Unpacks the rest of a file after its first bytes, up to its end and its checksum.
static bool unpack_rest(gzFile file, const unsigned char *start, size_t nstart, Position at, char *bytes,
                        uint64_t whole, Diagnostics *d) {
  unsigned char behind;
  memcpy(bytes, start, nstart);
  const int64_t rest = unpack(file, bytes + nstart, whole - nstart, at, d);
  if (rest < 0) return false;
  if (nstart + (uint64_t)rest < whole)
    return error_at(d, at, "damaged: expected %" PRIu64 " unpacked bytes, found %" PRIu64, whole,
                    nstart + (uint64_t)rest);
  const int64_t more = unpack(file, &behind, 1, at, d);
  if (more > 0) error_at(d, at, "damaged: expected %" PRIu64 " unpacked bytes, found more", whole);
  return more == 0;
}

// The length in the header is believed only if deflate can produce it from the packed bytes.
static bool unpack_all(gzFile file, size_t packed, Position at, DataSet *data, size_t *nbytes, const Allocator *a,
                       Diagnostics *d) {
  enum { MOST_RATIO = 1032 };
  unsigned char *start = allocator_alloc(a, NPY_START_BYTES);
  uint64_t whole = 0;
  if (!start) return error_out_of_memory(d);
  const int64_t nstart = unpack(file, start, NPY_START_BYTES, at, d);
  bool ok = nstart >= 0 && whole_nbytes(at.source->name, start, (size_t)nstart, &whole, a, d);
  if (ok && whole / MOST_RATIO > packed)
    ok = error_at(d, at, "damaged: %zu bytes cannot be %" PRIu64 " bytes when they are unpacked", packed, whole);
  if (ok && whole < (uint64_t)nstart)
    ok = error_at(d, at, "damaged: expected %" PRIu64 " unpacked bytes, found more", whole);
  if (ok) {
    *nbytes = (size_t)whole;
    data->bytes = allocator_alloc(a, *nbytes + 1);
    if (!data->bytes) {
      error_at(d, at, "no memory for %zu bytes of data", *nbytes);
      ok = false;
    }
  }
  ok = ok && data->bytes && unpack_rest(file, start, (size_t)nstart, at, data->bytes, whole, d);
  allocator_free(a, start);
  return ok;
}

// Takes ownership of the descriptor.
static bool open_packed(int fd, size_t packed, Position at, DataSet *data, const Allocator *a, Diagnostics *d) {
  enum { BUFFER_BYTES = 1 << 17 };
  gzFile file = gzdopen(fd, "rb");
  if (!file) {
    close(fd);
    return error_out_of_memory(d);
  }
  size_t nbytes = 0;
  gzbuffer(file, BUFFER_BYTES);
  const bool ok = unpack_all(file, packed, at, data, &nbytes, a, d);
  gzclose_r(file);
  return ok && read_tensor(at.source->name, data->bytes, nbytes, data, a, d);
}

// Takes ownership of the descriptor.
static bool map_file(int fd, size_t nbytes, Position at, DataSet *data, Diagnostics *d) {
  char problem[PROBLEM_BYTES];
  void *mapping = mmap(NULL, nbytes, PROT_READ, MAP_PRIVATE, fd, 0);
  const int error = errno;
  close(fd);
  if (mapping == MAP_FAILED) return error_at(d, at, "cannot map: %s", file_problem(error, problem));
  data->mapping = mapping;
  data->mapping_nbytes = nbytes;
  return true;
}

static bool open_mapped(int fd, size_t nbytes, Position at, DataSet *data, const Allocator *a, Diagnostics *d) {
  return map_file(fd, nbytes, at, data, d) && read_tensor(at.source->name, data->mapping, nbytes, data, a, d);
}

bool data_open(const char *path, DataSet *data, const Allocator *allocator, Diagnostics *d) {
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  unsigned char magic[4] = {0};
  size_t nbytes;
  *data = (DataSet){0};
  const int fd = file_open(path, &nbytes, at, "", d);
  if (fd < 0) return false;
  const ssize_t n = pread(fd, magic, sizeof magic, 0);
  const bool is_packed = n >= 2 && magic[0] == 0x1F && magic[1] == 0x8B;
  if (n < (ssize_t)sizeof magic || !(is_packed || is_npy(magic, sizeof magic) || (!magic[0] && !magic[1]))) {
    close(fd);
    return error_at(d, at, "expected a .npy or idx file, or one that gzip compressed");
  }
  if (is_packed ? open_packed(fd, nbytes, at, data, allocator, d) : open_mapped(fd, nbytes, at, data, allocator, d)) {
    return true;
  }
  data_close(data, allocator);
  return false;
}

bool data_open_text(const char *path, int64_t length, bool is_next, DataSet *data, const Allocator *allocator,
                    Diagnostics *d) {
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  size_t nbytes;
  *data = (DataSet){0};
  const int fd = file_open(path, &nbytes, at, "", d);
  if (fd < 0) return false;
  if (nbytes <= (uint64_t)length) {
    close(fd);
    return error_at(d, at, "expected a text of more than %lld bytes, found %zu", (long long)length, nbytes);
  }
  if (!map_file(fd, nbytes, at, data, d)) {
    data_close(data, allocator);
    return false;
  }
  data->tensor = (Tensor){.type = TYPE_U8, .rank = 2, .data = (char *)data->mapping + is_next};
  data->tensor.extent[0] = ((int64_t)nbytes - 1) / length;
  data->tensor.extent[1] = length;
  return true;
}

void data_close(DataSet *data, const Allocator *allocator) {
  if (data->is_copy) tensor_free(&data->tensor, allocator);
  if (data->mapping) munmap(data->mapping, data->mapping_nbytes);
  allocator_free(allocator, data->bytes);
  *data = (DataSet){0};
}
