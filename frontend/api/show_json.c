// Prints JSON, one array item a line so that people can read it too.
#include "frontend/api/show_json.h"

#include "ir/operators/operator.h"
#include "passes/memory/map.h"

#include <string.h>

static void print_key(Text *out, const char *key) {
  text_format(out, ", \"%s\": ", key);
}

static void print_string(Text *out, const char *key, const char *value) {
  print_key(out, key);
  text_add_user_string(out, SINK_JSON, value);
}

// Prints the i-th item of a list of indices; -1 becomes null.
static void print_index(Text *out, size_t i, int64_t index) {
  if (i) text_add_string(out, ", ");
  if (index < 0) text_add_string(out, "null");
  else text_format(out, "%lld", (long long)index);
}

// Graphs

// `inputs`, by value: 0 no input, 1 an input, 2 a state.
static const char *value_kind(const Value *v, const unsigned char *inputs) {
  return inputs[v->index] == 2 ? "state" : inputs[v->index] ? "input" : v->constant ? "constant" : "result";
}

static void print_shape(const Shape *shape, Text *out) {
  print_key(out, "shape");
  if (shape->rank < 0) text_add_string(out, "null");
  for (int i = 0; i < shape->rank; i++) {
    const Extent e = shape->extent[i];
    text_add_string(out, i ? ", " : "[");
    if (e.dim) text_add_user_string(out, SINK_JSON, e.dim->name);
    else if (e.value < 0) text_add_string(out, "null");
    else text_format(out, "%lld", (long long)e.value);
  }
  if (shape->rank >= 0) text_add_string(out, shape->rank ? "]" : "[]");
}

static void print_value(const Value *v, const unsigned char *inputs, Text *out) {
  const int64_t nelems = shape_nelems(&v->shape);
  text_add_string(out, "{\"name\": ");
  text_add_user_string(out, SINK_JSON, v->name);
  print_string(out, "kind", value_kind(v, inputs));
  print_string(out, "type", type_name(v->type));
  print_shape(&v->shape, out);
  if (nelems >= 0)
    text_format(out, ", \"bytes\": %llu", (unsigned long long)type_array_nbytes(v->type, (size_t)nelems));
  if (v->is_output) text_add_string(out, ", \"output\": true");
  text_add_string(out, "}");
}

static void print_operands(const char *key, Value *const *values, uint32_t count, Text *out) {
  print_key(out, key);
  text_add_string(out, "[");
  for (uint32_t i = 0; i < count; i++) print_index(out, i, values[i] ? (int64_t)values[i]->index : -1);
  text_add_string(out, "]");
}

static void print_node(const Node *node, Text *out) {
  const Position *places = node->norigins ? node->origins : &node->position;
  const uint32_t nplaces = node->norigins ? node->norigins : 1;
  Text name;
  text_init(&name, out->allocator);
  operator_print_name(node->op, node->signature, &name);
  text_add_string(out, "{\"op\": ");
  text_add_user_string(out, SINK_JSON, text_string(&name));
  out->out_of_memory |= name.out_of_memory;
  text_deinit(&name);
  if (node->label) print_string(out, "label", node->label);
  print_key(out, "lines");
  text_add_string(out, "[");
  for (uint32_t i = 0; i < nplaces && places[i].line; i++) print_index(out, i, places[i].line);
  text_add_string(out, "]");
  print_operands("inputs", node->inputs, node->ninputs, out);
  print_operands("outputs", node->outputs, node->noutputs, out);
  text_add_string(out, "}");
}

static void begin_rows(Text *out, const char *key) {
  text_format(out, ",\n\"%s\": [", key);
}

static void begin_row(Text *out, size_t i) {
  text_add_string(out, i ? ",\n  " : "\n  ");
}

// Prints the object except for its end.
static bool print_graph(const Graph *g, Text *out) {
  unsigned char *inputs = allocator_alloc(out->allocator, g->nvalues + 1);
  if (!inputs) return false;
  memset(inputs, 0, g->nvalues + 1);
  for (size_t i = 0; i < g->ninputs; i++) inputs[g->inputs[i]->index] = 1;
  for (size_t i = 0; i < g->nstates; i++) inputs[g->inputs[g->states[i].input]->index] = 2;
  text_add_string(out, "{\"name\": ");
  text_add_user_string(out, SINK_JSON, g->name);
  begin_rows(out, "values");
  for (size_t i = 0; i < g->nvalues; i++) {
    begin_row(out, i);
    print_value(g->values[i], inputs, out);
  }
  text_add_string(out, "]");
  begin_rows(out, "nodes");
  for (size_t i = 0; i < g->nnodes; i++) {
    begin_row(out, i);
    print_node(g->nodes[i], out);
  }
  text_add_string(out, "]");
  allocator_free(out->allocator, inputs);
  return true;
}

