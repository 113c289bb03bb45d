// Graphs as pictures: Graphviz's language, one box a node, one arrow a use.
#ifndef NGRAD_FRONTEND_DOT_DOT_H
#define NGRAD_FRONTEND_DOT_DOT_H

#include "ir/graph/partition.h"

// Each region is drawn as a frame, unless the graph is of one node. partition NULL: there are no regions.
void dot_print(const Graph *g, const Partition *partition, Text *out);

#endif
