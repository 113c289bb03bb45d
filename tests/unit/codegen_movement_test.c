// Compiled operators that move, resample, join and quantise elements against the other rungs of the ladder (ladder.h).
#include "tests/unit/graph_cases.h"
#include "tests/unit/ladder.h"

static void move(GraphText *g, const char *op, const char *type, Extents s, const char *attributes) {
  graph_text_case(g, "%s %s %s %s", op, type, extents_text(g, s, "x"), attributes);
  const char *x = graph_text_input(g, "x", type, s), *moved = graph_text_name(g, "moved");
  graph_text_node(g, "ReLU", "inputs: [%s], outputs: [%s]", x, graph_text_name(g, "before"));
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s}", graph_text_name(g, "before"), moved,
                  attributes);
  graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", moved, moved, graph_text_result(g, "z"));
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s}", x, graph_text_result(g, "alone"), attributes);
}

// Integers are converted by loops that compilers make vectors of: one strides, the other does not.
static void add_transpose(GraphText *g, const char *type, int64_t extent) {
  graph_text_case(g, "%s %d and its transpose", type, (int)extent);
  const char *x = graph_text_input(g, "x", type, EXTENTS(extent, extent)), *turned = graph_text_name(g, "turned");
  graph_text_node(g, "StaticTranspose", "inputs: [%s], outputs: [%s], attributes: {order: [1, 0]}", x, turned);
  graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", turned, x, graph_text_result(g, "sum"));
}

static void elements_move_anywhere(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  move(&g, "StaticTranspose", "f32", EXTENTS(33, 17), "order: [1, 0]");
  move(&g, "StaticTranspose", "f32", EXTENTS(16, 16), "order: [1, 0]");
  move(&g, "StaticTranspose", "bf16", EXTENTS(3, 1, 5, 31), "order: [2, 3, 1, 0]");
  move(&g, "StaticTranspose", "f64", EXTENTS(2, 3, 4, 5), "order: [0, 2, 1, 3]");
  move(&g, "StaticTranspose", "f16", EXTENTS(1, 7), "order: []");
  move(&g, "StaticTranspose", "f32", EXTENTS(0, 7), "order: []");
  move(&g, "Diagonal", "f32", EXTENTS(33, 33), "");
  move(&g, "Diagonal", "bf16", EXTENTS(3, 17, 2, 17), "axis1: 3, axis2: 1");
  move(&g, "Diagonal", "f64", EXTENTS(1, 1, 5), "");
  move(&g, "Diagonal", "f16", EXTENTS(0, 0), "");
  move(&g, "StaticReshape", "f32", EXTENTS(3, 34), "shape: [-1, 2, 17], special_zero: false");
  move(&g, "StaticReshape", "f16", EXTENTS(4, 4), "shape: [2, 8], special_zero: false");
  move(&g, "StaticReshape", "f64", EXTENTS(1, 1), "shape: [], special_zero: false");
  move(&g, "StaticReshape", "bf16", EXTENTS(5, 0), "shape: [0, 7], special_zero: false");
  for (int64_t extent = 2; extent <= 16; extent *= 2) {
    add_transpose(&g, "s32", extent);
    add_transpose(&g, "s64", extent);
  }
  climb(&g, (Climb){.name = "movement", .unfused_too = true});
}

// Alone, between elementwise operators, and before sums along either axis.
static void read_parts(GraphText *g, const char *op, const char *type, Extents s, const char *attributes) {
  move(g, op, type, s, attributes);
  graph_text_case(g, "%s %s %s %s, then sums", op, type, extents_text(g, s, "x"), attributes);
  const char *x = graph_text_input(g, "x", type, s), *part = graph_text_name(g, "part");
  graph_text_node(g, op, "inputs: [%s], outputs: [%s], attributes: {%s}", x, part, attributes);
  graph_text_node(g, "Exp", "inputs: [%s], outputs: [%s]", part, graph_text_name(g, "grown"));
  for (int axis = 0; axis < 2; axis++)
    graph_text_node(g, "ReduceSum", "inputs: [%s], outputs: [%s], attributes: {axes: [%d]}",
                    graph_text_name(g, "grown"), graph_text_result(g, axis ? "rows" : "columns"), axis);
}

