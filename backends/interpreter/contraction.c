// Products and convolutions, straight from their formulas.
#include "ir/operators/contraction.h"

#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/sum.h"
#include "backends/interpreter/walk.h"

#include <string.h>

// The number of elements between neighbours along each axis of a dense row-major array.
typedef struct Dense {
  int64_t stride[MAX_RANK];
} Dense;

static Dense dense_strides(const Shape *shape) {
  Dense d = {{0}};
  int64_t stride = 1;
  for (int axis = shape->rank - 1; axis >= 0; axis--) {
    d.stride[axis] = stride;
    stride *= extent_value(shape->extent[axis]);
  }
  return d;
}

static int64_t extent_on(const Shape *shape, int axis) {
  return axis < 0 ? 1 : extent_value(shape->extent[axis]);
}

// Products

// A matrix in an array that may have further axes.
typedef struct Matrix {
  int64_t rows, columns, row_stride, column_stride;
} Matrix;

static Matrix matrix_of(const Shape *shape, int row_axis, int column_axis) {
  const Dense d = dense_strides(shape);
  return (Matrix){extent_on(shape, row_axis), extent_on(shape, column_axis), row_axis < 0 ? 0 : d.stride[row_axis],
                  column_axis < 0 ? 0 : d.stride[column_axis]};
}

// Copies the matrix, so that its rows are contiguous.
static void matrix_copy(const Matrix *m, const double *from, double *to) {
  for (int64_t row = 0; row < m->rows; row++)
    for (int64_t column = 0; column < m->columns; column++)
      *to++ = from[row * m->row_stride + column * m->column_stride];
}

// The track follows the batch axes of an operand.
static void walk_batch(Walk *w, int track, const Product *p, const Shape *operand) {
  const Dense d = dense_strides(operand);
  for (int i = 0; i < p->nbatch; i++) {
    const int axis = product_batch_axis(p, operand->rank, i);
    w->stride[i][track] = axis < 0 || extent_on(operand, axis) == 1 ? 0 : d.stride[axis];
  }
}

// dst, with rows and columns of one product; `a` is [rows, depth], `b` is [columns, depth].
static void multiply(const Evaluation *e, const double *a, const double *b, const int64_t counts[3], double *dst) {
  const int64_t rows = counts[0], columns = counts[1], depth = counts[2];
  for (int64_t m = 0; m < rows; m++)
    for (int64_t n = 0; n < columns; n++) {
      Sum sum = {0};
      for (int64_t k = 0; k < depth; k++) sum_add(&sum, a[m * depth + k] * b[n * depth + k]);
      *dst++ = sum_value(&sum, e->noise);
    }
}

bool interpret_MatMul(const Evaluation *e) {
  const Node *node = e->node;
  const Shape *src = &node->inputs[0]->shape, *weights = &node->inputs[1]->shape, *dst = &node->outputs[0]->shape;
  const Product p = node_product(node);
  const Matrix a = matrix_of(src, p.src_m, p.src_k), b = matrix_of(weights, p.weights_n, p.weights_k);
  double *own_a = ARENA_ARRAY(e->scratch, double, (size_t)(a.rows * a.columns) + 1);
  double *own_b = ARENA_ARRAY(e->scratch, double, (size_t)(b.rows * b.columns) + 1);
  if (!own_a || !own_b) return false;
  Shape batch = *dst;
  batch.rank = p.nbatch;
  Walk w = walk_over(&batch);
  walk_batch(&w, 0, &p, src);
  walk_batch(&w, 1, &p, weights);
  for (; w.i < w.nelems && shape_nelems(dst); walk_step(&w)) {
    matrix_copy(&a, &e->inputs[0][w.at[0]], own_a);
    matrix_copy(&b, &e->inputs[1][w.at[1]], own_b);
    multiply(e, own_a, own_b, (int64_t[]){a.rows, b.rows, a.columns}, &e->outputs[0][w.i * a.rows * b.rows]);
  }
  if (!e->inputs[2]) return true;
  Walk at = walk_over(dst);
  walk_broadcast(&at, 0, &node->inputs[2]->shape);
  for (; at.i < at.nelems; walk_step(&at)) e->outputs[0][at.i] += e->inputs[2][at.at[0]];
  return true;
}
