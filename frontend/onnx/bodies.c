// Reads bodies (bodies.h) by recursive descent, and builds what they say.
#include "frontend/onnx/bodies.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

enum { MOST_NAMES = sizeof((Body *)0)->names / sizeof *((Body *)0)->names };

typedef struct BodyRow {
  const char *name;
  int since;
  const char *inputs, *attributes, *outputs, *text;
} BodyRow;

// Attributes with their kinds (f, i, s, l) and defaults; one without a default is absent. Outputs are names that the
// text assigns.
static const BodyRow rows[] = {
#define BODY(name, since, ...) {#name, since, __VA_ARGS__},
#include "frontend/onnx/bodies.def"
#undef BODY
};

static const Term nothing = {.kind = TERM_ABSENT};

static bool take(Body *f, const char *text) {
  while (*f->at == ' ') f->at++;
  const size_t n = strlen(text);
  if (strncmp(f->at, text, n) != 0) return false;
  f->at += n;
  return true;
}

// Names

static Term *find(Body *f, const char *name, size_t length) {
  for (size_t i = 0; i < f->nnames; i++)
    if (f->names[i].length == length && strncmp(f->names[i].name, name, length) == 0) return &f->names[i].term;
  return NULL;
}

static void bind(Body *f, const char *name, size_t length, Term term) {
  Term *old = find(f, name, length);
  if (old) *old = term;
  else if (f->nnames == MOST_NAMES) body_fail(f, "a formula with too many names");
  else f->names[f->nnames++] = (__typeof__(f->names[0])){name, length, term};
}

static size_t take_name(Body *f, const char **name) {
  take(f, "");
  *name = f->at;
  while (isalnum((unsigned char)*f->at) || *f->at == '_') f->at++;
  return (size_t)(f->at - *name);
}

// Reading

static Term read_expression(Body *f);

static void add_argument(Body *f, BodyCall *call, Term *t) {
  if (body_is_idle(f)) return;
  if (call->ninputs == MOST_BODY_ARGUMENTS) body_fail(f, "a formula with too many operands");
  else call->inputs[call->ninputs] = term_tensor(f, t, NULL), call->ninputs++;
}

// Behind "Name(" or "Name.1("
static Term read_operator(Body *f, const char *name, size_t length, size_t output) {
  BodyCall call = {.op = {(const uint8_t *)name, length}, .output = output};
  while (!take(f, ")")) {
    const char *from = f->at, *key;
    const size_t nkey = take_name(f, &key);
    if (nkey && *f->at == '=' && f->at[1] != '=') {
      f->at++;
      const Term t = read_expression(f);
      if (!body_is_idle(f) && t.kind != TERM_ABSENT &&
          body_put_attribute(f, &call.attributes[call.nattributes], key, nkey, &t))
        call.nattributes++;
    } else {
      f->at = from;
      Term t = read_expression(f);
      add_argument(f, &call, &t);
    }
    take(f, ",");
  }
  return body_is_idle(f) ? nothing : term_value(body_call_operator(f, &call));
}

static Term read_function(Body *f, const char *name, size_t length) {
  Term arguments[MOST_BODY_ARGUMENTS];
  size_t count = 0;
  while (!take(f, ")")) {
    arguments[count++] = read_expression(f);
    take(f, ",");
  }
  return body_function(f, name, length, arguments, count);
}

static Term read_number(Body *f) { // independent of the locale
  double digits = 0, below = 1;
  bool is_behind = false;
  for (; isdigit((unsigned char)*f->at) || *f->at == '.'; f->at++) {
    if (*f->at == '.') is_behind = true;
    else digits = 10 * digits + (*f->at - '0');
    if (is_behind && *f->at != '.') below *= 10;
  }
  return term_number(digits / below);
}

static Term read_text(Body *f) {
  const char *from = f->at;
  while (*f->at != '\'') f->at++;
  return (Term){.kind = TERM_TEXT, .text = {(const uint8_t *)from, (size_t)(f->at++ - from)}};
}

