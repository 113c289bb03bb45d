// The parts of all sections of a graph file: maps with known keys, names, types, shapes, values.
#include "frontend/yaml/reader.h"

#include "frontend/yaml/yaml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MOST_SUGGESTED_FROM = 4096, MOST_SUGGESTIONS = 32 };

static bool tell(const Reader *r, const Yaml *y, const char *found, const char *format, va_list args) {
  Text text;
  text_init(&text, r->scratch.allocator);
  text_format_list(&text, format, args);
  if (found) text_format(&text, ", found %s", found);
  if (text.out_of_memory) error_out_of_memory(r->d);
  else error_at(r->d, reader_position(r, y), "%s", text_string(&text));
  text_deinit(&text);
  return false;
}

bool reader_error(const Reader *r, const Yaml *y, const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(r, y, NULL, format, args);
  va_end(args);
  return false;
}

bool reader_expected(const Reader *r, const Yaml *y, const char *format, ...) {
  char found[DESCRIPTION_BYTES];
  va_list args;
  va_start(args, format);
  tell(r, y, yaml_describe(y, found), format, args);
  va_end(args);
  return false;
}

bool may_suggest(Reader *r) {
  return r->nsuggested++ < MOST_SUGGESTIONS;
}

// "a, b or c"
static void list_words(Text *out, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++) text_format(out, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " or ", words[i]);
  if (!count) text_add_string(out, "none");
}

static bool tell_unknown_key(Reader *r, const Yaml *key, const char *what, const char *const *keys, size_t nkeys) {
  char found[DESCRIPTION_BYTES];
  const char *nearest = may_suggest(r) ? nearest_word(key->text, keys, nkeys) : NULL;
  Text expected;
  text_init(&expected, r->scratch.allocator);
  list_words(&expected, keys, nkeys);
  reader_error(r, key, "unknown key %s in %s, %s %s", yaml_quote(key->text, found), what,
               nearest ? "did you mean" : "expected", nearest ? nearest : text_string(&expected));
  text_deinit(&expected);
  return false;
}

bool read_fields(Reader *r, const Yaml *y, const char *what, const char *const *keys, size_t nkeys,
                 const Yaml **found) {
  const Yaml *first[MOST_KEYS]; // the first occurrence of each key
  bool ok = true;
  for (size_t k = 0; k < nkeys; k++) found[k] = NULL;
  if (y->kind != YAML_MAP) return reader_expected(r, y, "%s: expected a map", what);
  for (uint32_t i = 0; i < y->count; i++) {
    const Yaml *key = yaml_key(y, i);
    size_t k = 0;
    while (k < nkeys && strcmp(keys[k], key->text) != 0) k++;
    if (k == nkeys) {
      ok = tell_unknown_key(r, key, what, keys, nkeys);
    } else if (found[k]) {
      ok = reader_error(r, key, "duplicate key %s in %s, first on line %u", keys[k], what, (unsigned)first[k]->line);
    } else {
      found[k] = yaml_entry(y, i);
      first[k] = key;
    }
  }
  return ok;
}

// Control characters: below U+0020, and U+007F to U+009F.
static bool has_control_character(const char *text) {
  for (const unsigned char *c = (const unsigned char *)text; *c; c++)
    if (*c < 0x20 || *c == 0x7F || (*c == 0xC2 && c[1] < 0xA0)) return true;
  return false;
}

const char *name_mistake(const char *name, size_t nbytes) {
  if (!*name) return "expected a name, found an empty text";
  if (nbytes > MAX_NAME_BYTES) return "name too long, expected at most 255 bytes";
  if (has_control_character(name)) return "unexpected control character in a name";
  return NULL;
}

bool read_name(Reader *r, const Yaml *y, const char *what, const char **name) {
  char found[DESCRIPTION_BYTES];
  ScalarKind kind = yaml_scalar(y).kind;
  if (y->kind != YAML_SCALAR || kind == SCALAR_NULL) return reader_expected(r, y, "%s: expected a name", what);
  if (kind != SCALAR_STRING) {
    yaml_describe(y, found);
    return reader_error(r, y, "%s: expected a name, found the %s %s; as a name write \"%s\"", what,
                        kind == SCALAR_BOOL ? "boolean" : "number", found, found);
  }
  const char *mistake = name_mistake(y->text, y->count);
  if (mistake) return reader_error(r, y, "%s: %s", what, mistake);
  *name = y->text;
  return true;
}

