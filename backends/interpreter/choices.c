// A table of the operators that round nothing, and of the operands at which results jump. An operator that is not
// listed rounds, and its results move as its operands do.
#include "backends/interpreter/choices.h"

#include <math.h>

typedef enum Rounding {
  ROUNDS,      // perhaps always
  ROUNDS_ONCE, // to the nearest number, if it is elementwise; else sums, and sums of products, which whole numbers may
               // leave exact
  ROUNDS_NONE  // the results are elements of operands, their negations, attributes, or choices
} Rounding;

enum { FIRST = 1, SECOND = 2, FOURTH = 8 }; // sets of operands

typedef struct Row {
  Rounding rounding;
  int decide;   // operands at which the results jump; not needed if output 0 is not of a float type
  bool chooses; // the results are choices although they are floats
} Row;

// clang-format off
static const Row rows[OP_COUNT] = {
    [OP_Abs] = {ROUNDS_NONE}, [OP_Clamp] = {ROUNDS_NONE}, [OP_Neg] = {ROUNDS_NONE}, [OP_ReLU] = {ROUNDS_NONE},
    [OP_Maximum] = {ROUNDS_NONE}, [OP_Minimum] = {ROUNDS_NONE}, [OP_Select] = {ROUNDS_NONE},
    [OP_TypeCast] = {ROUNDS_NONE}, [OP_Reorder] = {ROUNDS_NONE}, [OP_Mod] = {ROUNDS_NONE, FIRST | SECOND},
    [OP_Round] = {ROUNDS_NONE, FIRST, true}, [OP_RoundThrough] = {ROUNDS_NONE, FIRST, true},
    [OP_Equal] = {ROUNDS_NONE}, [OP_NotEqual] = {ROUNDS_NONE}, [OP_Less] = {ROUNDS_NONE},
    [OP_LessEqual] = {ROUNDS_NONE}, [OP_Greater] = {ROUNDS_NONE}, [OP_GreaterEqual] = {ROUNDS_NONE},
    [OP_LogicalAnd] = {ROUNDS_NONE}, [OP_LogicalOr] = {ROUNDS_NONE}, [OP_LogicalNot] = {ROUNDS_NONE},
    [OP_ReduceMax] = {ROUNDS_NONE}, [OP_ReduceMin] = {ROUNDS_NONE}, [OP_ArgMax] = {ROUNDS_NONE},
    [OP_ArgMin] = {ROUNDS_NONE}, [OP_MaxPool] = {ROUNDS_NONE}, [OP_MaxPoolWinners] = {ROUNDS_NONE}, [OP_MaxPoolGather] = {ROUNDS_NONE},
    [OP_StaticReshape] = {ROUNDS_NONE}, [OP_StaticTranspose] = {ROUNDS_NONE}, [OP_Diagonal] = {ROUNDS_NONE},
    [OP_GenIndex] = {ROUNDS_NONE}, [OP_Concat] = {ROUNDS_NONE}, [OP_Slice] = {ROUNDS_NONE}, [OP_Pad] = {ROUNDS_NONE},
    [OP_Split] = {ROUNDS_NONE}, [OP_Tile] = {ROUNDS_NONE}, [OP_OneHot] = {ROUNDS_NONE}, [OP_Gather] = {ROUNDS_NONE},
    [OP_Leaf] = {ROUNDS_NONE},
    [OP_Add] = {ROUNDS_ONCE}, [OP_Subtract] = {ROUNDS_ONCE}, [OP_Multiply] = {ROUNDS_ONCE}, [OP_Square] = {ROUNDS_ONCE},
    [OP_Divide] = {ROUNDS_ONCE}, [OP_Sqrt] = {ROUNDS_ONCE}, [OP_BiasAdd] = {ROUNDS_ONCE},
    [OP_ReduceSum] = {ROUNDS_ONCE}, [OP_ReduceL1] = {ROUNDS_ONCE}, [OP_MatMul] = {ROUNDS_ONCE}, [OP_Convolution] = {ROUNDS_ONCE},
    [OP_AbsBackward] = {.decide = FIRST}, [OP_ClampBackward] = {.decide = FIRST}, [OP_EluBackward] = {.decide = FIRST},
    [OP_HardSigmoidBackward] = {.decide = FIRST}, [OP_HardSwishBackward] = {.decide = FIRST},
    [OP_ReLUBackward] = {.decide = FIRST}, [OP_PReLUBackward] = {.decide = FIRST},
    [OP_MaxPoolBackward] = {.decide = FIRST}, [OP_Dropout] = {.decide = FOURTH},
};
// clang-format on

