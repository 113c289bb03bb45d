// ngrad check: reads graphs and says what they are, or what is wrong with them.
#include "frontend/cli/verbs.h"

#include "frontend/cli/data.h"

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
  if (find_workspace(g, &nbytes, &unshared)) printf("# workspace: %zu bytes, %zu without reuse\n", nbytes, unshared);
  return NG_OK;
}

int verb_check(const Settings *s) {
  int status = 0;
  json_t *document = s->is_json ? memory_or_exit(json_array()) : NULL;
  for (size_t i = 0; i < s->noperands; i++) {
    ng_context *ctx = session_open();
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
