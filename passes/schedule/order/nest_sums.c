// Rebuilds all expressions, in order; a reduction over the vector axis and other axes becomes nested reductions.
#include "passes/schedule/order/scheduling.h"

#include "ir/kernel/simplify.h"

static bool varies(const Kernel *k, ExprId id, AxisSet axes) {
  return k->exprs[id].axes & axes;
}

// The reduction of `a` over `axis`, with factors that do not vary over the axis moved out of the sum. The recursion is
// as deep as the product has factors.
static ExprId reduce_factored(Kernel *k, ExprOp reduction, ExprId a, AxisSet axis) { // NOLINT(misc-no-recursion)
  const Expr e = k->exprs[a];
  for (int side = 0; reduction == EXPR_REDUCE_SUM && e.op == EXPR_MUL && !e.is_element && side < 2; side++) {
    ExprId factor = e.args[side], rest = e.args[1 - side];
    if (varies(k, factor, axis) || !varies(k, rest, axis)) continue;
    return expr_binary(k, EXPR_MUL, factor, reduce_factored(k, reduction, rest, axis));
  }
  return expr_reduce(k, reduction, a, axis);
}

static ExprId nested(Kernel *k, const Expr *e, ExprId operand, AxisSet vector, AxisSet inner) {
  ExprId sum = reduce_factored(k, e->op, operand, vector);
  sum = expr_reduce(k, e->op, sum, e->reduced & inner & ~vector);
  return expr_reduce(k, e->op, sum, e->reduced & ~inner);
}

bool kernel_nest_sums(Kernel *k, int vector_axis, AxisSet inner) {
  const size_t count = k->nexprs;
  const AxisSet vector = 1U << vector_axis;
  ExprId *now = KERNEL_ARRAY(k, ExprId, count); // by old id: the new id
  for (ExprId i = 1; i < count && !k->out_of_memory; i++) {
    const Expr e = k->exprs[i];
    ExprId args[3];
    for (int a = 0; a < 3; a++) args[a] = now[e.args[a]];
    if (!args[0]) now[i] = i; // a leaf
    else if (expr_is_reduction(&e) && e.reduced & vector) now[i] = nested(k, &e, args[0], vector, inner);
    else now[i] = expr_with_arguments(k, &e, args);
    expr_label(k, now[i], e.label);
  }
  for (size_t i = 0; i < k->nstores && !k->out_of_memory; i++) k->stores[i].value = now[k->stores[i].value];
  if (!k->out_of_memory) kernel_drop_unneeded(k);
  return !k->out_of_memory;
}
