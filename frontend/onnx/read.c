// Makes a graph from a model: inputs, constants, nodes in order, with functions and branches in place, outputs.
#include "frontend/onnx/onnx.h"

#include "frontend/onnx/fields.h"
#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/range.h"

#include <stdlib.h>
#include <string.h>

// Calls repeat a function's nodes, names and constants. The repeated bytes are counted, so that a small file cannot
// cause much work.
enum {
  MOST_DEPTH = 32,
  MOST_CALLED_BYTES = 1 << 27, // bytes of functions, counted once for each call
  NODES_OF_A_CALL = 4          // a call counts as this many nodes, so that calls of empty functions are limited too
};

// In this scope and the enclosing ones.
static Value *find_value(const Onnx *x, const char *name) {
  Value *v = NULL;
  for (const OnnxScope *scope = x->scope; scope && !v; scope = scope->outer) v = names_find(&scope->values, name);
  return v;
}

// Inputs and outputs

// What a message of the graph is found at, for onnx_tell.
static OnnxReading reading_at(const Onnx *x, const OnnxPlace *place) {
  OnnxReading r = x->reading;
  r.place = place;
  return r;
}

// Whether a value has the type and the shape that the model declares; named and unknown extents are any.
static bool is_as_declared(const OnnxInfo *info, const Value *v) {
  bool ok = (!info->type || onnx_type(info->type) == v->type) && (info->rank < 0 || info->rank == v->shape.rank);
  for (int axis = 0; ok && axis < info->rank; axis++) {
    const Extent declared = info->extent[axis], found = v->shape.extent[axis];
    ok = !extent_is_literal(declared) || !extent_is_literal(found) || declared.value == found.value;
  }
  return ok;
}

static bool check_declared(const Onnx *x, const OnnxInfo *info, const char *noun, size_t i, const Value *v) {
  char declared[128], found[128];
  Shape shape = {.rank = info->rank};
  if (v == &x->failed || is_as_declared(info, v)) return true; // a failed value has been reported
  for (int axis = 0; axis < info->rank; axis++) shape.extent[axis] = info->extent[axis];
  const OnnxReading r = reading_at(x, &(OnnxPlace){NULL, noun, i, info->message, INFO_NAME, 0});
  return onnx_tell(&r, info->message.at, "declared as %s %s, but its elements are %s %s", onnx_type_name(info->type),
                   info->rank < 0 ? "of any shape" : shape_string(&shape, declared, sizeof declared),
                   onnx_type_name(onnx_type_number(v->type)), shape_string(&v->shape, found, sizeof found));
}

// False: out of memory. After an error of the input, nodes that use it are left out.
static bool add_input(Onnx *x, const OnnxInfo *info, size_t i, Names *inputs) {
  const char *name = onnx_text_of(x, info->name), *given;
  const OnnxReading r = reading_at(x, &(OnnxPlace){NULL, "input", i, info->message, INFO_NAME, 0});
  Shape shape = {.rank = -1};
  if (!name) return false;
  if (names_find(inputs, name)) onnx_tell(&r, info->message.at, "another input has this name");
  if (!names_set(inputs, name, (void *)info)) return error_out_of_memory(x->reading.d);
  Value *v = names_find(&x->scope->values, name);
  if (v) { // an initializer replaces the input
    check_declared(x, info, "input", i, v);
    return !x->reading.d->out_of_memory;
  }
  v = &x->failed;
  const Type type = onnx_type(info->type);
  if (type == TYPE_NONE) {
    build_error(&x->build, "input %s: %s is not supported", onnx_is_name(name) ? name : "?",
                info->type ? onnx_type_name(info->type) : "a value that is no tensor");
  } else if (!onnx_set_extents(x, info, &shape)) {
    return false;
  } else if ((given = onnx_given(x, name)) != NULL) {
    v = onnx_tensor_file(x, given, name, type, &shape);
    if (!v) v = &x->failed;
  } else {
    const char *own = onnx_own_name(x, name);
    v = own ? graph_add_input(x->build.graph, own, type, info->rank < 0 ? NULL : &shape) : NULL;
    if (!v) return error_out_of_memory(x->reading.d);
    if (!build_fits(&x->build, v)) v = &x->failed;
  }
  return names_set(&x->scope->values, name, v) || error_out_of_memory(x->reading.d);
}

