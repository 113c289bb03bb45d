// Prints the checks of inputs that hold indices, in an emitted entry point.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_INDEX_CHECKS_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_INDEX_CHECKS_H

#include "backends/codegen/emit/file_printer.h"

// Both print nothing for a graph without such inputs.
void print_index_functions(const FilePrinter *f, Text *out); // functions that the checks call
void print_index_checks(const FilePrinter *f, Text *out);    // statements that return PREFIX_INDEX_OUT_OF_RANGE

#endif