static void parts_are_read(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  read_parts(&g, "Slice", "f32", EXTENTS(33, 40), "starts: [1, -1], ends: [32, -100], steps: [2, -1]");
  read_parts(&g, "Slice", "f32", EXTENTS(7, 100), "starts: [-3], ends: [1], axes: [1], steps: [-3]");
  read_parts(&g, "Slice", "f64", EXTENTS(5, 37), "starts: [3, 2], ends: [100, 36], axes: [-1, 0]");
  read_parts(&g, "Slice", "bf16", EXTENTS(4, 50, 3), "starts: [10], ends: [27], axes: [1]");
  read_parts(&g, "Slice", "f16", EXTENTS(4, 3), "starts: [2], ends: [2]");
  read_parts(&g, "Slice", "f32", EXTENTS(1, 1), "starts: [0, 0], ends: [-2, 1], steps: [-1, 5]");
  read_parts(&g, "Diagonal", "f32", EXTENTS(33, 5, 33), "axis2: -1");
  read_parts(&g, "Diagonal", "f64", EXTENTS(5, 17, 17), "axis1: 2");
  read_parts(&g, "Pad", "f32", EXTENTS(5, 31), "pads_begin: [1, 2], pads_end: [2, 3], value: 0.5");
  read_parts(&g, "Pad", "f64", EXTENTS(6, 16), "pads_begin: [-1, 17], pads_end: [-2, -3]");
  read_parts(&g, "Pad", "bf16", EXTENTS(3, 33, 2), "pads_begin: [0, -1, 1], pads_end: [0, 16, 0], value: -2");
  read_parts(&g, "Pad", "f16", EXTENTS(2, 0), "pads_begin: [1, 1], pads_end: [0, 16], value: 1");
  read_parts(&g, "Pad", "f32", EXTENTS(3, 5), "pads_begin: [0, 7], pads_end: [0, -6], value: 3"); // nothing is left
  read_parts(&g, "Pad", "f32", EXTENTS(2, 4), "pads_begin: [-1, -2], pads_end: [0, -1]");
  const char *const types[] = {"s64", "s32", "s8", "u8", "boolean", "f8_e4m3", "f8_e5m2"};
  for (int i = 0; i < 7; i++) {
    graph_text_case(&g, "copies of %s", types[i]);
    const char *x = graph_text_input(&g, "x", types[i], EXTENTS(3, 37)), *slice = graph_text_result(&g, "slice");
    graph_text_node(&g, "Slice",
                    "inputs: [%s], outputs: [%s], attributes: {starts: [-1, 0], ends: [-9, 36], steps: "
                    "[-1, 2]}",
                    x, slice);
    graph_text_node(&g, "Pad",
                    "inputs: [%s], outputs: [%s], attributes: {pads_begin: [1, 5], pads_end: [-2, 2], "
                    "value: 1}",
                    slice, graph_text_result(&g, "padded"));
    graph_text_node(&g, "Concat", "inputs: [%s, %s], outputs: [%s], attributes: {axis: 0}", slice, slice,
                    graph_text_result(&g, "joined"));
  }
  graph_text_case(&g, "a product beside padding");
  graph_text_node(&g, "MatMul", "inputs: [%s, %s], outputs: [%s]", graph_text_input(&g, "a", "f32", EXTENTS(16, 5)),
                  graph_text_input(&g, "b", "f32", EXTENTS(5, 33)), graph_text_name(&g, "product"));
  graph_text_node(&g, "Pad", "inputs: [%s], outputs: [%s], attributes: {pads_begin: [2, 3], pads_end: [0, 0]}",
                  graph_text_input(&g, "p", "f32", EXTENTS(14, 30)), graph_text_name(&g, "padded"));
  graph_text_node(&g, "Slice",
                  "inputs: [%s], outputs: [%s], attributes: {starts: [-1, 1], ends: [-99, 34], steps: "
                  "[-1, 1]}",
                  graph_text_input(&g, "s", "f32", EXTENTS(16, 34)), graph_text_name(&g, "part"));
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "product"),
                  graph_text_name(&g, "padded"), graph_text_name(&g, "sum"));
  graph_text_node(&g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(&g, "sum"), graph_text_name(&g, "part"),
                  graph_text_result(&g, "all"));
  graph_text_case(&g, "queries, keys and values");
  const char *three = graph_text_input(&g, "x", "f32", EXTENTS(5, 3, 17)), *keys = graph_text_name(&g, "keys");
  graph_text_node(&g, "Split", "inputs: [%s], outputs: [%s, %s], attributes: {axis: 1, parts: 3}", three,
                  graph_text_result(&g, "queries"), keys);
  graph_text_node(&g, "Exp", "inputs: [%s], outputs: [%s]", keys, graph_text_result(&g, "grown"));
  climb(&g, (Climb){.name = "parts that are read", .unfused_too = true});
}

