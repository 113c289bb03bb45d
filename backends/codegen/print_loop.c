// One loop as C: a step function for a few outer iterations (or a tile), and a block function that runs its steps.
//
// Expressions are printed where they belong by the axes they vary over: not at all (constants), once a row (scalars),
// once an iteration of a middle axis, or for each vector. Within a level they follow each other in the order of their
// ids, which has operands before users.
#include "backends/codegen/printer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_RUN = 240 }; // additions in a chain before sums move to f64; the rest may add a few more

typedef enum Level { LEVEL_CALL, LEVEL_ROW, LEVEL_MIDDLE, LEVEL_VECTOR } Level;

typedef struct LoopPrinter {
  Printer *p;
  Text *out;
  const Kernel *k;
  const Loop *loop;
  size_t kernel_index, loop_index;
  const char **name;               // by ExprId
  uint32_t *nuses;                 // by ExprId, in this loop
  int *time;                       // by ExprId: the sweep before which a row's scalar is known
  bool *is_needed;                 // by ExprId: for the sweep or section being printed
  const char *vec, *scalar, *mask; // C types
  char prefix;                     // of the vocabulary: v or d
  const char *lane;                // index of the vector's first lane: "i" or "j"
  const char *part;                // which of the accumulators: "", "[r]", "[u]", "[0]"
  bool is_tail;                    // only the first n lanes are there
  int indent;
} LoopPrinter;

static void line(LoopPrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void begin_line(LoopPrinter *l) {
  text_format(l->out, "%*s", 2 * l->indent, "");
}

static void line(LoopPrinter *l, const char *format, ...) {
  char buffer[512];
  va_list args;
  va_start(args, format);
  vsnprintf(buffer, sizeof buffer, format, args);
  va_end(args);
  begin_line(l);
  text_add_string(l->out, buffer);
  text_add_string(l->out, "\n");
}

static void open_brace(LoopPrinter *l) {
  l->indent++;
}

static void close_brace(LoopPrinter *l) {
  l->indent--;
  line(l, "}");
}

const char *element_type(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F64] = "double",    [TYPE_F32] = "float",   [TYPE_F16] = "uint16_t",
      [TYPE_BF16] = "uint16_t", [TYPE_S64] = "int64_t", [TYPE_S32] = "int32_t",
      [TYPE_S8] = "int8_t",     [TYPE_U8] = "uint8_t",  [TYPE_BOOLEAN] = "uint8_t"};
  return names[type];
}

// Axes

static int vector_axis(const Loop *loop) {
  return loop->ninner ? loop->order[loop->nouter + loop->ninner - 1] : -1;
}

static bool has_rows(const LoopPrinter *l) {
  return l->loop->rows > 1;
}

static bool varies_by_row(const LoopPrinter *l, AxisSet axes) {
  return axes & loop_outer_axes(l->loop);
}

// The level of an expression; for LEVEL_MIDDLE *depth is the deepest of its middle axes.
static Level level_of(const LoopPrinter *l, AxisSet axes, int *depth) {
  const Loop *loop = l->loop;
  for (int i = loop->ninner - 1; i >= 0; i--) {
    if (!(axes >> loop->order[loop->nouter + i] & 1)) continue;
    if (depth) *depth = i;
    return i == loop->ninner - 1 ? LEVEL_VECTOR : LEVEL_MIDDLE;
  }
  return varies_by_row(l, axes) ? LEVEL_ROW : LEVEL_CALL;
}

static Level expr_level(const LoopPrinter *l, ExprId id) {
  return level_of(l, l->k->exprs[id].axes, NULL);
}

static Level root_level(const LoopPrinter *l, const Root *root) {
  return level_of(l, root_axes(l->k, root), NULL);
}

static const char *axis_name(const LoopPrinter *l, int axis) {
  return l->k->axes[axis].name;
}

static const char *access_member(const LoopPrinter *l, const Access *a) {
  if (a->value) return l->p->value_member[a->value->index];
  return l->p->temporary_member[l->p->first_temporary[l->kernel_index] + a->temporary];
}

// Adds " + axis * stride" for those axes that have one; true if any was added.
static bool add_terms(LoopPrinter *l, const int64_t *stride, AxisSet axes, bool has_before) {
  for (int axis = 0; axis < l->k->naxes; axis++) {
    if (!(axes >> axis & 1) || !stride[axis]) continue;
    text_format(l->out, has_before ? " + %s" : "%s", axis_name(l, axis));
    if (stride[axis] != 1) text_format(l->out, " * %lld", (long long)stride[axis]);
    has_before = true;
  }
  return has_before;
}

// Names

static bool is_taken(const LoopPrinter *l, const char *name, ExprId before) {
  static const char *const reserved[] = {"a",    "b",     "i",     "i0",     "j",     "n",     "o",   "r",
                                         "u",    "rows",  "begin", "end",    "block", "args",  "vec", "dvec",
                                         "mask", "dmask", "float", "double", "int",   "const", "sum"};
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strcmp(name, reserved[i]) == 0) return true;
  for (int axis = 0; axis < l->k->naxes; axis++)
    if (strcmp(name, axis_name(l, axis)) == 0) return true;
  for (ExprId id = 1; id < before; id++)
    if (l->name[id] && strcmp(name, l->name[id]) == 0) return true;
  return false;
}

