// C as a language of the printer of trees (ir/loops/printer.h): the lines of nodes, and the words in them. values.c has
// what nodes compute. Of a loop over elements (Loop.by_element) lines differ: elements.c has these.
#include "backends/codegen/print/tree_printer.h"
#include "ir/kernel/scatter.h"
#include "ir/support/escape.h"

#include <stddef.h>

// Operands

static void add_operand(TreePrinter *l, const LoopNode *n, ExprId id) {
  if (n->is_vector && !l->own->elements) add_vector(l, id);
  else add_scalar(l, id);
}

// What nodes declare

static const char *pointer_type(const TreePrinter *l, const LoopNode *n, bool is_constant) {
  if (!access_has_addresses(access_of(l, n))) return is_constant ? "const size_t " : "size_t ";
  if (loop_root(l->t->loop, ROOT_STORE, n->to.of)) return is_constant ? "{type} *const " : "{type} *";
  return is_constant ? "const {type} *const " : "const {type} *";
}

static void add_declared(TreePrinter *l, const LoopNode *n) {
  if (!n->to.item) tree_say(l, n, pointer_type(l, n, true));
}

static void add_let_type(TreePrinter *l, const LoopNode *n) {
  const bool is_mask = n->from.buffer != BUFFER_SPILL && expr_is_mask(l->k, n->expr);
  if (n->is_vector) tree_say(l, n, is_mask ? "{mask}" : "{vec}");
  else tree_add_text(l, scalar_type(l, expr_of(l, n)));
}

static void add_item_type(TreePrinter *l, const LoopNode *n) {
  if (n->to.buffer == BUFFER_ROW) tree_say(l, n, access_is_own(l->t, n->to.of) ? "{type} " : pointer_type(l, n, false));
  else tree_printf(l, "%s ", n->to.buffer == BUFFER_VALUE ? scalar_type(l, &l->k->exprs[n->to.of]) : "float");
}

// What nodes store and add

static void add_vector_store(TreePrinter *l, const LoopNode *n) {
  const char memory = access_prefix(l, access_of(l, n)->type);
  const bool converts = memory != *l->own->prefix;
  tree_printf(l, "%c_%s", memory, n->is_streamed ? "stream" : node_is_strided(n) ? "scatter" : "store");
  tree_say(l, n, node_is_strided(n) ? "{_n}{suffix}({memory}{stride}, " : "{_n}{suffix}({memory}, ");
  if (converts) tree_printf(l, "%c_from_%c(", memory, *l->own->prefix);
  tree_say(l, n, converts ? "{operand}){lanes})" : "{operand}{lanes})");
}

static void add_store(TreePrinter *l, const LoopNode *n) {
  if (!n->is_vector || l->own->elements) add_scalar_store(l, n);
  else if (buffer_info[n->to.buffer].space == SPACE_STACK) tree_say(l, n, "v_store({at}, {operand})");
  else if (access_is_mask(access_of(l, n))) tree_say(l, n, "{mask}_store({at}, {operand})");
  else add_vector_store(l, n);
}

// Calls

void print_partial_parameters(TreePrinter *l, bool is_call) {
  for (const LoopNode *n = l->t->block; n; n = n->next)
    if (n->kind == NODE_BUFFER) tree_say(l, n, is_call ? ", {to}" : ", {type} *{to}");
}

void print_step_name(TreePrinter *l, bool is_tail) {
  tree_printf(l, "%s_kernel%zu_%s%zu", l->own->identifier, l->own->number, is_tail ? "rest" : "step",
              l->own->loop_index);
}

static void add_call(TreePrinter *l, const LoopNode *n) {
  Var parameters[MOST_PARAMETERS];
  const int count = tree_parameters(l->t, n->has_fewer_lanes, parameters);
  print_step_name(l, n->has_fewer_lanes);
  tree_add_text(l, "(a");
  l->own->mentions_args = true;
  print_partial_parameters(l, true);
  for (int i = 0; i < count; i++) {
    const VarKind kind = parameters[i].kind;
    tree_add_text(l, kind == VAR_LANES ? ", (int)" : ", ");
    if (kind == VAR_ROWS) tree_say(l, n, "{count}");
    else if (kind == VAR_LANES) add_factor(l, n->value);
    else if (kind == VAR_COLUMN_END) tree_say(l, n, "{end}");
    else tree_add_var(l, parameters[i]);
  }
  tree_add_text(l, ");");
}

