// ONNX models, read as graphs, and graphs written as models.
#ifndef NGRAD_FRONTEND_ONNX_ONNX_H
#define NGRAD_FRONTEND_ONNX_ONNX_H

#include "frontend/foreign.h"
#include "frontend/onnx/wire.h"
#include "frontend/read.h"
#include "ir/graph/graph.h"

// Whether the bytes may be a model, which a graph in ngrad/1 or in JSON never is.
bool is_onnx(Bytes bytes);

// A graph of the model: sorted, inferred and verified. `path` is only its name in messages. NULL after telling what is
// wrong, or all that is not supported. Nothing of the bytes is needed afterwards.
Graph *onnx_read(const Allocator *allocator, const char *path, Bytes bytes, const ReadSettings *settings,
                 Diagnostics *d);

// Adds the graph to `out` as a model of opset 17. Operators that ONNX has not are nodes of the domain "ngrad", which
// onnx_read takes. States are inputs, and their updates outputs. Layouts are not written, and attributes of ONNX's own
// operators are rounded to f32. False after telling why.
bool onnx_write(const Graph *g, Text *out, Diagnostics *d);

// The forms of operators that are read, by opset.
size_t onnx_form_count(void);
ForeignForm onnx_form_at(size_t i);

#endif
