// The error bounds of docs/errors.md hold: each row of its tables is computed in the order of additions of emitted code
// (the executor of loop trees has its bits), on random data and on data that is unkind to sums, and compared with long
// double. Prints how near to its bound each row comes; a bound that nothing comes near would say little, and fails too.
#include "frontend/api/build.h"
#include "frontend/api/tensor.h"
#include "ir/kernel/schedule.h"
#include "tests/loops/execute.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_INPUTS = 5, MOST_OUTPUTS = 5, MOST_LENGTHS = 8, LANES_OF_ROWS = 16, ROWS = 3, COLUMNS = 24 };

// A graph with its data, and its results.
typedef struct Problem {
  int64_t n; // a length; %lld in the graph
  const float *in[MOST_INPUTS];
  const int32_t *labels; // of the input of s32
  const float *out[MOST_OUTPUTS];
  double worst[MOST_OUTPUTS]; // by output: the largest error, as a part of the bound
} Problem;

typedef struct Row {
  const char *name, *graph;
  void (*check)(Problem *p);
  int64_t lengths[MOST_LENGTHS]; // up to a 0
} Row;

// The bounds, as the page has them

static double unit_roundoff(void) {
  return 0x1p-24;
}

static double gamma_of(double k) {
  return k * unit_roundoff() / (1 - k * unit_roundoff());
}

static double least(double a, double b) {
  return a < b ? a : b;
}

static double row_depth(int64_t n) {
  return least(ceil((double)n / LANES_OF_ROWS), 64) + 5;
}

static double column_depth(int64_t n) {
  const double block = ceil((double)n / 1024) * 16;
  return least((double)n, block < 64 ? 64 : least(block, 256)) + 1;
}

static double product_depth(int64_t n) {
  return least((double)n, 2047) + 1;
}

// Takes note of an element of an output. Below the least normal number, functions of f32 may give 0.
static void hold(Problem *p, int output, int64_t element, long double wanted, double bound) {
  const double error = (double)fabsl((long double)p->out[output][element] - wanted);
  const double ratio = error / (bound + (double)FLT_MIN);
  if (!(ratio <= p->worst[output])) p->worst[output] = ratio;
}

// Sums

static void check_rows(Problem *p) {
  for (int64_t r = 0; r < ROWS; r++) {
    long double sum = 0, size = 0, square = 0;
    for (int64_t i = 0; i < p->n; i++) {
      const long double x = p->in[0][r * p->n + i];
      sum += x, size += fabsl(x), square += x * x;
    }
    const double h = row_depth(p->n);
    hold(p, 0, r, sum, gamma_of(h) * (double)size);
    hold(p, 1, r, sum / p->n, gamma_of(h + 2) * (double)(size / p->n));
    hold(p, 2, r, square, gamma_of(h + 1) * (double)square);
  }
}

static void check_columns(Problem *p) {
  for (int64_t c = 0; c < COLUMNS; c++) {
    long double sum = 0, size = 0;
    for (int64_t r = 0; r < p->n; r++) {
      const long double x = p->in[0][r * COLUMNS + c];
      sum += x, size += fabsl(x);
    }
    hold(p, 0, c, sum, gamma_of(column_depth(p->n)) * (double)size);
    hold(p, 1, c, sum / p->n, gamma_of(column_depth(p->n) + 2) * (double)(size / p->n));
  }
}

static void check_all(Problem *p) {
  long double sum = 0, size = 0;
  for (int64_t i = 0; i < ROWS * p->n; i++) sum += p->in[0][i], size += fabsf(p->in[0][i]);
  hold(p, 0, 0, sum, gamma_of(row_depth(p->n) + 1) * (double)size);
}

static void check_product(Problem *p) {
  for (int64_t r = 0; r < ROWS; r++)
    for (int64_t c = 0; c <= COLUMNS; c++) { // the last is the product with a vector
      long double sum = 0, size = 0;
      for (int64_t i = 0; i < p->n; i++) {
        const long double b = c < COLUMNS ? p->in[1][i * COLUMNS + c] : p->in[2][i];
        sum += p->in[0][r * p->n + i] * b, size += fabsl(p->in[0][r * p->n + i] * b);
      }
      if (c < COLUMNS) hold(p, 0, r * COLUMNS + c, sum, gamma_of(product_depth(p->n)) * (double)size);
      else hold(p, 1, r, sum, gamma_of(row_depth(p->n) + 1) * (double)size);
    }
}