// All rows from begin to end have one index on the batch axis. Arithmetic is modulo 2^64, so that an index out of range
// selects no row.
static void add_scatter(TreePrinter *l, const LoopNode *n) {
  Scatter s;
  if (!kernel_find_scatter(l->k, &s)) return; // never in a verified tree
  Printer *p = l->own->p;
  const Axis *axes = l->k->axes;
  const char *nrows = number_text(l, axes[s.rows].extent, axes[s.rows].monomial);
  const char *width = number_text(l, axes[s.columns].extent, axes[s.columns].monomial);
  const char *count = number_text(l, axes[s.summed].extent, axes[s.summed].monomial);
  const char *first = "0", *others = "0"; // the batch's first row of the result, and of what is added
  if (s.batch >= 0) first = checked(p, arena_format(p->scratch, "begin / %s * %s", nrows, nrows));
  if (s.batch >= 0) others = checked(p, arena_format(p->scratch, "begin / %s * %s", nrows, count));
  const char *line = arena_format(p->scratch,
                                  "const size_t first = %s, others = %s;\n"
                                  "{scalar} *const to = a->%s;\n"
                                  "const {scalar} *const from = a->%s;\n"
                                  "const %s *const indices = a->%s;\n"
                                  "for (size_t e = begin * %s; e < end * %s; e++) to[e] = 0;\n"
                                  "for (size_t i = 0; i < %s; i++) {\n"
                                  "  uint64_t place = (uint64_t)indices[i];\n"
                                  "  if (indices[i] < 0) place += %s;\n"
                                  "  const size_t row = first + (size_t)place;\n"
                                  "  if (place < %s && row >= begin && row < end)\n"
                                  "    {prefix}_add_row(to + row * %s, from + (others + i) * %s, %s);\n}",
                                  first, others, member_name(l, node_access(n)), member_name(l, s.from),
                                  element_types[l->k->accesses[s.indices].type].name, member_name(l, s.indices), width,
                                  width, count, nrows, nrows, width, width, width);
  tree_say(l, n, checked(p, line));
}

// Loops and branches

void print_nodes(TreePrinter *l, const LoopNode *nodes) {
  bool has_lanes = false;
  for (const LoopNode *n = nodes; n; n = n->next) {
    if (!l->own->elements || !print_of_elements(l, n)) tree_print_node(l, n);
    has_lanes |= n->kind == NODE_INDEX && n->var.kind == VAR_LANES;
  }
  if (!has_lanes || l->mentions >> VAR_LANES & 1) return;
  tree_begin_line(l);
  tree_add_text(l, "(void)n; // panels have memory for all lanes\n");
}

static bool is_line(const LoopNode *nodes) {
  return nodes && !nodes->next && nodes->kind != NODE_FOR && nodes->kind != NODE_IF;
}

// Two branches of a line each have no braces.
static void print_branch(TreePrinter *l, const LoopNode *n, const LoopNode *branch) {
  l->is_line_begun = is_line(n->body) && is_line(n->otherwise);
  if (l->is_line_begun) {
    print_nodes(l, branch);
    return;
  }
  tree_add_text(l, "{\n");
  l->indent++;
  print_nodes(l, branch);
  l->indent--;
  tree_begin_line(l);
  tree_add_text(l, "}\n");
}

static void print_bodies(TreePrinter *l, const LoopNode *n) {
  if (n->vectors) l->own->elements = n;
  print_branch(l, n, n->body);
  if (n->vectors) l->own->elements = NULL;
  if (!n->otherwise) return;
  tree_begin_line(l);
  tree_add_text(l, "else ");
  print_branch(l, n, n->otherwise);
}

// Words. Some functions say one of several words: a member, by its offset, or a fact.

