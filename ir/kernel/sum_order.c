// Compares and prints orders of additions.
#include "ir/kernel/sum_order.h"

int64_t cut_length(const Cut *cut, int64_t total, int64_t work) {
  const int64_t length = cut->few_work && work <= cut->few_work ? cut->few_length : cut->length;
  const int64_t least = cut->most ? (total + cut->most - 1) / cut->most : 0;
  return length > least ? length : least;
}

bool cut_is_multiple(const Cut *cut, int64_t n) {
  return !cut->most && cut->length % n == 0 && (!cut->few_work || cut->few_length % n == 0);
}

static bool levels_equal(const SumLevel *a, const SumLevel *b) {
  const Cut *x = &a->cut, *y = &b->cut;
  return a->axes == b->axes && a->accumulators == b->accumulators && a->type == b->type && x->length == y->length &&
         x->few_work == y->few_work && x->few_length == y->few_length && x->most == y->most;
}

bool sum_order_equal(const SumOrder *a, const SumOrder *b) {
  bool is_equal = a->reduction == b->reduction && a->is_fused == b->is_fused && a->nlevels == b->nlevels;
  for (int i = 0; is_equal && i < a->nlevels; i++) is_equal = levels_equal(&a->levels[i], &b->levels[i]);
  return is_equal;
}

static int64_t operands_of_each(const SumLevel *l, int64_t noperands) {
  return (noperands + l->accumulators - 1) / l->accumulators;
}

int64_t sum_order_chain(const Kernel *k, const SumOrder *o) {
  const SumLevel *first = &o->levels[0];
  const Cut *cut = &first->cut;
  if (cut->length) return operands_of_each(first, cut->few_length > cut->length ? cut->few_length : cut->length);
  return axes_monomial(k, first->axes) ? INT64_MAX : operands_of_each(first, axes_nelems(k, first->axes));
}

bool sum_order_has_runs(const SumOrder *o) {
  return o->levels[0].cut.length;
}

Type sum_order_totals(const SumOrder *o) {
  return sum_order_has_runs(o) ? o->levels[1].type : TYPE_NONE;
}

void sum_order_print(const Kernel *k, const SumOrder *o, Text *out) {
  const AxisSet axes = o->levels[0].axes;
  const char *most = axes & (axes - 1) ? "at most " : ""; // of several axes, a run has whole iterations of one of them
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
    if (cut->few_work) text_format(out, ", or %lld if there are few", (long long)operands_of_each(l, cut->few_length));
    if (cut->most) text_format(out, ", or more, for at most %lld results", (long long)cut->most);
  }
}
