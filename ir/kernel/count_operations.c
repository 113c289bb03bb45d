// Counts a kernel's arithmetic operations from its expressions.
#include "ir/kernel/kernel.h"
#include "ir/kernel/scatter.h"

#include "ir/operators/contraction.h"
#include "ir/operators/window.h"

#include <math.h>
#include <string.h>

// The number of products of a convolution, or of the convolution whose gradient the node is, products with padding
// included. 0: another operator.
static double convolution_nproducts(const Node *node) {
  const Value *weights = node_side(node, SIDE_WEIGHTS), *small = node_side(node, SIDE_SMALL);
  if (!weights || !small) return 0;
  const double nsmall = (double)extent_value(weights->shape.extent[node_convolution(node).weights_small]);
  return nsmall > 0 ? (double)shape_nelems(&small->shape) * (double)shape_nelems(&weights->shape) / nsmall : 0;
}

// An upper bound on a kernel's products: the kernel of a strided convolution's gradient goes over taps that belong to
// no window, which add no products.
static double most_products(const Kernel *k) {
  double most = 0;
  for (size_t i = 0; i < k->nnodes; i++) most = fmax(most, convolution_nproducts(k->nodes[i]));
  return most > 0 ? most : INFINITY;
}

// Marks operands that count as values. Offsets of loads and operands of masks do not count.
static void mark_operands(const Kernel *k, const Expr *e, bool *is_used) {
  if (e->op == EXPR_LOAD) return;
  for (int i = 0; i < 3; i++)
    if (!expr_is_mask(k, e->args[i])) is_used[e->args[i]] = true;
}

static bool is_sum_of_products(const Kernel *k, const Expr *e) {
  return e->op == EXPR_REDUCE_SUM && k->exprs[e->args[0]].op == EXPR_MUL;
}

bool kernel_count_operations(const Kernel *k, Arena *arena, double *out) {
  bool *is_used = ARENA_ARRAY(arena, bool, k->nexprs), *is_product = ARENA_ARRAY(arena, bool, k->nexprs);
  const double most = most_products(k);
  Scatter scatter;
  if (kernel_find_scatter(k, &scatter)) {
    *out = (double)access_nelems_along(k, &k->accesses[scatter.from], ~0U);
    return true;
  }
  double total = 0;
  if (!is_used || !is_product) return false;
  memset(is_used, 0, k->nexprs * sizeof *is_used);
  memset(is_product, 0, k->nexprs * sizeof *is_product);
  for (size_t i = 0; i < k->nstores; i++) is_used[k->stores[i].value] = true;
  for (ExprId id = (ExprId)k->nexprs; id-- > 1;) {
    const Expr *e = &k->exprs[id];
    if (!is_used[id]) continue;
    const bool sums = is_sum_of_products(k, e);
    const double nelems = (double)axes_nelems(k, e->axes | e->reduced);
    mark_operands(k, e, is_used);
    if (sums) is_product[e->args[0]] = true;
    total += expr_info[e->op].operations * (sums || is_product[id] ? fmin(nelems, most) : nelems);
  }
  *out = k->slice_group ? total * (double)k->slice_group->nslices : total;
  return true;
}
