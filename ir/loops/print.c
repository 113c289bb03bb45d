// Prints trees. A kind of node has a format line with directives, such as %v for the node's variable (add_directive
// lists all), or a function if its nodes have several forms.
#include "ir/loops/print.h"

#include "ir/loops/loop_text.h"

#include <stdlib.h>
#include <string.h>

// A word from a table. Messages also print unsound trees, whose operators may have no word.
static void add_word(LoopText *p, const char *word) {
  text_add_string(p->out, word ? word : "?");
}

// Values

static void add_operand(LoopText *p, ExprId id) {
  if (p->t->form[id] == FORM_NUMBER) {
    if (p->k->is_s64) loop_text_add(p, "%lld", (long long)p->k->exprs[id].integer);
    else text_add_number(p->out, p->k->exprs[id].number, !p->k->is_f64);
    return;
  }
  loop_text_name(p, p->expr_name[id]);
  if (p->t->form[id] == FORM_ROWS) loop_text_add(p, "[r]");
}

static void add_operands(LoopText *p, const Expr *e) {
  for (int a = 0; a < 3 && e->args[a]; a++) {
    if (a) loop_text_add(p, ", ");
    add_operand(p, e->args[a]);
  }
}

static void say(LoopText *p, const LoopNode *n, const char *line);

static void add_directive(LoopText *p, const LoopNode *n, char directive) {
  switch (directive) {
  case 'w': loop_text_name(p, n->words); return;
  case 'v': loop_text_var(p, n->var); return;
  case 'x': loop_text_index(p, n->value); return;
  case 'E': loop_text_index(p, n->end); return;
  case 's': loop_text_index(p, n->step); return;
  case 'b': loop_text_index(p, n->bound); return;
  case '?': loop_text_index(p, n->test); return;
  case '#': loop_text_add(p, "%lld", (long long)n->count); return;
  case 'a': loop_text_name(p, p->access_name[node_access(n)]); return;
  case '@': loop_text_address(p, node_memory(n)); return;
  case '>': loop_text_address(p, &n->to); return;
  case '[': loop_text_element(p, node_memory(n)); return;
  case 'G': loop_text_buffer(p, &n->to); return;
  case 'F': loop_text_buffer(p, &n->from); return;
  case 'e': loop_text_name(p, p->expr_name[n->expr]); return;
  case 'o': add_operand(p, n->expr); return;
  case '*': add_operands(p, &p->k->exprs[n->expr]); return;               // the operands of that expression
  case 'O': add_word(p, expr_info[p->k->exprs[n->expr].op].name); return; // its operator
  case 'C':
    add_word(p, expr_info[reductions[node_reduction(p->t, n)].combine].name);
    return;                                                               // of two values, as in add
  case 'l': add_word(p, expr_info[node_reduction(p->t, n)].name); return; // of many values, as in sum
  case 'i': text_add_number(p->out, reductions[node_reduction(p->t, n)].identity, true); return;
  case 't': text_add_string(p->out, node_is_f64(p->t, n) ? "f64" : "f32"); return;
  case 'V': text_add_string(p->out, n->is_vector ? "vector" : "scalar"); return;
  case 'R': text_add_string(p->out, p->t->form[n->expr] == FORM_ROWS ? "[r]" : ""); return;
  case 'y': text_add_string(p->out, node_is_of_rows(p->t, n) ? ", for each r" : ""); return;
  case 'n': text_add_string(p->out, n->has_fewer_lanes ? ", n lanes" : ""); return;
  case 'S': text_add_string(p->out, n->is_streamed ? ", streamed" : ""); return;
  case 'f':
    if (n->test) say(p, n, ", if %?");
    return;
  default: abort(); // a format below has an unknown directive
  }
}

static void say(LoopText *p, const LoopNode *n, const char *line) {
  while (*line) {
    const size_t nbytes = strcspn(line, "%");
    text_add(p->out, line, nbytes);
    line += nbytes;
    if (!*line) return;
    add_directive(p, n, line[1]);
    line += 2;
  }
}

// Nodes

static void print_for(LoopText *p, const LoopNode *n) {
  const bool is_one = index_is(n->step, 1);
  if (n->is_counter) say(p, n, is_one ? "for %v += 1 while %v < %E" : "for %v += %s while %v + %s <= %E");
  else say(p, n, is_one ? "for %v in %x..%E" : "for %v in %x..%E by %s");
  if (n->bound) say(p, n, ", while %v < %b");
  if (n->is_down) loop_text_add(p, ", backwards");
  if (n->is_unrolled) loop_text_add(p, ", unrolled");
  say(p, n, "%f");
}

static void print_if(LoopText *p, const LoopNode *n) {
  say(p, n, n->test ? "if %?" : "scope");
}

static void print_index(LoopText *p, const LoopNode *n) {
  const bool is_sum = n->is_counter && n->value && n->value->op == INDEX_ADD && index_is_var(n->value->args[0], n->var);
  if (is_sum) {
    say(p, n, "%v += ");
    loop_text_index(p, n->value->args[1]);
  } else say(p, n, n->is_counter ? "count %v from %x" : n->test ? "%v = %x, 0 unless %?" : "%v = %x");
}

