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
  PieceAxis part[MOST_SPATIAL_AXES];                                    // the places and taps of the kernel's piece
  int64_t reach_begin[MOST_SPATIAL_AXES], reach_end[MOST_SPATIAL_AXES]; // from node_reach
  int place[MOST_SPATIAL_AXES];                                         // the kernel's axis of the result's place
  int tap[MOST_SPATIAL_AXES];                                           // the kernel's axis of the tap
  bool is_written; // taps have no axis, but an expression each: the current tap is number[i] of the piece's taps
  int64_t number[MOST_SPATIAL_AXES];
} Windows;

// The windows of a node, whose extents must have values. Does not set `place` and `tap`.
Windows windows_of(Lowering *l, const Node *node);

// How the axes of a loaded side are read, as for lower_bounded_load; spatial axes are BOUNDED or COMPUTED.
typedef struct SideAxes {
  int axis[MAX_RANK];
  Bound bounds[MAX_RANK];
} SideAxes;

// The element of the large side at a tap of a window; `outside` in the padding. The caller has set the axes that are
// not spatial.
ExprId windows_load_large(const Windows *w, const Value *v, SideAxes *axes, double outside);

// The element of the small side whose window reaches the place by the tap; 0 if there is no such window. Sets index[i]
// to the window's index on spatial axis i, which is meaningless if there is none.
ExprId windows_load_small(const Windows *w, const Value *v, SideAxes *axes, ExprId *index);

// `e` where a window reaches the place by the tap, else 0. If the kernel computes a piece, all its places have all its
// taps.
ExprId windows_select(const Windows *w, ExprId e);

// For a result on the small side: all taps of all windows of the piece are inside the large side.
bool windows_are_whole(const Windows *w, int spatial);
bool windows_have_no_taps(const Windows *w); // the places of the piece have no taps

// An upper bound on the integers that the node's kernel computes with: indices, and offsets computed from indices. 0:
// the node has no windows.
int64_t windows_greatest_place(const Costs *costs, const Node *node);

// With is_written: advances to the next tap of the piece, the last axis fastest. False after the last tap.
bool windows_next_tap(Windows *w);

ExprId windows_tap(const Windows *w, int spatial); // the tap's number along a spatial axis

#endif