static void tile(GraphText *g, const char *type, Extents s, const char *repeats) {
  graph_text_case(g, "tile %s %s %s", type, extents_text(g, s, "x"), repeats);
  const char *x = graph_text_input(g, "x", type, s), *tiled = graph_text_result(g, "tiled");
  graph_text_node(g, "Tile", "inputs: [%s], outputs: [%s], attributes: {repeats: %s}", x, tiled, repeats);
  graph_text_node(g, "Slice", "inputs: [%s], outputs: [%s], attributes: {starts: [1], ends: [99]}", tiled,
                  graph_text_result(g, "rest"));
}

static void copies_are_made(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  tile(&g, "f32", EXTENTS(3, 17), "[2, 3]");
  tile(&g, "f32", EXTENTS(33, 1), "[1, 40]");
  tile(&g, "bf16", EXTENTS(2, 1, 5, 1), "[2, 3, 4, 5]");
  tile(&g, "f64", EXTENTS(1, 16), "[17, 1]");
  tile(&g, "u8", EXTENTS(5, 7), "[1, 3]");
  tile(&g, "s64", EXTENTS(3, 17), "[2, 3]");
  tile(&g, "s32", EXTENTS(2, 2, 2, 2, 2, 1, 2, 2), "[2, 1, 2, 1, 2, 3, 2, 2]");
  tile(&g, "f16", EXTENTS(3, 0), "[2, 2]");
  tile(&g, "f32", EXTENTS(3, 4), "[2, 0]");
  graph_text_case(&g, "copies of a number");
  graph_text_node(&g, "Tile", "inputs: [%s], outputs: [%s], attributes: {repeats: [2, 20]}",
                  graph_text_splat(&g, "x", "f32", EXTENTS(3, 2), "1.5"), graph_text_result(&g, "tiled"));
  climb(&g, (Climb){.name = "copies", .unfused_too = true});
}

// The indices of greatest elements, as labels.
static void find(GraphText *g, const char *type, Extents s, int axis, const char *attributes) {
  graph_text_case(g, "ArgMax %s %s %d", type, extents_text(g, s, "x"), axis);
  const char *x = graph_text_input(g, "x", type, s), *greatest = graph_text_result(g, "greatest");
  graph_text_node(g, "ArgMax", "inputs: [%s], outputs: [%s], attributes: {axis: %d}", x, greatest, axis);
  graph_text_node(g, "ArgMin", "inputs: [%s], outputs: [%s], attributes: {axis: %d, keep_dims: true}", x,
                  graph_text_result(g, "least"), axis);
  graph_text_node(g, "OneHot", "inputs: [%s], outputs: [%s], attributes: {%s}", greatest, graph_text_name(g, "hot"),
                  attributes);
  graph_text_node(g, "Square", "inputs: [%s], outputs: [%s]", graph_text_name(g, "hot"), graph_text_result(g, "y"));
}

