// Runs a graph node by node. Each value is an f64 array, allocated when it is computed (inputs and constants: when they
// are first used) and freed after its last use.
#include "backends/interpreter/interpreter.h"

#include "backends/interpreter/evaluation.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static bool (*const functions[OP_COUNT])(const Evaluation *e) = {
#define OP(name, ...) [OP_##name] = interpret_##name,
#include "ir/operators/operators.def"
#undef OP
};

// The index of the operand with this name; count if there is none.
static uint32_t operand_slot(const Operand *operands, uint32_t count, const char *name) {
  uint32_t slot = 0;
  while (slot < count && strcmp(operands[slot].name, name) != 0) slot++;
  return slot;
}

const double *evaluation_input(const Evaluation *e, const char *name) {
  const Operator *op = e->node->op;
  uint32_t slot = operand_slot(op->inputs, op->ninputs, name);
  return slot < op->ninputs ? e->inputs[slot] : NULL;
}

int64_t evaluation_s64(const Evaluation *e, uint32_t slot) {
  int64_t number;
  memcpy(&number, e->inputs[slot], sizeof number);
  return number;
}

double *evaluation_output(const Evaluation *e, const char *name) {
  const Operator *op = e->node->op;
  uint32_t slot = operand_slot(op->outputs, op->noutputs, name);
  return slot < op->noutputs ? e->outputs[slot] : NULL;
}

typedef struct Cell {  // a value at run time
  double *elements;    // NULL: not allocated yet, or freed
  const Tensor *given; // the caller's tensor for a graph input; NULL: the value is not an input
  size_t nuses;        // remaining
  bool has_nan;        // set only with nan_check
} Cell;

typedef struct Run {
  const InterpreterOptions *options;
  Diagnostics *diagnostics;
  Cell *cells;  // parallel to the graph's values
  Noise *noise; // NULL: none
} Run;

static size_t value_nelems(const Value *v) {
  return (size_t)shape_nelems(&v->shape);
}

static void round_value(const Value *v, double *elements) {
  const size_t nelems = value_nelems(v);
  for (size_t i = 0; i < nelems; i++) elements[i] = type_round(v->type, elements[i]);
}

static bool evaluate(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator,
                     Noise *noise) {
  Arena scratch;
  arena_init(&scratch, allocator);
  bool done = functions[node->op->id](&(Evaluation){node, inputs, outputs, &scratch, noise});
  arena_deinit(&scratch);
  for (uint32_t k = 0; done && k < node->noutputs; k++)
    if (outputs[k] && !type_is_float(node->outputs[k]->type)) round_value(node->outputs[k], outputs[k]);
  return done;
}

bool interpret_node(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator) {
  return evaluate(node, inputs, outputs, allocator, NULL);
}

static void add_noise(const Run *run, const Value *v, double *elements) {
  if (!run->noise || !type_is_float(v->type)) return;
  const size_t nelems = value_nelems(v);
  for (size_t i = 0; i < nelems; i++) elements[i] = noise_element(run->noise, v->type, elements[i]);
}

static bool cell_alloc(Run *run, Cell *cell, const Value *v) {
  cell->elements = allocator_alloc(run->options->allocator, value_nelems(v) * sizeof(double));
  return cell->elements || error_out_of_memory(run->diagnostics);
}

static void cell_release(Run *run, Cell *cell) {
  allocator_free(run->options->allocator, cell->elements);
  cell->elements = NULL;
}

// The index of the first NaN; nelems if there is none.
static size_t find_nan(const double *elements, size_t nelems) {
  size_t i = 0;
  while (i < nelems && !isnan(elements[i])) i++;
  return i;
}

static size_t tensor_at(const Tensor *t, size_t i) {
  return (size_t)tensor_offset(t, (int64_t)i);
}

// The cell of a value that is about to be used; loads inputs and constants at their first use. NULL: out of memory.
static Cell *cell_of(Run *run, const Value *v) {
  Cell *cell = &run->cells[v->index];
  if (cell->elements) return cell;
  assert(v->constant || cell->given);
  if (!cell_alloc(run, cell, v)) return NULL;
  size_t nelems = value_nelems(v), step = v->constant && v->constant->is_splat ? 0 : 1;
  const void *data = v->constant ? v->constant->data : cell->given->data;
  for (size_t i = 0; i < nelems; i++)
    type_load_wide(v->type, data, v->constant ? i * step : tensor_at(cell->given, i), &cell->elements[i]);
  add_noise(run, v, cell->elements);
  if (run->options->nan_check && v->type != TYPE_S64) cell->has_nan = find_nan(cell->elements, nelems) < nelems;
  return cell;
}

static void cell_used(Run *run, Cell *cell) {
  if (--cell->nuses == 0) cell_release(run, cell);
}

