// Types, shapes and elements of tensors: makes constants from tensors of a model, and sets declared extents.
#include "frontend/named_extent.h"
#include "frontend/onnx/external.h"
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"
#include "ir/graph/formula.h"

#include <string.h>

// By TensorProto.DataType. field: the message field of elements stored one by one; width: bytes of a raw element.
static const struct DataType {
  const char *name;
  Type type;
  uint32_t field;
  WireType wire;
} data_types[] = {
    [0] = {"an undefined type", TYPE_NONE, 0, WIRE_VARINT},
    [1] = {"float", TYPE_F32, 4, WIRE_FIXED32},
    [2] = {"uint8", TYPE_U8, 5, WIRE_VARINT},
    [3] = {"int8", TYPE_S8, 5, WIRE_VARINT},
    [4] = {"uint16", TYPE_U16, 5, WIRE_VARINT},
    [5] = {"int16", TYPE_S16, 5, WIRE_VARINT},
    [6] = {"int32", TYPE_S32, 5, WIRE_VARINT},
    [7] = {"int64", TYPE_S64, 7, WIRE_VARINT},
    [8] = {"string", TYPE_NONE, 6, WIRE_BYTES},
    [9] = {"bool", TYPE_BOOLEAN, 5, WIRE_VARINT},
    [10] = {"float16", TYPE_F16, 5, WIRE_VARINT},
    [11] = {"double", TYPE_F64, 10, WIRE_FIXED64},
    [12] = {"uint32", TYPE_U32, 11, WIRE_VARINT},
    [13] = {"uint64", TYPE_U64, 11, WIRE_VARINT},
    [14] = {"complex64", TYPE_NONE, 4, WIRE_FIXED32},
    [15] = {"complex128", TYPE_NONE, 10, WIRE_FIXED64},
    [16] = {"bfloat16", TYPE_BF16, 5, WIRE_VARINT},
    [17] = {"float8e4m3fn", TYPE_F8_E4M3, 5, WIRE_VARINT},
    [18] = {"float8e4m3fnuz", TYPE_NONE, 5, WIRE_VARINT},
    [19] = {"float8e5m2", TYPE_F8_E5M2, 5, WIRE_VARINT},
    [20] = {"float8e5m2fnuz", TYPE_NONE, 5, WIRE_VARINT},
    [21] = {"uint4", TYPE_U4, 5, WIRE_VARINT},
    [22] = {"int4", TYPE_S4, 5, WIRE_VARINT},
    [23] = {"float4e2m1", TYPE_NONE, 5, WIRE_VARINT},
    [24] = {"float8e8m0", TYPE_NONE, 5, WIRE_VARINT},
    [25] = {"uint2", TYPE_NONE, 5, WIRE_VARINT},
    [26] = {"int2", TYPE_NONE, 5, WIRE_VARINT},
};
enum { NDATA_TYPES = sizeof data_types / sizeof *data_types };

Type onnx_type(uint64_t type) {
  return type < NDATA_TYPES ? data_types[type].type : TYPE_NONE;
}

uint64_t onnx_type_number(Type type) {
  uint64_t number = 0;
  while (data_types[number].type != type) number++; // each type has a row
  return number;
}

uint64_t onnx_type_of_name(Bytes name) {
  char text[16];
  size_t i = 0;
  for (; i < name.count && i + 1 < sizeof text; i++)
    text[i] = (char)(name.at[i] >= 'A' && name.at[i] <= 'Z' ? name.at[i] - 'A' + 'a' : name.at[i]);
  text[i] = '\0';
  for (uint64_t number = 1; number < NDATA_TYPES; number++)
    if (i == name.count && strcmp(text, data_types[number].name) == 0) return number;
  return NDATA_TYPES; // no such type
}

const char *onnx_type_name(uint64_t type) {
  return type < NDATA_TYPES ? data_types[type].name : "an unknown type";
}

// Stores an element's bits in an array of its type.
static void store_bits(void *data, size_t nbytes, size_t i, uint64_t bits) {
  uint8_t bytes[8];
  for (size_t k = 0; k < nbytes; k++) bytes[k] = (uint8_t)(bits >> 8 * k);
  if (nbytes == 1) ((uint8_t *)data)[i] = bytes[0];
  else if (nbytes == 2) ((uint16_t *)data)[i] = (uint16_t)bits;
  else if (nbytes == 4) ((uint32_t *)data)[i] = (uint32_t)bits;
  else ((uint64_t *)data)[i] = bits;
}

