// RNN, GRU and LSTM, unrolled step by step: the number of steps is known when the model is read. The inputs' products
// are computed for all steps at once, the states' products one after the other.
#include "frontend/onnx/translation.h"

#include <string.h>

enum { MOST_STEPS = 4096, MOST_GATES = 4, MOST_ACTIVATIONS = 3 };

// With the numbers that activation_alpha and activation_beta replace, under the names of the operator's attributes.
typedef struct Activation {
  const char *name;
  OperatorId op;
  const char *attributes[2];
  double numbers[2];
} Activation;

static const Activation activations[] = {{"sigmoid", OP_Sigmoid, {NULL}, {0}},
                                         {"tanh", OP_Tanh, {NULL}, {0}},
                                         {"relu", OP_ReLU, {NULL}, {0}},
                                         {"softplus", OP_SoftPlus, {NULL}, {0}},
                                         {"hardsigmoid", OP_HardSigmoid, {"alpha", "beta"}, {0.2F, 0.5}},
                                         {"leakyrelu", OP_LeakyReLU, {"alpha", NULL}, {0.01F, 0}},
                                         {"elu", OP_Elu, {"alpha", NULL}, {1, 0}},
                                         {NULL, OP_COUNT, {NULL}, {0}}};

typedef struct Cell {
  int ngates, nactivations;
  Activation activations[2 * MOST_ACTIVATIONS]; // of both directions
  int64_t nsteps, hidden;
  Extent batch;
  bool is_batch_first, has_memory; // has_memory: an LSTM
  double clip;                     // 0: no clipping
  Value *lengths;                  // [batch, 1]; NULL: all sequences have nsteps
} Cell;

// The operands of a direction, and its state.
typedef struct Direction {
  int number;
  bool is_backward;
  Value *inputs;                      // [steps, batch, gates * hidden], with the bias of the inputs
  Value *weights, *bias;              // of the state: [hidden, gates * hidden], [gates * hidden] or NULL
  Value *peepholes[MOST_ACTIVATIONS]; // [hidden], or NULL
  Value *state, *memory;              // [batch, hidden]
} Direction;

static Value *combine(Onnx *x, OperatorId id, Value *a, Value *b) {
  return a && b ? build_binary(&x->build, id, a, b) : NULL;
}

static Value *one_less(Onnx *x, Value *v) {
  return v ? build_binary(&x->build, OP_Subtract, build_like(&x->build, v, 1), v) : NULL;
}

static Value *product(Onnx *x, Value *a, Value *b) {
  return combine(x, OP_MatMul, a, b);
}

// Activations

static Value *activate(Onnx *x, const Cell *c, const Direction *d, int which, Value *v) {
  Builder *b = &x->build;
  const Activation *activation = &c->activations[d->number * c->nactivations + which];
  if (c->clip > 0 && v) {
    Node *node = build_node(b, OP_Clamp, 1, &v);
    if (!node) return NULL;
    build_set(node, "min")->f32 = -c->clip;
    build_set(node, "max")->f32 = c->clip;
    v = build_one(b, node);
  }
  Node *node = build_node(b, activation->op, 1, &v);
  for (int k = 0; node && k < 2; k++)
    if (activation->attributes[k]) build_set(node, activation->attributes[k])->f32 = activation->numbers[k];
  return build_one(b, node);
}

// Names are compared without regard to case.
static bool is_activation(const char *name, Bytes given) {
  size_t i = 0;
  for (; i < given.count && name[i]; i++)
    if ((given.at[i] >= 'A' && given.at[i] <= 'Z' ? given.at[i] - 'A' + 'a' : given.at[i]) != name[i]) return false;
  return i == given.count && !name[i];
}

