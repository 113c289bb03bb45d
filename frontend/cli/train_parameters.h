// What a training step trains, for ngrad train.
#ifndef NGRAD_FRONTEND_CLI_TRAIN_PARAMETERS_H
#define NGRAD_FRONTEND_CLI_TRAIN_PARAMETERS_H

#include "frontend/cli/graph_output.h"

// Prints, for a graph whose constants became parameters, one line that says how many are trained, and why others are
// not; or a table of all floating-point constants and states. With --json, the document lists these.
void print_parameters(const ng_graph *step, bool as_table, Answer *answer);

#endif
