// Reads functions: operators one by one, inputs and outputs.
#include "frontend/ngraph/ngraph.h"

#include "frontend/ngraph/translation.h"

#include <string.h>

bool is_ngraph(const Yaml *root) {
  const Yaml *function = root->kind == YAML_LIST && root->count ? root->items[0] : root;
  return ngraph_find(function, "ops") && !ngraph_find(function, "format");
}

// Operands

const Shape *ngraph_shape(const Ngraph *x, size_t i) {
  return &x->inputs[i]->shape;
}

Value *ngraph_in(Ngraph *x, size_t i) {
  NgraphResult *r = x->inputs[i];
  if (r->full) return r->full;
  const Constant *c = r->value->constant;
  if (shape_equals(&r->value->shape, &r->shape)) r->full = r->value;
  else if (c && (c->is_splat || shape_nelems(&r->value->shape) == 1))
    r->full = build_number(&x->build, r->value->type, &r->shape, type_load(r->value->type, c->data, 0));
  else r->full = build_expand(&x->build, r->value, &r->shape);
  return r->full;
}

bool ngraph_out_broadcast(Ngraph *x, size_t i, Value *v, const Shape *shape) {
  if (!v) return false;
  x->results->items[i] = (NgraphResult){.value = v, .shape = *shape};
  if (!v->producer || strncmp(v->name, x->build.stem, strlen(x->build.stem)) != 0) return true; // already named
  const char *name = x->results->count == 1 ? x->name : arena_format(&x->build.graph->arena, "%s_%zu", x->name, i);
  v->name = name ? arena_copy_text(&x->build.graph->arena, name, strlen(name)) : NULL;
  return v->name || error_out_of_memory(x->build.d);
}

bool ngraph_out(Ngraph *x, size_t i, Value *v) {
  return v && ngraph_out_broadcast(x, i, v, &v->shape);
}

// Finds another operator's result, given as a text or as {node, index}.
static bool take_input(Ngraph *x, const Yaml *y, NgraphResult **result, NgraphResults **of) {
  char found[DESCRIPTION_BYTES];
  const Yaml *name = y->kind == YAML_MAP ? ngraph_find(y, "node") : y,
             *index = y->kind == YAML_MAP ? ngraph_find(y, "index") : NULL;
  const Scalar s = index ? yaml_scalar(index) : (Scalar){.kind = SCALAR_INT, .fits = true};
  if (!name || name->kind != YAML_SCALAR || s.kind != SCALAR_INT)
    return ngraph_tell(x, y, "expected an operator's name, or node and index, found %s", yaml_describe(y, found));
  *of = names_find(&x->operators, name->text);
  if (!*of) return ngraph_tell(x, y, "no operator before it has the name %s", yaml_quote(name->text, found));
  const uint64_t at = (*of)->is_element ? 0 : (uint64_t)s.integer;
  if (at >= (*of)->count)
    return ngraph_tell(x, y, "%s: expected an index below %zu, found %lld", yaml_quote(name->text, found), (*of)->count,
                       (long long)s.integer);
  *result = &(*of)->items[at];
  return true;
}

// Also false if an input has failed; that has been reported.
static bool take_inputs(Ngraph *x, const Yaml *y) {
  const Yaml *list = ngraph_find(y, "inputs");
  const size_t count = list && list->kind == YAML_LIST ? list->count : 0;
  char found[DESCRIPTION_BYTES];
  bool ok = true;
  if (list && list->kind != YAML_LIST && !yaml_is_null(list))
    return ngraph_tell(x, list, "inputs: expected a list, found %s", yaml_describe(list, found));
  if (count < x->row->least_inputs || count > x->row->most_inputs)
    return ngraph_tell(x, list ? list : y, "expected %zu%s%.0zu inputs, found %zu", x->row->least_inputs,
                       x->row->most_inputs > x->row->least_inputs ? " to " : "",
                       x->row->most_inputs > x->row->least_inputs ? x->row->most_inputs : 0, count);
  for (x->ninputs = 0; x->ninputs < count; x->ninputs++) {
    NgraphResults *of = NULL;
    NgraphResult *result = NULL;
    ok = take_input(x, list->items[x->ninputs], &result, &of) && result && result->value && ok;
    if (x->ninputs == 0) x->referred = of;
    x->inputs[x->ninputs] = result;
  }
  return ok;
}

// Operators

// Reads the operator's name. The graph uses it too, if graph files allow it.
static bool take_name(Ngraph *x, const Yaml *y) {
  const Yaml *name = ngraph_find(y, "name");
  char found[DESCRIPTION_BYTES];
  x->build.title = NULL;
  if (!name || name->kind != YAML_SCALAR) return ngraph_tell(x, y, "an operator: missing name");
  x->name = name->text;
  const char *mistake = strcmp(name->text, "_") == 0 ? "expected another name" : name_mistake(name->text, name->count);
  if (mistake) return ngraph_tell(x, name, "%s: %s", yaml_quote(name->text, found), mistake);
  if (!names_find(&x->operators, x->name)) return true;
  return ngraph_tell(x, name, "duplicate operator %s", yaml_quote(name->text, found));
}

