// Pieces: slices of a node's results that are computed by a kernel each, because their loops differ.
//
// Windows of stride s reach the places of their large side by different taps: place i at tap k belongs to the window
// (i + pad - k * dilation) / s, if that is an integer. Places of the same residue modulo s have the same taps, so a
// result on the large side has a piece for each residue, on each spatial axis. A result of pooling on the small side
// has pieces for the windows with all taps, whose loads need no conditions, and for those at the borders.
//
// The result of a product has pieces if its kernel would copy an operand that is larger than caches: the copy of a
// piece stays in them, and the copies of all pieces take turns in the same memory.
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

// The part of a product's result that a piece is: all of it but for one axis, -1 if there is one piece.
typedef struct ProductPiece {
  int axis;
  int64_t begin, extent;
} ProductPiece;

uint32_t node_npieces(const Node *node);
uint32_t nodes_npieces(Node *const *nodes, size_t nnodes); // of a region, in which at most one node is cut
bool node_makes_side(const Node *node);                    // its result is a side of windows, so that it can be cut
bool node_is_cut(const Node *node); // by windows: all places of a piece have the same taps; false: too many pieces
// Pooling, or a convolution of single channels, with so few taps that its kernel has an expression for each instead of
// axes that it reduces.
bool node_writes_taps(const Node *node, uint32_t piece);
PieceAxis node_piece_axis(const Node *node, uint32_t piece, int spatial); // of a node with windows
// The windows along an axis that the places of all pieces on the large side are in, some of them beside the small side;
// from *begin to below *end, which are equal where they are not known.
void node_reach(const Node *node, int spatial, int64_t *begin, int64_t *end);
ProductPiece node_product_piece(const Node *node, uint32_t piece); // of any node

// Sets *text to which piece this is of several, in the arena: "at [:, :, 0:1, 1::2]" with begin, end and step of the
// result's axes, or "of input 2"; to NULL if the node has one piece. False: out of memory.
bool node_piece_text(const Node *node, uint32_t piece, Arena *arena, const char **text);

#endif
