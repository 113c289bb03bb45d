// The form of a norm: the operator and attributes that follow from the reduced axes.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_NORM_FORM_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_NORM_FORM_H

#include "passes/rewrite/algebra.h"

typedef enum NormKind { LAYER_NORM, BATCH_NORM, GROUP_NORM, NORM_KINDS } NormKind;

typedef struct NormKindInfo {
  OperatorId forward, with_statistics, backward; // with_statistics: takes statistics as inputs. OP_COUNT: there is none
  bool has_own_statistics;                       // forward outputs its statistics if keep_stats, and has use_affine
} NormKindInfo;
extern const NormKindInfo norm_kinds[NORM_KINDS];

typedef struct NormForm {
  NormKind kind;
  uint32_t statistics, parameters;          // masks of frame axes
  Shape statistics_shape, parameters_shape; // as the operator requires them
  int begin, channel;                       // axes of src: begin_norm_axis, or the channel axis
  int64_t groups;
} NormForm;

// Finds the form of a norm of this kind on the frame, whose statistics have the frame axes `unreduced`. False: a norm
// of this kind does not reduce the other axes.
bool form_find(const Algebra *a, uint32_t unreduced, NormKind kind, NormForm *f);

// Sets a layer norm's parameters_shape to rank 1 if gamma and beta (NULL: absent) are flattened.
void form_allow_flat(NormForm *f, const Value *gamma, const Value *beta);

// Sets the form's attributes in a norm's node.
void form_set(const NormForm *f, Node *node, const Value *src, double epsilon);

#endif
