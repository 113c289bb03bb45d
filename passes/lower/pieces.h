// Pieces: slices of a node's results that are computed by a kernel each, because their loops differ.
//
// Windows of stride s reach the places of their large side by different taps: place i at tap k belongs to the window
// (i + pad - k * dilation) / s, if that is an integer. Places of the same residue modulo s have the same taps, so a
// result on the large side has a piece for each residue, on each spatial axis. A result of pooling on the small side
// has pieces for the windows with all taps, whose loads need no conditions, and for those at the borders.
#ifndef NGRAD_PASSES_LOWER_PIECES_H
#define NGRAD_PASSES_LOWER_PIECES_H

#include "ir/operators/window.h"

// One spatial axis of a piece.
typedef struct PieceAxis {
  int64_t begin, step, extent;        // the places begin, begin + step, ... of the result, `extent` of them
  int64_t first_tap, tap_step, ntaps; // the taps of these places: first_tap, first_tap + tap_step, ...
  // Instead, there is one window, and each place is at a tap of its own: the place + pad_begin. ntaps is 1.
  bool has_one_window;
} PieceAxis;

uint32_t node_npieces(const Node *node);
uint32_t nodes_npieces(Node *const *nodes, size_t nnodes); // of a region, in which at most one node is cut
bool node_makes_side(const Node *node);                    // its result is a side of windows, so that it can be cut
bool node_is_cut(const Node *node); // by windows: all places of a piece have the same taps; false: too many pieces
// Pooling, or a convolution of single channels, with so few taps that its kernel has an expression for each instead of
// axes that it reduces.
bool node_writes_taps(const Node *node, uint32_t piece);
PieceAxis node_piece_axis(const Node *node, uint32_t piece, int spatial); // of a node with windows

// Sets *text to which piece this is of several, in the arena: "at [:, :, 0:1, 1::2]" for windows, with begin, end and
// step of the result's axes, or "of input 2"; to NULL if the node has one piece. False: out of memory.
bool node_piece_text(const Node *node, uint32_t piece, Arena *arena, const char **text);

#endif
