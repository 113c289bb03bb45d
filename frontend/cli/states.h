// States whose values come from a checkpoint.
#ifndef NGRAD_FRONTEND_CLI_STATES_H
#define NGRAD_FRONTEND_CLI_STATES_H

#include "frontend/cli/graph_output.h"

// Gives the graph's states the values in the file of --state, and tells which tensors of the file it does not use.
// Nothing without --state.
ng_status states_read(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer);
// The same for a training step and its inference (NULL: none), whose states the file must have. Of the step's other
// states, it tells which are not in the file.
ng_status states_read_pair(ng_context *ctx, ng_graph *step, ng_graph *infer, const Settings *s, Answer *answer);

#endif
