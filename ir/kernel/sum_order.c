// Compares and prints orders of additions.
#include "ir/kernel/sum_order.h"

int64_t cut_length(const Cut *cut, int64_t total) {
  if (!cut->most) return cut->length;
  int64_t length = ((total + cut->most - 1) / cut->most + LANES - 1) / LANES * LANES;
  if (cut->longest && length > cut->longest) length = cut->longest;
  return length > cut->length ? length : cut->length;
}

// Chains of equal length, if one of CHAIN_TRIES numbers of chains divides the extent and makes them at least half as
// long as they may be: first of at most CHAIN products, then of fewer than 2 * CHAIN. Emitted code computes the same of
// open extents (index_chain_iterations).
int64_t chain_iterations(int64_t extent, int64_t inside) {
  if (extent * inside < (int64_t)2 * CHAIN) return extent;
  for (int times = 1; times <= 2; times++) {
    const int64_t most = chain_limit(inside, times), nchains = (extent + most - 1) / most;
    for (int64_t n = nchains; n < nchains + CHAIN_TRIES; n++)
      if (extent % n == 0 && 2 * (extent / n) >= most) return extent / n;
  }
  return chain_limit(inside, 1);
}

int64_t chain_limit(int64_t inside, int times) {
  const int64_t most = ((int64_t)times * CHAIN - (times > 1)) / inside;
  return most > 1 ? most : 1;
}

bool cut_is_multiple(const Cut *cut, int64_t n) {
  return cut->length % n == 0 && (!cut->most || LANES % n == 0);
}

static bool levels_equal(const SumLevel *a, const SumLevel *b) {
  const Cut *x = &a->cut, *y = &b->cut;
  return a->axes == b->axes && a->accumulators == b->accumulators && a->type == b->type && x->length == y->length &&
         x->most == y->most && x->longest == y->longest;
}

static bool segments_equal(const Segments *a, const Segments *b) {
  return a->elements == b->elements && a->iterations == b->iterations && a->axis == b->axis && a->inside == b->inside &&
         a->is_open == b->is_open;
}

bool sum_order_equal(const SumOrder *a, const SumOrder *b) {
  bool is_equal = a->reduction == b->reduction && a->is_fused == b->is_fused && a->nlevels == b->nlevels &&
                  segments_equal(&a->segments, &b->segments);
  for (int i = 0; is_equal && i < a->nlevels; i++) is_equal = levels_equal(&a->levels[i], &b->levels[i]);
  return is_equal;
}

static int64_t operands_of_each(const SumLevel *l, int64_t noperands) {
  return (noperands + l->accumulators - 1) / l->accumulators;
}

int64_t sum_order_chain(const Kernel *k, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  const Cut *cut = &first->cut;
  const bool is_open = axes_monomial(k, first->axes);
  if (!cut->length) return is_open ? INT64_MAX : operands_of_each(first, axes_nelems(k, first->axes));
  if (!cut->most || !is_open) return operands_of_each(first, cut_length(cut, axes_nelems(k, first->axes)));
  return cut->longest ? operands_of_each(first, cut->longest) : INT64_MAX;
}

bool sum_order_has_segments(const SumOrder *o) {
  return o->levels[0].cut.length;
}

void sum_order_print(const Kernel *k, const SumOrder *o, Text *out) {
  const AxisSet axes = o->levels[0].axes;
  const char *most =
      axes & (axes - 1) ? "at most " : ""; // of several axes, a segment has whole iterations of one of them
  const char *before = "over ";
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(axes >> axis & 1)) continue;
    text_format(out, "%s%s", before, k->axes[axis].name);
    before = ", ";
  }
  for (int i = 0; i < o->nlevels; i++) {
    const SumLevel *l = &o->levels[i];
    const Cut *cut = &l->cut;
    const char *noun = i ? "" : l->accumulators == 1 ? " accumulator" : " accumulators";
    text_format(out, "%s%d%s of %s", i ? "; then into " : " into ", l->accumulators, noun, type_name(l->type));
    if (cut->length)
      text_format(out, ", each for %s%lld operands", i ? "" : most, (long long)operands_of_each(l, cut->length));
    if (cut->most) text_format(out, ", or more, for at most %lld results", (long long)cut->most);
    if (cut->longest) text_format(out, ", but at most %lld", (long long)operands_of_each(l, cut->longest));
  }
}
