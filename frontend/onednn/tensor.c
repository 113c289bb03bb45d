// Translates logical tensors of oneDNN's JSON to values of ngrad/1: type, shape, and layout from strides.
#include "frontend/onednn/translation.h"

#include <stdio.h>
#include <string.h>

static const char *const tensor_keys[] = {"id", "dtype", "shape", "stride", "layout_type", "property_type"};

typedef struct Numbers { // of a shape, or strides
  uint32_t count;
  bool is_known; // all items are known
  bool is_partly_known;
  int64_t items[MAX_RANK];
} Numbers;

static bool take_numbers(Translation *t, const Yaml *y, const char *key, const OneTensor *tensor, Numbers *n) {
  char what[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "%s of %s", key, tensor->name->text);
  if (!take_list(t, y, what)) return false;
  *n = (Numbers){.count = y->count, .is_known = true};
  if (y->count > MAX_RANK)
    return reader_error(t->r, y, "%s: expected at most %d axes, found %u", what, MAX_RANK, y->count);
  for (uint32_t i = 0; i < y->count; i++) {
    Scalar s = yaml_scalar(y->items[i]);
    if (s.kind != SCALAR_INT || !s.fits || (s.integer < 0 && s.integer != INT64_MIN))
      return reader_expected(t->r, y->items[i],
                             "%s: expected a number from 0 to 2^63 - 1 or, for an unknown one, -2^63", what);
    n->items[i] = s.integer;
    if (s.integer < 0) n->is_known = false;
    else n->is_partly_known = true;
  }
  return true;
}

// Sorts axes by falling stride; equal strides keep their order. Axes of extent 1 may be anywhere.
static void sort_axes(const Numbers *stride, int *axes) {
  for (int i = 0; i < (int)stride->count; i++) {
    int k = i;
    for (; k > 0 && stride->items[axes[k - 1]] < stride->items[i]; k--) axes[k] = axes[k - 1];
    axes[k] = i;
  }
}

typedef enum Spacing { IS_DENSE, HAS_GAPS, OVERLAPS } Spacing;

// Whether the tensor is dense; `axes` are sorted by falling stride.
static Spacing spacing_of(const Numbers *shape, const Numbers *stride, const int *axes) {
  Spacing spacing = IS_DENSE;
  int64_t span = 1, step; // from the first element of the inner axes to one past their last
  for (int i = (int)shape->count - 1; i >= 0; i--) {
    int64_t extent = shape->items[axes[i]], own = stride->items[axes[i]];
    if (extent <= 1) continue;
    if (own < span) return OVERLAPS;
    if (own > span) spacing = HAS_GAPS;
    // Too many elements are reported elsewhere.
    if (__builtin_mul_overflow(own, extent - 1, &step) || __builtin_add_overflow(span, step, &span)) return spacing;
  }
  return spacing;
}

static bool is_row_major(const Numbers *shape, const int *axes) {
  int last = -1;
  for (int i = 0; i < (int)shape->count; i++) {
    if (shape->items[axes[i]] <= 1) continue;
    if (axes[i] < last) return false;
    last = axes[i];
  }
  return true;
}

static bool has_elements(const Numbers *shape) {
  for (uint32_t i = 0; i < shape->count; i++)
    if (shape->items[i] == 0) return false;
  return true;
}

static bool has_stride(const Numbers *stride) {
  return stride->is_known || stride->is_partly_known;
}

// The layout that strides describe; NULL: row-major, or after a message.
static Yaml *translate_order(Translation *t, const OneTensor *tensor, const Numbers *shape) {
  const Yaml *y = tensor->found[STRIDE];
  Numbers stride;
  int axes[MAX_RANK];
  if (!take_numbers(t, y, "stride", tensor, &stride) || strcmp(tensor->found[LAYOUT_TYPE]->text, "strided") != 0)
    return NULL;
  if (stride.count != shape->count && has_stride(&stride))
    return reader_error(t->r, y, "stride of %s: expected one for each of the %u extents, found %u", tensor->name->text,
                        shape->count, stride.count),
           NULL;
  if (!shape->is_known && stride.is_partly_known)
    reader_error(t->r, y, "stride of %s: expected unknown ones (-2^63) beside unknown extents", tensor->name->text);
  if (!shape->is_known || !stride.is_known) return NULL;
  sort_axes(&stride, axes);
  Spacing spacing = has_elements(shape) ? spacing_of(shape, &stride, axes) : IS_DENSE;
  if (spacing == OVERLAPS)
    reader_error(t->r, y, "stride of %s: expected row-major order or a permutation of it, with or without gaps",
                 tensor->name->text);
  if (spacing == HAS_GAPS)
    warn_at(t->r->d, reader_position(t->r, y),
            "stride of %s: gaps between elements are dropped; the layout is the same without them", tensor->name->text);
  if (spacing == OVERLAPS || is_row_major(shape, axes)) return NULL;
  Yaml *order = new_node(t, YAML_LIST, y, shape->count);
  for (uint32_t i = 0; i < shape->count; i++)
    list_add(order, new_scalar(t, y, arena_format(&t->r->scratch, "%d", axes[i])));
  return order;
}

