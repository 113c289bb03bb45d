// Pads along axes with open extents.
#ifndef NGRAD_PASSES_REWRITE_OPEN_PADS_H
#define NGRAD_PASSES_REWRITE_OPEN_PADS_H

#include "ir/graph/builder.h"

// Replaces a Pad along an open axis; it then has no operands, and the caller removes it. False: the node stays.
bool replace_open_pad(Builder *b, Node *pad);

#endif
