// Inference and check functions of optimizers.
#include "ir/operators/rules.h"

#include <float.h>
#include <math.h>

// Rate and step are scalars; all other operands have the shape of the weights.
bool infer_optimizer(Inference *inf, Node *node) {
  Value *weights = node->inputs[0];
  for (uint32_t i = 1; i < node->ninputs; i++) {
    const char type = node->op->inputs[i].type;
    const bool is_scalar = type == 'R' || type == 'N';
    if (!(is_scalar ? infer_rank(inf, node->inputs[i], 0) : infer_same_shape(inf, weights, node->inputs[i])))
      return false;
  }
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (!infer_same_shape(inf, weights, node->outputs[i])) return false;
  return true;
}

// A step of 0 would divide by zero. A step that is an input is checked when the graph runs.
static bool check_step(const Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  bool ok = true;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *step = node->inputs[i];
    if (!node->op->inputs[i].is_count || !step->constant) continue;
    const double number = type_load(step->type, step->constant->data, 0);
    if (number < 1)
      ok = error_at(d, node->position, "%s: %s: expected a step of at least 1, because steps count from 1, found %g",
                    node_title(node, title), step->name, number);
  }
  return ok;
}

// Epsilon is added in the type of the moments, where a smaller number may round to 0. ONNX's default is 0.
static bool check_epsilon(const Node *node, Diagnostics *d) {
  char title[NODE_TITLE_BYTES];
  if (!operator_has_attribute(node->op, "epsilon")) return true;
  const double least = node->inputs[2]->type == TYPE_F64 ? DBL_MIN : (double)FLT_MIN;
  const double epsilon = node_f32(node, "epsilon");
  return epsilon >= least || epsilon == 0 ||
         error_at(d, node->position, "%s: epsilon: expected 0 or at least %g, found %g", node_title(node, title), least,
                  epsilon);
}

// A beta of 1 would divide by zero. PyTorch rejects the same numbers.
bool check_optimizer(Node *node, Diagnostics *d) {
  static const struct {
    const char *name;
    bool is_below_1;
  } rows[] = {{"beta1", true}, {"beta2", true}, {"momentum", false}, {"weight_decay", false}, {"lr_decay", false}};
  char title[NODE_TITLE_BYTES];
  bool ok = check_step(node, d);
  ok &= check_epsilon(node, d);
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (!operator_has_attribute(node->op, rows[i].name)) continue;
    const double number = node_f32(node, rows[i].name);
    const Type type = node->inputs[2]->type; // of the rate or of a moment
    const bool overflows = !isfinite(type_round(type, number));
    if (number >= 0 && !overflows && (number < 1 || !rows[i].is_below_1)) continue;
    ok = error_at(d, node->position, "%s: %s: expected at least 0%s%s, found %g", node_title(node, title), rows[i].name,
                  rows[i].is_below_1 ? " and less than 1"
                  : overflows        ? " and within the range of "
                                     : "",
                  overflows && !rows[i].is_below_1 ? type_name(type) : "", number);
  }
  return ok;
}
