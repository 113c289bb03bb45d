// Adds what follows the gradients in a step: clipping, and an optimizer's node for each parameter.
#include "passes/train/step.h"

// The states that an optimizer adds for each parameter: suffixes of their names, in the order of its operands.
static const char *const slots_of_op[OP_COUNT][MOST_SLOTS] = {
    [OP_Momentum] = {"momentum"}, [OP_Adam] = {"m", "v"}, [OP_AdamW] = {"m", "v"}, [OP_Adagrad] = {"sum"}};

// Clipping

static Type widened(Type type) {
  return type == TYPE_F64 ? TYPE_F64 : TYPE_F32;
}

// The L2 norm of a gradient, in f64: the norm of large f32 numbers may exceed f32's range.
static Value *norm_of(Step *s, Value *gradient) {
  Builder *b = &s->b;
  const char *name = gradient ? gradient->name : "";
  Value *wide = build_named_cast(b, gradient, TYPE_F64, build_text(b, "%s.wide", name));
  return build_name(b, build_reduce_mask(b, OP_ReduceL2, wide, ~0U, false), build_text(b, "%s.norm", name));
}

Value *step_scaled(Builder *b, Value *gradient, Value *factor, const char *name, Type type) {
  if (b->failed) return NULL;
  Value *own = build_named_cast(b, factor, widened(gradient->type), factor->name);
  Node *node = build_node(b, OP_Multiply, 2, (Value *[]){gradient, own});
  Value *product = build_name(b, build_one_of_type(b, node, type), name);
  if (product) product->layout = gradient->layout;
  return product;
}

Value *step_vector(Builder *b, Value **items, size_t count, const char *name) {
  for (size_t i = 0; i < count && !b->failed; i++)
    items[i] = build_name(b, build_reshape(b, items[i], &(int64_t){1}, 1), name);
  while (count > 1 && !b->failed) { // in groups: Concat's operands are limited
    size_t ngroups = 0;
    for (size_t i = 0; i < count && !b->failed; i += MAX_VARIADIC) {
      const size_t n = count - i < MAX_VARIADIC ? count - i : MAX_VARIADIC;
      Node *node = build_node(b, OP_Concat, (uint32_t)n, items + i);
      if (!node) return NULL;
      build_set(node, "axis")->s64 = 0;
      items[ngroups++] = build_name(b, build_one(b, node), name);
    }
    count = ngroups;
  }
  return b->failed ? NULL : items[0];
}

// The norm of all gradients is the norm of their norms. ReduceL2 neither overflows nor underflows; a sum of squared
// norms does. A factor below `least` would lose digits in f32, so two factors bring such norms to clip_norm: `least`,
// and the rest, which is 1 for all other norms.
void step_clip_gradients(Step *s) {
  Builder *b = &s->b;
  const Type type = TYPE_F64;
  const double least = 0x1p-126; // f32's least normal number
  Value **norms = ARENA_ARRAY(&b->scratch, Value *, s->nparameters + 1);
  if (!norms && !b->failed) build_out_of_memory(b);
  b->comment = "The norm of all gradients together, and the factors by which it is brought to at most clip_norm.";
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) norms[i] = norm_of(s, s->gradients[i]);
  if (b->failed) return;
  Value *norm = norms[0];
  if (s->nparameters > 1) {
    Value *all = step_vector(b, norms, s->nparameters, "norms");
    norm = build_name(b, build_reduce_mask(b, OP_ReduceL2, all, ~0U, false), "gradient_norm");
  }
  Value *epsilon = build_shared_number(b, "norm_epsilon", type, 1e-6);
  Value *above = build_name(b, build_binary(b, OP_Add, norm, epsilon), "norm_above_0");
  Value *limit = build_shared_number(b, "clip_norm", type, s->options->clip_norm);
  Value *scaled_limit = build_shared_number(b, "scaled_clip_norm", type, s->options->clip_norm / least);
  Value *one = build_shared_number(b, "one", type, 1);
  Value *ratio = build_name(b, build_binary(b, OP_Divide, limit, above), "clip_ratio");
  Value *rest = build_name(b, build_binary(b, OP_Divide, scaled_limit, above), "clip_rest");
  // Minimum and Maximum yield their second operand where one is NaN: the factors of a norm of NaN are NaN.
  Value *least_factor = build_shared_number(b, "least_factor", type, least);
  ratio = build_name(b, build_binary(b, OP_Maximum, least_factor, ratio), "clip_ratio");
  Value *factor = build_name(b, build_binary(b, OP_Minimum, one, ratio), "clip_factor");
  Value *factor_of_rest = build_name(b, build_binary(b, OP_Minimum, one, rest), "clip_factor");
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) {
    Value *gradient = s->gradients[i];
    const char *name = build_text(b, "%s.clipped", gradient->name), *wide = build_text(b, "%s.scaled", gradient->name);
    Value *first = step_scaled(b, gradient, factor, wide, widened(gradient->type));
    s->gradients[i] = step_scaled(b, first, factor_of_rest, name, gradient->type);
  }
}

// Updates

static void set_attributes(Step *s, size_t state, Node *node) {
  Builder *b = &s->b;
  node_set_defaults(node);
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    if (s->options->attributes[i].is_set) node->attributes[i] = s->options->attributes[i];
  if (s->options->has_no_decay && s->options->has_no_decay[state]) node_attribute_slot(node, "weight_decay")->f32 = 0;
  if (node->op->check && !node->op->check(node, b->d)) b->failed = true;
}

static void update_parameter(Step *s, size_t i, Value *rate) {
  Builder *b = &s->b;
  const OperatorId op = s->options->optimizer;
  const char *const *slots = slots_of_op[op];
  Value *parameter = s->parameters[i], *inputs[MOST_SLOTS + 4] = {parameter, s->gradients[i]};
  size_t states[MOST_SLOTS];
  uint32_t nslots = 0, ninputs = 2;
  for (; nslots < MOST_SLOTS && slots[nslots]; nslots++) {
    const char *name = arena_format(&b->scratch, "%s.%s", parameter->name, slots[nslots]);
    states[nslots] = build_state_like(b, name, widened(parameter->type), parameter);
    inputs[ninputs++] = b->failed ? NULL : b->graph->inputs[b->graph->ninputs - 1];
  }
  inputs[ninputs++] = rate;
  if (operators[op].ninputs > ninputs) inputs[ninputs++] = s->updates;
  Node *node = build_node(b, op, ninputs, inputs);
  Value *const before[MOST_SLOTS + 1] = {parameter, inputs[2], inputs[3]}; // of the results
  for (uint32_t k = 0; k <= nslots && node && !b->failed; k++)
    build_name(b, build_result(b, node, k, TYPE_NONE), build_text(b, "%s.next", before[k]->name));
  if (!node || b->failed) return;
  node->label = parameter->name;
  set_attributes(s, s->states[i], node);
  build_infer(b, node);
  for (uint32_t k = 0; k <= nslots; k++) {
    node->outputs[k]->layout = before[k]->layout;
    s->next[k ? states[k - 1] : s->states[i]] = node->outputs[k];
  }
}

void step_update_parameters(Step *s, Value *rate) {
  s->b.comment = "The optimizer.";
  for (size_t i = 0; i < s->nparameters && !s->b.failed; i++) update_parameter(s, i, rate);
}
