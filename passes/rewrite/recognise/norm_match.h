// A norm or its gradient in a graph: which values are what its operator takes and makes.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_MATCH_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_MATCH_H

#include "passes/pass.h"
#include "passes/rewrite/builder.h"
#include "passes/rewrite/recognise/norm_form.h"

enum { MOST_ANCESTORS = 32, MOST_DESCENDANTS = 128, MOST_USES = 64 };

typedef struct Recogniser {
  Builder builder;
  PassContext *context;
  Arena scratch; // of one norm
  bool changed;
} Recogniser;

typedef struct Norm {
  Recogniser *r;
  Algebra algebra;
  Value *src;
  uint32_t reduced, kept; // axes of the algebra's frame
  double count;           // elements of a statistic
  double epsilon;
  Polynomial mean, variance; // variance with epsilon
  Polynomial rstd;           // one factor
  Value *rstd_value;         // where no variance is known: this, or its reciprocal when is_deviation
  bool is_deviation;
  bool is_rms;                     // mean is 0, and variance the mean square
  bool is_given;                   // the statistics are not src's own, as far as the graph tells
  Value *region[MOST_DESCENDANTS]; // values computed from the statistics, nearest first
  uint32_t nregion;
  Value *cone[MOST_EVALUATED]; // the root, and what it is computed from as far as is looked into
  uint32_t ncone;
} Norm;

typedef struct NormGradient {
  NormForm form;
  Value *root, *dy, *gamma;
  Value *diff_gamma, *diff_beta; // NULL: the graph does not have it
} NormGradient;

typedef struct NormForward {
  NormForm form;
  Value *root, *gamma, *beta;
} NormForward;

// The graph around a value: whether the algebra looks into what makes it; itself and what it is computed from, nearest
// first, as far as is looked into (returns how many); and, in the region, itself and what is computed from it.
bool value_is_looked_into(const Value *v);
uint32_t value_ancestors(Value *v, Value **list, uint32_t most);
void norm_add_descendants(Norm *n, Value *v);

Polynomial norm_src(Norm *n);
Polynomial norm_average(Norm *n, Polynomial p); // over the reduced axes

// A value that the root is computed from, is p (whatever is infinite or NaN), and has the axes in the mask as they
// stand in src, the widest of those; NULL: none.
Value *norm_find_value(Norm *n, Polynomial p, uint32_t axes);
bool norm_has_in_cone(const Norm *n, const Value *v); // the root is computed from it
// A value that p is, over these axes in their order, as the operator's operand; NULL: p is no value.
Value *norm_plain_value(const Norm *n, Polynomial p, uint32_t axes);

// Whether the root is the norm's gradient or result; fills in the others.
bool norm_find_gradient(Norm *n, NormGradient *d, Value *root);
bool norm_find_forward(Norm *n, NormForward *y, Value *root, NormKind kind);

#endif
