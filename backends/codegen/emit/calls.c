// Prints the calls of loops' block functions: on several threads, on one thread, or in the function of a slice group.
#include "backends/codegen/emit/emit.h"

#include "backends/codegen/emit/template.h"
#include "ir/support/threads.h"

#include <assert.h>
#include <string.h>

extern const char slices_text[];

static bool has_open_blocks(const Kernel *k, const Loop *loop) {
  return axes_monomial(k, loop_outer_axes(loop)) || loop_has_open_cut_blocks(k, loop);
}

static bool is_shared(const Kernel *k, const Loop *loop) {
  return (loop->serial_work || !loop->is_serial) && (has_open_blocks(k, loop) || loop_nblocks(k, loop) > 1);
}

bool program_has_shared_loops(const Program *p) {
  if (p->nslice_groups) return true;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t l = 0; l < p->schedules[i]->nloops; l++) {
      const Kernel *k = p->schedules[i]->kernel;
      const Loop *loop = &p->schedules[i]->loops[l];
      if (is_shared(k, loop) && !loop_is_idle(k, loop)) return true;
    }
  return false;
}

// Loops

// How a program's loops are called.
typedef enum Way {
  WAY_HERE,  // one after the other, on this thread
  WAY_FOR,   // PREFIX_for runs a loop with several blocks
  WAY_TEAM,  // every thread of a team calls PREFIX_for for every loop, and meets the others where data needs it
  WAY_LISTED // PREFIX_for adds a loop to the caller's list
} Way;

static Way way_of(const Printer *p) {
  const bool is_shared = program_has_shared_loops(p->program);
  return p->threads == EMIT_LIST     ? WAY_LISTED
         : p->threads == EMIT_OPENMP ? (is_shared ? WAY_TEAM : WAY_HERE)
         : p->threads == EMIT_SERIAL ? WAY_HERE
                                     : WAY_FOR;
}

// A condition on open dims; "": a loop of several blocks always runs on several threads.
static const char *sharing_text(Printer *p, const Kernel *k, const Loop *l, const char *nblocks) {
  const char *text = has_open_blocks(k, l) ? arena_format(p->scratch, "%s > 1", nblocks) : "";
  if (l->serial_work)
    text = arena_format(p->scratch, "%s%s%s > %lld", checked(p, text), *checked(p, text) ? " && " : "",
                        nelems_text(p, k, loop_outer_axes(l) | loop_inner_axes(l)), (long long)l->serial_work);
  return checked(p, text);
}

// If the number of blocks or the amount of work is known only at run time, the emitted code chooses between several
// threads and one thread.
static void print_call_with(Printer *p, Way way, size_t kernel, size_t loop, const char *args, bool meets,
                            const char *indent) {
  const Schedule *s = p->program->schedules[kernel];
  const Kernel *k = s->kernel;
  const Loop *l = &s->loops[loop];
  const bool may_share = is_shared(k, l);
  const char *nblocks = nblocks_text(p, kernel, loop, "a->");
  const char *sharing = may_share ? sharing_text(p, k, l, nblocks) : "0";
  const char *function =
      checked(p, arena_format(p->scratch, "%s_kernel%zu_loop%zu", p->identifier, p->first_alike[kernel], loop));
  if (way == WAY_LISTED) {
    text_format(p->out, "%s%s_for(pool, %zu, %s, %s, %s, %s%s);\n", indent, p->prefix,
                p->liveness->first_loop[kernel] + loop, nblocks, function, args, *args == 'a' ? "0" : "sizeof ",
                *args == 'a' ? "" : args + 1);
    return;
  }
  if (way == WAY_TEAM) {
    text_format(p->out, "%s%s_for(%d, %s, ", indent, p->prefix, meets, nblocks);
    if (may_share && *sharing) text_format(p->out, "%s ? 1 : %s", sharing, nblocks);
    else text_add_string(p->out, may_share ? "1" : nblocks);
    text_format(p->out, ", %s, %s);\n", function, args);
    return;
  }
  const bool has_choice = may_share && way == WAY_FOR && *sharing;
  if (has_choice) text_format(p->out, "%sif (%s)\n  ", indent, sharing);
  if (may_share && way == WAY_FOR)
    text_format(p->out, "%s%s_for(pool, %s, %s, %s);\n", indent, p->prefix, nblocks, function, args);
  if (has_choice) text_format(p->out, "%selse\n  ", indent);
  if (may_share && way == WAY_FOR && !has_choice) return;
  if (!has_open_blocks(k, l) && !l->serial_work && loop_nblocks(k, l) == 1)
    text_format(p->out, "%s%s(%s, 0);\n", indent, function, args);
  else text_format(p->out, "%sfor (size_t b = 0; b < %s; b++) %s(%s, b);\n", indent, nblocks, function, args);
}

