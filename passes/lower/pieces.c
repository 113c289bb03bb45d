// Cuts results into pieces. For windows, each spatial axis is cut into parts independently; pieces are numbered in
// row-major order of their parts.
#include "passes/lower/pieces.h"

#include "ir/operators/contraction.h"
#include "ir/operators/interpolate.h"

enum {
  AXES_BESIDE = 2, // axes that are not spatial: batch and channel
  MOST_PARTS = 256 // of an axis: piece_kernels is at most as many
};

// The parts of a spatial axis of the result, in the order of their numbers.
typedef struct Parts {
  int64_t count; // more than piece_kernels: too many, and not all are listed
  PieceAxis items[MOST_PARTS];
} Parts;

static void add_part(const Costs *costs, Parts *parts, PieceAxis axis) {
  if (parts->count < costs->piece_kernels) parts->items[parts->count] = axis;
  parts->count++;
}

static bool is_pool(const Node *node) {
  return !node_side(node, SIDE_WEIGHTS);
}

// Whether pooling has a single window that covers the whole large side. Not for convolutions: their weights at other
// taps would also be multiplied, by padding of the small side.
static bool has_one_window(const Node *node, const Window *w) {
  return is_pool(node) && w->small == 1 && w->dilation == 1 && w->large + w->pad_begin <= w->kernel;
}

bool node_makes_side(const Node *node) {
  const WindowSide made = node->op->outputs[0].side;
  return made == SIDE_LARGE || made == SIDE_SMALL;
}

static bool makes_large(const Node *node) {
  return node->op->outputs[0].side == SIDE_LARGE;
}

static int count_spatial(const Node *node) {
  const Value *large = node_side(node, SIDE_LARGE);
  return large ? large->shape.rank - AXES_BESIDE : 0;
}

// The interior of an axis of the small side: windows begin .. end - 1, which have all taps.
typedef struct Interior {
  int64_t begin, end;
} Interior;

static Interior find_interior(const Window *w) {
  const int64_t last = w->large + w->pad_begin - window_reach(w);
  Interior in = {.begin = (w->pad_begin + w->stride - 1) / w->stride, .end = last < 0 ? 0 : last / w->stride + 1};
  if (in.end > w->small) in.end = w->small;
  if (in.begin > in.end) in.begin = in.end;
  return in;
}

// The stride of a spatial axis of the large side.
static int64_t axis_stride(const Node *node, int spatial) {
  const Value *large = node_side(node, SIDE_LARGE);
  int64_t extent[MAX_RANK], stride[MAX_RANK];
  for (int i = 0; i < large->shape.rank; i++) extent[i] = extent_value(large->shape.extent[i]);
  layout_strides(&large->layout, large->shape.rank, extent, stride);
  return stride[spatial_axis(node) + spatial];
}

// Max pooling and its gradient. Their results do not depend on how they are cut: a tap outside of the tensor does not
// change a maximum, and adds 0 to a gradient.
static bool is_of_maxima(const Node *node) {
  return is_pool(node) && operator_has_attribute(node->op, "dilations");
}

// Whether vectors lie along an axis of windows: then they mask lanes at the borders.
static bool has_masked_vectors(const Node *node) {
  return axis_stride(node, count_spatial(node) - 1) == 1;
}

// Whether to cut an axis into an interior, whose loads need no conditions, and borders. Not worthwhile: masked vectors,
// beside which conditions on other axes cost little, except those on an average's divisor; little work; and max pooling
// with many taps (up to 27 pieces of much code).
static bool are_worth_cutting(const Costs *costs, const Node *node, WindowSide side, int spatial, const Interior *in) {
  const bool is_average = is_pool(node) && !is_of_maxima(node);
  if ((is_of_maxima(node) && !node_has_few_taps(node)) || (has_masked_vectors(node) && !is_average)) return false;
  return in->end - in->begin >= costs->border_interior && axis_stride(node, spatial) != 1 &&
         shape_nelems(&node_side(node, side)->shape) >= costs->border_work;
}

