// Makes batch norms of a graph with leaves use the statistics of the whole batch.
//
// Each leaf computes its mean, rounded to c, then the mean r of x - c and the mean s of (x - c)^2. Its mean is m = c +
// r, with the digits that c lacks, and its biased variance is s - r^2. All leaves have the same number of elements, so
// the batch's mean M is the mean of m over the leaves, and its variance is the mean of s - r^2 + (m - M)^2; both in
// f64. This takes two exchanges. One exchange of m and s - r^2 + m^2 would do, but subtracting M^2 would cancel the
// digits of a small variance. BatchNormInference then normalises with M rounded to C; beta is shifted to correct for M
// - C.
//
// No gradient flows through c and C, nor through M in (m - M)^2: the result does not depend on c and C, and the
// derivative of the variance with respect to this M is 0. So the gradient needs one exchange, for M and the variance.
#include "passes/train/sync_batch_norm.h"

#include "ir/operators/norm.h"

enum { SRC, RUNNING_MEAN, RUNNING_VARIANCE, GAMMA, BETA };          // inputs of BatchNormForwardTraining
enum { DST, NEXT_MEAN, NEXT_VARIANCE, BATCH_MEAN, BATCH_VARIANCE }; // outputs of BatchNormForwardTraining

typedef struct Sync {
  Builder *b;
  Node *norm;
  const char *name; // of its dst
  Type type;        // of statistics
} Sync;

static Value *make(const Sync *s, OperatorId op, Value *a, Value *c, const char *format) {
  return build_name(s->b, build_binary(s->b, op, a, c), build_text(s->b, format, s->name));
}

// A cast, by way of f32 if neither type is f32: TypeCast does not convert one half float to another.
static Value *cast(const Sync *s, Value *v, Type type) {
  const char *name = build_text(s->b, "%s.cast", s->name);
  if (!v || !name || v->type == type) return v;
  return build_named_cast(s->b, build_named_cast(s->b, v, TYPE_F32, name), type, name);
}

// The mean over all axes except channels.
static Value *mean_of(const Sync *s, Value *v, bool keep_dims, const char *format) {
  Value *mean = build_reduce_mask(s->b, OP_ReduceMean, v, norm_reduced_axes(s->norm), keep_dims);
  return build_name(s->b, mean, build_text(s->b, format, s->name));
}

static Value *detached(Value *v) {
  if (v) v->is_detached = true;
  return v;
}

static Value *over_leaves(const Sync *s, Value *v, const char *format) {
  return build_name(s->b, build_all_reduce(s->b, v, REDUCTION_MEAN), build_text(s->b, format, s->name));
}

typedef struct Statistics { // of the whole batch
  Value *mean, *variance;
  Value *center, *shift; // with the axes of src: the rounded mean, and the rounded mean minus the mean
} Statistics;

// Reduces a value with the axes of src to one value for each channel.
static Value *without_axes(const Sync *s, Value *v, Type type, const char *format) {
  return cast(s, mean_of(s, v, false, format), type);
}

static Statistics statistics(const Sync *s) {
  Builder *b = s->b;
  b->comment = "The statistics of the whole batch.";
  Value *src = cast(s, s->norm->inputs[SRC], s->type);
  Value *center = detached(mean_of(s, src, true, "%s.leaf_center"));
  Value *centered = make(s, OP_Subtract, src, center, "%s.leaf_centered");
  Value *squares = make(s, OP_SquaredDifference, src, center, "%s.leaf_squares");
  Value *rest = cast(s, mean_of(s, centered, true, "%s.leaf_rest"), TYPE_F64);
  Value *second = cast(s, mean_of(s, squares, true, "%s.leaf_second"), TYPE_F64);
  Value *leaf_mean = make(s, OP_Add, cast(s, center, TYPE_F64), rest, "%s.leaf_mean");
  Value *leaf_variance =
      make(s, OP_Subtract, second, make(s, OP_Multiply, rest, rest, "%s.leaf_rest_squared"), "%s.leaf_variance");
  Value *mean = over_leaves(s, leaf_mean, "%s.all_mean");
  Value *as_is = detached(make(s, OP_Multiply, mean, build_shared_number(b, "one", TYPE_F64, 1), "%s.all_mean_as_is"));
  Value *between = make(s, OP_SquaredDifference, leaf_mean, as_is, "%s.between_leaves");
  Value *variance = over_leaves(s, make(s, OP_Add, leaf_variance, between, "%s.leaf_share"), "%s.all_variance");
  Value *all_center = cast(s, as_is, s->type);
  return (Statistics){
      .mean = without_axes(s, mean, s->type, "%s.mean"),
      .variance = without_axes(s, variance, s->type, "%s.variance"),
      .center = without_axes(s, all_center, s->type, "%s.center"),
      .shift = cast(s, make(s, OP_Subtract, cast(s, all_center, TYPE_F64), mean, "%s.all_shift"), s->type),
  };
}

