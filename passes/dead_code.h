// Dead code: nodes that no output needs.
#ifndef NGRAD_PASSES_DEAD_CODE_H
#define NGRAD_PASSES_DEAD_CODE_H

#include "passes/pipeline.h"

bool pass_dead_code(Graph *g, PassContext *c);

#endif
