// A C compiler that takes too long is killed with its child processes, leaves no files, and is reported.
#include "backends/codegen/toolchain/toolchain.h"
#include "tests/unit/toolchain_case.h"

#include <time.h>

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void must_time_out(const char *compiler) {
  use_compiler(compiler);
  ng_options options = {.compile_timeout = 0.3};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", small_graph, strlen(small_graph), NULL);
  const double start = seconds_now();
  assert_null(ng_compile(g, &options));
  assert_true(seconds_now() - start < 20); // the machine may be busy
  assert_int_equal(ng_last_status(ctx), NG_COMPILER_FAILED);
  const char *words = ng_messages_text(ctx, 0);
  assert_non_null(strstr(words, "not done after 0.3 s"));
  assert_non_null(strstr(words, "--compile-timeout"));
  assert_true(strlen(words) < 8192);
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
  assert_int_equal(list(in_folder("tmp"), NULL), 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void compiler_that_sleeps_is_ended(void **state) {
  (void)state;
  must_time_out("echo begun >\"$TMPDIR/begun\"; sleep 100");
  must_time_out("exec sleep 100");
}

// Its time and its source are not the user's to change.
static void advice_for_a_compiler_of_other_files_names_its_variable_alone(void **state) {
  (void)state;
  const CompilerChoice compiler = {"MPI compiler", "CC", NULL, "install one", ""};
  Diagnostics d;
  Text source, words;
  Loaded loaded;
  ToolchainTimes times;
  bool compiler_failed;
  use_compiler("exec sleep 100");
  diagnostics_init(&d, &system_allocator);
  text_init(&source, &system_allocator);
  text_init(&words, &system_allocator);
  text_add_string(&source, "int x;\n");
  assert_false(toolchain_load(&source, "x", &compiler, 0.3, &loaded, &times, &compiler_failed, &d));
  diagnostics_print(&d, &words, false);
  assert_non_null(strstr(text_string(&words), "not done after 0.3 s; set CC to another compiler"));
  text_deinit(&words);
  text_deinit(&source);
  diagnostics_deinit(&d);
}

static void compiler_that_ignores_signals_is_ended(void **state) {
  (void)state;
  must_time_out("trap '' TERM INT HUP QUIT; while :; do sleep 1; done");
}

static void compiler_that_talks_without_end_is_ended(void **state) {
  (void)state;
  must_time_out("while :; do echo 'many many many words'; done");
  must_time_out("exec yes 'many many many words'");
}

// One that keeps the output open, beside a compiler that waits for it.
static void what_the_compiler_started_is_ended_too(void **state) {
  (void)state;
  char script[2 * PATH_BYTES];
  snprintf(script, sizeof script, "(sleep 3; echo late >>'%s') & trap '' TERM; wait; sleep 100", in_folder("late"));
  must_time_out(script);
  sleep(4);
  assert_int_equal(count_lines(in_folder("late")), 0);
}

static void compiler_may_take_any_time_where_none_is_set(void **state) {
  (void)state;
  char then[5000];
  snprintf(then, sizeof then, "sleep 1; exec %s \"$@\"", user_cc);
  use_compiler(then);
  ng_options options = {.compile_timeout = -1};
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", small_graph, strlen(small_graph), NULL);
  assert_non_null(g);
  ng_kernel *k = g ? ng_compile(g, &options) : NULL;
  assert_non_null(k);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
}

int main(void) {
  const char *cc = getenv("CC");
  snprintf(user_cc, sizeof user_cc, "%s", cc && *cc ? cc : "cc");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(compiler_that_sleeps_is_ended, set_up, tear_down),
      cmocka_unit_test_setup_teardown(advice_for_a_compiler_of_other_files_names_its_variable_alone, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiler_that_ignores_signals_is_ended, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiler_that_talks_without_end_is_ended, set_up, tear_down),
      cmocka_unit_test_setup_teardown(what_the_compiler_started_is_ended_too, set_up, tear_down),
      cmocka_unit_test_setup_teardown(compiler_may_take_any_time_where_none_is_set, set_up, tear_down),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
