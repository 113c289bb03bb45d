// A unit of kernels runs on buffers of its own. Tensors that a kernel stores have hashes in memory, which are compared
// after the kernel; to later kernels they are tensors as any other, whose elements are hashes of their places.
#include "ir/loops/prove.h"

#include "ir/graph/open_dims.h"
#include "ir/kernel/reference.h"
#include "ir/loops/execute.h"
#include "ir/support/escape.h"

#include <math.h>

typedef struct Stored { // of a value that the current unit stores
  Datum *values;        // by the trees, in memory while the kernel runs
  bool is_run;          // a loop that stores it has run
  Buffer expected;      // by the reference
} Stored;

typedef struct Proof {
  const Program *p;
  const Graph *g;
  Allocator allocator;
  // Of the whole program, and empty between units:
  Arena lasting;
  Stored *stored; // by value->index
  ProgramRun run; // of a unit, in one way
  Arena arena;
  size_t first, end; // the unit's kernels
  bool is_shifted;   // of a Way
  int64_t nsteps;    // that the unit may still take
  Text *why;
} Proof;

static bool out_of_memory(Proof *f) {
  f->why->out_of_memory = true;
  return false;
}

// Numbers of elements

static int64_t tensor_nelems(const Proof *f, const Value *v) {
  const ProgramSliceGroup *group = program_slice_group(f->p, f->first);
  if (slice_group_is_private(group, v)) return slice_group_nelems(group->slices, slice_group_find(group->slices, v));
  return open_number(f->g, shape_nelems(&v->shape), shape_monomial(&v->shape), f->run.dims);
}

// Costs

// The number at the values of the dims, which may be more than fits an integer.
static double size_of(const Proof *f, int64_t number, Monomial monomial) {
  double size = (double)number;
  for (size_t i = 0; i < f->g->ndims && f->run.dims && monomial; i++)
    size *= pow((double)f->run.dims[i] / (double)f->g->dims[i]->value, monomial_exponent(monomial, i));
  return size;
}

static double npoints(const Proof *f, const Kernel *k, AxisSet axes) {
  return size_of(f, axes_nelems(k, axes), axes_monomial(k, axes));
}

// About how many operations the reference needs, as it computes all of a value again at each of its points; and
// elements in memory.
static double count_steps(const Proof *f, size_t kernel) {
  const Schedule *s = f->p->schedules[kernel];
  const Kernel *k = s->kernel;
  double count = 0;
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    const bool is_count = e->op == EXPR_COUNT || e->op == EXPR_RECIPROCAL;
    if (is_count && size_of(f, (int64_t)e->number, e->monomial) >= (double)GREATEST_NELEMS) return INFINITY; // no call
    if (expr_is_reduction(e)) count += npoints(f, k, e->axes | e->reduced) * (double)k->nexprs;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    const Access *a = &k->accesses[k->stores[i].access];
    count += npoints(f, k, access_axes(k, a)) * (double)k->nexprs;
    count += f->g->ndims ? size_of(f, shape_nelems(&a->value->shape), shape_monomial(&a->value->shape))
                         : (double)tensor_nelems(f, a->value);
  }
  for (uint32_t i = 0; i < s->ntemporaries; i++) {
    const Temporary *t = &s->temporaries[i];
    const Loop *maker = t->reduction ? &s->loops[t->loop] : NULL; // of which each block has a part
    const int64_t nblocks = maker ? loop_nblocks(k, maker) : 1;
    count += size_of(f, t->nelems, t->monomial) / (double)(nblocks ? nblocks : 1) *
             (maker ? npoints(f, k, loop_outer_axes(maker) | loop_cut_axes(maker)) : 1);
  }
  return count;
}

// Buffers

static bool add_tensor(Proof *f, const Value *v, bool is_stored) {
  Buffer *b = f->run.tensors[v->index];
  const int64_t nelems = tensor_nelems(f, v);
  if (b && (!is_stored || b->writers)) return true;
  if (!b && !(b = f->run.tensors[v->index] = ARENA_NEW(&f->arena, Buffer))) return out_of_memory(f);
  *b = (Buffer){.name = v->name, .type = v->type, .nelems = nelems};
  if (!is_stored) return true;
  f->stored[v->index].values = ARENA_ARRAY(&f->arena, Datum, (size_t)nelems + 1);
  if (!f->stored[v->index].values || !buffer_init(b, v->name, v->type, nelems, false, &f->arena) ||
      !buffer_init(&f->stored[v->index].expected, v->name, v->type, nelems, true, &f->arena))
    return out_of_memory(f);
  b->is_stored_once = true;
  b->address = f->is_shifted ? type_nbytes(v->type) : 0;
  return true;
}

