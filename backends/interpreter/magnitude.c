// The graph is run with noise, and compared with itself.
//
// A few elements may move far for another reason: a value came to lie on the other side of a threshold. These must not
// excuse errors elsewhere, so the tenth of the elements that moves most does not count.
#include "backends/interpreter/magnitude.h"

#include <math.h>
#include <stdlib.h>

enum { NOISY_RUNS = 4, OUTLIERS = 10 }; // one of so many elements

typedef struct Outputs {
  Tensor *exact, *noisy; // parallel to the graph's
  double **moved;        // by element: the root of the summed squares of what each run moved it by
} Outputs;

static bool outputs_make(Outputs *o, const Graph *g, Arena *arena) {
  o->exact = ARENA_ARRAY(arena, Tensor, g->noutputs + 1);
  o->noisy = ARENA_ARRAY(arena, Tensor, g->noutputs + 1);
  o->moved = ARENA_ARRAY(arena, double *, g->noutputs + 1);
  bool ok = o->exact && o->noisy && o->moved;
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    o->exact[i] = o->noisy[i] = tensor_like(g->outputs[i]);
    o->exact[i].data = arena_alloc(arena, tensor_nbytes(&o->exact[i]) + 1);
    o->noisy[i].data = arena_alloc(arena, tensor_nbytes(&o->exact[i]) + 1);
    o->moved[i] = ARENA_ARRAY(arena, double, (size_t)tensor_nelems(&o->exact[i]) + 1);
    ok = o->exact[i].data && o->noisy[i].data && o->moved[i];
  }
  return ok;
}

static double load(const Tensor *t, int64_t i) {
  return type_load(t->type, t->data, (size_t)tensor_offset(t, i));
}

// What is not finite with noise or without says nothing.
static void add_moves(const Outputs *o, size_t k) {
  const int64_t nelems = tensor_nelems(&o->exact[k]);
  for (int64_t i = 0; i < nelems; i++) {
    double apart = load(&o->noisy[k], i) - load(&o->exact[k], i);
    if (isfinite(apart)) o->moved[k][i] = hypot(o->moved[k][i], apart);
  }
}

static int compare_numbers(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// The L2 norm of all, if the outliers moved as the others on average.
static double norm_of_moves(double *moved, size_t nelems) {
  qsort(moved, nelems, sizeof *moved, compare_numbers);
  const size_t ncounted = nelems - nelems / OUTLIERS;
  const double most = ncounted ? moved[ncounted - 1] : 0;
  double sum = 0; // of squares in units of the most, which do not overflow
  for (size_t i = 0; most > 0 && i < ncounted; i++) sum += moved[i] / most * (moved[i] / most);
  return ncounted ? most * sqrt(sum / NOISY_RUNS * ((double)nelems / (double)ncounted)) : 0;
}

bool interpret_magnitudes(const Graph *g, const Tensor *inputs, double *magnitudes, const InterpreterOptions *options,
                          Diagnostics *d) {
  Arena arena;
  arena_init(&arena, options->allocator);
  Outputs o;
  bool ok = outputs_make(&o, g, &arena) || error_out_of_memory(d);
  ok = ok && interpret(g, inputs, o.exact, options, d);
  for (uint64_t run = 1; ok && run <= NOISY_RUNS; run++) {
    InterpreterOptions noisy = *options;
    noisy.noise = run;
    noisy.nan_check = false;
    ok = interpret(g, inputs, o.noisy, &noisy, d);
    for (size_t k = 0; ok && k < g->noutputs; k++) add_moves(&o, k);
  }
  for (size_t k = 0; ok && k < g->noutputs; k++) {
    double tolerance = type_tolerance(g->outputs[k]->type);
    double norm = norm_of_moves(o.moved[k], (size_t)tensor_nelems(&o.exact[k]));
    magnitudes[k] = tolerance > 0 ? norm / tolerance : 0;
  }
  arena_deinit(&arena);
  return ok;
}
