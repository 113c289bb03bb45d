// Prints what is of steps with leaves: the runner (backends/codegen/leaves/run.h), and the tables that it goes by.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H

#include "backends/codegen/emit/file_printer.h"

bool file_has_leaves(const EmittedFile *file);
bool input_has_leaves(const Value *v); // it has elements, and each rank gives those of its own leaves
bool stages_is_leaf(const EmittedStages *s, uint32_t function); // each leaf calls it

size_t stages_workspace(const FilePrinter *f);         // of one process, once f->scratch_nbytes is known
void print_step_runner(const char *prefix, Text *out); // once in a file
bool name_tensors(FilePrinter *f);                     // of the graph with leaves; sets f->member. False: out of memory
// The tables, and FUNCTION_step(isa, step), which fills in those of an instruction set. False: out of memory.
bool print_stages(const FilePrinter *f, Text *out);
void print_stages_workspace(const FilePrinter *f, Text *out); // the rest of FUNCTION_workspace_nbytes
void print_stages_run(const FilePrinter *f, Text *out);       // the rest of the entry point, behind the checks

#endif
