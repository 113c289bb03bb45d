// Leaves are no matter of kernels: a graph that has them is cut into graphs without (passes/leaves/stages.h).
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
