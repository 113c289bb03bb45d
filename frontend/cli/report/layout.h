// The positions of a drawing's boxes and arrows. Graphviz's dot computes them from sizes alone, and sees no names.
#ifndef NGRAD_FRONTEND_CLI_REPORT_LAYOUT_H
#define NGRAD_FRONTEND_CLI_REPORT_LAYOUT_H

#include <jansson.h>

// The layout of a program, from ng_graph_show's "kernels-json":
//   "nodes"     by node: [width, height]
//   "inside"    by kernel: a layout of its nodes, or null for a kernel of one node
//   "parts"     [{"first", "end": kernels, "layout"}]: long programs are drawn in parts
//   "has_values" false: inputs, outputs and constants are left out
// A layout is {"size": [width, height], "boxes": {name: [x, y, width, height]}, "arrows": [[from, to, x, y, x, y
// ...]]}. Lengths are in pixels, with y downwards. A box's x and y are its middle; an arrow's points are those of a
// cubic B-spline. Names are a letter and an index: "n" node, "k" kernel, "v" value that no kernel makes, "o" output.
// NULL: no layout; *why is the reason, a static text.
json_t *layout_program(const json_t *program, const char **why);

// The layout of a graph without kernels, from ng_graph_show's "json": one layout. NULL: no layout, or the graph is too
// large to read.
json_t *layout_graph(const json_t *graph);

#endif
