// Random inputs. Each element takes integer arithmetic and one multiplication, so every machine gets the same bits.
#include "frontend/api/random.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
#include "ir/graph/init.h"
#include "ir/operators/contraction.h"
#include "ir/operators/movement.h"
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
  case TYPE_U4:
  case TYPE_S4: return 3;
  default: return TYPES_INTEGER & TYPE_BIT(type) ? 32 : 1;
  }
}

Distribution distribution_any(Type type) {
  const bool is_unsigned = TYPES_INTEGER & TYPE_BIT(type) && type_least(type) == 0;
  return (Distribution){.range = RANGE_ANY, .factor = 1, .centre = is_unsigned ? 128 : type == TYPE_U4 ? 8 : 0};
}

// Adapts quantised numbers so that Dequantize gives them a variance of at most 1, with its zero point as mean.
static void distribution_adapt(Distribution *d, const Node *dequantize, Type type) {
  const AttributeValue *scales = node_attribute(dequantize, "scales"), *zps = node_attribute(dequantize, "zps");
  const double steps = deviation_of(type), scale = scales->numbers.count ? scales->numbers.items[0] : 1;
  if (scale * steps > 1) d->factor = 1 / (scale * steps);
  if (zps->list.count) d->centre = (double)zps->list.items[0];
}

// What an element of a value is, if i is the input's element: factor * i + c for some c from least to greatest, or,
// where that is not from lowest to highest, some number between these.
typedef struct Line {
  double factor, least, greatest;
  double lowest, highest;
} Line;

// The elements of the input that a model allows.
typedef struct Allowed {
  double first, last;
} Allowed;

static bool is_integer_constant(const Value *v) {
  return v && v->constant && !type_is_float(v->type);
}

static void constant_range(const Value *v, double *least, double *greatest) {
  const int64_t nelems = v->constant->is_splat ? 1 : shape_nelems(&v->shape);
  *least = INFINITY, *greatest = -INFINITY;
  for (int64_t i = 0; i < nelems; i++) {
    const double number = type_load(v->type, v->constant->data, (size_t)i);
    *least = fmin(*least, number), *greatest = fmax(*greatest, number);
  }
}

// Follows an operand through arithmetic with integers: the second operand's elements are least to greatest. False:
// nothing is known of the results' elements.
typedef bool (*FollowArithmetic)(uint32_t slot, double least, double greatest, Line *l);

static bool follow_add(uint32_t slot, double least, double greatest, Line *l) {
  (void)slot;
  *l = (Line){l->factor, l->least + least, l->greatest + greatest, l->lowest + least, l->highest + greatest};
  return true;
}

static Line negated(const Line *l) {
  return (Line){-l->factor, -l->greatest, -l->least, -l->highest, -l->lowest};
}

static bool follow_subtract(uint32_t slot, double least, double greatest, Line *l) {
  if (slot == 0) return follow_add(slot, -greatest, -least, l);
  *l = negated(l);
  return follow_add(slot, least, greatest, l);
}

static bool follow_multiply(uint32_t slot, double least, double greatest, Line *l) {
  (void)slot;
  const double by = fabs(least);
  if (least != greatest || by == 0) return false;
  if (least < 0) *l = negated(l);
  *l = (Line){l->factor * by, l->least * by, l->greatest * by, l->lowest * by, l->highest * by};
  return true;
}

static bool follow_maximum(uint32_t slot, double least, double greatest, Line *l) {
  (void)slot;
  l->lowest = fmax(l->lowest, least);
  l->highest = fmax(l->highest, greatest);
  return true;
}

static bool follow_minimum(uint32_t slot, double least, double greatest, Line *l) {
  (void)slot;
  l->lowest = fmin(l->lowest, least);
  l->highest = fmin(l->highest, greatest);
  return true;
}

// The remainder has the sign of the dividend.
static bool follow_remainder(uint32_t slot, double least, double greatest, Line *l) {
  const double most = fabs(least) - 1;
  if (slot || least != greatest || most < 0) return false;
  l->lowest = fmax(l->lowest, -most);
  l->highest = fmin(l->highest, most);
  return true;
}

static const FollowArithmetic follow_arithmetic[OP_COUNT] = {
    [OP_Add] = follow_add,         [OP_Subtract] = follow_subtract, [OP_Multiply] = follow_multiply,
    [OP_Maximum] = follow_maximum, [OP_Minimum] = follow_minimum,   [OP_Mod] = follow_remainder,
};

