// The nests of loops: levels from the outermost to the innermost.
#include "passes/schedule/order/scheduling.h"

const LoopLevel
    // Vectors lie along rows.
    schedule_rows[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROWS, LOOP_MIDDLE, LOOP_LANES, LOOP_END},
    // Rows are copied into panels.
    schedule_row_copies[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROW_LANES, LOOP_ROW_COPY, LOOP_END};
static const LoopLevel
    // Each lane computes a row.
    rows_in_lanes[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROW_LANES, LOOP_ROW_ELEMENTS, LOOP_END},
    // Each lane has a sum of its own.
    lanes_of_sums[] = {LOOP_BATCH, LOOP_CUT, LOOP_ROWS, LOOP_LANES, LOOP_MIDDLE, LOOP_END},
    // Products: a micro-kernel is a register tile.
    tiles[] = {LOOP_BATCH, LOOP_CUT, LOOP_COLUMNS, LOOP_ROWS, LOOP_LANES, LOOP_MIDDLE, LOOP_END},
    // Depthwise sums: the taps of a micro-kernel share a factor.
    taps[] = {LOOP_BATCH, LOOP_CUT, LOOP_TAPS, LOOP_MIDDLE, LOOP_LANES, LOOP_END},
    taps_in_lanes[] = {LOOP_BATCH, LOOP_CUT, LOOP_TAPS, LOOP_LANES, LOOP_MIDDLE, LOOP_END};

// Whether rows can be in lanes: one outer axis, one short inner axis, all tensors dense along one of the two, and only
// expressions that are implemented for rows in lanes.
static bool can_lie_in_lanes(const Scheduling *s, const Loop *loop) {
  const Kernel *k = s->k;
  if (s->strategy == TILED || k->is_f64 || loop->nouter != 1 || loop->nbatch || loop->ninner != 1) return false;
  int outer = loop->axes[0], inner = loop->axes[1];
  for (size_t i = 0; i < loop->nroots; i++) // a sum that is the same for all rows would be computed once in each lane
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && !(k->exprs[loop->roots[i].expr].axes >> outer & 1)) return false;
  if (k->axes[inner].monomial || k->axes[inner].extent < 1 || k->axes[inner].extent > k->costs->lanes_width)
    return false;
  for (ExprId i = 1; i < k->nexprs; i++) // indices and gathers are not implemented
    if (k->exprs[i].op == EXPR_INDEX || k->exprs[i].op == EXPR_IS_KEPT ||
        (k->exprs[i].op == EXPR_LOAD && k->exprs[i].args[0]))
      return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (type_is_packed(a->type) || a->nbounds) return false;
    if (a->stride[outer] && (!is_float || (a->stride[inner] > 1 && a->stride[outer] != 1))) return false;
  }
  return true;
}

// With rows in lanes, the cost of a row is proportional to its elements. With vectors along rows, the cost is the
// number of vectors, plus reductions over lanes, plus a tail.
static bool should_lie_in_lanes(const Scheduling *s, const Loop *loop) {
  const bool has_inner_sums = loop_has_roots(loop, ROOT_REDUCE_INNER);
  int64_t width = axes_nelems(s->k, s->inner);
  if (loop_has_roots(loop, ROOT_REDUCE_OUTER)) return false; // rows of any width are added in their order
  bool is_short =
      has_inner_sums ? width <= LANES || (width % LANES && width < s->k->costs->lanes_width_with_tail) : width < LANES;
  return can_lie_in_lanes(s, loop) && schedule_number(s->overrides, SCHEDULE_LANES, is_short);
}

const LoopLevel *schedule_choose_nest(const Scheduling *s, const Loop *loop) {
  if (s->strategy == OF_COLUMNS || should_lie_in_lanes(s, loop)) return rows_in_lanes;
  switch (s->strategy) {
  case DEPTHWISE_ROWS: return taps;
  case DEPTHWISE: return taps_in_lanes;
  case OF_PRODUCTS: return tiles;
  default: return sums_in_lanes(s) ? lanes_of_sums : schedule_rows;
  }
}
