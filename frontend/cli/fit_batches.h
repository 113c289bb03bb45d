// A graph, and the batches of samples that it is called with.
#ifndef NGRAD_FRONTEND_CLI_FIT_BATCHES_H
#define NGRAD_FRONTEND_CLI_FIT_BATCHES_H

#include "frontend/cli/data.h"

// The files of a graph's inputs, from the command line.
typedef struct Files {
  const char *folder, *labels, *text; // NULL: not given
  const TextList *named;              // NAME=FILE
  const char *folder_option, *named_option;
} Files;

typedef struct Call { // for one length of batches
  int64_t nsamples;   // 0: unused
  ng_graph *graph;    // bound
  ng_kernel *kernel;
  ng_tensor *inputs, *outputs; // of all inputs and outputs of the graph
} Call;

typedef struct Batches {
  ng_context *ctx;
  const Settings *settings;
  const char *path;
  ng_graph *graph; // not bound
  size_t ninputs;  // without the states, which follow
  size_t noutputs, nstates;
  ng_data **data;        // by input; NULL: an input without samples
  ng_tensor *tensors;    // by input: a batch, or all data of an input without samples
  bool *has_leaves;      // by input: the first axis is the leaves, and a rank takes its own ones
  ng_tensor *results;    // by output; no data for updates in place
  const char *dim;       // the name of the extent that is the batch; NULL: it is a number
  int64_t length;        // this number; for a leaf's part of the batch, if there are leaves
  int nleading;          // number of axes along which samples lie, 1 or 2
  int64_t nleaves;       // the first of two such extents; 1: there is one
  const ng_ranks *ranks; // divide the leaves; NULL: one rank
  int64_t nfound;        // samples in the files
  int64_t nsamples;      // samples that an epoch takes
  Call whole, last;      // a whole batch, and the shorter batch that may remain at an epoch's end
  size_t *scalars;       // outputs that are single floating-point numbers and not states
  size_t nscalars;
} Batches;

// Reads the graph, opens its inputs' files and checks all. `batch`: samples of a call; 0: from the graph's dims.
// batches_close must follow, also after a failure.
ng_status batches_open(Batches *b, ng_context *ctx, const char *path, const Settings *s, const Files *files,
                       int64_t batch);
// Compiles the graph, and allocates the tensors of its calls, for this rank's leaves. is_in_place: updates are at the
// states' addresses.
ng_status batches_compile(Batches *b, bool is_in_place);
void batches_close(Batches *b);

// The shapes of the states, from a bound graph.
ng_tensor_info batches_state(const Batches *b, size_t i);
ng_graph *batches_bound_graph(const Batches *b);

// Sets the tensors of the states.
void batches_use_states(Batches *b, const ng_tensor *states, bool is_in_place);

// Calls the graph with the samples of these indices; `count` is the length of one of the two calls.
ng_status batches_run(Batches *b, const int64_t *samples, int64_t count);
// The inputs of such a call with the leaves of all ranks, for ng_interpret. batches_free_whole must follow, also after
// a failure.
ng_status batches_make_whole(Batches *b, const int64_t *samples, int64_t count, ng_tensor **inputs);
void batches_free_whole(Batches *b, ng_tensor *inputs);
Call *batches_call(Batches *b, int64_t count);
double batches_scalar(const Batches *b, size_t i); // from the last call

#endif
