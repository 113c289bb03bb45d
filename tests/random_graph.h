// Random valid graphs, generated from the operator table: nothing here knows what an operator does.
//
// A node begins as a draft in its own graph: an operator under one of its names, random attributes, and operands that
// are earlier values, or new values with unknown type and shape. Inference finds what follows; unknowns that remain are
// chosen at random, one by one, until everything is known. A draft with a contradiction is dropped. The same seed gives
// the same graph on every machine.
#ifndef NGRAD_TESTS_RANDOM_GRAPH_H
#define NGRAD_TESTS_RANDOM_GRAPH_H

#include "ir/graph/formula.h"
#include "ir/graph/tensor.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/range.h"
#include "tests/effort.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SLICE_GROUPS = 64 }; // by a product or a convolution, as a multiple of the elements that a tensor may have

typedef struct RandomGraphOptions {
  uint32_t most_nodes;
  int64_t most_nelems; // of a tensor
  bool is_focused; // each graph has few operators, types and extents of its own, so that its nodes share more values
  bool is_extreme; // many extents, strides, paddings, dilations and kernels are as large as random_magnitude makes them
} RandomGraphOptions;

// Reads an environment variable.
static inline uint64_t number_from(const char *variable, uint64_t otherwise) {
  const char *text = getenv(variable);
  return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

// How many random graphs a test takes: NGRAD_RANDOM_GRAPHS, else all; in ./dev test a quarter.
static inline uint64_t number_of_graphs(uint64_t all) {
  return number_from("NGRAD_RANDOM_GRAPHS", takes_all() ? all : (all + 3) / 4);
}

// Sebastiano Vigna's splitmix64.
static inline uint64_t random_next(uint64_t *random) {
  uint64_t z = *random += 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

static inline uint32_t random_below(uint64_t *random, size_t n) {
  return (uint32_t)(random_next(random) % (n ? n : 1));
}

static inline bool random_chance(uint64_t *random, unsigned percent) {
  return random_below(random, 100) < percent;
}

// From 1 to 2^40, log-uniform; half of the numbers are powers of 2.
static inline int64_t random_magnitude(uint64_t *random) {
  enum { MOST_BITS = 40 };
  const uint64_t power = UINT64_C(1) << random_below(random, MOST_BITS + 1);
  const bool is_power = random_chance(random, 50) || power >> MOST_BITS;
  return (int64_t)(is_power ? power : power | (random_next(random) & (power - 1)));
}

// Data

// Around 0 with deviation 1, or in [0.5, 2), or [0, 1); integers are a hundred times as large.
static inline void random_elements(uint64_t *random, Type type, ValueRange range, void *data, int64_t nelems) {
  for (int64_t i = 0; i < nelems; i++) {
    uint64_t word = random_next(random);
    double sum = 0;
    for (int part = 0; part < 4; part++) sum += (double)(word >> 16 * part & 0xFFFF) / 65536 - 0.5;
    double uniform = (double)(word >> 11) * 0x1p-53;
    double number = range == RANGE_PROBABILITY ? uniform
                    : range == RANGE_POSITIVE  ? 0.5 + 1.5 * uniform
                                               : sum * 1.7320508;
    type_store(type, data, (size_t)i, type_is_float(type) ? number : 100 * number);
  }
}

// Data for a value. Most indices are in range; some count from the end.
static inline void random_data(uint64_t *random, const Value *v, void *data) {
  const int64_t nelems = shape_nelems(&v->shape);
  int64_t extent = 0;
  random_elements(random, v->type, v->range, data, nelems);
  for (const Use *use = v->uses; use; use = use->next) {
    const int64_t own = node_indexed_extent(use->node, use->slot);
    if (own > 0 && (!extent || own < extent)) extent = own;
  }
  for (int64_t i = 0; extent && i < nelems; i++) {
    const int64_t index = (int64_t)random_below(random, (size_t)extent);
    if (!random_chance(random, 3))
      type_store(v->type, data, (size_t)i, (double)(random_chance(random, 10) ? index - extent : index));
  }
}

// A tensor for an input of a graph whose extents have numbers; freed with tensor_free. False: out of memory.
static inline bool random_tensor(uint64_t *random, const Value *v, Tensor *t, const Allocator *allocator) {
  *t = tensor_like(v);
  if (!tensor_alloc(t, allocator)) return false;
  random_data(random, v, t->data);
  return true;
}

// Drafts

enum { RANDOM_EXTENTS = 4, RANDOM_DRAFTS = 400, RANDOM_CHOICES = 200, RANDOM_PALETTE = 8 };

typedef struct RandomGraph {
  uint64_t random;
  RandomGraphOptions options;
  Graph *graph;
  bool continues;                 // the node at work is to take the last value
  Extent extents[RANDOM_EXTENTS]; // few, so that tensors fit each other
  OperatorName palette[RANDOM_PALETTE];
  size_t npalette;     // 0: any operator
  TypeSet types;       // preferred types of new values; 0: any
  int rank;            // of most new values; -1: any
  unsigned new_values; // percentage of operands that are new values
  Value *anchor;       // an input of that rank, which shapes follow; NULL: none
  size_t nspatial;     // spatial axes of the node at work
} RandomGraph;

typedef struct RandomDraft {
  RandomGraph *r;
  Graph *graph; // of its own
  Node *node;
  Value *reused[MAX_OPERANDS]; // by input slot: the value of the real graph; NULL: a new one
} RandomDraft;

// Why an operator is never drawn; NULL: it is drawn.
static inline const char *random_exception(OperatorId id) {
  if (operators[id].traits & TRAIT_COLLECTIVE) return "it is of graphs with leaves, which are cut and run as steps";
  if (id == OP_MaxPoolWinners || id == OP_MaxPoolScatter || id == OP_MaxPoolGather)
    return "an operand must be the result of MaxPool or MaxPoolWinners; MaxPoolBackward, which is drawn, becomes both";
  if (id == OP_RoundThrough) return "its gradient is not that of differences; its results are Round's, which is drawn";
  return NULL;
}

static inline bool random_is_drawn(OperatorId id) {
  return !random_exception(id);
}

// The name's lot in a draw: a pseudo-random number.
static inline uint64_t random_lot(uint64_t draw, const char *name) {
  for (; *name; name++) draw = (draw ^ (unsigned char)*name) * 0x100000001B3U; // as FNV-1a
  return random_next(&draw);
}

// The operator, under one of its names, that has the greatest lot. So a draw does not depend on how many rows the
// tables have, or on their order: a new row changes the draws that it wins, and no others. `without`: a name that takes
// no part; NULL: all do.
static inline OperatorName random_draw(uint64_t draw, const char *without) {
  OperatorName drawn = {&operators[0], NULL};
  uint64_t most = 0;
  bool is_any = false;
  for (size_t i = 0; i < OP_COUNT + nsignatures; i++) {
    const Signature *s = i < OP_COUNT ? NULL : &signatures[i - OP_COUNT];
    const OperatorName n = {&operators[s ? s->op : (OperatorId)i], s};
    const char *name = s ? s->full_name : n.op->name;
    if (!random_is_drawn(n.op->id) || (without && strcmp(name, without) == 0)) continue;
    const uint64_t lot = random_lot(draw, name);
    if (is_any && lot <= most) continue;
    is_any = true;
    drawn = n;
    most = lot;
  }
  return drawn;
}

static inline OperatorName random_any_operator(uint64_t *random) {
  return random_draw(random_next(random), NULL);
}

static inline OperatorName random_operator(RandomGraph *r) {
  return r->npalette ? r->palette[random_below(&r->random, r->npalette)] : random_any_operator(&r->random);
}

// Chooses a family first, since families differ in size, then an operator. Prefers elementwise operators with two
// operands, which connect values.
static inline OperatorName random_operator_of_family(uint64_t *random) {
  enum { TRIES = 20 };
  const char *family = random_any_operator(random).op->family;
  if (random_chance(random, 30)) family = operators[OP_ReduceSum].family;
  bool wants_two = random_chance(random, 50);
  OperatorName n = random_any_operator(random);
  for (int i = 0; i < TRIES && (strcmp(n.op->family, family) != 0 ||
                                (wants_two && (n.op->traits & TRAIT_ELEMENTWISE) && n.op->ninputs < 2));
       i++)
    n = random_any_operator(random);
  return n;
}

// An operator that is common in networks, so that such operators meet more often than by chance.
static inline OperatorName random_everyday_operator(uint64_t *random) {
  static const OperatorId everyday[] = {
      OP_Tanh,      OP_GELU,    OP_Exp,        OP_Sigmoid,           OP_SoftPlus,   OP_ReLU,
      OP_Square,    OP_Sqrt,    OP_Multiply,   OP_Multiply,          OP_Add,        OP_Add,
      OP_Subtract,  OP_Divide,  OP_Maximum,    OP_SquaredDifference, OP_LayerNorm,  OP_RMSNorm,
      OP_GroupNorm, OP_SoftMax, OP_LogSoftmax, OP_ReduceSum,         OP_ReduceMean, OP_ReduceMax,
      OP_MatMul,    OP_MatMul,  OP_Convolution};
  return (OperatorName){&operators[everyday[random_below(random, sizeof everyday / sizeof *everyday)]], NULL};
}

// An operator that compares or moves integers.
static inline OperatorName random_integer_operator(uint64_t *random) {
  static const OperatorId ids[] = {OP_Add,   OP_Add,   OP_Subtract, OP_Multiply, OP_Maximum,         OP_Minimum,
                                   OP_Neg,   OP_Less,  OP_Select,   OP_TypeCast, OP_StaticTranspose, OP_StaticTranspose,
                                   OP_Slice, OP_Concat};
  return (OperatorName){&operators[ids[random_below(random, sizeof ids / sizeof *ids)]], NULL};
}

// An operator with windows, whose attributes random_magnitude makes large.
static inline OperatorName random_window_operator(uint64_t *random) {
  OperatorName n;
  do n = random_any_operator(random);
  while (!n.op->inputs[0].side);
  return n;
}

// Small numbers for each spatial axis, or extents of each axis; at times none.
static inline void random_list_by_axis(RandomGraph *r, const Attribute *row, AttributeValue *value) {
  static const int64_t steps[] = {1, 1, 2, 2, 3}, paddings[] = {0, 0, 0, 1, 1}, extents[] = {1, 2, 3, 5, 8};
  static const int64_t *const numbers[] = {[LIST_SPATIAL] = steps, [LIST_PADDING] = paddings, [LIST_SHAPE] = extents};
  size_t count = r->nspatial + (row->list == LIST_SHAPE ? 2 : 0);
  if ((row->list == LIST_PADDING || !row->is_required) && random_chance(&r->random, 20)) count = 0;
  int64_t *items = arena_array(&r->graph->arena, count + 1, sizeof *items);
  for (size_t i = 0; items && i < count; i++) {
    const bool is_large = r->options.is_extreme && random_chance(&r->random, 35);
    items[i] = is_large ? random_magnitude(&r->random) : numbers[row->list][random_below(&r->random, 5)];
  }
  value->list.items = items;
  value->list.count = items ? count : 0;
}

// A few axes, in memory of the real graph. NULL items: out of memory.
static inline void random_list(RandomGraph *r, AttributeValue *value) {
  size_t count = random_below(&r->random, 4);
  if (!count && r->options.is_focused && random_chance(&r->random, 90)) count = 1; // none is always valid
  int64_t *items = arena_array(&r->graph->arena, count + 1, sizeof *items);
  for (size_t i = 0; items && i < count; i++) items[i] = (int64_t)random_below(&r->random, 6) - 3;
  value->list.items = items;
  value->list.count = items ? count : 0;
}

static inline void random_numbers(RandomGraph *r, AttributeValue *value) {
  static const double numbers[] = {0.5, 2, 1.5, 0.25};
  size_t count = random_below(&r->random, 4);
  double *items = arena_array(&r->graph->arena, count + 1, sizeof *items);
  for (size_t i = 0; items && i < count; i++) items[i] = numbers[random_below(&r->random, 4)];
  value->numbers.items = items;
  value->numbers.count = items ? count : 0;
}

static inline AttributeValue random_attribute(RandomGraph *r, const Attribute *row) {
  static const double positive[] = {1e-5, 1e-3, 0.5, 3}, any[] = {0, 1, 0.1, 0.9, -2};
  uint64_t *random = &r->random;
  AttributeValue value = {.is_set = true};
  uint32_t nchoices = 0;
  while (nchoices < MAX_CHOICES && row->choices[nchoices]) nchoices++;
  switch (row->kind) {
  case ATTRIBUTE_BOOL: value.boolean = random_chance(random, 50); break;
  case ATTRIBUTE_F32:
    value.f32 = row->must_be_positive ? positive[random_below(random, 4)] : any[random_below(random, 5)];
    break;
  case ATTRIBUTE_CHOICE: value.s64 = random_below(random, nchoices); break;
  case ATTRIBUTE_S64:
    value.s64 = row->must_be_positive ? 1 + random_below(random, 3) : (int64_t)random_below(random, 7) - 3;
    break;
  case ATTRIBUTE_S64_LIST:
    if (row->list == LIST_ANY) random_list(r, &value);
    else random_list_by_axis(r, row, &value);
    break;
  case ATTRIBUTE_F32_LIST: random_numbers(r, &value); break;
  }
  return value;
}

static inline Type random_type(RandomGraph *r, TypeSet set) {
  uint64_t *random = &r->random;
  if (set & r->types) set &= r->types;
  Type types[TYPE_COUNT + 2];
  uint32_t count = 0;
  for (Type type = TYPE_F64; type < TYPE_COUNT; type++)
    if (set & TYPE_BIT(type)) types[count++] = type;
  if (set & TYPE_BIT(TYPE_F32)) types[count++] = TYPE_F32, types[count++] = TYPE_F32; // the usual one
  return count ? types[random_below(random, count)] : TYPE_NONE;
}

static inline TypeSet random_types_of(const Node *node, const Operand *row) {
  if (node->signature && node->signature->types) return node->signature->types;
  for (const TypeVariable *t = node->op->types; t->letter; t++)
    if (t->letter == row->type) return t->types;
  return 0;
}

static inline Extent random_extent(RandomGraph *r) {
  static const int64_t others[] = {0, 2, 6, 16, 40};
  if (r->options.is_extreme && random_chance(&r->random, 25)) return EXTENT(random_magnitude(&r->random));
  uint32_t chance = random_below(&r->random, 100);
  if (chance < (r->options.is_focused ? 25 : 15)) return EXTENT(1);
  return chance < 95 ? r->extents[random_below(&r->random, RANDOM_EXTENTS)]
                     : EXTENT(others[random_below(&r->random, 5)]);
}

static inline int random_rank(RandomGraph *r) {
  static const int ranks[] = {0, 1, 1, 2, 2, 2, 2, 3, 3, 3, 4, 4, 5};
  uint64_t *random = &r->random;
  if (r->rank >= 0 && random_chance(random, 75)) return r->rank;
  return ranks[random_below(random, sizeof ranks / sizeof *ranks)];
}

// A value of the real graph for this operand, preferably a recent one, so that graphs are deep; NULL: a new value.
static inline Value *random_reused(RandomGraph *r, const Node *node, const Operand *row) {
  enum { LAST = 5 };
  size_t n = r->graph->nvalues;
  if (!n || (!r->continues && random_chance(&r->random, r->new_values))) return NULL;
  size_t back = r->continues ? 0 : random_below(&r->random, n > LAST && random_chance(&r->random, 60) ? LAST : n);
  Value *v = r->graph->values[n - 1 - back];
  if (r->anchor && !r->continues && random_chance(&r->random, 30)) v = r->anchor;
  if (v->constant && operator_has_attribute(node->op, row->name)) return NULL; // as in random_new_operand
  graph_find_ranges(r->graph);                                                 // whose nodes are in order
  if (operand_range(row) && (v->producer || v->range != operand_range(row))) return NULL;
  return random_types_of(node, row) & TYPE_BIT(v->type) ? v : NULL;
}

static inline bool random_draft_input(RandomDraft *d, SignatureOperand named) {
  const Operand *row = &d->node->op->inputs[named.slot];
  if (named.is_optional && random_chance(&d->r->random, 30)) return true;
  Value *reused = random_reused(d->r, d->node, row), *v = NULL;
  for (uint32_t k = 0; reused && k < d->node->ninputs; k++)
    if (d->reused[k] == reused) v = d->node->inputs[k];
  if (!v) v = graph_add_input(d->graph, row->name, reused ? reused->type : TYPE_NONE, reused ? &reused->shape : NULL);
  if (!v) return false;
  d->reused[named.slot] = reused;
  node_set_input(d->node, named.slot, v);
  return true;
}

// Whether no input of this node needs to have the output's type: then the type may need a declaration.
static inline bool random_may_need_type(const Node *node, const Operand *row) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] && node->op->inputs[i].type == row->type) return false;
  return true;
}