// A convolution of [1, 6, 6, n] with [3, 3, n, 24].
static void check_convolution(Problem *p) {
  enum { EXTENT = 6, WINDOW = 3, RESULT = EXTENT - WINDOW + 1, NRESULTS = RESULT * RESULT, NTAPS = WINDOW * WINDOW };
  for (int64_t at = 0; at < NRESULTS; at++)
    for (int64_t c = 0; c < COLUMNS; c++) {
      long double sum = 0, size = 0;
      for (int64_t tap = 0; tap < NTAPS; tap++)
        for (int64_t i = 0; i < p->n; i++) {
          const int64_t y = at / RESULT + tap / WINDOW, x = at % RESULT + tap % WINDOW;
          const long double a = p->in[0][(y * EXTENT + x) * p->n + i], b = p->in[1][(tap * p->n + i) * COLUMNS + c];
          sum += a * b, size += fabsl(a * b);
        }
      hold(p, 0, at * COLUMNS + c, sum, gamma_of(product_depth(NTAPS * p->n)) * (double)size);
    }
}

// Softmax and losses

typedef struct Softmax { // of a row
  long double max, log;  // log: the logarithm of the sum of e^(x - max)
} Softmax;

static Softmax softmax_of(const float *x, int64_t n) {
  Softmax s = {-HUGE_VALL, 0};
  for (int64_t i = 0; i < n; i++) s.max = fmaxl(s.max, x[i]);
  for (int64_t i = 0; i < n; i++) s.log += expl(x[i] - s.max);
  s.log = logl(s.log);
  return s;
}

static double log_softmax_bound(const Problem *p, long double distance, long double result) {
  return gamma_of(row_depth(p->n) + 3 * log((double)p->n) + (double)distance + 3) +
         unit_roundoff() * (double)fabsl(result);
}

static void check_softmax(Problem *p) {
  for (int64_t r = 0; r < ROWS; r++) {
    const float *x = p->in[0] + r * p->n, *dy = p->in[1] + r * p->n, *given = p->in[2] + r * p->n;
    const Softmax s = softmax_of(x, p->n);
    long double sum = 0, size = 0;
    for (int64_t i = 0; i < p->n; i++)
      sum += (long double)dy[i] * given[i], size += fabsl((long double)dy[i] * given[i]);
    for (int64_t i = 0; i < p->n; i++) {
      const long double distance = s.max - x[i], y = expl(-distance - s.log);
      const double k = row_depth(p->n) + (double)distance + log((double)p->n) + 6, share = fabs((double)given[i]);
      hold(p, 0, r * p->n + i, y, gamma_of(k) * (double)y);
      hold(p, 1, r * p->n + i, -distance - s.log, log_softmax_bound(p, distance, distance + s.log));
      hold(p, 2, r * p->n + i, given[i] * (dy[i] - sum),
           share * (gamma_of(row_depth(p->n) + 3) * (double)size + gamma_of(2) * fabs((double)dy[i])));
    }
  }
}

// Of the mean over rows, and its gradient.
static void check_cross_entropy(Problem *p) {
  long double loss = 0;
  double bound = 0;
  for (int64_t r = 0; r < ROWS; r++) {
    const float *x = p->in[0] + r * p->n;
    const Softmax s = softmax_of(x, p->n);
    const long double own = s.log + s.max - x[p->labels[r]];
    loss += own / ROWS;
    bound += log_softmax_bound(p, s.max - x[p->labels[r]], own) / ROWS;
    for (int64_t i = 0; i < p->n; i++) {
      const long double distance = s.max - x[i], y = expl(-distance - s.log), slope = y - (i == p->labels[r]);
      const double k = row_depth(p->n) + (double)distance + log((double)p->n) + 6;
      hold(p, 1, r * p->n + i, slope / ROWS, (gamma_of(k) * (double)y + gamma_of(3) * (double)fabsl(slope)) / ROWS);
    }
  }
  hold(p, 0, 0, loss, bound + gamma_of(2) * (double)loss);
}

static void check_squared_error(Problem *p) {
  long double sum = 0;
  for (int64_t i = 0; i < ROWS * p->n; i++) {
    const long double error = (long double)p->in[0][i] - p->in[1][i];
    sum += error * error / (ROWS * p->n);
  }
  hold(p, 0, 0, sum, gamma_of(row_depth(p->n) + 6) * (double)sum);
}

// Norms

static const double epsilon = (double)1e-5F;

// Elements of a tensor that a statistic is taken over: element i is x[i / run * step + i % run].
typedef struct Group {
  const float *x, *dy;
  int64_t offset, count, run, step;
} Group;

