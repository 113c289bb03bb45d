// A loop's tree as C: a function for each kind of node. A scalar is a variable, or with several rows at once an element
// of an array [r]; a vector is a variable of the innermost loop's body. Numbers are written where they are used.
#include "backends/codegen/print/printer.h"
#include "ir/graph/open.h"
#include "ir/loops/loops.h"
#include "ir/support/escape.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

typedef struct TreePrinter {
  Printer *p;
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  size_t kernel_index, loop_index;
  const char **name;                // by ExprId, then of open dims
  const char **access_name;         // by AccessId: what stands behind p_, part_ and so on
  bool mentions_dim[MAX_OPEN_DIMS]; // in the function's body so far
  const char *vec, *scalar, *mask;  // C types
  char prefix;                      // of the vocabulary: v or d
  int indent;
} TreePrinter;

static void add(TreePrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add(TreePrinter *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_format_list(l->out, format, args);
  va_end(args);
}

static void begin_line(TreePrinter *l) {
  add(l, "%*s", 2 * l->indent, "");
}

// Numbers and indices

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

static const char *number_text(TreePrinter *l, int64_t number, Powers powers) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; number && powers && i < l->k->graph->ndims; i++) {
    names[i] = l->name[l->k->nexprs + i];
    l->mentions_dim[i] |= powers_of_dim(powers, i) > 0;
  }
  return open_number_text(l->p, number, powers, names);
}

static void add_var(TreePrinter *l, Var v) {
  static const char *const names[] = {[VAR_AHEAD_LANE] = "ahead_i",
                                      [VAR_IS_AHEAD] = "is_next",
                                      [VAR_OUTER] = "o",
                                      [VAR_ROW] = "r",
                                      [VAR_ROWS] = "rows",
                                      [VAR_LANE] = "i",
                                      [VAR_WAY] = "u",
                                      [VAR_WAY_LANE] = "j",
                                      [VAR_LANES] = "n",
                                      [VAR_RUN] = "b",
                                      [VAR_RUN_BEGIN] = "i0",
                                      [VAR_RUN_END] = "i1",
                                      [VAR_RUN_LENGTH] = "run",
                                      [VAR_CHAIN] = "chain",
                                      [VAR_AHEAD] = "ahead",
                                      [VAR_BLOCK] = "block",
                                      [VAR_BEGIN] = "begin",
                                      [VAR_END] = "end",
                                      [VAR_START] = "start",
                                      [VAR_CHUNK] = "chunk",
                                      [VAR_PART] = "b",
                                      [VAR_ELEMENT] = "i"};
  switch (v.kind) {
  case VAR_AXIS: add(l, "%s", l->k->axes[v.of].name); return;
  case VAR_NEXT: add(l, "%s_next", l->k->axes[v.of].name); return;
  case VAR_AHEAD_AXIS: add(l, "ahead_%s", l->k->axes[v.of].name); return;
  case VAR_DISTANCE: add(l, "ahead_%s", l->access_name[v.of]); return;
  default: add(l, "%s", names[v.kind]);
  }
}

static const struct Token { // of C
  const char *text;
  int precedence;
} operators_in_c[] = {[INDEX_ADD] = {" + ", 4},      [INDEX_SUBTRACT] = {" - ", 4},  [INDEX_MULTIPLY] = {" * ", 5},
                      [INDEX_DIVIDE] = {" / ", 5},   [INDEX_REMAINDER] = {" % ", 5}, [INDEX_LESS] = {" < ", 3},
                      [INDEX_AT_MOST] = {" <= ", 3}, [INDEX_AT_LEAST] = {" >= ", 3}, [INDEX_MORE] = {" > ", 3},
                      [INDEX_DIFFERS] = {" != ", 2}};

static bool is_compound(const Index *i) {
  return i->op >= INDEX_ADD && i->op != INDEX_SIGNED;
}

static void add_index_within(TreePrinter *l, const Index *i, int precedence);

// An operand; what is an int beside a size_t is made one.
static void add_operand(TreePrinter *l, const Index *i, int precedence, bool is_size) {
  if (is_size && index_type(i) == INDEX_INT) {
    add(l, "(size_t)");
    precedence = is_compound(i) ? 9 : 0;
  }
  add_index_within(l, i, precedence);
}

static void add_index_within(TreePrinter *l, const Index *i, int precedence) {
  const bool is_size = index_type(i) == INDEX_SIZE;
  switch (i->op) {
  case INDEX_NUMBER: add(l, "%s", number_text(l, i->number, i->powers)); return;
  case INDEX_VAR: add_var(l, i->var); return;
  case INDEX_BLOCK_LENGTH: add(l, "a->k%zu_loop%u_block", l->kernel_index, (unsigned)i->loop); return;
  case INDEX_NCHUNKS: add(l, "a->k%zu_loop%u_chunks", l->kernel_index, (unsigned)i->loop); return;
  case INDEX_SIGNED:
    add(l, "(ptrdiff_t)(");
    add_index_within(l, i->args[0], 0);
    add(l, ")");
    return;
  default: break;
  }
  const int own = i->op == INDEX_CHOOSE ? 1 : operators_in_c[i->op].precedence;
  add(l, "%s", own < precedence ? "(" : "");
  if (i->op == INDEX_CHOOSE) {
    add_index_within(l, i->args[0], 2);
    add(l, " ? ");
    add_index_within(l, i->args[1], 1);
    add(l, " : ");
    add_index_within(l, i->args[2], 1);
  } else {
    add_operand(l, i->args[0], own, is_size);
    add(l, "%s", operators_in_c[i->op].text);
    add_operand(l, i->args[1], own + 1, is_size);
  }
  add(l, "%s", own < precedence ? ")" : "");
}

static void add_index(TreePrinter *l, const Index *i) {
  add_index_within(l, i, 0);
}

static void add_number(TreePrinter *l, double number, bool is_f64) {
  const char *cast = is_f64 ? "(double)" : ""; // the macros are floats
  if (number != number) add(l, "%sNAN", cast);
  else if (number - number != 0) add(l, "%s%sINFINITY", number > 0 ? "" : "-", cast);
  else {
    text_add_number(l->out, number, !is_f64);
    if (!is_f64) add(l, "f");
  }
}

