// The first states of training, saving, and resuming.
#include "frontend/cli/fit_ranks.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// The entry .fit.npy holds these numbers, then the bits of the position's sums.
enum { FIT_VERSION, FIT_EPOCH, FIT_DONE, FIT_STEP, FIT_SEED, FIT_BATCH, FIT_SAMPLES, FIT_BITS, FIT_NUMBERS };
// The second one of training with --no-shuffle. 1 and 2 had no FIT_BITS.
enum { SHUFFLED_VERSION = 3, IN_ORDER_VERSION = 4 };
static const int64_t MOST_STEPS = INT64_MAX / 2; // further steps cannot overflow
static const char fit_name[] = ".fit";

static int64_t batch_of(const Fit *f) {
  return f->train.whole.nsamples ? f->train.whole.nsamples : f->train.last.nsamples;
}

static int64_t version_of(const Fit *f) {
  return f->settings->fit.keeps_order ? IN_ORDER_VERSION : SHUFFLED_VERSION;
}

static const char **state_names(const Fit *f) {
  const char **names = memory_or_exit(calloc(f->train.nstates + 1, sizeof *names));
  for (size_t i = 0; i < f->train.nstates; i++) names[i] = batches_state(&f->train, i).name;
  names[f->train.nstates] = fit_name;
  return names;
}

ng_status fit_save(Fit *f) {
  const size_t nstates = f->train.nstates, nsums = f->train.nscalars;
  if (!f->checkpoint || f->ranks.rank) return NG_OK;
  int64_t *numbers = memory_or_exit(calloc(FIT_NUMBERS + nsums, sizeof *numbers));
  const int64_t values[FIT_NUMBERS] = {
      [FIT_VERSION] = version_of(f),     [FIT_EPOCH] = f->at.epoch,     [FIT_DONE] = f->at.done,
      [FIT_STEP] = f->at.step,           [FIT_SEED] = (int64_t)f->seed, [FIT_BATCH] = batch_of(f),
      [FIT_SAMPLES] = f->train.nsamples, [FIT_BITS] = ng_bits()};
  memcpy(numbers, values, sizeof values);
  if (nsums) memcpy(numbers + FIT_NUMBERS, f->at.sums, nsums * sizeof *f->at.sums);
  ng_tensor *tensors = memory_or_exit(calloc(nstates + 1, sizeof *tensors));
  memcpy(tensors, f->states, nstates * sizeof *tensors);
  tensors[nstates] = (ng_tensor){.type = NG_S64, .rank = 1, .extent = {FIT_NUMBERS + (int64_t)nsums}, .data = numbers};
  const char **names = state_names(f);
  const ng_status status = ng_checkpoint_write(f->ctx, f->checkpoint, names, tensors, nstates + 1);
  if (status == NG_OK) f->saved_step = f->at.step;
  free(names);
  free(tensors);
  free(numbers);
  return status;
}