static bool cuts_borders(const Costs *costs, const Node *node, int spatial, const Window *w) {
  const Interior in = find_interior(w);
  return in.end - in.begin < w->small && are_worth_cutting(costs, node, SIDE_SMALL, spatial, &in);
}

// A convolution of each channel with its own kernel.
static bool is_depthwise(const Node *node) {
  const Value *weights = node_side(node, SIDE_WEIGHTS);
  if (!weights) return false;
  const Convolution c = node_convolution(node);
  return extent_value(weights->shape.extent[c.weights_small]) == c.groups &&
         extent_value(weights->shape.extent[c.weights_large]) == 1;
}

static bool is_single_channel(const Node *node) {
  return is_pool(node) || is_depthwise(node);
}

typedef enum Border { BEFORE, INSIDE, BEHIND, NBORDERS } Border;

// Selects the indices before the interior, inside or behind it. False: there are none before or behind.
static bool select_part(PieceAxis *axis, const Interior *in, Border border) {
  const int64_t begin = border == BEFORE ? 0 : border == INSIDE ? in->begin : in->end;
  const int64_t end = border == BEFORE ? in->begin : border == INSIDE ? in->end : axis->extent;
  axis->begin += begin * axis->step;
  axis->extent = end - begin;
  return border == INSIDE || end > begin;
}

// The small side

// All windows. Pooling omits taps that are outside of the tensor for all windows, as a kernel may be far longer than
// the tensor.
static PieceAxis whole_axis(const Node *node, const Window *w) {
  PieceAxis axis = {.step = 1, .extent = w->small, .tap_step = 1, .ntaps = w->kernel};
  if (!is_pool(node) || w->small < 1) return axis;
  axis.first_tap = window_taps(w, w->small - 1).begin;
  const int64_t end = window_taps(w, 0).end;
  axis.ntaps = end > axis.first_tap ? end - axis.first_tap : 0;
  return axis;
}

// The windows of one border, or of the interior, with their taps: all that any of these windows has inside of the
// tensor; with weights all taps, as weights are also multiplied by padding.
static PieceAxis border_axis(const Node *node, const Window *w, PieceAxis axis) {
  if (!is_pool(node)) return axis;
  axis.ntaps = 0;
  const Taps first = window_taps(w, axis.begin), last = window_taps(w, axis.begin + axis.extent - 1);
  if (first.begin == first.end && last.begin == last.end) return axis; // the windows are beside the tensor
  axis.first_tap = first.begin < last.begin ? first.begin : last.begin;
  axis.ntaps = (first.end > last.end ? first.end : last.end) - axis.first_tap;
  return axis;
}

static void list_small_parts(const Costs *costs, const Node *node, int spatial, Parts *parts) {
  const Window w = node_window(node, spatial);
  const Interior in = find_interior(&w);
  if (!is_single_channel(node) || !cuts_borders(costs, node, spatial, &w)) {
    add_part(costs, parts, whole_axis(node, &w));
    return;
  }
  for (Border border = BEFORE; border < NBORDERS; border++) {
    PieceAxis axis = {.step = 1, .extent = w.small, .tap_step = 1, .ntaps = w.kernel};
    if (select_part(&axis, &in, border)) add_part(costs, parts, border_axis(node, &w, axis));
  }
}

// The large side

static int64_t count_residues(const Node *node, const Window *w) {
  if (has_one_window(node, w)) return 1;
  return w->large < 1 ? 1 : w->large < w->stride ? w->large : w->stride;
}

