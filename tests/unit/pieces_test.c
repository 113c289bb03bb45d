// Pieces of nodes with windows (passes/lower/pieces.h): together, executed loop trees have the interpreter's numbers,
// on random windows around the edges of small tensors. Elements are small integers, so that every order of additions
// gives the same sum, and sometimes an infinity or a NaN. The executor checks that each element is stored.
//
// NGRAD_RANDOM_GRAPHS=1000 sets the number of graphs, NGRAD_RANDOM_SEED=7 the first seed.
#include "tests/unit/loops_case.h"

#include "ir/support/splitmix.h"
#include "passes/lower/pieces.h"
#include "passes/memory/verify.h"

enum { COUNT = 400, FEW = 16, MANY_ELEMENTS = 1 << 16, NSPATIAL = 2, TEXT = 2048 };

typedef struct RandomWindow {
  int64_t kernel, stride, dilation, pad_begin, pad_end, large, small;
} RandomWindow;

typedef struct Random {
  uint64_t state;
} Random;

static int64_t below(Random *r, int64_t n) {
  r->state += SPLITMIX_STEP;
  return (int64_t)(splitmix64(r->state) % (uint64_t)n);
}

static RandomWindow random_window(Random *r, bool is_dilated, bool is_large) {
  RandomWindow w = {0};
  while (w.large < 1) {
    w = (RandomWindow){
        .kernel = 1 + below(r, 4), .stride = 1 + below(r, 3), .small = 1 + below(r, 6) + (is_large ? 4 : 0)};
    w.dilation = is_dilated ? 1 + below(r, 3) : 1;
    const int64_t reach = (w.kernel - 1) * w.dilation + 1;
    w.pad_begin = below(r, reach);
    w.pad_end = below(r, reach);
    w.large = (w.small - 1) * w.stride + reach - w.pad_begin - w.pad_end + below(r, w.stride);
  }
  return w;
}

typedef struct Case {
  RandomWindow w[NSPATIAL];
  bool is_channels_last;
  int64_t batch, groups, nlarge, nsmall; // channels of a group
} Case;

// is_large: with so many channels that borders are cut, of single channels for convolutions.
static Case random_case(Random *r, bool is_dilated, bool is_large) {
  Case c = {.is_channels_last = below(r, 2), .batch = 1 + below(r, 2), .groups = 1 + below(r, 3)};
  for (int i = 0; i < NSPATIAL; i++) c.w[i] = random_window(r, is_dilated, is_large);
  c.nlarge = 1 + below(r, 5);
  c.nsmall = 1 + below(r, 5);
  if (is_large || below(r, 3) == 0) c.nlarge = c.nsmall = 1;
  if (is_large) c.groups = MANY_ELEMENTS / (c.batch * c.w[0].small * c.w[1].small) + 1;
  return c;
}

static const char *list(char *text, long long a, long long b) {
  snprintf(text, 64, "[%lld, %lld]", a, b);
  return text;
}

static const char *side(char *text, const Case *c, int64_t channels, bool is_large) {
  const long long rows = is_large ? c->w[0].large : c->w[0].small, columns = is_large ? c->w[1].large : c->w[1].small;
  if (c->is_channels_last)
    snprintf(text, 64, "[%lld, %lld, %lld, %lld]", (long long)c->batch, rows, columns, (long long)channels);
  else snprintf(text, 64, "[%lld, %lld, %lld, %lld]", (long long)c->batch, (long long)channels, rows, columns);
  return text;
}

typedef struct Form { // of an operator: %s for the texts of `write_graph`
  const char *name, *inputs, *attributes;
  bool is_convolution, is_dilated;
} Form;

static const Form forms[] = {
    {"ConvolutionBackwardData", "small weights", "dst_shape", true, true},
    {"ConvTranspose", "small weights", NULL, true, true},
    {"Convolution", "large weights", NULL, true, true},
    {"AvgPool", "large", NULL, false, false},
    {"MaxPool", "large", NULL, false, true},
    {"AvgPoolBackward", "small", "src_shape", false, false},
    {"MaxPoolBackward", "large small", NULL, false, true},
};

static void add_inputs(char *text, const Form *f, const Case *c) {
  char shape[64];
  const int64_t nlarge = c->groups * c->nlarge, nsmall = f->is_convolution ? c->groups * c->nsmall : nlarge;
  if (strstr(f->inputs, "large"))
    sprintf(text + strlen(text), "- {name: large, type: f64, shape: %s}\n", side(shape, c, nlarge, true));
  if (strstr(f->inputs, "small"))
    sprintf(text + strlen(text), "- {name: small, type: f64, shape: %s}\n", side(shape, c, nsmall, false));
  if (strstr(f->inputs, "weights"))
    sprintf(text + strlen(text), "- {name: weights, type: f64, shape: [%lld, %lld, %lld, %lld]}\n", (long long)nsmall,
            (long long)c->nlarge, (long long)c->w[0].kernel, (long long)c->w[1].kernel);
}

