// Each spatial axis is cut on its own. A piece's number is that of its part of each axis, the last axis fastest.
#include "passes/lower/pieces.h"

enum {
  AXES_BESIDE = 2, // axes that are not spatial: batch and channel
  MOST_PIECES = 64 // kernels of a node; for more, compiling would take longer than it gains
};

static int64_t greatest_divisor(int64_t a, int64_t b) {
  while (b) {
    const int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

static int64_t count_residues(const Window *w) {
  return w->large < 1 ? 1 : w->large < w->stride ? w->large : w->stride;
}

// The places begin, begin + stride, ... of the large side. Their taps k are those for which k * dilation has the
// residue of begin + pad: none, or one of each stride / gcd(stride, dilation).
static PieceAxis residue_axis(const Window *w, int64_t begin) {
  PieceAxis axis = {.begin = begin, .step = w->stride, .extent = (w->large - begin + w->stride - 1) / w->stride};
  axis.tap_step = w->stride / greatest_divisor(w->stride, w->dilation);
  const int64_t end = axis.tap_step < w->kernel ? axis.tap_step : w->kernel;
  while (axis.first_tap < end && (begin + w->pad_begin - axis.first_tap * w->dilation) % w->stride) axis.first_tap++;
  if (axis.first_tap < end) axis.ntaps = (w->kernel - axis.first_tap + axis.tap_step - 1) / axis.tap_step;
  return axis;
}

static bool makes_large(const Node *node) {
  return node->op->outputs[0].side == SIDE_LARGE;
}

bool node_makes_side(const Node *node) {
  const WindowSide made = node->op->outputs[0].side;
  return made == SIDE_LARGE || made == SIDE_SMALL;
}

static int count_spatial(const Node *node) {
  const Value *large = node_side(node, SIDE_LARGE);
  return large ? large->shape.rank - AXES_BESIDE : 0;
}

// The number of pieces, or of residues if these are too many.
static int64_t count_pieces(const Node *node) {
  int64_t count = 1;
  for (int i = 0; makes_large(node) && i < count_spatial(node) && count <= MOST_PIECES; i++) {
    const Window w = node_window(node, i);
    count *= count_residues(&w);
  }
  return count;
}

bool node_is_cut(const Node *node) {
  return count_pieces(node) <= MOST_PIECES;
}

uint32_t node_npieces(const Node *node) {
  if (node->op->traits & TRAIT_PIECES) return node->ninputs;
  const int64_t count = count_pieces(node);
  return count <= MOST_PIECES ? (uint32_t)count : 1;
}

uint32_t nodes_npieces(Node *const *nodes, size_t nnodes) {
  uint32_t npieces = 1;
  for (size_t i = 0; i < nnodes; i++) npieces *= node_npieces(nodes[i]);
  return npieces;
}

PieceAxis node_piece_axis(const Node *node, uint32_t piece, int spatial) {
  const Window own = node_window(node, spatial);
  if (!makes_large(node) || !node_is_cut(node))
    return (PieceAxis){
        .step = 1, .extent = makes_large(node) ? own.large : own.small, .tap_step = 1, .ntaps = own.kernel};
  for (int i = count_spatial(node) - 1; i > spatial; i--) {
    const Window w = node_window(node, i);
    piece /= (uint32_t)count_residues(&w);
  }
  return residue_axis(&own, piece % count_residues(&own));
}
