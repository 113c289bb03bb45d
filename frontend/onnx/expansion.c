// Parses formulas by recursive descent, and writes their nodes.
#include "frontend/onnx/expansion.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

static Term absent(void) {
  return (Term){.is_absent = true};
}

static Term number(double value) {
  return (Term){.is_number = true, .number = value};
}

static Term value(const char *name, Type type) {
  return name ? (Term){.name = name, .type = type} : absent();
}

static void bind(Expansion *f, const char *name, size_t length, Term term) {
  Binding *b = f->bindings;
  while (b < f->bindings + f->nbindings && (length != b->length || strncmp(b->name, name, length) != 0)) b++;
  if (b == f->bindings + f->nbindings) {
    assert(f->nbindings < MOST_BINDINGS);
    f->nbindings++;
  }
  *b = (Binding){name, length, term};
}

void expansion_bind(Expansion *f, const char *name, const char *to, Type type) {
  bind(f, name, strlen(name), value(to, type));
}

void expansion_bind_number(Expansion *f, const char *name, double given) {
  bind(f, name, strlen(name), number(given));
}

void expansion_init(Expansion *f, OnnxWriter *w) {
  const Node *node = w->source;
  *f = (Expansion){.w = w, .node = node};
  for (uint32_t i = 0; i < node->op->ninputs; i++) {
    const Value *v = node->inputs[i];
    expansion_bind(f, node->op->inputs[i].name, v ? w->in[i] : NULL,
                   v && type_is_float(v->type) ? w->type
                   : v                         ? v->type
                                               : TYPE_NONE);
  }
  for (uint32_t i = 0; i < node->op->nattributes; i++)
    if (node->op->attributes[i].kind == ATTRIBUTE_F32)
      expansion_bind_number(f, node->op->attributes[i].name, node->attributes[i].f32);
  for (uint32_t i = 0; i < node->op->noutputs; i++) f->targets[i] = node->outputs[i] ? w->out[i] : NULL;
}

// Writing

static const char *scalar(Expansion *f, double number_, Type type) {
  return f->is_dry ? "" : onnx_put_scalar(f->w, type, number_);
}

// The term as a value; `to` NULL: a new name, unless it has one.
static const char *write_term(Expansion *f, Term *t, Type type, const char *to) {
  OnnxWriter *w = f->w;
  if (t->is_number) *t = value(scalar(f, t->number, type), type);
  if (f->is_dry) return "";
  if (t->name && !to) return t->name;
  if (!to) to = onnx_fresh(w);
  const char *op = t->name ? "Identity" : t->op;
  assert(op); // a formula uses an absent operand in sums and products only
  onnx_begin(w, op);
  if (t->name) onnx_add_input(w, t->name);
  for (int i = 0; !t->name && i < t->narguments; i++) onnx_add_input(w, t->arguments[i]);
  if (!t->name && t->axes) onnx_add_axes(w, op, t->axes->items, t->axes->count, true);
  if (strcmp(op, "Cast") == 0) onnx_add_int(w, "to", (int64_t)onnx_type_number(t->type));
  if (strcmp(op, "Mod") == 0) onnx_add_int(w, "fmod", 1);
  if (strstr(op, "oftmax")) onnx_add_int(w, "axis", f->axis);
  onnx_end(w, to);
  t->name = to;
  t->is_zero = false;
  return to;
}

static Type type_of(const Expansion *f, const Term *a, const Term *b) {
  if (!a->is_number && a->type != TYPE_BOOLEAN) return a->type;
  return b && !b->is_number ? b->type : f->w->type;
}

static Term apply(Expansion *f, const char *op, Term *a, Term *b) {
  const Type type = type_of(f, a, b);
  Term t = {.op = op, .narguments = b ? 2 : 1, .type = type};
  t.arguments[0] = write_term(f, a, type, NULL);
  if (b) t.arguments[1] = write_term(f, b, type, NULL);
  return t;
}

