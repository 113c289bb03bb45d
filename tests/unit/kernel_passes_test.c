// Passes over kernels can be left out: the results agree with the interpreter's, and each pass that can be left out
// changes some kernel below. Loop trees are executed, not compiled.
#include "passes/schedule/kernel_pass.h"
#include "tests/unit/loops_case.h"

// Graphs, and the passes that must change them.
typedef struct Case {
  const char *passes, *text;
} Case;

static const Case cases[] = {
    {"column-blocks", "inputs: [{name: x, type: f32, shape: [5, 120]}, {name: w, type: f32, shape: [120, 512]}]\n"
                      "nodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]\noutputs: [y]\n"},
    {"copy-windows",
     "inputs: [{name: x, type: f32, shape: [2, 6, 8, 16]}, {name: w, type: f32, shape: [3, 3, 16, 48]}]\n"
     "nodes: [{op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
     "pads_end: [1, 1], dilations: [1, 1], data_format: NXC, weights_format: XIO}}]\noutputs: [y]\n"},
    {"row-panels", "inputs: [{name: x, type: f32, shape: [64, 272]}, {name: w, type: f32, shape: [64, 48]}]\n"
                   "nodes: [{op: MatMul, inputs: [x, w], outputs: [y], attributes: {transpose_a: true}}]\n"
                   "outputs: [y]\n"},
    {"long-sums vector-panels", // of a prime length
     "inputs: [{name: x, type: f32, shape: [5003, 20]}, {name: w, type: f32, shape: [5003, 64]}]\n"
     "nodes: [{op: MatMul, inputs: [x, w], outputs: [y], attributes: {transpose_a: true}}]\noutputs: [y]\n"},
    {"channel-parts long-sums",
     "inputs: [{name: x, type: f32, shape: [16, 16, 16, 64]}, {name: dy, type: f32, shape: [16, 16, 16, 64]}]\n"
     "nodes: [{op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [1, 1], "
     "pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], groups: 64, data_format: NXC, weights_format: XIO, "
     "weights_shape: [3, 3, 1, 64]}}]\noutputs: [dw]\n"},
    {"store-sums",
     "inputs: [{name: x, type: f32, shape: [512, 4]}, {name: w, type: f32, shape: [4, 512]},\n"
     "  {name: a, type: f32, shape: [512, 512]}, {name: b, type: f32, shape: [512, 512]},\n"
     "  {name: c, type: f32, shape: [512, 512]}]\n"
     "nodes:\n- {op: MatMul, inputs: [x, w], outputs: [p]}\n- {op: Multiply, inputs: [p, a], outputs: [q]}\n"
     "- {op: Add, inputs: [q, b], outputs: [r]}\n- {op: Maximum, inputs: [r, c], outputs: [y]}\noutputs: [y]\n"},
    {"save-masks spill-vectors prefetch",
     "inputs: [{name: x, type: f32, shape: [80, 2, 912]}, {name: g, type: f32, shape: [80, 2, 912]},\n"
     "  {name: m, type: f32, shape: [80, 2, 912]}]\n"
     "nodes:\n- {op: ReLUBackward, inputs: [m, g], outputs: [d], attributes: {use_dst: false}}\n"
     "- {op: SoftMax, inputs: [x], outputs: [p], attributes: {axis: 2}}\n"
     "- {op: SoftMaxBackward, inputs: [d, p], outputs: [dx], attributes: {axis: 2}}\noutputs: [dx]\n"},
};

static bool is_listed(const char *names, const char *name) {
  const char *at = strstr(names, name);
  return at && (at == names || at[-1] == ' ') && (at[strlen(name)] == ' ' || !at[strlen(name)]);
}

static void case_init(LoopsCase *c, const Case *test) {
  char text[2048];
  Diagnostics d;
  const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: test\n%s", test->text);
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", text, (size_t)length, NULL, &d);
  if (!g) {
    fail_msg("%s", d.items[0].message);
    abort(); // not reached, as no reader of the code can tell
  }
  loops_case_init(c, test->passes, g, 3);
  diagnostics_deinit(&d);
}

