// One small graph for each operator, for the tests of compiled code. graph_text.h describes how they go into one file.
#ifndef NGRAD_TESTS_UNIT_GRAPH_CASES_H
#define NGRAD_TESTS_UNIT_GRAPH_CASES_H

#include "tests/unit/graph_text.h"

#include <stdbool.h>
#include <string.h>

enum { NO_GAMMA = 1, ONLY_DIFF_SRC = 2, FLAT = 4, WITH_BETA = 8, FAR = 16 };

typedef struct Types {
  const char *data, *statistics;
} Types;

static const Types f32 = {"f32", "f32"};
static const Types all_types[] = {{"f32", "f32"},   {"f16", "f32"}, {"bf16", "f32"},
                                  {"bf16", "bf16"}, {"f64", "f32"}, {"f64", "f64"}};
enum { NTYPES = sizeof all_types / sizeof *all_types };

// Around one, two and four vectors, and more than fits a chain of additions.
static const int64_t all_widths[] = {1, 15, 16, 17, 31, 33, 64, 65, 300, 5000};
static const int64_t all_heights[] = {1, 3, 4, 5, 37, 300};
enum { NWIDTHS = sizeof all_widths / sizeof *all_widths, NHEIGHTS = sizeof all_heights / sizeof *all_heights };

static inline Extents slice(Extents s, int from, int to) {
  Extents part = {to - from, {0}};
  for (int i = from; i < to; i++) part.extent[i - from] = s.extent[i];
  return part;
}

static inline Extents flat(Extents s) {
  int64_t nelems = 1;
  for (int i = 0; i < s.rank; i++) nelems *= s.extent[i];
  return EXTENTS(nelems);
}

// Operators

static inline void layer_norm_gradient(GraphText *g, Extents s, int begin, Types t, unsigned how) {
  int k = begin < 0 ? begin + s.rank : begin;
  Extents rows = slice(s, 0, k), columns = slice(s, k, s.rank);
  if (how & FLAT) columns = flat(columns);
  graph_text_case(g, "LayerNormBackward %s at %d %s %s %u", extents_text(g, s, "x"), begin, t.data, t.statistics, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s), *dy = graph_text_input(g, "dy", t.data, s);
  const char *mean = graph_text_input(g, how & FAR ? "mean far" : "mean", t.statistics, rows);
  const char *variance = graph_text_input(g, "variance", t.statistics, rows);
  const char *gamma = how & NO_GAMMA ? "~" : graph_text_input(g, "gamma", t.statistics, columns);
  const char *beta = how & WITH_BETA ? graph_text_input(g, "beta", t.statistics, columns) : "~";
  const char *affine = how & NO_GAMMA ? "false" : "true";
  const char *dx = graph_text_result(g, "dx"),
             *inputs = arena_format(&g->arena, "%s, %s, %s, %s, %s, %s", x, dy, mean, variance, gamma, beta);
  if (how & (ONLY_DIFF_SRC | NO_GAMMA))
    graph_text_node(g, "LayerNormBackward",
                    "inputs: [%s], outputs: [%s], attributes: {begin_norm_axis: %d, use_affine: %s}", inputs, dx, begin,
                    affine);
  else
    graph_text_node(g, "LayerNormBackward", "inputs: [%s], outputs: [%s, %s, %s], attributes: {begin_norm_axis: %d}",
                    inputs, dx, graph_text_result(g, "dgamma"), graph_text_result(g, "dbeta"), begin);
}

