// Runs a graph node by node. Each value is an f64 array, allocated when it is computed (inputs and constants: when they
// are first used) and freed after its last use.
#include "backends/interpreter/interpreter.h"

#include "backends/interpreter/choices.h"
#include "backends/interpreter/evaluation.h"
#include "ir/graph/leaves.h"

#include <assert.h>
#include <math.h>
#include <string.h>

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

int64_t evaluation_integer(const Evaluation *e, uint32_t slot, int64_t i) {
  int64_t number;
  if (!(TYPES_64_BITS & TYPE_BIT(e->node->inputs[slot]->type))) return (int64_t)e->inputs[slot][i];
  memcpy(&number, &e->inputs[slot][i], sizeof number);
  return number;
}

void evaluation_put_integer(const Evaluation *e, int64_t i, int64_t number) {
  double *to = &e->outputs[0][i];
  if (TYPES_64_BITS & TYPE_BIT(e->node->outputs[0]->type)) memcpy(to, &number, sizeof number);
  else *to = (double)number;
}

double evaluation_element(const Evaluation *e, double number) {
  const Type type = e->node->outputs[0]->type;
  if (TYPES_64_BITS & TYPE_BIT(type)) type_store(type, &number, 0, number);
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
  double *noisy;       // with options->noise: the elements with noise; never NULL in a value that is not sharp
  int64_t nleaves;     // more than 1: `elements` holds the value of each leaf of the batch, one after the other
  bool has_nan;        // set only with nan_check
  bool is_sharp;       // set only with noise: see choices.h
} Cell;

typedef struct Run {
  const InterpreterOptions *options;
  Diagnostics *diagnostics;
  Cell *cells;     // parallel to the graph's values
  int64_t nleaves; // the graph's
  Noise *noise;    // NULL: none
} Run;

static size_t value_nelems(const Value *v) {
  return (size_t)shape_nelems(&v->shape);
}

static size_t cell_nelems(const Cell *cell, const Value *v) {
  return value_nelems(v) * (size_t)cell->nleaves;
}

static void round_value(const Value *v, double *elements, size_t nelems) {
  for (size_t i = 0; i < nelems; i++) elements[i] = type_round(v->type, elements[i]);
}

static bool evaluate(const Evaluation *what, const Allocator *allocator) {
  Arena scratch;
  Evaluation e = *what;
  const Node *node = e.node;
  arena_init(&scratch, allocator);
  e.scratch = &scratch;
  bool done = interpreter_functions[node->op->id](&e);
  arena_deinit(&scratch);
  for (uint32_t k = 0; done && k < node->noutputs; k++)
    if (e.outputs[k] && !((TYPES_FLOAT | TYPES_64_BITS) & TYPE_BIT(node->outputs[k]->type)))
      round_value(node->outputs[k], e.outputs[k], value_nelems(node->outputs[k]));
  return done;
}

bool interpret_node(const Node *node, const double *const *inputs, double *const *outputs, const Allocator *allocator) {
  return evaluate(&(Evaluation){.node = node, .inputs = inputs, .outputs = outputs}, allocator);
}

static double *new_elements(const Run *run, const Cell *cell, const Value *v) {
  double *elements = allocator_alloc(run->options->allocator, cell_nelems(cell, v) * sizeof(double));
  if (!elements) error_out_of_memory(run->diagnostics);
  return elements;
}

static bool cell_alloc(Run *run, Cell *cell, const Value *v) {
  cell->elements = new_elements(run, cell, v);
  return cell->elements;
}

static void cell_release(Run *run, Cell *cell) {
  allocator_free(run->options->allocator, cell->elements);
  allocator_free(run->options->allocator, cell->noisy);
  cell->elements = cell->noisy = NULL;
}

// The index of the first NaN, or of the first element that is not finite; nelems if there is none.
static size_t find_nan(const Run *run, const double *elements, size_t nelems) {
  size_t i = 0;
  while (i < nelems && !(run->options->finite_check ? !isfinite(elements[i]) : isnan(elements[i]))) i++;
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
  cell->is_sharp = true;
  if (run->options->nan_check && !(TYPES_64_BITS & TYPE_BIT(v->type)))
    cell->has_nan = find_nan(run, cell->elements, nelems) < nelems;
  return cell;
}

static void cell_used(Run *run, Cell *cell) {
  if (--cell->nuses == 0) cell_release(run, cell);
}

// Adds the element's name, such as 'logits'[3, 0] of leaf 1.
static void add_place(const Run *run, const Value *v, size_t i, Text *out) {
  size_t below = value_nelems(v);
  const size_t leaf = i / below;
  text_format(out, "'%s'[", v->name);
  for (int axis = 0; axis < v->shape.rank; axis++) {
    size_t extent = (size_t)extent_value(v->shape.extent[axis]);
    below /= extent;
    text_format(out, axis ? ", %zu" : "%zu", i / below % extent);
  }
  text_add_string(out, "]");
  if (run->cells[v->index].nleaves > 1) text_format(out, " of leaf %zu", leaf);
}

