// Executes reductions: accumulators in registers, totals of runs in f64, partial sums of blocks in memory.
#include "ir/kernel/scatter.h"
#include "tests/loops/walk.h"

static double identity_of(const Walk *w, const LoopNode *n) {
  return reductions[node_reduction(w->tree, n)].identity;
}

static void combine(Walk *w, const LoopNode *n, bool is_f64, Lanes *y, const Lanes *a, const Lanes *b) {
  const Lanes *const x[] = {a, b, NULL};
  const ExprOp op = reductions[node_reduction(w->tree, n)].combine;
  if (!w->has_failed && !lanes_apply(op, is_f64, y, x)) walk_fail(w, "nothing computes %s", expr_info[op].name);
}

static double combine_numbers(Walk *w, const LoopNode *n, double a, double b) {
  Lanes x, y, z = {.f64 = {0}};
  lanes_set(true, &x, a);
  lanes_set(true, &y, b);
  combine(w, n, true, &z, &x, &y);
  return z.f64[0];
}

// Sums in registers

void walk_begin_sum(Walk *w, const LoopNode *n) {
  const Family family = n->sum == SUM_ACCUMULATOR ? OF_ACCUMULATOR : OF_TOTAL;
  const bool is_array = n->sum != SUM_SCALAR && n->count != 1, is_f64 = node_is_f64(w->tree, n);
  if (n->sum == SUM_SCALAR) {
    walk_declare(w, family, n->expr, CELL_F64)->lanes.f64[0] = identity_of(w, n);
  } else if (!is_array) {
    lanes_set(is_f64, &walk_declare(w, family, n->expr, vector_cell(is_f64))->lanes, identity_of(w, n));
  } else {
    walk_declare_array(w, family, n->expr, vector_cell(is_f64), n->count);
    for (int i = 0; i < n->count; i++)
      lanes_set(is_f64, &walk_write(w, family, n->expr, i, vector_cell(is_f64))->lanes, identity_of(w, n));
  }
}

static int element_of(Walk *w, AccumulatorChoice accumulator) {
  switch (accumulator) {
  case ACCUMULATOR_OF_ROW: return (int)walk_var(w, VAR_ROW);
  case ACCUMULATOR_OF_VECTOR: return (int)walk_var(w, VAR_VECTOR);
  case ACCUMULATOR_OF_BOTH: return (int)(walk_var(w, VAR_VECTOR) * walk_var(w, VAR_ROWS) + walk_var(w, VAR_ROW));
  case ACCUMULATOR_FIRST: return 0;
  case ACCUMULATOR_OF_ELEMENT: return (int)(walk_var(w, VAR_LANE) % LANES);
  default: return PLAIN;
  }
}

static Pointer partials_of(Walk *w, AccessId id) {
  return walk_read(w, OF_PARTIALS, id, PLAIN, CELL_POINTER)->pointer;
}

static bool has_partials(Walk *w, const LoopNode *n) {
  return !n->flag || partials_of(w, n->access).memory;
}

// Adds a scalar, in f64.
static void update_number(Walk *w, const LoopNode *n) {
  const double x = walk_scalar(w, node_operand(w->tree, n));
  if (n->sum == SUM_PARTIAL_ELEMENT) {
    Pointer part = partials_of(w, n->access);
    const Type type = part.memory ? part.memory->type : TYPE_F64;
    part.at += walk_index(w, n->address.index);
    walk_store_number(w, type, part, combine_numbers(w, n, walk_load_number(w, type, part), x));
  } else if (n->sum == SUM_SCALAR) {
    double *total = &walk_read(w, OF_TOTAL, n->expr, PLAIN, CELL_F64)->lanes.f64[0];
    *total = combine_numbers(w, n, *total, x);
  } else {
    walk_fail(w, "adds a scalar to a vector");
  }
}

static void update_vector(Walk *w, const LoopNode *n, bool is_f64, Lanes *target) {
  const bool is_widened = node_is_widened(w->tree, n);
  Lanes buffers[2], wide, updated;
  const ExprId operand = node_operand(w->tree, n);
  if (n->is_fused) {
    const ExprId *factors = w->k->exprs[operand].args;
    const Lanes *const x[] = {walk_vector(w, factors[0], &buffers[0]), walk_vector(w, factors[1], &buffers[1]), target};
    if (w->k->exprs[operand].op != EXPR_MUL || node_reduction(w->tree, n) != EXPR_REDUCE_SUM || is_f64 != w->k->is_f64)
      walk_fail(w, "fuses an operand that is no product of the kernel's type into its sum");
    if (!w->has_failed) lanes_apply(EXPR_FMA, is_f64, &updated, x);
  } else {
    const Lanes *x = walk_vector(w, operand, &buffers[0]);
    if (is_widened) lanes_widen(&wide, x);
    combine(w, n, is_f64, &updated, target, is_widened ? &wide : x);
  }
  if (w->has_failed) return;
  if (n->has_fewer_lanes) {
    if (is_f64 != w->k->is_f64) walk_fail(w, "merges vectors of f64 in a kernel of f32");
    lanes_merge(is_f64, &updated, &updated, target, walk_nlanes(w, n));
  }
  *target = updated;
}

