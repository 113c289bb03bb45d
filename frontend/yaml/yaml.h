// The graph file, format ngrad/1: a graph's own textual form, read and printed here.
//
// docs/format.md is its reference. In short:
// - Keys of the file: format, name, dims, leaves, inputs, state, constants, nodes, outputs, updates. Only format and
//   outputs are required; an empty section is the same as none. A file without a name is named after its path. A graph
//   without nodes is valid (passes may leave one), one without outputs is not; an input may be an output.
// - dims: {N: 4096}; {N: ~} declares a name without a value. A shape uses declared names only; `_` is an unknown
//   extent. Extents are below 2^47, and so is the product of those that are not 0.
// - inputs: type is required; without a shape the rank is unknown.
// - order: [0, 2, 3, 1] beside the shape of an input or of a node's output is its layout: the axes from the
//   slowest to the fastest, without gaps. The default is row-major.
// - nodes: operands are a map by name or a list in the operator's order, where ~ (null) is an absent optional one.
//   An output is a name, or {name: y, type: bf16, shape: [N, 768]} that declares its type, its shape or both.
//   label: a name that messages put beside the operator's.
// - constants: value: 0.5 (that number everywhere), values: [...] (flat, or nested like the shape), or file: x.npy
//   (below the graph's folder). Values and files need extents that are numbers; a file also gives extents `_`, or the
//   whole shape. Values are rounded to a float type, but must fit into its range, and into an integer type exactly.
// - Names are any UTF-8 of 1 to 255 bytes without control characters. Numbers, booleans and null are names only
//   in quotes. Dims have their own name space; "_" is not a dim.
// - Numbers, booleans and null are those of YAML 1.2's core schema: 10, 0x1F, 1e-05, .inf, .nan, true, ~.
// - Anchors and aliases work; tags other than the core schema's (!!str, !!int, ...) and a second document do not.
//
// Other formats are recognised by their bytes: oneDNN Graph's JSON, a map with a key graph and without format
// (frontend/onednn/read.c); nGraph's JSON, a list of functions (frontend/ngraph/ngraph.h); and ONNX models
// (frontend/onnx/onnx.h).
#ifndef NGRAD_FRONTEND_YAML_YAML_H
#define NGRAD_FRONTEND_YAML_YAML_H

#include "frontend/file.h"
#include "frontend/read_settings.h"
#include "ir/graph/graph.h"

// Limits of a file. Its own nodes may be as many as those of any graph that is printed; aliases may stand for fewer.
enum {
  YAML_MAX_BYTES = MOST_TEXT_BYTES,
  YAML_MAX_DEPTH = 64,
  YAML_MAX_NODES = 1 << 24,
  YAML_MAX_ALIASED = 4000000,
  MAX_NAME_BYTES = 255
};

// Reads a graph from memory: sorts, infers and verifies it. `path` stands for the text in messages; `folder` is the
// folder of constants' files (NULL: such constants are an error). NULL after all independent errors are reported; a
// graph may come with warnings. The text is copied into the graph.
Graph *yaml_read(const Allocator *allocator, const char *path, const char *text, size_t nbytes, const char *folder,
                 Diagnostics *d);

Graph *yaml_read_with(const Allocator *allocator, const char *path, const char *text, size_t nbytes,
                      const ReadSettings *settings, Diagnostics *d);

// Reads a regular file, whose folder overrides the settings' folder, or standard input for "-", which has no folder.
// settings NULL: the defaults.
Graph *yaml_read_file(const Allocator *allocator, const char *path, const ReadSettings *settings, Diagnostics *d);

// Prints the typed graph as a file that reads back as the same graph: each node under the name that it was written
// with, operands by name, every attribute that the name has, and the types and shapes of outputs. Unused constants are
// left out. Reading the text and printing it again gives the same text.
void yaml_print(const Graph *g, Text *out);
// The same, but of constants with more values only a comment; for people, as it cannot be read back.
void yaml_print_most(const Graph *g, int64_t most_values, Text *out);

// Prints a string as a YAML scalar: plain if that is safe for every reader, else in double quotes.
void yaml_print_name(const char *name, Text *out);

#endif
