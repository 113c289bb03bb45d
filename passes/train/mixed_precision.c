// Rewrites graphs for mixed precision.
//
// A use of a value is narrow or wide. Narrow are: operands of products; what the backward pass reads of kept values;
// operands of a node that follows, which is one whose results all have narrow uses only. One walk from the last node to
// the first decides this. A second walk, from the first to the last, gives each value with narrow uses one narrow copy,
// and changes the uses. Where a node of the backward pass computes in f32, it reads the narrow copy through a second
// cast, one for each kept value; kernels compute it where they load.
//
// A product's result is f32 where the operator's types allow it (MatMul); where they do not, a cast follows
// (convolutions).
#include "passes/train/mixed_precision.h"

#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/operator.h"
#include "passes/rewrite/dead_code.h"
#include "passes/train/train.h"

// Operators without a row compute.
// clang-format off
const PrecisionClass precision_classes[OP_COUNT] = {
    [OP_MatMul] = PRECISION_NARROW, [OP_Convolution] = PRECISION_NARROW,
    [OP_ConvolutionBackwardData] = PRECISION_NARROW, [OP_ConvolutionBackwardWeights] = PRECISION_NARROW,
    [OP_ConvTranspose] = PRECISION_NARROW, [OP_ConvTransposeBackwardData] = PRECISION_NARROW,
    [OP_ConvTransposeBackwardWeights] = PRECISION_NARROW,

    [OP_SoftmaxCrossEntropy] = PRECISION_WIDE, [OP_SoftmaxCrossEntropyBackward] = PRECISION_WIDE,
    [OP_MeanSquaredError] = PRECISION_WIDE, [OP_BinaryCrossEntropy] = PRECISION_WIDE,
    [OP_LogSoftmax] = PRECISION_WIDE, [OP_LogSoftmaxBackward] = PRECISION_WIDE,
    [OP_SGD] = PRECISION_WIDE, [OP_Momentum] = PRECISION_WIDE, [OP_Adam] = PRECISION_WIDE,
    [OP_AdamW] = PRECISION_WIDE, [OP_Adagrad] = PRECISION_WIDE, [OP_AllReduce] = PRECISION_WIDE,
    [OP_Quantize] = PRECISION_WIDE, [OP_Dequantize] = PRECISION_WIDE,
    [OP_DynamicQuantize] = PRECISION_WIDE, [OP_DynamicDequantize] = PRECISION_WIDE,

    [OP_StaticReshape] = PRECISION_FOLLOWS, [OP_StaticTranspose] = PRECISION_FOLLOWS, [OP_Reorder] = PRECISION_FOLLOWS,
    [OP_Concat] = PRECISION_FOLLOWS, [OP_Slice] = PRECISION_FOLLOWS, [OP_Split] = PRECISION_FOLLOWS,
    [OP_Tile] = PRECISION_FOLLOWS, [OP_MaxPool] = PRECISION_FOLLOWS, [OP_ReLU] = PRECISION_FOLLOWS,
};
// clang-format on

typedef struct Rewriting {
  Graph *g;
  const MixedPrecision *mixed;
  size_t first_backward, first_saved, nnodes; // nnodes: of the graph as given
  const bool *is_kept;
  // By the index of a node as given:
  bool *is_needed, *follows;
  // By the index of a value as given:
  bool *has_narrow, *has_wide; // uses
  Value **narrow, **widened;   // the copies; NULL: not made yet
  Diagnostics *d;
} Rewriting;

static PrecisionClass class_of(const MixedPrecision *m, const Node *node) {
  return m->stays_wide && m->stays_wide[node->op->id] ? PRECISION_WIDE : precision_classes[node->op->id];
}

// Kept values

static bool may_be_kept(const MixedPrecision *m, const Value *v) {
  const Node *node = v->producer;
  if (!node || v->type != TYPE_F32 || v->shape.rank == 0 || class_of(m, node) == PRECISION_WIDE) return false;
  if (node->op->traits & TRAIT_REDUCES || node->op->outputs[v->output_slot].is_statistic) return false;
  for (const Use *use = v->uses; use; use = use->next)
    if (class_of(m, use->node) == PRECISION_WIDE) return false;
  return true;
}

