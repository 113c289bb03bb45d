// Narrow weights: states of f32 with two or more axes that no call updates, whose numbers are known, become states of
// s8 or bf16, which nodes turn into f32 again.
//
// s8 holds the multiples from -127 to 127 of a scale: the largest magnitude divided by 127. There is a scale for each
// index of one axis, if some axis is short enough for its scales to take less than a quarter of the bytes; of several
// such axes, the one with the least error. Otherwise, there is one scale for the tensor.
#include "ir/graph/tensor.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/operator.h"
#include "ir/operators/quantize.h"
#include "passes/train/train.h"

#include <math.h>
#include <string.h>

enum { LARGEST = 127, LEAST_ELEMENTS = 16 }; // of s8; elements that share a scale

typedef struct Scaling {
  int axis; // -1: one scale for the tensor
  size_t count;
  double *scales; // [count]
} Scaling;

// The index along an axis of an element of a row-major tensor; 0 for axis -1.
static size_t index_along(const Shape *shape, int axis, size_t element) {
  size_t inner = 1;
  if (axis < 0) return 0;
  for (int k = axis + 1; k < shape->rank; k++) inner *= (size_t)extent_value(shape->extent[k]);
  return element / inner % (size_t)extent_value(shape->extent[axis]);
}

static int8_t to_s8(double x, double scale) {
  return (int8_t)fmin(fmax(nearbyint(x / scale), -LARGEST), LARGEST);
}

static double from_s8(int8_t n, double scale) {
  return (float)n * (float)scale;
}

static void add_error(NarrowWeight *w, double x, double y) {
  const double error = fabs(x - y);
  w->max_error = fmax(w->max_error, error);
  w->rms_error += error * error;
  w->rms += x * x;
}

static void end_error(NarrowWeight *w, size_t nelems) {
  w->rms_error = nelems ? sqrt(w->rms_error / (double)nelems) : 0;
  w->rms = nelems ? sqrt(w->rms / (double)nelems) : 0;
}

// Finds the scales for an axis, and the error that they leave.
static void scale(const Shape *shape, const float *data, size_t nelems, Scaling *s, NarrowWeight *w) {
  for (size_t i = 0; i < s->count; i++) s->scales[i] = 0;
  for (size_t i = 0; i < nelems; i++) {
    double *largest = &s->scales[index_along(shape, s->axis, i)];
    *largest = fmax(*largest, fabs((double)data[i]));
  }
  for (size_t i = 0; i < s->count; i++) {
    const float each = (float)(s->scales[i] / LARGEST);
    s->scales[i] = each > 0 ? (double)each : 1; // also where all numbers are 0, or their quotient is
  }
  for (size_t i = 0; i < nelems; i++) {
    const double each = s->scales[index_along(shape, s->axis, i)];
    add_error(w, data[i], from_s8(to_s8(data[i], each), each));
  }
  end_error(w, nelems);
}

// Chooses the axis. NULL scales: out of memory.
static Scaling choose_scaling(Graph *g, const Shape *shape, const float *data, size_t nelems, NarrowWeight *w) {
  Scaling best = {.axis = -1, .count = 1, .scales = ARENA_ARRAY(&g->arena, double, 1)};
  if (!best.scales) return best;
  const NarrowWeight named = *w;
  scale(shape, data, nelems, &best, w);
  for (int axis = 0; axis < shape->rank; axis++) {
    const size_t count = (size_t)extent_value(shape->extent[axis]);
    if (count < 2 || nelems / count < LEAST_ELEMENTS) continue;
    Scaling other = {.axis = axis, .count = count, .scales = ARENA_ARRAY(&g->arena, double, count)};
    NarrowWeight errors = named;
    if (!other.scales) return other;
    scale(shape, data, nelems, &other, &errors);
    if (errors.rms_error >= w->rms_error) continue;
    best = other;
    *w = errors;
  }
  return best;
}

static void set_scaling(Node *node, const Scaling *s) {
  *node_attribute_slot(node, "scales") = (AttributeValue){.is_set = true, .numbers = {s->scales, s->count}};
  if (s->axis < 0) return;
  *node_attribute_slot(node, "qtype") = (AttributeValue){.is_set = true, .s64 = QUANTIZE_PER_CHANNEL};
  *node_attribute_slot(node, "axis") = (AttributeValue){.is_set = true, .s64 = s->axis};
}

