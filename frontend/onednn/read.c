// oneDNN Graph's JSON, as its library dumps it and benchdnn reads it: rewritten into the tree of a file in ngrad/1.
//
// JSON is YAML's flow style, so the tree of libyaml carries it, with the place of every value; jansson would tell the
// places of syntax errors only. Comments and the like, which JSON lacks, pass; an escaped surrogate pair does not.
// What comes out keeps the places, so all that is wrong with operators, types and shapes is told by who tells it for
// ngrad/1. Here it is told what is wrong with the form; nothing else is then looked at.
//
// - Tensor 12 becomes the value t12; operator 3 gets the label "id 3". The operators' own names mean nothing.
// - Graph inputs are the tensors that nothing makes, outputs those that nothing uses and the inputs of End, both in the
//   file's order; input_ports and output_ports are not relied on.
// - An unknown extent or stride is -2^63. A shape of nothing else says nothing, not even the rank.
// - Strides are row-major or a permutation of it, and become the order of axes in memory. Unknown ones, and a
//   layout_type of any or undef, leave it row-major.
#include "frontend/yaml/reader.h"
#include "ir/operators/operator.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef enum TensorKey { TENSOR_ID, DTYPE, SHAPE, STRIDE, LAYOUT_TYPE, PROPERTY_TYPE, NTENSOR_KEYS } TensorKey;
static const char *const tensor_keys[] = {"id", "dtype", "shape", "stride", "layout_type", "property_type"};

typedef struct OneTensor {
  const Yaml *found[NTENSOR_KEYS]; // where it stood first
  const Yaml *name;                // "t12"
  const Yaml *declared;            // {name: t12, type: ..., shape: ..., order: ...}
  bool is_made, is_used, is_end;
} OneTensor;

typedef struct Translation {
  Reader *r;
  Names tensors, operators; // by id
  OneTensor **order;        // in the file's order
  size_t ntensors, capacity;
  bool failed; // something was told
} Translation;

static bool tell(Translation *t, const Yaml *at, const char *format, ...) __attribute__((format(printf, 3, 4)));
static bool tell(Translation *t, const Yaml *at, const char *format, ...) {
  char message[8 * DESCRIPTION_BYTES];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  t->failed = true;
  return error_at(t->r->d, reader_position(t->r, at), "%s", message);
}

// Trees. NULL when out of memory, which is then told; all take NULL for a node.

static Yaml *new_node(Translation *t, YamlKind kind, const Yaml *at, size_t nitems) {
  Arena *arena = &t->r->scratch;
  Yaml *y = ARENA_NEW(arena, Yaml);
  Yaml **items = kind == YAML_SCALAR ? NULL : ARENA_ARRAY(arena, Yaml *, nitems + 1);
  if (!y || (kind != YAML_SCALAR && !items)) {
    t->failed = true;
    error_out_of_memory(t->r->d);
    return NULL;
  }
  *y = (Yaml){.kind = kind, .is_plain = true, .line = at->line, .column = at->column, .weight = 1};
  if (items) y->items = items;
  return y;
}

static Yaml *new_scalar(Translation *t, const Yaml *at, const char *text) {
  Yaml *y = text ? new_node(t, YAML_SCALAR, at, 0) : NULL;
  if (!text) error_out_of_memory(t->r->d);
  if (!y) return NULL;
  y->text = text;
  y->count = (uint32_t)strlen(text);
  return y;
}

static void list_add(Yaml *list, const Yaml *item) { // which has room
  if (list && item) list->items[list->count++] = (Yaml *)item;
}

static void map_add_entry(Yaml *map, const Yaml *key, const Yaml *entry) { // which has room
  if (!map || !key || !entry) return;
  size_t i = (size_t)2 * map->count++;
  map->items[i] = (Yaml *)key;
  map->items[i + 1] = (Yaml *)entry;
}

static void map_add(Translation *t, Yaml *map, const char *key, const Yaml *entry) {
  if (entry) map_add_entry(map, new_scalar(t, entry, key), entry);
}

