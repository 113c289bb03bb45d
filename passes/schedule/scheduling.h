// Shared by the files that decide the order of additions: axes.c (which axes are inner), numbers.c (lengths of chains
// and blocks), order.c (which loops there are).
#ifndef NGRAD_PASSES_SCHEDULE_SCHEDULING_H
#define NGRAD_PASSES_SCHEDULE_SCHEDULING_H

#include "passes/schedule/schedule.h"

typedef struct Time { // when an expression can be computed
  int phase;          // the main loop
  int sweep;          // the sweep of that loop
} Time;

// A contraction: a sum over some axes of products whose factors lack different axes of the result.
typedef struct Product {
  ExprId sum;    // 0: there is none
  ExprId row;    // the factor that does not vary over the vector axis
  ExprId vector; // the one that does
  int vector_axis;
  bool is_long;   // the sum is long beside the results, and will be cut into blocks
  bool is_padded; // the blocks of a long sum go beyond it
  int panel_axis; // 1 + the axis of rows in a panel; 0: rows are in no panels
  AxisSet rows;   // the axes of its results that all other reductions reduce; 0: there are no others
  // depthwise.c: `row` varies over the vector axis, too, and over all axes; `vector` lacks some axes of the result.
  bool is_depthwise;
} Product;

typedef struct Scheduling {
  Kernel *k;
  Schedule *schedule; // of k, in the making
  const ScheduleOverrides *overrides;
  int vector_axis;
  AxisSet inner, outer, free_axes; // free_axes: outer axes that outer reductions do not reduce
  AxisSet cut;                     // axes that are cut into blocks or tiles
  bool is_column;    // all sums are over one short axis, which becomes the inner one; vectors lie along an outer axis
  bool is_nested;    // sums over the vector axis end in each iteration of the middle axes, and enter sums over these
  bool sums_middle;  // all sums are over middle axes, with a vector of sums in a register
  Product product;   // with sums_middle: the sum is one of products; sum is 0: it is not
  Product depthwise; // the inner sum is of such products; sum is 0: it is not
  bool is_scatter;   // the kernel is a scatter
  bool is_tiled;     // there is no outer axis: the vector axis is cut into tiles
  bool *is_of_part;  // by original ExprId, as the arrays below: the kernel's stores need it. With a long sum, the
                     // kernel is ordered in two parts, each with stores of its own
  Time *time;
  bool *is_narrow;         // does not vary over a cut axis, or is a small table: a side loop can compute it
  bool *needs_combine;     // depends on an outer reduction
  bool *is_late;           // known at the end of a middle iteration: depends on a nested sum over the vector axis
  bool *needs_row;         // depends on an inner reduction, whose value exists only in the loop that computes it
  bool *is_result;         // of the product's loop: later phases load it again
  AccessId *result_access; // through which they do: that of a store, or of a temporary
  int phase;               // of the loop being built
  bool *is_kept_value;     // a side loop computes it and keeps it in a temporary
  AccessId *kept_access;   // of that temporary
  ExprId *copied;          // by original id: the load of a tensor that is copied to that temporary; 0: none
  AccessId *copy_access;   // through which the copy is stored
  ExprId *combine;         // by original outer reduction: the expression that combines its partial sums
  ExprId *rebuilt;         // memo of one loop's expressions
  bool loads_kept;         // the loop being built loads kept values
  size_t noriginals;
} Scheduling;

static inline int64_t clamp(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

// axes.c

// Fills in vector_axis, inner, outer, free_axes, is_column, is_nested, sums_middle and is_tiled. May split sums over
// several axes into nested ones (k is changed). False: out of memory, or no choice of axes suits all reductions.
bool schedule_choose_axes(Scheduling *s);

void schedule_set_product_axes(Scheduling *s); // for its product, or its depthwise one
void schedule_leave_product(Scheduling *s);    // for the phases behind its loop: rows of the results

// Fills in the expressions' times and dependences. False: some expression is known only after it is needed.
bool schedule_find_times(Scheduling *s);

int last_axis(const Scheduling *s); // the innermost axis of main loops
bool is_outer_reduction(const Scheduling *s, const Expr *e);
AxisSet store_axes(const Kernel *k, const Store *store);
bool is_side_store(const Scheduling *s, const Store *store); // a side loop stores it
bool is_within_tensor(const Kernel *k, AxisSet axes);        // some accessed tensor varies over all of these axes
int64_t access_nelems(const Kernel *k, const Access *a);

// product.c

// The kernel's sum that is a contraction, if all results vary over all other axes, and all other reductions are over
// rows of its results.
Product schedule_find_product(const Kernel *k);
// Whether a side loop computes the factor once and keeps it in the order in which the products need it: the vectors in
// panels along the vector axis, each as long as the sum; the rows' factors densely along the sum.
bool schedule_keeps_vectors(const Kernel *k, const Product *p);
bool schedule_keeps_rows(const Kernel *k, const Product *p);
// Whether the products of blocks of a long sum can read both factors where they are.
bool schedule_reads_in_place(const Kernel *k, const Product *p);
// Splits the product's axes into blocks: of columns, if there are few rows, so that threads share these; and those
// along which factors are dense in memory, so that copies of these can lie in panels: of a vector, if the tensor is
// read through windows; of PANEL_ROWS rows, whose factors a step then finds in a few cache lines. False: out of memory.
enum { PANEL_ROWS = 8 };
bool schedule_split_product(Scheduling *s);

// depthwise.c

// The kernel's one sum, if it is of products of factors that both vary over the vector axis, and short axes of the
// result are missing in one of them.
Product schedule_find_depthwise(const Kernel *k, int vector_axis);
AxisSet schedule_row_axes(const Kernel *k, const Product *p); // those short axes
// Splits the vector axis, which becomes one of parts and one of vectors. False: out of memory.
bool schedule_split_channels(Scheduling *s);

// window.c

// Whether the expression loads through windows. False, too, if memory is exhausted.
bool schedule_reads_windows(const Kernel *k, ExprId id);
// Whether a factor that is read through windows is copied with its padding, or computed into such a copy.
bool schedule_copies_window(const Kernel *k, const Product *p, ExprId id);
bool schedule_copy_window(Scheduling *s, ExprId id); // adds axes to the kernel. False: out of memory

// numbers.c

// Fills in the numbers of a main loop whose axes and roots are known.
void schedule_choose_numbers(const Scheduling *s, Loop *loop);

// long_sums.c

// Whether the product's sum is long beside its results, so that blocks of it are summed first.
// *is_padded: the last block goes beyond the sum, so that both factors are copied with zeros behind them.
bool schedule_is_long_sum(const Kernel *k, const Product *p, bool *is_padded);
// Adds the loops that sum blocks, and those that add up the blocks and store the results. Changes the kernel: its sum
// becomes a sum of sums. False: out of memory, or no schedule suits.
bool schedule_order_long_sum(Scheduling *s);
// The loops of a product whose sum is not long: those that store its sums first, if many tensors are combined with
// them.
bool schedule_order_product(Scheduling *s);

// order.c

// Adds the loops for the kernel's stores. The axes are chosen. False: out of memory, or no schedule suits.
bool schedule_order_part(Scheduling *s);
// Adds a dense temporary for an expression's values, or one in panels if it is the product's factor of vectors. False:
// out of memory.
bool schedule_add_kept(Scheduling *s, ExprId id, const char *name, AccessId *access);

// uses.c

// Decides which sums of the kernel's loops are fused with their products (Root.is_fused). False: out of memory.
bool schedule_fuse_products(Schedule *s);

#endif
