// Tracks the loops and conditions around a node, and the ranges that they cover.
#include "ir/loops/verifying.h"

// Loops and conditions around a node

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

bool has_fewer_lanes(const Verifying *v) {
  return v->lanes >= 0 && v->range[v->lanes].progress == RANGE_PIECE && v->range[v->lanes].width == WIDTH_LANES;
}

bool is_guarded(const Verifying *v, Flag flag, AccessId access) {
  for (int i = 0; i < v->nguards; i++)
    if (v->guards[i].flag == flag && v->guards[i].access == access) return true;
  return false;
}

bool verify_flag(Verifying *v, const LoopNode *n, Flag flag, AccessId access) {
  const Memory *m = &v->memory[access];
  const uint32_t root = v->root_of_access[access];
  const bool has_partials =
      root && v->plan->roots[root - 1].kind == ROOT_REDUCE_OUTER && (!v->is_block || m->has_partials);
  const bool is_set = flag == FLAG_WANTED        ? m->is_wanted_found
                      : flag == FLAG_STREAMED    ? m->is_streamed_found
                      : flag == FLAG_HAS_PARTIAL ? has_partials
                                                 : true;
  return is_set || verify_fail(v, n, "its flag must be computed before it");
}

const char *direction_name(const Verifying *v, int direction) {
  return direction == OUTER ? "the outer axes" : v->k->axes[direction].name;
}

// Whether the node processes one index of the direction, or along the lanes one vector of indices.
static bool verify_width(Verifying *v, const LoopNode *n, int direction, bool is_vector) {
  const Range *r = &v->range[direction];
  const bool is_lanes = is_vector && direction == v->lanes;
  if (r->progress == RANGE_PIECE && (is_lanes ? r->width == LANES || r->width == WIDTH_LANES : r->width == 1))
    return true;
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
  return !is_vector || v->lanes < 0 || verify_width(v, n, v->lanes, true);
}

// The outer axes on which all rows of a step have the same index.
AxisSet verify_shared_axes(const Verifying *v) {
  const AxisSet rows = loop_row_axes(v->k, v->plan);
  return v->plan->rows_in_lanes ? 0 : v->outer & ~(rows ? rows : loop_cut_axes(v->plan));
}

bool verify_has_axes(Verifying *v, const LoopNode *n, AxisSet axes, bool is_vector) {
  if (axes & ~(v->outer | v->inner)) return verify_fail(v, n, "it varies over an axis that the loop does not go over");
  if (axes & v->outer & ~verify_shared_axes(v) && !verify_width(v, n, OUTER, is_vector)) return false;
  for (int axis = 0; axis < v->k->naxes; axis++)
    if (axes & v->inner & 1U << axis && !verify_width(v, n, axis, is_vector)) return false;
  return !is_vector || v->lanes < 0 || verify_width(v, n, v->lanes, true);
}

// Pieces

static bool frame_push(Verifying *v, const LoopNode *n, int direction) {
  if (v->nframes == MOST_FRAMES)
    return verify_fail(v, n, "loops are nested too deeply, expected at most %d levels", MOST_FRAMES);
  v->frames[v->nframes++] = (Frame){.node = n, .direction = direction, .serial = ++v->nserials};
  return true;
}

Frame *frame_top(Verifying *v) {
  return &v->frames[v->nframes - 1];
}

bool guard_push(Verifying *v, const LoopNode *n, Flag flag, AccessId access) {
  if (v->nguards == MOST_FRAMES)
    return verify_fail(v, n, "conditions are nested too deeply, expected at most %d levels", MOST_FRAMES);
  v->guards[v->nguards++] = (Guard){flag, access};
  return true;
}

bool verify_body(Verifying *v, const LoopNode *n, int direction) {
  if (!frame_push(v, n, direction)) return false;
  const bool ok = verify_nodes(v, n->body);
  v->nframes--;
  return ok;
}

