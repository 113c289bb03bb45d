// Writes a graph as an ONNX model.
#include "frontend/onnx/onnx.h"

#include "frontend/onnx/fields.h"
#include "frontend/onnx/write_standard.h"
#include "ir/graph/init.h"

#include <stdio.h>
#include <string.h>

enum { IR_VERSION = 8, IR_VERSION_OF_F8 = 9, IR_VERSION_OF_4_BITS = 10 };
#define MOST_MODEL_BYTES (((size_t)1 << 31) - 1) // limit of protocol buffers

// Values

static void put_info(Text *out, uint32_t field, const Value *v, const char *name) {
  Text shape, dim, tensor, type, info;
  Text *const all[] = {&shape, &dim, &tensor, &type, &info};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_init(all[i], out->allocator);
  for (int i = 0; i < v->shape.rank; i++) {
    const Extent *e = &v->shape.extent[i];
    if (e->dim) onnx_put_text(&dim, DIM_NAME, e->dim->name);
    else if (!extent_is_unknown(*e)) onnx_put_number(&dim, DIM_VALUE, (uint64_t)e->value);
    onnx_put_message(&shape, SHAPE_DIM, &dim);
  }
  onnx_put_number(&tensor, TENSOR_TYPE_ELEMENT, onnx_type_number(v->type));
  if (v->shape.rank >= 0) onnx_put_message(&tensor, TENSOR_TYPE_SHAPE, &shape);
  onnx_put_message(&type, TYPE_TENSOR, &tensor);
  onnx_put_text(&info, INFO_NAME, name);
  onnx_put_message(&info, INFO_TYPE, &type);
  onnx_put_message(out, field, &info);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_deinit(all[i]);
}

static const char *put_extents(OnnxWriter *w, const Shape *shape) {
  for (int i = 0; i < shape->rank; i++)
    if (!onnx_has_extent(w->graph, shape->extent[i])) return NULL;
  return onnx_put_extents(w, shape->extent, (size_t)shape->rank);
}

static void put_constant(OnnxWriter *w, const Value *v, Text *infos) {
  int64_t extents[MAX_RANK];
  bool is_open = false;
  for (int i = 0; i < v->shape.rank; i++) {
    extents[i] = v->shape.extent[i].value;
    is_open |= !extent_is_literal(v->shape.extent[i]);
  }
  // An initializer without axes would be read as a parameter; a number of a formula is a node, as PyTorch writes it.
  const bool is_number = v->shape.rank == 0 && type_is_float(v->type) && type_nbytes(v->type) > 1 &&
                         !v->constant->file && !v->constant->is_initializer;
  if (!is_open && !is_number && (!v->constant->is_splat || shape_nelems(&v->shape) == 1)) {
    onnx_put_tensor(&w->initializers, GRAPH_INITIALIZER, v->name, v->type, extents, v->shape.rank, v->constant->data);
    return;
  }
  // ConstantOfShape(shape) with the number as its attribute, and a cast to bf16, which it lacks. If no
  // input has an extent, Constant of the domain "ngrad", whose shape the model declares.
  const Node none = {0};
  const int64_t one = 1;
  const char *shape;
  w->source = &none;
  if (is_number) {
    onnx_begin(w, "Constant");
    onnx_add_output(w, v->name);
    onnx_add_tensor(w, "value", v->type, extents, 0, v->constant->data);
    onnx_close(w);
    return;
  }
  if (!is_open) shape = onnx_put_numbers(w, extents, (size_t)v->shape.rank);
  else if ((shape = put_extents(w, &v->shape)) != NULL) is_open = false;
  const bool is_cast = !is_open && v->type == TYPE_BF16;
  float number = 0;
  if (is_cast) number = (float)type_load(v->type, v->constant->data, 0);
  const char *wide = onnx_fresh(w);
  if (is_open) onnx_begin_own(w, "Constant");
  else onnx_begin(w, "ConstantOfShape", shape);
  onnx_add_output(w, is_cast ? wide : v->name);
  onnx_add_tensor(w, "value", is_cast ? TYPE_F32 : v->type, &one, 1, is_cast ? &number : v->constant->data);
  onnx_close(w);
  if (is_cast) onnx_put_cast(w, wide, v->type, v->name);
  if (is_open && !v->is_output) put_info(infos, GRAPH_VALUE_INFO, v, v->name);
}

