// The initial partition, whose regions passes/lower/fuse.c merges, and the slices of slice groups.
#include "ir/graph/partition.h"

Partition *partition_into_nodes(Graph *g) {
  Partition *p = ARENA_NEW(&g->arena, Partition);
  if (!p) return NULL;
  p->region = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->first = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->next = ARENA_ARRAY(&g->arena, uint32_t, g->nnodes);
  p->refusals = ARENA_ARRAY(&g->arena, const Refusal *, g->nnodes);
  if (!p->region || !p->first || !p->next || !p->refusals) return NULL;
  for (uint32_t i = 0; i < g->nnodes; i++) {
    p->region[i] = p->first[i] = i;
    p->next[i] = NO_NODE;
  }
  return p;
}

int64_t slice_group_offset(const SliceGroup *v, const SlicedTensor *tensor, int64_t slice) {
  int64_t offset = 0;
  for (int i = v->nlevels; i-- > 0; slice /= v->extent[i]) offset += slice % v->extent[i] * tensor->stride[i];
  return offset;
}

const SlicedTensor *slice_group_find(const SliceGroup *v, const Value *value) {
  for (size_t i = 0; i < v->ntensors; i++)
    if (v->tensors[i].value == value) return &v->tensors[i];
  return NULL;
}

int64_t slice_group_nelems(const SliceGroup *v, const SlicedTensor *tensor) {
  int64_t nelems = shape_nelems(&tensor->value->shape);
  for (int i = 0; i < v->nlevels; i++)
    if (tensor->stride[i]) nelems /= v->extent[i];
  return nelems;
}

bool slice_group_is_new_row(const SliceGroup *v, int64_t slice) {
  return slice % v->extent[v->nlevels - 1] == 0;
}