bool mixed_find_kept(const Graph *forward, const MixedPrecision *mixed, bool *is_kept) {
  Arena scratch;
  arena_init(&scratch, forward->arena.allocator);
  bool *changes = ARENA_ARRAY(&scratch, bool, forward->nvalues + 1);
  if (changes) train_find_changing(forward, changes);
  for (size_t i = 0; changes && i < forward->nvalues; i++)
    is_kept[i] = changes[i] && may_be_kept(mixed, forward->values[i]);
  arena_deinit(&scratch);
  return changes != NULL;
}

// Uses

// The operands and results that have the type of the node's first result or, in a product, of its first operand.
static bool is_alike(const Node *node, const Operand *row) {
  const bool is_product = precision_classes[node->op->id] == PRECISION_NARROW;
  return row->type == (is_product ? node->op->inputs[0].type : node->op->outputs[0].type);
}

static bool input_is_alike(const Node *node, uint32_t slot) {
  const uint32_t last = node->op->ninputs - 1;
  return is_alike(node, &node->op->inputs[slot < last ? slot : last]);
}

// Whether the node reads a narrow value where it reads this operand.
static bool reads_narrow(const Rewriting *r, const Node *node, uint32_t slot) {
  const bool is_narrow = class_of(r->mixed, node) == PRECISION_NARROW || r->follows[node->index];
  return is_narrow && input_is_alike(node, slot);
}

// Whether the node reads a kept value, and computes in f32.
static bool reads_kept(const Rewriting *r, const Node *node, uint32_t slot) {
  return node->index >= r->first_backward && r->is_kept[node->inputs[slot]->index] &&
         class_of(r->mixed, node) != PRECISION_WIDE;
}

static bool output_is_saved(const Rewriting *r, size_t output) {
  const Graph *g = r->g;
  return output >= r->first_saved && output < g->noutputs - g->nupdates && r->is_kept[g->outputs[output]->index];
}

static void note_uses(Rewriting *r, const Value *v) {
  for (const Use *use = v->uses; use; use = use->next) {
    const Node *node = use->node;
    if (!r->is_needed[node->index]) continue;
    const bool is_narrow = reads_narrow(r, node, use->slot) || reads_kept(r, node, use->slot);
    *(is_narrow ? &r->has_narrow[v->index] : &r->has_wide[v->index]) = true;
  }
}

static void note_outputs(Rewriting *r) {
  for (size_t i = 0; i < r->g->noutputs; i++) {
    const uint32_t v = r->g->outputs[i]->index;
    *(output_is_saved(r, i) ? &r->has_narrow[v] : &r->has_wide[v]) = true;
  }
}

// Whether the operands that a narrow node reads narrow were f32 in the graph as given.
static bool is_of_f32(const Rewriting *r, const Node *node) {
  bool all = true;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    all &= !v || !input_is_alike(node, i) || v->type == TYPE_F32 || r->narrow[v->index];
  }
  return all;
}

static void find_uses(Rewriting *r) {
  note_outputs(r);
  for (size_t n = r->nnodes; n-- > 0;) {
    const Node *node = r->g->nodes[n];
    bool has_narrow = false, has_wide = false;
    for (uint32_t i = 0; i < node->noutputs; i++) {
      const Value *v = node->outputs[i];
      if (!v) continue;
      note_uses(r, v);
      has_narrow |= r->has_narrow[v->index];
      has_wide |= r->has_wide[v->index];
    }
    r->is_needed[n] = has_narrow || has_wide;
    r->follows[n] = has_narrow && !has_wide && class_of(r->mixed, node) == PRECISION_FOLLOWS && is_of_f32(r, node);
  }
  for (size_t i = 0; i < r->g->nvalues; i++)
    if (!r->g->values[i]->producer) note_uses(r, r->g->values[i]);
}

// Casts

static Value *copy_of(Rewriting *r, const Value *v, Type type, const char *suffix) {
  Graph *g = r->g;
  const char *name = arena_format(&g->arena, "%s_%s", v->name, suffix);
  Value *copy = name ? graph_add_value(g, name, type, &v->shape) : NULL;
  if (!copy) return error_out_of_memory(r->d), NULL;
  copy->layout = v->layout;
  copy->range = v->range;
  copy->nproducts = v->nproducts;
  copy->is_in_chain = v->is_in_chain;
  copy->position = v->position;
  return copy;
}

static bool add_cast(Rewriting *r, Value *from, Value *to) {
  Node *node = graph_add_node(r->g, &operators[OP_TypeCast], NULL, 1, 1);
  if (!node) return error_out_of_memory(r->d);
  node_set_input(node, 0, from);
  node_set_output(node, 0, to);
  node_set_defaults(node);
  return true;
}

