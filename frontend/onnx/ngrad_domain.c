// Nodes of the domain "ngrad" are operators of the graph under their own names. They are written where ONNX has no
// equivalent operator, and are read back unchanged.
//
// Operands are in the order shown by ngrad ops NAME. Booleans are integers, choices are strings. A number is a float if
// it is that float's shortest decimal, for example 0.1; otherwise it is a tensor of one f64. Outputs have the types and
// shapes that the model declares.
#include "frontend/onnx/fields.h"
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The number that a float represents: its shortest decimal.
static double number_of(float f) {
  char digits[32];
  double number = (double)f;
  for (int precision = 1; precision <= 9 && isfinite(f); precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, (double)f);
    number = strtod(digits, NULL); // in the locale that printed it
    if ((float)number == f) break;
  }
  return number;
}

// Writing

static void write_number(OnnxWriter *w, const char *name, double number) {
  if (number_of((float)number) == number) onnx_add_float(w, name, number);
  else onnx_add_double(w, name, number);
}

static void write_attribute(OnnxWriter *w, const char *name, const Attribute *row, const AttributeValue *value) {
  switch (row->kind) {
  case ATTRIBUTE_BOOL: onnx_add_int(w, name, value->boolean); break;
  case ATTRIBUTE_S64: onnx_add_int(w, name, value->s64); break;
  case ATTRIBUTE_F32: write_number(w, name, value->f32); break;
  case ATTRIBUTE_CHOICE: onnx_add_text(w, name, row->choices[value->s64]); break;
  case ATTRIBUTE_S64_LIST: onnx_add_ints(w, name, value->list.items, value->list.count); break;
  case ATTRIBUTE_F32_LIST: onnx_add_floats(w, name, value->numbers.items, value->numbers.count); break;
  }
}

void onnx_write_own(OnnxWriter *w, const Node *node) {
  const OperatorName as = {node->op, node->signature};
  const bool is_list = node->op->traits & TRAIT_VARIADIC;
  Text name;
  text_init(&name, w->node.allocator);
  operator_print_name(node->op, node->signature, &name);
  onnx_begin_own(w, text_string(&name));
  w->node.out_of_memory |= name.out_of_memory;
  text_deinit(&name);
  for (uint32_t i = 0; i < (is_list ? node->ninputs : named_ninputs(as)); i++) {
    const Value *v = node->inputs[is_list ? i : named_input(as, i).slot];
    onnx_add_input(w, v ? v->name : "");
  }
  for (uint32_t i = 0; i < named_noutputs(as); i++) {
    const Value *v = node->outputs[named_output(as, i).slot];
    onnx_add_output(w, v ? v->name : "");
  }
  for (uint32_t i = 0; i < named_nattributes(as); i++) {
    const NamedAttribute named = named_attribute(as, i);
    const AttributeValue *value = &node->attributes[named.index];
    if (value->is_set) write_attribute(w, named.name, &node->op->attributes[named.index], value);
  }
  onnx_close(w);
  size_t known = 0;
  while (known < w->nown && strcmp(w->own[known], node->op->name) != 0) known++;
  if (known == w->nown && w->nown < MOST_OWN) w->own[w->nown++] = node->op->name;
}

// Reading

static bool take_infos(Onnx *x, uint32_t field) {
  Bytes rest = x->model->message;
  Field f;
  while (wire_next(&rest, &f)) {
    if (f.number != field || f.type != WIRE_BYTES) continue;
    OnnxInfo *info = ARENA_NEW(x->reading.arena, OnnxInfo);
    if (!info) return error_out_of_memory(x->reading.d);
    if (!onnx_read_info(&x->reading, f.bytes, info)) return false;
    const char *name = onnx_text_of(x, info->name);
    if (!name || !names_set(&x->infos, name, info)) return error_out_of_memory(x->reading.d);
  }
  return true;
}

// Declares the node's output with the model's type and shape.
static Value *declare(Onnx *x, Node *node, uint32_t slot, size_t i) {
  const char *name = onnx_text_of(x, x->node->outputs[i]);
  const OnnxInfo *info = name ? names_find(&x->infos, name) : NULL;
  Value *v = name ? build_result(&x->build, node, slot, info ? onnx_type(info->type) : TYPE_NONE) : NULL;
  return v && info && !onnx_set_extents(x, info, &v->shape) ? NULL : v;
}

static bool read_number(Onnx *x, const OnnxAttribute *a, double *number) {
  OnnxTensor tensor;
  *number = number_of(a->f);
  if (!a->t.at) return true;
  if (!onnx_read_tensor(&x->reading, a->t, &tensor)) return false;
  return onnx_number(x, onnx_tensor(x, &tensor, "an attribute"), number);
}

static bool read_choice(Onnx *x, const Attribute *row, Bytes text, AttributeValue *value) {
  for (int i = 0; i < MAX_CHOICES && row->choices[i]; i++) {
    value->s64 = i;
    if (bytes_are(text, row->choices[i])) return true;
  }
  return build_error(&x->build, "%s: expected another choice", row->name);
}

static bool read_numbers(Onnx *x, const OnnxAttribute *a, const Attribute *row, AttributeValue *value) {
  const size_t count = onnx_floats(a, NULL, 0);
  double *items = ARENA_ARRAY(&x->build.graph->arena, double, count + 1);
  if (!items) return error_out_of_memory(x->reading.d);
  value->numbers.items = items;
  value->numbers.count = onnx_floats(a, items, count);
  for (size_t i = 0; i < count; i++)
    if (!isfinite(items[i])) return build_error(&x->build, "%s: expected finite numbers", row->name);
  return true;
}

