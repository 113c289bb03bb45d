// Verifies the conditions of loads with bounds: exactly the elements inside the tensor are loaded.
#include "ir/loops/verifying.h"

static bool is_index_of(const Verifying *v, const Index *i, const Bound *b) {
  Linear expected = {0};
  const Linear is = linear_of(v, i);
  linear_add_number(&expected, b->offset, 0);
  for (int axis = 0; axis < v->k->naxes; axis++)
    linear_add_var(&expected, VAR_AXIS, (uint32_t)axis, b->factor[axis], 0);
  return linear_equals(&is, &expected);
}

static bool is_test_of(const Verifying *v, const Index *test, const Bound *b) {
  return test && test->op == INDEX_LESS && index_is(test->args[1], b->extent) && is_index_of(v, test->args[0], b);
}

// Removes the last test of a conjunction and returns it; NULL: there is none.
static const Index *take_last(const Index **tests) {
  const Index *last = *tests;
  const bool has_others = last && last->op == INDEX_BOTH;
  *tests = has_others ? last->args[0] : NULL;
  return has_others ? last->args[1] : last;
}

bool verify_bounds(Verifying *v, const LoopNode *n) {
  const bool is_load = v->k->exprs[n->expr].op == EXPR_LOAD && n->load != LOAD_SPILLED;
  const Access *a = &v->k->accesses[n->access];
  const int lane_axis = n->is_vector ? loop_lane_axis(v->plan) : -1;
  const Index *tests = n->inside;
  bool has_lanes = false;
  if (!verify_index(v, n, n->inside) || !verify_index(v, n, n->within)) return false;
  if (is_load && access_has_conditions(v->k, a) && n->address.base != BASE_TENSOR)
    return verify_fail(
        v, n, "a load with conditions must be relative to its tensor: a row pointer may point outside of the tensor");
  for (size_t i = is_load ? a->nbounds : 0; i-- > 0;) {
    const Bound *b = &a->bounds[i];
    if (bound_always_holds(v->k, b)) continue;
    if (lane_axis < 0 || !b->factor[lane_axis]) {
      if (!is_test_of(v, take_last(&tests), b))
        return verify_fail(v, n,
                           "its condition must test its access's bounds in order: 0 <= index < %lld for bound %zu",
                           (long long)b->extent, i);
      continue;
    }
    has_lanes = true;
    if (!n->within || n->factor != b->factor[lane_axis] || n->extent != b->extent || !is_index_of(v, n->within, b))
      return verify_fail(
          v, n,
          "its condition on lanes has factor %lld and extent %lld, expected the index of bound %zu of its "
          "access, factor %lld and extent %lld",
          (long long)n->factor, (long long)n->extent, i, (long long)b->factor[lane_axis], (long long)b->extent);
  }
  const bool has_none = !n->within && !n->factor && !n->extent;
  return (!tests && (has_lanes || has_none)) ||
         verify_fail(v, n, "it has a condition that tests no bound of its access");
}
