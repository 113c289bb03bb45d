// Writes graphs as ONNX models, reads them back, and compares: the interpreter's results of both must be the same on
// the same data. tests/noise.h is the measure, as a model may compute in other steps.
//
// usage: ngrad_convert_cases [--random FIRST COUNT] [--out DIR] [GRAPH...]
//
// Prints a line a graph: "ok NAME", "left out NAME" (no random data are valid, or an item of a list is an extent that
// no input has), or "FAILED NAME: why", then "own OPERATORS" if the model has nodes of the domain "ngrad". With --out,
// another system can run the case: DIR/NAME has model.onnx, in_I and out_O (raw, row-major; results as f64), mask_O (0:
// the element depends on roundings), and case.json.
#include "frontend/api/ngrad.h"
#include "frontend/yaml/yaml.h"
#include "tests/noise.h"

#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NOISES = 5, MOST_VALUES = 256, MOST_NELEMS = 1 << 22, PATH_BYTES = 4096 };

typedef struct Case {
  const char *name; // of the folder and in messages
  Graph *graph;     // bound
  ng_context *ctx;
  Tensor inputs[MOST_VALUES], expected[MOST_VALUES], got[MOST_VALUES];
  const double *noisy[NOISES][MOST_VALUES]; // by output
  double tolerance[MOST_VALUES];
  Arena arena;
  Tensor own[MOST_VALUES]; // the inputs in the graph's layouts
  bool is_refused;
  char operators[512], why[512];
} Case;

static bool fail(Case *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool fail(Case *c, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(c->why, sizeof c->why, format, args);
  va_end(args);
  for (char *p = c->why; *p; p++)
    if (*p == '\n') *p = ' ';
  return false;
}

static bool fail_by_library(Case *c, const char *what) {
  return fail(c, "%s: %s", what, ng_messages_text(c->ctx, 0));
}

// Tensors, row-major

static bool take_tensor(Case *c, const Value *v, Tensor *t) {
  *t = tensor_like(v);
  t->layout = (Layout){{0}};
  t->data = arena_alloc(&c->arena, tensor_nbytes(t) + 64);
  return t->data || fail(c, "out of memory");
}

static ng_tensor api_tensor(const Tensor *t) {
  ng_tensor out = {.type = (ng_type)t->type, .rank = t->rank, .data = t->data};
  memcpy(out.order, t->layout.axis, sizeof out.order);
  memcpy(out.extent, t->extent, sizeof out.extent);
  return out;
}

static bool is_stable(const Case *c, size_t k, size_t i, double expected) {
  for (int n = 0; n < NOISES; n++) {
    const double noisy = c->noisy[n][k][i];
    if (isfinite(noisy) != isfinite(expected) || isnan(noisy) != isnan(expected)) return false;
    // integers and booleans are equal, or decided by a rounding
    if (!type_is_float(c->expected[k].type) && noisy != expected) return false;
  }
  return true;
}

// Results with every value rounded to its type, as a model's values are: the first of the noisy ones.
static bool round_values(Case *c) {
  const InterpreterOptions options = {.allocator = &system_allocator, .rounds_values = true};
  Tensor rounded[MOST_VALUES];
  Diagnostics d;
  bool ok = true;
  for (size_t k = 0; ok && k < c->graph->noutputs; k++) ok = take_tensor(c, c->graph->outputs[k], &rounded[k]);
  diagnostics_init(&d, &system_allocator);
  ok = ok && interpret(c->graph, c->inputs, rounded, &options, &d);
  diagnostics_deinit(&d);
  for (size_t k = 0; ok && k < c->graph->noutputs; k++) {
    const size_t n = (size_t)tensor_nelems(&rounded[k]);
    double *numbers = ARENA_ARRAY(&c->arena, double, n + 1);
    for (size_t i = 0; numbers && i < n; i++) numbers[i] = type_load(rounded[k].type, rounded[k].data, i);
    c->noisy[0][k] = numbers;
    ok = numbers != NULL;
  }
  return ok;
}

// Whether a value has no elements: ONNX does not say what its mean is, or its greatest element.
static bool has_empty(const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (shape_nelems(&g->values[i]->shape) == 0) return true;
  return false;
}

// Whether the interpreter has limits where ONNX's operators give NaN: at infinite elements, and beside NaN in Max, Min
// and Clip.
static bool may_be_nan(const Graph *g) {
  static const OperatorId ids[] = {OP_Maximum,      OP_Minimum, OP_Clamp, OP_GELU,
                                   OP_GELUBackward, OP_Swish,   OP_Mish,  OP_MishBackward};
  for (size_t i = 0; i < g->nnodes; i++)
    for (size_t k = 0; k < sizeof ids / sizeof *ids; k++)
      if (g->nodes[i]->op->id == ids[k]) return true;
  return false;
}

// Whether an index is a constant: random ones may be wrong.
static bool has_constant_index(const Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++)
    for (uint32_t k = 0; k < g->nodes[i]->ninputs; k++) {
      const Value *v = g->nodes[i]->inputs[k];
      if (v && v->constant && node_indexed_extent(g->nodes[i], k) > 0) return true;
    }
  return false;
}