// Addresses

static bool is_place(const Access *a) {
  return a->type == TYPE_NONE || type_is_packed(a->type);
}

static const char *access_member(const TreePrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  if (a->value) return l->p->value_member[a->value->index];
  return l->p->temporary_member[l->p->first_temporary[l->kernel_index] + a->temporary];
}

static void add_base(TreePrinter *l, const Address *at) {
  switch (at->base) {
  case BASE_TENSOR:
    if (is_place(&l->k->accesses[at->access])) add(l, "(size_t)0");
    else add(l, "a->%s", access_member(l, at->access));
    return;
  case BASE_POINTER: add(l, "p_%s%s", l->access_name[at->access], at->is_row ? "[r]" : ""); return;
  case BASE_ROWS: add(l, "rows_%s", l->access_name[at->access]); return;
  case BASE_KEPT: add(l, "kept_%s", l->name[at->access]); return;
  case BASE_PART: add(l, "part_%s", l->access_name[at->access]); return;
  }
}

static void add_address(TreePrinter *l, const Address *at) {
  add_base(l, at);
  if (!at->index) return;
  add(l, " + ");
  add_operand(l, at->index, 4, true);
}

// Of elements without addresses, the memory stands before the place.
static void add_memory(TreePrinter *l, const Address *at) {
  if (is_place(&l->k->accesses[at->access])) add(l, "a->%s, ", access_member(l, at->access));
  add_address(l, at);
}

// An element; up to where a bracket closes, or what takes a place.
static void open_element(TreePrinter *l, const Address *at) {
  const bool has_no_address = is_place(&l->k->accesses[at->access]);
  if (has_no_address) add(l, "a->%s, ", access_member(l, at->access));
  else {
    add_base(l, at);
    add(l, "[");
  }
  if (at->index) add_index(l, at->index);
  else add(l, "0");
}

static void add_step(TreePrinter *l, const Index *step) { // from lane to lane
  add(l, index_type(step) == INDEX_SIZE ? ", (ptrdiff_t)" : ", ");
  add_index_within(l, step, 9);
}

// Types

const char *element_type(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F64] = "double",      [TYPE_F32] = "float",       [TYPE_F16] = "uint16_t",    [TYPE_BF16] = "uint16_t",
      [TYPE_S64] = "int64_t",     [TYPE_S32] = "int32_t",     [TYPE_S8] = "int8_t",       [TYPE_U8] = "uint8_t",
      [TYPE_BOOLEAN] = "uint8_t", [TYPE_F8_E4M3] = "uint8_t", [TYPE_F8_E5M2] = "uint8_t", [TYPE_S4] = "uint8_t",
      [TYPE_U4] = "uint8_t"};
  return names[type];
}

static const char *type_suffix(Type type) { // of functions that access memory
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "_f16",      [TYPE_BF16] = "_bf16",    [TYPE_S32] = "_s32",    [TYPE_S8] = "_s8", [TYPE_U8] = "_u8",
      [TYPE_F8_E4M3] = "_e4m3", [TYPE_F8_E5M2] = "_e5m2", [TYPE_BOOLEAN] = "_b8", [TYPE_S4] = "_s4", [TYPE_U4] = "_u4"};
  return names[type] ? names[type] : "";
}

// The family of functions that reads this type, and whether what it gives must be widened or narrowed.
static char memory_prefix(Type type) {
  return type == TYPE_F64 || type == TYPE_S32 ? 'd' : 'v';
}

static const char *scalar_from(Type type) {
  static const char *const names[TYPE_COUNT] = {
      [TYPE_F16] = "f32_from_f16",      [TYPE_BF16] = "f32_from_bf16",    [TYPE_BOOLEAN] = "0 != ",
      [TYPE_F8_E4M3] = "f32_from_e4m3", [TYPE_F8_E5M2] = "f32_from_e5m2", [TYPE_S4] = "f32_from_s4",
      [TYPE_U4] = "f32_from_u4",
  };
  return names[type] ? names[type] : "";
}

static const char *scalar_type(const TreePrinter *l, const Expr *e) {
  return expr_is_s64(l->k, e) ? "int64_t" : expr_info[e->op].is_mask ? "int" : l->scalar;
}

static const char *combine_name(ExprOp reduction) {
  return expr_info[reductions[reduction].combine].name;
}

// Operands

static void add_scalar(TreePrinter *l, ExprId id) {
  const Form form = l->t->form[id];
  if (form == FORM_NUMBER) add_number(l, l->k->exprs[id].number, l->k->is_f64);
  else add(l, "%s%s", l->name[id], form == FORM_ROWS ? "[r]" : "");
}

static void add_vector(TreePrinter *l, ExprId id) {
  if (l->t->form[id] == FORM_VECTOR) {
    add(l, "%s", l->name[id]);
    return;
  }
  add(l, "%c_set(", l->prefix);
  add_scalar(l, id);
  add(l, ")");
}

// Elements that a load goes further, as a scalar behind others or as each lane's own.
static void add_offset(TreePrinter *l, const Access *a, ExprId offset, bool is_lanes) {
  if (is_lanes) {
    add(l, ", %c_places(", l->prefix);
    add_vector(l, offset);
  } else {
    add(l, is_place(a) ? " + (size_t)(" : " + (ptrdiff_t)(");
    add_scalar(l, offset);
  }
  add(l, ")");
}

// Values

static void add_scalar_load(TreePrinter *l, const Expr *e, const Address *at) {
  const Access *a = &l->k->accesses[e->access];
  const char *convert = scalar_from(a->type);
  const bool is_call = *convert && a->type != TYPE_BOOLEAN;
  const bool is_widened = l->k->is_f64 && a->type != TYPE_F64 && a->type != TYPE_S64;
  add(l, "%s%s%s", is_widened ? "(double)" : "", convert, is_call ? "(" : "");
  open_element(l, at);
  if (e->args[0]) add_offset(l, a, e->args[0], false);
  add(l, "%s", is_place(a) ? ")" : is_call ? "])" : "]");
}

