// Files of constants besides the model: inputs that the user gives.
#include "frontend/file.h"
#include "frontend/npy/npy.h"
#include "frontend/onnx/translation.h"

#include <string.h>

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
  return onnx_constant(x, onnx_own_name(x, name), type, &shape, t.data);
}

static Value *add_message(Onnx *x, const char *path, Bytes bytes, const char *name) {
  OnnxTensor tensor;
  const Source source = {.name = path};
  const OnnxReading reading = {.d = x->reading.d, .arena = x->reading.arena, .source = &source, .file = bytes};
  if (!onnx_read_tensor(&reading, bytes, &tensor)) return NULL;
  if (tensor.is_external) return build_error(&x->build, "%s: expected the elements in the file itself", path), NULL;
  Value *v = onnx_tensor(x, &tensor, path);
  if (v && onnx_is_name(name)) v->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
  return v && !v->name ? (error_out_of_memory(x->reading.d), NULL) : v;
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
  if (v && (v->type != type || !npy_shape_fits(shape, &v->shape))) {
    build_error(&x->build, "%s: expected %s %s for the input %s, found %s %s", path, type_name(type),
                shape_string(shape, wanted, sizeof wanted), onnx_is_name(name) ? name : "?", type_name(v->type),
                shape_string(&v->shape, found, sizeof found));
    v = NULL;
  }
  return v;
}