// An output of the graph has the model's name. A value that already has another name is copied: inputs, constants and
// other outputs.
static bool add_output(Onnx *x, const OnnxInfo *info, size_t i) {
  Builder *b = &x->build;
  const char *name = onnx_text_of(x, info->name);
  Value *v = name ? find_value(x, name) : NULL;
  if (!name) return false;
  if (!v) return build_error(b, "output %s: no node makes it", onnx_is_name(name) ? name : "?");
  if (v == &x->failed) return true; // already reported
  if (onnx_is_sequence(v))
    return build_error(b, "output %s: a sequence is not supported", onnx_is_name(name) ? name : "?");
  if (onnx_has_extents(x, v))
    return build_error(b, "output %s: a shape with a name in it: give it a number, as in --dim NAME=1",
                       onnx_is_name(name) ? name : "?");
  if (!check_declared(x, info, "output", i, v)) return !x->reading.d->out_of_memory;
  const bool has_name = strcmp(v->name, name) == 0;
  if (v->is_output || (!has_name && !v->producer)) v = build_copy(b, v);
  if (v && !has_name && onnx_is_name(name)) v->name = arena_copy_text(&b->graph->arena, name, strlen(name));
  if (!v || !v->name) return false;
  return graph_add_output(b->graph, v) || error_out_of_memory(x->reading.d);
}

static bool add_initializers(Onnx *x, const OnnxGraph *g) {
  for (size_t i = 0; i < g->ninitializers; i++) {
    const OnnxTensor *tensor = &g->initializers[i];
    const char *name = onnx_text_of(x, tensor->name);
    if (name && names_find(&x->scope->values, name)) {
      const OnnxReading r = reading_at(x, &(OnnxPlace){NULL, "initializer", i, tensor->message, TENSOR_NAME, 0});
      onnx_tell(&r, tensor->message.at, "another initializer has this name");
    }
    Value *v = name ? onnx_tensor(x, tensor, onnx_is_name(name) ? name : "?") : NULL;
    if (x->reading.d->out_of_memory || !name) return false;
    if (v) v->constant->is_initializer = true;
    if (v && onnx_is_name(name)) v->name = arena_copy_text(&x->build.graph->arena, name, strlen(name));
    if ((v && !v->name) || !names_set(&x->scope->values, name, v ? v : &x->failed))
      return error_out_of_memory(x->reading.d);
  }
  return true;
}

// Nodes

static void *function_key(Onnx *x, Bytes domain, Bytes op) {
  const char *first = onnx_text_of(x, domain), *second = onnx_text_of(x, op);
  return first && second ? arena_format(x->reading.arena, "%s %s", first, second) : NULL;
}

static bool name_functions(Onnx *x, const OnnxModel *model) {
  for (size_t i = 0; i < model->nfunctions; i++) {
    const OnnxFunction *function = &model->functions[i];
    const char *key = function_key(x, function->domain, function->name);
    if (key && names_find(&x->functions, key))
      return build_error(&x->build, "function %zu, %.80s: another function has this name", i, key);
    if (!key || !names_set(&x->functions, key, (void *)function)) return error_out_of_memory(x->reading.d);
  }
  return true;
}

static bool is_known_domain(Bytes domain) {
  return domain.count == 0 || bytes_are(domain, "ai.onnx") || bytes_are(domain, "ai.onnx.preview.training");
}

static bool tell_unknown(Onnx *x) {
  const char *domain = onnx_text_of(x, x->node->domain);
  if (!domain) return false;
  if (*domain && onnx_is_name(domain))
    return build_error(&x->build, "an operator of %.80s that is not supported", domain);
  return build_error(&x->build, "the operator is not supported");
}