static const char *new_name(LoopPrinter *l, ExprId id) {
  const char *label = l->k->exprs[id].label;
  Text stem;
  text_init(&stem, l->p->scratch->allocator);
  for (const char *c = label ? label : "t"; *c; c++)
    text_format(&stem, "%c", isalnum((unsigned char)*c) && (unsigned char)*c < 0x80 ? *c : '_');
  if (isdigit((unsigned char)*text_string(&stem)) || strlen(text_string(&stem)) > 48) {
    text_deinit(&stem);
    text_init(&stem, l->p->scratch->allocator);
    text_add_string(&stem, "t");
  }
  const char *name = label && !is_taken(l, text_string(&stem), id)
                         ? arena_copy_text(l->p->scratch, text_string(&stem), strlen(text_string(&stem)))
                         : arena_format(l->p->scratch, "%s%u", text_string(&stem), (unsigned)id);
  if (!name) l->p->out_of_memory = true;
  text_deinit(&stem);
  return name ? name : "t";
}

static void add_constant(LoopPrinter *l, double number) {
  if (number != number) text_add_string(l->out, "NAN");
  else if (number - number != 0) text_add_string(l->out, number > 0 ? "INFINITY" : "-INFINITY");
  else {
    text_add_number(l->out, number, !l->k->is_f64);
    if (!l->k->is_f64) text_add_string(l->out, "f");
  }
}

// A scalar expression's name or number.
static void add_scalar(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_CONSTANT) {
    add_constant(l, e->number);
    return;
  }
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  text_format(l->out, "%s%s", l->name[id], is_array ? "[r]" : "");
}

static void add_vector(LoopPrinter *l, ExprId id) {
  if (l->k->exprs[id].op != EXPR_CONSTANT && expr_level(l, id) == LEVEL_VECTOR) {
    text_add_string(l->out, l->name[id]);
    return;
  }
  text_format(l->out, "%c_set(", l->prefix);
  add_scalar(l, id);
  text_add_string(l->out, ")");
}

// Memory

// The address of an access at the vector's first lane: its row pointer, the middle axes, the lane.
static void add_address(LoopPrinter *l, AccessId id, bool at_vector) {
  const Access *a = &l->k->accesses[id];
  int v = vector_axis(l->loop);
  text_format(l->out, "p_%u", (unsigned)id);
  if (has_rows(l) && varies_by_row(l, access_axes(l->k, a))) text_add_string(l->out, "[r]");
  add_terms(l, a->stride, loop_inner_axes(l->loop) & ~(1U << v), true);
  if (!at_vector) return;
  text_format(l->out, " + %s", l->lane);
  if (a->stride[v] != 1) text_format(l->out, " * %lld", (long long)a->stride[v]);
}

static const char *type_suffix(Type type) {
  switch (type) {
  case TYPE_F16: return "_f16";
  case TYPE_BF16: return "_bf16";
  case TYPE_S32: return "_s32";
  default: return "";
  }
}

// The family of functions that reads this type, and whether what it gives must be widened or narrowed.
static char memory_prefix(Type type) {
  return type == TYPE_F64 || type == TYPE_S32 ? 'd' : 'v';
}

static void add_vector_load(LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  char memory = memory_prefix(a->type);
  int64_t stride = a->stride[vector_axis(l->loop)];
  bool converts = memory != l->prefix;
  if (converts) text_format(l->out, "%c_from_%c(", l->prefix, memory);
  text_format(l->out, "%c_%s%s%s(", memory, stride == 1 ? "load" : "gather", l->is_tail ? "_n" : "",
              type_suffix(a->type));
  add_address(l, id, true);
  if (stride != 1) text_format(l->out, ", %lld", (long long)stride);
  if (l->is_tail) text_add_string(l->out, ", n");
  text_add_string(l->out, converts ? "))" : ")");
}

static void print_vector_store(LoopPrinter *l, const Root *root) {
  const Access *a = &l->k->accesses[root->access];
  char memory = memory_prefix(a->type);
  int64_t stride = a->stride[vector_axis(l->loop)];
  bool converts = memory != l->prefix, may_stream = root->is_streamed && !l->is_tail;
  for (int streams = may_stream; streams >= 0; streams--) {
    begin_line(l);
    if (may_stream) text_format(l->out, streams ? "if (streams_%u) " : "else ", (unsigned)root->access);
    text_format(l->out, "%c_%s%s%s(", memory,
                streams       ? "stream"
                : stride == 1 ? "store"
                              : "scatter",
                l->is_tail ? "_n" : "", type_suffix(a->type));
    add_address(l, root->access, true);
    if (stride != 1) text_format(l->out, ", %lld", (long long)stride);
    text_format(l->out, ", ");
    if (converts) text_format(l->out, "%c_from_%c(", memory, l->prefix);
    add_vector(l, root->expr);
    text_add_string(l->out, converts ? ")" : "");
    text_add_string(l->out, l->is_tail ? ", n);\n" : ");\n");
  }
}

static void add_scalar_load(LoopPrinter *l, AccessId id, AxisSet axes) {
  const Access *a = &l->k->accesses[id];
  const char *convert = a->type == TYPE_F16 ? "f32_from_f16" : a->type == TYPE_BF16 ? "f32_from_bf16" : "";
  text_format(l->out, "%s(a->%s[", convert, access_member(l, a));
  if (!add_terms(l, a->stride, axes, false)) text_add_string(l->out, "0");
  text_add_string(l->out, "])");
}

static void print_scalar_store(LoopPrinter *l, const Root *root) {
  const Access *a = &l->k->accesses[root->access];
  const char *convert = a->type == TYPE_F16    ? "f16_from_f32((float)"
                        : a->type == TYPE_BF16 ? "bf16_from_f32((float)"
                        : a->type == TYPE_S32  ? "s32_from_f64((double)"
                        : a->type == TYPE_F64  ? "(double)("
                                               : "(float)(";
  begin_line(l);
  text_format(l->out, "a->%s[", access_member(l, a));
  if (!add_terms(l, a->stride, ~0U, false)) text_add_string(l->out, "0");
  text_format(l->out, "] = %s", convert);
  add_scalar(l, root->expr);
  text_add_string(l->out, ");\n");
}

