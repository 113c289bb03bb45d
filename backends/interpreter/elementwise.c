// Elementwise operators: each is a formula of x, y and z, the elements of its inputs in the operator's order, after
// numpy broadcasting to the output's shape.
//
// To add one, write its row: FORMULA(name, declarations, expression). The declarations, made once a node and
// separated by semicolons, name what the expression needs of the node's attributes:
// `const double alpha = node_f32(node, "alpha")`.
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"

#include <math.h>

static Walk broadcast_walk(const Node *node) {
  Walk w = walk_over(&node->outputs[0]->shape);
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i]) walk_broadcast(&w, (int)i, &node->inputs[i]->shape);
  return w;
}

// An operand that the operator does not have, or that is absent, is a zero that its formula does not use.
static const double *operand(const Evaluation *e, uint32_t slot) {
  static const double nothing = 0;
  return slot < e->node->ninputs && e->inputs[slot] ? e->inputs[slot] : &nothing;
}

#define FORMULA(name, declarations, expression)                                                                        \
  bool interpret_##name(const Evaluation *e) {                                                                         \
    const Node *node = e->node;                                                                                        \
    const double *xs = operand(e, 0), *ys = operand(e, 1), *zs = operand(e, 2);                                        \
    declarations;                                                                                                      \
    for (Walk w = broadcast_walk(node); w.i < w.nelems; walk_step(&w)) {                                               \
      const double x = xs[w.at[0]], y = ys[w.at[1]], z = zs[w.at[2]];                                                  \
      (void)x, (void)y, (void)z;                                                                                       \
      e->outputs[0][w.i] = (expression);                                                                               \
    }                                                                                                                  \
    return true;                                                                                                       \
  }
#define NOTHING

FORMULA(ReLU, NOTHING, x > 0 || isnan(x) ? x : 0)
FORMULA(ReLUBackward, NOTHING, x > 0 ? y : 0) // alike for src and dst: they are positive together

FORMULA(Add, NOTHING, x + y)
FORMULA(Subtract, NOTHING, x - y)
FORMULA(Multiply, NOTHING, (x * y))

FORMULA(TypeCast, const Type type = node->outputs[0]->type, type_round(type, x))
