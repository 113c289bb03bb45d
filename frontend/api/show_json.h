// Graphs and programs as JSON, for programs that draw or compare them.
#ifndef NGRAD_FRONTEND_API_SHOW_JSON_H
#define NGRAD_FRONTEND_API_SHOW_JSON_H

#include "ir/kernel/program.h"
#include "ir/support/text.h"

// Prints an object with the graph's "name", "values" and "nodes"; nodes refer to values by index. An extent without a
// number is its dim's name, or null. False: out of memory.
bool json_print_graph(const Graph *g, Text *out);

// The same for a program's graph, with "kernels", which refer to nodes and values by index, and "memory": the place of
// each value in the workspace. False: out of memory.
bool json_print_program(const Program *p, Text *out);

#endif
