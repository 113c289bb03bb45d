// Slice groups: which kernels run slice by slice together, which values are private to them, and that slices change no
// bits except through the order of sums. Executor and compiled scalar C agree; memory plans are checked step by step.
#include "backends/codegen/codegen.h"
#include "ir/loops/prove.h"
#include "passes/memory/verify.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/quick_compiler.h"

#define ATTENTION(q, k, v, more, scores, outputs)                                                                      \
  "inputs: [{name: q, type: f32, shape: " q "}, {name: k, type: f32, shape: " k "}, {name: v, type: f32, shape: " v    \
  "}" more "]\n"                                                                                                       \
  "nodes:\n- {op: MatMul, inputs: {src: q, weights: k}, outputs: [products], attributes: {transpose_b: true}}\n"       \
  "- " scores "\n"                                                                                                     \
  "- {op: SoftMax, inputs: [scores], outputs: [p], attributes: {axis: -1}}\n"                                          \
  "- {op: MatMul, inputs: {src: p, weights: v}, outputs: [y]}\noutputs: " outputs "\n"
#define TANH "{op: Tanh, inputs: [products], outputs: [scores]}"
#define MASKED "{op: Add, inputs: [products, mask], outputs: [scores]}"

#define WINDOWS(pads)                                                                                                  \
  "attributes: {kernel: [3, 3], strides: [2, 2], pads_begin: " pads ", pads_end: " pads ", data_format: NCX}"
#define POOLS(x, dy, pads)                                                                                             \
  "inputs: [{name: x, type: f32, shape: " x "}, {name: dy, type: f32, shape: " dy "}]\n"                               \
  "nodes:\n- {op: MaxPool, inputs: [x], outputs: [y], " WINDOWS(                                                       \
      pads) "}\n"                                                                                                      \
            "- {op: MaxPoolBackward, inputs: [x, dy], outputs: [dx], " WINDOWS(pads) "}\noutputs: [y, dx]\n"

typedef struct SliceGroupCase {
  const char *name, *text;
  int64_t least;   // bytes saved; 0: the default
  int64_t nslices; // of the only slice group; 0: there is none
  int64_t block;
  size_t nkernels;     // in the slice group
  const char *private; // the values that are private, in the order of their names; NULL: not tested
} SliceGroupCase;

