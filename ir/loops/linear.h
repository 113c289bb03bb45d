// Indices as sums of terms, so that it can be told whether two of them are equal for all values of variables and open
// dims.
#ifndef NGRAD_IR_LOOPS_LINEAR_H
#define NGRAD_IR_LOOPS_LINEAR_H

#include "ir/loops/loops.h"

// number * var / divisor, times how many blocks a loop has for each iteration of its kept axes, or how long they are.
typedef struct Term {
  int64_t number; // at the hints
  Monomial monomial;
  IndexOp of_loop; // INDEX_NCHUNKS, INDEX_BLOCK_LENGTH; INDEX_NUMBER: neither
  uint32_t loop;
  Var var;         // VAR_NONE: 1
  int64_t divisor; // of the variable
} Term;

enum { MOST_TERMS = 2 * MAX_AXES };

typedef struct Linear {
  int nterms; // no two of the same but for their numbers, and none of 0; -1: the index is no such sum
  Term terms[MOST_TERMS];
} Linear;

void linear_add(Linear *l, Term term);
void linear_add_number(Linear *l, int64_t number, Monomial monomial);
void linear_add_var(Linear *l, VarKind kind, uint32_t of, int64_t number, Monomial monomial);
// Adds the index; a variable that stands for another is that, `meaning` NULL: each stands for itself.
typedef Var (*VarMeaning)(const void *context, Var v);
void linear_add_index(Linear *l, const Index *i, VarMeaning meaning, const void *context);

bool linear_equals(const Linear *a, const Linear *b);
bool linear_has(const Linear *l, VarKind kind);
// Whether a sum without variables is at most 0 at all values of the open dims, which are at least 1; false also where
// that is not seen.
bool linear_is_never_positive(const Kernel *k, const Linear *l);

bool index_equals(const Index *a, const Index *b); // term by term, as they are written
bool index_is_var(const Index *i, Var var);
bool index_is_literal(const Index *i); // a number that no dim decides
// Whether the index is x < y ? x : y.
bool index_is_least(const Index *i, const Index **x, const Index **y);

#endif
