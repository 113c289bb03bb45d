// Functions for convolutions and pooling.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/interpolate.h"
#include "ir/operators/norm.h"
#include "ir/operators/window.h"

// Rounding up makes the padding longer than the graph's, which oneDNN must be told.
static int64_t pad_end_of(const Window *w) {
  const int64_t needed = (w->small - 1) * w->stride + window_reach(w) - w->large - w->pad_begin;
  return needed > w->pad_end ? needed : w->pad_end;
}

Windows node_windows(const Node *node) {
  Windows all = {.kernel = {0}};
  const int nspatial = node_side(node, SIDE_LARGE)->shape.rank - 2;
  for (int i = 0; i < nspatial; i++) {
    const Window w = node_window(node, i);
    all.kernel[i] = w.kernel;
    all.strides[i] = w.stride;
    all.dilations[i] = w.dilation - 1;
    all.pads_begin[i] = w.pad_begin;
    all.pads_end[i] = pad_end_of(&w);
  }
  return all;
}

bool side_desc(Desc *desc, const Node *node, const Value *v) {
  const int rank = v->shape.rank, channels = node_channel_axis(node, rank), first = spatial_axis(node);
  dnnl_dims_t dims, strides;
  int64_t stride = 1;
  for (int axis = rank - 1; axis >= 0; axis--) {
    const int to = axis == 0 ? 0 : axis == channels ? 1 : 2 + axis - first;
    dims[to] = extent_value(v->shape.extent[axis]);
    strides[to] = stride;
    stride *= dims[to];
  }
  return desc_by_strides(desc, rank, dims, onednn_type(v->type), strides);
}