// Expressions

// Partial sums lie block after block; kept outer axes choose a run of blocks.
static void combine_strides(const LoopPrinter *l, const Expr *e, int64_t *stride, int64_t *nblocks, int64_t *nelems) {
  const Kernel *k = l->k;
  const Loop *maker = &k->loops[e->loop];
  const Access *a = &k->accesses[e->access];
  int64_t total = loop_nblocks(k, maker), kept = 1;
  *nelems = axes_nelems(k, access_axes(k, a));
  for (int i = 0; i < maker->nkept; i++) kept *= k->axes[maker->order[i]].extent;
  *nblocks = kept ? total / kept : 0;
  memcpy(stride, a->stride, MAX_AXES * sizeof *stride);
  int64_t step = *nblocks * *nelems;
  for (int i = maker->nkept - 1; i >= 0; i--) {
    stride[maker->order[i]] = step;
    step *= k->axes[maker->order[i]].extent;
  }
}

// Adds up partial sums in f64, block after block.
static void print_combine(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const Access *a = &l->k->accesses[e->access];
  int64_t stride[MAX_AXES], nblocks, nelems;
  combine_strides(l, e, stride, &nblocks, &nelems);
  bool is_vector = expr_level(l, id) == LEVEL_VECTOR;
  int v = is_vector ? vector_axis(l->loop) : -1;
  AxisSet others = ~0U & ~(v >= 0 ? 1U << v : 0);
  line(l, "%s sum_%u = %s;", is_vector ? "dvec" : "double", (unsigned)id, is_vector ? "d_set(0.0)" : "0.0");
  if (nblocks > 0) begin_line(l);
  if (nblocks > 0) text_format(l->out, "for (size_t b = 0; b < %lld; b++) sum_%u = ", (long long)nblocks, (unsigned)id);
  if (nblocks == 0) {
    // nothing was added up
  } else if (!is_vector) {
    text_format(l->out, "sum_%u + (double)a->%s[b * %lld", (unsigned)id, access_member(l, a), (long long)nelems);
    add_terms(l, stride, others, true);
    text_add_string(l->out, "];\n");
  } else {
    char memory = a->type == TYPE_F64 ? 'd' : 'v';
    text_format(l->out, "d_add(sum_%u, %s%c_%s%s(a->%s + b * %lld", (unsigned)id, memory == 'v' ? "d_from_v(" : "",
                memory, stride[v] == 1 ? "load" : "gather", l->is_tail ? "_n" : "", access_member(l, a),
                (long long)nelems);
    add_terms(l, stride, others, true);
    text_format(l->out, " + %s", l->lane);
    if (stride[v] != 1) text_format(l->out, " * %lld, %lld", (long long)stride[v], (long long)stride[v]);
    text_format(l->out, "%s)%s);\n", l->is_tail ? ", n" : "", memory == 'v' ? ")" : "");
  }
  const char *narrow = l->k->is_f64 ? "" : is_vector ? "v_from_d" : "(float)";
  line(l, "const %s %s = %s(sum_%u);", is_vector ? l->vec : l->scalar, l->name[id], narrow, (unsigned)id);
}

static void add_scalar_formula(LoopPrinter *l, const Expr *e) {
  for (const char *c = expr_info[e->op].scalar; *c; c++) {
    if (*c == '%') add_scalar(l, e->args[*++c - '0']);
    else if (*c == 'F') text_add_string(l->out, l->k->is_f64 ? "" : "f");
    else text_add(l->out, c, 1);
  }
}

static void print_scalar_expr(LoopPrinter *l, ExprId id, AxisSet axes) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_COMBINE) {
    print_combine(l, id);
    return;
  }
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  begin_line(l);
  if (is_array) text_format(l->out, "%s[r] = ", l->name[id]);
  else text_format(l->out, "const %s %s = ", expr_info[e->op].is_mask ? "int" : l->scalar, l->name[id]);
  if (e->op == EXPR_LOAD) add_scalar_load(l, e->access, axes);
  else add_scalar_formula(l, e);
  text_add_string(l->out, ";\n");
}

static void print_vector_expr(LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  if (e->op == EXPR_COMBINE) {
    print_combine(l, id);
    return;
  }
  begin_line(l);
  text_format(l->out, "const %s %s = ", expr_info[e->op].is_mask ? l->mask : l->vec, l->name[id]);
  if (e->op == EXPR_LOAD) add_vector_load(l, e->access);
  else if (e->op == EXPR_SELECT && expr_level(l, e->args[0]) != LEVEL_VECTOR) { // one choice for all lanes
    add_scalar(l, e->args[0]);
    text_add_string(l->out, " ? ");
    add_vector(l, e->args[1]);
    text_add_string(l->out, " : ");
    add_vector(l, e->args[2]);
  } else {
    text_format(l->out, "%c_%s(", l->prefix, expr_info[e->op].name);
    for (int a = 0; a < expr_info[e->op].narguments; a++) {
      if (a) text_add_string(l->out, ", ");
      add_vector(l, e->args[a]);
    }
    text_add_string(l->out, ")");
  }
  text_add_string(l->out, ";\n");
}

// What a sweep needs

static bool is_row_sum(const LoopPrinter *l, ExprId id) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind == ROOT_REDUCE_INNER && l->loop->roots[i].expr == id) return true;
  return false;
}

static void need(LoopPrinter *l, ExprId id) {
  if (!id || l->is_needed[id]) return;
  l->is_needed[id] = true;
  if (is_row_sum(l, id)) return;
  for (int a = 0; a < 3; a++) need(l, l->k->exprs[id].args[a]);
}

