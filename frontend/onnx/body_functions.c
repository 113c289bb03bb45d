// Functions of bodies that are no operators: questions about shapes, types and attributes, whose answers are known when
// the model is read, and lists.
#include "frontend/onnx/bodies.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const Term nothing = {.kind = TERM_ABSENT};

static bool to_int(Body *f, const Term *t, int64_t *number) {
  return recipe_int(&f->recipe, t, number);
}

static const Value *tensor_of(Body *f, const Term *t) {
  if (t->kind != TERM_VALUE) body_fail(f, "a required input is absent");
  return t->kind == TERM_VALUE ? t->value : NULL;
}

static Term has(Body *f, Term *a, size_t count) {
  (void)f;
  (void)count;
  return term_number(a[0].kind != TERM_ABSENT);
}

static Term rank_of(Body *f, Term *a, size_t count) {
  (void)count;
  const Value *v = tensor_of(f, &a[0]);
  return v ? term_number(v->shape.rank) : nothing;
}

// dim(x, i): the extent of an axis; a negative one is counted from the end
static Term dim(Body *f, Term *a, size_t count) {
  const Value *v = tensor_of(f, &a[0]);
  int64_t i;
  int axis;
  if (!v || count < 2 || !to_int(f, &a[1], &i)) return nothing;
  if (!onnx_axis(f->x, i, v->shape.rank, &axis)) return f->recipe.has_failed = true, nothing;
  return term_extent(v->shape.extent[axis]);
}

// shape(x, from, end): the extents of axes; without bounds, of all
static Term shape_of(Body *f, Term *a, size_t count) {
  const Value *v = tensor_of(f, &a[0]);
  Term list = recipe_new_list(&f->recipe);
  int64_t from = 0, end = v ? v->shape.rank : 0;
  if (!v || !list.list || (count > 1 && !to_int(f, &a[1], &from)) || (count > 2 && !to_int(f, &a[2], &end)))
    return nothing;
  if (from < 0) from += v->shape.rank;
  if (end < 0) end += v->shape.rank;
  for (int64_t i = from < 0 ? 0 : from; i < end && i < v->shape.rank; i++) list.list[list.count++] = v->shape.extent[i];
  return list;
}

// range(from, end): the integers as a list
static Term range(Body *f, Term *a, size_t count) {
  Term list = recipe_new_list(&f->recipe);
  int64_t from, end;
  if (!list.list || count < 2 || !to_int(f, &a[0], &from) || !to_int(f, &a[1], &end)) return nothing;
  if (end - from > MOST_TERMS_OF_A_LIST) return body_fail(f, "expected at most %d axes", MAX_RANK), nothing;
  while (from < end) list.list[list.count++] = EXTENT(from++);
  return list;
}

// fill(n, t): the number or extent n times, as a list
static Term fill(Body *f, Term *a, size_t count) {
  Term list = recipe_new_list(&f->recipe);
  int64_t n, number = 0;
  if (!list.list || count < 2 || !to_int(f, &a[0], &n) || (a[1].kind == TERM_NUMBER && !to_int(f, &a[1], &number)))
    return nothing;
  if (n > MOST_TERMS_OF_A_LIST) return body_fail(f, "expected at most %d axes", MAX_RANK), nothing;
  for (; n > 0; n--) list.list[list.count++] = a[1].kind == TERM_NUMBER ? EXTENT(number) : a[1].extent;
  return list;
}

// list(x): the integers of a tensor that is known
static Term list_of(Body *f, Term *a, size_t count) {
  Onnx *x = f->x;
  Term list = recipe_new_list(&f->recipe);
  (void)count;
  const Value *given = tensor_of(f, &a[0]), *v = given ? onnx_known(x, a[0].value) : NULL;
  if (!v || !v->constant) return f->recipe.has_failed = true, v ? (void)onnx_must_be_known(x, v) : (void)0, nothing;
  const int64_t nelems = shape_nelems(&v->shape);
  if (nelems < 0 || nelems > MOST_TERMS_OF_A_LIST || type_is_float(v->type))
    return body_fail(f, "%.80s: expected at most %d integers", v->name, MAX_RANK), nothing;
  for (; list.list && list.count < (size_t)nelems; list.count++) {
    const int64_t number = onnx_integer(v, list.count);
    list.list[list.count] = onnx_has_extents(x, v) ? onnx_extent_of(x, number) : EXTENT(number);
    if (onnx_has_extents(x, v) && extent_is_unknown(list.list[list.count]) && number != -1)
      return f->recipe.has_failed = true, (void)onnx_must_be_known(x, v), nothing;
  }
  return list;
}

