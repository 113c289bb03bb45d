// The words in the lines of languages that loop trees are printed in: many lines are printed of few graphs.
#include "backends/codegen/print/tree_printer.h"
#include "ir/loops/print.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// Fails with the line if it has a word that the language does not know, or that never ends.
static void check_line(const TreePrinter *l, const char *line, int depth) {
  if (depth > 20) fail_msg("a word of the line contains itself: %s", line);
  for (const char *at = line; at && (at = strchr(at, '{')); at++) {
    const size_t length = strcspn(at + 1, "} \n");
    if (at[1 + length] != '}') continue; // a brace of C
    const Word *word = tree_word(l, at + 1, length);
    if (!word) fail_msg("the line has an unknown word: %s", line);
    if (!word || word->add || word->add_of) continue;
    check_line(l, word->text, depth + 1);
    check_line(l, word->otherwise, depth + 1);
  }
}

static void check_lines(const TreePrinter *l, const Line *lines) {
  for (const Line *line = lines; line->text; line++) check_line(l, line->text, 0);
}

static void check_language(const TreePrinter *l) {
  check_lines(l, l->language->lines);
  for (const Word *word = l->language->words; word->name; word++) {
    check_line(l, word->text, 0);
    check_line(l, word->otherwise, 0);
  }
}

static void lines_have_known_words(void **state) {
  (void)state;
  TreePrinter readable, c;
  tree_printer_init(&readable, &readable_language, NULL, NULL);
  tree_printer_init(&c, &c_language, NULL, NULL);
  check_language(&readable);
  check_language(&c);
  check_lines(&c, element_lines);
  for (int op = 0; op < EXPR_OP_COUNT; op++) {
    check_line(&c, scalar_formulas[op], 0);
    check_line(&c, integer_formulas[op], 0);
    check_line(&c, element_formulas[op][0], 0);
    check_line(&c, element_formulas[op][1], 0);
  }
}

// Nodes with an action that no row of a condition takes, a last row takes.
static void every_action_has_a_line(void **state) {
  (void)state;
  const Language *languages[] = {&readable_language, &c_language};
  for (int i = 0; i < 2; i++)
    for (int action = ACTION_NONE + 1; action < ACTIONS; action++) {
      bool is_found = false;
      for (const Line *line = languages[i]->lines; line->text; line++)
        is_found |= (int)line->action == action && line->when == WHEN_ALWAYS;
      if (!is_found) fail_msg("action %d has no line", action);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines_have_known_words),
      cmocka_unit_test(every_action_has_a_line),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
