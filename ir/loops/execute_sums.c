// Executes reductions: accumulators in registers, totals of runs in f64, partial sums of blocks in memory; and
// scatters.
#include "ir/kernel/scatter.h"
#include "ir/loops/executing.h"

#include <string.h>

Datum identity_of(const Executing *x, const LoopNode *n, Type type) {
  return number_of(x, type, reductions[node_reduction(x->tree, n)].identity);
}

static void combine(Executing *x, const LoopNode *n, Type type, const Datum *a, const Datum *b, Datum *y) {
  const ExprOp op = reductions[node_reduction(x->tree, n)].combine;
  const Datum *const args[3] = {a, b, NULL};
  if (op) apply(x, op, type, args, y);
  else execute_fail(x, "it is no reduction");
}

Type sum_type(const Executing *x, const LoopNode *n) {
  const Address *sum = node_sum(n);
  if (sum->buffer == BUFFER_PARTIALS && !n->is_vector) return x->k->accesses[sum->of].type;
  return node_is_f64(x->tree, n) && x->type == TYPE_F32 ? TYPE_F64 : x->type;
}

// Accumulators and totals begin with the identity. A vector of partial sums is loaded, if the block has them.
void execute_begin_sum(Executing *x, const LoopNode *n) {
  const bool is_held = n->to.buffer == BUFFER_HELD;
  const Type type = sum_type(x, n);
  if (!make_items(x, &n->to, is_held ? 1 : n->count)) return;
  Storage *s = storage_of(x, &n->to);
  const Datum identity = identity_of(x, n, type);
  for (int i = 0; i < s->count; i++) set_lanes(s->values[i].lane, identity, 0, LANES);
  if (is_held && is_on(x, n))
    read_elements(x, node_access(n), type, address_of(x, &n->from), (Elements){.step = 1, .count = lanes_of_node(x, n)},
                  s->values[0].lane);
}

// Adds the first half of `count` vectors, or lanes, to the second, and so on: item i takes item i + 8, then i + 4 …
static void add_by_halves(Executing *x, const LoopNode *n, Type type, Vector *items, int count) {
  for (int half = LANES / 2; half; half /= 2)
    for (int i = 0; i < half && i + half < count; i++)
      combine(x, n, type, items[i].lane, items[i + half].lane, items[i].lane);
}

// The reduction over lanes: half of them at once.
static void add_lanes(Executing *x, const LoopNode *n, Type type, Datum *lanes) {
  for (int half = LANES / 2; half; half /= 2) {
    Datum others[LANES];
    for (int i = 0; i < LANES; i++) others[i] = lanes[(i + half) % LANES];
    combine(x, n, type, lanes, others, lanes);
  }
  set_lanes(lanes, lanes[0], 1, LANES);
}

// Adds the operand, in this type, to the first lanes.
static void add_operand(Executing *x, const LoopNode *n, Type type, Datum *sum) {
  Datum wide[LANES], updated[LANES];
  if (n->is_fused && x->k->exprs[n->expr].op == EXPR_MUL) {
    const ExprId *factors = x->k->exprs[n->expr].args;
    const Datum *const args[] = {value_of(x, factors[0]), value_of(x, factors[1]), sum};
    apply(x, EXPR_FMA, type, args, updated);
  } else {
    convert(x, x->type, type, value_of(x, n->expr), wide);
    combine(x, n, type, sum, wide, updated);
  }
  const int count = n->is_vector ? lanes_of_node(x, n) : LANES;
  if (!x->has_failed) memcpy(sum, updated, (size_t)count * sizeof *sum);
}

// Ends a run: adds accumulators to a total, lane by lane or all lanes.
static void add_run(Executing *x, const LoopNode *n) {
  Datum wide[LANES], *total = lanes_of(x, &n->to), *run = lanes_of(x, &n->from);
  if (x->has_failed) return;
  if (node_adds_lanes(x->tree, n)) add_lanes(x, n, x->type, run);
  convert(x, x->type, sum_type(x, n), run, wide);
  combine(x, n, sum_type(x, n), total, wide, total);
}

// Adds a block's partial sums, in memory, to a total.
static void add_partials(Executing *x, const LoopNode *n) {
  const Type type = sum_type(x, n);
  const Elements e = {.step = n->is_vector ? index_of_run(x, n->step) : 1,
                      .count = n->is_vector ? lanes_of_node(x, n) : 1};
  Datum part[LANES], *total = lanes_of(x, &n->to);
  set_lanes(part, number_of(x, type, 0), 0, LANES);
  read_elements(x, node_access(n), type, address_of(x, &n->from), e, part);
  if (!n->is_vector) set_lanes(part, part[0], 1, LANES);
  combine(x, n, type, total, part, total);
}

// Adds to an element of the block's partial sums in memory.
static void add_to_element(Executing *x, const LoopNode *n) {
  const Pointer part = address_of(x, &n->to);
  Datum sum[LANES];
  const Type type = sum_type(x, n);
  read_elements(x, node_access(n), type, part, (Elements){.count = 1}, sum);
  if (x->has_failed) return;
  set_lanes(sum, sum[0], 1, LANES);
  add_operand(x, n, type, sum);
  write_elements(x, node_access(n), type, part, (Elements){.count = 1}, sum, false);
}

