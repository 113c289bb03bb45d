// Prints the code of steps with leaves: the runner (backends/codegen/leaves/run.h), and the tables that it reads.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H

#include "backends/codegen/emit/file_printer.h"

bool stages_is_leaf(const EmittedStages *s, uint32_t function); // the function runs for each leaf

size_t stages_workspace(const FilePrinter *f);         // of a single process; needs f->scratch_nbytes
void print_step_runner(const char *prefix, Text *out); // once in a file
bool name_tensors(FilePrinter *f);                     // sets f->member, for a graph with leaves. False: out of memory
// Prints the tables, and FUNCTION_step(isa, step), which fills in an instruction set's tables. False: out of memory.
bool print_stages(const FilePrinter *f, Text *out);
void print_stages_workspace(const FilePrinter *f, Text *out); // the rest of FUNCTION_workspace_nbytes
void print_stages_run(const FilePrinter *f, Text *out);       // the rest of the entry point, after the checks

#endif
