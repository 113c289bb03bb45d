// Builds a sweep: walks the levels of the nest (ir/kernel/nest.h) inside of a micro-kernel, from the outside inwards;
// block.c walks those around it.
//
//   open the level
//     compute the scalars that vary over its axis, and not over axes of levels inside
//     begin the sums whose outermost axis is inside
//     the next level
//     end these sums; compute the scalars that depend on them; store scalars, and add them to sums over outer levels
//   close the level
//
// Vectors are computed in bodies (body.c): in the innermost level, and just inside of a level of lanes. Scalars outside
// of all levels are hoisted (hoisted.c).
#include "passes/schedule/build/nest_builder.h"

#include <assert.h>

enum { VECTORS_AT_ONCE = 4 }; // of a row's sums: vectors of a group

typedef struct Span {
  const Index *from, *to;
} Span;

// The level around this one, if it cuts the same axis into segments; else NULL.
static const NestLevel *segments_around(const NestBuilder *r, int depth) {
  const NestLevel *level = &r->nest.levels[depth], *around = level - 1;
  return depth > r->nest.inside && around->role == ROLE_SEGMENTS && around->first == level->first ? around : NULL;
}

static int level_axis(const NestBuilder *r, int depth) {
  return r->loop->axes[r->nest.levels[depth].first];
}

// The scalars inside of `depth` levels: those that depend on sums that end here, or the others.
static void make_scalars(NestBuilder *r, int depth, bool depends_on_sums) {
  need_sweep(r, r->sweep);
  for (ExprId id = 1; id < r->k->nexprs; id++) {
    const AxisSet axes = r->k->exprs[id].axes;
    if (is_emitted(r, id) && expr_level(r, id) == LEVEL_MIDDLE && depth_of(r, axes) == depth &&
        !(has_rows(r) && r->is_of_row[id]) && (r->ready[id] > r->sweep) == depends_on_sums)
      make_scalar(r, id, ~0U);
  }
}

// Stores a scalar, or adds it to a sum over outer levels.
static void build_scalar_root(NestBuilder *r, const Root *root) {
  if (root->kind == ROOT_STORE) {
    store_scalar(r, root);
    return;
  }
  LoopNode node = {
      .kind = NODE_UPDATE, .to = {.buffer = BUFFER_TOTAL, .of = root->expr}, .expr = root_operand(r->k, root)};
  if (root->kind == ROOT_REDUCE_OUTER) {
    node.test = partial_test(r, root->access);
    node.to = (Address){.buffer = BUFFER_PARTIALS,
                        .of = root->access,
                        .index = add_terms(r, &r->k->accesses[root->access], loop_inner_axes(r->loop), NULL)};
  }
  add(r, node);
}

static Span level_span(NestBuilder *r, int depth) {
  const int axis = level_axis(r, depth);
  const bool are_vectors = axis == vector_axis(r);
  if (are_vectors && loop_tile(r->loop)) return (Span){var(r, VAR_BEGIN, 0), var(r, VAR_END, 0)};
  if (are_vectors && r->loop->columns) return (Span){var(r, VAR_COLUMN, 0), var(r, VAR_COLUMN_END, 0)};
  return (Span){number(r, 0), axes_nelems_index(r, 1U << axis)};
}

static void open_segments(NestBuilder *r, int depth) {
  const NestLevel *level = &r->nest.levels[depth];
  const bool are_vectors = level_axis(r, depth) == vector_axis(r);
  const VarKind kind = are_vectors ? VAR_RUN_BEGIN : VAR_RUN;
  const Index *run = level->factor ? number(r, level->factor) : var(r, VAR_RUN_LENGTH, 0);
  const Span all = level_span(r, depth);
  if (level->factor != 1) open_for(r, kind, all.from, all.to, run);
  if (are_vectors) set(r, loop_var(VAR_RUN_END), least(r, plus(r, var(r, kind, 0), run), all.to));
  begin_segments(r);
}

static void close_segments(NestBuilder *r, int depth) {
  end_segments(r);
  if (r->nest.levels[depth].factor != 1) close_body(r);
}