// Finds the node's inputs. *is_failed: the producer of an input has failed, which has been reported.
static bool find_inputs(Onnx *x, bool *is_failed) {
  *is_failed = false;
  for (size_t i = 0; i < x->node->ninputs; i++) {
    const char *name = onnx_text_of(x, x->node->inputs[i]);
    if (!name) return false;
    Value *v = *name ? find_value(x, name) : NULL;
    if (*name && !v)
      return build_error(&x->build, "input %zu, %.80s: nothing before the node makes it", i,
                         onnx_is_name(name) ? name : "?");
    *is_failed |= v == &x->failed;
    x->inputs[i] = v == &x->absent ? NULL : v;
  }
  return true;
}

static bool refuse_sequences(Onnx *x) {
  for (size_t i = 0; i < x->node->ninputs; i++)
    if (onnx_is_sequence(x->inputs[i]))
      return build_error(&x->build, "expected a tensor as input %zu, found a sequence", i);
  return true;
}

static bool translate_by_row(Onnx *x) {
  Builder *b = &x->build;
  const OnnxNode *node = x->node;
  if (x->row->translate) return x->row->translate(x);
  if (onnx_needs_arithmetic(x)) return onnx_arithmetic(x);
  if (node->ninputs > operators[x->row->op].ninputs || node->ninputs == 0)
    return build_error(b, "expected %u inputs, found %zu", operators[x->row->op].ninputs, node->ninputs);
  Node *own = build_node(b, x->row->op, (uint32_t)node->ninputs, x->inputs);
  for (const OnnxAttributeRow *a = x->row->attributes; own && a->onnx; a++)
    build_set(own, a->own)->f32 = onnx_float(x, a->onnx, a->default_number);
  return onnx_out(x, 0, build_one(b, own));
}

// Functions of the model, and branches of If: their nodes replace the node that calls them

static bool translate_nodes(Onnx *x, const OnnxGraph *g);

static bool bind_inputs(Onnx *x, const OnnxGraph *g, Names *values) {
  for (size_t i = 0; i < g->ninputs; i++) {
    const char *name = onnx_text_of(x, g->inputs[i].name);
    Value *v = onnx_in(x, i);
    if (!name || !names_set(values, name, v ? v : &x->absent)) return error_out_of_memory(x->reading.d);
  }
  return true;
}

static bool find_results(Onnx *x, const OnnxGraph *g, Value **results) {
  for (size_t i = 0; i < g->noutputs; i++) {
    const char *name = onnx_text_of(x, g->outputs[i].name);
    if (!name) return false;
    results[i] = find_value(x, name);
  }
  return true;
}

// Sets a result of the node, and reports an error only if none was reported for it yet.
static bool give_result(Onnx *x, size_t i, Value *v) {
  if (v && v != &x->failed && v != &x->absent) return onnx_out(x, i, v);
  x->build.has_told = v != NULL;
  return v ? false : build_error(&x->build, "output %zu: no node makes it", i);
}

// Translates g in its own scope, and makes its outputs the results of the current node.
static bool inline_graph(Onnx *x, const OnnxGraph *g, const OnnxScope *outer, const OnnxNode *caller, int64_t opset) {
  OnnxScope scope = {.outer = outer};
  const Onnx before = *x;
  x->nnodes += NODES_OF_A_CALL + g->ninitializers + (g->ninputs + g->noutputs) / OPERANDS_OF_A_NODE;
  if (x->depth >= MOST_DEPTH)
    return build_error(&x->build, "functions and branches are nested deeper than %d", MOST_DEPTH);
  if (x->node->noutputs > g->noutputs) return build_error(&x->build, "expected at most %zu outputs", g->noutputs);
  Value **results = ARENA_ARRAY(x->reading.arena, Value *, g->noutputs + 1);
  if (!results) return error_out_of_memory(x->reading.d);
  names_init(&scope.values, x->reading.arena);
  if (!outer && !bind_inputs(x, g, &scope.values)) return false;
  x->scope = &scope;
  x->caller = caller;
  x->opset = opset;
  x->depth++;
  const bool ok = add_initializers(x, g) && translate_nodes(x, g) && find_results(x, g, results);
  x->scope = before.scope;
  x->caller = before.caller;
  x->opset = before.opset;
  x->depth = before.depth;
  x->node = before.node;
  x->row = before.row;
  x->reading.title = x->build.title = before.build.title;
  x->inputs = before.inputs;
  if (!ok) return false;
  for (size_t i = 0; i < x->node->noutputs; i++)
    if (onnx_wants(x, i) && !give_result(x, i, results[i])) return false;
  return true;
}

