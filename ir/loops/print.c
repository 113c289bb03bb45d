// Prints trees in readable form: its table of lines (printer.h), the words that only it has, and names.
#include "ir/loops/print.h"

#include "ir/graph/open_dims.h"
#include "ir/loops/printer.h"
#include "ir/support/escape.h"

#include <stdlib.h>
#include <string.h>

// Values

static void add_value(TreePrinter *l, ExprId id) {
  if (l->t->form[id] == FORM_NUMBER) {
    if (l->k->is_s64) tree_printf(l, "%lld", (long long)l->k->exprs[id].integer);
    else text_add_number(l->out, l->k->exprs[id].number, !l->k->is_f64);
    return;
  }
  tree_add_text(l, l->expr_name[id]);
  if (l->t->form[id] == FORM_ROWS) tree_add_text(l, "[r]");
}

static void add_operand(TreePrinter *l, const LoopNode *n) {
  add_value(l, n->expr);
}

static void add_operands(TreePrinter *l, const LoopNode *n) {
  const Expr *e = &l->k->exprs[n->expr];
  for (int a = 0; a < 3 && e->args[a]; a++) {
    if (a) tree_add_text(l, ", ");
    add_value(l, e->args[a]);
  }
}

static void add_bounds(TreePrinter *l, const LoopNode *n) {
  if (!n->test && !n->from.within) return;
  if (n->test) tree_say(l, n, ", where {test}");
  if (n->from.within) {
    const Bound *b = node_lane_bound(l->t, n);
    const int64_t factor = b ? b->factor[loop_lane_axis(l->t->loop)] : 0;
    tree_add_text(l, n->test ? ", and lanes where " : ", lanes where ");
    tree_add_index(l, n->from.within, 0);
    tree_add_text(l, factor < 0 ? " - lane" : " + lane");
    if (factor != 1 && factor != -1) tree_printf(l, " * %lld", (long long)llabs(factor));
    tree_printf(l, " < %lld", (long long)(b ? b->extent : 0));
  }
  tree_add_text(l, ", else ");
  text_add_number(l->out, l->k->accesses[node_access(n)].outside, !l->k->is_f64);
}

// What a NODE_LET computes.
static void add_computed(TreePrinter *l, const LoopNode *n) {
  static const char *const loads[] = {[LOAD_ELEMENT] = "load {element}",
                                      [LOAD_BROADCAST] = "broadcast {element}",
                                      [LOAD_DENSE] = "load {at}{lanes}",
                                      [LOAD_STRIDED] = "load {at} with stride {step}{lanes}",
                                      [LOAD_GATHERED] = "gather {at} with stride {step}{lanes}",
                                      [LOAD_WHOLE] = "load {at}"};
  const Expr *e = &l->k->exprs[n->expr];
  const Load load = node_load(l->t, n);
  if (load) {
    tree_say(l, n, loads[load]);
    if (e->args[0] && n->from.buffer != BUFFER_SPILL) tree_say(l, n, ", at offset {operands}");
    add_bounds(l, n);
  } else if (e->op == EXPR_INDEX) {
    tree_say(l, n, n->is_vector ? "{value} + lane" : "{axis}");
  } else if (e->op == EXPR_INTEGER) {
    tree_printf(l, "%lld", (long long)e->integer);
  } else {
    const bool is_count = e->op == EXPR_COUNT || e->op == EXPR_RECIPROCAL;
    tree_say(l, n, is_count ? "{operator} of {number}" : "{operator}({operands})");
    if (expr_has_access(e)) tree_say(l, n, " at {at}");
  }
}

// Words

static void add_addend(TreePrinter *l, const LoopNode *n) {
  const bool is_widened = n->is_vector && node_is_widened(l->t, n);
  tree_say(l, n, is_widened ? "{operand} converted to {type}" : "{operand}");
}