static int64_t place_of(const Group *g, int64_t i) {
  return g->offset + i / g->run * g->step + i % g->run;
}

typedef struct Statistics {
  long double mean, variance, deviation, size; // deviation: with epsilon; size: the mean of |x|
} Statistics;

static Statistics statistics_of(const Group *g) {
  Statistics s = {0};
  for (int64_t i = 0; i < g->count; i++) {
    s.mean += g->x[place_of(g, i)], s.size += fabsf(g->x[place_of(g, i)]);
  }
  s.mean /= g->count, s.size /= g->count;
  for (int64_t i = 0; i < g->count; i++) {
    const long double about = g->x[place_of(g, i)] - s.mean;
    s.variance += about * about / g->count;
  }
  s.deviation = sqrtl(s.variance + epsilon);
  return s;
}

// Outputs: y, and from `first` on mean and variance. scale and shift: gamma and beta of element i are scale[i * each].
static void hold_forward(Problem *p, const Group *g, double h, const float *scale, const float *shift, int64_t each,
                         int first, int64_t statistic) {
  const Statistics s = statistics_of(g);
  const double rest = gamma_of(h + 1) * (double)(s.size / s.deviation), square = (1 + 2 * rest) * (1 + 2 * rest);
  for (int64_t i = 0; i < g->count; i++) {
    const int64_t at = place_of(g, i);
    const long double normal = (g->x[at] - s.mean) / s.deviation, y = scale[i * each] * normal + shift[i * each];
    hold(p, 0, at, y,
         fabs((double)scale[i * each]) * square * (gamma_of(h + 6) + gamma_of(h / 2 + 12) * (double)fabsl(normal)) +
             unit_roundoff() * (double)fabsl(y));
  }
  hold(p, first, statistic, s.mean, gamma_of(h + 1) * (double)s.size);
  hold(p, first + 1, statistic, s.variance, gamma_of(h + 7) * square * (double)(s.deviation * s.deviation));
}

static void check_layer_norm(Problem *p) {
  for (int64_t r = 0; r < ROWS; r++) {
    const Group g = {.x = p->in[0], .offset = r * p->n, .count = p->n, .run = p->n};
    hold_forward(p, &g, row_depth(p->n), p->in[1], p->in[2], 1, 1, r);
  }
}

// Channels last: [n, 2, 24]; the running statistics are inputs 1 and 2.
static void check_batch_norm_last(Problem *p) {
  for (int64_t c = 0; c < COLUMNS; c++) {
    const Group g = {.x = p->in[0], .offset = c, .count = 2 * p->n, .run = 1, .step = COLUMNS};
    hold_forward(p, &g, column_depth(g.count), p->in[3] + c, p->in[4] + c, 0, 3, c);
  }
}

// Channels first: [2, 3, n]. Each lane adds elements of both rows.
static void check_batch_norm_first(Problem *p) {
  for (int64_t c = 0; c < ROWS; c++) {
    const Group g = {.x = p->in[0], .offset = c * p->n, .count = 2 * p->n, .run = p->n, .step = ROWS * p->n};
    hold_forward(p, &g, row_depth(g.count) + 1, p->in[3] + c, p->in[4] + c, 0, 3, c);
  }
}

typedef struct Gradient {                       // sums over a group
  long double g, product, g_size, product_size; // means of g and of g * normal, and of their magnitudes
} Gradient;

// With gamma: g is gamma * dy, else dy.
static Gradient gradient_of(const Group *g, long double mean, long double deviation, const float *scale, int64_t each) {
  Gradient s = {0};
  for (int64_t i = 0; i < g->count; i++) {
    const long double own = (long double)g->dy[place_of(g, i)] * scale[i * each] / g->count;
    const long double product = own * (g->x[place_of(g, i)] - mean) / deviation;
    s.g += own, s.product += product, s.g_size += fabsl(own), s.product_size += fabsl(product);
  }
  return s;
}

static long double deviation_of(const Problem *p, int64_t statistic) {
  return sqrtl((long double)p->in[3][statistic] + epsilon);
}

