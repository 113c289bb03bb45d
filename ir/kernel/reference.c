// Evaluates reductions in the order of their ids, each at all points that it varies over, into tables; then the stores.
#include "ir/kernel/reference.h"

#include "ir/graph/open_dims.h"

#include <math.h>
#include <string.h>

typedef struct Reference {
  const Kernel *k;
  const ValueDomain *domain;
  const int64_t *dims;
  Arena arena;
  Type type; // in which the kernel computes
  int64_t extent[MAX_AXES];
  int64_t index[MAX_AXES]; // the point of the domain that is evaluated
  Datum *value;            // by ExprId: at the point
  Datum **table;           // by reduction: at all points of its axes
  bool *is_needed;         // by ExprId: for the value that is evaluated
} Reference;

static int64_t number_at(const Reference *r, int64_t number, Monomial monomial) {
  return open_number(r->k->graph, number, monomial, r->dims);
}

// Points

// Moves to the next point along these axes, the last the fastest. False: there is none, and all indices are 0 again.
static bool next_point(Reference *r, const int *axes, int naxes) {
  for (int i = naxes - 1; i >= 0; i--) {
    if (++r->index[axes[i]] < r->extent[axes[i]]) return true;
    r->index[axes[i]] = 0;
  }
  return false;
}

static int list_axes(AxisSet set, int *axes) {
  int n = 0;
  for (int axis = 0; axis < MAX_AXES; axis++)
    if (set >> axis & 1) axes[n++] = axis;
  return n;
}

static int64_t count_points(const Reference *r, const int *axes, int naxes) {
  int64_t count = 1;
  for (int i = 0; i < naxes; i++) count *= r->extent[axes[i]];
  return count;
}

static int64_t index_in_table(const Reference *r, const Expr *e) {
  int64_t index = 0;
  for (int axis = 0; axis < MAX_AXES; axis++)
    if (e->axes >> axis & 1) index = index * r->extent[axis] + r->index[axis];
  return index;
}

// Values at a point

// False: the index of a bound is outside.
static bool find_element(const Reference *r, const Access *a, int64_t *element) {
  *element = number_at(r, a->offset, a->offset_monomial);
  for (int axis = 0; axis < r->k->naxes; axis++)
    *element += r->index[axis] * number_at(r, a->stride[axis], a->stride_monomial[axis]);
  for (size_t i = 0; i < a->nbounds; i++) {
    int64_t at = a->bounds[i].offset;
    for (int axis = 0; axis < r->k->naxes; axis++) at += r->index[axis] * a->bounds[i].factor[axis];
    if (at < 0 || at >= a->bounds[i].extent) return false;
  }
  return true;
}

// In a kernel of s64, numbers are integers.
static Datum number(const Reference *r, Type type, double x) {
  const ValueDomain *d = r->domain;
  return type == TYPE_S64 ? d->integer(d->context, type_integer(x)) : d->number(d->context, type, x);
}

static Datum integer(const Reference *r, int64_t x) {
  return r->domain->integer(r->domain->context, x);
}

static Datum apply(const Reference *r, ExprOp op, Type type, const Datum *args) {
  Datum y;
  r->domain->apply(r->domain->context, op, type, 1, (const Datum *const[]){&args[0], &args[1], &args[2]}, &y);
  return y;
}

static Datum convert(const Reference *r, Type from, Type to, Datum x) {
  if (from != to) r->domain->convert(r->domain->context, from, to, 1, &x, &x);
  return x;
}

