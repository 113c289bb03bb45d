// A node's operands and attributes, and messages about the node.
#include "frontend/onnx/translation.h"
#include "ir/graph/extents.h"
#include "ir/graph/formula.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_TITLE_BYTES = 200, MOST_NAME_BYTES = 200, MOST_SHOWN = 36, MOST_SHORT_BYTES = 64 };

// Names

const char *onnx_text_of(Onnx *x, Bytes bytes) {
  const char *text = arena_copy_text(x->reading.arena, (const char *)bytes.at, bytes.count);
  if (!text) error_out_of_memory(x->reading.d);
  return text;
}

static bool is_printable(const char *text) {
  for (; *text; text++)
    if ((unsigned char)*text < ' ' || (unsigned char)*text > '~') return false;
  return true;
}

// Files have the names of values, in which a slash is three bytes, with more in front and behind.
static bool is_long(const char *text) {
  size_t nbytes = 0;
  for (; *text && nbytes <= MOST_NAME_BYTES; text++) nbytes += *text == '/' ? 3 : 1;
  return nbytes > MOST_NAME_BYTES;
}

bool onnx_is_name(const char *text) {
  return *text && strcmp(text, "_") != 0 && !is_long(text) && is_printable(text); // others get a new name
}

const char *onnx_own_name(Onnx *x, const char *name) {
  const char *own = name;
  if (*name && is_long(name) && is_printable(name)) // both ends
    own = arena_format(x->reading.arena, "%.*s..%s", MOST_SHORT_BYTES / 2, name,
                       name + strlen(name) - MOST_SHORT_BYTES / 2);
  if (own == name && !onnx_is_name(name)) own = graph_fresh_name(x->build.graph, "value");
  if (!own) error_out_of_memory(x->reading.d);
  return own;
}

// "Conv conv1 (opset 13)"; a long name is shortened to both its ends.
const char *onnx_title(Onnx *x, const OnnxNode *node) {
  const Bytes name = node->name.count ? node->name : node->noutputs ? node->outputs[0] : node->name;
  const char *op = onnx_text_of(x, node->op), *own = onnx_text_of(x, name);
  if (!op || !own) return NULL;
  char title[MOST_TITLE_BYTES];
  const bool has_name = *own && is_printable(own);
  const size_t nbytes = strlen(own), cut = has_name && nbytes > MOST_SHOWN ? nbytes - MOST_SHOWN / 2 : 0;
  snprintf(title, sizeof title, "%.40s %.*s%s%s (opset %lld)", onnx_is_name(op) ? op : "?",
           cut ? MOST_SHOWN / 2 : MOST_SHOWN, has_name ? own : "?", cut ? ".." : "", cut ? own + cut : "",
           (long long)x->opset);
  return arena_copy_text(x->reading.arena, title, strlen(title));
}

// Operands

Value *onnx_in(const Onnx *x, size_t i) {
  return i < x->node->ninputs ? x->inputs[i] : NULL;
}

bool onnx_wants(const Onnx *x, size_t i) {
  return i < x->node->noutputs && x->node->outputs[i].count;
}

bool onnx_out(Onnx *x, size_t i, Value *v) {
  if (!v) return false;
  if (!onnx_wants(x, i)) return true;
  const char *name = onnx_text_of(x, x->node->outputs[i]);
  if (!name) return false;
  if (names_find(&x->scope->values, name))
    return build_error(&x->build, "duplicate value %s", onnx_is_name(name) ? name : "of that name");
  if (v->producer && onnx_is_name(name) && strncmp(v->name, "onnx_", 5) == 0) { // not named yet
    v->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
    if (!v->name) return error_out_of_memory(x->reading.d);
  }
  return names_set(&x->scope->values, name, v) || error_out_of_memory(x->reading.d);
}

bool onnx_has(const Onnx *x, const char *name) {
  OnnxAttribute a;
  return onnx_find_attribute(x->node, name, &a);
}