// Resuming with other samples, batches or seeds would be another training.
static bool is_the_same(const Fit *f, const int64_t *numbers, int64_t count) {
  const Settings *s = f->settings;
  if (count != FIT_NUMBERS + (int64_t)f->train.nscalars || numbers[FIT_VERSION] < SHUFFLED_VERSION ||
      numbers[FIT_VERSION] > IN_ORDER_VERSION) {
    plain_error("%s: was saved by training another graph, or by another version of ngrad", f->checkpoint);
  } else if (s->has_seed && (int64_t)s->seed != numbers[FIT_SEED]) {
    plain_error("%s: was begun with --seed %" PRIu64 ", found --seed %" PRIu64, f->checkpoint,
                (uint64_t)numbers[FIT_SEED], s->seed);
  } else if (numbers[FIT_VERSION] != version_of(f)) {
    plain_error("%s: was begun %s --no-shuffle, found training %s it", f->checkpoint,
                s->fit.keeps_order ? "without" : "with", s->fit.keeps_order ? "with" : "without");
  } else if (numbers[FIT_BATCH] != batch_of(f)) {
    plain_error("%s: was begun with batches of %" PRId64 " samples, found %" PRId64, f->checkpoint, numbers[FIT_BATCH],
                batch_of(f));
  } else if (numbers[FIT_SAMPLES] != f->train.nsamples) {
    plain_error("%s: was begun with epochs of %" PRId64 " samples, found %" PRId64, f->checkpoint, numbers[FIT_SAMPLES],
                f->train.nsamples);
  } else if (numbers[FIT_EPOCH] < 0 || numbers[FIT_EPOCH] > UINT32_MAX || numbers[FIT_STEP] < 0 ||
             numbers[FIT_STEP] > MOST_STEPS || numbers[FIT_DONE] < 0 || numbers[FIT_DONE] >= f->train.nsamples ||
             numbers[FIT_DONE] % batch_of(f)) {
    plain_error("%s: damaged: the position in training is impossible", f->checkpoint);
  } else {
    if (numbers[FIT_BITS] != ng_bits())
      plain_warning("%s: was computed with bits %" PRId64
                    ", this is bits %d: the end will differ from training that was "
                    "not stopped",
                    f->checkpoint, numbers[FIT_BITS], ng_bits());
    return true;
  }
  return false;
}

// Whether counters have numbers that a training can reach after these steps, each of which adds at least 1; `path` gave
// them.
static bool counters_are_possible(const Fit *f, const char *path, int64_t nsteps) {
  for (size_t i = 0; i < f->train.nstates; i++) {
    const ng_state state = ng_graph_state(f->train.graph, i);
    const ng_tensor *t = &f->states[i];
    const int64_t least = state.least == INT64_MIN ? INT64_MIN : state.least + nsteps;
    for (int64_t e = 0; t->data && t->type == NG_S64 && e < ng_tensor_nelems(t); e++) {
      const int64_t number = ((const int64_t *)t->data)[e];
      if (number >= least && number <= state.most) continue;
      plain_error("%s: damaged: %s is %" PRId64 ", expected a count from %" PRId64 " to %" PRId64, path,
                  batches_state(&f->train, i).name, number, least, state.most);
      return false;
    }
  }
  return true;
}

static ng_status read_checkpoint(Fit *f) {
  const size_t nstates = f->train.nstates;
  ng_tensor_info *wanted = memory_or_exit(calloc(nstates + 1, sizeof *wanted));
  ng_tensor *tensors = memory_or_exit(calloc(nstates + 1, sizeof *tensors));
  for (size_t i = 0; i < nstates; i++) wanted[i] = batches_state(&f->train, i);
  wanted[nstates] = (ng_tensor_info){.name = fit_name, .type = NG_S64, .rank = 1, .extent = {-1}};
  ng_status status = ng_checkpoint_read(f->ctx, f->checkpoint, wanted, nstates + 1, 0, tensors);
  if (status == NG_OK) {
    const int64_t *numbers = tensors[nstates].data;
    memcpy(f->states, tensors, nstates * sizeof *tensors);
    if (is_the_same(f, numbers, tensors[nstates].extent[0]) &&
        counters_are_possible(f, f->checkpoint, numbers[FIT_STEP])) {
      f->seed = (uint64_t)numbers[FIT_SEED];
      f->at.epoch = numbers[FIT_EPOCH];
      f->at.done = numbers[FIT_DONE];
      f->saved_step = f->at.step = numbers[FIT_STEP];
      memcpy(f->at.sums, numbers + FIT_NUMBERS, f->train.nscalars * sizeof *f->at.sums);
    } else {
      status = NG_WRONG;
    }
    ng_tensor_free(f->ctx, &tensors[nstates]);
  }
  free(wanted);
  free(tensors);
  return status;
}

// Makes the first values of states that no file gave.
static ng_status make_states(Fit *f) {
  ng_status status = NG_OK;
  for (size_t i = 0; i < f->train.nstates && status == NG_OK; i++)
    if (!f->states[i].data) status = ng_tensor_init(batches_bound_graph(&f->train), i, f->seed, &f->states[i]);
  return status;
}

