// The worklist, and the building blocks of operators' infer functions.
#include "ir/operators/infer.h"

#include "ir/graph/extents.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { SHAPE_TEXT = 160 };

static void enqueue(Inference *inf, Node *node) {
  if (!inf->queue || inf->is_queued[node->index]) return;
  inf->is_queued[node->index] = true;
  inf->queue[(inf->first + inf->count++) % inf->graph->nnodes] = node;
}

static void enqueue_guesser(Inference *inf) {
  if (!inf->guessers || inf->is_guesser[inf->node->index]) return;
  inf->is_guesser[inf->node->index] = true;
  inf->guessers[(inf->first_guesser + inf->nguessers++) % inf->graph->nnodes] = inf->node;
}

// The next node whose infer function must run; NULL: there is none.
static Node *dequeue(Inference *inf) {
  Node *node = NULL;
  inf->may_guess = !inf->count && inf->nguessers;
  if (inf->count) {
    node = inf->queue[inf->first];
    inf->first = (inf->first + 1) % inf->graph->nnodes;
    inf->count--;
    inf->is_queued[node->index] = false;
  } else if (inf->nguessers) {
    node = inf->guessers[inf->first_guesser];
    inf->first_guesser = (inf->first_guesser + 1) % inf->graph->nnodes;
    inf->nguessers--;
    inf->is_guesser[node->index] = false;
  }
  return node;
}

// Called before v changes: queues its producer and users. False: values may not change.
static bool begin_change(Inference *inf, const Value *v) {
  if (inf->is_frozen) return infer_error(inf, "%s is not fully inferred", v->name);
  if (v->producer) enqueue(inf, v->producer);
  for (const Use *use = v->uses; use; use = use->next) enqueue(inf, use->node);
  return true;
}

static bool infer_run(Graph *g, Diagnostics *d, bool is_frozen) {
  Arena scratch;
  arena_init(&scratch, g->arena.allocator);
  size_t errors = d->nerrors;
  Inference inf = {.graph = g, .diagnostics = d, .is_frozen = is_frozen};
  inf.queue = ARENA_ARRAY(&scratch, Node *, g->nnodes + 1);
  inf.is_queued = ARENA_ARRAY(&scratch, bool, g->nnodes + 1);
  inf.guessers = ARENA_ARRAY(&scratch, Node *, g->nnodes + 1);
  inf.is_guesser = ARENA_ARRAY(&scratch, bool, g->nnodes + 1);
  bool *is_wrong = ARENA_ARRAY(&scratch, bool, g->nnodes + 1); // nodes with an error, which is reported once
  bool ok = inf.queue && inf.is_queued && inf.guessers && inf.is_guesser && is_wrong;
  if (!ok) error_out_of_memory(d);
  for (size_t i = 0; ok && i < g->nnodes; i++) enqueue(&inf, g->nodes[i]);
  while (ok && (inf.node = dequeue(&inf))) {
    Node *node = inf.node;
    if (is_wrong[node->index]) continue;
    if (!infer_types(&inf, node) || !node->op->infer(&inf, node)) is_wrong[node->index] = true;
  }
  for (size_t i = 0; ok && i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (shape_is_too_large(&v->shape))
      error_at(d, v->position, "%s: too many elements, expected fewer than 2^47", v->name);
  }
  arena_deinit(&scratch);
  return ok && d->nerrors == errors;
}

bool graph_infer(Graph *g, Diagnostics *d) {
  return infer_run(g, d, false);
}

bool graph_infer_node(Graph *g, Node *node, Diagnostics *d) {
  Inference inf = {.graph = g, .diagnostics = d, .node = node, .may_guess = true};
  return infer_types(&inf, node) && node->op->infer(&inf, node);
}

bool graph_infers_nothing_new(Graph *g, Diagnostics *d) {
  return infer_run(g, d, true);
}

bool infer_error(Inference *inf, const char *format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  char title[NODE_TITLE_BYTES];
  return error_at(inf->diagnostics, inf->node->position, "%s: %s", node_title(inf->node, title), message);
}

bool infer_type(Inference *inf, Value *v, Type type) {
  if (!v || type == TYPE_NONE || v->type == type) return true;
  if (v->type != TYPE_NONE)
    return infer_error(inf, "%s: expected type %s, found %s", v->name, type_name(type), type_name(v->type));
  if (!begin_change(inf, v)) return false;
  v->type = type;
  return true;
}

