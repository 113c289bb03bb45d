// Folds nodes.
#include "ir/graph/fold.h"

#include "ir/operators/operator.h"

enum { MOST_OPERANDS = MAX_OPERANDS + MAX_VARIADIC };

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

static double *load(Arena *scratch, const Value *v, size_t nelems) {
  double *elements = ARENA_ARRAY(scratch, double, nelems);
  const size_t step = v->constant->is_splat ? 0 : 1;
  for (size_t i = 0; elements && i < nelems; i++) type_load_wide(v->type, v->constant->data, i * step, &elements[i]);
  return elements;
}

static bool may_store(const Folding *f, Type type, const double *elements, size_t nelems) {
  bool may = true;
  for (size_t i = 0; f->may_store && i < nelems; i++) may &= f->may_store(f->context, type, elements[i]);
  return may;
}

static Constant *store(Graph *g, Type type, const double *elements, size_t nelems) {
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  if (constant) constant->data = arena_array(&g->arena, nelems, type_nbytes(type));
  if (!constant || !constant->data) return NULL;
  for (size_t i = 0; i < nelems; i++) type_store_wide(type, constant->data, i, &elements[i]);
  return constant;
}

// Evaluates the node. outputs: the elements; constants: the elements as constants.
static FoldResult evaluate(Graph *g, const Node *node, const Folding *f, Arena *scratch, Constant **constants) {
  const double *inputs[MOST_OPERANDS] = {NULL};
  double *outputs[MOST_OPERANDS] = {NULL};
  size_t noutput = 0; // elements
  Single single;
  if (f->is_splat) single_init(&single, node);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    if (v && !(inputs[i] = load(scratch, v, f->is_splat ? 1 : (size_t)shape_nelems(&v->shape))))
      return FOLD_OUT_OF_MEMORY;
  }
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    const size_t nelems = !v ? 0 : f->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
    if (v && !(outputs[i] = ARENA_ARRAY(scratch, double, nelems))) return FOLD_OUT_OF_MEMORY;
    noutput += nelems;
  }
  if (noutput && !f->evaluate(f->is_splat ? &single.node : node, inputs, outputs, g->arena.allocator))
    return FOLD_OUT_OF_MEMORY;
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    if (!v) continue;
    const size_t nelems = f->is_splat ? 1 : (size_t)shape_nelems(&v->shape);
    if (!may_store(f, v->type, outputs[i], nelems)) return FOLD_REFUSED;
    if (!(constants[i] = store(g, v->type, outputs[i], nelems))) return FOLD_OUT_OF_MEMORY;
    constants[i]->is_splat = f->is_splat;
  }
  return FOLD_DONE;
}

FoldResult graph_fold_node(Graph *g, Node *node, const Folding *f) {
  if (node->ninputs > MOST_OPERANDS) return FOLD_REFUSED; // readers fold before they verify
  Constant *constants[MOST_OPERANDS] = {NULL};
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  const FoldResult result = evaluate(g, node, f, &scratch, constants);
  arena_deinit(&scratch);
  for (uint32_t i = 0; i < node->noutputs && result == FOLD_DONE; i++) {
    Value *v = node->outputs[i];
    if (!v) continue;
    node_set_output(node, i, NULL);
    v->constant = constants[i];
  }
  for (uint32_t i = 0; i < node->ninputs && result == FOLD_DONE; i++) node_set_input(node, i, NULL);
  return result;
}
