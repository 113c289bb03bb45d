// Verifies expressions, then accesses, then stores. Each check relies on the checks before.
#include "ir/kernel/verify.h"

#include "ir/kernel/open_sum.h"
#include "ir/kernel/verifying.h"
#include "ir/support/escape.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { AXIS_NAMES = 128 }; // bytes

static bool __attribute__((format(printf, 3, 4)))
wrong_expr(const KernelVerifying *v, ExprId id, const char *format, ...) {
  const ExprOp op = v->k->exprs[id].op;
  va_list args;
  text_format(v->why, "expression %u (%s): ", id, op < EXPR_OP_COUNT && expr_info[op].name ? expr_info[op].name : "?");
  va_start(args, format);
  text_format_list(v->why, format, args);
  va_end(args);
  text_add_string(v->why, "\n");
  return false;
}

static const char *access_name(const KernelVerifying *v, const Access *a) {
  if (a->value) return a->value->name;
  return a->type == TYPE_NONE             ? "an index expression"
         : a->temporary < v->ntemporaries ? v->temporaries[a->temporary].name
                                          : "a temporary";
}

bool wrong_access(const KernelVerifying *v, AccessId id, const char *format, ...) {
  va_list args;
  text_format(v->why, "access %u (", id);
  text_add_user_string(v->why, SINK_TERMINAL, access_name(v, &v->k->accesses[id]));
  text_add_string(v->why, "): ");
  va_start(args, format);
  text_format_list(v->why, format, args);
  va_end(args);
  text_add_string(v->why, "\n");
  return false;
}

// "d0 d2", or "no axis", written to names; returns names.
static const char *axis_names(const Kernel *k, AxisSet axes, char names[AXIS_NAMES]) {
  size_t n = 0;
  snprintf(names, AXIS_NAMES, "no axis");
  for (int axis = 0; axis < k->naxes && n < AXIS_NAMES; axis++)
    if (axes >> axis & 1) n += (size_t)snprintf(names + n, AXIS_NAMES - n, "%s%s", n ? " " : "", k->axes[axis].name);
  return names;
}

// Expressions

static bool is_mask_argument(const Expr *e, int argument) {
  return e->op == EXPR_SELECT && argument == 0;
}

static bool verify_arguments(const KernelVerifying *v, ExprId id) {
  const Expr *e = &v->k->exprs[id];
  for (int a = 0; a < 3; a++) {
    if (a >= expr_info[e->op].narguments && !(e->op == EXPR_LOAD && a == 0)) {
      if (e->args[a])
        return wrong_expr(v, id, "it has argument %d, expected %d arguments", a + 1, expr_info[e->op].narguments);
      continue;
    }
    if (!e->args[a] && e->op == EXPR_LOAD) continue;
    if (!e->args[a]) return wrong_expr(v, id, "argument %d of %d is missing", a + 1, expr_info[e->op].narguments);
    if (e->args[a] >= id)
      return wrong_expr(v, id, "argument %d is expression %u, expected an expression before it", a + 1, e->args[a]);
    if (expr_is_mask(v->k, e->args[a]) != is_mask_argument(e, a))
      return wrong_expr(v, id, "argument %d is expression %u, expected a %s, found a %s", a + 1, e->args[a],
                        is_mask_argument(e, a) ? "mask" : "number", is_mask_argument(e, a) ? "number" : "mask");
  }
  return true;
}

static bool verify_axes(const KernelVerifying *v, ExprId id) {
  const Kernel *k = v->k;
  const Expr *e = &k->exprs[id];
  AxisSet axes = 0;
  char found[AXIS_NAMES], expected[AXIS_NAMES];
  if (e->axes >> k->naxes) return wrong_expr(v, id, "it varies over an axis beyond the kernel's %d axes", k->naxes);
  for (int a = 0; a < 3; a++) axes |= e->args[a] ? k->exprs[e->args[a]].axes : 0;
  if (expr_has_access(e)) axes |= access_axes(k, &k->accesses[e->access]);
  if (e->op == EXPR_CONSTANT || e->op == EXPR_COMBINE) return true; // may vary over further axes
  if (e->op == EXPR_INDEX)
    return (e->axes && !(e->axes & (e->axes - 1))) ||
           wrong_expr(v, id, "it is the index on %s, expected one axis", axis_names(k, e->axes, found));
  if (expr_is_reduction(e) && (e->reduced & ~axes))
    return wrong_expr(v, id, "it reduces %s, over which its operand does not vary",
                      axis_names(k, e->reduced & ~axes, found));
  if (expr_is_reduction(e)) axes &= ~e->reduced;
  return e->axes == axes || wrong_expr(v, id, "it varies over %s, expected the axes of its arguments: %s",
                                       axis_names(k, e->axes, found), axis_names(k, axes, expected));
}