bool infer_rank(Inference *inf, Value *v, int rank) {
  if (!v || v->shape.rank == rank) return true;
  char text[SHAPE_TEXT];
  if (rank > MAX_RANK) return infer_error(inf, "%s: rank %d, expected at most %d", v->name, rank, MAX_RANK);
  if (v->shape.rank >= 0)
    return infer_error(inf, "%s: expected rank %d, found rank %d, %s", v->name, rank, v->shape.rank,
                       shape_string(&v->shape, text, sizeof text));
  if (!begin_change(inf, v)) return false;
  v->shape.rank = rank;
  for (int i = 0; i < rank; i++) v->shape.extent[i] = EXTENT_UNKNOWN;
  return true;
}

bool infer_rank_beside(Inference *inf, Value *v, int rank, const Value *other) {
  char text[SHAPE_TEXT], other_text[SHAPE_TEXT];
  if (!v || v->shape.rank < 0 || v->shape.rank == rank) return infer_rank(inf, v, rank);
  return infer_error(inf, "%s %s: expected rank %d beside %s %s", v->name, shape_string(&v->shape, text, sizeof text),
                     rank, other->name, shape_string(&other->shape, other_text, sizeof other_text));
}

bool infer_same_rank(Inference *inf, Value *a, Value *b) {
  return a->shape.rank >= 0   ? infer_rank_beside(inf, b, a->shape.rank, a)
         : b->shape.rank >= 0 ? infer_rank(inf, a, b->shape.rank)
                              : true;
}

bool infer_rank_at_least(Inference *inf, const Value *v, int least) {
  char text[SHAPE_TEXT];
  if (v->shape.rank >= least) return true;
  return infer_error(inf, "%s: expected rank %d or more, found rank %d, %s", v->name, least, v->shape.rank,
                     shape_string(&v->shape, text, sizeof text));
}

static const char *extent_string(Extent e, char *buffer, size_t nbytes) {
  if (e.dim) snprintf(buffer, nbytes, "%s", e.dim->name);
  else snprintf(buffer, nbytes, "%lld", (long long)e.value);
  return buffer;
}

bool infer_extent(Inference *inf, Value *v, int axis, Extent e) {
  if (!v || extent_is_unknown(e) || extent_equals(v->shape.extent[axis], e)) return true;
  char expected[SHAPE_TEXT], shape[SHAPE_TEXT];
  if (!extent_is_unknown(v->shape.extent[axis]))
    return infer_error(inf, "%s %s: expected extent %s on axis %d", v->name,
                       shape_string(&v->shape, shape, sizeof shape), extent_string(e, expected, sizeof expected), axis);
  if (!begin_change(inf, v)) return false;
  v->shape.extent[axis] = e;
  return true;
}

bool infer_extent_beside(Inference *inf, Value *v, int axis, Extent e, const Value *other) {
  char expected[SHAPE_TEXT], shape[SHAPE_TEXT], beside[SHAPE_TEXT];
  if (extent_is_unknown(v->shape.extent[axis]) || extent_equals(v->shape.extent[axis], e))
    return infer_extent(inf, v, axis, e);
  return infer_error(inf, "%s %s: expected extent %s on axis %d beside %s %s", v->name,
                     shape_string(&v->shape, shape, sizeof shape), extent_string(e, expected, sizeof expected), axis,
                     other->name, shape_string(&other->shape, beside, sizeof beside));
}

// The attributes that say which axis holds the channels, for a message: ", with data_format: NXC".
static const char *channel_attributes(const Node *node, char buffer[SHAPE_TEXT]) {
  static const char *const names[] = {"data_format", "weights_format", "per_channel_broadcast"};
  size_t length = 0;
  buffer[0] = 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    for (size_t k = 0; k < node->op->nattributes; k++) {
      const Attribute *row = &node->op->attributes[k];
      if (strcmp(row->name, names[i]) != 0) continue;
      const char *value = row->kind == ATTRIBUTE_CHOICE ? row->choices[node_s64(node, row->name)]
                          : node_bool(node, row->name)  ? "true"
                                                        : "false";
      length += (size_t)snprintf(buffer + length, SHAPE_TEXT - length, "%s %s: %s", length ? "," : ", with", row->name,
                                 value);
    }
  return buffer;
}

