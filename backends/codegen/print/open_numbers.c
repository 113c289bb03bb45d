// Prints numbers that are products with open dims.
#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"

#include <string.h>

const char *open_number_text(Printer *p, int64_t number, Monomial monomial, const char *const *names) {
  const Graph *g = p->program->graph;
  if (number == 0) monomial = 0; // 0 for all values of the dims
  const int64_t factor = monomial ? open_factor(g, number, monomial) : number;
  Text text;
  text_init(&text, p->scratch->allocator);
  int nfactors = factor != 1 || !monomial;
  if (nfactors) text_format(&text, "%lld", (long long)factor);
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) text_format(&text, nfactors++ ? " * %s" : "%s", names[i]);
  const char *result = arena_format(p->scratch, nfactors > 1 ? "(%s)" : "%s", text_string(&text));
  p->out_of_memory |= !result || text.out_of_memory;
  text_deinit(&text);
  return result ? result : "1";
}

const char *bare_text(Printer *p, const char *product) {
  const size_t nbytes = strlen(product);
  size_t i = 0;
  int depth = 0;
  do { // until the first parenthesis is closed
    depth += (product[i] == '(') - (product[i] == ')');
    i++;
  } while (depth > 0 && i < nbytes);
  if (*product != '(' || i < nbytes) return product;
  const char *bare = arena_format(p->scratch, "%.*s", (int)nbytes - 2, product + 1);
  p->out_of_memory |= !bare;
  return bare ? bare : product;
}
