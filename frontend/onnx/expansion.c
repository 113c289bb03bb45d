// Writes nodes of ONNX for formulas.
#include "frontend/onnx/expansion.h"

#include "frontend/onnx/model.h"

#include <assert.h>
#include <string.h>

static Term value(const char *name, Type type) {
  return name ? (Term){.kind = TERM_VALUE, .written = {.name = name, .type = type}} : (Term){.kind = TERM_ABSENT};
}

// The term as a value; `to` NULL: a new name, unless it has one.
static const char *write_term(Expansion *f, Term *t, Type type, const char *to) {
  OnnxWriter *w = f->w;
  Written *v = &t->written;
  if (t->kind == TERM_NUMBER) *t = value(onnx_put_scalar(w, type, t->number), type);
  if (v->name && !to) return v->name;
  if (!to) to = onnx_fresh(w);
  const char *op = v->name ? "Identity" : v->op;
  assert(op); // a formula uses an absent operand in sums and products only
  onnx_begin(w, op);
  if (v->name) onnx_add_input(w, v->name);
  for (size_t i = 0; !v->name && i < v->narguments; i++) onnx_add_input(w, v->arguments[i]);
  if (!v->name && v->axes) onnx_add_axes(w, op, v->axes->items, v->axes->count, true);
  if (strcmp(op, "Cast") == 0) onnx_add_int(w, "to", (int64_t)onnx_type_number(v->type));
  if (strcmp(op, "Mod") == 0) onnx_add_int(w, "fmod", 1);
  if (strstr(op, "oftmax")) onnx_add_int(w, "axis", f->axis);
  onnx_end(w, to);
  v->name = to;
  v->is_zero = false;
  return to;
}

static Term apply(Expansion *f, const char *op, Term *arguments, size_t count) {
  const size_t first = count == MOST_WRITTEN; // behind the condition of Where
  Term t = {.kind = TERM_VALUE, .written = {.op = op, .narguments = count, .type = f->w->type}};
  for (size_t i = count < first + 2 ? count : first + 2; i-- > first;)
    if (arguments[i].kind == TERM_VALUE && (i > first || arguments[i].written.type != TYPE_BOOLEAN))
      t.written.type = arguments[i].written.type;
  for (size_t i = 0; i < count; i++) {
    const Type type = i < first ? TYPE_BOOLEAN : t.written.type; // a condition may have become a number
    t.written.arguments[i] = write_term(f, &arguments[i], type, NULL);
  }
  return t;
}

static bool is(const Term *t, double number) {
  return t->kind == TERM_NUMBER && t->number == number;
}

static bool is_zero(const Term *t) {
  return t->kind == TERM_VALUE && t->written.is_zero;
}

// a + b and so on, without what has no effect.
static Term combine(Recipe *recipe, char sign, Term a, Term b) {
  Expansion *f = (Expansion *)recipe;
  const bool is_sum = sign == '+' || sign == '-', is_scale = sign == '*' || sign == '/' || sign == '^';
  if (a.kind == TERM_ABSENT) return sign == '-' ? apply(f, "Neg", &b, 1) : b;
  if (is_sum && is_zero(&b)) return a;
  if (sign == '+' && is_zero(&a)) return b;
  if ((is_sum && is(&b, 0)) || (is_scale && is(&b, 1))) return a;
  if ((sign == '+' && is(&a, 0)) || (sign == '*' && is(&a, 1))) return b;
  if (sign == '-' && is(&a, 0)) return apply(f, "Neg", &b, 1);
  const bool is_product_with_0 = sign == '*' && (is(&a, 0) || is(&b, 0)); // asked before they get names
  Term t = apply(f, recipe_operator(sign), (Term[]){a, b}, 2);
  t.written.is_zero = is_product_with_0;
  if (!is_sum && !is_scale && sign != '%') t.written.type = TYPE_BOOLEAN;
  return t;
}

static Term call_operator(Recipe *recipe, RecipeCall *call) {
  Expansion *f = (Expansion *)recipe;
  const char *op = arena_format(f->w->node_names.arena, "%.*s", (int)call->name.count, (const char *)call->name.at);
  if (!op) f->w->node.out_of_memory = true;
  return apply(f, op ? op : "", call->arguments, call->count);
}

static Term cast(Expansion *f, Term *a, Type type) {
  if (a->kind == TERM_NUMBER || a->written.type == type) return *a;
  Term t = apply(f, "Cast", a, 1);
  t.written.type = type;
  return t;
}

static Term call_function(Recipe *recipe, RecipeCall *call) {
  enum { ALONG, OVER_AXES, OVER_OTHERS };
  static const struct {
    const char *name, *op;
    int axes;
  } functions[] = {{"sum", "ReduceSum", OVER_AXES},  {"mean", "ReduceMean", OVER_AXES},
                   {"most", "ReduceMax", OVER_AXES}, {"total", "ReduceSum", OVER_OTHERS},
                   {"softmax", "Softmax", ALONG},    {"logsoftmax", "LogSoftmax", ALONG}};
  Expansion *f = (Expansion *)recipe;
  Term *a = call->arguments;
  if (bytes_are(call->name, "wide")) return cast(f, a, TYPE_F64);
  if (bytes_are(call->name, "narrow")) return cast(f, a, f->w->type);
  size_t i = 0;
  while (i < sizeof functions / sizeof *functions && !bytes_are(call->name, functions[i].name)) i++;
  assert(i < sizeof functions / sizeof *functions); // a formula has an unknown function
  const RecipeAxes *axes = functions[i].axes == OVER_OTHERS ? &f->others : &f->axes;
  if (functions[i].axes != ALONG && axes->count == 0) return *a;
  Term t = apply(f, functions[i].op, a, 1);
  if (functions[i].axes != ALONG) t.written.axes = axes;
  return t;
}

// The output of the node that has the name; noutputs: none.
static uint32_t find_output(const Expansion *f, Bytes name) {
  uint32_t i = 0;
  while (i < f->node->op->noutputs && !bytes_are(name, f->node->op->outputs[i].name)) i++;
  return i;
}

static bool is_unwanted(Recipe *recipe, Bytes name) {
  const Expansion *f = (const Expansion *)recipe;
  const uint32_t i = find_output(f, name);
  return i < f->node->op->noutputs && !f->targets[i];
}

static void assign(Recipe *recipe, Bytes name, Term *t) {
  Expansion *f = (Expansion *)recipe;
  const uint32_t i = find_output(f, name);
  const char *target = i < f->node->op->noutputs ? f->targets[i] : NULL;
  if (t->kind == TERM_VALUE || (target && t->kind == TERM_NUMBER)) write_term(f, t, f->w->type, target);
}

void expansion_bind(Expansion *f, const char *name, const char *to, Type type) {
  recipe_bind(&f->recipe, bytes_of(name), value(to, type));
}

void expansion_bind_number(Expansion *f, const char *name, double given) {
  recipe_bind(&f->recipe, bytes_of(name), term_number(given));
}

void expansion_init(Expansion *f, OnnxWriter *w) {
  static const RecipeMaker maker = {combine, call_operator, call_function, is_unwanted, assign};
  const Node *node = w->source;
  *f = (Expansion){.recipe = {.maker = &maker}, .w = w, .node = node};
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

const char *expansion_find(const Expansion *f, const char *name) {
  return recipe_find(&f->recipe, bytes_of(name))->written.name;
}

void expansion_write(Expansion *f, const char *text) {
  recipe_read(&f->recipe, text);
}