// The numbers of activation_alpha and activation_beta are those of the activations that have one, in their order.
static bool take_activations(Onnx *x, Cell *c, int ndirections, const char *const *otherwise) {
  static const char *const lists[] = {"activation_alpha", "activation_beta"};
  Bytes given[2 * MOST_ACTIVATIONS];
  double numbers[2][2 * MOST_ACTIVATIONS];
  size_t counts[2] = {0}, used[2] = {0};
  OnnxAttribute a;
  const size_t n = (size_t)ndirections * (size_t)c->nactivations, count = onnx_texts(x, "activations", given, n);
  if (count != 0 && count != n) return build_error(&x->build, "activations: expected %zu", n);
  for (size_t k = 0; k < 2; k++)
    if (onnx_attribute(x, lists[k], ONNX_FLOATS, &a))
      counts[k] = onnx_floats(&a, numbers[k], (size_t)2 * MOST_ACTIVATIONS);
  for (size_t i = 0; i < n; i++) {
    const char *own = otherwise[i % (size_t)c->nactivations];
    const Bytes name = count ? given[i] : (Bytes){(const uint8_t *)own, strlen(own)};
    const Activation *activation = activations;
    while (activation->name && !is_activation(activation->name, name)) activation++;
    if (!activation->name)
      return build_error(&x->build, "the activation %.*s is not supported", name.count < 40 ? (int)name.count : 40,
                         (const char *)name.at);
    c->activations[i] = *activation;
    for (size_t k = 0; k < 2; k++)
      if (activation->attributes[k] && used[k] < counts[k] && used[k] < (size_t)2 * MOST_ACTIVATIONS)
        c->activations[i].numbers[k] = numbers[k][used[k]++];
  }
  return true;
}

// Slices of inputs

// Gate i of [..., gates * hidden].
static Value *gate(Onnx *x, const Cell *c, Value *v, int i) {
  return v ? build_slice(&x->build, v, v->shape.rank - 1, i * c->hidden, (i + 1) * c->hidden) : NULL;
}

static Value *first_state(Onnx *x, const Cell *c, size_t input, int direction, Type type) {
  const Shape shape = {.rank = 2, .extent = {c->batch, EXTENT(c->hidden)}};
  Value *given = onnx_in(x, input);
  if (given && c->is_batch_first) given = build_transpose(&x->build, given, (const int64_t[]){1, 0, 2}, 3);
  if (given) return onnx_at_index(x, given, 0, direction);
  return build_number(&x->build, type, &shape, 0);
}

static bool begin(Onnx *x, const Cell *c, Value *steps, int number, bool is_backward, Direction *d) {
  Builder *b = &x->build;
  static const int64_t turn[] = {1, 0};
  const int64_t both = c->ngates * c->hidden;
  Value *bias = onnx_at_index(x, onnx_in(x, 3), 0, number),
        *peepholes = c->has_memory ? onnx_at_index(x, onnx_in(x, 7), 0, number) : NULL;
  *d = (Direction){.number = number, .is_backward = is_backward};
  d->inputs = product(x, steps, build_transpose(b, onnx_at_index(x, onnx_in(x, 1), 0, number), turn, 2));
  d->weights = build_transpose(b, onnx_at_index(x, onnx_in(x, 2), 0, number), turn, 2);
  if (bias) {
    d->inputs = combine(x, OP_Add, d->inputs, build_slice(b, bias, 0, 0, both));
    d->bias = build_slice(b, bias, 0, both, 2 * both);
  }
  for (int i = 0; peepholes && i < MOST_ACTIVATIONS; i++) d->peepholes[i] = gate(x, c, peepholes, i);
  d->state = first_state(x, c, 5, number, onnx_in(x, 0)->type);
  if (c->has_memory) d->memory = first_state(x, c, 6, number, onnx_in(x, 0)->type);
  return d->inputs && d->weights && d->state && (d->memory || !c->has_memory);
}

// Steps

static Value *with_peephole(Onnx *x, Value *v, Value *peephole, Value *memory) {
  return peephole ? combine(x, OP_Add, v, combine(x, OP_Multiply, peephole, memory)) : v;
}

// Computes the state after a step; `all` is the inputs' part of the gates: [batch, gates * hidden].
typedef Value *(*Step)(Onnx *x, const Cell *c, const Direction *d, Value *all, Value **memory);

