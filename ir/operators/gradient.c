// The operator Gradient, which only graphs as read have: the library expands it (passes/gradient/inside.h).
#include "ir/operators/infer.h"
#include "ir/operators/rules.h"

// Each result is of the type and shape of the input that it is the gradient by.
bool infer_gradient(Inference *inf, Node *node) {
  for (uint32_t i = 0; i < node->noutputs; i++) {
    Value *by = i + 1 < node->ninputs ? node->inputs[i + 1] : NULL, *v = node->outputs[i];
    if (!v) continue;
    if (!by) return infer_error(inf, "%s: expected an input to differentiate by for each result", v->name);
    if (!infer_type(inf, v, by->type) || !infer_type(inf, by, v->type) || !infer_same_shape(inf, by, v)) return false;
  }
  return true;
}
