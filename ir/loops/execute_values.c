// Executes what reads and writes buffers: values, sums, stores and moves.
#include "ir/loops/executing.h"

#include <math.h>
#include <string.h>

// FORM_ROWS: an array with a scalar for each row.
static Address value_address(const Executing *x, ExprId id) {
  return (Address){.buffer = BUFFER_VALUE, .of = id, .item = x->tree->form[id] == FORM_ROWS ? &item_of_row : NULL};
}

static Datum *value_of(Executing *x, ExprId id) {
  const Address value = value_address(x, id);
  return lanes_of(x, &value);
}

// Elements of buffers. A vector of a copy, of spilled vectors or of a mask is whole.

static Elements elements_of(Executing *x, const LoopNode *n, const Address *at) {
  const Space space = buffer_info[at->buffer].space;
  if (!n->is_vector) return (Elements){.step = 1, .count = 1};
  if (space == SPACE_STACK || access_is_mask(&x->k->accesses[node_access(n)]))
    return (Elements){.step = 1, .count = LANES};
  return (Elements){.step = space == SPACE_TENSOR ? index_of_run(x, n->step) : 1, .count = lanes_of_node(x, n)};
}

static void get_elements(Executing *x, const LoopNode *n, const Address *at, Elements elements, Type type, Datum *y) {
  set_lanes(y, number_of(x, type, 0), 0, LANES);
  read_elements(x, node_access(n), type, address_of(x, at), elements, y);
  if (!n->is_vector) set_lanes(y, y[0], 1, LANES);
}

// What is in memory, or in a register, in this type. A scalar stands in all lanes.
static void get(Executing *x, const LoopNode *n, const Address *at, Type type, Datum *y) {
  if (buffer_info[at->buffer].space == SPACE_REGISTERS) memcpy(y, lanes_of(x, at), LANES * sizeof *y);
  else get_elements(x, n, at, elements_of(x, n, at), type, y);
}

static void put(Executing *x, const LoopNode *n, const Address *at, Type type, const Datum *y) {
  const int nlanes = n->is_vector ? lanes_of_node(x, n) : LANES;
  if (x->has_failed) return;
  if (buffer_info[at->buffer].space == SPACE_REGISTERS) memcpy(lanes_of(x, at), y, (size_t)nlanes * sizeof *y);
  else
    write_elements(x, node_access(n), type, address_of(x, at), elements_of(x, n, at), y, expr_is_mask(x->k, n->expr));
}

// Loads

static Datum outside_of(const Executing *x, const Access *a) {
  return number_of(x, x->type, a->outside);
}

// Loads the lanes that are inside of the tensor along a bound that varies from lane to lane. Their index is `within` +
// lane * factor, modulo 2^64, so that one comparison tests both ends.
static void load_within(Executing *x, const LoopNode *n, Pointer p, uint64_t step, Datum *y) {
  const Bound *bound = node_lane_bound(x->tree, n);
  const uint64_t first = index_of_run(x, n->from.within);
  const int nlanes = lanes_of_node(x, n);
  if (!bound) execute_fail(x, "it tests lanes, but no bound varies from lane to lane");
  for (int i = 0; i < nlanes && bound && !x->has_failed; i++) {
    const uint64_t at = first + (uint64_t)i * (uint64_t)bound->factor[loop_lane_axis(x->tree->loop)];
    const Pointer lane = {p.buffer, p.at + (uint64_t)i * step};
    if (at < (uint64_t)bound->extent) read_elements(x, node_access(n), x->type, lane, (Elements){.count = 1}, &y[i]);
    else y[i] = outside_of(x, &x->k->accesses[node_access(n)]);
  }
}

static void load(Executing *x, const LoopNode *n, Datum *y) {
  const Expr *e = &x->k->exprs[n->expr];
  const bool is_whole = node_load(x->tree, n) == LOAD_WHOLE;
  Elements elements = elements_of(x, n, &n->from);
  if (n->test && !index_of_run(x, n->test)) {
    set_lanes(y, outside_of(x, &x->k->accesses[e->access]), 0, LANES);
  } else if (n->from.within) {
    set_lanes(y, number_of(x, x->type, 0), 0, LANES);
    load_within(x, n, address_of(x, &n->from), elements.step, y);
  } else {
    if (e->args[0] && !is_whole) elements.offsets = value_of(x, e->args[0]);
    get_elements(x, n, &n->from, elements, is_whole ? TYPE_F32 : e->is_s64 ? TYPE_S64 : x->type, y);
  }
}

// Values

// The index on the axis: of a vector's lanes, from the node's value on.
static void index_lanes(Executing *x, const LoopNode *n, const Expr *e, Datum *y) {
  const uint64_t first =
      n->is_vector ? index_of_run(x, n->value) : *var_place(x, (Var){VAR_AXIS, (uint32_t)__builtin_ctz(e->axes)});
  for (int i = 0; i < LANES; i++) y[i] = number_of(x, x->type, (double)(first + (n->is_vector ? (uint64_t)i : 0)));
}