// The value of an expression, whose operands are evaluated, at the point.
static Datum evaluate(const Reference *r, ExprId id) {
  const Expr *e = &r->k->exprs[id];
  Datum args[3] = {{0}};
  int64_t element;
  if (expr_is_reduction(e)) return r->table[id][index_in_table(r, e)];
  switch (e->op) {
  case EXPR_CONSTANT: return r->k->is_s64 ? integer(r, e->integer) : number(r, r->type, e->number);
  case EXPR_INDEX: return number(r, r->type, (double)r->index[__builtin_ctz(e->axes)]);
  case EXPR_COUNT: return number(r, r->type, (double)number_at(r, (int64_t)e->number, e->monomial));
  case EXPR_RECIPROCAL: return number(r, r->type, 1 / fmax((double)number_at(r, (int64_t)e->number, e->monomial), 1));
  case EXPR_LOAD: {
    const Access *a = &r->k->accesses[e->access];
    if (!find_element(r, a, &element)) return number(r, r->type, a->outside);
    const Datum *offset = e->args[0] ? &r->value[e->args[0]] : NULL;
    r->domain->load(r->domain->context, e->is_s64 ? TYPE_S64 : r->type, a, 1, &element, offset, args);
    return args[0];
  }
  case EXPR_INTEGER: return integer(r, e->integer);
  default:
    for (int a = 0; a < expr_info[e->op].narguments; a++) args[a] = r->value[e->args[a]];
    if (e->op != EXPR_IS_KEPT) return apply(r, e->op, r->type, args);
    find_element(r, &r->k->accesses[e->access], &element);
    return r->domain->is_kept(r->domain->context, r->type, args, element);
  }
}

// Marks what the value is computed from at the same point: not what is inside of reductions.
static void mark(const Reference *r, ExprId id) {
  memset(r->is_needed, 0, r->k->nexprs * sizeof *r->is_needed);
  r->is_needed[id] = true;
  for (; id > 0; id--)
    for (int a = 0; a < 3 && r->is_needed[id] && !expr_is_reduction(&r->k->exprs[id]); a++)
      r->is_needed[r->k->exprs[id].args[a]] = true;
}

static Datum value_at_point(Reference *r, ExprId id) {
  for (ExprId i = 1; i <= id; i++)
    if (r->is_needed[i]) r->value[i] = evaluate(r, i);
  return r->value[id];
}

// Sums

typedef struct Adding { // the state of a sum
  const SumOrder *order;
  ExprId operand;
  Type type; // of the accumulators
} Adding;

static Datum identity_of(const Reference *r, const Adding *a, Type type) {
  return number(r, type, reductions[a->order->reduction].identity);
}

static Datum combine(const Reference *r, const Adding *a, Type type, Datum sum, Datum x) {
  return apply(r, reductions[a->order->reduction].combine, type, (Datum[]){sum, x, {0}});
}

// Adds the operand at the point to a sum.
static Datum add_operand(Reference *r, const Adding *a, Datum sum) {
  const Datum x = value_at_point(r, a->operand);
  if (!a->order->is_fused) return combine(r, a, a->type, sum, convert(r, r->type, a->type, x));
  const ExprId *factors = r->k->exprs[a->operand].args;
  return apply(r, EXPR_FMA, a->type, (Datum[]){r->value[factors[0]], r->value[factors[1]], sum});
}

// Lane i takes lane i + 8, then i + 4 and so on.
static Datum add_lanes(const Reference *r, const Adding *a, Type type, Datum *lanes, int count) {
  for (int half = LANES / 2; half; half /= 2)
    for (int i = 0; i < half && i + half < count; i++) lanes[i] = combine(r, a, type, lanes[i], lanes[i + half]);
  return lanes[0];
}

static int64_t vectors_of(int64_t nelems) {
  return (nelems + LANES - 1) / LANES;
}

// Segments where the extents are known: elements of the last axis, or iterations of a middle axis.
static Segments known_segments(const Reference *r, const SumStage *s, int64_t width) {
  Segments known = s->order->segments;
  if (!known.is_open) return known;
  if (!s->is_in_lanes) known.iterations = chain_iterations(r->extent[known.axis], known.inside);
  else if (vectors_of(width) <= LONGEST_SEGMENT)
    known.elements = 0, known.iterations = vectors_of(width) ? LONGEST_SEGMENT / vectors_of(width) : 1;
  return known;
}

// Whether a segment begins at the point. first: of the last axis.
static bool begins_segment(const Reference *r, const SumStage *s, const Segments *segments, int64_t first) {
  const int last = s->axes[s->naxes - 1];
  if (segments->elements) return (r->index[last] - first) % segments->elements == 0;
  for (int i = s->naxes - 1; i >= 0 && s->axes[i] != segments->axis; i--)
    if (r->index[s->axes[i]] != (s->axes[i] == last ? first : 0)) return false;
  return r->index[segments->axis] % segments->iterations == 0;
}