static bool verify_exprs(const KernelVerifying *v) {
  const Kernel *k = v->k;
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (e->op == EXPR_NONE || e->op >= EXPR_OP_COUNT)
      return wrong_expr(v, id, "operation %d does not exist", (int)e->op);
    if (e->op == EXPR_COMBINE && !v->is_scheduled)
      return wrong_expr(v, id, "only a scheduled kernel has partial results to combine");
    bool has_access = expr_has_access(e) || e->op == EXPR_COMBINE;
    if (has_access && e->access >= k->naccesses)
      return wrong_expr(v, id, "it has access %u, expected one of %zu", e->access, k->naccesses);
    if (has_access && k->accesses[e->access].nbounds && (e->op != EXPR_LOAD || e->args[0] || e->is_s64))
      return wrong_expr(v, id, "its access has bounds, expected only for loads of numbers without a computed offset");
    if (k->is_s64 && !expr_info[e->op].has_s64) return wrong_expr(v, id, "kernels that compute in s64 have none");
    if (!verify_arguments(v, id) || !verify_axes(v, id)) return false;
  }
  return true;
}

// Accesses

// Adds the distance from the first element along an axis to the last; of a mask, in bits and whole vectors. A step
// backwards only adds to the distance in front of the first element.
static void add_axis(const Kernel *k, const Access *a, int axis, OpenSum *last) {
  const Axis *own = &k->axes[axis];
  const bool is_mask = access_is_mask(a), is_bits = is_mask && a->stride[axis] == 1;
  const int64_t stride = a->stride[axis] * (is_mask && !is_bits ? 8 : 1);
  const int64_t whole = (own->extent + LANES - 1) / LANES * LANES;
  if (a->panel_axis == axis + 1) {
    open_sum_add(last, (whole - LANES) * stride, a->stride_monomial[axis]);
    open_sum_add(last, LANES - 1, 0);
  } else if (stride > 0) {
    open_sum_add(last, (is_bits ? whole : own->extent) * stride, own->monomial + a->stride_monomial[axis]);
    open_sum_add(last, -stride, a->stride_monomial[axis]);
  }
}

// The number of the last accessed element, or bit of a mask. Along bounds, the last index is the tensor's last.
static OpenSum last_element(const Kernel *k, const Access *a) {
  OpenSum last = {0};
  AxisSet axes = (1U << k->naxes) - 1;
  open_sum_add(&last, access_is_mask(a) ? a->offset * 8 : a->offset, a->offset_monomial);
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *b = &a->bounds[i];
    open_sum_add(&last, b->stride * (b->extent - 1 - b->offset), b->stride_monomial);
    axes &= ~bound_axes(&a->bounds[i]);
  }
  for (int axis = 0; axis < k->naxes; axis++)
    if (axes >> axis & 1) add_axis(k, a, axis, &last);
  return last;
}

// The number of the first accessed element, negated. Along bounds, the first index is 0 in the tensor.
static OpenSum before_first_element(const Kernel *k, const Access *a) {
  OpenSum before = {0};
  AxisSet axes = (1U << k->naxes) - 1;
  open_sum_add(&before, -a->offset, a->offset_monomial);
  for (size_t i = 0; i < a->nbounds; i++) {
    open_sum_add(&before, a->bounds[i].stride * a->bounds[i].offset, a->bounds[i].stride_monomial);
    axes &= ~bound_axes(&a->bounds[i]);
  }
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(axes >> axis & 1) || a->stride[axis] >= 0) continue;
    open_sum_add(&before, -k->axes[axis].extent * a->stride[axis], k->axes[axis].monomial + a->stride_monomial[axis]);
    open_sum_add(&before, a->stride[axis], a->stride_monomial[axis]);
  }
  return before;
}

