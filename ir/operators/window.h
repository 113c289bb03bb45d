// The windows of convolutions and pooling. Spatial axes are independent of each other.
//
// A window relates the two sides of a node: element u of the small side is computed from the elements u * stride + k *
// dilation - pad_begin of the large side, for each tap k from 0 to kernel - 1 whose element exists. Example: with
// stride 2 and pad_begin 1, output 3 of a 3-tap window reads inputs 5, 6 and 7. In a gradient, diff_dst and diff_src
// are the sides. Operand.side says which operands are sides or weights; an operator without weights (pooling) has the
// attribute `kernel`.
#ifndef NGRAD_IR_OPERATORS_WINDOW_H
#define NGRAD_IR_OPERATORS_WINDOW_H

#include "ir/operators/operator.h"

enum { MOST_SPATIAL_AXES = 3 };

// The values of the attributes `auto_pad` and `rounding_type`.
enum { AUTO_PAD_NONE, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER, AUTO_PAD_VALID };
enum { ROUNDING_FLOOR, ROUNDING_CEIL };

// One spatial axis of a node.
typedef struct Window {
  int64_t stride, dilation;   // at least 1; neighbouring taps are `dilation` elements of the large side apart
  int64_t pad_begin, pad_end; // at least 0, with auto_pad resolved
  int64_t kernel;             // the kernel's extent, at least 1
  int64_t large, small;       // the sides' extents
  // Not 0: the number is a value at the hints of these open dims (ir/graph/open_dims.h). Padding depends on open dims
  // if auto_pad derives it from an open extent.
  Monomial kernel_monomial, large_monomial, small_monomial, pad_monomial;
} Window;

// The first operand on a side, inputs before outputs; NULL: none. A node with windows has a large and a small side.
Value *node_side(const Node *node, WindowSide side);

// Whether the operator computes the extents of the large side from the small side (ConvTranspose).
bool window_makes_large(const Node *node);

// Whether all numbers of the list attributes are in their ranges; check_window reports numbers that are not. The
// functions below need a valid node.
bool window_is_valid(const Node *node);

// The window on spatial axis number `spatial`, from 0: axis spatial_axis(node) + spatial of the sides. All extents of
// the node must have numbers.
Window node_window(const Node *node, int spatial);
bool node_has_few_taps(const Node *node); // so few that a kernel has an expression for each

// The axis of the weights for spatial axis number `spatial`, by weights_format.
int weights_axis(const Node *node, int spatial);

// The number of elements of the large side from a window's first to its last element, gaps and padding included.
int64_t window_reach(const Window *w);

// The taps begin .. end - 1 of window u whose elements are on the large side, not in the padding. None: begin == end.
typedef struct Taps {
  int64_t begin, end;
} Taps;
Taps window_taps(const Window *w, int64_t u);
int64_t window_place(const Window *w, int64_t u, int64_t tap); // the index on the large side, which may not exist

// The first tap, at least `from`, by which some window reaches index `place` of the large side; the window may not
// exist. Further taps follow at distances of window_tap_step. INT64_MAX: there is none.
int64_t window_tap_at(const Window *w, int64_t place, int64_t from);
int64_t window_tap_step(const Window *w);
int64_t greatest_divisor(int64_t a, int64_t b);

#endif