// `data` may already hold the bytes.
static bool store_raw(Onnx *x, Bytes rest, const char *what, void *data, size_t nelems, size_t nbytes) {
  uint64_t bits;
  if (rest.count != nelems * nbytes)
    return build_error(&x->build, "%s: expected %zu bytes of data, found %zu", what, nelems * nbytes, rest.count);
  for (size_t i = 0; i < nelems; i++) {
    if (nbytes == 8) wire_next_packed(&rest, WIRE_FIXED64, &bits);
    else if (nbytes == 4) wire_next_packed(&rest, WIRE_FIXED32, &bits);
    else {
      bits = nbytes == 2 ? rest.at[0] | (uint64_t)rest.at[1] << 8 : rest.at[0];
      rest = (Bytes){rest.at + nbytes, rest.count - nbytes};
    }
    store_bits(data, nbytes, i, bits);
  }
  return true;
}

static bool store_fields(Onnx *x, const OnnxTensor *tensor, const char *what, void *data, size_t nelems,
                         size_t nbytes) {
  const struct DataType *type = &data_types[tensor->type];
  Bytes rest = tensor->message;
  Field f;
  size_t count = 0;
  if (type_is_packed(type->type)) return build_error(&x->build, "%s: %s must be raw data", what, type->name);
  while (wire_next(&rest, &f)) {
    if (f.number != type->field) continue;
    uint64_t bits = f.value;
    if (f.type == type->wire && count++ < nelems) store_bits(data, nbytes, count - 1, bits);
    while (f.type == WIRE_BYTES && wire_next_packed(&f.bytes, type->wire, &bits))
      if (count++ < nelems) store_bits(data, nbytes, count - 1, bits);
  }
  return count == nelems || build_error(&x->build, "%s: expected %zu elements, found %zu", what, nelems, count);
}

static bool store(Onnx *x, const OnnxTensor *tensor, const char *what, void *data, size_t nelems, size_t nbytes) {
  if (tensor->is_external) return store_raw(x, (Bytes){data, nelems * nbytes}, what, data, nelems, nbytes);
  if (tensor->has_raw) return store_raw(x, tensor->raw, what, data, nelems, nbytes);
  return store_fields(x, tensor, what, data, nelems, nbytes);
}

// Fills an array with the tensor's elements.
static bool fill(Onnx *x, const OnnxTensor *tensor, const char *what, void *data, size_t nelems, size_t nbytes) {
  if (!store(x, tensor, what, data, nelems, nbytes)) return false;
  const bool is_boolean = onnx_type(tensor->type) == TYPE_BOOLEAN;
  for (size_t i = 0; is_boolean && i < nelems; i++) ((uint8_t *)data)[i] = ((uint8_t *)data)[i] != 0;
  return true;
}

// Elements in an external file are read once, however many tensors they are.
static void *external_elements(Onnx *x, const OnnxTensor *tensor, const char *what, size_t nelems, size_t nbytes) {
  OnnxPart part;
  if (!onnx_find_part(x, tensor, what, nelems, nbytes, &part)) return NULL;
  if (part.data) return part.data;
  void *data = onnx_read_part(x, &part);
  return data && fill(x, tensor, what, data, nelems, nbytes) && onnx_keep_part(x, &part, data) ? data : NULL;
}

static void *own_elements(Onnx *x, const OnnxTensor *tensor, const char *what, size_t nelems, size_t nbytes) {
  void *data = arena_array(&x->build.graph->arena, nelems + 1, nbytes);
  if (!data) return error_out_of_memory(x->reading.d), NULL;
  return fill(x, tensor, what, data, nelems, nbytes) ? data : NULL;
}

Value *onnx_constant(Onnx *x, const char *name, Type type, const Shape *shape, void *data) {
  Value *v = name ? graph_add_value(x->build.graph, name, type, shape) : NULL;
  if (v) v->constant = ARENA_NEW(&x->build.graph->arena, Constant);
  if (!v || !v->constant) return error_out_of_memory(x->reading.d), NULL;
  v->constant->data = data;
  return v;
}

