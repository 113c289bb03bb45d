// Translates attributes of oneDNN's JSON to ngrad/1.
#include "frontend/onednn/translation.h"
#include "ir/operators/operator.h"

#include <stdio.h>
#include <string.h>

static const char *attribute_type(AttributeKind kind) {
  switch (kind) {
  case ATTRIBUTE_BOOL: return "bool";
  case ATTRIBUTE_S64: return "s64";
  case ATTRIBUTE_F32: return "f32";
  case ATTRIBUTE_CHOICE: return "string";
  case ATTRIBUTE_S64_LIST: return "s64[]";
  case ATTRIBUTE_F32_LIST: return "f32[]";
  }
  return "?";
}

// Recognises lists that oneDNN stores for absent attributes: one number for each of the 12 axes that its tensors can
// have.
static bool is_stored_default(const char *name, const Yaml *value) {
  enum { MOST_AXES = 12 };
  static const struct {
    const char *name;
    int64_t item;
  } rows[] = {{"dilations", 1}, {"dst_shape", 0}, {"output_padding", 0}, {"src_shape", 0}, {"weights_shape", 0}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, name) != 0 || value->kind != YAML_LIST || value->count != MOST_AXES) continue;
    uint32_t nequal = 0;
    for (uint32_t k = 0; k < value->count; k++) {
      Scalar s = yaml_scalar(value->items[k]);
      nequal += s.kind == SCALAR_INT && s.fits && s.integer == rows[i].item;
    }
    return nequal == value->count;
  }
  return false;
}

// Translates an attribute's type and value to `name: value`. Unknown names are kept; reading ngrad/1 reports them.
static void translate_attribute(Translation *t, const Yaml *key, const Yaml *y, const Operator *op, const char *title,
                                Yaml *map) {
  enum { TYPE, VALUE, NKEYS };
  static const char *const keys[] = {"type", "value"};
  const Yaml *found[NKEYS];
  char what[4 * DESCRIPTION_BYTES], name[DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "attribute %s of %s", yaml_quote(key->text, name), title);
  if (!take_fields(t, y, what, keys, NKEYS, NKEYS, found)) return;
  const Yaml *value = found[VALUE];
  for (uint32_t i = 0; i < op->nattributes; i++) {
    const Attribute *row = &op->attributes[i];
    if (row->is_hidden || strcmp(row->name, key->text) != 0) continue;
    char subject[5 * DESCRIPTION_BYTES];
    snprintf(subject, sizeof subject, "type of %s", what);
    const char *type = attribute_type(row->kind);
    if (!take_word(t, found[TYPE], subject, &type, 1)) return;
    Scalar s = yaml_scalar(value);
    if (row->kind == ATTRIBUTE_BOOL && s.kind == SCALAR_INT && s.fits && (s.integer == 0 || s.integer == 1))
      value = new_scalar(t, value, s.integer ? "true" : "false");
  }
  if (!is_stored_default(key->text, value)) map_add_entry(map, key, value);
}

const Yaml *translate_attributes(Translation *t, const Yaml *y, const char *kind, const char *title) {
  const Operator *op = operator_find(kind).op;
  if (!y) return NULL;
  if (y->kind != YAML_MAP) return reader_expected(t->r, y, "attrs of %s: expected a map", title), NULL;
  Yaml *map = op ? new_node(t, YAML_MAP, y, (size_t)2 * y->count) : NULL;
  for (uint32_t i = 0; map && i < y->count; i++)
    translate_attribute(t, yaml_key(y, i), yaml_entry(y, i), op, title, map);
  return map;
}