// The type of the last node's first input: passes remove a cast back to it.
static inline Type random_type_before(RandomDraft *d, const Operand *row) {
  const Value *first = d->r->graph->nodes[d->r->graph->nnodes - 1]->inputs[0];
  const TypeSet types = random_types_of(d->node, row);
  return first && types & TYPE_BIT(first->type) ? first->type : random_type(d->r, types);
}

static inline bool random_draft_output(RandomDraft *d, SignatureOperand named) {
  const Operand *row = &d->node->op->outputs[named.slot];
  uint64_t *random = &d->r->random;
  const bool is_behind_none = named.slot > 2 && !d->node->outputs[named.slot - 1]; // then it is absent, too
  if (named.is_optional && (is_behind_none || random_chance(random, 30))) return true;
  const bool may_declare = random_may_need_type(d->node, row), is_declared = may_declare && random_chance(random, 50);
  Type type = is_declared ? random_type(d->r, random_types_of(d->node, row)) : TYPE_NONE;
  if (may_declare && d->r->continues && random_chance(random, 70)) type = random_type_before(d, row);
  Value *v = graph_add_value(d->graph, row->name, type, NULL);
  if (v) node_set_output(d->node, named.slot, v);
  return v != NULL;
}

static inline bool random_draft_begin(RandomDraft *d, OperatorName n) {
  d->node = graph_add_node(d->graph, n.op, n.signature, n.op->ninputs, n.op->noutputs);
  d->r->nspatial = 1 + random_below(&d->r->random, 3);
  bool ok = d->node != NULL;
  for (uint32_t i = 0; ok && i < named_nattributes(n); i++) {
    NamedAttribute a = named_attribute(n, i);
    if (a.is_required || random_chance(&d->r->random, 60))
      d->node->attributes[a.index] = random_attribute(d->r, &n.op->attributes[a.index]);
  }
  for (uint32_t i = 0; ok && i < named_ninputs(n); i++) ok = random_draft_input(d, named_input(n, i));
  for (uint32_t i = 0; ok && i < named_noutputs(n); i++) ok = random_draft_output(d, named_output(n, i));
  if (ok) node_set_defaults(d->node);
  return ok;
}

