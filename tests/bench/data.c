// Random inputs, and inputs that depend on others.
#include "tests/bench/data.h"

#include "ir/operators/norm.h"
#include "tests/bench/norm_groups.h"

#include <stdlib.h>

// The tensor of a graph's input; NULL: the operand is computed or absent.
static ng_tensor *tensor_of(const Graph *g, ng_tensor *inputs, const Value *v) {
  for (size_t i = 0; i < g->ninputs; i++)
    if (g->inputs[i] == v) return &inputs[i];
  return NULL;
}

static void add_to_all(ng_tensor *t, double mean) {
  const int64_t nelems = ng_tensor_nelems(t);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < nelems; i++) type_store((Type)t->type, t->data, (size_t)i, ng_tensor_get(t, i) + mean);
}

// Computes statistics of some neighbouring groups in f64. With channels last, neighbouring groups are in the same cache
// lines.
enum { TOGETHER = 16 };

static void statistics_of(const ng_tensor *x, const NormGroups *n, size_t first, size_t count, double *mean,
                          double *variance) {
  const double nelems = (double)(n->outer * n->inner);
  for (size_t k = 0; k < count; k++) mean[k] = variance[k] = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t o = 0; o < n->outer; o++)
      for (size_t k = 0; k < count; k++)
        for (size_t i = 0; i < n->inner; i++) {
          double value = type_load((Type)x->type, x->data, (o * n->count + first + k) * n->inner + i);
          if (pass == 0) mean[k] += value;
          else variance[k] += (value - mean[k]) * (value - mean[k]);
        }
    for (size_t k = 0; k < count; k++) *(pass == 0 ? &mean[k] : &variance[k]) /= nelems;
  }
}

static void set_statistics(const ng_tensor *x, const NormGroups *n, ng_tensor *mean, ng_tensor *variance) {
#pragma omp parallel for schedule(static)
  for (size_t first = 0; first < n->count; first += TOGETHER) {
    double m[TOGETHER], v[TOGETHER];
    size_t count = n->count - first < TOGETHER ? n->count - first : TOGETHER;
    statistics_of(x, n, first, count, m, v);
    for (size_t k = 0; k < count; k++) {
      type_store((Type)mean->type, mean->data, first + k, m[k]);
      type_store((Type)variance->type, variance->data, first + k, v[k]);
    }
  }
}

static void keep_positive(ng_tensor *t) {
  const int64_t nelems = ng_tensor_nelems(t);
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < nelems; i++)
    if (ng_tensor_get(t, i) < 0) type_store((Type)t->type, t->data, (size_t)i, 0);
}

static void adapt_norm(const Graph *g, const Node *node, double mean, ng_tensor *inputs) {
  NormGroups groups;
  ng_tensor *x = tensor_of(g, inputs, node->inputs[0]);
  if (!x || !norm_groups(node, &groups)) return;
  if (mean != 0) add_to_all(x, mean);
  if (node->op->id == OP_BatchNormForwardTraining) return; // its running statistics are of earlier batches
  ng_tensor *m = tensor_of(g, inputs, node_input(node, "mean"));
  ng_tensor *v = tensor_of(g, inputs, node_input(node, "variance"));
  if (m && v) set_statistics(x, &groups, m, v);
}

ng_status inputs_make(ng_graph *g, double mean, ng_tensor *inputs) {
  enum { SEED = 1 };
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    ng_status status = ng_tensor_random(g, i, SEED, &inputs[i]);
    if (status != NG_OK) return status;
  }
  for (size_t i = 0; i < g->graph->nnodes; i++) {
    const Node *node = g->graph->nodes[i];
    adapt_norm(g->graph, node, mean, inputs);
    ng_tensor *data = tensor_of(g->graph, inputs, node->inputs[0]);
    if (node->op->id == OP_ReLUBackward && node_bool(node, "use_dst") && data) keep_positive(data);
  }
  return NG_OK;
}
