// A graph and the samples that it is called with, batch by batch.
#ifndef NGRAD_FRONTEND_CLI_FIT_BATCHES_H
#define NGRAD_FRONTEND_CLI_FIT_BATCHES_H

#include "frontend/cli/data.h"

// Where the files of a graph's inputs are, as the command line says.
typedef struct Files {
  const char *folder, *labels, *text; // NULL: not said
  const TextList *named;              // NAME=FILE
  const char *folder_option, *named_option;
} Files;

typedef struct Call { // of one length of batches
  int64_t nsamples;   // 0: there is none
  ng_graph *graph;    // bound
  ng_kernel *kernel;
  ng_tensor *inputs, *outputs; // all of the graph's
} Call;

typedef struct Batches {
  ng_context *ctx;
  const Settings *settings;
  const char *path;
  ng_graph *graph; // not bound
  size_t ninputs;  // without states, which follow
  size_t noutputs, nstates;
  ng_data **data;        // by input; NULL: one that has no samples
  ng_tensor *tensors;    // by input: a batch, or the whole of one without samples
  bool *has_leaves;      // by input: its first axis is that of the leaves, of which a rank takes its own
  ng_tensor *results;    // by output; no data where that is a state's
  const char *dim;       // the extent that is the batch
  int nleading;          // axes along which samples lie
  int64_t nleaves;       // the first of two such; 1: there is one
  const ng_ranks *ranks; // which share the leaves; NULL: there is one
  int64_t nfound;        // samples in the files
  int64_t nsamples;      // of them that an epoch takes
  Call whole, last;      // a batch, and what is left behind the last whole one
  size_t *scalars;       // outputs that are single floating-point numbers, of no state
  size_t nscalars;
} Batches;

// Reads the graph, opens its inputs' files and checks all. `batch`: samples a call; 0: as the graph's dims say.
// batches_close must follow whatever it returns.
ng_status batches_open(Batches *b, ng_context *ctx, const char *path, const Settings *s, const Files *files,
                       int64_t batch);
// Compiles the graph and makes the memory of its calls, of those leaves that are this rank's. is_in_place: updates are
// left where the states are.
ng_status batches_compile(Batches *b, bool is_in_place);
void batches_close(Batches *b);

// The shapes of the states: of a graph that is bound.
ng_tensor_info batches_state(const Batches *b, size_t i);
ng_graph *batches_bound_graph(const Batches *b);

// Where calls find the states.
void batches_use_states(Batches *b, const ng_tensor *states, bool is_in_place);

// Calls the graph with the samples of these indices, as many as one of the calls takes.
ng_status batches_run(Batches *b, const int64_t *samples, int64_t count);
void batches_gather(Batches *b, const int64_t *samples, int64_t count);
// The inputs of such a call with all leaves, for ng_interpret; batches_free_whole follows whatever it returns.
ng_status batches_make_whole(Batches *b, const int64_t *samples, int64_t count, ng_tensor **inputs);
void batches_free_whole(Batches *b, ng_tensor *inputs);
Call *batches_call(Batches *b, int64_t count);
double batches_scalar(const Batches *b, size_t i); // of the last call

#endif
