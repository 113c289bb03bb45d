// ngrad check: reads graphs and says what they are, or what is wrong with them.
#include "frontend/cli/verbs.h"

#include "frontend/cli/data.h"

#include <inttypes.h>

static json_t *describe_tensors(const ng_graph *g, size_t count, ng_tensor_info (*at)(const ng_graph *g, size_t i)) {
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < count; i++) {
    ng_tensor_info info = at(g, i);
    json_t *tensor = memory_or_exit(json_object());
    json_set(tensor, "name", json_text(info.name));
    json_set(tensor, "type", json_text(ng_type_name(info.type)));
    json_set(tensor, "shape", json_shape(&info));
    json_set(tensor, "order", json_order(&info));
    json_add(list, tensor);
  }
  return list;
}

static bool has_extents(ng_tensor_info info) {
  for (int i = 0; i < info.rank; i++)
    if (info.extent[i] < 0) return false;
  return info.rank >= 0;
}

// Extents without a number leave it open.
static bool find_workspace(ng_graph *g, size_t *nbytes, size_t *unshared) {
  for (size_t i = 0; i < ng_graph_dim_count(g); i++)
    if (ng_graph_dim(g, i).value < 0) return false;
  for (size_t i = 0; i < ng_graph_input_count(g); i++)
    if (!has_extents(ng_graph_input(g, i))) return false;
  return ng_graph_workspace(g, NULL, nbytes, unshared) == NG_OK;
}

static uint64_t sum_of(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// What each way of running it needs.
typedef struct Totals {
  uint64_t compiled, interpreted;
} Totals;

static Totals totals_of(const ng_memory *m, size_t workspace) {
  const uint64_t tensors = sum_of(sum_of(m->inputs_nbytes, m->outputs_nbytes), m->constants_nbytes);
  return (Totals){sum_of(tensors, workspace), sum_of(tensors, m->interpreter_nbytes)};
}

static json_t *nbytes_json(uint64_t nbytes) {
  return json_integer(nbytes < INT64_MAX ? (json_int_t)nbytes : INT64_MAX);
}

static json_t *memory_json(ng_graph *g, size_t workspace) {
  ng_memory m;
  if (ng_graph_memory(g, &m) != NG_OK) return json_text(NULL);
  const Totals totals = totals_of(&m, workspace);
  json_t *memory = memory_or_exit(json_object());
  json_set(memory, "inputs_bytes", nbytes_json(m.inputs_nbytes));
  json_set(memory, "outputs_bytes", nbytes_json(m.outputs_nbytes));
  json_set(memory, "constants_bytes", nbytes_json(m.constants_nbytes));
  json_set(memory, "workspace_bytes", nbytes_json(workspace));
  json_set(memory, "interpreter_bytes", nbytes_json(m.interpreter_nbytes));
  json_set(memory, "compiled_run_bytes", nbytes_json(totals.compiled));
  json_set(memory, "interpreted_run_bytes", nbytes_json(totals.interpreted));
  return memory;
}

static void print_memory(ng_graph *g, size_t workspace) {
  ng_memory m;
  if (ng_graph_memory(g, &m) != NG_OK) return;
  const Totals totals = totals_of(&m, workspace);
  printf("# memory: inputs %" PRIu64 ", outputs %" PRIu64 ", constants %" PRIu64 " bytes; with them a compiled run"
         " needs %" PRIu64 " bytes, an interpreted one %" PRIu64 "\n",
         m.inputs_nbytes, m.outputs_nbytes, m.constants_nbytes, totals.compiled, totals.interpreted);
}

static json_t *describe(const ng_context *ctx, const char *path, ng_graph *g) {
  json_t *object = memory_or_exit(json_object());
  json_set(object, "file", json_text(path));
  json_set(object, "ok", json_boolean(g != NULL));
  if (g) {
    json_set(object, "graph", json_text(ng_graph_name(g)));
    json_set(object, "identifier", json_text(memory_or_exit((void *)ng_graph_identifier(g))));
    json_set(object, "nodes", json_integer((json_int_t)ng_graph_node_count(g)));
    json_set(object, "inputs", describe_tensors(g, ng_graph_input_count(g), ng_graph_input));
    json_set(object, "outputs", describe_tensors(g, ng_graph_output_count(g), ng_graph_output));
    size_t nbytes, unshared;
    if (find_workspace(g, &nbytes, &unshared)) {
      json_set(object, "workspace_bytes", json_integer((json_int_t)nbytes));
      json_set(object, "workspace_bytes_without_reuse", json_integer((json_int_t)unshared));
      json_set(object, "memory", memory_json(g, nbytes));
    }
  }
  json_set(object, "messages", json_messages(ctx));
  return object;
}

static ng_status print_yaml(ng_context *ctx, ng_graph *g, const char *path, const Settings *s) {
  char *text = ng_graph_show(g, "yaml", NULL);
  if (!text) return ng_last_status(ctx);
  if (s->noperands > 1) say("# %s\n", path);
  fputs(text, stdout);
  ng_text_free(ctx, text);
  size_t nbytes, unshared;
  if (!find_workspace(g, &nbytes, &unshared)) return NG_OK;
  printf("# workspace: %zu bytes, %zu without reuse\n", nbytes, unshared);
  print_memory(g, nbytes);
  return NG_OK;
}

int verb_check(const Settings *s) {
  int status = 0;
  json_t *document = s->is_json ? memory_or_exit(json_array()) : NULL;
  for (size_t i = 0; i < s->noperands; i++) {
    ng_context *ctx = session_open(s->max_memory);
    ng_status ended;
    ng_graph *g = graph_open(ctx, s->operands[i], s, &ended);
    if (document) json_add(document, describe(ctx, s->operands[i], g));
    else if (g) ended = print_yaml(ctx, g, s->operands[i], s);
    if (!status) status = exit_status(ended);
    ng_graph_free(g);
    session_close(ctx);
  }
  if (document) json_print(document);
  return status;
}
