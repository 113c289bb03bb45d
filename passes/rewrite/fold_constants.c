// Evaluates nodes whose inputs are all constants, in topological order, by PassContext.evaluate (the interpreter).
//
// Storing a result as a constant rounds it to its type, but values between fused nodes have more digits. So a result is
// folded only if its type represents it exactly, or if its type has so many digits that the rounding is invisible in
// all results (see coarsest_types).
//
// Limits keep the graph small: a value with more than MOST_ELEMENTS_FOLDED elements is not folded, and folding stops
// after MOST_IN_ALL elements in total. A limit also keeps the time short: the domains of all folded nodes have at most
// MOST_WORK points in total (for a convolution, its products). An elementwise operator on splat constants is folded to
// a splat, for any shape.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

#include <math.h>

enum { MOST_ELEMENTS_FOLDED = 1 << 14, MOST_IN_ALL = 1 << 20, MOST_WORK = 1 << 24 };

typedef struct Fold {
  Graph *graph;
  PassContext *context;
  int64_t left;     // elements that may still be folded
  int64_t work;     // points of domains that may still be evaluated
  TypeSet coarsest; // types that results may be rounded to
} Fold;

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
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    int64_t nelems = v ? shape_nelems(&v->shape) : 0;
    if (nelems < 0 || nelems > MOST_ELEMENTS_FOLDED || (v && shape_monomial(&v->shape))) return false;
  }
  return has_inputs;
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

// Takes the node's work from the limit. False: folding the node would take too long.
static bool take_work(Fold *f, const Node *node, bool is_splat) {
  const int64_t work = is_splat ? 1 : count_work(node);
  if (work > f->work) return false;
  f->work -= work;
  return true;
}

static double *load_constant(Arena *scratch, const Value *v, size_t nelems) {
  double *elements = ARENA_ARRAY(scratch, double, nelems);
  size_t step = v->constant->is_splat ? 0 : 1;
  for (size_t i = 0; elements && i < nelems; i++) type_load_wide(v->type, v->constant->data, i * step, &elements[i]);
  return elements;
}

// Whether the type represents the number exactly, or may round it, as a type in f->coarsest.
static bool holds(const Fold *f, Type type, double x) {
  double rounded = type_round(type, x);
  if (rounded == x || (isnan(rounded) && isnan(x))) return true;
  return f->coarsest & TYPE_BIT(type) && isfinite(rounded) && isfinite(x);
}

// A constant with these elements in the value's type. NULL: out of memory, or, with *fits false, the type cannot store
// an element.
static Constant *store_constant(const Fold *f, const Value *v, const double *elements, size_t nelems, bool *fits) {
  Constant *constant = ARENA_NEW(&f->graph->arena, Constant);
  if (constant) constant->data = arena_array(&f->graph->arena, nelems, type_nbytes(v->type));
  *fits = true;
  for (size_t i = 0; i < nelems; i++) *fits &= holds(f, v->type, elements[i]);
  if (!constant || !constant->data || !*fits) return NULL;
  for (size_t i = 0; i < nelems; i++) type_store(v->type, constant->data, i, elements[i]);
  return constant;
}

// A copy of an elementwise node whose operands are scalars.
typedef struct Single {
  Node node;
  Value values[MAX_OPERANDS + 1];
  Value *inputs[MAX_OPERANDS], *outputs[1];
} Single;

static void single_init(Single *s, const Node *node) {
  *s = (Single){.node = *node};
  for (uint32_t i = 0; i <= node->ninputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[0];
    if (v) s->values[i] = *v;
    s->values[i].shape = (Shape){.rank = 0};
    if (i < node->ninputs) s->inputs[i] = v ? &s->values[i] : NULL;
    else s->outputs[0] = &s->values[i];
  }
  s->node.inputs = s->inputs;
  s->node.outputs = s->outputs;
}

// False: out of memory.
static bool fold_node(Fold *f, Arena *scratch, Node *node, bool is_splat, bool *changed) {
  const double *inputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  double *outputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  Constant *constants[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  Single single;
  bool is_empty = true; // there is nothing to evaluate
  if (is_splat) single_init(&single, node);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    if (!node->inputs[i]) continue;
    inputs[i] = load_constant(scratch, node->inputs[i], is_splat ? 1 : (size_t)shape_nelems(&node->inputs[i]->shape));
    if (!inputs[i]) return false;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    if (!node->outputs[i]) continue;
    outputs[i] = ARENA_ARRAY(scratch, double, is_splat ? 1 : (size_t)shape_nelems(&node->outputs[i]->shape));
    if (!outputs[i]) return false;
    is_empty &= !is_splat && !shape_nelems(&node->outputs[i]->shape);
  }
  if (!is_empty && !f->context->evaluate(is_splat ? &single.node : node, inputs, outputs, f->context->allocator))
    return false;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v) continue;
    int64_t nelems = is_splat ? 1 : shape_nelems(&v->shape);
    bool fits;
    constants[i] = store_constant(f, v, outputs[i], (size_t)nelems, &fits);
    if (!constants[i]) return !fits;
    constants[i]->is_splat = is_splat;
    f->left -= nelems;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    Value *v = node->outputs[i];
    if (!v) continue;
    node_set_output(node, i, NULL);
    v->constant = constants[i];
  }
  for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, NULL);
  return *changed = true;
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

bool pass_fold_constants(Graph *g, PassContext *c) {
  Fold f = {g, c, MOST_IN_ALL, MOST_WORK, coarsest_types(g)};
  bool changed = false;
  size_t nremaining = 0;
  for (size_t i = 0; i < g->nnodes; i++) {
    Node *node = g->nodes[i];
    bool is_splat, is_folded = false;
    if (c->evaluate && !c->failed && f.left > 0 && is_foldable(node, &is_splat) && take_work(&f, node, is_splat)) {
      Arena scratch;
      arena_init(&scratch, c->allocator);
      if (!fold_node(&f, &scratch, node, is_splat, &is_folded)) pass_out_of_memory(c);
      arena_deinit(&scratch);
    }
    changed |= is_folded;
    if (is_folded) continue;
    node->index = (uint32_t)nremaining;
    g->nodes[nremaining++] = node;
  }
  g->nnodes = nremaining;
  return changed;
}