// Lowers the graph, and prints its kernels.
static Lowered lower_with(const LoopsCase *c, const ScheduleOverrides *overrides, Text *kernels) {
  Target target = target_of_machine(); // with a small L1 cache, so that short rows are treated as long ones are
  target.isa = "avx2", target.vector_registers = 8, target.threads = 4;
  target.l1_nbytes = 2 << 10, target.l2_nbytes = 512 << 10, target.llc_nbytes = 1 << 20;
  Lowered l = loops_lower(c, &target, false, overrides);
  text_init(kernels, &system_allocator);
  program_print(l.program, kernels);
  return l;
}

static void must_agree(const LoopsCase *c, Program *p, const Tensor *expected, const char *how) {
  Tensor got[MOST_TENSORS] = {{0}};
  loops_new_outputs(c->graph, got);
  assert_true(loops_execute(c, p, got, NULL, how));
  double apart = 0, norm = 0;
  for (int64_t i = 0; i < tensor_nelems(&got[0]); i++) {
    const double x = type_load(TYPE_F32, expected[0].data, (size_t)i), y = type_load(TYPE_F32, got[0].data, (size_t)i);
    apart += (x - y) * (x - y);
    norm += x * x;
  }
  if (!(sqrt(apart) <= 1e-5 * sqrt(norm))) fail_msg("%s, %s: wrong by %g of %g", c->name, how, sqrt(apart), sqrt(norm));
  loops_free_outputs(c->graph, got);
}

static void check(const Case *test) {
  LoopsCase c;
  Text all, without;
  Tensor expected[MOST_TENSORS] = {{0}};
  Diagnostics d;
  case_init(&c, test);
  diagnostics_init(&d, &system_allocator);
  loops_new_outputs(c.graph, expected);
  assert_true(interpret(c.graph, c.inputs, expected, &(InterpreterOptions){.allocator = &system_allocator}, &d));
  diagnostics_deinit(&d);
  Lowered l = lower_with(&c, NULL, &all);
  must_agree(&c, l.program, expected, "all passes");
  for (size_t i = 0; kernel_pass_at(i); i++) {
    const char *name = kernel_pass_at(i)->name;
    if (kernel_pass_at(i)->use == NEEDED) continue;
    Lowered other = lower_with(&c, &(ScheduleOverrides){.disabled = &name, .ndisabled = 1}, &without);
    const bool is_changed = strcmp(text_string(&all), text_string(&without)) != 0;
    if (is_changed) must_agree(&c, other.program, expected, name);
    else if (is_listed(test->passes, name)) fail_msg("%s changes no kernel of the graph", name);
    text_deinit(&without);
    lowered_free(&other);
  }
  text_deinit(&all);
  lowered_free(&l);
  loops_free_outputs(c.graph, expected);
  loops_case_deinit(&c);
}

static void passes_can_be_left_out(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) check(&cases[i]);
  for (size_t i = 0; kernel_pass_at(i); i++) {
    bool is_tested = kernel_pass_at(i)->use == NEEDED;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
      is_tested |= is_listed(cases[k].passes, kernel_pass_at(i)->name);
    if (!is_tested) fail_msg("no graph for the pass %s", kernel_pass_at(i)->name);
  }
}

// Kernels are shown as a pass leaves them: first without loops, then without a target's choices, then with them.
static void kernels_are_shown_after_a_pass(void **state) {
  static const struct {
    const char *after, *has, *lacks;
  } stages[] = {{"choose-axes", "  over d0 5, d2 120, d1 512\n    sum y over d2, for each d0, d1\n", "loop"},
                {"column-blocks", "  over d0 5, d2 120, d1_block 2, d1 256\n", "loop"},
                {"make-loops", "    sweep 1: sum y of unrounded products, store y\n", ", 5 at once"},
                {"tune-loops", ", 5 at once", "\n  over "}};
  (void)state;
  for (size_t i = 0; i < sizeof stages / sizeof *stages; i++) {
    Text kernels;
    LoopsCase c;
    case_init(&c, &cases[0]);
    Lowered l = lower_with(&c, &(ScheduleOverrides){.after = stages[i].after}, &kernels);
    if (!strstr(text_string(&kernels), stages[i].has) || strstr(text_string(&kernels), stages[i].lacks))
      fail_msg("after %s: %s", stages[i].after, text_string(&kernels));
    text_deinit(&kernels);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(passes_can_be_left_out),
                                     cmocka_unit_test(kernels_are_shown_after_a_pass)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