bool infer_same_extent(Inference *inf, Value *a, int axis_a, Value *b, int axis_b) {
  if (!a || !b) return true;
  Extent ea = a->shape.extent[axis_a], eb = b->shape.extent[axis_b];
  if (extent_is_unknown(ea)) return infer_extent(inf, a, axis_a, eb);
  if (extent_is_unknown(eb)) return infer_extent(inf, b, axis_b, ea);
  if (extent_equals(ea, eb)) return true;
  char shape_a[SHAPE_TEXT], shape_b[SHAPE_TEXT], attributes[SHAPE_TEXT];
  return infer_error(inf, "axis %d of %s %s and axis %d of %s %s: expected the same extent%s", axis_a, a->name,
                     shape_string(&a->shape, shape_a, sizeof shape_a), axis_b, b->name,
                     shape_string(&b->shape, shape_b, sizeof shape_b),
                     axis_a == axis_b ? "" : channel_attributes(inf->node, attributes));
}

bool infer_guessed_extent(Inference *inf, Value *v, int axis, Extent e) {
  if (!extent_is_unknown(v->shape.extent[axis]) || extent_is_unknown(e)) return true;
  if (inf->may_guess) {
    inf->may_guess = !inf->queue; // other extents may follow from this guess
    return infer_extent(inf, v, axis, e);
  }
  enqueue_guesser(inf);
  return true;
}

bool infer_computed_extent(Inference *inf, Value *v, int axis, Extent e, const Value *other) {
  const Extent found = v->shape.extent[axis];
  const bool is_operand = v->producer != inf->node;
  if (extent_is_unknown(e)) return true;
  if (is_operand && extent_is_unknown(found)) return infer_guessed_extent(inf, v, axis, e);
  if (extent_is_literal(e) || !e.dim->terms) return infer_extent_beside(inf, v, axis, e, other);
  if (extent_is_unknown(found)) return infer_guessed_extent(inf, v, axis, e);
  return !extents_are_apart(found, e) || infer_extent_beside(inf, v, axis, e, other);
}

static bool computed(Inference *inf, bool ok) {
  return ok || error_out_of_memory(inf->diagnostics);
}

bool infer_sum(Inference *inf, Extent a, int64_t times, Extent b, Extent *result) {
  return computed(inf, extent_add(inf->graph, a, times, b, result));
}

bool infer_product(Inference *inf, Extent a, Extent b, Extent *result) {
  return computed(inf, extent_multiply(inf->graph, a, b, result));
}

bool infer_quotient(Inference *inf, Extent a, Extent b, Extent *result) {
  return computed(inf, extent_divide(inf->graph, a, b, result));
}

bool infer_same_shape(Inference *inf, Value *a, Value *b) {
  if (!a || !b) return true;
  if (a->shape.rank < 0 && b->shape.rank < 0) return true;
  if (a->shape.rank < 0 && !infer_rank(inf, a, b->shape.rank)) return false;
  if (b->shape.rank < 0 && !infer_rank(inf, b, a->shape.rank)) return false;
  if (a->shape.rank != b->shape.rank) {
    char shape_a[SHAPE_TEXT], shape_b[SHAPE_TEXT];
    return infer_error(inf, "%s %s and %s %s: expected the same shape", a->name,
                       shape_string(&a->shape, shape_a, sizeof shape_a), b->name,
                       shape_string(&b->shape, shape_b, sizeof shape_b));
  }
  for (int i = 0; i < a->shape.rank; i++)
    if (!infer_same_extent(inf, a, i, b, i)) return false;
  return true;
}

bool infer_axis(Inference *inf, const char *attribute, int64_t given, int rank, int64_t *axis) {
  *axis = given < 0 ? given + rank : given;
  if (given >= -rank && given < rank) return true;
  if (!rank) return infer_error(inf, "%s: expected no axis for rank 0, found %lld", attribute, (long long)given);
  return infer_error(inf, "%s: expected -%d to %d for rank %d, found %lld", attribute, rank, rank - 1, rank,
                     (long long)given);
}

// Types

static TypeSet allowed_types(const Operator *op, char letter) {
  for (const TypeVariable *t = op->types; t->letter; t++)
    if (t->letter == letter) return t->types;
  return 0;
}

