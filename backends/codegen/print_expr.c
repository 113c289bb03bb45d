// The expressions of a loop, and the memory that they read and write, as C.
//
// A scalar expression is a variable of its own, or with several rows at once an element of an array [r]; a vector
// expression is a variable of the innermost loop's body. Constants are written where they are used.
#include "backends/codegen/emit.h"
#include "backends/codegen/loop_printer.h"
#include "ir/escape.h"
#include "ir/open.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void print_indent(LoopPrinter *l) {
  text_format(l->out, "%*s", 2 * l->indent, "");
}

void print_line(LoopPrinter *l, const char *format, ...) {
  char buffer[512], *text = buffer;
  va_list args;
  va_start(args, format);
  int length = vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  if (length >= (int)sizeof buffer) { // names may be long
    text = arena_alloc(l->p->scratch, (size_t)length + 1);
    va_start(args, format);
    if (text) vsnprintf(text, (size_t)length + 1, format, args);
    else l->p->out_of_memory = true;
    va_end(args);
  }
  print_indent(l);
  text_add_string(l->out, text ? text : "");
  text_add_string(l->out, "\n");
}

void print_comment(LoopPrinter *l, const char *what, const Text *words) {
  print_indent(l);
  text_format(l->out, "// %s ", what);
  text_add_user_string(l->out, SINK_COMMENT, text_string(words));
  text_add_string(l->out, "\n");
  l->p->out_of_memory |= words->out_of_memory;
}

void open_brace(LoopPrinter *l) {
  l->indent++;
}

void close_brace(LoopPrinter *l) {
  l->indent--;
  print_line(l, "}");
}

const char *element_type(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F64] = "double",      [TYPE_F32] = "float",       [TYPE_F16] = "uint16_t",    [TYPE_BF16] = "uint16_t",
      [TYPE_S64] = "int64_t",     [TYPE_S32] = "int32_t",     [TYPE_S8] = "int8_t",       [TYPE_U8] = "uint8_t",
      [TYPE_BOOLEAN] = "uint8_t", [TYPE_F8_E4M3] = "uint8_t", [TYPE_F8_E5M2] = "uint8_t", [TYPE_S4] = "uint8_t",
      [TYPE_U4] = "uint8_t"};
  return names[type];
}

// Numbers

const char *open_number_text(Printer *p, int64_t number, Powers powers, const char *const *names) {
  const Graph *g = p->program->graph;
  if (number == 0) powers = 0; // whatever they are
  const int64_t factor = powers ? open_factor(g, number, powers) : number;
  Text text;
  text_init(&text, p->scratch->allocator);
  int nfactors = factor != 1 || !powers;
  if (nfactors) text_format(&text, "%lld", (long long)factor);
  for (size_t i = 0; powers && i < g->ndims; i++)
    for (int n = powers_of_dim(powers, i); n > 0; n--) text_format(&text, nfactors++ ? " * %s" : "%s", names[i]);
  const char *result = arena_format(p->scratch, nfactors > 1 ? "(%s)" : "%s", text_string(&text));
  p->out_of_memory |= !result || text.out_of_memory;
  text_deinit(&text);
  return result ? result : "1";
}

const char *bare_text(Printer *p, const char *product) {
  const size_t nbytes = strlen(product);
  size_t i = 0;
  int depth = 0;
  do { // to what closes the first one
    depth += (product[i] == '(') - (product[i] == ')');
    i++;
  } while (depth > 0 && i < nbytes);
  if (*product != '(' || i < nbytes) return product;
  const char *bare = arena_format(p->scratch, "%.*s", (int)nbytes - 2, product + 1);
  p->out_of_memory |= !bare;
  return bare ? bare : product;
}

// Axes

int loop_vector_axis(const Loop *loop) {
  return loop->ninner ? loop->order[loop->nouter + loop->ninner - 1] : -1;
}

int last_middle_axis(const Loop *loop) {
  return loop->ninner > 1 ? loop->order[loop->nouter + loop->ninner - 2] : -1;
}

bool has_rows(const LoopPrinter *l) {
  return l->loop->rows > 1;
}

bool varies_by_row(const LoopPrinter *l, AxisSet axes) {
  return axes & loop_outer_axes(l->loop);
}

