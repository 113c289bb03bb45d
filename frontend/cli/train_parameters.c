// Prints what a training step trains: a line on the constants that became parameters, or a table.
#include "frontend/cli/train_parameters.h"

#include "frontend/cli/table.h"

#include <stdlib.h>
#include <string.h>

static json_t *json_of(const ng_graph *step) {
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_graph_parameter_count(step); i++) {
    const ng_parameter p = ng_graph_parameter(step, i);
    json_add(list, json_object_of({"name", json_text(p.name)}, {"is_trained", json_boolean(p.is_trained)},
                                  {"has_decay", json_boolean(p.has_decay)}, {"why_not", json_text(p.why_not)}));
  }
  return list;
}

static void print_table(const ng_graph *step) {
  Table table = table_headed("lll", (const char *[]){"parameter", "trained", "weight decay", NULL});
  for (size_t i = 0; i < ng_graph_parameter_count(step); i++) {
    const ng_parameter p = ng_graph_parameter(step, i);
    table_add(&table, "%s", p.name);
    table_add(&table, "%s%s", p.is_trained ? "yes" : "no, ", p.is_trained ? "" : p.why_not);
    table_add(&table, "%s", !p.is_trained ? "" : p.has_decay ? "yes" : "no");
  }
  table_print(&table);
}

// Appends the number of constants that are not trained for one reason, and the names of the first few.
static char *append_reason(char *line, const ng_graph *step, const char *why_not) {
  enum { MOST = 8 };
  size_t count = 0;
  char *names = memory_or_exit(strdup("")), *longer;
  for (size_t i = 0; i < ng_graph_parameter_count(step); i++) {
    const ng_parameter p = ng_graph_parameter(step, i);
    if (!p.is_constant || p.is_trained || strcmp(p.why_not, why_not) != 0 || count++ >= MOST) continue;
    longer = text_of_format("%s%s%s", names, *names ? ", " : "", p.name);
    free(names);
    names = longer;
  }
  longer = text_of_format("%s%s %zu (%s: %s%s)", line, strchr(line, ';') ? "," : "; not trained:", count, why_not,
                          names, count > MOST ? ", ..." : "");
  free(names);
  free(line);
  return longer;
}

// Nothing if no constant is trained: then the parameters are states, which the graph names itself.
static void print_line(const ng_graph *step) {
  enum { MOST_REASONS = 8 };
  const char *reasons[MOST_REASONS];
  size_t nconstants = 0, ntrained = 0, nreasons = 0;
  for (size_t i = 0; i < ng_graph_parameter_count(step); i++) {
    const ng_parameter p = ng_graph_parameter(step, i);
    size_t k = 0;
    nconstants += p.is_constant != 0;
    ntrained += p.is_constant && p.is_trained;
    if (!p.is_constant || p.is_trained) continue;
    while (k < nreasons && strcmp(reasons[k], p.why_not) != 0) k++;
    if (k == nreasons && k < MOST_REASONS) reasons[nreasons++] = p.why_not;
  }
  if (!ntrained) return;
  char *line = text_of_format("trained: %zu of %zu constants", ntrained, nconstants);
  for (size_t k = 0; k < nreasons; k++) line = append_reason(line, step, reasons[k]);
  say("%s\n", line);
  free(line);
}

void print_parameters(const ng_graph *step, bool as_table, Answer *answer) {
  if (answer->document) json_set(answer->document, "parameters", json_of(step));
  else if (as_table) print_table(step);
  else print_line(step);
}
