// Normalisations and their gradients. Every quantity is a term: a formula of an element of src and of the statistics
// and parameters that belong to the element. A term is either summed over src into statistics or parameters, or written
// for each element of src. So the functions at the end read like the formulas in the operators' specifications.
//
// Statistics are given as inputs, or computed in two passes: first the mean, then the deviations from it.
#include "ir/operators/norm.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"
#include "ir/support/budget.h"

#include <math.h>

// The tracks of the walk over src. A batch norm's parameters have the axes of its statistics; a layer norm's have the
// other axes.
enum { STATISTIC, PARAMETER };

typedef struct Norm {
  Arena *scratch;
  Noise *noise; // NULL: none
  Walk walk;    // over src, with the tracks STATISTIC and PARAMETER
  int64_t nstatistics, nparameters;
  double nreduced; // elements of src for each statistic; 1 instead of 0
  double epsilon;
  const double *src, *diff_dst;      // [src's shape]
  const double *gamma, *beta;        // [parameters]; NULL: ones, zeros
  const double *mean;                // [statistics]
  const double *r;                   // [statistics]: 1 / sqrt(variance + epsilon)
  const double *sum_g, *sum_g_times; // [statistics]: sums in the formula of diff_src; of which terms, see mean_g
} Norm;

// The norm of src viewed as a tensor of this shape, in row-major order.
static Norm norm_over(const Evaluation *e, const Shape *shape, uint32_t reduced, uint32_t parameter_axes) {
  Norm n = {
      .scratch = e->scratch,
      .noise = e->noise,
      .walk = walk_over(shape),
      .nreduced = 1,
      .epsilon = node_f32(e->node, "epsilon"),
      .src = e->inputs[0],
      .diff_dst = evaluation_input(e, "diff_dst"),
      .gamma = evaluation_input(e, "gamma"),
      .beta = evaluation_input(e, "beta"),
      .mean = evaluation_input(e, "mean"),
  };
  n.nstatistics = walk_axes(&n.walk, STATISTIC, ~reduced);
  n.nparameters = walk_axes(&n.walk, PARAMETER, parameter_axes);
  for (int axis = 0; axis < n.walk.rank; axis++)
    if (reduced >> axis & 1) n.nreduced *= (double)n.walk.extent[axis];
  if (n.nreduced == 0) n.nreduced = 1;
  return n;
}

static Norm norm_of(const Evaluation *e, uint32_t reduced, uint32_t parameter_axes) {
  return norm_over(e, &e->node->inputs[0]->shape, reduced, parameter_axes);
}

static Norm batch_norm_of(const Evaluation *e) {
  uint32_t reduced = norm_reduced_axes(e->node);
  return norm_of(e, reduced, ~reduced);
}

// If use_affine is false, gamma and beta are absent: see check_affine in ir/operators/norm.c.
static Norm layer_norm_of(const Evaluation *e) {
  uint32_t reduced = norm_reduced_axes(e->node);
  return norm_of(e, reduced, reduced);
}

// Views src with the axes batch, group, channel in the group, and space (all spatial axes), in src's layout.
static Norm group_norm_of(const Evaluation *e) {
  const Shape *src = &e->node->inputs[0]->shape;
  int axis = norm_channel_axis(e->node);
  bool is_last = node_s64(e->node, "data_format") == FORMAT_NXC;
  int64_t channels = extent_value(src->extent[axis]), groups = extent_value(norm_ngroups(e->node)), space = 1;
  for (int i = 1; i < src->rank; i++)
    if (i != axis) space *= extent_value(src->extent[i]);
  Shape shape = {.rank = 4, .extent = {src->extent[0]}};
  shape.extent[is_last ? 1 : 3] = EXTENT(space);
  shape.extent[is_last ? 2 : 1] = EXTENT(groups);
  shape.extent[is_last ? 3 : 2] = EXTENT(channels / groups);
  return is_last ? norm_over(e, &shape, 1 << 1 | 1 << 3, 1 << 2 | 1 << 3)
                 : norm_over(e, &shape, 1 << 2 | 1 << 3, 1 << 1 | 1 << 2);
}

