// The installed API as an embedding program uses it: the log, the parts of a graph, passes, files, the caller's memory,
// several threads. The other api_*_test.c test the rest.
#include "tests/unit/api_case.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char scaled_relu[] = "format: ngrad/1\n"
                                  "name: step\n"
                                  "dims: {N: 2, M: ~}\n"
                                  "inputs:\n"
                                  "  - {name: x, type: f32, shape: [N, 3]}\n"
                                  "  - {name: unused, type: f32, shape: [M]}\n"
                                  "constants:\n"
                                  "  - {name: half, type: f32, shape: [], value: 0.5}\n"
                                  "nodes:\n"
                                  "  - {op: Multiply, inputs: [x, half], outputs: [y]}\n"
                                  "  - op: onednn.ReLUBackward\n"
                                  "    inputs: {src: x, diff_dst: y}\n"
                                  "    outputs: [z]\n"
                                  "    attributes: {use_dst: false}\n"
                                  "outputs: [z]\n";

static void header_and_library_are_of_one_version(void **state) {
  (void)state;
  assert_string_equal(ng_version(), NG_VERSION);
  assert_int_equal(ng_bits(), NG_BITS);
}

static void every_status_has_a_text(void **state) {
  (void)state;
  for (int i = NG_OK; i <= NG_OUT_OF_MEMORY; i++)
    for (int k = NG_OK; k < i; k++) assert_string_not_equal(ng_status_text((ng_status)i), ng_status_text((ng_status)k));
  assert_string_equal(ng_status_text(NG_OUT_OF_MEMORY), "out of memory");
  assert_string_equal(ng_status_text((ng_status)99), "unknown status");
}

// The log

typedef struct Log {
  int nerrors, nwarnings;
  unsigned line;
  char text[256];
} Log;

static void add_to_log(void *user, const ng_message *m) {
  Log *log = user;
  if (m->is_error) log->nerrors++;
  else log->nwarnings++;
  log->line = m->line;
  snprintf(log->text, sizeof log->text, "%s", m->text);
}

static void the_log_gets_messages_as_they_are_told(void **state) {
  (void)state;
  static const char wrong[] = "format: ngrad/1\ninputs:\n  - {name: x, type: f33, shape: []}\noutputs: [x]\n";
  ng_context *ctx = new_context();
  Log log = {0};
  ng_context_set_log(ctx, add_to_log, &log);
  assert_null(ng_graph_read(ctx, "test.yaml", wrong, sizeof wrong - 1, NULL));
  assert_int_equal(log.nerrors, 1);
  assert_int_equal(log.line, 3);
  assert_string_equal(log.text, ng_message_at(ctx, 0).text);
  ng_messages_clear(ctx);
  assert_null(ng_graph_read(ctx, "test.yaml", wrong, sizeof wrong - 1, NULL));
  assert_int_equal(log.nerrors, 2);
  ng_context_set_log(ctx, NULL, NULL);
  assert_null(ng_graph_read(ctx, "test.yaml", wrong, sizeof wrong - 1, NULL));
  assert_int_equal(log.nerrors, 2);
  assert_int_equal(ng_message_count(ctx), 2);
  ng_context_free(ctx);
}

// The nodes, operands and attributes of graphs