// Chooses one property of one value that inference leaves open; false: none is open.
static inline bool random_draft_choose(RandomDraft *d) {
  uint32_t nvalues = (uint32_t)d->graph->nvalues, first = random_below(&d->r->random, nvalues);
  for (uint32_t i = 0; i < nvalues; i++) {
    Value *v = d->graph->values[(first + i) % nvalues];
    if (v->type == TYPE_NONE && !v->producer && v->uses) {
      v->type = random_type(d->r, random_types_of(d->node, &d->node->op->inputs[v->uses->slot]));
      return true;
    }
    if (v->shape.rank < 0) {
      v->shape.rank = random_rank(d->r);
      for (int axis = 0; axis < v->shape.rank; axis++) v->shape.extent[axis] = EXTENT_UNKNOWN;
      return true;
    }
    for (int axis = v->shape.rank - 1; axis >= 0; axis--) {
      if (!extent_is_unknown(v->shape.extent[axis])) continue;
      v->shape.extent[axis] = random_extent(d->r);
      return true;
    }
  }
  return false;
}

// The number of elements of a node's domain: elements of its result, times the elements that each of them reduces.
static inline double random_nslice_groups(const Node *node) {
  if (!node->op->domain) return 0;
  Domain d = {0};
  node->op->domain(node, &d);
  double n = (double)shape_nelems(&d.shape);
  for (int i = 0; i < d.nextra; i++) n *= (double)extent_value(d.extra[i]);
  return n;
}

