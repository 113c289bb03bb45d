// Where a report's drawing has its boxes and arrows. Graphviz's dot computes that from sizes alone: it gets no names.
#ifndef NGRAD_FRONTEND_CLI_REPORT_LAYOUT_H
#define NGRAD_FRONTEND_CLI_REPORT_LAYOUT_H

#include <jansson.h>

// The drawing of a program, which is what ng_graph_show's "kernels-json" says:
//   "nodes"     by node: [width, height]
//   "inside"    by kernel: a layout of its nodes, or null for a kernel of one node
//   "parts"     [{"first", "end": kernels, "layout"}]: long programs are drawn in parts
//   "has_values" false: inputs, outputs and constants are left out
// A layout is {"size": [width, height], "boxes": {name: [x, y, width, height]}, "arrows": [[from, to, x, y, x, y
// ...]]}, in pixels, y downwards, x and y a box's middle, an arrow's points those of a cubic B-spline. Names are "n"
// and a node's index, "k" and a kernel's, "v" and a value's that comes from outside, "o" and an output's. NULL: there
// is none; *why says why, a static text.
json_t *layout_program(const json_t *program, const char **why);

// The same of a graph, which is what "json" says, without kernels: one layout. NULL: there is none, or the graph is too
// large to be looked at.
json_t *layout_graph(const json_t *graph);

#endif
