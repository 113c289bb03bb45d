// Makes a graph from a model: inputs, constants, nodes in order, with functions and branches in place, outputs.
#include "frontend/onnx/onnx.h"

#include "frontend/onnx/translation.h"
#include "frontend/onnx/writer.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/range.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// Calls repeat a function's nodes, names and constants. The repeated bytes are counted, so that a small file cannot
// cause much work.
enum {
  MOST_DEPTH = 32,
  MOST_CALLED_BYTES = 1 << 27, // bytes of functions and bodies of loops, counted once for each call
  MOST_WAITED_BYTES = 1 << 27, // of names of inputs, counted each time that they are looked for
  NODES_OF_A_CALL = 4          // a call counts as this many nodes, so that calls of empty functions are limited too
};

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

// The node's row; those of domains that are not ONNX's have names with the domain in front.
static const OnnxRow *find_row(Onnx *x) {
  const Bytes domain = x->node->domain, op = x->node->op;
  if (domain.count == 0 || bytes_are(domain, "ai.onnx") || bytes_are(domain, "ai.onnx.preview.training"))
    return onnx_find_row(op, x->opset);
  const char *name = arena_format(x->reading.arena, "%.*s.%.*s", (int)domain.count, (const char *)domain.at,
                                  (int)op.count, (const char *)op.at);
  if (!name) return error_out_of_memory(x->reading.d), NULL;
  return onnx_find_row((Bytes){(const uint8_t *)name, strlen(name)}, x->opset);
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
    Value *v = *name ? onnx_find_value(x, name) : NULL;
    x->nwaited += x->node->inputs[i].count;
    x->waits = *name && !v && x->may_wait;
    if (x->waits) return false;
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

bool onnx_translate_by_row(Onnx *x) {
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
    results[i] = onnx_find_value(x, name);
  }
  return true;
}

bool onnx_give_result(Onnx *x, size_t i, Value *v) {
  if (v && v != &x->failed && v != &x->absent) return onnx_out(x, i, v);
  x->foreign.has_told = v != NULL;
  return v ? false : build_error(&x->build, "output %zu: no node makes it", i);
}

bool onnx_translate_inside(Onnx *x, const OnnxGraph *g, OnnxScope *scope, const OnnxNode *caller, int64_t opset,
                           Value **results) {
  const Onnx before = *x;
  x->nnodes += NODES_OF_A_CALL + g->ninitializers + (g->ninputs + g->noutputs) / OPERANDS_OF_A_NODE;
  if (x->depth >= MOST_DEPTH)
    return build_error(&x->build, "functions, branches and loops are nested deeper than %d", MOST_DEPTH);
  x->scope = scope;
  x->caller = caller;
  x->opset = opset;
  x->depth++;
  const bool ok = onnx_take_initializers(x, g) && translate_nodes(x, g) && find_results(x, g, results);
  x->scope = before.scope;
  x->caller = before.caller;
  x->opset = before.opset;
  x->depth = before.depth;
  x->node = before.node;
  x->row = before.row;
  x->reading.title = x->build.title = before.build.title;
  x->inputs = before.inputs;
  return ok;
}

bool onnx_inline_graph(Onnx *x, const OnnxGraph *g, const OnnxScope *outer, const OnnxNode *caller, int64_t opset) {
  OnnxScope scope = {.outer = outer};
  if (x->node->noutputs > g->noutputs) return build_error(&x->build, "expected at most %zu outputs", g->noutputs);
  Value **results = ARENA_ARRAY(x->reading.arena, Value *, g->noutputs + 1);
  if (!results) return error_out_of_memory(x->reading.d);
  names_init(&scope.values, x->reading.arena);
  if (!outer && !bind_inputs(x, g, &scope.values)) return false;
  if (!onnx_translate_inside(x, g, &scope, caller, opset, results)) return false;
  for (size_t i = 0; i < x->node->noutputs; i++)
    if (onnx_wants(x, i) && !onnx_give_result(x, i, results[i])) return false;
  return true;
}

