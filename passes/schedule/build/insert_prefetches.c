// Adds prefetches into the L2 cache (L1 is full of the current iteration's data). There are three kinds:
// - Loop.prefetch: whole outer iterations. Each sweep prefetches some of the tensors, so that the memory bus is never
//   idle.
// - Loop.ahead, for long outer iterations: elements further along the vector axis, and near its end elements of the
//   next iteration of the last middle axis.
// - Loop.iterations_ahead, if the vector axis is short: later iterations of the last middle axis.
// In products, Loop.ahead is the distance to later columns of the same middle iteration, and Loop.prefetch is the
// distance to the next index on the innermost batch axis, whose windows reach elements that this index has not read.
#include "passes/schedule/build/tree_passes.h"

#include <string.h>

typedef struct Fetching {
  TreeBuilder *b;
  const LoopTree *t;
  const Kernel *k;
  const Loop *loop;
  const LoopNode **loads; // by AccessId: a node that loads the access, if it varies over outer axes; else NULL
  size_t nloads;
  bool *is_loaded; // by AccessId: find_loads_in found a load of the access
  int nsweeps;     // sweeps that have loops over vectors
  int middle;      // the last middle axis; -1: there is none
} Fetching;

static bool is_column(const LoopNode *n) { // a vector that is copied
  return n->kind == NODE_MOVE && !n->count;
}

static bool is_fetchable(const Fetching *f, const LoopNode *n) {
  if (!is_column(n) && n->kind != NODE_LET) return false;
  const Access *a = &f->k->accesses[node_access(n)];
  const Load load = node_load(f->t, n);
  if (n->kind == NODE_LET && (!n->is_vector || n->from.buffer != BUFFER_ROW || f->k->exprs[n->expr].args[0] ||
                              (load != LOAD_DENSE && load != LOAD_STRIDED)))
    return false;
  return access_has_addresses(a) && !access_is_mask(a) && (access_axes(f->k, a) & loop_outer_axes(f->loop));
}

static void find_loads(Fetching *f, const LoopNode *n) {
  for (; n; n = n->next) {
    if (n->kind == NODE_FOR && n->vectors && n->vectors->sweep >= f->nsweeps) f->nsweeps = n->vectors->sweep + 1;
    if (is_fetchable(f, n) && !f->loads[node_access(n)]) {
      f->loads[node_access(n)] = n;
      f->nloads++;
    }
    find_loads(f, n->body);
    find_loads(f, n->otherwise);
  }
}

static const Index *nelems(const Fetching *f, AxisSet axes) {
  return index_number(f->b, axes_nelems(f->k, axes), axes_monomial(f->k, axes));
}

static const Index *stride_of(const Fetching *f, AccessId id, int axis) {
  const Access *a = &f->k->accesses[id];
  return index_number(f->b, a->stride[axis], a->stride_monomial[axis]);
}

static void fetch(const Fetching *f, AccessId id, const Index *index) {
  Address at = f->loads[id]->from;
  at.index = index;
  tree_add(f->b, (LoopNode){.kind = NODE_PREFETCH, .from = at});
}

// Outer iterations

// The distance in memory from flattened index b to a, along one axis: ((a / below % extent) - (b / below % extent)) *
// stride. below: the product of the extents of the axes inside of this axis.
static const Index *distance_along(TreeBuilder *t, const Index *a, const Index *b, const Index *below,
                                   const Index *extent, const Index *stride) {
  const Index *there = index_of(t, INDEX_REMAINDER, index_of(t, INDEX_DIVIDE, a, below), extent);
  const Index *here = index_of(t, INDEX_REMAINDER, index_of(t, INDEX_DIVIDE, b, below), extent);
  const Index *distance = index_of(t, INDEX_MULTIPLY, index_of(t, INDEX_SUBTRACT, there, here), stride);
  return index_signed(t, distance);
}

// With several outer axes: the distance in a tensor from this outer iteration to the prefetched outer iteration.
static const Index *distance_ahead(const Fetching *f, AccessId id) {
  const Access *a = &f->k->accesses[id];
  const Index *current = index_var(f->b, VAR_OUTER, 0), *distance = tree_number(f->b, 0);
  const Index *target = index_of(f->b, INDEX_ADD, current, index_var(f->b, VAR_AHEAD, 0));
  AxisSet inside = 0; // outer axes inside of this one
  for (int i = f->loop->nouter - 1; i >= 0; i--) {
    const int axis = f->loop->axes[i];
    if (a->stride[axis]) {
      const Index *offset =
          distance_along(f->b, target, current, nelems(f, inside), nelems(f, 1U << axis), stride_of(f, id, axis));
      distance = index_of(f->b, INDEX_ADD, distance, offset);
    }
    inside |= 1U << axis;
  }
  return distance;
}