static void add_value_of_var(TreePrinter *l, const LoopNode *n) {
  const bool is_int = var_info[n->var.kind].is_int, is_cast = is_int && index_type(n->value) == INDEX_SIZE;
  if (is_cast) tree_add_text(l, "(int)");
  tree_add_operand(l, n->value, is_cast ? PRECEDENCE_VALUE : 0, !is_int);
}

static void add_stride(TreePrinter *l, const LoopNode *n) {
  tree_add_text(l, index_type(n->step) == INDEX_SIZE ? ", (ptrdiff_t)" : ", ");
  add_factor(l, n->step);
}

static void add_offset_of_rows(TreePrinter *l, const LoopNode *n) {
  const Address *at = n->to.item ? &n->to : &n->from;
  if (at->index) tree_add_index(l, at->index, 0);
  else tree_add_text(l, "0");
}

static void add_outside(TreePrinter *l, const LoopNode *n) {
  const double outside = access_of(l, n)->outside;
  if (l->k->is_s64) add_integer(l->out, type_integer(outside));
  else add_number(l->out, outside, l->k->is_f64);
}

enum {
  FIRST,
  SECOND,
  THIRD,
  ALL_LANES,
  IDENTITY,
  INT,
  INTEGER,
  MEMORY,
  NLANES,
  NROWS,
  OPERAND,
  PARTIALS,
  WIDTH,
  WITHIN,
  WORDS
};

static void add_fact(TreePrinter *l, const LoopNode *n, size_t fact) {
  const Expr *e = expr_of(l, n);
  switch (fact) {
  case FIRST:
  case SECOND:
  case THIRD: add_operand(l, n, e->args[fact - FIRST]); return;
  case ALL_LANES: tree_printf(l, "%d", LANES); return;
  case IDENTITY: add_number(l->out, reductions[node_reduction(l->t, n)].identity, node_is_f64(l->t, n)); return;
  case INT: tree_add_text(l, var_type(n->var)); return;
  case INTEGER: add_integer(l->out, e->integer); return;
  case MEMORY: add_memory(l, node_memory(n)); return;
  case NLANES: tree_add_var(l, loop_var(VAR_LANES)); return;
  case NROWS: tree_printf(l, "%d", l->t->loop->rows); return;
  case OPERAND: add_operand(l, n, n->expr); return;
  case PARTIALS: add_vector_load(l, n, 'd', false); return;
  case WIDTH: tree_printf(l, "%d", tree_element_sums(l->t, n->expr)); return;
  case WITHIN: add_factor(l, n->from.within); return;
  default:
    if (!l->own->p->is_canonical) text_add_user_string(l->out, SINK_COMMENT, n->words);
  }
}

static void add_vector_call(TreePrinter *l, const LoopNode *n) {
  const bool is_call = l->t->calls_long && expr_is_long(expr_of(l, n)->op);
  tree_say(l, n, is_call ? "{file}_call_{prefix}_{operator}({vectors})" : "{prefix}_{operator}({vectors})");
}

static void add_name(TreePrinter *l, const LoopNode *n, size_t member) {
  (void)n;
  tree_add_text(l, *(const char *const *)((const char *)l->own + member));
}

static void add_of_type(TreePrinter *l, const LoopNode *n, size_t member) {
  tree_add_text(l, *(const char *const *)((const char *)&element_types[access_of(l, n)->type] + member));
}

