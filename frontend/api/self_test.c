// Makes self-tests of emitted functions: binds open dims to several values, and interprets the graph.
#include "frontend/api/self_test.h"

#include "frontend/api/indices.h"
#include "frontend/api/random.h"
#include "frontend/api/reference.h"
#include "frontend/api/tensor.h"
#include "ir/graph/init.h"
#include "ir/graph/open_dims.h"
#include "ir/operators/norm.h"

enum { MOST_CASES = 5, MOST_NELEMS = 1 << 24 };

// Values of open dims to test with: the hints, 1, values near a vector's number of lanes, and empty tensors.
static int64_t case_extent(const Graph *g, size_t number, size_t dim) {
  static const int64_t values[MOST_CASES][2] = {{0}, {1, 1}, {17, 3}, {0, 5}, {5, 0}};
  return number ? values[number][dim > 0] : g->dims[dim]->value;
}

// Whether a norm's gradient would cancel at these extents although the kernel, made for the hints, computes it in f32.
static bool is_less_exact(const Graph *open, const Graph *bound) {
  for (size_t i = 0; i < open->nnodes; i++)
    if (norm_cancels(bound->nodes[i]) && !norm_cancels(open->nodes[i]) && norm_reduced_nelems(bound->nodes[i]))
      return true;
  return false;
}

// Whether there are indices into an axis without elements.
static bool has_no_indices(const Graph *bound) {
  for (size_t n = 0; n < bound->nnodes; n++)
    for (uint32_t slot = 0; slot < bound->nodes[n]->ninputs; slot++)
      if (bound->nodes[n]->inputs[slot] && !node_indexed_extent(bound->nodes[n], slot) &&
          shape_nelems(&bound->nodes[n]->inputs[slot]->shape))
        return true;
  return false;
}

// Whether inputs and outputs are so large that a self-test would take minutes on a small machine.
static bool is_large(const Graph *bound) {
  int64_t nelems = 0;
  for (size_t i = 0; i < bound->ninputs; i++) nelems += shape_nelems(&bound->inputs[i]->shape);
  for (size_t i = 0; i < bound->noutputs; i++) nelems += shape_nelems(&bound->outputs[i]->shape);
  return nelems > MOST_NELEMS;
}

// Whether the function has the check, too: a case may have more, where a reshape of a named extent removes an axis
// of 1.
static bool is_checked(const IndexCheck *own, size_t count, const IndexCheck *check) {
  size_t i = 0;
  while (i < count && (own[i].input != check->input || check_has_parts(&own[i]) != check_has_parts(check))) i++;
  return i < count;
}

// Finds what the emitted function checks: indices that only removed nodes take are not.
static bool find_checked(const TestedFunction *f, const Graph *bound, const SelfTestCase *c, const ng_tensor *inputs,
                         int64_t *checked, Arena *scratch) {
  size_t count, nchecked = 0;
  const IndexCheck *own = graph_index_checks(f->compiled ? f->compiled : f->open, false, scratch, &nchecked);
  Graph *compiled = f->compiled ? graph_with_dims(f->compiled, c->extents, &f->ctx->diagnostics) : NULL;
  const bool ok = own && (compiled || !f->compiled);
  const IndexCheck *checks = ok ? graph_index_checks(compiled ? compiled : bound, false, scratch, &count) : NULL;
  for (size_t i = 0; i < bound->ninputs; i++) checked[i] = 0;
  for (size_t i = 0; checks && i < count; i++) {
    const Tensor t = tensor_of_api(&inputs[checks[i].input]);
    if (!is_checked(own, nchecked, &checks[i])) continue;
    checked[checks[i].input] = 1 + indices_place(&checks[i], &t);
  }
  graph_free(compiled);
  return checks;
}