static Value *with_state(Onnx *x, const Direction *d, Value *all) {
  all = combine(x, OP_Add, all, product(x, d->state, d->weights));
  return d->bias ? combine(x, OP_Add, all, d->bias) : all;
}

static Value *step_plain(Onnx *x, const Cell *c, const Direction *d, Value *all, Value **memory) {
  (void)memory;
  return activate(x, c, d, 0, with_state(x, d, all));
}

// Gates: input, output, forget, cell.
static Value *step_memory(Onnx *x, const Cell *c, const Direction *d, Value *all, Value **memory) {
  all = with_state(x, d, all);
  Value *in = activate(x, c, d, 0, with_peephole(x, gate(x, c, all, 0), d->peepholes[0], d->memory));
  Value *forget = activate(x, c, d, 0, with_peephole(x, gate(x, c, all, 2), d->peepholes[2], d->memory));
  Value *cell = activate(x, c, d, 1, gate(x, c, all, 3));
  *memory = combine(x, OP_Add, combine(x, OP_Multiply, forget, d->memory), combine(x, OP_Multiply, in, cell));
  Value *out = activate(x, c, d, 0, with_peephole(x, gate(x, c, all, 1), d->peepholes[1], *memory));
  return combine(x, OP_Multiply, out, activate(x, c, d, 2, *memory));
}

// Gates: update, reset, hidden. The reset gate multiplies the state before its product or, with linear_before_reset,
// the product.
static Value *step_gated(Onnx *x, const Cell *c, const Direction *d, Value *all, Value **memory) {
  (void)memory;
  const bool is_behind = onnx_int(x, "linear_before_reset", 0) != 0;
  Value *own = product(x, d->state, d->weights), *hidden;
  if (d->bias) own = combine(x, OP_Add, own, d->bias);
  Value *update = activate(x, c, d, 0, combine(x, OP_Add, gate(x, c, all, 0), gate(x, c, own, 0)));
  Value *reset = activate(x, c, d, 0, combine(x, OP_Add, gate(x, c, all, 1), gate(x, c, own, 1)));
  if (is_behind) {
    hidden = combine(x, OP_Multiply, reset, gate(x, c, own, 2));
  } else {
    hidden = product(x, combine(x, OP_Multiply, reset, d->state), gate(x, c, d->weights, 2));
    if (d->bias) hidden = combine(x, OP_Add, hidden, gate(x, c, d->bias, 2));
  }
  hidden = activate(x, c, d, 1, combine(x, OP_Add, gate(x, c, all, 2), hidden));
  return combine(x, OP_Add, combine(x, OP_Multiply, one_less(x, update), hidden),
                 combine(x, OP_Multiply, update, d->state));
}

// Runs a step. Sequences that have ended keep their state, and their outputs are zeros.
static bool run_step(Onnx *x, const Cell *c, Direction *d, Step step, int64_t t, Value **output) {
  Builder *b = &x->build;
  Value *memory = NULL, *state = step(x, c, d, onnx_at_index(x, d->inputs, 0, t), &memory);
  *output = state;
  if (!state || (c->has_memory && !memory)) return false;
  if (c->lengths) {
    Value *is_inside = build_binary(b, OP_Greater, c->lengths, build_number(b, c->lengths->type, NULL, (double)t));
    *output = build_choose(b, is_inside, state, build_like(b, state, 0));
    state = build_choose(b, is_inside, state, d->state);
    if (memory) memory = build_choose(b, is_inside, memory, d->memory);
  }
  d->state = state;
  d->memory = memory;
  return *output && state && (!c->has_memory || memory);
}

