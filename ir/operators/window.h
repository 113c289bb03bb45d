// The windows of convolutions and pooling. Each spatial axis is independent of the others.
//
// A window relates the two sides of a node: element u of the small side is computed from the elements
// u * stride + k * dilation - pad_begin of the large side, for k from 0 to kernel - 1, as far as they exist. For a
// gradient, elements of diff_dst or diff_src take the places of those of dst and src. Operand.side says which operands
// of an operator are its sides and its weights; what is no weights has the attribute `kernel` instead.
#ifndef NGRAD_IR_OPERATORS_WINDOW_H
#define NGRAD_IR_OPERATORS_WINDOW_H

#include "ir/operators/operator.h"

enum { MOST_SPATIAL_AXES = 3 };

// The values of the choice attributes.
enum { AUTO_PAD_NONE, AUTO_PAD_SAME_UPPER, AUTO_PAD_SAME_LOWER, AUTO_PAD_VALID };
enum { ROUNDING_FLOOR, ROUNDING_CEIL };

// One spatial axis of a node.
typedef struct Window {
  int64_t stride, dilation;   // at least 1; neighbouring elements of the kernel are `dilation` elements apart
  int64_t pad_begin, pad_end; // at least 0, with auto_pad resolved
  int64_t kernel;             // the kernel's extent, at least 1
  int64_t large, small;       // the sides' extents
  // Not 0: the number holds only at the hints of these open dims (ir/graph/open.h). Padding depends on open dims if
  // auto_pad derives it from an extent that does.
  Monomial kernel_monomial, large_monomial, small_monomial, pad_monomial;
} Window;

// The first operand on a side: inputs before outputs; NULL: none. A node with windows has a large and a small side.
Value *node_side(const Node *node, WindowSide side);

// The large side of this operator's windows is computed from the small one, and not given (ConvTranspose).
bool window_makes_large(const Node *node);

// Whether all numbers of the list attributes are in their ranges; check_window reports those that are not. The
// functions below want a valid node.
bool window_is_valid(const Node *node);

// The window on spatial axis number `spatial`, from 0: axis spatial_axis(node) + spatial of the sides. All extents of
// the node must have numbers.
Window node_window(const Node *node, int spatial);
bool node_has_few_taps(const Node *node); // so that code can be written for each

// The axis of the weights that spatial axis number `spatial` of the sides belongs to, by weights_format.
int weights_axis(const Node *node, int spatial);

// The number of elements of the large side from a window's first to its last element, gaps and padding included.
int64_t window_reach(const Window *w);

// The elements of the kernel, from `begin` to below `end`, that lie on the large side in window number u of the small
// side. None: begin == end.
typedef struct Taps {
  int64_t begin, end;
} Taps;
Taps window_taps(const Window *w, int64_t u);
int64_t window_place(const Window *w, int64_t u, int64_t tap); // the index on the large side, which may not exist

// The first tap from `from` on that some window, which may not exist, has at the place; the next ones are
// window_tap_step apart. INT64_MAX: there is none.
int64_t window_tap_at(const Window *w, int64_t place, int64_t from);
int64_t window_tap_step(const Window *w);

#endif