// The places begin, begin + stride, ... of the large side. Their taps are the k with k * dilation = begin + pad modulo
// the stride: none, or every (stride / gcd(stride, dilation))-th.
static PieceAxis residue_axis(const Node *node, const Window *w, int64_t begin) {
  if (has_one_window(node, w))
    return (PieceAxis){.step = 1, .extent = w->large, .tap_step = 1, .ntaps = 1, .has_one_window = true};
  PieceAxis axis = {.begin = begin, .step = w->stride, .extent = (w->large - begin + w->stride - 1) / w->stride};
  axis.tap_step = window_tap_step(w);
  const int64_t first = window_tap_at(w, begin, 0);
  if (first >= w->kernel) return axis;
  axis.first_tap = first;
  axis.ntaps = (w->kernel - first + axis.tap_step - 1) / axis.tap_step;
  return axis;
}

// The window that reaches the axis's first place by its tap number `tap`; the window may not exist. The next place is
// reached by the next window.
static int64_t window_at(const Window *w, const PieceAxis *axis, int64_t tap) {
  return (axis->begin + w->pad_begin - (axis->first_tap + tap * axis->tap_step) * w->dilation) / w->stride;
}

// The places of a residue that windows reach by all taps.
static Interior find_covered(const Window *w, const PieceAxis *axis) {
  const int64_t first = window_at(w, axis, axis->ntaps - 1), last = window_at(w, axis, 0);
  Interior in = {.begin = first < 0 ? -first : 0, .end = w->small - last};
  if (in.end > axis->extent) in.end = axis->extent;
  if (in.end < 0) in.end = 0;
  if (in.begin > in.end) in.begin = in.end;
  return in;
}

static bool cuts_residue(const Costs *costs, const Node *node, int spatial, const PieceAxis *axis, const Interior *in) {
  return is_single_channel(node) && axis->ntaps && !axis->has_one_window && in->end - in->begin < axis->extent &&
         are_worth_cutting(costs, node, SIDE_LARGE, spatial, in);
}

// Drops taps by which no place of a border is reached.
static void drop_taps(const Window *w, PieceAxis *axis) {
  const int64_t first = window_at(w, axis, 0), last = first + axis->extent - 1; // the windows of tap 0
  const int64_t step = w->dilation * axis->tap_step / w->stride;                // to the windows of the next tap
  const int64_t end = last < 0 ? 0 : last / step + 1;
  int64_t begin = first < w->small ? 0 : (first - w->small) / step + 1;
  if (axis->ntaps > end) axis->ntaps = end;
  if (begin > axis->ntaps) begin = axis->ntaps;
  axis->ntaps -= begin;
  axis->first_tap += begin * axis->tap_step;
}

// Whether the places of a residue have no taps, because windows are farther apart than their taps reach.
static bool has_gaps(const Costs *costs, const Node *node, int spatial) {
  const Window w = node_window(node, spatial);
  const bool have_gaps = w.kernel < w.stride || window_tap_step(&w) < w.stride;
  return have_gaps && w.stride <= costs->piece_kernels && !has_one_window(node, &w);
}

// Whether the first piece stores the value without taps to all places, and later pieces overwrite the places that have
// taps. If places of several residues share cache lines, this is faster than a piece for each residue without taps.
static bool fills_gaps(const Costs *costs, const Node *node) {
  bool has = false;
  if (!makes_large(node) || axis_stride(node, count_spatial(node) - 1) != 1) return false;
  for (int i = 0; i < count_spatial(node) && !has; i++) has = has_gaps(costs, node, i);
  return has;
}

static void list_large_parts(const Costs *costs, const Node *node, int spatial, bool has_borders, Parts *parts) {
  const Window w = node_window(node, spatial);
  const int64_t nresidues = count_residues(node, &w);
  if (nresidues > costs->piece_kernels) parts->count = nresidues; // also if some have no taps
  for (int64_t begin = 0; begin < nresidues && parts->count <= costs->piece_kernels; begin++) {
    const PieceAxis axis = residue_axis(node, &w, begin);
    if (!axis.ntaps && fills_gaps(costs, node)) continue;
    const Interior in = find_covered(&w, &axis);
    const bool is_cut = has_borders && cuts_residue(costs, node, spatial, &axis, &in);
    if (!is_cut) add_part(costs, parts, axis);
    for (Border border = BEFORE; is_cut && border < NBORDERS; border++) {
      PieceAxis part = axis;
      if (!select_part(&part, &in, border)) continue;
      if (is_pool(node)) drop_taps(&w, &part);
      add_part(costs, parts, part);
    }
  }
}