// The graph bound to the case's values; NULL: the case cannot be tested, or out of memory.
static Graph *bind_case(const TestedFunction *f, SelfTestCase *c, size_t number) {
  Diagnostics unheard;
  diagnostics_init(&unheard, &f->ctx->allocator);
  for (size_t i = 0; i < graph_narguments(f->open); i++) c->extents[i] = case_extent(f->open, number, i);
  for (size_t i = 0; i < f->open->ndims; i++)
    if (!f->open->dims[i]->is_place && open_dim_value(f->open, i, c->extents) < 0) return NULL; // a call refuses it
  Graph *bound = graph_with_dims(f->open, c->extents, &unheard);
  if (unheard.out_of_memory) error_out_of_memory(&f->ctx->diagnostics);
  diagnostics_deinit(&unheard);
  if (!bound || !number) return bound; // the hints are always tested
  if (!is_less_exact(f->open, bound) && !has_no_indices(bound) && !is_large(bound)) return bound;
  graph_free(bound);
  return NULL;
}

// Whether rounding values between kernels can matter: the tolerances of f32 and f64 already cover rounding to f32.
static bool has_narrow_values(const Graph *g) {
  for (size_t i = 0; i < g->nvalues; i++) {
    const Type type = g->values[i]->type;
    if (type_is_float(type) && type != TYPE_F32 && type != TYPE_F64) return true;
  }
  return false;
}

// Computes the results expected of a function, which rounds the values between nodes.
static bool round_expected(const TestedFunction *f, Reference *r, const Graph *bound, const Tensor *inputs,
                           const SelfTestCase *c, Arena *scratch) {
  Diagnostics *d = &f->ctx->diagnostics;
  Graph *compiled = graph_with_dims(f->compiled, c->extents, d);
  const CompiledGraph by = {compiled, program_node_types(f->program, scratch)};
  bool ok = compiled && (by.types || error_out_of_memory(d));
  ok = ok && reference_round(r, bound, &by, inputs, scratch, d);
  for (size_t o = 0; ok && o < bound->noutputs; o++)
    if (r->is_rounded[o]) r->exact[o] = r->rounded[o];
  graph_free(compiled);
  return ok;
}

// `tensors`: the inputs, followed by the interpreter's results.
static ng_status find_expected(const TestedFunction *f, const Graph *bound, const ng_tensor *tensors, SelfTestCase *c,
                               Arena *scratch) {
  ng_context *ctx = f->ctx;
  const InterpreterOptions options = {.allocator = &ctx->allocator};
  Tensor *inputs = ARENA_ARRAY(scratch, Tensor, bound->ninputs + 1);
  Reference r = {.exact = ARENA_ARRAY(scratch, Tensor, bound->noutputs + 1),
                 .magnitudes = ARENA_ARRAY(scratch, double, bound->noutputs + 1)};
  if (!inputs || !r.exact || !r.magnitudes) return NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < bound->ninputs; i++) inputs[i] = tensor_of_api(&tensors[i]);
  for (size_t o = 0; o < bound->noutputs; o++) r.exact[o] = tensor_of_api(&tensors[bound->ninputs + o]);
  Call call = call_begin(ctx);
  bool ok = interpret_magnitudes(bound, inputs, r.exact, r.magnitudes, &options, &ctx->diagnostics);
  if (ok && f->compiled && has_narrow_values(bound)) ok = round_expected(f, &r, bound, inputs, c, scratch);
  ng_status status = call_end(ctx, call);
  if (!ok) return status;
  c->expected = r.exact;
  c->magnitudes = r.magnitudes;
  return NG_OK;
}

