// What an index may be, for all values of open dims: an amount, which is a polynomial of symbols. A symbol stands for
// an integer that is not known, as the variable of a loop, a quotient or the number of blocks. It is at least 0 and at
// most each of its bounds, which are amounts of symbols that were made before it.
#ifndef NGRAD_IR_LOOPS_REACH_H
#define NGRAD_IR_LOOPS_REACH_H

#include "ir/loops/loops.h"

enum { MOST_FACTORS = 3, MOST_TERMS = MAX_AXES + 8, MOST_CLOSED = 3, MOST_BOUNDS = MOST_CLOSED + 2 };

typedef struct Term {
  int64_t number; // at the hints
  Monomial monomial;
  uint32_t symbols[MOST_FACTORS]; // descending; 0: none
} Term;

typedef struct Amount {
  int nterms; // no two have the same monomial and symbols; -1: not known
  Term terms[MOST_TERMS];
} Amount;

typedef struct Symbol {
  int64_t multiple; // the symbol is a multiple of it
  double value;     // one of its values, where dims are large; NAN: not known
  bool is_fixed;    // the same wherever it stands, and without bounds: a number of blocks or their length
  int nbounds, nclosed;
  const Amount *bounds[MOST_BOUNDS]; // the last `nclosed` of which have fixed symbols only
} Symbol;

typedef struct Reach {
  const Kernel *k;
  Arena *arena;
  Symbol *symbols; // [0] is unused
  size_t nsymbols, capacity;
  double times[MAX_OPEN_DIMS]; // by dim: how often its hint goes into a large value of it
  bool out_of_memory;
} Reach;

void reach_init(Reach *x, const Kernel *k, Arena *arena);

Amount amount_of(int64_t number, Monomial monomial);
Amount amount_of_symbol(uint32_t symbol); // 0: not known
void amount_add_number(Amount *p, int64_t number);
void amount_add(Amount *p, const Amount *other, int64_t factor);
Amount amount_copy(const Amount *p); // of one that may be kept, and so has memory for its terms only
Amount amount_times(const Amount *a, const Amount *b);
bool amount_is_literal(const Amount *p);
int64_t amount_literal(const Amount *p);              // of one that is
const Amount *amount_keep(Reach *x, const Amount *p); // a copy in the arena; NULL: out of memory

int64_t reach_multiple(const Reach *x, const Amount *p); // that it is a multiple of; 0: it is 0
// What is left of it by a multiple of that number; -1: not known.
int64_t reach_rest(const Reach *x, const Amount *p, int64_t multiple);
uint32_t reach_fixed(Reach *x, int64_t multiple);
// A new symbol. Bounds NULL: there is none.
Amount reach_symbol(Reach *x, int64_t multiple, const Amount *bound, const Amount *other);
// By a number, rounded down; and what is left.
void reach_divide(Reach *x, const Amount *p, const Amount *by, Amount *quotient, Amount *rest);
bool reach_is_never_positive(Reach *x, const Amount *p);

#endif
