// Products of matrices, computed from their formula: each element is a sum of products in the formula's order. LANES
// neighbouring elements are computed at a time, each with the operations that it would have alone.
#include "ir/operators/contraction.h"
#include "backends/interpreter/dense.h"
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"
#include "ir/support/budget.h"

// A matrix in an array that may have other axes.
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

typedef struct Multiplying { // LANES columns of a product
  const Evaluation *e;
  const double *a, *lanes;
  int64_t depth, columns, first, width;
  double *dst;
} Multiplying;

static void multiply_rows(const LanesLoop *loop, int64_t begin, int64_t end, int thread) {
  const Multiplying *p = loop->args;
  (void)thread;
  for (int64_t m = begin; m < end; m++) {
    Lanes sums = {0};
    Noise noise = noise_after(p->e->noise, m * p->width);
    lanes_add(&sums, &(Products){&p->a[m * p->depth], p->lanes, &(Term){0, 0}, 1, p->depth, 1, LANES}, p->e->noise);
    for (int64_t n = 0; n < p->width; n++) {
      const Sum sum = lanes_sum(&sums, n);
      p->dst[m * p->columns + p->first + n] = sum_value(&sum, p->e->noise ? &noise : NULL);
    }
  }
}

// One product. `a`: [rows, depth]; `from`: the array of matrix b; `lanes`: memory for [depth, LANES].
static void multiply(const Evaluation *e, const double *a, const Matrix *b, const double *from, int64_t rows,
                     double *lanes, double *dst) {
  const int64_t depth = b->rows, columns = b->columns;
  for (int64_t first = 0; first < columns; first += LANES) {
    const int64_t width = least(columns - first, LANES);
    copy_lanes(lanes, &from[first * b->column_stride], depth, b->row_stride, width, b->column_stride);
    Multiplying p = {e, a, lanes, depth, columns, first, width, NULL};
    p.dst = dst;
    lanes_for(&(LanesLoop){rows, lanes_threads(rows, depth), multiply_rows, &p});
    if (e->noise) *e->noise = noise_after(e->noise, rows * width);
  }
}

uint64_t scratch_of_product(const Evaluation *e) {
  if (!shape_nelems(&e->node->outputs[0]->shape)) return 0; // there may be more of a factor's rows than memory
  const Product p = node_product(e->node);
  const Shape *src = &e->node->inputs[0]->shape;
  const uint64_t depth = (uint64_t)extent_on(src, p.src_k), rows = (uint64_t)extent_on(src, p.src_m);
  return nbytes_multiply(nbytes_multiply(nbytes_add(rows, LANES), nbytes_add(depth, 1)), sizeof(double));
}

bool interpret_MatMul(const Evaluation *e) {
  const Node *node = e->node;
  const Shape *src = &node->inputs[0]->shape, *weights = &node->inputs[1]->shape, *dst = &node->outputs[0]->shape;
  if (!shape_nelems(dst)) return true;
  const Product p = node_product(node);
  const Matrix a = matrix_of(src, p.src_m, p.src_k), b = matrix_of(weights, p.weights_k, p.weights_n);
  double *rows = ARENA_ARRAY(e->scratch, double, (size_t)(a.rows * a.columns) + 1);
  double *lanes = ARENA_ARRAY(e->scratch, double, (size_t)(b.rows + 1) * LANES);
  if (!rows || !lanes) return false;
  Shape batch = *dst;
  batch.rank = p.nbatch;
  Walk w = walk_over(&batch);
  walk_batch(&w, 0, &p, src);
  walk_batch(&w, 1, &p, weights);
  for (; w.i < w.nelems; walk_step(&w)) {
    matrix_copy(&a, &e->inputs[0][w.at[0]], rows);
    multiply(e, rows, &b, &e->inputs[1][w.at[1]], a.rows, lanes, &e->outputs[0][w.i * a.rows * b.columns]);
  }
  if (!e->inputs[2]) return true;
  Walk at = walk_over(dst);
  walk_broadcast(&at, 0, &node->inputs[2]->shape);
  for (; at.i < at.nelems; walk_step(&at)) e->outputs[0][at.i] += e->inputs[2][at.at[0]];
  return true;
}
