// Reads formulas by recursive descent.
#include "frontend/onnx/recipe.h"

#include "frontend/foreign/build.h"
#include "frontend/onnx/model.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

enum { MOST_NAMES = sizeof((Recipe *)0)->names / sizeof *((Recipe *)0)->names };

static const Term nothing = {.kind = TERM_ABSENT};

bool recipe_fail(Recipe *f, const char *format, ...) {
  va_list args;
  assert(f->builder);
  f->has_failed = true;
  va_start(args, format);
  build_error_of(f->builder, format, args);
  va_end(args);
  return false;
}

// Terms

Bytes bytes_of(const char *text) {
  return (Bytes){(const uint8_t *)text, strlen(text)};
}

Term term_number(double number) {
  return (Term){.kind = TERM_NUMBER, .number = number};
}

Term recipe_new_list(Recipe *r) {
  Extent *list = ARENA_ARRAY(r->arena, Extent, MOST_TERMS_OF_A_LIST);
  if (list) return (Term){.kind = TERM_LIST, .list = list};
  r->has_failed = true;
  build_out_of_memory(r->builder);
  return nothing;
}

// Levels of binding, from the loosest.
enum { OF_CONDITIONS, OF_COMPARISONS, OF_SUMS, OF_PRODUCTS, OF_POWERS, NLEVELS };

static const struct {
  int level;
  char sign;
  const char *text, *op;
} signs[] = {{OF_CONDITIONS, '&', "&", NULL},
             {OF_COMPARISONS, 'L', "<=", "LessOrEqual"},
             {OF_COMPARISONS, 'G', ">=", "GreaterOrEqual"},
             {OF_COMPARISONS, '=', "==", "Equal"},
             {OF_COMPARISONS, '!', "!=", NULL},
             {OF_COMPARISONS, '<', "<", "Less"},
             {OF_COMPARISONS, '>', ">", "Greater"},
             {OF_SUMS, '+', "+", "Add"},
             {OF_SUMS, '-', "-", "Sub"},
             {OF_PRODUCTS, '*', "*", "Mul"},
             {OF_PRODUCTS, '/', "/", "Div"},
             {OF_PRODUCTS, '%', "%", "Mod"},
             {OF_POWERS, '^', "^", "Pow"}};

enum { NSIGNS = sizeof signs / sizeof *signs };

const char *recipe_operator(char sign) {
  size_t i = 0;
  while (i < NSIGNS && signs[i].sign != sign) i++;
  return i < NSIGNS ? signs[i].op : NULL;
}

Term term_combine_numbers(char sign, double a, double b) {
  switch (sign) {
  case '+': return term_number(a + b);
  case '-': return term_number(a - b);
  case '*': return term_number(a * b);
  case '/': return term_number(a / b);
  case '%': return term_number(fmod(a, b));
  case '^': return term_number(pow(a, b));
  case '&': return term_number(a != 0 && b != 0);
  case '<': return term_number(a < b);
  case 'L': return term_number(a <= b);
  case '>': return term_number(a > b);
  case 'G': return term_number(a >= b);
  case '!': return term_number(a != b);
  default: return term_number(a == b);
  }
}

bool recipe_int(Recipe *f, const Term *t, int64_t *number) {
  const bool is_int =
      t->kind == TERM_NUMBER && fabs(t->number) <= (double)MAX_ELEMENTS && floor(t->number) == t->number;
  *number = is_int ? (int64_t)t->number : 0;
  if (is_int || recipe_is_idle(f)) return is_int;
  if (t->kind == TERM_NUMBER) return recipe_fail(f, "expected integers, found %g", t->number);
  if (t->kind != TERM_EXTENT || !t->extent.dim)
    return recipe_fail(f, "expected a number, which must be known when the model is read");
  return recipe_fail(f, "expected a number in place of the extent %.80s: give it one, as in --dim NAME=1",
                     t->extent.dim->name);
}