// Of layer and group norms: scale[i * each] is gamma of element i.
static void hold_dx(Problem *p, const Group *g, double h, const float *scale, int64_t statistic) {
  const long double mean = p->in[2][statistic], deviation = deviation_of(p, statistic);
  const Gradient s = gradient_of(g, mean, deviation, scale, 1);
  for (int64_t i = 0; i < g->count; i++) {
    const int64_t at = place_of(g, i);
    const long double normal = (g->x[at] - mean) / deviation, own = (long double)g->dy[at] * scale[i];
    hold(p, 0, at, (own - s.g - normal * s.product) / deviation,
         (double)((gamma_of(5) * fabsl(own) + gamma_of(h + 9) * s.g_size +
                   gamma_of(h + 14) * fabsl(normal) * s.product_size) /
                  deviation));
  }
}

// Outputs 1 and 2 at `at`: sums of dy * normal and of dy over `count` runs of `run` elements, each with its statistic.
static void hold_parameters(Problem *p, int64_t at, double of_scale, double of_shift, const Group *runs, size_t count,
                            const int64_t *statistics) {
  long double sums[4] = {0};
  for (size_t r = 0; r < count; r++)
    for (int64_t i = 0; i < runs[r].count; i++) {
      const long double dy = p->in[1][runs[r].offset + i];
      const long double about = (long double)p->in[0][runs[r].offset + i] - p->in[2][statistics[r]];
      const long double product = dy * about / deviation_of(p, statistics[r]);
      sums[0] += product, sums[1] += fabsl(product), sums[2] += dy, sums[3] += fabsl(dy);
    }
  hold(p, 1, at, sums[0], gamma_of(of_scale) * (double)sums[1]);
  hold(p, 2, at, sums[2], gamma_of(of_shift) * (double)sums[3]);
}

static void check_layer_norm_backward(Problem *p) {
  static const int64_t statistics[ROWS] = {0, 1, 2};
  const double h = row_depth(p->n), of_rows = column_depth(ROWS);
  for (int64_t r = 0; r < ROWS; r++) {
    const Group g = {p->in[0], p->in[1], r * p->n, p->n, p->n, 0};
    hold_dx(p, &g, h, p->in[4], r);
  }
  for (int64_t i = 0; i < p->n; i++) {
    Group runs[ROWS];
    for (int64_t r = 0; r < ROWS; r++) runs[r] = (Group){.offset = r * p->n + i, .count = 1};
    hold_parameters(p, i, of_rows + 6, of_rows, runs, ROWS, statistics);
  }
}

enum { BATCH = 2, CHANNELS = 6, GROUPS = 3, IN_GROUP = CHANNELS / GROUPS, NGROUPS = BATCH * GROUPS };

// The parameters of the channels of a group, for each of its elements; the caller frees them.
static float *spread(const Problem *p, const float *of_channel, int64_t group) {
  float *items = malloc((size_t)(IN_GROUP * p->n) * sizeof *items);
  assert_non_null(items);
  for (int64_t i = 0; i < IN_GROUP * p->n; i++) items[i] = of_channel[group * IN_GROUP + i / p->n];
  return items;
}

// [2, 6, n] in 3 groups.
static void check_group_norm(Problem *p) {
  for (int64_t s = 0; s < NGROUPS; s++) {
    const int64_t count = IN_GROUP * p->n;
    const Group g = {.x = p->in[0], .offset = s * count, .count = count, .run = count};
    float *scale = spread(p, p->in[1], s % GROUPS), *shift = spread(p, p->in[2], s % GROUPS);
    hold_forward(p, &g, row_depth(count) + 1, scale, shift, 1, 1, s);
    free(scale);
    free(shift);
  }
}

static void check_group_norm_backward(Problem *p) {
  for (int64_t s = 0; s < NGROUPS; s++) {
    const int64_t count = IN_GROUP * p->n;
    const Group g = {p->in[0], p->in[1], s * count, count, count, 0};
    float *scale = spread(p, p->in[4], s % GROUPS);
    hold_dx(p, &g, row_depth(count) + 1, scale, s);
    free(scale);
  }
  for (int64_t c = 0; c < CHANNELS; c++) {
    Group runs[BATCH];
    int64_t statistics[BATCH];
    for (int64_t b = 0; b < BATCH; b++) {
      runs[b] = (Group){.offset = (b * CHANNELS + c) * p->n, .count = p->n};
      statistics[b] = b * GROUPS + c / IN_GROUP;
    }
    hold_parameters(p, c, row_depth(p->n) + 7, row_depth(p->n) + 1, runs, BATCH, statistics);
  }
}