static void add_call(TreePrinter *l, const LoopNode *n) {
  tree_add_text(l, n->has_fewer_lanes ? "tail step" : "step");
  if (loop_tile(l->t->loop)) tree_add_text(l, " from begin to end");
  tree_say(l, n, "{rows_of_call}{column_end}");
  if (n->has_fewer_lanes) tree_say(l, n, ", n = {value}");
}

static void add_combining(TreePrinter *l, const LoopNode *n) {
  const ExprOp reduction = node_reduction(l->t, n);
  tree_say(l, n, reduction == EXPR_REDUCE_SUM ? "+=" : reduction == EXPR_REDUCE_PRODUCT ? "*=" : "{combine}=");
}

static void add_identity(TreePrinter *l, const LoopNode *n) {
  text_add_number(l->out, reductions[node_reduction(l->t, n)].identity, true);
}

static void add_items(TreePrinter *l, const LoopNode *n) {
  const bool is_own = n->to.buffer == BUFFER_ROW && access_is_own(l->t, n->to.of);
  tree_add_text(l, n->is_vector                            ? "vectors"
                   : n->to.buffer == BUFFER_ROW && !is_own ? "pointers"
                   : n->to.buffer == BUFFER_VALUE          ? "scalars"
                                                           : "elements");
}

static void add_words(TreePrinter *l, const LoopNode *n) {
  text_add_user_string(l->out, SINK_TERMINAL, n->words);
}

// clang-format off
static const Word words[] = {
    {"addend", .add = add_addend}, // the value that is added
    {"bounded", WHEN_BOUND, ", while {var} < {bound}"},
    {"by", WHEN_BY_ONE, NULL, " by {step}"},
    {"call", .add = add_call},
    {"column_end", WHEN_END, ", c_end = {end}"},
    {"combining", .add = add_combining}, // += or another assignment
    {"computed", .add = add_computed},   // what a NODE_LET computes
    {"each", WHEN_OF_ROWS, ", for each r"},
    {"goes_on", WHEN_BY_ONE, "{var} < {end}", "{var} + {step} <= {end}"},
    {"identity", .add = add_identity},
    {"if", WHEN_TEST, ", if {test}"},
    {"items", .add = add_items}, // what an array holds
    {"lanes", WHEN_FEWER_LANES, ", n lanes"},
    {"operand", .add = add_operand},
    {"operands", .add = add_operands},
    {"partials", WHEN_VECTOR, "{at}{strided}{lanes}", "{element}"}, // the partial sums that are added
    {"place", WHEN_VECTOR, "{at}", "{element}"},                    // where a value is stored
    {"row", WHEN_VALUE_OF_ROW, "[r]"},
    {"rows_of_call", WHEN_COUNT, ", rows = {count}"},
    {"shape", WHEN_VECTOR, "vector", "scalar"},
    {"streamed", WHEN_STREAMED, ", streamed"},
    {"strided", WHEN_STRIDED, " with stride {step}"},
    {"type", WHEN_F64, "f64", "f32"}, // of a sum
    {"unrolled", WHEN_UNROLLED, ", unrolled"},
    {"vectors", WHEN_VECTOR, "vectors of "},
    {"words", .add = add_words},
    {NULL}};
// clang-format on

static void print_nodes(TreePrinter *l, const LoopNode *n) {
  l->indent++;
  for (; n; n = n->next) tree_print_node(l, n);
  l->indent--;
}

static void print_bodies(TreePrinter *l, const LoopNode *n) {
  tree_add_text(l, "\n");
  print_nodes(l, n->body);
  if (!n->otherwise) return;
  tree_begin_line(l);
  tree_add_text(l, "else\n");
  print_nodes(l, n->otherwise);
}

// Integers and addresses. Variables and pointers have the same names as in the emitted C.

