// Prints the emitted header, and text that both the header and the source contain.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_HEADER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_HEADER_H

#include "backends/codegen/emit/file_printer.h"

void print_origin(const FilePrinter *f, Text *out); // a comment with ngrad's version, the graph and the licence
void print_header(const FilePrinter *functions, Text *out);
void add_output_name(const FilePrinter *f, Text *out, size_t i); // output i's parameter
void add_dim_parameters(const FilePrinter *f, Text *out);        // open dims as parameters
void add_parameters(const FilePrinter *f, Text *out);            // all parameters of the entry point

#endif
