// Files besides the model: external data, and inputs given as constants by the user.
#include "frontend/file.h"
#include "frontend/npy/npy.h"
#include "frontend/onnx/translation.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// External data

// Reads the elements in the file's format, from a file as long as the model says.
static void *read_elements(Onnx *x, const OnnxExternal *from, const char *file, const char *what, size_t nbytes) {
  char problem[PROBLEM_BYTES];
  size_t whole;
  const int fd = file_open(file, &whole, x->build.at, what, x->reading.d);
  if (fd < 0) return NULL;
  void *data = NULL;
  if (from->offset > whole || nbytes > whole - from->offset)
    build_error(&x->build, "%sexpected %zu bytes from %llu on, found a file of %zu bytes", what, nbytes,
                (unsigned long long)from->offset, whole);
  else if (!(data = arena_alloc(&x->build.graph->arena, nbytes + 1))) error_out_of_memory(x->reading.d);
  else if (!file_read_at(fd, from->offset, data, nbytes)) {
    build_error(&x->build, "%s%s", what, errno ? file_problem(errno, problem) : "the file ends too early");
    data = NULL;
  }
  close(fd);
  return data;
}

void *onnx_external(Onnx *x, const OnnxTensor *tensor, const char *what, size_t nelems, size_t nbytes) {
  OnnxExternal from;
  if (!onnx_read_external(&x->reading, tensor, &from)) return NULL;
  const char *path = onnx_text_of(x, from.location);
  if (!path) return NULL;
  const char *name = onnx_is_name(path) ? path : "its file",
             *prefix = arena_format(x->reading.arena, "%s: external data: %s: ", what, name),
             *place = arena_format(x->reading.arena, "%s: external data: %s", what, name);
  if (!prefix || !place) return error_out_of_memory(x->reading.d), NULL;
  if (strlen(path) != from.location.count) return build_error(&x->build, "%sa zero byte in the path", prefix), NULL;
  if (nelems > SIZE_MAX / nbytes || (from.has_nbytes && from.nbytes != nelems * nbytes))
    return build_error(&x->build, "%sexpected %zu elements of %zu bytes, found %llu bytes", prefix, nelems, nbytes,
                       (unsigned long long)from.nbytes),
           NULL;
  char *file = file_below(x->settings->folder, path, place, x->build.at, x->reading.d);
  void *data = file ? read_elements(x, &from, file, prefix, nelems * nbytes) : NULL;
  free(file);
  return data;
}

// Constants from the user

static const char *file_of(const char *given, const char *name) {
  const size_t n = strlen(name);
  return strncmp(given, name, n) == 0 && given[n] == '=' && given[n + 1] ? given + n + 1 : NULL;
}

const char *onnx_given(const Onnx *x, const char *name) {
  const char *file = NULL;
  for (size_t i = 0; i < x->settings->nconstants && !file; i++) file = file_of(x->settings->constants[i], name);
  return file;
}

bool onnx_check_given(Onnx *x, const OnnxGraph *g) {
  for (size_t i = 0; i < x->settings->nconstants; i++) {
    bool is_input = false;
    for (size_t k = 0; k < g->ninputs && !is_input; k++) {
      const char *name = onnx_text_of(x, g->inputs[k].name);
      if (!name) return false;
      is_input = file_of(x->settings->constants[i], name) != NULL;
    }
    if (!is_input)
      build_error(&x->build, "--constant %s: expected NAME=FILE, with the name of an input", x->settings->constants[i]);
  }
  return true;
}

static Value *add_npy(Onnx *x, const char *path, Bytes bytes, const char *name, Type type) {
  const Allocator allocator = arena_allocator(&x->build.graph->arena);
  Tensor t;
  if (!npy_read_bytes(path, bytes.at, bytes.count, type, NULL, &t, &allocator, x->reading.d)) return NULL;
  Shape shape = {.rank = t.rank};
  for (int i = 0; i < t.rank; i++) shape.extent[i] = EXTENT(t.extent[i]);
  const char *own = onnx_own_name(x, name);
  Value *v = own ? graph_add_value(x->build.graph, own, type, &shape) : NULL;
  if (v) v->constant = ARENA_NEW(&x->build.graph->arena, Constant);
  if (!v || !v->constant) return error_out_of_memory(x->reading.d), NULL;
  v->constant->data = t.data;
  return v;
}

static Value *add_message(Onnx *x, const char *path, Bytes bytes, const char *name) {
  OnnxTensor tensor;
  const Source source = {.name = path};
  const OnnxReading reading = {x->reading.d, x->reading.arena, &source};
  if (!onnx_read_tensor(&reading, bytes, &tensor)) return NULL;
  if (tensor.is_external) return build_error(&x->build, "%s: expected the elements in the file itself", path), NULL;
  Value *v = onnx_tensor(x, &tensor, path);
  if (v && onnx_is_name(name)) v->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
  return v && !v->name ? (error_out_of_memory(x->reading.d), NULL) : v;
}

static bool shape_fits(const Shape *wanted, const Shape *found) {
  bool ok = wanted->rank < 0 || wanted->rank == found->rank;
  for (int i = 0; ok && i < wanted->rank; i++)
    ok = !extent_is_literal(wanted->extent[i]) || extent_equals(wanted->extent[i], found->extent[i]);
  return ok;
}

Value *onnx_tensor_file(Onnx *x, const char *path, const char *name, Type type, const Shape *shape) {
  static const char mark[] = "\x93NUMPY";
  char wanted[128], found[128];
  const Allocator *allocator = x->reading.arena->allocator;
  size_t nbytes;
  char *text = file_load(allocator, path, &nbytes, x->reading.d);
  if (!text) return NULL;
  const Bytes bytes = {(const uint8_t *)text, nbytes};
  const bool is_npy = nbytes >= sizeof mark && memcmp(text, mark, sizeof mark - 1) == 0;
  Value *v = is_npy ? add_npy(x, path, bytes, name, type) : add_message(x, path, bytes, name);
  allocator_free(allocator, text);
  if (v && (v->type != type || !shape_fits(shape, &v->shape))) {
    build_error(&x->build, "%s: expected %s %s for the input %s, found %s %s", path, type_name(type),
                shape_string(shape, wanted, sizeof wanted), onnx_is_name(name) ? name : "?", type_name(v->type),
                shape_string(&v->shape, found, sizeof found));
    v = NULL;
  }
  return v;
}