// Declares VAR_AHEAD and VAR_DISTANCE. In the last iterations there is nothing to prefetch: the distance is 0.
static void find_distances(const Fetching *f, LoopNode **step) {
  const Loop *loop = f->loop;
  const Index *ahead_end =
      index_of(f->b, INDEX_ADD, index_var(f->b, VAR_OUTER, 0), tree_number(f->b, loop->prefetch + loop->rows));
  const Index *is_in_range = index_of(f->b, INDEX_AT_MOST, ahead_end, nelems(f, loop_outer_axes(loop)));
  LoopNode **at = step;
  while (*at && (*at)->kind == NODE_INDEX && (*at)->var.kind == VAR_WANTED) at = &(*at)->next;
  tree_open(f->b, at);
  tree_set(f->b, loop_var(VAR_AHEAD),
           index_choose(f->b, is_in_range, tree_number(f->b, loop->prefetch), tree_number(f->b, 0)));
  for (AccessId id = 0; loop->nouter > 1 && id < f->k->naccesses; id++)
    if (f->loads[id]) tree_set(f->b, (Var){VAR_DISTANCE, id}, distance_ahead(f, id));
  tree_close(f->b);
}

static void fetch_iteration(const Fetching *f, AccessId id) {
  const Index *index = f->loads[id]->from.index, *ahead = index_var(f->b, VAR_AHEAD, 0);
  if (f->loop->nouter > 1) ahead = index_var(f->b, VAR_DISTANCE, id);
  else ahead = index_of(f->b, INDEX_MULTIPLY, ahead, stride_of(f, id, f->loop->axes[0]));
  fetch(f, id, index ? index_of(f->b, INDEX_ADD, index, ahead) : ahead);
}

static void fetch_in_sweep(const Fetching *f, int sweep) {
  size_t at = 0;
  for (AccessId id = 0; id < f->k->naccesses; id++)
    if (f->loads[id] && (int)(at++ * (size_t)f->nsweeps / f->nloads) == sweep) fetch_iteration(f, id);
}

// Elements

static bool mark_loads(const Fetching *f, const LoopNode *n) {
  bool is_any = false;
  for (; n; n = n->next) {
    if (is_fetchable(f, n)) f->is_loaded[node_access(n)] = is_any = true;
    is_any |= mark_loads(f, n->body);
    is_any |= mark_loads(f, n->otherwise);
  }
  return is_any;
}

// Sets is_loaded for these nodes. Returns whether they load anything.
static bool find_loads_in(const Fetching *f, const LoopNode *nodes) {
  memset(f->is_loaded, 0, f->k->naccesses * sizeof *f->is_loaded);
  return mark_loads(f, nodes);
}

// Prefetches elements further along the vector axis; near its end, elements of the next middle iteration.
static void fetch_run(const Fetching *f) {
  const Index *lane = index_var(f->b, VAR_LANE, 0), *extent = nelems(f, 1U << loop_vector_axis(f->loop));
  const Index *target = index_of(f->b, INDEX_ADD, lane, tree_number(f->b, f->loop->ahead));
  const Index *is_next = index_var(f->b, VAR_IS_AHEAD, 0), *ahead_lane = index_var(f->b, VAR_AHEAD_LANE, 0);
  const Var middle = {VAR_AXIS, (uint32_t)f->middle};
  const Index *current = index_var(f->b, VAR_AXIS, middle.of), *next = index_var(f->b, VAR_NEXT, middle.of);
  const Index *ahead = index_var(f->b, VAR_AHEAD_AXIS, middle.of);
  tree_set(f->b, loop_var(VAR_IS_AHEAD), index_of(f->b, INDEX_AT_LEAST, target, extent));
  tree_set(f->b, (Var){VAR_AHEAD_AXIS, middle.of}, index_choose(f->b, is_next, next, current));
  tree_set(f->b, loop_var(VAR_AHEAD_LANE),
           index_choose(f->b, is_next, index_of(f->b, INDEX_SUBTRACT, target, extent), target));
  for (AccessId id = 0; id < f->k->naccesses; id++) {
    if (!f->is_loaded[id]) continue;
    const Index *index = index_replace(f->b, f->loads[id]->from.index, middle, ahead);
    fetch(f, id, index_replace(f->b, index, loop_var(VAR_LANE), ahead_lane));
  }
}

static void fetch_next(const Fetching *f) {
  const Var middle = {VAR_AXIS, (uint32_t)f->middle};
  for (AccessId id = 0; id < f->k->naccesses; id++)
    if (f->is_loaded[id])
      fetch(f, id, index_replace(f->b, f->loads[id]->from.index, middle, index_var(f->b, VAR_NEXT, middle.of)));
}