// Makes the self-test's inputs and expected results.
static ng_status make_case(const TestedFunction *f, Graph *bound, Arena *scratch, const ValueRange *ranges,
                           SelfTestCase *c, ng_tensor **tensors) {
  ng_context *ctx = f->ctx;
  const size_t ntensors = bound->ninputs + bound->noutputs, first_state = bound->ninputs - bound->nstates;
  size_t ngiven = 0; // inputs that a call takes
  ng_graph g = {.ctx = ctx, .graph = bound, .is_bound = true};
  int64_t *nelems = ARENA_ARRAY(scratch, int64_t, ntensors + 1);
  int64_t *nindices = ARENA_ARRAY(scratch, int64_t, bound->ninputs + 1);
  int64_t *first = ARENA_ARRAY(scratch, int64_t, bound->ninputs + 1);
  int64_t *checked = ARENA_ARRAY(scratch, int64_t, bound->ninputs + 1);
  *tensors = ARENA_ARRAY(scratch, ng_tensor, ntensors + 1);
  ng_status status = *tensors && nelems && nindices && first && checked ? NG_OK : NG_OUT_OF_MEMORY;
  for (size_t i = 0; status == NG_OK && i < ntensors; i++) {
    const Value *v = i < bound->ninputs ? bound->inputs[i] : bound->outputs[i - bound->ninputs];
    ng_tensor_info info = value_info(v);
    status = ng_tensor_new(ctx, &info, &(*tensors)[i]);
    nelems[i] = shape_nelems(&v->shape);
    if (status != NG_OK || i >= bound->ninputs) continue;
    Tensor t = tensor_of_api(&(*tensors)[i]);
    const Distribution numbers = distribution_of(v);
    nindices[i] = numbers.nindices;
    first[i] = numbers.first_index;
    const bool is_stored = i >= first_state && f->is_stored[i - first_state];
    if (is_stored || (i >= first_state && !type_is_float(v->type))) init_fill(bound, i - first_state, 0, &t);
    else self_test_input(&t, ngiven, ranges[i], nindices[i], first[i]);
    ngiven += !is_stored;
  }
  if (status == NG_OK && !find_checked(f, bound, c, *tensors, checked, scratch)) status = NG_OUT_OF_MEMORY;
  if (status == NG_OK) status = ng_interpret(&g, *tensors, *tensors + bound->ninputs, 0);
  c->nelems = nelems;
  c->nindices = nindices;
  c->first_index = first;
  c->checked = checked;
  return status == NG_OK ? find_expected(f, bound, *tensors, c, scratch) : status;
}

ng_status print_self_test(const TestedFunction *f, const EmittedFile *file, size_t function, Text *out) {
  ng_context *ctx = f->ctx;
  const Graph *g = f->open;
  SelfTestCase cases[MOST_CASES];
  ng_tensor *tensors[MOST_CASES] = {NULL};
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  ValueRange *ranges = ARENA_ARRAY(&scratch, ValueRange, g->ninputs + 1);
  ng_status status = ranges ? NG_OK : NG_OUT_OF_MEMORY;
  for (size_t i = 0; status == NG_OK && i < g->ninputs; i++) ranges[i] = g->inputs[i]->range;
  size_t ncases = 0, most = g->ndims == 0 ? 1 : g->ndims == 1 ? MOST_CASES - 1 : MOST_CASES;
  for (size_t number = 0; status == NG_OK && number < most; number++) {
    Call call = call_begin(ctx);
    Graph *bound = bind_case(f, &cases[ncases], number);
    if (bound) status = make_case(f, bound, &scratch, ranges, &cases[ncases], &tensors[ncases]);
    else status = number == 0 ? NG_OUT_OF_MEMORY : call_end(ctx, call); // the hints can be bound
    ncases += bound != NULL;
    graph_free(bound);
  }
  const SelfTest test = {.file = file, .function = function, .ranges = ranges, .cases = cases, .ncases = ncases};
  if (status == NG_OK && !emit_self_test(&test, out)) status = NG_OUT_OF_MEMORY;
  for (size_t n = 0; n < MOST_CASES; n++)
    for (size_t i = 0; tensors[n] && i < g->ninputs + g->noutputs; i++) ng_tensor_free(ctx, &tensors[n][i]);
  arena_deinit(&scratch);
  return status;
}
