// Reads the keys of operators: the attributes of the table's row, types and shapes; and reports mistakes in them.
#include "frontend/ngraph/translation.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

bool ngraph_tell(Ngraph *x, const Yaml *at, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  const Position before = x->build.at;
  x->build.at = reader_position(x->reader, at);
  build_error(&x->build, "%s", message);
  x->build.at = before;
  return false;
}

const Yaml *ngraph_find(const Yaml *map, const char *key) {
  for (uint32_t i = 0; map->kind == YAML_MAP && i < map->count; i++)
    if (strcmp(yaml_key(map, i)->text, key) == 0) return yaml_entry(map, i);
  return NULL;
}

// Constants store numbers as texts.
bool ngraph_number(const Yaml *y, double *number, int64_t *integer, bool *is_integer) {
  static const struct {
    const char *text;
    double number;
  } words[] = {
      {"inf", (double)INFINITY}, {"infinity", (double)INFINITY}, {"nan", (double)NAN}, {"true", 1}, {"false", 0}};
  if (y->kind != YAML_SCALAR) return false;
  Yaml plain = *y;
  plain.is_plain = true;
  const Scalar s = yaml_scalar(&plain);
  *is_integer = s.kind == SCALAR_INT && s.fits;
  *integer = s.integer;
  *number = s.number;
  if (s.kind == SCALAR_INT || s.kind == SCALAR_FLOAT) return true;
  const char *text = y->text;
  const double sign = *text == '-' ? -1 : 1;
  text += *text == '-' || *text == '+';
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcasecmp(text, words[i].text) != 0) continue;
    *number = sign * words[i].number;
    return true;
  }
  return false;
}

// Reads a type by nGraph's names of C types.
bool ngraph_read_type(Ngraph *x, const Yaml *y, Type *type) {
  static const struct {
    const char *name;
    Type type;
  } rows[] = {{"float", TYPE_F32},    {"double", TYPE_F64},   {"float16", TYPE_F16},  {"bfloat16", TYPE_BF16},
              {"int64_t", TYPE_S64},  {"int32_t", TYPE_S32},  {"int16_t", TYPE_S16},  {"int8_t", TYPE_S8},
              {"uint64_t", TYPE_U64}, {"uint32_t", TYPE_U32}, {"uint16_t", TYPE_U16}, {"uint8_t", TYPE_U8},
              {"char", TYPE_BOOLEAN}};
  char found[DESCRIPTION_BYTES];
  const Yaml *name = y->kind == YAML_MAP ? ngraph_find(y, "c_type_string") : y;
  for (size_t i = 0; name && name->kind == YAML_SCALAR && i < sizeof rows / sizeof *rows; i++) {
    if (strcmp(rows[i].name, name->text) != 0) continue;
    *type = rows[i].type;
    return true;
  }
  return ngraph_tell(x, y, "elements of type %s are not supported", yaml_describe(name ? name : y, found));
}

static bool take_ints(Ngraph *x, const Yaml *y, const char *what, NgraphArgument *a) {
  char found[DESCRIPTION_BYTES];
  if (y->kind != YAML_LIST) return ngraph_tell(x, y, "%s: expected a list, found %s", what, yaml_describe(y, found));
  if (y->count > MAX_RANK)
    return ngraph_tell(x, y, "%s: expected at most %d numbers, found %u", what, MAX_RANK, y->count);
  for (a->count = 0; a->count < y->count; a->count++) {
    const Yaml *item = y->items[a->count];
    const Scalar s = yaml_scalar(item);
    if (s.kind != SCALAR_INT || !s.fits || s.integer <= -MAX_ELEMENTS || s.integer >= MAX_ELEMENTS)
      return ngraph_tell(x, item, "%s: expected a number below 2^47, found %s", what, yaml_describe(item, found));
    a->items[a->count] = s.integer;
  }
  return true;
}