static int64_t number_at_hints(const OpenSum *s) {
  int64_t sum = 0;
  for (int i = 0; i < s->count; i++) sum += s->number[i];
  return sum;
}

// The number of elements of partial results has no monomial of its own, and is compared at the hints.
static bool verify_reach(const KernelVerifying *v, AccessId id) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  const Temporary *t = a->value ? NULL : &v->temporaries[a->temporary];
  const int64_t nelems = (t ? t->nelems : shape_nelems(&a->value->shape)) * (access_is_mask(a) ? 8 : 1);
  const OpenSum before = before_first_element(k, a);
  const int64_t first = -number_at_hints(&before);
  const bool is_behind_first = open_sum_is_never_positive(k, &before);
  OpenSum beyond = last_element(k, a);
  const int64_t at_hints = number_at_hints(&beyond);
  open_sum_add(&beyond, 1, 0);
  open_sum_add(&beyond, -nelems, t ? t->monomial : shape_monomial(&a->value->shape));
  const bool is_inside = t && t->reduction ? at_hints < nelems : open_sum_is_never_positive(k, &beyond);
  if (is_behind_first && is_inside) return true;
  return wrong_access(v, id, "it reaches elements %lld to %lld, expected 0 to %lld for all values of open dims",
                      (long long)first, (long long)at_hints, (long long)nelems - 1);
}

// The rows of a mask and the number of panels must be known to be whole.
static bool verify_whole(const KernelVerifying *v, AccessId id, int axis) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  const bool is_bits = access_is_mask(a) && a->stride[axis] == 1;
  if (!k->axes[axis].monomial) return true;
  if (is_bits && kernel_factor(k, k->axes[axis].extent, k->axes[axis].monomial) % LANES)
    return wrong_access(v, id, "the rows of its bit mask may end in the middle of a byte");
  return a->panel_axis != axis + 1 || wrong_access(v, id, "the number of its panels must not depend on an open dim");
}

// Along an axis with a factor, the access's stride must be the bound's stride times the factor. Sets *bounded to these
// axes.
static bool verify_bounds(const KernelVerifying *v, AccessId id, AxisSet *bounded) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  for (size_t i = 0; i < a->nbounds; i++) {
    const Bound *b = &a->bounds[i];
    const AxisSet axes = bound_axes(b);
    char names[AXIS_NAMES];
    if (!axes || axes >> k->naxes)
      return wrong_access(v, id, "bound %zu has a factor for no axis, or for an axis beyond the kernel's %d", i,
                          k->naxes);
    if (axes & *bounded)
      return wrong_access(v, id, "bound %zu and an earlier bound both have a factor for %s", i,
                          axis_names(k, axes & *bounded, names));
    if (b->stride < 0 || b->extent < 0)
      return wrong_access(v, id, "bound %zu has stride %lld and extent %lld, expected none below 0", i,
                          (long long)b->stride, (long long)b->extent);
    if (axes_monomial(k, axes)) return wrong_access(v, id, "the extents of bound %zu must not depend on open dims", i);
    for (int axis = 0; axis < k->naxes; axis++) {
      const int64_t stride = b->stride * b->factor[axis];
      if (b->factor[axis] && (a->stride[axis] != stride || a->stride_monomial[axis] != b->stride_monomial))
        return wrong_access(v, id, "its stride along %s is %lld, expected %lld: the bound's stride times its factor",
                            k->axes[axis].name, (long long)a->stride[axis], (long long)stride);
    }
    *bounded |= axes;
  }
  return true;
}

static bool verify_access(const KernelVerifying *v, AccessId id) {
  const Kernel *k = v->k;
  const Access *a = &k->accesses[id];
  AxisSet bounded = 0;
  if (a->nbounds && !verify_bounds(v, id, &bounded)) return false;
  if (a->type == TYPE_NONE) return !a->value || wrong_access(v, id, "it has no type, expected no tensor either");
  if (!a->value && a->temporary >= v->ntemporaries)
    return wrong_access(v, id, "it has temporary %u, expected one of %zu", a->temporary, v->ntemporaries);
  const Type type = a->value ? a->value->type : v->temporaries[a->temporary].type;
  if (a->type != type)
    return wrong_access(v, id, "its type is %s, expected the tensor's: %s", type_name(a->type), type_name(type));
  if (access_axes(k, a) >> k->naxes)
    return wrong_access(v, id, "it has a stride along an axis beyond the kernel's %d axes", k->naxes);
  for (int axis = 0; axis < k->naxes; axis++) {
    if (a->stride[axis] < 0 && !(bounded >> axis & 1))
      return wrong_access(v, id, "its stride along %s is %lld, expected at least 0 without a bound", k->axes[axis].name,
                          (long long)a->stride[axis]);
    if (!k->axes[axis].extent) return true; // the access has no elements
    if (!verify_whole(v, id, axis)) return false;
  }
  return verify_reach(v, id);
}