// Chooses a prefix with which no value's name begins.
static void choose_prefix(OnnxWriter *w) {
  size_t length = (size_t)snprintf(w->prefix, sizeof w->prefix, "onnx_");
  for (size_t i = 0; i < w->graph->nvalues && length < sizeof w->prefix - 1;) {
    if (strncmp(w->graph->values[i]->name, w->prefix, length) == 0) {
      w->prefix[length++] = '_';
      w->prefix[length] = 0;
      i = 0;
    } else {
      i++;
    }
  }
}

// Writes an output. A value that the graph lists a second time gets a new name.
static void put_output(OnnxWriter *w, size_t i, Text *outputs) {
  const Value *v = w->graph->outputs[i];
  const Node none = {0};
  if (v->first_output == i) {
    put_info(outputs, GRAPH_OUTPUT, v, v->name);
    return;
  }
  w->source = &none;
  put_info(outputs, GRAPH_OUTPUT, v, onnx_put(w, "Identity", NULL, v->name));
}

static void put_graph(OnnxWriter *w, Text *out) {
  const Graph *g = w->graph;
  Text infos;
  text_init(&infos, out->allocator);
  for (size_t i = 0; i < g->ninputs; i++) put_info(&infos, GRAPH_INPUT, g->inputs[i], g->inputs[i]->name);
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (v->constant && (v->uses || v->is_output)) put_constant(w, v, &infos);
    else if (v->producer && !v->is_output) put_info(&infos, GRAPH_VALUE_INFO, v, v->name);
  }
  for (size_t i = 0; i < g->nnodes; i++) {
    w->source = g->nodes[i];
    if (!onnx_write_standard(w, g->nodes[i])) onnx_write_own(w, g->nodes[i]);
  }
  for (size_t i = 0; i < g->noutputs; i++) put_output(w, i, &infos);
  text_add(out, text_string(&w->nodes), w->nodes.nbytes);
  onnx_put_text(out, GRAPH_NAME, g->name);
  text_add(out, text_string(&w->initializers), w->initializers.nbytes);
  text_add(out, text_string(&infos), infos.nbytes);
  out->out_of_memory |= w->nodes.out_of_memory || w->initializers.out_of_memory || w->node.out_of_memory ||
                        w->attribute.out_of_memory || infos.out_of_memory;
  text_deinit(&infos);
}

// The model

static void put_opset(Text *out, const char *domain, uint64_t version) {
  Text opset;
  text_init(&opset, out->allocator);
  onnx_put_text(&opset, OPSET_DOMAIN, domain);
  onnx_put_number(&opset, OPSET_VERSION, version);
  onnx_put_message(out, MODEL_OPSET, &opset);
  text_deinit(&opset);
}

// Properties for information that ONNX lacks: the states of a step, the number of leaves, and the default values of
// dims.
static void put_property(Text *out, const char *kind, const char *name, const char *value) {
  Text entry, key;
  text_init(&entry, out->allocator);
  text_init(&key, out->allocator);
  text_format(&key, name ? "%s %s" : "%s", kind, name);
  onnx_put_message(&entry, ENTRY_KEY, &key);
  onnx_put_text(&entry, ENTRY_VALUE, value);
  onnx_put_message(out, MODEL_PROPERTY, &entry);
  text_deinit(&entry);
  text_deinit(&key);
}

static void put_properties(const Graph *g, Text *out) {
  char number[24];
  snprintf(number, sizeof number, "%lld", (long long)g->nleaves);
  if (g->nleaves) put_property(out, "leaves", NULL, number);
  for (size_t i = 0; i < g->ndims; i++) {
    snprintf(number, sizeof number, "%lld", (long long)g->dims[i]->value);
    if (g->dims[i]->value >= 0) put_property(out, "dim", g->dims[i]->name, number);
  }
  for (size_t i = 0; i < g->nstates; i++) {
    const State *s = &g->states[i];
    put_property(out, "init", g->inputs[s->input]->name, init_names[s->init.kind]);
    if (s->output >= 0) put_property(out, "update", g->inputs[s->input]->name, g->outputs[s->output]->name);
  }
}

