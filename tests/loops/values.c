// Executes NODE_LET, stores, spills and transposed copies.
#include "tests/loops/walk.h"

#include <string.h>

static CellType scalar_cell(const Walk *w) {
  return w->k->is_f64 ? CELL_F64 : CELL_F32;
}

CellType vector_cell(bool is_f64) {
  return is_f64 ? CELL_DVEC : CELL_VEC;
}

static CellType mask_cell(const Walk *w) {
  return w->k->is_f64 ? CELL_DMASK : CELL_MASK;
}

static double lane_0(bool is_f64, const Lanes *x) {
  return is_f64 ? x->f64[0] : (double)x->f32[0];
}

// Operands

static int element_of(Walk *w, ExprId id) { // FORM_ROWS: an array with a scalar for each row
  return w->tree->form[id] == FORM_ROWS ? (int)walk_var(w, VAR_ROW) : PLAIN;
}

double walk_scalar(Walk *w, ExprId id) {
  const Expr *e = &w->k->exprs[id];
  double bits;
  memcpy(&bits, &e->integer, sizeof bits);
  if (w->tree->form[id] == FORM_NUMBER)
    return w->k->is_s64 ? bits : w->k->is_f64 ? e->number : (double)(float)e->number;
  const Item *i = walk_read(w, OF_VALUE, id, element_of(w, id), scalar_cell(w));
  return lane_0(w->k->is_f64, &i->lanes);
}

const Lanes *walk_vector(Walk *w, ExprId id, Lanes *buffer) {
  if (w->tree->form[id] == FORM_VECTOR) return &walk_read(w, OF_VALUE, id, PLAIN, vector_cell(w->k->is_f64))->lanes;
  lanes_set(walk_arithmetic(w), buffer, walk_scalar(w, id));
  return buffer;
}

static int64_t s64_of(Walk *w, ExprId id) {
  return (int64_t)walk_read(w, OF_VALUE, id, element_of(w, id), CELL_S64)->number;
}

// A scalar mask, or whether a number is not 0.
static bool is_true(Walk *w, ExprId id) {
  if (!expr_info[w->k->exprs[id].op].is_mask) return walk_scalar(w, id) != 0;
  return walk_read(w, OF_VALUE, id, element_of(w, id), CELL_TRUTH)->number;
}

// Loads

// A computed offset: in s64 walk_scalar gives the bits of the integer.
static int64_t scalar_offset(Walk *w, ExprId offset) {
  const double number = walk_scalar(w, offset);
  int64_t integer = 0;
  if (!w->k->is_s64) return (int64_t)number;
  memcpy(&integer, &number, sizeof integer);
  return integer;
}

// Offsets of a load with operand (EXPR_LOAD's args[0]): in elements, added to the lanes' indices.
static void find_offsets(Walk *w, const LoopNode *n, ExprId offset, int64_t *offsets, int count) {
  Lanes buffer;
  if (n->load == LOAD_GATHERED) {
    const Lanes *lanes = walk_vector(w, offset, &buffer);
    if (w->k->is_s64) memcpy(offsets, lanes->m64, w->has_failed ? 0 : (size_t)count * sizeof *offsets);
    else lanes_to_offsets(w->k->is_f64, offsets, lanes, w->has_failed ? 0 : count);
    return;
  }
  const int64_t all = scalar_offset(w, offset);
  for (int i = 0; i < count; i++) offsets[i] = all;
}

// Spilled vectors are loaded whole, even where only the first VAR_LANES lanes hold elements. In a peeled sweep vectors
// begin at other elements than in the sweep that spilled them, so that the last one may reach beyond what was spilled.
static int npadding_lanes(Walk *w) {
  const Var nlanes = {VAR_LANES, 0};
  return walk_has_var(w, nlanes) ? LANES - (int)walk_get_var(w, nlanes) : 0;
}

static bool is_inside(Walk *w, const LoopNode *n) {
  return !n->inside || walk_index(w, n->inside);
}

// The result of a load outside of the tensor; in s64, the bits of the integer.
static double outside_of(const Walk *w, const Access *a) {
  double outside = a->outside;
  const int64_t integer = type_integer(outside);
  if (w->k->is_s64) memcpy(&outside, &integer, sizeof outside);
  return outside;
}

