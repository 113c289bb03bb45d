// Messages: their text, how much of a hostile file they print, and the nearest word.
#include "ir/support/diagnostics.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#define SOURCE(text) ((Source){"g.yaml", text, sizeof text - 1})

static void prints(const Diagnostics *d, bool colour, const char *expected) {
  Text t;
  text_init(&t, &system_allocator);
  diagnostics_print(d, &t, colour);
  assert_string_equal(text_string(&t), expected);
  text_deinit(&t);
}

// One error in a file is printed as expected.
static void error_prints(const Source *source, uint32_t line, uint32_t column, const char *message,
                         const char *expected) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_false(error_at(&d, (Position){source, line, column}, "%s", message));
  prints(&d, false, expected);
  diagnostics_deinit(&d);
}

static void an_error_shows_its_line_and_a_caret(void **state) {
  (void)state;
  Source s = SOURCE("first\nsecond line\r\nthird");
  error_prints(&s, 1, 1, "wrong", "g.yaml:1:1: error: wrong\n  first\n  ^\n");
  error_prints(&s, 2, 8, "wrong", "g.yaml:2:8: error: wrong\n  second line\n         ^\n");
  error_prints(&s, 3, 6, "cut off", "g.yaml:3:6: error: cut off\n  third\n       ^\n");
}

static void places_without_a_line_show_none(void **state) {
  (void)state;
  Source s = SOURCE("first\n\n"), unread = {"a.npy", NULL, 0};
  error_prints(NULL, 0, 0, "no memory card", "error: no memory card\n");
  error_prints(&s, 0, 0, "empty", "g.yaml: error: empty\n");
  error_prints(&s, 2, 1, "blank", "g.yaml:2:1: error: blank\n");
  error_prints(&s, 99, 1, "beyond", "g.yaml:99:1: error: beyond\n");
  error_prints(&unread, 3, 1, "unread", "a.npy:3:1: error: unread\n");
}

static void columns_count_characters(void **state) {
  (void)state;
  Source s = SOURCE("\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80x");
  error_prints(&s, 1, 4, "here", "g.yaml:1:4: error: here\n  \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80x\n     ^\n");
}

static void a_long_line_is_shown_around_the_caret(void **state) {
  (void)state;
  char text[1000], expected[400];
  for (size_t i = 0; i < sizeof text; i++) text[i] = (char)('a' + i % 26);
  Source s = {"g.yaml", text, sizeof text};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  error_at(&d, (Position){&s, 1, 500}, "there");
  assert_int_equal(strlen(d.items[0].source_line), 160);
  assert_int_equal(d.items[0].source_line[d.items[0].caret - 1], text[499]);
  snprintf(expected, sizeof expected, "g.yaml:1:500: error: there\n  %.160s\n  %79s^\n", text + 420, "");
  prints(&d, false, expected);
  diagnostics_deinit(&d);
}

static void what_a_terminal_acts_on_is_not_let_through(void **state) {
  (void)state;
  Source s = SOURCE("a\x1B[31m\tb\x7F\xC2\x9B"
                    "c\0d\ne");
  error_prints(&s, 1, 2, "name '\x1B]0;x\x07' of \xC2\x9Bm\ttab",
               "g.yaml:1:2: error: name '?]0;x?' of ?m tab\n  a?[31m b??c?d\n   ^\n");
  Source hostile = {"\x1B[2Jg.yaml", "x", 1};
  error_prints(&hostile, 1, 1, "wrong", "?[2Jg.yaml:1:1: error: wrong\n  x\n  ^\n");
}

static void only_what_a_program_said_has_lines(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  error_with_output(&d, "x.c:\x1B oops\n  here", "%s says:", "the\ncompiler");
  prints(&d, false, "error: the?compiler says:\nx.c:? oops\n  here\n");
  diagnostics_deinit(&d);
}

static void bytes_that_are_not_utf8_do_not_widen_the_line(void **state) {
  (void)state;
  char text[4000];
  memset(text, 0x80, sizeof text); // only continuation bytes
  Source s = {"g.yaml", text, sizeof text};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  error_at(&d, (Position){&s, 1, 1}, "no UTF-8");
  assert_true(strlen(d.items[0].source_line) <= 640); // 160 characters of 4
  diagnostics_deinit(&d);
}

static void warnings_are_told_but_are_no_errors(void **state) {
  (void)state;
  Source s = SOURCE("x");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_false(warn_at(&d, (Position){&s, 1, 1}, "odd %d", 1));
  assert_int_equal(d.nerrors, 0);
  assert_int_equal(d.nwarnings, 1);
  error_at(&d, (Position){&s, 1, 1}, "wrong");
  assert_int_equal(d.nerrors, 1);
  prints(&d, false, "g.yaml:1:1: warning: odd 1\n  x\n  ^\ng.yaml:1:1: error: wrong\n  x\n  ^\n");
  diagnostics_deinit(&d);
  assert_int_equal(d.count, 0);
}