static void add_vector_load(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  const Access *a = &l->k->accesses[e->access];
  if (n->load == LOAD_COPIED || n->load == LOAD_KEPT || access_is_mask(a)) {
    add(l, "%s_load(", n->load != LOAD_DENSE ? "v" : l->mask);
    add_address(l, &n->address);
    add(l, ")");
    return;
  }
  if (n->load == LOAD_SPREAD) {
    add(l, "v_set(%s(*(", scalar_from(a->type));
    add_memory(l, &n->address);
    add(l, ")))");
    return;
  }
  static const char *const hows[] = {[LOAD_DENSE] = "load", [LOAD_STRIDED] = "gather", [LOAD_GATHERED] = "gather_at"};
  const char memory = memory_prefix(a->type);
  const bool converts = memory != l->prefix;
  if (converts) add(l, "%c_from_%c(", l->prefix, memory);
  add(l, "%c_%s%s%s(", memory, hows[n->load], n->is_part ? "_n" : "", type_suffix(a->type));
  add_memory(l, &n->address);
  if (e->args[0] && n->load != LOAD_GATHERED) add_offset(l, a, e->args[0], false);
  if (n->load != LOAD_DENSE) add_step(l, n->step);
  if (n->load == LOAD_GATHERED) add_offset(l, a, e->args[0], true);
  add(l, "%s%s", n->is_part ? ", n" : "", converts ? "))" : ")");
}

// Whether dropout keeps the vector's elements, or one.
static void add_is_kept(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  if (n->is_vector) add(l, "%c_", l->prefix);
  add(l, "is_kept(");
  for (int i = 0; i < expr_info[e->op].narguments; i++) {
    if (i == 2) add(l, "(double)");
    add_scalar(l, e->args[i]);
    add(l, ", ");
  }
  add_address(l, &n->address);
  if (n->is_vector) add_step(l, n->step);
  add(l, ")");
}

static void add_vector_call(TreePrinter *l, const Expr *e) {
  if (l->t->calls_long && expr_is_long(e->op)) add(l, "%s_call_", l->p->identifier);
  add(l, "%c_%s(", l->prefix, expr_info[e->op].name);
  for (int a = 0; a < expr_info[e->op].narguments; a++) {
    if (a) add(l, ", ");
    add_vector(l, e->args[a]);
  }
  add(l, ")");
}

static void add_formula_operand(TreePrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  const bool is_negative = e->op == EXPR_CONSTANT && signbit(e->number);
  add(l, "%s", is_negative ? "(" : "");
  add_scalar(l, id);
  add(l, "%s", is_negative ? ")" : "");
}

// Without a formula it is lane 0 of the vector function, whose bits libm does not promise.
static void add_formula(TreePrinter *l, const Expr *e) {
  const char *formula = expr_info[e->op].scalar;
  if (!formula) {
    add(l, "%c_lane_0(", l->prefix);
    add_vector_call(l, e);
    add(l, ")");
  }
  for (const char *c = formula; c && *c; c++) {
    if (*c == '%') add_formula_operand(l, e->args[*++c - '0']);
    else if (*c == 'F') add(l, "%s", l->k->is_f64 ? "" : "f");
    else if (*c == 'N') add(l, "%s", l->k->is_f64 ? "(float)" : "");
    else if (*c == 'W') add(l, "%s", l->k->is_f64 ? "(double)" : "");
    else text_add(l->out, c, 1);
  }
}

// Made in f64, as constants are.
static void add_count(TreePrinter *l, const Expr *e) {
  const char *count = number_text(l, (int64_t)e->number, e->powers), *cast = l->k->is_f64 ? "" : "(float)";
  if (e->op == EXPR_COUNT) add(l, "%s(double)%s", cast, count);
  else if (strcmp(count, "0") == 0) add_number(l, 1, l->k->is_f64);
  else add(l, "%s(1 / (double)(%s > 0 ? %s : 1))", cast, count, count);
}

static void add_scalar_value(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  switch (e->op) {
  case EXPR_LOAD: add_scalar_load(l, e, &n->address); return;
  case EXPR_INDEX: add(l, "(%s)%s", l->scalar, l->k->axes[__builtin_ctz(e->axes)].name); return;
  case EXPR_INTEGER: add(l, e->integer == INT64_MIN ? "INT64_MIN" : "%lld", (long long)e->integer); return;
  case EXPR_IS_KEPT: add_is_kept(l, n); return;
  case EXPR_COUNT:
  case EXPR_SHARE: add_count(l, e); return;
  default: add_formula(l, e);
  }
}

static void add_vector_value(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  if (n->load) add_vector_load(l, n);
  else if (e->op == EXPR_INDEX) {
    add(l, "%c_index(", l->prefix);
    add_index(l, n->value);
    add(l, ")");
  } else if (e->op == EXPR_IS_KEPT) {
    add_is_kept(l, n);
  } else if (e->op == EXPR_SELECT && l->t->form[e->args[0]] != FORM_VECTOR) { // one choice for all lanes
    add_scalar(l, e->args[0]);
    add(l, " ? ");
    add_vector(l, e->args[1]);
    add(l, " : ");
    add_vector(l, e->args[2]);
  } else {
    add_vector_call(l, e);
  }
}

static void print_let(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  begin_line(l);
  if (n->is_row) add(l, "%s[r] = ", l->name[n->expr]);
  else {
    const char *vector = expr_is_mask(l->k, n->expr) && n->load != LOAD_KEPT ? l->mask : l->vec;
    add(l, "const %s %s = ", n->is_vector ? vector : scalar_type(l, e), l->name[n->expr]);
  }
  if (n->is_vector) add_vector_value(l, n);
  else add_scalar_value(l, n);
  add(l, ";\n");
}

