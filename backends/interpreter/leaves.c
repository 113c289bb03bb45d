// Operators that relate the leaves of a batch.
#include "ir/operators/leaves.h"

#include "backends/interpreter/evaluation.h"

#include <math.h>
#include <string.h>

bool interpret_Leaf(const Evaluation *e) {
  const size_t nelems = (size_t)shape_nelems(&e->node->outputs[0]->shape);
  if (nelems) memcpy(e->outputs[0], e->inputs[0] + (size_t)e->leaf * nelems, nelems * sizeof(double));
  return true;
}

static double reduce(Reduction how, double a, double b) {
  if (how != REDUCTION_MAX) return a + b;
  return isnan(a) || a > b ? a : b;
}

static int64_t reduce_integers(Reduction how, int64_t a, int64_t b) {
  if (how != REDUCTION_MAX) return (int64_t)((uint64_t)a + (uint64_t)b);
  return a > b ? a : b;
}

bool interpret_AllReduce(const Evaluation *e) {
  const Reduction how = (Reduction)node_s64(e->node, "reduction");
  const int64_t nelems = shape_nelems(&e->node->outputs[0]->shape);
  for (int64_t i = 0; i < nelems; i++) {
    if (type_is_float(e->node->outputs[0]->type)) {
      double sum = e->inputs[0][i];
      for (int64_t leaf = 1; leaf < e->nleaves; leaf++) sum = reduce(how, sum, e->inputs[0][leaf * nelems + i]);
      e->outputs[0][i] = how == REDUCTION_MEAN ? sum / (double)e->nleaves : sum;
    } else {
      int64_t sum = evaluation_integer(e, 0, i);
      for (int64_t leaf = 1; leaf < e->nleaves; leaf++)
        sum = reduce_integers(how, sum, evaluation_integer(e, 0, leaf * nelems + i));
      evaluation_put_integer(e, i, sum);
    }
  }
  return true;
}
