// One address space has the workspace first, then each value that is not in it. Iterations are walked one after the
// other, element by element, which is the strictest order: a store may spoil the very next load.
#include "passes/memory/verify.h"

#include "ir/kernel/overwrite.h"
#include "ir/kernel/uses.h"
#include "ir/support/escape.h"

#include <string.h>

typedef uint64_t Stamp; // the loop's number above, the block's below; 0: never
#define MANY UINT32_MAX // blocks

typedef struct Byte {
  uint32_t owner; // value->index + 1, or above those a temporary's; 0: nobody
  Stamp written, read;
} Byte;

typedef struct Walk {
  const Program *p;
  const Kernel *k;
  const Loop *loop;
  Text *why;
  Byte *bytes;
  size_t nbytes;
  size_t *place; // by value->index: its first byte
  bool *is_needed;
  int64_t index[MAX_AXES]; // where the walk is
  uint32_t loops;          // walked so far, this one among them
  uint32_t block;          // that the place is in
  uint32_t sharing;        // that, or 0 of a loop whose blocks run one after the other
  int64_t nsteps;          // that may still be walked
} Walk;

static bool say(const Walk *w, const char *name, const char *what) {
  text_add_user_string(w->why, SINK_TERMINAL, name);
  text_format(w->why, " %s\n", what);
  return false;
}

static bool wrong(const Walk *w, const char *name, const char *what) {
  kernel_print_nodes(w->k, w->why);
  text_format(w->why, ", loop %zu, at", (size_t)(w->loop - w->k->loops));
  for (int i = 0; i < w->loop->nouter + w->loop->ninner; i++)
    text_format(w->why, " %s %lld", w->k->axes[w->loop->order[i]].name, (long long)w->index[w->loop->order[i]]);
  text_add_string(w->why, ": ");
  return say(w, name, what);
}

static Stamp stamp(const Walk *w) {
  return (Stamp)w->loops << 32 | w->sharing;
}

static bool is_of_other_block(const Walk *w, Stamp s) {
  return s >> 32 == w->loops && (uint32_t)s != w->sharing;
}

// Places

static const char *name_of(const Walk *w, const Access *a) {
  return a->value ? a->value->name : w->k->temporaries[a->temporary].name;
}

static uint32_t owner_of(const Walk *w, const Access *a) {
  return a->value ? a->value->index + 1 : (uint32_t)w->p->graph->nvalues + 1 + a->temporary;
}

static size_t first_byte(const Walk *w, const Access *a) {
  return a->value ? w->place[a->value->index] : w->k->temporaries[a->temporary].offset;
}

// The element of an access at the walk's place; of partial sums, `part` parts further. Masks: in bytes.
static int64_t element_at(const Walk *w, const Access *a, int64_t part) {
  int64_t element = a->offset;
  for (int axis = 0; axis < w->k->naxes; axis++) {
    int64_t stride = a->stride[axis];
    element += access_is_mask(a) && stride == 1 ? w->index[axis] / 8 : w->index[axis] * stride;
  }
  const Temporary *t = a->value ? NULL : &w->k->temporaries[a->temporary];
  if (t && t->reduction) element += part * (t->nelems / loop_nblocks(w->k, &w->k->loops[t->loop]));
  return element;
}

static void find_bytes(const Walk *w, const Access *a, int64_t element, size_t *from, size_t *to) {
  const bool is_packed = type_is_packed(a->type);
  *from = first_byte(w, a) + (is_packed ? (size_t)element / 2 : (size_t)element * type_nbytes(a->type));
  *to = *from + (is_packed ? 1 : type_nbytes(a->type));
}

// Loads and stores

static bool load(Walk *w, const Access *a, int64_t part) {
  size_t from, to;
  find_bytes(w, a, element_at(w, a, part), &from, &to);
  for (size_t i = from; i < to; i++) {
    Byte *b = &w->bytes[i];
    if (i >= w->nbytes) return wrong(w, name_of(w, a), "is read outside of memory");
    if (b->owner != owner_of(w, a)) return wrong(w, name_of(w, a), "is read where it does not lie");
    if (is_of_other_block(w, b->written)) return wrong(w, name_of(w, a), "is read while another block writes it");
    b->read = b->read && b->read >> 32 == w->loops && b->read != stamp(w) ? (Stamp)w->loops << 32 | MANY : stamp(w);
  }
  w->nsteps--;
  return true;
}