// Loads with a computed offset are not checked: the operator that computes the offset clamps it to the tensor.
static bool verify_accesses(const KernelVerifying *v, bool *is_computed) {
  const Kernel *k = v->k;
  memset(is_computed, 0, k->naccesses);
  for (ExprId id = 1; id < k->nexprs; id++)
    if (k->exprs[id].op == EXPR_LOAD && k->exprs[id].args[0]) is_computed[k->exprs[id].access] = true;
  for (AccessId id = 0; id < k->naccesses; id++)
    if (!is_computed[id] && !verify_access(v, id)) return false;
  return true;
}

// The axes with a single index.
static AxisSet unit_axes(const Kernel *k) {
  AxisSet axes = 0;
  for (int axis = 0; axis < k->naxes; axis++) axes |= (AxisSet)(k->axes[axis].extent == 1) << axis;
  return axes;
}

// Whether different indices access different elements. A sufficient test: in the order of growing strides, each stride
// exceeds the greatest distance that the axes before it span together.
static bool is_injective(const Kernel *k, const Access *a) {
  int64_t reached = 0;
  for (AxisSet left = access_axes(k, a); left;) {
    int next = -1;
    for (int axis = 0; axis < k->naxes; axis++)
      if (left >> axis & 1 && (next < 0 || a->stride[axis] < a->stride[next])) next = axis;
    assert(next >= 0); // access_axes returns axes of the kernel
    left &= ~(1U << next);
    if (!k->axes[next].extent) return true;
    if (k->axes[next].extent == 1) continue;
    if (a->stride[next] <= reached) return false;
    reached += (k->axes[next].extent - 1) * a->stride[next];
  }
  return true;
}

static bool verify_stores(const KernelVerifying *v) {
  const Kernel *k = v->k;
  for (size_t i = 0; i < k->nstores; i++) {
    const Store *s = &k->stores[i];
    if (s->access >= k->naccesses || !s->value || s->value >= k->nexprs) {
      text_format(v->why, "store %zu: it has access %u and expression %u, expected one of %zu and 1 to %zu\n", i,
                  s->access, s->value, k->naccesses, k->nexprs - 1);
      return false;
    }
    const Access *a = &k->accesses[s->access];
    if (!a->value) return wrong_access(v, s->access, "it is stored, expected a value of the graph");
    if (a->nbounds) return wrong_access(v, s->access, "it is stored, expected no bounds");
    // Beside an axis of extent 0, the other strides are 0. The expression need not vary over that axis.
    if (!axes_nelems(k, k->exprs[s->value].axes) || !shape_nelems(&a->value->shape)) continue;
    const AxisSet repeated = k->exprs[s->value].axes & ~access_axes(k, a) & ~unit_axes(k);
    char names[AXIS_NAMES];
    if (repeated)
      return wrong_access(v, s->access, "the stored expression %u varies over %s, along which the access has no stride",
                          s->value, axis_names(k, repeated, names));
    if (!is_injective(k, a)) return wrong_access(v, s->access, "two different indices store the same element");
  }
  return true;
}

bool verify_any_kernel(const KernelVerifying *v) {
  Arena scratch;
  arena_init(&scratch, v->k->arena->allocator);
  bool *is_computed = ARENA_ARRAY(&scratch, bool, v->k->naccesses + 1);
  if (!is_computed) v->why->out_of_memory = true;
  const bool is_sound =
      !v->why->out_of_memory && verify_exprs(v) && verify_accesses(v, is_computed) && verify_stores(v);
  arena_deinit(&scratch);
  return is_sound;
}

bool kernel_verify(const Kernel *k, Text *why) {
  return verify_any_kernel(&(KernelVerifying){.k = k, .why = why});
}
