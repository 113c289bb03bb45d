// Training: a step graph's calls over epochs, what it tests itself with, and where it is.
#ifndef NGRAD_FRONTEND_CLI_FIT_H
#define NGRAD_FRONTEND_CLI_FIT_H

#include "frontend/cli/fit_batches.h"

typedef struct Position {
  int64_t epoch, done, step; // from 0; samples of the epoch; calls in all
  double *sums;              // by scalar: of the epoch so far, each times its samples
} Position;

typedef struct Fit {
  const Settings *settings;
  ng_context *ctx;
  ng_ranks ranks;
  bool is_common_end;  // whatever ended training did so on all ranks
  int stop;            // the signal that was sent to any rank before the last step's end; 0: none
  Batches train, test; // test.ctx NULL: there is none
  ng_tensor *states;   // of train
  ng_tensor *tested;   // of test: the same data
  char *test_file;     // the path of its graph
  Position at;
  int64_t saved_step; // of the checkpoint that is there; -1: none. Rank 0's
  char *checkpoint;   // its path; NULL: nothing is saved
  uint64_t seed;
  int64_t *order;     // of the samples in the epoch
  double *test_means; // by scalar of test; those of the last evaluation
  bool has_tested;
  double started_ms, drawn_ms;
  int64_t started_step; // of this run
  char sha256[65];
} Fit;

// Checkpoints: fit_checkpoint.c. States are those of the settings, or first values, when it does not resume.
ng_status fit_begin(Fit *f);
ng_status fit_return(Fit *f); // to rank 0's last checkpoint, or to where this run began; a collective call
ng_status fit_save(Fit *f);
bool fit_is_finite(const Fit *f); // whether all states of floating-point types are

// Puts all samples of the files into the epoch's order. Those behind the ones that it takes are left out. fit.c.
void fit_order_samples(Fit *f);

// A call with the next samples; the position moves on. With ranks, a collective call. fit.c.
ng_status fit_step(Fit *f);
bool fit_loss_is_finite(const Fit *f);

// Why a number is not finite: goes back, finds the call that made it, and names the node. fit_failure.c.
ng_status fit_explain(Fit *f);

// What is told: fit_report.c.
void report_begin(const Fit *f);
void report_step(Fit *f); // of those that are worth it
void report_epoch(Fit *f);
void report_end(Fit *f, ng_status status);

#endif
