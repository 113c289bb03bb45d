// Recognising: norms and their gradients that are spelled out become the operators.
#ifndef NGRAD_PASSES_RECOGNISE_H
#define NGRAD_PASSES_RECOGNISE_H

#include "passes/pipeline.h"

bool pass_recognise(Graph *g, PassContext *c);

#endif
