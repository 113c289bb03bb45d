// Prints the names, integers and addresses in loop trees. Internal to the printer of trees (print.c).
#ifndef NGRAD_IR_LOOPS_LOOP_TEXT_H
#define NGRAD_IR_LOOPS_LOOP_TEXT_H

#include "ir/loops/loops.h"

typedef struct LoopText {
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  const char **expr_name, **access_name; // by id
} LoopText;

// Fills in the names of all expressions and accesses, in the arena. False: out of memory.
bool loop_text_name_all(LoopText *p, Arena *arena);

void loop_text_add(LoopText *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void loop_text_name(LoopText *p, const char *name); // escapes names from the graph file
void loop_text_number(LoopText *p, int64_t number, Monomial monomial);
void loop_text_var(LoopText *p, Var v);
void loop_text_index(LoopText *p, const Index *i);
void loop_text_memory(LoopText *p, AccessId id);        // the name of the accessed tensor or temporary
void loop_text_buffer(LoopText *p, const Address *at);  // its name, and the index of an item: `acc_sum[r]`
void loop_text_address(LoopText *p, const Address *at); // `p_x + i`
void loop_text_element(LoopText *p, const Address *at); // `p_x[i]`

#endif
