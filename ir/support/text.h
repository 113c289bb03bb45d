// Text: a growing string that every printer writes into.
//
// Failure is sticky: after an allocation fails, nothing more is added and `out_of_memory` stays set. Printers need no
// checks; the caller that uses the finished text checks once.
#ifndef NGRAD_IR_SUPPORT_TEXT_H
#define NGRAD_IR_SUPPORT_TEXT_H

#include "ir/support/memory.h"

#include <stdarg.h>

typedef struct Text {
  const Allocator *allocator;
  char *bytes; // ends in a zero that nbytes does not count; NULL until something is added
  size_t nbytes, capacity;
  bool out_of_memory;
} Text;

void text_init(Text *t, const Allocator *allocator);
void text_deinit(Text *t);
void text_add(Text *t, const char *bytes, size_t nbytes);
void text_add_string(Text *t, const char *string);
void text_format(Text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_format_list(Text *t, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

// Adds the shortest decimal that reads back as the same double (with is_f32, as the same float); whole numbers below
// 1e15 in full; .inf, -.inf and .nan as in YAML. Independent of the locale.
void text_give_steps(Text *t, size_t nbytes); // for so many bytes, which then count towards no limit of steps
void text_add_number(Text *t, double value, bool is_f32);

uint64_t bytes_hash(const void *bytes, size_t nbytes); // 64-bit FNV-1a

// The text so far, "" when empty; t owns it.
const char *text_string(const Text *t);

#endif
