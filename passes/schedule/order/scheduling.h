// The internal interface of the files that decide the order of additions. order.c lists the steps: axes.c
// chooses the inner axes, main_loops.c makes the loops, and lengths.c the lengths of chains and blocks.
#ifndef NGRAD_PASSES_SCHEDULE_ORDER_SCHEDULING_H
#define NGRAD_PASSES_SCHEDULE_ORDER_SCHEDULING_H

#include "passes/costs/costs.h"
#include "passes/schedule/order/order.h"

typedef struct SumCut { // where the summed axes of a long sum are cut into axes of blocks and axes inside of a block
  int axis;             // the last axis of the blocks
  int64_t inner;        // indices of that axis inside of a block; 1: the axis is not split
  int64_t length;       // products in a block; 0: no blocks
  bool is_padded;       // the last block extends beyond the axis, where both factors are 0
} SumCut;

// A contraction: a sum of products in which neither factor varies over all axes of the result. Matrix product: a[i, j]
// * b[j, k] summed over j; a lacks k, and b lacks i.
typedef struct Product {
  ExprId sum;    // 0: there is none
  ExprId row;    // the factor that does not vary over the vector axis
  ExprId vector; // the factor that varies over the vector axis
  int vector_axis;
  SumCut cut;          // of a sum that has many more operands than results
  bool copies_windows; // factors that are read through windows may be copied
  bool in_place;       // for little memory: factors that are loads, not computed, are read where they are
  int panel_axis;      // 1 + the axis whose indices are a panel's rows; 0: rows are not in panels
  AxisSet rows;        // the axes of the result that all other reductions reduce; 0: there are no other reductions
  // depthwise.c: `row` varies over all axes, also the vector axis; `vector` lacks some axes of the result.
  bool is_depthwise;
} Product;

// How main loops take their sums, which decides their nests (nests.c).
typedef enum Strategy {
  ALONG_ROWS,     // sums over the inner axes, along which vectors lie, end in each outer iteration
  NESTED,         // the same; sums over the vector axis end in each middle iteration, and are added to sums over others
  TILED,          // the vector axis is the only inner axis, and is cut into tiles: sums over it are added over tiles
  OF_COLUMNS,     // sums are over one short axis, the only inner axis; vectors lie along an outer axis
  DEPTHWISE_ROWS, // as ALONG_ROWS: the sum is a depthwise product
  // From here on, each lane has a sum of its own: all sums are over middle axes, and a register holds a vector of sums.
  IN_LANES,
  OF_PRODUCTS, // the sum is a product (matrix product, convolution)
  DEPTHWISE,   // the sum is a depthwise product
  SCATTERED,   // the kernel is a scatter
  OF_CHAINS    // adds the blocks of a long sum
} Strategy;

typedef struct Time { // when an expression can be computed
  int phase;          // the main loop
  int sweep;          // the sweep of that loop
} Time;

typedef struct ExprPlan { // of an expression of the kernel, for the part that is being ordered
  bool is_of_part;        // a store of the part needs it (a long sum has two parts)
  Time time;
  bool is_hoistable;     // a producer loop can compute it: it does not vary over a cut axis, or is a small table
  bool needs_combine;    // depends on an outer reduction
  bool is_after_nested;  // depends on a nested sum over the vector axis: known at the end of a middle iteration
  bool needs_inner;      // depends on an inner reduction, whose value exists only in the loop that computes it
  bool is_result;        // a result of the product's loop that later phases load, through `result`
  AccessId result;       // a store's access, or a temporary's
  bool is_materialised;  // a producer loop computes it, and stores it in a temporary that main loops load
  AccessId materialised; // the access through which they load it
  ExprId copied;         // of a copied window: the expression, along the copy's axes, that is stored; else 0
  AccessId copy;         // of a copied window: the access through which it is stored
  ExprId combine;        // of an outer reduction: the expression that combines its partial sums
  ExprId rebuilt;        // memo of `rebuild` for one loop
} ExprPlan;

