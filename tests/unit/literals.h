// Tensors in the text of a table's rows: type, shape and numbers, row-major, as in "f32[2,1] 0.5 -inf; s64[] 3". `any`
// stands for undefined numbers.
#ifndef NGRAD_TESTS_UNIT_LITERALS_H
#define NGRAD_TESTS_UNIT_LITERALS_H

#include "ir/graph/graph.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_IN_CASE = 8, MOST_NUMBERS = 1200 };

typedef struct Literal { // a tensor of a row
  char type[16], shape[32];
  Shape extents;
  double numbers[MOST_NUMBERS];
  int64_t integers[MOST_NUMBERS]; // of s64, and the bits of u64, which a double may round
  size_t count;
  bool is_any;
} Literal;

// The next of the tensors in a row's text; false: there are no more.
static inline bool next_literal(const char **text, Literal *l) {
  const char *at = *text;
  char *end;
  *l = (Literal){{0}};
  if (!*at) return false;
  size_t length = strcspn(at, "[");
  snprintf(l->type, sizeof l->type, "%.*s", (int)length, at);
  at += length;
  length = strcspn(at, "]") + 1;
  snprintf(l->shape, sizeof l->shape, "%.*s", (int)length, at);
  for (const char *c = at; *c != ']'; c++)
    if (isdigit((unsigned char)c[1]) && !isdigit((unsigned char)*c))
      l->extents.extent[l->extents.rank++] = EXTENT(strtoll(c + 1, NULL, 10));
  for (at += length; *at == ' '; at = end) {
    l->is_any = strncmp(at, " any", 4) == 0;
    if (l->is_any) end = (char *)at + 4;
    else if (strncmp(at, " *", 2) == 0) { // the numbers before, as often as the shape has them
      const size_t period = l->count, nelems = (size_t)shape_nelems(&l->extents);
      assert_true(period && nelems <= MOST_NUMBERS);
      for (; l->count < nelems; l->count++) {
        l->numbers[l->count] = l->numbers[l->count - period];
        l->integers[l->count] = l->integers[l->count - period];
      }
      end = (char *)at + 2;
    } else {
      assert_true(l->count < MOST_NUMBERS);
      l->integers[l->count] = *l->type == 'u' ? (int64_t)strtoull(at, NULL, 10) : strtoll(at, NULL, 10);
      l->numbers[l->count++] = strtod(at, &end);
      assert_true(end > at);
    }
  }
  assert_true(!*at || strncmp(at, "; ", 2) == 0);
  if (!l->is_any) assert_int_equal(l->count, shape_nelems(&l->extents));
  *text = *at ? at + 2 : at;
  return true;
}

static inline size_t read_literals(const char *text, Literal *literals) {
  size_t n = 0;
  while (next_literal(&text, &literals[n])) assert_true(++n < MOST_IN_CASE);
  return n;
}

#endif