Value *onnx_tensor(Onnx *x, const OnnxTensor *tensor, const char *what) {
  const Type type = onnx_type(tensor->type);
  Shape shape = {.rank = tensor->rank};
  for (int axis = 0; axis < tensor->rank; axis++) shape.extent[axis] = EXTENT(tensor->extent[axis]);
  const int64_t nelems = shape_nelems(&shape);
  if (type == TYPE_NONE)
    return build_error(&x->build, "%s: tensors of %s are not supported", what, onnx_type_name(tensor->type)), NULL;
  const bool is_packed = type_is_packed(type) && (tensor->has_raw || tensor->is_external); // two elements a byte
  const size_t nbytes = type_nbytes(type), count = nelems < 0  ? 0
                                                   : is_packed ? type_array_nbytes(type, (size_t)nelems)
                                                               : (size_t)nelems;
  // Each element has at least a byte in the file, or half a byte, so memory is limited by the file's length.
  if (nelems < 0 || (!tensor->is_external && count > tensor->message.count))
    return build_error(&x->build, "%s: expected as many elements as its shape has, found fewer", what), NULL;
  void *data = (tensor->is_external ? external_elements : own_elements)(x, tensor, what, count, nbytes);
  return !data ? NULL : onnx_constant(x, graph_fresh_name(x->build.graph, "constant"), type, &shape, data);
}

Value *onnx_weight(Onnx *x, const OnnxTensor *tensor, const char *what, const char *name) {
  const char *key = arena_format(x->reading.arena, "%p", (const void *)tensor->message.at);
  Value *v = key ? names_find(&x->weights, key) : NULL;
  if (v) return v;
  v = key ? onnx_tensor(x, tensor, what) : NULL;
  if (!key) error_out_of_memory(x->reading.d);
  if (!v) return NULL;
  v->constant->is_initializer = true;
  const char *own = *name ? onnx_own_name(x, name) : v->name;
  if (!own) return NULL;
  v->name = arena_copy_text(&x->build.graph->arena, own, strlen(own));
  if (v->name && (!type_is_float(v->type) || names_set(&x->weights, key, v))) return v;
  return error_out_of_memory(x->reading.d), NULL;
}

// Declared extents

enum { MOST_DIMS = 1024 };

static const GivenExtent *given_extent(const Onnx *x, const char *name) {
  for (size_t i = 0; i < x->ngiven; i++)
    if (strcmp(x->given[i].name, name) == 0) return &x->given[i];
  return NULL;
}

static bool add_given(Onnx *x, const char *name, int64_t value) {
  if (value < 0 || value >= MAX_ELEMENTS) return true;
  if (!arena_grow(x->reading.arena, &x->given, x->ngiven, &x->given_capacity, sizeof *x->given))
    return error_out_of_memory(x->reading.d);
  x->given[x->ngiven++] = (GivenExtent){name, value};
  return true;
}

bool onnx_given_shape(Onnx *x, const OnnxInfo *info, Ints *shape) {
  const char *name = onnx_text_of(x, info->name), *own = name ? onnx_own_name(x, name) : NULL;
  shape->count = 0;
  if (!own || !x->settings->find_shape) return false;
  const int rank = x->settings->find_shape(x->settings->find_shape_user, own, shape->items);
  bool ok = rank >= 0 && rank <= MAX_RANK && (info->rank < 0 || info->rank == rank);
  for (int axis = 0; ok && axis < rank; axis++) {
    const int64_t declared = info->rank < 0 || info->dim[axis].count ? -1 : info->extent[axis].value,
                  given = shape->items[axis];
    ok = given < MAX_ELEMENTS && (given < 0 || declared < 0 || given == declared);
  }
  if (ok) shape->count = (size_t)rank;
  return ok;
}

bool onnx_take_given_extents(Onnx *x, const OnnxGraph *g) {
  bool ok = true;
  Ints shape;
  for (size_t i = 0; ok && i < x->settings->nextents; i++)
    ok = add_given(x, x->settings->extents[i].name, x->settings->extents[i].value);
  for (size_t i = 0; ok && i < g->ninputs; i++) {
    const OnnxInfo *info = &g->inputs[i];
    if (info->rank < 0 || !onnx_given_shape(x, info, &shape)) continue;
    for (int axis = 0; ok && axis < info->rank; axis++) {
      const char *name = info->dim[axis].count ? onnx_text_of(x, info->dim[axis]) : NULL;
      if (name && onnx_is_name(name) && !given_extent(x, name)) ok = add_given(x, name, shape.items[axis]);
    }
  }
  return ok;
}

