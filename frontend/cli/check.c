// ngrad check: reads graphs, and prints their types and shapes or their errors.
#include "frontend/cli/verbs.h"

#include "frontend/cli/data.h"
#include "frontend/cli/progress.h"

#include <inttypes.h>

static json_t *describe_tensors(const ng_graph *g, size_t count, ng_tensor_info (*at)(const ng_graph *g, size_t i)) {
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < count; i++) {
    ng_tensor_info info = at(g, i);
    json_add(list, json_object_of({"name", json_text(info.name)}, {"type", json_text(ng_type_name(info.type))},
                                  {"shape", json_shape(&info)}, {"order", json_order(&info)}));
  }
  return list;
}

static bool has_extents(ng_tensor_info info) {
  for (int i = 0; i < info.rank; i++)
    if (info.extent[i] < 0) return false;
  return info.rank >= 0;
}

typedef struct Workspace {
  bool is_known; // false if extents have no number
  ng_compilation compilation;
  ng_memory memory;         // memory of everything else
  uint64_t states, weights; // bytes of states in blocks of emitted C; of those that no call updates
} Workspace;

// States in blocks of emitted C begin at multiples of 64 bytes.
static void find_states(const ng_graph *g, Workspace *w) {
  for (size_t i = 0; i < ng_graph_state_count(g); i++) {
    const ng_state state = ng_graph_state(g, i);
    const ng_tensor t = ng_tensor_view(ng_graph_input(g, state.input), NULL);
    const uint64_t nbytes = (ng_tensor_nbytes(&t) + 63) / 64 * 64;
    w->states += nbytes;
    if (!state.is_updated) w->weights += nbytes;
  }
}

static ng_status find_workspace(ng_graph *g, const Settings *s, Workspace *w) {
  const ng_options options = options_of_settings(s);
  *w = (Workspace){0};
  for (size_t i = 0; i < ng_graph_dim_count(g); i++)
    if (ng_graph_dim(g, i).value < 0) return NG_OK;
  for (size_t i = 0; i < ng_graph_input_count(g); i++)
    if (!has_extents(ng_graph_input(g, i))) return NG_OK;
  ng_status status = ng_graph_compilation(g, &options, &w->compilation);
  if (status == NG_OK) status = ng_graph_memory(g, &w->memory);
  w->is_known = status == NG_OK;
  if (w->is_known) find_states(g, w);
  return status;
}

