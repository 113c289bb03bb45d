// Prints nodes, indices and addresses by a language's table: finds the form of a node, and says its line.
#include "ir/loops/printer.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

void tree_add_text(TreePrinter *l, const char *text) {
  text_add_string(l->out, text);
}

void tree_printf(TreePrinter *l, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_format_list(l->out, format, args);
  va_end(args);
}

void tree_begin_line(TreePrinter *l) {
  static const char spaces[] = "                                ";
  for (size_t left = l->is_line_begun ? 0 : 2 * (size_t)l->indent, nbytes; left; left -= nbytes) {
    nbytes = left < sizeof spaces - 1 ? left : sizeof spaces - 1;
    text_add(l->out, spaces, nbytes);
  }
  l->is_line_begun = false;
}

// Integers

void tree_add_var(TreePrinter *l, Var v) {
  l->mentions |= UINT64_C(1) << v.kind;
  if (l->language->add_var && l->language->add_var(l, v)) return;
  const VarInfo *info = &var_info[v.kind];
  tree_add_text(l, info->prefix);
  // Messages also print unsound trees.
  if (info->owner == OWNER_AXIS) tree_add_text(l, v.of < (uint32_t)l->k->naxes ? l->k->axes[v.of].name : "?");
  if (info->owner == OWNER_ACCESS) tree_add_text(l, v.of < l->k->naccesses ? l->access_name[v.of] : "?");
  tree_add_text(l, info->suffix);
}

void tree_add_operand(TreePrinter *l, const Index *i, int precedence, bool is_size) {
  const bool is_cast = l->language->has_casts && is_size && index_type(i) == INDEX_INT;
  if (is_cast) tree_add_text(l, "(size_t)");
  tree_add_index(l, i, is_cast ? PRECEDENCE_VALUE : precedence);
}

static void add_operation(TreePrinter *l, const Index *i, int own) {
  if (i->op == INDEX_CHOOSE) {
    tree_add_index(l, i->args[0], PRECEDENCE_COMPARISON);
    tree_add_text(l, " ? ");
    tree_add_index(l, i->args[1], own);
    tree_add_text(l, " : ");
    tree_add_index(l, i->args[2], own);
    return;
  }
  const bool is_size = index_type(i) == INDEX_SIZE;
  tree_add_operand(l, i->args[0], own, is_size);
  tree_add_text(l, index_operators[i->op].text);
  tree_add_operand(l, i->args[1], own + 1, is_size);
}

void tree_add_index(TreePrinter *l, const Index *i, int precedence) {
  if (!i) tree_add_text(l, "nothing");
  else if (i->op == INDEX_NUMBER) l->language->add_number(l, i->number, i->monomial, precedence);
  else if (i->op == INDEX_VAR) tree_add_var(l, i->var);
  else if (!l->language->add_index(l, i, precedence)) {
    const int own = index_operators[i->op].precedence;
    if (own < precedence) tree_add_text(l, "(");
    add_operation(l, i, own);
    if (own < precedence) tree_add_text(l, ")");
  }
}

// Addresses

static void add_item(TreePrinter *l, const Index *index) {
  tree_add_text(l, "[");
  if (index) tree_add_index(l, index, 0);
  else tree_add_text(l, "0");
  tree_add_text(l, "]");
}

void tree_add_buffer(TreePrinter *l, const Address *at) {
  const BufferInfo *info = &buffer_info[at->buffer];
  if (at->buffer == BUFFER_TENSOR) {
    l->language->add_tensor(l, at->of);
    return;
  }
  tree_add_text(l, info->prefix);
  tree_add_text(l, info->is_of_expr ? l->expr_name[at->of] : l->access_name[at->of]);
  if (at->item) add_item(l, at->item);
  if (l->language->add_lane && info->space == SPACE_REGISTERS) l->language->add_lane(l, at);
}

void tree_add_address(TreePrinter *l, const Address *at) {
  tree_add_buffer(l, at);
  if (!at->index) return;
  const bool is_negated = at->index->op == INDEX_SUBTRACT && index_is(at->index->args[0], 0);
  const IndexOperator *sign = &index_operators[is_negated ? INDEX_SUBTRACT : INDEX_ADD];
  tree_add_text(l, sign->text);
  tree_add_index(l, is_negated ? at->index->args[1] : at->index, sign->precedence + is_negated);
}

// Words. Some functions say one of several words: a member of the node, by its offset, or a fact.