bool read_own_name(Reader *r, const Yaml *y, const Yaml *given, const char *what, const char **name) {
  char text[2 * DESCRIPTION_BYTES];
  snprintf(text, sizeof text, "name of %s", what);
  if (given && read_name(r, given, text, name)) return true;
  r->misses_names = true;
  return given || y->kind != YAML_MAP ? false : reader_error(r, y, "%s: missing name", what);
}

bool read_type(Reader *r, const Yaml *y, const char *what, Type *type) {
  char names[128], subject[DESCRIPTION_BYTES];
  *type = y->kind == YAML_SCALAR ? type_from_name(y->text) : TYPE_NONE;
  if (*type != TYPE_NONE) return true;
  const TypeSet all = ((1U << TYPE_COUNT) - 1) & ~TYPE_BIT(TYPE_NONE);
  return reader_expected(r, y, "type of %s: expected %s", yaml_quote(what, subject),
                         type_set_names(all, names, sizeof names));
}

static bool tell_unknown_dim(Reader *r, const Yaml *y, const char *subject, const char *name) {
  char found[DESCRIPTION_BYTES], near[DESCRIPTION_BYTES];
  const char *names[64], *nearest;
  size_t n = 0;
  for (; n < r->graph->ndims && n < sizeof names / sizeof *names; n++) names[n] = r->graph->dims[n]->name;
  nearest = may_suggest(r) ? nearest_word(name, names, n) : NULL;
  yaml_quote(name, found);
  if (nearest)
    return reader_error(r, y, "%s: unknown dim %s, did you mean %s", subject, found, yaml_quote(nearest, near));
  return reader_error(r, y, "%s: unknown dim %s, declare it as in dims: {%s: ~}%s", subject, found, found,
                      strpbrk(name, "+-*") ? "; in a formula, operators stand between spaces: N + 1" : "");
}

NamedResult read_named_extent(Reader *r, const Yaml *y, Extent *e, char unknown[DESCRIPTION_BYTES]) {
  const char *name = y->text;
  size_t nbytes = y->count;
  const Dim *dim = y->count <= MAX_NAME_BYTES ? names_find(&r->dims, y->text) : NULL;
  *e = EXTENT_UNKNOWN;
  NamedResult result = NAMED_IS_UNKNOWN;
  if ((y->is_plain || !dim) && is_formula(name)) // in quotes, as all texts of JSON, a dim's name comes first
    result = read_formula(&r->dims, name, &r->graph->arena, e, &name, &nbytes);
  if (result == NAMED_LACKS_MEMORY) error_out_of_memory(r->d);
  snprintf(unknown, DESCRIPTION_BYTES, "%.*s", (int)(nbytes < DESCRIPTION_BYTES ? nbytes : DESCRIPTION_BYTES), name);
  if (result != NAMED_IS_UNKNOWN || !dim) return result;
  *e = (Extent){dim, -1};
  return NAMED_IS_READ;
}

// Reads an entry of a shape: a number, the name of a dim, a formula, or _.
static bool read_extent(Reader *r, const Yaml *y, const char *subject, Extent *extent) {
  Scalar s = yaml_scalar(y);
  *extent = EXTENT_UNKNOWN;
  if (s.kind == SCALAR_INT && s.fits && s.integer >= 0 && s.integer < MAX_ELEMENTS) {
    *extent = EXTENT(s.integer);
    return true;
  }
  if (s.kind == SCALAR_INT) return reader_expected(r, y, "%s: expected an extent from 0 to 2^47 - 1", subject);
  if (y->kind != YAML_SCALAR || s.kind != SCALAR_STRING)
    return reader_expected(r, y, "%s: expected a number, the name of a dim or _", subject);
  if (y->is_plain && strcmp(y->text, "_") == 0) return true;
  char unknown[DESCRIPTION_BYTES];
  const NamedResult result = read_named_extent(r, y, extent, unknown);
  if (result == NAMED_IS_READ || result == NAMED_LACKS_MEMORY) return result == NAMED_IS_READ;
  if (result == NAMED_IS_OUT_OF_RANGE)
    return reader_expected(r, y, "%s: expected a sum of at most 8 products of dims, not below 0", subject);
  if (r->misses_names) return true;
  if (yaml_is_quoted_value(y)) return reader_expected(r, y, "%s: expected a number, the name of a dim or _", subject);
  return tell_unknown_dim(r, y, subject, unknown);
}

