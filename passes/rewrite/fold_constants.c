// Evaluates nodes whose inputs are all constants, in topological order, by PassContext.evaluate (the interpreter).
//
// Storing a result as a constant rounds it to its type, but values between fused nodes have more digits. So a result is
// folded only if its type represents it exactly, or if its type has so many digits that the rounding is invisible in
// all results (see coarsest_types).
//
// Limits keep the graph small: a value with more than MOST_ELEMENTS_FOLDED elements is not folded, and folding stops
// after MOST_IN_ALL elements in total. A limit also keeps the time short: the domains of all folded nodes have at most
// MOST_WORK points in total (for a convolution, its products). An elementwise operator on splat constants is folded to
// a splat, for any shape. Operators that only move elements have limits of their own, so that weights which a model
// slices, joins or transposes are not moved at each call.
#include "passes/rewrite/passes.h"

#include "ir/graph/fold.h"
#include "ir/operators/operator.h"

#include <math.h>

enum {
  MOST_ELEMENTS_FOLDED = 1 << 14,
  MOST_IN_ALL = 1 << 20,
  MOST_WORK = 1 << 24,
  MOST_ELEMENTS_MOVED = 1 << 24, // of a value
  MOST_MOVED = 1 << 26           // read and written, in total
};

typedef struct Fold {
  Graph *graph;
  PassContext *context;
  int64_t left;     // elements that may still be folded
  int64_t work;     // points of domains that may still be evaluated
  int64_t moves;    // elements that may still be read or written by operators that only move them
  TypeSet coarsest; // types that results may be rounded to
} Fold;

// Input i, then the outputs.
static const Value *operand(const Node *node, uint32_t i) {
  return i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
}

static bool is_foldable(const Node *node, bool *is_splat) {
  const unsigned traits = node->op->traits;
  *is_splat = traits & TRAIT_ELEMENTWISE && !(traits & TRAIT_ALONG_AXIS) && node->noutputs == 1;
  bool has_inputs = false;
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    if (!v) continue;
    if (!v->constant) return false;
    has_inputs = true;
    *is_splat &= v->constant->is_splat;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) // constants are row-major
    if (node->outputs[i] && !layout_is_row_major(&node->outputs[i]->layout)) return false;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs && !*is_splat; i++) {
    const Value *v = operand(node, i);
    int64_t nelems = v ? shape_nelems(&v->shape) : 0;
    if (nelems < 0 || nelems > MOST_ELEMENTS_MOVED || (v && shape_monomial(&v->shape))) return false;
  }
  return has_inputs;
}

// Takes the node's elements from the limits on moves. False: it computes, repeats elements, moves too many, or would
// store a tensor twice, as others read it, too.
static bool take_moves(Fold *f, const Node *node) {
  int64_t in = 0, out = 0;
  if (!(node->op->traits & (TRAIT_MOVES | TRAIT_PERMUTES | TRAIT_PIECES))) return false;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = operand(node, i);
    if (!v) continue;
    const bool is_shared = i < node->ninputs && (v->uses->next || v->is_output);
    if (i < node->ninputs && (v->constant->is_splat || (is_shared && node->op->traits & TRAIT_PERMUTES))) return false;
    if (i >= node->ninputs && (!node->inputs[0] || v->type != node->inputs[0]->type)) return false;
    *(i < node->ninputs ? &in : &out) += shape_nelems(&v->shape);
  }
  if (out > in || in + out > f->moves) return false;
  f->moves -= in + out;
  return true;
}

// The number of points of the node's domain (Operator.domain), at most MOST_WORK + 1; 0: the operator has no domain
// function, and its work is proportional to its elements.
static int64_t count_work(const Node *node) {
  Domain d = {.nextra = 0};
  int64_t work = 1;
  if (!node->op->domain) return 0;
  node->op->domain(node, &d);
  for (int i = 0; i < d.shape.rank + d.nextra; i++) {
    const Extent e = i < d.shape.rank ? d.shape.extent[i] : d.extra[i - d.shape.rank];
    const int64_t extent = extent_value(e);
    if (!extent) return 0;
    work = extent > MOST_WORK / work ? MOST_WORK + 1 : work * extent;
  }
  return work;
}

