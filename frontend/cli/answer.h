// What a verb that writes graphs says: the text and "wrote FILE", or with --json one document of that.
#ifndef NGRAD_FRONTEND_CLI_ANSWER_H
#define NGRAD_FRONTEND_CLI_ANSWER_H

#include "frontend/cli/options.h"
#include "frontend/cli/session.h"

typedef struct Answer {
  json_t *document; // NULL: lines are wanted
  json_t *files;    // the document's
} Answer;

Answer answer_begin(const Settings *s);
void answer_wrote(Answer *a, const char *path);
// Writes a text to a file or, if path is NULL, as the answer. False after telling why it cannot be written.
bool answer_text(Answer *a, const char *text, const char *path);
// Prints the document, with the context's messages; g, of which it has the name, may be NULL.
void answer_end(Answer *a, const ng_context *ctx, const ng_graph *g, ng_status status);

#endif