static void list_parts(const Costs *costs, const Node *node, int spatial, bool has_borders, Parts *parts) {
  parts->count = 0;
  if (makes_large(node)) list_large_parts(costs, node, spatial, has_borders, parts);
  else list_small_parts(costs, node, spatial, parts);
}

// The number of pieces; more than piece_kernels: too many.
static int64_t count_pieces_as(const Costs *costs, const Node *node, bool has_borders) {
  int64_t count = 1;
  Parts parts;
  if (!node_makes_side(node)) return 1;
  for (int i = 0; i < count_spatial(node); i++) {
    list_parts(costs, node, i, has_borders, &parts);
    if (parts.count > costs->piece_kernels) return parts.count; // also if another axis has no parts
    count *= parts.count;
  }
  return count + fills_gaps(costs, node);
}

// Whether residues are cut into interiors and borders; false: they would be too many pieces. Kernels of whole residues
// are several times as fast as one kernel that divides by the stride.
static bool has_borders(const Costs *costs, const Node *node) {
  return count_pieces_as(costs, node, true) <= costs->piece_kernels;
}

static int64_t count_pieces(const Costs *costs, const Node *node) {
  return count_pieces_as(costs, node, has_borders(costs, node));
}

// Products

// The bytes of a copy of the operand; 0: they depend on open dims.
static int64_t copied_nbytes(const Node *node, int operand) {
  const Shape *shape = &node->inputs[operand]->shape;
  return shape_monomial(shape) ? 0 : shape_nelems(shape) * (int64_t)sizeof(float);
}

// Kernels copy the weights if there are many rows, and a src with distant rows if there are many columns. The axis of
// the larger copy is cut, unless each piece reading the other operand again costs more than the copy. Returns the
// number of places in a piece, and sets *axis; 0: there is one piece.
static int64_t product_length(const Costs *costs, const Node *node, int *axis) {
  if (node->op->id != OP_MatMul) return 0;
  const Product p = node_product(node);
  const Shape *made = &node->outputs[0]->shape;
  const int64_t of_src = copied_nbytes(node, 0), of_weights = copied_nbytes(node, 1);
  if (p.dst_m < 0 || p.dst_n < 0 || !of_src || !of_weights) return 0;
  const bool copies_weights = extent_value(made->extent[p.dst_m]) >= costs->product_piece_uses;
  const bool copies_src = extent_value(made->extent[p.dst_n]) >= costs->product_piece_uses && p.src_m > p.src_k;
  const bool is_of_weights = copies_weights && (of_weights > of_src || !copies_src);
  const int64_t nbytes = is_of_weights ? of_weights : of_src, other = is_of_weights ? of_src : of_weights;
  if (!(is_of_weights || copies_src) || nbytes <= costs->product_whole_copy) return 0;
  *axis = is_of_weights ? p.dst_n : p.dst_m;
  const int64_t extent = extent_value(made->extent[*axis]);
  const int64_t most[] = {(nbytes + costs->product_piece_copy - 1) / costs->product_piece_copy,
                          extent / costs->product_piece_least, 1 + nbytes / other, costs->piece_kernels};
  int64_t npieces = most[0];
  for (size_t i = 1; i < sizeof most / sizeof *most; i++)
    if (npieces > most[i]) npieces = most[i];
  const int64_t unit = costs->product_piece_unit;
  return npieces < 2 ? 0 : ((extent + npieces - 1) / npieces + unit - 1) / unit * unit;
}