static bool is(const Term *t, double number_) {
  return t->is_number && t->number == number_;
}

static double fold(char sign, double a, double b) {
  switch (sign) {
  case '+': return a + b;
  case '-': return a - b;
  case '*': return a * b;
  case '/': return a / b;
  default: return pow(a, b);
  }
}

// a + b and so on, without what is absent and what has no effect.
static Term combine(Expansion *f, char sign, Term a, Term b) {
  static const char signs[] = "+-*/^", *const ops[] = {"Add", "Sub", "Mul", "Div", "Pow"};
  const char *op = ops[strchr(signs, sign) - signs];
  const bool is_product = sign == '*';
  if (a.is_number && b.is_number) return number(fold(sign, a.number, b.number));
  const bool is_sum = sign == '+' || sign == '-';
  if (is_sum && b.is_zero && !a.is_absent) return a;
  if (sign == '+' && a.is_zero && !b.is_absent) return b;
  if (b.is_absent) return a;
  if (a.is_absent) return sign == '-' ? apply(f, "Neg", &b, NULL) : b;
  if (is(&b, is_sum ? 0 : 1)) return a;
  if ((sign == '+' && is(&a, 0)) || (is_product && is(&a, 1))) return b;
  if (sign == '-' && is(&a, 0)) return apply(f, "Neg", &b, NULL);
  const bool is_zero = is_product && (is(&a, 0) || is(&b, 0));
  Term t = apply(f, op, &a, &b);
  t.is_zero = is_zero;
  return t;
}

// Parsing

static Term parse_sum(Expansion *f);

static void skip(Expansion *f) {
  while (*f->at == ' ') f->at++;
}

static bool take(Expansion *f, const char *text) {
  skip(f);
  const size_t n = strlen(text);
  if (strncmp(f->at, text, n) != 0) return false;
  f->at += n;
  return true;
}

// Independent of the locale.
static Term parse_number(Expansion *f) {
  double digits = 0, below = 1;
  bool is_behind = false;
  for (; isdigit((unsigned char)*f->at) || *f->at == '.'; f->at++) {
    if (*f->at == '.') is_behind = true;
    else digits = 10 * digits + (*f->at - '0');
    if (is_behind && *f->at != '.') below *= 10;
  }
  return number(digits / below);
}

static Term parse_argument(Expansion *f) {
  static const struct {
    const char *sign, *op;
  } comparisons[] = {{">=", "GreaterOrEqual"}, {"<=", "LessOrEqual"}, {"==", "Equal"}, {">", "Greater"}, {"<", "Less"}};
  Term a = parse_sum(f);
  for (size_t i = 0; i < sizeof comparisons / sizeof *comparisons; i++) {
    if (!take(f, comparisons[i].sign)) continue;
    Term b = parse_sum(f);
    a = apply(f, comparisons[i].op, &a, &b);
    a.type = TYPE_BOOLEAN;
    break;
  }
  return a;
}

static Term reduce(Expansion *f, const char *op, Term *a, const ExpansionAxes *axes) {
  if (axes->count == 0) return *a;
  Term t = apply(f, op, a, NULL);
  t.axes = axes;
  return t;
}

static Term cast(Expansion *f, Term *a, Type type) {
  if (a->is_number || a->type == type) return *a;
  Term t = apply(f, "Cast", a, NULL);
  t.type = type;
  return t;
}

