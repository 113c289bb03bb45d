// What the files that print a loop's tree share: functions.c prints its functions, tree.c their nodes, places.c the
// integers and addresses in these.
#ifndef NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_PRINT_TREE_PRINTER_H

#include "backends/codegen/print/printer.h"
#include "ir/graph/open.h"
#include "ir/loops/loops.h"

typedef struct TreePrinter {
  Printer *p;
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  size_t kernel_index, loop_index;
  const char **name;                // by ExprId, then of open dims
  const char **access_name;         // by AccessId: what stands behind p_, part_ and so on
  bool mentions_dim[MAX_OPEN_DIMS]; // in the function's body so far
  bool mentions_args;               // likewise: the struct of arguments
  const char *vec, *scalar, *mask;  // C types
  char prefix;                      // of the vocabulary: v or d
  int indent;
} TreePrinter;

void tree_printf(TreePrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));

// tree.c: prints a list of nodes.
void print_nodes(TreePrinter *l, const LoopNode *n);
// Parameters for the block's partial sums, or the arguments for them.
void print_part_parameters(TreePrinter *l, bool is_call);
void print_step_name(TreePrinter *l, bool is_rest); // of the tree's step, or of that of the last rows in lanes

// places.c

void add_var(TreePrinter *l, Var v);
const char *var_type(Var v);
void add_index(TreePrinter *l, const Index *i);
void add_factor(TreePrinter *l, const Index *i); // behind a cast or *, in parentheses where it needs them
void add_index_as(TreePrinter *l, const Index *i, IndexType wanted); // converted where it is another type
const char *number_text(TreePrinter *l, int64_t number, Monomial monomial);
void add_member(TreePrinter *l, AccessId id); // a->x: the tensor or temporary that is accessed
void add_address(TreePrinter *l, const Address *at);
// An address as the vocabulary takes it: before the place of elements without addresses stands their memory.
void add_memory(TreePrinter *l, const Address *at);
void open_element(TreePrinter *l, const Address *at); // up to the bracket, or parenthesis, that closes it

#endif