static void hold_batch_norm_backward(Problem *p, const Group *g, double h, int64_t channel) {
  static const float one = 1;
  const long double mean = p->in[2][channel], deviation = deviation_of(p, channel), scale = p->in[4][channel];
  const Gradient s = gradient_of(g, mean, deviation, &one, 0);
  for (int64_t i = 0; i < g->count; i++) {
    const int64_t at = place_of(g, i);
    const long double normal = (g->x[at] - mean) / deviation, dy = g->dy[at];
    hold(p, 0, at, scale * (dy - s.g - normal * s.product) / deviation,
         (double)(fabsl(scale / deviation) * (gamma_of(6) * fabsl(dy) + gamma_of(h + 8) * s.g_size +
                                              gamma_of(h + 12) * fabsl(normal) * s.product_size)));
  }
  hold(p, 1, channel, s.product * g->count, gamma_of(h + 6) * (double)(s.product_size * g->count));
  hold(p, 2, channel, s.g * g->count, gamma_of(h) * (double)(s.g_size * g->count));
}

static void check_batch_norm_last_backward(Problem *p) {
  for (int64_t c = 0; c < COLUMNS; c++) {
    const Group g = {p->in[0], p->in[1], c, 2 * p->n, 1, COLUMNS};
    hold_batch_norm_backward(p, &g, column_depth(g.count), c);
  }
}

static void check_batch_norm_first_backward(Problem *p) {
  for (int64_t c = 0; c < ROWS; c++) {
    const Group g = {p->in[0], p->in[1], c * p->n, 2 * p->n, p->n, ROWS * p->n};
    hold_batch_norm_backward(p, &g, row_depth(g.count) + 1, c);
  }
}

static void check_rms_norm(Problem *p) {
  const double h = row_depth(p->n);
  long double deviations[ROWS];
  for (int64_t r = 0; r < ROWS; r++) {
    const Group g = {.x = p->in[0], .dy = p->in[1], .offset = r * p->n, .count = p->n, .run = p->n};
    long double square = 0;
    for (int64_t i = 0; i < p->n; i++) square += (long double)g.x[r * p->n + i] * g.x[r * p->n + i] / p->n;
    deviations[r] = sqrtl(square + epsilon);
    const Gradient s = gradient_of(&g, 0, deviations[r], p->in[2], 1);
    for (int64_t i = 0; i < p->n; i++) {
      const int64_t at = r * p->n + i;
      const long double normal = g.x[at] / deviations[r], own = (long double)g.dy[at] * p->in[2][i];
      const long double y = normal * p->in[2][i];
      hold(p, 0, at, y, gamma_of(h / 2 + 6) * (double)fabsl(y));
      hold(p, 1, at, (own - normal * s.product) / deviations[r],
           (double)((gamma_of(h / 2 + 6) * fabsl(own) + gamma_of(2.5 * h + 15) * fabsl(normal) * s.product_size) /
                    deviations[r]));
    }
  }
  for (int64_t i = 0; i < p->n; i++) {
    long double sum = 0, size = 0;
    for (int64_t r = 0; r < ROWS; r++) {
      const long double product = (long double)p->in[1][r * p->n + i] * p->in[0][r * p->n + i] / deviations[r];
      sum += product, size += fabsl(product);
    }
    hold(p, 2, i, sum, gamma_of(column_depth(ROWS) + h / 2 + 6) * (double)size);
  }
}

// The rows of the tables

#define X "  - {name: x, type: f32, shape: [3, %lld]}\n"
#define DY "  - {name: dy, type: f32, shape: [3, %lld]}\n"
#define OF_CHANNELS(n)                                                                                                 \
  "  - {name: mean, type: f32, shape: [" n "]}\n  - {name: var, type: f32, shape: [" n                                 \
  "]}\n  - {name: gamma, type: f32, shape: [" n "]}\n"
#define NORM(n, layout)                                                                                                \
  OF_CHANNELS(n)                                                                                                       \
  "  - {name: beta, type: f32, shape: [" n "]}\nnodes:\n  - {op: BatchNormForwardTraining, inputs: [x, mean, var, "    \
  "gamma, beta], outputs: [y, m, v, bm, bv], attributes: {epsilon: 1.0e-5, data_format: " layout                       \
  "}}\noutputs: [y, m, v, bm, bv]\n"
#define NORM_BACKWARD(n, layout)                                                                                       \
  OF_CHANNELS(n)                                                                                                       \
  "nodes:\n  - {op: BatchNormTrainingBackward, inputs: [x, dy, mean, var, gamma], outputs: [dx, dgamma, dbeta], "      \
  "attributes: {epsilon: 1.0e-5, data_format: " layout "}}\noutputs: [dx, dgamma, dbeta]\n"