// Everything is known and small enough, and named extents have values that fit.
static inline bool random_draft_is_whole(const RandomDraft *d, Diagnostics *diagnostics) {
  for (size_t k = 0; k < d->graph->nvalues; k++) {
    const Value *v = d->graph->values[k];
    int64_t nelems = shape_nelems(&v->shape);
    if (v->type == TYPE_NONE || nelems < 0 || nelems > d->r->options.most_nelems) return false;
  }
  if (random_nslice_groups(d->node) > MOST_SLICE_GROUPS * (double)d->r->options.most_nelems) return false;
  Graph *bound = graph_clone(d->graph);
  bool ok = bound && graph_bind_dims(bound, diagnostics) && graph_infer(bound, diagnostics);
  graph_free(bound);
  return ok;
}

// False: the draft contradicts itself, or is too large.
static inline bool random_draft_finish(RandomDraft *d, Diagnostics *diagnostics) {
  if (d->node->op->check && !d->node->op->check(d->node, diagnostics)) return false;
  for (int i = 0; i < RANDOM_CHOICES; i++) {
    if (!graph_infer(d->graph, diagnostics)) return false;
    if (!random_draft_choose(d)) return random_draft_is_whole(d, diagnostics);
  }
  return false;
}

// The real graph

static inline bool random_is_taken(const Graph *g, const char *name) {
  for (size_t i = 0; i < g->nvalues; i++)
    if (strcmp(g->values[i]->name, name) == 0) return true;
  return false;
}

