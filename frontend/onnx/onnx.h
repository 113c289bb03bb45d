// Reads ONNX models as graphs, and writes graphs as models.
#ifndef NGRAD_FRONTEND_ONNX_ONNX_H
#define NGRAD_FRONTEND_ONNX_ONNX_H

#include "frontend/foreign.h"
#include "frontend/onnx/wire.h"
#include "frontend/read_settings.h"
#include "ir/graph/graph.h"

// Whether the bytes may be a model. A graph in ngrad/1 or in JSON never is.
bool is_onnx(Bytes bytes);

// The model's graph: sorted, inferred and verified. `path` stands for it in messages. NULL after messages about errors
// or everything unsupported. The bytes may be freed afterwards.
Graph *onnx_read(const Allocator *allocator, const char *path, Bytes bytes, const ReadSettings *settings,
                 Diagnostics *d);

// Adds the graph to `out` as a model of opset 17, or of the first opset that has its types. What ONNX cannot express
// becomes nodes of the domain "ngrad", after a warning, which onnx_read reads. Named extents that the caller gave
// numbers are these numbers. States become inputs, and their updates outputs. Layouts are dropped, and attributes of
// ONNX's own operators are rounded to f32. False after a message.
bool onnx_write(const Graph *g, Text *out, Diagnostics *d);

// Whether a model, which onnx_write has written, is within the limits of onnx_read. False after a message.
bool onnx_fits(const Allocator *allocator, Bytes bytes, Diagnostics *d);

// The forms of operators that can be read, by opset.
size_t onnx_form_count(void);
ForeignForm onnx_form_at(size_t i);

#endif