// gamma may have any shape that broadcasts to src's; the mean is set to zero.
static bool rms_norm_of(const Evaluation *e, const Value *gamma, Norm *n) {
  *n = norm_of(e, norm_reduced_axes(e->node), 0);
  if (!n->walk.nelems) n->nstatistics = 0; // there may be more empty rows than memory for statistics
  n->mean = ARENA_ARRAY(n->scratch, double, (size_t)n->nstatistics);
  if (!gamma) return n->mean != NULL;
  walk_broadcast(&n->walk, PARAMETER, &gamma->shape);
  n->nparameters = shape_nelems(&gamma->shape);
  return n->mean != NULL;
}

// At most, for each statistic: three sums, 1 / sqrt(variance + epsilon) and, for an RMS norm, a zero as mean; for each
// parameter: two sums.
uint64_t scratch_of_norm(const Evaluation *e) {
  const uint64_t sum_nbytes = sizeof(Sum) + sizeof(double);
  const Shape *src = &e->node->inputs[0]->shape;
  const bool is_group = e->node->op->norm_scope == SCOPE_GROUP;
  const uint32_t reduced = is_group ? 0 : norm_reduced_axes(e->node);
  const Norm n = is_group ? group_norm_of(e) : norm_of(e, reduced, reduced);
  const bool has_statistics = evaluation_input(e, "variance") || evaluation_output(e, "variance");
  const uint64_t nstatistics = shape_nelems(src) || has_statistics ? (uint64_t)n.nstatistics : 0;
  uint64_t nparameters = 0;
  for (uint32_t i = 1; n.diff_dst && i < e->node->noutputs; i++)
    if (e->outputs[i]) nparameters = (uint64_t)shape_nelems(&e->node->outputs[i]->shape);
  return nbytes_add(nbytes_multiply(nstatistics, 3 * sum_nbytes + 2 * sizeof(double)),
                    nbytes_multiply(nparameters, 2 * sum_nbytes));
}

typedef double Term(const Norm *n, const Walk *w);

// A new array [statistics] or [parameters], by `track`, with the term's sums over src. NULL: out of memory.
static double *sums(const Norm *n, int track, Term *term) {
  size_t count = (size_t)(track == STATISTIC ? n->nstatistics : n->nparameters);
  Sum *totals = ARENA_ARRAY(n->scratch, Sum, count);
  double *values = ARENA_ARRAY(n->scratch, double, count);
  if (!totals || !values) return NULL;
  for (Walk w = n->walk; w.i < w.nelems; walk_step(&w)) sum_add(&totals[w.at[track]], term(n, &w));
  for (size_t k = 0; k < count; k++) values[k] = sum_value(&totals[k], n->noise);
  return values;
}

// A new array [statistics] with the term's means. NULL: out of memory.
static double *means(const Norm *n, Term *term) {
  double *values = sums(n, STATISTIC, term);
  for (int64_t s = 0; values && s < n->nstatistics; s++) values[s] /= n->nreduced;
  return values;
}

static double *reciprocal_deviations(const Norm *n, const double *variance) {
  double *r = ARENA_ARRAY(n->scratch, double, (size_t)n->nstatistics);
  for (int64_t s = 0; r && s < n->nstatistics; s++) r[s] = 1 / sqrt(variance[s] + n->epsilon);
  return r;
}

static void write_each(const Norm *n, double *dst, Term *term) {
  for (Walk w = n->walk; w.i < w.nelems; walk_step(&w)) dst[w.i] = term(n, &w);
}

// Copies to an output if it is not absent.
static void write_all(double *dst, const double *values, int64_t count) {
  for (int64_t k = 0; dst && k < count; k++) dst[k] = values[k];
}

// Terms of one element. In their names dy is diff_dst.

#define TERM(name, expression)                                                                                         \
  static double name(const Norm *n, const Walk *w) {                                                                   \
    return (expression);                                                                                               \
  }