static inline Value *random_name_value(RandomGraph *r, Type type, const Shape *shape, bool is_input) {
  static const char *const stems[] = {"v", "x", "a b", "int", "\xC3\xA9/*", "_", "null", "t.0"};
  char name[64];
  const char *stem = stems[random_below(&r->random, 8)];
  size_t number = r->graph->nvalues;
  do snprintf(name, sizeof name, "%s%zu", stem, number++);
  while (random_is_taken(r->graph, name));
  return is_input ? graph_add_input(r->graph, name, type, shape) : graph_add_value(r->graph, name, type, shape);
}

static inline bool random_make_constant(RandomGraph *r, Value *v, ValueRange range) {
  int64_t nelems = shape_nelems(&v->shape);
  Constant *c = v->constant = ARENA_NEW(&r->graph->arena, Constant);
  if (!c) return false;
  c->is_splat = nelems > 100 || random_chance(&r->random, 50);
  for (int axis = 0; axis < v->shape.rank; axis++) c->is_splat |= !extent_is_literal(v->shape.extent[axis]);
  if (c->is_splat) nelems = 1;
  c->data = arena_array(&r->graph->arena, (size_t)nelems, type_nbytes(v->type));
  if (!c->data) return false;
  random_elements(&r->random, v->type, range, c->data, nelems);
  static const double notable[] = {1, 0, -1, -0.0, 2, 0.5}; // numbers that rewrites treat specially
  if (c->is_splat && range == RANGE_ANY && random_chance(&r->random, 60))
    type_store(v->type, c->data, 0, notable[random_below(&r->random, 6)]);
  return true;
}

