// The reference of kernels (ir/kernel/reference.h). In numbers, it has the bits of executed loop trees, at several
// values of open dims; loops_execute_test and loops_open_test compare trees with compiled code. In hashes, no change of
// an order stays unseen.
#include "ir/kernel/reference.h"

#include "ir/graph/open_dims.h"
#include "tests/loops/numbers.h"
#include "tests/unit/loops_case.h"

enum { MOST_VALUES = 1024, MOST_SUMS = 64, MOST_NBYTES = 8 }; // of an element

// Numbers

// The sums of a schedule. False: one has no order any more.
static bool find_sums(const Schedule *s, Summation *sums) {
  assert_true(s->nsums <= MOST_SUMS);
  for (size_t i = 0; i < s->nsums; i++)
    if (!schedule_summation(s, &s->sums[i], &sums[i])) return false;
  return true;
}

// Memory for what the kernels store, and the tensors of the case.
static void find_tensors(const LoopsCase *c, const Program *p, const int64_t *dims, NumberTensor *tensors) {
  const Graph *g = p->graph;
  assert_true(g->nvalues < MOST_VALUES);
  for (size_t i = 0; i < g->ninputs; i++) tensors[g->inputs[i]->index].data = c->inputs[i].data;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    const int64_t hinted = shape_nelems(&v->shape);
    NumberTensor *t = &tensors[i];
    t->nelems = dims ? open_number(g, hinted, shape_monomial(&v->shape), dims) : hinted;
    if (v->constant && !v->constant->is_splat) t->data = v->constant->data;
    else if (!t->data) t->data = calloc((size_t)t->nelems + 1, MOST_NBYTES);
    assert_non_null(t->data);
  }
}

static void free_tensors(const Program *p, NumberTensor *tensors) {
  for (size_t i = 0; i < p->graph->nvalues; i++) {
    const Value *v = p->graph->values[i];
    if (!v->is_input && !(v->constant && !v->constant->is_splat)) free(tensors[i].data);
  }
}

static bool evaluate_kernel(const LoopsCase *c, const Schedule *s, const int64_t *dims, Numbers *numbers) {
  Summation sums[MOST_SUMS];
  const char *why = NULL;
  const ValueDomain domain = domain_of_numbers(numbers);
  const bool ok =
      find_sums(s, sums) && kernel_reference(s->kernel, sums, s->nsums, dims, &domain, &system_allocator, &why);
  if (!ok || numbers->fault) print_error("%s: %s\n", c->name, why ? why : numbers->fault ? numbers->fault : "no sums");
  return ok && !numbers->fault;
}

static bool evaluate_slices(const LoopsCase *c, const Program *p, const ProgramSliceGroup *group, Numbers *numbers) {
  bool ok = true;
  NumberTensor *tensors = (NumberTensor *)numbers->tensors;
  const SliceGroup *slices = group->slices;
  for (int64_t slice = 0; slice < slices->nslices && ok; slice++) {
    for (size_t i = 0; i < slices->ntensors; i++)
      if (!slices->tensors[i].is_private)
        tensors[slices->tensors[i].value->index].first = slice_group_offset(slices, &slices->tensors[i], slice);
    for (size_t k = group->first; k < group->end && ok; k++) ok = evaluate_kernel(c, p->schedules[k], NULL, numbers);
  }
  for (size_t i = 0; i < slices->ntensors; i++) tensors[slices->tensors[i].value->index].first = 0;
  return ok;
}

static bool evaluate(const LoopsCase *c, const Program *p, const int64_t *dims, Numbers *numbers) {
  bool ok = true;
  for (size_t i = 0; i < p->nkernels && ok; i++) {
    const ProgramSliceGroup *group = program_slice_group(p, i);
    ok = group ? evaluate_slices(c, p, group, numbers) : evaluate_kernel(c, p->schedules[i], dims, numbers);
    if (group) i = group->end - 1;
  }
  return ok;
}