// Partial sums are added to by their block alone; all else is stored once.
static bool store(Walk *w, const Access *a, bool is_partial) {
  size_t from, to;
  find_bytes(w, a, element_at(w, a, w->block), &from, &to);
  const bool is_shared_byte = type_is_packed(a->type) || access_is_mask(a);
  for (size_t i = from; i < to; i++) {
    Byte *b = &w->bytes[i];
    if (i >= w->nbytes) return wrong(w, name_of(w, a), "is stored outside of memory");
    if (b->owner == owner_of(w, a) && !is_partial && !is_shared_byte)
      return wrong(w, name_of(w, a), "is stored a second time");
    if (is_of_other_block(w, b->written) || is_of_other_block(w, b->read))
      return wrong(w, name_of(w, a), "is stored where another block reads or writes");
    b->owner = owner_of(w, a);
    b->written = stamp(w);
  }
  w->nsteps--;
  return true;
}

// A combined sum reads what each block left that has its kept axes' indices.
static bool load_parts(Walk *w, const Expr *e) {
  const Loop *made = &w->k->loops[e->loop];
  int64_t kept = 0;
  for (int i = 0; i < made->nfree; i++) kept = kept * w->k->axes[made->order[i]].extent + w->index[made->order[i]];
  const int64_t nchunks = loop_nchunks(w->k, made);
  for (int64_t i = 0; i < nchunks; i++)
    if (!load(w, &w->k->accesses[e->access], kept * nchunks + i)) return false;
  return true;
}

static bool is_own_memory(const Walk *w, const Access *a) {
  return !a->value && w->k->temporaries[a->temporary].is_own;
}

// What is needed at the walk's place. Places of loads that are computed are not known.
static bool load_needed(Walk *w) {
  for (ExprId id = 1; id < w->k->nexprs; id++) {
    const Expr *e = &w->k->exprs[id];
    if (!w->is_needed[id] || (e->op != EXPR_LOAD && e->op != EXPR_COMBINE)) continue;
    const Access *a = &w->k->accesses[e->access];
    if (e->op == EXPR_COMBINE ? !load_parts(w, e) : !e->args[0] && !is_own_memory(w, a) && !load(w, a, 0)) return false;
  }
  return true;
}

// Iterations

// Moves on to the next index of these axes, the last the fastest. False, and all are 0, behind the last one.
static bool step(Walk *w, const int *axes, int count) {
  for (int i = count - 1; i >= 0; i--) {
    if (++w->index[axes[i]] < w->k->axes[axes[i]].extent) return true;
    w->index[axes[i]] = 0;
  }
  return false;
}

static bool is_last(const Walk *w, int axis) {
  return w->index[axis] == w->k->axes[axis].extent - 1;
}

static bool are_last(const Walk *w, AxisSet axes) {
  for (int axis = 0; axis < w->k->naxes; axis++)
    if (axes >> axis & 1 && !is_last(w, axis)) return false;
  return true;
}

// Stores along the inner axes at each index, those along some when the others are done, others behind.
static bool store_roots(Walk *w, int sweep, bool is_behind) {
  const Loop *loop = w->loop;
  const AxisSet inner = loop_inner_axes(loop);
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    const AxisSet own = root_axes(w->k, root) & inner;
    if (root->sweep != sweep || root->kind == ROOT_REDUCE_INNER || !own != is_behind) continue;
    if (own && !are_last(w, inner & ~own)) continue;
    const Access *a = &w->k->accesses[root->access];
    if (!is_own_memory(w, a) && !store(w, a, root->kind == ROOT_REDUCE_OUTER)) return false;
  }
  return true;
}

static void find_block(Walk *w) {
  const Loop *loop = w->loop;
  int64_t kept = 0, other = 0;
  for (int i = 0; i < loop->nfree; i++) kept = kept * w->k->axes[loop->order[i]].extent + w->index[loop->order[i]];
  for (int i = loop->nfree; i < loop->nouter; i++)
    other = other * w->k->axes[loop->order[i]].extent + w->index[loop->order[i]];
  other = (loop->tile ? w->index[loop->order[0]] : other) / loop_block_length(w->k, loop);
  w->block = (uint32_t)(kept * loop_nchunks(w->k, loop) + other);
  w->sharing = loop->is_serial ? 0 : w->block;
}

static bool is_end_of_tile(const Walk *w) {
  const int axis = w->loop->order[0];
  return is_last(w, axis) || (w->index[axis] + 1) % loop_block_length(w->k, w->loop) == 0;
}

// The slowest first; vectors whose sums are over the middle axes go around these.
static void find_inner_order(const Loop *loop, int *order) {
  for (int i = 0; i < loop->ninner; i++) order[(i + loop->sums_middle) % loop->ninner] = loop->order[loop->nouter + i];
}