// The level of an expression; for LEVEL_MIDDLE *depth is the deepest of its middle axes.
Level level_of(const LoopPrinter *l, AxisSet axes, int *depth) {
  const Loop *loop = l->loop;
  for (int i = loop->ninner - 1; i >= 0; i--) {
    if (!(axes >> loop->order[loop->nouter + i] & 1)) continue;
    if (depth) *depth = i;
    return i == loop->ninner - 1 ? LEVEL_VECTOR : LEVEL_MIDDLE;
  }
  return varies_by_row(l, axes) ? LEVEL_ROW : LEVEL_CALL;
}

Level expr_level(const LoopPrinter *l, ExprId id) {
  return level_of(l, l->k->exprs[id].axes, NULL);
}

Level root_level(const LoopPrinter *l, const Root *root) {
  return level_of(l, root_axes(l->k, root), NULL);
}

// Whether an expression is a vector: it varies along the vectors' axis, or its loop has all that it needs of them.
static bool is_lanewise(const LoopPrinter *l, ExprId id) {
  Level level = expr_level(l, id);
  return level == LEVEL_VECTOR || (l->loop->is_across && level == LEVEL_ROW);
}

bool is_transposed(const LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  const int *inner = l->loop->order + l->loop->nouter;
  return l->loop->is_across && !l->is_tail && a->stride[loop_lane_axis(l->loop)] && a->stride[*inner] == 1;
}

bool is_column(const LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  const int *inner = l->loop->order + l->loop->nouter;
  return l->loop->is_across && !l->is_tail && a->stride[loop_lane_axis(l->loop)] == 1 && a->stride[*inner] > 1;
}

static int lane_axis(const LoopPrinter *l) {
  int axis = loop_lane_axis(l->loop);
  assert(axis >= 0); // there are vectors
  return axis;
}

// In elements, from lane to lane; 0: one element for all.
static int64_t lane_stride(const LoopPrinter *l, const Access *a) {
  return a->stride[lane_axis(l)];
}

static const char *signed_stride_text(LoopPrinter *l, const Access *a, int axis) {
  const char *number = number_text(l, a->stride[axis], a->stride_powers[axis]);
  const char *text = a->stride_powers[axis] ? arena_format(l->p->scratch, "(ptrdiff_t)%s", number) : number;
  l->p->out_of_memory |= !text;
  return text ? text : "1";
}

const char *row_stride_text(LoopPrinter *l, const Access *a) {
  return signed_stride_text(l, a, l->loop->order[0]);
}

// The stride that a gather or a scatter gets.
static void add_lane_stride(LoopPrinter *l, const Access *a) {
  text_format(l->out, ", %s", signed_stride_text(l, a, lane_axis(l)));
}

const char *axis_name(const LoopPrinter *l, int axis) {
  return l->k->axes[axis].name;
}

// An axis's index, or that of what is fetched ahead.
static void add_index(LoopPrinter *l, int axis) {
  const bool is_ahead = l->is_ahead && axis == last_middle_axis(l->loop);
  text_format(l->out, "%s%s", is_ahead ? "ahead_" : "", axis_name(l, axis));
}

const char *access_member(const LoopPrinter *l, const Access *a) {
  if (a->value) return l->p->value_member[a->value->index];
  return l->p->temporary_member[l->p->first_temporary[l->kernel_index] + a->temporary];
}

bool is_place(const Access *a) {
  return a->type == TYPE_NONE || type_is_packed(a->type);
}

const char *number_text(LoopPrinter *l, int64_t number, Powers powers) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; number && powers && i < l->k->graph->ndims; i++) {
    names[i] = l->name[l->k->nexprs + i];
    l->mentions_dim[i] |= powers_of_dim(powers, i) > 0;
  }
  return open_number_text(l->p, number, powers, names);
}

const char *axes_text(LoopPrinter *l, AxisSet axes) {
  return number_text(l, axes_nelems(l->k, axes), axes_powers(l->k, axes));
}

const char *block_text(LoopPrinter *l) {
  const Loop *loop = l->loop;
  if (!loop_has_open_length(l->k, loop)) return number_text(l, loop_block_length(l->k, loop), 0);
  const char *text = arena_format(l->p->scratch, "a->k%zu_loop%zu_block", l->kernel_index, l->loop_index);
  l->p->out_of_memory |= !text;
  return text ? text : "1";
}