static const SliceGroupCase cases[] = {
    {"heads", ATTENTION("[3, 17, 9]", "[3, 17, 9]", "[3, 17, 9]", "", TANH, "[y]"), 1, 3, 0, 3, "p products"},
    {"heads of two sequences", ATTENTION("[2, 3, 17, 9]", "[2, 3, 17, 9]", "[2, 3, 17, 12]", "", TANH, "[y]"), 1, 6, 0,
     3, "p products"},
    {"shared keys and values", ATTENTION("[2, 3, 17, 9]", "[2, 1, 17, 9]", "[1, 1, 17, 12]", "", TANH, "[y]"), 1, 6, 0,
     3, "p products"},
    {"a mask for all heads",
     ATTENTION("[3, 17, 9]", "[3, 17, 9]", "[3, 17, 9]", ", {name: mask, type: f32, shape: [17, 17]}", MASKED, "[y]"),
     1, 3, 0, 3, NULL},
    {"scores that are an output", ATTENTION("[3, 17, 9]", "[3, 17, 9]", "[3, 17, 9]", "", TANH, "[y, p]"), 1, 3, 0, 3,
     "products"},
    {"more slices than chunks", ATTENTION("[5, 9, 8, 9]", "[5, 9, 8, 9]", "[5, 9, 8, 9]", "", TANH, "[y]"), 1, 45, 0, 3,
     "p products"},
    {"blocks of queries", ATTENTION("[2, 300, 8]", "[2, 301, 8]", "[2, 301, 8]", "", TANH, "[y]"), 0, 40, 15, 3,
     "p products"},
    {"blocks of one head", ATTENTION("[320, 8]", "[321, 8]", "[321, 8]", "", TANH, "[y]"), 0, 32, 10, 3, "p products"},
    {"queries that have no divisor", ATTENTION("[2, 293, 8]", "[2, 301, 8]", "[2, 301, 8]", "", TANH, "[y]"), 1, 2, 0,
     3, "p products"},
    {"few slices", ATTENTION("[2, 293, 8]", "[2, 301, 8]", "[2, 301, 8]", "", TANH, "[y]"), 0, 0, 0, 0, NULL},
    {"small scores", ATTENTION("[3, 17, 9]", "[3, 17, 9]", "[3, 17, 9]", "", TANH, "[y]"), 0, 0, 0, 0, NULL},
    {"a single head", ATTENTION("[17, 9]", "[17, 9]", "[17, 9]", "", TANH, "[y]"), 1, 0, 0, 0, NULL},
    {"keys that are queries",
     "inputs: [{name: x, type: f32, shape: [2, 320, 9]}]\n"
     "nodes:\n- {op: MatMul, inputs: {src: x, weights: x}, outputs: [products], attributes: {transpose_b: true}}\n"
     "- {op: SoftMax, inputs: [products], outputs: [p], attributes: {axis: -1}}\n"
     "- {op: MatMul, inputs: {src: p, weights: x}, outputs: [y]}\noutputs: [y]\n",
     1, 2, 0, 3, "p products"},
    {"weights larger than what slices keep",
     "inputs: [{name: x, type: f32, shape: [4, 16, 64]}, {name: w, type: f32, shape: [64, 512]},\n"
     "  {name: u, type: f32, shape: [512, 64]}]\n"
     "nodes:\n- {op: MatMul, inputs: [x, w], outputs: [h]}\n- {op: MatMul, inputs: [h, u], outputs: [y]}\n"
     "outputs: [y]\n",
     1, 0, 0, 0, NULL},
    {"weights smaller than what slices keep",
     "inputs: [{name: x, type: f32, shape: [4, 128, 16]}, {name: w, type: f32, shape: [16, 32]},\n"
     "  {name: u, type: f32, shape: [32, 16]}]\n"
     "nodes:\n- {op: MatMul, inputs: [x, w], outputs: [h]}\n- {op: MatMul, inputs: [h, u], outputs: [y]}\n"
     "outputs: [y]\n",
     1, 4, 0, 2, "h"},
    {"gradients",
     "inputs: [{name: q, type: f32, shape: [3, 17, 9]}, {name: k, type: f32, shape: [3, 17, 9]},\n"
     "  {name: v, type: f32, shape: [3, 17, 9]}, {name: p, type: f32, shape: [3, 17, 17]},\n"
     "  {name: dy, type: f32, shape: [3, 17, 9]}]\n"
     "nodes:\n- {op: MatMul, inputs: {src: p, weights: dy}, outputs: [dv], attributes: {transpose_a: true}}\n"
     "- {op: MatMul, inputs: {src: dy, weights: v}, outputs: [dp], attributes: {transpose_b: true}}\n"
     "- {op: SoftMaxBackward, inputs: {diff_dst: dp, dst: p}, outputs: [ds], attributes: {axis: -1}}\n"
     "- {op: MatMul, inputs: {src: ds, weights: k}, outputs: [dq]}\n"
     "- {op: MatMul, inputs: {src: ds, weights: q}, outputs: [dk], attributes: {transpose_a: true}}\n"
     "outputs: [dq, dk, dv]\n",
     1, 3, 0, 5, "dp ds"},
    {"f32 and f16",
     "inputs: [{name: x, type: f32, shape: [4, 20, 9]}, {name: w, type: f32, shape: [4, 9, 30]},\n"
     "  {name: z, type: f16, shape: [4, 30, 8]}]\n"
     "nodes:\n- {op: MatMul, inputs: [x, w], outputs: [h]}\n"
     "- {op: TypeCast, inputs: [h], outputs: [{name: c, type: f16, shape: [4, 20, 30]}]}\n"
     "- {op: SoftMax, inputs: [c], outputs: [s], attributes: {axis: 2}}\n"
     "- {op: MatMul, inputs: [s, z], outputs: [y]}\noutputs: [y]\n",
     1, 4, 0, 3, NULL},
    {"sums over heads",
     "inputs: [{name: x, type: f32, shape: [3, 17, 9]}, {name: w, type: f32, shape: [3, 9, 20]}]\n"
     "nodes:\n- {op: MatMul, inputs: [x, w], outputs: [h]}\n"
     "- {op: SoftMax, inputs: [h], outputs: [s], attributes: {axis: 0}}\noutputs: [s]\n",
     1, 0, 0, 0, NULL},
    {"planes of pooling", POOLS("[2, 17, 45, 47]", "[2, 17, 23, 24]", "[1, 1]"), 1, 34, 0, 6, NULL},
    {"planes of pooling without padding", POOLS("[1, 32, 46, 45]", "[1, 32, 22, 22]", "[0, 0]"), 1, 32, 0, 6, NULL},
    {"few planes of pooling", POOLS("[1, 16, 48, 48]", "[1, 16, 24, 24]", "[1, 1]"), 1, 0, 0, 0, NULL},
    {"small planes of pooling", POOLS("[8, 16, 9, 9]", "[8, 16, 5, 5]", "[1, 1]"), 1, 0, 0, 0, NULL},
};
enum { NCASES = sizeof cases / sizeof *cases };