// Whether the outputs that kernels store have the bits of the executed trees.
static bool compare_numbers(const LoopsCase *c, Program *p, const int64_t *dims) {
  Tensor executed[MOST_TENSORS] = {{0}}, referred[MOST_TENSORS] = {{0}};
  NumberTensor tensors[MOST_VALUES] = {{NULL}};
  Numbers numbers = {.tensors = tensors};
  find_tensors(c, p, dims, tensors);
  bool ok = evaluate(c, p, dims, &numbers);
  loops_new_outputs(c->graph, executed);
  ok = ok && loops_execute(c, p, executed, &(ExecuteOptions){.dims = dims}, "executed");
  for (size_t i = 0; i < c->graph->noutputs; i++) {
    referred[i] = executed[i];
    referred[i].data = program_copies_output(p, i) ? NULL : tensors[p->graph->outputs[i]->index].data;
  }
  ok = ok && loops_have_same_bits(c, referred, executed, "as executed");
  loops_free_outputs(c->graph, executed);
  free_tensors(p, tensors);
  return ok;
}

// Cases. N is an open dim, of which all kernels have one program; FIXED: the graph has none.
enum { FIXED = 0 };
typedef struct Case {
  const char *name;
  int n; // the hint
  const char *inputs, *nodes, *outputs;
} Case;

