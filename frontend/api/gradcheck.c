// Compares the gradient graph with finite differences of the graph, both interpreted with every floating-point type as
// f64, so that rounding hides no error.
//
// The differentiated function is the sum of all outputs with random weights. Central differences with steps that shrink
// fourfold are extrapolated to a step of zero (Ridders' method); the table entry that agrees best with its neighbours
// is the slope, if a much smaller step has nearly the same: steps over many jumps, as of a remainder, agree with each
// other, too. Differences are summed output element by output element, so that unchanged elements add no rounding
// error. An input element is skipped as a kink if the table does not converge, or if the slopes of the two sides do not
// approach each other as the step shrinks. Skipping depends on the graph alone, never on its gradient.
#include "backends/interpreter/interpreter.h"
#include "frontend/api/budget.h"
#include "frontend/api/gradient.h"
#include "frontend/api/random.h"
#include "ir/graph/init.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { MOST_STEPS = 6, LEAST_SAMPLES = 4, MOST_SAMPLES = 4096 };
static const double work = 2e8; // limit of computed elements for all inputs together; LEAST_SAMPLES may exceed it

typedef struct Check {
  ng_context *ctx;
  Arena scratch;
  Graph *forward, *backward; // in f64; forward's outputs: the weighted ones, then the saved values that backward reads
  GradientEnds ends;
  Tensor *inputs;    // of forward
  Tensor *outputs;   // of forward at the unchanged inputs
  Tensor *moved[2];  // of forward with one input element raised and lowered
  Tensor *weights;   // of the first nweighted outputs
  Tensor *sizes;     // magnitudes of the weighted outputs' elements, which exceed the elements where terms cancel
  Tensor *gradients; // parallel to backward's outputs
  size_t nweighted;
  bool is_too_large; // for the memory budget; the message has been added
} Check;

static bool out_of_memory(Check *c) {
  return error_out_of_memory(&c->ctx->diagnostics);
}

// Graphs in f64

static bool constant_as_f64(Graph *g, Value *v) {
  Constant *own = ARENA_NEW(&g->arena, Constant);
  size_t nelems = v->constant->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
  double *data = ARENA_ARRAY(&g->arena, double, nelems + 1);
  if (!own || !data) return false;
  for (size_t i = 0; i < nelems; i++) data[i] = type_load(v->type, v->constant->data, i);
  *own = (Constant){.data = data, .is_splat = v->constant->is_splat};
  v->constant = own;
  return true;
}

// If the data is not f64, numbers in attributes are rounded to f32, as the gradient graph has them.
static void round_attributes(Node *node) {
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    if (node->op->attributes[i].kind == ATTRIBUTE_F32 && node->inputs[0] && node->inputs[0]->type != TYPE_F64)
      node->attributes[i].f32 = (float)node->attributes[i].f32;
}

static bool graph_as_f64(Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++) round_attributes(g->nodes[i]);
  for (size_t i = 0; i < g->nvalues; i++) {
    Value *v = g->values[i];
    v->layout = (Layout){0};
    if (!type_is_float(v->type)) continue;
    if (v->constant && !constant_as_f64(g, v)) return false;
    v->type = TYPE_F64;
  }
  return true;
}

// Replaces the graph's outputs: first those that gradients come from, then the values and constants that backward
// reads.
static bool choose_outputs(Check *c) {
  Graph *g = c->forward;
  size_t nothers = c->backward->ninputs - c->ends.ndiffs;
  for (size_t i = 0; i < g->noutputs; i++) g->outputs[i]->is_output = false;
  g->noutputs = 0;
  for (size_t i = 0; i < c->ends.ndiffs; i++)
    if (!graph_add_output(g, g->values[c->ends.inputs[nothers + i]->index])) return false;
  c->nweighted = g->noutputs;
  for (size_t i = 0; i < nothers; i++)
    if (!c->ends.inputs[i]->is_input && !graph_add_output(g, g->values[c->ends.inputs[i]->index])) return false;
  return true;
}

static bool make_graphs(Check *c, const ng_graph *g) {
  c->forward = graph_clone(g->graph);
  return c->forward && choose_outputs(c) && graph_as_f64(c->forward) && graph_as_f64(c->backward);
}

// Data

static Tensor *make_tensors(Check *c, Value *const *values, size_t count) {
  Tensor *tensors = ARENA_ARRAY(&c->scratch, Tensor, count + 1);
  for (size_t i = 0; tensors && i < count; i++) {
    tensors[i] = tensor_like(values[i]);
    size_t nbytes = tensor_nbytes(&tensors[i]);
    tensors[i].data = arena_alloc(&c->scratch, nbytes ? nbytes : 1);
    if (!tensors[i].data) return NULL;
  }
  return tensors;
}

