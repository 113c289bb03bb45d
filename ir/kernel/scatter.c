// Recognises scatter kernels by their expressions.
#include "ir/kernel/scatter.h"

static const Expr *argument(const Kernel *k, const Expr *e, int i) {
  return &k->exprs[e->args[i]];
}

static bool is_number(const Expr *e, double number, Monomial monomial) {
  return (e->op == EXPR_CONSTANT || e->op == EXPR_COUNT) && e->number == number && e->monomial == monomial;
}

static bool is_plain_load(const Kernel *k, const Expr *e) {
  const Access *a = &k->accesses[e->access];
  return e->op == EXPR_LOAD && !e->args[0] && !e->is_s64 && a->value && !a->nbounds && !a->offset;
}

// Matches index < 0 ? index + extent : index.
static bool find_indices(const Kernel *k, const Expr *row, Scatter *s) {
  const Axis *rows = &k->axes[s->rows];
  if (row->op != EXPR_SELECT || argument(k, row, 0)->op != EXPR_GT) return false;
  const Expr *test = argument(k, row, 0), *sum = argument(k, row, 1), *index = argument(k, row, 2);
  s->indices = index->access;
  if (!is_plain_load(k, index) || index->axes != 1U << s->summed || k->accesses[s->indices].stride[s->summed] != 1 ||
      k->accesses[s->indices].stride_monomial[s->summed])
    return false;
  return is_number(argument(k, test, 0), 0, 0) && test->args[1] == row->args[2] && sum->op == EXPR_ADD &&
         sum->args[0] == row->args[2] && is_number(argument(k, sum, 1), (double)rows->extent, rows->monomial);
}

// Whether the access is dense along the axes, the last with stride 1; -1 stands for no axis.
static bool is_dense(const Kernel *k, const Access *a, const int axes[3]) {
  int64_t stride = 1;
  Monomial monomial = 0;
  for (int i = 2; i >= 0; i--) {
    if (axes[i] < 0) continue;
    if (a->stride[axes[i]] != stride || a->stride_monomial[axes[i]] != monomial) return false;
    stride *= k->axes[axes[i]].extent;
    monomial += k->axes[axes[i]].monomial;
  }
  return true;
}

bool kernel_find_scatter(const Kernel *k, Scatter *s) {
  const Type type = kernel_type(k);
  *s = (Scatter){.batch = -1, .columns = -1};
  if (k->nstores != 1 || k->slice_group || k->naxes < 3 || k->naxes > 4) return false;
  s->sum = k->stores[0].value;
  s->to = k->stores[0].access;
  const Expr *sum = &k->exprs[s->sum], *choice = argument(k, sum, 0);
  if (sum->op != EXPR_REDUCE_SUM || sum->reduced & (sum->reduced - 1) || choice->op != EXPR_SELECT) return false;
  const Expr *is_own = argument(k, choice, 0), *from = argument(k, choice, 1);
  if (is_own->op != EXPR_EQ || argument(k, is_own, 1)->op != EXPR_INDEX || !is_plain_load(k, from)) return false;
  if (!is_number(argument(k, choice, 2), 0, 0)) return false;
  s->from = from->access;
  s->summed = __builtin_ctz(sum->reduced);
  s->rows = __builtin_ctz(argument(k, is_own, 1)->axes);
  if (!k->axes[s->summed].extent && !k->axes[s->summed].monomial) return false; // the sum is empty
  for (int axis = 0; axis < k->naxes; axis++) {
    if (axis == s->summed || axis == s->rows) continue;
    if (k->accesses[s->to].stride[axis] == 1 && !k->accesses[s->to].stride_monomial[axis]) s->columns = axis;
    else s->batch = axis;
  }
  const Access *to = &k->accesses[s->to];
  if (s->columns < 0 || (s->batch < 0) != (k->naxes == 3) || s->rows == s->summed || to->offset) return false;
  if (to->type != type || k->accesses[s->from].type != type) return false;
  return find_indices(k, argument(k, is_own, 0), s) && is_dense(k, to, (const int[]){s->batch, s->rows, s->columns}) &&
         is_dense(k, &k->accesses[s->from], (const int[]){s->batch, s->summed, s->columns});
}

bool kernel_is_scatter(const Kernel *k) {
  return kernel_find_scatter(k, &(Scatter){0});
}

void kernel_add_scatter_columns(Kernel *k) {
  if (k->nstores != 1 || k->naxes < 2 || k->naxes > 3 || kernel_is_scatter(k)) return;
  const ExprId sum = k->stores[0].value, choice = k->exprs[sum].args[0], from = k->exprs[choice].args[1];
  if (k->exprs[sum].op != EXPR_REDUCE_SUM || k->exprs[choice].op != EXPR_SELECT || k->exprs[from].op != EXPR_LOAD)
    return;
  const int columns = k->naxes++;
  const ExprId ids[] = {sum, choice, from};
  Access *const accesses[] = {&k->accesses[k->stores[0].access], &k->accesses[k->exprs[from].access]};
  k->axes[columns] = (Axis){.name = "column", .extent = 1};
  for (size_t i = 0; i < 3; i++) k->exprs[ids[i]].axes |= 1U << columns;
  for (size_t i = 0; i < 2; i++) accesses[i]->stride[columns] = 1;
  if (kernel_is_scatter(k)) return;
  for (size_t i = 0; i < 3; i++) k->exprs[ids[i]].axes &= ~(1U << columns);
  for (size_t i = 0; i < 2; i++) accesses[i]->stride[columns] = 0;
  k->naxes--;
}
