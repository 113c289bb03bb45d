// Self-tests of emitted functions.
#ifndef NGRAD_FRONTEND_API_SELF_TEST_H
#define NGRAD_FRONTEND_API_SELF_TEST_H

#include "backends/codegen/codegen.h"
#include "frontend/api/handles.h"

typedef struct TestedFunction {
  ng_context *ctx;
  const Graph *open;      // the graph that was read, with open dims
  const Graph *compiled;  // likewise, after all passes; NULL: with leaves, each stage has its own
  const Program *program; // of `compiled`
  const bool *is_stored;  // EmittedFunction.is_stored
} TestedFunction;

// Prints a program that tests one of the file's functions. Errors but NG_OUT_OF_MEMORY are reported in the context.
ng_status print_self_test(const TestedFunction *f, const EmittedFile *file, size_t function, Text *out);

#endif