void begin_body(LoopPrinter *l, Text *body) {
  text_init(body, l->p->scratch->allocator);
  memset(l->mentions_dim, 0, sizeof l->mentions_dim);
  l->function = l->out;
  l->out = body;
}

void end_body(LoopPrinter *l, Text *body) {
  l->out = l->function;
  for (size_t i = 0; i < MAX_OPEN_DIMS; i++)
    if (l->mentions_dim[i]) print_line(l, "const size_t %s = a->%s;", l->name[l->k->nexprs + i], l->p->dim_member[i]);
  text_add(l->out, text_string(body), body->nbytes);
  l->out->out_of_memory |= body->out_of_memory;
  text_deinit(body);
}

void add_start(LoopPrinter *l, const Access *a) {
  if (is_place(a)) text_add_string(l->out, "(size_t)0");
  else text_format(l->out, "a->%s", access_member(l, a));
  if (a->offset) text_format(l->out, " + %s", number_text(l, a->offset, a->offset_powers));
}

bool add_terms(LoopPrinter *l, const Access *a, AxisSet axes, bool has_before) {
  for (int axis = 0; axis < l->k->naxes; axis++) {
    if (!(axes >> axis & 1) || !a->stride[axis]) continue;
    if (has_before) text_add_string(l->out, " + ");
    add_index(l, axis);
    if (a->stride[axis] != 1) text_format(l->out, " * %s", number_text(l, a->stride[axis], a->stride_powers[axis]));
    has_before = true;
  }
  return has_before;
}

// Expressions, where they are used

void add_number(LoopPrinter *l, double number, bool is_f64) {
  const char *cast = is_f64 ? "(double)" : ""; // the macros are floats
  if (number != number) text_format(l->out, "%sNAN", cast);
  else if (number - number != 0) text_format(l->out, "%s%sINFINITY", number > 0 ? "" : "-", cast);
  else {
    text_add_number(l->out, number, !is_f64);
    if (!is_f64) text_add_string(l->out, "f");
  }
}

// A scalar expression's name or number.
void add_scalar(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_CONSTANT) {
    add_number(l, e->number, l->k->is_f64);
    return;
  }
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  text_format(l->out, "%s%s", l->name[id], is_array ? "[r]" : "");
}

void add_vector(LoopPrinter *l, ExprId id) {
  if (l->k->exprs[id].op != EXPR_CONSTANT && is_lanewise(l, id)) {
    text_add_string(l->out, l->name[id]);
    return;
  }
  text_format(l->out, "%c_set(", l->prefix);
  add_scalar(l, id);
  text_add_string(l->out, ")");
}

// Memory

// The address of an access at the vector's first lane: its row pointer, the middle axes, the lane.
void add_address(LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  int v = loop_vector_axis(l->loop);
  text_format(l->out, "p_%s", l->access_name[id]);
  if (has_rows(l) && varies_by_row(l, access_axes(l->k, a))) text_add_string(l->out, "[r]");
  assert(v >= 0); // what has no inner axes is a scalar
  add_terms(l, a, loop_inner_axes(l->loop) & ~(1U << v), true);
  if (a->stride[v]) text_format(l->out, access_is_mask(a) ? " + %s / 8" : " + %s", l->lane);
  if (a->stride[v] > 1) text_format(l->out, " * %s", number_text(l, a->stride[v], a->stride_powers[v]));
}

const char *type_suffix(Type type) {
  switch (type) {
  case TYPE_F16: return "_f16";
  case TYPE_BF16: return "_bf16";
  case TYPE_S32: return "_s32";
  case TYPE_S8: return "_s8";
  case TYPE_U8: return "_u8";
  case TYPE_F8_E4M3: return "_e4m3";
  case TYPE_F8_E5M2: return "_e5m2";
  case TYPE_BOOLEAN: return "_b8";
  case TYPE_S4: return "_s4";
  case TYPE_U4: return "_u4";
  default: return "";
  }
}

// The family of functions that reads this type, and whether what it gives must be widened or narrowed.
static char memory_prefix(Type type) {
  return type == TYPE_F64 || type == TYPE_S32 ? 'd' : 'v';
}

