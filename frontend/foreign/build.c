// Checks nodes of foreign graphs and folds those whose inputs are constants, makes constants, and formulas of several
// nodes.
#include "frontend/foreign/build.h"

#include "backends/interpreter/interpreter.h"
#include "ir/graph/fold.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
  MOST_NODES = 1 << 18,      // of a graph
  MOST_FOLDED = 1 << 16,     // elements of a result that is folded when a file is read
  MOST_FOLDS = 1 << 27,      // elements that all folding reads and writes: about a second
  MOST_MADE_BYTES = 1 << 28, // of all constants made
  // Folding stops at this limit, so that memory is left for the constants that translators need.
  MOST_FOLDED_BYTES = MOST_MADE_BYTES / 2,
};

bool build_error(Builder *b, const char *format, ...) {
  va_list args;
  va_start(args, format);
  build_error_of(b, format, args);
  va_end(args);
  return false;
}

// Whether the message is the operator's first of this text. False also after out of memory, which is reported.
static bool is_news(Builder *b, const char *message) {
  const char *key = arena_format(b->foreign->told.arena, "%.*s: %s", (int)strcspn(b->title, " "), b->title, message);
  if (!key) return error_out_of_memory(b->d);
  if (names_find(&b->foreign->told, key)) return false;
  return names_set(&b->foreign->told, key, b) || error_out_of_memory(b->d);
}

bool build_error_of(Builder *b, const char *format, va_list args) {
  char message[512];
  vsnprintf(message, sizeof message, format, args);
  b->foreign->has_told = true;
  if (!b->title) return error_at(b->d, b->at, "%s", message);
  return is_news(b, message) && error_at(b->d, b->at, "%s: %s", b->title, message);
}

bool build_warning(Builder *b, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  if (is_news(b, message)) warn_at(b->d, b->at, "%s: %s", b->title, message);
  return !b->d->out_of_memory;
}

// Folding

// A parameter is never folded: passes/train/trainable.c must find it as a parameter.
static bool is_weight(const Value *v) {
  return v->constant->is_initializer && type_is_float(v->type);
}

bool build_is_quick(const Builder *b, const Node *node) {
  static const char *const families[] = {"elementwise", "movement", "reduce"}; // a step for each element
  bool has_inputs = false, is_plain = false;
  int64_t nbytes = 0, nelems_all = 0;
  for (size_t i = 0; i < sizeof families / sizeof *families; i++)
    is_plain |= strcmp(node->op->family, families[i]) == 0;
  if (!is_plain) return false;
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Value *v = i < node->ninputs ? node->inputs[i] : node->outputs[i - node->ninputs];
    if (!v) continue;
    const int64_t nelems = shape_nelems(&v->shape);
    if (nelems < 0 || nelems > MOST_FOLDED || v->type == TYPE_S4 || v->type == TYPE_U4) return false;
    for (int axis = 0; axis < v->shape.rank; axis++)
      if (v->shape.extent[axis].dim) return false;
    if (i < node->ninputs && !v->constant) return false;
    has_inputs |= i < node->ninputs;
    nelems_all += nelems;
    if (i >= node->ninputs) nbytes += nelems * (int64_t)type_nbytes(v->type);
  }
  return has_inputs && b->foreign->nmade + nbytes <= MOST_FOLDED_BYTES &&
         b->foreign->nfolded + nelems_all <= MOST_FOLDS;
}

bool build_can_fold(const Builder *b, const Node *node) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] && node->inputs[i]->constant && is_weight(node->inputs[i])) return false;
  return build_is_quick(b, node);
}

bool build_fold(Builder *b, Node *node) {
  int64_t nmade = 0; // bytes
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i]) b->foreign->nfolded += shape_nelems(&node->inputs[i]->shape);
  for (uint32_t i = 0; i < node->noutputs; i++) {
    const Value *v = node->outputs[i];
    const int64_t nelems = v ? shape_nelems(&v->shape) : 0;
    b->foreign->nfolded += nelems;
    nmade += v ? nelems * (int64_t)type_nbytes(v->type) : 0;
  }
  if (graph_fold_node(b->graph, node, &(Folding){interpret_node}) != FOLD_DONE) return error_out_of_memory(b->d);
  b->foreign->nmade += nmade;
  b->graph->nnodes--; // the node is the last
  return true;
}

