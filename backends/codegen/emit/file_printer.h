// State for printing a source file and its header for users: header.c prints the header, entry.c the source's external
// functions, states.c prints states, file.c the rest of the source.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_FILE_PRINTER_H

#include "backends/codegen/codegen.h"

enum {
  ABI = 4, // version of the emitted interface (function signatures and structs)
  MOST_ISAS = 16
};

typedef struct FileState { // a tensor in a block of states
  const Value *value;      // a state of the first function's graph
  const char *member;      // its name as part of an identifier
  int block;
  size_t offset, nbytes; // in the block
} FileState;

enum { MOST_BLOCKS = 2 };
typedef struct FileStates {
  FileState *items; // by state of the first graph
  size_t count;
  int nblocks;
  size_t nbytes[MOST_BLOCKS]; // by block
} FileStates;

// Printing one function of the file.
typedef struct FilePrinter {
  const EmittedFile *file;
  const char *prefix; // the file's
  EmittedFunction *function;
  const Graph *graph; // the first program's
  const FileStates *states;
  const struct FileParts *parts; // file.c
  Arena *scratch;
  const char **member;         // by value->index: the parameter's name
  const char **dim_member;     // by open dim: the parameter's name
  bool has_open_workspace;     // the size of the workspace depends on open dims
  bool has_section[MOST_ISAS]; // by file->isas: the file has code for it
  InPlace *in_place;           // by output: the inputs, except states, whose memory it may use
  bool *may_be_overwritten;    // by input: some output may use its memory
  bool has_shared_loops;       // some loop may run on several threads; for the file's first function: of any function
  size_t scratch_nbytes;       // step with leaves: the largest workspace of its functions
  size_t workspace_nbytes;     // the largest of all instruction sets, without the part that depends on open dims
} FilePrinter;

// The numbers of inputs and outputs that are parameters: all except states and their updates.
size_t ninputs_given(const Graph *g);
size_t noutputs_given(const Graph *g);
bool file_has_leaves(const EmittedFile *file);
bool input_has_leaves(const Value *v); // each rank passes only its own leaves; false if empty
// Prints a template (template.h), in whose conditions the names of file_printer.c stand for facts about the function.
void print_file_template(const FilePrinter *f, const char *text,
                         void (*add_part)(const void *f, const char *name, Text *out), Text *out);
void add_file_part(const void *context, const char *name, Text *out); // FUNCTION or NLEAVES
void add_isa(const FilePrinter *f, size_t i, Text *out);              // the constant PREFIX_ISA_NAME of file->isas[i]
void add_isa_case(const FilePrinter *f, size_t i, Text *out);         // "  case PREFIX_ISA_NAME: "
// Prints for each instruction set that the file has code for, under the condition that compilers support it.
void print_for_isas(const FilePrinter *f, bool from_best, void (*print)(const FilePrinter *f, size_t isa, Text *out),
                    Text *out);

#endif