// Fields

// All fields of an object, each of which must be there.
static bool take_fields(Translation *t, const Yaml *y, const char *what, const char *const *keys, size_t nkeys,
                        const Yaml **found) {
  bool ok = read_fields(t->r, y, what, keys, nkeys, found);
  if (!ok) t->failed = true;
  for (size_t i = 0; y->kind == YAML_MAP && i < nkeys; i++)
    if (!found[i]) ok = tell(t, y, "%s: missing key %s", what, keys[i]);
  return ok;
}

// An unsigned number as it is written, which is one way only.
static bool take_id(Translation *t, const Yaml *y, const char *what) {
  enum { MOST_DIGITS = 20 }; // of 2^64
  char found[DESCRIPTION_BYTES];
  bool ok = y->kind == YAML_SCALAR && y->is_plain && y->count >= 1 && y->count <= MOST_DIGITS &&
            strspn(y->text, "0123456789") == y->count && (*y->text != '0' || y->count == 1);
  return ok || tell(t, y, "id of %s: expected an unsigned integer, found %s", what, yaml_describe(y, found));
}

static bool take_list(Translation *t, const Yaml *y, const char *what) {
  char found[DESCRIPTION_BYTES];
  return y->kind == YAML_LIST || tell(t, y, "%s: expected a list, found %s", what, yaml_describe(y, found));
}

static bool take_word(Translation *t, const Yaml *y, const char *what, const char *const *words, size_t nwords) {
  char found[DESCRIPTION_BYTES];
  for (size_t i = 0; i < nwords && y->kind == YAML_SCALAR; i++)
    if (strcmp(y->text, words[i]) == 0) return true;
  Text expected;
  text_init(&expected, t->r->scratch.allocator);
  for (size_t i = 0; i < nwords; i++)
    text_format(&expected, "%s%s", i == 0 ? "" : i + 1 < nwords ? ", " : " or ", words[i]);
  tell(t, y, "%s: expected %s, found %s", what, text_string(&expected), yaml_describe(y, found));
  text_deinit(&expected);
  return false;
}

// Tensors

typedef struct Numbers { // of a shape, or of strides
  uint32_t count;
  bool is_known; // all of them
  bool is_partly_known;
  int64_t items[MAX_RANK];
} Numbers;

static bool take_numbers(Translation *t, const Yaml *y, const char *key, const OneTensor *tensor, Numbers *n) {
  char found[DESCRIPTION_BYTES], what[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "%s of %s", key, tensor->name->text);
  if (!take_list(t, y, what)) return false;
  *n = (Numbers){.count = y->count, .is_known = true};
  if (y->count > MAX_RANK) return tell(t, y, "%s: expected at most %d axes, found %u", what, MAX_RANK, y->count);
  for (uint32_t i = 0; i < y->count; i++) {
    Scalar s = yaml_scalar(y->items[i]);
    if (s.kind != SCALAR_INT || !s.fits || (s.integer < 0 && s.integer != INT64_MIN))
      return tell(t, y->items[i], "%s: expected a number from 0 to 2^63 - 1 or, for an unknown one, -2^63, found %s",
                  what, yaml_describe(y->items[i], found));
    n->items[i] = s.integer;
    if (s.integer < 0) n->is_known = false;
    else n->is_partly_known = true;
  }
  return true;
}

// Axes by falling stride, the first of two alike first. Axes of extent 1 may stand anywhere.
static void sort_axes(const Numbers *stride, int *axes) {
  for (int i = 0; i < (int)stride->count; i++) {
    int k = i;
    for (; k > 0 && stride->items[axes[k - 1]] < stride->items[i]; k--) axes[k] = axes[k - 1];
    axes[k] = i;
  }
}