// The address of lane 0: what is a row's own has no pointer of its own. Of a place, all memory stands before it.
static void add_lanes_address(LoopPrinter *l, AccessId id, Level level) {
  const Access *a = &l->k->accesses[id];
  if (is_place(a)) text_format(l->out, "a->%s, ", access_member(l, a));
  if (level == LEVEL_VECTOR) {
    add_address(l, id);
    return;
  }
  add_start(l, a);
  add_terms(l, a, loop_outer_axes(l->loop), true);
}

static const char *scalar_from(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "f32_from_f16",      [TYPE_BF16] = "f32_from_bf16",    [TYPE_BOOLEAN] = "0 != ",
      [TYPE_F8_E4M3] = "f32_from_e4m3", [TYPE_F8_E5M2] = "f32_from_e5m2", [TYPE_S4] = "f32_from_s4",
      [TYPE_U4] = "f32_from_u4",
  };
  return names[type] ? names[type] : "";
}

// Elements that a load goes further, as a scalar behind others or as each lane's own.
static void add_offset(LoopPrinter *l, const Access *a, ExprId offset) {
  if (is_lanewise(l, offset)) {
    text_format(l->out, ", %c_places(", l->prefix);
    add_vector(l, offset);
  } else {
    text_add_string(l->out, is_place(a) ? " + (size_t)(" : " + (ptrdiff_t)(");
    add_scalar(l, offset);
  }
  text_add_string(l->out, ")");
}

static void add_vector_load(LoopPrinter *l, const Expr *e, Level level) {
  AccessId id = e->access;
  const Access *a = &l->k->accesses[id];
  char memory = memory_prefix(a->type);
  int64_t stride = lane_stride(l, a);
  bool converts = memory != l->prefix;
  if (access_is_mask(a)) {
    text_format(l->out, "%s_load(", l->mask);
    add_address(l, id);
    text_add_string(l->out, ")");
    return;
  }
  if (is_transposed(l, id) || is_column(l, id)) {
    text_format(l->out, "v_load(rows_%s + %s * %d)", l->access_name[id], l->lane, LANES);
    return;
  }
  if (l->loop->is_across && !stride) {
    text_format(l->out, "v_set(%s(*(", scalar_from(a->type));
    add_lanes_address(l, id, level);
    text_add_string(l->out, ")))");
    return;
  }
  if (converts) text_format(l->out, "%c_from_%c(", l->prefix, memory);
  bool is_scattered = e->args[0] && is_lanewise(l, e->args[0]), has_stride = is_scattered || stride != 1;
  const char *how = is_scattered ? "gather_at" : stride == 1 ? "load" : "gather";
  text_format(l->out, "%c_%s%s%s(", memory, how, l->is_tail ? "_n" : "", type_suffix(a->type));
  add_lanes_address(l, id, level);
  if (e->args[0] && !is_scattered) add_offset(l, a, e->args[0]);
  if (has_stride) add_lane_stride(l, a);
  if (is_scattered) add_offset(l, a, e->args[0]);
  if (l->is_tail) text_add_string(l->out, ", n");
  text_add_string(l->out, converts ? "))" : ")");
}

bool is_optional(const LoopPrinter *l, AccessId id) {
  const Value *v = l->k->accesses[id].value;
  return v && l->p->is_optional[v->index];
}

bool may_be_unwanted(const LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  return !a->value && l->p->may_be_unwanted[l->p->first_temporary[l->kernel_index] + a->temporary];
}

void add_part_test(LoopPrinter *l, AccessId id) {
  if (may_be_unwanted(l, id) && !l->loop->is_across && !l->is_part_tested)
    text_format(l->out, "if (part_%s) ", l->access_name[id]);
}

void open_store(LoopPrinter *l, const Root *root) {
  if (!is_optional(l, root->access)) return;
  print_line(l, "if (wants_%s) {", l->access_name[root->access]);
  open_brace(l);
}

void close_store(LoopPrinter *l, const Root *root) {
  if (is_optional(l, root->access)) close_brace(l);
}

