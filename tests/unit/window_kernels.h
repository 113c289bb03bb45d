// Kernels of windows, built by hand: sums and maxima over the taps of padded windows, and their adjoints, in tensors of
// both layouts. Each replaces the kernel of a graph with the same inputs and output.
#ifndef NGRAD_TESTS_UNIT_WINDOW_KERNELS_H
#define NGRAD_TESTS_UNIT_WINDOW_KERNELS_H

#include "ir/kernel/program.h"
#include "ir/kernel/simplify.h"
#include "ir/kernel/verify.h"
#include "ir/loops/target.h"
#include "passes/schedule/order/order.h"
#include "passes/schedule/tune/tune.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

// y[n, oy, ox, c] = the reduction over the taps of x[n, row(oy, ky), column(ox, kx), c], where
// row(o, k) = stride * o + dilation * k - pad; of an adjoint, o + pad - dilation * k.
typedef struct Window {
  bool is_channels_last;
  Type type; // of x
  int64_t batch, channels, in[2], out[2], taps[2], stride[2], dilation[2], pad[2];
  ExprOp reduction;
  bool is_adjoint, has_weights; // has_weights: x times w[ky, kx, c]
  double outside;
} Window;

enum { AXIS_BATCH, AXIS_ROW, AXIS_COLUMN, AXIS_CHANNEL, AXIS_TAP }; // in the order of NXC; the taps are the last two

static inline int window_axis(const Window *w, int axis) { // of the domain
  if (w->is_channels_last || axis == AXIS_BATCH || axis >= AXIS_TAP) return axis;
  return axis == AXIS_CHANNEL ? 1 : axis + 1;
}

static inline void window_shape(const Window *w, const int64_t *spatial, int64_t *extent) {
  extent[AXIS_BATCH] = w->batch;
  extent[window_axis(w, AXIS_ROW)] = spatial[0];
  extent[window_axis(w, AXIS_COLUMN)] = spatial[1];
  extent[window_axis(w, AXIS_CHANNEL)] = w->channels;
}

// A graph with the inputs x, z of y's shape, and w; and the output y. Its own kernel adds something else.
static inline void window_graph_text(const Window *w, char *text, size_t nbytes) {
  int64_t x[4], y[4];
  window_shape(w, w->in, x);
  window_shape(w, w->out, y);
  snprintf(text, nbytes,
           "format: ngrad/1\nname: window\ninputs:\n- {name: x, type: %s, shape: [%lld, %lld, %lld, %lld]}\n"
           "- {name: z, type: %s, shape: [%lld, %lld, %lld, %lld]}\n"
           "- {name: w, type: f32, shape: [%lld, %lld, %lld]}\n"
           "nodes: [{op: Add, inputs: [z, z], outputs: [y]}]\noutputs: [y]\n",
           type_name(w->type), (long long)x[0], (long long)x[1], (long long)x[2], (long long)x[3],
           w->type == TYPE_F64 ? "f64" : "f32", (long long)y[0], (long long)y[1], (long long)y[2], (long long)y[3],
           (long long)w->taps[0], (long long)w->taps[1], (long long)w->channels);
}

static inline void strides_of_extents(const int64_t *extent, int64_t *stride) {
  stride[3] = 1;
  for (int i = 2; i >= 0; i--) stride[i] = stride[i + 1] * extent[i + 1];
}

static inline ExprId window_load(Kernel *k, const Window *w, Value *x) {
  int64_t extent[4], stride[4];
  Bound bounds[2] = {{0}};
  Access a = {.value = x, .type = x->type, .bounds = bounds, .nbounds = 2, .outside = w->outside};
  window_shape(w, w->in, extent);
  strides_of_extents(extent, stride);
  a.stride[AXIS_BATCH] = stride[AXIS_BATCH];
  a.stride[window_axis(w, AXIS_CHANNEL)] = stride[window_axis(w, AXIS_CHANNEL)];
  for (int i = 0; i < 2; i++) {
    Bound *b = &bounds[i];
    const int axis = window_axis(w, AXIS_ROW + i), tap = AXIS_TAP + i;
    b->extent = w->in[i];
    b->stride = stride[axis];
    b->offset = w->is_adjoint ? w->pad[i] : -w->pad[i];
    b->factor[axis] = w->is_adjoint ? 1 : w->stride[i];
    b->factor[tap] = w->is_adjoint ? -w->dilation[i] : w->dilation[i];
    a.offset += b->stride * b->offset;
    a.stride[axis] = b->stride * b->factor[axis];
    a.stride[tap] = b->stride * b->factor[tap];
  }
  return expr_label(k, expr_load(k, kernel_add_access(k, &a)), "x");
}