static void add_attributes(char *text, const Form *f, const Case *c, bool excludes) {
  const RandomWindow *a = &c->w[0], *b = &c->w[1];
  char pair[64];
  sprintf(text + strlen(text), "data_format: %s, strides: %s", c->is_channels_last ? "NXC" : "NCX",
          list(pair, a->stride, b->stride));
  sprintf(text + strlen(text), ", pads_begin: %s", list(pair, a->pad_begin, b->pad_begin));
  sprintf(text + strlen(text), ", pads_end: %s", list(pair, a->pad_end, b->pad_end));
  if (f->is_dilated) sprintf(text + strlen(text), ", dilations: %s", list(pair, a->dilation, b->dilation));
  if (!f->is_convolution) sprintf(text + strlen(text), ", kernel: %s", list(pair, a->kernel, b->kernel));
  else
    sprintf(text + strlen(text), ", groups: %lld, weights_format: %s", (long long)c->groups,
            strcmp(f->name, "ConvTranspose") == 0 ? "IOX" : "OIX");
  if (f->attributes)
    sprintf(text + strlen(text), ", %s: %s", f->attributes, side(pair, c, c->groups * c->nlarge, true));
  if (strncmp(f->name, "Avg", 3) == 0) sprintf(text + strlen(text), ", exclude_pad: %s", excludes ? "true" : "false");
}

// The result also goes through an elementwise node, so that pieces are of a fused region at times.
static void write_graph(char *text, const Form *f, const Case *c, Random *r) {
  const char *names = strcmp(f->inputs, "small weights") == 0   ? "small, weights"
                      : strcmp(f->inputs, "large weights") == 0 ? "large, weights"
                      : strcmp(f->inputs, "large small") == 0   ? "large, small"
                                                                : f->inputs;
  const bool is_fused = below(r, 2);
  sprintf(text, "format: ngrad/1\nname: pieces\ninputs:\n");
  add_inputs(text, f, c);
  sprintf(text + strlen(text), "nodes:\n- {op: %s, inputs: [%s], outputs: [y], attributes: {", f->name, names);
  add_attributes(text, f, c, below(r, 2));
  sprintf(text + strlen(text), "}}\n");
  if (is_fused) sprintf(text + strlen(text), "- {op: Abs, inputs: [y], outputs: [z]}\n");
  sprintf(text + strlen(text), "outputs: [%s]\n", is_fused ? "z" : "y");
}

static void fill(const LoopsCase *c, Random *r) {
  static const double unusual[] = {INFINITY, -INFINITY, NAN};
  for (size_t i = 0; i < c->graph->ninputs; i++) {
    const Tensor *t = &c->inputs[i];
    for (int64_t e = 0; e < tensor_nelems(t); e++) ((double *)t->data)[e] = (double)(below(r, 7) - 3);
    if (below(r, 3) == 0) ((double *)t->data)[below(r, tensor_nelems(t))] = unusual[below(r, 3)];
  }
}

static void must_have_sound_memory(const LoopsCase *c, Program *p) {
  Text why;
  int64_t nsteps = (int64_t)1 << 24;
  text_init(&why, &system_allocator);
  if (!pipeline_build_trees(p, false)) fail_msg("%s: %s", c->name, p->unsound);
  if (!memory_verify(p, &nsteps, &why)) fail_msg("%s: %s", c->name, text_string(&why));
  text_deinit(&why);
}

static bool is_right(const LoopsCase *c, const char *text) {
  Tensor got[1] = {{0}}, expected[1] = {{0}};
  const Target target = target_of_machine();
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Lowered l = loops_lower(c, &target, false, NULL);
  must_have_sound_memory(c, l.program);
  loops_new_outputs(c->graph, got);
  loops_new_outputs(c->graph, expected);
  const InterpreterOptions options = {.allocator = &system_allocator};
  assert_true(interpret(c->graph, c->inputs, expected, &options, &d));
  bool ok = loops_execute(c, l.program, got, NULL, "executed");
  for (int64_t i = 0; ok && i < tensor_nelems(got); i++) { // a mean's quotient is rounded, 1 / n or at once
    const double x = type_load(TYPE_F64, got->data, (size_t)i), y = type_load(TYPE_F64, expected->data, (size_t)i);
    ok = (isnan(x) && isnan(y)) || x == y || fabs(x - y) < 1e-12;
    if (!ok) print_error("%s: y[%lld] is %.17g, expected %.17g\n%s", c->name, (long long)i, x, y, text);
  }
  loops_free_outputs(c->graph, got);
  loops_free_outputs(c->graph, expected);
  lowered_free(&l);
  diagnostics_deinit(&d);
  return ok;
}

