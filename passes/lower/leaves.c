// Leaf and AllReduce have no kernels: a graph with leaves is cut into graphs without leaves (passes/leaves/stages.h).
#include "passes/lower/lower.h"

#include <assert.h>

void lower_Leaf(Lowering *l, const Node *node) {
  (void)l;
  assert(!node);
}

void lower_AllReduce(Lowering *l, const Node *node) {
  (void)l;
  assert(!node);
}