// Models from before 2017 do not state the kind of an attribute.
bool onnx_attribute(Onnx *x, const char *name, OnnxKind kind, OnnxAttribute *a) {
  static const char *const kinds[] = {"?",       "a float", "an integer", "a string", "a tensor",
                                      "a graph", "floats",  "integers",   "strings"};
  if (!onnx_find_attribute(x->node, name, a)) return false;
  if (a->type == 0 || a->type == kind) return true;
  return build_error(&x->build, "%s: expected %s, found %s", name, kinds[kind],
                     a->type < sizeof kinds / sizeof *kinds ? kinds[a->type] : "another kind of attribute");
}

int64_t onnx_int(Onnx *x, const char *name, int64_t otherwise) {
  OnnxAttribute a;
  return onnx_attribute(x, name, ONNX_INT, &a) ? a.i : otherwise;
}

double onnx_float(Onnx *x, const char *name, double otherwise) {
  OnnxAttribute a;
  return onnx_attribute(x, name, ONNX_FLOAT, &a) ? (double)a.f : otherwise;
}

Bytes onnx_text(Onnx *x, const char *name) {
  OnnxAttribute a;
  return onnx_attribute(x, name, ONNX_STRING, &a) ? a.s : (Bytes){NULL, 0};
}

size_t onnx_texts(Onnx *x, const char *name, Bytes *list, size_t most) {
  OnnxAttribute a;
  return onnx_attribute(x, name, ONNX_STRINGS, &a) ? onnx_strings(&a, list, most) : 0;
}

bool onnx_list(Onnx *x, const char *name, Ints *list) {
  OnnxAttribute a;
  list->count = 0;
  if (!onnx_attribute(x, name, ONNX_INTS, &a)) return false;
  list->count = onnx_ints(&a, list->items, MOST_INTS);
  return list->count <= MOST_INTS || build_error(&x->build, "%s: expected at most %d numbers", name, MOST_INTS);
}

// A name that the axis has in v or in what v is computed from, as H in an image that a convolution made smaller; NULL:
// none. Examines at most *most values.
static const char *name_along(const Value *v, int axis, int *most) {
  if (!v || --*most < 0) return NULL;
  const Dim *dim = axis < v->shape.rank ? v->shape.extent[axis].dim : NULL;
  const char *name = dim ? (dim->terms ? dim->terms[0].dims[0] : dim)->name : NULL;
  for (uint32_t i = 0; v->producer && !name && i < v->producer->ninputs; i++)
    name = name_along(v->producer->inputs[i], axis, most);
  return name;
}

bool onnx_has_number(Onnx *x, const Value *v, int axis) {
  const Extent e = v->shape.extent[axis];
  int most = 128; // values, as the stack grows with them
  if (extent_is_literal(e)) return true;
  const char *name = name_along(v, axis, &most);
  if (e.dim)
    return build_error(&x->build,
                       "expected a number as the input's extent %d, found %.80s: give it one, as in --dim %.80s=1",
                       axis, e.dim->name, name ? name : "NAME");
  if (name)
    return build_error(&x->build,
                       "expected a number as the input's extent %d, which follows from %.80s: give that one, as in "
                       "--dim %.80s=1",
                       axis, name, name);
  char shape[SHAPE_TO_GIVE];
  return build_error(&x->build, "expected a number as the input's extent %d, found none: %s", axis,
                     onnx_shape_to_give(x, v, shape, sizeof shape));
}

bool onnx_has_numbers(Onnx *x, const Value *v) {
  for (int axis = 0; axis < v->shape.rank; axis++)
    if (!onnx_has_number(x, v, axis)) return false;
  return true;
}