static void keep_lanes(Executing *x, const LoopNode *n, const Expr *e, Datum *y) {
  const Datum args[] = {value_of(x, e->args[0])[0], value_of(x, e->args[1])[0], value_of(x, e->args[2])[0]};
  const uint64_t place = address_of(x, &n->from).at, step = n->is_vector ? index_of_run(x, n->step) : 0;
  for (int i = 0; i < LANES; i++)
    y[i] = x->domain->is_kept(x->domain->context, x->type, args, (int64_t)(place + (uint64_t)i * step));
}

static double count_of(Executing *x, const Expr *e) {
  const Index count = {.op = INDEX_NUMBER, .number = (int64_t)e->number, .monomial = e->monomial};
  const double number = (double)index_of_run(x, &count);
  return e->op == EXPR_COUNT ? number : 1 / fmax(number, 1);
}

static void operate(Executing *x, const LoopNode *n, Datum *y) {
  const Expr *e = &x->k->exprs[n->expr];
  const Datum *args[3] = {NULL};
  switch (e->op) {
  case EXPR_INDEX: index_lanes(x, n, e, y); return;
  case EXPR_IS_KEPT: keep_lanes(x, n, e, y); return;
  case EXPR_INTEGER: set_lanes(y, x->domain->integer(x->domain->context, e->integer), 0, LANES); return;
  case EXPR_COUNT:
  case EXPR_RECIPROCAL: set_lanes(y, number_of(x, x->type, count_of(x, e)), 0, LANES); return;
  default: break;
  }
  for (int a = 0; a < expr_info[e->op].narguments; a++) args[a] = value_of(x, e->args[a]);
  apply(x, e->op, x->type, args, y);
  if (!n->is_vector) set_lanes(y, y[0], 1, LANES);
}

void execute_compute(Executing *x, const LoopNode *n) {
  Datum made[LANES];
  if (node_load(x->tree, n)) load(x, n, made);
  else operate(x, n, made);
  if (!x->has_failed) memcpy(value_of(x, n->expr), made, sizeof made);
}

// Sums

// Of the node's sum, or of partial sums in memory.
static Type sum_type(const Executing *x, const LoopNode *n) {
  const Address *sum = node_sum(n);
  if (sum->buffer == BUFFER_PARTIALS && !n->is_vector) return x->k->accesses[sum->of].type;
  return node_is_f64(x->tree, n) && x->type == TYPE_F32 ? TYPE_F64 : x->type;
}

static Datum identity_of(const Executing *x, const LoopNode *n) {
  return number_of(x, sum_type(x, n), reductions[node_reduction(x->tree, n)].identity);
}

