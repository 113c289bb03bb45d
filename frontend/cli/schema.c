// ngrad ops --schema: a JSON schema of graph files (draft 7, which YAML editors support).
#include "frontend/cli/schema.h"

#include "frontend/cli/session.h"

#include <string.h>

// The schema of a name: any text that is not empty. In YAML a name that is a number needs quotes, which JSON cannot
// tell.
#define NAME_FORM "{s:s, s:i, s:i}", "type", "string", "minLength", 1, "maxLength", 255

static json_t *reference(const char *definition) {
  return memory_or_exit(json_pack("{s:s+}", "$ref", "#/definitions/", definition));
}

static json_t *one_of(json_t *a, json_t *b) {
  return memory_or_exit(json_pack("{s:[o,o]}", "anyOf", a, b));
}

// Extends the type in place. With anyOf, a validator would only say that neither form fits, and not which part is
// wrong.
static json_t *or_null(json_t *schema) {
  json_t *type = json_object_get(schema, "type");
  if (json_is_string(type)) {
    json_set(schema, "type", memory_or_exit(json_pack("[O, s]", type, "null")));
    return schema;
  }
  return one_of(schema, memory_or_exit(json_pack("{s:s}", "type", "null")));
}

static json_t *list_of(json_t *items) {
  return memory_or_exit(json_pack("{s:s, s:o}", "type", "array", "items", items));
}

static json_t *map_of(json_t *entries) {
  return memory_or_exit(json_pack("{s:s, s:o}", "type", "object", "additionalProperties", entries));
}

// A map with exactly these keys.
static json_t *record(json_t *properties, json_t *required) {
  return memory_or_exit(json_pack("{s:s, s:o, s:o, s:b}", "type", "object", "properties", properties, "required",
                                  required, "additionalProperties", 0));
}

static json_t *types(void) {
  json_t *names = memory_or_exit(json_array());
  for (ng_type type = NG_F64; type < NG_TYPE_COUNT; type++) json_add(names, json_text(ng_type_name(type)));
  return memory_or_exit(json_pack("{s:o}", "enum", names));
}

// Numbers in lists, nested as deep as axes. Some YAML readers take .inf and .nan for text.
static json_t *number(void) {
  return memory_or_exit(json_pack("{s:[s,s,s]}", "type", "number", "boolean", "string"));
}

static json_t *tensor(const char *needed, const char *key, json_t *form) {
  json_t *properties =
      memory_or_exit(json_pack("{s:o, s:o, s:o, s:o}", "name", reference("name"), "type", reference("type"), "shape",
                               reference("shape"), "order", reference("order")));
  if (key) json_set(properties, key, form);
  json_t *required = memory_or_exit(json_pack("[s]", "name"));
  if (needed) json_add(required, json_text("type"));
  if (needed && strcmp(needed, "all") == 0) {
    json_add(required, json_text("shape"));
    json_add(required, json_text(key));
  }
  return record(properties, required);
}

static json_t *init(void) {
  return memory_or_exit(
      json_pack("{s:[{s:[s,s]}, o, o, o, o]}", "anyOf", "enum", "zeros", "ones",
                record(memory_or_exit(json_pack("{s:{s:s, s:{s:s}, s:i, s:i}}", "uniform", "type", "array", "items",
                                                "type", "number", "minItems", 2, "maxItems", 2)),
                       memory_or_exit(json_pack("[s]", "uniform"))),
                record(memory_or_exit(json_pack("{s:{s:s, s:i}}", "normal", "type", "number", "minimum", 0)),
                       memory_or_exit(json_pack("[s]", "normal"))),
                record(memory_or_exit(json_pack("{s:{s:s, s:i}}", "fan_in", "type", "number", "minimum", 1)),
                       memory_or_exit(json_pack("[s]", "fan_in"))),
                record(memory_or_exit(json_pack("{s:{s:s}}", "file", "type", "string")),
                       memory_or_exit(json_pack("[s]", "file")))));
}

static json_t *state(void) {
  json_t *schema = tensor("all", "init", init()), *properties = json_object_get(schema, "properties");
  json_t *shape = list_of(memory_or_exit(json_pack("{s:s, s:i}", "type", "integer", "minimum", 0)));
  json_set(shape, "maxItems", memory_or_exit(json_integer(8)));
  json_set(properties, "shape", shape);
  return schema;
}