static int64_t count_product_pieces(const Costs *costs, const Node *node) {
  int axis;
  const int64_t length = product_length(costs, node, &axis);
  return length ? (extent_value(node->outputs[0]->shape.extent[axis]) + length - 1) / length : 1;
}

ProductPiece node_product_piece(const Costs *costs, const Node *node, uint32_t piece) {
  ProductPiece part = {.axis = -1};
  const int64_t length = product_length(costs, node, &part.axis);
  if (!length) return (ProductPiece){.axis = -1};
  part.begin = length * piece;
  part.extent = extent_value(node->outputs[0]->shape.extent[part.axis]) - part.begin;
  if (part.extent > length) part.extent = length;
  return part;
}

bool node_is_cut(const Costs *costs, const Node *node) {
  return count_pieces(costs, node) <= costs->piece_kernels;
}

uint32_t node_npieces(const Costs *costs, const Node *node) {
  if (node->op->traits & TRAIT_PIECES) return node->ninputs;
  const int64_t count = node_makes_side(node) ? count_pieces(costs, node) : count_product_pieces(costs, node);
  return count <= costs->piece_kernels ? (uint32_t)count : 1;
}

uint32_t nodes_npieces(const Costs *costs, Node *const *nodes, size_t nnodes) {
  uint32_t npieces = 1;
  for (size_t i = 0; i < nnodes; i++) npieces *= node_npieces(costs, nodes[i]);
  return npieces;
}

PieceAxis node_piece_axis(const Costs *costs, const Node *node, uint32_t piece, int spatial) {
  const Window w = node_window(node, spatial);
  const PieceAxis whole = {
      .step = 1, .extent = makes_large(node) ? w.large : w.small, .tap_step = 1, .ntaps = w.kernel};
  if (!node_makes_side(node) || !node_is_cut(costs, node)) return whole;
  if (fills_gaps(costs, node) && !piece--) return (PieceAxis){.step = 1, .extent = w.large, .tap_step = 1};
  const bool cuts_borders = has_borders(costs, node);
  Parts parts;
  for (int i = count_spatial(node) - 1; i > spatial; i--) {
    list_parts(costs, node, i, cuts_borders, &parts);
    piece /= (uint32_t)parts.count;
  }
  list_parts(costs, node, spatial, cuts_borders, &parts);
  return parts.items[piece % parts.count];
}

void node_reach(const Costs *costs, const Node *node, int spatial, int64_t *begin, int64_t *end) {
  *begin = *end = 0;
  if (!makes_large(node) || !node_is_cut(costs, node)) return;
  const Window w = node_window(node, spatial);
  Parts parts;
  list_parts(costs, node, spatial, has_borders(costs, node), &parts);
  for (const PieceAxis *axis = parts.items; axis < parts.items + parts.count; axis++) {
    if (!axis->ntaps || axis->has_one_window) continue;
    const int64_t first = window_at(&w, axis, axis->ntaps - 1), last = window_at(&w, axis, 0) + axis->extent - 1;
    const bool is_any = *begin < *end;
    if (!is_any || first < *begin) *begin = first;
    if (!is_any || last >= *end) *end = last + 1;
  }
}

// Budget of code

// One piece: the sizes of its loops.
typedef struct PieceSize {
  int64_t ntaps, nplaces;
} PieceSize;

static PieceSize piece_size(const Costs *costs, const Node *node, uint32_t piece) {
  PieceSize size = {1, 1};
  for (int i = 0; i < count_spatial(node); i++) {
    const PieceAxis axis = node_piece_axis(costs, node, piece, i);
    size.ntaps = size.ntaps > costs->piece_taps ? size.ntaps : size.ntaps * axis.ntaps;
    size.nplaces *= axis.extent;
  }
  return size;
}

// Whether a piece's taps are few, as long as its node has no other pieces.
static bool has_few_taps(const Costs *costs, const Node *node, PieceSize size) {
  return size.ntaps <= costs->piece_taps && (size.nplaces >= size.ntaps || is_depthwise(node));
}