static int64_t integer_in(const Cell *cell, Type type, size_t i) {
  int64_t number;
  if (type != TYPE_S64) return (int64_t)cell->elements[i];
  memcpy(&number, &cell->elements[i], sizeof number);
  return number;
}

// Reports an index or a label that is out of range, if the node has one: its results are NaN.
static void add_wrong_index(const Run *run, const Node *node, Text *out) {
  const bool may_ignore = operator_has_attribute(node->op, "ignore_index");
  const AttributeValue *ignored = may_ignore ? node_attribute(node, "ignore_index") : NULL;
  for (uint32_t k = 0; k < node->op->ninputs; k++) {
    const Value *v = node->op->inputs[k].is_index ? node->inputs[k] : NULL;
    if (!v) continue;
    const Cell *cell = &run->cells[v->index];
    const int64_t extent = node_indexed_extent(node, k), least = node->op->inputs[k].counts_from_end ? -extent : 0;
    for (size_t i = 0; i < cell_nelems(cell, v); i++) {
      const int64_t index = integer_in(cell, v->type, i);
      if ((index >= least && index < extent) || (ignored && ignored->is_set && index == ignored->s64)) continue;
      text_add_string(out, ", as ");
      add_place(run, v, i, out);
      text_format(out, " is %lld, expected %lld to %lld", (long long)index, (long long)least, (long long)extent - 1);
      return;
    }
  }
}

static bool report_nan(Run *run, const Node *node, const Value *output, size_t i) {
  Text text;
  text_init(&text, run->options->allocator);
  operator_print_name(node->op, node->signature, &text);
  if (isinf(run->cells[output->index].elements[i]))
    text_add_string(&text, " computes an infinity from finite inputs: ");
  else text_add_string(&text, " computes NaN from inputs without NaN: ");
  add_place(run, output, i, &text);
  add_wrong_index(run, node, &text);
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
    size_t nelems = cell_nelems(cell, v), i = find_nan(run, cell->elements, nelems);
    cell->has_nan = i < nelems;
    if (cell->has_nan && !had_nan) return report_nan(run, node, v, i);
  }
  return true;
}

// Evaluates the node once, or for each leaf of the batch that has results of its own.
static bool evaluate_leaves(Run *run, const Node *node, const double *const *inputs, double *const *outputs,
                            Noise *noise) {
  const double *own[MAX_OPERANDS + MAX_VARIADIC];
  double *results[MAX_OPERANDS + MAX_VARIADIC];
  int64_t nleaves = 1;
  bool ok = true;
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (outputs[k]) nleaves = run->cells[node->outputs[k]->index].nleaves;
  for (int64_t leaf = 0; ok && leaf < nleaves; leaf++) {
    for (uint32_t k = 0; k < node->ninputs; k++) {
      const bool has_own = leaf && inputs[k] && run->cells[node->inputs[k]->index].nleaves > 1;
      own[k] = has_own ? inputs[k] + (size_t)leaf * value_nelems(node->inputs[k]) : inputs[k];
    }
    for (uint32_t k = 0; k < node->noutputs; k++)
      results[k] = outputs[k] ? outputs[k] + (size_t)leaf * value_nelems(node->outputs[k]) : NULL;
    const Evaluation e = {
        .node = node, .inputs = own, .outputs = results, .noise = noise, .leaf = leaf, .nleaves = run->nleaves};
    ok = evaluate(&e, run->options->allocator);
  }
  return ok;
}

// Evaluation with noise. Each value has two arrays: `elements` without noise, and `noisy`. Both make the same choices:
// those without noise, or with options->flips those with noise.

// The array with noise. What reads a sharp value of a narrow type computes in f32 at least. NULL: out of memory.
static const double *noisy_elements(Run *run, const Value *v) {
  Cell *cell = &run->cells[v->index];
  const bool is_narrow = type_tolerance(v->type) > type_tolerance(TYPE_F32);
  const Type type = cell->is_sharp && is_narrow ? TYPE_F32 : v->type;
  const size_t nelems = cell_nelems(cell, v);
  if (!type_is_float(v->type)) return cell->elements;
  if (cell->noisy) return cell->noisy;
  cell->noisy = new_elements(run, cell, v);
  if (!cell->noisy) return NULL;
  memcpy(cell->noisy, cell->elements, nelems * sizeof *cell->noisy);
  noise_add(run->noise, type, cell->elements, cell->noisy, nelems);
  return cell->noisy;
}

// Noise on results alone: equal results stay equal.
static bool make_noisy(Run *run, const Node *node) {
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k] && !noisy_elements(run, node->outputs[k])) return false;
  return true;
}