// The inputs' data as ngrad run --random makes it, the interpreter's results, and how far roundings may move them.
// Sets is_refused if no data is valid, such as an index of an axis without elements.
static bool take_data(Case *c, ng_graph *g) {
  Graph *graph = c->graph;
  ng_tensor inputs[MOST_VALUES];
  bool ok = true;
  const size_t nstates = ng_graph_state_count(g), first = graph->ninputs - nstates;
  for (size_t i = 0; ok && i < graph->ninputs; i++) {
    ng_tensor t;
    const ng_status status = i < first ? ng_tensor_random(g, i, 1, &t) : ng_tensor_init(g, i - first, 1, &t);
    if (status != NG_OK) return fail_by_library(c, "data");
    Tensor given = tensor_like(graph->inputs[i]);
    given.data = t.data;
    ok = take_tensor(c, graph->inputs[i], &c->inputs[i]) && take_tensor(c, graph->inputs[i], &c->own[i]);
    c->own[i].layout = given.layout;
    if (ok) tensor_copy(&given, &c->inputs[i]);
    if (ok) tensor_copy(&given, &c->own[i]);
    ng_tensor_free(c->ctx, &t);
    inputs[i] = api_tensor(&c->own[i]);
  }
  c->is_refused = ok && (has_constant_index(graph) || ng_graph_check_indices(g, inputs) != NG_OK);
  for (size_t i = 0; i < graph->ninputs; i++) graph->inputs[i]->layout = (Layout){{0}};
  for (size_t i = 0; i < graph->noutputs; i++) graph->outputs[i]->layout = (Layout){{0}};
  for (size_t i = 0; ok && i < graph->noutputs; i++)
    ok = take_tensor(c, graph->outputs[i], &c->expected[i]) && take_tensor(c, graph->outputs[i], &c->got[i]);
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  ok = ok && interpret(graph, c->inputs, c->expected, &(InterpreterOptions){.allocator = &system_allocator}, &d);
  diagnostics_deinit(&d);
  ok = ok && round_values(c);
  for (int n = 1; ok && n < NOISES; n++) {
    Noise noise = {.graph = graph, .inputs = c->inputs, .arena = &c->arena, .random = (uint64_t)n + 1, .strength = 1};
    ok = noise_run(&noise, c->noisy[n]);
  }
  if (!ok) return *c->why ? false : fail(c, "the interpreter fails");
  for (size_t k = 0; k < graph->noutputs; k++) {
    const Tensor *e = &c->expected[k];
    double sums[NOISES] = {0}, most = 0, norm = 0;
    for (int64_t i = 0; i < tensor_nelems(e); i++) {
      const double x = type_load(e->type, e->data, (size_t)i);
      if (!isfinite(x) || !is_stable(c, k, (size_t)i, x)) continue;
      norm += x * x;
      for (int n = 0; n < NOISES; n++) sums[n] += (c->noisy[n][k][i] - x) * (c->noisy[n][k][i] - x);
    }
    for (int n = 0; n < NOISES; n++) most = fmax(most, sums[n]);
    c->tolerance[k] = 8 * sqrt(most) + 4 * noise_rounding(e->type) * sqrt(norm) + noise_smallest(e->type);
  }
  return true;
}

