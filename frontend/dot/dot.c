// Prints graphs for Graphviz. Inputs, constants and outputs are drawn as nodes, results as arrows.
#include "frontend/dot/dot.h"

#include "ir/operators/operator.h"
#include "ir/support/escape.h"

static void print_label(const Value *v, Text *out) {
  text_add_user_string(out, SINK_DOT, v->name);
  text_format(out, "\\n%s ", type_name(v->type));
  Text shape;
  text_init(&shape, out->allocator);
  shape_print(&v->shape, &shape);
  text_add_user_string(out, SINK_DOT, text_string(&shape));
  out->out_of_memory |= shape.out_of_memory;
  text_deinit(&shape);
}

static void print_value(const Value *v, const char *prefix, const char *style, Text *out) {
  text_format(out, "  %s%u [%s, label=\"", prefix, (unsigned)v->index, style);
  print_label(v, out);
  text_add_string(out, "\"];\n");
}

// The tail of a value's arrow.
static void print_origin(const Value *v, Text *out) {
  if (v->producer) text_format(out, "  n%u", (unsigned)v->producer->index);
  else text_format(out, "  v%u", (unsigned)v->index);
}

static void print_box(const Node *node, Text *out) {
  Text name;
  text_init(&name, out->allocator);
  operator_print_name(node->op, node->signature, &name);
  text_format(out, "  n%u [shape=box, label=\"%s", (unsigned)node->index, text_string(&name));
  if (node->position.line || node->norigins) text_add_string(out, "\\n");
  node_print_lines(node, out);
  text_add_string(out, "\"];\n");
  out->out_of_memory |= name.out_of_memory;
  text_deinit(&name);
}

static void print_arrows(const Node *node, Text *out) {
  for (uint32_t i = 0; i < node->ninputs; i++) {
    const Value *v = node->inputs[i];
    if (!v) continue;
    print_origin(v, out);
    text_format(out, " -> n%u", (unsigned)node->index);
    if (v->producer) {
      text_add_string(out, " [label=\"");
      print_label(v, out);
      text_add_string(out, "\"]");
    }
    text_add_string(out, ";\n");
  }
}

// Nodes as boxes; the nodes of a region are in a frame.
static void print_boxes(const Graph *g, const Partition *partition, Text *out) {
  const bool has_frames = partition && g->nnodes > 1;
  for (size_t i = 0; i < g->nnodes && !has_frames; i++) print_box(g->nodes[i], out);
  for (size_t region = 0; region < g->nnodes && has_frames; region++) {
    if (partition->first[region] == NO_NODE) continue;
    text_format(out, "  subgraph cluster_%zu {\n", region);
    for (uint32_t i = partition->first[region]; i != NO_NODE; i = partition->next[i]) print_box(g->nodes[i], out);
    text_add_string(out, "  }\n");
  }
}

void dot_print(const Graph *g, const Partition *partition, Text *out) {
  text_add_string(out, "digraph \"");
  text_add_user_string(out, SINK_DOT, g->name);
  text_add_string(out, "\" {\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\"];\n");
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (v->is_input) print_value(v, "v", "shape=ellipse", out);
    else if (v->constant && (v->uses || v->is_output)) print_value(v, "v", "shape=ellipse, style=dashed", out);
  }
  print_boxes(g, partition, out);
  for (size_t i = 0; i < g->nnodes; i++) print_arrows(g->nodes[i], out);
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    print_value(v, "o", "shape=ellipse, style=bold", out);
    print_origin(v, out);
    text_format(out, " -> o%u;\n", (unsigned)v->index);
  }
  text_add_string(out, "}\n");
}