// The integers of a constant, including numbers that stand for extents.
static bool take_ints(Onnx *x, size_t i, Ints *list) {
  const Value *v = onnx_known(x, onnx_in(x, i));
  list->count = 0;
  if (!v) return build_error(&x->build, "expected input %zu", i);
  if (!v->constant) return onnx_must_be_known(x, v);
  if (!onnx_has_numbers(x, v)) return false;
  const int64_t nelems = shape_nelems(&v->shape);
  if (nelems < 0 || nelems > MOST_INTS)
    return build_error(&x->build, "input %zu: expected at most %d numbers", i, MOST_INTS);
  list->count = (size_t)nelems;
  for (size_t k = 0; k < list->count; k++) list->items[k] = onnx_integer(v, k);
  return true;
}

bool onnx_constant_ints(Onnx *x, size_t i, Ints *list) {
  if (onnx_in(x, i) && onnx_has_extents(x, onnx_in(x, i))) return onnx_must_be_known(x, onnx_in(x, i));
  return take_ints(x, i, list);
}

bool onnx_constant_shape(Onnx *x, size_t i, Shape *shape) {
  Ints list;
  *shape = (Shape){.rank = 0};
  if (!take_ints(x, i, &list)) return false;
  if (list.count > MAX_RANK) return build_error(&x->build, "expected at most %d axes", MAX_RANK);
  for (size_t k = 0; k < list.count; k++)
    shape->extent[shape->rank++] = onnx_has_extents(x, onnx_in(x, i)) ? onnx_extent_of(x, list.items[k])
                                   : list.items[k] >= MAX_ELEMENTS    ? EXTENT(MAX_ELEMENTS)
                                                                      : EXTENT(list.items[k]);
  return true;
}

// The place that is this extent before the end of the axis. False: out of memory.
static bool place_from_end(Onnx *x, int64_t axis, Extent *e) {
  const Shape *shape = &onnx_in(x, 0)->shape;
  if (axis < 0) axis += shape->rank;
  if (!e->dim || axis < 0 || axis >= shape->rank) return true; // the latter is an error of the axes
  return extent_add(x->build.graph, shape->extent[axis], -1, *e, e) || error_out_of_memory(x->reading.d);
}

bool onnx_constant_bounds(Onnx *x, size_t i, size_t most, const Ints *axes, Ints *list, Extent *named) {
  if (!take_ints(x, i, list)) return false;
  if (list->count > most) return build_error(&x->build, "expected at most %zu numbers", most);
  for (size_t k = 0; k < list->count; k++) {
    named[k] = onnx_extent_of(x, list->items[k]);
    if (axes && !named[k].dim && named[k].value != list->items[k]) {
      named[k] = onnx_extent_of(x, onnx_opposite(list->items[k]));
      if (!place_from_end(x, axes->items[k], &named[k])) return false;
      if (extent_is_literal(named[k])) list->items[k] = named[k].value; // N - N
    }
    if (!named[k].dim && named[k].value != list->items[k]) return onnx_must_be_known(x, onnx_in(x, i));
    if (named[k].dim) list->items[k] = 0;
    else named[k] = EXTENT_UNKNOWN;
  }
  return true;
}

bool onnx_ints_of(Onnx *x, size_t i, const char *name, Ints *list, bool *is_given) {
  list->count = 0;
  *is_given = onnx_in(x, i) != NULL || onnx_has(x, name);
  if (onnx_in(x, i)) return onnx_constant_ints(x, i, list);
  return !*is_given || onnx_list(x, name, list);
}

bool onnx_axis(Onnx *x, int64_t given, int rank, int *axis) {
  if (given < -rank || given >= rank)
    return build_error(&x->build, "axis %lld: expected one of %d axes", (long long)given, rank);
  *axis = (int)(given < 0 ? given + rank : given);
  return true;
}

bool onnx_number(Onnx *x, Value *given, double *number) {
  const Value *v = onnx_known(x, given);
  if (!v) return build_error(&x->build, "a required input, one number, is absent");
  if (!v->constant || onnx_has_extents(x, v)) return onnx_must_be_known(x, v);
  if (!onnx_has_numbers(x, v)) return false;
  if (shape_nelems(&v->shape) != 1) return build_error(&x->build, "%.80s: expected one number", v->name);
  *number = type_load(v->type, v->constant->data, 0);
  return true;
}