// A new operand: an input of the graph, at times a constant. Random numbers in place of an attribute, a shape say,
// would be wrong, so that such an operand is never a constant.
static inline Value *random_new_operand(RandomGraph *r, const Operator *op, const Operand *row, const Value *draft) {
  bool is_constant = random_chance(&r->random, r->options.is_focused ? 10 : 20);
  is_constant &= !operator_has_attribute(op, row->name);
  ValueRange range = operand_range(row);
  Value *v = random_name_value(r, draft->type, &draft->shape, !is_constant);
  return v && is_constant && !random_make_constant(r, v, range) ? NULL : v;
}

static inline Extent random_same_dim(const Dim *dim, const void *unused) {
  (void)unused;
  return (Extent){dim, -1};
}

// The formulas of extents are in the draft's memory.
static inline bool random_draft_copy_extents(const RandomDraft *d) {
  for (size_t i = 0; i < d->graph->nvalues; i++) {
    Shape *s = &d->graph->values[i]->shape;
    for (int k = 0; k < s->rank; k++)
      if (!extent_substitute(&d->r->graph->arena, s->extent[k], random_same_dim, NULL, &s->extent[k])) return false;
  }
  return true;
}

static inline bool random_draft_commit(const RandomDraft *d) {
  const Node *draft = d->node;
  if (!random_draft_copy_extents(d)) return false;
  Node *node = graph_add_node(d->r->graph, draft->op, draft->signature, draft->ninputs, draft->noutputs);
  if (!node) return false;
  memcpy(node->attributes, draft->attributes, draft->op->nattributes * sizeof *node->attributes);
  for (uint32_t i = 0; i < draft->ninputs; i++) {
    if (!draft->inputs[i]) continue;
    const Operand *row = &draft->op->inputs[i < draft->op->ninputs ? i : draft->op->ninputs - 1];
    Value *v = d->reused[i] ? d->reused[i] : random_new_operand(d->r, draft->op, row, draft->inputs[i]);
    if (!v) return false;
    node_set_input(node, i, v);
  }
  for (uint32_t i = 0; i < draft->noutputs; i++) {
    if (!draft->outputs[i]) continue;
    Value *v = random_name_value(d->r, draft->outputs[i]->type, &draft->outputs[i]->shape, false);
    if (!v) return false;
    node_set_output(node, i, v);
  }
  return true;
}

// Adds a copy of another node.
static inline bool random_repeat_node(RandomGraph *r) {
  const Node *before = r->graph->nodes[random_below(&r->random, r->graph->nnodes)];
  Node *node = graph_add_node(r->graph, before->op, before->signature, before->ninputs, before->noutputs);
  if (!node) return false;
  memcpy(node->attributes, before->attributes, before->op->nattributes * sizeof *node->attributes);
  for (uint32_t i = 0; i < before->ninputs; i++) node_set_input(node, i, before->inputs[i]);
  for (uint32_t i = 0; i < before->noutputs; i++) {
    if (!before->outputs[i]) continue;
    Value *v = random_name_value(r, before->outputs[i]->type, &before->outputs[i]->shape, false);
    if (!v) return false;
    node_set_output(node, i, v);
  }
  return true;
}

