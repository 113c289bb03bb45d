// Tensors of an operator, and ngrad's result.
#include "tests/peers/peers.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static bool tell(Computation *c) {
  fputs(ng_messages_text(c->ctx, 0), stderr);
  ng_messages_clear(c->ctx);
  return false;
}

bool computation_open(Computation *c, const char *text, uint64_t seed) {
  *c = (Computation){.ctx = ng_context_new(NULL)};
  if (!c->ctx) return false;
  c->graph = ng_graph_read(c->ctx, "drawn", text, strlen(text), NULL);
  if (!c->graph || ng_graph_bind(c->graph) != NG_OK) return tell(c);
  c->ninputs = ng_graph_input_count(c->graph);
  for (size_t i = 0; i < c->ninputs; i++)
    if (ng_tensor_random(c->graph, i, seed, &c->inputs[i]) != NG_OK) return tell(c);
  const ng_tensor_info info = ng_graph_output(c->graph, 0);
  if (ng_tensor_new(c->ctx, &info, &c->output) != NG_OK) return tell(c);
  memset(c->output.data, 0xFF, ng_tensor_nbytes(&c->output)); // NaNs, which agree with nothing
  return true;
}

void computation_close(Computation *c) {
  if (!c->ctx) return;
  for (size_t i = 0; i < c->ninputs; i++) ng_tensor_free(c->ctx, &c->inputs[i]);
  ng_tensor_free(c->ctx, &c->output);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
  *c = (Computation){0};
}

bool computation_compile_and_run(Computation *c) {
  ng_kernel *kernel = ng_compile(c->graph, NULL);
  const bool ok = kernel && ng_kernel_run(kernel, c->inputs, &c->output, 0) == NG_OK;
  ng_kernel_free(kernel);
  return ok || tell(c);
}

void computation_copy_inputs(Computation *c, const Computation *from) {
  for (size_t i = 0; i < c->ninputs; i++) {
    const ng_tensor *t = &from->inputs[i];
    const int64_t nelems = ng_tensor_nelems(t);
    for (int64_t k = 0; k < nelems; k++)
      type_store((Type)c->inputs[i].type, c->inputs[i].data, (size_t)k, ng_tensor_get(t, k));
  }
}

void computation_set_absolute(Computation *c) {
  const bool has_places = strcmp(ng_graph_node(c->graph, 0).canonical, "MaxPoolBackward") == 0;
  for (size_t i = has_places ? 1 : 0; i < c->ninputs; i++) {
    const ng_tensor *t = &c->inputs[i];
    const int64_t nelems = ng_tensor_nelems(t);
    for (int64_t k = 0; k < nelems; k++) type_store((Type)t->type, t->data, (size_t)k, fabs(ng_tensor_get(t, k)));
  }
}

// Half a unit in the last place of a number of this size.
static double half_unit(ng_type type, double value) {
  int exponent;
  const int digits = type == NG_F32 ? 24 : type == NG_F16 ? 11 : 8;
  const int least = type == NG_F16 ? -13 : -125; // of normal numbers in [1/2, 1) * 2^exponent
  frexp(value, &exponent);
  return ldexp(0.5, (exponent > least ? exponent : least) - digits);
}

Closeness compare(const ng_tensor *ours, const ng_tensor *theirs, const ng_tensor *magnitudes, int64_t nterms) {
  const double unit = 0x1p-24, off = (double)nterms * unit / (1 - (double)nterms * unit), inside = 2 * off / (1 - off);
  Closeness c = {.nelems = (size_t)ng_tensor_nelems(ours), .worst_element = -1};
  for (size_t i = 0; i < c.nelems; i++) {
    const double a = ng_tensor_get(ours, (int64_t)i), b = ng_tensor_get(theirs, (int64_t)i);
    const double magnitude = ng_tensor_get(magnitudes, (int64_t)i);
    const double rounding = ours->type == NG_F32 ? 0 : half_unit(ours->type, a);
    const double distance = fabs(a - b), bound = inside * magnitude + rounding;
    const double of_sums = distance <= rounding ? 0 : (distance - rounding) / magnitude;
    if (distance == 0) continue;
    if (!(distance <= bound)) c.nbeyond++;
    // A NaN is worse than any number.
    if (!(distance / bound <= c.of_bound)) {
      c.of_bound = distance / bound;
      c.worst_element = (int64_t)i;
    }
    if (!(of_sums <= c.error)) c.error = of_sums;
  }
  return c;
}
