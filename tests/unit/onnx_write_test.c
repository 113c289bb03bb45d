// Which operators are written as ONNX's own. tests/convert has their results.
#include "frontend/onnx/writer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// docs/foreign.md lists the operators without any form in ONNX.
static void the_page_lists_what_is_not_written(void **state) {
  static char page[1 << 16];
  Text list;
  static const char words[] = "Without any form in ONNX: ";
  (void)state;
  FILE *file = fopen("docs/foreign.md", "r");
  assert_non_null(file);
  page[fread(page, 1, sizeof page - 1, file)] = 0;
  fclose(file);
  const char *found = strstr(page, words);
  assert_non_null(found);
  text_init(&list, &system_allocator);
  for (int i = 0; i < OP_COUNT; i++)
    if (!onnx_is_written((OperatorId)i)) text_format(&list, "%s%s", list.nbytes ? ", " : "", operators[i].name);
  text_format(&list, ".");
  assert_memory_equal(found + strlen(words), text_string(&list), list.nbytes);
  text_deinit(&list);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_page_lists_what_is_not_written)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