static Term count_of(Body *f, Term *a, size_t count) {
  (void)f;
  (void)count;
  return term_number((double)a[0].count);
}

// item(list, i)
static Term item(Body *f, Term *a, size_t count) {
  int64_t i;
  if (count < 2 || !to_int(f, &a[1], &i)) return nothing;
  if (i < 0 || i >= (int64_t)a[0].count) return body_fail(f, "expected more numbers in a list"), nothing;
  return a[0].list[i].dim ? term_extent(a[0].list[i]) : term_number((double)a[0].list[i].value); // also -1
}

// bits(x): of an element
static Term bits_of(Body *f, Term *a, size_t count) {
  (void)count;
  const Value *v = tensor_of(f, &a[0]);
  return v ? term_number((double)(8 * type_nbytes(v->type))) : nothing;
}

// real(x): whether the elements are floats
static Term is_real(Body *f, Term *a, size_t count) {
  (void)count;
  const Value *v = tensor_of(f, &a[0]);
  return v ? term_number(type_is_float(v->type)) : nothing;
}

// like(x, t): the number, extent or tensor t in the type of x
static Term like(Body *f, Term *a, size_t count) {
  const Value *v = tensor_of(f, &a[0]);
  if (!v || count < 2 || a[1].kind == TERM_ABSENT) return nothing;
  return a[1].kind == TERM_VALUE ? body_call(f, "CastLike", (Term[]){a[1], a[0]}, 2)
                                 : term_value(term_tensor(f, &a[1], v));
}

// single(x): halves in f32
static Term single(Body *f, Term *a, size_t count) {
  const TypeSet halves = TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_BF16);
  (void)count;
  if (!tensor_of(f, &a[0])) return nothing;
  return TYPE_BIT(a[0].value->type) & halves ? term_value(build_cast(&f->x->build, a[0].value, TYPE_F32)) : a[0];
}

static Term is_boolean(Body *f, Term *a, size_t count) {
  (void)count;
  const Value *v = tensor_of(f, &a[0]);
  return v ? term_number(v->type == TYPE_BOOLEAN) : nothing;
}

static Term is_text(Body *f, Term *a, size_t count) {
  (void)f;
  if (count < 2 || a[0].kind != TERM_TEXT) return nothing;
  return term_number(a[0].text.count == a[1].text.count && memcmp(a[0].text.at, a[1].text.at, a[1].text.count) == 0);
}

static Term square_root(Body *f, Term *a, size_t count) {
  (void)count;
  if (a[0].kind == TERM_NUMBER) return term_number(sqrt(a[0].number));
  return body_call(f, "Sqrt", (Term[]){term_value(term_tensor(f, a, &(Value){.type = TYPE_F32}))}, 1);
}

// least(a, b): of numbers
static Term least(Body *f, Term *a, size_t count) {
  (void)f;
  return count < 2 || a[0].number < a[1].number ? a[0] : a[1];
}

static Term down(Body *f, Term *a, size_t count) {
  (void)f;
  (void)count;
  return a[0].kind == TERM_NUMBER ? term_number(floor(a[0].number)) : a[0];
}

// index(n, behind): the integers below the extent n, in s64, with axes of extent 1 behind
static Term index_of(Body *f, Term *a, size_t count) {
  int64_t behind = 0, n = 0;
  if ((count > 1 && !to_int(f, &a[1], &behind)) || (a[0].kind == TERM_NUMBER && !to_int(f, &a[0], &n))) return nothing;
  if (behind < 0 || behind >= MAX_RANK || n < 0) return body_fail(f, "expected an extent"), nothing;
  return term_value(onnx_iota(f->x, a[0].kind == TERM_NUMBER ? EXTENT(n) : a[0].extent, EXTENT(1), (int)behind));
}