void walk_update(Walk *w, const LoopNode *n) {
  const bool is_f64 = node_is_widened(w->tree, n) || w->k->is_f64;
  if (!has_partials(w, n)) return;
  if (!n->is_vector) {
    update_number(w, n);
  } else if (n->sum == SUM_ACCUMULATOR) {
    update_vector(w, n, is_f64,
                  &walk_read(w, OF_ACCUMULATOR, n->expr, element_of(w, n->accumulator), vector_cell(is_f64))->lanes);
  } else if (n->sum == SUM_PARTIAL_REGISTER) {
    update_vector(w, n, is_f64, &walk_read(w, OF_PARTIAL_VECTOR, n->access, PLAIN, vector_cell(is_f64))->lanes);
  } else {
    walk_fail(w, "adds a vector to a scalar");
  }
}

static void end_run(Walk *w, const LoopNode *n, int row) {
  const bool is_widened = node_is_widened(w->tree, n);
  Lanes wide;
  Lanes *total = &walk_read(w, OF_TOTAL, n->expr, row, vector_cell(is_widened))->lanes;
  const Lanes merged = walk_read(w, OF_ACCUMULATOR, n->expr, row, CELL_VEC)->lanes;
  if (is_widened) lanes_widen(&wide, &merged);
  combine(w, n, is_widened, total, total, is_widened ? &wide : &merged);
}

void walk_end_run(Walk *w, const LoopNode *n) {
  const int rows = n->is_row ? (int)walk_var(w, VAR_ROWS) : 0;
  if (!n->is_row) end_run(w, n, element_of(w, n->accumulator));
  const int first = n->accumulator == ACCUMULATOR_OF_BOTH ? (int)walk_var(w, VAR_VECTOR) * rows : 0;
  for (int r = 0; r < rows; r++) end_run(w, n, first + r);
}

// The reduction, over lanes, of a row's accumulators or total.
static double sum_of_lanes(Walk *w, const LoopNode *n, int row) {
  const ExprOp reduction = node_reduction(w->tree, n);
  double sum = 0;
  Lanes wide;
  if (n->sum == SUM_TOTAL) {
    const Lanes *total = &walk_read(w, OF_TOTAL, n->expr, row, CELL_DVEC)->lanes;
    const bool is_one = n->test && walk_index(w, n->test);
    if (is_one) lanes_narrow(&wide, total);
    if (!lanes_fold(reduction, !is_one, is_one ? &wide : total, &sum)) walk_fail(w, "nothing sums up lanes");
    return sum;
  }
  const bool is_f64 = node_is_f64(w->tree, n), is_widened = is_f64 && !w->k->is_f64;
  const Lanes merged = walk_read(w, OF_ACCUMULATOR, n->expr, row, vector_cell(w->k->is_f64))->lanes;
  if (is_widened) lanes_widen(&wide, &merged);
  if (!lanes_fold(reduction, is_f64, is_widened ? &wide : &merged, &sum)) walk_fail(w, "nothing sums up lanes");
  return sum;
}

// Combines the accumulators of elements as lanes are combined: by halves.
static void end_elements(Walk *w, const LoopNode *n, Lanes *sum) {
  Lanes each[LANES];
  const int count = tree_element_sums(w->tree, n->expr);
  for (int i = 0; i < count; i++) each[i] = walk_read(w, OF_ACCUMULATOR, n->expr, i, CELL_VEC)->lanes;
  for (int half = LANES / 2; half; half /= 2)
    for (int i = 0; i < half && i + half < count; i++) combine(w, n, false, &each[i], &each[i], &each[i + half]);
  *sum = each[0];
}

void walk_end_sum(Walk *w, const LoopNode *n) {
  const bool is_f64 = w->k->is_f64;
  const CellType type = is_f64 ? CELL_F64 : CELL_F32;
  if (n->is_vector) { // lanes have different sums
    const CellType vector = vector_cell(is_f64);
    const int element = element_of(w, n->accumulator);
    Lanes sum;
    if (tree_element_sums(w->tree, n->expr)) end_elements(w, n, &sum);
    else if (node_is_widened(w->tree, n))
      lanes_narrow(&sum, &walk_read(w, OF_TOTAL, n->expr, element, CELL_DVEC)->lanes);
    else if (n->sum == SUM_TOTAL) sum = walk_read(w, OF_TOTAL, n->expr, element, vector)->lanes;
    else sum = walk_read(w, OF_ACCUMULATOR, n->expr, element, vector)->lanes;
    walk_declare(w, OF_VALUE, n->expr, vector)->lanes = sum;
  } else if (n->sum == SUM_SCALAR) {
    const double total = walk_read(w, OF_TOTAL, n->expr, PLAIN, CELL_F64)->lanes.f64[0];
    lanes_set(is_f64, &walk_declare(w, OF_VALUE, n->expr, type)->lanes, total);
  } else if (n->is_row) {
    walk_declare_array(w, OF_VALUE, n->expr, type, w->tree->loop->rows);
    const int rows = (int)walk_var(w, VAR_ROWS);
    for (int r = 0; r < rows; r++) {
      const double sum = sum_of_lanes(w, n, r);
      lanes_set(is_f64, &walk_write(w, OF_VALUE, n->expr, r, type)->lanes, sum);
    }
  } else { // the sum is the same for all rows
    const double sum = sum_of_lanes(w, n, element_of(w, n->accumulator));
    lanes_set(is_f64, &walk_declare(w, OF_VALUE, n->expr, type)->lanes, sum);
  }
}

