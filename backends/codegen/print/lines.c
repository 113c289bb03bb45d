// Prints lines of C with directives, and the values in them.
//
// In a line, directives stand for fields of a node: %v is its variable. add_directive lists all directives. A scalar
// becomes a C variable, or an element x[r] of an array if several rows are computed at once. A vector becomes a
// variable in the body of the innermost loop. A constant is written where it is used.
#include "backends/codegen/print/tree_printer.h"
#include "ir/support/escape.h"

#include <stdlib.h>
#include <string.h>

// Values

// The result of a load outside of the tensor.
static void add_outside(TreePrinter *l, double number) {
  if (l->k->is_s64) add_integer(l->out, type_integer(number));
  else add_number(l->out, number, l->k->is_f64);
}

void add_scalar(TreePrinter *l, ExprId id) {
  const Form form = l->t->form[id];
  if (form == FORM_NUMBER && l->k->is_s64) add_integer(l->out, l->k->exprs[id].integer);
  else if (form == FORM_NUMBER) add_number(l->out, l->k->exprs[id].number, l->k->is_f64);
  else add_text(l, l->name[id]);
  if (form == FORM_ROWS) add_text(l, "[r]");
  if (form == FORM_VECTOR) add_element_number(l);
}

void add_vector(TreePrinter *l, ExprId id) {
  if (l->t->form[id] == FORM_VECTOR && !l->elements) {
    add_text(l, l->name[id]);
    return;
  }
  tree_printf(l, "%c_set(", l->prefix);
  add_scalar(l, id);
  add_text(l, ")");
}

// Lines

// Adds an element with its closing bracket or parenthesis.
static void add_element(TreePrinter *l, const LoopNode *n) {
  open_element(l, node_memory(n));
  add_text(l, access_has_addresses(access_of(l, n)) ? "]" : ")");
}

// The buffer that the node adds to: a register, or an element in memory.
static void add_sum(TreePrinter *l, const LoopNode *n) {
  if (buffer_info[n->to.buffer].space == SPACE_REGISTERS) add_buffer(l, &n->to);
  else add_element(l, n);
}

static void add_lanes(TreePrinter *l, const LoopNode *n) {
  l->mentions_lanes |= n->has_fewer_lanes;
  add_text(l, n->has_fewer_lanes ? ", n" : "");
}

static void add_offset_of(TreePrinter *l, const Address *at) {
  if (at->index) add_index(l, at->index);
  else add_text(l, "0");
}

static void add_lane_step(TreePrinter *l, const LoopNode *n) {
  add_text(l, index_type(n->step) == INDEX_SIZE ? ", (ptrdiff_t)" : ", ");
  add_factor(l, n->step);
}

// Prints what a directive stands for: the node's field of that name, unless the line says otherwise.
static void add_directive(TreePrinter *l, const LoopNode *n, char directive) {
  switch (directive) {
  case 'L': tree_printf(l, "%d", LANES); return;
  case 'w':
    if (!l->p->is_canonical) text_add_user_string(l->out, SINK_COMMENT, n->words);
    return;
  case 'v': add_var(l, n->var); return;
  case 'y': add_text(l, var_type(n->var)); return;
  case 'x': add_index_as(l, n->value, var_info[n->var.kind].is_int ? INDEX_INT : INDEX_SIZE); return; // as var's type
  case 'X': add_factor(l, n->value); return; // value, as an operand
  case 'B': add_index(l, n->value); return;  // value, a loop's begin
  case 'E': add_index(l, n->end); return;
  case 'b': add_index(l, n->bound); return;
  case 's': add_index(l, n->step); return;
  case 'S': add_lane_step(l, n); return; // ", step": the distance in memory from lane to lane
  case '?': add_index(l, n->test); return;
  case 'j': add_factor(l, n->from.within); return;
  case 'u': add_outside(l, access_of(l, n)->outside); return;
  case '#': tree_printf(l, "%lld", (long long)n->count); return;
  case 'a': add_text(l, l->access_name[node_access(n)]); return;
  case 'm': add_member(l, node_access(n)); return;                            // a->x: the accessed tensor
  case 'T': add_text(l, element_types[access_of(l, n)->type].name); return;   // its element type in C
  case 't': add_text(l, element_types[access_of(l, n)->type].suffix); return; // suffix of functions on such elements
  case '@': add_address(l, node_memory(n)); return;
  case 'M': add_memory(l, node_memory(n)); return; // that address, as the arguments of functions on such elements
  case '[': add_element(l, n); return;             // the element at address
  case '+': add_offset_of(l, n->to.item ? &n->to : &n->from); return; // of the vectors of rows, in each row
  case 'e': add_text(l, l->name[n->expr]); return;
  case 'o': add_vector(l, n->expr); return;
  case 'O': add_scalar(l, n->expr); return;
  case '1': add_vector(l, expr_of(l, n)->args[0]); return; // first factor of a product
  case '2': add_vector(l, expr_of(l, n)->args[1]); return; // second factor
  case 'k': add_text(l, l->scalar); return;                // the kernel's types
  case 'K': add_text(l, l->vec); return;
  case 'Q': add_text(l, l->mask); return;
  case 'P': tree_printf(l, "%c", l->prefix); return; // v, d or l: prefix of functions on the kernel's vectors
  case 'p': add_text(l, node_is_f64(l->t, n) ? "d" : "v"); return; // v or d: prefix of functions on the sum's vectors
  case 'V': add_text(l, node_is_f64(l->t, n) ? "dvec" : "vec"); return; // the sum's type
  case 'n': add_text(l, n->has_fewer_lanes ? "_n" : ""); return;        // suffix of functions on the first n lanes
  case 'N': add_lanes(l, n); return;                                    // their argument n
  case 'c':
    add_text(l, expr_info[reductions[node_reduction(l->t, n)].combine].name);
    return;                                                               // combines two operands: add
  case 'l': add_text(l, expr_info[node_reduction(l->t, n)].name); return; // combines all lanes: sum
  case 'i': add_number(l->out, reductions[node_reduction(l->t, n)].identity, node_is_f64(l->t, n)); return;
  case 'g': add_sum(l, n); return;
  case 'G': add_buffer(l, &n->to); return;
  case 'F': add_buffer(l, &n->from); return;
  case '>': add_address(l, &n->to); return;
  case 'R': add_text(l, node_is_of_rows(l->t, n) ? "UNROLL for (int r = 0; r < rows; r++) " : ""); return;
  case 'f':
    if (n->test) tree_say(l, n, "if (%?) ");
    return;
  default: abort(); // an unknown directive in a line below
  }
}

void tree_say(TreePrinter *l, const LoopNode *n, const char *line) {
  while (*line) {
    const size_t nbytes = strcspn(line, "%");
    text_add(l->out, line, nbytes);
    line += nbytes;
    if (!*line) return;
    add_directive(l, n, line[1]);
    line += 2;
  }
}

void tree_say_line(TreePrinter *l, const LoopNode *n, const char *line) {
  begin_line(l);
  tree_say(l, n, line);
  add_text(l, "\n");
}