static const Word words[] = {
    {"0", .add_of = add_formula_operand, .of = 0}, // the operands of a scalar formula
    {"1", .add_of = add_formula_operand, .of = 1},
    {"2", .add_of = add_formula_operand, .of = 2},
    {"address", WHEN_TEST, "{test} ? {at} : NULL", "{at}"}, // of a pointer
    {"arguments", WHEN_BINARY, "{0}, {1}", "{0}"},
    {"b_address", WHEN_BINARY, ", &b"}, // of the function of an operation, its second operand, in some forms
    {"b_loaded", WHEN_BINARY, ", *b"},
    {"b_pointer", WHEN_BINARY, ", const {vec} *b"},
    {"b_scalar", WHEN_BINARY, ", {scalar} b"},
    {"b_vector", WHEN_BINARY, ", {vec} b"},
    {"bounded", WHEN_BOUND, " && {var} < {bound}"},
    {"call", .add = add_call},
    {"computed", .add = add_computed}, // what a NODE_LET computes
    {"declared", .add = add_declared}, // the type of a pointer, unless its array is declared
    {"each", .add = add_each},         // declares a value of each element
    {"element", .add = add_element},
    {"element_sum", .add = add_element_sum}, // an assignment
    {"else_outside", WHEN_ALWAYS, " : {prefix}_set({outside})"},
    {"f", WHEN_KERNEL_F64, NULL, "f"},
    {"file", .add_of = add_name, .of = offsetof(LanguageState, identifier)},
    {"first", .add_of = add_fact, .of = FIRST}, // the first factor of a product
    // Only whole steps. Said as `o + 4 <= end`, gcc 12 -O2 drops some second loops over whole steps.
    {"goes_on", WHEN_BY_ONE, "{var} < {end}", "{end} - {var} >= {step}"},
    {"held", WHEN_TEST, "{test} ? {loaded} : {v}_set({identity})", "{loaded}"},
    {"held_element", WHEN_TEST, "{test} ? {element} : {identity}", "{element}"},
    {"identity", .add_of = add_fact, .of = IDENTITY},
    {"if", WHEN_TEST, "if ({test}) "},
    {"index", WHEN_VECTOR, "({begin})", "{axis}"},
    {"initial", WHEN_VECTOR, "{v}_set({identity})", "{identity}"}, // of accumulators
    {"int", .add_of = add_fact, .of = INT},                        // the type of {var}
    {"integer", .add_of = add_fact, .of = INTEGER},
    {"item_type", .add = add_item_type}, // of an array
    {"LANES", .add_of = add_fact, .of = ALL_LANES},
    {"lanes", WHEN_FEWER_LANES, ", {nlanes}"},
    {"let", WHEN_VALUE_OF_ROW, "{expr}[r]", "const {let_type} {expr}"},
    {"let_type", .add = add_let_type},
    {"loaded", WHEN_ALWAYS, "{v}_load{_n}({at}{lanes})"},
    {"mask", .add_of = add_name, .of = offsetof(LanguageState, mask)}, // the kernel's types
    {"memory", .add_of = add_fact, .of = MEMORY}, // {at}, as arguments of functions on elements of its type
    {"merge", WHEN_FEWER_LANES, "{v}_merge(n, "}, // before a sum of some lanes; {merged}: behind it
    {"merged", WHEN_FEWER_LANES, ", {total})"},
    {"_n", WHEN_FEWER_LANES, "_n"},         // suffix of functions on some lanes
    {"narrow", WHEN_KERNEL_F64, "(float)"}, // to f32; {wide}: back
    {"narrowed", WHEN_WIDENED, "v_from_d({from})", "{from}"},
    {"narrowed_element", WHEN_WIDENED, "({scalar}){from}", "{from}"},
    {"next", .add = add_next}, // of a loop
    {"nitems", WHEN_VECTOR, "{count} * {LANES}", "{count}"},
    {"nlanes", .add_of = add_fact, .of = NLANES},
    {"nloaded", WHEN_FEWER_LANES, "{nlanes}", "{LANES}"},
    {"nrows", .add_of = add_fact, .of = NROWS},
    {"offset", .add = add_offset_of_rows},          // of the vectors of rows, in each row
    {"operand", .add_of = add_fact, .of = OPERAND}, // {expr}: a vector, or a scalar
    {"operand_of_sum", WHEN_F64, "(double){operand}", "{operand}"},
    {"outside", .add = add_outside},     // what a load outside of the tensor yields
    {"part_load", .add = add_part_load}, // of the lanes within the bound
    {"partials", WHEN_VECTOR, "d_{combine}({to}, {partials_vector})", "f64_{combine}({to}, (double){element})"},
    {"partials_vector", .add_of = add_fact, .of = PARTIALS},
    {"prefix", .add_of = add_name,
     .of = offsetof(LanguageState, prefix)}, // of functions on the kernel's vectors: v, d or l
    {"reciprocal", .add = add_reciprocal},
    {"register", .add = add_register}, // declares a buffer of each element
    // A sum's scalar: an array of one for each row of the micro-kernel, if it has several.
    {"result", WHEN_OF_ROWS, "{scalar} {expr}[{nrows}];\n{rows}{expr}[r]", "const {scalar} {expr}"},
    {"rows", WHEN_OF_ROWS, "UNROLL for (int r = 0; r < rows; r++) "},
    {"scalar", .add_of = add_name, .of = offsetof(LanguageState, scalar)},
    {"scalar_load", .add = add_scalar_load},
    {"scalar_sum", WHEN_F64, "double", "float"},
    {"scatter", .add = add_scatter},
    {"second", .add_of = add_fact, .of = SECOND},
    {"span", .add = add_span}, // declares the lanes within the bound of a load's vector
    {"store", .add = add_store},
    {"stored", WHEN_STREAMED, "stream_rows{suffix}({to}", "store_rows{suffix}({to}{stride}"}, // of rows
    {"stride", .add = add_stride}, // ", step": the distance in memory from lane to lane
    {"suffix", .add_of = add_of_type,
     .of = offsetof(ElementType, suffix)}, // of functions on elements of the access's type
    {"sum", WHEN_VECTOR, "{vector_sum}", "f64_{combine}({total}, (double){operand})"}, // with the value of {expr}
    {"sum_type", WHEN_VECTOR, "{v_type}", "double"},
    {"third", .add_of = add_fact, .of = THIRD},
    {"to_f32", .add_of = add_of_type, .of = offsetof(ElementType, from)},
    {"to_first", .add = add_to_first},               // the first lane within the bound, after the address of lane 0
    {"to_kernel", WHEN_KERNEL_F64, NULL, "(float)"}, // from f64
    {"type", .add_of = add_of_type, .of = offsetof(ElementType, name)}, // of an element in memory
    {"unless_within", WHEN_FEWER_LANES, "within_{expr}.count ? ",
     "within_{expr}.count == {LANES} ? {whole_load} : within_{expr}.count ? "},
    {"unrolled", WHEN_UNROLLED, "UNROLL "},
    {"V", WHEN_F64, "D", "V"},
    {"v", WHEN_F64, "d", "v"}, // prefix of functions on a sum's vectors
    {"v_type", WHEN_F64, "dvec", "vec"},
    {"value", .add = add_value_of_var}, // in the type of {var}
    {"vec", .add_of = add_name, .of = offsetof(LanguageState, vec)},
    {"widened", WHEN_WIDENED, "(double)"},
    {"vector_call", .add = add_vector_call},
    {"vector_sum", WHEN_WIDENED, "d_{combine}({total}, d_from_v({operand}))", "{v}_{combine}({total}, {operand})"},
    {"vectors", .add = add_vector_arguments},
    {"whole_load", .add = add_whole_load},
    {"wide", WHEN_KERNEL_F64, "(double)"},
    {"width", .add_of = add_fact, .of = WIDTH},   // elements with accumulators of their own
    {"within", .add_of = add_fact, .of = WITHIN}, // the index of lane 0 that a bound limits
    {"words", .add_of = add_fact, .of = WORDS},
    {NULL}};

