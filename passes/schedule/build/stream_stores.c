// Streams stores, which then bypass the caches: computes a flag at the beginning of a micro-kernel (is the tensor
// aligned and large?), makes two versions of each store that depend on it, and ends the block with a fence.
#include "passes/schedule/build/tree_passes.h"

// Without peeling, all rows begin at cache lines if the tensor does, so that the flag tests the tensor's address.
static void add_flag(TreeBuilder *b, const Kernel *k, const Loop *loop, const Root *root) {
  const Access *a = &k->accesses[root->access];
  const bool is_peeled = loop->is_peeled && root->sweep == loop->nsweeps - 1;
  Address first = {.buffer = BUFFER_TENSOR, .of = root->access};
  if (a->offset) first.index = index_number(b, a->offset, a->offset_monomial);
  const Index *value = is_peeled ? index_number(b, 1, 0) : index_of_address(b, INDEX_IS_AT_LINE, first);
  if (root->stream_nelems) {
    const AxisSet axes = access_axes(k, a);
    const Index *nelems = index_number(b, axes_nelems(k, axes), axes_monomial(k, axes));
    value = index_of(b, INDEX_BOTH, value, index_of(b, INDEX_EXCEEDS, nelems, index_number(b, root->stream_nelems, 0)));
  }
  tree_set(b, (Var){VAR_STREAMED, root->access}, value);
}

// Whether the node stores whole vectors of the access.
static bool is_whole_store(const LoopNode *n, AccessId access) {
  const bool is_whole =
      (n->kind == NODE_STORE && n->is_vector && !n->has_fewer_lanes) || (n->kind == NODE_MOVE && n->count);
  return is_whole && n->to.of == access && buffer_info[n->to.buffer].space == SPACE_TENSOR;
}

// Replaces each store of whole vectors of the access by a choice: streamed or not.
static void stream(TreeBuilder *b, LoopNode **nodes, AccessId access) {
  for (LoopNode **at = nodes; *at; at = &(*at)->next) {
    if (!is_whole_store(*at, access)) {
      stream(b, &(*at)->body, access);
      stream(b, &(*at)->otherwise, access);
      continue;
    }
    LoopNode store = **at;
    *at = store.next;
    tree_open(b, at);
    LoopNode *choice = tree_add(b, (LoopNode){.kind = NODE_IF, .test = index_var(b, VAR_STREAMED, access)});
    tree_close(b);
    if (b->out_of_memory) return; // nothing is at the link
    store.next = NULL;
    tree_open(b, &choice->otherwise);
    tree_add(b, store);
    tree_close(b);
    store.is_streamed = true;
    tree_open(b, &choice->body);
    tree_add(b, store);
    tree_close(b);
  }
}

void schedule_stream_stores(TreeBuilder *b, LoopTree *t) {
  const Loop *loop = t->loop;
  LoopNode **step = &t->step, **block = &t->block;
  bool is_any = false;
  LoopNode **at = step;
  while (*at && (*at)->kind == NODE_INDEX && (*at)->var.kind == VAR_WANTED) at = &(*at)->next;
  tree_open(b, at);
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind != ROOT_STORE || !root->is_streamed) continue;
    is_any = true;
    add_flag(b, t->k, loop, root);
  }
  tree_close(b);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_STORE && loop->roots[i].is_streamed) stream(b, step, loop->roots[i].access);
  if (!is_any) return;
  while (*block) block = &(*block)->next;
  tree_open(b, block);
  tree_add(b, (LoopNode){.kind = NODE_FENCE});
  tree_close(b);
}
