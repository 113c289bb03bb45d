// Graphs as pictures: Graphviz's language, one box a node, one arrow a use.
#ifndef NGRAD_FRONTEND_DOT_DOT_H
#define NGRAD_FRONTEND_DOT_DOT_H

#include "ir/graph/graph.h"

void dot_print(const Graph *g, Text *out);

#endif
