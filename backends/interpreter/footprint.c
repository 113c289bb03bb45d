// Predicts the interpreter's memory: simulates the allocations and frees of interpreter.c, and adds the scratch memory
// of the operators' functions.
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/interpreter.h"
#include "backends/interpreter/sum.h"
#include "ir/graph/leaves.h"
#include "ir/support/budget.h"

static uint64_t scratch_of_norm_of_sums(const Evaluation *e) { // ReduceL2: a sum and a scale
  return nbytes_multiply((uint64_t)shape_nelems(&e->node->outputs[0]->shape), sizeof(Sum) + sizeof(double));
}

static uint64_t scratch_of_greatest(const Evaluation *e) {
  return nbytes_multiply((uint64_t)shape_nelems(&e->node->outputs[0]->shape), sizeof(double));
}

// NULL: no scratch memory. tests/unit/footprint_test.c measures all operators.
static uint64_t (*const scratch[OP_COUNT])(const Evaluation *e) = {
    [OP_ReduceSum] = scratch_of_sums,
    [OP_ReduceMean] = scratch_of_sums,
    [OP_ReduceL1] = scratch_of_sums,
    [OP_ReduceL2] = scratch_of_norm_of_sums,
    [OP_ArgMax] = scratch_of_greatest,
    [OP_ArgMin] = scratch_of_greatest,
    [OP_BiasAddBackward] = scratch_of_sums,
    [OP_PReLUBackward] = scratch_of_sums,
    [OP_InterpolateBackward] = scratch_of_sums,
    [OP_GatherBackward] = scratch_of_sums,
    [OP_SoftMax] = scratch_of_softmax,
    [OP_LogSoftmax] = scratch_of_softmax,
    [OP_SoftMaxBackward] = scratch_of_softmax,
    [OP_LogSoftmaxBackward] = scratch_of_softmax,
    [OP_SoftmaxCrossEntropy] = scratch_of_rows,
    [OP_SoftmaxCrossEntropyBackward] = scratch_of_rows,
    [OP_BatchNormInference] = scratch_of_norm,
    [OP_BatchNormForwardTraining] = scratch_of_norm,
    [OP_BatchNormTrainingBackward] = scratch_of_norm,
    [OP_BatchNormInferenceBackward] = scratch_of_norm,
    [OP_LayerNorm] = scratch_of_norm,
    [OP_LayerNormBackward] = scratch_of_norm,
    [OP_GroupNorm] = scratch_of_norm,
    [OP_GroupNormBackward] = scratch_of_norm,
    [OP_InstanceNorm] = scratch_of_norm,
    [OP_InstanceNormBackward] = scratch_of_norm,
    [OP_RMSNorm] = scratch_of_norm,
    [OP_RMSNormBackward] = scratch_of_norm,
    [OP_MatMul] = scratch_of_product,
    [OP_Convolution] = scratch_of_convolution,
    [OP_ConvolutionBackwardData] = scratch_of_convolution,
    [OP_ConvolutionBackwardWeights] = scratch_of_convolution,
    [OP_ConvTranspose] = scratch_of_convolution,
    [OP_ConvTransposeBackwardData] = scratch_of_convolution,
    [OP_ConvTransposeBackwardWeights] = scratch_of_convolution,
    [OP_MaxPool] = scratch_of_pool,
    [OP_MaxPoolBackward] = scratch_of_pool_sums,
    [OP_MaxPoolWinners] = scratch_of_pool,
    [OP_MaxPoolGather] = scratch_of_pool,
    [OP_MaxPoolScatter] = scratch_of_pool_sums,
    [OP_AvgPool] = scratch_of_pool,
    [OP_AvgPoolBackward] = scratch_of_pool_sums,
};

static uint64_t node_scratch(const Node *node) {
  static double element;
  const double *inputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  double *outputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  if (!scratch[node->op->id]) return 0;
  for (uint32_t k = 0; k < node->ninputs; k++) inputs[k] = node->inputs[k] ? &element : NULL;
  for (uint32_t k = 0; k < node->noutputs; k++) outputs[k] = node->outputs[k] ? &element : NULL;
  return arena_most_nbytes(scratch[node->op->id](&(Evaluation){.node = node, .inputs = inputs, .outputs = outputs}));
}

typedef struct Cell { // a value at run time
  bool is_live;
  size_t nuses; // remaining
  bool is_own;  // each leaf of the batch has its own
} Cell;

typedef struct Footprint {
  Cell *cells; // parallel to the graph's values
  uint64_t nleaves;
  uint64_t now, most;
} Footprint;

static uint64_t cell_nbytes(const Footprint *f, const Value *v) {
  const uint64_t nbytes = nbytes_multiply((uint64_t)shape_nelems(&v->shape), sizeof(double));
  return f->cells[v->index].is_own ? nbytes_multiply(nbytes, f->nleaves) : nbytes;
}

// Counts bytes in addition to the live ones.
static void count(Footprint *f, uint64_t nbytes) {
  const uint64_t all = nbytes_add(f->now, nbytes);
  if (all > f->most) f->most = all;
}

static void cell_make(Footprint *f, const Value *v) {
  Cell *cell = &f->cells[v->index];
  if (cell->is_live) return;
  cell->is_live = true;
  f->now = nbytes_add(f->now, cell_nbytes(f, v));
  count(f, 0);
}

static void cell_end(Footprint *f, const Value *v) {
  if (!f->cells[v->index].is_live || f->cells[v->index].nuses) return;
  f->cells[v->index].is_live = false;
  if (f->now != UINT64_MAX) f->now -= cell_nbytes(f, v);
}

static void cell_used(Footprint *f, const Value *v) {
  f->cells[v->index].nuses--;
  cell_end(f, v);
}

static void run_node(Footprint *f, const Node *node) {
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) cell_make(f, node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) cell_make(f, node->outputs[k]);
  count(f, node_scratch(node));
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) cell_used(f, node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) cell_end(f, node->outputs[k]);
}

bool interpreter_nbytes(const Graph *g, const Allocator *allocator, uint64_t *nbytes) {
  Arena arena;
  arena_init(&arena, allocator);
  Footprint f = {.cells = ARENA_ARRAY(&arena, Cell, g->nvalues + 1), .nleaves = (uint64_t)g->nleaves};
  bool *is_own = ARENA_ARRAY(&arena, bool, g->nvalues + 1);
  const bool ok = f.cells && is_own;
  if (ok) graph_find_own_values(g, is_own);
  for (size_t i = 0; ok && i < g->nvalues; i++) f.cells[i].is_own = is_own[i];
  for (size_t n = 0; ok && n < g->nnodes; n++)
    for (uint32_t k = 0; k < g->nodes[n]->ninputs; k++)
      if (g->nodes[n]->inputs[k]) f.cells[g->nodes[n]->inputs[k]->index].nuses++;
  for (size_t i = 0; ok && i < g->noutputs; i++) f.cells[g->outputs[i]->index].nuses++;
  for (size_t n = 0; ok && n < g->nnodes; n++) run_node(&f, g->nodes[n]);
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    cell_make(&f, g->outputs[i]);
    cell_used(&f, g->outputs[i]);
  }
  *nbytes = f.most;
  arena_deinit(&arena);
  return ok;
}
