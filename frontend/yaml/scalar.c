// The meaning of scalars, and their description in messages. Numbers do not depend on the locale.
#include "frontend/yaml/tree.h"

#include "frontend/yaml/yaml.h"

#include <ctype.h>
#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Whether the text is a word in lower case, or one of its two other forms.
static bool is_any_of(const char *text, const char *a, const char *b, const char *c) {
  if (tolower((unsigned char)*text) != *a) return false;
  return strcmp(text, a) == 0 || strcmp(text, b) == 0 || strcmp(text, c) == 0;
}

static const char *skip_digits(const char *c) {
  while (*c >= '0' && *c <= '9') c++;
  return c;
}

// [-+]? [0-9]+ | 0o [0-7]+ | 0x [0-9a-fA-F]+
static bool read_int(const char *text, Scalar *s) {
  const char *digits = text + (*text == '-' || *text == '+');
  int base = 10;
  if (text[0] == '0' && (text[1] == 'x' || text[1] == 'o')) {
    base = text[1] == 'x' ? 16 : 8;
    digits = text + 2;
    if (!digits[0] || digits[strspn(digits, base == 16 ? "0123456789abcdefABCDEF" : "01234567")]) return false;
  } else if (skip_digits(digits) == digits || *skip_digits(digits)) {
    return false;
  }
  errno = 0;
  s->kind = SCALAR_INT;
  s->integer = strtoll(base == 10 ? text : digits, NULL, base);
  s->fits = errno != ERANGE;
  s->number = (double)s->integer;
  return true;
}

static double read_decimal(const char *text) {
  locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0); // constant in the C library; cannot fail
  double number = plain ? strtod_l(text, NULL, plain) : strtod(text, NULL);
  if (plain) freelocale(plain);
  return number;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?, or infinity, or nan
static bool read_float(const char *text, Scalar *s) {
  const char *c = text + (*text == '-' || *text == '+');
  s->kind = SCALAR_FLOAT;
  s->fits = true;
  if (is_any_of(c, ".inf", ".Inf", ".INF")) {
    s->number = *text == '-' ? -(double)INFINITY : (double)INFINITY;
    return true;
  }
  if (is_any_of(text, ".nan", ".NaN", ".NAN")) {
    s->number = (double)NAN;
    return true;
  }
  const char *whole = skip_digits(c), *end = whole;
  if (*whole == '.') end = skip_digits(whole + 1);
  if (end == c || (end == c + 1 && *c == '.')) return false;
  if (*end == 'e' || *end == 'E') {
    const char *exponent = end + 1 + (end[1] == '-' || end[1] == '+');
    end = skip_digits(exponent);
    if (end == exponent) return false;
  }
  if (*end) return false;
  s->number = read_decimal(text);
  s->fits = isfinite(s->number);
  return true;
}

// Longer texts are not numbers. A text of many megabytes may be examined through a million aliases.
enum { LONGEST_NUMBER = 1024 };

Scalar yaml_scalar(const Yaml *y) {
  Scalar s = {.kind = SCALAR_STRING};
  if (y->kind != YAML_SCALAR || !y->is_plain || y->count > LONGEST_NUMBER) return s;
  const char *text = y->text;
  if (!*text || strcmp(text, "~") == 0 || is_any_of(text, "null", "Null", "NULL")) {
    s.kind = SCALAR_NULL;
  } else if (is_any_of(text, "true", "True", "TRUE")) {
    s.kind = SCALAR_BOOL;
    s.boolean = true;
  } else if (is_any_of(text, "false", "False", "FALSE")) {
    s.kind = SCALAR_BOOL;
  } else if (read_int(text, &s)) {
    if (!s.fits) s.number = text[1] == 'x' || text[1] == 'o' ? (double)INFINITY : read_decimal(text);
  } else if (!read_float(text, &s)) {
    s.kind = SCALAR_STRING;
  }
  return s;
}

bool yaml_unsigned(const Yaml *y, uint64_t *integer) {
  const bool is_hexadecimal = y->text[1] == 'x', is_octal = y->text[1] == 'o';
  if (*y->text == '-') return false;
  errno = 0;
  *integer = strtoull(y->text + (is_hexadecimal || is_octal ? 2 : 0), NULL, is_hexadecimal ? 16 : is_octal ? 8 : 10);
  return errno != ERANGE;
}

bool yaml_is_quoted_value(const Yaml *y) {
  if (y->kind != YAML_SCALAR || y->is_plain || !*y->text) return false;
  Yaml plain = *y;
  plain.is_plain = true;
  return yaml_scalar(&plain).kind != SCALAR_STRING;
}

bool yaml_is_null(const Yaml *y) {
  return y->kind == YAML_SCALAR && yaml_scalar(y).kind == SCALAR_NULL;
}

const char *yaml_quote(const char *text, char buffer[DESCRIPTION_BYTES]) {
  enum { LONGEST = 60 };
  size_t n = strnlen(text, LONGEST + 1);
  bool is_cut = n > LONGEST, is_word = n > 0 && !is_cut;
  if (is_cut)
    for (n = LONGEST; n && ((unsigned char)text[n] & 0xC0U) == 0x80U;) n--; // do not cut within a character
  for (size_t i = 0; i < n; i++)
    if (!strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-+/", text[i])) is_word = false;
  const char *mark = is_word ? "" : "\"";
  snprintf(buffer, DESCRIPTION_BYTES, "%s%.*s%s%s", mark, (int)n, text, is_cut ? "..." : "", mark);
  return buffer;
}

const char *yaml_describe(const Yaml *y, char buffer[DESCRIPTION_BYTES]) {
  if (y->kind == YAML_LIST) return "a list";
  if (y->kind == YAML_MAP) return "a map";
  if (yaml_is_quoted_value(y)) {
    snprintf(buffer, DESCRIPTION_BYTES, "the text \"%.60s\"", y->text);
    return buffer;
  }
  switch (yaml_scalar(y).kind) {
  case SCALAR_NULL: return "nothing";
  case SCALAR_STRING: return yaml_quote(y->text, buffer);
  default: break;
  }
  snprintf(buffer, DESCRIPTION_BYTES, "%.60s", y->text);
  return buffer;
}