static Yaml *translate_shape(Translation *t, const OneTensor *tensor, const Numbers *shape) {
  const Yaml *y = tensor->found[SHAPE];
  if (shape->count && !shape->is_partly_known) return NULL;
  Yaml *list = new_node(t, YAML_LIST, y, shape->count);
  for (uint32_t i = 0; i < shape->count; i++)
    list_add(list, shape->items[i] < 0 ? new_scalar(t, y->items[i], "_") : y->items[i]);
  return list;
}

// Makes the tensor's declaration from its first occurrence.
static bool declare(Translation *t, OneTensor *tensor) {
  static const char *const layouts[] = {"strided", "any", "undef"};
  static const char *const properties[] = {"undef", "variable", "constant", "host_scalar"};
  char what[DESCRIPTION_BYTES];
  Numbers shape;
  bool ok = take_numbers(t, tensor->found[SHAPE], "shape", tensor, &shape);
  snprintf(what, sizeof what, "layout_type of %s", tensor->name->text);
  ok &= take_word(t, tensor->found[LAYOUT_TYPE], what, layouts, sizeof layouts / sizeof *layouts);
  snprintf(what, sizeof what, "property_type of %s", tensor->name->text);
  ok &= take_word(t, tensor->found[PROPERTY_TYPE], what, properties, sizeof properties / sizeof *properties);
  if (!ok) return false;
  const Yaml *dtype = tensor->found[DTYPE];
  bool is_undefined = dtype->kind == YAML_SCALAR && strcmp(dtype->text, "undef") == 0;
  Yaml *map = new_node(t, YAML_MAP, tensor->name, (size_t)2 * NTENSOR_KEYS);
  map_add(t, map, "name", tensor->name);
  if (!is_undefined) map_add(t, map, "type", dtype);
  map_add(t, map, "shape", translate_shape(t, tensor, &shape));
  map_add(t, map, "order", translate_order(t, tensor, &shape));
  tensor->declared = map;
  return map != NULL;
}

static bool is_same_tree(const Yaml *a, const Yaml *b) {
  if (a->kind != b->kind || a->count != b->count) return false;
  if (a->kind == YAML_SCALAR) return a->is_plain == b->is_plain && strcmp(a->text, b->text) == 0;
  uint32_t n = a->kind == YAML_MAP ? 2 * a->count : a->count;
  for (uint32_t i = 0; i < n; i++)
    if (!is_same_tree(a->items[i], b->items[i])) return false;
  return true;
}

static bool is_as_before(Translation *t, const OneTensor *tensor, const Yaml *const *found) {
  bool ok = true;
  for (TensorKey k = DTYPE; k < NTENSOR_KEYS; k++) {
    const Yaml *before = tensor->found[k];
    if (!is_same_tree(before, found[k]))
      ok = reader_error(t->r, found[k], "%s of %s: expected the same as on line %u, column %u", tensor_keys[k],
                        tensor->name->text, before->line, before->column);
  }
  return ok;
}

OneTensor *take_tensor(Translation *t, const Yaml *y) {
  const Yaml *found[NTENSOR_KEYS];
  Arena *arena = &t->r->scratch;
  if (!take_fields(t, y, "a tensor", tensor_keys, NTENSOR_KEYS, NTENSOR_KEYS, found)) return NULL;
  if (!take_id(t, found[TENSOR_ID], "a tensor")) return NULL;
  OneTensor *tensor = names_find(&t->tensors, found[TENSOR_ID]->text);
  if (tensor) return is_as_before(t, tensor, found) ? tensor : NULL;
  tensor = ARENA_NEW(arena, OneTensor);
  Yaml *name = new_scalar(t, found[TENSOR_ID], arena_format(arena, "t%s", found[TENSOR_ID]->text));
  bool ok = tensor && name && arena_grow(arena, &t->order, t->ntensors, &t->capacity, sizeof(OneTensor *)) &&
            names_set(&t->tensors, found[TENSOR_ID]->text, tensor);
  if (!ok) return error_out_of_memory(t->r->d), NULL;
  tensor->name = name;
  memcpy(tensor->found, found, sizeof found);
  if (!declare(t, tensor)) return NULL;
  t->order[t->ntensors++] = tensor;
  return tensor;
}
