// Queries about the loops and conditions around a node, and the ranges that they cover.
#include "ir/loops/verifying.h"

const Frame *frame_find(const Verifying *v, VarKind kind) {
  for (int i = v->nframes - 1; i >= 0; i--)
    if (v->frames[i].node && v->frames[i].node->var.kind == kind) return &v->frames[i];
  return NULL;
}

bool is_in_frame(const Verifying *v, uint32_t serial) {
  for (int i = 0; i < v->nframes; i++)
    if (v->frames[i].serial == serial) return true;
  return false;
}

bool is_in_row(const Verifying *v) {
  return v->range[OUTER].start.kind == VAR_ROW;
}

bool has_fewer_lanes(const Verifying *v) {
  return v->range[v->lanes].is_piece && v->range[v->lanes].width == WIDTH_LANES;
}

bool is_guarded(const Verifying *v, Flag flag, AccessId access) {
  for (int i = 0; i < v->nguards; i++)
    if (v->guards[i].flag == flag && v->guards[i].access == access) return true;
  return false;
}

bool verify_flag(Verifying *v, const LoopNode *n) {
  const Memory *m = &v->memory[n->access];
  const Root *root = root_of(v, n->access);
  const bool has_partials = root && root->kind == ROOT_REDUCE_OUTER && (!v->is_block || m->has_partials);
  const bool is_set = n->flag == FLAG_WANTED        ? m->is_wanted_found
                      : n->flag == FLAG_STREAMED    ? m->is_streamed_found
                      : n->flag == FLAG_HAS_PARTIAL ? has_partials
                                                    : true;
  return is_set || verify_fail(v, n, "its flag must be computed before it");
}

const char *direction_name(const Verifying *v, int direction) {
  return direction == OUTER ? "the outer axes" : direction < v->k->naxes ? v->k->axes[direction].name : "no axis";
}

// Whether the node processes one index of the direction, or along the lanes one vector of indices.
static bool verify_width(Verifying *v, const LoopNode *n, int direction, bool is_vector) {
  const Range *r = &v->range[direction];
  const bool is_lanes = is_vector && direction == v->lanes;
  if (r->is_piece && (is_lanes ? r->width == LANES || r->width == WIDTH_LANES : r->width == 1)) return true;
  return verify_fail(v, n,
                     is_lanes ? "along %s, it must be in a loop over vectors of LANES elements, or in the tail"
                              : "along %s, it must be in a loop with one index an iteration",
                     direction_name(v, direction));
}

bool verify_goes_over(Verifying *v, const LoopNode *n, int since, Directions directions, bool is_vector) {
  Directions over = 0;
  for (int i = since; i < v->nframes; i++) {
    if (v->frames[i].direction == UNKNOWN_DIRECTION)
      return verify_fail(v, n, "it is in a loop over runs that no inner loop over the indices of a run continues");
    over |= 1U << v->frames[i].direction;
  }
  for (int d = 0; d < NDIRECTIONS; d++) {
    if ((over ^ directions) >> d & 1)
      return verify_fail(v, n, over >> d & 1 ? "a loop over %s around it repeats it" : "it must be in a loop over %s",
                         direction_name(v, d));
    if (over >> d & 1 && !verify_width(v, n, d, is_vector)) return false;
  }
  return !is_vector || verify_width(v, n, v->lanes, true);
}

Directions directions_of(const Verifying *v, AxisSet axes) {
  return (axes & v->inner) | (loop_tile(v->loop) ? 0 : 1U << OUTER);
}

// The outer axes on which all rows of a step have the same index.
AxisSet shared_axes_of(const Verifying *v) {
  const AxisSet rows = loop_row_axes(v->k, v->loop);
  return loop_has(v->loop, LOOP_ROW_LANES) ? 0 : v->outer & ~(rows ? rows : loop_cut_axes(v->loop));
}

bool verify_has_axes(Verifying *v, const LoopNode *n, AxisSet axes, bool is_vector) {
  if (axes & ~(v->outer | v->inner)) return verify_fail(v, n, "it varies over an axis that the loop does not go over");
  if (axes & v->outer & ~shared_axes_of(v) && !verify_width(v, n, OUTER, is_vector)) return false;
  for (int axis = 0; axis < v->k->naxes; axis++)
    if (axes & v->inner & 1U << axis && !verify_width(v, n, axis, is_vector)) return false;
  return !is_vector || verify_width(v, n, v->lanes, true);
}

// Considers only loops over runs whose direction is still unknown, as no loop over the indices of a run has been seen.
Frame *runs_find(Verifying *v, const Index *begin) {
  for (int i = v->nframes - 1; begin && begin->op == INDEX_VAR && i >= 0; i--) {
    Frame *f = &v->frames[i];
    if (f->direction == UNKNOWN_DIRECTION && f->node && index_is_var(begin, f->node->var)) return f;
  }
  return NULL;
}

bool verify_runs(Verifying *v, const LoopNode *n, const Frame *runs, const Range *r) {
  return (index_equals(runs->node->value, r->from) && index_equals(runs->node->end, r->to)) ||
         verify_fail(v, n, "the runs must cover the axis from its first index to its end");
}