// The same number of elements in another type, as the state's first value, with a file's name that tells the type.
static bool set_value(Graph *g, State *state, Type type, void *data) {
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  if (!constant) return false;
  *constant = (Constant){.data = data, .is_initializer = true};
  Value named = *g->inputs[state->input];
  named.constant = constant;
  named.name = arena_format(&g->arena, "%s_%s", named.name, type_name(type));
  state->init.constant = constant;
  g->inputs[state->input]->type = type;
  return named.name && graph_name_file(g, &named);
}

// Puts a node between the state and its users. NULL: out of memory.
static Node *add_widening(Graph *g, Value *state, OperatorId id) {
  const Operator *op = &operators[id];
  const char *name = graph_fresh_name(g, state->name);
  Node *node = graph_add_node(g, op, NULL, op->ninputs, op->noutputs);
  Value *wide = name && node ? graph_add_value(g, name, TYPE_F32, &state->shape) : NULL;
  if (!wide) return NULL;
  wide->layout = state->layout;
  wide->range = state->range;
  value_replace_uses(state, wide);
  node_set_input(node, 0, state);
  node_set_output(node, 0, wide);
  return node;
}

static bool narrow(Graph *g, State *state, Type type, NarrowWeight *w) {
  Value *v = g->inputs[state->input];
  const float *data = state->init.constant->data;
  const size_t nelems = (size_t)shape_nelems(&v->shape);
  void *made = arena_alloc(&g->arena, nelems * type_nbytes(type) + 1);
  *w = (NarrowWeight){.name = v->name, .nbytes_before = value_nbytes(v)};
  Node *node = made ? add_widening(g, v, type == TYPE_S8 ? OP_Dequantize : OP_TypeCast) : NULL;
  if (!node) return false;
  if (type == TYPE_S8) {
    const Scaling s = choose_scaling(g, &v->shape, data, nelems, w);
    if (!s.scales) return false;
    for (size_t i = 0; i < nelems; i++)
      ((int8_t *)made)[i] = to_s8(data[i], s.scales[index_along(&v->shape, s.axis, i)]);
    set_scaling(node, &s);
    w->nbytes = nelems + s.count * sizeof(float);
  } else {
    for (size_t i = 0; i < nelems; i++) {
      type_store(type, made, i, data[i]);
      add_error(w, data[i], type_load(type, made, i));
    }
    end_error(w, nelems);
    w->nbytes = nelems * type_nbytes(type);
  }
  node_set_defaults(node);
  return set_value(g, state, type, made);
}

static bool is_wide(const Graph *g, const State *state) {
  const Value *v = g->inputs[state->input];
  return v->type == TYPE_F32 && v->shape.rank > 1 && v->uses && !v->is_output && state->output < 0 &&
         state->init.kind == INIT_FILE && shape_nelems(&v->shape) > 0;
}

static bool is_finite(const Graph *g, const State *state, Diagnostics *d) {
  const Value *v = g->inputs[state->input];
  const float *data = state->init.constant->data;
  for (int64_t i = 0; i < shape_nelems(&v->shape); i++)
    if (!isfinite(data[i]))
      return error_at(d, v->position, "state %s: has a number that is not finite, which s8 cannot hold", v->name);
  return true;
}

bool graph_narrow_weights(Graph *g, Type type, NarrowWeight *weights, size_t *count, Diagnostics *d) {
  bool ok = true;
  *count = 0;
  for (size_t i = 0; i < g->nstates; i++)
    if (is_wide(g, &g->states[i]) && type == TYPE_S8) ok = is_finite(g, &g->states[i], d) && ok;
  for (size_t i = 0; i < g->nstates && ok; i++)
    if (is_wide(g, &g->states[i])) ok = narrow(g, &g->states[i], type, &weights[(*count)++]) || error_out_of_memory(d);
  return ok && graph_sort(g, d) && graph_infer(g, d) && graph_verify(g, d);
}
