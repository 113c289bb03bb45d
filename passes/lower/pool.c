// Lowering of pooling.
#include "passes/lower/lower.h"

#include <stdlib.h>

void lower_MaxPool(Lowering *l, const Node *node);
void lower_MaxPoolBackward(Lowering *l, const Node *node);
void lower_AvgPool(Lowering *l, const Node *node);
void lower_AvgPoolBackward(Lowering *l, const Node *node);

void lower_MaxPool(Lowering *l, const Node *node) {
  (void)l, (void)node;
  abort();
}

void lower_MaxPoolBackward(Lowering *l, const Node *node) {
  (void)l, (void)node;
  abort();
}

void lower_AvgPool(Lowering *l, const Node *node) {
  (void)l, (void)node;
  abort();
}

void lower_AvgPoolBackward(Lowering *l, const Node *node) {
  (void)l, (void)node;
  abort();
}
