// Graphs that nGraph serialised as JSON: a list of functions, each a list of operators with producers before consumers.
//
// - The last function is the graph; no supported operator calls another function.
// - Parameters become inputs, in the order of `parameters`, and `result` becomes the outputs. Names are the file's.
// - A type is a text, or a map with c_type_string; type and shape are in the operator or in value_type. If an operator
//   infers its type and shape, declared ones must be equal.
// - Names of attributes of all versions are read (frontend/ngraph/table.c). An unknown attribute is an error.
// - Broadcast makes no node if its result is an operand of an operator that broadcasts, such as elementwise ones.
#ifndef NGRAD_FRONTEND_NGRAPH_NGRAPH_H
#define NGRAD_FRONTEND_NGRAPH_NGRAPH_H

#include "frontend/foreign.h"
#include "frontend/yaml/reader.h"

bool is_ngraph(const Yaml *root);

// Fills the reader's graph. False after reporting everything unsupported, or out of memory.
bool ngraph_read(Reader *r, const Yaml *root);

// The operators that can be read, in any version of that form.
size_t ngraph_form_count(void);
ForeignForm ngraph_form_at(size_t i);

#endif