static inline void layer_norm(GraphText *g, Extents s, int begin, Types t, unsigned how) {
  int k = begin < 0 ? begin + s.rank : begin;
  Extents columns = slice(s, k, s.rank);
  if (how & FLAT) columns = flat(columns);
  graph_text_case(g, "LayerNorm %s at %d %s %s %u", extents_text(g, s, "x"), begin, t.data, t.statistics, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s), *dst = graph_text_result(g, "dst");
  if (how & NO_GAMMA)
    graph_text_node(
        g, "LayerNorm",
        "inputs: [%s], outputs: [%s], attributes: {begin_norm_axis: %d, use_affine: false, keep_stats: false}", x, dst,
        begin);
  else
    graph_text_node(g, "LayerNorm",
                    "inputs: [%s, %s, %s], outputs: [%s, {name: %s, type: %s}, %s], attributes: {begin_norm_axis: %d}",
                    x, graph_text_input(g, "gamma", t.statistics, columns),
                    graph_text_input(g, "beta", t.statistics, columns), dst, graph_text_result(g, "mean"), t.statistics,
                    graph_text_result(g, "variance"), begin);
}

// The statistics and parameters of a batch norm, by position.
typedef struct Channel {
  const char *mean, *variance, *gamma, *beta;
} Channel;

static inline Channel channel_inputs(GraphText *g, Extents s, Types t, unsigned how) {
  return (Channel){graph_text_input(g, how & FAR ? "mean far" : "mean", t.statistics, s),
                   graph_text_input(g, "variance", t.statistics, s),
                   how & NO_GAMMA ? "~" : graph_text_input(g, "gamma", t.statistics, s),
                   how & WITH_BETA ? graph_text_input(g, "beta", t.statistics, s) : "~"};
}

static inline Extents channels_of(Extents s, const char *format) {
  return EXTENTS(s.extent[format[1] == 'C' ? 1 : s.rank - 1]);
}

static inline void batch_norm_gradient(GraphText *g, const char *op, Extents s, const char *format, Types t,
                                       unsigned how) {
  bool is_ngraph = op[0] == 'n';
  graph_text_case(g, "%s %s %s %s %s %u", op, extents_text(g, s, "x"), format, t.data, t.statistics, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s), *dy = graph_text_input(g, "dy", t.data, s);
  Channel c = channel_inputs(g, channels_of(s, format), t, is_ngraph ? how | WITH_BETA : how);
  const char *dx = graph_text_result(g, "dx");
  const char *rest = how & ONLY_DIFF_SRC ? ""
                                         : arena_format(&g->arena, ", %s, %s", graph_text_result(g, "dgamma"),
                                                        graph_text_result(g, "dbeta"));
  if (is_ngraph)
    graph_text_node(g, op, "inputs: [%s, %s, %s, %s, %s, %s], outputs: [%s%s], attributes: {epsilon: 1e-5}", x, c.gamma,
                    c.beta, c.mean, c.variance, dy, dx, rest);
  else
    graph_text_node(g, op,
                    "inputs: [%s, %s, %s, %s, %s], outputs: [%s%s], attributes: {epsilon: 1e-5, data_format: %s}", x,
                    dy, c.mean, c.variance, c.gamma, dx, rest, format);
}

