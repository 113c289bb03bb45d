// Losses and optimizers, as the ONNX specification writes their formulas, and gradients.
#include "frontend/onnx/translation.h"

#include <math.h>

static Value *plus(Onnx *x, Value *a, Value *b) {
  return build_binary(&x->build, OP_Add, a, b);
}

// Losses

static const char *take_reduction(Onnx *x) {
  const Bytes mode = onnx_text(x, "reduction");
  return bytes_are(mode, "none") ? "none" : bytes_are(mode, "sum") ? "sum" : "mean";
}

bool onnx_cross_entropy(Onnx *x) {
  Builder *b = &x->build;
  Value *const in[] = {onnx_in(x, 0), onnx_in(x, 1), onnx_in(x, 2)};
  OnnxAttribute ignored;
  Node *node = build_node(b, OP_SoftmaxCrossEntropy, in[2] ? 3 : 2, in);
  if (!build_set_choice(node, "reduction", take_reduction(x))) return false;
  build_set(node, "axis")->s64 = 1;
  if (onnx_attribute(x, "ignore_index", ONNX_INT, &ignored)) build_set(node, "ignore_index")->s64 = ignored.i;
  if (!onnx_out(x, 0, build_one(b, node))) return false;
  if (!onnx_wants(x, 1)) return true;
  return onnx_out(x, 1, build_along(b, OP_LogSoftmax, in[0], 1));
}

// Optimizers: inputs are the rate and the number of previous steps, then all tensors, all gradients, and each state of
// all tensors.

static Value *regularised(Onnx *x, Value *weights, Value *gradient) {
  const double factor = onnx_float(x, "norm_coefficient", 0);
  return factor != 0 ? plus(x, build_times(&x->build, weights, factor), gradient) : gradient;
}

static Value *step_back(Onnx *x, Value *weights, Value *rate, Value *direction) {
  return build_binary(&x->build, OP_Subtract, weights, build_binary(&x->build, OP_Multiply, rate, direction));
}

static Value *is_later(Onnx *x, Value *steps) {
  return build_binary(&x->build, OP_Greater, steps, build_like(&x->build, steps, 0));
}

static bool momentum(Onnx *x, size_t n, size_t i) {
  Value *rate = onnx_in(x, 0), *steps = onnx_in(x, 1), *weights = onnx_in(x, 2 + i),
        *velocity = onnx_in(x, 2 + 2 * n + i);
  const double alpha = onnx_float(x, "alpha", 0), beta = onnx_float(x, "beta", 1);
  Value *g = regularised(x, weights, onnx_in(x, 2 + n + i));
  Value *part = beta != 1 ? build_choose(&x->build, is_later(x, steps), build_like(&x->build, weights, beta),
                                         build_like(&x->build, weights, 1))
                          : NULL;
  Value *next =
      plus(x, build_times(&x->build, velocity, alpha), part ? build_binary(&x->build, OP_Multiply, part, g) : g);
  Value *direction =
      bytes_are(onnx_text(x, "mode"), "nesterov") ? plus(x, g, build_times(&x->build, next, alpha)) : next;
  return onnx_out(x, i, step_back(x, weights, rate, direction)) && onnx_out(x, n + i, next);
}

static Value *root_of(Onnx *x, Value *v) {
  Value *root = build_unary(&x->build, OP_Sqrt, v);
  return plus(x, root, build_like(&x->build, root, onnx_float(x, "epsilon", 1e-6F)));
}

static bool adagrad(Onnx *x, size_t n, size_t i) {
  Builder *b = &x->build;
  Value *rate = onnx_in(x, 0), *steps = onnx_in(x, 1), *weights = onnx_in(x, 2 + i),
        *squares = onnx_in(x, 2 + 2 * n + i);
  const double decay = onnx_float(x, "decay_factor", 0);
  Value *g = regularised(x, weights, onnx_in(x, 2 + n + i)), *next = plus(x, squares, build_unary(b, OP_Square, g));
  if (decay != 0 && rate) {
    Value *slower = build_times(b, build_cast(b, steps, rate->type), decay);
    rate = build_binary(b, OP_Divide, rate, plus(x, slower, build_like(b, slower, 1)));
  }
  return onnx_out(x, i, step_back(x, weights, rate, build_binary(b, OP_Divide, g, root_of(x, next)))) &&
         onnx_out(x, n + i, next);
}

// 1 - factor^steps
static Value *rest_of_power(Onnx *x, Value *steps, double factor) {
  Value *power = build_binary(&x->build, OP_Power, build_like(&x->build, steps, factor), steps);
  return build_binary(&x->build, OP_Subtract, build_like(&x->build, steps, 1), power);
}