// Adds partial results up in f64, block after block.
static void print_combine(TreePrinter *l, const LoopNode *n) {
  const Access *a = &l->k->accesses[n->access];
  const char *name = l->name[n->expr], *combine = combine_name(n->reduction);
  begin_line(l);
  add(l, n->is_vector ? "dvec total_%s = d_set(" : "double total_%s = ", name);
  add_number(l, reductions[n->reduction].identity, true);
  add(l, n->is_vector ? ");\n" : ";\n");
  if (n->end) {
    const char memory = a->type == TYPE_F64 ? 'd' : 'v';
    begin_line(l);
    if (n->flag) add(l, "if (a->%s) ", access_member(l, n->access));
    add(l, "for (size_t b = 0; b < ");
    add_index(l, n->end);
    add(l, "; b++) total_%s = %s_%s(total_%s, ", name, n->is_vector ? "d" : "f64", combine, name);
    if (n->is_vector) {
      add(l, "%s%c_%s%s(", memory == 'v' ? "d_from_v(" : "", memory, n->is_strided ? "gather" : "load",
          n->is_part ? "_n" : "");
      add_address(l, &n->address);
      if (n->is_strided) add_step(l, n->step);
      add(l, "%s)%s);\n", n->is_part ? ", n" : "", memory == 'v' ? ")" : "");
    } else {
      add(l, "(double)");
      open_element(l, &n->address);
      add(l, "]);\n");
    }
  }
  const char *narrow = l->k->is_f64 ? "" : n->is_vector ? "v_from_d" : "(float)";
  begin_line(l);
  add(l, "const %s %s = %s(total_%s);\n", n->is_vector ? l->vec : l->scalar, name, narrow, name);
}

// Sums

static const char *part_text(Part part) {
  static const char *const texts[] = {[PART_ONLY] = "", [PART_ROW] = "[r]", [PART_WAY] = "[u]", [PART_FIRST] = "[0]"};
  return texts[part];
}

static void print_identity(TreePrinter *l, const LoopNode *n, char prefix, const char *type, const char *index) {
  const char *stem = n->sum == SUM_TOTAL ? "total" : "acc";
  begin_line(l);
  add(l, "%s%s_%s%s = %c_set(", type, stem, l->name[n->expr], index, prefix);
  add_number(l, reductions[n->reduction].identity, prefix == 'd');
  add(l, ");\n");
}

static void print_sum(TreePrinter *l, const LoopNode *n) {
  const char prefix = n->is_f64 ? 'd' : 'v', *type = n->is_f64 ? "dvec " : "vec ";
  if (n->sum == SUM_SCALAR) {
    begin_line(l);
    add(l, "double total_%s = ", l->name[n->expr]);
    add_number(l, reductions[n->reduction].identity, true);
    add(l, ";\n");
  } else if (n->count == 1 && !n->is_row) {
    print_identity(l, n, prefix, type, "");
  } else {
    begin_line(l);
    add(l, "%s%s_%s[%d];\n", type, n->sum == SUM_TOTAL ? "total" : "acc", l->name[n->expr], n->count);
    begin_line(l);
    add(l, "UNROLL for (int u = 0; u < %d; u++)\n", n->count);
    l->indent++;
    print_identity(l, n, prefix, "", "[u]");
    l->indent--;
  }
}

// What is added to.
static void add_target(TreePrinter *l, const LoopNode *n) {
  switch (n->sum) {
  case SUM_ACCUMULATOR: add(l, "acc_%s%s", l->name[n->expr], part_text(n->part)); return;
  case SUM_HELD: add(l, "held_%s", l->access_name[n->access]); return;
  case SUM_LANES: add(l, "v_load(part_%s)", l->access_name[n->access]); return;
  case SUM_PART:
    if (n->address.index) {
      open_element(l, &n->address);
      add(l, "]");
    } else {
      add(l, "*part_%s", l->access_name[n->access]);
    }
    return;
  default: add(l, "total_%s", l->name[n->expr]);
  }
}

static ExprId update_operand(const TreePrinter *l, const LoopNode *n) {
  const bool is_of_sum = n->sum == SUM_ACCUMULATOR || n->sum == SUM_SCALAR;
  return is_of_sum ? l->k->exprs[n->expr].args[0] : n->expr;
}

static void add_updated(TreePrinter *l, const LoopNode *n) {
  const ExprId operand = update_operand(l, n);
  const Expr *e = &l->k->exprs[operand];
  if (n->is_fused) {
    add(l, "%c_fma(", l->prefix);
    add_vector(l, e->args[0]);
    add(l, ", ");
    add_vector(l, e->args[1]);
    add(l, ", ");
    add_target(l, n);
    add(l, ")");
    return;
  }
  if (n->is_vector) add(l, "%c_%s(", n->is_widened ? 'd' : l->prefix, combine_name(n->reduction));
  else add(l, "f64_%s(", combine_name(n->reduction));
  add_target(l, n);
  add(l, n->is_widened ? ", d_from_v(" : n->is_vector ? ", " : ", (double)");
  if (n->is_vector) add_vector(l, operand);
  else add_scalar(l, operand);
  add(l, n->is_widened ? "))" : ")");
}

static void print_update(TreePrinter *l, const LoopNode *n) {
  const bool is_stored = n->sum == SUM_LANES;
  begin_line(l);
  if (n->flag) add(l, "if (part_%s) ", l->access_name[n->access]);
  if (is_stored) add(l, "v_store(part_%s, ", l->access_name[n->access]);
  else {
    add_target(l, n);
    add(l, " = ");
  }
  if (n->is_part) add(l, "%c_merge(n, ", l->prefix);
  add_updated(l, n);
  if (n->is_part) {
    add(l, ", ");
    add_target(l, n);
    add(l, ")");
  }
  add(l, is_stored ? ");\n" : ";\n");
}

// The accumulators of one sum as one vector, pairwise.
static void add_merged(TreePrinter *l, const LoopNode *n, const char *r, int first, int count) {
  if (*r) add(l, "acc_%s%s", l->name[n->expr], r);
  else if (n->count == 1) add(l, "acc_%s", l->name[n->expr]);
  else if (count == 1) add(l, "acc_%s[%d]", l->name[n->expr], first);
  else {
    add(l, "%c_%s(", l->prefix, combine_name(n->reduction));
    add_merged(l, n, r, first, count / 2);
    add(l, ", ");
    add_merged(l, n, r, first + count / 2, count - count / 2);
    add(l, ")");
  }
}

static void print_run_done(TreePrinter *l, const LoopNode *n) {
  const char *part = n->is_row ? "[r]" : "", *name = l->name[n->expr];
  begin_line(l);
  if (n->is_row) add(l, "UNROLL for (int r = 0; r < rows; r++) ");
  add(l, "total_%s%s = d_%s(total_%s%s, d_from_v(", name, part, combine_name(n->reduction), name, part);
  add_merged(l, n, part, 0, n->count);
  add(l, "));\n");
}

