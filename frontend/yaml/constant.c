// Constants: one number for all elements, a list of numbers, or a .npy file below the graph's folder.
#include "frontend/file.h"
#include "frontend/npy/npy.h"
#include "frontend/yaml/reader.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { NAME, TYPE, SHAPE, VALUE, VALUES, FILE_KEY, NKEYS };

typedef struct Draft {
  const Yaml *found[NKEYS];
  const char *subject; // the constant's name, for messages
  Type type;
  Shape shape;
  Constant *constant;
} Draft;

// Numbers

// The bits of the exact integer value of a scalar. False if the scalar is none, or out of the type's range.
static bool scalar_integer(Type type, const Yaml *y, const Scalar *s, int64_t *integer) {
  if (s->kind == SCALAR_INT && !s->fits && type == TYPE_U64) return yaml_unsigned(y, (uint64_t *)integer);
  if (s->kind == SCALAR_INT ? !s->fits : !(fabs(s->number) < 0x1p63) || s->number != trunc(s->number)) return false;
  *integer = s->kind == SCALAR_INT ? s->integer : (int64_t)s->number;
  return (double)*integer >= type_least(type) && (double)*integer <= type_greatest(type);
}

static bool store_number(Reader *r, const Draft *draft, const Yaml *y, void *data, size_t i) {
  char found[DESCRIPTION_BYTES];
  Scalar s = yaml_scalar(y);
  Type type = draft->type;
  int64_t integer;
  if (s.kind == SCALAR_BOOL && type == TYPE_BOOLEAN) {
    type_store(type, data, i, s.boolean);
    return true;
  }
  if (s.kind != SCALAR_INT && s.kind != SCALAR_FLOAT)
    return reader_expected(r, y, "%s: expected %s", draft->subject,
                           type == TYPE_BOOLEAN ? "true or false" : "a number");
  if (type_is_float(type) || TYPES_F8 & TYPE_BIT(type)) {
    if (isfinite(s.number) ? !isfinite(type_round(type, s.number)) : !s.fits)
      return reader_error(r, y, "%s: %s is out of the range of %s", draft->subject, yaml_describe(y, found),
                          type_name(type));
    type_store(type, data, i, s.number);
    return true;
  }
  if (s.kind == SCALAR_FLOAT && s.number != trunc(s.number))
    return reader_expected(r, y, "%s: expected an integer for %s", draft->subject, type_name(type));
  if (!scalar_integer(type, y, &s, &integer))
    return reader_error(r, y, "%s: %s is out of the range of %s", draft->subject, yaml_describe(y, found),
                        type_name(type));
  if (TYPES_64_BITS & TYPE_BIT(type)) ((int64_t *)data)[i] = integer; // a double would lose digits
  else type_store(type, data, i, (double)integer);
  return true;
}

static bool read_splat(Reader *r, Draft *draft, const Yaml *y) {
  draft->constant->is_splat = true;
  draft->constant->data = arena_alloc(&r->graph->arena, type_nbytes(draft->type));
  if (!draft->constant->data) return error_out_of_memory(r->d);
  return store_number(r, draft, y, draft->constant->data, 0);
}

// Stores nested lists; the list on `axis` must have as many items as the extent.
static bool store_nested(Reader *r, const Draft *draft, const Yaml *y, int axis, size_t *next) {
  if (axis == draft->shape.rank) return store_number(r, draft, y, draft->constant->data, (*next)++);
  if (y->kind != YAML_LIST) return reader_expected(r, y, "%s: expected a list on axis %d", draft->subject, axis);
  int64_t expected = draft->shape.extent[axis].value;
  if ((int64_t)y->count != expected)
    return reader_error(r, y, "%s: expected %" PRId64 " items on axis %d, found %u", draft->subject, expected, axis,
                        (unsigned)y->count);
  for (uint32_t i = 0; i < y->count; i++)
    if (!store_nested(r, draft, y->items[i], axis + 1, next)) return false;
  return true;
}

static bool read_values(Reader *r, Draft *draft, const Yaml *y) {
  char found[DESCRIPTION_BYTES];
  int64_t nelems = shape_nelems(&draft->shape);
  if (y->kind != YAML_LIST)
    return reader_error(r, y,
                        "values of %s: expected a list, found %s; for one number everywhere "
                        "write value:",
                        draft->subject, yaml_describe(y, found));
  bool is_nested = y->count && y->items[0]->kind == YAML_LIST;
  // An empty list may be nested too: the shape [2, 0] as [[], []].
  if (!is_nested && (int64_t)y->count != nelems)
    return reader_error(r, y, "values of %s: expected %" PRId64 " numbers, found %u", draft->subject, nelems,
                        (unsigned)y->count);
  if (nelems > (int64_t)y->weight) // the list must have the elements before memory is allocated for them
    return reader_error(r, y, "values of %s: expected %" PRId64 " numbers, found fewer", draft->subject, nelems);
  draft->constant->data = arena_array(&r->graph->arena, (size_t)nelems, type_nbytes(draft->type));
  if (!draft->constant->data) return error_out_of_memory(r->d);
  size_t next = 0;
  if (is_nested) return store_nested(r, draft, y, 0, &next);
  for (uint32_t i = 0; i < y->count; i++)
    if (!store_number(r, draft, y->items[i], draft->constant->data, i)) return false;
  return true;
}

// Files

// A file that was read. Many constants may name it; its data is stored once for each type, in the graph's arena. The
// file is read and not mapped, for three reasons: truncating a mapped file would end the process with SIGBUS; writing
// to it would change constants that passes have examined; and data of another type, byte order or layout must be
// converted anyway.
typedef struct Loaded {
  Shape shape;
  void *data;
} Loaded;

