// Finds, counts, reads and shares the parts of external files.
#include "frontend/onnx/external.h"

#include "frontend/file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Tensors may overlap, such as views of one array, but not so much that the file is read more often than this.
enum { MOST_READS = 2, LEAST_COUNTED = 1 << 20 };

typedef struct ExternalFile {
  uint64_t nread; // bytes, so far
} ExternalFile;

// The path with all links resolved; NULL after a message.
static const char *resolve(Onnx *x, const char *path, const char *place) {
  char *file = file_below(x->settings->folder, path, place, x->build.at, x->reading.d);
  const char *own = file ? arena_copy_text(x->reading.arena, file, strlen(file)) : NULL;
  if (file && !own) error_out_of_memory(x->reading.d);
  free(file);
  return own;
}

bool onnx_find_part(Onnx *x, const OnnxTensor *tensor, const char *what, size_t nelems, size_t nbytes, OnnxPart *part) {
  OnnxExternal from;
  if (!onnx_read_external(&x->reading, tensor, &from)) return false;
  const char *path = onnx_text_of(x, from.location);
  if (!path) return false;
  const char *name = onnx_is_name(path) ? path : "its file",
             *prefix = arena_format(x->reading.arena, "%s: external data: %s: ", what, name),
             *place = arena_format(x->reading.arena, "%s: external data: %s", what, name);
  if (!prefix || !place) return error_out_of_memory(x->reading.d);
  if (strlen(path) != from.location.count) return build_error(&x->build, "%sa zero byte in the path", prefix);
  if (nelems > SIZE_MAX / nbytes || (from.has_nbytes && from.nbytes != nelems * nbytes))
    return build_error(&x->build, "%sexpected %zu elements of %zu bytes, found %llu bytes", prefix, nelems, nbytes,
                       (unsigned long long)from.nbytes);
  const char *file = resolve(x, path, place);
  if (!file) return false;
  *part = (OnnxPart){.what = prefix, .file = file, .offset = from.offset, .nbytes = nelems * nbytes};
  part->key =
      arena_format(x->reading.arena, "%" PRIu64 " %" PRIu64 " %zu %s", tensor->type, part->offset, part->nbytes, file);
  if (!part->key) return error_out_of_memory(x->reading.d);
  part->data = names_find(&x->parts, part->key);
  return true;
}

// Counts the part towards what is read of the file, which has `whole` bytes.
static bool count_part(Onnx *x, const OnnxPart *part, size_t whole) {
  ExternalFile *file = names_find(&x->files, part->file);
  if (!file) {
    file = ARENA_NEW(x->reading.arena, ExternalFile);
    if (!file || !names_set(&x->files, part->file, file)) return error_out_of_memory(x->reading.d);
  }
  if (part->offset > whole || part->nbytes > whole - part->offset)
    return build_error(&x->build, "%sexpected %zu bytes from %llu on, found a file of %zu bytes", part->what,
                       part->nbytes, (unsigned long long)part->offset, whole);
  file->nread += part->nbytes;
  return file->nread <= MOST_READS * (uint64_t)whole + LEAST_COUNTED ||
         build_error(&x->build, "%sthe model's tensors overlap: they take more than %d times the file's %zu bytes",
                     part->what, MOST_READS, whole);
}

void *onnx_read_part(Onnx *x, const OnnxPart *part) {
  char problem[PROBLEM_BYTES];
  size_t whole;
  const int fd = file_open(part->file, &whole, x->build.at, part->what, x->reading.d);
  if (fd < 0) return NULL;
  const Allocator memory = arena_allocator(&x->build.graph->arena);
  void *data = NULL;
  if (!count_part(x, part, whole)) {
  } else if (!(data = allocator_alloc(&memory, part->nbytes + 1))) {
    error_out_of_memory(x->reading.d);
  } else if (!file_read_at(fd, part->offset, data, part->nbytes)) {
    build_error(&x->build, "%s%s", part->what, errno ? file_problem(errno, problem) : "the file ends too early");
    data = NULL;
  }
  close(fd);
  return data;
}

bool onnx_keep_part(Onnx *x, const OnnxPart *part, void *data) {
  return names_set(&x->parts, part->key, data) || error_out_of_memory(x->reading.d);
}