static Term combine(Recipe *f, char sign, Term a, Term b) {
  if (recipe_is_idle(f)) return nothing;
  if (a.kind == TERM_NUMBER && b.kind == TERM_NUMBER) return term_combine_numbers(sign, a.number, b.number);
  if (b.kind == TERM_ABSENT) return a;
  if (a.kind == TERM_ABSENT && (sign == '+' || sign == '*')) return b;
  return f->maker->combine(f, sign, a, b);
}

// Names

static bool are_same(Bytes a, Bytes b) {
  return a.count == b.count && memcmp(a.at, b.at, a.count) == 0;
}

static size_t find(const Recipe *f, Bytes name) {
  size_t i = 0;
  while (i < f->nnames && !are_same(f->names[i].name, name)) i++;
  return i;
}

const Term *recipe_find(const Recipe *f, Bytes name) {
  const size_t i = find(f, name);
  return i < f->nnames ? &f->names[i].term : NULL;
}

void recipe_bind(Recipe *f, Bytes name, Term term) {
  const size_t i = find(f, name);
  assert(i < MOST_NAMES); // a table's formula has too many names
  f->nnames += i == f->nnames;
  f->names[i].name = name;
  f->names[i].term = term;
}

// Reading

static Term read_expression(Recipe *f);

static bool take(Recipe *f, const char *text) {
  while (*f->at == ' ') f->at++;
  const size_t n = strlen(text);
  if (strncmp(f->at, text, n) != 0) return false;
  f->at += n;
  return true;
}

static Bytes take_name(Recipe *f) {
  take(f, "");
  const char *name = f->at;
  while (isalnum((unsigned char)*f->at) || *f->at == '_') f->at++;
  return (Bytes){(const uint8_t *)name, (size_t)(f->at - name)};
}

// Behind "name(" or "Name.1("
static Term read_call(Recipe *f, Bytes name, size_t output) {
  RecipeCall call = {.name = name, .output = output};
  while (!take(f, ")")) {
    const char *from = f->at;
    Bytes key = take_name(f);
    if (key.count && *f->at == '=' && f->at[1] != '=') f->at++;
    else f->at = from, key.count = 0;
    const Term t = read_expression(f);
    take(f, ",");
    if (key.count && t.kind == TERM_ABSENT) continue;
    assert(call.count < MOST_RECIPE_ARGUMENTS); // a table's formula has too many
    call.keys[call.count] = key;
    call.arguments[call.count++] = t;
  }
  if (recipe_is_idle(f)) return nothing;
  return isupper(*name.at) ? f->maker->call_operator(f, &call) : f->maker->call_function(f, &call);
}

static Term read_number(Recipe *f) { // independent of the locale
  double digits = 0, below = 1;
  bool is_behind = false;
  for (; isdigit((unsigned char)*f->at) || *f->at == '.'; f->at++) {
    if (*f->at == '.') is_behind = true;
    else digits = 10 * digits + (*f->at - '0');
    if (is_behind && *f->at != '.') below *= 10;
  }
  return term_number(digits / below);
}

static Term read_text(Recipe *f) {
  const char *from = f->at;
  while (*f->at != '\'') f->at++;
  return (Term){.kind = TERM_TEXT, .text = {(const uint8_t *)from, (size_t)(f->at++ - from)}};
}

static Term read_list(Recipe *f) {
  Term list = recipe_is_idle(f) ? nothing : recipe_new_list(f);
  while (!take(f, "]")) {
    const Term t = read_expression(f);
    const size_t count = t.kind == TERM_LIST ? t.count : 1;
    int64_t number;
    take(f, ",");
    if (recipe_is_idle(f)) continue;
    if (list.count + count > MOST_TERMS_OF_A_LIST) recipe_fail(f, "expected at most %d axes", MAX_RANK);
    else if (t.kind == TERM_LIST) memcpy(list.list + list.count, t.list, count * sizeof *t.list);
    else if (t.kind == TERM_EXTENT) list.list[list.count] = t.extent;
    else if (recipe_int(f, &t, &number)) list.list[list.count] = EXTENT(number);
    list.count += count;
  }
  return list;
}