bool read_shape(Reader *r, const Yaml *y, const char *what, Shape *shape) {
  char subject[2 * DESCRIPTION_BYTES];
  bool ok = true;
  char quoted[DESCRIPTION_BYTES];
  snprintf(subject, sizeof subject, "shape of %s", yaml_quote(what, quoted));
  shape->rank = -1;
  if (y->kind != YAML_LIST) return reader_expected(r, y, "%s: expected a list of extents", subject);
  if (y->count > MAX_RANK)
    return reader_error(r, y, "%s: expected at most %d axes, found %u", subject, MAX_RANK, (unsigned)y->count);
  shape->rank = (int)y->count;
  int64_t product = 1;
  for (int i = 0; i < shape->rank; i++) {
    if (!read_extent(r, y->items[i], subject, &shape->extent[i])) ok = false;
    int64_t extent = extent_value(shape->extent[i]);
    if (extent <= 0) continue;
    if (product > (MAX_ELEMENTS - 1) / extent) {
      shape->rank = -1; // errors inferred from the rank would repeat this one
      return reader_error(r, y, "%s: expected fewer than 2^47 elements", subject);
    }
    product *= extent;
  }
  return ok;
}

bool read_layout(Reader *r, const Yaml *y, const char *what, const Shape *shape, Layout *layout) {
  char found[DESCRIPTION_BYTES], subject[DESCRIPTION_BYTES];
  int axes[MAX_RANK];
  uint32_t seen = 0;
  if (shape->rank < 0)
    return reader_error(r, y, "order of %s: expected a shape beside it, found none", yaml_quote(what, subject));
  bool ok = y->kind == YAML_LIST && shape->rank == (int)y->count;
  for (int i = 0; ok && i < shape->rank; i++) {
    Scalar s = yaml_scalar(y->items[i]);
    ok = s.kind == SCALAR_INT && s.fits && s.integer >= 0 && s.integer < shape->rank && !(seen >> s.integer & 1);
    if (!ok) break;
    axes[i] = (int)s.integer;
    seen |= 1U << axes[i];
  }
  if (ok) *layout = layout_of_axes(axes, shape->rank);
  return ok ||
         reader_error(r, y, "order of %s: expected each axis of its shape once, slowest in memory first, found %s",
                      yaml_quote(what, subject), y->kind == YAML_LIST ? "another list" : yaml_describe(y, found));
}

static bool is_new_name(Reader *r, const Yaml *at, const char *name) {
  char found[DESCRIPTION_BYTES];
  const Value *earlier = names_find(&r->values, name);
  return !earlier || reader_error(r, at, "duplicate value %s, first on line %u", yaml_quote(name, found),
                                  (unsigned)earlier->position.line);
}

// v NULL: out of memory.
static Value *register_value(Reader *r, const Yaml *at, Value *v) {
  if (!v || !names_set(&r->values, v->name, v)) return error_out_of_memory(r->d), NULL;
  v->position = reader_position(r, at);
  return v;
}

Value *define_value(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, bool is_input) {
  if (!is_new_name(r, at, name)) return NULL;
  return register_value(r, at, (is_input ? graph_add_input : graph_add_value)(r->graph, name, type, shape));
}

Value *define_state(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, const Init *init) {
  if (!is_new_name(r, at, name)) return NULL;
  const State *state = graph_add_state(r->graph, name, type, shape, init);
  return register_value(r, at, state ? r->graph->inputs[state->input] : NULL);
}

// The known name most similar to `name`. The number of searches and of names is limited, so that a hostile file cannot
// make them slow.
static const char *nearest_value(Reader *r, const char *name) {
  const Graph *g = r->graph;
  if (g->nvalues > MOST_SUGGESTED_FROM || !may_suggest(r)) return NULL;
  const char **names = ARENA_ARRAY(&r->scratch, const char *, g->nvalues + 1);
  if (!names) return NULL;
  for (size_t i = 0; i < g->nvalues; i++) names[i] = g->values[i]->name;
  return nearest_word(name, names, g->nvalues);
}

static void tell_unknown_value(Reader *r, const Yaml *y, const char *what) {
  char found[DESCRIPTION_BYTES], near[DESCRIPTION_BYTES];
  const char *nearest = nearest_value(r, y->text);
  yaml_quote(y->text, found);
  if (nearest) reader_error(r, y, "%s: unknown value %s, did you mean %s", what, found, yaml_quote(nearest, near));
  else reader_error(r, y, "%s: unknown value %s, expected an input, a constant or a node's output", what, found);
}

Value *use_value(Reader *r, const Yaml *y, const char *what) {
  const char *name = NULL;
  if (!read_name(r, y, what, &name)) return NULL;
  Value *v = names_find(&r->values, name);
  if (v) return v;
  if (!r->misses_names) tell_unknown_value(r, y, what);
  return define_value(r, y, name, TYPE_NONE, NULL, false);
}