// The lowest opset with the graph's types.
static int choose_opset(const Graph *g) {
  TypeSet types = 0;
  for (size_t i = 0; i < g->nvalues; i++) types |= TYPE_BIT(g->values[i]->type);
  return types & TYPES_4_BITS ? OPSET_OF_4_BITS : types & TYPES_F8 ? OPSET_OF_F8 : ONNX_OPSET;
}

// Says which operators only ngrad reads.
static void warn_of_own(const OnnxWriter *w, Diagnostics *d) {
  Text list;
  text_init(&list, w->node.allocator);
  for (size_t i = 0; i < w->nown; i++) text_format(&list, "%s%s", i ? ", " : "", w->own[i]);
  if (w->has_own)
    warn_at(d, (Position){w->graph->source, 0, 0},
            "ONNX has no form of %s%s: %s written in the domain ngrad, so other systems do not load the model",
            w->nown ? text_string(&list) : "constants", w->graph->ndims ? " beside named extents" : "",
            w->nown == 1 ? "it is" : "these are");
  text_deinit(&list);
}

// Named extents in the lists of a node are computed from inputs that have them.
static bool has_named_items(const Graph *g, Diagnostics *d) {
  bool ok = true;
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    for (uint32_t k = 0; k < node->op->nattributes; k++)
      for (size_t n = 0; node->op->attributes[k].may_be_named && n < node->attributes[k].list.count; n++) {
        const AttributeValue *list = &node->attributes[k];
        if (list->list.extents && list->list.extents[n].dim && !onnx_has_extent(g, list->list.extents[n]))
          ok = error_at(d, node->position,
                        "%s: %s: no input has the extent %s, which ONNX would read there: --dim %s=NUMBER gives it a "
                        "number",
                        node->op->name, node->op->attributes[k].name, list->list.extents[n].dim->name,
                        list->list.extents[n].dim->name);
      }
  }
  return ok;
}

// A copy in which the extents that the caller gave numbers are these numbers; NULL: out of memory.
static Graph *with_numbers(const Graph *g) {
  Graph *copy = graph_clone(g);
  size_t nleft = 0;
  if (!copy) return NULL;
  for (size_t i = 0; i < copy->nvalues; i++)
    for (int axis = 0; axis < copy->values[i]->shape.rank; axis++) {
      Extent *e = &copy->values[i]->shape.extent[axis];
      if (e->dim && e->dim->is_fixed) *e = EXTENT(e->dim->value);
    }
  for (size_t i = 0; i < copy->ndims; i++)
    if (!copy->dims[i]->is_fixed) copy->dims[nleft++] = copy->dims[i];
  copy->ndims = nleft;
  return copy;
}

static bool write_graph(const Graph *g, Text *out, Diagnostics *d) {
  Arena arena;
  OnnxWriter w = {.graph = g, .opset = choose_opset(g)};
  Text graph, *const all[] = {&w.nodes, &w.initializers, &w.node, &w.attribute, &graph};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_init(all[i], out->allocator);
  arena_init(&arena, out->allocator);
  names_init(&w.node_names, &arena);
  choose_prefix(&w);
  put_graph(&w, &graph);
  onnx_put_number(out, MODEL_IR_VERSION,
                  w.opset >= OPSET_OF_4_BITS ? IR_VERSION_OF_4_BITS
                  : w.opset >= OPSET_OF_F8   ? IR_VERSION_OF_F8
                                             : IR_VERSION);
  onnx_put_text(out, MODEL_PRODUCER, "ngrad");
  onnx_put_message(out, MODEL_GRAPH, &graph);
  put_opset(out, "", (uint64_t)w.opset);
  if (w.has_own) put_opset(out, OWN_DOMAIN, OWN_OPSET);
  put_properties(g, out);
  warn_of_own(&w, d);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) text_deinit(all[i]);
  arena_deinit(&arena);
  if (out->out_of_memory) return error_out_of_memory(d);
  if (out->nbytes > MOST_MODEL_BYTES)
    return error_at(d, (Position){g->source, 0, 0}, "the model would have %zu bytes, ONNX's files have less than 2 GiB",
                    out->nbytes);
  return true;
}

bool onnx_write(const Graph *g, Text *out, Diagnostics *d) {
  Graph *copy = with_numbers(g);
  if (!copy) return error_out_of_memory(d);
  const bool ok = has_named_items(copy, d) && write_graph(copy, out, d);
  graph_free(copy);
  return ok;
}
