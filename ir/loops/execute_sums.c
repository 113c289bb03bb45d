// Executes reductions: accumulators in registers, totals of runs in f64, partial sums of blocks in memory; and
// scatters.
#include "ir/kernel/scatter.h"
#include "ir/loops/executing.h"

#include <string.h>

static Datum identity_of(const Executing *x, const LoopNode *n, Type type) {
  return number_of(x, type, reductions[node_reduction(x->tree, n)].identity);
}

static void combine(Executing *x, const LoopNode *n, Type type, const Datum *a, const Datum *b, Datum *y) {
  const ExprOp op = reductions[node_reduction(x->tree, n)].combine;
  const Datum *const args[3] = {a, b, NULL};
  if (op) apply(x, op, type, args, y);
  else execute_fail(x, "it is no reduction");
}

// The type of the node's sum: of the kernel, or f64.
static Type type_of(const Executing *x, bool is_f64) {
  return is_f64 && x->type == TYPE_F32 ? TYPE_F64 : x->type;
}

// Sums in registers

static Slot *slot_of(const Executing *x, const LoopNode *n, bool is_total) {
  return is_total ? &x->exprs[n->expr].totals : &x->exprs[n->expr].accumulators;
}

void execute_begin_sum(Executing *x, const LoopNode *n) {
  Slot *s = slot_of(x, n, n->sum != SUM_ACCUMULATOR);
  if (!make_slot(x, s, n->sum == SUM_SCALAR ? 1 : n->count)) return;
  const Datum identity = identity_of(x, n, type_of(x, node_is_f64(x->tree, n)));
  for (int i = 0; i < s->count; i++) set_lanes(s->items[i].lane, identity, 0, LANES);
}

static int element_of(Executing *x, AccumulatorChoice accumulator) {
  const uint64_t row = var_of(x, VAR_ROW), vector = var_of(x, VAR_VECTOR);
  switch (accumulator) {
  case ACCUMULATOR_OF_ROW: return (int)row;
  case ACCUMULATOR_OF_VECTOR: return (int)vector;
  case ACCUMULATOR_OF_BOTH: return (int)(vector * var_of(x, VAR_ROWS) + row);
  case ACCUMULATOR_OF_ELEMENT: return (int)(var_of(x, VAR_LANE) % LANES);
  default: return 0;
  }
}

static bool has_partials(const Executing *x, const LoopNode *n) {
  return !n->flag || x->accesses[n->access].partials.buffer;
}

// Adds the operand, in this type, to the first lanes.
static void update(Executing *x, const LoopNode *n, Type type, Datum *sum) {
  const ExprId operand = node_operand(x->tree, n);
  Datum wide[LANES], updated[LANES];
  if (n->is_fused && x->k->exprs[operand].op == EXPR_MUL) {
    const ExprId *factors = x->k->exprs[operand].args;
    const Datum *const args[] = {value_of(x, factors[0]), value_of(x, factors[1]), sum};
    apply(x, EXPR_FMA, type, args, updated);
  } else {
    convert(x, x->type, type, value_of(x, operand), wide);
    combine(x, n, type, sum, wide, updated);
  }
  const int count = n->is_vector ? lanes_of_node(x, n) : LANES;
  if (!x->has_failed) memcpy(sum, updated, (size_t)count * sizeof *sum);
}

// An element of the block's partial sums in memory, in their type.
static void update_element(Executing *x, const LoopNode *n) {
  Pointer part = x->accesses[n->access].partials;
  Datum sum[LANES];
  const Type type = x->k->accesses[n->access].type;
  part.at += index_of_run(x, n->address.index);
  read_elements(x, n->access, type, part, (Elements){.count = 1}, sum);
  if (x->has_failed) return;
  set_lanes(sum, sum[0], 1, LANES);
  update(x, n, type, sum);
  write_elements(x, n->access, type, part, (Elements){.count = 1}, sum, false);
}

