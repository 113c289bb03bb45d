// The memory that the interpreter will need: simulates the allocations and frees of interpreter.c.
#include "backends/interpreter/interpreter.h"
#include "ir/graph/leaves.h"
#include "ir/support/budget.h"

typedef struct Cell { // a value at run time
  bool is_live;
  size_t nuses; // remaining
  bool is_own;  // each leaf of the batch has one
} Cell;

typedef struct Footprint {
  Cell *cells; // parallel to the graph's values
  uint64_t nleaves;
  uint64_t now, most;
} Footprint;

static uint64_t value_nbytes(const Footprint *f, const Value *v) {
  const uint64_t nbytes = nbytes_multiply((uint64_t)shape_nelems(&v->shape), sizeof(double));
  return f->cells[v->index].is_own ? nbytes_multiply(nbytes, f->nleaves) : nbytes;
}

static void cell_make(Footprint *f, const Value *v) {
  Cell *cell = &f->cells[v->index];
  if (cell->is_live) return;
  cell->is_live = true;
  f->now = nbytes_add(f->now, value_nbytes(f, v));
  if (f->now > f->most) f->most = f->now;
}

static void cell_end(Footprint *f, const Value *v) {
  if (!f->cells[v->index].is_live || f->cells[v->index].nuses) return;
  f->cells[v->index].is_live = false;
  if (f->now != UINT64_MAX) f->now -= value_nbytes(f, v);
}

static void cell_used(Footprint *f, const Value *v) {
  f->cells[v->index].nuses--;
  cell_end(f, v);
}

static void run_node(Footprint *f, const Node *node) {
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) cell_make(f, node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) cell_make(f, node->outputs[k]);
  for (uint32_t k = 0; k < node->ninputs; k++)
    if (node->inputs[k]) cell_used(f, node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++)
    if (node->outputs[k]) cell_end(f, node->outputs[k]);
}

bool interpreter_nbytes(const Graph *g, const Allocator *allocator, uint64_t *nbytes) {
  Arena arena;
  arena_init(&arena, allocator);
  Footprint f = {.cells = ARENA_ARRAY(&arena, Cell, g->nvalues + 1), .nleaves = (uint64_t)g->nleaves};
  bool *is_own = ARENA_ARRAY(&arena, bool, g->nvalues + 1);
  const bool ok = f.cells && is_own;
  if (ok) graph_find_own_values(g, is_own);
  for (size_t i = 0; ok && i < g->nvalues; i++) f.cells[i].is_own = is_own[i];
  for (size_t n = 0; ok && n < g->nnodes; n++)
    for (uint32_t k = 0; k < g->nodes[n]->ninputs; k++)
      if (g->nodes[n]->inputs[k]) f.cells[g->nodes[n]->inputs[k]->index].nuses++;
  for (size_t i = 0; ok && i < g->noutputs; i++) f.cells[g->outputs[i]->index].nuses++;
  for (size_t n = 0; ok && n < g->nnodes; n++) run_node(&f, g->nodes[n]);
  for (size_t i = 0; ok && i < g->noutputs; i++) {
    cell_make(&f, g->outputs[i]);
    cell_used(&f, g->outputs[i]);
  }
  *nbytes = f.most;
  arena_deinit(&arena);
  return ok;
}
