// Finding the files of a graph's inputs.
#ifndef NGRAD_FRONTEND_CLI_FIT_FILES_H
#define NGRAD_FRONTEND_CLI_FIT_FILES_H

#include "frontend/cli/fit_batches.h"

// The path of an input's file, which the caller frees; NULL after an error message: there is no file.
char *input_file(const Files *files, const char *name);

// Whether the input's samples are from the text, because no other file is given for it.
bool input_is_text(const Files *files, const char *name);

// False after an error message about a file that is given for no input.
bool named_files_are_inputs(const Files *files, const ng_graph *g, size_t ninputs);

#endif
