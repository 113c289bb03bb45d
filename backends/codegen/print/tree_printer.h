// Prints a loop tree as C: functions.c prints its functions, tree.c the nodes in them, values.c what nodes compute,
// lines.c lines with fields of nodes, addresses.c the nodes' integers and addresses.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H

#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"
#include "ir/loops/loops.h"

typedef struct TreePrinter {
  Printer *p;
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  size_t kernel_index, loop_index;
  size_t number;                    // the kernel's number in names
  const char **name;                // C names by ExprId, then by open dim
  const char **access_name;         // by AccessId: the name that follows p_, part_ and other prefixes
  bool mentions_dim[MAX_OPEN_DIMS]; // the function's body so far uses the open dim
  bool mentions_args;               // the function's body so far uses the argument struct
  bool mentions_lanes;              // since the number of lanes was last set
  const char *vec, *scalar, *mask;  // the kernel's C types
  char prefix;                      // of vocabulary functions on these types: v, d or l
  int indent;                       // in steps of two columns
  const LoopNode *elements;         // the loop over elements around the node (Loop.by_element), or NULL
  int element;                      // of those that are computed together
  bool is_panel;                    // the address is in a panel, where only vectors have strides
  bool is_line_begun;               // the next node continues the line: it is behind a condition
} TreePrinter;

static inline const Access *access_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->accesses[node_access(n)];
}

static inline const Expr *expr_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->exprs[n->expr];
}

// tree.c

void print_nodes(TreePrinter *l, const LoopNode *n); // the node and those that follow it
// Prints a step's parameters for the block's partial sums, or (is_call) the arguments.
void print_partial_parameters(TreePrinter *l, bool is_call);
void print_step_name(TreePrinter *l, bool is_tail); // is_tail: the step for the last rows in lanes, fewer than LANES

// elements.c

// In a loop over elements, prints a node with vectors as one with scalars. False: it has none, and prints as elsewhere.
bool print_of_elements(TreePrinter *l, const LoopNode *n);

// values.c

const char *scalar_type(const TreePrinter *l, const Expr *e); // in C
void print_scalar_store(TreePrinter *l, const LoopNode *n);
void add_value(TreePrinter *l, const LoopNode *n); // the value that a NODE_LET computes
// A load of all lanes, of the first n lanes, or (is_part) of the lanes within the bound, as a vector that functions
// with the prefix `to` take.
void add_vector_load(TreePrinter *l, const LoopNode *n, char to, bool is_part);
void print_lanes_within(TreePrinter *l, const LoopNode *n); // the lanes that are within the bound of a load's vector
char access_prefix(const TreePrinter *l, Type type);        // of vocabulary functions on elements of the type

// lines.c

void tree_say(TreePrinter *l, const LoopNode *n, const char *line); // text with directives
void tree_say_line(TreePrinter *l, const LoopNode *n, const char *line);
void add_scalar(TreePrinter *l, ExprId id);
void add_vector(TreePrinter *l, ExprId id); // of equal lanes if the expression is a scalar

// addresses.c
//
// Elements of 4 bits have no addresses. Such an element is described by its tensor's memory and a place: its number.

void add_text(TreePrinter *l, const char *text);
void tree_printf(TreePrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void begin_line(TreePrinter *l); // indents
void add_var(TreePrinter *l, Var v);
const char *var_type(Var v);
void add_index(TreePrinter *l, const Index *i);
void add_factor(TreePrinter *l, const Index *i); // an operand of a cast or *, in parentheses if needed
void add_index_as(TreePrinter *l, const Index *i, IndexType wanted); // with a cast if its type differs
const char *number_text(TreePrinter *l, int64_t number, Monomial monomial);
void add_member(TreePrinter *l, AccessId id); // a->x: the tensor or temporary that is accessed
void add_element_number(TreePrinter *l);      // behind the name of a value, if several elements are computed together
void add_buffer(TreePrinter *l, const Address *at); // its name, and the index of an item
void add_address(TreePrinter *l, const Address *at);
// The arguments that vocabulary functions take for an address: a pointer, or "memory, place".
void add_memory(TreePrinter *l, const Address *at);
// An element without its closing bracket: "p[i", or "memory, place" without the closing parenthesis.
void open_element(TreePrinter *l, const Address *at);

// formulas.c

// By operation: C text with %0, %1 and %2 for the arguments. F becomes "f" in a kernel that computes in f32; N becomes
// a cast to f32, and W a cast to f64, in a kernel that computes in f64. NULL: no formula; a function such as exp is
// computed as lane 0 of its vector version, because libm's exp may give other bits.
extern const char *const scalar_formulas[EXPR_OP_COUNT];
// The same for kernels that compute in s64; all operations of such kernels have a formula.
extern const char *const integer_formulas[EXPR_OP_COUNT];

// By operation, in f32 and f64: what scalar_formulas lacks, for loops by element. Copied as it is but for the
// arguments. The bits are those of lanes of the scalar instruction set, whose parts have one lane. NULL: no formula.
extern const char *const element_formulas[EXPR_OP_COUNT][2];

#endif
