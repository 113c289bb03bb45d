// ngrad grad and ngrad gradcheck: writes and checks the gradients of a graph.
#include "frontend/cli/data.h"
#include "frontend/cli/graph_output.h"
#include "frontend/cli/table.h"
#include "frontend/cli/verbs.h"

#include <stdlib.h>
#include <string.h>

static ng_derivative derivative_of(const Settings *s) {
  return s->is_forward_mode ? NG_TANGENTS
         : s->is_hvp        ? NG_HVP
         : s->is_jacobian   ? NG_JACOBIAN
         : s->is_hessian    ? NG_HESSIAN
                            : NG_GRADIENT;
}

static ng_gradient_options gradient_options(const Settings *s) {
  return (ng_gradient_options){.wrt = s->wrt.items,
                               .nwrt = s->wrt.count,
                               .of = s->of.items,
                               .nof = s->of.count,
                               .save_least = s->forward != NULL,
                               .derivative = derivative_of(s),
                               .precision = s->precision,
                               .keep_f32 = s->keep_f32.items,
                               .nkeep_f32 = s->keep_f32.count};
}

// The kinds of the gradient graph's inputs: inputs of the forward graph, its values, incoming gradients, and tangents.

typedef enum Origin { GIVEN, SAVED, ARRIVING, TANGENT, NORIGINS } Origin;

typedef struct Names { // of a graph's inputs or outputs, sorted; valid as long as the graph
  const char **names;
  size_t count;
} Names;

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static Names names_of(const ng_graph *g, size_t count, ng_tensor_info (*at)(const ng_graph *g, size_t i)) {
  Names n = {memory_or_exit(calloc(count + 1, sizeof *n.names)), 0};
  for (size_t i = 0; i < count; i++) n.names[n.count++] = at(g, i).name;
  qsort(n.names, n.count, sizeof *n.names, compare_names);
  return n;
}

static bool has_name(const Names *n, const char *name) {
  return n->count && bsearch(&name, n->names, n->count, sizeof *n->names, compare_names);
}

static Origin origin_of(const Names *inputs, const Names *outputs, const char *name) {
  static const char diff[] = "diff", tangent[] = "tangent"; // then a number from 2 on, for those of others, and _
  const bool is_diff = strncmp(name, diff, sizeof diff - 1) == 0;
  if (has_name(inputs, name)) return GIVEN;
  if (!is_diff && strncmp(name, tangent, sizeof tangent - 1) != 0) return SAVED;
  const char *rest = name + (is_diff ? sizeof diff : sizeof tangent) - 1;
  rest += strspn(rest, "0123456789");
  if (*rest != '_' || !has_name(is_diff ? outputs : inputs, rest + 1)) return SAVED;
  return is_diff ? ARRIVING : TANGENT;
}

static void print_inputs(const ng_graph *forward, const ng_graph *backward, const Names *inputs, const Names *outputs) {
  static const char *const titles[NORIGINS] = {"inputs of", "saved by", "gradients of outputs of",
                                               "tangents of inputs of"};
  for (Origin origin = GIVEN; origin < NORIGINS; origin++) {
    bool is_first = true;
    for (size_t i = 0; i < ng_graph_input_count(backward); i++) {
      const char *name = ng_graph_input(backward, i).name;
      if (origin_of(inputs, outputs, name) != origin) continue;
      if (is_first) say("%s %s:", titles[origin], ng_graph_name(forward));
      is_first = false;
      say(" %s%s", name, origin == SAVED && !has_name(outputs, name) ? " (not an output of it yet)" : "");
    }
    if (!is_first) putchar('\n');
  }
}

static json_t *inputs_json(const ng_graph *backward, const Names *inputs, const Names *outputs) {
  static const char *const origins[NORIGINS] = {"input", "saved", "gradient", "tangent"};
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_graph_input_count(backward); i++) {
    const char *name = ng_graph_input(backward, i).name;
    const Origin origin = origin_of(inputs, outputs, name);
    json_t *input = json_object_of({"name", json_text(name)}, {"origin", json_text(origins[origin])});
    if (origin == SAVED) json_set(input, "is_output", json_boolean(has_name(outputs, name)));
    json_add(list, input);
  }
  return list;
}

static void tell_inputs(const ng_graph *forward, const ng_graph *backward, Answer *answer) {
  Names inputs = names_of(forward, ng_graph_input_count(forward), ng_graph_input);
  Names outputs = names_of(forward, ng_graph_output_count(forward), ng_graph_output);
  if (answer->document) json_set(answer->document, "inputs", inputs_json(backward, &inputs, &outputs));
  else print_inputs(forward, backward, &inputs, &outputs);
  free(inputs.names);
  free(outputs.names);
}