static const Row rows[] = {
    {"sum, mean and sum of squares along a row",
     X "nodes:\n  - {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [1]}}\n"
       "  - {op: ReduceMean, inputs: [x], outputs: [m], attributes: {axes: [1]}}\n"
       "  - {op: Square, inputs: [x], outputs: [x2]}\n"
       "  - {op: ReduceSum, inputs: [x2], outputs: [q], attributes: {axes: [1]}}\noutputs: [s, m, q]\n",
     check_rows,
     {1, 5, 16, 100, 1000, 1025, 20000}},
    {"sum and mean over rows",
     "  - {name: x, type: f32, shape: [%lld, 24]}\nnodes:\n"
     "  - {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0]}}\n"
     "  - {op: ReduceMean, inputs: [x], outputs: [m], attributes: {axes: [0]}}\noutputs: [s, m]\n",
     check_columns,
     {1, 3, 64, 65, 500, 5000, 20000}},
    {"sum of all elements",
     X "nodes:\n  - {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0, 1]}}\noutputs: [s]\n",
     check_all,
     {1, 100, 1025, 20000}},
    {"product of matrices, and with a vector",
     X "  - {name: b, type: f32, shape: [%lld, 24]}\n  - {name: v, type: f32, shape: [%lld, 1]}\nnodes:\n"
       "  - {op: MatMul, inputs: [x, b], outputs: [y]}\n  - {op: MatMul, inputs: [x, v], outputs: [z]}\noutputs: [y, "
       "z]\n",
     check_product,
     {1, 17, 300, 2047, 2048, 5000}},
    {"convolution",
     "  - {name: x, type: f32, shape: [1, 6, 6, %lld]}\n  - {name: b, type: f32, shape: [3, 3, %lld, 24]}\nnodes:\n"
     "  - {op: Convolution, inputs: [x, b], outputs: [y], attributes: {strides: [1, 1], "
     "pads_begin: [0, 0], pads_end: [0, 0], dilations: [1, 1]}}\noutputs: [y]\n",
     check_convolution,
     {1, 16, 100, 300}},
    {"softmax, log-softmax, gradient of softmax",
     X DY "  - {name: p, type: f32, shape: [3, %lld]}\nnodes:\n"
          "  - {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}\n"
          "  - {op: LogSoftmax, inputs: [x], outputs: [z], attributes: {axis: 1}}\n"
          "  - {op: SoftMaxBackward, inputs: [dy, p], outputs: [dx], attributes: {axis: 1}}\noutputs: [y, z, dx]\n",
     check_softmax,
     {1, 10, 100, 1000, 5000}},
    {"cross entropy and its gradient",
     X
     "  - {name: labels, type: s32, shape: [3]}\nconstants:\n  - {name: one, type: f32, shape: [], value: 1}\nnodes:\n"
     "  - {op: SoftmaxCrossEntropy, inputs: [x, labels], outputs: [loss]}\n"
     "  - {op: SoftmaxCrossEntropyBackward, inputs: [x, one, labels], outputs: [dx]}\noutputs: [loss, dx]\n",
     check_cross_entropy,
     {2, 10, 1000, 5000}},
    {"mean squared error",
     X DY "nodes:\n  - {op: MeanSquaredError, inputs: [x, dy], outputs: [loss]}\noutputs: [loss]\n",
     check_squared_error,
     {1, 10, 1000, 5000}},
    {"layer norm, its mean and variance",
     X "  - {name: gamma, type: f32, shape: [%lld]}\n  - {name: beta, type: f32, shape: [%lld]}\nnodes:\n"
       "  - {op: LayerNorm, inputs: [x, gamma, beta], outputs: [y, m, v]}\noutputs: [y, m, v]\n",
     check_layer_norm,
     {3, 16, 100, 768, 5000}},
    {"gradients of layer norm: of x, gamma, beta",
     X DY "  - {name: mean, type: f32, shape: [3]}\n  - {name: var, type: f32, shape: [3]}\n"
          "  - {name: gamma, type: f32, shape: [%lld]}\nnodes:\n"
          "  - {op: LayerNormBackward, inputs: [x, dy, mean, var, gamma], outputs: [dx, dgamma, dbeta]}\n"
          "outputs: [dx, dgamma, dbeta]\n",
     check_layer_norm_backward,
     {3, 16, 100, 768, 5000}},
    {"group norm, its mean and variance",
     "  - {name: x, type: f32, shape: [2, 6, %lld]}\n  - {name: gamma, type: f32, shape: [6]}\n"
     "  - {name: beta, type: f32, shape: [6]}\nnodes:\n  - {op: GroupNorm, inputs: [x, gamma, beta], outputs: [y, m, "
     "v], "
     "attributes: {groups: 3, data_format: NCX}}\noutputs: [y, m, v]\n",
     check_group_norm,
     {1, 16, 100, 1000, 3000}},
    {"gradients of group norm: of x, gamma, beta",
     "  - {name: x, type: f32, shape: [2, 6, %lld]}\n  - {name: dy, type: f32, shape: [2, 6, %lld]}\n"
     "  - {name: mean, type: f32, shape: [2, 3]}\n  - {name: var, type: f32, shape: [2, 3]}\n"
     "  - {name: gamma, type: f32, shape: [6]}\nnodes:\n  - {op: GroupNormBackward, inputs: [x, dy, mean, var, gamma], "
     "outputs: [dx, dgamma, dbeta], attributes: {groups: 3, data_format: NCX}}\noutputs: [dx, dgamma, dbeta]\n",
     check_group_norm_backward,
     {1, 16, 100, 1000, 3000}},
    {"batch norm, channels last: y, running and batch's statistics",
     "  - {name: x, type: f32, shape: [%lld, 2, 24]}\n" NORM("24", "NXC"),
     check_batch_norm_last,
     {2, 32, 250, 2500}},
    {"batch norm, channels first: y, running and batch's statistics",
     "  - {name: x, type: f32, shape: [2, 3, %lld]}\n" NORM("3", "NCX"),
     check_batch_norm_first,
     {16, 49, 1000, 3000}},
    {"gradients of batch norm, channels last: of x, gamma, beta",
     "  - {name: x, type: f32, shape: [%lld, 2, 24]}\n  - {name: dy, type: f32, shape: [%lld, 2, 24]}\n" NORM_BACKWARD(
         "24", "NXC"),
     check_batch_norm_last_backward,
     {2, 32, 250, 2500}},
    {"gradients of batch norm, channels first: of x, gamma, beta",
     "  - {name: x, type: f32, shape: [2, 3, %lld]}\n  - {name: dy, type: f32, shape: [2, 3, %lld]}\n" NORM_BACKWARD(
         "3", "NCX"),
     check_batch_norm_first_backward,
     {16, 49, 1000, 3000}},
    {"RMS norm, and its gradients of x and gamma",
     X DY "  - {name: gamma, type: f32, shape: [%lld]}\nnodes:\n"
          "  - {op: RMSNorm, inputs: [x, gamma], outputs: [y]}\n"
          "  - {op: RMSNormBackward, inputs: [x, dy, gamma], outputs: [dx, dgamma]}\noutputs: [y, dx, dgamma]\n",
     check_rms_norm,
     {1, 16, 100, 768, 5000}},
};