void print_vector_store(LoopPrinter *l, const Root *root) {
  const Access *a = &l->k->accesses[root->access];
  char memory = memory_prefix(a->type);
  int64_t stride = lane_stride(l, a);
  bool converts = memory != l->prefix, may_stream = root->is_streamed && !l->is_tail;
  if (access_is_mask(a)) {
    print_indent(l);
    text_format(l->out, "%s_store(", l->mask);
    add_address(l, root->access);
    text_format(l->out, ", %s);\n", l->name[root->expr]);
    return;
  }
  if (is_transposed(l, root->access)) {
    print_indent(l);
    text_format(l->out, "v_store(rows_%s + %s * %d, ", l->access_name[root->access], l->lane, LANES);
    add_vector(l, root->expr);
    text_add_string(l->out, ");\n");
    return;
  }
  open_store(l, root);
  for (int streams = may_stream; streams >= 0; streams--) {
    print_indent(l);
    if (may_stream) text_format(l->out, streams ? "if (streams_%s) " : "else ", l->access_name[root->access]);
    text_format(l->out, "%c_%s%s%s(", memory,
                streams       ? "stream"
                : stride == 1 ? "store"
                              : "scatter",
                l->is_tail ? "_n" : "", type_suffix(a->type));
    add_lanes_address(l, root->access, root_level(l, root));
    if (stride != 1) add_lane_stride(l, a);
    text_format(l->out, ", ");
    if (converts) text_format(l->out, "%c_from_%c(", memory, l->prefix);
    add_vector(l, root->expr);
    text_add_string(l->out, converts ? ")" : "");
    text_add_string(l->out, l->is_tail ? ", n);\n" : ");\n");
  }
  close_store(l, root);
}

// Up to where a bracket closes, or what takes a place.
static void add_element(LoopPrinter *l, const Access *a, AxisSet axes) {
  text_format(l->out, is_place(a) ? "a->%s, " : "a->%s[", access_member(l, a));
  if (a->offset) text_add_string(l->out, number_text(l, a->offset, a->offset_powers));
  if (!add_terms(l, a, axes, a->offset != 0) && !a->offset) text_add_string(l->out, "0");
}

static void add_scalar_load(LoopPrinter *l, const Expr *e, AxisSet axes) {
  const Access *a = &l->k->accesses[e->access];
  const char *convert = scalar_from(a->type);
  bool is_call = *convert && a->type != TYPE_BOOLEAN;
  bool is_widened = l->k->is_f64 && a->type != TYPE_F64 && a->type != TYPE_S64;
  text_format(l->out, "%s%s%s", is_widened ? "(double)" : "", convert, is_call ? "(" : "");
  add_element(l, a, axes);
  if (e->args[0]) add_offset(l, a, e->args[0]);
  text_add_string(l->out, is_place(a) ? ")" : is_call ? "])" : "]");
}

// Whether dropout keeps the vector's elements, or one.
static void add_is_kept(LoopPrinter *l, const Expr *e, bool is_vector, AxisSet axes) {
  const Access *a = &l->k->accesses[e->access];
  text_format(l->out, is_vector ? "%c_is_kept(" : "is_kept(", l->prefix);
  for (int i = 0; i < expr_info[e->op].narguments; i++) {
    if (i == 2) text_add_string(l->out, "(double)");
    add_scalar(l, e->args[i]);
    text_add_string(l->out, ", ");
  }
  if (is_vector) add_address(l, e->access);
  else add_start(l, a);
  if (!is_vector) add_terms(l, a, axes, true);
  else add_lane_stride(l, a);
  text_add_string(l->out, ")");
}

static void add_integer(LoopPrinter *l, int64_t integer) {
  text_format(l->out, integer == INT64_MIN ? "INT64_MIN" : "%lld", (long long)integer);
}

// The one axis of a coordinate.
static int index_axis(const Expr *e) {
  return __builtin_ctz(e->axes);
}

void print_scalar_store(LoopPrinter *l, const Root *root) {
  const Access *a = &l->k->accesses[root->access];
  static const char *const converts[TYPE_COUNT] = {
      [TYPE_F16] = "f16_from_f32",      [TYPE_BF16] = "bf16_from_f32",    [TYPE_S32] = "s32_from_f64",
      [TYPE_S8] = "s8_from_f32",        [TYPE_U8] = "u8_from_f32",        [TYPE_BOOLEAN] = "0 != ",
      [TYPE_F8_E4M3] = "e4m3_from_f32", [TYPE_F8_E5M2] = "e5m2_from_f32",
  };
  const bool wants_f64 = a->type == TYPE_F64 || a->type == TYPE_S32;
  open_store(l, root);
  print_indent(l);
  if (is_place(a)) text_format(l->out, "put%s(", type_suffix(a->type));
  add_element(l, a, ~0U);
  text_add_string(l->out, is_place(a) ? ", " : "] = ");
  const char *call = is_place(a) ? NULL : converts[a->type];
  const bool is_function = call && a->type != TYPE_BOOLEAN;
  text_format(l->out, "%s%s", call ? call : "", is_function ? "(" : "");
  if (wants_f64 != l->k->is_f64 && a->type != TYPE_BOOLEAN) text_add_string(l->out, wants_f64 ? "(double)" : "(float)");
  add_scalar(l, root->expr);
  text_format(l->out, "%s%s;\n", is_function ? ")" : "", is_place(a) ? ")" : "");
  close_store(l, root);
}