static bool compare(Case *c, size_t k) {
  const Tensor *e = &c->expected[k];
  double apart = 0;
  for (int64_t i = 0; i < tensor_nelems(e); i++) {
    const double x = type_load(e->type, e->data, (size_t)i), y = type_load(e->type, c->got[k].data, (size_t)i);
    if (!is_stable(c, k, (size_t)i, x) || x == y || (isnan(x) && isnan(y))) continue;
    if (isnan(y) && may_be_nan(c->graph)) continue;
    if (!isfinite(x) || !isfinite(y) || !type_is_float(e->type))
      return fail(c, "%s[%lld] is %g, expected %g", c->graph->outputs[k]->name, (long long)i, y, x);
    apart += (x - y) * (x - y);
  }
  return sqrt(apart) <= c->tolerance[k] ||
         fail(c, "%s is %g away, expected at most %g", c->graph->outputs[k]->name, sqrt(apart), c->tolerance[k]);
}

static bool read_back(Case *c, const char *model, size_t nbytes) {
  ng_tensor inputs[MOST_VALUES], outputs[MOST_VALUES];
  ng_messages_clear(c->ctx);
  ng_graph *g = ng_graph_read(c->ctx, "model.onnx", model, nbytes, NULL);
  if (!g || ng_graph_bind(g) != NG_OK) return ng_graph_free(g), fail_by_library(c, "the model is refused");
  bool ok = ng_graph_input_count(g) == c->graph->ninputs && ng_graph_output_count(g) == c->graph->noutputs;
  if (!ok) fail(c, "the model has other inputs or outputs");
  for (size_t i = 0; ok && i < c->graph->ninputs; i++) inputs[i] = api_tensor(&c->inputs[i]);
  for (size_t i = 0; ok && i < c->graph->noutputs; i++) outputs[i] = api_tensor(&c->got[i]);
  if (ok && ng_interpret(g, inputs, outputs, 0) != NG_OK) ok = fail_by_library(c, "the model does not run");
  ng_graph_free(g);
  for (size_t k = 0; ok && k < c->graph->noutputs; k++) ok = compare(c, k);
  return ok;
}

// Files of a case

static void write_file(const char *folder, const char *name, size_t number, const void *bytes, size_t nbytes) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, number == SIZE_MAX ? "%s/%s" : "%s/%s%zu", folder, name, number);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(bytes, 1, nbytes, file) != nbytes || fclose(file) != 0) {
    perror(path);
    exit(2);
  }
}

static void describe(Text *t, const Tensor *tensors, size_t count, const double *tolerance, bool may_be_nan) {
  for (size_t i = 0; i < count; i++) {
    text_format(t, "%s{\"type\": \"%s\", \"dims\": [", i ? ", " : "", type_name(tensors[i].type));
    for (int k = 0; k < tensors[i].rank; k++) text_format(t, "%s%lld", k ? ", " : "", (long long)tensors[i].extent[k]);
    text_format(t, "]");
    if (tolerance)
      text_format(t, ", \"tolerance\": %.17g, \"may_be_nan\": %s", fmin(tolerance[i], 1e300),
                  may_be_nan ? "true" : "false");
    text_format(t, "}");
  }
}

static void write_case(const Case *c, const char *out, const char *model, size_t nbytes) {
  char folder[PATH_BYTES];
  Text t;
  snprintf(folder, sizeof folder, "%s/%s", out, c->name);
  mkdir(folder, 0777);
  text_init(&t, &system_allocator);
  text_format(&t, "{\"has_empty\": %s, ", has_empty(c->graph) ? "true" : "false");
  text_format(&t, "\"is_own\": %s, \"inputs\": [", *c->operators ? "true" : "false");
  describe(&t, c->inputs, c->graph->ninputs, NULL, false);
  text_format(&t, "], \"outputs\": [");
  describe(&t, c->expected, c->graph->noutputs, c->tolerance, may_be_nan(c->graph));
  text_format(&t, "]}\n");
  write_file(folder, "case.json", SIZE_MAX, text_string(&t), t.nbytes);
  write_file(folder, "model.onnx", SIZE_MAX, model, nbytes);
  for (size_t i = 0; i < c->graph->ninputs; i++)
    write_file(folder, "in_", i, c->inputs[i].data, tensor_nbytes(&c->inputs[i]));
  for (size_t k = 0; k < c->graph->noutputs; k++) {
    const size_t n = (size_t)tensor_nelems(&c->expected[k]);
    double *numbers = malloc(n * sizeof *numbers + 1);
    char *mask = malloc(n + 1);
    if (!numbers || !mask) abort();
    for (size_t i = 0; i < n; i++) {
      numbers[i] = type_load(c->expected[k].type, c->expected[k].data, i);
      mask[i] = is_stable(c, k, i, numbers[i]);
    }
    write_file(folder, "out_", k, numbers, n * sizeof *numbers);
    write_file(folder, "mask_", k, mask, n);
    free(numbers);
    free(mask);
  }
  text_deinit(&t);
}