// A schedule in the arena for a kernel that computes y, in place of the nodes of `of`.
static inline Schedule *window_schedule(const Window *w, Arena *arena, const Kernel *of, const ScheduleOverrides *o) {
  static const char *const names[] = {"d0", "d1", "d2", "d3", "d4", "d5"};
  const Graph *g = of->graph;
  Kernel *k = ARENA_NEW(arena, Kernel);
  Text why;
  int64_t extent[4];
  text_init(&why, &system_allocator);
  assert_non_null(k);
  kernel_init(k, arena, "window");
  k->graph = g;
  k->nodes = of->nodes;
  k->nnodes = of->nnodes;
  k->is_f64 = w->type == TYPE_F64;
  window_shape(w, w->out, extent);
  for (int i = 0; i < 6; i++) kernel_add_axis(k, names[i], i < AXIS_TAP ? extent[i] : w->taps[i - AXIS_TAP], 0);
  ExprId e = window_load(k, w, g->inputs[0]);
  if (w->has_weights) {
    Access a = {.value = g->inputs[2], .type = TYPE_F32};
    a.stride[AXIS_TAP] = w->taps[1] * w->channels;
    a.stride[AXIS_TAP + 1] = w->channels;
    a.stride[window_axis(w, AXIS_CHANNEL)] = 1;
    e = expr_binary(k, EXPR_MUL, e, expr_label(k, expr_load(k, kernel_add_access(k, &a)), "w"));
  }
  Access y = {.value = g->outputs[0], .type = g->outputs[0]->type};
  strides_of_extents(extent, y.stride);
  kernel_store(k, kernel_add_access(k, &y), expr_reduce(k, w->reduction, e, 3U << AXIS_TAP));
  kernel_drop_unneeded(k);
  kernel_simplify_axes(k);
  kernel_drop_unneeded(k); // sums over axes of extent 1
  if (!kernel_verify(k, &why)) fail_msg("%s", text_string(&why));
  Schedule *s = kernel_order(k, BEST_AXIS, o);
  assert_non_null(s);
  if (!schedule_verify(s, &why)) fail_msg("%s", text_string(&why));
  Target target = target_of_any_machine();
  target.vector_registers = 16;
  assert_true(schedule_tune(s, &target, o));
  if (!schedule_verify(s, &why)) fail_msg("%s", text_string(&why));
  text_deinit(&why);
  return s;
}

static inline int64_t window_index(const Window *w, int i, int64_t o, int64_t tap) {
  return w->is_adjoint ? o + w->pad[i] - w->dilation[i] * tap : w->stride[i] * o + w->dilation[i] * tap - w->pad[i];
}

// Windows with the same numbers for rows and columns, and padding that keeps all tensors small.
#define BOTH(a)                                                                                                        \
  { a, a }