// A kernel

static bool add_tensors(Proof *f, const Kernel *k) {
  bool ok = true;
  for (AccessId id = 0; id < k->naccesses && ok; id++)
    if (k->accesses[id].value) ok = add_tensor(f, k->accesses[id].value, kernel_stores_value(k, k->accesses[id].value));
  return ok;
}

static void mark_stored(Proof *f, size_t kernel) {
  const Schedule *s = f->p->schedules[kernel];
  for (size_t i = 0; i < s->nloops; i++)
    for (const Root *root = s->loops[i].roots; root < s->loops[i].roots + s->loops[i].nroots; root++)
      if (root->kind == ROOT_STORE && run_needs(&f->run, kernel, i) && s->kernel->accesses[root->access].value)
        f->stored[s->kernel->accesses[root->access].value->index].is_run = true;
}

// As the executor stores to a tensor in memory.
static void expect(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                   bool is_mask) {
  Proof *f = context;
  Buffer *b = &f->stored[a->value->index].expected;
  Datum stored[LANES];
  (void)is_mask;
  buffer_convert(b, &domain_of_hashes, type, b->type, n, x, stored);
  for (int i = 0; i < n; i++) {
    if (elements[i] < 0 || elements[i] >= b->nelems) continue;
    b->values[elements[i]] = stored[i];
    b->writers[elements[i]] = 1;
  }
}

static bool find_expected(Proof *f, const Schedule *s) {
  const Kernel *k = s->kernel;
  ValueDomain hashes = domain_of_hashes;
  Summation *sums = ARENA_ARRAY(&f->arena, Summation, s->nsums + 1);
  const char *why = NULL;
  hashes.context = f;
  hashes.store = expect;
  if (!sums) return out_of_memory(f);
  for (size_t i = 0; i < k->nstores; i++)
    buffer_forget(&f->stored[k->accesses[k->stores[i].access].value->index].expected);
  bool ok = true;
  for (size_t i = 0; i < s->nsums && ok; i++) ok = schedule_summation(s, &s->sums[i], &sums[i]);
  if (ok && kernel_reference(k, sums, s->nsums, f->run.dims, &hashes, &f->allocator, &why)) return true;
  if (ok && !why) return out_of_memory(f);
  text_format(f->why, "%s\n", why ? why : "a sum is not added up in its order");
  return false;
}

// Compares what the kernel's blocks, from this one on, have stored.
static bool compare(Proof *f, const Kernel *k, uint32_t block) {
  for (size_t i = 0; i < k->nstores; i++) {
    const Value *v = k->accesses[k->stores[i].access].value;
    const Buffer *expected = &f->stored[v->index].expected, *b = f->run.tensors[v->index];
    for (int64_t e = 0; b && f->stored[v->index].is_run && e < b->nelems; e++) {
      const bool is_written = b->writers[e] >= block;
      const char *what = !expected->writers[e] ? is_written ? "is stored, which the kernel does not" : NULL
                         : !is_written         ? "is never stored"
                         : b->values[e].hash == expected->values[e].hash ? NULL
                                                                         : "has another value than the kernel says";
      if (!what) continue;
      text_add_string(f->why, "the kernel of ");
      kernel_print_nodes(k, f->why);
      text_format(f->why, ": element %lld of ", (long long)e);
      text_add_user_string(f->why, SINK_TERMINAL, v->name);
      text_format(f->why, " %s\n", what);
      return false;
    }
  }
  return true;
}

// While a kernel runs, what it stores is in memory.
static void keep_values(Proof *f, const Kernel *k, bool is_kept) {
  for (size_t i = 0; i < k->nstores; i++) {
    const uint32_t value = k->accesses[k->stores[i].access].value->index;
    if (f->run.tensors[value]) f->run.tensors[value]->values = is_kept ? f->stored[value].values : NULL;
  }
}

static bool prove_kernel(Proof *f, size_t kernel) {
  const Schedule *s = f->p->schedules[kernel];
  if (!add_tensors(f, s->kernel) || !run_add_temporaries(&f->run, kernel, &f->arena)) return out_of_memory(f);
  const Graph *g = f->g;
  for (size_t i = 0; f->run.is_left_out && i < g->noutputs; i++)
    if (f->run.is_left_out[i] && kernel_stores_value(s->kernel, g->outputs[i]))
      f->run.tensors[g->outputs[i]->index] = NULL;
  Blocks *blocks = &f->run.blocks;
  if (blocks->are_one) blocks->first = ++blocks->now; // what earlier kernels of the slice did lies before
  const uint32_t block = blocks->now + !blocks->are_one;
  keep_values(f, s->kernel, true);
  mark_stored(f, kernel);
  const bool ok = run_kernel_loops(&f->run, kernel, f->why) && find_expected(f, s) && compare(f, s->kernel, block);
  keep_values(f, s->kernel, false);
  return ok;
}