// False: the graph is invalid, such as AvgPool with a window that is all padding.
static bool try_graph(uint64_t seed, bool is_large, size_t *nfailures) {
  char text[TEXT], name[64];
  Random r = {seed};
  const Form *f = &forms[below(&r, (int64_t)(sizeof forms / sizeof *forms))];
  const Case c = random_case(&r, f->is_dilated, is_large);
  Diagnostics d;
  write_graph(text, f, &c, &r);
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "pieces.yaml", text, strlen(text), NULL, &d);
  diagnostics_deinit(&d);
  if (!g) return false;
  LoopsCase loops;
  snprintf(name, sizeof name, "seed %llu", (unsigned long long)seed);
  loops_case_init(&loops, name, g, seed);
  fill(&loops, &r);
  *nfailures += !is_right(&loops, text);
  loops_case_deinit(&loops);
  return true;
}

static void pieces_have_the_interpreters_numbers(void **state) {
  (void)state;
  const uint64_t count = number_of_graphs(COUNT), first = number_from("NGRAD_RANDOM_SEED", 1);
  size_t nfailures = 0, nvalid = 0;
  for (uint64_t i = 0; i < count && nfailures < 3; i++)
    nvalid += try_graph((first + i) * SPLITMIX_STEP, false, &nfailures);
  assert_int_equal(nfailures, 0);
  assert_true(nvalid * 2 >= count);
}

static size_t count_made(const LoopsCase *c) {
  const Target target = target_of_machine();
  Lowered l = loops_lower(c, &target, false, NULL);
  size_t n = 0;
  for (size_t i = 0; l.program && i < l.program->nkernels; i++)
    for (size_t loop = 0; loop < l.program->schedules[i]->nloops; loop++)
      n += l.program->schedules[i]->loops[loop].is_reused;
  lowered_free(&l);
  return n;
}

// A gradient by data whose pieces read the same windows: the first piece copies the windows, with the padding of all
// pieces.
static void pieces_share_a_copy(void **state) {
  (void)state;
  const Case c = {
      .w = {{5, 2, 1, 2, 2, 12, 6}, {5, 2, 1, 1, 2, 41, 20}}, .batch = 2, .groups = 1, .nlarge = 3, .nsmall = 4};
  for (uint64_t seed = 1; seed < 5; seed++) {
    char text[TEXT];
    Random r = {seed};
    Diagnostics d;
    write_graph(text, &forms[0], &c, &r);
    diagnostics_init(&d, &system_allocator);
    Graph *g = yaml_read(&system_allocator, "shared.yaml", text, strlen(text), NULL, &d);
    diagnostics_deinit(&d);
    assert_non_null(g);
    LoopsCase loops;
    loops_case_init(&loops, "shared", g, seed);
    fill(&loops, &r);
    assert_int_equal(count_made(&loops), 3);
    assert_true(is_right(&loops, text));
    loops_case_deinit(&loops);
  }
}

// With borders, 64 residues would be too many pieces. Then they are cut without borders.
static void many_residues_have_a_piece_each(void **state) {
  (void)state;
  const Case c = {.w = {{9, 8, 1, 0, 0, 41, 5}, {9, 8, 1, 0, 0, 41, 5}},
                  .is_channels_last = true,
                  .batch = 1,
                  .groups = 40,
                  .nlarge = 1,
                  .nsmall = 1};
  char text[TEXT];
  Random r = {1};
  Diagnostics d;
  const Target target = target_of_machine();
  write_graph(text, &forms[5], &c, &r);
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "residues.yaml", text, strlen(text), NULL, &d);
  diagnostics_deinit(&d);
  assert_non_null(g);
  LoopsCase loops;
  loops_case_init(&loops, "residues", g, 1);
  fill(&loops, &r);
  Lowered l = loops_lower(&loops, &target, false, NULL);
  assert_non_null(l.program);
  if (l.program) assert_int_equal(l.program->nkernels, 64);
  lowered_free(&l);
  assert_true(is_right(&loops, text));
  loops_case_deinit(&loops);
}

static void windows_at_borders_have_the_interpreters_numbers(void **state) {
  (void)state;
  const uint64_t first = number_from("NGRAD_RANDOM_SEED", 1);
  size_t nfailures = 0, nvalid = 0;
  for (uint64_t i = 0; i < FEW && nfailures < 3; i++)
    nvalid += try_graph((first + i) * SPLITMIX_STEP, true, &nfailures);
  assert_int_equal(nfailures, 0);
  assert_true(nvalid * 2 >= FEW);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(windows_at_borders_have_the_interpreters_numbers),
      cmocka_unit_test(pieces_have_the_interpreters_numbers),
      cmocka_unit_test(pieces_share_a_copy),
      cmocka_unit_test(many_residues_have_a_piece_each),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