static const Case cases[] = {
    {"product", FIXED, "  - {name: x, type: f32, shape: [60, 300]}\n  - {name: w, type: f32, shape: [300, 40]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y"},
    {"product in chains", 20,
     "  - {name: x, type: f32, shape: [N, 2100]}\n  - {name: w, type: f32, shape: [2100, 17]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y"},
    {"product in blocks", FIXED,
     "  - {name: x, type: f32, shape: [6, 5000]}\n  - {name: w, type: f32, shape: [5000, 8]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y"},
    {"product of rows", 40, "  - {name: x, type: f32, shape: [N, 300]}\n  - {name: w, type: f32, shape: [300, 40]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n  - {op: GELU, inputs: [y], outputs: [z]}\n", "y, z"},
    {"product over a batch", 2100,
     "  - {name: x, type: f32, shape: [N, 24]}\n  - {name: dy, type: f32, shape: [N, 40]}\n",
     "  - {op: MatMul, inputs: [x, dy], outputs: [y], attributes: {transpose_a: true}}\n", "y"},
    {"product of bf16", 40, "  - {name: x, type: bf16, shape: [N, 70]}\n  - {name: w, type: bf16, shape: [70, 40]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y"},
    {"product of f64", 40, "  - {name: x, type: f64, shape: [N, 70]}\n  - {name: w, type: f64, shape: [70, 40]}\n",
     "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n", "y"},
    {"rows", 100, "  - {name: x, type: f32, shape: [N, 301]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [1]}}\n", "y"},
    {"long rows", 9, "  - {name: x, type: f32, shape: [N, 5003]}\n",
     "  - {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n", "y"},
    {"rows of any length", 700, "  - {name: x, type: f32, shape: [9, N]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [1]}}\n", "y"},
    {"distant rows of any length", 50, "  - {name: x, type: f32, shape: [40, 3, N]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0, 2]}}\n", "y"},
    {"any number of distant rows", 90, "  - {name: x, type: f32, shape: [N, 5, 37]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0, 2]}}\n", "y"},
    {"weighted columns", 90, "  - {name: x, type: f32, shape: [N, 6, 50]}\n  - {name: c, type: f32, shape: [6, 1]}\n",
     "  - {op: Multiply, inputs: [x, c], outputs: [p]}\n"
     "  - {op: ReduceSum, inputs: [p], outputs: [y], attributes: {axes: [0, 1]}}\n",
     "y"},
    {"short rows", 300, "  - {name: x, type: f32, shape: [N, 9]}\n",
     "  - {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n", "y"},
    {"columns", 300, "  - {name: x, type: f32, shape: [N, 37]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}\n", "y"},
    {"short columns", FIXED, "  - {name: x, type: f32, shape: [20, 5, 50]}\n",
     "  - {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n", "y"},
    {"all", 5000, "  - {name: x, type: f32, shape: [N]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}\n", "y"},
    {"all of f64", 5000, "  - {name: x, type: f64, shape: [N]}\n",
     "  - {op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}\n", "y"},
    {"all of rows", 300, "  - {name: x, type: f32, shape: [N, 37]}\n",
     "  - {op: ReduceMean, inputs: [x], outputs: [y], attributes: {axes: [0, 1]}}\n", "y"},
    {"greatest", 300, "  - {name: x, type: f32, shape: [N, 37]}\n",
     "  - {op: ReduceMax, inputs: [x], outputs: [y], attributes: {axes: [0]}}\n"
     "  - {op: ReduceMax, inputs: [x], outputs: [z], attributes: {axes: [1]}}\n",
     "y, z"},
    {"multiplied", 60, "  - {name: x, type: f32, shape: [N, 37]}\n",
     "  - {op: ReduceProd, inputs: [x], outputs: [y], attributes: {axes: [1]}}\n", "y"},
    {"layer norm", 150,
     "  - {name: x, type: f32, shape: [N, 301]}\n  - {name: dy, type: f32, shape: [N, 301]}\n"
     "  - {name: m, type: f32, shape: [N]}\n  - {name: v, type: f32, shape: [N]}\n"
     "  - {name: g, type: f32, shape: [301]}\n",
     "  - {op: LayerNormBackward, inputs: [x, dy, m, v, g, ~], outputs: [dx, dg, db]}\n", "dx, dg, db"},
    {"layer norm of bf16", 150,
     "  - {name: x, type: bf16, shape: [N, 301]}\n  - {name: dy, type: bf16, shape: [N, 301]}\n"
     "  - {name: m, type: f32, shape: [N]}\n  - {name: v, type: f32, shape: [N]}\n"
     "  - {name: g, type: f32, shape: [301]}\n",
     "  - {op: LayerNormBackward, inputs: [x, dy, m, v, g, ~], outputs: [dx, dg, db]}\n", "dx, dg, db"},
    {"batch norm", 6,
     "  - {name: x, type: f32, shape: [N, 7, 401]}\n  - {name: dy, type: f32, shape: [N, 7, 401]}\n"
     "  - {name: m, type: f32, shape: [7]}\n  - {name: v, type: f32, shape: [7]}\n  - {name: g, type: f32, shape: "
     "[7]}\n",
     "  - {op: BatchNormTrainingBackward, inputs: {src: x, diff_dst: dy, mean: m, variance: v, gamma: g},\n"
     "     outputs: {diff_src: dx, diff_gamma: dg, diff_beta: db}, attributes: {data_format: NCX, epsilon: 1.0e-5}}\n",
     "dx, dg, db"},
    {"average pooling", 3, "  - {name: x, type: f32, shape: [N, 9, 9, 20]}\n",
     "  - {op: AvgPool, inputs: [x], outputs: [y], attributes: {strides: [2, 2], pads_begin: [1, 1], pads_end: [1, 1], "
     "kernel: [3, 3], exclude_pad: true, data_format: NXC}}\n",
     "y"},
    {"maximum pooling", 3, "  - {name: x, type: f32, shape: [N, 4, 9, 9]}\n",
     "  - {op: MaxPool, inputs: [x], outputs: [y], attributes: {strides: [2, 2], pads_begin: [1, 1], pads_end: [1, 1], "
     "kernel: [3, 3], data_format: NCX}}\n",
     "y"},
    {"convolution", FIXED,
     "  - {name: x, type: f32, shape: [2, 6, 9, 9]}\n  - {name: w, type: f32, shape: [20, 6, 3, 3]}\n",
     "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
     "pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX}}\n",
     "y"},
    {"convolution by weights", FIXED,
     "  - {name: x, type: f32, shape: [2, 6, 9, 9]}\n  - {name: dy, type: f32, shape: [2, 20, 9, 9]}\n",
     "  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [1, 1], pads_begin: "
     "[1, 1], pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: OIX, weights_shape: [20, 6, 3, "
     "3]}}\n",
     "dw"},
    {"depthwise", FIXED,
     "  - {name: x, type: f32, shape: [2, 9, 9, 40]}\n  - {name: w, type: f32, shape: [40, 1, 3, 3]}\n",
     "  - {op: Convolution, inputs: [x, w], outputs: [y], attributes: {strides: [1, 1], pads_begin: [1, 1], "
     "pads_end: [1, 1], dilations: [1, 1], groups: 40, data_format: NXC, weights_format: OIX}}\n",
     "y"},
    {"cross entropy", 300, "  - {name: x, type: f32, shape: [N, 9]}\n  - {name: l, type: s32, shape: [N]}\n",
     "  - {op: SoftmaxCrossEntropy, inputs: [x, l], outputs: [y], attributes: {reduction: sum}}\n", "y"},
};
enum { NCASES = sizeof cases / sizeof *cases };

