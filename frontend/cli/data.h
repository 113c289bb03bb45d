// Graphs and options as the command line says, and the tensors that a graph is run on: from files, made up, or
// allocated for results.
#ifndef NGRAD_FRONTEND_CLI_DATA_H
#define NGRAD_FRONTEND_CLI_DATA_H

#include "frontend/cli/options.h"
#include "frontend/cli/session.h"

// What becomes of a graph, as the settings say. Strings are theirs.
ng_options options_of_settings(const Settings *s);

typedef struct Tensors {
  ng_context *ctx;
  ng_tensor *items;
  size_t count;
} Tensors;

void tensors_free(Tensors *t);

// Reads a graph and gives its dims the values of --dim. NULL after leaving messages or telling; then *status says how
// it ended.
ng_graph *graph_open(ng_context *ctx, const char *path, const Settings *settings, ng_status *status);

// The inputs as the settings say: --random, --in, or files beside the graph. Binds the graph. tensors_free follows
// whatever it returns.
ng_status inputs_make(Tensors *inputs, ng_context *ctx, ng_graph *g, const char *path, const Settings *settings);

// Whether the budget has room for the inputs, if they are not there yet, for `noutputs` times the outputs, and for what
// the interpreter takes if it runs. Binds the graph.
ng_status memory_check(ng_context *ctx, ng_graph *g, const char *doing, int noutputs, bool interprets, bool has_inputs);

// Zeroed outputs of a bound graph.
ng_status outputs_make(Tensors *outputs, ng_context *ctx, ng_graph *g);

// The folder that a path is in, for the caller to free.
char *folder_of(const char *path);

// FOLDER/NAME.npy for the caller to free; NULL after telling: the name would lead out of the folder.
char *tensor_path(const char *folder, const char *name);

// The shape as people write it, for the caller to free.
char *shape_text(const ng_tensor_info *info);

#endif