// Functions that several kernels call take a struct of only the members that they use.
static void print_call(Printer *p, Way way, size_t kernel, size_t loop, bool meets, const char *indent) {
  const char *inner = checked(p, arena_format(p->scratch, "%s  ", indent));
  if (!p->is_shared[kernel]) {
    print_call_with(p, way, kernel, loop, "a", meets, indent);
    return;
  }
  text_format(p->out, "%s{\n%sconst struct %s_kernel%zu_args k = {", indent, inner, p->identifier,
              p->first_alike[kernel]);
  print_own_members(p, kernel, p->out);
  text_add_string(p->out, "};\n");
  print_call_with(p, way, kernel, loop, "&k", meets, inner);
  text_format(p->out, "%s}\n", indent);
}

// Slice groups

// The number of elements (of packed types: bytes) before the slice in the tensor; "": 0.
static const char *offset_text(Printer *p, const SliceGroup *slices, const SlicedTensor *tensor) {
  const char *text = "";
  for (int i = 0; i < slices->nlevels; i++) {
    const int64_t stride = tensor->stride[i] / (type_is_packed(tensor->value->type) ? 2 : 1);
    if (!stride) continue;
    text = arena_format(p->scratch, "%s%sslice%d * %lld", text, *text ? " + " : "", i, (long long)stride);
    text = checked(p, text);
  }
  return text;
}

// Moves a pointer of the arguments, which may be NULL.
static void move(Printer *p, const char *indent, const char *member, const char *offset) {
  text_format(p->out, "%sif (whole->%s) a->%s = whole->%s + %s;\n", indent, member, member, member, offset);
}

static const char *chunk_text(Printer *p, const ProgramSliceGroup *v, Type type) {
  return checked(p, arena_format(p->scratch, "memory * %zu", v->chunk_nbytes / type_nbytes(type)));
}

// Prints assignments that give a chunk its own memory for the slice group's private values and for temporaries.
static void print_chunk(Printer *p, const ProgramSliceGroup *v) {
  const SliceGroup *slices = v->slices;
  for (size_t i = 0; i < slices->ntensors; i++) {
    const Value *value = slices->tensors[i].value;
    if (slices->tensors[i].is_private && p->value_member[value->index])
      move(p, "  ", p->value_member[value->index], chunk_text(p, v, value->type));
  }
  for (size_t i = v->first; i < v->end; i++) {
    const Schedule *s = p->program->schedules[i];
    for (size_t t = 0; t < s->ntemporaries; t++)
      if (!s->temporaries[t].is_own)
        move(p, "  ", *temporary_member(p, i, t), chunk_text(p, v, s->temporaries[t].type));
  }
}

// Prints the slice's index on each level, and moves the addresses of tensors to the slice.
static void print_slice(Printer *p, const ProgramSliceGroup *v) {
  const SliceGroup *slices = v->slices;
  int64_t inner = slices->nslices;
  for (int i = 0; i < slices->nlevels; i++) {
    inner /= slices->extent[i];
    text_format(p->out, "    const size_t slice%d = slice", i);
    if (inner > 1) text_format(p->out, " / %lld", (long long)inner);
    if (i) text_format(p->out, " %% %lld", (long long)slices->extent[i]);
    text_add_string(p->out, ";\n");
  }
  for (size_t i = 0; i < slices->ntensors; i++) {
    const SlicedTensor *tensor = &slices->tensors[i];
    const char *member = p->value_member[tensor->value->index], *offset = offset_text(p, slices, tensor);
    if (member && !tensor->is_private && *offset) move(p, "    ", member, offset);
  }
}

// A chunk takes the first block of memory that no running chunk uses, because the caches may still hold it. There are
// as many blocks as chunks, so that a block is always free. Without atomic functions, each chunk uses the block of its
// number.
static void print_memories(Printer *p) {
  part_begin(p->parts, p->out, NULL);
  print_template(&(Template){.text = slices_text, .prefix = p->identifier}, p->out);
}