// Adds a segment's sum to the total, and begins the next segment.
static void end_segment(const Reference *r, const Adding *a, Datum *lanes, Datum *total, int count) {
  *total = combine(r, a, TYPE_F64, *total, convert(r, a->type, TYPE_F64, add_lanes(r, a, a->type, lanes, count)));
  for (int i = 0; i < count; i++) lanes[i] = identity_of(r, a, a->type);
}

// Over inner axes: of the last, only indices from `first` to before `end`.
static Datum sum_inner(Reference *r, const SumStage *s, ExprId operand, int64_t first, int64_t end) {
  const Adding a = {s->order, operand, s->order->levels[0].type};
  const int last = s->axes[s->naxes - 1];
  const bool has_segments = sum_order_has_segments(s->order);
  const Segments segments = known_segments(r, s, end - first);
  const int count = !s->is_in_lanes ? 1 : s->has_only_used && end - first < LANES ? (int)(end - first) : LANES;
  Datum lanes[LANES], total = {0};
  for (int i = 0; i < LANES; i++) lanes[i] = identity_of(r, &a, a.type);
  if (has_segments) total = identity_of(r, &a, TYPE_F64);
  bool is_in_segment = false;
  if (end > first && count_points(r, s->axes, s->naxes - 1)) {
    do
      for (int64_t i = first; i < end; i++) {
        r->index[last] = i;
        if (has_segments && is_in_segment && begins_segment(r, s, &segments, first))
          end_segment(r, &a, lanes, &total, count);
        Datum *lane = &lanes[s->is_in_lanes ? (i - first) % LANES : 0];
        *lane = add_operand(r, &a, *lane);
        is_in_segment = true;
      }
    while (next_point(r, s->axes, s->naxes - 1));
  }
  if (is_in_segment && has_segments) end_segment(r, &a, lanes, &total, count);
  r->index[last] = 0;
  return has_segments ? convert(r, TYPE_F64, r->type, total)
                      : convert(r, a.type, r->type, add_lanes(r, &a, a.type, lanes, count));
}

static Datum sum_all_inner(Reference *r, const SumStage *s, ExprId operand) {
  return sum_inner(r, s, operand, 0, r->extent[s->axes[s->naxes - 1]]);
}

// What a block adds up: points first .. end - 1 of the cut axes, or a tile.
static Datum sum_block(Reference *r, const Summation *s, ExprId operand, int64_t first, int64_t end) {
  const Adding a = {s->outer.order, operand, s->outer.order->levels[0].type};
  Datum sum = identity_of(r, &a, a.type);
  if (s->is_tiled)
    return combine(r, &a, a.type, sum, convert(r, r->type, a.type, sum_inner(r, &s->inner, operand, first, end)));
  int64_t rest = first;
  for (int i = s->outer.naxes - 1; i >= 0; i--) {
    r->index[s->outer.axes[i]] = rest % r->extent[s->outer.axes[i]];
    rest /= r->extent[s->outer.axes[i]];
  }
  for (int64_t i = first; i < end; i++, next_point(r, s->outer.axes, s->outer.naxes)) {
    if (s->inner.order)
      sum = combine(r, &a, a.type, sum, convert(r, r->type, a.type, sum_all_inner(r, &s->inner, operand)));
    else sum = add_operand(r, &a, sum);
  }
  return sum;
}

// A sum over outer axes: partial sums of blocks, added in order.
static Datum sum_outer(Reference *r, const Summation *s, ExprId operand) {
  const SumLevel *first = &s->outer.order->levels[0];
  const Adding a = {s->outer.order, operand, s->outer.order->levels[1].type};
  const int *axes = s->outer.axes;
  const int nwhole = s->is_tiled ? s->outer.naxes - 1 : 0; // axes whose indices have blocks of their own
  const int64_t total = count_points(r, axes + nwhole, s->outer.naxes - nwhole),
                npoints = count_points(r, axes, nwhole);
  const int64_t length = cut_length(&first->cut, total);
  Datum sum = identity_of(r, &a, a.type);
  for (int64_t point = 0; point < npoints; point++, next_point(r, axes, nwhole))
    for (int64_t begin = 0; begin < total; begin += length) {
      const Datum part = sum_block(r, s, operand, begin, begin + length < total ? begin + length : total);
      sum = combine(r, &a, a.type, sum, convert(r, first->type, a.type, part));
    }
  for (int i = 0; i < s->outer.naxes; i++) r->index[s->outer.axes[i]] = 0;
  return convert(r, a.type, r->type, sum);
}

