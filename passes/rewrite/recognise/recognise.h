// Recognises norms and their gradients that are composed of simple operators, and replaces them by norm operators.
#ifndef NGRAD_PASSES_REWRITE_RECOGNISE_RECOGNISE_H
#define NGRAD_PASSES_REWRITE_RECOGNISE_RECOGNISE_H

#include "passes/pass.h"

bool pass_recognise(Graph *g, PassContext *c);

#endif
