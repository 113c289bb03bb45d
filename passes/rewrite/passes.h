// The passes that rewrite graphs. Each has a file, whose head says what it does; passes/pipeline.c has their order.
#ifndef NGRAD_PASSES_REWRITE_PASSES_H
#define NGRAD_PASSES_REWRITE_PASSES_H

#include "passes/pass.h"

bool pass_casts(Graph *g, PassContext *c);
bool pass_common_subexpressions(Graph *g, PassContext *c);
bool pass_fold_constants(Graph *g, PassContext *c);
bool pass_max_pool_gradients(Graph *g, PassContext *c);
bool pass_movement(Graph *g, PassContext *c);
bool pass_quantize_scales(Graph *g, PassContext *c);
bool pass_recognise(Graph *g, PassContext *c);
bool pass_reshape_layouts(Graph *g, PassContext *c);
bool pass_simplify(Graph *g, PassContext *c);
bool pass_split_casts(Graph *g, PassContext *c);
bool pass_split_groups(Graph *g, PassContext *c);
bool pass_splits(Graph *g, PassContext *c);
bool pass_transpose_weights(Graph *g, PassContext *c);

extern const Rules casts_rules, movement_rules, simplify_rules;

#endif