static void print_sum_done(TreePrinter *l, const LoopNode *n) {
  const char *name = l->name[n->expr], *over_lanes = expr_info[n->reduction].name;
  const char *r = n->is_row ? "[r]" : n->part == PART_ROW ? "[0]" : ""; // a sum that is no row's own is the same in all
  if (n->is_row) {
    begin_line(l);
    add(l, "%s %s[%lld];\n", l->scalar, name, (long long)n->count);
  }
  begin_line(l);
  if (n->is_vector) add(l, "const vec %s = acc_%s;\n", name, name);
  else if (n->sum == SUM_SCALAR) add(l, "const %s %s = (%s)total_%s;\n", l->scalar, name, l->scalar, name);
  if (n->is_vector || n->sum == SUM_SCALAR) return;
  if (n->is_row) add(l, "UNROLL for (int r = 0; r < rows; r++) %s[r] = ", name);
  else add(l, "const %s %s = ", l->scalar, name);
  if (n->has_totals) {
    add(l, "(float)d_%s(total_%s%s);\n", over_lanes, name, r);
    return;
  }
  const bool is_widened = n->is_f64 && !l->k->is_f64;
  add(l, "%s%s_%s(%s", is_widened ? "(float)" : "", n->is_f64 ? "d" : "v", over_lanes, is_widened ? "d_from_v(" : "");
  add_merged(l, n, r, 0, n->count);
  add(l, is_widened ? "));\n" : ");\n");
}

static void print_hold(TreePrinter *l, const LoopNode *n) {
  const char prefix = n->is_f64 ? 'd' : 'v', *name = l->access_name[n->access];
  begin_line(l);
  add(l, "%s held_%s = ", n->is_f64 ? "dvec" : "vec", name);
  if (n->flag) add(l, "part_%s ? ", name);
  add(l, "%c_load%s(", prefix, n->is_part ? "_n" : "");
  add_address(l, &n->address);
  add(l, n->is_part ? ", n)" : ")");
  if (n->flag) add(l, n->is_f64 ? " : d_set(0.0)" : " : v_set(0.0f)");
  add(l, ";\n");
}

static void print_release(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->flag) add(l, "if (part_%s) ", l->access_name[n->access]);
  add(l, "%c_store%s(", n->is_f64 ? 'd' : 'v', n->is_part ? "_n" : "");
  add_address(l, &n->address);
  add(l, ", held_%s%s);\n", l->access_name[n->access], n->is_part ? ", n" : "");
}

// Stores

static void print_scalar_store(TreePrinter *l, const LoopNode *n) {
  const Access *a = &l->k->accesses[n->address.access];
  static const char *const converts[TYPE_COUNT] = {
      [TYPE_F16] = "f16_from_f32",      [TYPE_BF16] = "bf16_from_f32",    [TYPE_S32] = "s32_from_f64",
      [TYPE_S8] = "s8_from_f32",        [TYPE_U8] = "u8_from_f32",        [TYPE_BOOLEAN] = "0 != ",
      [TYPE_F8_E4M3] = "e4m3_from_f32", [TYPE_F8_E5M2] = "e5m2_from_f32",
  };
  const bool wants_f64 = a->type == TYPE_F64 || a->type == TYPE_S32;
  begin_line(l);
  if (is_place(a)) add(l, "put%s(", type_suffix(a->type));
  open_element(l, &n->address);
  add(l, is_place(a) ? ", " : "] = ");
  const char *call = is_place(a) ? NULL : converts[a->type];
  const bool is_function = call && a->type != TYPE_BOOLEAN;
  add(l, "%s%s", call ? call : "", is_function ? "(" : "");
  if (wants_f64 != l->k->is_f64 && a->type != TYPE_BOOLEAN) add(l, wants_f64 ? "(double)" : "(float)");
  add_scalar(l, n->expr);
  add(l, "%s%s;\n", is_function ? ")" : "", is_place(a) ? ")" : "");
}

static void add_vector_store(TreePrinter *l, const LoopNode *n, const char *how) {
  const Access *a = &l->k->accesses[n->address.access];
  const char memory = memory_prefix(a->type);
  const bool converts = memory != l->prefix;
  add(l, "%c_%s%s%s(", memory, how, n->is_part ? "_n" : "", type_suffix(a->type));
  add_memory(l, &n->address);
  if (n->is_strided) add_step(l, n->step);
  add(l, ", ");
  if (converts) add(l, "%c_from_%c(", memory, l->prefix);
  add_vector(l, n->expr);
  add(l, "%s%s);\n", converts ? ")" : "", n->is_part ? ", n" : "");
}

static void print_store(TreePrinter *l, const LoopNode *n) {
  const AccessId id = n->address.access;
  if (!n->is_vector) {
    print_scalar_store(l, n);
    return;
  }
  begin_line(l);
  if (n->address.base == BASE_ROWS || access_is_mask(&l->k->accesses[id])) {
    add(l, "%s_store(", n->address.base == BASE_ROWS ? "v" : l->mask);
    add_address(l, &n->address);
    add(l, ", ");
    add_vector(l, n->expr);
    add(l, ");\n");
    return;
  }
  if (n->is_streamed) {
    add(l, "if (streams_%s) ", l->access_name[id]);
    add_vector_store(l, n, "stream");
    begin_line(l);
    add(l, "else ");
  }
  add_vector_store(l, n, n->is_strided ? "scatter" : "store");
}

static void print_keep(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "v_store(");
  add_address(l, &n->address);
  add(l, ", %s);\n", l->name[n->expr]);
}

static void print_load_rows(TreePrinter *l, const LoopNode *n) {
  const char *name = l->access_name[n->access];
  begin_line(l);
  add(l, "v_load_rows%s(rows_%s, p_%s", type_suffix(l->k->accesses[n->access].type), name, name);
  add_step(l, n->step);
  add(l, ", %lld);\n", (long long)n->nelems);
}

static void print_store_rows(TreePrinter *l, const LoopNode *n) {
  const char *name = l->access_name[n->access], *suffix = type_suffix(l->k->accesses[n->access].type);
  const long long width = n->nelems;
  begin_line(l);
  if (n->is_streamed) {
    add(l, "if (streams_%s) v_stream_rows%s(p_%s, rows_%s, %lld);\n", name, suffix, name, name, width);
    begin_line(l);
    add(l, "else ");
  }
  add(l, "v_store_rows%s(p_%s", suffix, name);
  add_step(l, n->step);
  add(l, ", rows_%s, %lld);\n", name, width);
}

