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
  Value *wide = builder_cast(b, gradient, TYPE_F64, builder_name(b, "%s.wide", name));
  return builder_unary(b, OP_ReduceL2, wide, builder_name(b, "%s.norm", name));
}

// The product with a factor in the type that the gradient's kernels compute in.
static Value *scaled(Builder *b, Value *gradient, Value *factor, const char *name, Type type) {
  if (b->failed) return NULL;
  Value *own = builder_cast(b, factor, widened(gradient->type), factor->name);
  Value *product = builder_add(b, OP_Multiply, (Value *[]){gradient, own}, 2, name, type);
  if (product) product->layout = gradient->layout;
  return product;
}

// The norm of all gradients is the norm of their norms. ReduceL2 neither overflows nor underflows; a sum of squared
// norms does. A factor below `least` would lose digits in f32, so two factors bring such norms to clip_norm: `least`,
// and the rest, which is 1 for all other norms.
void step_clip_gradients(Step *s) {
  Builder *b = &s->b;
  const Type type = TYPE_F64;
  const double least = 0x1p-126; // f32's least normal number
  Value **norms = ARENA_ARRAY(&b->scratch, Value *, s->nparameters + 1);
  if (!norms && !b->failed) builder_out_of_memory(b);
  b->comment = "The norm of all gradients together, and the factors by which it is brought to at most clip_norm.";
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) norms[i] = norm_of(s, s->gradients[i]);
  Value *norm = s->nparameters == 1
                    ? norms[0]
                    : builder_unary(b, OP_ReduceL2, builder_vector(b, norms, s->nparameters, "norms"), "gradient_norm");
  Value *above = builder_binary(b, OP_Add, norm, builder_number(b, "norm_epsilon", type, 1e-6), "norm_above_0");
  Value *limit = builder_number(b, "clip_norm", type, s->options->clip_norm);
  Value *scaled_limit = builder_number(b, "scaled_clip_norm", type, s->options->clip_norm / least);
  Value *one = builder_number(b, "one", type, 1);
  Value *ratio = builder_binary(b, OP_Divide, limit, above, "clip_ratio");
  Value *rest = builder_binary(b, OP_Divide, scaled_limit, above, "clip_rest");
  // Minimum and Maximum yield their second operand where one is NaN: the factors of a norm of NaN are NaN.
  ratio = builder_binary(b, OP_Maximum, builder_number(b, "least_factor", type, least), ratio, "clip_ratio");
  Value *factor = builder_binary(b, OP_Minimum, one, ratio, "clip_factor");
  Value *factor_of_rest = builder_binary(b, OP_Minimum, one, rest, "clip_factor");
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) {
    Value *gradient = s->gradients[i];
    const char *name = builder_name(b, "%s.clipped", gradient->name),
               *wide = builder_name(b, "%s.scaled", gradient->name);
    Value *first = scaled(b, gradient, factor, wide, widened(gradient->type));
    s->gradients[i] = scaled(b, first, factor_of_rest, name, gradient->type);
  }
}

// Updates

static void set_attributes(Step *s, size_t state, Node *node) {
  Builder *b = &s->b;
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    if (s->options->attributes[i].is_set) node->attributes[i] = s->options->attributes[i];
  if (s->options->has_no_decay && s->options->has_no_decay[state]) node_attribute_slot(node, "weight_decay")->f32 = 0;
  if (node->op->check && !node->op->check(node, b->diagnostics)) b->failed = true;
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
    states[nslots] = builder_state(b, name, widened(parameter->type), parameter);
    inputs[ninputs++] = b->failed ? NULL : b->graph->inputs[b->graph->ninputs - 1];
  }
  inputs[ninputs++] = rate;
  if (operators[op].ninputs > ninputs) inputs[ninputs++] = s->count;
  Value *next = builder_add(b, op, inputs, ninputs, builder_name(b, "%s.next", parameter->name), TYPE_NONE);
  if (!next) return;
  next->layout = parameter->layout;
  next->producer->label = parameter->name;
  set_attributes(s, s->states[i], next->producer);
  s->next[s->states[i]] = next;
  for (uint32_t k = 0; k < nslots && !b->failed; k++) {
    Value *slot = inputs[2 + k];
    Value *next_slot = builder_output(b, next, k + 1, builder_name(b, "%s.next", slot->name));
    if (next_slot) next_slot->layout = slot->layout;
    s->next[states[k]] = next_slot;
  }
}

void step_update_parameters(Step *s, Value *rate) {
  s->b.comment = "The optimizer.";
  for (size_t i = 0; i < s->nparameters && !s->b.failed; i++) update_parameter(s, i, rate);
}