// Prints the function that runs the kernels of a slice group for a chunk of its slices.
static void print_slice_group(Printer *p, size_t index) {
  const ProgramSliceGroup *v = &p->program->slice_groups[index];
  const long long nslices = v->slices->nslices, nchunks = v->nchunks;
  const char *id = p->identifier;
  part_begin_named(p->parts, p->out, "%s_slices%zu", id, index);
  text_format(
      p->out,
      "// Slice group %zu: kernels %u to %u, one slice after the other. Each task has slices and memory of its own.\n",
      index, v->first, v->end - 1);
  part_end_comment(p->parts);
  text_format(p->out,
              "static void %s_slices%zu(const void *args, size_t task) {\n"
              "  const struct %s_args *const whole = (const struct %s_args *)args;\n"
              "  const size_t memory = %s_take_memory(whole->slices%zu_free, task);\n"
              "  struct %s_args own = *whole, *const a = &own;\n",
              id, index, id, id, id, index, id);
  print_chunk(p, v);
  text_format(p->out, "  const size_t begin = %lld * task / %lld, end = %lld * (task + 1) / %lld;\n", nslices, nchunks,
              nslices, nchunks);
  text_add_string(p->out, "  for (size_t slice = begin; slice < end; slice++) {\n");
  print_slice(p, v);
  const int last = v->slices->nlevels - 1;
  for (size_t i = v->first; i < v->end; i++) {
    const Schedule *s = p->program->schedules[i];
    for (size_t l = 0; l < s->nloops; l++) {
      if (loop_is_idle(s->kernel, &s->loops[l])) continue;
      if (s->loops[l].is_invariant) text_format(p->out, "    if (slice == begin || slice%d == 0)\n", last);
      print_call(p, WAY_HERE, i, l, false, s->loops[l].is_invariant ? "      " : "    ");
    }
  }
  text_format(p->out, "  }\n  %s_leave_memory(whole->slices%zu_free, memory);\n}\n\n", id, index);
}

void print_slice_groups(Printer *p) {
  if (p->program->nslice_groups) print_memories(p);
  for (size_t i = 0; i < p->program->nslice_groups; i++) print_slice_group(p, i);
}

// The run

// A C condition: some output that needs one of the loops is not NULL. NULL: the loops always run.
static const char *condition_text(Printer *p, size_t first_loop, size_t end_loop) {
  const char *text = "0", *before = "";
  bool *is_named = ARENA_ARRAY(p->scratch, bool, p->program->graph->noutputs + 1);
  if (!p->program->has_optional_outputs) return NULL;
  p->out_of_memory |= !is_named;
  for (size_t l = first_loop; l < end_loop && is_named; l++) {
    const OutputSet *serves = &p->liveness->serves[l];
    if (serves->is_all) return NULL;
    for (uint32_t i = 0; i < serves->count; i++) {
      if (is_named[serves->outputs[i]]) continue;
      is_named[serves->outputs[i]] = true;
      text = checked(p, arena_format(p->scratch, "%s%soutputs[%u]", *before ? text : "", before, serves->outputs[i]));
      before = " || ";
    }
  }
  return text;
}

// Prints a call that tells the caller that a loop has ended.
static void print_mark(Printer *p, Way way, size_t loop) {
  if (!p->is_marked) return;
  text_add_string(p->out, "  if (pool->mark) {\n");
  if (way == WAY_TEAM) text_add_string(p->out, "#ifdef _OPENMP\n#pragma omp barrier\n#pragma omp master\n#endif\n");
  text_format(p->out, "    pool->mark(pool->marked, %zu);\n  }\n", 1 + loop);
}

// The calls of a program: one for each loop, and one for each slice group.
typedef struct Call {
  size_t kernel, loop;                  // the first of the loops
  size_t first_loop, end_loop;          // numbered through all kernels
  const ProgramSliceGroup *slice_group; // NULL: the call of one loop
} Call;

static bool is_idle(const Printer *p, const Call *call) {
  const Schedule *s = p->program->schedules[call->kernel];
  return !call->slice_group && loop_is_idle(s->kernel, &s->loops[call->loop]);
}

// Prints the call that runs a slice group's chunks, on threads or one after the other.
static void print_slice_group_call(Printer *p, Way way, const ProgramSliceGroup *group, bool meets,
                                   const char *indent) {
  static_assert(MOST_SLICE_CHUNKS <= 32, "a task's memory has a bit of uint32_t");
  const size_t index = (size_t)(group - p->program->slice_groups);
  const long long n = group->nchunks;
  const char *id = p->identifier;
  if (way == WAY_LISTED)
    text_format(p->out, "%s%s_for(pool, %zu, %lld, %s_slices%zu, a, 0);\n", indent, p->prefix,
                p->liveness->first_loop[group->first], n, id, index);
  else if (way == WAY_TEAM)
    text_format(p->out, "%s%s_for(%d, %lld, 1, %s_slices%zu, a);\n", indent, p->prefix, meets, n, id, index);
  else if (way == WAY_FOR)
    text_format(p->out, "%s%s_for(pool, %lld, %s_slices%zu, a);\n", indent, p->prefix, n, id, index);
  else
    text_format(p->out, "%sfor (size_t task = 0; task < %lld; task++) %s_slices%zu(a, task);\n", indent, n, id, index);
}

// Where a team's threads have met: before the loop with this number.
typedef struct Meetings {
  Way way;            // how loops are called
  size_t last;        // in every call
  size_t last_inside; // under the open condition
} Meetings;

static bool needs_meeting(const Printer *p, size_t loop, size_t last) {
  const size_t since = loop - last;
  return since > MOST_NEEDS || (since && p->liveness->needs[loop] & (UINT32_MAX >> (MOST_NEEDS - since)));
}

