// What the parts of a pair of files share: header.c has its header, entry.c what of its source a caller can
// call, file.c the rest.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H

#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/emit.h"

enum { ABI = 3, MOST_ISAS = 16 };

typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix;
  const Graph *graph; // the first program's
  Arena *scratch;
  Text constants, sections;
  const char **member;      // by value->index
  const char **dim_member;  // by open dim
  bool has_open_workspace;  // what a call needs depends on them
  bool is_there[MOST_ISAS]; // by file->isas: has a section
  InPlace *in_place;        // by output: what it may be the same memory as
  bool *is_place;           // by input: of some output
  bool has_shared_loops;
  size_t workspace_nbytes;
} FilePrinter;

// header.c

void print_origin(const FilePrinter *f, Text *out); // what it is made from, and its licence
void print_header(const FilePrinter *f, Text *out);
void add_isa(const FilePrinter *f, size_t i, Text *out); // its number's name
void add_output_name(const FilePrinter *f, Text *out, size_t i);
void add_dim_parameters(const FilePrinter *f, Text *out);
void add_parameters(const FilePrinter *f, Text *out);

// entry.c: PREFIX_workspace_nbytes, PREFIX_has_isa, PREFIX_get_info and PREFIX. False: out of memory.
bool print_entry_points(const FilePrinter *f, Text *out);

// What a compiler may only do for an instruction set stands between these. `open` is the condition that is, if any;
// without an instruction set it ends.
void change_guard(const char **open, const Isa *isa, Text *out);

#endif