static Graph *read_case(const Case *c) {
  char text[2048], dims[64] = "";
  Diagnostics d;
  if (c->n) snprintf(dims, sizeof dims, "dims: {N: %d}\n", c->n);
  const int length = snprintf(text, sizeof text, "format: ngrad/1\nname: test\n%sinputs:\n%snodes:\n%soutputs: [%s]\n",
                              dims, c->inputs, c->nodes, c->outputs);
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "test.yaml", text, (size_t)length, NULL, &d);
  if (!g) fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "out of memory");
  diagnostics_deinit(&d);
  return g;
}

static Lowered lower_case(const Case *c) {
  Lowered l = {read_case(c), NULL};
  Diagnostics d;
  Target target = target_of_any_machine();
  target.isa = "scalar";
  diagnostics_init(&d, &system_allocator);
  PassContext context = {
      .diagnostics = &d, .allocator = &system_allocator, .target = &target, .evaluate = interpret_node};
  if (c->n) {
    Graph *given = l.graph;
    l.graph = graph_with_open_dims(given, &d);
    graph_free(given);
  } else loops_bind(c->name, l.graph);
  if (l.graph && pipeline_run(l.graph, &context)) l.program = pipeline_lower(l.graph, &context);
  if (!l.program) {
    fail_msg("%s: %s", c->name, d.count ? d.items[0].message : "out of memory");
    abort(); // not reached, as no reader of the code can tell
  }
  diagnostics_deinit(&d);
  return l;
}

static bool compare_at(const Case *of, const Lowered *l, int64_t n) {
  LoopsCase c;
  Diagnostics d;
  char name[128];
  diagnostics_init(&d, &system_allocator);
  Graph *bound = of->n ? graph_with_dims(l->graph, &n, &d) : graph_clone(l->graph);
  diagnostics_deinit(&d);
  assert_non_null(bound);
  snprintf(name, sizeof name, "%s at %lld", of->name, (long long)n);
  loops_case_init(&c, name, bound, (uint64_t)n + 1);
  const bool ok = compare_numbers(&c, l->program, of->n ? &n : NULL);
  loops_case_deinit(&c);
  return ok;
}

// Twice a block and a bit, of the loop with the longest blocks that decide bits.
static int64_t more_than_two_blocks(const Program *p) {
  int64_t length = LONGEST_SEGMENT;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->schedules[i]->nloops; l++) {
      const Loop *loop = &p->schedules[i]->loops[l];
      if (loop_has_roots(loop, ROOT_REDUCE_OUTER) && loop->cut.length > length) length = loop->cut.length;
    }
  return 2 * length + 3;
}

static void numbers_are_those_of_loops(void **state) {
  size_t nfailures = 0;
  (void)state;
  for (size_t i = 0; i < NCASES; i++) {
    Lowered l = lower_case(&cases[i]);
    const int64_t hint = cases[i].n, few[] = {hint, 1, LANES - 1, LANES + 1, more_than_two_blocks(l.program)};
    for (size_t n = 0; n < (hint ? 5 : 1); n++) nfailures += !compare_at(&cases[i], &l, few[n]);
    lowered_free(&l);
  }
  assert_int_equal(nfailures, 0);
}

