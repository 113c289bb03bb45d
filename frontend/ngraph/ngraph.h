// Graphs that nGraph has serialised as JSON: a list of functions, each with its operators in an order in which they may
// be computed.
//
// - The last function is the graph; no operator that is read calls another one.
// - Parameters become inputs, in the order of `parameters`, and `result` becomes the outputs. Names are the file's.
// - A type is a text, or a map with c_type_string; type and shape stand in the operator or in value_type. Where they
//   stand beside an operator that computes them, they must be what is inferred.
// - Names of attributes of all versions are read (frontend/ngraph/table.c). An attribute that is not known is an error.
// - Broadcast makes no node where its result is an operand of an operator that broadcasts, as do all that work element
// by
//   element.
#ifndef NGRAD_FRONTEND_NGRAPH_NGRAPH_H
#define NGRAD_FRONTEND_NGRAPH_NGRAPH_H

#include "frontend/foreign.h"
#include "frontend/yaml/reader.h"

bool is_ngraph(const Yaml *root);

// Fills the reader's graph. False after telling everything that is not supported, or out of memory.
bool ngraph_read(Reader *r, const Yaml *root);

// The operators that are read, of any version that has the form.
size_t ngraph_form_count(void);
ForeignForm ngraph_form_at(size_t i);

#endif
