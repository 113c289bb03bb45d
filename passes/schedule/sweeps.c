// A sweep: the loops around its vectors, and the sums that it makes of a row.
//
// Sums are kept in chains short enough for f32: a row's elements go by runs, of each of which the sum enters a total in
// f64.
#include "passes/schedule/recipe.h"

typedef struct SweepRuns { // of the loop's runs, what a sweep has
  bool has_sums, has_totals;
  int64_t vector_run, middle_run;
  bool is_open;
} SweepRuns;

// The greatest of numbers is one of them: no run of it is too long.
static bool is_exact_in_f32(const Recipe *r, ExprId id) {
  return !r->k->is_f64 && r->k->exprs[id].op == EXPR_REDUCE_MAXIMUM;
}

// Whether a sweep adds up vectors: sums of any kind, or such as must be kept in short chains.
static bool has_sums_in(const Recipe *r, int sweep, bool must_be_short) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (is_vector_sum(r, root) && root->sweep == sweep && !(must_be_short && is_exact_in_f32(r, root->expr)))
      return true;
  }
  return false;
}

// Only sums that must be kept short go by runs.
static SweepRuns sweep_runs(const Recipe *r, int sweep) {
  const Runs *own = &r->loop->runs;
  SweepRuns runs = {.has_sums = has_sums_in(r, sweep, false)};
  if (!has_sums_in(r, sweep, true)) return runs;
  runs.vector_run = own->vector_run;
  runs.middle_run = own->middle_run;
  runs.is_open = own->is_open;
  runs.has_totals = runs.vector_run || runs.middle_run || runs.is_open;
  return runs;
}

static void for_each_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_sum(r, &r->loop->roots[i]) && r->loop->roots[i].sweep == sweep) f(r, r->loop->roots[i].expr);
}

// The sums over the middle axes of a nested loop.
static void for_each_middle_sum(Recipe *r, int sweep, void (*f)(Recipe *, ExprId)) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER && root->sweep == sweep && !is_vector_sum(r, root)) f(r, root->expr);
  }
}

static int nparts(const Recipe *r) {
  return has_rows(r) ? r->loop->rows : r->loop->accumulators;
}

static void begin_sum(Recipe *r, ExprId id, SumPlace sum, int count, bool is_f64) {
  add(r, (LoopNode){.kind = NODE_SUM,
                    .sum = sum,
                    .expr = id,
                    .count = count,
                    .is_row = has_rows(r),
                    .is_f64 = is_f64,
                    .reduction = r->k->exprs[id].op});
}

static void begin_accumulator(Recipe *r, ExprId id) {
  begin_sum(r, id, SUM_ACCUMULATOR, nparts(r), r->k->is_f64);
}

static void begin_total(Recipe *r, ExprId id) {
  if (is_exact_in_f32(r, id)) begin_accumulator(r, id); // for all runs
  else begin_sum(r, id, SUM_TOTAL, has_rows(r) ? r->loop->rows : 1, true);
}

static void begin_run(Recipe *r, ExprId id) {
  if (!is_exact_in_f32(r, id)) begin_accumulator(r, id);
}

static void end_run(Recipe *r, ExprId id) {
  if (is_exact_in_f32(r, id)) return;
  add(r, (LoopNode){.kind = NODE_RUN_DONE,
                    .expr = id,
                    .count = nparts(r),
                    .is_row = has_rows(r),
                    .part = has_rows(r) ? PART_ROW : PART_ONLY,
                    .is_f64 = r->k->is_f64,
                    .reduction = r->k->exprs[id].op});
}

static void end_sum(Recipe *r, ExprId id, bool has_totals) {
  const bool is_row = has_rows(r) && expr_level(r, id) == LEVEL_ROW; // else the sum is the same in all rows
  add(r, (LoopNode){.kind = NODE_SUM_DONE,
                    .expr = id,
                    .count = nparts(r),
                    .is_row = is_row,
                    .part = is_row        ? PART_ROW
                            : has_rows(r) ? PART_FIRST
                                          : PART_ONLY,
                    .is_vector = r->loop->is_across,
                    .is_f64 = !is_exact_in_f32(r, id), // over lanes
                    .has_totals = has_totals && !is_exact_in_f32(r, id),
                    .reduction = r->k->exprs[id].op});
}

static void end_sums(Recipe *r, int sweep, bool has_totals) {
  for (size_t i = 0; i < r->loop->nroots; i++)
    if (is_vector_sum(r, &r->loop->roots[i]) && r->loop->roots[i].sweep == sweep)
      end_sum(r, r->loop->roots[i].expr, has_totals);
}

// What varies over middle axes and is known by `time`: the sweep, or with what nested sums have just left one more.
static void make_middle(Recipe *r, int sweep, int depth, int time) {
  need_sweep(r, sweep);
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    int own;
    if (is_made(r, id) && level_of(r, r->k->exprs[id].axes, &own) == LEVEL_MIDDLE && own == depth &&
        (time > sweep) == (r->time[id] > sweep))
      make_scalar(r, id, ~0U);
  }
}