static void add_number(TreePrinter *l, int64_t number, Monomial monomial, int precedence) {
  const Graph *g = l->k->graph;
  const bool is_within = monomial && PRECEDENCE_PRODUCT < precedence;
  const int64_t factor = monomial ? open_factor(g, number, monomial) : number;
  int nfactors = !monomial || factor != 1;
  tree_add_text(l, is_within ? "(" : "");
  if (nfactors) tree_printf(l, "%lld", (long long)factor);
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--) {
      if (nfactors++) tree_add_text(l, " * ");
      text_add_user_string(l->out, SINK_TERMINAL, g->dims[i]->name);
    }
  tree_add_text(l, is_within ? ")" : "");
}

static bool add_index(TreePrinter *l, const Index *i, int precedence) {
  switch (i->op) {
  case INDEX_BLOCK_LENGTH: tree_printf(l, "block_length(loop %u)", (unsigned)i->loop); return true;
  case INDEX_NCUT_BLOCKS: tree_printf(l, "blocks(loop %u)", (unsigned)i->loop); return true;
  case INDEX_SIGNED: tree_add_index(l, i->args[0], precedence); return true;
  case INDEX_EXISTS:
    tree_add_buffer(l, i->address);
    tree_add_text(l, " is not NULL");
    return true;
  case INDEX_IS_AT_LINE:
    tree_add_address(l, i->address);
    tree_add_text(l, " begins a cache line");
    return true;
  case INDEX_TO_LINE:
    tree_add_text(l, "elements from ");
    tree_add_address(l, i->address);
    tree_add_text(l, " to the next cache line");
    return true;
  default: return false;
  }
}

static const char *memory_name(const Schedule *s, AccessId id) {
  const Access *a = &s->kernel->accesses[id];
  return a->value ? a->value->name : a->type == TYPE_NONE ? "place" : s->temporaries[a->temporary].name;
}

// A tensor's name in the graph; a temporary's number and name.
static void add_tensor(TreePrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  if (!a->value && a->type != TYPE_NONE) tree_printf(l, "temporary%u_", (unsigned)a->temporary);
  text_add_user_string(l->out, SINK_TERMINAL, memory_name(l->t->schedule, id));
}

#define LOOP_END "{bounded}{unrolled}{if}"
#define ROWS "{to} = rows of {count} at {from}, with stride {step}, transposed"

