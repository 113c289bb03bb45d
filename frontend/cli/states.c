#include "frontend/cli/states.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = 3 };

typedef struct Names { // a list of names: the first ones as text, all as JSON
  TextStream text;
  FILE *out;
  json_t *all; // NULL: as text only
  size_t count;
} Names;

static void names_begin(Names *n, const Answer *answer) {
  *n = (Names){.all = answer->document ? memory_or_exit(json_array()) : NULL};
  n->out = text_open(&n->text);
}

static void names_add(Names *n, const char *what, const char *name) {
  if (n->all) json_add(n->all, json_text(name));
  if (!n->count) fprintf(n->out, "; %s: %s", what, name);
  else if (n->count < MOST_NAMES) fprintf(n->out, ", %s", name);
  n->count++;
}

// The text, which the caller frees.
static char *names_end(Names *n) {
  if (n->count > MOST_NAMES) fprintf(n->out, " and %zu more", n->count - MOST_NAMES);
  return text_close(&n->text);
}

static const char *state_name(const ng_graph *g, size_t i) {
  return ng_graph_input(g, ng_graph_state(g, i).input).name;
}

// Whether the lines have the name.
static bool has_line(const char *lines, const char *name) {
  const size_t length = strlen(name);
  bool any = false;
  for (const char *line = lines, *end; (end = strchr(line, '\n')) && !any; line = end + 1)
    any = (size_t)(end - line) == length && memcmp(line, name, length) == 0;
  return any;
}

static bool has_state(const ng_graph *g, const char *name) {
  bool any = false;
  for (size_t i = 0; i < ng_graph_state_count(g) && !any; i++) any = strcmp(state_name(g, i), name) == 0;
  return any;
}

// `lines`: the names in the file.
static void tell(const ng_graph *g, const Settings *s, const char *lines, Answer *answer) {
  Names unused, missing;
  names_begin(&unused, answer);
  names_begin(&missing, answer);
  for (size_t i = 0; i < ng_graph_state_count(g); i++)
    if (!has_line(lines, state_name(g, i))) names_add(&missing, "not in it", state_name(g, i));
  for (const char *line = lines, *end; (end = strchr(line, '\n')); line = end + 1) {
    char *name = memory_or_exit(strndup(line, (size_t)(end - line)));
    if (!has_state(g, name)) names_add(&unused, "not used", name);
    free(name);
  }
  const size_t count = ng_graph_state_count(g) - missing.count;
  char *missing_text = names_end(&missing), *unused_text = names_end(&unused);
  if (answer->document)
    json_set(answer->document, "states",
             json_object_of({"file", json_text(s->state)}, {"count", json_count(count)}, {"missing", missing.all},
                            {"unused", unused.all}));
  else say("%zu state%s from %s%s%s\n", count, count == 1 ? "" : "s", s->state, missing_text, unused_text);
  free(missing_text);
  free(unused_text);
}

ng_status states_read_pair(ng_context *ctx, ng_graph *step, ng_graph *infer, const Settings *s, Answer *answer) {
  if (!s->state) return NG_OK;
  if (!ng_graph_state_count(step)) {
    usage_error("--state: expected a graph with state, such as NAME_infer.yaml of ngrad train");
    return NG_USAGE;
  }
  ng_status status = infer ? ng_graph_read_states(infer, s->state, 0) : NG_OK;
  if (status == NG_OK) status = ng_graph_read_states(step, s->state, infer != NULL);
  char *lines = status == NG_OK ? ng_checkpoint_names(ctx, s->state) : NULL;
  if (!lines) return status == NG_OK ? ng_last_status(ctx) : status;
  tell(step, s, lines, answer);
  ng_text_free(ctx, lines);
  return NG_OK;
}

ng_status states_read(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  return states_read_pair(ctx, g, NULL, s, answer);
}