// Loads the lanes that are inside of the tensor along a bound that varies from lane to lane.
static void load_within(Walk *w, const LoopNode *n, Pointer p, uint64_t step, Lanes *y) {
  const Access *a = &w->k->accesses[n->access];
  const int nlanes = is_inside(w, n) ? walk_nlanes(w, n) : 0;
  int count;
  const Bound *bound = node_lane_bound(w->tree, n);
  if (!bound) {
    walk_fail(w, "tests lanes, but no bound varies from lane to lane");
    return;
  }
  const int64_t factor = bound->factor[loop_lane_axis(w->tree->loop)];
  const int first = lanes_within(walk_index(w, n->within), factor, bound->extent, nlanes, &count);
  p.at += (uint64_t)first * step;
  if (count) walk_load(w, a->type, walk_arithmetic(w), y, p, (Elements){.step = step, .count = count});
  else lanes_set(walk_arithmetic(w), y, outside_of(w, a));
  if (count) lanes_place(w->k->is_f64, y, first, count, outside_of(w, a));
}

static void load_vector(Walk *w, const LoopNode *n, Lanes *y) {
  const Expr *e = &w->k->exprs[n->expr];
  const Access *a = &w->k->accesses[e->access];
  const Pointer p = walk_address(w, &n->address);
  int64_t offsets[LANES] = {0};
  if (n->load == LOAD_COPIED || n->load == LOAD_SPILLED) {
    walk_load(w, TYPE_F32, IN_F32, y, p, (Elements){.step = 1, .count = LANES, .npadding = npadding_lanes(w)});
  } else if (n->within) {
    load_within(w, n, p, n->load == LOAD_DENSE ? 1 : walk_index(w, n->step), y);
  } else if (!is_inside(w, n)) {
    lanes_set(walk_arithmetic(w), y, outside_of(w, a));
  } else if (access_is_mask(a)) {
    if (n->load != LOAD_DENSE) walk_fail(w, "loads %s, a mask, lane by lane", walk_access_name(w, e->access));
    walk_load_mask(w, w->k->is_f64, y, p);
  } else if (n->load == LOAD_BROADCAST) {
    walk_load(w, a->type, walk_arithmetic(w), y, p, (Elements){.count = 1});
    lanes_set(walk_arithmetic(w), y, lane_0(w->k->is_f64, y));
  } else {
    const int count = walk_nlanes(w, n);
    const uint64_t step = n->load == LOAD_DENSE ? 1 : walk_index(w, n->step);
    if (e->args[0]) find_offsets(w, n, e->args[0], offsets, count);
    walk_load(w, a->type, walk_arithmetic(w), y, p,
              (Elements){.step = step, .offsets = e->args[0] ? offsets : NULL, .count = count});
  }
}

static void load_scalar(Walk *w, const LoopNode *n, Lanes *y) {
  const Expr *e = &w->k->exprs[n->expr];
  const Access *a = &w->k->accesses[e->access];
  if (!is_inside(w, n)) {
    lanes_set(walk_arithmetic(w), y, outside_of(w, a));
    return;
  }
  Pointer p = walk_address(w, &n->address);
  if (access_is_mask(a)) walk_fail(w, "loads %s, a mask, as a number", walk_access_name(w, e->access));
  if (e->args[0]) p.at += (uint64_t)scalar_offset(w, e->args[0]);
  walk_load(w, a->type, walk_arithmetic(w), y, p, (Elements){.count = 1});
}

// Values

static Dropping dropping_of(Walk *w, const LoopNode *n) {
  const Expr *e = &w->k->exprs[n->expr];
  return (Dropping){s64_of(w, e->args[0]), s64_of(w, e->args[1]), walk_scalar(w, e->args[2]),
                    walk_address(w, &n->address).at};
}

static void apply(Walk *w, ExprOp op, Lanes *y, const Lanes *const *x) {
  if (!w->has_failed && !lanes_apply(op, walk_arithmetic(w), y, x))
    walk_fail(w, "nothing computes %s", expr_info[op].name);
}

