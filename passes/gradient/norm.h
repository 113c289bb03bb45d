// What the rules of norms and those of their gradients share.
#ifndef NGRAD_PASSES_GRADIENT_NORM_H
#define NGRAD_PASSES_GRADIENT_NORM_H

#include "passes/gradient/gradient.h"

// A norm's data with an axis of its own for the groups of a group norm, so that statistics and parameters broadcast.
typedef struct NormView {
  Shape src;
  uint32_t reduced;           // the axes that a statistic is computed from
  Shape statistic, parameter; // of src's rank
} NormView;

bool norm_view(Gradient *g, const Node *node, NormView *view); // false after a refusal

uint32_t norm_input_slot(const Node *node, const char *name);
const Value *norm_input(const Node *node, const char *name); // NULL: absent
void norm_set_input(Node *backward, const char *name, Value *v);

uint32_t norm_statistics_slot(const Node *forward); // of the output mean; the variance is behind it

Type norm_type_of_statistics(const Value *src); // that the backward graph computes with
// Whether the statistic is precise enough for gradients. With a mean rounded to 16 bits, x - mean has few correct
// digits if |mean| is many times the deviation.
bool norm_is_precise(const Value *statistic, const Value *src);

Value *norm_mean(Gradient *g, const NormView *view, Value *v);
Value *norm_shifted_variance(Gradient *g, const Node *node, Value *variance); // variance + epsilon

#endif