Term recipe_read_term(Recipe *f) {
  size_t output = 0;
  if (take(f, "-")) return combine(f, '-', term_number(0), recipe_read_term(f));
  if (take(f, "(")) {
    const Term t = read_expression(f);
    take(f, ")");
    return t;
  }
  if (take(f, "[")) return read_list(f);
  if (take(f, "'")) return read_text(f);
  if (isdigit((unsigned char)*f->at)) return read_number(f);
  const Bytes name = take_name(f);
  if (name.count && isupper(*name.at) && *f->at == '.') output = (size_t)(f->at[1] - '0'), f->at += 2;
  if (take(f, "(")) return read_call(f, name, output);
  if (bytes_are(name, "inf")) return term_number((double)INFINITY);
  const Term *t = recipe_find(f, name);
  return t ? *t : nothing;
}

static Term read_level(Recipe *f, int level) {
  if (level == NLEVELS) return recipe_read_term(f);
  Term a = read_level(f, level + 1);
  size_t i = 0;
  while (i < NSIGNS) {
    if (signs[i].level != level || !take(f, signs[i].text)) i++;
    else a = combine(f, signs[i].sign, a, read_level(f, level + 1)), i = 0;
  }
  return a;
}

static Term read_expression(Recipe *f) {
  const Term t = read_level(f, OF_CONDITIONS);
  if (!take(f, "?")) return t;
  const bool was_dry = f->is_dry, is_true = t.number != 0;
  if (!recipe_is_idle(f) && t.kind != TERM_NUMBER)
    recipe_fail(f, "expected a condition that is known when the model is read");
  f->is_dry = was_dry || !is_true;
  const Term a = read_expression(f);
  take(f, ":");
  f->is_dry = was_dry || is_true;
  const Term b = read_expression(f);
  f->is_dry = was_dry;
  return is_true ? a : b;
}

static void read_statements(Recipe *f);

static void read_each(Recipe *f) {
  const Bytes name = take_name(f);
  int64_t n = 0;
  take(f, "<");
  const Term count = read_level(f, OF_SUMS);
  take(f, "{");
  const bool was_dry = f->is_dry, is_number = !recipe_is_idle(f) && recipe_int(f, &count, &n);
  if (is_number && n > MOST_RECIPE_COPIES) recipe_fail(f, "more than %d steps are not supported", MOST_RECIPE_COPIES);
  const char *from = f->at;
  f->is_dry |= n < 1;
  for (int64_t t = 0; t < n || t == 0; t++) {
    f->at = from;
    recipe_bind(f, name, term_number((double)t));
    read_statements(f);
    if (f->has_failed) n = 0; // its end has been found
  }
  f->is_dry = was_dry;
}

static void read_assignment(Recipe *f, Bytes name) {
  const RecipeMaker *maker = f->maker;
  const bool was_dry = f->is_dry;
  f->is_dry |= maker->is_unwanted && maker->is_unwanted(f, name);
  Term t = read_expression(f);
  if (!recipe_is_idle(f) && maker->assign) maker->assign(f, name, &t);
  if (!recipe_is_idle(f)) recipe_bind(f, name, t);
  f->is_dry = was_dry;
}

static void read_statements(Recipe *f) {
  while (!take(f, "}") && *f->at) {
    const char *from = f->at;
    const Bytes name = take_name(f);
    if (take(f, "=")) read_assignment(f, name);
    else if (bytes_are(name, "each")) read_each(f);
    else f->at = from, read_expression(f);
    take(f, ";");
  }
}

void recipe_read(Recipe *f, const char *text) {
  f->at = text;
  read_statements(f);
}