static const Line lines[] = {
    {ACTION_NONE, WHEN_ALWAYS, "a node without action"},
    {ACTION_COMMENT, WHEN_ALWAYS, "sweep: {words}"},
    {ACTION_SET, WHEN_ADVANCES, "{var} += {added}"},
    {ACTION_SET, WHEN_COUNTER, "count {var} from {value}"},
    {ACTION_SET, WHEN_TEST, "{var} = {value}, 0 unless {test}"},
    {ACTION_SET, WHEN_ALWAYS, "{var} = {value}"},
    {ACTION_LOOP, WHEN_COUNTER, "for {var} += {step} while {goes_on}" LOOP_END},
    {ACTION_LOOP, WHEN_DOWN, "for {var} in {begin}..{end}{by}, backwards" LOOP_END},
    {ACTION_LOOP, WHEN_ALWAYS, "for {var} in {begin}..{end}{by}" LOOP_END},
    {ACTION_CHOOSE, WHEN_TEST, "if {test}"},
    {ACTION_CHOOSE, WHEN_ALWAYS, "scope"},
    {ACTION_BEGIN_SUM, WHEN_SEVERAL, "{to}[{count}] = {identity}, {vectors}{type}"},
    {ACTION_BEGIN_SUM, WHEN_ALWAYS, "{to} = {identity}, {vectors}{type}"},
    {ACTION_BEGIN_PART, WHEN_ALWAYS, "{to} = {at}{if}"},
    {ACTION_HOLD, WHEN_ALWAYS, "{to} = load {at}{lanes}{if}"},
    {ACTION_ARRAY, WHEN_ALWAYS, "local {to}[{count}]: {items}"},
    {ACTION_POINT, WHEN_ALWAYS, "{to} = {at}{if}"},
    {ACTION_COMPUTE, WHEN_ALWAYS, "{shape} {expr}{row} = {computed}"},
    {ACTION_END_SUM, WHEN_EACH, "vector {expr} = {reduction} of all {from}"},
    {ACTION_END_SUM, WHEN_VECTOR, "vector {expr} = {from}"},
    {ACTION_END_SUM, WHEN_ALWAYS, "scalar {expr}{row} = {reduction} of the lanes of {from} in {type}{each}"},
    {ACTION_END_TOTAL, WHEN_ALWAYS, "{shape} {expr}{row} = {from}{each}"},
    {ACTION_ADD, WHEN_FUSED, "{total} = fma({operands}, {total}){lanes}{if}"},
    {ACTION_ADD, WHEN_ALWAYS, "{total} {combining} {addend}{lanes}{if}"},
    {ACTION_END_RUN, WHEN_ADDS_LANES, "{total} {combining} {reduction} of the lanes of {from}{each}"},
    {ACTION_END_RUN, WHEN_ALWAYS, "{total} {combining} {from} in f64{each}"},
    {ACTION_COMBINE, WHEN_ALWAYS, "{total} {combining} {partials}"},
    {ACTION_STORE, WHEN_ALWAYS, "store {operand} to {place}{strided}{lanes}{streamed}{if}"},
    {ACTION_CLEAR, WHEN_ALWAYS, "{element} = {identity}"},
    {ACTION_STORE_HELD, WHEN_ALWAYS, "store {from} to {place}{strided}{lanes}{streamed}{if}"},
    {ACTION_COPY_IN, WHEN_OF_ROWS, "{to} = vectors of all rows at {at}, with stride {step}"},
    {ACTION_COPY_IN, WHEN_COUNT, ROWS},
    {ACTION_COPY_IN, WHEN_ALWAYS, "{to_address} = load {at}"},
    {ACTION_COPY_OUT, WHEN_OF_ROWS, "store {from} to all rows at {to_address}, with stride {step}{if}"},
    {ACTION_COPY_OUT, WHEN_ALWAYS, "store {from} to rows of {count} at {to}, with stride {step}, transposed{streamed}"},
    {ACTION_PACK, WHEN_COUNT, ROWS},
    {ACTION_PACK, WHEN_ALWAYS, "{to_address} = load {at}"},
    {ACTION_LEAVE, WHEN_ALWAYS, "{to} leaves its registers"},
    {ACTION_PREFETCH, WHEN_ALWAYS, "prefetch {at}"},
    {ACTION_CALL, WHEN_ALWAYS, "{call}"},
    {ACTION_SCATTER, WHEN_ALWAYS, "{access}[begin:end] = 0, then add each row whose index is in begin:end"},
    {ACTION_FENCE, WHEN_ALWAYS, "fence"},
    {0}};

const Language readable_language = {
    .lines = lines,
    .words = words,
    .print_bodies = print_bodies,
    .add_number = add_number,
    .add_index = add_index,
    .add_tensor = add_tensor,
};

// Names

// Escapes a name from the graph file. NULL: out of memory.
static const char *escaped(Arena *arena, const char *name) {
  Text text;
  text_init(&text, arena->allocator);
  text_add_user_string(&text, SINK_TERMINAL, name);
  const char *copy = text.out_of_memory ? NULL : arena_copy_text(arena, text_string(&text), text.nbytes);
  text_deinit(&text);
  return copy;
}

// The label of an expression that the tree computes; NULL: it has none.
static const char *label_of(const LoopTree *t, ExprId id) {
  return t->is_made[id] ? t->k->exprs[id].label : NULL;
}

