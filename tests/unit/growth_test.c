// Work grows linearly with graphs: memory and time, measured at a number of nodes and at two or eight times as many,
// for graphs that are wide or deep, or have many inputs, outputs, constants or kernels. So does the text that a
// compiler must read.
#include "frontend/api/ngrad.h"
#include "ir/support/text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

// Graphs. Each form writes inputs, constants, nodes and outputs: about n in total.

static void add_list(Text *t, const char *name, int n) {
  text_format(t, "%s: [", name);
  for (int i = 0; i < n; i++) text_format(t, "%sy%d", i ? ", " : "", i);
  text_add_string(t, "]\n");
}

static void add_begin(Text *t, int ninputs) {
  text_add_string(t, "format: ngrad/1\nname: g\ninputs:\n");
  for (int i = 0; i < ninputs; i++) text_format(t, "  - {name: x%d, type: f32, shape: [8, 16]}\n", i);
}

static void users_of_one_input(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++)
    text_format(t, "  - {op: LeakyReLU, inputs: [x0], outputs: [y%d], attributes: {alpha: %d.5}}\n", i, i);
  add_list(t, "outputs", n);
}

static void chain_of_outputs(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++)
    text_format(t, "  - {op: LeakyReLU, inputs: [%s%d], outputs: [y%d], attributes: {alpha: %d.5}}\n", i ? "y" : "x",
                i ? i - 1 : 0, i, i);
  add_list(t, "outputs", n);
}

static void kernels_in_a_chain(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++)
    text_format(t, "  - {op: SoftMax, inputs: [%s%d], outputs: [y%d], attributes: {axis: %d}}\n", i ? "y" : "x",
                i ? i - 1 : 0, i, i % 2);
  add_list(t, "outputs", n);
}

static void inputs_with_an_output_each(Text *t, int n) {
  add_begin(t, n);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++) text_format(t, "  - {op: ReLU, inputs: [x%d], outputs: [y%d]}\n", i, i);
  add_list(t, "outputs", n);
}

static void sums_of_one_input(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++) {
    text_format(t, "  - {op: LeakyReLU, inputs: [x0], outputs: [a%d], attributes: {alpha: %d.5}}\n", i, i);
    text_format(t, "  - {op: ReduceSum, inputs: [a%d], outputs: [y%d], attributes: {axes: [%d]}}\n", i, i, i % 2);
  }
  add_list(t, "outputs", n);
}

static void constants_as_outputs(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "constants:\n");
  for (int i = 0; i < n; i++) text_format(t, "  - {name: y%d, type: f32, shape: [2], value: %d}\n", i, i);
  text_add_string(t, "nodes:\n  - {op: ReLU, inputs: [x0], outputs: [z]}\n");
  add_list(t, "outputs", n);
}

static void constants_in_a_chain(Text *t, int n) {
  add_begin(t, 1);
  text_add_string(t, "constants:\n");
  for (int i = 0; i < n; i++) text_format(t, "  - {name: c%d, type: f32, shape: [], value: %d.5}\n", i, i);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++)
    text_format(t, "  - {op: Maximum, inputs: [%s%d, c%d], outputs: [y%d]}\n", i ? "y" : "x", i ? i - 1 : 0, i, i);
  text_format(t, "outputs: [y%d]\n", n - 1);
}

static void states_that_stay(Text *t, int n) {
  text_add_string(t, "format: ngrad/1\nname: g\nstate:\n");
  for (int i = 0; i < n; i++) text_format(t, "  - {name: x%d, type: f32, shape: [8, 16], init: zeros}\n", i);
  text_add_string(t, "nodes:\n");
  for (int i = 0; i < n; i++) text_format(t, "  - {op: ReLU, inputs: [x%d], outputs: [y%d]}\n", i, i);
  add_list(t, "outputs", n);
}

typedef struct Form {
  const char *name;
  void (*write)(Text *, int);
} Form;

static const Form forms[] = {
    {"users of one input", users_of_one_input},     {"a chain of outputs", chain_of_outputs},
    {"kernels in a chain", kernels_in_a_chain},     {"inputs with an output each", inputs_with_an_output_each},
    {"sums of one input", sums_of_one_input},       {"constants as outputs", constants_as_outputs},
    {"constants in a chain", constants_in_a_chain}, {"states that stay", states_that_stay},
};
enum { NFORMS = sizeof forms / sizeof *forms };

// Work

typedef struct Work {
  size_t nbytes_asked, source_nbytes;
  double seconds; // of the processor
} Work;