// Tries one operator; true: a node was added to the graph.
static inline bool random_add_node(RandomGraph *r) {
  if (r->graph->nnodes && random_chance(&r->random, 8)) return random_repeat_node(r);
  r->continues = r->graph->nnodes && random_chance(&r->random, 15); // the same operator on its own result
  OperatorName n = random_operator(r);
  if (r->continues) n = (OperatorName){r->graph->nodes[r->graph->nnodes - 1]->op, NULL};
  const Allocator *allocator = r->graph->arena.allocator;
  bool is_added = false;
  for (int i = 0; i < RANDOM_DRAFTS && !is_added; i++) {
    Diagnostics diagnostics;
    diagnostics_init(&diagnostics, allocator);
    RandomDraft d = {.r = r, .graph = graph_new(allocator, "draft")};
    is_added = d.graph && random_draft_begin(&d, n) && random_draft_finish(&d, &diagnostics) && random_draft_commit(&d);
    graph_free(d.graph);
    diagnostics_deinit(&diagnostics);
  }
  return is_added;
}

// Extents around a vector's lanes, a cache line or a block of a loop, or one long extent beside small ones.
static inline int64_t random_focused_extent(uint64_t *random, uint32_t regime, int i) {
  static const int64_t lanes[] = {1, 2, 5, 15, 16, 17, 31, 32, 33, 48}, blocks[] = {3, 5, 32, 63, 64, 65, 96, 100, 128},
                       few[] = {1, 2, 3, 4, 5, 7, 8, 16}, many[] = {129, 257, 300, 512, 1000, 1023, 1024, 2049, 5000};
  if (regime == 0) return lanes[random_below(random, sizeof lanes / sizeof *lanes)];
  if (regime == 1) return blocks[random_below(random, sizeof blocks / sizeof *blocks)];
  return i == 0 ? many[random_below(random, sizeof many / sizeof *many)]
                : few[random_below(random, sizeof few / sizeof *few)];
}

static inline bool random_choose_extents(RandomGraph *r) {
  static const int64_t numbers[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 48, 64, 65, 257};
  static const char *const names[RANDOM_EXTENTS] = {"N", "C", "height", "w 2"};
  const uint32_t any = 3, regime = r->options.is_focused ? random_below(&r->random, any + 1) : any;
  bool ok = true;
  for (int i = 0; ok && i < RANDOM_EXTENTS; i++) {
    int64_t number = regime < any ? random_focused_extent(&r->random, regime, i)
                                  : numbers[random_below(&r->random, sizeof numbers / sizeof *numbers)];
    if (number == 0 && random_chance(&r->random, 50)) number = 33;
    if (r->options.is_extreme && random_chance(&r->random, 40)) number = random_magnitude(&r->random);
    r->extents[i] = EXTENT(number);
    if (!random_chance(&r->random, 25)) continue;
    r->extents[i] = (Extent){graph_find_dim(r->graph, names[i]), -1};
    if (!r->extents[i].dim) r->extents[i].dim = graph_add_dim(r->graph, names[i], number);
    ok = r->extents[i].dim != NULL;
  }
  return ok;
}

// Chooses the properties of this graph.
static inline void random_choose_focus(RandomGraph *r) {
  static const TypeSet types[] = {TYPE_BIT(TYPE_F32),
                                  TYPE_BIT(TYPE_F32),
                                  TYPE_BIT(TYPE_F64),
                                  TYPE_BIT(TYPE_BF16),
                                  TYPE_BIT(TYPE_F16),
                                  TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_BF16),
                                  TYPE_BIT(TYPE_S32) | TYPE_BIT(TYPE_S64),
                                  0};
  uint64_t *random = &r->random;
  r->rank = -1;
  r->new_values = 35;
  if (!r->options.is_focused) return;
  r->types = types[random_below(random, sizeof types / sizeof *types)];
  const bool is_integer = r->types & TYPE_BIT(TYPE_S32), is_everyday = random_chance(random, 40);
  if (is_integer || is_everyday || random_chance(random, 85))
    r->npalette = 2 + random_below(random, RANDOM_PALETTE - 1);
  const bool has_windows = r->options.is_extreme && random_chance(random, 50);
  if (has_windows) r->npalette = 2;
  for (size_t i = 0; i < r->npalette; i++)
    r->palette[i] = has_windows   ? random_window_operator(random)
                    : is_integer  ? random_integer_operator(random)
                    : is_everyday ? random_everyday_operator(random)
                                  : random_operator_of_family(random);
  if (random_chance(random, 70)) r->rank = 1 + (int)random_below(random, 4);
  r->new_values = 5 + random_below(random, 30);
}

