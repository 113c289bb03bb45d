// Prints a loop tree as C: functions.c prints its functions, tree.c has the lines of nodes (ir/loops/printer.h) and the
// words in them, elements.c the lines in loops over elements, values.c what nodes compute, addresses.c integers,
// addresses and operands.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H

#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"
#include "ir/loops/printer.h"

extern const Language c_language;

// C's names: of accesses, what follows p_, part_ and other prefixes; of expressions, then of open dims.
typedef struct LanguageState {
  Printer *p;
  size_t kernel_index, loop_index;
  size_t number;                    // the kernel's number in names
  bool mentions_dim[MAX_OPEN_DIMS]; // the function's body so far uses the open dim
  bool mentions_args;               // the function's body so far uses the argument struct
  const char *vec, *scalar, *mask;  // the kernel's C types
  const char *prefix;               // of vocabulary functions on these types: v, d or l
  const char *identifier;           // the printer's
  bool is_callable;                 // prints a function of an operation, whose operands are a and b
  const LoopNode *elements;         // the loop over elements around the node (Loop.by_element), or NULL
  int element;                      // of those that are computed together
  bool is_panel;                    // the address is in a panel, where only vectors have strides
} LanguageState;

static inline const Access *access_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->accesses[node_access(n)];
}

static inline const Expr *expr_of(const TreePrinter *l, const LoopNode *n) {
  return &l->k->exprs[n->expr];
}

// tree.c

void print_nodes(TreePrinter *l, const LoopNode *nodes); // the node and those that follow it
// Prints a step's parameters for the block's partial sums, or (is_call) the arguments.
void print_partial_parameters(TreePrinter *l, bool is_call);
void print_step_name(TreePrinter *l, bool is_tail); // is_tail: the step for the last rows in lanes, fewer than LANES

// elements.c

extern const Line element_lines[]; // ended by a line without text
// In a loop over elements, prints a node with vectors as one with scalars. False: it has none, and prints as elsewhere.
bool print_of_elements(TreePrinter *l, const LoopNode *n);
void add_lane(TreePrinter *l, const Address *sum);
bool add_var_of_element(TreePrinter *l, Var v);
void add_each(TreePrinter *l, const LoopNode *n); // words, as tree.c lists them
void add_element_sum(TreePrinter *l, const LoopNode *n);
void add_next(TreePrinter *l, const LoopNode *n);
void add_register(TreePrinter *l, const LoopNode *n);

// values.c

char access_prefix(const TreePrinter *l, Type type); // of vocabulary functions on elements of the type
// A load of all lanes, of the first n lanes, or (is_part) of the lanes within the bound, as a vector that functions
// with the prefix `to` take.
void add_vector_load(TreePrinter *l, const LoopNode *n, char to, bool is_part);
void add_formula_operand(TreePrinter *l, const LoopNode *n, size_t argument); // words
void add_reciprocal(TreePrinter *l, const LoopNode *n);
void add_vector_arguments(TreePrinter *l, const LoopNode *n);
void add_computed(TreePrinter *l, const LoopNode *n);
void add_scalar_store(TreePrinter *l, const LoopNode *n);
void add_span(TreePrinter *l, const LoopNode *n);
void add_scalar_load(TreePrinter *l, const LoopNode *n);
void add_part_load(TreePrinter *l, const LoopNode *n);
void add_whole_load(TreePrinter *l, const LoopNode *n);
void add_to_first(TreePrinter *l, const LoopNode *n);

// addresses.c

const char *var_type(Var v); // in C
const char *scalar_type(const TreePrinter *l, const Expr *e);
const char *number_text(TreePrinter *l, int64_t number, Monomial monomial);
void add_own_number(TreePrinter *l, int64_t number, Monomial monomial, int precedence);
bool add_index(TreePrinter *l, const Index *i, int precedence);
void add_factor(TreePrinter *l, const Index *i); // an operand of a cast or *, in parentheses if needed
void add_tensor(TreePrinter *l, AccessId id);
const char *member_name(TreePrinter *l, AccessId id);
void add_member(TreePrinter *l, AccessId id); // a->x: the tensor or temporary that is accessed
// The arguments that vocabulary functions take for an address: a pointer, or "memory, place".
void add_memory(TreePrinter *l, const Address *at);
void add_element(TreePrinter *l, const LoopNode *n);
// An element without its closing bracket: "p[i", or "memory, place" without the closing parenthesis.
void open_element(TreePrinter *l, const Address *at);
void add_element_number(TreePrinter *l); // behind the name of a value, if several elements are computed together
void add_scalar(TreePrinter *l, ExprId id);
void add_vector(TreePrinter *l, ExprId id); // of equal lanes if the expression is a scalar

// formulas.c

// By operation: what a scalar operation is in C, as a line with words: {0}, {1} and {2} are the operands. NULL: no
// formula; a function such as exp is computed as lane 0 of its vector version, because libm's exp may give other bits.
extern const char *const scalar_formulas[EXPR_OP_COUNT];
// The same for kernels that compute in s64; all operations of such kernels have a formula.
extern const char *const integer_formulas[EXPR_OP_COUNT];
// By operation, in f32 and f64: what scalar_formulas lacks, for loops by element. The bits are those of lanes of the
// scalar instruction set, whose parts have one lane. NULL: no formula.
extern const char *const element_formulas[EXPR_OP_COUNT][2];

#endif