static inline void batch_norm_training(GraphText *g, Extents s, const char *format, Types t, unsigned how) {
  graph_text_case(g, "BatchNormForwardTraining %s %s %s %s %u", extents_text(g, s, "x"), format, t.data, t.statistics,
                  how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", t.data, s);
  Channel c = channel_inputs(g, channels_of(s, format), t, how & NO_GAMMA ? how : how | WITH_BETA);
  graph_text_node(g, "BatchNormForwardTraining",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s, %s, %s], attributes: {epsilon: 1e-5, momentum: "
                  "0.9, data_format: %s}",
                  x, c.mean, c.variance, c.gamma, c.beta, graph_text_result(g, "dst"),
                  graph_text_result(g, "running_mean"), graph_text_result(g, "running_variance"),
                  graph_text_result(g, "batch_mean"), graph_text_result(g, "batch_variance"), format);
}

static inline void batch_norm_inference(GraphText *g, Extents s, const char *format, Types t) {
  graph_text_case(g, "BatchNormInference %s %s %s %s", extents_text(g, s, "x"), format, t.data, t.statistics);
  const char *x = graph_text_input(g, "x", t.data, s);
  Channel c = channel_inputs(g, channels_of(s, format), t, WITH_BETA);
  graph_text_node(g, "BatchNormInference",
                  "inputs: [%s, %s, %s, %s, %s], outputs: [%s], attributes: {epsilon: 1e-5, data_format: %s}", x,
                  c.gamma, c.beta, c.mean, c.variance, graph_text_result(g, "dst"), format);
}

// Statistics over the axes whose bit is set in `reduced`.
static inline void directml_gradient(GraphText *g, const char *op, Extents s, unsigned reduced, const char *type,
                                     unsigned how) {
  Types t = {type, type};
  Extents statistics = s;
  for (int i = 0; i < s.rank; i++)
    if (reduced >> i & 1) statistics.extent[i] = 1;
  graph_text_case(g, "%s %s by %s %s %u", op, extents_text(g, s, "x"), extents_text(g, statistics, "x"), type, how);
  const char *x = graph_text_input(g, how & FAR ? "x far" : "x", type, s), *dy = graph_text_input(g, "dy", type, s);
  Channel c = channel_inputs(g, statistics, t, how);
  graph_text_node(g, op, "inputs: [%s, %s, %s, %s, %s], outputs: [%s, %s, %s], attributes: {Epsilon: 1e-5}", x, dy,
                  c.mean, c.variance, c.gamma, graph_text_result(g, "dx"), graph_text_result(g, "dscale"),
                  graph_text_result(g, "dbias"));
}

// Elementwise operators

static inline void binary(GraphText *g, const char *op, const char *type_a, Extents a, const char *type_b, Extents b) {
  graph_text_case(g, "%s %s %s and %s %s", op, type_a, extents_text(g, a, "x"), type_b, extents_text(g, b, "x"));
  const char *x = graph_text_input(g, "x", type_a, a), *y = graph_text_input(g, "dy", type_b, b);
  graph_text_node(g, op, "inputs: [%s, %s], outputs: [%s]", x, y, graph_text_result(g, "z"));
}

// One of these with its attributes, as a graph has them; of src, or of src or dst and diff_dst.
typedef struct Form {
  const char *op, *attributes;
} Form;

static const Form activations[] = {
    {"Abs", ""},
    {"Clamp", "min: -0.3, max: 0.7"},
    {"Elu", "alpha: 0.7"},
    {"Erf", ""},
    {"Sin", ""},
    {"Cos", ""},
    {"Exp", ""},
    {"GELU", ""},
    {"GELU", "mode: gelu_tanh"},
    {"HardSigmoid", "alpha: 0.3, beta: 0.4"},
    {"HardSwish", ""},
    {"LeakyReLU", "alpha: 0.1"},
    {"Log", ""},
    {"Mish", ""},
    {"Neg", ""},
    {"Pow", "beta: 0.7"},
    {"Pow", "beta: -2"},
    {"Reciprocal", ""},
    {"ReLU", ""},
    {"Round", ""},
    {"RoundThrough", ""},
    {"Sigmoid", ""},
    {"SoftPlus", ""},
    {"SoftPlus", "beta: -0.5"},
    {"Sqrt", ""},
    {"Square", ""},
    {"Swish", ""},
    {"Swish", "beta: -1.5"},
    {"Tanh", ""},
    {"AbsBackward", ""},
    {"ClampBackward", "min: -0.3, max: 0.7"},
    {"EluBackward", "alpha: 0.7"},
    {"EluBackward", "alpha: 0.7, use_dst: false"},
    {"GELUBackward", ""},
    {"GELUBackward", "mode: gelu_tanh"},
    {"HardSigmoidBackward", "alpha: 0.3, beta: 0.4"},
    {"HardSwishBackward", ""},
    {"MishBackward", ""},
    {"ReLUBackward", ""},
    {"SigmoidBackward", ""},
    {"SigmoidBackward", "use_dst: false"},
    {"SoftPlusBackward", "beta: -0.5"},
    {"SqrtBackward", ""},
    {"SqrtBackward", "use_dst: false"},
    {"TanhBackward", ""},
    {"TanhBackward", "use_dst: false"},
};
enum { NACTIVATIONS = sizeof activations / sizeof *activations };

static inline bool is_gradient(const char *op) {
  return strstr(op, "Backward") != NULL;
}

static inline void activation(GraphText *g, const Form *form, const char *type, Extents s) {
  graph_text_case(g, "%s %s %s %s", form->op, form->attributes, type, extents_text(g, s, "x"));
  const char *inputs = graph_text_input(g, "x", type, s);
  if (is_gradient(form->op)) inputs = arena_format(&g->arena, "%s, %s", inputs, graph_text_input(g, "dy", type, s));
  graph_text_node(g, form->op, "inputs: [%s], outputs: [%s], attributes: {%s}", inputs, graph_text_result(g, "dst"),
                  form->attributes);
}

static inline void choice(GraphText *g, const char *type, Extents cond, Extents a, Extents b) {
  graph_text_case(g, "Select %s %s of %s and %s", type, extents_text(g, cond, "x"), extents_text(g, a, "x"),
                  extents_text(g, b, "x"));
  const char *c = graph_text_input(g, "cond", "boolean", cond);
  graph_text_node(g, "Select", "inputs: [%s, %s, %s], outputs: [%s]", c, graph_text_input(g, "x", type, a),
                  graph_text_input(g, "dy", type, b), graph_text_result(g, "z"));
}

// A bias of each channel, and its gradient.
static inline void bias(GraphText *g, Extents s, const char *format, const char *type) {
  graph_text_case(g, "BiasAdd %s %s %s", extents_text(g, s, "x"), format, type);
  const char *x = graph_text_input(g, "x", type, s), *b = graph_text_input(g, "dy", type, channels_of(s, format));
  graph_text_node(g, "BiasAdd", "inputs: [%s, %s], outputs: [%s], attributes: {data_format: %s}", x, b,
                  graph_text_result(g, "dst"), format);
  graph_text_node(g, "BiasAddBackward", "inputs: [%s], outputs: [%s], attributes: {data_format: %s}",
                  graph_text_input(g, "other dy", type, s), graph_text_result(g, "dbias"), format);
}

static inline void prelu(GraphText *g, Extents s, Extents slope, const char *format, const char *type) {
  graph_text_case(g, "PReLU %s by %s %s %s", extents_text(g, s, "x"), extents_text(g, slope, "x"), format, type);
  const char *x = graph_text_input(g, "x", type, s), *gamma = graph_text_input(g, "gamma", type, slope);
  bool is_per_channel = slope.extent[0] != 1;
  graph_text_node(g, "PReLU",
                  "inputs: [%s, %s], outputs: [%s], attributes: {data_format: %s, per_channel_broadcast: %s}", x, gamma,
                  graph_text_result(g, "dst"), format, is_per_channel ? "true" : "false");
  graph_text_node(g, "PReLUBackward", "inputs: [%s, %s, %s], outputs: [%s, %s], attributes: {data_format: %s}", x,
                  gamma, graph_text_input(g, "dy", type, s), graph_text_result(g, "dx"), graph_text_result(g, "dgamma"),
                  format);
}

static inline void unary(GraphText *g, const char *op, const char *type, Extents s, const char *to) {
  graph_text_case(g, "%s %s %s %s", op, type, to, extents_text(g, s, "x"));
  const char *x = graph_text_input(g, "x", type, s), *dst = graph_text_result(g, "dst");
  if (op[0] == 'T') graph_text_node(g, op, "inputs: [%s], outputs: [{name: %s, type: %s}]", x, dst, to);
  else if (strcmp(op, "ReLU") == 0 || strcmp(op, "Neg") == 0)
    graph_text_node(g, op, "inputs: [%s], outputs: [%s]", x, dst);
  else graph_text_node(g, op, "inputs: [%s, %s], outputs: [%s]", x, graph_text_input(g, "dy", type, s), dst);
}

#endif
