// Graph handles: reading, describing, and setting extents.
#include "frontend/api/handles.h"

#include "backends/codegen/codegen.h"
#include "frontend/yaml/yaml.h"
#include "ir/graph/formula.h"
#include "ir/operators/infer.h"
#include "ir/operators/range.h"
#include "passes/gradient/inside.h"

#include <string.h>

ng_graph *graph_wrap(ng_context *ctx, Call call, Graph *graph) {
  ng_graph *g = graph ? allocator_alloc(&ctx->allocator, sizeof *g) : NULL;
  if (graph && !g) error_out_of_memory(&ctx->diagnostics);
  ctx->last_status = call_end(ctx, call);
  if (!g) {
    graph_free(graph);
    return NULL;
  }
  ctx->last_status = NG_OK; // losing a warning is no failure
  *g = (ng_graph){.ctx = ctx, .graph = graph};
  graph_find_ranges(graph);
  text_init(&g->identifier, &ctx->allocator);
  text_init(&g->step_identifier, &ctx->allocator);
  return g;
}

// graph_wrap, at the end of the steps that a reader counts.
static ng_graph *graph_read(ng_context *ctx, Call call, Graph *graph) {
  if (graph && !graph_expand_gradients(graph, &ctx->diagnostics)) {
    graph_free(graph);
    graph = NULL;
  }
  ng_graph *g = graph_wrap(ctx, call, graph);
  compiling_end(ctx);
  return g;
}

// text NULL: reads the file `name`.
static ng_graph *read_with(ng_context *ctx, const char *name, const char *text, size_t nbytes, const char *folder,
                           const ng_read_options *options) {
  compiling_begin(ctx, name);
  Call call = call_begin(ctx);
  Arena arena;
  arena_init(&arena, &ctx->allocator);
  GivenExtent *extents = ARENA_ARRAY(&arena, GivenExtent, options->ndims + 1);
  const ReadSettings settings = {.folder = folder,
                                 .constants = options->constants,
                                 .nconstants = options->nconstants,
                                 .extents = extents,
                                 .nextents = options->ndims,
                                 .find_shape = options->find_shape,
                                 .find_shape_user = options->find_shape_user,
                                 .trains_batch_norms = options->trains_batch_norms != 0};
  Graph *g = NULL;
  for (size_t i = 0; extents && i < options->ndims; i++)
    extents[i] = (GivenExtent){options->dims[i].name, options->dims[i].value};
  if (!extents) error_out_of_memory(&ctx->diagnostics);
  else if (text) g = yaml_read_with(&ctx->allocator, name, text, nbytes, &settings, &ctx->diagnostics);
  else g = yaml_read_file(&ctx->allocator, name, &settings, &ctx->diagnostics);
  arena_deinit(&arena);
  return graph_read(ctx, call, g);
}

ng_graph *ng_graph_read_file_with(ng_context *ctx, const char *path, const ng_read_options *options) {
  return read_with(ctx, path, NULL, 0, NULL, options);
}

ng_graph *ng_graph_read_file(ng_context *ctx, const char *path) {
  return ng_graph_read_file_with(ctx, path, &(ng_read_options){0});
}

ng_graph *ng_graph_read_with(ng_context *ctx, const char *name, const char *text, size_t nbytes, const char *folder,
                             const ng_read_options *options) {
  return read_with(ctx, name, text, nbytes, folder, options);
}

ng_graph *ng_graph_read(ng_context *ctx, const char *name, const char *text, size_t nbytes, const char *folder) {
  return ng_graph_read_with(ctx, name, text, nbytes, folder, &(ng_read_options){0});
}

void ng_graph_free(ng_graph *g) {
  if (!g) return;
  graph_free(g->graph);
  text_deinit(&g->identifier);
  text_deinit(&g->step_identifier);
  allocator_free(&g->ctx->allocator, g);
}

const char *ng_graph_name(const ng_graph *g) {
  return g->graph->name;
}

size_t ng_graph_input_count(const ng_graph *g) {
  return g->graph->ninputs;
}

size_t ng_graph_output_count(const ng_graph *g) {
  return g->graph->noutputs;
}

ng_tensor_info value_info(const Value *v) {
  if (!v) return (ng_tensor_info){.rank = -1};
  ng_tensor_info info = {.name = v->name, .type = (ng_type)v->type, .rank = v->shape.rank};
  for (int i = 0; i < v->shape.rank; i++) {
    info.extent[i] = extent_value(v->shape.extent[i]);
    if (v->shape.extent[i].dim) info.dim[i] = v->shape.extent[i].dim->name;
    info.order[i] = v->layout.axis[i];
  }
  return info;
}

ng_tensor_info ng_graph_input(const ng_graph *g, size_t i) {
  return value_info(g->graph->inputs[i]);
}