static Value *filled(const Sync *s, const char *name, double number) {
  const Value *like = s->norm->inputs[RUNNING_MEAN];
  return build_name(s->b, build_number(s->b, like->type, &like->shape, number), name);
}

// Makes a new node's value the norm's output `slot`.
static void give(const Sync *s, uint32_t slot, Value *made) {
  Value *output = s->norm->outputs[slot];
  if (!output || !made || s->b->failed) return;
  node_set_output(s->norm, slot, NULL);
  value_replace_uses(made, output);
  node_set_output(made->producer, made->output_slot, output);
}

// Adds a BatchNormInference with these inputs and the norm's attributes.
static Value *inference(const Sync *s, Value *const inputs[5], Type type, const char *format) {
  Node *node = build_node(s->b, OP_BatchNormInference, 5, inputs);
  if (!node) return NULL;
  node->position = s->norm->position;
  node->comment = s->norm->comment;
  *node_attribute_slot(node, "epsilon") = *node_attribute(s->norm, "epsilon");
  *node_attribute_slot(node, "data_format") = *node_attribute(s->norm, "data_format");
  return build_name(s->b, build_one_of_type(s->b, node, type), build_text(s->b, format, s->name));
}

// Computes the norm's dst with the whole batch's statistics.
static void normalise(const Sync *s, Statistics of) {
  Node *norm = s->norm;
  Value *const gamma = norm->inputs[GAMMA] ? cast(s, norm->inputs[GAMMA], s->type) : filled(s, "gamma", 1);
  Value *const beta = norm->inputs[BETA] ? cast(s, norm->inputs[BETA], s->type) : filled(s, "beta", 0);
  Value *const of_shift[] = {of.shift, gamma, beta, filled(s, "zero", 0), of.variance};
  Value *shifted = without_axes(s, inference(s, of_shift, s->type, "%s.all_beta"), s->type, "%s.beta");
  Value *const inputs[] = {norm->inputs[SRC], gamma, shifted, of.center, of.variance};
  give(s, DST, inference(s, inputs, norm->outputs[DST]->type, "%s.normalised"));
}

// momentum * running + (1 - momentum) * batch
static Value *next_of(const Sync *s, Value *running, Value *batch) {
  const double momentum = node_f32(s->norm, "momentum");
  Value *old = make(s, OP_Multiply, running, filled(s, "momentum", momentum), "%s.kept");
  Value *fresh = make(s, OP_Multiply, batch, filled(s, "1-momentum", 1 - momentum), "%s.fresh");
  return make(s, OP_Add, old, fresh, "%s.running");
}

static void sync(Builder *b, Node *norm) {
  const Sync s = {b, norm, norm->outputs[DST]->name, norm->inputs[RUNNING_MEAN]->type};
  Value *const running_mean = norm->inputs[RUNNING_MEAN], *const running_variance = norm->inputs[RUNNING_VARIANCE];
  const Statistics of = statistics(&s);
  Value *next_mean = next_of(&s, running_mean, of.mean), *next_variance = next_of(&s, running_variance, of.variance);
  give(&s, NEXT_MEAN, next_mean);
  give(&s, NEXT_VARIANCE, next_variance);
  if (!b->failed) normalise(&s, of);
  give(&s, BATCH_MEAN, of.mean);
  give(&s, BATCH_VARIANCE, of.variance);
  for (uint32_t i = 0; i < norm->ninputs; i++) node_set_input(norm, i, NULL);
}

bool train_sync_batch_norms(Builder *b, const bool *is_own) {
  const size_t nnodes = b->graph->nnodes;
  for (size_t i = 0; i < nnodes && !b->failed; i++) {
    Node *node = b->graph->nodes[i];
    if (node->op->id == OP_BatchNormForwardTraining && is_own[node->inputs[SRC]->index]) sync(b, node);
  }
  return !b->failed;
}
