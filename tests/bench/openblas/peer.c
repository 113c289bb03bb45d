// OpenBLAS as a peer: graphs of matrix products in f32, each a call of sgemm, or of sgemv for a vector, for each matrix
// of the batch. A bias is copied to dst, to which the product is then added.
#include "tests/bench/peer.h"

#include "ir/operators/contraction.h"

#include <cblas.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Matrix {
  const float *data;
  int64_t batch_stride[MAX_RANK]; // along dst's batch axes; 0: broadcast
  int leading;                    // elements from row to row
  CBLAS_TRANSPOSE transpose;
} Matrix;

typedef struct Call {
  int m, n, k, nbatch;
  int64_t batch_extent[MAX_RANK], nmatrices; // nmatrices: the product of the extents
  Matrix a, b;
  const float *bias; // [n]; NULL: none
  float *dst;
} Call;

typedef struct OpenblasPeer {
  size_t ncalls;
  Call calls[];
} OpenblasPeer;

static const char *start(const char *isa) {
  static char name[64];
  static const char *const threading[] = {"serial", "pthreads", "OpenMP"};
  const int parallel = openblas_get_parallel();
  const char *version = OPENBLAS_VERSION;
  version += strcspn(version, "0123456789");
  (void)isa;
  snprintf(name, sizeof name, "OpenBLAS %.*s (%s, %s)", (int)strcspn(version, " "), version, openblas_get_corename(),
           parallel >= 0 && parallel < 3 ? threading[parallel] : "?");
  return name;
}

// The data of a graph's input or output; NULL: v is neither.
static float *place_of(const PeerTask *task, const Value *v) {
  const Graph *g = task->graph;
  for (size_t i = 0; i < g->ninputs; i++)
    if (g->inputs[i] == v) return task->inputs[i].data;
  for (size_t i = 0; i < g->noutputs; i++)
    if (g->outputs[i] == v) return task->outputs[i].data;
  return NULL;
}

static int64_t extent_at(const Value *v, int axis) {
  return axis < 0 ? 1 : extent_value(v->shape.extent[axis]);
}

// row, column: the axes for rows and columns of the product, -1 for none.
static bool matrix_init(Matrix *o, const PeerTask *task, const Value *v, const Product *p, int row, int column) {
  const int rank = v->shape.rank;
  *o = (Matrix){.data = place_of(task, v), .transpose = row > column && column >= 0 ? CblasTrans : CblasNoTrans};
  o->leading = (int)(row < 0 || column < 0 ? extent_at(v, column) : extent_at(v, rank - 1));
  int64_t stride = extent_at(v, row) * extent_at(v, column);
  for (int i = p->nbatch - 1; i >= 0; i--) {
    const int axis = product_batch_axis(p, rank, i);
    if (axis < 0 || extent_at(v, axis) == 1) continue;
    o->batch_stride[i] = stride;
    stride *= extent_at(v, axis);
  }
  return o->data && v->type == TYPE_F32;
}

static bool call_init(Call *c, const PeerTask *task, const Node *node) {
  if (node->op->id != OP_MatMul) return false;
  const Value *a = node->inputs[0], *b = node->inputs[1], *bias = node->inputs[2], *dst = node->outputs[0];
  const Product p = node_product(node);
  *c = (Call){.m = (int)extent_at(a, p.src_m),
              .n = (int)extent_at(b, p.weights_n),
              .k = (int)extent_at(a, p.src_k),
              .nbatch = p.nbatch,
              .nmatrices = 1,
              .dst = place_of(task, dst)};
  for (int i = 0; i < p.nbatch; i++) c->nmatrices *= c->batch_extent[i] = extent_at(dst, i);
  if (bias) {
    c->bias = place_of(task, bias);
    if (!c->bias || bias->type != TYPE_F32 || shape_nelems(&bias->shape) != c->n) return false;
    if (extent_at(bias, bias->shape.rank - 1) != c->n) return false;
  }
  return c->dst && dst->type == TYPE_F32 && matrix_init(&c->a, task, a, &p, p.src_m, p.src_k) &&
         matrix_init(&c->b, task, b, &p, p.weights_k, p.weights_n);
}

static void *make(const PeerTask *task) {
  const Graph *g = task->graph;
  OpenblasPeer *p = calloc(1, sizeof *p + g->nnodes * sizeof *p->calls);
  bool ok = p;
  for (size_t i = 0; ok && i < g->nnodes; i++) ok = call_init(&p->calls[p->ncalls++], task, g->nodes[i]);
  if (ok) {
    openblas_set_num_threads(task->threads);
    return p;
  }
  free(p);
  return NULL;
}

static const float *matrix_of(const Call *c, const Matrix *o, int64_t number) {
  const float *data = o->data;
  for (int i = c->nbatch - 1; i >= 0; i--) {
    data += number % c->batch_extent[i] * o->batch_stride[i];
    number /= c->batch_extent[i];
  }
  return data;
}

static void spread_bias(const Call *c, float *to) {
#pragma omp parallel for schedule(static) if (c->m > 16)
  for (int row = 0; row < c->m; row++) memcpy(to + (size_t)row * (size_t)c->n, c->bias, (size_t)c->n * sizeof *to);
}

static void multiply(const Call *c, int64_t number) {
  const float *a = matrix_of(c, &c->a, number), *b = matrix_of(c, &c->b, number);
  float *to = c->dst + number * c->m * c->n;
  const float kept = c->bias ? 1 : 0;
  if (c->bias) spread_bias(c, to);
  if (c->m == 1) { // to = b' a
    const bool is_transposed = c->b.transpose == CblasTrans;
    cblas_sgemv(CblasRowMajor, is_transposed ? CblasNoTrans : CblasTrans, is_transposed ? c->n : c->k,
                is_transposed ? c->k : c->n, 1, b, c->b.leading, a, 1, kept, to, 1);
  } else if (c->n == 1) {
    const bool is_transposed = c->a.transpose == CblasTrans;
    cblas_sgemv(CblasRowMajor, c->a.transpose, is_transposed ? c->k : c->m, is_transposed ? c->m : c->k, 1, a,
                c->a.leading, b, 1, kept, to, 1);
  } else {
    cblas_sgemm(CblasRowMajor, c->a.transpose, c->b.transpose, c->m, c->n, c->k, 1, a, c->a.leading, b, c->b.leading,
                kept, to, c->n);
  }
}

static bool run(void *self) {
  const OpenblasPeer *p = self;
  for (size_t i = 0; i < p->ncalls; i++)
    for (int64_t number = 0; number < p->calls[i].nmatrices; number++) multiply(&p->calls[i], number);
  return true;
}

static const char *form(const void *self) {
  (void)self;
  return "";
}

const PeerLibrary openblas_library = {"OpenBLAS", "openblas", start, make, run, form, free};