static bool call_function(Onnx *x, const OnnxFunction *function) {
  const OnnxGraph *g = &function->graph;
  if (x->node->ninputs > g->ninputs) return build_error(&x->build, "expected at most %zu inputs", g->ninputs);
  x->ncalled += function->nbytes;
  if (x->ncalled > MOST_CALLED_BYTES)
    return build_error(&x->build, "the functions that the model calls are more than %d MiB, counted at each call",
                       MOST_CALLED_BYTES >> 20);
  OnnxNode call = *x->node;
  call.defaults = function->defaults;
  return inline_graph(x, g, NULL, &call, function->opset ? function->opset : x->opset);
}

static bool translate_node(Onnx *x) {
  const char *key = x->functions.count ? function_key(x, x->node->domain, x->node->op) : NULL;
  const OnnxFunction *function = key ? names_find(&x->functions, key) : NULL;
  const size_t errors = x->reading.d->nerrors;
  bool is_failed;
  x->build.has_told = false;
  x->row = onnx_find_row(x->node->op, x->opset);
  x->reading.title = x->build.title = onnx_title(x, x->node);
  x->inputs = ARENA_ARRAY(x->reading.arena, Value *, x->node->ninputs + 1);
  if (!x->build.title || !x->inputs || (x->functions.count && !key)) return error_out_of_memory(x->reading.d);
  const bool is_own = bytes_are(x->node->domain, OWN_DOMAIN);
  if (!function && !is_own && !(x->row && is_known_domain(x->node->domain))) return tell_unknown(x);
  if (!find_inputs(x, &is_failed) || is_failed) return false;
  if (!function && (is_own || !x->row->takes_sequences) && !refuse_sequences(x)) return false;
  if (function ? call_function(x, function) : is_own ? onnx_own_node(x) : translate_by_row(x)) return true;
  if (!x->build.has_told && x->reading.d->nerrors == errors)
    build_error(&x->build, "a required input is absent"); // a translator failed without a message
  return false;
}

// Marks the outputs as failed, so that nodes that use them are left out, and all others are still checked.
static bool fail_outputs(Onnx *x, const OnnxNode *node) {
  for (size_t i = 0; i < node->noutputs; i++) {
    const char *name = onnx_text_of(x, node->outputs[i]);
    if (!name || (*name && !names_set(&x->scope->values, name, &x->failed))) return error_out_of_memory(x->reading.d);
  }
  return true;
}

static bool translate_nodes(Onnx *x, const OnnxGraph *g) {
  for (size_t i = 0; i < g->nnodes; i++) {
    x->nnodes += 1 + (g->nodes[i].ninputs + g->nodes[i].noutputs) / OPERANDS_OF_A_NODE;
    if (x->nnodes > ONNX_MAX_NODES) {
      if (!x->has_too_many) build_error(&x->build, "with its functions, the model has more than 2^18 nodes");
      x->build.has_told = x->has_too_many = true;
      return false;
    }
    OnnxNode node = g->nodes[i];
    node.caller = x->caller;
    x->node = &node;
    const bool ok = translate_node(x);
    x->reading.title = x->build.title = NULL;
    if (x->reading.d->out_of_memory || (!ok && !fail_outputs(x, &node))) return false;
  }
  return true;
}

bool onnx_if(Onnx *x) {
  OnnxAttribute branch;
  OnnxGraph g;
  double condition;
  if (!onnx_number(x, onnx_in(x, 0), &condition)) return false;
  const char *name = condition != 0 ? "then_branch" : "else_branch";
  if (!onnx_attribute(x, name, ONNX_GRAPH, &branch) || !branch.g.at)
    return build_error(&x->build, "expected a %s", name);
  return onnx_read_graph(&x->reading, branch.g, &g) && inline_graph(x, &g, x->scope, x->caller, x->opset);
}

