// A step of training: the next samples of the epoch.
#include "frontend/cli/fit_ranks.h"
#include "frontend/cli/signals.h"

#include <math.h>
#include <string.h>

bool fit_loss_is_finite(const Fit *f) {
  bool ok = true;
  for (size_t i = 0; i < f->train.nscalars; i++) ok &= isfinite(batches_scalar(&f->train, i)) != 0;
  return ok;
}

void fit_order_samples(Fit *f) {
  if (!f->settings->fit.keeps_order) ng_permutation(f->seed, (uint32_t)f->at.epoch, f->train.nfound, f->order);
  else
    for (int64_t i = 0; i < f->train.nfound; i++) f->order[i] = i;
}

ng_status fit_step(Fit *f) {
  Batches *b = &f->train;
  if (f->at.done == b->nsamples) { // after an epoch's last step
    f->at.epoch++;
    f->at.done = 0;
  }
  if (!f->at.done) {
    memset(f->at.sums, 0, b->nscalars * sizeof *f->at.sums);
    fit_order_samples(f);
  }
  const int64_t left = b->nsamples - f->at.done;
  const int64_t count = b->whole.nsamples && b->whole.nsamples <= left ? b->whole.nsamples : left;
  const ng_status status = batches_run(b, f->order + f->at.done, count);
  if (status != NG_OK) return status;
  for (size_t i = 0; i < b->nscalars; i++) f->at.sums[i] += batches_scalar(b, i) * (double)count;
  f->at.done += count;
  f->at.step++;
  unsigned char stop = (unsigned char)signals_stop();
  const ng_status shared = ranks_max(f, &stop, 1);
  f->stop = stop;
  return shared;
}

bool fit_is_finished(const Fit *f) {
  const FitSettings *s = &f->settings->fit;
  const int64_t epochs = s->epochs ? s->epochs : s->steps ? INT64_MAX : 1;
  const int64_t begun = f->at.epoch + (f->at.done == f->train.nsamples);
  return begun >= epochs || (s->steps && f->at.step >= s->steps);
}