static void print_load_column(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "v_store(rows_%s + ", l->access_name[n->access]);
  add_index(l, n->value);
  add(l, ", v_load%s(", type_suffix(l->k->accesses[n->access].type));
  add_address(l, &n->address);
  add(l, "));\n");
}

static void print_prefetch(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "v_prefetch_l2(");
  add_address(l, &n->address);
  add(l, ");\n");
}

static void print_to_line(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "const int n = (int)(-(uintptr_t)(");
  add_address(l, &n->address);
  add(l, ") %% 64 / %zu);\n", type_nbytes(l->k->accesses[n->address.access].type));
}

// Pointers, flags, room

// A place is a number, and where elements lie a pointer.
static void add_pointer_type(TreePrinter *l, const LoopNode *n) {
  const Access *a = &l->k->accesses[n->access];
  if (is_place(a)) add(l, "size_t ");
  else add(l, "%s%s *", n->is_written ? "" : "const ", element_type(a->type));
}

static void print_pointer(TreePrinter *l, const LoopNode *n) {
  const Access *a = &l->k->accesses[n->access];
  const char *name = l->access_name[n->access];
  begin_line(l);
  if (n->is_row) add(l, "p_%s[r] = ", name);
  else {
    if (is_place(a)) add(l, "const ");
    add_pointer_type(l, n);
    add(l, is_place(a) ? "p_%s = " : "const p_%s = ", name);
  }
  if (n->flag) add(l, "wants_%s ? ", name);
  add_address(l, &n->address);
  add(l, n->flag ? " : NULL;\n" : ";\n");
}

static void print_room(TreePrinter *l, const LoopNode *n) {
  const long long nelems = n->nelems;
  begin_line(l);
  switch (n->room) {
  case ROOM_TEMPORARY:
    add(l, "%s p_%s[%lld];\n", element_type(l->k->accesses[n->access].type), l->access_name[n->access], nelems);
    return;
  case ROOM_POINTERS:
    add_pointer_type(l, n);
    add(l, "p_%s[%lld];\n", l->access_name[n->access], nelems);
    return;
  case ROOM_COPY: add(l, "float rows_%s[%lld];\n", l->access_name[n->access], nelems); return;
  case ROOM_KEPT: add(l, "float kept_%s[%lld];\n", l->name[n->expr], nelems); return;
  case ROOM_SCALARS: add(l, "%s %s[%lld];\n", scalar_type(l, &l->k->exprs[n->expr]), l->name[n->expr], nelems); return;
  }
}

static void print_flag(TreePrinter *l, const LoopNode *n) {
  const char *name = l->access_name[n->access];
  begin_line(l);
  if (n->flag == FLAG_WANTED) {
    add(l, "const int wants_%s = a->%s != NULL;\n", name, access_member(l, n->access));
    return;
  }
  add(l, "const int streams_%s = ", name);
  if (n->is_peeled) add(l, "1");
  else {
    add(l, n->address.index ? "(uintptr_t)(" : "(uintptr_t)");
    add_address(l, &n->address);
    add(l, n->address.index ? ") %% 64 == 0" : " %% 64 == 0");
  }
  if (n->value) {
    add(l, " && %s > ", bare_text(l->p, number_text(l, n->value->number, n->value->powers)));
    add_index(l, n->end);
  }
  add(l, ";\n");
}

// Loops

static void print_nodes(TreePrinter *l, const LoopNode *n);

static void add_flag_test(TreePrinter *l, const LoopNode *n) {
  const char *name = l->access_name[n->access];
  if (n->flag == FLAG_HAS_SUMS) add(l, "if (a->%s) ", access_member(l, n->access));
  else add(l, "if (%s_%s) ", n->flag == FLAG_WANTED ? "wants" : "part", name);
}

// A single short statement stands behind what it is under, and others in braces below.
static void print_body(TreePrinter *l, const LoopNode *body) {
  const bool is_short =
      body && !body->next && (body->kind == NODE_STEP || body->kind == NODE_CLEAR || body->kind == NODE_LANE_PART);
  const int indent = l->indent;
  if (is_short) l->indent = 0;
  else add(l, "{\n");
  if (!is_short) l->indent++;
  print_nodes(l, body);
  l->indent = indent;
  if (is_short) return;
  begin_line(l);
  add(l, "}\n");
}

static void print_for(TreePrinter *l, const LoopNode *n) {
  const bool is_one = index_is(n->step, 1);
  const char *type = var_is_int(n->var) ? "int" : "size_t";
  begin_line(l);
  if (n->flag) add_flag_test(l, n);
  add(l, "%sfor (", n->is_unrolled ? "UNROLL " : "");
  if (n->is_whole && is_one) { // of one each, all are whole
    add(l, "; ");
    add_var(l, n->var);
    add(l, " < ");
    add_index(l, n->end);
  } else if (n->is_whole) {
    add(l, "; ");
    add_var(l, n->var);
    add(l, " + ");
    add_index(l, n->step);
    add(l, " <= ");
    add_index(l, n->end);
  } else {
    add(l, "%s ", type);
    add_var(l, n->var);
    add(l, " = ");
    add_index(l, n->is_down ? n->end : n->value);
    add(l, "; ");
    add_var(l, n->var);
    add(l, n->is_down ? "-- > " : " < ");
    add_index(l, n->is_down ? n->value : n->end);
  }
  if (n->bound) {
    add(l, " && ");
    add_var(l, n->var);
    add(l, " < ");
    add_index(l, n->bound);
  }
  add(l, "; ");
  if (!n->is_down) {
    add_var(l, n->var);
    if (is_one) add(l, "++");
    else {
      add(l, " += ");
      add_index(l, n->step);
    }
  }
  add(l, ") ");
  print_body(l, n->body);
}

static void print_if(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  if (n->test) {
    add(l, "if (");
    add_index(l, n->test);
    add(l, ") ");
  } else {
    add_flag_test(l, n);
  }
  print_body(l, n->body);
  if (!n->otherwise) return;
  begin_line(l);
  add(l, "else ");
  print_body(l, n->otherwise);
}

