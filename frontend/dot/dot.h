// Pictures of graphs in Graphviz's language: a box for each node, an arrow for each use.
#ifndef NGRAD_FRONTEND_DOT_DOT_H
#define NGRAD_FRONTEND_DOT_DOT_H

#include "ir/graph/partition.h"

// Each region is drawn as a frame, unless the graph has only one node. partition NULL: no regions.
void dot_print(const Graph *g, const Partition *partition, Text *out);

#endif