static void init(LoopsCase *c, const SliceGroupCase *v, uint64_t seed) {
  char text[2048];
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: visit\n%s", v->text);
  Graph *g = yaml_read(&system_allocator, "visit.yaml", text, (size_t)length, NULL, &d);
  if (!g) {
    fail_msg("%s: %s", v->name, d.items[0].message);
    abort(); // not reached, as no reader of the code can tell
  }
  diagnostics_deinit(&d);
  loops_case_init(c, v->name, g, seed);
}

static Lowered lower(const LoopsCase *c, const SliceGroupCase *v, const Target *target) {
  ScheduleOverrides overrides = {0};
  overrides.key[SCHEDULE_SLICES].is_set = v->least;
  overrides.key[SCHEDULE_SLICES].value = v->least;
  return loops_lower(c, target, false, &overrides);
}

static int compare_names(const void *a, const void *b) {
  const char *const *x = a, *const *y = b;
  return strcmp(*x, *y);
}

static void list_private(const SliceGroup *slices, char *names, size_t nbytes) {
  const char *list[64];
  size_t count = 0, used = 0;
  for (size_t i = 0; i < slices->ntensors; i++)
    if (slices->tensors[i].is_private) list[count++] = slices->tensors[i].value->name;
  qsort(list, count, sizeof *list, compare_names);
  *names = '\0';
  for (size_t i = 0; i < count; i++)
    used += (size_t)snprintf(names + used, nbytes - used, "%s%s", i ? " " : "", list[i]);
}

static void check_slice_group(const SliceGroupCase *v, const Program *p) {
  char names[256];
  if (!p || p->nslice_groups != (v->nslices > 0))
    fail_msg("%s: expected one slice group if the case has slices, else none", v->name);
  if (!p || !p->nslice_groups) return;
  const ProgramSliceGroup *slice_group = &p->slice_groups[0];
  const SliceGroup *slices = slice_group->slices;
  list_private(slices, names, sizeof names);
  if (v->private && strcmp(names, v->private) != 0) fail_msg("%s: found the private values %s", v->name, names);
  if (slices->nslices != v->nslices || slices->block != v->block ||
      slice_group->end - slice_group->first != v->nkernels)
    fail_msg("%s: %lld slices, blocks of %lld, %u kernels", v->name, (long long)slices->nslices,
             (long long)slices->block, slice_group->end - slice_group->first);
}