static void apply_to_vectors(Walk *w, const Expr *e, Lanes *y) {
  Lanes buffers[3];
  const Lanes *x[3] = {NULL};
  const bool is_choice = e->op == EXPR_SELECT;
  if (is_choice && w->tree->form[e->args[0]] != FORM_VECTOR) { // one condition for all lanes
    *y = *walk_vector(w, e->args[is_true(w, e->args[0]) ? 1 : 2], &buffers[0]);
    return;
  }
  if (is_choice) x[0] = &walk_read(w, OF_VALUE, e->args[0], PLAIN, mask_cell(w))->lanes;
  for (int a = is_choice; a < expr_info[e->op].narguments; a++) x[a] = walk_vector(w, e->args[a], &buffers[a]);
  apply(w, e->op, y, x);
}

// A scalar is lane 0 of the vector function's result.
static void apply_to_scalars(Walk *w, const Expr *e, Lanes *y) {
  Lanes buffers[3];
  const Lanes *x[3] = {&buffers[0], &buffers[1], &buffers[2]};
  if (e->op == EXPR_SELECT) {
    lanes_set(walk_arithmetic(w), y, walk_scalar(w, e->args[is_true(w, e->args[0]) ? 1 : 2]));
    return;
  }
  for (int a = 0; a < expr_info[e->op].narguments; a++)
    lanes_set(walk_arithmetic(w), &buffers[a], walk_scalar(w, e->args[a]));
  apply(w, e->op, y, x);
}

// EXPR_COUNT and EXPR_RECIPROCAL, computed in f64; the caller rounds the result to the kernel's type, as it does
// constants. In s64, the bits of the integer.
static double count_of(Walk *w, const Expr *e) {
  const uint64_t count = walk_number(w, (int64_t)e->number, e->monomial);
  double bits;
  memcpy(&bits, &count, sizeof bits);
  if (w->k->is_s64) return bits;
  return e->op == EXPR_COUNT ? (double)count : 1 / (double)(count > 0 ? count : 1);
}

static void make_vector(Walk *w, const LoopNode *n, Lanes *y) {
  const Expr *e = &w->k->exprs[n->expr];
  if (n->load) {
    load_vector(w, n, y);
  } else if (e->op == EXPR_INDEX) {
    lanes_index(walk_arithmetic(w), y, walk_index(w, n->value));
  } else if (e->op == EXPR_IS_KEPT) {
    const Dropping d = dropping_of(w, n);
    lanes_is_kept(w->k->is_f64, y, &d, (int64_t)walk_index(w, n->step));
  } else {
    apply_to_vectors(w, e, y);
  }
}

static void make_scalar(Walk *w, const LoopNode *n, Item *y) {
  const Expr *e = &w->k->exprs[n->expr];
  if (e->op == EXPR_INTEGER) {
    y->number = (uint64_t)e->integer;
  } else if (e->op == EXPR_LOAD && e->is_s64) {
    y->number = (uint64_t)walk_load_s64(w, walk_address(w, &n->address));
  } else if (e->op == EXPR_LOAD) {
    load_scalar(w, n, &y->lanes);
  } else if (e->op == EXPR_INDEX) {
    const uint64_t index = walk_get_var(w, (Var){VAR_AXIS, (uint32_t)__builtin_ctz(e->axes)});
    lanes_index(walk_arithmetic(w), &y->lanes, index);
  } else if (e->op == EXPR_IS_KEPT) {
    const Dropping d = dropping_of(w, n);
    y->number = element_is_kept(&d);
  } else if (e->op == EXPR_COUNT || e->op == EXPR_RECIPROCAL) {
    lanes_set(walk_arithmetic(w), &y->lanes, count_of(w, e));
  } else {
    apply_to_scalars(w, e, &y->lanes);
    if (expr_info[e->op].is_mask) y->number = w->k->is_f64 ? y->lanes.m64[0] != 0 : y->lanes.m32[0] != 0;
  }
}

CellType walk_scalar_type(const Walk *w, ExprId id) {
  const Expr *e = &w->k->exprs[id];
  return e->is_s64 ? CELL_S64 : expr_info[e->op].is_mask ? CELL_TRUTH : scalar_cell(w);
}