TERM(src, n->src[w->i])
TERM(diff_dst, n->diff_dst[w->i])
TERM(r, n->r[w->at[STATISTIC]])
TERM(gamma_or_1, n->gamma ? n->gamma[w->at[PARAMETER]] : 1)
TERM(beta_or_0, n->beta ? n->beta[w->at[PARAMETER]] : -0.0) // x + -0 is x, also for x = -0

TERM(centred, src(n, w) - n->mean[w->at[STATISTIC]])
TERM(squared, centred(n, w) * centred(n, w))
TERM(normalised, centred(n, w) * r(n, w))
TERM(affine, gamma_or_1(n, w) * normalised(n, w) + beta_or_0(n, w))

TERM(dy_centred, diff_dst(n, w) * centred(n, w))
TERM(dy_normalised, diff_dst(n, w) * normalised(n, w))
TERM(weighted, gamma_or_1(n, w) * diff_dst(n, w))
TERM(weighted_normalised, weighted(n, w) * normalised(n, w))

// Means in the formulas of diff_src. In a batch norm sum_g is the sum of diff_dst, and sum_g_times that of dy_centred;
// in a layer norm they are the sums of weighted and weighted_normalised.
TERM(mean_g, n->sum_g[w->at[STATISTIC]] / n->nreduced)
TERM(mean_g_times, n->sum_g_times[w->at[STATISTIC]] / n->nreduced)

TERM(batch_norm_diff_src, gamma_or_1(n, w) * r(n, w) *
                              (diff_dst(n, w) - mean_g(n, w) - centred(n, w) * r(n, w) * r(n, w) * mean_g_times(n, w)))
TERM(frozen_diff_src, gamma_or_1(n, w) * r(n, w) * diff_dst(n, w))
TERM(layer_norm_diff_src, r(n, w) * (weighted(n, w) - mean_g(n, w) - normalised(n, w) * mean_g_times(n, w)))
TERM(rms_norm_diff_src, r(n, w) * (weighted(n, w) - normalised(n, w) * mean_g_times(n, w)))

// Computes the mean and variance of src; sets n->mean and n->r. Returns the variance; NULL: out of memory.
static const double *take_statistics(Norm *n) {
  if (!(n->mean = means(n, src))) return NULL;
  const double *variance = means(n, squared);
  return variance && (n->r = reciprocal_deviations(n, variance)) ? variance : NULL;
}

bool interpret_BatchNormInference(const Evaluation *e) {
  Norm n = batch_norm_of(e);
  if (!(n.r = reciprocal_deviations(&n, evaluation_input(e, "variance")))) return false;
  write_each(&n, evaluation_output(e, "dst"), affine);
  return true;
}

static void write_running(double *dst, const double *running, const double *batch, double momentum, int64_t count) {
  for (int64_t s = 0; dst && s < count; s++) dst[s] = momentum * running[s] + (1 - momentum) * batch[s];
}

bool interpret_BatchNormForwardTraining(const Evaluation *e) {
  Norm n = batch_norm_of(e);
  const double *running_mean = n.mean, *running_variance = evaluation_input(e, "variance");
  const double *variance = take_statistics(&n);
  if (!variance) return false;
  write_each(&n, evaluation_output(e, "dst"), affine);
  double momentum = node_f32(e->node, "momentum");
  write_running(evaluation_output(e, "running_mean"), running_mean, n.mean, momentum, n.nstatistics);
  write_running(evaluation_output(e, "running_variance"), running_variance, variance, momentum, n.nstatistics);
  write_all(evaluation_output(e, "batch_mean"), n.mean, n.nstatistics);
  write_all(evaluation_output(e, "batch_variance"), variance, n.nstatistics);
  return true;
}

// Computes the gradients of a batch norm's parameters, which are the same for given and for the batch's own statistics,
// and sets the sums for diff_src.
static bool batch_norm_backward(Norm *n, const Evaluation *e) {
  n->r = reciprocal_deviations(n, evaluation_input(e, "variance"));
  n->sum_g = sums(n, STATISTIC, diff_dst);
  n->sum_g_times = sums(n, STATISTIC, dy_centred);
  if (!n->r || !n->sum_g || !n->sum_g_times) return false;
  double *diff_gamma = evaluation_output(e, "diff_gamma");
  for (int64_t s = 0; diff_gamma && s < n->nstatistics; s++) diff_gamma[s] = n->r[s] * n->sum_g_times[s];
  write_all(evaluation_output(e, "diff_beta"), n->sum_g, n->nstatistics);
  return true;
}