static void slice_groups_are_found(void **state) {
  (void)state;
  const Target target = target_of_machine();
  for (size_t i = 0; i < NCASES; i++) {
    const SliceGroupCase *v = &cases[i];
    LoopsCase c;
    init(&c, v, i);
    Lowered l = lower(&c, v, &target);
    check_slice_group(v, l.program);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

static void memory_plans_are_sound(void **state) {
  (void)state;
  const Target target = target_of_machine();
  for (size_t i = 0; i < NCASES; i++) {
    LoopsCase c;
    Text why;
    int64_t nsteps = (int64_t)1 << 27;
    init(&c, &cases[i], i);
    Lowered l = lower(&c, &cases[i], &target);
    text_init(&why, &system_allocator);
    if (!pipeline_build_trees(l.program, false)) fail_msg("%s: %s", cases[i].name, l.program->unsound);
    if (!memory_verify(l.program, &nsteps, &why)) fail_msg("%s: %s", cases[i].name, text_string(&why));
    assert_true(nsteps > 0);
    if (!program_prove(l.program, &nsteps, &why)) fail_msg("%s: %s", cases[i].name, text_string(&why));
    text_deinit(&why);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

static bool run_compiled(const LoopsCase *c, const Program *p, const char *isa, const Tensor *outputs, int threads) {
  Diagnostics d;
  CompileTimes times;
  bool compiler_failed;
  void *in[MOST_TENSORS] = {NULL}, *out[MOST_TENSORS] = {NULL};
  diagnostics_init(&d, &system_allocator);
  Compiled *compiled = codegen_compile(p, isa_find(isa), 0, &system_allocator, &times, &compiler_failed, &d);
  if (!compiled) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "does not compile");
  diagnostics_deinit(&d);
  for (size_t i = 0; i < c->graph->ninputs; i++) in[i] = c->inputs[i].data;
  for (size_t i = 0; i < c->graph->noutputs; i++) out[i] = outputs[i].data;
  const bool ok = compiled_run(compiled, in, out, threads, NULL);
  compiled_free(compiled);
  return ok;
}

static double relative_error(const Tensor *got, const Tensor *expected) {
  double errors = 0, squares = 0;
  for (int64_t i = 0; i < tensor_nelems(got); i++) {
    const double x = type_load(got->type, got->data, (size_t)i),
                 e = type_load(expected->type, expected->data, (size_t)i);
    errors += (x - e) * (x - e);
    squares += e * e;
  }
  return sqrt(errors / squares);
}

static void slices_have_the_bits_of_scalar_c(void **state) {
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    LoopsCase c;
    Tensor executed[MOST_TENSORS] = {{0}}, compiled[MOST_TENSORS] = {{0}}, expected[MOST_TENSORS] = {{0}};
    Target target = target_of_machine();
    target.isa = "scalar";
    target.vector_registers = isa_find("scalar")->vector_registers;
    init(&c, &cases[i], i);
    Lowered l = lower(&c, &cases[i], &target);
    loops_new_outputs(c.graph, executed);
    loops_new_outputs(c.graph, compiled);
    loops_new_outputs(c.graph, expected);
    assert_true(loops_execute(&c, l.program, executed, NULL, "in slices"));
    for (int threads = 1; threads <= 3; threads += 2) {
      assert_true(run_compiled(&c, l.program, "scalar", compiled, threads));
      assert_true(loops_have_same_bits(&c, executed, compiled, "from C"));
    }
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    assert_true(interpret(c.graph, c.inputs, expected, &(InterpreterOptions){.allocator = &system_allocator}, &d));
    diagnostics_deinit(&d);
    for (size_t k = 0; k < c.graph->noutputs; k++) {
      const double most = expected[k].type == TYPE_F16 ? 2e-3 : 1e-5,
                   error = relative_error(&executed[k], &expected[k]);
      if (!(error < most)) fail_msg("%s: the relative error is %g", c.name, error);
    }
    loops_free_outputs(c.graph, executed);
    loops_free_outputs(c.graph, compiled);
    loops_free_outputs(c.graph, expected);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

// Whatever outputs the caller leaves out, the others have the same bits.
static void outputs_may_be_left_out(void **state) {
  (void)state;
  const Target target = target_of_machine();
  for (size_t i = 0; i < NCASES; i++) {
    LoopsCase c;
    Tensor all[MOST_TENSORS] = {{0}};
    init(&c, &cases[i], i);
    Lowered l = lower(&c, &cases[i], &target);
    loops_new_outputs(c.graph, all);
    assert_true(loops_execute(&c, l.program, all, NULL, "with all outputs"));
    assert_true(pipeline_build_trees(l.program, true));
    for (unsigned wanted = 1; wanted + 1 < 1U << c.graph->noutputs; wanted++) {
      Tensor some[MOST_TENSORS] = {{0}}, given[MOST_TENSORS] = {{0}};
      loops_new_outputs(c.graph, some);
      for (size_t k = 0; k < c.graph->noutputs; k++) {
        given[k] = some[k];
        if (!(wanted >> k & 1)) given[k].data = NULL;
      }
      assert_true(loops_execute(&c, l.program, given, NULL, "with some"));
      assert_true(loops_have_same_bits(&c, given, all, "with all outputs"));
      loops_free_outputs(c.graph, some);
    }
    loops_free_outputs(c.graph, all);
    lowered_free(&l);
    loops_case_deinit(&c);
  }
}

static int use_compiler(void **state) {
  (void)state;
  return use_quick_compiler(true) ? 0 : -1;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slice_groups_are_found),
      cmocka_unit_test(memory_plans_are_sound),
      cmocka_unit_test(slices_have_the_bits_of_scalar_c),
      cmocka_unit_test(outputs_may_be_left_out),
  };
  return cmocka_run_group_tests(tests, use_compiler, NULL);
}