static void indices_are_found(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  find(&g, "f32", EXTENTS(5, 33), 1, "depth: 33");
  find(&g, "f32", EXTENTS(33, 17), 0, "depth: 16, axis: 0, on_value: 3, off_value: -1");
  find(&g, "bf16", EXTENTS(3, 10, 5), 1, "depth: 10, axis: 1");
  find(&g, "f64", EXTENTS(2, 300), -1, "depth: 7");
  find(&g, "f16", EXTENTS(4, 1), 1, "depth: 1");
  find(&g, "f32", EXTENTS(3, 0), 1, "depth: 2");
  climb(&g, (Climb){.name = "indices", .unfused_too = true, .unusual_too = true});
}

// Takes rows at indices: some are equal, some count from the end, some are outside of the tensor; and its gradient.
static void take(GraphText *g, const char *type, const char *index_type, Extents s, Extents i, int axis) {
  Extents taken = {.rank = s.rank - 1 + i.rank};
  const int at = axis < 0 ? axis + s.rank : axis;
  for (int k = 0; k < taken.rank; k++)
    taken.extent[k] = k < at ? s.extent[k] : k < at + i.rank ? i.extent[k - at] : s.extent[k + 1 - i.rank];
  graph_text_case(g, "Gather %s %s %d by %s %s", type, extents_text(g, s, "x"), axis, index_type,
                  extents_text(g, i, "x"));
  const char *x = graph_text_input(g, "x", type, s), *indices = graph_text_input(g, "i", index_type, i);
  graph_text_node(g, "Gather", "inputs: [%s, %s], outputs: [%s], attributes: {axis: %d}", x, indices,
                  graph_text_result(g, "taken"), axis);
  graph_text_node(g, "GatherBackward", "inputs: [%s, %s], outputs: [{name: %s, shape: [%s]}], attributes: {axis: %d}",
                  indices, graph_text_input(g, "diff", type, taken), graph_text_result(g, "back"),
                  extents_text(g, s, ", "), axis);
}

// The gradient and its indices have as many bytes, so that one may take the other's place in the workspace.
static void add_at_found_indices(GraphText *g) {
  graph_text_case(g, "GatherBackward by found indices");
  const char *x = graph_text_input(g, "x", "f32", EXTENTS(20, 5)), *found = graph_text_name(g, "found");
  graph_text_node(g, "ArgMax", "inputs: [%s], outputs: [{name: %s, type: s32}], attributes: {axis: 1}", x, found);
  graph_text_node(g, "GatherBackward", "inputs: [%s, %s], outputs: [{name: %s, shape: [5, 4]}]", found,
                  graph_text_input(g, "diff", "f32", EXTENTS(20, 4)), graph_text_name(g, "back"));
  graph_text_node(g, "Abs", "inputs: [%s], outputs: [%s]", graph_text_name(g, "back"), graph_text_result(g, "y"));
}

// Integers are taken, moved and computed with; neither the indices nor the integers pass through floats.
static void move_integers(GraphText *g) {
  for (int axis = 0; axis < 2; axis++) {
    graph_text_case(g, "integers along %d", axis);
    const char *x = graph_text_input(g, "x", "s64", EXTENTS(5, 37)), *rows = graph_text_name(g, "rows");
    graph_text_node(g, "Gather", "inputs: [%s, %s], outputs: [%s], attributes: {axis: %d}", x,
                    graph_text_input(g, "i", axis ? "s32" : "s64", EXTENTS(19)), rows, axis);
    graph_text_node(g, "StaticTranspose", "inputs: [%s], outputs: [%s], attributes: {order: [1, 0]}", rows,
                    graph_text_name(g, "turned"));
    graph_text_node(g, "Add", "inputs: [%s, %s], outputs: [%s]", graph_text_name(g, "turned"),
                    graph_text_name(g, "turned"), graph_text_result(g, "twice"));
    graph_text_node(g, "StaticReshape", "inputs: [%s], outputs: [%s], attributes: {shape: [-1], special_zero: false}",
                    rows, graph_text_result(g, "flat"));
    graph_text_node(g, "TypeCast", "inputs: [%s], outputs: [{name: %s, type: f32}]", rows,
                    graph_text_result(g, "floats"));
    graph_text_node(g, "OneHot", "inputs: [%s], outputs: [{name: %s, type: s64}], attributes: {depth: 5, on_value: 3}",
                    x, graph_text_result(g, "marks"));
  }
}

