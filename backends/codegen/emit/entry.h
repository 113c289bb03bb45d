// The external functions of an emitted source file.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_ENTRY_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_ENTRY_H

#include "backends/codegen/emit/file_printer.h"

// Prints PREFIX_workspace_nbytes, PREFIX_has_isa, PREFIX_get_info and the entry point PREFIX. False: out of memory.
bool print_entry_points(const FilePrinter *f, Text *out);

#endif
