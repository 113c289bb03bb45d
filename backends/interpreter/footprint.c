// The memory that the interpreter will need: simulates the allocations and frees of interpreter.c.
#include "backends/interpreter/interpreter.h"
#include "ir/support/budget.h"

typedef struct Cell { // a value at run time
  bool is_live;
  size_t nuses; // remaining
} Cell;

typedef struct Footprint {
  Cell *cells; // parallel to the graph's values
  uint64_t now, most;
} Footprint;

static uint64_t value_nbytes(const Value *v) {
  return nbytes_multiply((uint64_t)shape_nelems(&v->shape), sizeof(double));
}

static void cell_make(Footprint *f, const Value *v) {
  Cell *cell = &f->cells[v->index];
  if (cell->is_live) return;
  cell->is_live = true;
  f->now = nbytes_add(f->now, value_nbytes(v));
  if (f->now > f->most) f->most = f->now;
}

static void cell_end(Footprint *f, const Value *v) {
  if (!f->cells[v->index].is_live || f->cells[v->index].nuses) return;
  f->cells[v->index].is_live = false;
  if (f->now != UINT64_MAX) f->now -= value_nbytes(v);
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
  Footprint f = {.cells = ARENA_ARRAY(&arena, Cell, g->nvalues + 1)};
  const bool ok = f.cells != NULL;
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
