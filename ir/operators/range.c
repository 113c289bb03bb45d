// Propagates ranges backwards: from Sqrt through Add(variance, 1e-5) and a reshape to the input that holds the
// variance.
#include "ir/operators/range.h"

#include <math.h>

// The range that the operator requires of input `slot`, an index in node->inputs; RANGE_ANY: no requirement. A power
// with a whole exponent >= 0 requires nothing (Operand.power). Further inputs of a variadic operator have the range
// of its last operand.
static ValueRange input_range(const Node *node, uint32_t slot) {
  const Operator *op = node->op;
  const Operand *row = &op->inputs[slot < op->ninputs ? slot : op->ninputs - 1];
  const double power = row->power ? node_f32(node, row->power) : -1;
  return power >= 0 && power == floor(power) ? RANGE_ANY : operand_range(row);
}

static bool has_negative(const Value *v) {
  int64_t nelems = v->constant->is_splat ? 1 : shape_nelems(&v->shape);
  for (int64_t i = 0; i < nelems; i++)
    if (type_load(v->type, v->constant->data, (size_t)i) < 0) return true;
  return false;
}

static bool product_depends_on_signs(const Node *node) {
  const Value *x = node->inputs[0], *y = node->inputs[1];
  return x != y && !(x->constant && has_negative(x)) && !(y->constant && has_negative(y));
}

// The range that an input must be in for output 0 to be in its range: a floating-point number, or an integer of the
// output's type, such as a count of steps before 1 is added.
static ValueRange range_from_output(const Node *node) {
  ValueRange range = node->outputs[0] ? node->outputs[0]->range : RANGE_ANY;
  switch (node->op->preserves) {
  case PRESERVES_RANGE: return range;
  case PRESERVES_SIGN: return range == RANGE_POSITIVE ? range : RANGE_ANY;
  case PRESERVES_PRODUCT_SIGN: return range == RANGE_POSITIVE && product_depends_on_signs(node) ? range : RANGE_ANY;
  default: return RANGE_ANY;
  }
}

static void narrow(Value *v, ValueRange range) {
  if (range > v->range) v->range = range;
}

// Sets nproducts and is_in_chain. Long chains of products are steps of recurrent networks.
static void find_chains(Graph *g) {
  enum { LONG_CHAIN = 16 };
  uint16_t longest = 0;
  for (size_t i = 0; i < g->nvalues; i++) g->values[i]->nproducts = 0;
  for (size_t n = 0; n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    uint16_t most = 0;
    for (uint32_t k = 0; k < node->ninputs; k++)
      if (node->inputs[k] && node->inputs[k]->nproducts > most) most = node->inputs[k]->nproducts;
    if (node->op->id == OP_MatMul && most < UINT16_MAX) most++;
    for (uint32_t k = 0; k < node->noutputs; k++)
      if (node->outputs[k]) node->outputs[k]->nproducts = most;
    if (most > longest) longest = most;
  }
  for (size_t i = 0; i < g->nvalues; i++) g->values[i]->is_in_chain = longest >= LONG_CHAIN;
}

void graph_find_ranges(Graph *g) {
  find_chains(g);
  for (size_t i = 0; i < g->nvalues; i++) g->values[i]->range = RANGE_ANY;
  for (size_t n = g->nnodes; n-- > 0;) { // users come before producers
    const Node *node = g->nodes[n];
    const ValueRange from_output = range_from_output(node);
    for (uint32_t k = 0; k < node->ninputs; k++) {
      if (!node->inputs[k]) continue;
      narrow(node->inputs[k], input_range(node, k));
      const Type type = node->inputs[k]->type;
      const bool is_integer = type == TYPE_S64 || type == TYPE_S32; // excludes a Select's condition
      if (from_output == RANGE_ANY) continue;
      if (type_is_float(type) || (is_integer && type == node->outputs[0]->type)) narrow(node->inputs[k], from_output);
    }
  }
}