void execute_update(Executing *x, const LoopNode *n) {
  if (!has_partials(x, n)) return;
  switch (n->sum) {
  case SUM_ACCUMULATOR:
    update(x, n, x->type, item_of(x, slot_of(x, n, false), element_of(x, n->accumulator))->lane);
    return;
  case SUM_SCALAR: update(x, n, type_of(x, true), item_of(x, slot_of(x, n, true), 0)->lane); return;
  case SUM_PARTIAL_REGISTER:
    update(x, n, type_of(x, node_is_widened(x->tree, n)), x->accesses[n->access].held.lane);
    return;
  default: update_element(x, n);
  }
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

void execute_end_run(Executing *x, const LoopNode *n) {
  const int first = n->is_row && n->accumulator == ACCUMULATOR_OF_BOTH
                        ? (int)(var_of(x, VAR_VECTOR) * var_of(x, VAR_ROWS))
                    : n->is_row ? 0
                                : element_of(x, n->accumulator);
  const int count = n->is_row ? (int)var_of(x, VAR_ROWS) : 1;
  for (int i = first; i < first + count && !x->has_failed; i++) {
    Datum wide[LANES], *total = item_of(x, slot_of(x, n, true), i)->lane;
    if (node_adds_lanes(x->tree, n)) add_lanes(x, n, x->type, item_of(x, slot_of(x, n, false), i)->lane);
    convert(x, x->type, type_of(x, true), item_of(x, slot_of(x, n, false), i)->lane, wide);
    combine(x, n, type_of(x, true), total, wide, total);
  }
}

static void end_sum_of(Executing *x, const LoopNode *n, int element, Datum *sum) {
  const bool is_total = n->sum != SUM_ACCUMULATOR;
  const Type type = type_of(x, is_total);
  Vector items[LANES];
  const int count = n->is_vector && !is_total ? tree_element_sums(x->tree, n->expr) : 0;
  for (int i = 0; i < count; i++) items[i] = *item_of(x, slot_of(x, n, is_total), i);
  if (!count) items[0] = *item_of(x, slot_of(x, n, is_total), element);
  if (x->has_failed) return;
  add_by_halves(x, n, type, items, count);
  if (!n->is_vector && !is_total) add_lanes(x, n, type, items[0].lane);
  convert(x, type, x->type, items[0].lane, sum);
}

void execute_end_sum(Executing *x, const LoopNode *n) {
  Slot *values = &x->exprs[n->expr].value;
  const int rows = n->is_row ? x->tree->loop->rows : 1;
  if (!make_slot(x, values, rows)) return;
  if (!n->is_row) end_sum_of(x, n, element_of(x, n->accumulator), values->items[0].lane);
  for (int r = 0; n->is_row && r < (int)var_of(x, VAR_ROWS) && !x->has_failed; r++)
    end_sum_of(x, n, r, item_of(x, values, r)->lane);
}

// Partial sums in memory

void execute_combine(Executing *x, const LoopNode *n) {
  const Type type = type_of(x, true);
  const Elements e = {.step = n->is_vector ? index_of_run(x, n->step) : 1,
                      .count = n->is_vector ? lanes_of_node(x, n) : 1};
  Datum part[LANES], *total = item_of(x, slot_of(x, n, true), 0)->lane;
  set_lanes(part, number_of(x, type, 0), 0, LANES);
  read_elements(x, n->access, type, address_of(x, &n->address), e, part);
  if (!n->is_vector) set_lanes(part, part[0], 1, LANES);
  combine(x, n, type, total, part, total);
}

void execute_load_partial(Executing *x, const LoopNode *n) {
  const Type type = type_of(x, node_is_f64(x->tree, n));
  Datum *held = x->accesses[n->access].held.lane;
  set_lanes(held, number_of(x, type, 0), 0, LANES);
  if (has_partials(x, n))
    read_elements(x, n->access, type, address_of(x, &n->address), (Elements){.step = 1, .count = lanes_of_node(x, n)},
                  held);
}

void execute_store_partial(Executing *x, const LoopNode *n) {
  if (has_partials(x, n))
    write_elements(x, n->access, type_of(x, node_is_f64(x->tree, n)), address_of(x, &n->address),
                   (Elements){.step = 1, .count = lanes_of_node(x, n)}, x->accesses[n->access].held.lane, false);
}

void execute_partials(Executing *x, const LoopNode *n) {
  Buffer *b = buffer_of(x, n->access);
  if (!b && !n->flag) execute_fail(x, "it has no memory");
  x->accesses[n->access].partials = (Pointer){b, b ? var_of(x, VAR_BLOCK) * index_of_run(x, n->value) : 0};
}

void execute_init_partial(Executing *x, const LoopNode *n) {
  const Type type = x->k->accesses[n->access].type;
  const Datum identity = identity_of(x, n, type);
  write_elements(x, n->access, type, address_of(x, &n->address), (Elements){.count = 1}, &identity, false);
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
