// A pair of files being printed: header.c prints its header, entry.c what of its source a caller can call, file.c the
// rest.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H

#include "backends/codegen/codegen.h"

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

#endif