// The C of a written tap, in units of about 180 bytes: vectors along a spatial axis are masked at the borders, and
// divisors of averages are counted again.
static int tap_cost(const Node *node) {
  const bool counts =
      makes_large(node) && operator_has_attribute(node->op, "exclude_pad") && node_bool(node, "exclude_pad");
  return (has_masked_vectors(node) ? 3 : 1) * (counts ? 2 : 1);
}

// All pieces of a node share a budget, which piece_kernels without written taps use up. What is left of it goes to the
// pieces with most places first.
static bool is_within_budget(const Costs *costs, const Node *node, uint32_t piece, PieceSize size) {
  const uint32_t npieces = node_npieces(costs, node);
  const int64_t left = costs->piece_code * (costs->piece_kernels - (int64_t)npieces), cost = tap_cost(node);
  int64_t ntaps = size.ntaps;
  for (uint32_t other = 0; other < npieces && ntaps * cost <= left; other++) {
    const PieceSize own = piece_size(costs, node, other);
    const bool is_before = own.nplaces > size.nplaces || (own.nplaces == size.nplaces && other < piece);
    if (is_before && has_few_taps(costs, node, own)) ntaps += own.ntaps;
  }
  return ntaps * cost <= left;
}

bool node_writes_taps(const Costs *costs, const Node *node, uint32_t piece) {
  if (!node_makes_side(node) || !node_is_cut(costs, node) || !is_single_channel(node)) return false;
  if (is_of_maxima(node) && !makes_large(node) && !node_has_few_taps(node)) return false;
  const PieceSize size = piece_size(costs, node, piece);
  return has_few_taps(costs, node, size) && (size.ntaps <= 1 || is_within_budget(costs, node, piece, size));
}

// The result that is computed in pieces.
static const Value *node_made(const Node *node) {
  if (!node_makes_side(node)) return node->outputs[0];
  return node_side(node, makes_large(node) ? SIDE_LARGE : SIDE_SMALL);
}

static PieceAxis made_axis(const Costs *costs, const Node *node, uint32_t piece, int axis) {
  const ProductPiece part = node_product_piece(costs, node, piece);
  if (axis == part.axis) return (PieceAxis){.begin = part.begin, .step = 1, .extent = part.extent};
  const int spatial = node_makes_side(node) ? axis - spatial_axis(node) : -1;
  if (spatial >= 0 && spatial < count_spatial(node)) return node_piece_axis(costs, node, piece, spatial);
  return (PieceAxis){.step = 1, .extent = extent_value(node_made(node)->shape.extent[axis])};
}

bool node_piece_text(const Costs *costs, const Node *node, uint32_t piece, Arena *arena, const char **text) {
  *text = NULL;
  if (node_npieces(costs, node) == 1) return true;
  if (node->op->traits & TRAIT_PIECES) {
    *text = arena_format(arena, "of input %u", (unsigned)piece + 1);
    return *text != NULL;
  }
  const Shape *made = &node_made(node)->shape;
  const char *axes = "at [";
  for (int i = 0; i < made->rank && axes; i++) {
    const char *comma = i ? ", " : "";
    const int64_t extent = extent_value(made->extent[i]);
    const PieceAxis axis = made_axis(costs, node, piece, i);
    const long long begin = axis.begin, step = axis.step, end = begin + (axis.extent - 1) * step + 1;
    if (axis.extent == extent) axes = arena_format(arena, "%s%s:", axes, comma);
    else if (step == 1) axes = arena_format(arena, "%s%s%lld:%lld", axes, comma, begin, end);
    else if (end + step > extent) axes = arena_format(arena, "%s%s%lld::%lld", axes, comma, begin, step);
    else axes = arena_format(arena, "%s%s%lld:%lld:%lld", axes, comma, begin, end, step);
  }
  if (axes) *text = arena_format(arena, "%s]", axes);
  return *text != NULL;
}