static bool is_dense(const Numbers *shape, const Numbers *stride, const int *axes) {
  int64_t next = 1;
  for (int i = (int)shape->count - 1; i >= 0; i--) {
    int64_t extent = shape->items[axes[i]];
    if (extent > 1 && stride->items[axes[i]] != next) return false;
    if (extent > 1 && __builtin_mul_overflow(next, extent, &next)) return true; // too large, which is told elsewhere
  }
  return true;
}

// The order that strides tell; NULL for a row-major one, and after telling.
static Yaml *translate_order(Translation *t, const OneTensor *tensor, const Numbers *shape) {
  const Yaml *y = tensor->found[STRIDE];
  Numbers stride;
  int axes[MAX_RANK], row_major[MAX_RANK];
  if (!take_numbers(t, y, "stride", tensor, &stride) || strcmp(tensor->found[LAYOUT_TYPE]->text, "strided") != 0)
    return NULL;
  if (stride.count != shape->count) {
    tell(t, y, "stride of %s: expected as many as there are extents, %u, found %u", tensor->name->text, shape->count,
         stride.count);
    return NULL;
  }
  if (!shape->is_known && stride.is_partly_known)
    tell(t, y, "stride of %s: expected unknown ones (-2^63) beside unknown extents", tensor->name->text);
  if (!shape->is_known || !stride.is_known) return NULL;
  for (int i = 0; i < (int)shape->count; i++) row_major[i] = i;
  if (is_dense(shape, &stride, row_major)) return NULL;
  sort_axes(&stride, axes);
  if (!is_dense(shape, &stride, axes)) {
    tell(t, y, "stride of %s: expected row-major order or a permutation of it, without gaps", tensor->name->text);
    return NULL;
  }
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

// Its declaration, from the fields where it stands first.
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
      ok = tell(t, found[k], "%s of %s: expected the same as on line %u, column %u", tensor_keys[k], tensor->name->text,
                before->line, before->column);
  }
  return ok;
}

// The tensor that an entry of an operator's inputs or outputs is; NULL after telling.
static OneTensor *take_tensor(Translation *t, const Yaml *y) {
  const Yaml *found[NTENSOR_KEYS];
  Arena *arena = &t->r->scratch;
  if (!take_fields(t, y, "a tensor", tensor_keys, NTENSOR_KEYS, found)) return NULL;
  if (!take_id(t, found[TENSOR_ID], "a tensor")) return NULL;
  OneTensor *tensor = names_find(&t->tensors, found[TENSOR_ID]->text);
  if (tensor) return is_as_before(t, tensor, found) ? tensor : NULL;
  tensor = ARENA_NEW(arena, OneTensor);
  Yaml *name = new_scalar(t, found[TENSOR_ID], arena_format(arena, "t%s", found[TENSOR_ID]->text));
  bool ok = tensor && name && arena_grow(arena, &t->order, t->ntensors, &t->capacity, sizeof(OneTensor *)) &&
            names_set(&t->tensors, found[TENSOR_ID]->text, tensor);
  if (!ok) {
    t->failed = true;
    error_out_of_memory(t->r->d);
    return NULL;
  }
  tensor->name = name;
  memcpy(tensor->found, found, sizeof found);
  if (!declare(t, tensor)) return NULL;
  t->order[t->ntensors++] = tensor;
  return tensor;
}

// Attributes

static const char *attribute_type(AttributeKind kind) {
  switch (kind) {
  case ATTRIBUTE_BOOL: return "bool";
  case ATTRIBUTE_S64: return "s64";
  case ATTRIBUTE_F32: return "f32";
  case ATTRIBUTE_CHOICE: return "string";
  case ATTRIBUTE_S64_LIST: return "s64[]";
  case ATTRIBUTE_F32_LIST: return "f32[]";
  }
  return "?";
}