static bool has_memory(Check *c) {
  const Graph *g = c->forward, *b = c->backward;
  const Allocator *allocator = &c->ctx->allocator;
  uint64_t forward, backward;
  char doing[320];
  if (!interpreter_nbytes(g, allocator, &forward) || !interpreter_nbytes(b, allocator, &backward))
    return out_of_memory(c);
  const ng_memory_part parts[] = {
      {"inputs", values_nbytes(g->inputs, g->ninputs)},
      {"outputs and weights", nbytes_add(nbytes_multiply(3, values_nbytes(g->outputs, g->noutputs)),
                                         nbytes_multiply(2, values_nbytes(g->outputs, c->nweighted)))},
      {"gradients", values_nbytes(b->outputs, b->noutputs)},
      {"values and sums in f64", forward > backward ? forward : backward},
  };
  snprintf(doing, sizeof doing, "checking the gradient of %s", g->name);
  return ng_context_check_memory(c->ctx, doing, parts, sizeof parts / sizeof *parts) == NG_OK;
}

// Gives the states of `from`, which forward is in f64, the numbers of their files.
static bool take_files(Check *c, const Graph *from) {
  for (size_t i = 0; i < from->nstates; i++) {
    Tensor *t = &c->inputs[from->states[i].input], own = tensor_like(graph_state(from, i));
    if (from->states[i].init.kind != INIT_FILE) continue;
    own.layout = (Layout){{0}};
    if (!tensor_alloc(&own, &c->ctx->allocator)) return false;
    init_fill(from, i, 0, &own);
    const int64_t nelems = tensor_nelems(&own);
    for (int64_t e = 0; e < nelems; e++)
      type_store(t->type, t->data, (size_t)e, type_load(own.type, own.data, (size_t)e));
    tensor_free(&own, &c->ctx->allocator);
  }
  return true;
}

static bool make_data(Check *c, const Graph *from, uint64_t seed) {
  const Graph *g = c->forward;
  c->inputs = make_tensors(c, g->inputs, g->ninputs);
  c->outputs = make_tensors(c, g->outputs, g->noutputs);
  for (int side = 0; side < 2; side++) c->moved[side] = make_tensors(c, g->outputs, g->noutputs);
  c->weights = make_tensors(c, g->outputs, c->nweighted);
  c->sizes = make_tensors(c, g->outputs, c->nweighted);
  c->gradients = make_tensors(c, c->backward->outputs, c->backward->noutputs);
  if (!c->inputs || !c->outputs || !c->moved[0] || !c->moved[1] || !c->weights || !c->sizes || !c->gradients)
    return false;
  for (size_t i = 0; i < g->ninputs; i++) random_fill(&c->inputs[i], seed, i, distribution_of(g->inputs[i]));
  for (size_t i = 0; i < c->nweighted; i++)
    random_fill(&c->weights[i], seed, g->ninputs + i, distribution_any(c->weights[i].type));
  return take_files(c, from);
}

// noise 0: no noise.
static bool run(Check *c, const Graph *g, const Tensor *inputs, Tensor *outputs, uint64_t noise) {
  const InterpreterOptions options = {.allocator = &c->ctx->allocator, .noise = noise};
  return interpret(g, inputs, outputs, &options, &c->ctx->diagnostics);
}

// Passes backward its inputs in their order.
static bool run_backward(Check *c) {
  size_t ninputs = c->backward->ninputs, nothers = ninputs - c->ends.ndiffs, nsaved = 0;
  Tensor *inputs = ARENA_ARRAY(&c->scratch, Tensor, ninputs + 1);
  size_t *input_of_value = ARENA_ARRAY(&c->scratch, size_t, c->forward->nvalues + 1);
  if (!inputs || !input_of_value) return out_of_memory(c);
  for (size_t i = 0; i < c->forward->ninputs; i++) input_of_value[c->forward->inputs[i]->index] = i;
  for (size_t i = 0; i < nothers; i++) {
    const Value *v = c->ends.inputs[i];
    inputs[i] = v->is_input ? c->inputs[input_of_value[v->index]] : c->outputs[c->nweighted + nsaved++];
  }
  for (size_t i = 0; i < c->ends.ndiffs; i++) inputs[nothers + i] = c->weights[i];
  return run(c, c->backward, inputs, c->gradients, 0);
}

// Differences

typedef struct Difference {
  double slope;    // of the weighted sum
  double rounding; // bound of the slope's rounding error
  double bend;     // |slope above - slope below|
} Difference;

static const double *elements(const Tensor *t) {
  return t->data;
}