static bool check_type(Inference *inf, const Operand *row, const Value *v, TypeSet allowed) {
  const bool is_like_one_hot = row->is_index && type_is_float(v->type) && v->shape.rank > 1;
  char names[128];
  if (v->type == TYPE_NONE || (allowed & TYPE_BIT(v->type))) return true;
  return infer_error(inf, "%s: expected type %s, found %s%s", v->name, type_set_names(allowed, names, sizeof names),
                     type_name(v->type),
                     is_like_one_hot ? "; ArgMax makes indices of vectors with a number for each class" : "");
}

// The type if the set has just one; else TYPE_NONE.
static Type only_type(TypeSet allowed) {
  Type type = TYPE_F64;
  while (type < TYPE_COUNT && allowed != TYPE_BIT(type)) type++;
  return type < TYPE_COUNT ? type : TYPE_NONE;
}

bool infer_types(Inference *inf, Node *node) {
  const Operator *op = node->op;
  TypeSet narrowed = node->signature ? node->signature->types : 0;
  const Value *first[256] = {0}; // the value that bound a letter
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Operand *row;
    Value *v = node_operand_at(node, i, &row);
    unsigned char letter = narrowed ? 'T' : (unsigned char)row->type;
    if (!v) continue;
    if (!check_type(inf, row, v, narrowed ? narrowed : allowed_types(op, row->type))) return false;
    if (v->type == TYPE_NONE) continue;
    const Value *bound = first[letter];
    if (!bound) first[letter] = v;
    else if (bound->type != v->type)
      return infer_error(inf, "%s is %s and %s is %s: expected one type", bound->name, type_name(bound->type), v->name,
                         type_name(v->type));
  }
  for (uint32_t i = 0; i < node->ninputs + node->noutputs; i++) {
    const Operand *row;
    Value *v = node_operand_at(node, i, &row);
    const Value *bound = first[narrowed ? (unsigned char)'T' : (unsigned char)row->type];
    Type type = bound ? bound->type : only_type(narrowed ? narrowed : allowed_types(op, row->type));
    if (v && !infer_type(inf, v, type)) return false;
  }
  return true;
}

bool infer_result_type(Inference *inf, const Value *data, Value *result, bool data_may_be_f32) {
  if (data->type == TYPE_NONE || !result) return true;
  if (result->type == TYPE_NONE) return infer_type(inf, result, data->type);
  if (result->type == data->type || result->type == TYPE_F32) return true;
  if (data_may_be_f32 && data->type == TYPE_F32) return true;
  return infer_error(inf, "%s is %s and %s is %s: expected one type, or %s f32", data->name, type_name(data->type),
                     result->name, type_name(result->type), data_may_be_f32 ? "one of them" : result->name);
}

// Shapes that several families share

bool infer_elementwise_unary(Inference *inf, Node *node) {
  for (uint32_t i = 1; i < node->ninputs; i++)
    if (!infer_same_shape(inf, node->inputs[0], node->inputs[i])) return false;
  return infer_same_shape(inf, node->inputs[0], node->outputs[0]);
}

// v's axis that is aligned with `axis` of a result of rank `rank`; negative: v has no such axis, as if of extent 1.
static int aligned_axis(const Value *v, int rank, int axis) {
  return axis - (rank - v->shape.rank);
}

// A hint for a shape with fewer axes that would broadcast if shapes were aligned at the left: the shape to use. Empty:
// no hint.
static const char *aligned_shape(const Value *shorter, const Value *longer, char buffer[SHAPE_TEXT]) {
  Shape moved = shorter->shape;
  char text[SHAPE_TEXT];
  *buffer = 0;
  if (moved.rank >= longer->shape.rank) return buffer;
  for (int i = 0; i < moved.rank; i++)
    if (!extent_equals(moved.extent[i], longer->shape.extent[i]) && !extent_equals(moved.extent[i], EXTENT(1)))
      return buffer;
  for (; moved.rank < longer->shape.rank; moved.rank++) moved.extent[moved.rank] = EXTENT(1);
  snprintf(buffer, SHAPE_TEXT, "; %s of shape %s would", shorter->name, shape_string(&moved, text, sizeof text));
  return buffer;
}