// Checks numbers against the ranges in the operator's row; lists are checked with the node.
static bool check_numbers(Builder *b, const Node *node) {
  for (uint32_t i = 0; i < node->op->nattributes; i++) {
    const Attribute *row = &node->op->attributes[i];
    const AttributeValue *value = &node->attributes[i];
    if (!value->is_set) continue;
    if (row->kind == ATTRIBUTE_F32 && !isfinite(value->f32) && !(row->may_be_infinite && isinf(value->f32)))
      return build_error(b, "%s: expected a finite number", row->name);
    if (row->must_be_positive && !(row->kind == ATTRIBUTE_F32 ? value->f32 > 0 : value->s64 > 0))
      return build_error(b, "%s: expected a number above 0", row->name);
  }
  return true;
}

bool build_fits(Builder *b, const Value *v) {
  int64_t product = 1;
  if (v->shape.rank < 0) return build_error(b, "%s: expected a known rank", v->name);
  for (int axis = 0; axis < v->shape.rank; axis++) {
    const int64_t extent = extent_value(v->shape.extent[axis]);
    if (extent <= 0) continue;
    if (product > (MAX_ELEMENTS - 1) / extent) return build_error(b, "%s: expected fewer than 2^47 elements", v->name);
    product *= extent;
  }
  return true;
}

bool build_checked(Builder *b, Node *node) {
  if (b->graph->nnodes > MOST_NODES) return build_error(b, "the graph becomes more than 2^18 nodes");
  if (!check_numbers(b, node)) return false;
  node->label = arena_copy_text(&b->graph->arena, b->title ? b->title : "", b->title ? strlen(b->title) : 0);
  if (!node->label) return error_out_of_memory(b->d);
  if (!*node->label) node->label = NULL;
  node_set_defaults(node);
  if (node->op->check && !node->op->check(node, b->d)) return false;
  bool ok = build_infer(b, node);
  for (uint32_t i = 0; ok && i < node->noutputs; i++) ok = !node->outputs[i] || build_fits(b, node->outputs[i]);
  return ok;
}

bool build_folded(Builder *b, Node *node) {
  return build_checked(b, node) && (!build_can_fold(b, node) || build_fold(b, node));
}

Value *build_choose(Builder *b, Value *condition, Value *a, Value *c) {
  const Type type = a ? a->type : TYPE_NONE;
  const bool is_narrow = a && !(TYPE_BIT(type) & TYPES_COMPARED);
  Value *const inputs[] = {condition, is_narrow ? build_cast(b, a, TYPE_S32) : a,
                           is_narrow ? build_cast(b, c, TYPE_S32) : c};
  return build_cast(b, build_one(b, build_node(b, OP_Select, 3, inputs)), type);
}

bool build_spend(Builder *b, int64_t nbytes) {
  if (nbytes > MOST_MADE_BYTES - b->foreign->nmade)
    return build_error(b, "the constants that it computes take more than %d MiB", MOST_MADE_BYTES >> 20);
  b->foreign->nmade += nbytes;
  return true;
}

Value *build_constant(Builder *b, Type type, const Shape *shape, Constant **constant) {
  const int64_t nelems = shape_nelems(shape), nbytes = (int64_t)type_nbytes(type);
  *constant = NULL;
  if (!build_spend(b, nelems < 0 ? INT64_MAX : nelems * nbytes)) return NULL;
  const char *name = graph_fresh_name(b->graph, b->stem);
  Value *v = name ? graph_add_value(b->graph, name, type, shape) : NULL;
  *constant = v ? ARENA_NEW(&b->graph->arena, Constant) : NULL;
  if (*constant) (*constant)->data = arena_array(&b->graph->arena, (size_t)nelems + 1, (size_t)nbytes);
  if (!*constant || !(*constant)->data) return error_out_of_memory(b->d), NULL;
  v->constant = *constant;
  return v;
}

