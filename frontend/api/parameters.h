// Lists what a training step trains.
#ifndef NGRAD_FRONTEND_API_PARAMETERS_H
#define NGRAD_FRONTEND_API_PARAMETERS_H

#include "frontend/api/handles.h"
#include "passes/train/train.h"

// Lists the floating-point constants and states of `from` in the step, which was made with these options from
// `forward`: `from` itself, or a copy of it that can be trained. False: out of memory.
bool graph_list_parameters(ng_graph *step, const Graph *from, const Graph *forward, const TrainOptions *options);

#endif