static void dims_are_listed_until_a_graph_is_bound(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled_relu);
  assert_int_equal(ng_graph_dim_count(g), 2);
  assert_string_equal(ng_graph_dim(g, 0).name, "N");
  assert_int_equal(ng_graph_dim(g, 0).value, 2);
  assert_string_equal(ng_graph_dim(g, 1).name, "M");
  assert_int_equal(ng_graph_dim(g, 1).value, -1);
  assert_int_equal(ng_graph_set_dim(g, "M", 7), NG_OK);
  assert_int_equal(ng_graph_dim(g, 1).value, 7);
  assert_int_equal(ng_graph_bind(g), NG_OK);
  assert_int_equal(ng_graph_dim_count(g), 0);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void nodes_show_their_operands_and_attributes(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled_relu);
  assert_int_equal(ng_graph_node_count(g), 2);
  ng_node_info multiply = ng_graph_node(g, 0), relu = ng_graph_node(g, 1);
  assert_string_equal(multiply.canonical, "Multiply");
  assert_int_equal(multiply.ninputs, 2);
  assert_int_equal(multiply.line, 10);
  ng_tensor_info half = ng_graph_node_input(g, 0, 1), z = ng_graph_node_output(g, 1, 0);
  assert_string_equal(half.name, "half");
  assert_int_equal(half.rank, 0);
  assert_string_equal(z.name, "z");
  assert_string_equal(z.dim[0], "N");
  assert_int_equal(z.extent[1], 3);

  assert_string_equal(relu.canonical, "ReLUBackward");
  size_t op = ng_operator_find(relu.name);
  assert_true(op < ng_operator_count());
  assert_string_equal(ng_operator_at(op).canonical, relu.canonical);
  bool has_use_dst = false;
  for (size_t k = 0; k < relu.nattributes; k++) {
    ng_attribute a = ng_graph_node_attribute(g, 1, k);
    if (strcmp(a.name, "use_dst") != 0) continue;
    has_use_dst = true;
    assert_string_equal(a.kind, "bool");
    assert_true(a.is_set);
    assert_int_equal(a.integer, 0);
  }
  assert_true(has_use_dst);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void an_absent_operand_has_no_name(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\n"
                               "inputs:\n"
                               "  - {name: x, type: f32, shape: [4, 8]}\n"
                               "  - {name: dy, type: f32, shape: [4, 8]}\n"
                               "  - {name: mean, type: f32, shape: [4]}\n"
                               "  - {name: var, type: f32, shape: [4]}\n"
                               "nodes:\n"
                               "  - op: LayerNormBackward\n"
                               "    inputs: [x, dy, mean, var]\n"
                               "    outputs: [dx]\n"
                               "    attributes: {use_affine: false, epsilon: 0.25, begin_norm_axis: -1}\n"
                               "outputs: [dx]\n");
  ng_node_info node = ng_graph_node(g, 0);
  size_t nabsent = 0, nfound = 0;
  for (size_t k = 0; k < node.ninputs; k++) nabsent += !ng_graph_node_input(g, 0, k).name;
  assert_true(nabsent > 0);
  assert_string_equal(ng_graph_node_input(g, 0, 0).name, "x");
  for (size_t k = 0; k < node.nattributes; k++) {
    ng_attribute a = ng_graph_node_attribute(g, 0, k);
    if (strcmp(a.name, "epsilon") == 0) {
      assert_string_equal(a.kind, "f32");
      assert_true(a.number == 0.25);
      nfound++;
    } else if (strcmp(a.name, "begin_norm_axis") == 0) {
      assert_string_equal(a.kind, "s64");
      assert_int_equal(a.integer, -1);
      nfound++;
    }
  }
  assert_int_equal(nfound, 2);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void files_of_constants_are_listed(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *without = must_read(ctx, scaled_relu);
  assert_int_equal(ng_graph_file_count(without), 0);
  assert_null(ng_graph_file(without, 0));
  ng_graph *with = ng_graph_read_file(ctx, "tests/errors/file_good.yaml");
  assert_non_null(with);
  assert_int_equal(ng_graph_file_count(with), 1);
  assert_string_equal(ng_graph_file(with, 0), "data/f32.npy");
  assert_null(ng_graph_file(with, 1));
  ng_graph_free(with);
  ng_graph_free(without);
  ng_context_free(ctx);
}

// Passes

static void what_passes_leave_is_a_graph_like_any_other(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\n"
                               "inputs: [{name: x, type: f32, shape: [2]}]\n"
                               "nodes:\n"
                               "  - {op: Add, inputs: [x, x], outputs: [y]}\n"
                               "  - {op: Multiply, inputs: [y, x], outputs: [dead]}\n"
                               "outputs: [y]\n");
  ng_graph *done = ng_graph_run_passes(g, NULL);
  assert_non_null(done);
  assert_int_equal(ng_last_status(ctx), NG_OK);
  assert_int_equal(ng_graph_node_count(g), 2);
  assert_int_equal(ng_graph_node_count(done), 1);
  float x[2] = {1, 3}, y[2] = {0};
  ng_tensor in = ng_tensor_view(ng_graph_input(done, 0), x), out = ng_tensor_view(ng_graph_output(done, 0), y);
  assert_int_equal(ng_interpret(done, &in, &out, 0), NG_OK);
  assert_true(y[0] == 2 && y[1] == 6);
  memset(y, 0, sizeof y);
  ng_kernel *k = ng_compile(done, NULL);
  assert_non_null(k);
  assert_int_equal(ng_kernel_run(k, &in, &out, 1), NG_OK);
  assert_true(y[0] == 2 && y[1] == 6);
  ng_kernel_free(k);
  ng_graph_free(done);
  assert_null(ng_graph_run_passes(g, &(ng_options){.after = "dead-cod"}));
  assert_int_equal(ng_last_status(ctx), NG_USAGE);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Files