static bool find_row(Ngraph *x, const Yaml *y) {
  const Yaml *op = ngraph_find(y, "op"), *version = ngraph_find(y, "op_version");
  char found[DESCRIPTION_BYTES];
  if (!op || op->kind != YAML_SCALAR) return ngraph_tell(x, y, "%s: missing op", yaml_quote(x->name, found));
  // most names are like "Add Add_7"
  x->build.title = arena_format(&x->reader->scratch, "%.80s %.80s", op->text, x->name);
  if (!x->build.title) return error_out_of_memory(x->build.d);
  x->row = ngraph_find_row(op->text);
  const Scalar s = version ? yaml_scalar(version) : (Scalar){.kind = SCALAR_INT};
  const bool is_known = x->row && s.kind == SCALAR_INT && s.integer >= 0 && s.integer <= x->row->last_version;
  if (is_known) return true;
  if (x->row)
    return ngraph_tell(x, version, "version %s of the operator is not supported", yaml_describe(version, found));
  return ngraph_tell(x, op, "the operator is not supported");
}

// The declared type and shape of a result must be the inferred ones.
static bool check_info(Ngraph *x, const Yaml *y) {
  const Yaml *info = ngraph_find(y, "value_type"), *extents = info ? ngraph_find(info, "shape") : NULL;
  const Yaml *element = info ? ngraph_find(info, "element_type") : ngraph_find(y, "element_type");
  const NgraphResult *result = &x->results->items[0];
  Shape shape;
  Type type;
  char expected[80], found[80];
  if (element && element->kind == YAML_MAP && !ngraph_find(element, "c_type_string")) element = NULL;
  if (!element || x->results->count != 1) return true;
  if (!ngraph_read_type(x, element, &type)) return false;
  if (type != result->value->type)
    return ngraph_tell(x, element, "expected %s, which its inputs give, found %s", type_name(result->value->type),
                       type_name(type));
  if (!extents) return true;
  if (!ngraph_read_shape(x, extents, &shape)) return false;
  return shape_equals(&shape, &result->shape) || ngraph_tell(x, extents, "expected %s, which its inputs give, found %s",
                                                             shape_string(&result->shape, expected, sizeof expected),
                                                             shape_string(&shape, found, sizeof found));
}

static bool set_results(Ngraph *x, size_t count) {
  x->results->items = ARENA_ARRAY(&x->reader->scratch, NgraphResult, count);
  if (!x->results->items) return error_out_of_memory(x->build.d);
  for (size_t i = 0; i < count; i++) x->results->items[i] = (NgraphResult){.shape = {.rank = 0}};
  x->results->count = count;
  return true;
}

static bool translate_operator(Ngraph *x, const Yaml *y) {
  enum { NO_ROW_RESULTS = 8 };
  if (!find_row(x, y)) return set_results(x, NO_ROW_RESULTS) && false;
  const OperatorId op = x->row->op;
  if (!set_results(x, op == OP_BatchNormForwardTraining || op == OP_BatchNormTrainingBackward ? 3 : 1)) return false;
  x->at = y;
  bool ok = ngraph_read_arguments(x, y);
  ok = take_inputs(x, y) && ok;
  return ok && x->row->translate(x) && check_info(x, y);
}

// If an operator fails, its results are marked as failed. Its name refers to them from the next operator on.
static bool read_operator(Ngraph *x, const Yaml *y) {
  x->build.at = reader_position(x->reader, y);
  x->build.title = NULL;
  if (y->kind != YAML_MAP) return ngraph_tell(x, y, "expected an operator");
  if (!take_name(x, y)) return false;
  x->results = ARENA_NEW(&x->reader->scratch, NgraphResults);
  if (!x->results) return error_out_of_memory(x->build.d);
  *x->results = (NgraphResults){.is_element = false};
  const bool ok = translate_operator(x, y);
  return (names_set(&x->operators, x->name, x->results) || error_out_of_memory(x->build.d)) && ok;
}

bool ngraph_element(Ngraph *x) {
  NgraphResults *of = x->referred;
  const NgraphArgument *n = ngraph_argument(x, "n");
  if (n->items[0] >= (int64_t)of->count)
    return ngraph_tell(x, n->y, "n: expected a number below %zu, found %lld", of->count, (long long)n->items[0]);
  x->results->items[0] = of->items[n->items[0]];
  x->results->is_element = true;
  return x->results->items[0].value != NULL;
}

bool ngraph_identity(Ngraph *x) {
  x->results->items[0] = *x->inputs[0];
  return true;
}

bool ngraph_parameter(Ngraph *x) {
  Type type;
  Shape shape;
  if (!ngraph_read_info(x, x->at, &type, &shape)) return false;
  Value *v = graph_add_input(x->build.graph, x->name, type, &shape);
  if (!v) return error_out_of_memory(x->build.d);
  v->position = x->build.at;
  x->results->is_parameter = true;
  return ngraph_out(x, 0, v);
}