// The tensor or temporary that the loop loads, stores or adds through the access; NULL: it does not use the access.
static const char *used_memory(const LoopTree *t, AccessId id) {
  bool is_used = false;
  for (ExprId e = 1; e < t->k->nexprs; e++)
    is_used |= t->is_made[e] && expr_has_access(&t->k->exprs[e]) && t->k->exprs[e].access == id;
  for (size_t i = 0; i < t->loop->nroots; i++)
    is_used |= t->loop->roots[i].kind != ROOT_REDUCE_INNER && t->loop->roots[i].access == id;
  return is_used ? memory_name(t->schedule, id) : NULL;
}

// Makes names unique: if several are equal, all but the first get their number appended. NULL: out of memory.
static const char *unique_name(Arena *arena, const char *const *given, uint32_t id) {
  bool is_first = true;
  for (uint32_t i = 0; i < id; i++) is_first &= !given[i] || strcmp(given[i], given[id]) != 0;
  const char *name = is_first ? given[id] : arena_format(arena, "%s%u", given[id], (unsigned)id);
  return name ? escaped(arena, name) : NULL;
}

static bool name_all(TreePrinter *l, Arena *arena) {
  const Kernel *k = l->k;
  const char **labels = ARENA_ARRAY(arena, const char *, k->nexprs + 1);
  const char **memories = ARENA_ARRAY(arena, const char *, k->naccesses + 1);
  l->expr_name = ARENA_ARRAY(arena, const char *, k->nexprs + 1);
  l->access_name = ARENA_ARRAY(arena, const char *, k->naccesses + 1);
  bool ok = labels && memories && l->expr_name && l->access_name;
  if (ok) l->expr_name[0] = "?";
  for (ExprId id = 1; id < k->nexprs && ok; id++) {
    labels[id] = label_of(l->t, id);
    l->expr_name[id] = labels[id] ? unique_name(arena, labels, id) : arena_format(arena, "t%u", (unsigned)id);
    ok = l->expr_name[id];
  }
  for (AccessId id = 0; id < k->naccesses && ok; id++) {
    memories[id] = used_memory(l->t, id);
    l->access_name[id] =
        memories[id] ? unique_name(arena, memories, id) : escaped(arena, memory_name(l->t->schedule, id));
    ok = l->access_name[id];
  }
  return ok;
}

static void print_function(TreePrinter *l, const char *name, const LoopNode *nodes) {
  if (!nodes) return;
  tree_printf(l, "    %s\n", name);
  l->indent = 2;
  print_nodes(l, nodes);
}

static bool begin_printing(TreePrinter *l, const LoopTree *t, Arena *scratch, Text *out) {
  tree_printer_init(l, &readable_language, t, out);
  arena_init(scratch, out->allocator);
  if (!name_all(l, scratch)) out->out_of_memory = true;
  return !out->out_of_memory;
}

static void print_tree(const LoopTree *t, Text *out) {
  Arena scratch;
  TreePrinter l;
  if (begin_printing(&l, t, &scratch, out)) {
    tree_printf(&l, "  loop %zu ", (size_t)(t->loop - t->schedule->loops));
    loop_print_order(t->k, t->loop, out);
    tree_printf(&l, "\n");
    print_function(&l, "block", t->block);
    print_function(&l, "step", t->step);
    print_function(&l, "tail step", t->tail_step);
  }
  arena_deinit(&scratch);
}

void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out) {
  Arena scratch;
  TreePrinter l;
  if (begin_printing(&l, t, &scratch, out)) tree_say(&l, n, tree_line(&l, n, lines));
  arena_deinit(&scratch);
}

void program_print_loops(const Program *program, Text *out) {
  for (size_t i = 0; i < program->nkernels; i++) {
    const Schedule *schedule = program->schedules[i];
    const Kernel *k = schedule->kernel;
    text_format(out, "kernel %zu: ", i);
    kernel_print_nodes(k, out);
    text_add_string(out, k->is_s64 ? ", in s64\n" : k->is_f64 ? ", in f64\n" : "\n");
    for (uint32_t loop = 0; loop < schedule->nloops; loop++) print_tree(program_tree(program, i, loop), out);
  }
}