static void begin_middle_total(Recipe *r, ExprId id) {
  begin_sum(r, id, SUM_SCALAR, 1, true);
}

static void end_middle_total(Recipe *r, ExprId id) {
  add(r, (LoopNode){.kind = NODE_SUM_DONE, .sum = SUM_SCALAR, .expr = id, .reduction = r->k->exprs[id].op});
}

// What the sums of an iteration of the middle axes are added to, or where they are stored.
static void store_middle(Recipe *r, int sweep) {
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    const ExprId operand = root_operand(r, root);
    if (root->sweep != sweep || expr_level(r, operand) != LEVEL_MIDDLE) continue;
    if (root->kind == ROOT_STORE) {
      store_scalar(r, root);
      continue;
    }
    const bool is_inner = root->kind == ROOT_REDUCE_INNER;
    LoopNode node = {.kind = NODE_UPDATE,
                     .sum = is_inner ? SUM_SCALAR : SUM_PART,
                     .expr = is_inner ? root->expr : operand,
                     .is_f64 = true,
                     .reduction = root_reduction(r, root)};
    if (!is_inner) {
      const Access *a = &r->k->accesses[root->access];
      node.flag = part_flag(r, root->access);
      node.access = root->access;
      node.address = (Address){
          .base = BASE_PART, .access = root->access, .index = add_terms(r, a, loop_inner_axes(r->loop), NULL)};
    }
    add(r, node);
  }
}

static const Index *least(Recipe *r, const Index *x, const Index *y) {
  return index_choose(&r->b, index_of(&r->b, INDEX_LESS, x, y), x, y);
}

// The row's elements along the innermost axis, in runs if chains would be too long.
static void build_vector_runs(Recipe *r, int sweep, const SweepRuns *runs) {
  const Index *from = r->loop->tile ? var(r, VAR_BEGIN, 0) : number(r, 0);
  const Index *to = r->loop->tile ? var(r, VAR_END, 0) : axes_nelems_index(r, 1U << vector_axis(r));
  if (!runs->vector_run) {
    const bool is_alone = r->loop->ninner == 1;
    if (is_alone) open_body(r, add(r, (LoopNode){.kind = NODE_GROUP}));
    build_vector_loop(r, sweep, from, to, runs->has_sums);
    if (is_alone) close_body(r);
    return;
  }
  const Index *run = number(r, runs->vector_run), *begin = var(r, VAR_RUN_BEGIN, 0), *end = var(r, VAR_RUN_END, 0);
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR, .var = {VAR_RUN_BEGIN, 0}, .value = from, .end = to, .step = run}));
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_RUN_END, 0},
                    .value = least(r, index_of(&r->b, INDEX_ADD, begin, run), to)});
  for_each_sum(r, sweep, begin_run);
  build_vector_loop(r, sweep, begin, end, true);
  for_each_sum(r, sweep, end_run);
  close_body(r);
}

static void build_middle_loops(Recipe *r, int sweep, int depth, const SweepRuns *runs) {
  if (depth == r->loop->ninner - 1) {
    build_vector_runs(r, sweep, runs);
    return;
  }
  const int axis = r->loop->order[r->loop->nouter + depth];
  const bool is_last = depth == r->loop->ninner - 2;
  const bool is_run = is_last && !runs->is_open && runs->middle_run == 1; // each iteration is one
  const bool in_runs = is_last && !is_run && (runs->middle_run || runs->is_open);
  const bool is_backwards = r->loop->is_backwards && sweep == r->loop->nsweeps - 1 && !runs->has_sums;
  const Index *extent = axes_nelems_index(r, 1U << axis), *one = number(r, 1);
  LoopNode loop = {.kind = NODE_FOR,
                   .var = {VAR_AXIS, (uint32_t)axis},
                   .value = number(r, 0),
                   .end = extent,
                   .step = one,
                   .is_down = is_backwards && !in_runs};
  if (in_runs) {
    const Index *run = runs->is_open ? var(r, VAR_RUN_LENGTH, 0) : number(r, runs->middle_run);
    open_body(r, add(r, (LoopNode){
                            .kind = NODE_FOR, .var = {VAR_RUN, 0}, .value = number(r, 0), .end = extent, .step = run}));
    for_each_sum(r, sweep, begin_run);
    loop.value = var(r, VAR_RUN, 0);
    loop.bound = extent;
    loop.end = index_of(&r->b, INDEX_ADD, loop.value, run);
  }
  open_body(r, add(r, loop));
  if (is_run) for_each_sum(r, sweep, begin_run);
  const bool has_nested_sums = r->loop->is_nested && is_last;
  make_middle(r, sweep, depth, sweep);
  if (has_nested_sums) for_each_sum(r, sweep, runs->has_totals ? begin_total : begin_accumulator);
  build_middle_loops(r, sweep, depth + 1, runs);
  if (has_nested_sums) {
    end_sums(r, sweep, runs->has_totals);
    make_middle(r, sweep, depth, sweep + 1);
    store_middle(r, sweep);
  }
  if (is_run) for_each_sum(r, sweep, end_run);
  close_body(r);
  if (!in_runs) return;
  for_each_sum(r, sweep, end_run);
  close_body(r);
}