int ng_graph_output_is_exact(const ng_graph *g, size_t i) {
  return i < g->graph->noutputs && value_is_exact(g->graph->outputs[i]);
}

ng_tensor_info ng_graph_output(const ng_graph *g, size_t i) {
  return value_info(g->graph->outputs[i]);
}

size_t ng_graph_dim_count(const ng_graph *g) {
  return g->graph->ndims;
}

ng_dim_info ng_graph_dim(const ng_graph *g, size_t i) {
  return (ng_dim_info){g->graph->dims[i]->name, g->graph->dims[i]->value};
}

static ng_status unknown_dim(ng_graph *g, const char *name) {
  if (!g->graph->ndims)
    return argument_error(g->ctx, "unknown dim %s: %s has no extents with names", name, g->graph->name);
  const char **known = allocator_alloc(&g->ctx->allocator, g->graph->ndims * sizeof *known);
  if (!known) return NG_OUT_OF_MEMORY;
  for (size_t i = 0; i < g->graph->ndims; i++) known[i] = g->graph->dims[i]->name;
  ng_status status = unknown_name(g->ctx, "dim", name, known, g->graph->ndims);
  allocator_free(&g->ctx->allocator, known);
  return status;
}

ng_status ng_graph_set_dim(ng_graph *g, const char *name, int64_t value) {
  if (g->is_bound) return argument_error(g->ctx, "%s: the graph is bound already", name);
  Dim *dim = graph_find_dim(g->graph, name);
  if (!dim) return unknown_dim(g, name);
  if (value < 0 || value >= MAX_ELEMENTS)
    return argument_error(g->ctx, "%s: expected 0 or more and fewer than 2^47, found %lld", name, (long long)value);
  dim->value = value;
  dim->is_fixed = true;
  return NG_OK;
}

static ng_status tell_shape(ng_graph *g, const Value *v, int rank, const int64_t *extent) {
  Shape found = {.rank = rank};
  for (int i = 0; i < rank; i++) found.extent[i] = EXTENT(extent[i]);
  Text shapes;
  text_init(&shapes, &g->ctx->allocator);
  text_add_string(&shapes, "expected shape ");
  shape_print(&v->shape, &shapes);
  for (int i = 0; i < v->shape.rank; i++) {
    const Dim *dim = v->shape.extent[i].dim;
    if (dim && dim->is_fixed)
      text_format(&shapes, ", %s = %lld by --dim or other data", dim->name, (long long)dim->value);
  }
  text_add_string(&shapes, ", found ");
  shape_print(&found, &shapes);
  Call call = call_begin(g->ctx);
  error_at(&g->ctx->diagnostics, v->position, "%s: %s", v->name, text_string(&shapes));
  text_deinit(&shapes);
  return call_end(g->ctx, call);
}

// A dim in the extent whose value comes from the file, and can change; NULL: none.
static const Dim *open_dim_in(Extent e) {
  if (!e.dim || !e.dim->terms) return e.dim && !e.dim->is_fixed ? e.dim : NULL;
  for (uint32_t i = 0; i < e.dim->nterms; i++)
    for (uint32_t k = 0; k < e.dim->terms[i].degree; k++)
      if (!e.dim->terms[i].dims[k]->is_fixed) return e.dim->terms[i].dims[k];
  return NULL;
}

static bool extent_is_open(Extent e) {
  return extent_is_unknown(e) || open_dim_in(e);
}

// A value for one dim; the others have theirs.
typedef struct OneValue {
  const Dim *dim;
  int64_t value;
} OneValue;

static int64_t value_with(const Dim *dim, const void *context) {
  const OneValue *one = context;
  return dim == one->dim ? one->value : dim->is_fixed ? dim->value : -1;
}

// Fixes the dim in a formula of which the others are fixed, if the formula is linear in it. False: no value fits.
static bool fix_in_formula(Graph *g, Extent e, int64_t number) {
  const Dim *open = open_dim_in(e), *formula = e.dim;
  int64_t at[2];
  if (!open) return extent_value(e) == number;
  for (int64_t i = 0; i < 2; i++) // far from 0, where a formula may be negative
    at[i] = terms_value(formula->terms, formula->nterms, value_with, &(OneValue){open, number + i});
  const int64_t slope = at[1] - at[0], distance = number - at[0];
  if (at[0] < 0 || at[1] < 0 || !slope) return true; // other data may fix more dims; the kernel compares shapes
  const int64_t value = number + distance / slope;
  const OneValue solution = {open, value};
  if (value < 0 || terms_value(formula->terms, formula->nterms, value_with, &solution) != number) return false;
  Dim *dim = graph_find_dim(g, open->name);
  dim->value = value;
  dim->is_fixed = true;
  return true;
}

