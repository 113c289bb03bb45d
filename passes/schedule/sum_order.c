// The order of additions, step by step: axes, splits of axes, loops, and fused products.
#include "passes/schedule/sum_order.h"

#include "passes/schedule/sum_order_internal.h"

Schedule *kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides) {
  static const ScheduleOverrides none;
  k->costs = costs_or_usual(k->costs);
  Scheduling s = {.k = k,
                  .schedule = schedule_new(k),
                  .overrides = overrides ? overrides : &none,
                  .vector_axis = k->naxes ? vector_axis : 0};
  if (!s.schedule || (k->naxes && !schedule_choose_axes(&s))) return NULL;
  if (s.product.sum && !schedule_split_product(&s)) return NULL;
  if (s.depthwise.sum && s.sums_middle && !schedule_split_channels(&s)) return NULL;
  const bool is_long = s.product.is_long || s.depthwise.is_long;
  if (is_long ? !schedule_order_long_sum(&s) : s.product.sum ? !schedule_order_product(&s) : !schedule_order_part(&s))
    return NULL;
  return schedule_fuse_products(s.schedule) ? s.schedule : NULL;
}