static bool put_results(Onnx *x, const Cell *c, Value **outputs, Value **states, Value **memories, int n) {
  Builder *b = &x->build;
  Value **both = ARENA_ARRAY(x->reading.arena, Value *, (size_t)n + 1);
  if (!both) return error_out_of_memory(x->reading.d);
  for (int i = 0; i < n; i++)
    if (!(both[i] = onnx_stack(x, outputs + i * c->nsteps, (size_t)c->nsteps, 0))) return false;
  Value *all = onnx_stack(x, both, (size_t)n, 0), *last = onnx_stack(x, states, (size_t)n, 0),
        *memory = c->has_memory ? onnx_stack(x, memories, (size_t)n, 0) : NULL;
  const bool turns = c->is_batch_first;
  // [directions, steps, batch, hidden]
  all = build_transpose(b, all, turns ? (const int64_t[]){2, 1, 0, 3} : (const int64_t[]){1, 0, 2, 3}, 4);
  if (turns) last = build_transpose(b, last, (const int64_t[]){1, 0, 2}, 3);
  if (turns && memory) memory = build_transpose(b, memory, (const int64_t[]){1, 0, 2}, 3);
  return onnx_out(x, 0, all) && onnx_out(x, 1, last) && (!c->has_memory || onnx_out(x, 2, memory));
}

static bool run(Onnx *x, Cell *c, Step step, const char *const *activation_names) {
  Builder *b = &x->build;
  Value *steps = onnx_in(x, 0);
  const Bytes way = onnx_text(x, "direction");
  const bool is_both = bytes_are(way, "bidirectional"), is_backward = bytes_are(way, "reverse");
  if (!steps || !onnx_in(x, 1) || !onnx_in(x, 2) || !onnx_has_numbers(x, onnx_in(x, 2))) return false;
  if (steps->shape.rank != 3 || onnx_in(x, 2)->shape.rank != 3) return build_error(b, "expected X and R of 3 axes");
  if (onnx_int(x, "input_forget", 0)) return build_error(b, "input_forget is not supported");
  c->is_batch_first = onnx_int(x, "layout", 0) != 0;
  if (c->is_batch_first) steps = build_transpose(b, steps, (const int64_t[]){1, 0, 2}, 3);
  if (!steps || !onnx_has_number(x, onnx_in(x, 0), c->is_batch_first) || !onnx_has_number(x, steps, 2)) return false;
  c->nsteps = steps->shape.extent[0].value;
  c->batch = steps->shape.extent[1];
  c->hidden = onnx_in(x, 2)->shape.extent[2].value;
  c->clip = onnx_float(x, "clip", 0);
  const int n = is_both ? 2 : 1;
  if (c->nsteps < 1 || c->nsteps > MOST_STEPS) return build_error(b, "expected 1 to %d steps", MOST_STEPS);
  if (onnx_in(x, 4))
    c->lengths = onnx_reshape_extents(x, onnx_in(x, 4), &(Shape){.rank = 2, .extent = {c->batch, EXTENT(1)}});
  if (!take_activations(x, c, n, activation_names) || (onnx_in(x, 4) && !c->lengths)) return false;
  Value **outputs = ARENA_ARRAY(x->reading.arena, Value *, (size_t)(n * c->nsteps)), *states[2], *memories[2];
  if (!outputs) return error_out_of_memory(x->reading.d);
  for (int i = 0; i < n; i++) {
    Direction d;
    if (!begin(x, c, steps, i, is_backward || i == 1, &d)) return false;
    for (int64_t k = 0; k < c->nsteps; k++) {
      const int64_t t = d.is_backward ? c->nsteps - 1 - k : k;
      if (!run_step(x, c, &d, step, t, &outputs[i * c->nsteps + t])) return false;
    }
    states[i] = d.state;
    memories[i] = d.memory;
  }
  return put_results(x, c, outputs, states, memories, n);
}

bool onnx_rnn(Onnx *x) {
  Cell c = {.ngates = 1, .nactivations = 1};
  return run(x, &c, step_plain, (const char *const[]){"Tanh"});
}

bool onnx_gru(Onnx *x) {
  Cell c = {.ngates = 3, .nactivations = 2};
  return run(x, &c, step_gated, (const char *const[]){"Sigmoid", "Tanh"});
}

bool onnx_lstm(Onnx *x) {
  Cell c = {.ngates = 4, .nactivations = 3, .has_memory = true};
  return run(x, &c, step_memory, (const char *const[]){"Sigmoid", "Tanh", "Tanh"});
}