// Follows an operand with integers into the node's results; of a node, at most two operands. False: nothing is known of
// the results' elements.
static bool follow(const Node *node, uint32_t slot, Line *line) {
  const OperatorId op = node->op->id;
  double least, greatest;
  if (!slot && (node->op->traits & TRAIT_PERMUTES || op == OP_Leaf || op == OP_Slice || op == OP_Split)) return true;
  if (op == OP_Select) return slot > 0;
  if (op == OP_Neg) return *line = negated(line), true;
  if (!follow_arithmetic[op]) return false;
  if (!is_integer_constant(node->inputs[1 - slot])) return op == OP_Maximum || op == OP_Minimum;
  constant_range(node->inputs[1 - slot], &least, &greatest);
  return least <= greatest && follow_arithmetic[op](slot, least, greatest, line);
}

// Leaves what the elements of a line may be: `least` to `greatest`. Where nothing would be left, nothing changes.
static void allow(Allowed *a, Line line, double least, double greatest) {
  if (line.factor < 0) {
    const double above = -least;
    line = negated(&line);
    least = -greatest;
    greatest = above;
  }
  double first = line.lowest >= least ? -INFINITY : ceil((least - line.least) / line.factor);
  double last = line.highest <= greatest ? INFINITY : floor((greatest - line.greatest) / line.factor);
  first = fmax(first, a->first);
  last = fmin(last, a->last);
  if (first <= last) *a = (Allowed){first, last};
}

static void allow_indices(Allowed *a, const Line *line, const Node *node, uint32_t slot) {
  const Operand *row = slot < node->op->ninputs ? &node->op->inputs[slot] : NULL;
  if (!row || !(row->is_index || row->is_label)) return;
  const double extent = (double)extent_value(node_indexed(node, slot));
  allow(a, *line, row->counts_from_end ? -extent : 0, extent - 1);
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

// The extent of the axis whose indices, by GenIndex, the node compares its other operand with; otherwise 0.
static int64_t compared_extent(const Node *node, uint32_t slot) {
  if (node->op->id != OP_Equal) return 0;
  const Value *other = node->inputs[1 - slot];
  const Node *maker = other->producer;
  if (maker && maker->op->id == OP_TypeCast) maker = maker->inputs[0]->producer;
  return maker && maker->op->id == OP_GenIndex ? extent_value(other->shape.extent[axis_of(maker, other->shape.rank)])
                                               : 0;
}

// Finds what the value's elements index, if anything. The search depth is bounded.
static void find_indices(const Value *v, Line line, int depth, Allowed *a,
                         Distribution *d) { // NOLINT(misc-no-recursion)
  enum { DEEPEST = 10 };
  double ignored;
  for (const Use *use = v->uses; use; use = use->next) {
    const Node *node = use->node;
    const int64_t wrapped = wrapped_extent(node, use->slot);
    Line there = line;
    const bool follows = !wrapped && follow(node, use->slot, &there);
    allow_indices(a, &line, node, use->slot);
    if (wrapped) allow(a, line, -(double)wrapped, (double)wrapped - 1);
    const int64_t compared = compared_extent(node, use->slot);
    if (compared > 0) allow(a, line, 0, (double)compared - 1);
    if (line.least == line.greatest && find_ignored(node, use->slot, &ignored)) {
      d->has_ignored = true;
      d->ignored = (ignored - line.least) / line.factor;
    }
    for (uint32_t i = 0; follows && depth < DEEPEST && i < node->noutputs; i++)
      if (node->outputs[i] && !type_is_float(node->outputs[i]->type))
        find_indices(node->outputs[i], there, depth + 1, a, d);
  }
}

// Sets the range of indices, without negative ones if possible. If only one end is known, it has MANY.
static void set_indices(Distribution *d, Allowed a) {
  enum { MANY = 100 };
  if (isinf(a.first) && isinf(a.last)) return;
  if (a.last > 0) a.first = fmax(a.first, 0);
  if (isinf(a.first)) a.first = a.last - MANY + 1;
  a.last = fmin(isinf(a.last) ? a.first + MANY - 1 : a.last, a.first + MAX_ELEMENTS - 1);
  d->first_index = (int64_t)a.first;
  d->nindices = (int64_t)(a.last - a.first) + 1;
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
  Allowed allowed = {-INFINITY, INFINITY};
  if (!type_is_float(v->type))
    find_indices(v, (Line){.factor = 1, .lowest = -INFINITY, .highest = INFINITY}, 0, &allowed, &d);
  set_indices(&d, allowed);
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
  const bool is_ignored = d->has_ignored && (double)(d->first_index + (int64_t)index) == d->ignored;
  return (double)(d->first_index + (int64_t)(is_ignored && e % 2 == 0 ? (index + 1) % (uint64_t)d->nindices : index));
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
