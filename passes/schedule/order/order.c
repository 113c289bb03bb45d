// The order of additions, step by step: axes, splits of axes, and loops. Why the passes are in this order:
//   choose-axes     first: the other passes look for the product or the depthwise sum that it finds
//   nest-sums       before splits, as a kernel with nested sums has no product
//   column-blocks   before panels, which divide the part of the columns that a block has
//   copy-windows    before vector-panels and row-panels, which lay out the copies
//   long-sums       after panels: the parts of a sum are read from panels
//   make-loops      after all passes that change axes
#include "passes/schedule/order/order.h"

#include "passes/schedule/kernel_pass.h"
#include "passes/schedule/order/scheduling.h"

const KernelPass order_passes[] = {
    {"choose-axes", schedule_choose_axes, NULL, "find products, and choose the axes that a micro-kernel goes over",
     NEEDED},
    {"nest-sums", schedule_nest_sums, NULL, "split sums that do not fit one loop into sums of sums", NEEDED},
    {"column-blocks", schedule_split_columns, NULL, "split the columns of products of few rows, for threads", USUAL},
    {"copy-windows", schedule_copy_windows, NULL, "copy factors of products that are read through windows", USUAL},
    {"vector-panels", schedule_panel_vectors, NULL, "split columns so that a copied factor is in panels of two vectors",
     FOR_SPEED},
    {"row-panels", schedule_panel_rows, NULL, "split rows so that a copied factor is in panels of rows", FOR_SPEED},
    {"channel-parts", schedule_split_channels, NULL, "split the channels of depthwise sums", USUAL},
    {"long-sums", schedule_split_long_sum, NULL, "split long sums of products into blocks that are added later", USUAL},
    {"store-sums", schedule_store_sums, NULL, "store sums of products before many tensors are combined with them",
     USUAL},
    {"make-loops", schedule_make_loops, NULL, "make the loops, and write the order of each sum", NEEDED}};
const size_t norder_passes = sizeof order_passes / sizeof *order_passes;

Schedule *kernel_order(Kernel *k, int vector_axis, const ScheduleOverrides *overrides) {
  static const ScheduleOverrides none;
  k->costs = costs_or_usual(k->costs);
  Scheduling s = {.k = k,
                  .schedule = schedule_new(k),
                  .overrides = overrides ? overrides : &none,
                  .vector_axis = k->naxes ? vector_axis : 0};
  bool is_ordered = s.schedule != NULL;
  for (size_t i = 0; i < norder_passes && is_ordered; i++) {
    const KernelPass *pass = &order_passes[i];
    if (kernel_pass_runs(pass, s.overrides)) is_ordered = pass->order(&s);
    if (is_ordered) is_ordered = schedule_keep_text(s.schedule, s.overrides, pass->name);
  }
  return is_ordered ? s.schedule : NULL;
}