static void *counting_resize(void *user, void *p, size_t nbytes) {
  *(size_t *)user += nbytes;
  if (nbytes) return realloc(p, nbytes);
  free(p);
  return NULL;
}

static double processor_seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static Work work_of(void (*write)(Text *, int), int n) {
  Work work = {0};
  ng_allocator allocator = {counting_resize, &work.nbytes_asked};
  ng_options options = {.isa = "scalar"};
  Text text;
  text_init(&text, &system_allocator);
  write(&text, n);
  const double start = processor_seconds();
  ng_context *ctx = ng_context_new(&allocator);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", text_string(&text), text.nbytes, NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  char *source = NULL, *header = NULL;
  if (ng_emit(g, &options, &source, &header) != NG_OK) fail_msg("%s", ng_messages_text(ctx, 0));
  work.source_nbytes = strlen(source) + strlen(header);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_graph_free(g);
  ng_context_free(ctx);
  work.seconds = processor_seconds() - start;
  text_deinit(&text);
  return work;
}

static void emission_asks_for_memory_in_proportion(void **state) {
  (void)state;
  enum { N = 300 };
  for (int i = 0; i < NFORMS; i++) {
    Work once = work_of(forms[i].write, N), twice = work_of(forms[i].write, 2 * N);
    if ((double)twice.nbytes_asked > 2.3 * (double)once.nbytes_asked)
      fail_msg("%s: a graph allocates %zu bytes, a graph of twice the size %zu", forms[i].name, once.nbytes_asked,
               twice.nbytes_asked);
    if ((double)twice.source_nbytes > 2.3 * (double)once.source_nbytes)
      fail_msg("%s: a graph becomes %zu bytes of C, a graph of twice the size %zu", forms[i].name, once.source_nbytes,
               twice.source_nbytes);
  }
}

// Of linear work the second takes 8 times as long; of quadratic, 64 times.
static void emission_takes_time_in_proportion(void **state) {
  (void)state;
  enum { N = 300 };
  for (int i = 0; i < NFORMS; i++) {
    Work few = work_of(forms[i].write, N), many = work_of(forms[i].write, 8 * N);
    if (many.seconds > 24 * few.seconds + 0.05)
      fail_msg("%s: %.3f s for %d, %.3f s for %d", forms[i].name, few.seconds, N, many.seconds, 8 * N);
  }
}

// Lengths of blocks are divisors of extents: these have none but themselves.
static void columns_of_a_prime(Text *t, int n) {
  static const char *const primes[] = {"1009", "4294967291"};
  text_format(t, "format: ngrad/1\nname: g\ninputs:\n  - {name: x, type: f32, shape: [8, 16]}\n");
  text_format(t, "  - {name: w, type: f32, shape: [16, %s]}\nnodes:\n", primes[n]);
  text_add_string(t, "  - {op: MatMul, inputs: [x, w], outputs: [y]}\noutputs: [y]\n");
}

// A product that is private to a slice group, with one row for each index of the prime.
static void slices_of_a_prime(Text *t, int n) {
  static const char *const primes[] = {"1009", "1073741789"};
  text_format(t, "format: ngrad/1\nname: g\ninputs:\n  - {name: x, type: f32, shape: [%s, 16, 8]}\n", primes[n]);
  text_add_string(t, "  - {name: w, type: f32, shape: [8, 64]}\nnodes:\n");
  text_add_string(t, "  - {op: MatMul, inputs: [x, w], outputs: [s]}\n");
  text_add_string(t, "  - {op: SoftMax, inputs: [s], outputs: [p], attributes: {axis: -1}}\n");
  text_add_string(t, "  - {op: MatMul, inputs: [p, w], outputs: [y], attributes: {transpose_b: true}}\noutputs: [y]\n");
}

static void emission_takes_no_more_time_for_long_axes(void **state) {
  static void (*const long_forms[])(Text *, int) = {columns_of_a_prime, slices_of_a_prime};
  (void)state;
  for (size_t i = 0; i < sizeof long_forms / sizeof *long_forms; i++) {
    Work short_axis = work_of(long_forms[i], 0), long_axis = work_of(long_forms[i], 1);
    if (long_axis.seconds > 24 * short_axis.seconds + 0.05)
      fail_msg("form %zu takes %.3f s with a short axis and %.3f s with a long axis", i, short_axis.seconds,
               long_axis.seconds);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(emission_asks_for_memory_in_proportion),
      cmocka_unit_test(emission_takes_time_in_proportion),
      cmocka_unit_test(emission_takes_no_more_time_for_long_axes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