// One graph

static void take_own(Case *c) {
  const char *text = ng_messages_text(c->ctx, 0), *at = strstr(text, "no form of ");
  if (!at) return;
  at += strlen("no form of ");
  snprintf(c->operators, sizeof c->operators, "%.*s", (int)strcspn(at, ":"), at);
}

static bool is_small(const Graph *g) {
  int64_t nelems = 0;
  for (size_t i = 0; i < g->nvalues; i++) {
    const int64_t own = shape_nelems(&g->values[i]->shape);
    if (own < 0 || own > MOST_NELEMS) return false;
    nelems += own;
  }
  return nelems < MOST_NELEMS && g->noutputs < MOST_VALUES && g->ninputs < MOST_VALUES;
}

static bool try_graph(Case *c, const char *text, size_t nbytes, const char *folder, const char *out) {
  size_t model_nbytes;
  ng_graph *g = ng_graph_read(c->ctx, "graph.yaml", text, nbytes, folder);
  if (!g) return fail_by_library(c, "read");
  ng_messages_clear(c->ctx);
  char *model = ng_graph_onnx(g, &model_nbytes);
  c->is_refused = !model && strstr(ng_messages_text(c->ctx, 0), "which ONNX would read there");
  if (c->is_refused) return ng_graph_free(g), true;
  bool ok = model && ng_graph_bind(g) == NG_OK;
  if (!ok) fail_by_library(c, "convert");
  take_own(c);
  ok = ok && take_data(c, g);
  if (ok && c->is_refused) out = NULL;
  if (ok && out) write_case(c, out, model, model_nbytes);
  ok = ok && (c->is_refused || read_back(c, model, model_nbytes));
  ng_text_free(c->ctx, model);
  ng_graph_free(g);
  return ok;
}

// False: the graph's extents have no numbers, or it is too large for this test.
static bool bind(Graph *g) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  const bool ok = graph_bind_dims(g, &d) && graph_infer(g, &d) && graph_verify(g, &d) && is_small(g);
  diagnostics_deinit(&d);
  if (ok) graph_find_ranges(g);
  return ok;
}

// Binds a copy; NULL: it has no numbers.
static Graph *bound_copy(const Graph *g) {
  Graph *copy = graph_clone(g);
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  const bool ok = copy && graph_bind_dims(copy, &d) && graph_infer(copy, &d) && graph_verify(copy, &d);
  diagnostics_deinit(&d);
  if (ok) return copy;
  graph_free(copy);
  return NULL;
}

// Gives named extents the number 2 where the graph allows it, one after the other, until it is small.
static void shrink(Graph *g) {
  for (size_t i = 0; i < g->ndims; i++) {
    const int64_t before = g->dims[i]->value;
    Graph *copy = bound_copy(g);
    const bool is_enough = copy && is_small(copy);
    graph_free(copy);
    if (is_enough) return;
    g->dims[i]->value = 2;
    copy = bound_copy(g);
    if (!copy) g->dims[i]->value = before;
    graph_free(copy);
  }
}