// Expressions

const char *chunks_text(LoopPrinter *l, uint32_t loop) {
  if (!loop_has_open_chunks(l->k, &l->k->loops[loop])) return number_text(l, loop_nchunks(l->k, &l->k->loops[loop]), 0);
  const char *text = arena_format(l->p->scratch, "a->k%zu_loop%u_chunks", l->kernel_index, (unsigned)loop);
  l->p->out_of_memory |= !text;
  return text ? text : "1";
}

// Partial results lie block after block, and kept outer axes choose a run of blocks: elements from one index to the
// next along an axis; "0": it is none of theirs.
static const char *partial_stride(LoopPrinter *l, const Expr *e, int axis) {
  const Kernel *k = l->k;
  const Loop *maker = &k->loops[e->loop];
  const Access *a = &k->accesses[e->access];
  const AxisSet own = access_axes(k, a);
  AxisSet below = 0; // kept axes inside of this one
  int at = maker->nkept;
  while (at-- > 0 && maker->order[at] != axis) below |= 1U << maker->order[at];
  if (at < 0) return number_text(l, a->stride[axis], a->stride_powers[axis]);
  int64_t nelems = axes_nelems(k, own | below); // they have no axis in common
  Powers powers = axes_powers(k, own | below);
  if (!loop_has_open_chunks(k, maker)) return number_text(l, nelems * loop_nchunks(k, maker), powers);
  const char *text = arena_format(l->p->scratch, "(%s * %s)", chunks_text(l, e->loop), number_text(l, nelems, powers));
  l->p->out_of_memory |= !text;
  return text ? text : "0";
}

// Of block b's part of a row.
static void add_partial_address(LoopPrinter *l, const Expr *e, AxisSet axes) {
  text_format(l->out, "b * %s", axes_text(l, access_axes(l->k, &l->k->accesses[e->access])));
  for (int axis = 0; axis < l->k->naxes; axis++) {
    const char *stride = axes >> axis & 1 ? partial_stride(l, e, axis) : "0";
    if (strcmp(stride, "0") == 0) continue;
    text_format(l->out, " + %s", axis_name(l, axis));
    if (strcmp(stride, "1") != 0) text_format(l->out, " * %s", stride);
  }
}

// Combines partial results in f64, block after block.
static void print_combine(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const Access *a = &l->k->accesses[e->access];
  bool is_vector = expr_level(l, id) == LEVEL_VECTOR;
  int v = is_vector ? loop_vector_axis(l->loop) : -1;
  AxisSet others = ~0U & ~(v >= 0 ? 1U << v : 0);
  ExprOp reduction = l->k->temporaries[a->temporary].reduction;
  const char *combine = expr_info[reductions[reduction].combine].name;
  bool is_any = loop_nblocks(l->k, &l->k->loops[e->loop]) > 0;
  print_indent(l);
  text_format(l->out, is_vector ? "dvec total_%s = d_set(" : "double total_%s = ", l->name[id]);
  add_number(l, reductions[reduction].identity, true);
  text_add_string(l->out, is_vector ? ");\n" : ";\n");
  if (is_any) {
    print_indent(l);
    if (may_be_unwanted(l, e->access)) text_format(l->out, "if (a->%s) ", access_member(l, a));
    text_format(l->out, "for (size_t b = 0; b < %s; b++) total_%s = ", chunks_text(l, e->loop), l->name[id]);
  }
  if (!is_any) {
    // nothing was added up
  } else if (!is_vector) {
    text_format(l->out, "f64_%s(total_%s, (double)a->%s[", combine, l->name[id], access_member(l, a));
    add_partial_address(l, e, others);
    text_add_string(l->out, "]);\n");
  } else {
    char memory = a->type == TYPE_F64 ? 'd' : 'v';
    const char *stride = partial_stride(l, e, v);
    bool is_dense = strcmp(stride, "1") == 0;
    text_format(l->out, "d_%s(total_%s, %s%c_%s%s(a->%s + ", combine, l->name[id], memory == 'v' ? "d_from_v(" : "",
                memory, is_dense ? "load" : "gather", l->is_tail ? "_n" : "", access_member(l, a));
    add_partial_address(l, e, others);
    text_format(l->out, " + %s", l->lane);
    if (!is_dense) text_format(l->out, *stride == '(' ? " * %s, (ptrdiff_t)%s" : " * %s, %s", stride, stride);
    text_format(l->out, "%s)%s);\n", l->is_tail ? ", n" : "", memory == 'v' ? ")" : "");
  }
  const char *narrow = l->k->is_f64 ? "" : is_vector ? "v_from_d" : "(float)";
  print_line(l, "const %s %s = %s(total_%s);", is_vector ? l->vec : l->scalar, l->name[id], narrow, l->name[id]);
}