// Where the innermost extent is open, so is whether an iteration's chain is too long by itself.
static void build_open_runs(Recipe *r, int sweep, const SweepRuns *runs) {
  const int group = LANES * r->loop->accumulators;
  const Index *width = axes_nelems_index(r, 1U << vector_axis(r)), *lanes = number(r, LANES), *by = number(r, group);
  const Index *longest = number(r, LONGEST_RUN), *chain = var(r, VAR_CHAIN, 0);
  const SweepRuns whole = *runs,
                  cut = {.has_sums = true, .has_totals = true, .vector_run = (int64_t)LONGEST_RUN * group};
  const Index *rest = index_of(&r->b, INDEX_DIVIDE, index_of(&r->b, INDEX_REMAINDER, width, by), lanes);
  const Index *last = index_of(&r->b, INDEX_DIFFERS, index_of(&r->b, INDEX_REMAINDER, width, lanes), number(r, 0));
  open_body(r, add(r, (LoopNode){.kind = NODE_GROUP}));
  add(r,
      (LoopNode){.kind = NODE_INDEX,
                 .var = {VAR_CHAIN, 0},
                 .value = index_of(&r->b, INDEX_ADD,
                                   index_of(&r->b, INDEX_ADD, index_of(&r->b, INDEX_DIVIDE, width, by), rest), last)});
  LoopNode *choice = add(r, (LoopNode){.kind = NODE_IF, .test = index_of(&r->b, INDEX_MORE, chain, longest)});
  open_body(r, choice);
  build_middle_loops(r, sweep, 0, &cut);
  close_body(r);
  tree_open(&r->b, &choice->otherwise);
  add(r, (LoopNode){.kind = NODE_INDEX,
                    .var = {VAR_RUN_LENGTH, 0},
                    .value = index_choose(&r->b, chain, index_of(&r->b, INDEX_DIVIDE, longest, chain), number(r, 1))});
  build_middle_loops(r, sweep, 0, &whole);
  close_body(r);
  close_body(r);
}

// The inner axis one by one, then rows that this sweep has written, transposed back.
static void build_across_loop(Recipe *r, int sweep) {
  const int64_t width = r->k->axes[r->loop->order[r->loop->nouter]].extent;
  r->lane = var(r, VAR_LANE, 0);
  r->part = PART_ONLY;
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = {VAR_LANE, 0},
                                 .value = number(r, 0),
                                 .end = number(r, width),
                                 .step = number(r, 1)}));
  build_body(r, sweep);
  close_body(r);
  for (size_t i = 0; i < r->loop->nroots; i++) {
    const Root *root = &r->loop->roots[i];
    if (root->kind != ROOT_STORE || root->sweep != sweep || !is_transposed(r, root->access)) continue;
    const bool is_wanted = is_optional(r, root->access);
    if (is_wanted) open_body(r, add(r, (LoopNode){.kind = NODE_IF, .flag = FLAG_WANTED, .access = root->access}));
    add(r, (LoopNode){.kind = NODE_STORE_ROWS,
                      .access = root->access,
                      .step = stride_of(r, &r->k->accesses[root->access], r->loop->order[0]),
                      .nelems = width});
    if (is_wanted) close_body(r);
  }
}

static const char *sweep_words(Recipe *r, int sweep) {
  Text words;
  text_init(&words, r->b.arena->allocator);
  loop_print_sweep(r->k, r->loop, sweep, &words);
  const char *copy = arena_copy_text(r->b.arena, text_string(&words), words.nbytes);
  r->b.out_of_memory |= !copy || words.out_of_memory;
  text_deinit(&words);
  return copy ? copy : "";
}

void build_sweep(Recipe *r, int sweep) {
  bool has_work = false;
  for (size_t i = 0; i < r->loop->nroots; i++) has_work |= is_in_sweep(r, &r->loop->roots[i], sweep);
  if (!has_work) return;
  add(r, (LoopNode){.kind = NODE_COMMENT, .words = sweep_words(r, sweep)});
  const SweepRuns runs = sweep_runs(r, sweep);
  if (r->loop->is_nested) for_each_middle_sum(r, sweep, begin_middle_total);
  else for_each_sum(r, sweep, runs.has_totals ? begin_total : begin_accumulator);
  if (!axes_nelems(r->k, loop_inner_axes(r->loop))) {
    // nothing to go over
  } else if (r->loop->is_across) {
    build_across_loop(r, sweep);
  } else if (runs.is_open) {
    build_open_runs(r, sweep, &runs);
  } else {
    build_middle_loops(r, sweep, 0, &runs);
  }
  if (r->loop->is_nested) for_each_middle_sum(r, sweep, end_middle_total);
  else end_sums(r, sweep, runs.has_totals);
}