// Makes inputs and outputs of bf16 f32, as many systems lack arrays of it.
static bool widen(Graph *g) {
  Diagnostics d;
  bool ok = true;
  diagnostics_init(&d, &system_allocator);
  for (size_t i = 0; ok && i < g->ninputs; i++) {
    Value *v = g->inputs[i];
    if (v->type != TYPE_BF16) continue;
    const char *name = graph_fresh_name(g, "wide");
    Value *wide = name ? graph_add_input(g, name, TYPE_F32, &v->shape) : NULL;
    Node *node = wide ? graph_add_node(g, &operators[OP_TypeCast], NULL, 1, 1) : NULL;
    ok = node != NULL;
    if (!ok) break;
    g->inputs[i] = g->inputs[--g->ninputs];
    v->is_input = false;
    node_set_input(node, 0, wide);
    node_set_output(node, 0, v);
  }
  const size_t count = g->noutputs;
  for (size_t i = 0; ok && i < count; i++) {
    Value *v = g->outputs[i];
    if (v->type != TYPE_BF16) continue;
    const char *name = graph_fresh_name(g, "wide");
    Value *wide = name ? graph_add_value(g, name, TYPE_F32, &v->shape) : NULL;
    Node *node = wide ? graph_add_node(g, &operators[OP_TypeCast], NULL, 1, 1) : NULL;
    ok = node && graph_add_output(g, wide);
    if (!ok) break;
    g->outputs[i] = g->outputs[--g->noutputs];
    wide->first_output = (uint32_t)i;
    node_set_input(node, 0, v);
    node_set_output(node, 0, wide);
  }
  for (size_t i = 0; i < g->nvalues; i++) g->values[i]->is_output = false;
  for (size_t i = g->noutputs; i-- > 0;) {
    g->outputs[i]->is_output = true;
    g->outputs[i]->first_output = (uint32_t)i;
  }
  ok = ok && graph_sort(g, &d) && graph_infer(g, &d) && graph_verify(g, &d);
  diagnostics_deinit(&d);
  return ok;
}

static bool run_case(const char *name, Graph *graph, const char *folder, const char *out) {
  static Case c;
  Text text;
  c = (Case){.name = name, .graph = graph, .ctx = ng_context_new(NULL)};
  text_init(&text, &system_allocator);
  bool ok = !out || graph->nstates || widen(graph);
  if (!ok) printf("FAILED %s: no inputs of f32\n", name);
  shrink(graph);
  yaml_print(graph, &text);
  arena_init(&c.arena, &system_allocator);
  if (ok && bind(graph)) {
    ok = try_graph(&c, text_string(&text), text.nbytes, folder, out);
    if (c.is_refused) printf("left out %s\n", name);
    else printf(ok ? "ok %s%s\n" : "FAILED %s: %s\n", name, ok ? "" : c.why);
    if (*c.operators) printf("own %s\n", c.operators);
    fflush(stdout);
  }
  arena_deinit(&c.arena);
  ng_context_free(c.ctx);
  text_deinit(&text);
  graph_free(graph);
  return ok;
}

static bool run_file(const char *path, const char *out) {
  const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
  char name[PATH_BYTES], folder[PATH_BYTES];
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *graph = yaml_read_file(&system_allocator, path, NULL, &d);
  diagnostics_deinit(&d);
  snprintf(name, sizeof name, "%.*s", (int)strcspn(base, "."), base);
  snprintf(folder, sizeof folder, "%.*s", (int)(base - path), path);
  return !graph || run_case(name, graph, folder, out); // wrong graphs are tested elsewhere
}

static bool run_random(uint64_t seed, const char *out) {
  static const RandomGraphOptions options = {.most_nodes = 12, .most_nelems = 20000};
  char name[64];
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *graph = random_graph(&system_allocator, seed, &options, &d);
  diagnostics_deinit(&d);
  snprintf(name, sizeof name, "random_%llu", (unsigned long long)seed);
  return graph && run_case(name, graph, NULL, out);
}

int main(int argc, char **argv) {
  const char *out = NULL;
  bool ok = true;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "--out") == 0 && i + 1 < argc) {
      out = argv[++i];
      mkdir(out, 0777);
    } else if (strcmp(argv[i], "--random") == 0 && i + 2 < argc) {
      const uint64_t first = strtoull(argv[i + 1], NULL, 10), count = strtoull(argv[i + 2], NULL, 10);
      for (uint64_t seed = first; seed < first + count; seed++) ok &= run_random(seed, out);
      i += 2;
    } else {
      ok &= run_file(argv[i], out);
    }
  }
  return !ok;
}
