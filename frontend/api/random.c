// Random inputs. Each element takes integer arithmetic and one multiplication, so every machine gets the same bits.
#include "frontend/api/random.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
#include "ir/graph/init.h"
#include "ir/operators/contraction.h"
#include "ir/operators/operator.h"
#include "ir/support/splitmix.h"

#include <math.h>

// The sum of four uniform 16-bit numbers has mean 2 * 65535 and variance (2^32 - 1) / 3.
static double nearly_normal(uint64_t word) {
  const int64_t mean = 2 * INT64_C(65535);
  const double reciprocal_deviation = 0x1.bb67ae86627e8p-16; // sqrt(3 / (2^32 - 1))
  int64_t sum = (int64_t)(word & 0xFFFF) + (int64_t)(word >> 16 & 0xFFFF) + (int64_t)(word >> 32 & 0xFFFF) +
                (int64_t)(word >> 48);
  return (double)(sum - mean) * reciprocal_deviation;
}

static double uniform(uint64_t word, double least, double beyond) {
  return least + (beyond - least) * ((double)(word >> 11) * 0x1p-53);
}

// The standard deviation of random values. Integers need a wider range than the normal's.
static double deviation_of(Type type) {
  switch (type) {
  case TYPE_U8:
  case TYPE_S8:
  case TYPE_S32:
  case TYPE_S64: return 32;
  case TYPE_U4:
  case TYPE_S4: return 3;
  default: return 1;
  }
}

Distribution distribution_any(Type type) {
  return (Distribution){.range = RANGE_ANY, .factor = 1, .centre = type == TYPE_U8 ? 128 : type == TYPE_U4 ? 8 : 0};
}

// Adapts quantised numbers so that Dequantize gives them a variance of at most 1, with its zero point as mean.
static void distribution_adapt(Distribution *d, const Node *dequantize, Type type) {
  const AttributeValue *scales = node_attribute(dequantize, "scales"), *zps = node_attribute(dequantize, "zps");
  const double steps = deviation_of(type), scale = scales->numbers.count ? scales->numbers.items[0] : 1;
  if (scale * steps > 1) d->factor = 1 / (scale * steps);
  if (zps->list.count) d->centre = (double)zps->list.items[0];
}

// Whether every element of the node's results is an element of its input.
static bool only_moves(const Node *node) {
  const OperatorId op = node->op->id;
  return (node->op->traits & TRAIT_PERMUTES || op == OP_Leaf || op == OP_Slice || op == OP_Split) &&
         !type_is_float(node->inputs[0]->type);
}

// The lesser of two extents; 0 and -1 mean no extent.
static int64_t lesser(int64_t a, int64_t b) {
  return b <= 0 || (a > 0 && a < b) ? a : b;
}

// The extent of the axis that the input holds indices or labels along; -1: neither.
static int64_t indexed_extent(const Node *node, uint32_t slot) {
  const Operand *row = slot < node->op->ninputs ? &node->op->inputs[slot] : NULL;
  return row && (row->is_index || row->is_label) ? extent_value(node_indexed(node, slot)) : -1;
}

// The number that the node adds to indices that are negative, i < 0 ? i + n : i, as formulas of ONNX's operators do
// whose indices count from the end; -1: it is no such node.
static int64_t wrapped_extent(const Node *node, uint32_t slot) {
  const Value *v = node->inputs[slot];
  if (node->op->id != OP_Select || slot != 2) return -1;
  const Node *less = node->inputs[0]->producer, *add = node->inputs[1]->producer;
  if (!less || less->op->id != OP_Less || less->inputs[0] != v || !add || add->op->id != OP_Add) return -1;
  const Value *n = add->inputs[add->inputs[0] == v];
  if (add->inputs[n == add->inputs[0]] != v || !n->constant || type_is_float(n->type) || shape_nelems(&n->shape) != 1)
    return -1;
  return (int64_t)type_load(n->type, n->constant->data, 0);
}

// The label that the node ignores: by its attribute, or because it compares labels with a constant, as losses written
// with other operators do.
static bool find_ignored(const Node *node, uint32_t slot, double *ignored) {
  const bool compares = node->op->id == OP_Equal || node->op->id == OP_NotEqual;
  if (operator_has_attribute(node->op, "ignore_index") && node_attribute(node, "ignore_index")->is_set) {
    *ignored = (double)node_attribute(node, "ignore_index")->s64;
    return true;
  }
  const Value *other = compares ? node->inputs[1 - slot] : NULL;
  if (!other || !other->constant || !(other->constant->is_splat || shape_nelems(&other->shape) == 1)) return false;
  *ignored = type_load(other->type, other->constant->data, 0);
  return true;
}

// Finds what the value's elements index, if anything: the least extent. The search depth is bounded.
static void find_indices(const Value *v, int depth, Distribution *d) { // NOLINT(misc-no-recursion)
  enum { DEEPEST = 8 };
  for (const Use *use = v->uses; use; use = use->next) {
    const Node *node = use->node;
    const bool moves = only_moves(node);
    if (!moves) d->nindices = lesser(d->nindices, indexed_extent(node, use->slot));
    if (!moves) d->nindices = lesser(d->nindices, wrapped_extent(node, use->slot));
    if (!moves) d->has_ignored |= find_ignored(node, use->slot, &d->ignored);
    for (uint32_t i = 0; moves && depth < DEEPEST && i < node->noutputs; i++)
      if (node->outputs[i] && !type_is_float(node->outputs[i]->type)) find_indices(node->outputs[i], depth + 1, d);
  }
}