// An attribute's type and value, as `name: value` for ngrad/1. Unknown names pass, and are told where those are known.
static void translate_attribute(Translation *t, const Yaml *key, const Yaml *y, const Operator *op, const char *title,
                                Yaml *map) {
  enum { TYPE, VALUE, NKEYS };
  static const char *const keys[] = {"type", "value"};
  const Yaml *found[NKEYS];
  char what[4 * DESCRIPTION_BYTES], name[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "attribute %s of %s", yaml_quote(key->text, name), title);
  if (!take_fields(t, y, what, keys, NKEYS, found)) return;
  const Yaml *value = found[VALUE];
  for (uint32_t i = 0; i < op->nattributes; i++) {
    const Attribute *row = &op->attributes[i];
    if (row->is_hidden || strcmp(row->name, key->text) != 0) continue;
    char subject[5 * DESCRIPTION_BYTES];
    snprintf(subject, sizeof subject, "type of %s", what);
    const char *type = attribute_type(row->kind);
    if (!take_word(t, found[TYPE], subject, &type, 1)) return;
    Scalar s = yaml_scalar(value);
    if (row->kind == ATTRIBUTE_BOOL && s.kind == SCALAR_INT && s.fits && (s.integer == 0 || s.integer == 1))
      value = new_scalar(t, value, s.integer ? "true" : "false");
  }
  map_add_entry(map, key, value);
}

static const Yaml *translate_attributes(Translation *t, const Yaml *y, const char *kind, const char *title) {
  char found[DESCRIPTION_BYTES];
  const Operator *op = operator_find(kind).op;
  if (y->kind != YAML_MAP) {
    tell(t, y, "attrs of %s: expected a map, found %s", title, yaml_describe(y, found));
    return NULL;
  }
  Yaml *map = op ? new_node(t, YAML_MAP, y, (size_t)2 * y->count) : NULL;
  for (uint32_t i = 0; map && i < y->count; i++)
    translate_attribute(t, yaml_key(y, i), yaml_entry(y, i), op, title, map);
  return map;
}

// Operators

typedef enum OperatorKey { ID, NAME, KIND, ATTRS, INPUTS, OUTPUTS, NOPERATOR_KEYS } OperatorKey;

static Yaml *translate_operands(Translation *t, const Yaml *list, bool is_input) {
  Yaml *operands = new_node(t, YAML_LIST, list, list->count);
  for (uint32_t i = 0; i < list->count; i++) {
    OneTensor *tensor = take_tensor(t, list->items[i]);
    if (!tensor) continue;
    if (!is_input && tensor->is_made)
      tell(t, list->items[i], "%s: expected one operator that makes it, found a second", tensor->name->text);
    *(is_input ? &tensor->is_used : &tensor->is_made) = true;
    list_add(operands, is_input ? new_scalar(t, list->items[i], tensor->name->text) : tensor->declared);
  }
  return operands;
}

// End has no result: what it takes is an output of the graph.
static void translate_end(Translation *t, const Yaml *const *found) {
  if (found[INPUTS]->count != 1 || found[OUTPUTS]->count != 0)
    tell(t, found[KIND], "End: expected one input and no output, found %u and %u", found[INPUTS]->count,
         found[OUTPUTS]->count);
  for (uint32_t i = 0; i < found[INPUTS]->count; i++) {
    OneTensor *tensor = take_tensor(t, found[INPUTS]->items[i]);
    if (tensor) tensor->is_used = tensor->is_end = true;
  }
}

