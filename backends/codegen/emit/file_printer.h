// State for printing a source file and its header for users: header.c prints the header, entry.c the source's external
// functions, file.c the rest of the source.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H

#include "backends/codegen/codegen.h"

enum {
  ABI = 3, // version of the emitted interface (function signatures and structs)
  MOST_ISAS = 16
};

typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix;
  const Graph *graph; // the first program's
  Arena *scratch;
  Text constants, sections;    // printed parts of the source
  const char **member;         // by value->index: the parameter's name
  const char **dim_member;     // by open dim: the parameter's name
  bool has_open_workspace;     // the size of the workspace depends on open dims
  bool has_section[MOST_ISAS]; // by file->isas: the file has code for it
  InPlace *in_place;           // by output: the inputs whose memory it may use
  bool *may_be_overwritten;    // by input: some output may use its memory
  bool has_shared_loops;       // some loop may run on several threads
  size_t workspace_nbytes;     // the largest of all instruction sets, without the part that depends on open dims
} FilePrinter;

#endif
