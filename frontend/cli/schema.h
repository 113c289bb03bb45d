// The JSON schema of graph files.
#ifndef NGRAD_FRONTEND_CLI_SCHEMA_H
#define NGRAD_FRONTEND_CLI_SCHEMA_H

#include <jansson.h>

json_t *schema_of_graphs(void); // the caller owns it

#endif