bool node_chooses(const Node *node) {
  return rows[node->op->id].chooses || !type_is_float(node->outputs[0]->type);
}

bool operand_decides(const Node *node, uint32_t slot) {
  if (!type_is_float(node->inputs[slot]->type)) return false;
  return node_chooses(node) || (slot < MAX_OPERANDS && rows[node->op->id].decide >> slot & 1);
}

bool node_may_be_exact(const Node *node) {
  return rows[node->op->id].rounding != ROUNDS;
}

bool node_rounds_once(const Node *node) {
  return rows[node->op->id].rounding == ROUNDS_ONCE && node->op->traits & TRAIT_ELEMENTWISE;
}

bool value_has_exact_signs(const Value *v) {
  const Node *node = v->producer;
  if (!node || value_is_exact(v)) return true;
  if (!(node->op->traits & TRAIT_ELEMENTWISE) || !node_may_be_exact(node)) return false;
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k] && !value_is_exact(node->inputs[k])) return false;
  return true;
}

void graph_find_doubtful(const Graph *g, bool *is_doubtful) {
  for (size_t n = 0; n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    bool any = false;
    for (uint32_t k = 0; k < node->ninputs; k++)
      any |= node->inputs[k] && (is_doubtful[node->inputs[k]->index] || operand_decides(node, k));
    for (uint32_t k = 0; k < node->noutputs; k++) {
      const Value *v = node->outputs[k];
      if (v) is_doubtful[v->index] = any || type_tolerance(v->type) > type_tolerance(TYPE_F32);
    }
  }
}

static bool are_floats(const double *x, size_t nelems) {
  size_t i = 0;
  while (i < nelems && (isnan(x[i]) || type_round(TYPE_F32, x[i]) == x[i])) i++;
  return i == nelems;
}

// Whole numbers up to this are exact in f32, and so are sums of them that do not exceed it.
static const double most_whole = 0x1p24;

// The sum of the magnitudes of the elements, which are whole numbers, and the greatest; both infinite if one is not.
static double sum_of_whole(const double *x, size_t nelems, double *greatest) {
  double sum = 0;
  *greatest = 0;
  for (size_t i = 0; i < nelems; i++) {
    if (!(fabs(x[i]) <= most_whole) || x[i] != nearbyint(x[i])) return *greatest = INFINITY;
    sum += fabs(x[i]);
    *greatest = fmax(*greatest, fabs(x[i]));
  }
  return sum;
}

// Whether sums are exact in any order: of whole numbers, or of products of these, they stay small. Results of
// elementwise operators are exact if operands and results are f32: a result that is not exact has more digits in f64.
static bool may_be_exact(const Node *node, const Results *r) {
  const bool is_elementwise = node_rounds_once(node);
  double sums[MAX_OPERANDS] = {0}, greatest[MAX_OPERANDS] = {0};
  for (uint32_t k = 0; k < node->ninputs && k < MAX_OPERANDS; k++) {
    if (!r->inputs[k]) continue;
    if (TYPES_64_BITS & TYPE_BIT(node->inputs[k]->type)) return false;
    if (is_elementwise && !are_floats(r->inputs[k], r->input_nelems[k])) return false;
    sums[k] = is_elementwise ? 0 : sum_of_whole(r->inputs[k], r->input_nelems[k], &greatest[k]);
  }
  if (is_elementwise) return are_floats(r->output, r->nelems);
  if (!(node->op->traits & TRAIT_MULTIPLIES)) return sums[0] <= most_whole;
  return fmin(greatest[0] * sums[1], sums[0] * greatest[1]) + sums[2] <= most_whole;
}

bool results_are_exact(const Node *node, const Results *r) {
  const Type type = node->outputs[r->slot]->type;
  if (!type_is_float(type)) return true;
  if (rows[node->op->id].rounding == ROUNDS_ONCE && !may_be_exact(node, r)) return false;
  for (size_t i = 0; i < r->nelems; i++)
    if (!isnan(r->output[i]) && type_round(type, r->output[i]) != r->output[i]) return false;
  return true;
}