// The first value, so that later values are not all as small as a value that is small by chance.
static inline bool random_add_anchor(RandomGraph *r) {
  Shape shape = {.rank = r->rank >= 0 ? r->rank : 1 + (int)random_below(&r->random, 4)};
  for (int axis = 0; axis < shape.rank; axis++)
    shape.extent[axis] = r->extents[random_below(&r->random, RANDOM_EXTENTS)];
  // -1 elements: more than any tensor may have
  while (shape_nelems(&shape) < 0 || shape_nelems(&shape) > r->options.most_nelems) shape.rank--;
  r->anchor = random_name_value(r, random_type(r, r->types ? r->types : TYPES_FLOAT), &shape, true);
  return r->anchor != NULL;
}

// Most values without uses become outputs, and so do some others.
static inline bool random_choose_outputs(RandomGraph *r) {
  Graph *g = r->graph;
  bool ok = true;
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    unsigned percent = !g->values[i]->producer ? 3 : g->values[i]->uses ? 20 : 85;
    if (random_chance(&r->random, percent)) ok = graph_add_output(g, g->values[i]);
  }
  if (ok && !g->noutputs) ok = graph_add_output(g, g->values[g->nvalues - 1]);
  return ok;
}

static inline void random_shuffle_nodes(RandomGraph *r) {
  for (size_t i = r->graph->nnodes; i > 1; i--) {
    size_t k = random_below(&r->random, i);
    Node *node = r->graph->nodes[k];
    r->graph->nodes[k] = r->graph->nodes[i - 1];
    r->graph->nodes[i - 1] = node;
  }
}

// A quarter of the values that are not constants get a random layout.
static inline void random_choose_orders(RandomGraph *r) {
  for (size_t i = 0; i < r->graph->nvalues; i++) {
    Value *v = r->graph->values[i];
    if (v->constant || v->shape.rank < 2 || !random_chance(&r->random, 25)) continue;
    int axes[MAX_RANK];
    for (int k = 0; k < v->shape.rank; k++) {
      int at = (int)random_below(&r->random, (size_t)k + 1);
      if (at < k) axes[k] = axes[at];
      axes[at] = k;
    }
    v->layout = layout_of_axes(axes, v->shape.rank);
  }
}

// Adds up to so many nodes to the graph.
static inline void random_grow(RandomGraph *r, uint32_t nnodes) {
  size_t wanted = r->graph->nnodes + nnodes;
  for (uint32_t failures = 0; r->graph->nnodes < wanted && failures < 50;) failures += !random_add_node(r);
}

// The graph that random_graph made last (tests/random_seeds.h).
typedef struct RandomAtWork {
  bool has_graph;
  uint64_t seed;
  RandomGraphOptions options;
} RandomAtWork;

static inline RandomAtWork *random_at_work(void) {
  static RandomAtWork at_work;
  return &at_work;
}

// A sorted, inferred and verified graph, whose named extents all have values. NULL: out of memory, or the graph is
// wrong, after a message; this is a bug in this file or in inference.
static inline Graph *random_graph(const Allocator *allocator, uint64_t seed, const RandomGraphOptions *options,
                                  Diagnostics *diagnostics) {
  RandomGraph r = {.random = seed * 0x2545F4914F6CDD1DU + 1, .options = *options};
  *random_at_work() = (RandomAtWork){true, seed, *options};
  r.graph = graph_new(allocator, "random");
  random_choose_focus(&r);
  bool ok = r.graph && random_choose_extents(&r) && (!r.options.is_focused || random_add_anchor(&r));
  uint32_t nnodes = 1 + random_below(&r.random, options->most_nodes);
  if (ok) random_grow(&r, nnodes);
  ok = ok && r.graph->nnodes > 0 && random_choose_outputs(&r);
  if (ok && random_chance(&r.random, 50)) random_shuffle_nodes(&r);
  if (ok) random_choose_orders(&r);
  if (ok && graph_sort(r.graph, diagnostics) && graph_infer(r.graph, diagnostics) &&
      graph_verify(r.graph, diagnostics)) {
    graph_find_ranges(r.graph);
    return r.graph;
  }
  graph_free(r.graph);
  return NULL;
}

#endif
