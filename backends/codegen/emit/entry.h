// The external functions of an emitted source file.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_ENTRY_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_ENTRY_H

#include "backends/codegen/emit/file_printer.h"

// Prints FUNCTION_workspace_nbytes, FUNCTION_get_info and the entry point FUNCTION; before the file's first function
// also PREFIX_has_isa.
void print_entry_points(const FilePrinter *f, Text *out);

#endif
