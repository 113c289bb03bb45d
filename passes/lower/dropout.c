// Lowers dropout. The comparison of the random number is part of a single operation (EXPR_IS_KEPT), because random
// 32-bit integers are not exact in f32.
#include "passes/lower/formulas.h"
#include "passes/lower/lower.h"

void lower_Dropout(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId src = lower_value(l, node->inputs[0]), seed = lower_s64(l, node->inputs[1]);
  ExprId offset = lower_s64(l, node->inputs[2]), probability = lower_value(l, node->inputs[3]);
  ExprId zero = NUMBER(0), one = NUMBER(1);
  ExprId is_kept = expr_is_kept(k, lower_index_of_element(l, node->outputs[0]), seed, offset, probability);
  ExprId keep_probability = SUB(one, MAX(zero, probability));
  expr_label(k, keep_probability, "share");
  lower_result(l, node, 0, SELECT(is_kept, DIV(src, keep_probability), zero), NULL);
  lower_result(l, node, 1, SELECT(is_kept, one, zero), NULL);
}