// Graphs that the executor's own test compares with compiled code, too (loops_execute_test.c).

static bool compare_lowered(const LoopsCase *c) {
  const Target target = target_of_any_machine();
  Lowered l = loops_lower(c, &target, false, NULL);
  const bool ok = compare_numbers(c, l.program, NULL);
  lowered_free(&l);
  return ok;
}

static void numbers_are_those_of_models(void **state) {
  enum { MOST_NELEMS = 100000 };
  (void)state;
  size_t count = for_each_file("models/*.yaml", MOST_NELEMS, compare_lowered);
  count += for_each_file("tests/golden/*/*.yaml", MOST_NELEMS, compare_lowered);
  for_each_large_graph(compare_lowered);
  assert_true(count >= 40);
}

static void numbers_are_those_of_random_graphs(void **state) {
  enum { COUNT = 60 };
  size_t nfailures = 0;
  (void)state;
  for (RandomSeeds s = random_seeds(COUNT); random_next_seed(&s);) {
    LoopsCase c;
    loops_case_init_random(&c, s.seed,
                           &(RandomGraphOptions){.most_nodes = 8, .most_nelems = 20000, .is_focused = s.seed % 2});
    if (!compare_lowered(&c)) {
      random_tell();
      nfailures++;
    }
    loops_case_deinit(&c);
  }
  assert_int_equal(nfailures, 0);
}

// Hashes

typedef struct Draft { // the order of a sum, to be changed
  Summation sum;
  SumOrder inner, outer;
} Draft;

typedef enum Edit { ADD_TO_LENGTH, FLIP, SET_TYPE, SWAP_AXES, SET_NUMBER } Edit;

typedef struct Change {
  const char *of; // a case
  int64_t n;
  Edit edit;
  size_t at; // offset in Draft
  int64_t number;
  int sum; // which of the kernel's sums
} Change;

#define AT(member) offsetof(Draft, member)

static const Change changes[] = {
    {"rows", 9, FLIP, AT(sum.inner.is_in_lanes), 0, 0},                     // one accumulator
    {"rows", 9, SET_TYPE, AT(inner.levels[0].type), TYPE_F64, 0},           // of accumulators
    {"long rows", 3, ADD_TO_LENGTH, AT(inner.segments.elements), LANES, 1}, // a vector more in a segment
    {"long rows", 3, ADD_TO_LENGTH, AT(inner.segments.elements), 1, 1},     // an element more
    {"long rows", 3, SET_NUMBER, AT(inner.levels[0].cut.length), 0, 1},     // no segments
    {"any number of distant rows", 50, ADD_TO_LENGTH, AT(inner.segments.iterations), 1, 0},
    {"any number of distant rows", 50, SWAP_AXES, AT(sum.inner.axes), 0, 0},
    {"distant rows of any length", 500, FLIP, AT(inner.segments.is_open), 0, 0},
    {"distant rows of any length", 1100, ADD_TO_LENGTH, AT(inner.segments.elements), LANES, 0},
    {"short rows", 9, FLIP, AT(sum.inner.has_only_used), 0, 1}, // lanes without elements are added
    {"columns", 300, ADD_TO_LENGTH, AT(outer.levels[0].cut.length), 1, 0},
    {"columns", 300, SET_TYPE, AT(outer.levels[0].type), TYPE_F64, 0},
    {"columns", 300, SET_TYPE, AT(outer.levels[1].type), TYPE_F32, 0},
    {"all", 9000, ADD_TO_LENGTH, AT(outer.levels[0].cut.length), LANES, 0}, // of a tile
    {"all of rows", 700, ADD_TO_LENGTH, AT(outer.levels[0].cut.length), LANES, 0},
    {"columns", 9000, ADD_TO_LENGTH, AT(outer.levels[0].cut.most), -4, 0},
    {"columns", 9000, SET_NUMBER, AT(outer.levels[0].cut.most), 1, 0}, // until blocks have their longest
    {"columns", 30000, ADD_TO_LENGTH, AT(outer.levels[0].cut.longest), -LANES, 0},
    {"all of f64", 9000, FLIP, AT(sum.inner.is_in_lanes), 0, 0},
    {"product", FIXED, FLIP, AT(inner.is_fused), 0, 0},
    {"product in chains", 1, ADD_TO_LENGTH, AT(inner.segments.iterations), 1, 0},
    {"product over a batch", 5000, ADD_TO_LENGTH, AT(inner.segments.inside), 1, 0},
    {"batch norm", 6, SWAP_AXES, AT(sum.inner.axes), 0, 1},
    {"weighted columns", 90, SWAP_AXES, AT(sum.outer.axes), 0, 0},
    {"convolution", FIXED, SWAP_AXES, AT(sum.inner.axes), 0, 0},
};
enum { NCHANGES = sizeof changes / sizeof *changes };

