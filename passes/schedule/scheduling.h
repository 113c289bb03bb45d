// What the files that schedule a kernel share: axes.c, numbers.c and schedule.c.
#ifndef NGRAD_PASSES_SCHEDULE_SCHEDULING_H
#define NGRAD_PASSES_SCHEDULE_SCHEDULING_H

#include "passes/schedule/schedule.h"

typedef struct Time {
  int phase, sweep;
} Time;

typedef struct Scheduling {
  Kernel *k;
  const ScheduleOverrides *overrides;
  int vector_axis;
  AxisSet inner, outer, free_axes; // free_axes: outer axes that outer reductions do not reduce
  AxisSet cut;                     // axes that are cut into blocks or tiles
  bool is_column;        // sums are along one short axis that is not the vector's: outer vectors lie across it
  bool is_nested;        // sums over the vector axis lie within those over the middle axes
  bool sums_middle;      // sums are over middle axes, of each vector of results in its registers
  bool is_tiled;         // no outer axes: the vector axis is cut into tiles
  Time *time;            // by original ExprId
  bool *is_narrow;       // does not vary over any axis that is cut
  bool *needs_combine;   // depends on an outer reduction
  bool *is_late;         // depends on a sum over the vector axis alone that is nested in others
  bool *needs_row;       // depends on an inner reduction, which is there in the loop that makes it alone
  bool *is_kept_value;   // computed by a side loop and kept in a temporary
  AccessId *kept_access; // where
  ExprId *combine;       // by original reduction: the expression that adds up its partial sums
  ExprId *rebuilt;       // memo of one loop's expressions
  bool loads_kept;       // the loop at work finds kept values in their temporaries
  size_t noriginals;
} Scheduling;

static inline int64_t clamp(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

// axes.c

// Fills in the axes: vector_axis, inner, outer, kept, and which of the three kinds they are. May take sums apart.
// False: out of memory, or no axes suit all reductions.
bool schedule_choose_axes(Scheduling *s);

// Fills in the expressions' times, and what they depend on. False: some of them cannot be there when they are needed.
bool schedule_find_times(Scheduling *s);

int last_axis(const Scheduling *s); // the innermost one of main loops
bool is_outer_reduction(const Scheduling *s, const Expr *e);
AxisSet store_axes(const Kernel *k, const Store *store);
bool is_side_store(const Scheduling *s, const Store *store); // done by a side loop
bool is_within_tensor(const Kernel *k, AxisSet axes); // whether one that is read or written has all of these axes
int64_t access_nelems(const Kernel *k, const Access *a);

// numbers.c

// Fills in what decides the order of additions and its roots and axes leave open, of a main loop.
void schedule_choose_numbers(const Scheduling *s, Loop *loop);

// uses.c

// Says of each sum of the kernel's loops whether its products enter it unrounded. False: out of memory.
bool kernel_fuse_products(Kernel *k);

#endif
