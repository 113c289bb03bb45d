// Weights in C: the option --weights.
#ifndef NGRAD_FRONTEND_CLI_WEIGHTS_H
#define NGRAD_FRONTEND_CLI_WEIGHTS_H

#include "frontend/cli/graph_output.h"

typedef enum WeightForm { WEIGHTS_CONST, WEIGHTS_BF16, WEIGHTS_S8, WEIGHTS_FILE } WeightForm;
enum {
  WEIGHTS_NARROW = 1 << WEIGHTS_BF16 | 1 << WEIGHTS_S8,
  WEIGHTS_PLACES = 1 << WEIGHTS_CONST | 1 << WEIGHTS_FILE,
};

// Returns 0, or the exit status after an error message about --weights. `allowed` has a bit for each WeightForm.
int weights_check(const Settings *s, unsigned allowed);

bool weights_are_stored(const Settings *s); // in the source; the option was checked

// Makes the graph's weights narrow if --weights says so, and tells the errors.
ng_status weights_narrow(ng_graph *g, const Settings *s, Answer *answer);

#endif
