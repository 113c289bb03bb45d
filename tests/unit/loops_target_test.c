// Bits depend on the graph alone: loop trees for very different targets give the same bits, and so do schedules with
// any value of the keys and costs that are declared not to change sums.
//
// NGRAD_RANDOM_GRAPHS=1000 sets the number of random graphs, NGRAD_RANDOM_SEED=7 the first seed.
#include "passes/costs/costs.h"
#include "tests/unit/loops_case.h"

enum { COUNT = 400 };
#define KIB ((int64_t)1 << 10)
#define MIB ((int64_t)1 << 20)
#define GIB ((int64_t)1 << 30)

// From caches that hold next to nothing to caches that hold everything.
static const Target targets[] = {
    {"scalar", 8, 512, KIB, 4 * KIB, 1},
    {"scalar", 32, MIB, 64 * MIB, GIB, 64},
    {"scalar", 32, 4 * KIB, 16 * KIB, 256 * KIB, 64},
    {"scalar", 4, 256 * KIB, MIB, 8 * MIB, 3},
};
enum { NTARGETS = sizeof targets / sizeof *targets };

static const struct Setting {
  ScheduleKey key;
  int64_t value;
} settings[] = {
    {SCHEDULE_ROWS, 1},   {SCHEDULE_ROWS, 3},   {SCHEDULE_ROWS, 8},     {SCHEDULE_PREFETCH, 0}, {SCHEDULE_PREFETCH, 5},
    {SCHEDULE_AHEAD, 0},  {SCHEDULE_AHEAD, 64}, {SCHEDULE_SEPARATE, 0}, {SCHEDULE_SEPARATE, 1}, {SCHEDULE_STREAM, 0},
    {SCHEDULE_STREAM, 1}, {SCHEDULE_MASKS, 0},  {SCHEDULE_MASKS, 1},
};
enum { NSETTINGS = sizeof settings / sizeof *settings };