// A file may be read twice. Errors, and warnings that are not about a file, are told each time.
static void a_warning_about_a_file_is_told_once(void **state) {
  (void)state;
  Source s = SOURCE("x"), again = SOURCE("x");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  warn_at(&d, (Position){&s, 1, 1}, "odd");
  warn_at(&d, (Position){&again, 1, 1}, "odd");
  assert_int_equal(d.nwarnings, 1);
  warn_at(&d, (Position){&s, 1, 2}, "odd");
  warn_at(&d, (Position){&s, 1, 1}, "odder");
  warn_at(&d, (Position){0}, "odd");
  warn_at(&d, (Position){0}, "odd");
  error_at(&d, (Position){&s, 1, 1}, "odd");
  error_at(&d, (Position){&s, 1, 1}, "odd");
  assert_int_equal(d.nwarnings, 5);
  assert_int_equal(d.nerrors, 2);
  assert_int_equal(d.count, 7);
  diagnostics_deinit(&d);
}

static void colour_is_for_those_who_ask(void **state) {
  (void)state;
  Source s = SOURCE("x");
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  error_at(&d, (Position){&s, 1, 1}, "wrong");
  prints(&d, true, "\033[1mg.yaml:1:1:\033[0m \033[1;31merror:\033[0m wrong\n  x\n  \033[1;31m^\033[0m\n");
  diagnostics_deinit(&d);
}

static void what_is_told_outlives_the_file(void **state) {
  (void)state;
  char name[] = "g.yaml", text[] = "abc";
  Source s = {name, text, 3};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  error_at(&d, (Position){&s, 1, 2}, "%s", text);
  memset(name, 'X', sizeof name - 1);
  memset(text, 'X', sizeof text - 1);
  prints(&d, false, "g.yaml:1:2: error: abc\n  abc\n   ^\n");
  diagnostics_deinit(&d);
}

static void after_a_hundred_messages_the_rest_is_counted(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  for (int i = 0; i < 150; i++) error_at(&d, (Position){0}, "number %d", i);
  assert_int_equal(d.count, 100);
  assert_int_equal(d.nerrors, 150);
  Text t;
  text_init(&t, &system_allocator);
  diagnostics_print(&d, &t, false);
  const char *tail = "error: number 99\nand 50 more\n";
  assert_string_equal(text_string(&t) + t.nbytes - strlen(tail), tail);
  text_deinit(&t);
  diagnostics_deinit(&d);
}

static void running_out_of_memory_is_told(void **state) {
  (void)state;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  assert_false(error_out_of_memory(&d));
  prints(&d, false, "error: out of memory\n");
  diagnostics_deinit(&d);
  Source s = SOURCE("x");
  for (size_t failing = 0; failing < 2; failing++) {
    FailingAllocator memory;
    failing_allocator_init(&memory, failing);
    diagnostics_init(&d, &memory.allocator);
    for (int i = 0; i < 100; i++) error_at(&d, (Position){&s, 1, 1}, "%100d", i);
    assert_true(d.out_of_memory);
    assert_int_equal(d.nerrors, 100); // lost or not
    diagnostics_deinit(&d);
    assert_int_equal(memory.nlive, 0);
  }
}

static void the_nearest_word_is_a_slip_of_the_pen_away(void **state) {
  (void)state;
  static const char *const words[] = {"ReLU", "ReLUBackward", "LayerNorm", "LayerNormBackward", "Add", "epsilon"};
  static const struct {
    const char *word, *nearest;
  } rows[] = {
      {"Relu", "ReLU"},
      {"relu", "ReLU"},
      {"LayerNrom", "LayerNorm"},
      {"dAd", "Add"}, // neighbours that have changed places are one slip
      {"ReULBacwkard", "ReLUBackward"},
      {"layer_norm", "LayerNorm"},
      {"ad", "Add"},
      {"Adds", "Add"},
      {"epsilom", "epsilon"},
      {"eps", NULL},
      {"Convolution", NULL},
      {"", NULL},
      {"x", NULL},
      {"LayerNormBackwards", "LayerNormBackward"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *nearest = nearest_word(rows[i].word, words, 6);
    if (rows[i].nearest) assert_string_equal(nearest, rows[i].nearest);
    else assert_null(nearest);
  }
  assert_null(nearest_word("ReLU", words, 0));
}

static void the_nearest_of_very_long_words_is_found_in_bounds(void **state) {
  (void)state;
  char longest[5000];
  memset(longest, 'a', sizeof longest - 1);
  longest[sizeof longest - 1] = 0;
  const char *words[] = {"a", longest};
  assert_ptr_equal(nearest_word(longest, words, 2), longest);
  assert_ptr_equal(nearest_word("a", words, 2), words[0]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_error_shows_its_line_and_a_caret),
      cmocka_unit_test(places_without_a_line_show_none),
      cmocka_unit_test(columns_count_characters),
      cmocka_unit_test(a_long_line_is_shown_around_the_caret),
      cmocka_unit_test(what_a_terminal_acts_on_is_not_let_through),
      cmocka_unit_test(only_what_a_program_said_has_lines),
      cmocka_unit_test(bytes_that_are_not_utf8_do_not_widen_the_line),
      cmocka_unit_test(warnings_are_told_but_are_no_errors),
      cmocka_unit_test(colour_is_for_those_who_ask),
      cmocka_unit_test(what_is_told_outlives_the_file),
      cmocka_unit_test(after_a_hundred_messages_the_rest_is_counted),
      cmocka_unit_test(a_warning_about_a_file_is_told_once),
      cmocka_unit_test(running_out_of_memory_is_told),
      cmocka_unit_test(the_nearest_word_is_a_slip_of_the_pen_away),
      cmocka_unit_test(the_nearest_of_very_long_words_is_found_in_bounds),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
