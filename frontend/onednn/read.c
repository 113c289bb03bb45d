// oneDNN Graph's JSON, as its library dumps it and benchdnn reads it: rewritten into the tree of a file in ngrad/1.
//
// JSON is YAML's flow style, so libyaml parses it into a tree with the position of every value; jansson would give the
// positions of syntax errors only. Comments and other YAML that JSON lacks is accepted; an escaped surrogate pair is
// not. The new tree has the positions of the old one, so errors in operators, types and shapes are reported by the
// reader of ngrad/1. This file reports errors of form; after one, nothing else is checked.
//
// - Tensor 12 becomes the value t12; operator 3 gets the label "id 3". The operators' own names are ignored.
// - Graph inputs are tensors that no operator makes. Outputs are tensors that no operator uses, and the inputs of End.
//   Both are in the file's order; input_ports and output_ports are ignored.
// - An operator of kind undef was removed by oneDNN: the input that another operator makes replaces its output.
// - An unknown extent or stride is -2^63. A shape with only unknown extents is of unknown rank.
// - Strides become the layout; gaps between elements are dropped. Unknown strides, and a layout_type
//   of any or undef, leave it row-major.
// - Lists of twelve numbers, which oneDNN stores for absent attributes, are dropped.
#include "frontend/onednn/translation.h"

#include <stdio.h>
#include <string.h>

typedef enum OperatorKey { ID, NAME, KIND, INPUTS, OUTPUTS, ATTRS, NOPERATOR_KEYS } OperatorKey; // attrs is optional

static Yaml *new_reference(Translation *t, const Yaml *at, OneTensor *tensor) {
  Reference *reference = ARENA_NEW(&t->r->scratch, Reference);
  Yaml *name = reference ? new_scalar(t, at, tensor->name->text) : NULL;
  if (!reference) error_out_of_memory(t->r->d);
  if (!name) return NULL;
  *reference = (Reference){name, tensor->references};
  tensor->references = reference;
  return name;
}

static OneTensor *take_result(Translation *t, const Yaml *y) {
  OneTensor *tensor = take_tensor(t, y);
  if (tensor && tensor->is_made)
    reader_error(t->r, y, "%s: expected one operator that makes it, found a second", tensor->name->text);
  if (tensor) tensor->is_made = true;
  return tensor;
}

static Yaml *translate_operands(Translation *t, const Yaml *list, bool is_input) {
  Yaml *operands = new_node(t, YAML_LIST, list, list->count);
  for (uint32_t i = 0; i < list->count; i++) {
    OneTensor *tensor = is_input ? take_tensor(t, list->items[i]) : take_result(t, list->items[i]);
    if (!tensor) continue;
    if (is_input) tensor->is_used = true;
    list_add(operands, is_input ? new_reference(t, list->items[i], tensor) : tensor->declared);
  }
  return operands;
}

// Stores an operator of kind undef, which oneDNN removed from the graph.
static void translate_undef(Translation *t, const Yaml *const *found, const char *title) {
  Arena *arena = &t->r->scratch;
  Removed *removed = ARENA_NEW(arena, Removed);
  OneTensor **inputs = ARENA_ARRAY(arena, OneTensor *, found[INPUTS]->count + 1);
  const char *copy = arena_copy_text(arena, title, strlen(title));
  if (!removed || !inputs || !copy) {
    error_out_of_memory(t->r->d);
    return;
  }
  if (found[OUTPUTS]->count != 1) {
    reader_error(t->r, found[KIND], "%s: expected one output, found %u", title, found[OUTPUTS]->count);
    return;
  }
  *removed = (Removed){.at = found[KIND], .title = copy, .inputs = inputs, .next = t->removed};
  removed->output = take_result(t, found[OUTPUTS]->items[0]);
  for (uint32_t i = 0; i < found[INPUTS]->count; i++) {
    OneTensor *tensor = take_tensor(t, found[INPUTS]->items[i]);
    if (!tensor) continue;
    tensor->is_removed_input = true;
    inputs[removed->ninputs++] = tensor;
  }
  if (removed->output) t->removed = removed;
}