// An accumulated product that nothing else needs is a fused multiply-add into the sum.
static bool is_fused_product(const LoopPrinter *l, ExprId id) {
  return l->k->exprs[id].op == EXPR_MUL && l->nuses[id] == 1;
}

// What a root stores or accumulates: for an inner sum, its operand.
static ExprId root_operand(const LoopPrinter *l, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER ? l->k->exprs[root->expr].args[0] : root->expr;
}

static bool is_array_sum(const LoopPrinter *l, const Root *root) {
  return root->kind == ROOT_REDUCE_OUTER && root_level(l, root) == LEVEL_VECTOR;
}

static bool is_in_sweep(const LoopPrinter *l, const Root *root, int sweep) {
  return root->sweep == sweep && (root->kind == ROOT_REDUCE_INNER || root_level(l, root) >= LEVEL_MIDDLE);
}

static void need_root(LoopPrinter *l, const Root *root) {
  ExprId operand = root_operand(l, root);
  if (root->kind != ROOT_STORE && expr_level(l, operand) == LEVEL_VECTOR && is_fused_product(l, operand)) {
    need(l, l->k->exprs[operand].args[0]);
    need(l, l->k->exprs[operand].args[1]);
  } else {
    need(l, operand);
  }
}

static void need_sweep(LoopPrinter *l, int sweep) {
  memset(l->is_needed, 0, l->k->nexprs * sizeof *l->is_needed);
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (is_in_sweep(l, &l->loop->roots[i], sweep)) need_root(l, &l->loop->roots[i]);
}

static void need_all(LoopPrinter *l) {
  memset(l->is_needed, 0, l->k->nexprs * sizeof *l->is_needed);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    need_root(l, root);
    if (root->kind == ROOT_REDUCE_INNER) need(l, root->expr);
  }
}

static bool is_printed(const LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  return l->is_needed[id] && e->op != EXPR_CONSTANT && !is_row_sum(l, id);
}

// Rows: scalars, and pointers to where a row starts

static void open_rows(LoopPrinter *l) {
  if (!has_rows(l)) return;
  line(l, "UNROLL for (int r = 0; r < rows; r++) {");
  open_brace(l);
}

static void close_rows(LoopPrinter *l) {
  if (has_rows(l)) close_brace(l);
}

static void declare_pointer(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  const char *constness = is_written ? "" : "const ";
  if (has_rows(l) && varies_by_row(l, access_axes(l->k, a))) {
    line(l, "%s%s *p_%u[%d]; // %s", constness, element_type(a->type), (unsigned)id, l->loop->rows,
         access_member(l, a));
    return;
  }
  if (varies_by_row(l, access_axes(l->k, a))) return; // where the row is known
  line(l, "%s%s *const p_%u = a->%s;", constness, element_type(a->type), (unsigned)id, access_member(l, a));
}

static void set_pointer(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  if (!varies_by_row(l, access_axes(l->k, a))) return;
  begin_line(l);
  if (has_rows(l)) text_format(l->out, "p_%u[r] = a->%s", (unsigned)id, access_member(l, a));
  else
    text_format(l->out, "%s%s *const p_%u = a->%s", is_written ? "" : "const ", element_type(a->type), (unsigned)id,
                access_member(l, a));
  add_terms(l, a->stride, loop_outer_axes(l->loop), true);
  text_add_string(l->out, ";\n");
}

// Calls f for each access that vectors or middle axes use: loads, then stores.
static void for_each_pointer(LoopPrinter *l, void (*f)(LoopPrinter *, AccessId, bool)) {
  need_all(l);
  bool *seen = arena_array(l->p->scratch, l->k->naccesses + 1, sizeof *seen);
  if (!seen) {
    l->p->out_of_memory = true;
    return;
  }
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    if (!l->is_needed[id] || e->op != EXPR_LOAD || expr_level(l, id) != LEVEL_VECTOR || seen[e->access]) continue;
    seen[e->access] = true;
    f(l, e->access, false);
  }
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_STORE || root_level(l, root) != LEVEL_VECTOR || seen[root->access]) continue;
    seen[root->access] = true;
    f(l, root->access, true);
  }
}

static void find_times(LoopPrinter *l) {
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    int t = 0;
    for (int a = 0; a < 3; a++)
      if (e->args[a] && l->time[e->args[a]] > t) t = l->time[e->args[a]];
    for (size_t i = 0; i < l->loop->nroots; i++) {
      const Root *root = &l->loop->roots[i];
      if (root->kind == ROOT_REDUCE_INNER && root->expr == id) t = root->sweep + 1;
    }
    l->time[id] = t;
  }
}

static bool has_row_work(const LoopPrinter *l, int section) {
  if (section == 0) return true;
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && l->time[id] == section && expr_level(l, id) <= LEVEL_ROW) return true;
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_INNER && root_level(l, root) <= LEVEL_ROW && l->time[root->expr] == section)
      return true;
  }
  return false;
}

static void print_row_roots(LoopPrinter *l, int section) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER || root_level(l, root) > LEVEL_ROW || l->time[root->expr] != section)
      continue;
    if (root->kind == ROOT_STORE) {
      print_scalar_store(l, root);
      continue;
    }
    begin_line(l);
    text_format(l->out, "*part_%u += (double)", (unsigned)root->access);
    add_scalar(l, root->expr);
    text_add_string(l->out, ";\n");
  }
}