static Term read_list(Body *f) {
  Term list = {.kind = TERM_LIST};
  while (!take(f, "]")) {
    const Term t = read_expression(f);
    int64_t number = 0;
    const size_t count = t.kind == TERM_LIST || t.kind == TERM_EXTENT ? t.count : 1;
    if (!body_is_idle(f) && list.count + count > MOST_TERMS_OF_A_LIST)
      body_fail(f, "expected at most %d axes", MAX_RANK);
    for (size_t i = 0; !body_is_idle(f) && i < count; i++) {
      if (t.count == 0 && !term_int(f, &t, &number)) break;
      list.extents[list.count++] = t.count ? t.extents[i] : EXTENT(number);
    }
    take(f, ",");
  }
  return list;
}

static Term read_primary(Body *f) {
  const char *name;
  size_t output = 0;
  if (take(f, "-")) return term_combine(f, '-', term_number(0), read_primary(f));
  if (take(f, "(")) {
    const Term t = read_expression(f);
    take(f, ")");
    return t;
  }
  if (take(f, "[")) return read_list(f);
  if (take(f, "'")) return read_text(f);
  if (isdigit((unsigned char)*f->at)) return read_number(f);
  const size_t length = take_name(f, &name);
  if (isupper((unsigned char)*name) && *f->at == '.') output = (size_t)(f->at[1] - '0'), f->at += 2;
  if (!take(f, "(")) {
    if (length == 3 && strncmp(name, "inf", 3) == 0) return term_number((double)INFINITY);
    const Term *t = find(f, name, length);
    return t ? *t : nothing;
  }
  return isupper((unsigned char)*name) ? read_operator(f, name, length, output) : read_function(f, name, length);
}

static Term read_product(Body *f) {
  Term a = read_primary(f);
  for (;;) {
    if (take(f, "*")) a = term_combine(f, '*', a, read_primary(f));
    else if (take(f, "/")) a = term_combine(f, '/', a, read_primary(f));
    else if (take(f, "%")) a = term_combine(f, '%', a, read_primary(f));
    else return a;
  }
}

static Term read_sum(Body *f) {
  Term a = read_product(f);
  for (;;) {
    if (take(f, "+")) a = term_combine(f, '+', a, read_product(f));
    else if (take(f, "-")) a = term_combine(f, '-', a, read_product(f));
    else return a;
  }
}

static Term read_comparison(Body *f) {
  static const struct {
    const char *text;
    char sign;
  } comparisons[] = {{"<=", 'L'}, {">=", 'G'}, {"==", '='}, {"!=", '!'}, {"<", '<'}, {">", '>'}};
  const Term a = read_sum(f);
  for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++)
    if (take(f, comparisons[i].text)) return term_combine(f, comparisons[i].sign, a, read_sum(f));
  return a;
}

static Term read_expression(Body *f) {
  Term t = read_comparison(f);
  while (take(f, "&")) t = term_combine(f, '&', t, read_comparison(f));
  if (!take(f, "?")) return t;
  const bool was_dry = f->is_dry, is_true = t.number != 0;
  if (!body_is_idle(f) && t.kind != TERM_NUMBER)
    body_fail(f, "expected a condition that is known when the model is read");
  f->is_dry = was_dry || !is_true;
  const Term a = read_expression(f);
  take(f, ":");
  f->is_dry = was_dry || is_true;
  const Term b = read_expression(f);
  f->is_dry = was_dry;
  return is_true ? a : b;
}

static void read_statements(Body *f);

static void read_each(Body *f) {
  const char *name, *from;
  const size_t length = take_name(f, &name);
  int64_t n = 0;
  take(f, "<");
  const Term count = read_sum(f);
  take(f, "{");
  const bool was_dry = f->is_dry, is_number = !body_is_idle(f) && term_int(f, &count, &n);
  if (is_number && n > MOST_BODY_COPIES) body_fail(f, "more than %d steps are not supported", MOST_BODY_COPIES);
  from = f->at;
  f->is_dry |= n < 1;
  for (int64_t t = 0; t < n || t == 0; t++) {
    f->at = from;
    bind(f, name, length, term_number((double)t));
    read_statements(f);
    if (f->has_failed) n = 0; // its end has been found
  }
  f->is_dry = was_dry;
}