void walk_combine(Walk *w, const LoopNode *n) {
  const Type type = w->k->accesses[n->access].type;
  const Pointer at = walk_address(w, &n->address);
  Lanes part, *total = &walk_read(w, OF_TOTAL, n->expr, PLAIN, n->is_vector ? CELL_DVEC : CELL_F64)->lanes;
  if (!n->is_vector) {
    total->f64[0] = combine_numbers(w, n, total->f64[0], walk_load_number(w, type, at));
    return;
  }
  walk_load(w, type, IN_F64, &part, at, (Elements){.step = walk_index(w, n->step), .count = walk_nlanes(w, n)});
  combine(w, n, true, total, total, &part);
}

// Partial sums in memory

static Type type_of(bool is_f64) {
  return is_f64 ? TYPE_F64 : TYPE_F32;
}

void walk_load_partial(Walk *w, const LoopNode *n) {
  const bool is_f64 = node_is_f64(w->tree, n);
  Lanes held;
  lanes_set(is_f64, &held, 0);
  if (has_partials(w, n))
    walk_load(w, type_of(is_f64), is_f64, &held, walk_address(w, &n->address),
              (Elements){.step = 1, .count = walk_nlanes(w, n)});
  walk_declare(w, OF_PARTIAL_VECTOR, n->access, vector_cell(is_f64))->lanes = held;
}

void walk_store_partial(Walk *w, const LoopNode *n) {
  if (!has_partials(w, n)) return;
  const bool is_f64 = node_is_f64(w->tree, n);
  const Lanes *held = &walk_read(w, OF_PARTIAL_VECTOR, n->access, PLAIN, vector_cell(is_f64))->lanes;
  walk_store(w, type_of(is_f64), is_f64, walk_address(w, &n->address), held,
             (Elements){.step = 1, .count = walk_nlanes(w, n)});
}

void walk_partials(Walk *w, const LoopNode *n) {
  const uint64_t count = walk_index(w, n->value);
  Pointer part = {walk_member(w, n->access), walk_var(w, VAR_BLOCK) * count};
  if (!part.memory && !n->flag) walk_fail(w, "has no memory for %s", walk_access_name(w, n->access));
  if (!part.memory) part.at = 0;
  walk_declare(w, OF_PARTIALS, n->access, CELL_POINTER)->pointer = part;
}

void walk_init_partial(Walk *w, const LoopNode *n) {
  walk_store_number(w, type_of(node_is_f64(w->tree, n)), walk_address(w, &n->address), identity_of(w, n));
}

// Row by row, so that each element is stored once.
void walk_scatter(Walk *w, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(w->k, &s)) walk_fail(w, "%s is no scatter", walk_access_name(w, n->access));
  const Axis *axes = w->k->axes;
  const uint64_t nrows = walk_number(w, axes[s.rows].extent, axes[s.rows].monomial);
  const uint64_t width = walk_number(w, axes[s.columns].extent, axes[s.columns].monomial);
  const uint64_t count = walk_number(w, axes[s.summed].extent, axes[s.summed].monomial), end = walk_var(w, VAR_END);
  const bool is_f64 = w->k->is_f64;
  const Type type = is_f64 ? TYPE_F64 : TYPE_F32, of_index = w->k->accesses[s.indices].type;
  Memory *to = walk_member(w, s.to), *from = walk_member(w, s.from), *indices = walk_member(w, s.indices);
  for (uint64_t row = walk_var(w, VAR_BEGIN); row < end && !w->has_failed; row++)
    for (uint64_t c = 0; c < width && !w->has_failed; c += LANES) {
      const Elements part = {.step = 1, .count = width - c < LANES ? (int)(width - c) : LANES};
      Lanes sum, x;
      lanes_set(is_f64, &sum, 0);
      for (uint64_t i = 0; i < count && !w->has_failed; i++) {
        const double index = walk_load_number(w, of_index, (Pointer){indices, i});
        if ((index < 0 ? index + (double)nrows : index) != (double)(row % nrows)) continue;
        walk_load(w, type, is_f64, &x, (Pointer){from, (row / nrows * count + i) * width + c}, part);
        const Lanes before = sum, *const operands[] = {&before, &x};
        lanes_apply(EXPR_ADD, is_f64, &sum, operands);
      }
      walk_store(w, type, is_f64, (Pointer){to, row * width + c}, &sum, part);
    }
}
