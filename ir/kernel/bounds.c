// Bounds of accesses: at which indices they hold, by interval arithmetic over the whole domain.
#include "ir/kernel/kernel.h"

void bound_range(const Kernel *k, const Bound *b, int64_t *least, int64_t *most) {
  *least = *most = b->offset;
  for (int axis = 0; axis < k->naxes; axis++) {
    const int64_t reach = k->axes[axis].extent > 0 ? b->factor[axis] * (k->axes[axis].extent - 1) : 0;
    *(reach < 0 ? least : most) += reach;
  }
}

bool bound_of_index(const Kernel *k, ExprId id, Bound *b) {
  const Expr *e = &k->exprs[id];
  *b = (Bound){.offset = 0};
  for (; e->op == EXPR_FMA; e = &k->exprs[e->args[2]]) {
    const Expr *factor = &k->exprs[e->args[0]], *index = &k->exprs[e->args[1]];
    if (factor->op != EXPR_CONSTANT || index->op != EXPR_INDEX) return false;
    b->factor[__builtin_ctz(index->axes)] += (int64_t)factor->number;
  }
  if (e->op == EXPR_INDEX) b->factor[__builtin_ctz(e->axes)]++;
  else b->offset = (int64_t)e->number;
  return e->op == EXPR_INDEX || e->op == EXPR_CONSTANT;
}

bool bound_always_holds(const Kernel *k, const Bound *b) {
  int64_t least, most;
  bound_range(k, b, &least, &most);
  return least >= 0 && most < b->extent;
}

// The number of indices in 0 .. extent - 1 with from + index * step < 0; step > 0.
static int64_t count_below(int64_t from, int64_t step, int64_t extent) {
  if (from >= 0) return 0;
  const int64_t count = (-from - 1) / step + 1;
  return count < extent ? count : extent;
}

void bound_interior(const Kernel *k, const Bound *b, int axis, int64_t *begin, int64_t *end) {
  int64_t least, most;
  Bound others = *b;
  others.factor[axis] = 0;
  bound_range(k, &others, &least, &most);
  const int64_t extent = k->axes[axis].extent, factor = b->factor[axis];
  if (factor > 0) {
    *begin = count_below(least, factor, extent);
    *end = count_below(most - b->extent, factor, extent);
  } else {
    *begin = count_below(b->extent - 1 - most, -factor, extent);
    *end = count_below(-least - 1, -factor, extent);
  }
  if (*begin >= *end) *begin = *end = extent;
}

bool access_has_conditions(const Kernel *k, const Access *access) {
  bool has_any = false;
  for (size_t i = 0; i < access->nbounds; i++) has_any |= !bound_always_holds(k, &access->bounds[i]);
  return has_any;
}

bool bound_never_holds(const Kernel *k, const Bound *b) {
  int64_t least, most;
  bound_range(k, b, &least, &most);
  return !b->extent || most < 0 || least >= b->extent;
}

int64_t access_nelems_along(const Kernel *k, const Access *access, AxisSet axes) {
  AxisSet others = access_axes(k, access) & axes;
  int64_t nelems = 1;
  for (size_t i = 0; i < access->nbounds; i++) {
    const Bound *b = &access->bounds[i];
    const int64_t reached = axes_nelems(k, bound_axes(b) & axes);
    nelems *= reached < b->extent ? reached : b->extent;
    others &= ~bound_axes(b);
  }
  return nelems * axes_nelems(k, others);
}

static void print_bound(const Kernel *k, const Bound *b, Text *out) {
  const char *before = "";
  for (int axis = 0; axis < k->naxes; axis++) {
    const int64_t factor = b->factor[axis];
    if (!factor) continue;
    text_add_string(out, factor < 0 ? (*before ? " - " : "-") : before);
    if (factor != 1 && factor != -1) text_format(out, "%lld * ", (long long)(factor < 0 ? -factor : factor));
    text_add_string(out, k->axes[axis].name);
    before = " + ";
  }
  if (b->offset)
    text_format(out, b->offset < 0 ? " - %lld" : " + %lld", (long long)(b->offset < 0 ? -b->offset : b->offset));
  text_format(out, " in 0..%lld", (long long)b->extent);
}

void access_print_bounds(const Kernel *k, const Access *access, Text *out) {
  for (size_t i = 0; i < access->nbounds; i++) {
    text_add_string(out, i ? ", " : "[");
    print_bound(k, &access->bounds[i], out);
  }
  text_add_string(out, "], else ");
  text_add_number(out, access->outside, !k->is_f64);
}