// Data

typedef enum Kind { RANDOM, FAR, CANCELLING, GROWING, EQUAL, ALTERNATING, NKINDS } Kind;

// From 0 to 1.
static double random_of(uint32_t *state) {
  *state = *state * 1664525U + 1013904223U;
  return (double)(*state >> 8) * 0x1p-24;
}

static void fill(float *x, int64_t nelems, const char *name, Kind kind, uint32_t *state) {
  const bool is_data = strcmp(name, "x") == 0 || strcmp(name, "dy") == 0 || strcmp(name, "b") == 0;
  for (int64_t i = 0; i < nelems; i++) {
    const double u = random_of(state), at = (double)(i % 997) / 997, sign = i % 2 ? -1 : 1;
    if (strcmp(name, "var") == 0) x[i] = (float)(0.5 + u);
    else if (strcmp(name, "mean") == 0) x[i] = (float)((kind == FAR ? 1000 : 0) + u / 16);
    else if (!is_data || kind == RANDOM) x[i] = (float)(2 * u - 1);
    else if (kind == FAR) x[i] = (float)(1000 + u);
    else if (kind == CANCELLING) x[i] = i % 2 ? -x[i - 1] * (float)(1 - u * 0x1p-20) : (float)(1 + u);
    else if (kind == GROWING) x[i] = (float)((u < 0.5 ? -1 : 1) * exp2(20 * at - 10));
    else if (kind == EQUAL) x[i] = 1.0F / 3;
    else x[i] = (float)(sign * (1 + at));
  }
}

// Running

