// The states of emitted files: their places in the caller's blocks, and the functions that fill, save and load them.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_STATES_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_STATES_H

#include "backends/codegen/emit/file_printer.h"

// Places the states of the file's graphs in blocks; `member` has the names of the first graph's values. False: out of
// memory.
bool find_states(FileStates *states, const EmittedFile *file, const char *const *member, Arena *arena);

// Adds a parameter for each block that the function uses: "void *parameters, /* ... */\n    ".
void add_block_parameters(const FilePrinter *f, Text *out);
// Adds the address of a state of f's graph, a pointer to void.
void add_state_address(const FilePrinter *f, const Value *state, Text *out);
void print_block_checks(const FilePrinter *f, Text *out); // statements that return a status

void add_state_part(const void *context, const char *name,
                    Text *out); // a part of a template: of header.in, for instance

#endif