// The narrow copy of a value of f32.
static Value *narrow_of(Rewriting *r, Value *v) {
  Value **copy = &r->narrow[v->index];
  if (*copy) return *copy;
  *copy = copy_of(r, v, r->mixed->type, type_name(r->mixed->type));
  return *copy && add_cast(r, v, *copy) ? *copy : NULL;
}

// The value that a node of the backward pass reads in place of a kept one.
static Value *widened_of(Rewriting *r, Value *v) {
  Value **copy = &r->widened[v->index], *narrow = narrow_of(r, v);
  if (*copy || !narrow) return *copy;
  *copy = copy_of(r, v, TYPE_F32, "kept");
  return *copy && add_cast(r, narrow, *copy) ? *copy : NULL;
}

static bool rewrite_inputs(Rewriting *r, Node *node) {
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Value *v = node->inputs[i], *read = v;
    if (!v || (v->type != TYPE_F32 && !r->narrow[v->index])) continue;
    if (reads_narrow(r, node, i)) read = narrow_of(r, v);
    else if (reads_kept(r, node, i)) read = widened_of(r, v);
    if (!read) return false;
    if (read != v) node_set_input(node, i, read);
  }
  return true;
}

// Makes a result narrow, with a cast behind it for its wide uses.
static bool narrow_result(Rewriting *r, Node *node, uint32_t slot) {
  Value *v = node->outputs[slot];
  r->narrow[v->index] = v;
  if (!r->has_wide[v->index]) {
    v->type = r->mixed->type;
    return true;
  }
  Value *made = copy_of(r, v, r->mixed->type, type_name(r->mixed->type));
  if (!made) return false;
  node_set_output(node, slot, made);
  r->narrow[v->index] = made;
  return add_cast(r, made, v);
}

static bool rewrite_node(Rewriting *r, Node *node) {
  const bool is_product = class_of(r->mixed, node) == PRECISION_NARROW;
  const bool is_narrow = (is_product || r->follows[node->index]) && is_of_f32(r, node);
  if (!r->is_needed[node->index]) return true;
  if (!rewrite_inputs(r, node)) return false;
  if (is_narrow) node->signature = NULL; // which may allow other types only
  bool ok = true;
  for (uint32_t i = 0; ok && is_narrow && i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v || v->type != TYPE_F32) continue;
    if (is_alike(node, &node->op->outputs[i]) || !r->has_wide[v->index]) ok = narrow_result(r, node, i);
  }
  return ok;
}

// Outputs and inputs of the graph

static bool exchange_names(Rewriting *r, Value *v, Value *narrow, size_t output) {
  const char *name = arena_format(&r->g->arena, "%s_f32", v->name);
  if (!name) return error_out_of_memory(r->d);
  narrow->name = v->name;
  v->name = name;
  narrow->is_output = true;
  narrow->first_output = (uint32_t)output;
  v->is_output = false;
  return true;
}

// A saved output keeps its name.
static bool rewrite_outputs(Rewriting *r) {
  for (size_t i = r->first_saved; i < r->g->noutputs; i++) {
    Value *v = r->g->outputs[i];
    if (!output_is_saved(r, i)) continue;
    Value *narrow = narrow_of(r, v);
    if (!narrow) return false;
    r->g->outputs[i] = narrow;
    if (narrow != v && !exchange_names(r, v, narrow, i)) return false;
  }
  return true;
}

// Kept values that are inputs arrive narrow, unless a node reads f32.
static void rewrite_kept_inputs(Rewriting *r) {
  for (size_t i = 0; i < r->g->ninputs; i++) {
    Value *v = r->g->inputs[i];
    if (!r->is_kept[v->index] || r->has_wide[v->index]) continue;
    r->narrow[v->index] = v;
    v->type = r->mixed->type;
  }
}

// Puts each cast of a node's result behind the node, so that the same kernel may compute both.
static bool place_casts(Rewriting *r, Arena *scratch) {
  Graph *g = r->g;
  Node **placed = ARENA_ARRAY(scratch, Node *, g->nnodes + 1);
  size_t *first = ARENA_ARRAY(scratch, size_t, r->nnodes + 1), *next = ARENA_ARRAY(scratch, size_t, g->nnodes + 1);
  size_t count = 0;
  if (!placed || !first || !next) return error_out_of_memory(r->d);
  for (size_t i = g->nnodes; i-- > r->nnodes;) {
    const Node *maker = g->nodes[i]->inputs[0]->producer;
    if (!maker || maker->index >= r->nnodes) continue;
    next[i] = first[maker->index];
    first[maker->index] = i;
  }
  for (size_t n = 0; n < r->nnodes; n++) {
    placed[count++] = g->nodes[n];
    for (size_t i = first[n]; i; i = next[i]) placed[count++] = g->nodes[i];
  }
  for (size_t i = r->nnodes; i < g->nnodes; i++) { // of the graph's inputs, constants and narrow copies
    const Node *maker = g->nodes[i]->inputs[0]->producer;
    if (!maker || maker->index >= r->nnodes) placed[count++] = g->nodes[i];
  }
  for (size_t i = 0; i < count; i++) g->nodes[i] = placed[i];
  return true;
}