// Evaluates a reduction at all points of its axes.
static bool fill_table(Reference *r, const Summation *s) {
  const Expr *e = &r->k->exprs[s->sum];
  int axes[MAX_AXES];
  const int naxes = list_axes(e->axes, axes);
  const int64_t npoints = count_points(r, axes, naxes);
  r->table[s->sum] = ARENA_ARRAY(&r->arena, Datum, (size_t)npoints + 1);
  if (!r->table[s->sum]) return false;
  mark(r, e->args[0]);
  for (int64_t i = 0; i < npoints; i++, next_point(r, axes, naxes))
    r->table[s->sum][i] = s->outer.order ? sum_outer(r, s, e->args[0]) : sum_all_inner(r, &s->inner, e->args[0]);
  return true;
}

static void evaluate_store(Reference *r, const Store *store) {
  const Access *a = &r->k->accesses[store->access];
  int axes[MAX_AXES];
  const int naxes = list_axes(access_axes(r->k, a) | r->k->exprs[store->value].axes, axes);
  const int64_t npoints = count_points(r, axes, naxes);
  const bool is_mask = expr_info[r->k->exprs[store->value].op].is_mask;
  int64_t element;
  mark(r, store->value);
  for (int64_t i = 0; i < npoints; i++, next_point(r, axes, naxes)) {
    const Datum x = value_at_point(r, store->value);
    find_element(r, a, &element);
    r->domain->store(r->domain->context, r->type, a, 1, &element, &x, is_mask);
  }
}

// Which kernels are not known yet.
static const char *find_unknown(const Reference *r, const bool *is_used, const Summation *const *sums) {
  const Kernel *k = r->k;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (!is_used[i]) continue;
    if (expr_is_reduction(e) && !sums[i]) return "a reduction has no order";
  }
  return NULL;
}

// Evaluates the reductions, each after those that it needs, then the stores.
static bool find_values(Reference *r, const Summation *sums, size_t nsums, const char **why) {
  const Kernel *k = r->k;
  bool *is_used = ARENA_ARRAY(&r->arena, bool, k->nexprs);
  const Summation **by_sum = ARENA_ARRAY(&r->arena, const Summation *, k->nexprs);
  r->value = ARENA_ARRAY(&r->arena, Datum, k->nexprs);
  r->table = ARENA_ARRAY(&r->arena, Datum *, k->nexprs);
  r->is_needed = ARENA_ARRAY(&r->arena, bool, k->nexprs);
  if (!is_used || !by_sum || !r->value || !r->table || !r->is_needed) return false;
  for (size_t i = 0; i < nsums; i++) by_sum[sums[i].sum] = &sums[i];
  for (size_t i = 0; i < k->nstores; i++) is_used[k->stores[i].value] = true;
  for (ExprId i = (ExprId)k->nexprs; i-- > 1;)
    for (int a = 0; a < 3 && is_used[i]; a++) is_used[k->exprs[i].args[a]] = true;
  *why = find_unknown(r, is_used, by_sum);
  if (*why) return false;
  for (ExprId i = 1; i < k->nexprs; i++)
    if (is_used[i] && by_sum[i] && !fill_table(r, by_sum[i])) return false;
  for (size_t i = 0; i < k->nstores; i++) evaluate_store(r, &k->stores[i]);
  return true;
}

bool kernel_reference(const Kernel *k, const Summation *sums, size_t nsums, const int64_t *dims,
                      const ValueDomain *domain, const Allocator *scratch, const char **why) {
  Reference r = {.k = k, .domain = domain, .dims = dims, .type = kernel_type(k)};
  *why = NULL;
  arena_init(&r.arena, scratch);
  for (int i = 0; i < k->naxes; i++) r.extent[i] = number_at(&r, k->axes[i].extent, k->axes[i].monomial);
  const bool is_done = find_values(&r, sums, nsums, why);
  arena_deinit(&r.arena);
  return is_done;
}