static const Window windows[] = {
    // A window of 3 by 3 with padding, in both layouts; with vectors that leave the row at both ends.
    {true, TYPE_F32, 2, 20, BOTH(7), BOTH(7), BOTH(3), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM},
    {false, TYPE_F32, 2, 3, {9, 37}, {9, 37}, BOTH(3), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM},
    {false, TYPE_F32, 2, 3, {9, 37}, {9, 37}, BOTH(3), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .has_weights = true},
    // Strided maxima; -infinity outside.
    {true, TYPE_BF16, 2, 33, BOTH(9), BOTH(5), BOTH(3), BOTH(2), BOTH(1), BOTH(1), EXPR_REDUCE_MAXIMUM,
     .outside = -(double)INFINITY},
    {false,
     TYPE_BF16,
     2,
     3,
     {9, 70},
     {5, 35},
     BOTH(3),
     BOTH(2),
     BOTH(1),
     BOTH(1),
     EXPR_REDUCE_MAXIMUM,
     .outside = -(double)INFINITY},
    {false,
     TYPE_F32,
     1,
     2,
     {9, 70},
     {5, 35},
     BOTH(2),
     BOTH(2),
     BOTH(1),
     BOTH(0),
     EXPR_REDUCE_MAXIMUM,
     .outside = -(double)INFINITY},
    // Dilated, with padding on the far side only; the numbers outside matter.
    {false, TYPE_F64, 1, 2, {5, 21}, {5, 21}, BOTH(3), BOTH(1), BOTH(2), BOTH(0), EXPR_REDUCE_SUM, .outside = 0.5},
    {true, TYPE_F64, 1, 18, {5, 21}, {5, 21}, BOTH(3), BOTH(1), BOTH(2), BOTH(0), EXPR_REDUCE_SUM, .outside = 0.5},
    // Adjoints: negative factors.
    {true, TYPE_F32, 2, 20, BOTH(7), BOTH(9), BOTH(3), BOTH(1), BOTH(1), BOTH(0), EXPR_REDUCE_SUM, true, true},
    {false, TYPE_F32, 2, 3, {7, 35}, {9, 37}, BOTH(3), BOTH(1), BOTH(1), BOTH(0), EXPR_REDUCE_SUM, true, true},
    {false, TYPE_F16, 2, 3, {7, 35}, {7, 35}, BOTH(3), BOTH(1), BOTH(2), BOTH(2), EXPR_REDUCE_SUM, true},
    // Lanes backwards along the tensor.
    {false, TYPE_F32, 1, 2, {7, 35}, {7, 35}, BOTH(3), BOTH(-1), BOTH(1), {-6, -33}, EXPR_REDUCE_SUM},
    // Types of 8 and 4 bits; a stride of 3; a window along one axis; a tensor's axis of extent 1.
    {false, TYPE_S8, 1, 2, {7, 100}, {7, 34}, {1, 5}, {1, 3}, BOTH(1), {0, 2}, EXPR_REDUCE_SUM, .outside = 7},
    {false, TYPE_U4, 1, 2, {7, 33}, {7, 33}, {2, 3}, BOTH(1), BOTH(1), {0, 1}, EXPR_REDUCE_SUM, .outside = 3},
    {true, TYPE_F32, 1, 16, {1, 5}, {1, 5}, BOTH(3), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .has_weights = true},
    {false, TYPE_F32, 20, 2, {1, 1}, {3, 3}, BOTH(3), BOTH(1), BOTH(1), BOTH(2), EXPR_REDUCE_SUM},
    // Short vectors; one result in a row; taps that are always outside.
    {true, TYPE_F32, 1, 5, BOTH(7), BOTH(7), BOTH(3), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .has_weights = true},
    {false, TYPE_F32, 3, 20, BOTH(7), BOTH(1), BOTH(7), BOTH(1), BOTH(1), BOTH(0), EXPR_REDUCE_SUM},
    {false, TYPE_F32, 1, 2, {7, 35}, {7, 35}, BOTH(3), BOTH(1), BOTH(40), BOTH(40), EXPR_REDUCE_SUM},
    // A window of 7 by 7: longer chains than in one run.
    {true, TYPE_F32, 1, 40, BOTH(12), BOTH(12), BOTH(7), BOTH(1), BOTH(1), BOTH(3), EXPR_REDUCE_SUM,
     .has_weights = true},
    // Groups of vectors. Padding alone, along several axes and along one; the gradient of weights, a sum along the
    // lanes.
    {false,
     TYPE_F32,
     1,
     2,
     {3, 300},
     {3, 300},
     BOTH(3),
     BOTH(1),
     BOTH(1),
     BOTH(1),
     EXPR_REDUCE_SUM,
     .has_weights = true},
    {false, TYPE_F32, 2, 3, {9, 37}, {11, 39}, BOTH(1), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .outside = -2},
    {true, TYPE_BF16, 2, 20, {9, 8}, {11, 10}, BOTH(1), BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .outside = -2},
    {false, TYPE_F32, 1, 1, {1, 100}, {1, 102}, BOTH(1), BOTH(1), BOTH(1), {0, 1}, EXPR_REDUCE_SUM, .outside = -2},
    {false,
     TYPE_F32,
     2,
     1,
     {9, 137},
     BOTH(3),
     {9, 137},
     BOTH(1),
     BOTH(1),
     BOTH(1),
     EXPR_REDUCE_SUM,
     .has_weights = true},
    {true, TYPE_F32, 2, 20, {9, 8}, BOTH(3), {9, 8}, BOTH(1), BOTH(1), BOTH(1), EXPR_REDUCE_SUM, .has_weights = true},
};
#undef BOTH
enum { NWINDOWS = sizeof windows / sizeof *windows };

#endif
