// Prints the code of steps with leaves: the runner (backends/codegen/leaves/run.h), and the tables that it reads.
#ifndef NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H
#define NGRAD_BACKENDS_CODEGEN_EMIT_STAGES_H

#include "backends/codegen/emit/file_printer.h"

bool stages_is_leaf(const EmittedStages *s, uint32_t function); // the function runs for each leaf

size_t stages_workspace(const FilePrinter *f); // of a single process; needs f->scratch_nbytes
bool name_tensors(FilePrinter *f);             // sets f->member, for a graph with leaves. False: out of memory
// Prints the tables, FUNCTION_step(isa, step), which fills in an instruction set's tables, and FUNCTION_run_step.
void print_stages(const FilePrinter *f, Text *out);

#endif