// The outer axes whose indices a section's text mentions. Without rows, section 0 speaks for the whole step.
static AxisSet mentioned_axes(LoopPrinter *l, int section) {
  bool is_whole = !has_rows(l);
  AxisSet axes = 0;
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    if (!l->is_needed[id] || (e->op != EXPR_LOAD && e->op != EXPR_COMBINE)) continue;
    bool is_vector = expr_level(l, id) == LEVEL_VECTOR; // its row pointer is set in section 0
    if (is_whole || (is_vector ? section == 0 : l->time[id] == section)) axes |= e->axes;
  }
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_STORE) continue;
    bool is_vector = root_level(l, root) == LEVEL_VECTOR;
    if (is_whole || (is_vector ? section == 0 : l->time[root->expr] == section))
      axes |= access_axes(l->k, &l->k->accesses[root->access]);
  }
  return axes & loop_outer_axes(l->loop);
}

// Those outer axes' indices from the flattened one.
static void print_row_indices(LoopPrinter *l, AxisSet axes) {
  const Loop *loop = l->loop;
  const char *o = has_rows(l) ? "(o + (size_t)r)" : "o";
  int64_t below = 1;
  for (int i = loop->nouter - 1; i >= 0; i--) {
    int axis = loop->order[i];
    if (axes >> axis & 1) {
      begin_line(l);
      text_format(l->out, "const size_t %s = %s", axis_name(l, axis), o);
      if (below != 1) text_format(l->out, " / %lld", (long long)below);
      if (i > 0) text_format(l->out, " %% %lld", (long long)l->k->axes[axis].extent);
      text_add_string(l->out, ";\n");
    }
    below *= l->k->axes[axis].extent > 0 ? l->k->axes[axis].extent : 1;
  }
}

// The scalars that become known before sweep `section`, and what is stored or added up of them.
static void print_section(LoopPrinter *l, int section) {
  need_all(l);
  if (!has_row_work(l, section)) return;
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    if (!is_printed(l, id) || l->time[id] != section) continue;
    Level level = expr_level(l, id);
    if (level == LEVEL_CALL) print_scalar_expr(l, id, 0);
    else if (level == LEVEL_ROW && has_rows(l)) line(l, "%s %s[%d];", l->scalar, l->name[id], l->loop->rows);
  }
  open_rows(l);
  if (section == 0 || has_rows(l)) print_row_indices(l, mentioned_axes(l, section));
  if (section == 0) for_each_pointer(l, set_pointer);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && l->time[id] == section && expr_level(l, id) == LEVEL_ROW)
      print_scalar_expr(l, id, loop_outer_axes(l->loop));
  print_row_roots(l, section);
  close_rows(l);
}

// Vectors

static void add_accumulate(LoopPrinter *l, ExprId operand, const char *sum, const char *part) {
  const Expr *e = &l->k->exprs[operand];
  if (is_fused_product(l, operand)) {
    text_format(l->out, "%c_fma(", l->prefix);
    add_vector(l, e->args[0]);
    text_add_string(l->out, ", ");
    add_vector(l, e->args[1]);
    text_format(l->out, ", %s%s)", sum, part);
  } else {
    text_format(l->out, "%c_add(%s%s, ", l->prefix, sum, part);
    add_vector(l, operand);
    text_add_string(l->out, ")");
  }
}

static void print_vector_root(LoopPrinter *l, const Root *root) {
  char sum[32];
  if (root->kind == ROOT_STORE) {
    print_vector_store(l, root);
    return;
  }
  begin_line(l);
  if (root->kind == ROOT_REDUCE_OUTER) {
    snprintf(sum, sizeof sum, "part_%u_v", (unsigned)root->access);
    text_format(l->out, "%s = ", sum);
    add_accumulate(l, root->expr, sum, "");
    text_add_string(l->out, ";\n");
    return;
  }
  snprintf(sum, sizeof sum, "acc_%u", (unsigned)root->expr);
  text_format(l->out, "%s%s = ", sum, l->part);
  if (l->is_tail) text_format(l->out, "%c_merge(n, ", l->prefix);
  add_accumulate(l, root_operand(l, root), sum, l->part);
  if (l->is_tail) text_format(l->out, ", %s%s)", sum, l->part);
  text_add_string(l->out, ";\n");
}

static void print_array_sums(LoopPrinter *l, int sweep, bool is_load) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->sweep != sweep || !is_array_sum(l, root)) continue;
    unsigned id = (unsigned)root->access;
    const char *tail = l->is_tail ? "_n" : "", *n = l->is_tail ? ", n" : "";
    begin_line(l);
    if (is_load) text_format(l->out, "%s part_%u_v = %c_load%s(part_%u", l->vec, id, l->prefix, tail, id);
    else text_format(l->out, "%c_store%s(part_%u", l->prefix, tail, id);
    add_terms(l, l->k->accesses[root->access].stride, loop_inner_axes(l->loop) & ~(1U << vector_axis(l->loop)), true);
    text_format(l->out, " + %s", l->lane);
    if (!is_load) text_format(l->out, ", part_%u_v", id);
    text_format(l->out, "%s);\n", n);
  }
}

// While a row block is looked at for the last time, the next one is on its way.
static void print_prefetches(LoopPrinter *l) {
  need_all(l);
  for (AccessId id = 0; id < l->k->naccesses; id++) {
    const Access *a = &l->k->accesses[id];
    bool is_loaded = false;
    for (ExprId e = 1; e < l->k->nexprs && !is_loaded; e++)
      is_loaded = l->is_needed[e] && l->k->exprs[e].op == EXPR_LOAD && l->k->exprs[e].access == id &&
                  expr_level(l, e) == LEVEL_VECTOR && varies_by_row(l, l->k->exprs[e].axes);
    if (!is_loaded) continue;
    begin_line(l);
    text_add_string(l->out, "v_prefetch(");
    add_address(l, id, true);
    text_format(l->out, " + ahead * %lld);\n", (long long)a->stride[l->loop->order[0]]);
  }
}