static bool operands_are_sharp(const Run *run, const Node *node) {
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k] && type_is_float(node->inputs[k]->type) && !run->cells[node->inputs[k]->index].is_sharp)
      return false;
  return true;
}

// Marks the outputs that are sharp, from sharp operands or as choices; whether all are.
static bool mark_sharp(Run *run, const Node *node, const double *const *inputs, bool chooses) {
  size_t nelems[MAX_OPERANDS + MAX_VARIADIC] = {0};
  bool all = true;
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) nelems[k] = cell_nelems(&run->cells[node->inputs[k]->index], node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    if (!v) continue;
    Cell *cell = &run->cells[v->index];
    const Results results = {inputs, nelems, cell->elements, k, cell_nelems(cell, v)};
    cell->is_sharp = chooses || results_are_exact(node, &results);
    all &= cell->is_sharp;
  }
  return all;
}

// Computes the outputs' arrays with noise.
static bool evaluate_noisily(Run *run, const Node *node, const double *const *inputs) {
  double *noisy[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    if (!v) continue;
    Cell *cell = &run->cells[v->index];
    noisy[k] = cell->noisy = new_elements(run, cell, v);
    if (!noisy[k]) return false;
  }
  if (!evaluate_leaves(run, node, inputs, noisy, run->noise)) return error_out_of_memory(run->diagnostics);
  for (uint32_t k = 0; k < node->noutputs; k++) {
    const Value *v = node->outputs[k];
    const Cell *cell = v ? &run->cells[v->index] : NULL;
    if (v) noise_add(run->noise, v->type, cell->elements, noisy[k], cell_nelems(cell, v));
  }
  return true;
}

static bool run_noisy_node(Run *run, const Node *node, const double *const *elements, double *const *outputs) {
  const bool is_exact = node_may_be_exact(node) && operands_are_sharp(run, node);
  const bool flips = run->options->flips, chooses = node_chooses(node);
  const double *exact[MAX_OPERANDS + MAX_VARIADIC] = {NULL}, *noisy[MAX_OPERANDS + MAX_VARIADIC] = {NULL};
  if (is_exact) {
    if (!evaluate_leaves(run, node, elements, outputs, NULL)) return error_out_of_memory(run->diagnostics);
    if (mark_sharp(run, node, elements, chooses)) return true;
    if (node_rounds_once(node)) return make_noisy(run, node);
  }
  for (uint32_t k = 0; k < node->ninputs; k++) {
    if (!node->inputs[k]) continue;
    noisy[k] = noisy_elements(run, node->inputs[k]);
    if (!noisy[k]) return false;
    exact[k] = elements[k];
    if (!operand_decides(node, k)) continue;
    if (flips) exact[k] = noisy[k];
    else noisy[k] = elements[k];
  }
  if (!is_exact && !evaluate_leaves(run, node, exact, outputs, NULL)) return error_out_of_memory(run->diagnostics);
  if (chooses) return mark_sharp(run, node, exact, true);
  return evaluate_noisily(run, node, noisy);
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
  const Type *types = run->options->types;
  if (run->noise) noise_begin_node(run->noise, node, types ? types[node->index] : TYPE_NONE);
  if (run->options->noise) {
    if (!run_noisy_node(run, node, inputs, outputs)) return false;
  } else if (!evaluate_leaves(run, node, inputs, outputs, run->noise)) {
    return error_out_of_memory(run->diagnostics);
  }
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k] && run->options->rounds_values && type_is_float(node->outputs[k]->type))
      round_value(node->outputs[k], outputs[k], cell_nelems(&run->cells[node->outputs[k]->index], node->outputs[k]));
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
  const bool is_noisy = run->options->noise && !run->options->flips && !cell->is_sharp;
  const double *elements = is_noisy ? cell->noisy : cell->elements;
  for (size_t i = 0; i < nelems; i++) type_store_wide(v->type, output->data, tensor_at(output, i), &elements[i]);
  cell_used(run, cell);
  return true;
}

static bool count_leaves(const Graph *g, Cell *cells, Arena *arena) {
  bool *is_own = ARENA_ARRAY(arena, bool, g->nvalues + 1);
  if (is_own) graph_find_own_values(g, is_own);
  for (size_t i = 0; is_own && i < g->nvalues; i++) cells[i].nleaves = is_own[i] ? g->nleaves : 1;
  return is_own;
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
  if (options->flips) { // the two runs of a pair are opposite
    noise.seed = (options->noise + 1) / 2;
    noise.side = options->noise % 2 ? 1 : -1;
  }
  const bool has_noise = options->noise || options->rounds_values;
  Run run = {options, d, ARENA_ARRAY(&arena, Cell, g->nvalues + 1), g->nleaves, has_noise ? &noise : NULL};
  bool done = false;
  if (run.cells && count_leaves(g, run.cells, &arena)) {
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