static void add_buffer(TreePrinter *l, const LoopNode *n, size_t member) {
  tree_add_buffer(l, (const Address *)((const char *)n + member));
}

static void add_index(TreePrinter *l, const LoopNode *n, size_t member) {
  tree_add_index(l, *(const Index *const *)((const char *)n + member), 0);
}

static void add_element(TreePrinter *l, const LoopNode *n) {
  const Address *at = node_memory(n);
  tree_add_buffer(l, at);
  add_item(l, at->index);
}

// Unsound trees have operators without a name.
static void add_name(TreePrinter *l, ExprOp op) {
  tree_add_text(l, expr_info[op].name ? expr_info[op].name : "?");
}

enum { ACCESS, ADDED, AT, AXIS, COMBINE, COUNT, EXPR, NUMBER, OPERATOR, REDUCTION, TO_ADDRESS, VAR };

static void add_fact(TreePrinter *l, const LoopNode *n, size_t fact) {
  const Expr *e = &l->k->exprs[n->expr];
  switch (fact) {
  case ACCESS: tree_add_text(l, l->access_name[node_access(n)]); return;
  case ADDED: tree_add_operand(l, n->value->args[1], 0, true); return;
  case AT: tree_add_address(l, node_memory(n)); return;
  case AXIS: tree_add_text(l, l->k->axes[__builtin_ctz(e->axes)].name); return;
  case COMBINE: add_name(l, reductions[node_reduction(l->t, n)].combine); return;
  case COUNT: tree_printf(l, "%lld", (long long)n->count); return;
  case EXPR: tree_add_text(l, l->expr_name[n->expr]); return;
  case NUMBER: l->language->add_number(l, (int64_t)e->number, e->monomial, 0); return;
  case OPERATOR: add_name(l, e->op); return;
  case REDUCTION: add_name(l, node_reduction(l->t, n)); return;
  case TO_ADDRESS: tree_add_address(l, &n->to); return;
  default: tree_add_var(l, n->var);
  }
}

static const Word common_words[] = {
    {"access", .add_of = add_fact, .of = ACCESS}, // the name of the access of the memory at {at}
    {"added", .add_of = add_fact, .of = ADDED},   // what a counter advances by
    {"at", .add_of = add_fact, .of = AT},         // the address in memory that the node reads, or else writes
    {"axis", .add_of = add_fact, .of = AXIS},     // whose index the expression is
    {"begin", .add_of = add_index, .of = offsetof(LoopNode, value)},
    {"bound", .add_of = add_index, .of = offsetof(LoopNode, bound)},
    {"combine", .add_of = add_fact, .of = COMBINE}, // the operator of a sum of two values: add
    {"count", .add_of = add_fact, .of = COUNT},
    {"element", .add = add_element}, // the element at {at}
    {"end", .add_of = add_index, .of = offsetof(LoopNode, end)},
    {"expr", .add_of = add_fact, .of = EXPR},
    {"from", .add_of = add_buffer, .of = offsetof(LoopNode, from)}, // with the index of an item
    {"number", .add_of = add_fact, .of = NUMBER},                   // of elements that the expression counts
    {"operator", .add_of = add_fact, .of = OPERATOR},
    {"reduction", .add_of = add_fact, .of = REDUCTION}, // the operator of a sum of many values: sum
    {"step", .add_of = add_index, .of = offsetof(LoopNode, step)},
    {"test", .add_of = add_index, .of = offsetof(LoopNode, test)},
    {"to", .add_of = add_buffer, .of = offsetof(LoopNode, to)}, // with the index of an item
    {"to_address", .add_of = add_fact, .of = TO_ADDRESS},
    {"total", WHEN_TO_REGISTER, "{to}", "{element}"}, // what the node adds to
    {"value", .add_of = add_index, .of = offsetof(LoopNode, value)},
    {"var", .add_of = add_fact, .of = VAR},
    {NULL}};