// Declares VAR_NEXT: the iteration of the last middle axis to prefetch; near the end, the current iteration.
static void find_next(const Fetching *f, LoopNode *loop) {
  const Index *current = index_var(f->b, VAR_AXIS, loop->var.of);
  const Index *distance = tree_number(f->b, f->loop->ahead ? 1 : f->loop->iterations_ahead);
  const Index *next = index_of(f->b, loop->is_down ? INDEX_SUBTRACT : INDEX_ADD, current, distance);
  const Index *is_in_range = loop->is_down ? index_of(f->b, INDEX_AT_LEAST, current, distance)
                                           : index_of(f->b, INDEX_LESS, next, nelems(f, 1U << loop->var.of));
  tree_open(f->b, &loop->body);
  tree_set(f->b, (Var){VAR_NEXT, loop->var.of}, index_choose(f->b, is_in_range, next, current));
  tree_close(f->b);
}

// Where prefetches stand in the body of a loop over vectors: with several rows, in the loop over rows; else after the
// loads that are the same for all rows. But fetch_run adds indices, which schedule_split_vectors computes once for a
// group of vectors, so that these must precede all vectors.
static LoopNode **find_row_part(const Fetching *f, LoopNode **body) {
  LoopNode **at = body;
  while (*at && (((*at)->kind == NODE_BUFFER && (*at)->to.buffer == BUFFER_HELD) ||
                 ((*at)->kind == NODE_LET && !(f->k->exprs[(*at)->expr].axes & loop_outer_axes(f->loop)))))
    at = &(*at)->next;
  if (*at && (*at)->kind == NODE_FOR && (*at)->var.kind == VAR_ROW) return &(*at)->body;
  return f->loop->ahead ? body : at;
}

static bool is_along_middle(const Loop *loop) { // prefetches are along the vector axis or the last middle axis
  return loop->ahead || loop->iterations_ahead;
}

// Adds the prefetches to each loop over vectors.
static void add_fetches(const Fetching *f, LoopNode **nodes) {
  for (LoopNode **at = nodes; *at; at = &(*at)->next) {
    LoopNode *n = *at;
    if (is_column(n) && f->loop->prefetch) {
      tree_open(f->b, at);
      fetch_iteration(f, node_access(n));
      tree_close(f->b);
      at = &(*at)->next;
    } else if (n->kind == NODE_FOR && n->vectors) {
      const bool has_run = is_along_middle(f->loop) && find_loads_in(f, n->body);
      tree_open(f->b, find_row_part(f, &n->body));
      if (f->loop->prefetch) fetch_in_sweep(f, n->vectors->sweep);
      if (has_run && f->loop->ahead) fetch_run(f);
      else if (has_run) fetch_next(f);
      tree_close(f->b);
    } else {
      if (n->kind == NODE_FOR && is_along_middle(f->loop) && n->var.kind == VAR_AXIS && (int)n->var.of == f->middle)
        find_next(f, n);
      add_fetches(f, &n->body);
      add_fetches(f, &n->otherwise);
    }
  }
}

// Calls `add` for each loop over an axis, or over this one (-1: any), inner ones first.
static void for_each_loop(const Fetching *f, LoopNode *nodes, int axis, void (*add)(const Fetching *, LoopNode *)) {
  for (LoopNode *n = nodes; n; n = n->next) {
    for_each_loop(f, n->body, axis, add);
    for_each_loop(f, n->otherwise, axis, add);
    if (n->kind == NODE_FOR && n->var.kind == VAR_AXIS && (axis < 0 || (int)n->var.of == axis)) add(f, n);
  }
}

// Products: prefetches later columns of the factor of vectors, whose rows are pages apart in memory.
static void fetch_columns(const Fetching *f, LoopNode *loop) {
  const Index *lane = index_var(f->b, VAR_LANE, 0),
              *later = index_of(f->b, INDEX_ADD, lane, tree_number(f->b, f->loop->ahead));
  tree_open(f->b, &loop->body);
  for (const LoopNode *let = *f->b->end; let; let = let->next) {
    if (let->kind != NODE_LET || !let->is_vector || node_load(f->t, let) != LOAD_DENSE ||
        !f->k->accesses[node_access(let)].value)
      continue;
    Address at = let->from;
    at.index = index_replace(f->b, at.index, loop_var(VAR_LANE), later);
    tree_add(f->b, (LoopNode){.kind = NODE_PREFETCH, .from = at});
  }
  tree_close(f->b);
}

// Whether both axes step along the same window.
static bool share_window(const Kernel *k, AccessId id, int a, int b) {
  const Access *access = &k->accesses[id];
  for (size_t i = 0; i < access->nbounds; i++)
    if (access->bounds[i].factor[a] && access->bounds[i].factor[b]) return true;
  return false;
}