static void open_serial(NestBuilder *r, int depth) {
  const NestLevel *segments = segments_around(r, depth);
  const int axis = level_axis(r, depth);
  const Span all = level_span(r, depth);
  LoopNode loop = {.kind = NODE_FOR,
                   .var = {VAR_AXIS, (uint32_t)axis},
                   .value = all.from,
                   .end = all.to,
                   .step = number(r, 1),
                   .is_down = r->loop->is_backwards && r->sweep == r->loop->nsweeps - 1 && !has_lane_sums(r)};
  if (loop_has(r->loop, LOOP_ROW_LANES)) {
    loop.var = loop_var(VAR_LANE);
    // Accumulators of few elements stay in registers if their numbers are literals.
    loop.is_unrolled = loop_sums_rows(r->loop) && has_lane_sums(r) && r->k->axes[axis].extent <= LANES;
  }
  if (segments) {
    const Index *run = segments->factor ? number(r, segments->factor) : var(r, VAR_RUN_LENGTH, 0);
    loop.value = var(r, VAR_RUN, 0);
    loop.end = plus(r, loop.value, run);
    if (!segments->factor ||
        kernel_factor(r->k, r->k->axes[axis].extent, r->k->axes[axis].monomial) % segments->factor) {
      set(r, loop_var(VAR_RUN_END), least(r, loop.end, all.to));
      loop.end = var(r, VAR_RUN_END, 0);
    }
  }
  need_sweep(r, r->sweep);
  open_body(r, add(r, loop));
}

static void close_serial(NestBuilder *r, int depth) {
  (void)depth;
  close_body(r);
  if (loop_has(r->loop, LOOP_ROW_LANES)) store_rows(r);
}

// The number of whole vectors after the last group; 0: none, or not known.
static int count_rest(const NestBuilder *r) {
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const int64_t nvectors = (r->loop->columns ? axis->extent % r->loop->columns : axis->extent) / LANES;
  return axis->monomial || r->loop->vectors < 1 ? 0 : (int)(nvectors % r->loop->vectors);
}

// Vectors of a row that are added up together, one after the other: more add up at once if a micro-kernel has several
// rows.
static int vectors_at_once(const NestBuilder *r) {
  return has_rows(r) ? 1 : VECTORS_AT_ONCE;
}

// Until schedule_split_vectors runs, the loop over vectors uses only the first accumulator. Peeled rows reach their
// cache lines at different elements, so that the loop over rows is outside of the loop over vectors.
static void open_lanes(NestBuilder *r, int depth) {
  const Loop *loop = r->loop;
  const Axis *axis = &r->k->axes[vector_axis(r)];
  const Span all = level_span(r, depth);
  const bool is_segment = segments_around(r, depth);
  VectorLoop vectors = {.count = !has_lane_sums(r)          ? 1
                                 : loop_sums_in_lanes(loop) ? (int)r->nest.levels[depth].factor
                                                            : vectors_at_once(r),
                        .rest = count_rest(r),
                        .sweep = r->sweep,
                        .is_peeled = peels_rows(r)};
  for (const Root *root = loop->roots; vectors.is_peeled && root < roots_end(r); root++)
    if (root->sweep == r->sweep && root_level(r, root) == LEVEL_VECTOR) vectors.peeled = root->access;
  vectors.has_tail = vectors.is_peeled || loop_tile(loop) % LANES != 0 ||
                     kernel_factor(r->k, axis->extent, axis->monomial) % LANES != 0;
  VectorLoop *stored = ARENA_NEW(r->b.arena, VectorLoop);
  if (stored) *stored = vectors;
  else r->b.out_of_memory = true;
  if (vectors.is_peeled) open_rows(r);
  if (loop->ninner == 1 && !is_segment) open_if(r, NULL);
  open_body(r, add(r, (LoopNode){.kind = NODE_FOR,
                                 .var = loop_var(VAR_LANE),
                                 .value = is_segment ? var(r, VAR_RUN_BEGIN, 0) : all.from,
                                 .end = is_segment ? var(r, VAR_RUN_END, 0) : all.to,
                                 .step = number(r, LANES),
                                 .vectors = stored}));
}

static void close_lanes(NestBuilder *r, int depth) {
  close_body(r);
  if (r->loop->ninner == 1 && !segments_around(r, depth)) close_body(r);
  if (peels_rows(r)) close_rows(r);
}