static void rows_are_taken(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  take(&g, "f32", "s64", EXTENTS(11, 33), EXTENTS(5, 4), 0);
  take(&g, "f32", "s32", EXTENTS(3, 7, 5), EXTENTS(40), 1);
  take(&g, "f32", "s64", EXTENTS(6, 50), EXTENTS(19), -1);
  take(&g, "bf16", "s32", EXTENTS(9, 17), EXTENTS(2, 3), 0);
  take(&g, "f16", "s64", EXTENTS(2, 5), EXTENTS(0), 1);
  take(&g, "f64", "s64", EXTENTS(5, 3, 2), EXTENTS(8), 0);
  take(&g, "f32", "s32", EXTENTS(1, 16), EXTENTS(3), 0);
  take(&g, "f32", "s32", EXTENTS(300), EXTENTS(70), 0);
  take(&g, "f32", "s32", EXTENTS(2, 3000, 50), EXTENTS(64), 1);
  take(&g, "f64", "s64", EXTENTS(2000, 48), EXTENTS(9), 0);
  add_at_found_indices(&g);
  move_integers(&g);
  climb(&g, (Climb){.name = "rows", .unfused_too = true, .unusual_too = true});
}

static void resample(GraphText *g, const char *type, Extents extents, const char *attributes) {
  graph_text_case(g, "resampling %s %s %s", type, extents_text(g, extents, "x"), attributes);
  const char *x = graph_text_input(g, "x", type, extents), *made = graph_text_result(g, "made");
  graph_text_node(g, "Interpolate", "inputs: [%s], outputs: [%s], attributes: {%s}", x, graph_text_name(g, "between"),
                  attributes);
  graph_text_node(g, "Sigmoid", "inputs: [%s], outputs: [%s]", graph_text_name(g, "between"), made);
  graph_text_node(g, "InterpolateBackward", "inputs: [%s, %s], outputs: [%s], attributes: {%s}", x, made,
                  graph_text_result(g, "back"), attributes);
}

static void tensors_are_resampled(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  resample(&g, "f32", EXTENTS(2, 3, 17), "mode: linear, sizes: [40], data_format: NCX");
  resample(&g, "f32", EXTENTS(2, 33, 7, 1), "mode: nearest, sizes: [16, 20], data_format: NCX");
  resample(&g, "bf16", EXTENTS(2, 5, 7, 17), "mode: bilinear, scales: [0.5, 3]");
  resample(&g, "f16", EXTENTS(1, 2, 3, 5, 19), "mode: trilinear, sizes: [5, 3, 19], data_format: NCX");
  resample(&g, "f64", EXTENTS(1, 2, 9),
           "mode: nearest, sizes: [4], data_format: NCX, "
           "coordinate_transformation_mode: align_corners");
  resample(&g, "f32", EXTENTS(2, 2, 4), "mode: linear, sizes: [0], data_format: NCX");
  resample(&g, "f32", EXTENTS(1, 1, 5000), "mode: linear, sizes: [4999], data_format: NCX");
  graph_text_case(&g, "gradient of one number"); // only the sums over taps do not vary along the first axis
  graph_text_node(&g, "InterpolateBackward", "inputs: [%s, %s], outputs: [%s], attributes: {mode: nearest, sizes: [9]}",
                  graph_text_input(&g, "x", "f32", EXTENTS(9, 5, 1)),
                  graph_text_splat(&g, "diff", "f32", EXTENTS(9, 16, 1), "1.5"), graph_text_result(&g, "back"));
  climb(&g, (Climb){.name = "resampling", .unfused_too = true});
}