static uint64_t sum_of(uint64_t a, uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

// The memory needed by each way of running the graph.
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

static json_t *memory_json(const Workspace *w) {
  const ng_memory m = w->memory;
  const Totals totals = totals_of(&m, w->compilation.workspace_nbytes);
  return json_object_of(
      {"inputs_bytes", nbytes_json(m.inputs_nbytes)}, {"outputs_bytes", nbytes_json(m.outputs_nbytes)},
      {"constants_bytes", nbytes_json(m.constants_nbytes)},
      {"workspace_bytes", nbytes_json(w->compilation.workspace_nbytes)},
      {"interpreter_bytes", nbytes_json(m.interpreter_nbytes)}, {"compiled_run_bytes", nbytes_json(totals.compiled)},
      {"interpreted_run_bytes", nbytes_json(totals.interpreted)});
}

static json_t *ram_json(const Workspace *w) {
  return json_object_of({"states_bytes", nbytes_json(w->states)}, {"weights_bytes", nbytes_json(w->weights)},
                        {"workspace_bytes", nbytes_json(w->compilation.c_workspace_nbytes)});
}

// What the caller of emitted C gives memory for, besides inputs and outputs, if it is more than the workspace.
static void print_ram(const Workspace *w) {
  const uint64_t workspace = w->compilation.c_workspace_nbytes;
  if (!w->states && workspace == w->compilation.workspace_nbytes) return;
  printf("# RAM in C: states %" PRIu64 ", workspace %" PRIu64 ", together %" PRIu64 " bytes", w->states, workspace,
         sum_of(w->states, workspace));
  if (w->weights)
    printf("; with emit --state, %" PRIu64 " of the states are constants: %" PRIu64 " bytes", w->weights,
           sum_of(w->states - w->weights, workspace));
  printf("\n");
}

static void print_memory(const Workspace *w) {
  const ng_memory m = w->memory;
  const Totals totals = totals_of(&m, w->compilation.workspace_nbytes);
  printf("# memory: inputs %" PRIu64 ", outputs %" PRIu64 ", constants %" PRIu64 " bytes; with them a compiled run"
         " needs %" PRIu64 " bytes, an interpreted one %" PRIu64 "\n",
         m.inputs_nbytes, m.outputs_nbytes, m.constants_nbytes, totals.compiled, totals.interpreted);
  printf("# compiling: %" PRIu64 " steps, %" PRIu64 " bytes of C\n", w->compilation.nsteps, w->compilation.code_nbytes);
}

// g NULL: *status tells why.
static json_t *describe(const ng_context *ctx, const char *path, ng_graph *g, const Settings *s, ng_status *status) {
  Workspace workspace;
  if (g) *status = find_workspace(g, s, &workspace);
  json_t *object = json_object_of({"file", json_text(path)}, {"ok", json_boolean(g && *status == NG_OK)});
  if (g) {
    json_set_all(object, {"graph", json_text(ng_graph_name(g))},
                 {"identifier", json_text(memory_or_exit((void *)ng_graph_identifier(g)))},
                 {"nodes", json_count(ng_graph_node_count(g))},
                 {"inputs", describe_tensors(g, ng_graph_input_count(g), ng_graph_input)},
                 {"outputs", describe_tensors(g, ng_graph_output_count(g), ng_graph_output)});
    if (workspace.is_known) {
      json_set_all(object, {"workspace_bytes", json_count(workspace.compilation.workspace_nbytes)},
                   {"workspace_bytes_without_reuse", json_count(workspace.compilation.unshared_nbytes)},
                   {"memory", memory_json(&workspace)}, {"c_ram", ram_json(&workspace)},
                   {"compiling_steps", nbytes_json(workspace.compilation.nsteps)},
                   {"code_bytes", nbytes_json(workspace.compilation.code_nbytes)});
    }
  }
  json_set(object, "messages", json_messages(ctx));
  return object;
}

static ng_status print_yaml(ng_context *ctx, ng_graph *g, const char *path, const Settings *s) {
  char *text = ng_graph_show(g, s->prints_values ? "yaml" : "summary", NULL);
  if (!text) return ng_last_status(ctx);
  progress_end();
  if (s->noperands > 1) say("# %s\n", path);
  fputs(text, stdout);
  ng_text_free(ctx, text);
  Workspace w;
  progress_begin("planning", path);
  ng_status status = find_workspace(g, s, &w);
  progress_end();
  if (!w.is_known) return status;
  printf("# workspace: %zu bytes, %zu without reuse\n", w.compilation.workspace_nbytes, w.compilation.unshared_nbytes);
  print_memory(&w);
  print_ram(&w);
  return NG_OK;
}

int verb_check(const Settings *s) {
  int status = 0;
  json_t *document = s->is_json ? memory_or_exit(json_array()) : NULL;
  for (size_t i = 0; i < s->noperands; i++) {
    ng_context *ctx = session_open(s->max_memory, s->max_steps);
    ng_status ended;
    ng_graph *g = graph_open(ctx, s->operands[i], s, &ended);
    if (document) json_add(document, describe(ctx, s->operands[i], g, s, &ended));
    else if (g) ended = print_yaml(ctx, g, s->operands[i], s);
    if (!status) status = exit_status(ended);
    ng_graph_free(g);
    session_close(ctx);
  }
  if (document) json_print(document);
  return status;
}