// expect(condition, 'message')
static Term expect(Body *f, Term *a, size_t count) {
  if (count == 2 && (a[0].kind != TERM_NUMBER || a[0].number == 0))
    body_fail(f, "%.*s", (int)a[1].text.count, (const char *)a[1].text.at);
  return nothing;
}

static Term push(Body *f, Term *a, size_t count) {
  if (count < 2 || a[1].kind != TERM_VALUE) return nothing;
  Value **values = a[0].values;
  if (a[0].kind != TERM_VALUES && !(values = ARENA_ARRAY(f->recipe.arena, Value *, MOST_RECIPE_COPIES)))
    return body_out_of_memory(f);
  const size_t n = a[0].kind == TERM_VALUES ? a[0].count : 0;
  if (n == MOST_RECIPE_COPIES) return nothing; // each has as many at most
  values[n] = a[1].value;
  return (Term){.kind = TERM_VALUES, .values = values, .count = n + 1};
}

static Term stack(Body *f, Term *a, size_t count) {
  int64_t axis;
  if (count < 2 || !to_int(f, &a[1], &axis)) return nothing;
  if (a[0].kind != TERM_VALUES) return body_fail(f, "expected a step or more"), nothing;
  return term_value(onnx_stack(f->x, a[0].values, a[0].count, (int)axis));
}

// one_hot(labels, n, x): 1 along axis 1 where the class is the label, in the type of x
static Term one_hot(Body *f, Term *a, size_t count) {
  int64_t n;
  if (count < 3 || !tensor_of(f, &a[0]) || !tensor_of(f, &a[2]) || !to_int(f, &a[1], &n)) return nothing;
  return term_value(build_one_hot(&f->x->build, a[0].value, 1, n, a[2].value->type));
}

// graph('name', x): the graph of this attribute with the input x; without the attribute, x
static Term apply_graph(Body *f, Term *a, size_t count) {
  if (count < 2) return nothing;
  const char *name = onnx_text_of(f->x, a[0].text);
  return name && onnx_has(f->x, name) ? term_value(onnx_apply(f->x, name, a[1].value)) : a[1];
}

// number('name', i): of this attribute, a list of floats
static Term number_of(Body *f, Term *a, size_t count) {
  OnnxAttribute list;
  double numbers[MOST_TERMS_OF_A_LIST];
  int64_t i;
  const char *name = count < 2 ? NULL : onnx_text_of(f->x, a[0].text);
  if (!name || !to_int(f, &a[1], &i)) return nothing;
  if (onnx_attribute(f->x, name, ONNX_FLOATS, &list) && onnx_floats(&list, numbers, MOST_TERMS_OF_A_LIST) > (size_t)i)
    return term_number(numbers[i]);
  return body_fail(f, "%s: expected more numbers", name), nothing;
}

static const struct {
  const char *name;
  Term (*call)(Body *f, Term *arguments, size_t count);
  bool may_be_absent; // the result
} functions[] = {{"has", has, false},         {"rank", rank_of, false},     {"dim", dim, false},
                 {"shape", shape_of, false},  {"range", range, false},      {"fill", fill, false},
                 {"like", like, true},        {"single", single, false},    {"boolean", is_boolean, false},
                 {"is", is_text, false},      {"sqrt", square_root, false}, {"least", least, false},
                 {"down", down, false},       {"index", index_of, false},   {"expect", expect, true},
                 {"push", push, false},       {"stack", stack, false},      {"graph", apply_graph, false},
                 {"list", list_of, false},    {"count", count_of, false},   {"item", item, false},
                 {"bits", bits_of, false},    {"real", is_real, false},     {"one_hot", one_hot, false},
                 {"number", number_of, false}};

Term body_call_function(Recipe *recipe, RecipeCall *call) {
  size_t i = 0;
  while (i < sizeof functions / sizeof *functions && !bytes_are(call->name, functions[i].name)) i++;
  assert(i < sizeof functions / sizeof *functions); // a formula of bodies.def has an unknown function
  const Term t = functions[i].call((Body *)recipe, call->arguments, call->count);
  recipe->has_failed |= t.kind == TERM_ABSENT && !functions[i].may_be_absent;
  return t;
}