// Makes the extent, which fits, this number.
static bool fix_extent(Graph *g, Extent *e, int64_t number) {
  if (e->dim && e->dim->terms) return fix_in_formula(g, *e, number);
  if (extent_is_unknown(*e)) *e = EXTENT(number);
  if (!e->dim) return true;
  Dim *dim = graph_find_dim(g, e->dim->name);
  if (!dim->is_fixed) dim->value = number;
  dim->is_fixed = true;
  return dim->value == number; // [N, N]
}

ng_status ng_graph_set_input_shape(ng_graph *g, size_t i, int rank, const int64_t *extent) {
  if (g->is_bound) return argument_error(g->ctx, "the graph is bound already");
  if (i >= g->graph->ninputs || rank < 0 || rank > MAX_RANK) return argument_error(g->ctx, "no such input or rank");
  Value *v = g->graph->inputs[i];
  bool fits = v->shape.rank < 0 || v->shape.rank == rank;
  for (int axis = 0; axis < rank; axis++) {
    if (extent[axis] < 0 || extent[axis] >= MAX_ELEMENTS)
      return argument_error(g->ctx, "%s: expected extents of 0 or more and fewer than 2^47", v->name);
    if (!fits || v->shape.rank < 0 || extent_is_open(v->shape.extent[axis])) continue;
    fits = extent_value(v->shape.extent[axis]) == extent[axis];
  }
  if (!fits) return tell_shape(g, v, rank, extent);
  for (int axis = 0; axis < rank; axis++) {
    Extent *e = &v->shape.extent[axis];
    if (v->shape.rank < 0) *e = EXTENT(extent[axis]);
    else if (!fix_extent(g->graph, e, extent[axis])) return tell_shape(g, v, rank, extent);
  }
  v->shape.rank = rank;
  return NG_OK;
}

// Reports unknown extents, inputs first, because the others follow from the inputs.
static bool every_extent_is_known(const Graph *g, Diagnostics *d) {
  bool ok = true;
  char shape[256];
  for (size_t i = 0; i < g->ninputs; i++)
    if (!shape_is_known(&g->inputs[i]->shape))
      ok = error_at(d, g->inputs[i]->position, "%s %s: expected data or dims to give every extent", g->inputs[i]->name,
                    shape_string(&g->inputs[i]->shape, shape, sizeof shape));
  for (size_t i = 0; ok && i < g->nvalues; i++)
    if (!shape_is_known(&g->values[i]->shape) || g->values[i]->type == TYPE_NONE)
      ok = error_at(d, g->values[i]->position, "%s %s: expected every extent to follow from the inputs",
                    g->values[i]->name, shape_string(&g->values[i]->shape, shape, sizeof shape));
  return ok;
}

ng_status ng_graph_bind(ng_graph *g) {
  if (g->is_bound) return NG_OK;
  Diagnostics *d = &g->ctx->diagnostics;
  compiling_begin(g->ctx, g->graph->name);
  Call call = call_begin(g->ctx);
  bool ok = graph_bind_dims(g->graph, d) && graph_infer(g->graph, d) && every_extent_is_known(g->graph, d);
  ng_status status = call_end(g->ctx, call);
  compiling_end(g->ctx);
  g->is_bound = ok;
  return ok ? NG_OK : status;
}

ng_status graph_bind_fixed(ng_graph *g) {
  Diagnostics *d = &g->ctx->diagnostics;
  const Call call = call_begin(g->ctx);
  const bool ok = graph_bind_fixed_dims(g->graph, false, d) && graph_infer(g->graph, d);
  const ng_status status = call_end(g->ctx, call);
  return ok ? NG_OK : status;
}

// *identifier is empty until the first call.
static const char *make_identifier(const char *name, Text *identifier) {
  if (!identifier->nbytes) {
    text_deinit(identifier);
    emit_identifier(name, identifier);
  }
  return identifier->out_of_memory ? NULL : text_string(identifier);
}

const char *ng_graph_identifier(ng_graph *g) {
  return make_identifier(g->graph->name, &g->identifier);
}

const char *ng_graph_step_identifier(ng_graph *step) {
  static const char ending[] = "_step";
  const char *name = step->graph->name;
  const size_t nbytes = strlen(name), nending = sizeof ending - 1;
  if (nbytes <= nending || strcmp(name + nbytes - nending, ending) != 0) return ng_graph_identifier(step);
  Text stem;
  text_init(&stem, &step->ctx->allocator);
  text_add(&stem, name, nbytes - nending);
  const char *identifier = stem.out_of_memory ? NULL : make_identifier(text_string(&stem), &step->step_identifier);
  text_deinit(&stem);
  return identifier;
}