#define ROWS "v_load_rows{suffix}({to}, {from}{stride}, {count});"
#define VECTOR "v_store({to_address}, v_load{suffix}({at}));"

static const Line lines[] = {
    {ACTION_COMMENT, WHEN_ALWAYS, "// Sweep: {words}"},
    {ACTION_SET, WHEN_ADVANCES, "{var} += {added};"},
    {ACTION_SET, WHEN_COUNTER, "{int} {var} = {value};"},
    {ACTION_SET, WHEN_EXISTS, "const {int} {var} = {value} != NULL;"},
    {ACTION_SET, WHEN_TEST, "const {int} {var} = !{test} ? 0 : {value};"},
    {ACTION_SET, WHEN_ALWAYS, "const {int} {var} = {value};"},
    {ACTION_LOOP, WHEN_COUNTER, "{if}{unrolled}for (; {goes_on}{bounded}; {next}) "},
    {ACTION_LOOP, WHEN_DOWN, "{if}{unrolled}for ({int} {var} = {end}; {var}-- > {begin}{bounded};) "},
    {ACTION_LOOP, WHEN_ALWAYS, "{if}{unrolled}for ({int} {var} = {begin}; {var} < {end}{bounded}; {next}) "},
    {ACTION_CHOOSE, WHEN_ALWAYS, "{if}"},
    {ACTION_BEGIN_SUM, WHEN_SEVERAL,
     "{sum_type} {to}[{count}];\n"
     "UNROLL for (int u = 0; u < {count}; u++)\n"
     "  {to}[u] = {initial};"},
    {ACTION_BEGIN_SUM, WHEN_ALWAYS, "{sum_type} {to} = {initial};"},
    {ACTION_BEGIN_PART, WHEN_ALWAYS, "{type} *const {to} = {address};"},
    {ACTION_HOLD, WHEN_ALWAYS, "{v_type} {to} = {held};"},
    {ACTION_ARRAY, WHEN_ALWAYS, "{item_type}{to}[{nitems}];"},
    {ACTION_POINT, WHEN_ALWAYS, "{declared}{to} = {address};"},
    {ACTION_COMPUTE, WHEN_ALWAYS, "{span}{let} = {computed};"},
    {ACTION_END_SUM, WHEN_EACH, "const {vec} {expr} = v_{reduction}_of_each({from}, {width});"},
    {ACTION_END_SUM, WHEN_VECTOR, "const {vec} {expr} = {narrowed};"},
    {ACTION_END_SUM, WHEN_ALWAYS, "{result} = {v}_{reduction}({from});"},
    {ACTION_END_TOTAL, WHEN_VECTOR, "const {vec} {expr} = {narrowed};"},
    {ACTION_END_TOTAL, WHEN_ALWAYS, "{result} = {narrowed_element};"},
    {ACTION_ADD, WHEN_FUSED, "{if}{total} = {merge}{v}_fma({first}, {second}, {total}){merged};"},
    {ACTION_ADD, WHEN_ALWAYS, "{if}{total} = {merge}{sum}{merged};"},
    {ACTION_END_RUN, WHEN_ADDS_LANES, "{rows}{to} = f64_{combine}({to}, {widened}{prefix}_{reduction}({from}));"},
    {ACTION_END_RUN, WHEN_ALWAYS, "{rows}{to} = d_{combine}({to}, d_from_v({from}));"},
    {ACTION_COMBINE, WHEN_ALWAYS, "{to} = {partials};"},
    {ACTION_STORE, WHEN_ALWAYS, "{store};"},
    {ACTION_CLEAR, WHEN_ALWAYS, "{element} = {identity};"},
    {ACTION_STORE_HELD, WHEN_ALWAYS, "{if}{v}_store{_n}({at}, {from}{lanes});"},
    {ACTION_COPY_IN, WHEN_OF_ROWS, "v_gather_rows({to}, p_{access}, {offset}, (ptrdiff_t){step}, rows);"},
    {ACTION_COPY_IN, WHEN_COUNT, ROWS},
    {ACTION_COPY_IN, WHEN_ALWAYS, VECTOR},
    {ACTION_COPY_OUT, WHEN_OF_ROWS, "{if}v_scatter_rows(p_{access}, {offset}, (ptrdiff_t){step}, {from}, rows);"},
    {ACTION_COPY_OUT, WHEN_ALWAYS, "v_{stored}, {from}, {count});"},
    {ACTION_PACK, WHEN_COUNT, ROWS},
    {ACTION_PACK, WHEN_ALWAYS, VECTOR},
    {ACTION_LEAVE, WHEN_ALWAYS, "V_LEAVE({to});"},
    {ACTION_PREFETCH, WHEN_ALWAYS, "v_prefetch_l2({at});"},
    {ACTION_CALL, WHEN_ALWAYS, "{call}"},
    {ACTION_SCATTER, WHEN_ALWAYS, "{scatter}"},
    {ACTION_FENCE, WHEN_ALWAYS, "v_fence();"},
    {0}};

const Language c_language = {
    .lines = lines,
    .words = words,
    .print_bodies = print_bodies,
    .add_number = add_own_number,
    .add_var = add_var_of_element,
    .add_index = add_index,
    .add_tensor = add_tensor,
    .add_lane = add_lane,
    .has_casts = true,
};