static bool read_attribute(Onnx *x, Node *node, const NamedAttribute *named) {
  // Numbers that are not representable in f32 are tensors.
  static const OnnxKind kinds[] = {
      [ATTRIBUTE_BOOL] = ONNX_INT,      [ATTRIBUTE_S64] = ONNX_INT,       [ATTRIBUTE_F32] = ONNX_FLOAT,
      [ATTRIBUTE_CHOICE] = ONNX_STRING, [ATTRIBUTE_S64_LIST] = ONNX_INTS, [ATTRIBUTE_F32_LIST] = ONNX_FLOATS};
  const Attribute *row = &node->op->attributes[named->index];
  AttributeValue *value = &node->attributes[named->index];
  OnnxAttribute a;
  Ints list;
  if (!onnx_find_attribute(x->node, named->name, &a))
    return !named->is_required || build_error(&x->build, "missing attribute %s", named->name);
  const OnnxKind kind = row->kind == ATTRIBUTE_F32 && a.t.at ? ONNX_TENSOR : kinds[row->kind];
  if (!onnx_attribute(x, named->name, kind, &a)) return false;
  value->is_set = true;
  switch (row->kind) {
  case ATTRIBUTE_BOOL: value->boolean = a.i != 0; return true;
  case ATTRIBUTE_S64: value->s64 = a.i; return true;
  case ATTRIBUTE_F32: return read_number(x, &a, &value->f32);
  case ATTRIBUTE_CHOICE: return read_choice(x, row, a.s, value);
  case ATTRIBUTE_S64_LIST:
    return onnx_list(x, named->name, &list) && build_set_list(&x->build, node, row->name, list.items, list.count);
  case ATTRIBUTE_F32_LIST: return read_numbers(x, &a, row, value);
  }
  return false;
}

// Adds a node with its inputs in their slots.
static Node *add_node(Onnx *x, OperatorName as) {
  const bool is_list = as.op->traits & TRAIT_VARIADIC;
  const size_t most = is_list ? MAX_VARIADIC : named_ninputs(as), count = x->node->ninputs;
  if (count > most || x->node->noutputs > named_noutputs(as))
    return build_error(&x->build, "expected at most %zu inputs and %u outputs", most, named_noutputs(as)), NULL;
  const uint32_t ninputs = is_list && count > as.op->ninputs ? (uint32_t)count : as.op->ninputs;
  Node *node = graph_add_node(x->build.graph, as.op, as.signature, ninputs, as.op->noutputs);
  if (!node) return error_out_of_memory(x->reading.d), NULL;
  for (uint32_t i = 0; i < count; i++) {
    Value *v = onnx_in(x, i);
    if (v) node_set_input(node, is_list ? i : named_input(as, i).slot, v);
  }
  for (uint32_t i = 0; i < (is_list ? ninputs : named_ninputs(as)); i++) { // an alias may have required operands
    const SignatureOperand row = named_input(as, is_list ? 0 : i);
    if (!node->inputs[is_list ? i : row.slot] && !row.is_optional)
      return build_error(&x->build, "missing input %s", row.name), NULL;
  }
  node->position = x->build.at;
  return node;
}

// Reads a constant of one number whose shape has named extents, which ConstantOfShape cannot have.
static bool read_constant(Onnx *x) {
  const char *name = x->node->noutputs ? onnx_text_of(x, x->node->outputs[0]) : NULL;
  const OnnxInfo *info = name ? names_find(&x->infos, name) : NULL;
  OnnxAttribute a;
  OnnxTensor tensor;
  Shape shape = {.rank = 0};
  if (!info || info->rank < 0 || !onnx_attribute(x, "value", ONNX_TENSOR, &a))
    return build_error(&x->build, "expected the attribute value, and an output with a shape");
  if (!onnx_read_tensor(&x->reading, a.t, &tensor) || !onnx_set_extents(x, info, &shape)) return false;
  const Value *number = onnx_tensor(x, &tensor, "value");
  if (!number || shape_nelems(&number->shape) != 1) return build_error(&x->build, "value: expected one element");
  const double element = type_load(number->type, number->constant->data, 0);
  return onnx_out(x, 0, build_number(&x->build, number->type, &shape, element));
}

bool onnx_own_node(Onnx *x) {
  Builder *b = &x->build;
  if (!x->has_infos && !(take_infos(x, GRAPH_VALUE_INFO) && take_infos(x, GRAPH_OUTPUT))) return false;
  x->has_infos = true;
  if (bytes_are(x->node->op, "Constant")) return read_constant(x);
  const char *name = onnx_text_of(x, x->node->op);
  const OperatorName as = name ? operator_find(name) : (OperatorName){NULL, NULL};
  if (!as.op) return build_error(b, "there is no such operator");
  Node *node = add_node(x, as);
  if (!node) return false;
  for (uint32_t i = 0; i < named_nattributes(as); i++) {
    const NamedAttribute named = named_attribute(as, i);
    if (!read_attribute(x, node, &named)) return false;
  }
  Value *outputs[MAX_OPERANDS] = {NULL};
  for (uint32_t i = 0; i < x->node->noutputs; i++)
    if (onnx_wants(x, i) && !(outputs[i] = declare(x, node, named_output(as, i).slot, i))) return false;
  for (uint32_t i = 0; i < named_noutputs(as); i++)
    if (!named_output(as, i).is_optional && !node->outputs[named_output(as, i).slot])
      return build_error(b, "missing output %s", named_output(as, i).name);
  if (!build_finish(b, node)) return false;
  for (uint32_t i = 0; i < x->node->noutputs; i++)
    if (outputs[i] && !onnx_out(x, i, outputs[i])) return false;
  return true;
}