static void combine(Executing *x, const LoopNode *n, Type type, const Datum *a, const Datum *b, Datum *y) {
  const ExprOp op = reductions[node_reduction(x->tree, n)].combine;
  const Datum *const args[3] = {a, b, NULL};
  if (op) apply(x, op, type, args, y);
  else execute_fail(x, "it is no reduction");
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

void execute_begin_sum(Executing *x, const LoopNode *n) {
  if (!make_items(x, &n->to, n->count)) return;
  for (int i = 0; i < n->count; i++) set_lanes(storage_of(x, &n->to)->values[i].lane, identity_of(x, n), 0, LANES);
}

// Lanes that hold no elements have the identity, and all lanes if the block has no partial sums.
void execute_hold(Executing *x, const LoopNode *n) {
  if (!make_items(x, &n->to, 1)) return;
  Datum *y = lanes_of(x, &n->to);
  set_lanes(y, identity_of(x, n), 0, LANES);
  if (is_on(x, n)) get(x, n, &n->from, sum_type(x, n), y);
}

// Adds what is of this type to the sum.
static void add_to_sum(Executing *x, const LoopNode *n, Type from, Datum *addend) {
  const Type type = sum_type(x, n);
  Datum sum[LANES];
  get(x, n, &n->to, type, sum);
  convert(x, from, type, addend, addend);
  if (x->has_failed) return;
  combine(x, n, type, sum, addend, sum);
  put(x, n, &n->to, type, sum);
}

void execute_add(Executing *x, const LoopNode *n) {
  const Expr *e = &x->k->exprs[n->expr];
  Datum y[LANES];
  if (n->is_fused && e->op == EXPR_MUL) {
    Datum *sum = lanes_of(x, &n->to);
    const Datum *const args[] = {value_of(x, e->args[0]), value_of(x, e->args[1]), sum};
    apply(x, EXPR_FMA, x->type, args, y);
    put(x, n, &n->to, x->type, y);
  } else {
    memcpy(y, value_of(x, n->expr), sizeof y);
    add_to_sum(x, n, x->type, y);
  }
}

// Lane by lane, or the sum of all lanes.
void execute_end_run(Executing *x, const LoopNode *n) {
  Datum y[LANES];
  get(x, n, &n->from, x->type, y);
  if (node_adds_lanes(x->tree, n)) add_lanes(x, n, x->type, y);
  add_to_sum(x, n, x->type, y);
}

void execute_combine(Executing *x, const LoopNode *n) {
  Datum y[LANES];
  get(x, n, &n->from, sum_type(x, n), y);
  add_to_sum(x, n, sum_type(x, n), y);
}

// In the item of the row, or the only one.
static void set_sum(Executing *x, const LoopNode *n, Datum *sum) {
  const Address value = {.buffer = BUFFER_VALUE, .of = n->expr};
  const int64_t nitems = node_is_of_rows(x->tree, n) ? x->tree->loop->rows : 1;
  if (make_items(x, &value, nitems)) convert(x, sum_type(x, n), x->type, sum, value_of(x, n->expr));
}

// Of as many accumulators as elements of a row have, or over the lanes of one.
void execute_end_sum(Executing *x, const LoopNode *n) {
  const Storage *s = storage_of(x, &n->from);
  const int all = n->is_vector ? tree_element_sums(x->tree, n->expr) : 0, count = all < s->count ? all : s->count;
  Vector items[LANES];
  get(x, n, &n->from, x->type, items[0].lane);
  for (int i = 0; i < count; i++) items[i] = s->values[i];
  if (x->has_failed) return;
  add_by_halves(x, n, x->type, items, count);
  if (!n->is_vector) add_lanes(x, n, x->type, items[0].lane);
  set_sum(x, n, items[0].lane);
}

void execute_end_total(Executing *x, const LoopNode *n) {
  Datum y[LANES];
  get(x, n, &n->from, sum_type(x, n), y);
  if (!x->has_failed) set_sum(x, n, y);
}

// Stores

enum { LINE = 64 };

static bool is_at_line(const Pointer *p, uint64_t nbytes) {
  return (p->buffer->address + p->at * type_nbytes(p->buffer->type)) % nbytes == 0;
}

// Fails if a store that bypasses the caches is not aligned.
static bool is_streamed(Executing *x, const LoopNode *n, const Pointer *to) {
  if (!n->is_streamed || !to->buffer) return false;
  const uint64_t nbytes = LANES * type_nbytes(to->buffer->type);
  if (!is_at_line(to, nbytes < LINE ? nbytes : LINE))
    execute_fail(x, "streams to element %llu of %s, which is not aligned", (unsigned long long)to->at,
                 to->buffer->name);
  return true;
}

void execute_store(Executing *x, const LoopNode *n) {
  const bool is_array = buffer_info[n->to.buffer].space == SPACE_STACK;
  const Pointer p = address_of(x, &n->to);
  Datum y[LANES];
  memcpy(y, value_of(x, n->expr), sizeof y);
  if (is_streamed(x, n, &p)) {
    const Elements e = elements_of(x, n, &n->to);
    if (e.count < LANES || e.step != 1) execute_fail(x, "streams less than a whole vector");
  }
  put(x, n, &n->to, is_array ? TYPE_F32 : x->type, y);
}

void execute_clear(Executing *x, const LoopNode *n) {
  Datum y[LANES];
  set_lanes(y, identity_of(x, n), 0, LANES);
  put(x, n, &n->to, sum_type(x, n), y);
}

void execute_store_held(Executing *x, const LoopNode *n) {
  Datum y[LANES];
  get(x, n, &n->from, sum_type(x, n), y);
  put(x, n, &n->to, sum_type(x, n), y);
}

// A vector of a copy, or of a panel, has neighbouring elements; in the tensor these are `step` apart. One is moved, or
// that of the row, or one for each of `count` columns. Streamed rows are dense.
void execute_move(Executing *x, const LoopNode *n) {
  enum { WIDEST = 64 };
  const bool is_store = n->from.buffer == BUFFER_COPY, is_of_rows = node_is_of_rows(x->tree, n);
  Pointer to = address_of(x, &n->to), from = address_of(x, &n->from);
  Pointer *copy = is_store ? &from : &to, *tensor = is_store ? &to : &from;
  const bool is_stream = is_streamed(x, n, &to);
  const uint64_t step = is_stream ? (uint64_t)n->count : n->count || is_of_rows ? index_of_run(x, n->step) : 1;
  const Elements whole = {.step = 1, .count = LANES}, apart = {.step = step, .count = LANES};
  if (is_stream && n->count > WIDEST) execute_fail(x, "streams rows of %lld", (long long)n->count);
  if (is_of_rows) copy->at += var_of(x, VAR_ROW) * LANES;
  for (int64_t i = 0; (i < n->count || !i) && !x->has_failed; i++) {
    Datum y[LANES];
    read_elements(x, n->from.of, TYPE_F32, from, is_store ? whole : apart, y);
    if (!x->has_failed) write_elements(x, n->to.of, TYPE_F32, to, is_store ? apart : whole, y, false);
    copy->at += LANES;
    tensor->at++;
  }
}
