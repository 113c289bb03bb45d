// Which operator a norm is: what it keeps and what it reduces, in its data's axes.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_FORM_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_FORM_H

#include "passes/rewrite/algebra.h"

typedef enum NormKind { LAYER_NORM, BATCH_NORM, GROUP_NORM, NORM_KINDS } NormKind;

typedef struct NormKindInfo {
  OperatorId forward, with_statistics, backward; // OP_COUNT: there is none
  bool has_own_statistics;                       // as results that may be left out, with the attributes of that
} NormKindInfo;
extern const NormKindInfo norm_kinds[NORM_KINDS];

typedef struct NormForm {
  NormKind kind;
  uint32_t statistics, parameters;          // axes of the frame that they have
  Shape statistics_shape, parameters_shape; // as the operator wants them
  int begin, channel;                       // axes of the data
  int64_t groups;
} NormForm;

// The form of a norm of this kind of the frame, whose statistics have the axes `kept`; false: there is no such norm.
bool form_find(const Algebra *a, uint32_t kept, NormKind kind, NormForm *f);

// A layer norm's parameters may be flat: makes the form's so where those that there are (others: NULL) are.
void form_allow_flat(NormForm *f, const Value *gamma, const Value *beta);

// Sets the attributes that say it.
void form_set(const NormForm *f, Node *node, const Value *src, double epsilon);

#endif