static void build_inside(NestBuilder *r, int depth);

static void build_level(NestBuilder *r, int depth) {
  static const struct {
    void (*open)(NestBuilder *r, int depth);
    void (*close)(NestBuilder *r, int depth);
  } roles[] = {[ROLE_SEGMENTS] = {open_segments, close_segments},
               [ROLE_SERIAL] = {open_serial, close_serial},
               [ROLE_LANES] = {open_lanes, close_lanes}};
  const NestRole role = r->nest.levels[depth].role;
  assert(roles[role].open); // no other role is inside of a micro-kernel
  roles[role].open(r, depth);
  build_inside(r, depth + 1);
  roles[role].close(r, depth);
}

// Open innermost extent: the emitted code decides at run time. If one middle iteration is too long, it makes
// segments along the vector axis, else segments of several middle iterations.
static void build_open_segments(NestBuilder *r) {
  const Index *width = axes_nelems_index(r, 1U << vector_axis(r)), *chain = var(r, VAR_CHAIN, 0);
  const Nest whole = r->nest, cut = loop_nest(r->k, r->loop, &(Segments){.elements = r->segments.elements});
  open_if(r, NULL);
  set(r, loop_var(VAR_CHAIN), index_chain(&r->b, width));
  LoopNode *choice = open_if(r, index_of(&r->b, INDEX_MORE, chain, number(r, LONGEST_SEGMENT)));
  r->nest = cut;
  build_level(r, r->nest.inside);
  close_body(r);
  tree_open(&r->b, &choice->otherwise);
  set(r, loop_var(VAR_RUN_LENGTH), index_run_length(&r->b));
  r->nest = whole;
  build_level(r, r->nest.inside);
  close_body(r);
  close_body(r);
}

// An open axis is reached before a chain is long: the emitted code computes the iterations in a chain.
static void build_open_chains(NestBuilder *r) {
  const int axis = r->segments.axis;
  open_if(r, NULL);
  set(r, loop_var(VAR_RUN_LENGTH), index_chain_iterations(&r->b, axes_nelems_index(r, 1U << axis), r->segments.inside));
  build_level(r, r->nest.inside);
  close_body(r);
}

static void build_levels(NestBuilder *r, int depth) {
  if (depth == r->nest.nlevels) return;
  if (depth > r->nest.inside) build_level(r, depth);
  else if (!axes_nelems(r->k, loop_inner_axes(r->loop))) return;
  else if (loop_has(r->loop, LOOP_ROW_COPY) && !r->is_tail) copy_into_panel(r);
  else if (r->segments.is_open && loop_sums_in_lanes(r->loop)) build_open_chains(r);
  else if (r->segments.is_open) build_open_segments(r);
  else build_level(r, depth);
}

// What is inside of `depth` levels. The recursion is as deep as the nest.
static void build_inside(NestBuilder *r, int depth) {
  make_scalars(r, depth, false);
  begin_sums(r, depth);
  build_levels(r, depth);
  if (has_body(r, depth)) {
    build_body(r, depth);
    return;
  }
  end_sums(r, depth);
  make_scalars(r, depth, true);
  for (const Root *root = r->loop->roots; root < roots_end(r); root++)
    if (is_root_at(r, root, depth)) build_scalar_root(r, root);
}

static const char *sweep_words(NestBuilder *r, int sweep) {
  Text words;
  text_init(&words, r->b.arena->allocator);
  loop_print_sweep(r->schedule, r->loop, sweep, &words);
  const char *copy = arena_copy_text(r->b.arena, text_string(&words), words.nbytes);
  r->b.out_of_memory |= !copy || words.out_of_memory;
  text_deinit(&words);
  return copy ? copy : "";
}

void build_sweep(NestBuilder *r, int sweep) {
  bool has_work = false;
  for (const Root *root = r->loop->roots; root < roots_end(r); root++) has_work |= is_in_sweep(r, root, sweep);
  if (!has_work) return;
  add(r, (LoopNode){.kind = NODE_COMMENT, .words = sweep_words(r, sweep)});
  r->sweep = sweep;
  r->segments = sweep_segments(r);
  r->nest = loop_nest(r->k, r->loop, &r->segments);
  build_inside(r, r->nest.inside);
}