static void print_group(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  print_body(l, n->body);
}

static void print_comment(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "// Sweep: ");
  text_add_user_string(l->out, SINK_COMMENT, n->words);
  add(l, "\n");
}

static void print_unused(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "(void)");
  add_var(l, n->var);
  add(l, n->words ? "; // %s\n" : ";\n", n->words);
}

static void print_index(TreePrinter *l, const LoopNode *n) {
  const bool is_int = var_is_int(n->var);
  begin_line(l);
  add(l, "const %s ", is_int ? "int" : n->var.kind == VAR_DISTANCE ? "ptrdiff_t" : "size_t");
  add_var(l, n->var);
  add(l, " = ");
  if (is_int && index_type(n->value) == INDEX_SIZE) {
    add(l, "(int)");
    add_index_within(l, n->value, 9);
  } else {
    add_index(l, n->value);
  }
  add(l, ";\n");
}

static void print_counter(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add(l, "size_t ");
  add_var(l, n->var);
  add(l, " = ");
  add_index(l, n->value);
  add(l, ";\n");
}

static void print_advance(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add_var(l, n->var);
  add(l, " += ");
  add_operand(l, n->value, 0, true);
  add(l, ";\n");
}

// Blocks

static void add_part_parameters(TreePrinter *l, bool is_call) {
  const Loop *loop = l->t->plan;
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const char *type = loop->is_across ? "float" : element_type(l->k->accesses[root->access].type);
    if (is_call) add(l, ", part_%s", l->access_name[root->access]);
    else add(l, ", %s *part_%s", type, l->access_name[root->access]);
  }
}

// A step of the last rows of a block, fewer than lanes, stands beside that of whole vectors.
static void add_step_name(TreePrinter *l, bool is_rest) {
  add(l, "%s_kernel%zu_%s%zu", l->p->identifier, l->kernel_index, is_rest ? "rest" : "step", l->loop_index);
}

static void print_step_call(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  add_step_name(l, n->is_part);
  add(l, "(a");
  add_part_parameters(l, true);
  add(l, l->t->plan->tile ? ", begin, end" : ", o");
  if (n->count) add(l, ", %d", n->count);
  if (n->value) {
    add(l, ", (int)");
    add_index_within(l, n->value, 9);
  }
  add(l, ");\n");
}

static void print_parts(TreePrinter *l, const LoopNode *n) {
  const Access *a = &l->k->accesses[n->access];
  const char *name = l->access_name[n->access], *member = access_member(l, n->access);
  begin_line(l);
  if (n->is_vector) {
    add(l, "float part_%s[", name);
    add_index(l, n->value);
    add(l, "];\n");
    return;
  }
  add(l, "%s *const part_%s = ", element_type(a->type), name);
  if (n->flag) add(l, "a->%s ? ", member);
  add(l, "a->%s + block * ", member);
  add_index_within(l, n->value, 9);
  add(l, n->flag ? " : NULL;\n" : ";\n");
}

static void print_clear(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  open_element(l, &n->address);
  add(l, "] = ");
  add_number(l, reductions[n->reduction].identity, n->is_f64);
  add(l, ";\n");
}

static void print_lane_part(TreePrinter *l, const LoopNode *n) {
  begin_line(l);
  open_element(l, &n->address);
  add(l, "] = (%s)d_%s(d_from_v(v_load(part_%s + ", element_type(l->k->accesses[n->access].type),
      expr_info[n->reduction].name, l->access_name[n->access]);
  add_index(l, n->value);
  add(l, ")));\n");
}

static void print_fence(TreePrinter *l, const LoopNode *n) {
  (void)n;
  begin_line(l);
  add(l, "v_fence();\n");
}

static void (*const printers[])(TreePrinter *, const LoopNode *) = {
    [NODE_COMMENT] = print_comment,
    [NODE_UNUSED] = print_unused,
    [NODE_INDEX] = print_index,
    [NODE_COUNTER] = print_counter,
    [NODE_ADVANCE] = print_advance,
    [NODE_FOR] = print_for,
    [NODE_GROUP] = print_group,
    [NODE_IF] = print_if,
    [NODE_FLAG] = print_flag,
    [NODE_POINTER] = print_pointer,
    [NODE_ROOM] = print_room,
    [NODE_LET] = print_let,
    [NODE_COMBINE] = print_combine,
    [NODE_SUM] = print_sum,
    [NODE_UPDATE] = print_update,
    [NODE_RUN_DONE] = print_run_done,
    [NODE_SUM_DONE] = print_sum_done,
    [NODE_HOLD] = print_hold,
    [NODE_RELEASE] = print_release,
    [NODE_STORE] = print_store,
    [NODE_KEEP] = print_keep,
    [NODE_LOAD_ROWS] = print_load_rows,
    [NODE_STORE_ROWS] = print_store_rows,
    [NODE_LOAD_COLUMN] = print_load_column,
    [NODE_PREFETCH] = print_prefetch,
    [NODE_TO_LINE] = print_to_line,
    [NODE_PARTS] = print_parts,
    [NODE_CLEAR] = print_clear,
    [NODE_STEP] = print_step_call,
    [NODE_LANE_PART] = print_lane_part,
    [NODE_FENCE] = print_fence,
};

static void print_nodes(TreePrinter *l, const LoopNode *n) {
  for (; n; n = n->next) printers[n->kind](l, n);
}

// Functions

// The part of a function that may mention open dims, which are then declared before it.
static void print_function_body(TreePrinter *l, const LoopNode *nodes, bool is_step) {
  Text body, *function = l->out;
  text_init(&body, l->p->scratch->allocator);
  memset(l->mentions_dim, 0, sizeof l->mentions_dim);
  l->out = &body;
  l->indent++;
  print_nodes(l, nodes);
  l->out = function;
  for (size_t i = 0; i < MAX_OPEN_DIMS; i++) {
    if (!l->mentions_dim[i]) continue;
    begin_line(l);
    add(l, "const size_t %s = a->%s;\n", l->name[l->k->nexprs + i], l->p->dim_member[i]);
  }
  text_add(l->out, text_string(&body), body.nbytes);
  if (is_step && !strstr(text_string(&body), "a->")) add(l, "  (void)a; // of no elements nothing is read\n");
  l->indent--;
  add(l, "}\n\n");
  l->out->out_of_memory |= body.out_of_memory;
  text_deinit(&body);
}