// Finds the input that replaces a removed operator's output: the only input that an operator makes, or the only input.
static void pass_on_input(Translation *t, const Removed *removed) {
  OneTensor *passed = removed->ninputs == 1 ? removed->inputs[0] : NULL;
  uint32_t nmade = 0;
  for (uint32_t i = 0; i < removed->ninputs; i++) {
    if (!removed->inputs[i]->is_made) continue;
    passed = removed->inputs[i];
    nmade++;
  }
  removed->output->passed_on = passed;
  if (passed && nmade <= 1)
    warn_at(t->r->d, reader_position(t->r, removed->at), "%s: an operator that oneDNN removed; %s replaces its output",
            removed->title, passed->name->text);
  else
    reader_error(
        t->r, removed->at,
        "%s: expected one input that an operator makes, to replace the output of the operator that oneDNN removed, "
        "found %u",
        removed->title, nmade);
}

// Uses of the tensor now refer to the tensor that replaces it.
static void replace_tensor(Translation *t, OneTensor *tensor) {
  OneTensor *last = tensor, *next;
  for (size_t i = 0; last->passed_on; i++) {
    if (i == t->ntensors) {
      reader_error(t->r, tensor->name, "%s: expected an operator that makes it, found a cycle of kind undef",
                   tensor->name->text);
      return;
    }
    last = last->passed_on;
  }
  for (OneTensor *i = tensor; i != last; i = next) { // shortens chains
    next = i->passed_on;
    i->passed_on = last;
  }
  for (Reference *reference = tensor->references; reference; reference = reference->next) {
    reference->name->text = last->name->text;
    reference->name->count = last->name->count;
  }
  last->is_used |= tensor->is_used;
  last->is_end |= tensor->is_end || (!tensor->is_used && !tensor->is_removed_input);
}

static bool has_failed(const Translation *t) {
  return t->r->d->nerrors > t->nerrors || t->r->d->out_of_memory;
}

static void replace_removed(Translation *t) {
  for (const Removed *removed = t->removed; removed; removed = removed->next) pass_on_input(t, removed);
  for (size_t i = 0; i < t->ntensors && !has_failed(t); i++)
    if (t->order[i]->passed_on) replace_tensor(t, t->order[i]);
}

// End has no result: its inputs are outputs of the graph.
static void translate_end(Translation *t, const Yaml *const *found) {
  if (found[INPUTS]->count != 1 || found[OUTPUTS]->count != 0)
    reader_error(t->r, found[KIND], "End: expected one input and no output, found %u and %u", found[INPUTS]->count,
                 found[OUTPUTS]->count);
  for (uint32_t i = 0; i < found[INPUTS]->count; i++) {
    OneTensor *tensor = take_tensor(t, found[INPUTS]->items[i]);
    if (tensor) tensor->is_used = tensor->is_end = true;
  }
}

