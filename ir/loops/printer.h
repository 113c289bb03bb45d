// One walk over loop trees for every language that prints them: the readable form (print.c) and C
// (backends/codegen/print/tree.c). A language is two tables: lines, by what a node does and a condition, and the
// words in them. A word stands in braces for what a node says, as in "{to} += {from}". printer.c has the words that
// mean the same in all languages; a language has further ones, or other text for a common one.
//
// A printer for another language, such as OpenCL, is two more tables and the functions of `Language`; what it shares
// with C moves here. It decides what trees do not say, such as address spaces and how tasks are launched.
#ifndef NGRAD_IR_LOOPS_PRINTER_H
#define NGRAD_IR_LOOPS_PRINTER_H

#include "ir/loops/loops.h"

typedef struct TreePrinter TreePrinter;

typedef enum When { // conditions on nodes
  WHEN_ALWAYS,
  WHEN_TEST, // the node has the field: test, bound, count, end
  WHEN_BOUND,
  WHEN_COUNT,
  WHEN_END,
  WHEN_VECTOR, // the field is true
  WHEN_DOWN,
  WHEN_UNROLLED,
  WHEN_COUNTER,
  WHEN_FEWER_LANES,
  WHEN_STREAMED,
  WHEN_FUSED,
  WHEN_ADVANCES,     // NODE_INDEX adds to a counter
  WHEN_EXISTS,       // NODE_INDEX of whether an address exists
  WHEN_BY_ONE,       // the step is 1
  WHEN_STRIDED,      // node_is_strided
  WHEN_OF_ROWS,      // node_is_of_rows
  WHEN_F64,          // node_is_f64
  WHEN_WIDENED,      // node_is_widened
  WHEN_TO_REGISTER,  // the buffer `to` is in registers
  WHEN_SEVERAL,      // several accumulators or totals
  WHEN_EACH,         // a sum that has an accumulator for each element
  WHEN_ADDS_LANES,   // node_adds_lanes
  WHEN_BINARY,       // the expression has two arguments or more
  WHEN_VALUE_OF_ROW, // the expression has a value for each row of the micro-kernel
  WHEN_KERNEL_F64    // the kernel computes in f64
} When;

typedef struct Line { // of the nodes with an action: the first one in a table whose condition holds
  Action action;
  When when;
  const char *text;
} Line;

typedef struct Word {
  const char *name;
  When when;
  const char *text, *otherwise;                   // a line: when the condition holds, when not; NULL: nothing
  void (*add)(TreePrinter *l, const LoopNode *n); // not NULL: adds the word
  void (*add_of)(TreePrinter *l, const LoopNode *n, size_t of); // likewise, for one of several words
  size_t of;
} Word;

typedef struct Language {
  const Line *lines;                                       // ended by a line without text
  const Word *words;                                       // ended by a word without name
  void (*print_bodies)(TreePrinter *l, const LoopNode *n); // of a NODE_FOR or NODE_IF, after its line
  void (*add_number)(TreePrinter *l, int64_t number, Monomial monomial, int precedence);
  bool (*add_var)(TreePrinter *l, Var v);                            // false: it prints as elsewhere; or NULL
  bool (*add_index)(TreePrinter *l, const Index *i, int precedence); // false: a choice or a binary operator
  void (*add_tensor)(TreePrinter *l, AccessId id);
  void (*add_lane)(TreePrinter *l, const Address *at); // behind a buffer in registers; or NULL
  bool has_casts; // an int operand of a size_t operator gets a cast, as compilers warn of the conversion
} Language;

enum { WORD_SLOTS = 256 };
struct TreePrinter {
  const Language *language;
  const Word *words[WORD_SLOTS]; // the language's and the common ones, by hash
  struct LanguageState *own;     // which the language defines
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  const char **expr_name, **access_name; // by id
  int indent;                            // in steps of two columns
  bool is_line_begun;                    // the next node continues the line
  uint64_t mentions;                     // by VarKind, a bit: printed since it was declared
};

extern const Language readable_language;

void tree_printer_init(TreePrinter *l, const Language *language, const LoopTree *t, Text *out);
const Word *tree_word(const TreePrinter *l, const char *name, size_t nbytes); // NULL: the language has no such word
void tree_print_node(TreePrinter *l, const LoopNode *n);                      // with its bodies
const char *tree_line(const TreePrinter *l, const LoopNode *n, const Line *lines); // NULL: the table has none

void tree_begin_line(TreePrinter *l); // indents
void tree_add_text(TreePrinter *l, const char *text);
void tree_printf(TreePrinter *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
void tree_say(TreePrinter *l, const LoopNode *n, const char *line); // with words in braces; indents after line breaks

void tree_add_var(TreePrinter *l, Var v);
void tree_add_index(TreePrinter *l, const Index *i, int precedence);                 // in parentheses if it binds less
void tree_add_operand(TreePrinter *l, const Index *i, int precedence, bool is_size); // of type size_t; else of any
void tree_add_buffer(TreePrinter *l, const Address *at);  // its name, and the index of an item: `acc_sum[r]`
void tree_add_address(TreePrinter *l, const Address *at); // `p_x + i`

#endif
