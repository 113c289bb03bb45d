// Runs the graph with noise, and compares the outputs with the outputs without noise: first with the same choices, then
// with the choices that noise makes, and without noise on results.
//
// Noise may change a few output elements by much more than others, such as quotients with divisors near 0. Such
// elements would raise the magnitude and hide errors elsewhere. So the tenth of the elements that changes most is
// excluded.
#include "backends/interpreter/magnitude.h"

#include "backends/interpreter/choices.h"

#include <math.h>
#include <stdlib.h>

enum { OUTLIERS = 10 }; // one of so many elements
enum { FEW_FLIPS = 3 }; // runs with other choices if their results are not kept

typedef struct Outputs {
  const Tensor *exact; // parallel to the graph's outputs, as `noisy`, `moved` and `is_lost`
  Tensor *noisy;
  double **moved; // for each element, the L2 norm of its changes in the noisy runs
  bool **is_lost; // finite without noise, but not in every noisy run
  Tensor *flipped[FLIPS];
  size_t nflips;
} Outputs;

static Tensor *new_tensors(const Graph *g, Arena *arena) {
  Tensor *tensors = ARENA_ARRAY(arena, Tensor, g->noutputs + 1);
  for (size_t i = 0; tensors && i < g->noutputs; i++) {
    tensors[i] = tensor_like(g->outputs[i]);
    tensors[i].data = arena_alloc(arena, tensor_nbytes(&tensors[i]) + 1);
    if (!tensors[i].data) return NULL;
  }
  return tensors;
}

static bool outputs_make(Outputs *o, const Graph *g, Arena *arena) {
  o->noisy = new_tensors(g, arena);
  o->moved = ARENA_ARRAY(arena, double *, g->noutputs + 1);
  o->is_lost = ARENA_ARRAY(arena, bool *, g->noutputs + 1);
  bool ok = o->noisy && o->moved && o->is_lost;
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    o->moved[i] = ARENA_ARRAY(arena, double, (size_t)tensor_nelems(&o->noisy[i]) + 1);
    o->is_lost[i] = ARENA_ARRAY(arena, bool, (size_t)tensor_nelems(&o->noisy[i]) + 1);
    ok = o->moved[i] && o->is_lost[i];
  }
  return ok;
}

static double load(const Tensor *t, int64_t i) {
  return type_load(t->type, t->data, (size_t)tensor_offset(t, i));
}

// Elements that are not finite, with or without noise, count as unchanged.
static void add_moves(const Outputs *o, size_t k) {
  const int64_t nelems = tensor_nelems(&o->exact[k]);
  for (int64_t i = 0; i < nelems; i++) {
    const double exact = load(&o->exact[k], i), error = load(&o->noisy[k], i) - exact;
    if (isfinite(error)) o->moved[k][i] = hypot(o->moved[k][i], error);
    o->is_lost[k][i] |= isfinite(exact) && !isfinite(error);
  }
}

static bool has_choices(const Graph *g) {
  for (size_t i = 0; i < g->nnodes; i++)
    for (uint32_t k = 0; k < g->nodes[i]->ninputs; k++)
      if (g->nodes[i]->inputs[k] && operand_decides(g->nodes[i], k)) return true;
  return false;
}

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The distance of neighbours among the results of different choices, the lower median. It is 0 if few choices decide
// the element, because several runs then have the same result; the results themselves say what is right. It is not 0 if
// so many decide that each run has another result: what lies between them is right, too.
static double gap_of_results(const Outputs *o, size_t k, int64_t i) {
  double results[FLIPS + 1] = {load(&o->exact[k], i)}, gaps[FLIPS];
  bool are_finite = isfinite(results[0]);
  for (size_t r = 0; r < o->nflips; r++) {
    results[r + 1] = load(&o->flipped[r][k], i);
    are_finite &= isfinite(results[r + 1]);
  }
  if (!are_finite || !o->nflips) return 0;
  qsort(results, o->nflips + 1, sizeof *results, compare_numbers);
  for (size_t r = 0; r < o->nflips; r++) gaps[r] = results[r + 1] - results[r];
  qsort(gaps, o->nflips, sizeof *gaps, compare_numbers);
  return gaps[(o->nflips - 1) / 2];
}

static void add_gaps(const Outputs *o, size_t k, uint64_t nruns) {
  const int64_t nelems = tensor_nelems(&o->exact[k]);
  for (int64_t i = 0; i < nelems; i++)
    o->moved[k][i] = hypot(o->moved[k][i], gap_of_results(o, k, i) * sqrt((double)nruns));
}

// The L2 norm of the changes, as if the outliers had changed by the average of the others. Sorts them. *usual: the
// greatest change that is not an outlier.
static double norm_of_moves(double *moved, size_t nelems, uint64_t nruns, double *usual) {
  qsort(moved, nelems, sizeof *moved, compare_numbers);
  const size_t ncounted = nelems - nelems / OUTLIERS;
  const double most = *usual = ncounted ? moved[ncounted - 1] : 0;
  double sum = 0; // of squares, relative to `most` so that they do not overflow
  for (size_t i = 0; most > 0 && i < ncounted; i++) sum += moved[i] / most * (moved[i] / most);
  return ncounted ? most * sqrt(sum / (double)nruns * ((double)nelems / (double)ncounted)) : 0;
}