static bool report_nan(Run *run, const Node *node, const Value *output, size_t i) {
  Text text;
  text_init(&text, run->options->allocator);
  operator_print_name(node->op, node->signature, &text);
  text_format(&text, " computes NaN from inputs without NaN: '%s'[", output->name);
  size_t below = value_nelems(output);
  for (int axis = 0; axis < output->shape.rank; axis++) {
    size_t extent = (size_t)extent_value(output->shape.extent[axis]);
    below /= extent;
    text_format(&text, axis ? ", %zu" : "%zu", i / below % extent);
  }
  text_add_string(&text, "]");
  if (text.out_of_memory) error_out_of_memory(run->diagnostics);
  else error_at(run->diagnostics, node->position, "%s", text_string(&text));
  text_deinit(&text);
  return false;
}

static bool check_nan(Run *run, const Node *node) {
  bool had_nan = false;
  for (uint32_t k = 0; k < node->ninputs; k++) had_nan |= node->inputs[k] && run->cells[node->inputs[k]->index].has_nan;
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    if (!v) continue;
    Cell *cell = &run->cells[v->index];
    size_t nelems = value_nelems(v), i = find_nan(cell->elements, nelems);
    cell->has_nan = i < nelems;
    if (cell->has_nan && !had_nan) return report_nan(run, node, v, i);
  }
  return true;
}

static bool run_node(Run *run, const Node *node) {
  const double *inputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  double *outputs[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  for (uint32_t k = 0; k < node->ninputs; k++) {
    if (!node->inputs[k]) continue;
    const Cell *cell = cell_of(run, node->inputs[k]);
    if (!cell) return false;
    inputs[k] = cell->elements;
  }
  for (uint32_t k = 0; k < node->noutputs; k++) {
    if (!node->outputs[k]) continue;
    Cell *cell = &run->cells[node->outputs[k]->index];
    if (!cell_alloc(run, cell, node->outputs[k])) return false;
    outputs[k] = cell->elements;
  }
  if (run->noise) noise_begin_node(run->noise, node);
  if (!evaluate(node, inputs, outputs, run->options->allocator, run->noise))
    return error_out_of_memory(run->diagnostics);
  for (uint32_t k = 0; k < node->noutputs; k++) {
    if (!outputs[k]) continue;
    add_noise(run, node->outputs[k], outputs[k]);
    if (run->options->rounds_values && type_is_float(node->outputs[k]->type)) round_value(node->outputs[k], outputs[k]);
  }
  if (run->options->nan_check && !check_nan(run, node)) return false;
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) cell_used(run, &run->cells[node->inputs[k]->index]);
  for (uint32_t k = 0; k < node->noutputs; k++) {
    if (!node->outputs[k]) continue;
    Cell *cell = &run->cells[node->outputs[k]->index];
    if (cell->nuses == 0) cell_release(run, cell);
  }
  return true;
}

static bool store_output(Run *run, const Value *v, Tensor *output) {
  Cell *cell = cell_of(run, v);
  if (!cell) return false;
  size_t nelems = value_nelems(v);
  for (size_t i = 0; i < nelems; i++) type_store_wide(v->type, output->data, tensor_at(output, i), &cell->elements[i]);
  cell_used(run, cell);
  return true;
}

static void count_uses(const Graph *g, Cell *cells) {
  for (size_t n = 0; n < g->nnodes; n++)
    for (uint32_t k = 0; k < g->nodes[n]->ninputs; k++)
      if (g->nodes[n]->inputs[k]) cells[g->nodes[n]->inputs[k]->index].nuses++;
  for (size_t i = 0; i < g->noutputs; i++) cells[g->outputs[i]->index].nuses++;
}

static bool run_graph(Run *run, const Graph *g, Tensor *outputs) {
  for (size_t n = 0; n < g->nnodes; n++) {
    if (!run_node(run, g->nodes[n])) return false;
    if (run->options->progress) run->options->progress(run->options->progress_context, n + 1, g->nnodes);
  }
  for (size_t i = 0; i < g->noutputs; i++)
    if (!store_output(run, g->outputs[i], &outputs[i])) return false;
  return true;
}

bool interpret(const Graph *g, const Tensor *inputs, Tensor *outputs, const InterpreterOptions *options,
               Diagnostics *d) {
  Arena arena;
  arena_init(&arena, options->allocator);
  Noise noise = {.seed = options->noise, .overflows = options->rounds_values};
  const bool has_noise = options->noise || options->rounds_values;
  Run run = {options, d, ARENA_ARRAY(&arena, Cell, g->nvalues + 1), has_noise ? &noise : NULL};
  bool done = false;
  if (run.cells) {
    for (size_t i = 0; i < g->ninputs; i++) run.cells[g->inputs[i]->index].given = &inputs[i];
    count_uses(g, run.cells);
    done = run_graph(&run, g, outputs);
    for (size_t i = 0; i < g->nvalues; i++) cell_release(&run, &run.cells[i]);
  } else {
    error_out_of_memory(d);
  }
  arena_deinit(&arena);
  return done;
}