void execute_update(Executing *x, const LoopNode *n) {
  if (node_ends_run(n)) each_row(x, n, add_run);
  else if (n->from.buffer) add_partials(x, n);
  else if (n->to.buffer == BUFFER_PARTIALS) add_to_element(x, n);
  else add_operand(x, n, sum_type(x, n), lanes_of(x, &n->to));
}

// The sum's total, or the reduction of accumulators: of as many as elements of a row have, or over the lanes of one.
static void end_sum(Executing *x, const LoopNode *n) {
  const bool is_total = n->from.buffer == BUFFER_TOTAL;
  const Type type = sum_type(x, n);
  const Address value = {.buffer = BUFFER_VALUE, .of = n->expr, .item = n->is_row ? ITEM_OF_ROW : ITEM_ONLY};
  Vector items[LANES];
  const int all = n->is_vector && !is_total ? tree_element_sums(x->tree, n->expr) : 0;
  const int count = all < storage_of(x, &n->from)->count ? all : storage_of(x, &n->from)->count;
  memcpy(&items[0], lanes_of(x, &n->from), sizeof items[0]);
  for (int i = 0; i < count; i++) items[i] = storage_of(x, &n->from)->values[i];
  if (x->has_failed) return;
  add_by_halves(x, n, type, items, count);
  if (!n->is_vector && !is_total) add_lanes(x, n, type, items[0].lane);
  convert(x, type, x->type, items[0].lane, lanes_of(x, &value));
}

void execute_end_sum(Executing *x, const LoopNode *n) {
  const Address value = {.buffer = BUFFER_VALUE, .of = n->expr};
  if (make_items(x, &value, n->is_row ? x->tree->loop->rows : 1)) each_row(x, n, end_sum);
}

// Scatters

// Whether index i refers to the row: place = index < 0 ? index + number of rows : index; place == row.
static void is_of_row(Executing *x, const Scatter *s, uint64_t i, const Datum *nrows, const Datum *row, Datum *y) {
  Datum index[LANES], zero[LANES], is_negative[LANES], sum[LANES];
  read_elements(x, s->indices, x->type, (Pointer){buffer_of(x, s->indices), i}, (Elements){.count = 1}, index);
  if (x->has_failed) return;
  set_lanes(index, index[0], 1, LANES);
  set_lanes(zero, number_of(x, x->type, 0), 0, LANES);
  apply(x, EXPR_GT, x->type, (const Datum *const[]){zero, index, NULL}, is_negative);
  apply(x, EXPR_ADD, x->type, (const Datum *const[]){index, nrows, NULL}, sum);
  apply(x, EXPR_SELECT, x->type, (const Datum *const[]){is_negative, sum, index}, sum);
  apply(x, EXPR_EQ, x->type, (const Datum *const[]){sum, row, NULL}, y);
}

static uint64_t extent_of(Executing *x, int axis) {
  const Axis *a = &x->k->axes[axis];
  return index_of_run(x, &(Index){.op = INDEX_NUMBER, .number = a->extent, .monomial = a->monomial});
}

// As the kernel says: each row adds all operands whose index refers to it, and 0 for the others.
void execute_scatter(Executing *x, const LoopNode *n) {
  Scatter s;
  (void)n;
  if (!kernel_find_scatter(x->k, &s)) {
    execute_fail(x, "the kernel is no scatter");
    return;
  }
  const uint64_t nrows = extent_of(x, s.rows), width = extent_of(x, s.columns), count = extent_of(x, s.summed);
  const uint64_t end = var_of(x, VAR_END);
  Datum all[LANES], own[LANES], zero[LANES];
  set_lanes(all, number_of(x, x->type, (double)nrows), 0, LANES);
  set_lanes(zero, number_of(x, x->type, 0), 0, LANES);
  for (uint64_t row = var_of(x, VAR_BEGIN); row < end && !x->has_failed; row++)
    for (uint64_t c = 0; c < width && !x->has_failed; c += LANES) {
      const Elements part = {.step = 1, .count = width - c < LANES ? (int)(width - c) : LANES};
      Datum sum[LANES], from[LANES], is_own[LANES];
      memcpy(sum, zero, sizeof sum);
      memcpy(from, zero, sizeof from);
      set_lanes(own, number_of(x, x->type, (double)(row % nrows)), 0, LANES);
      for (uint64_t i = 0; i < count && !x->has_failed; i++) {
        is_of_row(x, &s, i, all, own, is_own);
        read_elements(x, s.from, x->type, (Pointer){buffer_of(x, s.from), (row / nrows * count + i) * width + c}, part,
                      from);
        apply(x, EXPR_SELECT, x->type, (const Datum *const[]){is_own, from, zero}, from);
        apply(x, EXPR_ADD, x->type, (const Datum *const[]){sum, from, NULL}, sum);
      }
      write_elements(x, s.to, x->type, (Pointer){buffer_of(x, s.to), row * width + c}, part, sum, false);
    }
}