static void run_kind(const Row *row, ng_graph *g, const Program *program, Problem *p, Kind kind) {
  const size_t ninputs = ng_graph_input_count(g), noutputs = ng_graph_output_count(g);
  Tensor tensors[MOST_INPUTS + MOST_OUTPUTS] = {0};
  int32_t labels[ROWS];
  uint32_t state = 1 + (uint32_t)kind;
  Text why;
  text_init(&why, &system_allocator);
  for (size_t i = 0; i < ninputs + noutputs; i++) {
    const ng_tensor_info info = i < ninputs ? ng_graph_input(g, i) : ng_graph_output(g, i - ninputs);
    ng_tensor t = ng_tensor_view(info, NULL);
    t.data = aligned_alloc(64, (ng_tensor_nbytes(&t) + 63) / 64 * 64);
    assert_non_null(t.data);
    tensors[i] = tensor_of_api(&t);
    if (i >= ninputs) p->out[i - ninputs] = t.data;
    else if (info.type == NG_F32) {
      fill(t.data, ng_tensor_nelems(&t), info.name, kind, &state);
      p->in[i] = t.data;
    } else {
      for (int64_t r = 0; r < ROWS; r++) labels[r] = ((int32_t *)t.data)[r] = (int32_t)(r * (p->n - 1) / 2);
      p->labels = labels;
    }
  }
  if (!execute_program(program, tensors, tensors + ninputs, NULL, &why))
    fail_msg("%s: %s", row->name, text_string(&why));
  row->check(p);
  for (size_t i = 0; i < ninputs + noutputs; i++) free(tensors[i].data);
  text_deinit(&why);
}

// The chains of f32 additions are those from which the page takes its depths.
static void check_chains(const Row *row, const Program *program) {
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t n = 0; n < program->schedules[i]->nloops; n++) {
      const Loop *loop = &program->schedules[i]->loops[n];
      for (size_t r = 0; r < loop->nroots; r++) {
        const SumOrder *o = loop->roots[r].order;
        if (!o || o->reduction != EXPR_REDUCE_SUM || o->levels[0].type != TYPE_F32) continue;
        const int64_t most = loop->roots[r].kind == ROOT_REDUCE_OUTER ? 256 : o->levels[0].accumulators > 1 ? 64 : 2047;
        const int64_t chain = sum_order_chain(program->schedules[i]->kernel, o);
        if (chain > most) fail_msg("%s: a chain of %lld, more than %lld", row->name, (long long)chain, (long long)most);
      }
    }
}

static void run_length(const Row *row, int64_t n, double *worst) {
  char text[2048];
  Problem p = {.n = n};
  Build build = {0};
  ng_context *ctx = ng_context_new(NULL);
  const long long l = n;
  const int nbytes = snprintf(text, sizeof text, "format: ngrad/1\ninputs:\n");
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  snprintf(text + nbytes, sizeof text - (size_t)nbytes, row->graph, l, l, l, l);
  ng_graph *g = ng_graph_read(ctx, "row.yaml", text, strlen(text), NULL);
  const ng_options options = {.isa = "scalar"};
  if (!g || build_graph(&build, g, &options) != NG_OK || build_kernels(&build) != NG_OK || !build.program ||
      !pipeline_build_trees(build.program, false))
    fail_msg("%s: %s", row->name, ng_messages_text(ctx, 0));
  else check_chains(row, build.program);
  for (Kind kind = 0; kind < NKINDS; kind++) {
    memset(p.worst, 0, sizeof p.worst);
    run_kind(row, g, build.program, &p, kind);
    for (int o = 0; o < MOST_OUTPUTS; o++) {
      if (!(p.worst[o] <= 1))
        print_error("%s, %lld, data %d: output %d: %g of its bound\n", row->name, l, kind, o, p.worst[o]);
      if (!(p.worst[o] <= worst[o])) worst[o] = p.worst[o];
    }
  }
  build_deinit(&build);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A bound is at most this many times what was seen.
static const double most_slack = 1000;

static void bounds_hold(void **test_state) {
  (void)test_state;
  bool ok = true;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    double worst[MOST_OUTPUTS] = {0};
    for (const int64_t *n = rows[i].lengths; *n; n++) run_length(&rows[i], *n, worst);
    print_message("%s:", rows[i].name);
    for (int o = 0; o < MOST_OUTPUTS; o++) {
      if (worst[o] > 0) print_message(" %.3f", worst[o]);
      if (worst[o] > 0 && !(worst[o] <= 1 && worst[o] * most_slack >= 1)) ok = false;
    }
    print_message(" of the bounds\n");
  }
  assert_true(ok);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(bounds_hold)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