// A name that no other dim of the graph has: the model's if it is one; of another, bytes become %, as in a URL.
static const char *own_dim_name(const Onnx *x, const char *name) {
  enum { MOST_BYTES = 80 };
  const bool is_name = onnx_is_name(name);
  const char *own = is_name ? name : "";
  for (size_t i = 0; !is_name && own && name[i] && i < MOST_BYTES; i++) {
    const bool is_plain = name[i] > ' ' && name[i] <= '~' && name[i] != '%' && strcmp(name, "_") != 0;
    own = arena_format(x->reading.arena, is_plain ? "%s%c" : "%s%%%02X", own, (unsigned char)name[i]);
  }
  while (own && graph_find_dim(x->build.graph, own)) own = arena_format(x->reading.arena, "%s%%", own);
  return own;
}

// The extent of a name, for which a dim is added unless there is one.
static bool set_named(Onnx *x, const char *name, Extent *e) {
  Dim *dim = names_find(&x->dims, name);
  if (!dim && x->build.graph->ndims == MOST_DIMS)
    return build_error(&x->build, "the model has more than %d named extents", MOST_DIMS);
  const char *own = dim ? dim->name : own_dim_name(x, name);
  const GivenExtent *given = own ? given_extent(x, own) : NULL;
  if (!dim && own) dim = graph_add_dim(x->build.graph, own, given ? given->value : -1);
  if (!dim || !names_set(&x->dims, name, dim)) return error_out_of_memory(x->reading.d);
  *e = given ? EXTENT(given->value) : (Extent){dim, -1};
  return true;
}

// Whether an input of the model has an extent of this name, or a property (onnx_write) its number.
static bool is_dim(Onnx *x, const char *name) {
  Bytes rest = x->properties, key, value;
  while (onnx_next_property(&rest, &key, &value)) {
    const char *text = onnx_text_of(x, key);
    if (text && strncmp(text, "dim ", 4) == 0 && strcmp(text + 4, name) == 0) return true;
  }
  for (size_t i = 0; i < x->model->ninputs; i++)
    for (int axis = 0; axis < x->model->inputs[i].rank; axis++) {
      const char *other = x->model->inputs[i].dim[axis].count ? onnx_text_of(x, x->model->inputs[i].dim[axis]) : NULL;
      if (other && strcmp(other, name) == 0) return true;
    }
  return false;
}

static Extent number_if_given(const Dim *dim, const void *context) {
  const GivenExtent *given = given_extent(context, dim->name);
  return given ? EXTENT(given->value) : (Extent){dim, -1};
}

// The text with spaces around each sign of a product, which PyTorch writes without: 2*T + 1. NULL: out of memory.
static const char *with_spaces(Onnx *x, const char *text) {
  const size_t nbytes = strlen(text);
  char *spaced = arena_alloc(x->reading.arena, 3 * nbytes + 1), *to = spaced;
  for (size_t i = 0; spaced && i < nbytes; i++) {
    const bool is_product = text[i] == '*' && i && !strchr(" *", text[i - 1]) && !strchr(" *", text[i + 1]);
    if (is_product) *to++ = ' ';
    *to++ = text[i];
    if (is_product) *to++ = ' ';
  }
  if (spaced) *to = 0;
  return spaced;
}

// A formula of names that extents of inputs have, as T + 1; any other text is a name.
static bool set_formula(Onnx *x, const char *text, Extent *e) {
  const char *spaced = with_spaces(x, text);
  NamedResult result;
  if (!spaced) return error_out_of_memory(x->reading.d);
  if (!is_formula(spaced)) return set_named(x, text, e);
  Arena *arena = &x->build.graph->arena;
  const char *unknown;
  size_t nbytes;
  while ((result = read_formula(&x->dims, spaced, arena, e, &unknown, &nbytes)) == NAMED_IS_UNKNOWN) {
    const char *name = arena_copy_text(x->reading.arena, unknown, nbytes);
    if (!name) return error_out_of_memory(x->reading.d);
    if (!is_dim(x, name)) return set_named(x, text, e);
    if (!set_named(x, name, e)) return false;
  }
  if (result == NAMED_IS_OUT_OF_RANGE) return set_named(x, text, e);
  return (result == NAMED_IS_READ && extent_substitute(arena, *e, number_if_given, x, e)) ||
         error_out_of_memory(x->reading.d);
}

bool onnx_set_extents(Onnx *x, const OnnxInfo *info, Shape *shape) {
  shape->rank = info->rank;
  for (int axis = 0; axis < info->rank; axis++) {
    shape->extent[axis] = info->extent[axis];
    if (!info->dim[axis].count) continue;
    const char *name = onnx_text_of(x, info->dim[axis]);
    if (!name || !set_formula(x, name, &shape->extent[axis])) return false;
  }
  return true;
}