bool interpret_BatchNormInferenceBackward(const Evaluation *e) {
  Norm n = batch_norm_of(e);
  if (!batch_norm_backward(&n, e)) return false;
  write_each(&n, evaluation_output(e, "diff_src"), frozen_diff_src);
  return true;
}

bool interpret_BatchNormTrainingBackward(const Evaluation *e) {
  Norm n = batch_norm_of(e);
  if (!batch_norm_backward(&n, e)) return false;
  // The only case in which a given statistic is not used.
  if (node_s64(e->node, "center") == CENTER_SRC &&
      (!(n.mean = means(&n, src)) || !(n.sum_g_times = sums(&n, STATISTIC, dy_centred))))
    return false;
  write_each(&n, evaluation_output(e, "diff_src"), batch_norm_diff_src);
  return true;
}

static bool forward(Norm n, const Evaluation *e) {
  double *mean = evaluation_output(e, "mean"), *variance = evaluation_output(e, "variance");
  // Nothing to write. There may be more empty rows than memory for their statistics.
  if (n.walk.nelems == 0 && !mean && !variance) return true;
  const double *own_variance = take_statistics(&n);
  if (!own_variance) return false;
  write_each(&n, evaluation_output(e, "dst"), affine);
  write_all(mean, n.mean, n.nstatistics);
  write_all(variance, own_variance, n.nstatistics);
  return true;
}

// Writes a parameter's gradient if it is not absent. False: out of memory.
static bool write_parameter(const Norm *n, double *dst, Term *term) {
  const double *values = dst ? sums(n, PARAMETER, term) : NULL;
  if (values) write_all(dst, values, n->nparameters);
  return values || !dst;
}

static bool backward(Norm n, const Evaluation *e) {
  if (!(n.r = reciprocal_deviations(&n, evaluation_input(e, "variance")))) return false;
  if (!(n.sum_g = sums(&n, STATISTIC, weighted))) return false;
  if (!(n.sum_g_times = sums(&n, STATISTIC, weighted_normalised))) return false;
  write_each(&n, evaluation_output(e, "diff_src"), layer_norm_diff_src);
  return write_parameter(&n, evaluation_output(e, "diff_gamma"), dy_normalised) &&
         write_parameter(&n, evaluation_output(e, "diff_beta"), diff_dst);
}

INTERPRET(LayerNorm, forward(layer_norm_of(e), e))
INTERPRET(LayerNormBackward, backward(layer_norm_of(e), e))
INTERPRET(GroupNorm, forward(group_norm_of(e), e))
INTERPRET(GroupNormBackward, backward(group_norm_of(e), e))
INTERPRET(InstanceNorm, forward(group_norm_of(e), e))
INTERPRET(InstanceNormBackward, backward(group_norm_of(e), e))

static bool take_mean_square(Norm *n) {
  const double *mean_square = means(n, squared);
  return mean_square && (n->r = reciprocal_deviations(n, mean_square));
}

bool interpret_RMSNorm(const Evaluation *e) {
  Norm n;
  if (!rms_norm_of(e, e->node->inputs[1], &n) || !take_mean_square(&n)) return false;
  write_each(&n, evaluation_output(e, "dst"), affine);
  return true;
}

bool interpret_RMSNormBackward(const Evaluation *e) {
  Norm n;
  if (!rms_norm_of(e, e->node->inputs[2], &n) || !take_mean_square(&n)) return false;
  if (!(n.sum_g_times = sums(&n, STATISTIC, weighted_normalised))) return false;
  write_each(&n, evaluation_output(e, "diff_src"), rms_norm_diff_src);
  return write_parameter(&n, evaluation_output(e, "diff_gamma"), dy_normalised);
}
