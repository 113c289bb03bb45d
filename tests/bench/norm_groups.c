// Extents of normalisations.
#include "tests/bench/norm_groups.h"

#include "ir/operators/norm.h"

#include <string.h>

Value *node_input(const Node *node, const char *name) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (strcmp(node->op->inputs[i].name, name) == 0) return node->inputs[i];
  return NULL;
}

Value *node_output(const Node *node, const char *name) {
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (strcmp(node->op->outputs[i].name, name) == 0) return node->outputs[i];
  return NULL;
}

static size_t extent_product(const Shape *shape, int begin, int end) {
  size_t product = 1;
  for (int i = begin; i < end; i++) product *= (size_t)extent_value(shape->extent[i]);
  return product;
}

bool norm_groups(const Node *node, NormGroups *out) {
  if (node->op->norm_scope == SCOPE_NONE || batch_norm_has_broadcast_statistics(node)) return false;
  const Shape *src = &node->inputs[0]->shape;
  if (node->op->norm_scope == SCOPE_ROW) {
    int k = layer_norm_begin_axis(node);
    *out = (NormGroups){1, extent_product(src, 0, k), extent_product(src, k, src->rank)};
  } else if (node->op->norm_scope == SCOPE_GROUP) {
    if (norm_channel_axis(node) != 1) return false;
    size_t count = (size_t)extent_value(norm_ngroups(node)) * extent_product(src, 0, 1);
    *out = (NormGroups){1, count, extent_product(src, 0, src->rank) / (count ? count : 1)};
  } else {
    int axis = norm_channel_axis(node);
    *out = (NormGroups){extent_product(src, 0, axis), extent_product(src, axis, axis + 1),
                        extent_product(src, axis + 1, src->rank)};
  }
  return true;
}