// Declares the variable after its value is computed, so that the value cannot depend on it.
void walk_let(Walk *w, const LoopNode *n) {
  Item made = {.number = 0};
  if (n->is_vector) make_vector(w, n, &made.lanes);
  else make_scalar(w, n, &made);
  const bool is_mask = expr_is_mask(w->k, n->expr) && n->load != LOAD_SPILLED;
  const CellType type = !n->is_vector                                       ? walk_scalar_type(w, n->expr)
                        : is_mask                                           ? mask_cell(w)
                        : n->load == LOAD_SPILLED || n->load == LOAD_COPIED ? CELL_VEC
                                                                            : vector_cell(w->k->is_f64);
  Item *i = n->is_row ? walk_write(w, OF_VALUE, n->expr, (int)walk_var(w, VAR_ROW), type)
                      : walk_declare(w, OF_VALUE, n->expr, type);
  *i = made;
}

// Stores

// Whether the store bypasses the caches. It fails if the address is not aligned.
static bool is_streamed(Walk *w, const LoopNode *n, const Pointer *to) {
  enum { LINE = 64 };
  if (!n->is_streamed || !to->memory) return false;
  const size_t whole = LANES * type_nbytes(to->memory->type), nbytes = whole < LINE ? whole : LINE;
  if (walk_machine_address(to) % nbytes)
    walk_fail(w, "streams to element %llu of %s, which is not aligned", (unsigned long long)to->at, to->memory->name);
  return true;
}

static void store_scalar(Walk *w, const LoopNode *n) {
  const Access *a = &w->k->accesses[n->address.access];
  const Pointer p = walk_address(w, &n->address);
  const CellType type = walk_scalar_type(w, n->expr);
  Lanes x;
  if (type == CELL_S64) walk_fail(w, "stores an s64");
  const double number = type == CELL_TRUTH ? is_true(w, n->expr) : walk_scalar(w, n->expr);
  // Compared with 0 before it is narrowed to f32, as in C: a small f64 would become 0.
  lanes_set(walk_arithmetic(w), &x, a->type == TYPE_BOOLEAN ? number != 0 : number);
  walk_store(w, a->type, walk_arithmetic(w), p, &x, (Elements){.count = 1});
}

static void store_vector(Walk *w, const LoopNode *n) {
  const AccessId id = n->address.access;
  const Access *a = &w->k->accesses[id];
  const Pointer p = walk_address(w, &n->address);
  Lanes buffer;
  if (n->address.base == BASE_ROWS) {
    if (w->k->is_f64) walk_fail(w, "copies rows in a kernel of f64");
    walk_store(w, TYPE_F32, IN_F32, p, walk_vector(w, n->expr, &buffer), (Elements){.step = 1, .count = LANES});
    return;
  }
  if (access_is_mask(a)) {
    walk_store_mask(w, w->k->is_f64, p, &walk_read(w, OF_VALUE, n->expr, PLAIN, mask_cell(w))->lanes);
    return;
  }
  const int count = walk_nlanes(w, n);
  const uint64_t step = walk_index(w, n->step);
  if (is_streamed(w, n, &p) && (n->has_fewer_lanes || step != 1)) walk_fail(w, "streams less than a whole vector");
  walk_store(w, a->type, walk_arithmetic(w), p, walk_vector(w, n->expr, &buffer),
             (Elements){.step = step, .count = count});
}

void walk_store_node(Walk *w, const LoopNode *n) {
  if (n->is_vector) store_vector(w, n);
  else store_scalar(w, n);
}

void walk_spill(Walk *w, const LoopNode *n) {
  const Lanes *x = &walk_read(w, OF_VALUE, n->expr, PLAIN, CELL_VEC)->lanes;
  walk_store(w, TYPE_F32, IN_F32, walk_address(w, &n->address), x, (Elements){.step = 1, .count = LANES});
}

// Rows in lanes: a column of the tensor is a vector of the step's transposed copy.

static bool can_be_transposed(Walk *w, AccessId id) {
  const Type type = w->k->accesses[id].type;
  if (type != TYPE_F32 && type != TYPE_BF16 && type != TYPE_F16) walk_fail(w, "transposes %s", type_name(type));
  return !w->has_failed;
}