static void store(Type type, void *data, size_t i, double number, int64_t integer, bool is_integer) {
  if (type == TYPE_S64 && is_integer) ((int64_t *)data)[i] = integer;
  else type_store(type, data, i, type == TYPE_BOOLEAN ? number != 0 : number);
}

static bool is_repeated(const uint8_t *data, size_t nbytes, size_t count) {
  for (size_t i = 1; i < count; i++)
    if (memcmp(data, data + i * nbytes, nbytes) != 0) return false;
  return count > 0;
}

// A constant has one value for all elements, or one for each.
bool ngraph_constant(Ngraph *x) {
  const Yaml *values = ngraph_argument(x, "value")->y;
  Type type;
  Shape shape;
  Constant *constant;
  char found[DESCRIPTION_BYTES];
  if (!ngraph_read_info(x, x->at, &type, &shape)) return false;
  if (values->kind != YAML_LIST)
    return ngraph_tell(x, values, "value: expected a list, found %s", yaml_describe(values, found));
  const int64_t nelems = shape_nelems(&shape), count = values->count;
  if (count != nelems && count != 1)
    return ngraph_tell(x, values, "value: expected %lld numbers, or one for all, found %lld", (long long)nelems,
                       (long long)count);
  const Shape one = {.rank = 0};
  Value *v = build_constant(&x->build, type, count == nelems ? &shape : &one, &constant);
  if (!v) return false;
  v->shape = shape;
  constant->is_splat = count != nelems || count == 1;
  for (uint32_t i = 0; i < values->count; i++) {
    double number;
    int64_t integer;
    bool is_integer;
    if (!ngraph_number(values->items[i], &number, &integer, &is_integer))
      return ngraph_tell(x, values->items[i], "value: expected a number, found %s",
                         yaml_describe(values->items[i], found));
    store(type, constant->data, i, number, integer, is_integer);
  }
  constant->is_splat |= is_repeated(constant->data, type_nbytes(type), (size_t)count);
  return ngraph_out(x, 0, v);
}

// The function

// Sorts the inputs, which are in the order of the Parameter nodes, by the function's list.
static bool order_inputs(Ngraph *x, const Yaml *function) {
  const Yaml *list = ngraph_find(function, "parameters");
  Graph *g = x->build.graph;
  char found[DESCRIPTION_BYTES];
  bool ok = true;
  x->build.title = NULL;
  if (!list || list->kind != YAML_LIST) return ngraph_tell(x, list ? list : function, "parameters: expected a list");
  for (uint32_t i = 0; i < list->count; i++) {
    const Yaml *y = list->items[i];
    NgraphResults *results = y->kind == YAML_SCALAR ? names_find(&x->operators, y->text) : NULL;
    if (!results || !results->is_parameter) {
      ok = ngraph_tell(x, y, "parameters: expected the name of another Parameter, found %s", yaml_describe(y, found));
      continue;
    }
    results->is_parameter = false; // each parameter is listed once
    if (i < g->ninputs) g->inputs[i] = results->items[0].value;
  }
  if (ok && list->count != g->ninputs)
    ok = ngraph_tell(x, list, "parameters: expected all %zu Parameters, found %u", g->ninputs, list->count);
  return ok;
}

// An output gets the name of the operator that makes it. Inputs, constants and values that are outputs already are
// copied.
static bool add_output(Ngraph *x, const Yaml *y) {
  NgraphResults *of;
  x->build.title = "result";
  x->build.at = reader_position(x->reader, y);
  if (!take_input(x, y, &x->inputs[0], &of)) return false;
  if (!x->inputs[0]->value) return false; // already reported
  Value *v = ngraph_in(x, 0);
  if (v && (!v->producer || v->is_output)) v = build_copy(&x->build, v);
  return v && (graph_add_output(x->build.graph, v) || error_out_of_memory(x->build.d));
}

static bool read_function(Ngraph *x, const Yaml *function) {
  const Yaml *ops = ngraph_find(function, "ops"), *result = ngraph_find(function, "result");
  bool ok = true;
  if (!ops || ops->kind != YAML_LIST) return ngraph_tell(x, function, "expected a function with a list of ops");
  if (!result || result->kind != YAML_LIST || !result->count)
    return ngraph_tell(x, result ? result : function, "result: expected a list of operators' names");
  for (uint32_t i = 0; i < ops->count && !x->build.d->out_of_memory; i++) ok = read_operator(x, ops->items[i]) && ok;
  if (!ok) return false;
  ok = order_inputs(x, function);
  for (uint32_t i = 0; i < result->count && !x->build.d->out_of_memory; i++) ok = add_output(x, result->items[i]) && ok;
  return ok && build_end(&x->build);
}

bool ngraph_read(Reader *r, const Yaml *root) {
  Ngraph x = {.build = {.graph = r->graph, .d = r->d, .stem = "ngraph", .finish = build_folded}, .reader = r};
  x.build.foreign = &x.foreign;
  names_init(&x.operators, &r->scratch);
  names_init(&x.foreign.told, &r->scratch);
  const bool is_list = root->kind == YAML_LIST;
  return read_function(&x, is_list ? root->items[root->count - 1] : root);
}
