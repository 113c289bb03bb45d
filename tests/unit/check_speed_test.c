// The time of ngrad check, per node and beside a fixed loop, so that it means the same on every machine: reading a
// chain of cheap nodes, printing it, and compiling it to C. The most is a quarter more than it was when this was
// written. In
// ./dev check only: a busy machine makes times worse.
#include "frontend/api/ngrad.h"
#include "ir/support/text.h"
#include "tests/effort.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void write_chain(Text *t, int nnodes) {
  static const char *const nodes[] = {"Add, inputs: [%s%d, b]", "Multiply, inputs: [%s%d, b]", "ReLU, inputs: [%s%d]"};
  text_add_string(t, "format: ngrad/1\nname: chain\ninputs:\n  - {name: x0, type: f32, shape: [16, 32]}\n"
                     "  - {name: b, type: f32, shape: [32]}\nnodes:\n");
  for (int i = 0; i < nnodes; i++) {
    text_add_string(t, "  - {op: ");
    text_format(t, nodes[i % 3], i ? "v" : "x", i);
    text_format(t, ", outputs: [v%d]}\n", i + 1);
  }
  text_format(t, "outputs: [v%d]\n", nnodes);
}

static double check_seconds(const Text *text) {
  const double start = processor_seconds();
  ng_compilation all;
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "chain.yaml", text_string(text), text->nbytes, NULL);
  assert_non_null(g);
  char *shown = ng_graph_show(g, "yaml", NULL);
  assert_non_null(shown);
  assert_int_equal(ng_graph_compilation(g, NULL, &all), NG_OK);
  ng_text_free(ctx, shown);
  ng_graph_free(g);
  ng_context_free(ctx);
  return processor_seconds() - start;
}

// A chain of multiplications, one a byte.
static double loop_seconds(const void *bytes, size_t nbytes) {
  const double start = processor_seconds();
  static volatile uint64_t hash;
  hash = bytes_hash(bytes, nbytes);
  (void)hash;
  return processor_seconds() - start;
}

static void checking_a_chain_takes_little_time_a_node(void **state) {
  enum { NTIMES = 5, LOOP_NBYTES = 1 << 26 };
  static const struct {
    int nnodes;
    double most; // times of the loop, for 10000 nodes
  } rows[] = {{10000, 1.4}, {100000, 1.85}};
  (void)state;
  if (!takes_all()) skip();
  void *bytes = calloc(1, LOOP_NBYTES);
  assert_non_null(bytes);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double check = 1e9, loop = 1e9; // the least of several, in turns
    Text text;
    text_init(&text, &system_allocator);
    write_chain(&text, rows[i].nnodes);
    for (int k = 0; k < NTIMES; k++) {
      const double now = check_seconds(&text), beside = loop_seconds(bytes, LOOP_NBYTES);
      if (now < check) check = now;
      if (beside < loop) loop = beside;
    }
    text_deinit(&text);
    const double ratio = check / loop / (rows[i].nnodes / 1e4);
    print_message("%d nodes: %.3f s, %.2f times the loop a 10000 nodes, at most %.2f\n", rows[i].nnodes, check, ratio,
                  rows[i].most);
    if (ratio > rows[i].most) fail_msg("%d nodes take %.2f times the loop", rows[i].nnodes, ratio);
  }
  free(bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(checking_a_chain_takes_little_time_a_node),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