static Term call(Expansion *f, const char *name, size_t length) {
  static const struct {
    const char *name, *op;
    bool is_over_others, is_over_axes;
  } functions[] = {{"sum", "ReduceSum", false, true},    {"mean", "ReduceMean", false, true},
                   {"most", "ReduceMax", false, true},   {"total", "ReduceSum", true, true},
                   {"softmax", "Softmax", false, false}, {"logsoftmax", "LogSoftmax", false, false}};
  Term a[MOST_TERMS];
  int n = 0;
  do a[n++] = parse_argument(f);
  while (n < MOST_TERMS && take(f, ","));
  const bool is_closed = take(f, ")");
  assert(is_closed);
  (void)is_closed;
  if (length == 4 && strncmp(name, "wide", 4) == 0) return cast(f, &a[0], TYPE_F64);
  if (length == 6 && strncmp(name, "narrow", 6) == 0) return cast(f, &a[0], f->w->type);
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
    if (strlen(functions[i].name) != length || strncmp(functions[i].name, name, length) != 0) continue;
    if (!functions[i].is_over_axes) return apply(f, functions[i].op, &a[0], NULL);
    return reduce(f, functions[i].op, &a[0], functions[i].is_over_others ? &f->others : &f->axes);
  }
  const char *op = arena_format(f->w->node_names.arena, "%.*s", (int)length, name);
  if (!op) f->w->node.out_of_memory = true;
  const int first = n == MOST_TERMS ? 1 : 0; // behind the condition of Where
  const Type type = type_of(f, &a[first], n > first + 1 ? &a[first + 1] : NULL);
  Term t = {.op = op ? op : "", .narguments = n, .type = type};
  for (int i = 0; i < n; i++) t.arguments[i] = write_term(f, &a[i], type, NULL);
  return t;
}

static Term find(const Expansion *f, const char *name, size_t length) {
  for (size_t i = 0; i < f->nbindings; i++)
    if (f->bindings[i].length == length && strncmp(f->bindings[i].name, name, length) == 0) return f->bindings[i].term;
  assert(false); // the formula has an unknown name
  return absent();
}

static size_t parse_name(Expansion *f, const char **name) {
  skip(f);
  *name = f->at;
  while (isalnum((unsigned char)*f->at) || *f->at == '_') f->at++;
  return (size_t)(f->at - *name);
}

static Term parse_primary(Expansion *f) {
  const char *name;
  if (take(f, "-")) return combine(f, '-', number(0), parse_primary(f));
  if (take(f, "(")) {
    const Term t = parse_argument(f);
    take(f, ")");
    return t;
  }
  skip(f);
  if (isdigit((unsigned char)*f->at)) return parse_number(f);
  const size_t length = parse_name(f, &name);
  return take(f, "(") ? call(f, name, length) : find(f, name, length);
}

static Term parse_power(Expansion *f) {
  Term a = parse_primary(f);
  return take(f, "^") ? combine(f, '^', a, parse_primary(f)) : a;
}

static Term parse_product(Expansion *f) {
  Term a = parse_power(f);
  for (;;) {
    if (take(f, "*")) a = combine(f, '*', a, parse_power(f));
    else if (take(f, "/")) a = combine(f, '/', a, parse_power(f));
    else return a;
  }
}

static Term parse_sum(Expansion *f) {
  Term a = parse_product(f);
  for (;;) {
    if (take(f, "+")) a = combine(f, '+', a, parse_product(f));
    else if (take(f, "-")) a = combine(f, '-', a, parse_product(f));
    else return a;
  }
}

static void parse_statement(Expansion *f) {
  const char *name, *target = NULL;
  const size_t length = parse_name(f, &name);
  f->is_dry = false;
  for (uint32_t i = 0; i < f->node->op->noutputs; i++) {
    const char *output = f->node->op->outputs[i].name;
    if (strlen(output) != length || strncmp(output, name, length) != 0) continue;
    target = f->targets[i];
    f->is_dry = !target;
  }
  take(f, "=");
  Term t = parse_sum(f);
  if (t.is_absent || f->is_dry) return;
  if (target || !t.is_number) write_term(f, &t, f->w->type, target);
  bind(f, name, length, t);
}

const char *expansion_find(const Expansion *f, const char *name) {
  return find(f, name, strlen(name)).name;
}

void expansion_write(Expansion *f, const char *text) {
  f->at = text;
  do parse_statement(f);
  while (take(f, ";"));
  skip(f);
  assert(!*f->at);
}