static json_t *constant(void) {
  json_t *properties = memory_or_exit(json_pack("{s:o, s:o, s:o, s:o, s:{s:s}, s:{s:s}}", "name", reference("name"),
                                                "type", reference("type"), "shape", reference("shape"), "value",
                                                number(), "values", "type", "array", "file", "type", "string"));
  json_t *schema = record(properties, memory_or_exit(json_pack("[s,s]", "name", "type")));
  json_set_all(schema,
               {"dependencies", memory_or_exit(json_pack("{s:[s], s:[s]}", "value", "shape", "values", "shape"))},
               {"oneOf", memory_or_exit(json_pack("[{s:[s]}, {s:[s]}, {s:[s]}]", "required", "value", "required",
                                                  "values", "required", "file"))});
  return schema;
}

// One operator

typedef ng_operand_info OperandAt(size_t op, size_t k);

// A list of operands in order, or a map by name. In the list, a repeated operand stands for any number of items.
static json_t *operands(size_t op, size_t count, OperandAt *at, const char *form) {
  json_t *properties = memory_or_exit(json_object()), *required = memory_or_exit(json_array());
  json_t *items = memory_or_exit(json_array()), *either = memory_or_exit(json_array());
  bool is_repeated = false;
  size_t least = 0, nrequired = 0; // least number of items in a list
  for (size_t k = 0; k < count; k++) {
    const ng_operand_info info = at(op, k);
    is_repeated |= info.is_repeated;
    json_t *names = reference(form);
    if (info.is_repeated) {
      json_t *several = list_of(reference(form));
      json_set(several, "minItems", memory_or_exit(json_integer(!info.is_optional)));
      names = one_of(names, several);
    }
    json_set(properties, info.name, info.is_optional || info.dst_name ? or_null(names) : names);
    if (info.dst_name) json_set(properties, info.dst_name, or_null(reference(form)));
    json_add(items, info.is_optional ? or_null(reference(form)) : reference(form));
    if (info.is_optional) continue;
    least = k + 1;
    nrequired++;
    if (!info.dst_name) json_add(required, json_text(info.name));
    else
      json_add(either, memory_or_exit(json_pack("{s:[{s:[s]}, {s:[s]}]}", "anyOf", "required", info.name, "required",
                                                info.dst_name)));
  }
  json_t *list = is_repeated ? list_of(or_null(reference(form))) : memory_or_exit(json_pack("{s:s}", "type", "array"));
  if (!is_repeated) json_set(list, "maxItems", memory_or_exit(json_count(count)));
  if (!is_repeated && count) json_set(list, "items", items);
  else json_decref(items);
  json_set(list, "minItems", memory_or_exit(json_integer((json_int_t)(is_repeated ? nrequired : least))));
  json_t *map = record(properties, required);
  if (json_array_size(either)) json_set(map, "allOf", either);
  else json_decref(either);
  json_t *schema = one_of(list, map);
  return nrequired ? schema : or_null(schema);
}

// Whether the operands' key is required in a node.
static bool needs_any(size_t op, size_t count, OperandAt *at) {
  for (size_t k = 0; k < count; k++)
    if (!at(op, k).is_optional) return true;
  return false;
}

static json_t *attribute(const ng_attribute_info *a) {
  if (a->nchoices) {
    json_t *choices = memory_or_exit(json_array());
    for (size_t c = 0; c < a->nchoices; c++) json_add(choices, json_text(a->choices[c]));
    return memory_or_exit(json_pack("{s:o}", "enum", choices));
  }
  if (strcmp(a->kind, "bool") == 0) return memory_or_exit(json_pack("{s:s}", "type", "boolean"));
  if (strcmp(a->kind, "s64 list") == 0) // of some lists, items may be named extents
    return list_of(memory_or_exit(json_pack("{s:[s,s]}", "type", "integer", "string")));
  if (strcmp(a->kind, "f32 list") == 0) return list_of(memory_or_exit(json_pack("{s:s}", "type", "number")));
  json_t *schema = memory_or_exit(json_pack("{s:s}", "type", strcmp(a->kind, "s64") == 0 ? "integer" : "number"));
  if (a->is_positive) json_set(schema, "exclusiveMinimum", memory_or_exit(json_integer(0)));
  return schema;
}

static json_t *attributes(size_t op, size_t count) {
  json_t *properties = memory_or_exit(json_object()), *required = memory_or_exit(json_array());
  for (size_t k = 0; k < count; k++) {
    const ng_attribute_info a = ng_operator_attribute(op, k);
    json_set(properties, a.name, attribute(&a));
    if (a.is_required) json_add(required, json_text(a.name));
  }
  const bool has_required = json_array_size(required) > 0;
  json_t *schema = record(properties, required);
  return has_required ? schema : or_null(schema);
}

// The operator's names in files: with its dialect, and without it where the name is unambiguous.
static json_t *operator_names(size_t op) {
  const char *name = ng_operator_at(op).name, *dot = strrchr(name, '.');
  json_t *names = memory_or_exit(json_pack("[s]", name)), *home = memory_or_exit(json_sprintf("onednn.%s", name));
  if (dot && ng_operator_find(dot + 1) == op) json_add(names, json_text(dot + 1));
  if (ng_operator_find(json_string_value(home)) == op) json_add(names, home);
  else json_decref(home);
  return names;
}