bool json_print_graph(const Graph *g, Text *out) {
  const bool ok = print_graph(g, out);
  text_add_string(out, "}\n");
  return ok && !out->out_of_memory;
}

// Programs

static void print_accesses(const Kernel *k, bool is_stored, Text *out) {
  print_key(out, is_stored ? "writes" : "reads");
  text_add_string(out, "[");
  size_t count = 0;
  for (AccessId i = 0; i < k->naccesses; i++)
    if (k->accesses[i].value && kernel_stores(k, i) == is_stored && !access_reads_again(k, i))
      print_index(out, count++, k->accesses[i].value->index);
  text_add_string(out, "]");
}

static bool print_kernel(const Program *p, size_t index, Arena *scratch, Text *out) {
  const Kernel *k = p->schedules[index]->kernel;
  const ProgramSliceGroup *slice_group = program_slice_group(p, index);
  const Traffic traffic = kernel_tensor_nbytes(k);
  double operations;
  if (!kernel_count_operations(k, scratch, &operations)) return false;
  Text name;
  text_init(&name, out->allocator);
  kernel_print_nodes(k, &name);
  text_add_string(out, "{\"name\": ");
  text_add_user_string(out, SINK_JSON, text_string(&name));
  out->out_of_memory |= name.out_of_memory;
  text_deinit(&name);
  print_key(out, "nodes");
  text_add_string(out, "[");
  for (size_t i = 0; i < k->nnodes; i++) print_index(out, i, k->nodes[i]->index);
  text_add_string(out, "]");
  print_accesses(k, false, out);
  print_accesses(k, true, out);
  text_format(out, ", \"bytes_read\": %lld, \"bytes_written\": %lld, \"operations\": %.17g", (long long)traffic.read,
              (long long)traffic.written, operations);
  text_format(out, ", \"with\": %zu}", slice_group ? (size_t)slice_group->first : index);
  return true;
}

static void print_tenant(const Tenant *t, Text *out) {
  static const char *const kinds[NTENANT_KINDS] = {[TENANT_VALUE] = "value",
                                                   [TENANT_STAGED] = "staged",
                                                   [TENANT_TEMPORARIES] = "temporaries",
                                                   [TENANT_SLICES] = "slices"};
  text_format(out, "{\"kind\": \"%s\"", kinds[t->kind]);
  if (t->value) text_format(out, ", \"value\": %u", (unsigned)t->value->index);
  text_format(out, ", \"offset\": %zu, \"bytes\": %zu, \"first\": %u, \"last\": %u}", t->offset, t->nbytes, t->first,
              t->last);
}

static bool print_memory(const Program *p, Text *out) {
  MemoryMap m;
  const bool ok = memory_map_init(&m, p, NULL);
  if (ok) {
    text_format(out, ",\n\"memory\": {\"bytes\": %zu, \"bytes_without_reuse\": %zu, ", p->workspace_nbytes,
                p->unshared_nbytes);
    text_format(out, "\"parameter_bytes\": %zu, \"optimizer_bytes\": %zu,\n\"live\": [", m.parameter_nbytes,
                m.optimizer_nbytes);
    for (size_t i = 0; i < p->nkernels; i++) print_index(out, i, (int64_t)m.live[i]);
    text_add_string(out, "]");
    begin_rows(out, "tenants");
    for (size_t i = 0; i < m.count; i++) {
      begin_row(out, i);
      print_tenant(&m.tenants[i], out);
    }
    text_add_string(out, "]}");
  }
  memory_map_deinit(&m);
  return ok;
}

bool json_print_program(const Program *p, Text *out) {
  Arena scratch;
  arena_init(&scratch, out->allocator);
  bool ok = print_graph(p->graph, out);
  begin_rows(out, "kernels");
  for (size_t i = 0; ok && i < p->nkernels; i++) {
    begin_row(out, i);
    ok = print_kernel(p, i, &scratch, out);
  }
  text_add_string(out, "]");
  ok = ok && print_memory(p, out);
  text_add_string(out, "}\n");
  arena_deinit(&scratch);
  return ok && !out->out_of_memory;
}
