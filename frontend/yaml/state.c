// States: tensors that persist from call to call, their first values and their updates.
#include "frontend/yaml/reader.h"
#include "ir/graph/init.h"

#include <math.h>
#include <string.h>

static const char init_forms[] =
    "zeros, ones, {uniform: [low, high]}, {normal: deviation}, {fan_in: n} or {file: name.npy}";

static bool tell_init(Reader *r, const Yaml *y, const char *subject) {
  return reader_expected(r, y, "init of %s: expected %s", subject, init_forms);
}

// A finite number of at least `least`.
static bool read_number(Reader *r, const Yaml *y, const char *subject, const char *what, double least, double *number) {
  const Scalar s = yaml_scalar(y);
  if ((s.kind == SCALAR_INT || s.kind == SCALAR_FLOAT) && isfinite(s.number) && s.number >= least) {
    *number = s.number;
    return true;
  }
  const char *range = least == 0 ? " that is not negative" : least == 1 ? " from 1 on" : "";
  return reader_expected(r, y, "init of %s: %s: expected a finite number%s", subject, what, range);
}

// Whether the type can hold the greatest number that the init may make.
static bool fits(Reader *r, const Yaml *y, const char *subject, Type type, const char *what, double greatest) {
  if (isfinite(type_round(type, greatest))) return true;
  return reader_error(r, y,
                      "init of %s: %s: expected numbers within the range of %s, up to %g, found "
                      "up to %g",
                      subject, what, type_name(type), type_greatest(type), greatest);
}

static bool read_uniform(Reader *r, const Yaml *y, const char *subject, Type type, Init *init) {
  if (y->kind != YAML_LIST || y->count != 2)
    return reader_expected(r, y, "init of %s: uniform: expected [low, high]", subject);
  if (!read_number(r, y->items[0], subject, "uniform", -INFINITY, &init->low) ||
      !read_number(r, y->items[1], subject, "uniform", -INFINITY, &init->high))
    return false;
  if (init->low > init->high)
    return reader_error(r, y, "init of %s: uniform: expected the lower number first", subject);
  return fits(r, y, subject, type, "uniform", fmax(fabs(init->low), fabs(init->high)));
}

static bool read_normal(Reader *r, const Yaml *y, const char *subject, Type type, Init *init) {
  return read_number(r, y, subject, "normal", 0, &init->deviation) &&
         fits(r, y, subject, type, "normal", init->deviation * INIT_MOST_DEVIATIONS);
}

static bool read_init_file(Reader *r, const Yaml *y, const char *subject, Type type, Shape *shape, Init *init) {
  Constant *constant = ARENA_NEW(&r->graph->arena, Constant);
  if (!constant) return error_out_of_memory(r->d);
  init->constant = constant;
  return read_file(r, y, subject, type, shape, constant);
}

static bool read_init(Reader *r, const Yaml *y, const char *subject, Type type, Shape *shape, Init *init) {
  const bool is_map = y->kind == YAML_MAP && y->count == 1;
  const char *word = is_map ? yaml_key(y, 0)->text : y->kind == YAML_SCALAR ? y->text : "";
  int kind = INIT_ZEROS;
  while (kind <= INIT_FILE && strcmp(word, init_names[kind]) != 0) kind++;
  init->kind = (InitKind)kind;
  if (kind > INIT_FILE || is_map != (kind >= INIT_UNIFORM)) return tell_init(r, y, subject);
  if (kind == INIT_FILE) return read_init_file(r, yaml_entry(y, 0), subject, type, shape, init);
  if (kind >= INIT_UNIFORM && !type_is_float(type))
    return reader_error(r, y, "init of %s: expected zeros, ones or a file for %s", subject, type_name(type));
  if (kind == INIT_UNIFORM) return read_uniform(r, yaml_entry(y, 0), subject, type, init);
  if (kind == INIT_NORMAL) return read_normal(r, yaml_entry(y, 0), subject, type, init);
  return kind != INIT_FAN_IN || read_number(r, yaml_entry(y, 0), subject, "fan_in", 1, &init->fan_in);
}

static bool has_numbers(Reader *r, const Yaml *y, const char *subject, const Shape *shape) {
  char text[DESCRIPTION_BYTES];
  bool ok = true;
  for (int i = 0; i < shape->rank; i++) ok &= extent_is_literal(shape->extent[i]);
  return ok || reader_error(r, y, "shape of %s: expected numbers for a state, found %s", subject,
                            shape_string(shape, text, sizeof text));
}

void read_state(Reader *r, const Yaml *y) {
  enum { NAME, TYPE, SHAPE, ORDER, INIT, NKEYS };
  static const char *const keys[] = {"name", "type", "shape", "order", "init"};
  const Yaml *found[NKEYS];
  const char *name;
  char subject[DESCRIPTION_BYTES];
  Type type = TYPE_NONE;
  Shape shape = {.rank = -1};
  Layout layout = {{0}};
  Init init = {.kind = INIT_ZEROS};
  read_fields(r, y, "a state", keys, NKEYS, found);
  if (!read_own_name(r, y, found[NAME], "a state", &name)) return;
  yaml_quote(name, subject);
  const bool has_type = found[TYPE] && read_type(r, found[TYPE], name, &type);
  if (!found[TYPE]) reader_error(r, found[NAME], "state %s: missing type, as in type: f32", subject);
  const bool has_shape =
      found[SHAPE] && read_shape(r, found[SHAPE], name, &shape) && has_numbers(r, found[SHAPE], subject, &shape);
  if (!found[SHAPE]) reader_error(r, found[NAME], "state %s: missing shape, as in shape: []", subject);
  if (!found[INIT]) reader_error(r, found[NAME], "state %s: missing init, expected %s", subject, init_forms);
  else if (has_type && has_shape) read_init(r, found[INIT], subject, type, &shape, &init);
  if (found[ORDER]) read_layout(r, found[ORDER], name, &shape, &layout);
  Value *v = define_state(r, found[NAME], name, type, &shape, &init);
  if (v) v->layout = layout;
}

static State *find_state(const Graph *g, const Value *v) {
  for (size_t i = 0; i < g->nstates; i++)
    if (g->inputs[g->states[i].input] == v) return &g->states[i];
  return NULL;
}

bool read_update(Reader *r, const Yaml *key, const Yaml *y) {
  char subject[DESCRIPTION_BYTES];
  const char *name;
  if (!read_name(r, key, "updates", &name)) return true;
  yaml_quote(name, subject);
  Value *v = names_find(&r->values, name);
  State *state = v ? find_state(r->graph, v) : NULL;
  if (!state && !r->misses_names)
    reader_error(r, key, v ? "updates: %s is not a state" : "updates: unknown state %s", subject);
  if (state && state->output >= 0)
    reader_error(r, key, "updates: duplicate %s, first on line %u", subject, (unsigned)state->update.line);
  Value *next = use_value(r, y, "updates");
  if (!state || !next || state->output >= 0) return !r->d->out_of_memory;
  return graph_add_update(r->graph, state, next, reader_position(r, key)) || error_out_of_memory(r->d);
}