static bool adam(Onnx *x, size_t n, size_t i) {
  Builder *b = &x->build;
  Value *rate = onnx_in(x, 0), *weights = onnx_in(x, 2 + i);
  Value *mean = onnx_in(x, 2 + 2 * n + i), *squares = onnx_in(x, 2 + 3 * n + i);
  const double alpha = onnx_float(x, "alpha", 0.9F), beta = onnx_float(x, "beta", 0.999F);
  Value *g = regularised(x, weights, onnx_in(x, 2 + n + i));
  if (!rate || !g) return build_error(b, "expected a rate and gradients");
  Value *steps = build_cast(b, onnx_in(x, 1), rate->type);
  Value *new_mean = plus(x, build_times(b, mean, alpha), build_times(b, g, 1 - alpha));
  Value *new_squares = plus(x, build_times(b, squares, beta), build_times(b, build_unary(b, OP_Square, g), 1 - beta));
  Value *corrected = build_binary(b, OP_Divide, build_unary(b, OP_Sqrt, rest_of_power(x, steps, beta)),
                                  rest_of_power(x, steps, alpha));
  Value *own_rate = build_choose(b, is_later(x, steps), build_binary(b, OP_Multiply, rate, corrected), rate);
  Value *next = step_back(x, weights, own_rate, build_binary(b, OP_Divide, new_mean, root_of(x, new_squares)));
  next = build_times(b, next, 1 - onnx_float(x, "norm_coefficient_post", 0));
  return onnx_out(x, i, next) && onnx_out(x, n + i, new_mean) && onnx_out(x, 2 * n + i, new_squares);
}

bool onnx_optimizer(Onnx *x) {
  const bool is_adam = x->row->op == OP_Adam;
  const size_t nkinds = is_adam ? 4 : 3, ntensors = x->node->ninputs < 2 ? 0 : x->node->ninputs - 2,
               n = ntensors / nkinds;
  if (n == 0 || ntensors % nkinds != 0)
    return build_error(&x->build, "expected a rate, a number of steps and %zu tensors of each", nkinds);
  bool ok = true;
  for (size_t i = 0; ok && i < n; i++)
    ok = is_adam ? adam(x, n, i) : x->row->op == OP_Adagrad ? adagrad(x, n, i) : momentum(x, n, i);
  return ok;
}

// Gradients

// Whether the node's inputs from `first` on are the tensors that the attribute names. The gradient is that of the graph
// as it stands.
static bool are_inputs(Onnx *x, const char *attribute, size_t first, size_t *count) {
  Bytes names[MAX_VARIADIC];
  *count = onnx_texts(x, attribute, names, MAX_VARIADIC);
  for (size_t i = 0; i < *count; i++) {
    const char *name = i < MAX_VARIADIC ? onnx_text_of(x, names[i]) : NULL;
    if (!name) return build_error(&x->build, "%s: expected at most %d names", attribute, MAX_VARIADIC);
    if (first + i >= x->node->ninputs || !onnx_in(x, first + i) || onnx_find_value(x, name) != onnx_in(x, first + i))
      return build_error(&x->build, "input %zu: expected the tensor %.80s itself, which %s names", first + i,
                         onnx_is_name(name) ? name : "?", attribute);
  }
  return true;
}

bool onnx_gradient(Onnx *x) {
  Builder *b = &x->build;
  const char *name = onnx_text_of(x, onnx_text(x, "y"));
  Value *of = name ? onnx_find_value(x, name) : NULL;
  size_t nby, nothers;
  if (of == &x->failed || !are_inputs(x, "xs", 0, &nby) || !are_inputs(x, "zs", nby, &nothers)) return false;
  if (!of || !nby || nby >= MAX_VARIADIC || x->node->noutputs > nby || nby > MAX_OPERANDS)
    return build_error(b, "expected y, a tensor made before the node, and xs, 1 to %d tensors", MAX_OPERANDS);
  Node *node = graph_add_node(b->graph, &operators[OP_Gradient], NULL, (uint32_t)nby + 1, MAX_OPERANDS);
  if (!node) return build_out_of_memory(b) != NULL;
  node->position = b->at;
  node_set_input(node, 0, of);
  for (uint32_t i = 0; i < nby; i++) {
    const Value *by = onnx_in(x, i);
    if (!type_is_float(by->type)) return build_error(b, "input %u: expected floating-point numbers", i);
    node_set_input(node, i + 1, x->inputs[i]);
    Value *v = i == 0 || onnx_wants(x, i) ? build_result(b, node, i, by->type) : NULL;
    if (v) v->shape = by->shape;
    if (onnx_wants(x, i) && !onnx_out(x, i, v)) return false;
  }
  return true;
}
