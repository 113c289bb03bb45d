// Matches a norm or its gradient: finds the values that are the operator's operands and results.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_MATCH_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_MATCH_H

#include "ir/graph/builder.h"
#include "passes/pass.h"
#include "passes/rewrite/recognise/norm_form.h"

enum { MOST_ANCESTORS = 32, MOST_DESCENDANTS = 128, MOST_USES = 64 };

typedef struct Recogniser {
  Builder builder;
  Diagnostics refusals; // errors of nodes that inference rejected; not printed
  PassContext *context;
  Arena scratch; // for one norm
  bool changed;
} Recogniser;

typedef struct Norm {
  Recogniser *r;
  Algebra algebra;
  Value *src;
  uint32_t reduced, unreduced; // masks of frame axes: the reduced axes, and the axes of the statistics
  double count;                // elements of src for each statistic (algebra_count)
  double epsilon;
  Polynomial mean, variance; // `variance` includes epsilon
  Polynomial rstd;           // 1 / sqrt(variance), as a single factor
  Value *rstd_value; // a given 1 / sqrt(variance), or with is_deviation sqrt(variance); NULL: the variance is known
  bool is_deviation;
  bool is_rms;                     // an RMS norm: mean is 0, and variance the mean square
  bool is_given;                   // mean and variance are inputs of the norm, not computed from src
  Value *region[MOST_DESCENDANTS]; // values computed from the statistics, nearest first
  uint32_t nregion;
  Value *cone[MOST_EVALUATED]; // the root and its ancestors through algebraic operators
  uint32_t ncone;
} Norm;

typedef struct NormGradient {
  NormForm form;
  Value *root, *dy, *gamma;
  Value *diff_gamma, *diff_beta; // NULL: the graph does not compute it
} NormGradient;

typedef struct NormForward {
  NormForm form;
  Value *root, *gamma, *beta;
} NormForward;

// Whether an algebraic operator computes the value.
bool value_is_algebraic(const Value *v);
// Lists v and its ancestors through algebraic operators, nearest first; returns their number.
uint32_t value_ancestors(Value *v, Value **list, uint32_t most);
// Adds v and its descendants through algebraic operators to the region.
void norm_add_descendants(Norm *n, Value *v);

Polynomial norm_src(Norm *n);
Polynomial norm_average(Norm *n, Polynomial p); // the mean over the reduced axes

// A value of the cone that equals p, even for infinite or NaN data, and has exactly these frame axes in src's order; of
// several, one with the widest type. NULL: none.
Value *norm_find_value(Norm *n, Polynomial p, uint32_t axes);
bool norm_has_in_cone(const Norm *n, const Value *v);
// If p is a single symbol, which is a value with exactly these frame axes in src's order, returns the value; else NULL.
Value *norm_plain_value(const Norm *n, Polynomial p, uint32_t axes);

// Whether the root is the norm's gradient diff_src (fills d), or the norm's result (fills y).
bool norm_find_gradient(Norm *n, NormGradient *d, Value *root);
bool norm_find_forward(Norm *n, NormForward *y, Value *root, NormKind kind);

#endif