bool onnx_count_call(Onnx *x, size_t nbytes) {
  x->ncalled += nbytes;
  return x->ncalled <= MOST_CALLED_BYTES ||
         build_error(&x->build,
                     "the functions, branches and loops that the model repeats are more than %d MiB, counted each time",
                     MOST_CALLED_BYTES >> 20);
}

static bool call_function(Onnx *x, const OnnxFunction *function) {
  const OnnxGraph *g = &function->graph;
  if (x->node->ninputs > g->ninputs) return build_error(&x->build, "expected at most %zu inputs", g->ninputs);
  if (!onnx_count_call(x, function->nbytes)) return false;
  OnnxNode call = *x->node;
  call.defaults = function->defaults;
  return onnx_inline_graph(x, g, NULL, &call, function->opset ? function->opset : x->opset);
}

// Of models of other systems, such attributes may change results. False: out of memory.
static bool warn_of_attributes(Onnx *x) {
  for (size_t i = 0; i < x->node->attributes.count; i++) {
    const Bytes name = x->node->attributes.items[i].name;
    const bool is_idle = bytes_are(name, "doc_string") || bytes_are(name, "consumed_inputs");
    if (is_idle || onnx_knows(x->row, x->opset, name)) continue;
    const char *text = onnx_text_of(x, name);
    if (!text ||
        !build_warning(&x->build, "the attribute %.80s is not known, and is ignored", onnx_is_name(text) ? text : "?"))
      return false;
  }
  return true;
}

