// Sums over open dims: collects equal monomials, and compares with 0.
#include "ir/kernel/open_sum.h"

#include "ir/graph/formula.h"
#include "ir/graph/open_dims.h"

#include <limits.h>

void open_sum_add(OpenSum *s, int64_t number, Monomial monomial) {
  int i = 0;
  while (i < s->count && s->monomial[i] != monomial) i++;
  s->is_too_long |= i == (int)(sizeof s->number / sizeof *s->number);
  if (s->is_too_long) return;
  if (i == s->count) s->number[s->count++] = 0;
  s->monomial[i] = monomial;
  s->number[i] += number;
}

// The number of the dim that is an open dim of the graph.
static size_t dim_number(const Graph *g, const Dim *dim) {
  size_t i = 0;
  while (i < graph_narguments(g) && g->dims[i] != dim) i++;
  return i;
}

// Adds factor * monomial as factors of monomials of open dims only: sums of open dims are multiplied out.
static void add_multiplied_out(const Graph *g, OpenSum *s, int64_t factor, Monomial monomial) {
  for (size_t i = monomial ? graph_narguments(g) : 0; monomial && i < g->ndims && !s->is_too_long; i++) {
    const Dim *sum = g->dims[i];
    if (!monomial_exponent(monomial, i)) continue;
    for (uint32_t t = 0; t < sum->nterms; t++) {
      Monomial of_term = monomial - monomial_of_dim(i);
      for (uint32_t k = 0; k < sum->terms[t].degree; k++)
        of_term += monomial_of_dim(dim_number(g, sum->terms[t].dims[k]));
      add_multiplied_out(g, s, factor * sum->terms[t].factor, of_term);
    }
    return;
  }
  open_sum_add(s, factor, monomial);
}

// Whether monomial a divides monomial b.
static bool is_divisor(const Kernel *k, Monomial a, Monomial b) {
  for (size_t i = 0; a && i < k->graph->ndims; i++)
    if (monomial_exponent(a, i) > monomial_exponent(b, i)) return false;
  return true;
}

// Whether negative numbers outweigh each positive number, which they are taken from.
static bool is_outweighed(const Kernel *k, const OpenSum *sum) {
  OpenSum s = *sum;
  bool all = true;
  for (int i = 0; i < s.count; i++) {
    for (int j = 0; j < s.count && s.number[i] > 0; j++) {
      if (s.number[j] >= 0 || !is_divisor(k, s.monomial[i], s.monomial[j])) continue;
      const int64_t both = s.number[i] < -s.number[j] ? s.number[i] : -s.number[j];
      s.number[i] -= both;
      s.number[j] += both;
    }
    all &= s.number[i] <= 0;
  }
  return all;
}

static Monomial term_monomial(const Graph *g, const FormulaTerm *term) {
  Monomial m = 0;
  for (uint32_t i = 0; i < term->degree; i++) m += monomial_of_dim(dim_number(g, term->dims[i]));
  return m;
}

// Whether no number becomes too large if that many times the sum is added.
static bool is_in_range(const Dim *sum, int64_t times) {
  bool is = true;
  for (uint32_t t = 0; t < sum->nterms; t++)
    is &= (sum->terms[t].factor < 0 ? -sum->terms[t].factor : sum->terms[t].factor) <= INT64_MAX / 4 / times;
  return is;
}

// Adds a multiple of N - T, which no call makes negative, that leaves nothing of a positive multiple of T.
static void add_difference(const Kernel *k, OpenSum *s, size_t dim) {
  const Dim *sum = k->graph->dims[dim];
  for (uint32_t t = 0; t < sum->nterms; t++) {
    const int64_t factor = -sum->terms[t].factor;
    const Monomial m = term_monomial(k->graph, &sum->terms[t]);
    for (int i = 0; factor > 0 && i < s->count; i++) {
      if (s->number[i] <= 0 || !is_divisor(k, m, s->monomial[i])) continue;
      const int64_t times = s->number[i] / factor + (s->number[i] % factor != 0);
      if (!is_in_range(sum, times)) continue;
      add_multiplied_out(k->graph, s, times, s->monomial[i] - m + monomial_of_dim(dim));
      return;
    }
  }
}

// The product of dims and sums that divides each number of the sum. No call makes it negative.
static Monomial common_divisor(const Kernel *k, const OpenSum *s) {
  Monomial common = 0;
  for (size_t dim = 0; dim < k->graph->ndims; dim++) {
    int least = k->graph->dims[dim]->is_place ? 0 : INT_MAX; // a place may be -1
    for (int i = 0; i < s->count; i++) {
      const int exponent = monomial_exponent(s->monomial[i], dim);
      if (s->number[i] && exponent < least) least = exponent;
    }
    for (int i = 0; i < least && least < INT_MAX; i++) common += monomial_of_dim(dim);
  }
  return common;
}

// A sufficient condition: negative numbers must outweigh each positive number, perhaps of a sum that is greater. Open
// dims are at least 1, so N * M * c is at least N * c: a negative number with monomial N * M outweighs positive numbers
// with monomial N.
bool open_sum_is_never_positive(const Kernel *k, const OpenSum *given) {
  OpenSum s = {0};
  bool has_positive = false;
  for (int i = 0; i < given->count; i++) has_positive |= given->number[i] > 0;
  if (!has_positive || !k->graph) return !has_positive; // nor is a sum of dims negative
  const size_t first = graph_narguments(k->graph), end = k->graph->ndims;
  const Monomial common = common_divisor(k, given);
  for (int i = 0; i < given->count; i++)
    if (given->number[i])
      add_multiplied_out(k->graph, &s, kernel_factor(k, given->number[i], given->monomial[i]),
                         given->monomial[i] - common);
  bool is_less = is_outweighed(k, &s);
  for (size_t dim = first; !is_less && dim < end; dim++) { // one alone: after another one, it may not help any more
    OpenSum alone = s;
    if (!k->graph->dims[dim]->is_place) add_difference(k, &alone, dim);
    is_less = is_outweighed(k, &alone) && !alone.is_too_long;
  }
  for (int turn = 0; turn < MAX_DEGREE; turn++)
    for (size_t dim = first; !is_less && dim < end; dim++) {
      if (k->graph->dims[dim]->is_place) continue; // may be -1
      add_difference(k, &s, dim);
      is_less = is_outweighed(k, &s);
    }
  return is_less && !s.is_too_long && !given->is_too_long;
}