// Where a loop is cut into tiles, each of them is all that a step sees.
static bool walk_sweep(Walk *w, int sweep) {
  const Loop *loop = w->loop;
  int inner[MAX_AXES] = {0};
  find_inner_order(loop, inner);
  memset(w->is_needed, 0, w->k->nexprs * sizeof *w->is_needed);
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].sweep == sweep) loop_mark_root(w->k, loop, &loop->roots[i], w->is_needed);
  bool is_empty = axes_nelems(w->k, loop_inner_axes(loop)) == 0, goes_on = !is_empty;
  while (goes_on && w->nsteps > 0) {
    if (loop->tile) find_block(w);
    if (!load_needed(w) || !store_roots(w, sweep, false)) return false;
    if (loop->tile && is_end_of_tile(w) && !store_roots(w, sweep, true)) return false;
    goes_on = step(w, inner, loop->ninner);
  }
  return loop->tile || store_roots(w, sweep, true);
}

static bool walk_loop(Walk *w) {
  memset(w->index, 0, sizeof w->index);
  w->loops++;
  if (loop_is_idle(w->k, w->loop)) return true;
  do {
    find_block(w);
    for (int sweep = 0; sweep < w->loop->nsweeps; sweep++)
      if (!walk_sweep(w, sweep)) return false;
  } while (w->nsteps > 0 && step(w, w->loop->order, w->loop->nouter));
  return true;
}

// Another kernel's temporaries are not this one's.
static void forget_temporaries(Walk *w) {
  for (size_t i = 0; i < w->nbytes; i++)
    if (w->bytes[i].owner > w->p->graph->nvalues) w->bytes[i].owner = 0;
}

static bool walk_program(Walk *w, Arena *scratch) {
  for (size_t i = 0; i < w->p->nkernels; i++) {
    w->k = w->p->kernels[i];
    w->is_needed = ARENA_ARRAY(scratch, bool, w->k->nexprs);
    w->why->out_of_memory |= !w->is_needed;
    forget_temporaries(w);
    for (size_t l = 0; w->is_needed && l < w->k->nloops; l++) {
      w->loop = &w->k->loops[l];
      if (!walk_loop(w)) return false;
    }
  }
  return true;
}

static bool verify_outputs(const Walk *w) {
  for (size_t i = 0; i < w->p->graph->noutputs; i++) {
    const Value *v = w->p->graph->outputs[i];
    const size_t nbytes = type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
    for (size_t b = 0; b < nbytes; b++)
      if (w->bytes[w->place[v->index] + b].owner != v->index + 1) return say(w, v->name, "is not stored whole");
  }
  return true;
}

// False: a value does not lie inside the workspace.
static bool find_places(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    const size_t nbytes = type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
    w->place[i] = w->p->is_in_workspace[i] ? w->p->value_offset[i] : w->nbytes;
    if (!w->p->is_in_workspace[i]) w->nbytes += nbytes;
    else if (w->place[i] + nbytes > w->p->workspace_nbytes) return say(w, v->name, "lies outside of the workspace");
  }
  return true;
}

// What the caller gives is there.
static void own_operands(Walk *w) {
  const Graph *g = w->p->graph;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    const size_t nbytes = v->producer ? 0 : type_array_nbytes(v->type, (size_t)shape_nelems(&v->shape));
    for (size_t b = 0; b < nbytes; b++) w->bytes[w->place[i] + b].owner = (uint32_t)i + 1;
  }
}

bool memory_verify(const Program *p, int64_t *nsteps, Text *why) {
  Arena scratch;
  if (p->graph->ndims) return true;
  arena_init(&scratch, p->arena.allocator);
  Walk w = {.p = p, .why = why, .nsteps = *nsteps, .nbytes = p->workspace_nbytes};
  w.place = ARENA_ARRAY(&scratch, size_t, p->graph->nvalues + 1);
  bool is_right = w.place && find_places(&w);
  if (is_right && w.nbytes <= (size_t)*nsteps) {
    w.bytes = ARENA_ARRAY(&scratch, Byte, w.nbytes + 1);
    if (w.bytes) own_operands(&w);
    is_right = w.bytes && walk_program(&w, &scratch) && (w.nsteps <= 0 || verify_outputs(&w));
  }
  why->out_of_memory |= !w.place || (w.nbytes <= (size_t)*nsteps && !w.bytes);
  *nsteps = w.nsteps;
  arena_deinit(&scratch);
  return is_right && !why->out_of_memory;
}
