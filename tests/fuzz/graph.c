// Any bytes as a graph file: refused with an error, or read and printed; the printed text, read again, must be printed
// unchanged.
#include "frontend/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

static Graph *read_text(const char *text, size_t nbytes) {
  Diagnostics d;
  Text messages;
  diagnostics_init(&d, &system_allocator);
  text_init(&messages, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "fuzz", text, nbytes, NULL, &d);
  diagnostics_print(&d, &messages, true);
  if (g ? d.nerrors != 0 : d.nerrors == 0 && !d.out_of_memory) abort();
  text_deinit(&messages);
  diagnostics_deinit(&d);
  return g;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  Graph *g = read_text((const char *)data, nbytes);
  if (!g) return 0;
  Text once, twice;
  text_init(&once, &system_allocator);
  text_init(&twice, &system_allocator);
  yaml_print(g, &once);
  Graph *again = read_text(text_string(&once), once.nbytes);
  if (!again) abort();
  yaml_print(again, &twice);
  if (strcmp(text_string(&once), text_string(&twice)) != 0) abort();
  graph_free(again);
  graph_free(g);
  text_deinit(&once);
  text_deinit(&twice);
  return 0;
}