static bool translate_node(Onnx *x) {
  const char *key = x->functions.count ? function_key(x, x->node->domain, x->node->op) : NULL;
  const OnnxFunction *function = key ? names_find(&x->functions, key) : NULL;
  const size_t errors = x->reading.d->nerrors;
  bool is_failed;
  x->foreign.has_told = false;
  x->row = find_row(x);
  x->reading.title = x->build.title = onnx_title(x, x->node);
  x->inputs = ARENA_ARRAY(x->reading.arena, Value *, x->node->ninputs + 1);
  if (!x->build.title || !x->inputs || (x->functions.count && !key)) return error_out_of_memory(x->reading.d);
  const bool is_own = bytes_are(x->node->domain, OWN_DOMAIN);
  if (!function && !is_own && !x->row) return tell_unknown(x);
  if (!find_inputs(x, &is_failed) || is_failed) return false;
  if (!function && (is_own || !x->row->takes_sequences) && !refuse_sequences(x)) return false;
  if (!function && !is_own && !warn_of_attributes(x)) return false;
  if (function ? call_function(x, function) : is_own ? onnx_own_node(x) : onnx_translate_by_row(x)) return true;
  if (!x->foreign.has_told && x->reading.d->nerrors == errors)
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

// Nodes that a node counts as.
static size_t weight_of(const OnnxNode *node) {
  return 1 + (node->ninputs + node->noutputs) / OPERANDS_OF_A_NODE;
}

static bool translate_counted(Onnx *x, OnnxNode node) {
  if (x->nnodes + weight_of(&node) > ONNX_MAX_NODES) {
    if (!x->has_too_many) build_error(&x->build, "with its functions, the model has more than 2^18 nodes");
    x->foreign.has_told = x->has_too_many = true;
    return false;
  }
  x->nnodes += weight_of(&node);
  node.caller = x->caller;
  x->node = &node;
  const bool ok = translate_node(x);
  x->reading.title = x->build.title = NULL;
  if (x->waits) x->nnodes -= weight_of(&node);
  return !x->reading.d->out_of_memory && (ok || x->waits || fail_outputs(x, &node));
}

// Converters append casts behind the nodes that read them. So a node whose inputs nothing has made yet waits for the
// next round, until a round or too much of waiting makes it an error.
static bool translate_nodes(Onnx *x, const OnnxGraph *g) {
  const OnnxNode **waiting = ARENA_ARRAY(x->reading.arena, const OnnxNode *, g->nnodes + 1);
  bool may_wait = true;
  if (!waiting) return error_out_of_memory(x->reading.d);
  for (size_t i = 0; i < g->nnodes; i++) waiting[i] = &g->nodes[i];
  for (size_t count = g->nnodes, left; count; count = left) {
    left = 0;
    for (size_t i = 0; i < count; i++) {
      x->may_wait = may_wait;
      if (!translate_counted(x, *waiting[i])) return false;
      if (x->waits) waiting[left++] = waiting[i];
      x->waits = false;
    }
    may_wait = left < count && x->nwaited < MOST_WAITED_BYTES;
  }
  return true;
}

static bool translate_graph(Onnx *x, const OnnxModel *model) {
  const OnnxGraph *g = &model->graph;
  Names inputs;
  names_init(&inputs, x->reading.arena);
  bool ok = name_functions(x, model) && onnx_take_given_extents(x, g) && onnx_take_initializers(x, g);
  for (size_t i = 0; ok && i < g->ninputs; i++) ok = onnx_take_input(x, &g->inputs[i], i, &inputs);
  ok = ok && onnx_check_given(x, g) && translate_nodes(x, g);
  for (size_t i = 0; ok && i < g->noutputs; i++) ok = onnx_give_output(x, &g->outputs[i], i);
  if (ok && !g->noutputs) ok = build_error(&x->build, "the model has no outputs");
  if (ok && x->calls) ok = graph_add_update(x->build.graph, x->build.graph->states, x->calls, x->build.at);
  return ok;
}

// Reads what onnx_write writes: "dim N", the default value of the extent N, and "leaves".
static bool take_properties(Onnx *x) {
  Bytes rest = x->properties, key, value;
  while (onnx_next_property(&rest, &key, &value)) {
    const char *name = onnx_text_of(x, key), *number = onnx_text_of(x, value);
    if (!name || !number) return false;
    Dim *dim = strncmp(name, "dim ", 4) == 0 ? names_find(&x->dims, name + 4) : NULL;
    char *end;
    const long long n = strtoll(number, &end, 10);
    const bool is_number = end != number && !*end && n >= 0;
    if (dim && is_number && n < MAX_ELEMENTS) dim->value = n;
    if (strcmp(name, "leaves") == 0 && is_number && n <= MOST_LEAVES) x->build.graph->nleaves = n;
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
  names_init(&x.weights, &arena);
  names_init(&x.parts, &arena);
  names_init(&x.files, &arena);
  names_init(&x.graphs, &arena);
  x.reading.nbytes = &x.nbytes;
  x.build.foreign = &x.foreign;
  names_init(&x.foreign.told, &arena);
  ok = ok && onnx_read_model(&x.reading, bytes, &model);
  x.properties = model.message;
  x.opset = ok ? (model.opset ? model.opset : 1) : 0;
  if (x.opset > ONNX_NEWEST)
    warn_at(d, x.build.at, "the model has opset %lld; operators are read as in opset %d", (long long)x.opset,
            ONNX_NEWEST);
  ok = ok && translate_graph(&x, &model) && take_properties(&x) && d->nerrors == errors && finish_graph(&x.build) &&
       d->nerrors == errors && !d->out_of_memory;
  if (ok) graph_find_ranges(g);
  arena_deinit(&arena);
  if (ok) return g;
  graph_free(g);
  return NULL;
}

bool onnx_fits(const Allocator *allocator, Bytes bytes, Diagnostics *d) {
  Arena arena;
  OnnxModel model;
  size_t nbytes = 0, nnodes = 0;
  const Source source = {.name = "the model"};
  const OnnxReading reading = {.d = d, .arena = &arena, .source = &source, .file = bytes, .nbytes = &nbytes};
  arena_init(&arena, allocator);
  bool ok = onnx_read_model(&reading, bytes, &model);
  for (size_t i = 0; ok && i < model.graph.nnodes; i++) nnodes += weight_of(&model.graph.nodes[i]);
  if (nnodes > ONNX_MAX_NODES)
    ok = onnx_tell(&reading, NULL, "it would have more than 2^18 nodes, and not be read again");
  arena_deinit(&arena);
  return ok;
}
