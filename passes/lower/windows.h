// Lowering of windows, for pooling and convolutions: loads of the two sides (ir/operators/window.h).
#ifndef NGRAD_PASSES_LOWER_WINDOWS_H
#define NGRAD_PASSES_LOWER_WINDOWS_H

#include "passes/lower/lower.h"
#include "passes/lower/pieces.h"

typedef struct Windows {
  Lowering *l;
  Kernel *k; // l's
  int first, nspatial;
  Window window[MOST_SPATIAL_AXES];
  PieceAxis part[MOST_SPATIAL_AXES];                                    // the places and taps that the kernel has
  int64_t reach_begin[MOST_SPATIAL_AXES], reach_end[MOST_SPATIAL_AXES]; // node_reach
  int place[MOST_SPATIAL_AXES]; // the kernel's axis of the index on the side that is not loaded
  int tap[MOST_SPATIAL_AXES];   // the kernel's axis of the tap
  bool is_written;              // there is no such axis: the current tap is number[i] of the piece's
  int64_t number[MOST_SPATIAL_AXES];
} Windows;

// The windows of a node, whose extents must have values. Sets all but `place` and `tap`.
Windows windows_of(Lowering *l, const Node *node);

// The axes of a side that is loaded: those that are not spatial, and the spatial ones as BOUNDED or COMPUTED.
typedef struct SideAxes {
  int axis[MAX_RANK];
  Bound bounds[MAX_RANK];
} SideAxes;

// The element of the large side at a tap of a window; `outside` in the padding. `axes` has the axes that are not
// spatial.
ExprId windows_load_large(const Windows *w, const Value *v, SideAxes *axes, double outside);

// The element of the small side whose window has the place at its tap; outside of the small side, 0. index[i]: that of
// the window along spatial axis i, meaningless where there is none.
ExprId windows_load_small(const Windows *w, const Value *v, SideAxes *axes, ExprId *index);

// `e` where the place has the tap, which it always has if the kernel computes a piece; else 0.
ExprId windows_select(const Windows *w, ExprId e);

// All taps of the kernel lie on the large side in all of its places, which are on the small side.
bool windows_are_whole(const Windows *w, int spatial);
bool windows_have_no_taps(const Windows *w); // the places of the kernel's piece have none

// An upper bound of the integers that occur in the node's kernel as numbers: indices, and offsets that are computed
// from them. 0: the node has no windows.
int64_t windows_greatest_place(const Node *node);

// With is_written: goes on to the next tap of the piece, the last axis fastest. Behind the last one, returns false.
bool windows_next_tap(Windows *w);

ExprId windows_tap(const Windows *w, int spatial); // the tap's number along a spatial axis

#endif