static void move_columns(Walk *w, const LoopNode *n, Pointer rows, uint64_t step, bool is_store) {
  const Type type = w->k->accesses[n->access].type;
  Pointer copy = walk_read(w, OF_ROWS, n->access, PLAIN, CELL_POINTER)->pointer;
  if (!can_be_transposed(w, n->access)) return;
  for (int64_t c = 0; c < n->nelems && !w->has_failed; c++, rows.at++, copy.at += LANES) {
    const Elements column = {.step = step, .count = LANES}, vector = {.step = 1, .count = LANES};
    Lanes x;
    walk_load(w, is_store ? TYPE_F32 : type, IN_F32, &x, is_store ? copy : rows, is_store ? vector : column);
    walk_store(w, is_store ? type : TYPE_F32, IN_F32, is_store ? rows : copy, &x, is_store ? column : vector);
  }
}

static Pointer rows_of(Walk *w, const LoopNode *n) {
  return walk_read(w, OF_POINTER, n->access, PLAIN, CELL_POINTER)->pointer;
}

void walk_load_rows(Walk *w, const LoopNode *n) {
  move_columns(w, n, rows_of(w, n), walk_index(w, n->step), false);
}

// Streamed rows are dense: the stride is the width.
void walk_store_rows(Walk *w, const LoopNode *n) {
  enum { WIDEST = 64 };
  const Pointer rows = rows_of(w, n);
  const bool is_stream = is_streamed(w, n, &rows);
  if (is_stream && n->nelems > WIDEST) walk_fail(w, "streams rows of %lld", (long long)n->nelems);
  move_columns(w, n, rows, is_stream ? (uint64_t)n->nelems : walk_index(w, n->step), true);
}

// As walk_load_rows, to a panel.
void walk_copy_rows(Walk *w, const LoopNode *n) {
  const Type type = w->k->accesses[n->access].type;
  Pointer rows = rows_of(w, n), panel = walk_address(w, &n->address);
  const uint64_t step = walk_index(w, n->step);
  if (!can_be_transposed(w, n->access)) return;
  for (int64_t c = 0; c < n->nelems && !w->has_failed; c++, rows.at++, panel.at += LANES) {
    Lanes x;
    walk_load(w, type, IN_F32, &x, rows, (Elements){.step = step, .count = LANES});
    walk_store(w, TYPE_F32, IN_F32, panel, &x, (Elements){.step = 1, .count = LANES});
  }
}

void walk_load_column(Walk *w, const LoopNode *n) {
  const Elements vector = {.step = 1, .count = LANES};
  Pointer copy = walk_read(w, OF_ROWS, n->access, PLAIN, CELL_POINTER)->pointer;
  Lanes x;
  copy.at += walk_index(w, n->value);
  walk_load(w, w->k->accesses[n->access].type, IN_F32, &x, walk_address(w, &n->address), vector);
  walk_store(w, TYPE_F32, IN_F32, copy, &x, vector);
}

// Vectors of all rows of a step

static void move_rows(Walk *w, const LoopNode *n, bool is_store) {
  const uint64_t step = walk_index(w, n->step), offset = walk_index(w, n->address.index);
  Pointer vectors = walk_read(w, OF_ROWS, n->access, PLAIN, CELL_POINTER)->pointer;
  const int rows = (int)walk_var(w, VAR_ROWS);
  for (int r = 0; r < rows && !w->has_failed; r++, vectors.at += LANES) {
    const Elements strided = {.step = step, .count = LANES}, dense = {.step = 1, .count = LANES};
    Pointer row = walk_read(w, OF_POINTER, n->access, r, CELL_POINTER)->pointer;
    Lanes x;
    row.at += offset;
    walk_load(w, TYPE_F32, IN_F32, &x, is_store ? vectors : row, is_store ? dense : strided);
    walk_store(w, TYPE_F32, IN_F32, is_store ? row : vectors, &x, is_store ? strided : dense);
  }
}

void walk_gather_rows(Walk *w, const LoopNode *n) {
  move_rows(w, n, false);
}

void walk_scatter_rows(Walk *w, const LoopNode *n) {
  const bool is_wanted = !n->flag || walk_read(w, OF_WANTED, n->access, PLAIN, CELL_TRUTH)->number;
  if (is_wanted) move_rows(w, n, true);
}
