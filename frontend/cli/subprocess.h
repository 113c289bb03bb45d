// Runs another program for its output.
#ifndef NGRAD_FRONTEND_CLI_SUBPROCESS_H
#define NGRAD_FRONTEND_CLI_SUBPROCESS_H

#include <jansson.h>

// Runs a program, whose arguments end with NULL, and reads the JSON document that it prints. The caller owns *document,
// which is NULL if the output is none. The program's messages go to stderr, and it ends with this process. Returns its
// exit status, or 1 after an error message if it cannot be run or a signal ends it.
int program_json(const char *const *arguments, json_t **document);

#endif
