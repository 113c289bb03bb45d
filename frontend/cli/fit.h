// Training: the calls of a step graph over epochs, the test graph, and the position in training.
#ifndef NGRAD_FRONTEND_CLI_FIT_H
#define NGRAD_FRONTEND_CLI_FIT_H

#include "frontend/cli/fit_batches.h"

typedef struct Position {
  int64_t epoch, done, step; // from 0; samples done in the epoch; calls in total
  double *sums;              // by scalar: its sum over the epoch so far, weighted by samples
} Position;

typedef struct Fit {
  const Settings *settings;
  ng_context *ctx;
  ng_ranks ranks;
  bool is_common_end;  // every rank knows that training has ended
  int stop;            // a signal that any rank received before the end of the last step; 0: none
  Batches train, test; // test.ctx NULL: no test graph
  ng_tensor *states;   // of train
  ng_tensor *tested;   // states of test; same data as `states`
  char *test_file;     // path of the test graph
  Position at;
  int64_t saved_step; // step of the existing checkpoint; -1: none. On rank 0 only
  char *checkpoint;   // path of the checkpoint; NULL: not saved
  int lock;           // descriptor of the lock on it; -1: none
  uint64_t seed;
  int64_t *order;     // of the samples in the epoch
  double *test_means; // by scalar of test: means of the last evaluation
  bool has_tested;
  double started_ms, drawn_ms;
  int64_t started_step; // first step of this run
  char sha256[65];
} Fit;

// Checkpoints: fit_checkpoint.c. Without --resume, the states are from the settings, or first values.
ng_status fit_begin(Fit *f);
ng_status fit_return(Fit *f); // returns to rank 0's last checkpoint, or to the beginning of this run; a collective call
ng_status fit_save(Fit *f);
bool fit_is_finite(const Fit *f); // whether all floating-point states are finite

// Locks the checkpoint for this training: fit_lock.c. False after a message: another training has the lock.
bool fit_lock(Fit *f);
void fit_unlock(Fit *f);

// Steps: fit_step.c.

// Puts all samples of the files into the epoch's order. The epoch takes the first nsamples of them.
void fit_order_samples(Fit *f);

// Calls the graph with the next samples, and advances the position. A collective call with ranks.
ng_status fit_step(Fit *f);
bool fit_loss_is_finite(const Fit *f);
bool fit_is_finished(const Fit *f); // all epochs or steps are done

// Explains a number that is not finite: goes back, finds the call that made it, and names the node. fit_failure.c.
ng_status fit_explain(Fit *f);

// Output: fit_report.c.
void report_begin(const Fit *f);
void report_step(Fit *f); // prints only some steps
void report_epoch(Fit *f);
void report_end(Fit *f, ng_status status);

#endif