static void change(const Change *c, Draft *d) {
  char *at = (char *)d + c->at;
  if (c->edit == FLIP) *(bool *)at ^= true;
  if (c->edit == SET_TYPE) *(Type *)at = (Type)c->number;
  if (c->edit == SET_NUMBER) *(int64_t *)at = c->number;
  if (c->edit == ADD_TO_LENGTH) *(int64_t *)at += c->number;
  int *axes = (int *)at;
  if (c->edit == SWAP_AXES) axes[0] ^= axes[1], axes[1] ^= axes[0], axes[0] ^= axes[1];
}

// Adds up hashes of all stores.
static void add_hash(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                     bool is_mask) {
  Datum place[LANES], sum[LANES];
  (void)is_mask;
  domain_of_hashes.load(NULL, type, a, n, elements, NULL, place);
  domain_of_hashes.apply(NULL, EXPR_ADD, type, n, (const Datum *const[]){place, x, NULL}, sum);
  for (int i = 0; i < n; i++) *(uint64_t *)context += sum[i].hash;
}

static uint64_t hash_kernel(const Schedule *s, const Summation *sums, int64_t n) {
  uint64_t hash = 0;
  ValueDomain hashes = domain_of_hashes;
  const char *why;
  hashes.context = &hash;
  hashes.store = add_hash;
  assert_true(kernel_reference(s->kernel, sums, s->nsums, n ? &n : NULL, &hashes, &system_allocator, &why));
  return hash;
}

// Whether hashes tell the kernel with the changed order from the kernel.
static bool is_seen(const Change *c, const Schedule *s) {
  Summation sums[MOST_SUMS];
  assert_true(find_sums(s, sums) && (size_t)c->sum < s->nsums);
  const uint64_t before = hash_kernel(s, sums, c->n);
  assert_true(hash_kernel(s, sums, c->n) == before);
  Draft d = {.sum = sums[c->sum]};
  if (d.sum.inner.order) d.inner = *d.sum.inner.order, d.sum.inner.order = &d.inner;
  if (d.sum.outer.order) d.outer = *d.sum.outer.order, d.sum.outer.order = &d.outer;
  change(c, &d);
  sums[c->sum] = d.sum;
  return hash_kernel(s, sums, c->n) != before;
}

static void no_change_of_an_order_stays_unseen(void **state) {
  size_t nfailures = 0;
  (void)state;
  for (size_t i = 0; i < NCHANGES; i++) {
    size_t of = 0;
    while (strcmp(cases[of].name, changes[i].of) != 0) of++;
    Lowered l = lower_case(&cases[of]);
    if (!is_seen(&changes[i], l.program->schedules[l.program->nkernels - 1])) {
      print_error("change %zu, of %s at %lld, is not seen\n", i, changes[i].of, (long long)changes[i].n);
      nfailures++;
    }
    lowered_free(&l);
  }
  assert_int_equal(nfailures, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_those_of_loops),
      cmocka_unit_test(numbers_are_those_of_models),
      random_unit_test(numbers_are_those_of_random_graphs),
      cmocka_unit_test(no_change_of_an_order_stays_unseen),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
