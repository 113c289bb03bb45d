// Linear forms of indices. They decide whether two indices are equal for all values of variables and open dims.
#ifndef NGRAD_IR_LOOPS_LINEAR_H
#define NGRAD_IR_LOOPS_LINEAR_H

#include "ir/loops/loops.h"

// The term number * monomial * (var / divisor) * (number of blocks, or block length, of a loop).
typedef struct Term {
  int64_t number; // the factor and the monomial's value at the hints
  Monomial monomial;
  IndexOp of_loop; // the factor of the loop: INDEX_NCUT_BLOCKS or INDEX_BLOCK_LENGTH; INDEX_NUMBER: none
  uint32_t loop;
  Var var;         // VAR_NONE: no variable
  int64_t divisor; // the quotient var / divisor is rounded down
} Term;

enum { MOST_TERMS = 2 * MAX_AXES };

typedef struct Linear {
  int nterms; // no two terms differ in their number alone, and no number is 0; -1: the index is not linear
  Term terms[MOST_TERMS];
} Linear;

void linear_add(Linear *l, Term term);
void linear_add_number(Linear *l, int64_t number, Monomial monomial);
void linear_add_var(Linear *l, VarKind kind, uint32_t of, int64_t number, Monomial monomial);
void linear_add_all(Linear *l, const Linear *other, int64_t factor);
// Adds the index after replacing each variable v by meaning(context, v); meaning NULL: variables stay.
typedef Var (*VarMeaning)(const void *context, Var v);
void linear_add_index(Linear *l, const Index *i, VarMeaning meaning, const void *context);

bool linear_equals(const Linear *a, const Linear *b);
int64_t linear_factor(const Linear *l, VarKind kind); // the number of a term with a variable of this kind; 0: none

bool index_equals(const Index *a, const Index *b); // structural equality
bool index_is_literal(const Index *i);             // a number that depends on no open dim

#endif
