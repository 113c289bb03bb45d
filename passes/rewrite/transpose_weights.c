// Transposes constant weights of products of few rows, so that vectors of results read neighbouring elements. Otherwise
// each call copies the weights into panels, which takes longer than the products of so few rows: exporters store a
// linear layer's weights as [outputs, inputs].
//
// Results keep their bits: with fewer rows than a vector has lanes, vectors lie along the columns of results in either
// form, and the order of sums depends on extents alone.
#include "passes/rewrite/passes.h"

#include "ir/operators/operator.h"

#include <string.h>

// Measured on a Xeon with AVX-512, transposed in place of not: 1 row of 128 x 3264, 0.33 of the time; 1 and 14 rows of
// 768 x 3072, 0.25 and 0.49; 14 rows of 512 x 64, 0.75; 16 rows of 1000 x 2048, 1.22.
enum {
  WEIGHTS = 1,        // the operand
  LEAST_COLUMNS = 16, // the lanes of a vector
  MOST_ROWS = LEAST_COLUMNS - 1,
  MOST_ELEMENTS = 1 << 26, // of a tensor
  MOST_IN_ALL = 1 << 28,
  BLOCK = 16 // rows and columns of a block of which both forms fit in the L1 cache
};

// Whether vectors of results would read the weights [columns, sum] across their rows.
static bool is_transposable(const Node *node, int64_t left) {
  if (node->op->id != OP_MatMul || !node_bool(node, "transpose_b")) return false;
  const Value *v = node->inputs[WEIGHTS], *dst = node->outputs[0];
  if (!v->constant || v->constant->is_splat || v->is_output || v->uses->next || v->shape.rank != 2) return false;
  if (!(TYPE_BIT(v->type) & TYPES_FLOAT) || node->inputs[0]->shape.rank < 2) return false;
  const int64_t columns = extent_value(v->shape.extent[0]), nelems = shape_nelems(&v->shape);
  if (shape_monomial(&v->shape) || shape_monomial(&dst->shape) || nelems > MOST_ELEMENTS || nelems > left) return false;
  return columns >= LEAST_COLUMNS && shape_nelems(&dst->shape) / columns <= MOST_ROWS;
}

static void transpose(Type type, const void *from, void *to, int64_t nrows, int64_t ncolumns) {
  const size_t nbytes = type_nbytes(type);
  for (int64_t i0 = 0; i0 < nrows; i0 += BLOCK)
    for (int64_t k0 = 0; k0 < ncolumns; k0 += BLOCK)
      for (int64_t i = i0; i < nrows && i < i0 + BLOCK; i++)
        for (int64_t k = k0; k < ncolumns && k < k0 + BLOCK; k++)
          memcpy((char *)to + (size_t)(k * nrows + i) * nbytes,
                 (const char *)from + (size_t)(i * ncolumns + k) * nbytes, nbytes);
}

// False: out of memory.
static bool transpose_weights(Graph *g, Node *node) {
  Value *v = node->inputs[WEIGHTS];
  const Extent rows = v->shape.extent[0], columns = v->shape.extent[1];
  Constant *constant = ARENA_NEW(&g->arena, Constant);
  void *data = arena_array(&g->arena, (size_t)shape_nelems(&v->shape), type_nbytes(v->type));
  if (!constant || !data) return false;
  transpose(v->type, v->constant->data, data, extent_value(rows), extent_value(columns));
  constant->data = data;
  v->constant = constant;
  v->shape.extent[0] = columns;
  v->shape.extent[1] = rows;
  node_attribute_slot(node, "transpose_b")->boolean = false;
  return true;
}

bool pass_transpose_weights(Graph *g, PassContext *c) {
  int64_t left = MOST_IN_ALL;
  for (size_t i = 0; i < g->nnodes && !c->failed; i++) {
    if (!is_transposable(g->nodes[i], left)) continue;
    left -= shape_nelems(&g->nodes[i]->inputs[WEIGHTS]->shape);
    if (!transpose_weights(g, g->nodes[i])) pass_out_of_memory(c);
  }
  return left < MOST_IN_ALL;
}