static void read_statements(Body *f) {
  const char *name;
  while (!take(f, "}") && *f->at) {
    const char *from = f->at;
    const size_t length = take_name(f, &name);
    if (length == 4 && strncmp(name, "each", 4) == 0) {
      read_each(f);
    } else if (take(f, "=")) {
      const Term t = read_expression(f);
      if (!body_is_idle(f)) bind(f, name, length, t);
    } else {
      f->at = from;
      read_expression(f);
    }
    take(f, ";");
  }
}

// Operands and results

// The next of names between spaces.
static size_t next_name(const char **list, const char **name) {
  while (**list == ' ') ++*list;
  *name = *list;
  while (**list && !strchr(" :?", **list)) ++*list;
  return (size_t)(*list - *name);
}

// The node's attribute of the kind behind *at, which is the colon; else the default.
static Term attribute_or(Body *f, const char *name, size_t length, const char **at) {
  static const char kinds[] = "fisl";
  static const OnnxKind onnx_kinds[] = {ONNX_FLOAT, ONNX_INT, ONNX_STRING, ONNX_INTS};
  const char *text = arena_copy_text(f->scratch, name, length), *before = f->at;
  const char kind = (*at)[1];
  Term t = nothing;
  Ints list;
  OnnxAttribute a;
  if (!text) return f->has_failed = true, error_out_of_memory(f->x->reading.d), nothing;
  f->at = *at + 2;
  if (take(f, "=")) t = read_primary(f);
  *at = f->at;
  f->at = before;
  if (!onnx_has(f->x, text)) return t;
  if (!onnx_attribute(f->x, text, onnx_kinds[strchr(kinds, kind) - kinds], &a)) return f->has_failed = true, nothing;
  if (kind == 'f') return term_number((double)a.f);
  if (kind == 'i') return term_number((double)a.i);
  if (kind == 's') return (Term){.kind = TERM_TEXT, .text = a.s};
  if (!onnx_list(f->x, text, &list) || list.count > MOST_TERMS_OF_A_LIST)
    return body_fail(f, "%s: expected at most %d numbers", text, MOST_TERMS_OF_A_LIST), nothing;
  t = (Term){.kind = TERM_LIST, .count = list.count};
  for (size_t i = 0; i < list.count; i++) t.extents[i] = EXTENT(list.items[i]);
  return t;
}

static const BodyRow *find_row(const Onnx *x) {
  const BodyRow *found = NULL;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (strcmp(rows[i].name, x->row->name) == 0 && rows[i].since <= x->opset) found = &rows[i];
  return found;
}

static bool give_outputs(Body *f, const char *list) {
  const char *name;
  size_t length;
  for (size_t i = 0; (length = next_name(&list, &name)) > 0; i++) {
    const Term *t = find(f, name, length);
    if (!onnx_wants(f->x, i)) continue;
    if (!t || t->kind != TERM_VALUE) return build_error(&f->x->build, "output %zu is not supported", i);
    if (!onnx_out(f->x, i, t->value)) return false;
  }
  return true;
}

static bool read_body(Body *f, const BodyRow *row) {
  Onnx *x = f->x;
  const char *name, *list = row->inputs;
  size_t length, count = 0;
  for (; (length = next_name(&list, &name)) > 0; count++) {
    if (*list == '?') list++;
    else if (!onnx_in(x, count)) return build_error(&x->build, "the input %.*s is absent", (int)length, name);
    bind(f, name, length, term_value(onnx_in(x, count)));
  }
  if (x->node->ninputs > count) return build_error(&x->build, "expected at most %zu inputs", count);
  for (list = row->attributes; (length = next_name(&list, &name)) > 0 && !f->has_failed;)
    bind(f, name, length, attribute_or(f, name, length, &list));
  f->at = row->text;
  if (!f->has_failed) read_statements(f);
  return !f->has_failed && give_outputs(f, row->outputs);
}

bool onnx_body(Onnx *x) {
  const BodyRow *row = find_row(x);
  Arena scratch;
  if (!row) return build_error(&x->build, "the operator is not supported");
  arena_init(&scratch, x->reading.arena->allocator);
  Body *f = ARENA_NEW(&scratch, Body); // as long as a call: a model may have many
  if (!f) error_out_of_memory(x->reading.d);
  else f->x = x, f->scratch = &scratch;
  const bool ok = f && read_body(f, row);
  arena_deinit(&scratch);
  return ok;
}