static Yaml *translate_operator(Translation *t, const Yaml *y) {
  static const char *const keys[] = {"id", "name", "kind", "inputs", "outputs", "attrs"};
  const Yaml *found[NOPERATOR_KEYS];
  char text[DESCRIPTION_BYTES], what[3 * DESCRIPTION_BYTES];
  if (!take_fields(t, y, "an operator", keys, NOPERATOR_KEYS, ATTRS, found) || !take_id(t, found[ID], "an operator"))
    return NULL;
  const char *id = found[ID]->text;
  const Yaml *earlier = names_find(&t->operators, id);
  if (earlier)
    reader_error(t->r, found[ID], "duplicate operator id %s, first on line %u, column %u", id, earlier->line,
                 earlier->column);
  else if (!names_set(&t->operators, id, (Yaml *)found[ID])) error_out_of_memory(t->r->d);
  if (found[KIND]->kind != YAML_SCALAR)
    return reader_expected(t->r, found[KIND], "kind of operator %s: expected an operator's name", id), NULL;
  const char *kind = found[KIND]->text;
  char title[2 * DESCRIPTION_BYTES];
  snprintf(title, sizeof title, "%s (id %s)", yaml_quote(kind, text), id);
  snprintf(what, sizeof what, "inputs of %s", title);
  bool has_lists = take_list(t, found[INPUTS], what);
  snprintf(what, sizeof what, "outputs of %s", title);
  if (!take_list(t, found[OUTPUTS], what) || !has_lists) return NULL;
  if (strcmp(kind, "End") == 0) {
    translate_end(t, found);
    return NULL;
  }
  if (strcmp(kind, "undef") == 0) {
    translate_undef(t, found, title);
    return NULL;
  }
  Yaml *node = new_node(t, YAML_MAP, y, (size_t)2 * NOPERATOR_KEYS);
  map_add(t, node, "op", found[KIND]);
  map_add(t, node, "label", new_scalar(t, found[ID], arena_format(&t->r->scratch, "id %s", id)));
  map_add(t, node, "attributes", translate_attributes(t, found[ATTRS], kind, title));
  map_add(t, node, "inputs", translate_operands(t, found[INPUTS], true));
  map_add(t, node, "outputs", translate_operands(t, found[OUTPUTS], false));
  return node;
}

bool is_onednn(const Yaml *root) {
  bool has_graph = false, has_format = false;
  for (uint32_t i = 0; root->kind == YAML_MAP && i < root->count; i++) {
    has_graph |= strcmp(yaml_key(root, i)->text, "graph") == 0;
    has_format |= strcmp(yaml_key(root, i)->text, "format") == 0;
  }
  return has_graph && !has_format;
}

const Yaml *translate_onednn(Reader *r, const Yaml *root) {
  enum { GRAPH, VERSION, ENGINE, FPMATH, FPMATH_INT, INPUT_PORTS, OUTPUT_PORTS, NKEYS };
  static const char *const keys[] = {
      "graph", "version", "engine_kind", "fpmath_mode", "fpmath_mode_apply_to_int", "input_ports", "output_ports"};
  const Yaml *found[NKEYS];
  Translation t = {.r = r, .nerrors = r->d->nerrors};
  names_init(&t.tensors, &r->scratch);
  names_init(&t.operators, &r->scratch);
  read_fields(r, root, "the graph", keys, NKEYS, found);
  if (!take_list(&t, found[GRAPH], "graph")) return NULL;
  const Yaml *graph = found[GRAPH];
  Yaml *nodes = new_node(&t, YAML_LIST, graph, graph->count);
  for (uint32_t i = 0; i < graph->count && !r->d->out_of_memory; i++)
    list_add(nodes, translate_operator(&t, graph->items[i]));
  replace_removed(&t);
  Yaml *inputs = new_node(&t, YAML_LIST, graph, t.ntensors), *outputs = new_node(&t, YAML_LIST, graph, t.ntensors);
  for (size_t i = 0; i < t.ntensors; i++) {
    const OneTensor *tensor = t.order[i];
    if (!tensor->is_made && (tensor->is_used || tensor->is_end)) list_add(inputs, tensor->declared);
    if (!tensor->passed_on && (tensor->is_end || (tensor->is_made && !tensor->is_used)))
      list_add(outputs, tensor->name);
  }
  for (size_t i = 0; i < t.ntensors && !outputs->count; i++) // a cycle
    if (t.order[i]->is_made && !t.order[i]->passed_on) list_add(outputs, t.order[i]->name);
  Yaml *map = new_node(&t, YAML_MAP, root, (size_t)2 * NKEYS);
  map_add(&t, map, "format", new_scalar(&t, root, "ngrad/1"));
  map_add(&t, map, "inputs", inputs);
  map_add(&t, map, "nodes", nodes);
  map_add(&t, map, "outputs", outputs);
  return has_failed(&t) ? NULL : map;
}
