// Graphs and options from the command line, and the tensors that a graph is run on: read from files, random, or
// allocated for results.
#ifndef NGRAD_FRONTEND_CLI_DATA_H
#define NGRAD_FRONTEND_CLI_DATA_H

#include "frontend/cli/options.h"
#include "frontend/cli/session.h"

// The options from the settings. Strings are the settings'.
ng_options options_of_settings(const Settings *s);

typedef struct Tensors {
  ng_context *ctx;
  ng_tensor *items;
  size_t count;
} Tensors;

void tensors_free(Tensors *t);

// Reads a graph and sets the dims given by --dim. NULL after messages or an error; then *status is the exit status.
ng_graph *graph_open(ng_context *ctx, const char *path, const Settings *settings, ng_status *status);

// Makes the inputs that the settings ask for: --random, --in, or files beside the graph. Binds the graph. tensors_free
// must follow, also after a failure.
ng_status inputs_make(Tensors *inputs, ng_context *ctx, ng_graph *g, const char *path, const Settings *settings);

// Checks the budget for the inputs (unless they exist already), `noutputs` times the outputs, and the interpreter's
// memory if it runs. Binds the graph.
ng_status memory_check(ng_context *ctx, ng_graph *g, const char *doing, int noutputs, bool interprets, bool has_inputs);

// Makes zeroed outputs of a bound graph.
ng_status outputs_make(Tensors *outputs, ng_context *ctx, ng_graph *g);

// The folder of a path; the caller frees it.
char *folder_of(const char *path);

// The name of a tensor's file, without its ending, which the caller frees: a slash in NAME is %2F, so that the file
// stays in its folder, and % is %25. tensor_path: FOLDER/NAME.npy, likewise.
char *tensor_file(const char *name);
char *tensor_path(const char *folder, const char *name);

// The shape in the notation of graph files, and the indices of an element; the caller frees them.
char *shape_text(const ng_tensor_info *info);
char *indices_text(const ng_tensor_info *info, int64_t element);

#endif
