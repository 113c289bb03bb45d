// The graph file, format ngrad/1: a graph's own textual form, read and printed here.
//
// DESIGN §2 shows one; beyond that:
// - Keys of the file: format, name, dims, inputs, constants, nodes, outputs. Only format and outputs must be there;
//   an empty section is the same as none. A file without a name is named after its path. A graph without nodes is
//   valid (passes may leave one), one without outputs is not; an input may be an output.
// - dims: {N: 4096}; {N: ~} declares a name without a value. A shape uses declared names only; `_` is an unknown
//   extent. Extents are below 2^47, and so is the product of those that are not 0.
// - inputs: type is required; without a shape the rank is unknown.
// - order: [0, 2, 3, 1] beside the shape of an input or of a node's output says how it lies in memory: its axes from
//   the slowest to the fastest, without gaps. Without it that is row-major.
// - nodes: operands are a map by name or a list in the operator's order, where ~ (null) is an absent optional one.
//   An output is a name, or {name: y, type: bf16, shape: [N, 768]} that declares its type, its shape or both.
//   label: a name that messages put beside the operator's.
// - constants: value: 0.5 (that number everywhere), values: [...] (flat, or nested like the shape), or file: x.npy
//   (below the graph's folder). Values and files need extents that are numbers; a file also gives what is `_`, or the
//   whole shape. Values are rounded to a float type, but must fit into its range, and into an integer type exactly.
// - Names are any UTF-8 of 1 to 255 bytes without control characters. What YAML takes for a number, a boolean or
//   null is no name unless quoted. Dims have their own name space; "_" is none of them.
// - Numbers, booleans and null are those of YAML 1.2's core schema: 10, 0x1F, 1e-05, .inf, .nan, true, ~.
// - Anchors and aliases work; tags other than the core schema's (!!str, !!int, ...) and a second document do not.
//
// The other form that is read is oneDNN Graph's JSON: a map with a key graph and without format. frontend/onednn/read.c
// says what it becomes. So are nGraph's JSON (frontend/ngraph/ngraph.h), a list of functions, and ONNX models
// (frontend/onnx/onnx.h), which their bytes tell apart.
#ifndef NGRAD_FRONTEND_YAML_YAML_H
#define NGRAD_FRONTEND_YAML_YAML_H

#include "frontend/file.h"
#include "frontend/read.h"
#include "ir/graph/graph.h"

// What a file may be at most. Aliases count as often as they are used.
enum { YAML_MAX_BYTES = MOST_TEXT_BYTES, YAML_MAX_DEPTH = 64, YAML_MAX_NODES = 4000000, MAX_NAME_BYTES = 255 };

// Reads a graph from memory: sorted, inferred and verified. `path` is only its name in messages; `folder` is where
// the files of constants are (NULL: such constants are an error). NULL after telling every error that can be told
// apart; warnings may be told with a graph too. The text is copied into the graph.
Graph *yaml_read(const Allocator *allocator, const char *path, const char *text, size_t nbytes, const char *folder,
                 Diagnostics *d);

Graph *yaml_read_with(const Allocator *allocator, const char *path, const char *text, size_t nbytes,
                      const ReadSettings *settings, Diagnostics *d);

// The same from a regular file (its folder is the constants', whatever the settings say) or, for "-", from standard
// input (no folder). settings NULL: nothing is given.
Graph *yaml_read_file(const Allocator *allocator, const char *path, const ReadSettings *settings, Diagnostics *d);

// The typed graph as a file that reads back as the same graph: each node under the name it was written in, with
// operands by name, every attribute that the name has, and the types and shapes of outputs. Constants that nothing
// uses are left out. Printing what was read from a print gives the same text.
void yaml_print(const Graph *g, Text *out);

// A string as a YAML scalar: plain where that is safe everywhere, else in double quotes.
void yaml_print_name(const char *name, Text *out);

#endif