static void print_step(TreePrinter *l, bool is_rest) {
  const Loop *loop = l->t->plan;
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_order(l->k, loop, &words);
  add(l, "// A step of the loop ");
  text_add_user_string(l->out, SINK_COMMENT, text_string(&words));
  l->p->out_of_memory |= words.out_of_memory;
  text_deinit(&words);
  add(l, "\nstatic inline ALWAYS_INLINE void ");
  add_step_name(l, is_rest);
  add(l, "(\n    const struct %s_args *a", l->p->identifier);
  add_part_parameters(l, false);
  add(l, "%s%s) {\n", loop->tile ? ", size_t begin, size_t end" : ", size_t o",
      loop->rows > 1 ? ", const int rows"
      : is_rest      ? ", int n"
                     : "");
  print_function_body(l, is_rest ? l->t->rest : l->t->step, true);
}

static void print_block(TreePrinter *l) {
  const char *id = l->p->identifier;
  add(l, "static void %s_kernel%zu_loop%zu(const void *args, size_t block) {\n", id, l->kernel_index, l->loop_index);
  add(l, "  const struct %s_args *a = (const struct %s_args *)args;\n", id, id);
  print_function_body(l, l->t->block, false);
}

// A function of its own, not to be inlined, that has its vectors in memory, as C's calls differ in how they pass them;
// and one that hides that.
static void print_callable(TreePrinter *l, ExprOp op) {
  const char *id = l->p->identifier, *name = expr_info[op].name, *b = expr_info[op].narguments > 1 ? ", *b" : "";
  const char *parameter = *b ? ", const " : "", *type = *b ? l->vec : "", *pointer = *b ? " *b" : "";
  const char *value = *b ? " b" : "", *address = *b ? ", &b" : "";
  add(l, "static V_FAR void %s_far_%c_%s(%s *a%s%s%s) {\n  *a = %c_%s(*a%s);\n}\n\n", id, l->prefix, name, l->vec,
      parameter, type, pointer, l->prefix, name, b);
  add(l, "static inline ALWAYS_INLINE %s %s_call_%c_%s(%s a%s%s%s) {\n  %s_far_%c_%s(&a%s);\n  return a;\n}\n\n",
      l->vec, id, l->prefix, name, l->vec, *b ? ", " : "", type, value, id, l->prefix, name, address);
}

static void print_callables(TreePrinter *l) {
  bool is_used[EXPR_OP_COUNT] = {false};
  for (ExprId id = 1; id < l->k->nexprs; id++) is_used[l->k->exprs[id].op] |= l->t->is_made[id];
  for (int op = 0; l->t->calls_long && op < EXPR_OP_COUNT; op++) {
    if (!is_used[op] || !expr_is_long((ExprOp)op)) continue;
    bool *is_callable = &l->p->is_callable[op][l->k->is_f64];
    if (!*is_callable) print_callable(l, (ExprOp)op);
    *is_callable = true;
  }
}

// Names

// As what it reaches, with a number where the loop reaches that in several ways.
static void name_access(TreePrinter *l, AccessId id, NameSet *taken) {
  const Access *a = &l->k->accesses[id];
  const char *own = a->value               ? access_member(l, id)
                    : a->type == TYPE_NONE ? "place"
                                           : l->k->temporaries[a->temporary].name;
  if (!l->access_name[id]) l->access_name[id] = print_local_name(l->p, own, taken, id);
}

static bool name_all(TreePrinter *l) {
  Arena *scratch = l->p->scratch;
  const Loop *loop = l->t->plan;
  const size_t n = l->k->nexprs;
  NameSet taken = {0}, taken_by_accesses = {0};
  l->name = ARENA_ARRAY(scratch, const char *, n + MAX_OPEN_DIMS);
  l->access_name = ARENA_ARRAY(scratch, const char *, l->k->naccesses + 1);
  if (!l->name || !l->access_name) return false;
  for (ExprId id = 1; id < n; id++)
    if (l->t->is_made[id]) l->name[id] = print_local_name(l->p, l->k->exprs[id].label, &taken, id);
  for (ExprId id = 1; id < n; id++)
    if (l->t->is_made[id] && expr_has_access(&l->k->exprs[id]))
      name_access(l, l->k->exprs[id].access, &taken_by_accesses);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind != ROOT_REDUCE_INNER) name_access(l, loop->roots[i].access, &taken_by_accesses);
  for (size_t i = 0; l->k->graph && i < l->k->graph->ndims; i++)
    l->name[n + i] = print_local_name(l->p, l->k->graph->dims[i]->name, &taken, i);
  return true;
}

// With a scratch arena of its own, for all names and texts are this loop's.
void print_loop_functions(Printer *printer, size_t kernel, size_t loop) {
  const Kernel *k = printer->program->kernels[kernel];
  Arena scratch;
  Printer own = *printer, *p = &own;
  arena_init(&scratch, printer->scratch->allocator);
  own.scratch = &scratch;
  const Wants wants = {p->is_optional, p->may_be_unwanted + p->first_temporary[kernel]};
  TreePrinter l = {.p = p,
                   .out = p->out,
                   .k = k,
                   .t = p->program->loop_tree(k, (uint32_t)loop, &wants, &scratch),
                   .kernel_index = kernel,
                   .loop_index = loop,
                   .vec = k->is_f64 ? "dvec" : "vec",
                   .scalar = k->is_f64 ? "double" : "float",
                   .mask = k->is_f64 ? "dmask" : "mask",
                   .prefix = k->is_f64 ? 'd' : 'v'};
  const bool ok = l.t && name_all(&l);
  if (ok) print_callables(&l);
  if (ok) print_step(&l, false);
  if (ok && l.t->rest) print_step(&l, true);
  if (ok) print_block(&l);
  printer->out_of_memory |= !ok || own.out_of_memory;
  memcpy(printer->is_callable, own.is_callable, sizeof own.is_callable);
  arena_deinit(&scratch);
}
