// Pieces: slices of a node's results. Each piece has its own kernel, because their loops differ.
//
// A place is an index on a spatial axis of the result. On the large side of windows with stride s, place i is reached
// by tap k of window (i + pad - k * dilation) / s, if this is an integer. Places with the same residue modulo s have
// the same taps, so a result on the large side has a piece for each residue on each spatial axis. Example: with stride
// 2 and 3 taps, even places may have taps 0 and 2, odd places tap 1. On the small side, a result of pooling has a piece
// for the interior, the windows with all taps, whose loads need no conditions, and pieces for the borders.
//
// The result of a product has pieces if its kernel would copy an operand that is larger than the caches: each piece
// copies a part of the operand that fits, and all pieces reuse the same memory for their copies.
#ifndef NGRAD_PASSES_LOWER_PIECES_H
#define NGRAD_PASSES_LOWER_PIECES_H

#include "ir/operators/window.h"
#include "passes/costs/costs.h"

// One spatial axis of a piece.
typedef struct PieceAxis {
  int64_t begin, step, extent;        // places begin, begin + step, ...; `extent` of them
  int64_t first_tap, tap_step, ntaps; // taps of these places: first_tap, first_tap + tap_step, ...
  // There is one window, and each place has a tap of its own: place + pad_begin. ntaps is 1.
  bool has_one_window;
} PieceAxis;

// A piece of a product's result: `extent` indices from `begin` on along `axis`; axis -1: the whole result.
typedef struct ProductPiece {
  int axis;
  int64_t begin, extent;
} ProductPiece;

uint32_t node_npieces(const Costs *costs, const Node *node);
uint32_t nodes_npieces(const Costs *costs, Node *const *nodes,
                       size_t nnodes);  // of a region; at most one of its nodes has several pieces
bool node_makes_side(const Node *node); // its result is a side of windows, which may be cut into pieces
bool node_is_cut(const Costs *costs,
                 const Node *node); // the node is cut by residues or borders; false: it would have too many pieces
// Whether the node is pooling or a depthwise convolution with so few taps that the piece's kernel has an expression for
// each tap instead of axes to reduce. All pieces of a node share a budget of such expressions.
bool node_writes_taps(const Costs *costs, const Node *node, uint32_t piece);
PieceAxis node_piece_axis(const Costs *costs, const Node *node, uint32_t piece, int spatial); // of a node with windows
// The range *begin .. *end - 1 of windows that any piece on the large side reads along an axis; some of these windows
// do not exist. *begin = *end: not known.
void node_reach(const Costs *costs, const Node *node, int spatial, int64_t *begin, int64_t *end);
ProductPiece node_product_piece(const Costs *costs, const Node *node, uint32_t piece); // of any node

// Sets *text, in the arena, to a description of the piece: "at [:, :, 0:1, 1::2]" with begin, end and step on the
// result's axes, or "of input 2"; NULL if the node has one piece. False: out of memory.
bool node_piece_text(const Costs *costs, const Node *node, uint32_t piece, Arena *arena, const char **text);

#endif
