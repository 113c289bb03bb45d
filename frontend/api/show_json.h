// Graphs and programs as JSON, for programs that draw or compare them.
#ifndef NGRAD_FRONTEND_API_SHOW_JSON_H
#define NGRAD_FRONTEND_API_SHOW_JSON_H

#include "ir/kernel/program.h"
#include "ir/support/text.h"

// An object with the graph's "name", its "values" and its "nodes", which name values by their indices. An extent
// without a number is its dim's name, or null. False: out of memory.
bool json_print_graph(const Graph *g, Text *out);

// The same of a program's graph, with "kernels", which name nodes and values by their indices, and "memory": what lives
// where in the workspace. False: out of memory.
bool json_print_program(const Program *p, Text *out);

#endif
