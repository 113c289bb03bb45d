// Inference of Leaf and AllReduce.
#include "ir/operators/leaves.h"

#include "ir/operators/rules.h"

bool infer_leaf(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const int rank = src->shape.rank >= 0 ? src->shape.rank : dst->shape.rank >= 0 ? dst->shape.rank + 1 : -1;
  if (rank < 0) return true;
  if (src->shape.rank >= 0 && !infer_rank_at_least(inf, src, 1)) return false;
  if (!infer_rank_beside(inf, src, rank, dst) || !infer_rank_beside(inf, dst, rank - 1, src)) return false;
  if (inf->graph->nleaves && !infer_extent(inf, src, 0, EXTENT(inf->graph->nleaves))) return false;
  for (int i = 1; i < rank; i++)
    if (!infer_same_extent(inf, src, i, dst, i - 1)) return false;
  return true;
}

bool infer_all_reduce(Inference *inf, Node *node) {
  const Value *src = node->inputs[0];
  if (node_s64(node, "reduction") == REDUCTION_MEAN && src->type != TYPE_NONE && !type_is_float(src->type))
    return infer_error(inf, "reduction: mean: expected a floating-point type, found %s", type_name(src->type));
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]);
}
