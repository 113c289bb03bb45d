// The operator Gradient, which only graphs as read have: the library expands it (passes/gradient/inside.h), so it is no
// row of the table.
#include "ir/operators/gradient.h"

#include "ir/operators/infer.h"

// Each result is of the type and shape of the input that it is the gradient by.
static bool infer_gradient(Inference *inf, Node *node) {
  for (uint32_t i = 0; i < node->noutputs; i++) {
    Value *by = i + 1 < node->ninputs ? node->inputs[i + 1] : NULL, *v = node->outputs[i];
    if (!v) continue;
    if (!by) return infer_error(inf, "%s: expected an input to differentiate by for each result", v->name);
    if (!infer_type(inf, v, by->type) || !infer_type(inf, by, v->type) || !infer_same_shape(inf, by, v)) return false;
  }
  return true;
}

#define DIFF(name)                                                                                                     \
  { name, 'T', .is_optional = true }
const Operator gradient_operator = {
    .name = "Gradient",
    .id = OP_COUNT,
    .family = "gradient",
    .doc = "gradients of a tensor's sum by others that it depends on",
    .formula = "diff_i = d(sum of all elements of of) / d(by_i), of the shape of by_i: for each by, a diff",
    .inputs = {{"of", 'T'}, {"by", 'T'}},
    .ninputs = 2,
    .outputs = {{"diff", 'T'},
                DIFF("diff_1"),
                DIFF("diff_2"),
                DIFF("diff_3"),
                DIFF("diff_4"),
                DIFF("diff_5"),
                DIFF("diff_6"),
                DIFF("diff_7")},
    .noutputs = MAX_OPERANDS,
    .types = {{'T', TYPES_FLOAT}},
    .infer = infer_gradient,
    .traits = TRAIT_VARIADIC,
};