bool verify_piece(Verifying *v, const LoopNode *n, int direction, const Range *piece) {
  const Range before = v->range[direction];
  v->range[direction] = *piece;
  v->range[direction].progress = RANGE_PIECE;
  const bool ok = verify_body(v, n, direction);
  v->range[direction] = before;
  return ok;
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

// Functions

static void begin_ranges(Verifying *v) {
  const Kernel *k = v->k;
  for (int d = 0; d < NDIRECTIONS; d++) v->range[d] = (Range){.divisor = 1};
  for (int axis = 0; axis < k->naxes; axis++) {
    Range *r = &v->range[axis];
    r->from = number_index(v, 0);
    r->to = nelems_index(v, 1U << axis);
    r->divisor = kernel_factor(k, k->axes[axis].extent, k->axes[axis].monomial);
  }
  v->nframes = v->nguards = 0;
  v->chain = CHAIN_UNKNOWN;
}

static bool begin_tile(Verifying *v) {
  Range *r = &v->range[v->vector];
  r->from = var_index(v, VAR_BEGIN);
  r->to = var_index(v, VAR_END);
  r->divisor = loop_has_open_length(v->k, v->plan) ? 1 : greatest_divisor(v->plan->tile, r->divisor);
  return var_set(v, NULL, loop_var(VAR_BEGIN), NULL) && var_set(v, NULL, loop_var(VAR_END), NULL);
}

// The step takes a part of the vector axis. All parts but the last have Loop.columns elements.
static bool begin_columns(Verifying *v) {
  Range *r = &v->range[v->vector];
  r->from = var_index(v, VAR_COLUMN);
  r->to = var_index(v, VAR_COLUMN_END);
  r->divisor = greatest_divisor(v->plan->columns, r->divisor);
  return var_set(v, NULL, loop_var(VAR_COLUMN), NULL) && var_set(v, NULL, loop_var(VAR_COLUMN_END), NULL);
}

bool begin_step(Verifying *v, bool is_tail) {
  const Loop *plan = v->plan;
  begin_ranges(v);
  if (plan->columns && (v->vector < 0 || !plan->sums_middle || !begin_columns(v)))
    return verify_fail(v, NULL, "the loop takes parts of columns, but has no sums over middle axes");
  if (v->b.out_of_memory) return false;
  if (plan->tile) return begin_tile(v);
  if (plan->rows_in_lanes && plan->nouter > 1 && plan->nfree != plan->nouter - 1)
    return verify_fail(v, NULL,
                       "with rows in lanes, all outer axes but the last must be free, or lanes may leave their axis");
  Range *r = &v->range[OUTER];
  r->progress = RANGE_PIECE;
  r->start = loop_var(VAR_OUTER);
  r->width = plan->rows > 1 ? WIDTH_ROWS : !plan->rows_in_lanes ? 1 : is_tail ? WIDTH_LANES : LANES;
  return frame_push(v, NULL, OUTER) && var_set(v, NULL, r->start, NULL) &&
         (plan->rows == 1 || var_set(v, NULL, loop_var(VAR_ROWS), NULL)) &&
         (!is_tail || var_set(v, NULL, loop_var(VAR_LANES), NULL));
}

bool begin_block(Verifying *v) {
  begin_ranges(v);
  v->range[OUTER].from = var_index(v, VAR_BEGIN);
  v->range[OUTER].to = var_index(v, VAR_END);
  if ((v->plan->is_product || v->plan->is_depthwise) && !loop_has_open_length(v->k, v->plan) &&
      !v->plan->most_cut_blocks) {
    const AxisSet cut = loop_cut_axes(v->plan);
    v->range[OUTER].divisor =
        greatest_divisor(v->plan->block, kernel_factor(v->k, axes_nelems(v->k, cut), axes_monomial(v->k, cut)));
  }
  return !v->b.out_of_memory && var_set(v, NULL, loop_var(VAR_BLOCK), NULL);
}
