// Functions shared by the writers of ONNX's own operators (write_*.c), by family. They write a node with the operands
// in w->in and w->out, whose floats have the type w->type, and return false for forms that ONNX lacks: what was written
// of the node by then is dropped.
#ifndef NGRAD_FRONTEND_ONNX_WRITE_STANDARD_H
#define NGRAD_FRONTEND_ONNX_WRITE_STANDARD_H

#include "frontend/onnx/writer.h"

// `name`: ONNX's operator, or the formula.
typedef bool (*OnnxWrite)(OnnxWriter *w, const Node *node, const char *name);

// put.c
bool onnx_choice_is(const Node *node, const char *attribute, const char *choice);

// A node of an operator with its inputs, of which NULL ends the list; `to` NULL: its output gets a new name. Returns
// the output's name.
#define onnx_put(w, op, to, ...) onnx_put_list(w, to, (const char *const[]){op, __VA_ARGS__, NULL})
const char *onnx_put_list(OnnxWriter *w, const char *to, const char *const *op_and_inputs);
const char *onnx_put_cast(OnnxWriter *w, const char *from, Type type, const char *to);
const char *onnx_put_transpose(OnnxWriter *w, const char *from, const int64_t *order, int rank, const char *to);
// Whether inputs have the extent, or all names of its formula.
bool onnx_has_extent(const Graph *g, Extent e);
// Extents, as s64 [count], of which each must be had.
const char *onnx_put_extents(OnnxWriter *w, const Extent *extents, size_t count);
// A list of a node, whose items may be named extents: `count` items, or `missing` if it is left out.
const char *onnx_put_items(OnnxWriter *w, const Node *node, const char *attribute, size_t count,
                           const int64_t *missing);
// Reshape to these extents, of which one may be -1, and 0 copies.
const char *onnx_put_reshape(OnnxWriter *w, const char *from, const int64_t *items, size_t count, const char *to);
// Reshape to a shape. NULL: several of its extents are no numbers; keeps_first: the first axis stays, and does not
// count.
const char *onnx_put_shape(OnnxWriter *w, const char *from, const Shape *shape, bool keeps_first, const char *to);
// A cast to an integer type that rounds to even and saturates.
void onnx_put_saturated(OnnxWriter *w, const char *v, Type from, Type to, const char *dst);
// 0, 1, ... along an axis with `behind` axes after it; "" after out of memory.
const char *onnx_put_range(OnnxWriter *w, Type type, int64_t count, int behind);
const char *onnx_put_filled(OnnxWriter *w, double number, const int64_t *extents, size_t rank); // all the number
void onnx_list_pads(const Node *node, size_t naxes, int64_t pads[2 * MAX_RANK]); // pads_begin, then pads_end
bool onnx_is_float(double number);                                               // whether an attribute holds it
// Squeeze or Unsqueeze, of which at most one axis whose extent is no number may get another place.
const char *onnx_put_axes(OnnxWriter *w, const char *op, const char *from, const int64_t *axes, size_t count,
                          const char *to);
bool onnx_shape_is_literal(const Shape *shape);
// ONNX has the channels on axis 1. Operands get them there; the result is written under the name from begin, and end
// moves them back.
bool onnx_are_last(const Node *node);
const char *onnx_put_data(OnnxWriter *w, const Node *node, const char *from);
const char *onnx_begin_data(OnnxWriter *w, const Node *node);
bool onnx_end_data(OnnxWriter *w, const Node *node, const char *from); // true

void onnx_begin_same(OnnxWriter *w, const Node *node, const char *op); // a node with the same operands

#define WRITE(op, casting, write, ...) bool onnx_write_##write(OnnxWriter *w, const Node *node, const char *text);
#include "frontend/onnx/write_standard.def"
#undef WRITE

#endif