static bool load_file(Reader *r, Type type, const Shape *shape, const Yaml *y, const char *path, Loaded *loaded) {
  char name[DESCRIPTION_BYTES];
  const Allocator allocator = arena_allocator(&r->graph->arena);
  Tensor t;
  yaml_quote(y->text, name);
  if (!npy_read_named(path, name, reader_position(r, y), type, shape, &t, &allocator, r->d)) return false;
  loaded->shape.rank = t.rank;
  for (int i = 0; i < t.rank; i++) loaded->shape.extent[i] = EXTENT(t.extent[i]);
  loaded->data = t.data;
  return true;
}

// The file, read if no constant had it before; a file of many paths, such as a.npy and ./a.npy, is read once.
static const Loaded *find_file(Reader *r, Type type, const Shape *shape, const Yaml *y) {
  char name[DESCRIPTION_BYTES];
  const char *key = arena_format(&r->scratch, "%s:%s", type_name(type), y->text);
  Loaded *loaded = key ? names_find(&r->files, key) : NULL;
  if (!key) return error_out_of_memory(r->d), NULL;
  if (loaded && npy_shape_fits(shape, &loaded->shape)) return loaded;
  char *path = file_below(r->folder, y->text, yaml_quote(y->text, name), reader_position(r, y), r->d);
  if (!path) return NULL;
  const char *whole = arena_format(&r->scratch, "%s:%s", type_name(type), path);
  loaded = whole ? names_find(&r->files, whole) : NULL;
  bool ok = true;
  if (!loaded || !npy_shape_fits(shape, &loaded->shape)) { // reading again reports the error
    loaded = whole ? ARENA_NEW(&r->scratch, Loaded) : NULL;
    ok = loaded ? load_file(r, type, shape, y, path, loaded) : error_out_of_memory(r->d);
    ok = ok && (names_set(&r->files, whole, loaded) || error_out_of_memory(r->d));
  }
  free(path);
  return ok && (names_set(&r->files, key, loaded) || error_out_of_memory(r->d)) ? loaded : NULL;
}

bool read_file(Reader *r, const Yaml *y, const char *subject, Type type, Shape *shape, Constant *constant) {
  if (y->kind != YAML_SCALAR || !*y->text) return reader_expected(r, y, "file of %s: expected a path", subject);
  const char *mistake = name_mistake(y->text, y->count);
  if (mistake) return reader_error(r, y, "file of %s: %s", subject, mistake);
  const Loaded *loaded = find_file(r, type, shape, y);
  if (!loaded) return false;
  *shape = loaded->shape;
  constant->data = loaded->data;
  constant->file = arena_copy_text(&r->graph->arena, y->text, y->count);
  return constant->file || error_out_of_memory(r->d);
}

// The constant as a whole

// Whether every extent is a number, as listed data needs, or may be unknown, for files.
static bool check_extents(Reader *r, const Draft *draft, const char *key, bool may_be_unknown) {
  char text[DESCRIPTION_BYTES];
  if (!draft->found[SHAPE]) return true; // the file gives the shape
  bool ok = true;
  for (int i = 0; i < draft->shape.rank; i++)
    ok &= extent_is_literal(draft->shape.extent[i]) || (may_be_unknown && extent_is_unknown(draft->shape.extent[i]));
  return ok || reader_error(r, draft->found[SHAPE], "shape of %s: expected numbers beside %s, found %s", draft->subject,
                            key, shape_string(&draft->shape, text, sizeof text));
}

static bool read_data(Reader *r, Draft *draft) {
  const Yaml *const *found = draft->found;
  int given = (found[VALUE] != NULL) + (found[VALUES] != NULL) + (found[FILE_KEY] != NULL);
  if (given != 1)
    return reader_error(r, found[NAME],
                        "constant %s: expected one of value, values and file, "
                        "found %s",
                        draft->subject, given ? "more" : "none");
  draft->constant = ARENA_NEW(&r->graph->arena, Constant);
  if (!draft->constant) return error_out_of_memory(r->d);
  if (found[VALUE]) return read_splat(r, draft, found[VALUE]);
  if (found[VALUES]) return check_extents(r, draft, "values", false) && read_values(r, draft, found[VALUES]);
  return check_extents(r, draft, "file", true) &&
         read_file(r, found[FILE_KEY], draft->subject, draft->type, &draft->shape, draft->constant);
}

void read_constant(Reader *r, const Yaml *y) {
  static const char *const keys[] = {"name", "type", "shape", "value", "values", "file"};
  char subject[DESCRIPTION_BYTES];
  Draft draft = {.type = TYPE_NONE, .shape = {.rank = -1}};
  const Yaml **found = draft.found;
  const char *name;
  read_fields(r, y, "a constant", keys, NKEYS, found);
  if (!read_own_name(r, y, found[NAME], "a constant", &name)) return;
  draft.subject = yaml_quote(name, subject);
  bool has_type = found[TYPE] && read_type(r, found[TYPE], name, &draft.type);
  bool has_shape = found[SHAPE] ? read_shape(r, found[SHAPE], name, &draft.shape) : found[FILE_KEY] != NULL;
  if (!found[TYPE]) reader_error(r, found[NAME], "constant %s: missing type, as in type: f32", draft.subject);
  if (!found[SHAPE] && !found[FILE_KEY])
    reader_error(r, found[NAME], "constant %s: missing shape, as in shape: []", draft.subject);
  bool has_data = has_type && has_shape && read_data(r, &draft);
  Value *v = define_value(r, found[NAME], name, draft.type, &draft.shape, false);
  if (v && has_data) v->constant = draft.constant;
}
