// Long sources are compiled in parts, each by a process of its own.
#include "backends/codegen/toolchain/toolchain.h"
#include "tests/unit/toolchain_case.h"

#include <dlfcn.h>

enum { NPARTS = 3, PART_BYTES = 40 << 10 };

// A source of NPARTS functions, each in a part of its own and of PART_BYTES. Each returns its number plus `more` plus
// `end`, which precede and follow the parts. test_entry, in the last part, adds what they return.
static void print_source(Text *source) {
  text_add_string(source, "static inline int end(void);\nstatic int more(void) { return 10; }\n");
  for (int i = 0; i < NPARTS; i++) text_format(source, "int part%d(void);\n", i);
  for (int i = 0; i < NPARTS; i++) {
    text_format(source, "\f\nint part%d(void) { return %d + more() + end(); }\n", i, i);
    for (int n = 0; n < PART_BYTES; n += 64) text_format(source, "// %60d\n", n);
  }
  text_add_string(source, "int test_entry(void) {\n  return part0() + part1() + part2();\n}\n\f\n"
                          "static inline int end(void) { return 100; }\n");
}

typedef struct Result {
  Loaded loaded;
  ToolchainTimes times;
  bool compiler_failed;
  Text words; // the messages
} Result;

static Result load_source(double timeout_s) {
  Result r;
  Diagnostics d;
  Text source;
  diagnostics_init(&d, &system_allocator);
  text_init(&source, &system_allocator);
  text_init(&r.words, &system_allocator);
  print_source(&source);
  toolchain_load(&source, "test_entry", &c_compiler, timeout_s, &r.loaded, &r.times, &r.compiler_failed, &d);
  diagnostics_print(&d, &r.words, false);
  text_deinit(&source);
  diagnostics_deinit(&d);
  return r;
}

static void result_deinit(Result *r) {
  if (r->loaded.library) dlclose(r->loaded.library);
  text_deinit(&r->words);
}

static void long_source_is_compiled_in_parts_and_cached_once(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) {
    Result r = load_source(0);
    if (!r.loaded.symbol) fail_msg("%s", text_string(&r.words));
    int (*entry)(void);
    memcpy((void *)&entry, &r.loaded.symbol, sizeof entry);
    assert_int_equal(entry(), 0 + 1 + 2 + NPARTS * (10 + 100));
    assert_int_equal(r.times.was_cached, i);
    assert_int_equal(calls(), NPARTS + 1); // and one that links
    assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
    result_deinit(&r);
  }
}

// The second part would never end.
static void first_failure_ends_the_other_parts(void **state) {
  (void)state;
  use_compiler("case \"$*\" in *0.c) echo 'words of the first part'; exit 1;; esac; exec sleep 1000");
  Result r = load_source(0);
  assert_null(r.loaded.library);
  assert_true(r.compiler_failed);
  assert_non_null(strstr(text_string(&r.words), "failed:\nwords of the first part"));
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
  result_deinit(&r);
}

static void parts_that_cannot_be_linked_are_an_error(void **state) {
  (void)state;
  use_compiler("case \"$*\" in *-shared*) echo 'words of the linker'; exit 1;; esac; exec cc \"$@\"");
  Result r = load_source(0);
  assert_null(r.loaded.library);
  assert_true(r.compiler_failed);
  assert_non_null(strstr(text_string(&r.words), "words of the linker"));
  assert_int_equal(calls(), NPARTS + 1);
  result_deinit(&r);
}

static void time_limit_ends_all_parts(void **state) {
  (void)state;
  use_compiler("exec sleep 1000");
  Result r = load_source(0.2);
  assert_null(r.loaded.library);
  assert_non_null(strstr(text_string(&r.words), "not done after 0.2 s"));
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
  result_deinit(&r);
}

// Programs

// Compiles each text between two form feeds with what precedes the first and follows the last.
static int check_parts(const char *path) {
  char source[PATH_BYTES], command[2 * PATH_BYTES + 5000];
  static char text[1 << 18];
  int count = 0;
  FILE *f = fopen(path, "r");
  assert_non_null(f);
  text[fread(text, 1, sizeof text - 1, f)] = 0;
  fclose(f);
  const char *first = strchr(text, '\f'), *last = strrchr(text, '\f');
  for (const char *at = first; at && at < last; count++) {
    const char *next = strchr(at + 1, '\f');
    snprintf(source, sizeof source, "%s/part.c", folder);
    f = fopen(source, "w");
    assert_non_null(f);
    fprintf(f, "%.*s%.*s%s", (int)(first - text), text, (int)(next - at), at, last);
    fclose(f);
    snprintf(command, sizeof command, "%s -fsyntax-only -Werror=implicit-function-declaration -w %s", user_cc, source);
    if (system(command) != 0) fail_msg("part %d of %s", count, text); // NOLINT(cert-env33-c): its words are ours
    at = next;
  }
  return count;
}

// The kernels call a vocabulary function out of line, and every two of them are alike.
static void kernels_compile_apart(void **state) {
  (void)state;
  enum { NKERNELS = 17, NTANH = 9 }; // so many are called out of line
  Text graph;
  char then[5000];
  text_init(&graph, &system_allocator);
  text_add_string(&graph, "format: ngrad/1\nname: many\ninputs:\n");
  for (int i = 0; i < NKERNELS; i++) text_format(&graph, "  - {name: x%d, type: f32, shape: [3, %d]}\n", i, 17 + i / 2);
  text_add_string(&graph, "nodes:\n");
  for (int i = 0; i < NKERNELS; i++) {
    text_format(&graph, "  - {op: Tanh, inputs: [x%d], outputs: [y%d_1]}\n", i, i);
    for (int n = 1; n < NTANH; n++)
      text_format(&graph, "  - {op: Tanh, inputs: [y%d_%d], outputs: [y%d_%d]}\n", i, n, i, n + 1);
  }
  text_format(&graph, "outputs: [y0_%d", NTANH);
  for (int i = 1; i < NKERNELS; i++) text_format(&graph, ", y%d_%d", i, NTANH);
  text_add_string(&graph, "]\n");
  snprintf(then, sizeof then, "for f; do case $f in *.c) cp $f '%s';; esac; done\nexec %s \"$@\"", in_folder("all.c"),
           user_cc);
  use_compiler(then);
  Compiled c = compile_graph(text_string(&graph));
  if (!c.kernel) fail_msg("%s", ng_messages_text(c.ctx, 0));
  assert_true(agrees(&c));
  // one part for each kernel with functions of its own, two with the calls, which are 17, and one with the entry
  assert_int_equal(check_parts(in_folder("all.c")), (NKERNELS + 1) / 2 + 2 + 1);
  compiled_deinit(&c);
  text_deinit(&graph);
}

int main(void) {
  const char *cc = getenv("CC");
  snprintf(user_cc, sizeof user_cc, "%s", cc && *cc ? cc : "cc");
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(long_source_is_compiled_in_parts_and_cached_once),
      TEST(first_failure_ends_the_other_parts),
      TEST(parts_that_cannot_be_linked_are_an_error),
      TEST(time_limit_ends_all_parts),
      TEST(kernels_compile_apart),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
