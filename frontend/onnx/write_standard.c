// Writes the operators of the graph that are ONNX's own or formulas.
#include "frontend/onnx/write_standard.h"

#include "frontend/onnx/translation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

// How the types of operands become one type.
typedef enum Casting {
  NO_CASTS,   // elements are moved, or the writer does it
  CASTS_HALF, // one operator, which computes in the operands' type if it is the same for all, and not bf16
  CASTS_F32   // several operators, whose intermediate results are f32 at least
} Casting;

typedef struct StandardRow {
  OperatorId op;
  Casting casting;
  OnnxWrite write;
  const char *name; // ONNX's operator, or a formula
} StandardRow;

// Attributes are f32, constants of a formula have the operands' type.
static bool has_exact_attributes(const OnnxWriter *w, const Node *node) {
  for (uint32_t i = 0; i < node->op->nattributes && w->type == TYPE_F64; i++)
    if (node->op->attributes[i].kind == ATTRIBUTE_F32 && !onnx_is_float(node->attributes[i].f32)) return false;
  return true;
}

static bool write_inexact(OnnxWriter *w, const Node *node) {
  const char *text = node->op->id == OP_HardSigmoid ? "dst = Max(Min(alpha * src + beta, 1), 0)"
                     : node->op->id == OP_LeakyReLU ? "dst = Where(src > 0, src, alpha * src)"
                                                    : "dst = Where(src > 0, src, alpha * (Exp(src) - 1))";
  return onnx_write_expansion(w, node, text);
}

// Elementwise

// An infinite element is within an infinite bound, and NaN within none.
bool onnx_write_clamp_backward(OnnxWriter *w, const Node *node, const char *format) {
  char text[128];
  snprintf(text, sizeof text, format, isinf(node_f32(node, "min")) ? ">=" : ">",
           isinf(node_f32(node, "max")) ? "<=" : "<");
  return onnx_write_expansion(w, node, text);
}

// Formulas of two forms, separated by |: the second if the attribute use_dst, nesterov or (of GELU) mode is set.
bool onnx_write_either(OnnxWriter *w, const Node *node, const char *texts) {
  static const char *const attributes[] = {"use_dst", "nesterov", "mode"};
  char text[512];
  const char *second = strchr(texts, '|') + 1;
  for (size_t i = 0; i < sizeof attributes / sizeof *attributes; i++) {
    if (!operator_has_attribute(node->op, attributes[i])) continue;
    const AttributeValue *a = node_attribute(node, attributes[i]);
    if (i == 2 ? a->s64 != 0 : a->boolean) return onnx_write_expansion(w, node, second);
  }
  snprintf(text, sizeof text, "%.*s", (int)(second - 1 - texts), texts);
  return onnx_write_expansion(w, node, text);
}

static const StandardRow rows[] = {
#define WRITE(op, casting, write, ...) {OP_##op, casting, onnx_write_##write, __VA_ARGS__},
#include "frontend/onnx/write_standard.def"
#undef WRITE
};

// Writes an operator with the reader's row that maps it one to one, and with the node's numbers as attributes. What
// else the node has, auto_broadcast, has no effect on a valid node.
static bool write_plain(OnnxWriter *w, const Node *node, const char *name) {
  const OnnxRow *row = onnx_find_plain(node->op->id, ONNX_OPSET);
  if (!has_exact_attributes(w, node)) return write_inexact(w, node);
  onnx_begin_same(w, node, name);
  for (const OnnxAttributeRow *a = row->attributes; a->onnx; a++) onnx_add_float(w, a->onnx, node_f32(node, a->own));
  return onnx_end(w, w->out[0]);
}

static bool find_row(OperatorId op, StandardRow *row) {
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (rows[i].op != op) continue;
    *row = rows[i];
    return true;
  }
  const OnnxRow *plain = onnx_find_plain(op, ONNX_OPSET);
  if (plain) *row = (StandardRow){op, CASTS_HALF, write_plain, plain->name};
  return plain;
}

bool onnx_is_written(OperatorId op) {
  StandardRow row;
  return find_row(op, &row);
}

// The type that the node is computed in.
static Type computed_type(const Node *node, Casting casting) {
  TypeSet types = 0;
  Type any = TYPE_NONE;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    if (!v) continue;
    if (TYPE_BIT(v->type) & TYPES_FLOAT) types |= TYPE_BIT(v->type);
    if (any == TYPE_NONE) any = v->type;
  }
  if (casting == NO_CASTS || !types) return any;
  if (types & TYPE_BIT(TYPE_F64)) return TYPE_F64;
  return types == TYPE_BIT(TYPE_F16) && casting == CASTS_HALF ? TYPE_F16 : TYPE_F32;
}

static bool needs_cast(const OnnxWriter *w, const Value *v, Casting casting) {
  return casting != NO_CASTS && TYPE_BIT(v->type) & TYPES_FLOAT && v->type != w->type;
}

// Whether an operand has no elements, and extents that are no numbers: no shape for Reshape says so.
static bool is_open_and_empty(const Node *node) {
  bool is_open = false, is_empty = false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Shape *shape = node->inputs[i] ? &node->inputs[i]->shape : NULL;
    for (int k = 0; shape && k < shape->rank; k++) {
      is_open |= !extent_is_literal(shape->extent[k]);
      is_empty |= extent_equals(shape->extent[k], EXTENT(0));
    }
  }
  return is_open && is_empty;
}

// Whether its elements have a type that few of ONNX's operators take.
static bool is_younger(const Node *node) {
  const bool is_any = node->op->id == OP_StaticReshape || node->op->id == OP_Reorder;
  return !is_any && TYPE_BIT(node->outputs[0]->type) & (TYPES_F8 | TYPES_4_BITS);
}

bool onnx_write_standard(OnnxWriter *w, const Node *node) {
  StandardRow row;
  if (!find_row(node->op->id, &row)) return false;
  if (row.casting == CASTS_F32 && is_open_and_empty(node)) return false;
  if (row.casting == NO_CASTS && is_younger(node)) return false;
  const size_t nodes = w->nodes.nbytes, initializers = w->initializers.nbytes, nfresh = w->nfresh;
  const bool is_labelled = node->label && names_find(&w->node_names, node->label);
  w->type = computed_type(node, row.casting);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    w->in[i] = !v ? NULL : needs_cast(w, v, row.casting) ? onnx_put_cast(w, v->name, w->type, NULL) : v->name;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    w->out[i] = !v ? NULL : needs_cast(w, v, row.casting) ? onnx_fresh(w) : v->name;
  }
  if (row.write(w, node, row.name)) {
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      if (v && w->out[i] != v->name) onnx_put_cast(w, w->out[i], v->type, v->name);
    }
    return true;
  }
  w->nodes.nbytes = nodes;
  w->initializers.nbytes = initializers;
  w->nfresh = nfresh;
  if (node->label && !is_labelled) names_set(&w->node_names, node->label, NULL);
  return false;
}
