// Lowering of dropout. Which elements are kept is one operation, as random bits are no numbers that f32 has.
#include "passes/lower/lower.h"

void lower_Dropout(Lowering *l, const Node *node) {
  Kernel *k = l->kernel;
  ExprId src = lower_value(l, node->inputs[0]), seed = lower_value(l, node->inputs[1]);
  ExprId offset = lower_value(l, node->inputs[2]), probability = lower_value(l, node->inputs[3]);
  ExprId zero = expr_constant(k, 0), one = expr_constant(k, 1);
  ExprId is_kept = expr_is_kept(k, lower_index_of_element(l, node->outputs[0]), seed, offset, probability);
  ExprId share = expr_binary(k, EXPR_SUB, one, expr_binary(k, EXPR_MAX, zero, probability));
  expr_label(k, share, "share");
  lower_result(l, node, 0, expr_select(k, is_kept, expr_binary(k, EXPR_DIV, src, share), zero), NULL);
  lower_result(l, node, 1, expr_select(k, is_kept, one, zero), NULL);
}