// Measures how far relative noise on every value moves each output element, divided by the noise: rounding errors move
// the element in proportion.
static bool find_sizes(Check *c) {
  enum { NOISY_RUNS = 2 };
  for (size_t k = 0; k < c->nweighted; k++) memset(c->sizes[k].data, 0, tensor_nbytes(&c->sizes[k]));
  for (uint64_t noise = 1; noise <= NOISY_RUNS; noise++) {
    if (!run(c, c->forward, c->inputs, c->moved[0], noise)) return false;
    for (size_t k = 0; k < c->nweighted; k++) {
      double *size = c->sizes[k].data;
      const double *exact = elements(&c->outputs[k]), *noisy = elements(&c->moved[0][k]);
      const int64_t nelems = tensor_nelems(&c->sizes[k]);
      for (int64_t i = 0; i < nelems; i++)
        if (isfinite(noisy[i] - exact[i]))
          size[i] = fmax(size[i], fabs(noisy[i] - exact[i]) / type_tolerance(TYPE_F64));
    }
  }
  return true;
}

// Bounds the rounding error by the magnitude of the elements that changed; an unchanged element does not depend on the
// input. If none changed, each may have changed by less than its own rounding error, so all count.
static Difference sum_differences(const Check *c, double width) {
  Difference d = {0};
  double sum = 0, bend = 0, magnitude = 0, unmoved = 0;
  for (size_t k = 0; k < c->nweighted; k++) {
    const double *weight = elements(&c->weights[k]), *at = elements(&c->outputs[k]);
    const double *above = elements(&c->moved[0][k]), *below = elements(&c->moved[1][k]);
    int64_t nelems = tensor_nelems(&c->weights[k]);
    for (int64_t i = 0; i < nelems; i++) {
      if (above[i] == below[i] && above[i] == at[i] && isfinite(at[i])) {
        unmoved += fabs(weight[i] * at[i]);
        continue;
      }
      sum += weight[i] * (above[i] - below[i]);
      bend += weight[i] * ((above[i] - at[i]) - (at[i] - below[i]));
      magnitude += fabs(weight[i]) * fmax(fabs(above[i]) + fabs(below[i]), 2 * elements(&c->sizes[k])[i]);
    }
  }
  const double rounding_errors = 8; // of an output, in units in the last place
  d.slope = sum / width;
  d.bend = fabs(bend) / (width / 2);
  d.rounding = rounding_errors * DBL_EPSILON * (magnitude > 0 ? magnitude : unmoved) / width;
  return d;
}

static bool take_difference(Check *c, double *x, double step, Difference *d) {
  const double at = *x, above = at + step, below = at - step;
  *x = above;
  bool ok = run(c, c->forward, c->inputs, c->moved[0], 0);
  *x = below;
  ok = ok && run(c, c->forward, c->inputs, c->moved[1], 0);
  *x = at;
  *d = sum_differences(c, above - below);
  return ok;
}

typedef struct Slope {
  double value;
  double rounding;   // bound of its rounding error
  bool is_unsettled; // the element is at a kink, or the smallest step still moves another value over one
} Slope;

static bool take_slope(Check *c, double *x, double tolerance, Slope *best) {
  const double shrinking = 4, near_zero = 0x1p-3, relative_step = 0x1p-8, much_smaller = 64;
  double table[MOST_STEPS][MOST_STEPS], least = INFINITY, rounding = 0,
                                        step = relative_step * fmax(fabs(*x), near_zero);
  Difference before, d = {0};
  for (int i = 0; i < MOST_STEPS; i++) {
    before = d;
    if (!take_difference(c, x, step, &d)) return false;
    step /= shrinking;
    rounding = fmax(rounding, d.rounding); // of every step that the entry uses
    table[i][0] = d.slope;
    double factor = 1;
    for (int k = 1; k <= i; k++) {
      factor *= shrinking * shrinking;
      table[i][k] = (factor * table[i][k - 1] - table[i - 1][k - 1]) / (factor - 1);
      double difference = fmax(fabs(table[i][k] - table[i][k - 1]), fabs(table[i][k] - table[i - 1][k - 1]));
      if (!(difference < least)) continue;
      least = difference;
      best->value = table[i][k];
      best->rounding = rounding;
    }
    if (least <= tolerance * fabs(best->value) / 64) break;
  }
  if (!isfinite(least)) best->value = d.slope; // NaN or infinite, which is reported
  const double enough = fmax(tolerance * fabs(best->value) / 4, d.rounding);
  bool is_bent = d.bend > before.bend / 2 && d.bend > enough;
  if (!take_difference(c, x, step / much_smaller, &d)) return false;
  const bool jumps = fabs(d.slope - best->value) > fmax(tolerance * fabs(best->value), d.rounding);
  best->is_unsettled = isfinite(least) && (least > enough || is_bent || jumps);
  return true;
}

// The check