// Of those that are not 0; they are sorted.
static double median_of_moves(const double *moved, size_t nelems) {
  size_t nzeros = 0;
  while (nzeros < nelems && moved[nzeros] == 0) nzeros++;
  return nzeros < nelems ? moved[nzeros + (nelems - nzeros) / 2] : 0;
}

// In an output of few elements, all may by chance change little in two runs.
static uint64_t count_runs(const Graph *g) {
  enum { FEW = 8, USUAL_RUNS = 2, MANY_RUNS = 6 };
  for (size_t i = 0; i < g->noutputs; i++)
    if (shape_nelems(&g->outputs[i]->shape) < FEW) return MANY_RUNS;
  return USUAL_RUNS;
}

// Copies the changes of output k, scaled to one run.
static bool keep_movement(Movement *m, const Outputs *o, size_t k, uint64_t nruns, Arena *arena) {
  const size_t nelems = (size_t)tensor_nelems(&o->noisy[k]);
  size_t nlost = 0;
  m->moved = ARENA_ARRAY(arena, double, nelems + 1);
  if (!m->moved) return false;
  for (size_t i = 0; i < nelems; i++) nlost += o->is_lost[k][i];
  for (size_t i = 0; i < nelems; i++) {
    const bool is_lost = o->is_lost[k][i] && nlost <= nelems / OUTLIERS;
    m->moved[i] = is_lost ? INFINITY : o->moved[k][i] / sqrt((double)nruns);
  }
  m->nresults = o->nflips + 1;
  m->results = ARENA_ARRAY(arena, Tensor, m->nresults);
  if (!m->results) return false;
  m->results[0] = o->exact[k];
  for (size_t r = 0; r < o->nflips; r++) m->results[r + 1] = o->flipped[r][k];
  return true;
}

bool interpret_flipped(const Graph *g, const Tensor *inputs, uint64_t number, Tensor *outputs,
                       const InterpreterOptions *options, Diagnostics *d) {
  InterpreterOptions flips = *options;
  flips.nan_check = false;
  flips.flips = true;
  flips.noise = number;
  return interpret(g, inputs, outputs, &flips, d);
}

// Their tensors are in the arena.
static bool find_flips(const Graph *g, const Tensor *inputs, Outputs *o, size_t count, Arena *arena,
                       const InterpreterOptions *options, Diagnostics *d) {
  for (size_t number = 1; has_choices(g) && number <= count; number++) {
    Tensor *results = o->flipped[o->nflips++] = new_tensors(g, arena);
    if (!results) return error_out_of_memory(d);
    if (!interpret_flipped(g, inputs, number, results, options, d)) return false;
  }
  return true;
}

static bool find_magnitudes(const Graph *g, const Tensor *inputs, const Outputs *o, double *magnitudes,
                            Movement *movements, Arena *arena, const InterpreterOptions *options, Diagnostics *d) {
  InterpreterOptions noisy = *options;
  const uint64_t nruns = count_runs(g);
  noisy.nan_check = false;
  for (noisy.noise = 1; noisy.noise <= nruns; noisy.noise++) {
    if (!interpret(g, inputs, o->noisy, &noisy, d)) return false;
    for (size_t k = 0; k < g->noutputs; k++) add_moves(o, k);
  }
  for (size_t k = 0; k < g->noutputs; k++) {
    const Type type = g->outputs[k]->type;
    const double tolerance = TYPES_QUANTIZED & TYPE_BIT(type) ? 1 : type_tolerance(type);
    const size_t nelems = (size_t)tensor_nelems(&o->noisy[k]);
    add_gaps(o, k, nruns);
    if (movements && !keep_movement(&movements[k], o, k, nruns, arena)) return error_out_of_memory(d);
    double usual, norm = norm_of_moves(o->moved[k], nelems, nruns, &usual);
    if (movements) movements[k].usual = usual / sqrt((double)nruns);
    if (movements) movements[k].typical = median_of_moves(o->moved[k], nelems) / sqrt((double)nruns);
    magnitudes[k] = tolerance > 0 ? norm / tolerance : 0;
  }
  return true;
}

bool interpret_movements(const Graph *g, const Tensor *inputs, const Tensor *outputs, double *magnitudes,
                         Movement *movements, Arena *arena, const InterpreterOptions *options, Diagnostics *d) {
  Arena scratch;
  arena_init(&scratch, options->allocator);
  Tensor *own = outputs ? NULL : new_tensors(g, &scratch);
  Outputs o = {.exact = outputs ? outputs : own};
  bool ok = false;
  if (!o.exact || !outputs_make(&o, g, &scratch)) error_out_of_memory(d);
  else if (!own || interpret(g, inputs, own, options, d))
    ok = find_flips(g, inputs, &o, movements ? FLIPS : FEW_FLIPS, movements ? arena : &scratch, options, d) &&
         find_magnitudes(g, inputs, &o, magnitudes, movements, arena, options, d);
  arena_deinit(&scratch);
  return ok;
}

bool interpret_magnitudes(const Graph *g, const Tensor *inputs, const Tensor *outputs, double *magnitudes,
                          const InterpreterOptions *options, Diagnostics *d) {
  return interpret_movements(g, inputs, outputs, magnitudes, NULL, NULL, options, d);
}
