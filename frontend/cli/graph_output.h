// The output of verbs that write graphs: the text and "wrote FILE", or one document of these with --json.
#ifndef NGRAD_FRONTEND_CLI_GRAPH_OUTPUT_H
#define NGRAD_FRONTEND_CLI_GRAPH_OUTPUT_H

#include "frontend/cli/options.h"
#include "frontend/cli/session.h"

typedef struct Answer {
  json_t *document; // NULL: print lines
  json_t *files;    // in the document
} Answer;

Answer answer_begin(const Settings *s);
void answer_wrote(Answer *a, const char *path);
void answer_wrote_any(void *answer, const char *path); // the same, for ng_options
// Writes a text to a file or, if path is NULL, to the answer. False after an error message.
bool answer_text(Answer *a, const char *text, const char *path);
// Writes a graph's text likewise. The weights of another system's model become files beside it, except without a path.
ng_status answer_graph(Answer *a, ng_context *ctx, ng_graph *g, const char *path);
// Prints the document, with the context's messages and the name of g; g may be NULL.
void answer_end(Answer *a, const ng_context *ctx, const ng_graph *g, ng_status status);

// Reads the verb's graph, makes the answer by `work`, and prints it. Returns the exit status.
int answer_with(const Settings *s, ng_status (*work)(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer));

#endif