// The elements that the node's outputs have as constants.
static int64_t count_elements(const Node *node, bool is_splat) {
  int64_t nelems = 0;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (node->outputs[i]) nelems += is_splat ? 1 : shape_nelems(&node->outputs[i]->shape);
  return nelems;
}

// Takes the node's elements and work from the limits. False: folding the node would make too many, or take too long.
static bool take_work(Fold *f, const Node *node, bool is_splat) {
  const int64_t work = is_splat ? 1 : count_work(node);
  for (uint32_t i = 0; i < node->ninputs + node->noutputs && !is_splat; i++)
    if (operand(node, i) && shape_nelems(&operand(node, i)->shape) > MOST_ELEMENTS_FOLDED) return false;
  if (f->left <= 0 || work > f->work) return false;
  f->left -= count_elements(node, is_splat);
  f->work -= work;
  return true;
}

// Whether the type represents the number exactly, or may round it, as a type in f->coarsest.
static bool holds(const void *fold, Type type, double x) {
  const Fold *f = fold;
  const double rounded = type_round(type, x);
  if (rounded == x || (isnan(rounded) && isnan(x))) return true;
  return f->coarsest & TYPE_BIT(type) && isfinite(rounded) && isfinite(x);
}

static bool fold_node(Fold *f, Node *node) {
  bool is_splat;
  PassContext *c = f->context;
  if (!c->evaluate || c->failed || !is_foldable(node, &is_splat)) return false;
  if (!take_work(f, node, is_splat) && (is_splat || !take_moves(f, node))) return false;
  const FoldResult result = graph_fold_node(f->graph, node, &(Folding){c->evaluate, is_splat, holds, f});
  if (result == FOLD_OUT_OF_MEMORY) pass_out_of_memory(c);
  return result == FOLD_DONE;
}

static bool widens_to_f64(const Node *node) {
  bool has_f64 = false, has_narrower = false;
  for (uint32_t i = 0; i < node->noutputs; i++) has_f64 |= node->outputs[i] && node->outputs[i]->type == TYPE_F64;
  for (uint32_t i = 0; i < node->ninputs; i++) has_narrower |= node->inputs[i] && node->inputs[i]->type != TYPE_F64;
  return has_f64 && has_narrower;
}

// The types whose rounding is invisible in results. Rounding to 16 bits is visible in f32 results. Rounding to f32 is
// visible in f64 results, but only if a node of the graph computes f64 from a narrower type.
static TypeSet coarsest_types(const Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++)
    if (widens_to_f64(g->nodes[i])) return TYPE_BIT(TYPE_F64);
  return TYPE_BIT(TYPE_F64) | TYPE_BIT(TYPE_F32);
}

// Constants of one element are numbers, as splats are: rules match them, and kernels have them in their code. A graph's
// constants are shared with its copies, so the value gets one of its own.
static bool make_number(Graph *g, PassContext *c, Value *v) {
  if (!v || !v->constant || v->constant->is_splat || shape_nelems(&v->shape) != 1) return false;
  Constant *number = ARENA_NEW(&g->arena, Constant);
  if (!number) return pass_out_of_memory(c);
  *number = *v->constant;
  number->is_splat = true;
  number->file = NULL;
  v->constant = number;
  return true;
}

bool pass_fold_constants(Graph *g, PassContext *c) {
  Fold f = {g, c, MOST_IN_ALL, MOST_WORK, MOST_MOVED, coarsest_types(g)};
  bool changed = false;
  size_t nremaining = 0;
  for (size_t i = 0; i < g->nnodes; i++) {
    Node *node = g->nodes[i];
    for (uint32_t k = 0; k < node->ninputs; k++) changed |= make_number(g, c, node->inputs[k]);
    const bool is_folded = fold_node(&f, node);
    changed |= is_folded;
    if (is_folded) continue;
    node->index = (uint32_t)nremaining;
    g->nodes[nremaining++] = node;
  }
  g->nnodes = nremaining;
  return changed;
}