static const char *const loads[] = {[LOAD_ELEMENT] = "load %[",
                                    [LOAD_BROADCAST] = "broadcast %[",
                                    [LOAD_DENSE] = "load %@%n",
                                    [LOAD_STRIDED] = "load %@ with stride %s%n",
                                    [LOAD_GATHERED] = "gather %@ with stride %s%n",
                                    [LOAD_WHOLE] = "load %@"};

static void print_bounds(LoopText *p, const LoopNode *n) {
  if (!n->test && !n->from.within) return;
  if (n->test) {
    loop_text_add(p, ", where ");
    loop_text_index(p, n->test);
  }
  if (n->from.within) {
    const Bound *b = node_lane_bound(p->t, n);
    const int64_t factor = b ? b->factor[loop_lane_axis(p->t->loop)] : 0;
    loop_text_add(p, n->test ? ", and lanes where " : ", lanes where ");
    loop_text_index(p, n->from.within);
    loop_text_add(p, factor < 0 ? " - lane" : " + lane");
    if (factor != 1 && factor != -1) loop_text_add(p, " * %lld", (long long)llabs(factor));
    loop_text_add(p, " < %lld", (long long)(b ? b->extent : 0));
  }
  loop_text_add(p, ", else ");
  text_add_number(p->out, p->k->accesses[node_access(n)].outside, !p->k->is_f64);
}

static void print_end_sum(LoopText *p, const LoopNode *n) {
  const bool is_total = n->from.buffer == BUFFER_TOTAL;
  if (n->is_vector) say(p, n, tree_element_sums(p->t, n->expr) ? "vector %e = %l of all %F" : "vector %e = %F");
  else say(p, n, is_total ? "scalar %e%R = %F%y" : "scalar %e%R = %l of the lanes of %F in %t%y");
}

static void print_let(LoopText *p, const LoopNode *n) {
  const Expr *e = &p->k->exprs[n->expr];
  const Load load = node_load(p->t, n);
  if (node_ends_sum(n)) {
    print_end_sum(p, n);
    return;
  }
  say(p, n, "%V %e%R = ");
  if (load) {
    say(p, n, loads[load]);
    if (e->args[0] && n->from.buffer != BUFFER_SPILL) say(p, n, ", at offset %*");
    print_bounds(p, n);
  } else if (e->op == EXPR_INDEX) {
    if (n->is_vector) say(p, n, "%x + lane");
    else text_add_string(p->out, p->k->axes[__builtin_ctz(e->axes)].name);
  } else if (e->op == EXPR_INTEGER) {
    loop_text_add(p, "%lld", (long long)e->integer);
  } else if (e->op == EXPR_COUNT || e->op == EXPR_RECIPROCAL) {
    say(p, n, "%O of ");
    loop_text_number(p, (int64_t)e->number, e->monomial);
  } else {
    say(p, n, expr_has_access(e) ? "%O(%*) at %@" : "%O(%*)");
  }
}

// Buffers

static void print_buffer(LoopText *p, const LoopNode *n) {
  const bool is_own = n->to.buffer == BUFFER_ROW && access_is_own(p->t, n->to.of);
  if (n->to.buffer == BUFFER_HELD) say(p, n, "%G = load %@%n%f");
  else if (n->from.buffer) say(p, n, "%G = %@%f");
  else if (n->to.buffer == BUFFER_SUM || n->to.buffer == BUFFER_TOTAL) {
    say(p, n, n->count > 1 ? "%G[%#] = %i" : "%G = %i");
    say(p, n, n->is_vector ? ", vectors of %t" : ", %t");
  } else {
    say(p, n, "local %G[%#]: ");
    loop_text_add(p, "%s",
                  n->is_vector                            ? "vectors"
                  : n->to.buffer == BUFFER_ROW && !is_own ? "pointers"
                  : n->to.buffer == BUFFER_VALUE          ? "scalars"
                                                          : "elements");
  }
}

static const char *combining(const LoopText *p, const LoopNode *n) {
  const ExprOp reduction = node_reduction(p->t, n);
  return reduction == EXPR_REDUCE_SUM ? " += " : reduction == EXPR_REDUCE_PRODUCT ? " *= " : " %C= ";
}

static void print_update(LoopText *p, const LoopNode *n) {
  const char *to = buffer_info[n->to.buffer].space == SPACE_REGISTERS ? "%G" : "%[";
  say(p, n, to);
  if (n->is_fused) {
    say(p, n, " = fma(%*, ");
    say(p, n, to);
    say(p, n, ")%n%f");
    return;
  }
  say(p, n, combining(p, n));
  if (node_ends_run(n)) say(p, n, node_adds_lanes(p->t, n) ? "%l of the lanes of %F%y" : "%F in f64%y");
  else if (n->from.buffer) say(p, n, node_is_strided(n) ? "%@ with stride %s%n" : n->is_vector ? "%@%n" : "%[");
  else say(p, n, n->is_vector && node_is_widened(p->t, n) ? "%o converted to %t%n%f" : "%o%n%f");
}

