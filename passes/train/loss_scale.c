// Scales losses whose gradients pass through f16: small gradients would be rounded to 0 there, and large ones to
// infinity. The scale is a state that adapts, as PyTorch's GradScaler does it: the largest that no gradient overflows
// with. It is a power of two, so that it rounds nothing in f32.
#include "passes/train/step.h"

#include <float.h>

enum { CALLS_PER_GROWTH = 2000 };
static const double FIRST_SCALE = 65536, LEAST_SCALE = 0x1p-100, GREATEST_SCALE = 0x1p100;

#define NUMBER(name, type, number) build_shared_number(b, name, type, number)
#define UNARY(op, a, name) build_name(b, build_unary(b, OP_##op, a), name)
#define BINARY(op, a, c, name) build_name(b, build_binary(b, OP_##op, a, c), name)

static Value *select_value(Builder *b, Value *condition, Value *a, Value *c, const char *name) {
  Node *node = build_node(b, OP_Select, 3, (Value *[]){condition, a, c});
  return build_name(b, build_one(b, node), name);
}

void step_scale_losses(Step *s) {
  Builder *b = &s->b;
  const size_t state = build_state_like(b, "loss_scale", TYPE_F32, NULL);
  if (b->failed) return;
  b->graph->states[state].init = (Init){.kind = INIT_UNIFORM, .low = FIRST_SCALE, .high = FIRST_SCALE};
  s->scale = b->graph->inputs[b->graph->states[state].input];
}

void step_unscale_gradients(Step *s) {
  Builder *b = &s->b;
  b->comment = "The gradients of the losses themselves.";
  Value *factor = BINARY(Divide, NUMBER("one_scale", TYPE_F32, 1), s->scale, "unscaling");
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) {
    Value *g = s->gradients[i];
    s->gradients[i] = step_scaled(b, g, factor, build_text(b, "%s.unscaled", g->name), g->type);
  }
}

// Whether no gradient has an infinity or a NaN.
static Value *are_finite(Step *s) {
  Builder *b = &s->b;
  Value **greatest = ARENA_ARRAY(&b->scratch, Value *, s->nparameters + 1);
  if (!greatest && !b->failed) build_out_of_memory(b);
  b->comment = "Whether all gradients are finite; if not, the scale of the loss is too large.";
  for (size_t i = 0; i < s->nparameters && !b->failed; i++) {
    const char *name = s->gradients[i]->name;
    Value *wide = build_named_cast(b, s->gradients[i], s->rate_type, build_text(b, "%s.wide", name));
    Value *size = UNARY(Abs, wide, build_text(b, "%s.size", name));
    greatest[i] = build_name(b, build_reduce_mask(b, OP_ReduceMax, size, ~0U, false), build_text(b, "%s.max", name));
  }
  if (b->failed) return NULL;
  Value *all = s->nparameters > 1 ? step_vector(b, greatest, s->nparameters, "maxima") : greatest[0];
  if (s->nparameters > 1) all = build_name(b, build_reduce_mask(b, OP_ReduceMax, all, ~0U, false), "gradient_max");
  const double limit = s->rate_type == TYPE_F64 ? DBL_MAX : (double)FLT_MAX;
  return BINARY(LessEqual, all, NUMBER("greatest_number", s->rate_type, limit), "is_finite");
}

// Keeps a state as it is where the gradients are not finite. The update keeps its name.
static void keep_state(Step *s, size_t i, Value *is_finite) {
  Builder *b = &s->b;
  Value *made = s->next[i], *before = graph_state(b->graph, i);
  if (!made || b->failed) return;
  const char *name = made->name, *other = build_text(b, "%s.made", before->name);
  if (!made->is_output) build_name(b, made, other);
  s->next[i] = select_value(b, is_finite, made, before, made->is_output ? other : name);
  if (s->next[i]) s->next[i]->layout = before->layout;
}

static void update_scale(Step *s, Value *is_finite) {
  Builder *b = &s->b;
  const size_t state = build_state_like(b, "loss_scale.calls", STEP_TYPE, NULL);
  if (b->failed) return;
  Value *calls = b->graph->inputs[b->graph->ninputs - 1], *none = NUMBER("no_call", STEP_TYPE, 0);
  b->comment = "The scale of the loss, and calls since it changed or a gradient was not finite.";
  Value *more = BINARY(Add, calls, NUMBER("one_step", STEP_TYPE, 1), "calls_more");
  Value *may_grow = BINARY(GreaterEqual, more, NUMBER("calls_per_growth", STEP_TYPE, CALLS_PER_GROWTH), "may_grow");
  Value *two = NUMBER("scale_factor", TYPE_F32, 2);
  Value *greater = BINARY(Multiply, s->scale, two, "twice"), *less = BINARY(Divide, s->scale, two, "half_scale");
  greater = BINARY(Minimum, greater, NUMBER("greatest_scale", TYPE_F32, GREATEST_SCALE), "greater_scale");
  less = BINARY(Maximum, less, NUMBER("least_scale", TYPE_F32, LEAST_SCALE), "less_scale");
  Value *grown = select_value(b, may_grow, greater, s->scale, "grown_scale");
  Value *counted = select_value(b, may_grow, none, more, "counted_calls");
  for (size_t i = 0; i < b->graph->nstates && !b->failed; i++)
    if (graph_state(b->graph, i) == s->scale) s->next[i] = select_value(b, is_finite, grown, less, "loss_scale.next");
  s->next[state] = select_value(b, is_finite, counted, none, "loss_scale.calls.next");
}

void step_skip_overflow(Step *s) {
  Builder *b = &s->b;
  Value *is_finite = are_finite(s);
  b->comment = "States keep their values where it is.";
  for (size_t i = 0; i < b->graph->nstates && !b->failed; i++)
    if (type_is_float(graph_state(b->graph, i)->type) || s->next[i] == s->updates) keep_state(s, i, is_finite);
  update_scale(s, is_finite);
}