// The address at which the next index on the innermost batch axis reads beyond this index's windows: at the last tap,
// in the direction of the move, of the window that moves, and at the first tap of other windows.
static Address next_window(const Fetching *f, Address at, int outside) {
  const Loop *loop = f->loop;
  const int moved = loop->axes[loop->nbatch - 1];
  const int64_t *stride = f->k->accesses[at.of].stride;
  for (int i = loop->nouter + loop->ninner - 2; loop->axes[i] != outside; i--) {
    const int axis = loop->axes[i];
    const bool is_last = share_window(f->k, at.of, axis, moved) && (stride[axis] > 0) == (stride[moved] > 0);
    const Index *tap = tree_number(f->b, is_last ? f->k->axes[axis].extent - 1 : 0);
    at.index = index_replace(f->b, at.index, (Var){VAR_AXIS, (uint32_t)axis}, tap);
  }
  at.index = index_of(f->b, INDEX_ADD, at.index, tree_number(f->b, loop->prefetch * stride[moved]));
  return at;
}

// Adds prefetches for loads in the nodes to `body`, the body of the loop over the axis `outside` of windows.
static void fetch_window(const Fetching *f, const LoopNode *nodes, int outside, LoopNode **body) {
  for (const LoopNode *n = nodes; n; n = n->next) {
    fetch_window(f, n->body, outside, body);
    if (n->kind != NODE_LET || !n->is_vector || node_load(f->t, n) != LOAD_DENSE) continue;
    if (loop_axis_outside_windows(f->k, f->loop, node_access(n)) != outside) continue;
    tree_open(f->b, body);
    tree_add(f->b, (LoopNode){.kind = NODE_PREFETCH, .from = next_window(f, n->from, outside)});
    tree_close(f->b);
  }
}

static void fetch_windows(const Fetching *f, LoopNode *loop) {
  fetch_window(f, loop->body, (int)loop->var.of, &loop->body);
}

static bool loads_scalars(const Fetching *f, const LoopNode *n, AccessId id) {
  bool is_any = false;
  for (; n && !is_any; n = n->next)
    is_any = loads_scalars(f, n->body, id) ||
             (n->kind == NODE_LET && !n->is_vector && node_access(n) == id && f->k->exprs[n->expr].op == EXPR_LOAD);
  return is_any;
}

// Products with contiguous rows: prefetches a part of the next micro-kernel's rows in each iteration of the middle
// axis, and so all of them in all iterations.
static void fetch_rows(const Fetching *f, LoopNode *loop) {
  const Index *rows = index_var(f->b, VAR_ROWS, 0), *middle = index_var(f->b, VAR_AXIS, loop->var.of);
  const Index *next = index_of(f->b, INDEX_ADD, index_var(f->b, VAR_OUTER, 0), rows);
  tree_open(f->b, &loop->body);
  for (AccessId id = 0; id < f->k->naccesses; id++) {
    if (!loads_scalars(f, *f->b->end, id) || !loop_has_contiguous_rows(f->k, f->loop, id)) continue;
    const Index *row = index_of(f->b, INDEX_MULTIPLY, next, nelems(f, 1U << loop->var.of));
    const Index *index = index_of(f->b, INDEX_ADD, row, index_of(f->b, INDEX_MULTIPLY, middle, rows));
    index = index_of(f->b, INDEX_ADD, index, tree_number(f->b, f->k->accesses[id].offset));
    tree_add(f->b, (LoopNode){.kind = NODE_PREFETCH, .from = {.buffer = BUFFER_TENSOR, .of = id, .index = index}});
  }
  tree_close(f->b);
}

void schedule_insert_prefetches(TreeBuilder *b, LoopTree *t) {
  const Kernel *k = t->k;
  const Loop *loop = t->loop;
  LoopNode **step = &t->step;
  if (!loop->prefetch && !loop->fetches_rows && !is_along_middle(loop)) return;
  Fetching f = {.b = b,
                .t = t,
                .k = k,
                .loop = loop,
                .loads = ARENA_ARRAY(b->arena, const LoopNode *, k->naccesses + 1),
                .is_loaded = ARENA_ARRAY(b->arena, bool, k->naccesses + 1)};
  f.middle = loop->ninner > 1 ? loop->axes[loop->nouter + loop->ninner - 2] : -1;
  b->out_of_memory |= !f.loads || !f.is_loaded;
  if (b->out_of_memory) return;
  if (loop_has(loop, LOOP_COLUMNS)) {
    if (loop->ahead) for_each_loop(&f, *step, f.middle, fetch_columns);
    if (loop->prefetch) for_each_loop(&f, *step, -1, fetch_windows);
    if (loop->fetches_rows) for_each_loop(&f, *step, f.middle, fetch_rows);
    return;
  }
  find_loads(&f, *step);
  if (!f.nloads) return;
  add_fetches(&f, step);
  if (loop->prefetch) find_distances(&f, step);
}