// The body of the innermost loop: what all rows share, then each row.
static void print_body(LoopPrinter *l, int sweep) {
  need_sweep(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && !varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  print_array_sums(l, sweep, true);
  open_rows(l);
  if (l->loop->prefetch && sweep == l->loop->nsweeps - 1 && !l->is_tail) {
    print_prefetches(l);
    need_sweep(l, sweep);
  }
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (is_in_sweep(l, root, sweep) && (root->kind == ROOT_REDUCE_INNER || root_level(l, root) == LEVEL_VECTOR))
      print_vector_root(l, root);
  }
  close_rows(l);
  print_array_sums(l, sweep, false);
}

// From `from` to `to`: whole groups of vectors, whole vectors, what is left.
static void print_vector_loops(LoopPrinter *l, int sweep, const char *from, const char *to, bool has_sums) {
  int ways = has_sums ? l->loop->accumulators : 1;
  const char *alone = has_rows(l) ? "[r]" : l->loop->accumulators > 1 ? "[0]" : "";
  line(l, "size_t i = %s;", from);
  if (ways > 1) {
    line(l, "for (; i + %d <= %s; i += %d) {", ways * LANES, to, ways * LANES);
    open_brace(l);
    line(l, "UNROLL for (int u = 0; u < %d; u++) {", ways);
    open_brace(l);
    line(l, "const size_t j = i + (size_t)(u * %d);", LANES);
    l->lane = "j";
    l->part = "[u]";
    print_body(l, sweep);
    close_brace(l);
    close_brace(l);
  }
  l->lane = "i";
  l->part = alone;
  line(l, "for (; i + %d <= %s; i += %d) {", LANES, to, LANES);
  open_brace(l);
  print_body(l, sweep);
  close_brace(l);
  if (!l->loop->tile && l->k->axes[vector_axis(l->loop)].extent % LANES == 0) return;
  line(l, "if (i < %s) {", to);
  open_brace(l);
  line(l, "const int n = (int)(%s - i);", to);
  l->is_tail = true;
  print_body(l, sweep);
  l->is_tail = false;
  close_brace(l);
}

// Sums over a row

typedef struct Runs { // how a sweep's additions are kept in short chains
  bool has_sums, has_totals;
  int64_t vector_run; // elements of the innermost axis in a run; 0: all of them
  int64_t middle_run; // iterations of the last middle axis in a run; 0: all
} Runs;

static Runs plan_runs(const LoopPrinter *l, int sweep) {
  const Loop *loop = l->loop;
  Runs runs = {0};
  for (size_t i = 0; i < loop->nroots; i++)
    runs.has_sums |= loop->roots[i].kind == ROOT_REDUCE_INNER && loop->roots[i].sweep == sweep;
  if (!runs.has_sums || l->k->is_f64) return runs;
  int64_t width = loop->tile ? loop->tile : l->k->axes[vector_axis(loop)].extent;
  int64_t chain = width / (LANES * loop->accumulators) + 1, middle = 1;
  for (int i = 0; i < loop->ninner - 1; i++) middle *= l->k->axes[loop->order[loop->nouter + i]].extent;
  if (chain > LONGEST_RUN) runs.vector_run = (int64_t)LONGEST_RUN * LANES * loop->accumulators;
  else if (chain * middle > LONGEST_RUN) runs.middle_run = LONGEST_RUN / chain;
  runs.has_totals = runs.vector_run || runs.middle_run;
  return runs;
}

static void for_each_sum(LoopPrinter *l, int sweep, void (*f)(LoopPrinter *, ExprId)) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind == ROOT_REDUCE_INNER && l->loop->roots[i].sweep == sweep) f(l, l->loop->roots[i].expr);
}

static int nparts(const LoopPrinter *l) {
  return has_rows(l) ? l->loop->rows : l->loop->accumulators;
}

static void declare_accumulator(LoopPrinter *l, ExprId id) {
  if (nparts(l) == 1) line(l, "%s acc_%u = %c_set(0);", l->vec, (unsigned)id, l->prefix);
  else {
    line(l, "%s acc_%u[%d];", l->vec, (unsigned)id, nparts(l));
    line(l, "UNROLL for (int u = 0; u < %d; u++) acc_%u[u] = %c_set(0);", nparts(l), (unsigned)id, l->prefix);
  }
}

static void declare_total(LoopPrinter *l, ExprId id) {
  if (!has_rows(l)) line(l, "dvec total_%u = d_set(0);", (unsigned)id);
  else {
    line(l, "dvec total_%u[%d];", (unsigned)id, l->loop->rows);
    line(l, "UNROLL for (int r = 0; r < %d; r++) total_%u[r] = d_set(0);", l->loop->rows, (unsigned)id);
  }
}

// The accumulators of one sum as one vector, pairwise; with rows, that of the row `r`.
static void add_merged(LoopPrinter *l, ExprId id, const char *r, int first, int count) {
  if (has_rows(l)) text_format(l->out, "acc_%u%s", (unsigned)id, r);
  else if (nparts(l) == 1) text_format(l->out, "acc_%u", (unsigned)id);
  else if (count == 1) text_format(l->out, "acc_%u[%d]", (unsigned)id, first);
  else {
    text_format(l->out, "%c_add(", l->prefix);
    add_merged(l, id, r, first, count / 2);
    text_add_string(l->out, ", ");
    add_merged(l, id, r, first + count / 2, count - count / 2);
    text_add_string(l->out, ")");
  }
}