// Prints the call under its condition. *open: the condition whose block is open; consecutive calls for the same outputs
// are in one block.
static void print_conditional(Printer *p, const Call *call, const char **open, Meetings *met) {
  if (is_idle(p, call)) return;
  const Way way = met->way;
  const char *condition = condition_text(p, call->first_loop, call->end_loop);
  const bool is_same = *open && condition && strcmp(*open, condition) == 0;
  const char *indent = condition ? "    " : "  ";
  if (!is_same) met->last_inside = met->last;
  const bool meets = way == WAY_TEAM && needs_meeting(p, call->first_loop, met->last_inside);
  if (meets) met->last_inside = call->first_loop;
  if (meets && !condition) met->last = call->first_loop;
  if (*open && !is_same) text_add_string(p->out, "  }\n");
  if (condition && !is_same) text_format(p->out, "  if (%s) {\n", condition);
  if (call->slice_group) print_slice_group_call(p, way, call->slice_group, meets, indent);
  else print_call(p, way, call->kernel, call->loop, meets, indent);
  print_mark(p, way, call->first_loop);
  *open = condition;
}

// Lists the calls of the program. NULL: out of memory.
static Call *list_calls(Printer *p, size_t *count) {
  const Program *program = p->program;
  Call *calls = ARENA_ARRAY(p->scratch, Call, p->liveness->nloops + 1);
  *count = 0;
  for (size_t i = 0; calls && i < program->nkernels; i++) {
    const ProgramSliceGroup *slice_group = program_slice_group(program, i);
    const size_t first = p->liveness->first_loop[i];
    if (slice_group) {
      i = slice_group->end - 1;
      const size_t end = p->liveness->first_loop[i] + program->schedules[i]->nloops;
      calls[(*count)++] = (Call){slice_group->first, 0, first, end, slice_group};
      continue;
    }
    for (size_t l = 0; l < program->schedules[i]->nloops; l++)
      calls[(*count)++] = (Call){i, l, first + l, first + l + 1, NULL};
  }
  p->out_of_memory |= !calls;
  return calls;
}

static void print_range(Printer *p, const Call *calls, size_t count, Meetings *met) {
  const char *open = NULL;
  for (size_t i = 0; i < count; i++) print_conditional(p, &calls[i], &open, met);
  if (open) text_add_string(p->out, "  }\n");
}

// Compile time grows with the square of a function's length, so that the function with all calls is cut into parts.
enum { CALLS_IN_PART = 16 };

void print_parts(Printer *p) {
  size_t count;
  Meetings met = {.way = way_of(p)};
  const Call *calls = list_calls(p, &count);
  if (!calls || count <= CALLS_IN_PART) return;
  const bool is_cut = p->has_cuts && !p->program->nslice_groups; // slice groups have static functions
  for (size_t begin = 0; begin < count; begin += CALLS_IN_PART) {
    const size_t most = count - begin < CALLS_IN_PART ? count - begin : CALLS_IN_PART;
    const char *name = checked(p, arena_format(p->scratch, "%s_part%zu", p->identifier, begin / CALLS_IN_PART));
    const char *parameters =
        checked(p, arena_format(p->scratch, "const struct %s_args *a, void *const *outputs, const struct %s_pool *pool",
                                p->identifier, p->prefix));
    if (is_cut) text_format(p->plain, "void %s(%s);\n\n", name, parameters);
    part_begin(p->parts, p->out, name);
    text_format(p->out, "%sV_FAR void %s(%s) {\n  (void)a, (void)outputs, (void)pool;\n", is_cut ? "" : "static ", name,
                parameters);
    print_range(p, calls + begin, most, &met);
    text_add_string(p->out, is_cut ? "}\n\n\f\n" : "}\n\n");
  }
}

static void print_all(Printer *p, Way way, const Call *calls, size_t count) {
  Meetings met = {.way = way};
  if (count <= CALLS_IN_PART) print_range(p, calls, count, &met);
  for (size_t begin = 0; count > CALLS_IN_PART && begin < count; begin += CALLS_IN_PART)
    text_format(p->out, "  %s_part%zu(a, outputs, pool);\n", p->identifier, begin / CALLS_IN_PART);
}

void print_calls(Printer *p) {
  const Way way = way_of(p);
  size_t count;
  const Call *calls = list_calls(p, &count);
  if (!calls) return;
  if (way == WAY_TEAM) text_add_string(p->out, "#ifdef _OPENMP\n#pragma omp parallel\n#endif\n  {\n");
  print_all(p, way, calls, count);
  if (way == WAY_TEAM) text_add_string(p->out, "  }\n");
  if (way == WAY_LISTED) text_add_string(p->out, "  pool->run(pool->context);\n");
}