static bool set_shape(Ngraph *x, const Yaml *y, const NgraphArgument *a, Shape *shape) {
  shape->rank = (int)a->count;
  for (size_t i = 0; i < a->count; i++) {
    if (a->items[i] < 0) return ngraph_tell(x, y, "expected extents that are not below 0");
    shape->extent[i] = EXTENT(a->items[i]);
  }
  return shape_nelems(shape) >= 0 || ngraph_tell(x, y, "expected fewer than 2^47 elements");
}

bool ngraph_read_shape(Ngraph *x, const Yaml *y, Shape *shape) {
  NgraphArgument a = {.y = y};
  if (yaml_is_null(y)) return ngraph_tell(x, y, "a shape that is not known is not supported");
  return take_ints(x, y, "shape", &a) && set_shape(x, y, &a, shape);
}

bool ngraph_read_info(Ngraph *x, const Yaml *y, Type *type, Shape *shape) {
  const Yaml *info = ngraph_find(y, "value_type");
  if (!info || ngraph_find(y, "element_type")) info = y;
  const Yaml *element = ngraph_find(info, "element_type"), *extents = ngraph_find(info, "shape");
  if (!element) return ngraph_tell(x, y, "missing element_type");
  if (!extents) return ngraph_tell(x, y, "missing shape");
  return ngraph_read_type(x, element, type) && ngraph_read_shape(x, extents, shape);
}

// Whether an attribute says nothing: 0, a list of zeros, or a word for nGraph's default.
static bool means_nothing(const Yaml *y) {
  static const char *const words[] = {"explicit", "EXPLICIT", "constant", "CONSTANT", "notset", "NOTSET"};
  double number;
  int64_t integer;
  bool is_integer;
  for (uint32_t i = 0; y->kind == YAML_LIST && i < y->count; i++)
    if (!ngraph_number(y->items[i], &number, &integer, &is_integer) || number != 0) return false;
  if (y->kind == YAML_LIST || yaml_is_null(y)) return true;
  for (size_t i = 0; y->kind == YAML_SCALAR && i < sizeof words / sizeof *words; i++)
    if (strcmp(y->text, words[i]) == 0) return true;
  return ngraph_number(y, &number, &integer, &is_integer) && number == 0;
}

static bool take_argument(Ngraph *x, const NgraphAttribute *row, const char *key, const Yaml *y, NgraphArgument *a) {
  char found[DESCRIPTION_BYTES];
  const Scalar s = yaml_scalar(y);
  int64_t integer;
  bool is_integer;
  if (a->y) return ngraph_tell(x, y, "duplicate %s", key);
  a->y = y;
  switch (row->kind) {
  case NGRAPH_INTS: return take_ints(x, y, key, a);
  case NGRAPH_INT:
    a->number = (double)s.integer;
    a->items[0] = s.integer;
    return (s.kind == SCALAR_INT && s.fits && s.integer >= 0 && s.integer < MAX_ELEMENTS) ||
           ngraph_tell(x, y, "%s: expected a number from 0 to 2^47 - 1, found %s", key, yaml_describe(y, found));
  case NGRAPH_BOOL:
    a->number = s.boolean ? 1 : 0;
    return s.kind == SCALAR_BOOL ||
           ngraph_tell(x, y, "%s: expected true or false, found %s", key, yaml_describe(y, found));
  case NGRAPH_NUMBER:
    return (ngraph_number(y, &a->number, &integer, &is_integer) && isfinite(a->number)) ||
           ngraph_tell(x, y, "%s: expected a finite number, found %s", key, yaml_describe(y, found));
  case NGRAPH_TYPE: return ngraph_read_type(x, y, &a->type);
  case NGRAPH_ZERO:
    return means_nothing(y) || ngraph_tell(x, y, "%s: %s is not supported", key, yaml_describe(y, found));
  case NGRAPH_BROADCAST: {
    const Yaml *type = ngraph_find(y, "type");
    static const char *const words[] = {"none", "NONE", "explicit", "numpy", "NUMPY"};
    enum { FIRST_NUMPY = 3, NWORDS = 5 };
    if (!type) type = y;
    const Scalar number = yaml_scalar(type);
    a->number = (double)number.integer;
    if (number.kind == SCALAR_INT && (number.integer == 0 || number.integer == 1)) return true;
    for (int i = 0; type->kind == YAML_SCALAR && i < NWORDS; i++) {
      a->number = i >= FIRST_NUMPY;
      if (strcmp(type->text, words[i]) == 0) return true;
    }
    return ngraph_tell(x, y, "%s: %s is not supported", key, yaml_describe(type, found));
  }
  case NGRAPH_VALUES:
  case NGRAPH_IGNORED: break;
  }
  return true;
}

