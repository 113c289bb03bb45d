// How emitted files are put together: templates, and the merge of the sections of instruction sets.
#include "backends/codegen/emit/merge.h"
#include "backends/codegen/emit/template.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

typedef struct PartOfTest {
  const char *name, *comment, *code;
} PartOfTest;

enum { MOST_PARTS = 4, NSECTIONS = 3 };

static void must_merge(const PartOfTest parts[NSECTIONS][MOST_PARTS], const char *expected) {
  static const char *const names[] = {"plain", "wide", "wider"};
  Section sections[NSECTIONS];
  Arena arena;
  Text out;
  arena_init(&arena, &system_allocator);
  text_init(&out, &system_allocator);
  for (size_t i = 0; i < NSECTIONS; i++) {
    sections[i] = (Section){.isa = names[i], .parts = {.arena = &arena}};
    text_init(&sections[i].text, &system_allocator);
    for (const PartOfTest *p = parts[i]; p < parts[i] + MOST_PARTS && p->code; p++) {
      part_begin(&sections[i].parts, &sections[i].text, p->name);
      if (p->comment) text_add_string(&sections[i].text, p->comment);
      part_end_comment(&sections[i].parts);
      text_format(&sections[i].text, "%s\n", p->code);
    }
  }
  assert_true(merge_sections(sections, NSECTIONS, &out));
  assert_string_equal(text_string(&out), expected);
  for (size_t i = 0; i < NSECTIONS; i++) text_deinit(&sections[i].text);
  text_deinit(&out);
  arena_deinit(&arena);
}

static void parts_of_one_name_differ_within(void **state) {
  (void)state;
  const PartOfTest parts[NSECTIONS][MOST_PARTS] = {
      {{"f", "// one row\n", "void f(void) {\n  one();\n}\n"}, {NULL, NULL, "int same;\n"}},
      {{"f", "// six rows\n", "void f(void) {\n  six();\n}\n"}, {NULL, NULL, "int same;\n"}},
      {{"f", "// six rows\n", "void f(void) {\n  six();\n}\n"}, {NULL, NULL, "int same;\n"}}};
  must_merge(parts, "void f(void) {\n#if NG_ISA & 1 // plain\n  one();\n#else\n  six();\n#endif\n}\n\nint same;\n\n");
}

static void parts_without_a_name_are_whole(void **state) {
  (void)state;
  const PartOfTest parts[NSECTIONS][MOST_PARTS] = {
      {{NULL, NULL, "#define N 1\n#define M 2\n"}},
      {{NULL, NULL, "#define N 1\n#define M 3\n"}},
      {{NULL, NULL, "#define N 1\n#define M 2\n"}, {"g", "// only here\n", "void g(void);\n"}}};
  must_merge(parts,
             "#if NG_ISA & 5 // plain, wider\n#define N 1\n#define M 2\n\n#else\n#define N 1\n#define M 3\n\n#endif\n"
             "#if NG_ISA & 4 // wider\n// only here\nvoid g(void);\n\n#endif\n");
}

static void add_part(const void *context, const char *name, Text *out) {
  text_add_string(out, is_part(name, "NAME") ? (const char *)context : "?");
}

static void templates_have_parts_and_conditions(void **state) {
  (void)state;
  const TemplateFact facts[] = {{"TRUE", true}, {"FALSE", false}, {NULL, false}};
  Text out;
  text_init(&out, &system_allocator);
  const char *const text =
      "@_%NAME% %IF_TRUE%a%NO_FALSE%b%END%%IF_FALSE%%NAME%%IF_TRUE%c%END%d@%END%%END%: n % 2 == 100%";
  print_template(&(Template){text, "prefix", add_part, "part", facts}, &out);
  assert_string_equal(text_string(&out), "prefix_part ab: n % 2 == 100%");
  text_deinit(&out);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(parts_of_one_name_differ_within),
      cmocka_unit_test(parts_without_a_name_are_whole),
      cmocka_unit_test(templates_have_parts_and_conditions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