// Operations that take tens of instructions a vector.
static const bool is_long[EXPR_OP_COUNT] = {
    [EXPR_EXP] = true,       [EXPR_EXPM1] = true,      [EXPR_LOG] = true,        [EXPR_LOG1P] = true,
    [EXPR_TANH] = true,      [EXPR_GELU] = true,       [EXPR_GELU_SLOPE] = true, [EXPR_POW] = true,
    [EXPR_ROUND_F16] = true, [EXPR_ROUND_E4M3] = true, [EXPR_ROUND_E5M2] = true,
};

// A function of its own, not to be inlined, that has its vectors in memory, as C's calls differ in how they pass them;
// and one that hides that.
static void print_callable(LoopPrinter *l, ExprOp op) {
  const char *id = l->p->identifier, *name = expr_info[op].name, *b = expr_info[op].narguments > 1 ? ", *b" : "";
  const char *parameter = *b ? ", const " : "", *type = *b ? l->vec : "", *pointer = *b ? " *b" : "";
  const char *value = *b ? " b" : "", *address = *b ? ", &b" : "";
  text_format(l->out, "static V_FAR void %s_far_%c_%s(%s *a%s%s%s) {\n  *a = %c_%s(*a%s);\n}\n\n", id, l->prefix, name,
              l->vec, parameter, type, pointer, l->prefix, name, b);
  text_format(l->out,
              "static inline ALWAYS_INLINE %s %s_call_%c_%s(%s a%s%s%s) {\n  %s_far_%c_%s(&a%s);\n  return a;\n}\n\n",
              l->vec, id, l->prefix, name, l->vec, *b ? ", " : "", type, value, id, l->prefix, name, address);
}

void print_callables(LoopPrinter *l) {
  enum { MOST_INLINE = 8 }; // in a loop. 120 times tanh take gcc 10 s where they are inlined
  bool is_used[EXPR_OP_COUNT] = {false};
  int count = 0;
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const ExprOp op = l->k->exprs[id].op;
    if (!l->name[id] || !is_long[op]) continue;
    is_used[op] = true;
    count++;
  }
  l->calls_long = count > MOST_INLINE;
  for (int op = 0; l->calls_long && op < EXPR_OP_COUNT; op++) {
    bool *is_callable = &l->p->is_callable[op][l->k->is_f64];
    if (is_used[op] && !*is_callable) print_callable(l, (ExprOp)op);
    *is_callable |= is_used[op];
  }
}

// A call of the vocabulary.
static void add_vector_call(LoopPrinter *l, const Expr *e) {
  if (l->calls_long && is_long[e->op]) text_format(l->out, "%s_call_", l->p->identifier);
  text_format(l->out, "%c_%s(", l->prefix, expr_info[e->op].name);
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    if (a) text_add_string(l->out, ", ");
    add_vector(l, e->args[a]);
  }
  text_add_string(l->out, ")");
}

static void add_operand(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const bool is_negative = e->op == EXPR_CONSTANT && signbit(e->number);
  text_add_string(l->out, is_negative ? "(" : "");
  add_scalar(l, id);
  text_add_string(l->out, is_negative ? ")" : "");
}

