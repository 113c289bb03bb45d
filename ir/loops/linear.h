// Linear forms of indices, to decide whether two indices are equal for all values of variables and open dims.
#ifndef NGRAD_IR_LOOPS_LINEAR_H
#define NGRAD_IR_LOOPS_LINEAR_H

#include "ir/loops/loops.h"

// number * monomial * var / divisor * (a loop's number of chunks, or its block length)
typedef struct Term {
  int64_t number; // times the monomial, at the hints of open dims
  Monomial monomial;
  IndexOp of_loop; // INDEX_NCHUNKS or INDEX_BLOCK_LENGTH; INDEX_NUMBER: no such factor
  uint32_t loop;
  Var var;         // VAR_NONE: no variable
  int64_t divisor; // the quotient var / divisor is rounded down
} Term;

enum { MOST_TERMS = 2 * MAX_AXES };

typedef struct Linear {
  int nterms; // terms differ in more than their number, which is not 0; -1: the index is not linear
  Term terms[MOST_TERMS];
} Linear;

void linear_add(Linear *l, Term term);
void linear_add_number(Linear *l, int64_t number, Monomial monomial);
void linear_add_var(Linear *l, VarKind kind, uint32_t of, int64_t number, Monomial monomial);
// Adds the index, with `meaning` of each variable in its place; NULL: the variables themselves.
typedef Var (*VarMeaning)(const void *context, Var v);
void linear_add_index(Linear *l, const Index *i, VarMeaning meaning, const void *context);

bool linear_equals(const Linear *a, const Linear *b);
bool linear_has(const Linear *l, VarKind kind);
// Whether a sum without variables is at most 0 for all values of the open dims, which are at least 1. May return false
// where it is (a sufficient condition only).
bool linear_is_never_positive(const Kernel *k, const Linear *l);

bool index_equals(const Index *a, const Index *b); // structurally
bool index_is_var(const Index *i, Var var);
bool index_is_literal(const Index *i); // a number that depends on no open dim
// Whether the index is x < y ? x : y; sets *x and *y.
bool index_is_least(const Index *i, const Index **x, const Index **y);

#endif