static bool translate_graph(Onnx *x, const OnnxModel *model) {
  const OnnxGraph *g = &model->graph;
  Names inputs;
  names_init(&inputs, x->reading.arena);
  bool ok = name_functions(x, model) && add_initializers(x, g);
  for (size_t i = 0; ok && i < g->ninputs; i++) ok = add_input(x, &g->inputs[i], i, &inputs);
  ok = ok && onnx_check_given(x, g) && translate_nodes(x, g);
  for (size_t i = 0; ok && i < g->noutputs; i++) ok = add_output(x, &g->outputs[i], i);
  if (ok && !g->noutputs) ok = build_error(&x->build, "the model has no outputs");
  if (ok && x->calls) ok = graph_add_update(x->build.graph, x->build.graph->states, x->calls, x->build.at);
  return ok;
}

// Reads "dim N", which onnx_write writes: the default value of the extent N.
static bool set_dims(Onnx *x, Bytes rest) {
  Bytes key, value;
  while (onnx_next_property(&rest, &key, &value)) {
    const char *name = onnx_text_of(x, key), *number = onnx_text_of(x, value);
    if (!name || !number) return false;
    Dim *dim = strncmp(name, "dim ", 4) == 0 ? names_find(&x->dims, name + 4) : NULL;
    char *end;
    const long long n = strtoll(number, &end, 10);
    if (dim && end != number && !*end && n >= 0 && n < MAX_ELEMENTS) dim->value = n;
  }
  return true;
}

static bool finish_graph(Builder *b) {
  return build_end(b) && graph_sort(b->graph, b->d) && graph_infer(b->graph, b->d) && graph_verify(b->graph, b->d);
}

static bool set_source(Graph *g, const char *path) {
  Source *source = ARENA_NEW(&g->arena, Source);
  if (!source) return false;
  *source = (Source){.name = arena_copy_text(&g->arena, path, strlen(path)), .text = "", .nbytes = 0};
  g->source = source;
  return source->name != NULL;
}

// The file's name without folder and suffix.
static bool set_name(Graph *g, const char *path) {
  const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path, *dot = strrchr(from, '.');
  const char *name = arena_copy_text(&g->arena, from, dot && dot > from ? (size_t)(dot - from) : strlen(from));
  if (name) g->name = onnx_is_name(name) && strcmp(name, "-") != 0 ? name : "model";
  return name != NULL;
}

Graph *onnx_read(const Allocator *allocator, const char *path, Bytes bytes, const ReadSettings *settings,
                 Diagnostics *d) {
  const size_t errors = d->nerrors;
  Arena arena;
  OnnxModel model;
  OnnxScope scope = {.outer = NULL};
  arena_init(&arena, allocator);
  Graph *g = graph_new(allocator, "model");
  bool ok = g && set_source(g, path) && set_name(g, path);
  if (!ok) error_out_of_memory(d);
  Onnx x = {.reading = {.d = d, .arena = &arena, .source = ok ? g->source : NULL, .file = bytes},
            .build = {.graph = g, .d = d, .stem = "onnx", .finish = onnx_finish},
            .settings = settings,
            .scope = &scope};
  x.build.at = (Position){x.reading.source, 0, 0};
  names_init(&scope.values, &arena);
  names_init(&x.dims, &arena);
  names_init(&x.infos, &arena);
  x.model = &model.graph;
  names_init(&x.functions, &arena);
  names_init(&x.build.told, &arena);
  ok = ok && onnx_read_model(&x.reading, bytes, &model);
  x.opset = ok ? (model.opset ? model.opset : 1) : 0;
  if (x.opset > ONNX_OPSET)
    warn_at(d, x.build.at, "the model has opset %lld; operators are read as in opset %d", (long long)x.opset,
            ONNX_OPSET);
  ok = ok && translate_graph(&x, &model) && set_dims(&x, model.message) && d->nerrors == errors &&
       finish_graph(&x.build) && d->nerrors == errors && !d->out_of_memory;
  if (ok) graph_find_ranges(g);
  arena_deinit(&arena);
  if (ok) return g;
  graph_free(g);
  return NULL;
}
