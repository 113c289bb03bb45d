// Makes nodes of the new tree, and reads fields of the old one.
#include "frontend/onednn/translation.h"

#include <string.h>

Yaml *new_node(Translation *t, YamlKind kind, const Yaml *at, size_t nitems) {
  Arena *arena = &t->r->scratch;
  Yaml *y = ARENA_NEW(arena, Yaml);
  Yaml **items = kind == YAML_SCALAR ? NULL : ARENA_ARRAY(arena, Yaml *, nitems + 1);
  if (!y || (kind != YAML_SCALAR && !items)) return error_out_of_memory(t->r->d), NULL;
  *y = (Yaml){.kind = kind, .is_plain = true, .line = at->line, .column = at->column, .weight = 1};
  if (items) y->items = items;
  return y;
}

Yaml *new_scalar(Translation *t, const Yaml *at, const char *text) {
  Yaml *y = text ? new_node(t, YAML_SCALAR, at, 0) : NULL;
  if (!text) error_out_of_memory(t->r->d);
  if (!y) return NULL;
  y->text = text;
  y->count = (uint32_t)strlen(text);
  return y;
}

void list_add(Yaml *list, const Yaml *item) {
  if (list && item) list->items[list->count++] = (Yaml *)item;
}

void map_add_entry(Yaml *map, const Yaml *key, const Yaml *entry) {
  if (!map || !key || !entry) return;
  size_t i = (size_t)2 * map->count++;
  map->items[i] = (Yaml *)key;
  map->items[i + 1] = (Yaml *)entry;
}

void map_add(Translation *t, Yaml *map, const char *key, const Yaml *entry) {
  if (entry) map_add_entry(map, new_scalar(t, entry, key), entry);
}

bool take_fields(Translation *t, const Yaml *y, const char *what, const char *const *keys, size_t nkeys,
                 size_t nrequired, const Yaml **found) {
  bool ok = read_fields(t->r, y, what, keys, nkeys, found);
  for (size_t i = 0; y->kind == YAML_MAP && i < nrequired; i++)
    if (!found[i]) ok = reader_error(t->r, y, "%s: missing key %s", what, keys[i]);
  return ok;
}

// Reads an unsigned number in its only notation, without leading zeros.
bool take_id(Translation *t, const Yaml *y, const char *what) {
  enum { MOST_DIGITS = 20 }; // of 2^64
  bool ok = y->kind == YAML_SCALAR && y->is_plain && y->count >= 1 && y->count <= MOST_DIGITS &&
            strspn(y->text, "0123456789") == y->count && (*y->text != '0' || y->count == 1);
  return ok || reader_expected(t->r, y, "id of %s: expected an unsigned integer", what);
}

bool take_list(Translation *t, const Yaml *y, const char *what) {
  return y->kind == YAML_LIST || reader_expected(t->r, y, "%s: expected a list", what);
}

bool take_word(Translation *t, const Yaml *y, const char *what, const char *const *words, size_t nwords) {
  for (size_t i = 0; i < nwords && y->kind == YAML_SCALAR; i++)
    if (strcmp(y->text, words[i]) == 0) return true;
  Text expected;
  text_init(&expected, t->r->scratch.allocator);
  for (size_t i = 0; i < nwords; i++)
    text_format(&expected, "%s%s", i == 0 ? "" : i + 1 < nwords ? ", " : " or ", words[i]);
  reader_expected(t->r, y, "%s: expected %s", what, text_string(&expected));
  text_deinit(&expected);
  return false;
}