static double root_mean_square(const Tensor *t) {
  int64_t nelems = tensor_nelems(t);
  double sum = 0;
  for (int64_t i = 0; i < nelems; i++) sum += elements(t)[i] * elements(t)[i];
  return nelems ? sqrt(sum / (double)nelems) : 0;
}

// An element much smaller than the others is compared with a thousandth of their root mean square. The divisor is also
// large enough that rounding errors alone, of the differences or of a gradient of about 1, stay within the tolerance.
static double relative_error(double gradient, const Slope *slope, double mean_size, double tolerance) {
  const double smallest = 1e-3, own_rounding = 8 * DBL_EPSILON;
  double difference = fabs(gradient - slope->value);
  if (!isfinite(difference)) return INFINITY;
  double size = fmax(fmax(fabs(gradient), fabs(slope->value)), smallest * mean_size);
  size = fmax(size, fmax(slope->rounding, own_rounding) / tolerance);
  return difference > 0 ? difference / size : 0;
}

// How many elements of each input are checked.
static int64_t sample_count(const Check *c) {
  double cost = 1;
  for (size_t i = 0; i < c->forward->nvalues; i++) cost += (double)shape_nelems(&c->forward->values[i]->shape);
  double samples = work / (4 * cost * (double)c->backward->noutputs);
  return samples < LEAST_SAMPLES ? LEAST_SAMPLES : samples < MOST_SAMPLES ? (int64_t)samples : MOST_SAMPLES;
}

static bool check_input(Check *c, size_t k, double tolerance, int64_t nsamples, ng_gradcheck_result *results) {
  size_t input = 0;
  while (c->forward->inputs[input]->index != c->ends.outputs[k]->index) input++;
  Tensor *t = &c->inputs[input];
  const double mean_size = root_mean_square(&c->gradients[k]);
  int64_t nelems = tensor_nelems(t);
  if (nsamples > nelems) nsamples = nelems;
  ng_gradcheck_result *r = &results[input];
  *r = (ng_gradcheck_result){.nelems = nelems, .nchecked = nsamples, .worst_element = -1};
  for (int64_t i = 0; i < nsamples; i++) {
    int64_t e = i * (nelems / nsamples) + i * (nelems % nsamples) / nsamples;
    Slope slope = {0};
    if (!take_slope(c, (double *)t->data + e, tolerance, &slope)) return false;
    report_progress(c->ctx, "checking gradients",
                    ((double)k + (double)(i + 1) / (double)nsamples) / (double)c->backward->noutputs);
    if (slope.is_unsettled) {
      r->nskipped++;
      continue;
    }
    double gradient = elements(&c->gradients[k])[e], error = relative_error(gradient, &slope, mean_size, tolerance);
    if (error <= r->largest_error) continue;
    r->largest_error = error;
    r->worst_element = e;
    r->gradient = gradient;
    r->expected = slope.value;
  }
  r->is_within = r->largest_error <= tolerance && (r->nskipped < r->nchecked || r->nchecked == 0);
  return true;
}

static bool check(Check *c, const ng_graph *g, uint64_t seed, double tolerance, ng_gradcheck_result *results) {
  if (!make_graphs(c, g)) return out_of_memory(c);
  if (!has_memory(c)) {
    c->is_too_large = true;
    return false;
  }
  if (!make_data(c, g->graph, seed)) return out_of_memory(c);
  if (!run(c, c->forward, c->inputs, c->outputs, 0) || !find_sizes(c) || !run_backward(c)) return false;
  int64_t nsamples = sample_count(c);
  for (size_t k = 0; k < c->backward->noutputs; k++)
    if (!check_input(c, k, tolerance, nsamples, results)) return false;
  return true;
}

ng_status ng_gradcheck(ng_graph *g, const ng_gradcheck_options *options, ng_gradcheck_result *results) {
  const double default_tolerance = 1e-6;
  static const ng_gradcheck_options defaults = {0};
  const ng_gradcheck_options *o = options ? options : &defaults;
  memset(results, 0, g->graph->ninputs * sizeof *results);
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  Check c = {.ctx = g->ctx};
  c.backward = gradient_of(g, &o->gradient, &c.ends, &status);
  if (!c.backward) return status;
  arena_init(&c.scratch, &g->ctx->allocator);
  Call call = call_begin(g->ctx);
  bool ok = check(&c, g, o->seed, o->tolerance > 0 ? o->tolerance : default_tolerance, results);
  status = call_end(g->ctx, call);
  if (c.is_too_large) status = NG_OUT_OF_MEMORY;
  graph_free(c.forward);
  graph_free(c.backward);
  arena_deinit(&c.scratch);
  if (!ok) return status;
  for (size_t i = 0; i < g->graph->ninputs; i++)
    if (results[i].nchecked && !results[i].is_within) return NG_DIFFERENT;
  return NG_OK;
}