static bool rewrite(Rewriting *r, Arena *scratch) {
  const size_t nvalues = r->g->nvalues + 1, nnodes = r->nnodes + 1;
  r->is_needed = ARENA_ARRAY(scratch, bool, nnodes);
  r->follows = ARENA_ARRAY(scratch, bool, nnodes);
  r->has_narrow = ARENA_ARRAY(scratch, bool, nvalues);
  r->has_wide = ARENA_ARRAY(scratch, bool, nvalues);
  r->narrow = ARENA_ARRAY(scratch, Value *, nvalues);
  r->widened = ARENA_ARRAY(scratch, Value *, nvalues);
  if (!r->is_needed || !r->follows || !r->has_narrow || !r->has_wide || !r->narrow || !r->widened)
    return error_out_of_memory(r->d);
  find_uses(r);
  rewrite_kept_inputs(r);
  bool ok = true;
  for (size_t n = 0; ok && n < r->nnodes; n++) ok = rewrite_node(r, r->g->nodes[n]);
  return ok && rewrite_outputs(r) && place_casts(r, scratch);
}

bool mixed_rewrite(Graph *g, const MixedPrecision *mixed, size_t first_backward, size_t first_saved,
                   const bool *is_kept, Diagnostics *d) {
  Arena scratch;
  Rewriting r = {.g = g,
                 .mixed = mixed,
                 .first_backward = first_backward,
                 .first_saved = first_saved,
                 .nnodes = g->nnodes,
                 .is_kept = is_kept,
                 .d = d};
  arena_init(&scratch, g->arena.allocator);
  const bool ok = rewrite(&r, &scratch);
  arena_deinit(&scratch);
  return ok;
}

// Gradients

static bool finish(Graph *g, Diagnostics *d) {
  if (!graph_make_names_unique(g)) return error_out_of_memory(d);
  if (!graph_sort(g, d)) return false;
  pass_dead_code(g, &(PassContext){.diagnostics = d, .allocator = g->arena.allocator}); // it was not rewritten
  return graph_infer(g, d) && graph_verify(g, d);
}

bool mixed_gradient(Graph *backward, const Graph *forward, const GradientEnds *ends, const MixedPrecision *mixed,
                    Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, forward->arena.allocator);
  bool *may_keep = ARENA_ARRAY(&scratch, bool, forward->nvalues + 1);
  bool *is_kept = ARENA_ARRAY(&scratch, bool, backward->nvalues + 1);
  bool ok = may_keep && is_kept && mixed_find_kept(forward, mixed, may_keep);
  if (!ok) error_out_of_memory(d);
  for (size_t i = 0; ok && i < backward->ninputs - ends->ndiffs; i++)
    is_kept[backward->inputs[i]->index] = may_keep[ends->inputs[i]->index] && !ends->inputs[i]->is_output;
  ok = ok && mixed_rewrite(backward, mixed, 0, backward->noutputs, is_kept, d);
  arena_deinit(&scratch);
  return ok && finish(backward, d);
}

bool mixed_forward(Graph *saving, const Graph *forward, const Graph *backward, const GradientEnds *ends,
                   const MixedPrecision *mixed, Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, forward->arena.allocator);
  bool *is_kept = ARENA_ARRAY(&scratch, bool, saving->nvalues + 1);
  bool ok = is_kept != NULL;
  if (!ok) error_out_of_memory(d);
  for (size_t i = 0; ok && i < backward->ninputs - ends->ndiffs; i++)
    is_kept[ends->inputs[i]->index] |= backward->inputs[i]->type != ends->inputs[i]->type;
  ok = ok && mixed_rewrite(saving, mixed, saving->nnodes, forward->noutputs - forward->nupdates, is_kept, d);
  arena_deinit(&scratch);
  return ok && finish(saving, d);
}
