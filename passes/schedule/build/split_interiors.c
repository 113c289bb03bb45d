// Splits loops over middle axes into parts before, in and behind the interior: the indices at which all bounds of the
// body's loads that depend on the loop's variable hold. The compiler then removes the conditions from the loop over the
// interior. Only if the rows of each micro-kernel are all indices of the axes cut into blocks, so that the rows'
// indices in the conditions are constants.
//
//   for ky in 0..1: body
//   for ky in 1..6: body        the interior
//   for ky in 6..7: body
#include "passes/schedule/build/tree_passes.h"

typedef struct Interior {
  int64_t begin, end;
} Interior;

// Leaves the indices on the axis at which the bounds of all loads in the nodes hold.
static void shrink(Interior *in, const Kernel *k, const Loop *loop, int axis, const LoopNode *n) {
  for (; n; n = n->next) {
    const Access *a = &k->accesses[node_access(n)];
    for (size_t i = 0; n->kind == NODE_LET && n->test && i < a->nbounds; i++) {
      const Bound *b = &a->bounds[i];
      int64_t from, to;
      if (!b->factor[axis] || b->factor[loop_lane_axis(loop)] || bound_always_holds(k, b)) continue;
      bound_interior(k, b, axis, &from, &to);
      if (from > in->begin) in->begin = from;
      if (to < in->end) in->end = to;
    }
    shrink(in, k, loop, axis, n->body);
    shrink(in, k, loop, axis, n->otherwise);
  }
}

// Adds the part of the loop from `begin` (0: the loop's begin) to below `end` (0: the loop's end).
static void add_part(TreeBuilder *b, const LoopNode *loop, int64_t begin, int64_t end) {
  LoopNode part = *loop;
  const Index *from = index_number(b, begin, 0), *to = index_number(b, end, 0);
  part.next = part.body = NULL;
  if (begin && index_is(loop->value, 0)) part.value = from;
  else if (begin) part.value = index_choose(b, index_of(b, INDEX_LESS, loop->value, from), from, loop->value);
  if (end && loop->end->op == INDEX_NUMBER) part.end = to;
  else if (end) part.bound = to;
  tree_open(b, &tree_add(b, part)->body);
  tree_add_copy(b, loop->body, loop_var(VAR_NONE), from, NULL, NULL, 0);
  tree_close(b);
}

// Replaces the loop over the axis at this link, if it has an interior. Returns the link to the node behind the loop.
static LoopNode **split(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **at) {
  const LoopNode *n = *at;
  const Axis *axis = &k->axes[n->var.of];
  Interior in = {0, axis->extent};
  shrink(&in, k, loop, (int)n->var.of, n->body);
  if (in.begin >= in.end || in.end - in.begin == axis->extent || axis->monomial || n->is_down) return &(*at)->next;
  *at = n->next;
  tree_open(b, at);
  if (in.begin) add_part(b, n, 0, in.begin);
  add_part(b, n, in.begin, in.end < axis->extent ? in.end : 0);
  if (in.end < axis->extent) add_part(b, n, in.end, 0);
  LoopNode **end = b->end;
  tree_close(b);
  return end;
}

static void split_all(TreeBuilder *b, const Kernel *k, const Loop *loop, LoopNode **nodes) {
  for (LoopNode **at = nodes; *at && !b->out_of_memory;) {
    split_all(b, k, loop, &(*at)->body);
    split_all(b, k, loop, &(*at)->otherwise);
    const bool is_over_axis = (*at)->kind == NODE_FOR && (*at)->var.kind == VAR_AXIS;
    at = is_over_axis ? split(b, k, loop, at) : &(*at)->next;
  }
}

void schedule_split_interiors(TreeBuilder *b, LoopTree *t) {
  const Loop *loop = t->loop;
  if (loop->rows > 1 && loop_row_axes(t->k, loop) == loop_cut_axes(loop)) split_all(b, t->k, loop, &t->step);
}
