// What --weights says: where C has states that no call updates, and in which type.
#include "frontend/cli/weights.h"

#include "frontend/cli/table.h"

#include <stdlib.h>
#include <string.h>

static const struct {
  const char *name;
  bool is_stored;
  ng_type narrow; // 0: the state's own
} forms[] = {{"const", true, 0}, {"bf16", true, NG_BF16}, {"s8", true, NG_S8}, {"file", false, 0}}; // by WeightForm
enum { NFORMS = sizeof forms / sizeof *forms };

static size_t form_of(const Settings *s) {
  size_t i = 0;
  while (i < NFORMS && strcmp(forms[i].name, s->weights) != 0) i++;
  return i;
}

int weights_check(const Settings *s, unsigned allowed) {
  if (!s->weights || 1U << form_of(s) & allowed) return 0;
  TextStream text;
  FILE *out = text_open(&text);
  for (size_t i = 0; i < NFORMS; i++)
    if (1U << i & allowed)
      fprintf(out, "%s%s", !(allowed & ((1U << i) - 1)) ? "" : allowed >> i > 1 ? ", " : " or ", forms[i].name);
  char *names = text_close(&text);
  const int status = usage_error("--weights: expected %s, found %s", names, s->weights);
  free(names);
  return status;
}

bool weights_are_stored(const Settings *s) {
  return s->weights ? forms[form_of(s)].is_stored : s->state != NULL;
}

static json_t *narrow_json(const ng_graph *g) {
  json_t *list = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_graph_narrow_count(g); i++) {
    const ng_narrow_weight w = ng_graph_narrow(g, i);
    json_add(list, json_object_of({"name", json_text(w.name)}, {"nbytes_before", json_count(w.nbytes_before)},
                                  {"nbytes", json_count(w.nbytes)}, {"max_error", json_number(w.max_error)},
                                  {"rms_error", json_number(w.rms_error)}, {"rms", json_number(w.rms)}));
  }
  return list;
}

static void print_narrow(const ng_graph *g) {
  Table table =
      table_headed("lrrrrr", (const char *[]){"weights", "bytes", "before", "max error", "rms error", "rms", NULL});
  for (size_t i = 0; i < ng_graph_narrow_count(g); i++) {
    const ng_narrow_weight w = ng_graph_narrow(g, i);
    table_add(&table, "%s", w.name);
    table_add(&table, "%zu", w.nbytes);
    table_add(&table, "%zu", w.nbytes_before);
    table_add(&table, "%.2e", w.max_error);
    table_add(&table, "%.2e", w.rms_error);
    table_add(&table, "%.2e", w.rms);
  }
  table_print(&table);
}

ng_status weights_narrow(ng_graph *g, const Settings *s, Answer *answer) {
  const ng_type type = s->weights ? forms[form_of(s)].narrow : 0;
  const ng_status status = type ? ng_graph_narrow_weights(g, type) : NG_OK;
  if (!type || status != NG_OK) return status;
  if (!ng_graph_narrow_count(g)) {
    usage_error("--weights: expected a state of f32 with two or more axes that no call updates, and --state or a file "
                "with its values, such as NAME_infer.yaml of ngrad train has");
    return NG_USAGE;
  }
  if (answer->document) json_set(answer->document, "weights", narrow_json(g));
  else print_narrow(g);
  return NG_OK;
}