// Without a formula it is lane 0 of the vector function, whose bits libm does not promise.
static void add_scalar_formula(LoopPrinter *l, const Expr *e) {
  const char *formula = expr_info[e->op].scalar;
  if (!formula) {
    text_format(l->out, "%c_lane_0(", l->prefix);
    add_vector_call(l, e);
    text_add_string(l->out, ")");
  }
  for (const char *c = formula; c && *c; c++) {
    if (*c == '%') add_operand(l, e->args[*++c - '0']);
    else if (*c == 'F') text_add_string(l->out, l->k->is_f64 ? "" : "f");
    else if (*c == 'N') text_add_string(l->out, l->k->is_f64 ? "(float)" : "");
    else if (*c == 'W') text_add_string(l->out, l->k->is_f64 ? "(double)" : "");
    else text_add(l->out, c, 1);
  }
}

const char *scalar_type(const LoopPrinter *l, const Expr *e) {
  return expr_is_s64(l->k, e) ? "int64_t" : expr_info[e->op].is_mask ? "int" : l->scalar;
}

// Made in f64, as constants are.
static void add_count(LoopPrinter *l, const Expr *e) {
  const char *count = number_text(l, (int64_t)e->number, e->powers), *cast = l->k->is_f64 ? "" : "(float)";
  if (e->op == EXPR_COUNT) text_format(l->out, "%s(double)%s", cast, count);
  else if (strcmp(count, "0") == 0) add_number(l, 1, l->k->is_f64);
  else text_format(l->out, "%s(1 / (double)(%s > 0 ? %s : 1))", cast, count, count);
}

void print_scalar_expr(LoopPrinter *l, ExprId id, AxisSet axes) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_COMBINE) {
    print_combine(l, id);
    return;
  }
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  print_indent(l);
  if (is_array) text_format(l->out, "%s[r] = ", l->name[id]);
  else text_format(l->out, "const %s %s = ", scalar_type(l, e), l->name[id]);
  if (e->op == EXPR_LOAD) add_scalar_load(l, e, axes);
  else if (e->op == EXPR_INDEX) text_format(l->out, "(%s)%s", l->scalar, axis_name(l, index_axis(e)));
  else if (e->op == EXPR_INTEGER) add_integer(l, e->integer);
  else if (e->op == EXPR_IS_KEPT) add_is_kept(l, e, false, axes);
  else if (e->op == EXPR_COUNT || e->op == EXPR_SHARE) add_count(l, e);
  else add_scalar_formula(l, e);
  text_add_string(l->out, ";\n");
}

// Where a step keeps a vector for later sweeps.
static void add_kept(LoopPrinter *l, ExprId id) {
  text_format(l->out, "kept_%s + ", l->name[id]);
  if (has_rows(l)) text_format(l->out, "(size_t)r * %lld + ", (long long)loop_row_nelems(l->k, l->loop));
  text_format(l->out, l->loop->is_across ? "%s * %d" : "%s", l->lane, LANES);
}

static void print_computed(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_COMBINE) {
    print_combine(l, id);
    return;
  }
  print_indent(l);
  text_format(l->out, "const %s %s = ", expr_is_mask(l->k, id) ? l->mask : l->vec, l->name[id]);
  if (e->op == EXPR_LOAD) add_vector_load(l, e, expr_level(l, id));
  else if (e->op == EXPR_INDEX) text_format(l->out, "%c_index(%s)", l->prefix, l->lane);
  else if (e->op == EXPR_IS_KEPT) add_is_kept(l, e, true, 0);
  else if (e->op == EXPR_SELECT && !is_lanewise(l, e->args[0])) { // one choice for all lanes
    add_scalar(l, e->args[0]);
    text_add_string(l->out, " ? ");
    add_vector(l, e->args[1]);
    text_add_string(l->out, " : ");
    add_vector(l, e->args[2]);
  } else {
    add_vector_call(l, e);
  }
  text_add_string(l->out, ";\n");
}

void print_vector_expr(LoopPrinter *l, ExprId id) {
  if (!is_found_again(l, id)) {
    print_computed(l, id);
    if (!is_left(l, id)) return;
    print_indent(l);
    text_add_string(l->out, "v_store(");
    add_kept(l, id);
    text_format(l->out, ", %s);\n", l->name[id]);
    return;
  }
  print_indent(l);
  text_format(l->out, "const vec %s = v_load(", l->name[id]);
  add_kept(l, id);
  text_add_string(l->out, ");\n");
}