static void print_store(LoopText *p, const LoopNode *n) {
  if (!n->expr && !n->from.buffer) {
    say(p, n, "%[ = %i");
    return;
  }
  say(p, n, n->from.buffer ? "store %F to " : "store %o to ");
  say(p, n, n->is_vector ? "%@" : "%[");
  say(p, n, node_is_strided(n) ? " with stride %s%n%S%f" : "%n%S%f");
}

static void print_move(LoopText *p, const LoopNode *n) {
  const bool is_store = n->from.buffer == BUFFER_COPY;
  if (node_is_of_rows(p->t, n))
    say(p, n,
        is_store ? "store %F to all rows at %>, with stride %s%f" : "%G = vectors of all rows at %@, with stride %s");
  else if (!n->count) say(p, n, "%> = load %@");
  else
    say(p, n,
        is_store ? "store %F to rows of %# at %G, with stride %s, transposed%S"
                 : "%G = rows of %# at %F, with stride %s, transposed");
}

static void print_step(LoopText *p, const LoopNode *n) {
  loop_text_add(p, n->has_fewer_lanes ? "tail step" : "step");
  if (loop_tile(p->t->loop)) loop_text_add(p, " from begin to end");
  if (n->count) say(p, n, ", rows = %#");
  if (n->end) say(p, n, ", c_end = %E");
  if (n->has_fewer_lanes) say(p, n, ", n = %x");
}

typedef struct NodePrinter {
  const char *line; // with directives; NULL: `print` prints the node
  void (*print)(LoopText *p, const LoopNode *n);
} NodePrinter;

static const NodePrinter printers[] = {
    [NODE_COMMENT] = {"sweep: %w"},
    [NODE_INDEX] = {NULL, print_index},
    [NODE_FOR] = {NULL, print_for},
    [NODE_IF] = {NULL, print_if},
    [NODE_BUFFER] = {NULL, print_buffer},
    [NODE_LET] = {NULL, print_let},
    [NODE_UPDATE] = {NULL, print_update},
    [NODE_STORE] = {NULL, print_store},
    [NODE_MOVE] = {NULL, print_move},
    [NODE_BARRIER] = {"%G leaves its registers"},
    [NODE_PREFETCH] = {"prefetch %@"},
    [NODE_CALL] = {NULL, print_step},
    [NODE_SCATTER] = {"%a[begin:end] = 0, then add each row whose index is in begin:end"},
    [NODE_FENCE] = {"fence"},
};

static void print_head(LoopText *p, const LoopNode *n) {
  if (printers[n->kind].line) say(p, n, printers[n->kind].line);
  else printers[n->kind].print(p, n);
}

static void print_nodes(LoopText *p, const LoopNode *n, int indent) {
  for (; n; n = n->next) {
    loop_text_add(p, "%*s", 2 * indent, "");
    print_head(p, n);
    loop_text_add(p, "\n");
    print_nodes(p, n->body, indent + 1);
    if (n->otherwise) loop_text_add(p, "%*selse\n", 2 * indent, "");
    print_nodes(p, n->otherwise, indent + 1);
  }
}

static void print_function(LoopText *p, const char *name, const LoopNode *nodes) {
  if (nodes) loop_text_add(p, "    %s\n", name);
  print_nodes(p, nodes, 3);
}

static bool begin_printing(LoopText *p, const LoopTree *t, Arena *scratch, Text *out) {
  *p = (LoopText){.out = out, .t = t, .k = t->k};
  arena_init(scratch, out->allocator);
  if (!loop_text_name_all(p, scratch)) out->out_of_memory = true;
  return !out->out_of_memory;
}

void loops_print(const LoopTree *t, Text *out) {
  Arena scratch;
  LoopText p;
  if (begin_printing(&p, t, &scratch, out)) {
    loop_text_add(&p, "  loop %zu ", (size_t)(t->loop - t->schedule->loops));
    loop_print_order(t->k, t->loop, out);
    loop_text_add(&p, "\n");
    print_function(&p, "block", t->block);
    print_function(&p, "step", t->step);
    print_function(&p, "tail step", t->tail_step);
  }
  arena_deinit(&scratch);
}

void loops_print_node(const LoopTree *t, const LoopNode *n, Text *out) {
  Arena scratch;
  LoopText p;
  if (begin_printing(&p, t, &scratch, out)) print_head(&p, n);
  arena_deinit(&scratch);
}

void loops_print_index(const LoopTree *t, const Index *i, Text *out) {
  Arena scratch;
  LoopText p;
  if (begin_printing(&p, t, &scratch, out)) loop_text_index(&p, i);
  arena_deinit(&scratch);
}

void program_print_loops(const Program *program, Text *out) {
  for (size_t i = 0; i < program->nkernels; i++) {
    const Schedule *schedule = program->schedules[i];
    const Kernel *k = schedule->kernel;
    text_format(out, "kernel %zu: ", i);
    kernel_print_nodes(k, out);
    text_add_string(out, k->is_s64 ? ", in s64\n" : k->is_f64 ? ", in f64\n" : "\n");
    for (uint32_t loop = 0; loop < schedule->nloops; loop++) loops_print(program_tree(program, i, loop), out);
  }
}