Value *build_transpose(Builder *b, Value *v, const int64_t *order, int rank) {
  if (v && v->shape.rank != rank) return build_error(b, "%.80s: expected %d axes", v->name, rank), NULL;
  Node *node = build_node(b, OP_StaticTranspose, 1, &v);
  return build_set_list(b, node, "order", order, (size_t)rank) ? build_one(b, node) : NULL;
}

Value *build_gather(Builder *b, Value *v, Value *indices, int64_t axis) {
  Node *node = build_node(b, OP_Gather, 2, (Value *const[]){v, indices});
  if (!node) return NULL;
  build_set(node, "axis")->s64 = axis;
  return build_one(b, node);
}

Value *build_one_hot(Builder *b, Value *labels, int64_t axis, int64_t depth, Type type) {
  Node *node = build_node(b, OP_OneHot, 1, &labels);
  if (!node) return NULL;
  build_set(node, "axis")->s64 = axis;
  build_set(node, "depth")->s64 = depth;
  return build_one_of_type(b, node, type);
}

// Selects v for every element of a condition with the wanted shape, which broadcasts v.
Value *build_expand(Builder *b, Value *v, const Shape *shape) {
  if (!v || shape_equals(&v->shape, shape)) return v;
  return build_choose(b, build_number(b, TYPE_BOOLEAN, shape, 1), v, v);
}

Value *build_copy(Builder *b, Value *v) {
  static const int64_t same[MAX_RANK] = {0};
  if (!(TYPE_BIT(v->type) & TYPES_MOVED)) return build_binary(b, OP_Add, v, build_like(b, v, 0));
  Node *node = build_node(b, OP_StaticReshape, 1, &v);
  if (!build_set_list(b, node, "shape", same, (size_t)v->shape.rank)) return NULL;
  build_set(node, "special_zero")->boolean = true; // 0: the extent of v
  Value *own = build_result(b, node, 0, TYPE_NONE);
  return own && build_checked(b, node) ? own : NULL;
}

Value *build_like(Builder *b, const Value *v, double number) {
  return v ? build_number(b, v->type, NULL, number) : NULL;
}

Value *build_plus(Builder *b, Value *v, double number) {
  return build_binary(b, OP_Add, v, build_like(b, v, number));
}

Value *build_times(Builder *b, Value *v, double number) {
  return number != 1 ? build_binary(b, OP_Multiply, v, build_like(b, v, number)) : v;
}

// The nearest integer, minus or plus 1 if it is beyond v.
static Value *round_towards(Builder *b, Value *v, OperatorId is_beyond, OperatorId back) {
  if (!v || !type_is_float(v->type)) return v;
  Value *nearest = build_unary(b, OP_Round, v);
  if (!nearest) return NULL;
  return build_binary(b, back, nearest, build_cast(b, build_binary(b, is_beyond, nearest, v), v->type));
}

Value *build_floor(Builder *b, Value *v) {
  return round_towards(b, v, OP_Greater, OP_Subtract);
}

Value *build_ceiling(Builder *b, Value *v) {
  return round_towards(b, v, OP_Less, OP_Add);
}

Value *build_truncate(Builder *b, Value *v) {
  return build_choose(b, build_binary(b, OP_Less, v, build_like(b, v, 0)), build_ceiling(b, v), build_floor(b, v));
}

bool build_end(Builder *b) {
  Graph *g = b->graph;
  size_t count = 0;
  for (size_t i = g->nnodes; i-- > 0;) {
    Node *node = g->nodes[i];
    bool is_used = false;
    for (uint32_t k = 0; k < node->noutputs; k++)
      is_used |= node->outputs[k] && (node->outputs[k]->uses || node->outputs[k]->is_output);
    if (is_used) continue;
    for (uint32_t k = 0; k < node->ninputs; k++) node_set_input(node, k, NULL);
    for (uint32_t k = 0; k < node->noutputs; k++) node_set_output(node, k, NULL);
    g->nodes[i] = NULL;
  }
  for (size_t i = 0; i < g->nnodes; i++)
    if (g->nodes[i]) g->nodes[count++] = g->nodes[i];
  g->nnodes = count;
  return graph_make_names_unique(g) || error_out_of_memory(b->d);
}
