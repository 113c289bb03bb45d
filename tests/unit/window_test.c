// Kernels of windows (window_kernels.h): the executor of loop trees has the values of plain loops, and compiled C,
// scalar and for this machine's best instruction set, has the executor's bits.
#include "tests/unit/window_kernels.h"

#include "backends/codegen/codegen.h"
#include "passes/memory/plan.h"
#include "passes/memory/verify.h"
#include "tests/unit/loops_case.h"
#include "tests/unit/quick_compiler.h"

static double element(const Tensor *t, int64_t i) {
  return type_load(t->type, t->data, (size_t)i);
}

// The reduction at a result, and a bound of the rounding errors of its sum.
static double expected_at(const Window *w, const LoopsCase *c, const int64_t *at, double *error) {
  int64_t extent[4], stride[4], x[4];
  double y = reductions[w->reduction].identity;
  window_shape(w, w->in, extent);
  strides_of_extents(extent, stride);
  *error = 0;
  for (int64_t ky = 0; ky < w->taps[0]; ky++)
    for (int64_t kx = 0; kx < w->taps[1]; kx++) {
      const int row = window_axis(w, AXIS_ROW), column = window_axis(w, AXIS_COLUMN);
      const int64_t channel = at[window_axis(w, AXIS_CHANNEL)];
      memcpy(x, at, sizeof x);
      x[row] = window_index(w, 0, at[row], ky);
      x[column] = window_index(w, 1, at[column], kx);
      const bool is_inside = x[row] >= 0 && x[row] < w->in[0] && x[column] >= 0 && x[column] < w->in[1];
      int64_t i = 0;
      for (int axis = 0; axis < 4; axis++) i += x[axis] * stride[axis];
      double e = is_inside ? element(&c->inputs[0], i) : w->outside;
      if (w->has_weights) e *= element(&c->inputs[2], (ky * w->taps[1] + kx) * w->channels + channel);
      if (w->reduction == EXPR_REDUCE_SUM) *error += fabs(e) * (w->type == TYPE_F64 ? 1e-15 : 1e-6);
      y = w->reduction == EXPR_REDUCE_SUM ? y + e : e > y ? e : y;
    }
  return y;
}

static void must_be_expected(const Window *w, const LoopsCase *c, const Tensor *y) {
  int64_t extent[4];
  window_shape(w, w->out, extent);
  for (int64_t i = 0; i < tensor_nelems(y); i++) {
    int64_t at[4], left = i;
    double error;
    for (int axis = 3; axis >= 0; axis--) {
      at[axis] = left % extent[axis];
      left /= extent[axis];
    }
    const double expected = expected_at(w, c, at, &error), got = element(y, i);
    if (!(fabs(got - expected) <= error) && got != expected)
      fail_msg("%s: y[%lld] is %.9g, expected %.9g", c->name, (long long)i, got, expected);
  }
}

static bool run_compiled(const LoopsCase *c, const Program *p, const Isa *isa, const Tensor *y) {
  Diagnostics d;
  CompileTimes times;
  bool compiler_failed;
  void *in[] = {c->inputs[0].data, c->inputs[1].data, c->inputs[2].data}, *out[] = {y->data};
  diagnostics_init(&d, &system_allocator);
  Compiled *compiled = codegen_compile(p, isa, 0, &system_allocator, &times, &compiler_failed, &d);
  if (!compiled) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "does not compile");
  diagnostics_deinit(&d);
  const bool ok = compiled_run(compiled, in, out, 1, NULL);
  compiled_free(compiled);
  return ok;
}

static void must_have_sound_memory(Program *p) {
  Text why;
  int64_t nsteps = (int64_t)1 << 24;
  text_init(&why, &system_allocator);
  if (!pipeline_build_trees(p, false)) fail_msg("%s", p->unsound);
  if (!memory_verify(p, &nsteps, &why)) fail_msg("%s", text_string(&why));
  text_deinit(&why);
}

static void must_have_the_same_bits(const LoopsCase *c, const Program *p, const Isa *isa, const Tensor *executed) {
  Tensor compiled[MOST_TENSORS] = {{0}};
  loops_new_outputs(c->graph, compiled);
  assert_true(run_compiled(c, p, isa, compiled));
  assert_true(loops_have_same_bits(c, compiled, executed, isa->name));
  loops_free_outputs(c->graph, compiled);
}

static void execute_and_compile(const Window *w, const LoopsCase *c) {
  const Target target = target_of_any_machine();
  Tensor executed[MOST_TENSORS] = {{0}};
  Lowered l = loops_lower(c, &target, false, NULL);
  Program *p = l.program;
  if (!p) return;
  p->schedules[0] = window_schedule(w, &p->arena, p->schedules[0]->kernel, NULL);
  assert_true(plan_memory(p)); // again, with this kernel's temporaries
  must_have_sound_memory(p);
  loops_new_outputs(c->graph, executed);
  assert_true(loops_execute(c, p, executed, NULL, "by hand"));
  must_be_expected(w, c, executed);
  must_have_the_same_bits(c, p, isa_find("scalar"), executed);
  must_have_the_same_bits(c, p, isa_best(), executed);
  loops_free_outputs(c->graph, executed);
  lowered_free(&l);
}

static void windows_have_the_values_of_plain_loops(void **state) {
  (void)state;
  for (size_t i = 0; i < NWINDOWS; i++) {
    char text[1024];
    LoopsCase c;
    Diagnostics d;
    diagnostics_init(&d, &system_allocator);
    window_graph_text(&windows[i], text, sizeof text);
    Graph *g = yaml_read(&system_allocator, "window.yaml", text, strlen(text), NULL, &d);
    if (!g) {
      fail_msg("%s", d.items[0].message);
      return;
    }
    diagnostics_deinit(&d);
    snprintf(text, sizeof text, "window %zu", i);
    loops_bind(text, g);
    loops_case_init(&c, text, g, i);
    execute_and_compile(&windows[i], &c);
    loops_case_deinit(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(windows_have_the_values_of_plain_loops)};
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
