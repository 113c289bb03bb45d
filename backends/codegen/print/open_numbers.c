// Prints numbers that are products with open dims.
#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"

const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names, bool is_bare) {
  const Graph *g = p->program->graph;
  if (number == 0) monomial = 0; // 0 for all values of the dims
  const int64_t factor = monomial ? open_factor(g, number, monomial) : number;
  Text text;
  text_init(&text, p->scratch->allocator);
  int nfactors = factor != 1 || !monomial;
  if (nfactors) text_format(&text, "%lld", (long long)factor);
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) text_format(&text, nfactors++ ? " * %s" : "%s", names[i]);
  const char *result = arena_format(p->scratch, nfactors > 1 && !is_bare ? "(%s)" : "%s", text_string(&text));
  p->out_of_memory |= !result || text.out_of_memory;
  text_deinit(&text);
  return result ? result : "1";
}