static ng_status read_states(Fit *f) {
  const size_t nstates = f->train.nstates;
  size_t nread = 0;
  ng_tensor_info *wanted = memory_or_exit(calloc(nstates + 1, sizeof *wanted));
  for (size_t i = 0; i < nstates; i++) wanted[i] = batches_state(&f->train, i);
  ng_status status = ng_checkpoint_read(f->ctx, f->settings->state, wanted, nstates, 1, f->states);
  for (size_t i = 0; i < nstates && status == NG_OK; i++) nread += f->states[i].data != NULL;
  if (status == NG_OK && !nread) {
    plain_error("%s: has none of the states of %s", f->settings->state, ng_graph_name(f->train.graph));
    status = NG_WRONG;
  }
  if (status == NG_OK && !counters_are_possible(f, f->settings->state, 0)) status = NG_WRONG;
  free(wanted);
  return status;
}

static void free_states(Fit *f) {
  for (size_t i = 0; i < f->train.nstates; i++) ng_tensor_free(f->ctx, &f->states[i]);
}

static ng_status load(Fit *f, bool has_checkpoint) {
  ng_status status = NG_OK;
  free_states(f);
  f->at = (Position){.sums = f->at.sums};
  memset(f->at.sums, 0, f->train.nscalars * sizeof *f->at.sums);
  if (has_checkpoint) status = read_checkpoint(f);
  else if (f->settings->state) status = read_states(f);
  if (status == NG_OK && !has_checkpoint) status = make_states(f);
  if (status != NG_OK) return status;
  batches_use_states(&f->train, f->states, true);
  if (f->at.done) fit_order_samples(f);
  return NG_OK;
}

ng_status fit_begin(Fit *f) {
  for (size_t i = 0; f->checkpoint && i < f->train.nstates; i++) {
    if (strcmp(batches_state(&f->train, i).name, fit_name) != 0) continue;
    plain_error("%s: the state %s: expected another name, as that of the position in checkpoints", f->train.path,
                fit_name);
    return NG_WRONG;
  }
  f->saved_step = -1;
  return load(f, f->settings->fit.resumes);
}

// Takes rank 0's position and states. Other ranks may have no checkpoint, or another one.
static ng_status take_position(Fit *f) {
  int64_t at[] = {f->at.epoch, f->at.done, f->at.step};
  ng_status status = ranks_share(f, at, sizeof at);
  if (status == NG_OK) status = ranks_share(f, f->at.sums, f->train.nscalars * sizeof *f->at.sums);
  for (size_t i = 0; i < f->train.nstates && status == NG_OK; i++)
    status = ranks_share(f, f->states[i].data, ng_tensor_nbytes(&f->states[i]));
  f->at = (Position){at[0], at[1], at[2], f->at.sums};
  if (f->at.done) fit_order_samples(f);
  return status;
}

ng_status fit_return(Fit *f) {
  const ng_status status = f->ranks.rank ? NG_OK : load(f, f->saved_step >= 0);
  return status == NG_OK ? take_position(f) : status;
}

// States that no step changes, such as a frozen mask, are what they were.
bool fit_is_finite(const Fit *f) {
  for (size_t i = 0; i < f->train.nstates; i++) {
    if (!ng_graph_state(f->train.graph, i).is_updated) continue;
    const ng_tensor *t = &f->states[i];
    const int64_t nelems = ng_tensor_nelems(t);
    if (t->type == NG_F32) {
      const float *x = t->data;
      for (int64_t e = 0; e < nelems; e++)
        if (!isfinite(x[e])) return false;
    } else if (t->type == NG_F64 || t->type == NG_F16 || t->type == NG_BF16) {
      for (int64_t e = 0; e < nelems; e++)
        if (!isfinite(ng_tensor_get(t, e))) return false;
    }
  }
  return true;
}