static void parts_are_joined(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  graph_text_case(&g, "parts");
  const char *x = graph_text_input(&g, "x", "f32", EXTENTS(3, 17, 2));
  const char *y = graph_text_input(&g, "y", "f32", EXTENTS(3, 16, 2));
  const char *nothing = graph_text_input(&g, "n", "f32", EXTENTS(3, 0, 2));
  const char *row = graph_text_input(&g, "r", "bf16", EXTENTS(1));
  const char *joined = graph_text_name(&g, "joined");
  graph_text_node(&g, "Exp", "inputs: [%s], outputs: [%s]", y, graph_text_name(&g, "between"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s, %s, %s], outputs: [%s], attributes: {axis: 1}", x,
                  graph_text_name(&g, "between"), nothing, x, joined);
  graph_text_node(&g, "Square", "inputs: [%s], outputs: [%s]", joined, graph_text_result(&g, "after"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s], outputs: [%s], attributes: {axis: -1}", x, x,
                  graph_text_result(&g, "last"));
  graph_text_node(&g, "Concat", "inputs: [%s, %s], outputs: [%s], attributes: {axis: 0}", row, row,
                  graph_text_result(&g, "ones"));
  graph_text_node(&g, "GenIndex", "inputs: [%s], outputs: [%s], attributes: {axis: 1}", joined,
                  graph_text_result(&g, "index"));
  graph_text_node(&g, "Reorder", "inputs: [%s], outputs: [{name: %s, shape: [3, 17, 2], order: [2, 0, 1]}]", x,
                  graph_text_name(&g, "reordered"));
  graph_text_node(&g, "Reorder", "inputs: [%s], outputs: [%s]", graph_text_name(&g, "reordered"),
                  graph_text_result(&g, "again"));
  climb(&g, (Climb){.name = "parts", .unfused_too = true});
}

static void quantize(GraphText *g, const char *type, Extents extents, const char *attributes, const char *back) {
  graph_text_case(g, "quantize %s %s %s", type, extents_text(g, extents, "x"), attributes);
  const char *x = graph_text_input(g, "x", "f32", extents), *few = graph_text_result(g, "few");
  graph_text_node(g, "Quantize", "inputs: [%s], outputs: [{name: %s, type: %s}], attributes: {%s}", x, few, type,
                  attributes);
  graph_text_node(g, "Dequantize", "inputs: [%s], outputs: [%s], attributes: {%s}", few, graph_text_result(g, "back"),
                  back);
}

static void few_bits_are_enough(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  quantize(&g, "s8", EXTENTS(3, 37), "scales: [0.5], zps: [3]", "scales: [0.25]");
  quantize(&g, "u8", EXTENTS(3, 16, 2), "scales: [0.5, 0.25, 2], zps: [3, 4, 100], qtype: per_channel, axis: 0",
           "scales: [1, 2], qtype: per_channel, axis: -1");
  quantize(&g, "f8_e4m3", EXTENTS(5, 33), "scales: [0.125]", "scales: [0.125]");
  quantize(&g, "f8_e5m2", EXTENTS(1), "scales: [3]", "scales: [1]");
  quantize(&g, "s8", EXTENTS(0, 2), "scales: [1, 2], qtype: per_channel", "scales: [1]");
  quantize(&g, "s8", EXTENTS(3, 37), "scales: [0.5, 0.25, 0.125], zps: [1, 2, 3], qtype: per_channel",
           "scales: [0.25, 2, 1, 4], qtype: per_channel, axis: 0");
  graph_text_case(&g, "channels without scales of their own");
  graph_text_node(&g, "DynamicDequantize", "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_channel}",
                  graph_text_input(&g, "x", "u8", EXTENTS(2, 33, 3)), graph_text_input(&g, "s", "f16", EXTENTS(5)),
                  graph_text_input(&g, "z", "u8", EXTENTS(17)), graph_text_result(&g, "y"));
  graph_text_case(&g, "groups");
  const char *x = graph_text_input(&g, "x", "s8", EXTENTS(4, 34)), *z = graph_text_input(&g, "z", "u8", EXTENTS(2, 17));
  const char *s = graph_text_splat(&g, "s", "f32", EXTENTS(2, 17), "0.25");
  graph_text_node(&g, "DynamicDequantize",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_group, group_shape: [2, 2]}", x, s, z,
                  graph_text_result(&g, "y"));
  climb(&g, (Climb){.name = "quantised", .unfused_too = true});
}

