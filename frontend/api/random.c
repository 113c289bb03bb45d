// Random inputs. Each element takes integer arithmetic and one multiplication, so every machine gets the same bits.
#include "frontend/api/random.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
#include "ir/graph/init.h"
#include "ir/operators/contraction.h"
#include "ir/operators/operator.h"
#include "ir/support/splitmix.h"
#include "ir/support/threads.h"

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

// What an element of a value is, if i is the input's element: factor * i + c, where least <= c <= greatest.
typedef struct Line {
  double factor, least, greatest;
} Line;

static bool is_integer_constant(const Value *v) {
  return v->constant && !type_is_float(v->type);
}

static void constant_range(const Value *v, double *least, double *greatest) {
  const int64_t nelems = v->constant->is_splat ? 1 : shape_nelems(&v->shape);
  *least = INFINITY, *greatest = -INFINITY;
  for (int64_t i = 0; i < nelems; i++) {
    const double number = type_load(v->type, v->constant->data, (size_t)i);
    *least = fmin(*least, number), *greatest = fmax(*greatest, number);
  }
}

// Follows an operand with integers into the node's results; of a node, at most two operands. False: the results'
// elements are no line of the operand's.
static bool follow(const Node *node, uint32_t slot, Line *line) {
  const OperatorId op = node->op->id;
  double least, greatest;
  if (!slot && (node->op->traits & TRAIT_PERMUTES || op == OP_Leaf || op == OP_Slice || op == OP_Split)) return true;
  if (op == OP_Select) return slot > 0;
  if (op == OP_Maximum) return true; // with 0, before labels that some number marks as missing
  if ((op != OP_Add && op != OP_Multiply) || !is_integer_constant(node->inputs[1 - slot])) return false;
  constant_range(node->inputs[1 - slot], &least, &greatest);
  if (op == OP_Add) return line->least += least, line->greatest += greatest, least <= greatest;
  if (!(least == greatest && least > 0)) return false;
  *line = (Line){line->factor * least, line->least * least, line->greatest * least};
  return true;
}

// The lesser of two extents; 0 and -1 mean no extent.
static int64_t lesser(int64_t a, int64_t b) {
  return b <= 0 || (a > 0 && a < b) ? a : b;
}

// How many indices from 0 on the input of the node may hold; 0 and less: any.
static int64_t indexed_extent(const Node *node, uint32_t slot, const Line *line) {
  const Operand *row = slot < node->op->ninputs ? &node->op->inputs[slot] : NULL;
  if (!row || !(row->is_index || row->is_label)) return 0;
  const double last = (double)extent_value(node_indexed(node, slot)) - 1;
  return (int64_t)fmin(floor((last - line->greatest) / line->factor) + 1, (double)MAX_ELEMENTS);
}

// The number that all elements of v are; or the extent that v is, as the sum of that many ones. 0: neither.
static int64_t positive_number(const Value *v) {
  double least, greatest;
  const Node *cast = v->producer, *sum = cast && cast->op->id == OP_TypeCast ? cast->inputs[0]->producer : NULL;
  if (is_integer_constant(v)) {
    constant_range(v, &least, &greatest);
    return least == greatest && least > 0 ? (int64_t)least : 0;
  }
  if (!sum || sum->op->id != OP_ReduceSum || !sum->inputs[0]->constant || sum->outputs[0]->shape.rank) return 0;
  constant_range(sum->inputs[0], &least, &greatest);
  return least == 1 && greatest == 1 ? shape_nelems(&sum->inputs[0]->shape) : 0;
}

// The extent n of an axis, if the node is Add of n to indices that count from the end where they are negative:
// Select(Less(index, 0), index + n, index), which readers write; otherwise 0.
static int64_t wrapped_extent(const Node *node, uint32_t slot) {
  const int64_t n = node->op->id == OP_Add ? positive_number(node->inputs[1 - slot]) : 0;
  for (const Use *use = node->outputs[0]->uses; use && n; use = use->next) {
    const Node *choice = use->node, *less = choice->op->id == OP_Select ? choice->inputs[0]->producer : NULL;
    if (less && less->op->id == OP_Less && use->slot == 1 && choice->inputs[2] == node->inputs[slot] &&
        less->inputs[0] == node->inputs[slot])
      return n;
  }
  return 0;
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
static void find_indices(const Value *v, Line line, int depth, Distribution *d) { // NOLINT(misc-no-recursion)
  enum { DEEPEST = 10 };
  const bool is_own = line.factor == 1 && line.least == 0 && line.greatest == 0;
  for (const Use *use = v->uses; use; use = use->next) {
    const Node *node = use->node;
    Line there = line;
    const bool follows = follow(node, use->slot, &there);
    d->nindices = lesser(d->nindices, indexed_extent(node, use->slot, &line));
    if (is_own) d->nindices = lesser(d->nindices, wrapped_extent(node, use->slot));
    if (is_own) d->has_ignored |= find_ignored(node, use->slot, &d->ignored);
    for (uint32_t i = 0; follows && depth < DEEPEST && i < node->noutputs; i++)
      if (node->outputs[i] && !type_is_float(node->outputs[i]->type))
        find_indices(node->outputs[i], there, depth + 1, d);
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
  if (!type_is_float(v->type)) find_indices(v, (Line){.factor = 1}, 0, &d);
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

typedef struct Filling {
  Tensor *t;
  uint64_t stream;
  const Distribution *distribution;
  int64_t part; // elements that a thread fills at a time
} Filling;

static void fill_part(const void *args, size_t number) {
  const Filling *f = args;
  const int64_t nelems = tensor_nelems(f->t), begin = (int64_t)number * f->part;
  const int64_t end = nelems - begin < f->part ? nelems : begin + f->part;
  for (int64_t e = begin; e < end; e++) {
    uint64_t word = splitmix64(f->stream + (uint64_t)e * SPLITMIX_STEP);
    type_store(f->t->type, f->t->data, (size_t)tensor_offset(f->t, e), number_of(f->t->type, f->distribution, word, e));
  }
}

void random_fill(Tensor *t, uint64_t seed, uint64_t i, Distribution distribution) {
  enum { PART = 1 << 16 };
  const int64_t nelems = tensor_nelems(t);
  const Filling f = {t, splitmix64(splitmix64(seed) + i), &distribution,
                     type_is_packed(t->type) ? nelems + 1 : PART}; // no two threads write one byte
  threads_for(ng_thread_count(), (size_t)((nelems + f.part - 1) / f.part), fill_part, &f);
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