// A rule: a node with this operator has the operator's operands and attributes.
static json_t *rule(size_t op) {
  const ng_operator_info info = ng_operator_at(op);
  json_t *then = memory_or_exit(json_pack(
      "{s:{s:o, s:o, s:o}}", "properties", "inputs", operands(op, info.ninputs, ng_operator_input, "name"), "outputs",
      operands(op, info.noutputs, ng_operator_output, "output"), "attributes", attributes(op, info.nattributes)));
  json_t *required = memory_or_exit(json_array());
  if (needs_any(op, info.ninputs, ng_operator_input)) json_add(required, json_text("inputs"));
  if (needs_any(op, info.noutputs, ng_operator_output)) json_add(required, json_text("outputs"));
  for (size_t k = 0; k < info.nattributes; k++)
    if (ng_operator_attribute(op, k).is_required) {
      json_add(required, json_text("attributes"));
      break;
    }
  json_set(then, "required", required);
  return memory_or_exit(json_pack("{s:{s:{s:{s:o}}, s:[s]}, s:o}", "if", "properties", "op", "enum", operator_names(op),
                                  "required", "op", "then", then));
}

static json_t *node(void) {
  json_t *names = memory_or_exit(json_array()), *rules = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_operator_count(); i++) {
    json_t *own = operator_names(i);
    memory_or_exit(json_array_extend(names, own) == 0 ? names : NULL);
    json_decref(own);
    json_add(rules, rule(i));
  }
  json_t *any = memory_or_exit(json_pack("{s:[s,s,s]}", "type", "array", "object", "null"));
  json_t *properties =
      memory_or_exit(json_pack("{s:{s:o}, s:o, s:o, s:O, s:{s:[s,s]}}", "op", "enum", names, "label", reference("name"),
                               "inputs", any, "outputs", any, "attributes", "type", "object", "null"));
  json_t *schema = record(properties, memory_or_exit(json_pack("[s]", "op")));
  json_set(schema, "allOf", rules);
  return schema;
}

static json_t *definitions(void) {
  json_t *extent =
      memory_or_exit(json_pack("{s:[{s:s, s:i}, o]}", "anyOf", "type", "integer", "minimum", 0, reference("name")));
  json_t *shape = list_of(extent),
         *order = list_of(memory_or_exit(json_pack("{s:s, s:i, s:i}", "type", "integer", "minimum", 0, "maximum", 7)));
  json_set(shape, "maxItems", memory_or_exit(json_integer(8)));
  json_set(order, "maxItems", memory_or_exit(json_integer(8)));
  return memory_or_exit(json_pack("{s:o, s:o, s:o, s:o, s:o}", "name", memory_or_exit(json_pack(NAME_FORM)), "type",
                                  types(), "shape", shape, "order", order, "output",
                                  one_of(reference("name"), tensor(NULL, NULL, NULL))));
}

json_t *schema_of_graphs(void) {
  json_t *extent = memory_or_exit(json_pack("{s:[s,s], s:i}", "type", "integer", "null", "minimum", 0));
  json_t *leaves =
      memory_or_exit(json_pack("{s:[s,s], s:i, s:i}", "type", "integer", "null", "minimum", 1, "maximum", 1 << 20));
  json_t *properties = memory_or_exit(
      json_pack("{s:{s:s}, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "format", "const", "ngrad/1", "name",
                reference("name"), "dims", or_null(map_of(extent)), "leaves", or_null(leaves), "inputs",
                or_null(list_of(tensor("type", NULL, NULL))), "state", or_null(list_of(state())), "constants",
                or_null(list_of(constant())), "nodes", or_null(list_of(node())), "outputs",
                or_null(list_of(reference("name"))), "updates", or_null(map_of(reference("name")))));
  json_set(json_object_get(properties, "outputs"), "uniqueItems", memory_or_exit(json_true()));
  json_t *schema = record(properties, memory_or_exit(json_pack("[s]", "format")));
  json_set_all(schema,
               {"anyOf", memory_or_exit(json_pack("[{s:[s], s:{s:{s:s, s:i}}}, {s:[s], s:{s:{s:s, s:i}}}]", "required",
                                                  "updates", "properties", "updates", "type", "object", "minProperties",
                                                  1, "required", "outputs", "properties", "outputs", "type", "array",
                                                  "minItems", 1))},
               {"$schema", json_text("http://json-schema.org/draft-07/schema#")}, {"title", json_text("ngrad graph")},
               {"definitions", definitions()});
  return schema;
}