// Two elements a byte: rows that begin in the middle of a byte, blocks that would share a byte, columns, tails. Results
// overwrite random data, and bytes beyond the last element stay unchanged.
static void halves_of_bytes_are_read_and_written(void **state) {
  (void)state;
  GraphText g;
  graph_text_init(&g);
  for (int w = 0; w < NWIDTHS; w++) {
    const Extents s = EXTENTS(all_heights[w % NHEIGHTS], all_widths[w]);
    quantize(&g, w % 2 ? "s4" : "u4", s, "scales: [0.25], zps: [1]", "scales: [0.25]");
  }
  const char *const shapes[] = {"[301, 333]", "[301, 333], order: [1, 0]", "[2, 300, 167]",
                                "[2, 300, 167], order: [1, 0, 2]"};
  for (int i = 0; i < 4; i++) {
    const Extents s = i < 2 ? EXTENTS(301, 333) : EXTENTS(2, 300, 167);
    graph_text_case(&g, "channels %s", shapes[i]);
    const char *x = graph_text_input(&g, "x", "f32", s), *few = graph_text_result(&g, "few");
    const char *scales = graph_text_input(&g, "s", "f32", EXTENTS(s.extent[i % 2]));
    const char *zps = graph_text_input(&g, "z", i % 2 ? "s4" : "u4", EXTENTS(s.extent[i % 2]));
    graph_text_node(
        &g, "DynamicQuantize",
        "inputs: [%s, %s, %s], outputs: [{name: %s, type: %s, shape: %s}], attributes: {qtype: per_channel, "
        "axis: %d}",
        x, scales, zps, few, i % 2 ? "u4" : "s4", shapes[i], i % 2);
    graph_text_node(&g, "DynamicDequantize",
                    "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_channel, axis: %d}", few, scales, zps,
                    graph_text_result(&g, "back"), i % 2);
  }
  graph_text_case(&g, "groups");
  const char *x = graph_text_input(&g, "x", "s4", EXTENTS(5, 33)), *z = graph_text_input(&g, "z", "s4", EXTENTS(5, 3));
  graph_text_node(&g, "DynamicDequantize",
                  "inputs: [%s, %s, %s], outputs: [%s], attributes: {qtype: per_group, group_shape: [1, 11]}", x,
                  graph_text_input(&g, "s", "f32", EXTENTS(5, 3)), z, graph_text_result(&g, "y"));
  graph_text_case(&g, "copies");
  graph_text_output(&g, graph_text_input(&g, "x", "u4", EXTENTS(7)));
  graph_text_output(&g, graph_text_splat(&g, "number", "s4", EXTENTS(3, 5), "-3"));
  graph_text_output(&g, graph_text_values(&g, "numbers", "s4", EXTENTS(3, 5)));
  graph_text_node(&g, "Dequantize", "inputs: [%s], outputs: [%s], attributes: {scales: [3]}",
                  graph_text_name(&g, "numbers"), graph_text_result(&g, "three times"));
  climb(&g, (Climb){.name = "four bits", .unfused_too = true});
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(elements_move_anywhere),
      cmocka_unit_test(parts_are_read),
      cmocka_unit_test(copies_are_made),
      cmocka_unit_test(indices_are_found),
      cmocka_unit_test(rows_are_taken),
      cmocka_unit_test(tensors_are_resampled),
      cmocka_unit_test(parts_are_joined),
      cmocka_unit_test(few_bits_are_enough),
      cmocka_unit_test(halves_of_bytes_are_read_and_written),
  };
  return cmocka_run_group_tests_name("codegen_movement", tests, NULL, NULL);
}