static void flush_accumulator(LoopPrinter *l, ExprId id) {
  begin_line(l);
  if (has_rows(l)) text_add_string(l->out, "UNROLL for (int r = 0; r < rows; r++) ");
  const char *part = has_rows(l) ? "[r]" : "";
  text_format(l->out, "total_%u%s = d_add(total_%u%s, d_from_v(", (unsigned)id, part, (unsigned)id, part);
  add_merged(l, id, "[r]", 0, nparts(l));
  text_add_string(l->out, "));\n");
}

static void finish_sum(LoopPrinter *l, ExprId id, bool has_totals) {
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  if (is_array) line(l, "%s %s[%d];", l->scalar, l->name[id], l->loop->rows);
  begin_line(l);
  if (is_array) text_format(l->out, "UNROLL for (int r = 0; r < rows; r++) %s[r] = ", l->name[id]);
  else text_format(l->out, "const %s %s = ", l->scalar, l->name[id]);
  const char *r = is_array ? "[r]" : "[0]"; // a sum that is no row's own is the same in all
  if (has_totals) text_format(l->out, "(float)d_sum(total_%u%s);\n", (unsigned)id, has_rows(l) ? r : "");
  else {
    text_format(l->out, "%c_sum(", l->prefix);
    add_merged(l, id, r, 0, nparts(l));
    text_add_string(l->out, ");\n");
  }
}

static void print_middle_exprs(LoopPrinter *l, int sweep, int depth) {
  need_sweep(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    int own;
    if (is_printed(l, id) && level_of(l, l->k->exprs[id].axes, &own) == LEVEL_MIDDLE && own == depth)
      print_scalar_expr(l, id, ~0U);
  }
}

// The row's elements from `from` to `to` of the innermost axis, in runs if chains would be too long.
static void print_vector_runs(LoopPrinter *l, int sweep, const Runs *runs) {
  char whole[24];
  snprintf(whole, sizeof whole, "%lld", (long long)l->k->axes[vector_axis(l->loop)].extent);
  const char *from = l->loop->tile ? "begin" : "0", *to = l->loop->tile ? "end" : whole;
  if (!runs->vector_run) {
    if (l->loop->ninner == 1) line(l, "{");
    if (l->loop->ninner == 1) open_brace(l);
    print_vector_loops(l, sweep, from, to, runs->has_sums);
    if (l->loop->ninner == 1) close_brace(l);
    return;
  }
  line(l, "for (size_t i0 = %s; i0 < %s; i0 += %lld) {", from, to, (long long)runs->vector_run);
  open_brace(l);
  line(l, "const size_t i1 = i0 + %lld < %s ? i0 + %lld : %s;", (long long)runs->vector_run, to,
       (long long)runs->vector_run, to);
  for_each_sum(l, sweep, declare_accumulator);
  print_vector_loops(l, sweep, "i0", "i1", true);
  for_each_sum(l, sweep, flush_accumulator);
  close_brace(l);
}

static void print_middle_loops(LoopPrinter *l, int sweep, int depth, const Runs *runs) {
  if (depth == l->loop->ninner - 1) {
    print_vector_runs(l, sweep, runs);
    return;
  }
  int axis = l->loop->order[l->loop->nouter + depth];
  const char *name = axis_name(l, axis);
  long long extent = (long long)l->k->axes[axis].extent;
  bool in_runs = runs->middle_run && depth == l->loop->ninner - 2;
  if (in_runs) {
    line(l, "for (size_t b = 0; b < %lld; b += %lld) {", extent, (long long)runs->middle_run);
    open_brace(l);
    for_each_sum(l, sweep, declare_accumulator);
    line(l, "for (size_t %s = b; %s < b + %lld && %s < %lld; %s++) {", name, name, (long long)runs->middle_run, name,
         extent, name);
  } else {
    line(l, "for (size_t %s = 0; %s < %lld; %s++) {", name, name, extent, name);
  }
  open_brace(l);
  print_middle_exprs(l, sweep, depth);
  print_middle_loops(l, sweep, depth + 1, runs);
  close_brace(l);
  if (!in_runs) return;
  for_each_sum(l, sweep, flush_accumulator);
  close_brace(l);
}

static void print_sweep(LoopPrinter *l, int sweep) {
  bool has_work = false;
  for (size_t i = 0; i < l->loop->nroots; i++) has_work |= is_in_sweep(l, &l->loop->roots[i], sweep);
  if (!has_work) return;
  Runs runs = plan_runs(l, sweep);
  for_each_sum(l, sweep, runs.has_totals ? declare_total : declare_accumulator);
  if (axes_nelems(l->k, loop_inner_axes(l->loop))) print_middle_loops(l, sweep, 0, &runs);
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind == ROOT_REDUCE_INNER && l->loop->roots[i].sweep == sweep)
      finish_sum(l, l->loop->roots[i].expr, runs.has_totals);
}

// Functions

static void add_partial_parameters(LoopPrinter *l, bool is_call) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const char *type = element_type(l->k->accesses[root->access].type);
    if (is_call) text_format(l->out, ", part_%u", (unsigned)root->access);
    else text_format(l->out, ", %s *part_%u", type, (unsigned)root->access);
  }
}

static void print_streams(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_STORE && root->is_streamed)
      line(l, "const int streams_%u = (uintptr_t)a->%s %% 64 == 0;", (unsigned)root->access,
           access_member(l, &l->k->accesses[root->access]));
  }
}