static Yaml *translate_operator(Translation *t, const Yaml *y) {
  static const char *const keys[] = {"id", "name", "kind", "attrs", "inputs", "outputs"};
  const Yaml *found[NOPERATOR_KEYS];
  char text[DESCRIPTION_BYTES], what[3 * DESCRIPTION_BYTES];
  if (!take_fields(t, y, "an operator", keys, NOPERATOR_KEYS, found) || !take_id(t, found[ID], "an operator"))
    return NULL;
  const char *id = found[ID]->text;
  const Yaml *earlier = names_find(&t->operators, id);
  if (earlier)
    tell(t, found[ID], "duplicate operator id %s, first on line %u, column %u", id, earlier->line, earlier->column);
  else if (!names_set(&t->operators, id, (Yaml *)found[ID])) error_out_of_memory(t->r->d);
  if (found[KIND]->kind != YAML_SCALAR) {
    tell(t, found[KIND], "kind of operator %s: expected an operator's name, found %s", id,
         yaml_describe(found[KIND], text));
    return NULL;
  }
  const char *kind = found[KIND]->text;
  char title[2 * DESCRIPTION_BYTES];
  snprintf(title, sizeof title, "%s (id %s)", yaml_quote(kind, text), id);
  snprintf(what, sizeof what, "inputs of %s", title);
  bool has_lists = take_list(t, found[INPUTS], what);
  snprintf(what, sizeof what, "outputs of %s", title);
  if (!take_list(t, found[OUTPUTS], what) || !has_lists) return NULL;
  if (strcmp(kind, "End") == 0) {
    translate_end(t, found);
    return NULL;
  }
  Yaml *node = new_node(t, YAML_MAP, y, (size_t)2 * NOPERATOR_KEYS);
  map_add(t, node, "op", found[KIND]);
  map_add(t, node, "label", new_scalar(t, found[ID], arena_format(&t->r->scratch, "id %s", id)));
  map_add(t, node, "attributes", translate_attributes(t, found[ATTRS], kind, title));
  map_add(t, node, "inputs", translate_operands(t, found[INPUTS], true));
  map_add(t, node, "outputs", translate_operands(t, found[OUTPUTS], false));
  return node;
}

bool is_onednn(const Yaml *root) {
  bool has_graph = false, has_format = false;
  for (uint32_t i = 0; root->kind == YAML_MAP && i < root->count; i++) {
    has_graph |= strcmp(yaml_key(root, i)->text, "graph") == 0;
    has_format |= strcmp(yaml_key(root, i)->text, "format") == 0;
  }
  return has_graph && !has_format;
}

const Yaml *translate_onednn(Reader *r, const Yaml *root) {
  enum { GRAPH, VERSION, ENGINE, FPMATH, FPMATH_INT, INPUT_PORTS, OUTPUT_PORTS, NKEYS };
  static const char *const keys[] = {
      "graph", "version", "engine_kind", "fpmath_mode", "fpmath_mode_apply_to_int", "input_ports", "output_ports"};
  const Yaml *found[NKEYS];
  Translation t = {.r = r};
  names_init(&t.tensors, &r->scratch);
  names_init(&t.operators, &r->scratch);
  t.failed = !read_fields(r, root, "the graph", keys, NKEYS, found);
  if (!take_list(&t, found[GRAPH], "graph")) return NULL;
  const Yaml *graph = found[GRAPH];
  Yaml *nodes = new_node(&t, YAML_LIST, graph, graph->count);
  for (uint32_t i = 0; i < graph->count && !r->d->out_of_memory; i++)
    list_add(nodes, translate_operator(&t, graph->items[i]));
  Yaml *inputs = new_node(&t, YAML_LIST, graph, t.ntensors), *outputs = new_node(&t, YAML_LIST, graph, t.ntensors);
  for (size_t i = 0; i < t.ntensors; i++) {
    if (!t.order[i]->is_made) list_add(inputs, t.order[i]->declared);
    if (t.order[i]->is_end || !t.order[i]->is_used) list_add(outputs, t.order[i]->name);
  }
  for (size_t i = 0; i < t.ntensors && !outputs->count; i++) // in a cycle, which is told of what is an output
    if (t.order[i]->is_made) list_add(outputs, t.order[i]->name);
  Yaml *map = new_node(&t, YAML_MAP, root, (size_t)2 * NKEYS);
  map_add(&t, map, "format", new_scalar(&t, root, "ngrad/1"));
  map_add(&t, map, "inputs", inputs);
  map_add(&t, map, "nodes", nodes);
  map_add(&t, map, "outputs", outputs);
  return t.failed || r->d->out_of_memory ? NULL : map;
}
