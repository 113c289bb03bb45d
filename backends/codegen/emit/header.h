// The header of a pair of files, and how it spells what the source repeats.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_HEADER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_HEADER_H

#include "backends/codegen/emit/file_printer.h"

void print_origin(const FilePrinter *f, Text *out); // what it is made from, and its licence
void print_header(const FilePrinter *f, Text *out);
void add_isa(const FilePrinter *f, size_t i, Text *out); // its number's name
void add_output_name(const FilePrinter *f, Text *out, size_t i);
void add_dim_parameters(const FilePrinter *f, Text *out);
void add_parameters(const FilePrinter *f, Text *out);

#endif
