// Help, in lines of at most 80 columns.
#ifndef NGRAD_FRONTEND_CLI_HELP_H
#define NGRAD_FRONTEND_CLI_HELP_H

#include <stddef.h>
#include <stdio.h>

// Prints text with a line break at its end. column: how many columns of the first line are taken. Later lines begin at
// the column `indent`. A line break in the text ends a line, too.
void help_print_wrapped(FILE *out, const char *text, size_t column, size_t indent);

#endif