// If the value, but no other input of the graph, is a factor of sums of products: their number of terms; otherwise 0.
// The search looks through reshapes and transposes.
static int64_t product_terms(const Value *v, int depth) { // NOLINT(misc-no-recursion): depth is bounded
  enum { DEEPEST = 4 };
  int64_t nterms = 0;
  for (const Use *use = v->uses; use && !nterms; use = use->next) {
    const Node *node = use->node;
    if (node->op->traits & TRAIT_PERMUTES && depth < DEEPEST) nterms = product_terms(node->outputs[0], depth + 1);
    if (node->op->id != OP_MatMul || use->slot > 1 || !node->inputs[1 - use->slot]->producer) continue;
    const int axis = node_product(node).src_k;
    nterms = axis < 0 ? 1 : extent_value(node->inputs[0]->shape.extent[axis]);
  }
  return nterms;
}

// Scales of 8-bit integers are such that dequantised numbers have variance 1; other types get smaller numbers. A scalar
// divisor is positive, and the elements of other divisors are not near 0, because quotients would be larger than values
// in networks are.
Distribution distribution_of(const Value *v) {
  const double of_scales = 1.0 / 32;
  Distribution d = distribution_any(v->type);
  d.range = v->range;
  if (!type_is_float(v->type)) find_indices(v, 0, &d);
  for (const Use *use = v->uses; use; use = use->next) {
    const Operator *op = use->node->op;
    if (use->slot < op->ninputs && op->inputs[use->slot].is_scale) d.factor = of_scales;
    if (op->id == OP_Divide && use->slot == 1 && shape_nelems(&v->shape) == 1) d.range = RANGE_POSITIVE;
    d.is_divisor |= op->id == OP_Divide && use->slot == 1;
    if (op->id == OP_Dequantize && !type_is_float(v->type)) distribution_adapt(&d, use->node, v->type);
  }
  // In a long chain of products these values preserve the magnitude of the other factor. If states grew from step to
  // step, as an untrained recurrent network's may, rounding errors would dominate in the end.
  const int64_t nterms = v->is_in_chain && type_is_float(v->type) ? product_terms(v, 0) : 0;
  if (nterms > 1) d.factor = 1 / sqrt((double)nterms);
  return d;
}

static double index_of(const Distribution *d, uint64_t word, int64_t e) {
  const uint64_t index = (word >> 11) % (uint64_t)d->nindices;
  const bool is_ignored = d->has_ignored && (double)index == d->ignored;
  return (double)(is_ignored && e % 2 == 0 ? (index + 1) % (uint64_t)d->nindices : index);
}

// The number of element e.
static double number_of(Type type, const Distribution *d, uint64_t word, int64_t e) {
  if (d->nindices) return index_of(d, word, e);
  switch (d->range) {
  case RANGE_POSITIVE:
    return type_is_float(type) ? d->factor * uniform(word, 0.5, 2) : (double)(1 + (word >> 11) % 100);
  case RANGE_PROBABILITY: return uniform(word, 0.0625, 0.9375);
  default: break;
  }
  if (d->is_divisor && type_is_float(type)) return (word & 1 ? -1 : 1) * d->factor * uniform(word, 0.5, 2);
  const double normal = nearly_normal(word);
  if (type == TYPE_BOOLEAN) return normal > 0;
  return type_is_float(type) ? d->factor * normal : d->centre + deviation_of(type) * d->factor * normal;
}

void random_fill(Tensor *t, uint64_t seed, uint64_t i, Distribution distribution) {
  enum { MANY = 1 << 20 }; // filling must take longer than the time for which idle threads spin
  const uint64_t stream = splitmix64(splitmix64(seed) + i);
  const int64_t nelems = tensor_nelems(t);
#pragma omp parallel for schedule(static) if (nelems > MANY && !type_is_packed(t->type)) // no two write one byte
  for (int64_t e = 0; e < nelems; e++) {
    uint64_t word = splitmix64(stream + (uint64_t)e * SPLITMIX_STEP);
    type_store(t->type, t->data, (size_t)tensor_offset(t, e), number_of(t->type, &distribution, word, e));
  }
}

ng_status ng_tensor_random(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out) {
  *out = (ng_tensor){0};
  if (i >= g->graph->ninputs) return argument_error(g->ctx, "no such input");
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  const Value *v = g->graph->inputs[i];
  Tensor t = tensor_like(v);
  if (!tensor_make(g->ctx, v->name, &t)) return NG_OUT_OF_MEMORY;
  random_fill(&t, seed, i, distribution_of(v));
  *out = tensor_to_api(&t);
  return NG_OK;
}

ng_status ng_tensor_init(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out) {
  *out = (ng_tensor){0};
  if (i >= g->graph->nstates) return argument_error(g->ctx, "no such state");
  const Value *v = g->graph->inputs[g->graph->states[i].input];
  Tensor t = tensor_like(v);
  if (!tensor_make(g->ctx, v->name, &t)) return NG_OUT_OF_MEMORY;
  init_fill(g->graph, i, seed, &t);
  *out = tensor_to_api(&t);
  return NG_OK;
}