// Units

// Outputs that a call may leave out, and that no loop reads: all, or every other one. False: there are none.
static bool leave_out(Proof *f, uint32_t which) {
  const Program *p = f->p;
  bool is_any = false, *is_left_out = ARENA_ARRAY(&f->arena, bool, f->g->noutputs + 1);
  if (!is_left_out) return out_of_memory(f);
  for (size_t i = 0; i < f->g->noutputs; i++) {
    is_left_out[i] =
        p->has_optional_outputs && p->liveness->is_optional[f->g->outputs[i]->index] && (which >> i % 2 & 1);
    is_any |= is_left_out[i];
  }
  f->run.is_left_out = is_left_out;
  return is_any;
}

static void tell_values(const Proof *f) {
  text_add_string(f->why, "with");
  for (size_t i = 0; i < f->g->ndims; i++)
    text_format(f->why, " %s = %lld", f->g->dims[i]->name,
                (long long)(f->run.dims ? open_dim_value(f->g, i, f->run.dims) : f->g->dims[i]->value));
  text_add_string(f->why, ": ");
}

typedef struct Way { // of running a unit
  uint32_t left_out; // bit i: outputs with numbers of remainder i by 2
  bool is_shifted;   // stored tensors begin within a cache line, not at its beginning
  bool is_large;     // tensors are larger than the caches
} Way;

static void forget_tensors(Proof *f) {
  for (size_t i = f->first; i < f->end; i++) {
    const Kernel *k = f->p->schedules[i]->kernel;
    for (AccessId id = 0; id < k->naccesses; id++) {
      if (!k->accesses[id].value) continue;
      const uint32_t value = k->accesses[id].value->index;
      f->run.tensors[value] = NULL;
      f->stored[value] = (Stored){0};
    }
  }
}

static bool run_unit(Proof *f, Way way, Text *why) {
  Text told;
  text_init(&told, &f->allocator);
  arena_init(&f->arena, &f->allocator);
  f->why = &told;
  f->run.is_left_out = NULL;
  f->is_shifted = way.is_shifted;
  f->run.is_large = way.is_large;
  f->run.blocks = (Blocks){.are_one = program_slice_group(f->p, f->first)};
  f->run.blocks.first = f->run.blocks.now = f->run.blocks.are_one;
  bool ok = !way.left_out || leave_out(f, way.left_out) || !told.out_of_memory;
  for (size_t i = f->first; i < f->end && ok; i++) ok = prove_kernel(f, i);
  f->why = why;
  if (!ok && f->g->ndims && !told.out_of_memory) tell_values(f);
  if (!ok) text_add_string(why, f->nsteps < 0 && !told.nbytes ? "it takes too many steps\n" : text_string(&told));
  why->out_of_memory |= told.out_of_memory;
  text_deinit(&told);
  forget_tensors(f);
  arena_deinit(&f->arena);
  return ok;
}

// Whether a tree does other things where a tensor begins within a cache line.
static bool unit_streams(const Proof *f) {
  bool is_any = false;
  for (size_t i = f->first; i < f->end; i++)
    for (const Loop *l = f->p->schedules[i]->loops; l < f->p->schedules[i]->loops + f->p->schedules[i]->nloops; l++) {
      is_any |= l->is_peeled;
      for (size_t r = 0; r < l->nroots; r++) is_any |= l->roots[r].is_streamed;
    }
  return is_any;
}

// *nsteps: of the program; what the reference takes is subtracted.
static bool prove_at(Proof *f, const int64_t *dims, int64_t *nsteps, Text *why) {
  enum { TIMES = 64, MORE = 1 << 16 }; // how many more steps a sound tree may take than the reference, at most
  static const Way ways[] = {{0, false, false}, {0, true, true},  {0, false, true},
                             {1, true, true},   {2, true, false}, {3, false, true}};
  double steps = 1;
  f->run.dims = dims;
  for (size_t i = f->first; i < f->end; i++) steps += count_steps(f, i);
  for (int i = 0; i < (f->p->has_optional_outputs ? 6 : 3); i++) {
    if (ways[i].is_large && !ways[i].left_out && !unit_streams(f)) continue;
    if (steps > (double)*nsteps) return true;
    *nsteps -= (int64_t)steps;
    f->nsteps = TIMES * (int64_t)steps + MORE;
    if (!run_unit(f, ways[i], why)) return false;
  }
  return true;
}