// Writes the gradient of g, and its forward graph. Parameters that --wrt names are inputs of g.
static ng_status write_pair(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  const ng_gradient_options options = gradient_options(s);
  ng_graph *gradient = ng_graph_gradient(g, &options), *forward = NULL;
  ng_status status = ng_last_status(ctx);
  if (gradient && s->forward) {
    forward = ng_graph_gradient_forward(g, &options);
    status = forward ? answer_graph(answer, ctx, forward, s->forward) : ng_last_status(ctx);
    if (status == NG_OK && s->out && is_same_file(s->forward, s->out))
      status = (ng_status)usage_error("%s: expected another file for the gradient than for --forward", s->out);
  }
  if (status == NG_OK) status = answer_graph(answer, ctx, gradient, s->out);
  if (status == NG_OK && (s->out || s->is_json)) tell_inputs(forward ? forward : g, gradient, answer);
  ng_graph_free(forward);
  ng_graph_free(gradient);
  return status;
}

static ng_status write_graphs(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  ng_graph *asked = ng_graph_with_inputs(g, s->wrt.items, s->wrt.count);
  const ng_status status = asked ? write_pair(ctx, asked, s, answer) : ng_last_status(ctx);
  ng_graph_free(asked);
  return status;
}

int verb_grad(const Settings *s) {
  const int nforms = s->is_forward_mode + s->is_hvp + s->is_jacobian + s->is_hessian;
  if (nforms + (s->forward != NULL) > 1)
    return usage_error("expected one of --forward, --forward-mode, --hvp, --jacobian and --hessian");
  if (!settings_keep_graphs(s, s->out) || !settings_keep_graphs(s, s->forward)) return NG_USAGE;
  return answer_with(s, write_graphs);
}

// Checking

static void print_worst(const ng_tensor_info *info, const ng_gradcheck_result *r) {
  if (r->worst_element < 0 && !r->is_within)
    say("diff_%s is not checked: every element is at a kink, or too steep for differences\n", info->name);
  if (r->worst_element < 0) return;
  char *indices = indices_text(info, r->worst_element);
  say("diff_%s%s is %.12g, differences give %.12g\n", info->name, indices, r->gradient, r->expected);
  free(indices);
}

static void print_results(const ng_graph *g, const ng_gradcheck_result *results) {
  static const char *const header[] = {"input", "elements", "checked", "at kinks", "relative error", ""};
  Table table = table_headed("lrrrrl", header);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    const ng_gradcheck_result *r = &results[i];
    if (!r->nchecked) continue;
    table_add(&table, "%s", ng_graph_input(g, i).name);
    table_add(&table, "%lld", (long long)r->nelems);
    table_add(&table, "%lld", (long long)r->nchecked);
    table_add(&table, "%lld", (long long)r->nskipped);
    table_add(&table, "%.1e", r->largest_error);
    table_add_verdict(&table, r->is_within);
  }
  table_print(&table);
  for (size_t i = 0; i < ng_graph_input_count(g); i++) {
    ng_tensor_info info = ng_graph_input(g, i);
    if (results[i].nchecked) print_worst(&info, &results[i]);
  }
}

static json_t *results_json(const ng_context *ctx, const ng_graph *g, const ng_gradcheck_result *results) {
  json_t *document = memory_or_exit(json_object()), *list = memory_or_exit(json_array());
  json_set(document, "graph", json_text(g ? ng_graph_name(g) : NULL));
  for (size_t i = 0; g && i < ng_graph_input_count(g); i++) {
    const ng_gradcheck_result *r = &results[i];
    if (!r->nchecked) continue;
    json_add(list,
             json_object_of({"name", json_text(ng_graph_input(g, i).name)}, {"elements", json_integer(r->nelems)},
                            {"checked", json_integer(r->nchecked)}, {"at_kinks", json_integer(r->nskipped)},
                            {"relative_error", json_number(r->largest_error)},
                            {"worst_element", r->worst_element < 0 ? json_null() : json_integer(r->worst_element)},
                            {"gradient", json_number(r->gradient)}, {"expected", json_number(r->expected)},
                            {"ok", json_boolean(r->is_within)}));
  }
  json_set_all(document, {"inputs", list}, {"messages", json_messages(ctx)});
  return document;
}

// Opens the graph with the constants that training takes as parameters as inputs.
static ng_graph *open_with_parameters(ng_context *ctx, const Settings *s, ng_status *status) {
  ng_graph *g = graph_open(ctx, s->operands[0], s, status), *trainable = g ? ng_graph_trainable(g) : NULL;
  if (g) *status = ng_last_status(ctx);
  ng_graph_free(g);
  return trainable;
}

int verb_gradcheck(const Settings *s) {
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  ng_status status;
  ng_graph *g = open_with_parameters(ctx, s, &status);
  ng_gradcheck_options options = {gradient_options(s), s->seed, s->tolerance > 0 ? s->tolerance : 0};
  ng_gradcheck_result *results = memory_or_exit(calloc((g ? ng_graph_input_count(g) : 0) + 1, sizeof *results));
  if (g) status = ng_gradcheck(g, &options, results);
  json_t *document = s->is_json ? results_json(ctx, g, results) : NULL;
  session_tell(ctx);
  if (document) json_print(document);
  else if (status == NG_OK || status == NG_DIFFERENT) print_results(g, results);
  free(results);
  ng_graph_free(g);
  session_close(ctx);
  return exit_status(status);
}