static bool holds(const TreePrinter *l, const LoopNode *n, When when) {
  switch (when) {
  case WHEN_ALWAYS: return true;
  case WHEN_TEST: return n->test;
  case WHEN_BOUND: return n->bound;
  case WHEN_COUNT: return n->count;
  case WHEN_END: return n->end;
  case WHEN_VECTOR: return n->is_vector;
  case WHEN_DOWN: return n->is_down;
  case WHEN_UNROLLED: return n->is_unrolled;
  case WHEN_COUNTER: return n->is_counter;
  case WHEN_FEWER_LANES: return n->has_fewer_lanes;
  case WHEN_STREAMED: return n->is_streamed;
  case WHEN_FUSED: return n->is_fused;
  case WHEN_ADVANCES:
    return n->is_counter && n->value && n->value->op == INDEX_ADD && index_is_var(n->value->args[0], n->var);
  case WHEN_EXISTS: return n->value && n->value->op == INDEX_EXISTS;
  case WHEN_BY_ONE: return index_is(n->step, 1);
  case WHEN_STRIDED: return node_is_strided(n);
  case WHEN_OF_ROWS: return node_is_of_rows(l->t, n);
  case WHEN_F64: return node_is_f64(l->t, n);
  case WHEN_WIDENED: return node_is_widened(l->t, n);
  case WHEN_TO_REGISTER: return buffer_info[n->to.buffer].space == SPACE_REGISTERS;
  case WHEN_SEVERAL: return n->count > 1;
  case WHEN_EACH: return n->is_vector && tree_element_sums(l->t, n->expr);
  case WHEN_ADDS_LANES: return node_adds_lanes(l->t, n);
  case WHEN_BINARY: return l->k->exprs[n->expr].args[1];
  case WHEN_VALUE_OF_ROW: return l->t->form[n->expr] == FORM_ROWS;
  case WHEN_KERNEL_F64: return l->k->is_f64;
  }
  return false;
}

static size_t slot_of(const char *name, size_t nbytes) {
  return ((size_t)name[0] * 31 + (size_t)name[nbytes - 1] * 7 + nbytes) % WORD_SLOTS;
}

const Word *tree_word(const TreePrinter *l, const char *name, size_t nbytes) {
  for (size_t i = slot_of(name, nbytes); l->words[i]; i = (i + 1) % WORD_SLOTS)
    if (strncmp(l->words[i]->name, name, nbytes) == 0 && !l->words[i]->name[nbytes]) return l->words[i];
  return NULL;
}

static void add_words(TreePrinter *l, const Word *words) {
  for (const Word *word = words; word->name; word++) {
    const size_t nbytes = strlen(word->name);
    size_t i = slot_of(word->name, nbytes);
    if (tree_word(l, word->name, nbytes)) continue; // another text for a common word
    while (l->words[i]) i = (i + 1) % WORD_SLOTS;
    l->words[i] = word;
  }
}

void tree_printer_init(TreePrinter *l, const Language *language, const LoopTree *t, Text *out) {
  *l = (TreePrinter){.language = language, .out = out, .t = t, .k = t ? t->k : NULL};
  add_words(l, language->words);
  add_words(l, common_words);
}

static void add_word(TreePrinter *l, const LoopNode *n, const char *name, size_t nbytes) {
  const Word *word = tree_word(l, name, nbytes);
  if (!word) abort(); // a line has an unknown word
  if (word->add) word->add(l, n);
  else if (word->add_of) word->add_of(l, n, word->of);
  else {
    const char *line = holds(l, n, word->when) ? word->text : word->otherwise;
    if (line) tree_say(l, n, line);
  }
}

static bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// The text up to a brace or line break is added at once.
void tree_say(TreePrinter *l, const LoopNode *n, const char *line) {
  for (;;) {
    size_t nbytes = 0, length = 0;
    while (line[nbytes] && line[nbytes] != '{' && line[nbytes] != '\n') nbytes++;
    if (nbytes) text_add(l->out, line, nbytes);
    line += nbytes;
    if (!*line) return;
    while (*line == '{' && is_word_char(line[1 + length])) length++;
    if (length) add_word(l, n, line + 1, length);
    else text_add(l->out, line, 1); // a line break, or a brace of C
    if (*line == '\n' && line[1] != '\n') tree_begin_line(l);
    line += length ? length + 2 : 1;
  }
}

const char *tree_line(const TreePrinter *l, const LoopNode *n, const Line *lines) {
  const Action action = node_action(n);
  while (lines->text && (lines->action != action || !holds(l, n, lines->when))) lines++;
  return lines->text;
}

void tree_print_node(TreePrinter *l, const LoopNode *n) {
  tree_begin_line(l);
  tree_say(l, n, tree_line(l, n, l->language->lines));
  if (n->kind == NODE_INDEX) l->mentions &= ~(UINT64_C(1) << n->var.kind);
  if (n->kind == NODE_FOR || n->kind == NODE_IF) l->language->print_bodies(l, n);
  else tree_add_text(l, "\n");
}