// Sets the dims in the monomial (0: all) to the value, the others to few, and sums to what they are then. False: one is
// negative.
static bool set_dims(const Graph *g, int64_t value, Monomial which, int64_t *dims) {
  enum { FEW = 3 };
  for (size_t i = 0; i < g->ndims; i++) {
    const bool is_one = !which || monomial_exponent(which, i);
    dims[i] = i < graph_narguments(g) ? is_one ? value : FEW : open_dim_value(g, i, dims);
    if (dims[i] < 0) return false;
  }
  return true;
}

static int64_t more_than_two_blocks(const Schedule *s) {
  int64_t length = 0;
  for (size_t l = 0; l < s->nloops; l++)
    if (s->loops[l].cut.length > length) length = s->loops[l].cut.length;
  return 2 * length + 3;
}

// An extent of *axis with the last choice of open segments, if a sum has such ones; else 0.
static int64_t beyond_segments(const Schedule *s, int *axis) {
  for (const Loop *l = s->loops; l < s->loops + s->nloops; l++)
    for (const Root *root = l->roots; root < l->roots + l->nroots; root++) {
      const Segments *cut = root->order ? &root->order->segments : NULL;
      if (!cut || !cut->is_open) continue;
      *axis = cut->elements ? loop_vector_axis(l) : cut->axis;
      if (cut->elements) return cut->elements + LANES + 1;
      for (int64_t extent = (int64_t)2 * CHAIN / cut->inside + 1; extent < (int64_t)4 * CHAIN; extent++)
        if (chain_iterations(extent, cut->inside) > chain_limit(cut->inside, 1)) return extent;
    }
  return 0;
}

static bool prove_unit(Proof *f, size_t kernel, int64_t *nsteps, Text *why) {
  const Schedule *s = f->p->schedules[kernel];
  const size_t nargs = f->g->ndims ? graph_narguments(f->g) : 0;
  int axis = 0;
  const int64_t long_axis = beyond_segments(s, &axis), large = more_than_two_blocks(s);
  const struct Point {
    int64_t value;
    Monomial which;
  } points[] = {{1}, {LANES - 1}, {LANES + 1}, {long_axis, s->kernel->axes[axis].monomial}, {large}};
  int64_t dims[MAX_OPEN_DIMS], before = 0;
  bool ok = true;
  f->first = kernel;
  f->end = program_unit_end(f->p, (uint32_t)kernel);
  for (size_t i = 0; nargs && ok && i < sizeof points / sizeof *points; i++) {
    before = *nsteps;
    if (points[i].value && set_dims(f->g, points[i].value, points[i].which, dims)) ok = prove_at(f, dims, nsteps, why);
  }
  for (size_t i = 0; nargs > 1 && *nsteps == before && ok && i < nargs; i++) // all large are too many: one by one
    if (set_dims(f->g, large, monomial_of_dim(i), dims)) ok = prove_at(f, dims, nsteps, why);
  return ok && prove_at(f, NULL, nsteps, why);
}

// Proves the units of kernels from `first` to before `end`.
static bool prove(const Program *p, size_t first, size_t end, int64_t *nsteps, Text *why) {
  Proof f = {.p = p,
             .g = p->graph,
             .allocator = *why->allocator,
             .run = {.program = p, .domain = &domain_of_hashes, .nsteps = &f.nsteps}};
  const size_t nvalues = p->graph->nvalues + 1;
  f.allocator.steps = NULL; // what a user compiles does not pay for the proof, which has a budget of its own
  arena_init(&f.lasting, &f.allocator);
  f.run.tensors = ARENA_ARRAY(&f.lasting, Buffer *, nvalues);
  f.stored = ARENA_ARRAY(&f.lasting, Stored, nvalues);
  f.run.temporaries = ARENA_ARRAY(&f.lasting, Buffer *, p->liveness->ntemporaries + 1);
  bool ok = f.run.tensors && f.stored && f.run.temporaries;
  why->out_of_memory |= !ok;
  for (size_t i = first; i < end && ok && *nsteps > 0; i = f.end) ok = prove_unit(&f, i, nsteps, why);
  arena_deinit(&f.lasting);
  return ok;
}

bool unit_prove(const Program *p, size_t kernel, int64_t *nsteps, Text *why) {
  return prove(p, kernel, kernel + 1, nsteps, why);
}

bool program_prove(const Program *p, int64_t *nsteps, Text *why) {
  return prove(p, 0, p->nkernels, nsteps, why);
}