static void print_step(LoopPrinter *l) {
  const char *id = l->p->identifier;
  text_format(l->out, "static inline ALWAYS_INLINE void %s_kernel%zu_step%zu(const struct %s_args *a", id,
              l->kernel_index, l->loop_index, id);
  add_partial_parameters(l, false);
  text_format(l->out, "%s%s) {\n", l->loop->tile ? ", size_t begin, size_t end" : ", size_t o",
              has_rows(l) ? ", const int rows" : "");
  open_brace(l);
  need_all(l);
  bool mentions_o = has_rows(l) || mentioned_axes(l, 0);
  if (!l->loop->tile && !mentions_o) line(l, "(void)o;");
  print_streams(l);
  if (l->loop->prefetch) {
    long long rows = l->loop->prefetch, total = (long long)l->k->axes[l->loop->order[0]].extent;
    line(l, "const size_t ahead = o + %lld <= %lld ? %lld : 0; // rows", 2 * rows, total, rows);
  }
  for_each_pointer(l, declare_pointer);
  for (int sweep = 0; sweep <= l->loop->nsweeps; sweep++) {
    print_section(l, sweep);
    if (sweep < l->loop->nsweeps) print_sweep(l, sweep);
  }
  close_brace(l);
  text_add_string(l->out, "\n");
}

static void print_partials(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &l->k->accesses[root->access];
    long long nelems = (long long)axes_nelems(l->k, access_axes(l->k, a));
    unsigned access = (unsigned)root->access;
    line(l, "%s *const part_%u = a->%s + block * %lld;", element_type(a->type), access, access_member(l, a), nelems);
    if (nelems) line(l, "for (size_t i = 0; i < %lld; i++) part_%u[i] = 0;", nelems, access);
  }
}

static void print_block_range(LoopPrinter *l) {
  const Loop *loop = l->loop;
  long long total = 1, kept = 1, length = loop->tile ? loop->tile : loop->block;
  for (int i = 0; i < loop->nouter; i++) *(i < loop->nkept ? &kept : &total) *= l->k->axes[loop->order[i]].extent;
  if (loop->tile) total = l->k->axes[loop->order[0]].extent;
  if (loop->nkept) {
    long long chunks = (total + length - 1) / length;
    if (!chunks) chunks = 1;
    line(l, "const size_t start = block / %lld * %lld, chunk = block %% %lld * %lld;", chunks, total, chunks, length);
    line(l, "const size_t begin = start + chunk, end = start + (chunk + %lld < %lld ? chunk + %lld : %lld);", length,
         total, length, total);
  } else {
    line(l, "const size_t begin = block * %lld, end = begin + %lld < %lld ? begin + %lld : %lld;", length, length,
         total, length, total);
  }
}

static void add_step_call(LoopPrinter *l, const char *range, const char *rows) {
  text_format(l->out, "%s_kernel%zu_step%zu(a", l->p->identifier, l->kernel_index, l->loop_index);
  add_partial_parameters(l, true);
  text_format(l->out, ", %s%s);\n", range, rows);
}

static void print_block(LoopPrinter *l) {
  const Loop *loop = l->loop;
  const char *id = l->p->identifier;
  bool has_streams = false;
  for (size_t i = 0; i < loop->nroots; i++) has_streams |= loop->roots[i].is_streamed;
  line(l, "static void %s_kernel%zu_loop%zu(const void *args, size_t block) {", id, l->kernel_index, l->loop_index);
  open_brace(l);
  line(l, "const struct %s_args *a = args;", id);
  print_block_range(l);
  print_partials(l);
  if (loop->tile) {
    begin_line(l);
    add_step_call(l, "begin, end", "");
  } else {
    line(l, "size_t o = begin;");
    if (has_rows(l)) {
      begin_line(l);
      text_format(l->out, "for (; o + %d <= end; o += %d) ", loop->rows, loop->rows);
      char rows[16];
      snprintf(rows, sizeof rows, ", %d", loop->rows);
      add_step_call(l, "o", rows);
    }
    begin_line(l);
    text_add_string(l->out, "for (; o < end; o++) ");
    add_step_call(l, "o", has_rows(l) ? ", 1" : "");
  }
  if (has_streams) line(l, "v_fence();");
  close_brace(l);
  text_add_string(l->out, "\n");
}

static bool prepare(LoopPrinter *l) {
  Arena *scratch = l->p->scratch;
  size_t n = l->k->nexprs;
  l->name = ARENA_ARRAY(scratch, const char *, n);
  l->nuses = ARENA_ARRAY(scratch, uint32_t, n);
  l->time = ARENA_ARRAY(scratch, int, n);
  l->is_needed = ARENA_ARRAY(scratch, bool, n);
  if (!l->name || !l->nuses || !l->time || !l->is_needed) return false;
  for (size_t i = 0; i < l->loop->nroots; i++) need(l, root_operand(l, &l->loop->roots[i]));
  for (ExprId id = 1; id < n; id++)
    for (int a = 0; a < 3 && l->is_needed[id] && !is_row_sum(l, id); a++) l->nuses[l->k->exprs[id].args[a]]++;
  for (size_t i = 0; i < l->loop->nroots; i++) l->nuses[root_operand(l, &l->loop->roots[i])]++;
  for (ExprId id = 1; id < n; id++)
    if (l->is_needed[id] || is_row_sum(l, id)) l->name[id] = new_name(l, id);
  find_times(l);
  return true;
}

void print_loop_functions(Printer *p, size_t kernel, size_t loop) {
  const Kernel *k = p->program->kernels[kernel];
  LoopPrinter l = {.p = p, .out = p->out, .k = k, .loop = &k->loops[loop], .kernel_index = kernel, .loop_index = loop};
  l.vec = k->is_f64 ? "dvec" : "vec";
  l.scalar = k->is_f64 ? "double" : "float";
  l.mask = k->is_f64 ? "dmask" : "mask";
  l.prefix = k->is_f64 ? 'd' : 'v';
  if (!prepare(&l)) {
    p->out_of_memory = true;
    return;
  }
  print_step(&l);
  print_block(&l);
}