// Keys that any operator may have, and that add no information.
static bool is_common(const char *key) {
  static const char *const keys[] = {"name",         "op",         "inputs",          "outputs",
                                     "op_version",   "value_type", "type_info",       "element_type",
                                     "control_deps", "rt_info",    "provenance_tags", "friendly_name"};
  for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
    if (strcmp(keys[i], key) == 0) return true;
  return false;
}

static const NgraphAttribute *find_attribute(const NgraphRow *row, const char *key, size_t *i) {
  for (*i = 0; row->attributes[*i].names[0]; ++*i)
    for (int k = 0; k < MOST_SPELLINGS && row->attributes[*i].names[k]; k++)
      if (strcmp(row->attributes[*i].names[k], key) == 0) return &row->attributes[*i];
  return NULL;
}

bool ngraph_read_arguments(Ngraph *x, const Yaml *y) {
  char found[DESCRIPTION_BYTES];
  bool ok = true;
  size_t at;
  memset(x->arguments, 0, sizeof x->arguments);
  for (uint32_t i = 0; i < y->count; i++) {
    const char *key = yaml_key(y, i)->text;
    const NgraphAttribute *row = find_attribute(x->row, key, &at);
    if (row) ok = take_argument(x, row, key, yaml_entry(y, i), &x->arguments[at]) && ok;
    else if (!is_common(key))
      ok = ngraph_tell(x, yaml_key(y, i), "the attribute %s is not supported", yaml_quote(key, found));
  }
  for (size_t i = 0; x->row->attributes[i].names[0]; i++)
    if (!x->arguments[i].y && !x->row->attributes[i].is_optional)
      ok = ngraph_tell(x, y, "missing %s", x->row->attributes[i].names[0]);
  return ok;
}

const NgraphArgument *ngraph_argument(const Ngraph *x, const char *name) {
  size_t at;
  find_attribute(x->row, name, &at);
  return &x->arguments[at];
}

bool ngraph_numbers(Ngraph *x, const char *name, size_t count, int64_t otherwise, int64_t *items) {
  const NgraphArgument *a = ngraph_argument(x, name);
  const bool is_given = a->y && (a->count || !count);
  if (is_given && a->count != count)
    return ngraph_tell(x, a->y, "%s: expected %zu numbers, found %zu", name, count, a->count);
  for (size_t i = 0; i < count; i++) items[i] = is_given ? a->items[i] : otherwise;
  return true;
}

bool ngraph_axes(Ngraph *x, const char *name, int rank, bool *is_axis) {
  const NgraphArgument *a = ngraph_argument(x, name);
  for (int i = 0; i < rank; i++) is_axis[i] = false;
  for (size_t i = 0; i < a->count; i++) {
    if (a->items[i] < 0 || a->items[i] >= rank)
      return ngraph_tell(x, a->y, "%s: expected axes below %d, found %lld", name, rank, (long long)a->items[i]);
    is_axis[a->items[i]] = true;
  }
  return true;
}

bool ngraph_extents(Ngraph *x, const char *name, Shape *shape) {
  const NgraphArgument *a = ngraph_argument(x, name);
  return set_shape(x, a->y, a, shape);
}