static uint64_t text_hash(const Program *p) {
  uint64_t hash = 0xcbf29ce484222325U; // FNV-1a
  Text text;
  text_init(&text, &system_allocator);
  program_print(p, &text);
  for (const char *c = text_string(&text); *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001b3U;
  text_deinit(&text);
  return hash;
}

typedef struct Tried { // a graph that is executed in several ways
  LoopsCase c;
  uint64_t seed;
  Tensor expected[MOST_TENSORS]; // outputs of the first way
  uint64_t hash;                 // of its program
  bool is_scheduled_otherwise;   // in a later way
} Tried;

// Executes the graph with this target and overrides. The first call saves the outputs, later ones compare with them.
static bool execute(Tried *t, const Target *target, const ScheduleOverrides *overrides, const char *how) {
  Tensor got[MOST_TENSORS];
  const LoopsCase *c = &t->c;
  const bool is_first = !t->expected[0].data;
  Lowered l = loops_lower(c, target, false, overrides);
  if (is_first) t->hash = text_hash(l.program);
  t->is_scheduled_otherwise |= text_hash(l.program) != t->hash;
  loops_new_outputs(c->graph, got);
  bool ok = loops_execute(c, l.program, got, NULL, how);
  if (ok && !is_first) ok = loops_have_same_bits(c, got, t->expected, how);
  lowered_free(&l);
  if (is_first) memcpy(t->expected, got, c->graph->noutputs * sizeof *got);
  else loops_free_outputs(c->graph, got);
  return ok;
}

static bool has_same_bits_for_targets(Tried *t) {
  bool ok = true;
  for (int i = 0; ok && i < NTARGETS; i++) {
    char how[64];
    snprintf(how, sizeof how, "on target %d", i);
    ok = execute(t, &targets[i], NULL, how);
  }
  return ok;
}

// With costs that decide no order at their least and most: a few of them with each graph.
static bool has_same_bits_for_costs(Tried *t) {
  enum { PART = 12 }; // of the costs, with a graph
  Costs costs = usual_costs;
  bool ok = true;
  t->c.costs = &costs;
  for (size_t i = 0; ok && i < ncosts; i++) {
    const CostInfo *info = &cost_table[i];
    int64_t *cost = (int64_t *)((char *)&costs + info->offset);
    if (strcmp(info->decides, "schedule") != 0 || (i + t->seed) % PART) continue;
    *cost = t->seed / PART % 2 ? info->most : info->least;
    ok = execute(t, &targets[NTARGETS - 1], NULL, info->name);
    *cost = info->value;
  }
  t->c.costs = NULL;
  return ok;
}

static bool has_same_bits_for_settings(Tried *t) {
  bool ok = execute(t, &targets[NTARGETS - 1], NULL, "as it is");
  for (size_t i = 0; ok && i < NSETTINGS; i++) {
    char how[64];
    ScheduleOverrides overrides = {0};
    overrides.key[settings[i].key].is_set = true;
    overrides.key[settings[i].key].value = settings[i].value;
    snprintf(how, sizeof how, "with %s=%lld", schedule_keys[settings[i].key].name, (long long)settings[i].value);
    ok = execute(t, &targets[NTARGETS - 1], &overrides, how);
  }
  return ok && has_same_bits_for_costs(t);
}

static void for_random_graphs(bool (*has_same_bits)(Tried *t), uint64_t nseeds) {
  const uint64_t count = number_of_graphs(nseeds);
  size_t nfailures = 0, notherwise = 0;
  for (RandomSeeds s = random_seeds(count); random_next_seed(&s);) {
    const uint64_t seed = s.seed;
    const RandomGraphOptions options = {
        .most_nodes = 10, .most_nelems = seed % 8 ? 20000 : 200000, .is_focused = seed % 4 != 1};
    Tried t = {.seed = seed};
    loops_case_init_random(&t.c, seed, &options);
    if (!has_same_bits(&t)) {
      random_tell();
      nfailures++;
    }
    notherwise += t.is_scheduled_otherwise;
    loops_free_outputs(t.c.graph, t.expected);
    loops_case_deinit(&t.c);
  }
  assert_int_equal(nfailures, 0);
  assert_true(notherwise >= count / 3); // else this tests too little
}

static void bits_do_not_depend_on_the_target(void **state) {
  (void)state;
  for_random_graphs(has_same_bits_for_targets, COUNT);
}

static bool model_has_same_bits(const LoopsCase *c) {
  Tried t = {.c = *c};
  const bool ok = has_same_bits_for_targets(&t);
  loops_free_outputs(c->graph, t.expected);
  return ok;
}

static void bits_of_models_do_not_depend_on_the_target(void **state) {
  (void)state;
  enum { MOST_NELEMS = 2000000 };
  assert_true(for_each_file("models/*.yaml", MOST_NELEMS, model_has_same_bits) >= 10);
  assert_true(for_each_file("tests/golden/*/*.yaml", MOST_NELEMS, model_has_same_bits) >= 30);
}

// With a first output that starts within a cache line, so that peeling and streaming begin elsewhere.
static bool has_same_bits_elsewhere(const Tried *t) {
  enum { LINE = 64, AT = 12 };
  const LoopsCase *c = &t->c;
  Tensor got[MOST_TENSORS] = {{0}};
  loops_new_outputs(c->graph, got);
  void *aligned = got[0].data;
  unsigned char *block = aligned_alloc(LINE, (tensor_nbytes(&got[0]) / LINE + 2) * LINE);
  assert_non_null(block);
  got[0].data = block + AT;
  Lowered l = loops_lower(c, &targets[0], false, NULL);
  const bool ok = loops_execute(c, l.program, got, NULL, "within a line") &&
                  loops_have_same_bits(c, got, t->expected, "within a line");
  lowered_free(&l);
  free(block);
  got[0].data = aligned;
  loops_free_outputs(c->graph, got);
  return ok;
}

// Without the first output, whose pointers are then NULL.
static bool has_same_bits_without_first(const Tried *t) {
  const LoopsCase *c = &t->c;
  Tensor got[MOST_TENSORS] = {{0}};
  if (c->graph->noutputs < 2) return true;
  loops_new_outputs(c->graph, got);
  void *first = got[0].data;
  got[0].data = NULL;
  Lowered l = loops_lower(c, &targets[0], false, NULL);
  const bool ok = pipeline_build_trees(l.program, true) &&
                  loops_execute(c, l.program, got, NULL, "without the first") &&
                  loops_have_same_bits(c, got, t->expected, "without the first");
  lowered_free(&l);
  got[0].data = first;
  loops_free_outputs(c->graph, got);
  return ok;
}

static bool large_tensor_has_same_bits(const LoopsCase *c) {
  Tried for_targets = {.c = *c}, for_settings = {.c = *c};
  const bool ok = has_same_bits_for_targets(&for_targets) && has_same_bits_elsewhere(&for_targets) &&
                  has_same_bits_without_first(&for_targets) && has_same_bits_for_settings(&for_settings);
  loops_free_outputs(c->graph, for_targets.expected);
  loops_free_outputs(c->graph, for_settings.expected);
  return ok;
}

static void bits_of_large_tensors_do_not_depend_on_the_target(void **state) {
  (void)state;
  for_each_large_graph(large_tensor_has_same_bits);
}

// Gradients by weights of single channels: with many registers all taps are rows of a micro-kernel, with few registers
// only the taps along one axis.
static void bits_of_taps_do_not_depend_on_the_target(void **state) {
  static const struct {
    int images, channels, extent[2], stride, pad, dilation, taps[2], made[2];
  } cases[] = {{2, 33, {7, 9}, 1, 1, 1, {3, 3}, {7, 9}},   {1, 64, {9, 8}, 2, 1, 1, {3, 3}, {5, 4}},
               {3, 16, {1, 1}, 1, 1, 1, {3, 3}, {1, 1}},   {0, 32, {5, 5}, 1, 1, 1, {3, 3}, {5, 5}},
               {2, 40, {12, 7}, 1, 2, 2, {2, 4}, {14, 5}}, {9, 17, {40, 6}, 1, 0, 1, {3, 2}, {38, 5}}};
  (void)state;
  for (size_t i = 0; i < 2 * (sizeof cases / sizeof *cases); i++) {
    const int n = cases[i / 2].images, c = cases[i / 2].channels, *x = cases[i / 2].extent, *y = cases[i / 2].made;
    const int stride = cases[i / 2].stride, pad = cases[i / 2].pad, dilation = cases[i / 2].dilation;
    const int *k = cases[i / 2].taps;
    const bool is_nxc = i % 2;
    char text[1024], shape[3][64];
    for (int t = 0; t < 2; t++) {
      const int *p = t ? y : x;
      if (is_nxc) snprintf(shape[t], sizeof shape[t], "[%d, %d, %d, %d]", n, p[0], p[1], c);
      else snprintf(shape[t], sizeof shape[t], "[%d, %d, %d, %d]", n, c, p[0], p[1]);
    }
    if (is_nxc) snprintf(shape[2], sizeof shape[2], "[%d, %d, 1, %d]", k[0], k[1], c);
    else snprintf(shape[2], sizeof shape[2], "[%d, 1, %d, %d]", c, k[0], k[1]);
    snprintf(text, sizeof text,
             "format: ngrad/1\nname: taps\ninputs:\n  - {name: x, type: f32, shape: %s}\n"
             "  - {name: dy, type: f32, shape: %s}\nnodes:\n"
             "  - {op: ConvolutionBackwardWeights, inputs: [x, dy], outputs: [dw], attributes: {strides: [%d, %d], "
             "pads_begin: [%d, %d], pads_end: [%d, %d], dilations: [%d, %d], groups: %d, data_format: %s, "
             "weights_format: %s, weights_shape: %s}}\noutputs: [dw]\n",
             shape[0], shape[1], stride, stride, pad, pad, pad, pad, dilation, dilation, c, is_nxc ? "NXC" : "NCX",
             is_nxc ? "XIO" : "OIX", shape[2]);
    Diagnostics d;
    LoopsCase loops;
    diagnostics_init(&d, &system_allocator);
    Graph *g = yaml_read(&system_allocator, "taps.yaml", text, strlen(text), NULL, &d);
    diagnostics_deinit(&d);
    if (!g) {
      fail_msg("%s", text);
      return;
    }
    loops_case_init(&loops, "taps", g, i);
    assert_true(model_has_same_bits(&loops));
    loops_case_deinit(&loops);
  }
}

static void every_setting_that_changes_no_sums_is_tried(void **state) {
  (void)state;
  bool is_tried[SCHEDULE_KEYS] = {false};
  for (size_t i = 0; i < NSETTINGS; i++) is_tried[settings[i].key] = true;
  for (int key = 0; key < SCHEDULE_KEYS; key++) assert_true(is_tried[key] != schedule_keys[key].changes_sums);
}

static void settings_that_change_no_sums_change_no_bits(void **state) {
  (void)state;
  for_random_graphs(has_same_bits_for_settings, COUNT / 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bits_do_not_depend_on_the_target),
      cmocka_unit_test(bits_of_models_do_not_depend_on_the_target),
      cmocka_unit_test(bits_of_large_tensors_do_not_depend_on_the_target),
      cmocka_unit_test(bits_of_taps_do_not_depend_on_the_target),
      cmocka_unit_test(every_setting_that_changes_no_sums_is_tried),
      cmocka_unit_test(settings_that_change_no_sums_change_no_bits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