static bool broadcast_error(Inference *inf, const Value *a, const Value *b, int rank, int axis) {
  char shape_a[SHAPE_TEXT], shape_b[SHAPE_TEXT], extent_a[SHAPE_TEXT], extent_b[SHAPE_TEXT];
  Extent ea = a->shape.extent[aligned_axis(a, rank, axis)], eb = b->shape.extent[aligned_axis(b, rank, axis)];
  char hint[SHAPE_TEXT];
  const bool is_a_shorter = a->shape.rank < b->shape.rank;
  return infer_error(inf, "%s %s and %s %s do not broadcast: extents %s and %s on axis %d from the right%s", a->name,
                     shape_string(&a->shape, shape_a, sizeof shape_a), b->name,
                     shape_string(&b->shape, shape_b, sizeof shape_b), extent_string(ea, extent_a, sizeof extent_a),
                     extent_string(eb, extent_b, sizeof extent_b), rank - axis,
                     aligned_shape(is_a_shorter ? a : b, is_a_shorter ? b : a, hint));
}

// Operands whose extent is not 1 must have the same extent; it is the result's.
static bool infer_broadcast_axis(Inference *inf, Node *node, uint32_t first, int rank, int axis) {
  Value *out = node->outputs[0], *wide = NULL, *narrow = NULL, *unknown = NULL;
  bool has_several_unknown = false;
  for (uint32_t i = first; i < node->ninputs; i++) {
    Value *v = node->inputs[i];
    int own = v ? aligned_axis(v, rank, axis) : -1;
    if (own < 0) continue;
    Extent e = v->shape.extent[own];
    if (extent_is_unknown(e)) {
      has_several_unknown |= unknown && unknown != v;
      unknown = v;
    } else if (extent_equals(e, EXTENT(1))) {
      narrow = v;
    } else if (!wide) {
      wide = v;
    } else if (!extent_equals(wide->shape.extent[aligned_axis(wide, rank, axis)], e)) {
      return broadcast_error(inf, wide, v, rank, axis);
    }
  }
  if (!wide && has_several_unknown) return true;
  Value *only = wide ? wide : unknown ? unknown : narrow; // determines the result's extent
  assert(only);                                           // the operand of the greatest rank has every axis
  return infer_same_extent(inf, out, axis, only, aligned_axis(only, rank, axis));
}

bool infer_broadcast(Inference *inf, Node *node, uint32_t first) {
  Value *out = node->outputs[0], *unknown = NULL;
  const Value *tallest = NULL;
  for (uint32_t i = first; i < node->ninputs; i++) {
    Value *v = node->inputs[i];
    if (!v) continue;
    if (v->shape.rank >= 0) tallest = tallest && tallest->shape.rank >= v->shape.rank ? tallest : v;
    else if (unknown && unknown != v) return true;
    else unknown = v;
  }
  // If the result has more axes than all operands of known rank, the only operand of unknown rank must have as many.
  if (unknown && (!tallest || out->shape.rank > tallest->shape.rank)) return infer_rank(inf, unknown, out->shape.rank);
  if (unknown || !tallest) return true;
  if (!infer_rank_beside(inf, out, tallest->shape.rank, tallest)) return false;
  for (int axis = 0; axis < out->shape.rank; axis++)
    if (!infer_broadcast_axis(inf, node, first, out->shape.rank, axis)) return false;
  return true;
}

bool infer_broadcast_extent(Inference *inf, Value *from, int axis_from, Value *to, int axis_to) {
  Extent e = from->shape.extent[axis_from];
  if (extent_equals(e, EXTENT(1))) return true;
  if (extent_is_unknown(e) && !extent_equals(to->shape.extent[axis_to], EXTENT(1))) return true;
  return infer_same_extent(inf, from, axis_from, to, axis_to);
}

bool infer_broadcast_to(Inference *inf, Value *from, Value *to) {
  char shape_from[SHAPE_TEXT], shape_to[SHAPE_TEXT];
  if (from->shape.rank < 0 || to->shape.rank < 0) return true;
  if (from->shape.rank > to->shape.rank)
    return infer_error(inf, "%s %s does not broadcast to %s %s: expected rank %d or less", from->name,
                       shape_string(&from->shape, shape_from, sizeof shape_from), to->name,
                       shape_string(&to->shape, shape_to, sizeof shape_to), to->shape.rank);
  for (int axis = 0; axis < to->shape.rank; axis++) {
    int own = aligned_axis(from, to->shape.rank, axis);
    if (own >= 0 && !infer_broadcast_extent(inf, from, own, to, axis)) return false;
  }
  return true;
}
