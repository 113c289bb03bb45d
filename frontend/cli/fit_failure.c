// Finds the cause of a number that is not finite. A call overwrites the states, but training gives the same bits again:
// it is repeated from the last checkpoint, and all states are checked after each call.
#include "frontend/cli/fit.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

// Repeats steps up to step `most`. With `found`, stops at the first step that leaves a number that is not finite, and
// sets *found to the step's index, or to -1 if no step does.
static ng_status repeat(Fit *f, int64_t most, int64_t *found) {
  ng_status status = fit_return(f);
  if (found) *found = -1;
  while (status == NG_OK && f->at.step < most && !(found && *found >= 0)) {
    status = fit_step(f);
    if (f->stop) return NG_WRONG;
    if (found && (!fit_loss_is_finite(f) || !fit_is_finite(f))) *found = f->at.step - 1;
  }
  return status;
}

// The first element that is not finite; -1: all are.
static int64_t element_not_finite(const ng_tensor *t) {
  const int64_t nelems = ng_tensor_nelems(t);
  if (t->type != NG_F64 && t->type != NG_F32 && t->type != NG_F16 && t->type != NG_BF16) return -1;
  for (int64_t e = 0; e < nelems; e++)
    if (!isfinite(ng_tensor_get(t, e))) return e;
  return -1;
}

// Reports the first element of the inputs that is not finite.
static bool data_is_finite(const Batches *b, const int64_t *samples, int64_t count, const ng_tensor *inputs) {
  for (size_t i = 0; i < b->ninputs; i++) {
    const ng_tensor *t = &inputs[i];
    const int64_t e = element_not_finite(t);
    if (e < 0) continue;
    const char *name = ng_graph_input(b->graph, i).name;
    const double value = ng_tensor_get(t, e);
    if (b->data[i])
      plain_error("%s: sample %" PRId64 " of its data has %g", name, samples[e / (ng_tensor_nelems(t) / count)], value);
    else plain_error("%s: its data has %g", name, value);
    return false;
  }
  return true;
}

// Reports the first state that is not finite before the step, as in a file of states.
static bool states_are_finite(const Fit *f) {
  for (size_t i = 0; i < f->train.nstates; i++) {
    const ng_tensor *t = &f->states[i];
    const int64_t e = ng_graph_state(f->train.graph, i).is_updated ? element_not_finite(t) : -1;
    if (e < 0) continue;
    plain_error("the state %s has %g before the step", batches_state(&f->train, i).name, ng_tensor_get(t, e));
    return false;
  }
  return true;
}

static ng_status interpret_call(Fit *f, int64_t count, const ng_tensor *inputs) {
  Call *call = batches_call(&f->train, count);
  ng_tensor *outputs = memory_or_exit(calloc(f->train.noutputs + 1, sizeof *outputs));
  ng_status status = NG_OK;
  for (size_t i = 0; i < f->train.noutputs && status == NG_OK; i++) {
    const ng_tensor_info info = ng_graph_output(call->graph, i);
    status = ng_tensor_new(f->ctx, &info, &outputs[i]);
  }
  if (status == NG_OK) status = ng_interpret(call->graph, inputs, outputs, NG_CHECK_FINITE);
  for (size_t i = 0; i < f->train.noutputs; i++) ng_tensor_free(f->ctx, &outputs[i]);
  free(outputs);
  return status;
}

// Looks for the number in the next step, with the leaves of all ranks.
static ng_status explain_step(Fit *f) {
  Batches *b = &f->train;
  const int64_t left = b->nsamples - f->at.done, length = b->whole.nsamples;
  const int64_t count = length && length <= left ? length : left;
  ng_tensor *inputs;
  if (!f->at.done) fit_order_samples(f);
  const int64_t *samples = f->order + f->at.done;
  plain_error("step %" PRId64 " of epoch %" PRId64 " is the first that makes such a number", f->at.step + 1,
              f->at.epoch + 1);
  const ng_status status = batches_make_whole(b, samples, count, &inputs);
  if (status == NG_OK && states_are_finite(f) && data_is_finite(b, samples, count, inputs) &&
      interpret_call(f, count, inputs) == NG_OK)
    plain_error("no node makes such a number when the step is interpreted");
  batches_free_whole(b, inputs);
  return status == NG_OK ? NG_WRONG : status;
}

ng_status fit_explain(Fit *f) {
  const int64_t noticed = f->at.step;
  const bool is_first = f->ranks.rank == 0;
  int64_t step = -1;
  if (is_first)
    plain_error("step %" PRId64 ": a number is not finite; repeating from step %" PRId64 " to find where it comes from",
                noticed, f->saved_step < 0 ? 0 : f->saved_step);
  ng_status status = repeat(f, noticed, &step);
  const bool is_found = step >= 0;
  if (status == NG_OK && is_found) status = repeat(f, step, NULL);
  if (status != NG_OK && !f->stop) return status;
  f->is_common_end = true;
  if (is_first && !f->stop && !is_found)
    plain_error("the repeated steps made no such number; did the data change meanwhile?");
  if (!is_found) return NG_WRONG;
  return is_first && !f->stop ? explain_step(f) : NG_WRONG;
}