typedef struct Scheduling {
  Kernel *k;
  Schedule *schedule; // the schedule of k that is being built
  const ScheduleOverrides *overrides;
  Strategy strategy;
  int vector_axis;
  AxisSet inner, outer, batch_axes; // batch_axes: outer axes that outer reductions do not reduce
  AxisSet cut;                      // the axes that blocks or tiles divide
  Product product;                  // a contraction, or a depthwise product; product.sum == 0: none
  bool is_in_two;                   // the product's loop stores its sums, and another loop computes results from them
  AxisSet blocks;                   // of a long sum: the axes over blocks; 0: the sum is not split
  ExprPlan *plan;                   // by original ExprId
  size_t noriginals;
  int phase;               // of the loops being built
  bool loads_materialised; // the loop being built loads what producer loops store
} Scheduling;

static inline bool sums_in_lanes(const Scheduling *s) {
  return s->strategy >= IN_LANES;
}

static inline bool has_contraction(const Scheduling *s) { // matrix product or convolution
  return s->product.sum && !s->product.is_depthwise;
}

static inline int64_t clamp(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

static inline AxisSet all_axes(const Kernel *k) {
  return (1U << k->naxes) - 1;
}

// axes.c

// Fills in strategy, vector_axis, inner, outer, batch_axes and product. False: out of memory.
bool schedule_choose_axes(Scheduling *s);
// Finds the batch axes. If the reductions do not fit one loop, splits sums over several axes into nested ones. False:
// out of memory, or no choice of axes suits all reductions.
bool schedule_nest_sums(Scheduling *s);

// domain.c

void schedule_set_product_axes(Scheduling *s); // of s->product, whose sums are in lanes
// Splits an axis of the product's kernel (kernel_split_axis). False: out of memory.
bool schedule_split_axis(Kernel *k, Product *p, int axis, int64_t inner);
AxisSet schedule_row_axes(const Kernel *k, const Product *p); // the short axes that one factor lacks
AxisSet schedule_middle_axes(const Scheduling *s);
AxisSet axes_of_vectors(const Scheduling *s); // the inner axes of values that a main loop computes as vectors
int last_axis(const Scheduling *s);           // the innermost axis of main loops
// A sum over the vector axis that ends in each iteration of the middle axes.
bool is_nested_reduction(const Scheduling *s, const Expr *e);
bool is_inner_reduction(const Scheduling *s, const Expr *e);
bool is_outer_reduction(const Scheduling *s, const Expr *e);
AxisSet store_axes(const Kernel *k, const Store *store);
// A producer loop stores it: it varies over no cut axis, or a main loop would repeat it along some axis.
bool is_produced_store(const Scheduling *s, const Store *store);
int dense_axis_of(const Kernel *k, const Access *a);  // the last axis with stride 1; -1: none
bool is_within_tensor(const Kernel *k, AxisSet axes); // an accessed tensor varies over all of these axes
int64_t access_nelems(const Kernel *k, const Access *a);

// nest_sums.c

// Replaces each reduction over the vector axis and others by nested ones: over the vector axis, then over the other
// inner axes, then over the rest. Factors that do not vary over the vector axis are moved out of the sum over it, so
// that sums that differ only in such factors use the same inner sum. Example: group norm's gradient sums dy * (x -
// mean) over a channel's plane once, for the group's statistics and for diff_gamma. False: out of memory.
bool kernel_nest_sums(Kernel *k, int vector_axis, AxisSet inner);

// split_axis.c

// Whether the axis can be split: its extent is a literal, no expression is its index, and the kernel has fewer than
// MAX_AXES axes.
bool kernel_can_split_axis(const Kernel *k, int axis);
// Splits the axis into (block, index in block): the axis gets extent / inner indices, rounded up, and a new axis of
// `inner` indices follows it, so that the numbers of later axes grow by one. If `inner` does not divide the extent,
// loads get a bound, so that they yield 0 beyond the extent; loads along the axis must have no bounds before. False:
// out of memory.
bool kernel_split_axis(Kernel *k, int axis, int64_t inner);

// times.c

// Fills in the expressions' times and dependences. False: some expression would be needed before it can be computed.
bool schedule_find_times(Scheduling *s);
int64_t schedule_largest_tensor(const Kernel *k); // elements

// product.c

// The kernel's contraction, if every result varies over all axes that are not summed, and all other reductions reduce
// rows of the contraction's results. Otherwise sum == 0.
Product schedule_find_product(const Kernel *k);
// Whether a producer loop computes the factor once and stores it in the layout that the products read: the factor of
// vectors in panels of LANES columns, each as long as the sum; the factor of rows dense along the sum.
bool schedule_packs_vectors(const Kernel *k, const Product *p);
bool schedule_packs_rows(const Kernel *k, const Product *p);
// Whether the factor of vectors along the axis is a tensor that each of few rows rounds again: a copy of it would be
// more memory than the rows and results take.
bool schedule_rounds_in_place(const Kernel *k, ExprId sum, ExprId factor, int axis);
// Each of these splits an axis of the product into blocks where useful. False: out of memory.
// With few rows: the columns, so that threads divide the columns among them.
bool schedule_split_columns(Scheduling *s);
// If the factor of vectors is copied from windows: the vector axis, so that the copy is in panels of two vectors.
bool schedule_panel_vectors(Scheduling *s);
// If the factor of rows is copied: the axis along which it is dense, so that the copy is in panels of PANEL_ROWS rows,
// and a micro-kernel reads few cache lines.
enum { PANEL_ROWS = 8 };
bool schedule_panel_rows(Scheduling *s);

// depthwise.c

// The kernel's only sum, if it sums products of factors that both vary over the vector axis, and one factor lacks short
// axes of the result. Otherwise sum == 0.
Product schedule_find_depthwise(const Kernel *k, int vector_axis);
// Splits the vector axis of a depthwise sum over middle axes into (part, channel in part). False: out of memory.
bool schedule_split_channels(Scheduling *s);

// window_copies.c

// Whether the expression loads through windows. True, too, if memory is exhausted.
bool schedule_reads_windows(const Kernel *k, ExprId id);
// Whether a factor that is read through windows gets a copy that contains the padding (and is computed into it, unless
// it is a load).
bool schedule_copies_window(const Kernel *k, const Product *p, ExprId id);
bool schedule_copy_windows(Scheduling *s);           // allows such copies
bool schedule_copy_window(Scheduling *s, ExprId id); // adds axes to the kernel. False: out of memory

// nests.c

extern const LoopLevel schedule_row_copies[];
// The nest of a main loop whose axes and roots are known.
const LoopLevel *schedule_choose_nest(const Scheduling *s, const Loop *loop);

// lengths.c

// Fills in the numbers of a main loop whose axes and roots are known, and writes the orders of its sums. False: out of
// memory.
bool schedule_choose_lengths(const Scheduling *s, Loop *loop);

// long_sums.c

// Sets p->cut if the product's sum has so many more operands than results that blocks of it are summed first.
void schedule_cut_long_sum(const Scheduling *s, Product *p);
// Makes a long sum a sum of sums. False: out of memory.
bool schedule_split_long_sum(Scheduling *s);
// Sets is_in_two if results combine the sums of a product that is not long with many tensors.
bool schedule_store_sums(Scheduling *s);
// Adds the loops for all stores; with is_in_two, first those that store sums, of a long sum's blocks or of a product,
// then those that compute results from them. False: out of memory, or no schedule suits.
bool schedule_make_loops(Scheduling *s);

// main_loops.c

// Adds the loops for the kernel's stores. Requires chosen axes. False: out of memory, or no schedule suits.
bool schedule_order_part(Scheduling *s);
// Adds a temporary for an expression's values: in panels if the expression is a factor of the product that is packed in
// panels, else dense. False: out of memory.
bool schedule_materialise(Scheduling *s, ExprId id, const char *name, AccessId *access);

#endif
