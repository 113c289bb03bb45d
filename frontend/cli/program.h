// Another program that is run for what it prints.
#ifndef NGRAD_FRONTEND_CLI_PROGRAM_H
#define NGRAD_FRONTEND_CLI_PROGRAM_H

#include <jansson.h>

// Runs a program, by arguments that NULL ends, and reads the JSON document that it prints; *document is the caller's,
// or NULL where it prints none. Its messages go to stderr. It does not outlive this process. Returns its exit status;
// of one that cannot be run, or that a signal ends, 1 after telling so.
int program_json(const char *const *arguments, json_t **document);

#endif
