// Finding the files of a graph's inputs.
#ifndef NGRAD_FRONTEND_CLI_FIT_FILES_H
#define NGRAD_FRONTEND_CLI_FIT_FILES_H

#include "frontend/cli/fit_batches.h"

// The path of an input's file, for the caller to free; NULL after telling that there is none.
char *input_file(const Files *files, const char *name);

// Whether the input's samples are of the text: no other file is said to be its.
bool input_is_text(const Files *files, const char *name);

// False after telling which file is named for what is no input.
bool named_files_are_inputs(const Files *files, const ng_graph *g, size_t ninputs);

#endif
