// What the files that write loops' trees as text share: names, integers, places.
#ifndef NGRAD_IR_LOOPS_LOOP_TEXT_H
#define NGRAD_IR_LOOPS_LOOP_TEXT_H

#include "ir/loops/loops.h"

typedef struct LoopText {
  Text *out;
  const LoopTree *t;
  const Kernel *k;
  const char **expr_name, **access_name; // by id
} LoopText;

// Names expressions and accesses; the names are the arena's. False: out of memory.
bool loop_text_name_all(LoopText *p, Arena *arena);

void loop_text_add(LoopText *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
void loop_text_name(LoopText *p, const char *name); // a user's
void loop_text_number(LoopText *p, int64_t number, Monomial monomial);
void loop_text_var(LoopText *p, Var v);
void loop_text_index(LoopText *p, const Index *i);
void loop_text_factor(LoopText *p, const Index *i); // in parentheses where it is less than a product
void loop_text_memory(LoopText *p, AccessId id);    // the tensor or temporary
void loop_text_address(LoopText *p, const Address *at);
void loop_text_element(LoopText *p, const Address *at);

#endif