static char *read_whole(const char *folder, const char *name) {
  char path[256];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *file = fopen(path, "r");
  assert_non_null(file);
  char *text = NULL;
  size_t capacity = 0;
  assert_true(getdelim(&text, &capacity, 0, file) > 0);
  fclose(file);
  unlink(path);
  return text;
}

static void files_hold_what_is_emitted(void **state) {
  (void)state;
  char folder[] = "/tmp/ngrad_api_embed_XXXXXX";
  assert_non_null(mkdtemp(folder));
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, scaled_relu);
  ng_graph_set_dim(g, "M", 1);
  const ng_options options = {.isa = "scalar"};
  char *source, *header;
  assert_int_equal(ng_emit(g, &options, &source, &header), NG_OK);
  assert_string_equal(ng_graph_identifier(g), "step");
  assert_int_equal(ng_emit_files(g, &options, folder), NG_OK);
  assert_int_equal(ng_emit_files(g, &options, folder), NG_OK); // replaces the existing files
  char *source_file = read_whole(folder, "step.c"), *header_file = read_whole(folder, "step.h");
  assert_string_equal(source_file, source);
  assert_string_equal(header_file, header);
  free(source_file);
  free(header_file);
  assert_int_equal(rmdir(folder), 0); // nothing else was left in it
  assert_int_equal(ng_emit_files(g, &options, folder), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  assert_non_null(strstr(ng_messages_text(ctx, 0), "/step.c: error: no such file or directory"));
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Threads

enum { NTHREADS = 4 };

static bool compile_and_run(ng_context *ctx) {
  float x[6] = {1, -1, 2, -2, 3, -3}, unused[1] = {0}, z[6] = {0};
  const float expected[6] = {0.5F, 0, 1, 0, 1.5F, 0};
  ng_graph *g = ng_graph_read(ctx, "test.yaml", scaled_relu, sizeof scaled_relu - 1, NULL);
  ng_kernel *k = NULL;
  bool ok = g && ng_graph_set_dim(g, "M", 1) == NG_OK && (k = ng_compile(g, NULL));
  if (ok) {
    const ng_tensor in[] = {ng_tensor_view(ng_graph_input(g, 0), x), ng_tensor_view(ng_graph_input(g, 1), unused)};
    ng_tensor out = ng_tensor_view(ng_graph_output(g, 0), z);
    ok = ng_kernel_run(k, in, &out, 1) == NG_OK;
    for (int i = 0; i < 6; i++) ok &= z[i] == expected[i];
  }
  ng_kernel_free(k);
  ng_graph_free(g);
  return ok;
}

static void *use_own_context(void *ok) {
  ng_context *ctx = ng_context_new(NULL);
  *(bool *)ok = ctx && compile_and_run(ctx);
  if (ctx) fputs(ng_messages_text(ctx, 0), stderr);
  ng_context_free(ctx);
  return NULL;
}

static void threads_may_compile_one_graph_at_once(void **state) {
  (void)state;
  char cache[] = "/tmp/ngrad_api_embed_XXXXXX", command[64];
  const char *usual = getenv("XDG_CACHE_HOME");
  char *kept = usual ? strdup(usual) : NULL;
  assert_non_null(mkdtemp(cache)); // empty, so that each of them finds nothing and compiles
  setenv("XDG_CACHE_HOME", cache, 1);
  pthread_t threads[NTHREADS];
  bool ok[NTHREADS] = {false};
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, use_own_context, &ok[i]), 0);
  for (int i = 0; i < NTHREADS; i++) assert_int_equal(pthread_join(threads[i], NULL), 0);
  if (kept) setenv("XDG_CACHE_HOME", kept, 1);
  else unsetenv("XDG_CACHE_HOME");
  free(kept);
  snprintf(command, sizeof command, "rm -rf %s", cache);
  assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): the command is ours
  for (int i = 0; i < NTHREADS; i++) assert_true(ok[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(header_and_library_are_of_one_version),
      cmocka_unit_test(every_status_has_a_text),
      cmocka_unit_test(the_log_gets_messages_as_they_are_told),
      cmocka_unit_test(dims_are_listed_until_a_graph_is_bound),
      cmocka_unit_test(nodes_show_their_operands_and_attributes),
      cmocka_unit_test(an_absent_operand_has_no_name),
      cmocka_unit_test(files_of_constants_are_listed),
      cmocka_unit_test(what_passes_leave_is_a_graph_like_any_other),
      cmocka_unit_test(files_hold_what_is_emitted),
      cmocka_unit_test(threads_may_compile_one_graph_at_once),
  };
  return cmocka_run_group_tests_name("api_embed", tests, NULL, NULL);
}
