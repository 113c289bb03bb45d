// Prints programs.
#include "ir/kernel/program.h"

#include "ir/graph/open_dims.h"
#include "ir/support/escape.h"

// The most refusals printed for a kernel, and uses searched for a value: graphs may have values with 100,000 uses.
enum { MOST_REFUSALS = 32, MOST_USES = 64 };

void program_free(Program *p) {
  if (!p) return;
  Arena arena = p->arena; // p itself is in the arena
  if (p->trees) arena_deinit(&p->tree_arena);
  arena_deinit(&arena);
}

struct LoopTree *program_tree(const Program *p, size_t kernel, size_t loop) {
  return p->trees[p->liveness->first_loop[kernel] + loop];
}

void program_number_kernels(Program *p) {
  for (size_t i = 0; i < p->graph->nnodes; i++) p->first_kernel[i] = NOT_IN_KERNEL; // of aliases
  for (size_t i = p->nkernels; i-- > 0;) {
    const Kernel *k = p->schedules[i]->kernel;
    for (size_t n = 0; n < k->nnodes; n++) p->first_kernel[k->nodes[n]->index] = (uint32_t)i;
  }
}

const Type *program_node_types(const Program *p, Arena *arena) {
  Type *types = ARENA_ARRAY(arena, Type, p->graph->nnodes + 1);
  for (size_t i = 0; types && i < p->graph->nnodes; i++)
    if (p->first_kernel[i] != NOT_IN_KERNEL) types[i] = kernel_type(p->schedules[p->first_kernel[i]]->kernel);
  return types;
}

bool output_is_update(const Graph *g, size_t i) {
  return i >= g->noutputs - g->nupdates;
}

bool output_is_copy(const Graph *g, size_t i) {
  const Value *v = g->outputs[i];
  return !v->producer || v->first_output != i;
}

bool program_copies_output(const Program *p, size_t i) {
  return output_is_copy(p->graph, i) || p->is_staged[p->graph->outputs[i]->index];
}

bool program_keeps_output(const Program *p, size_t i) {
  return !program_copies_output(p, i) && !output_is_update(p->graph, i) &&
         p->liveness->is_read_again[p->graph->outputs[i]->index];
}

OpenSize program_temporary_size(const Program *p, uint32_t kernel, uint32_t temporary) {
  const Schedule *s = p->schedules[kernel];
  const Temporary *t = &s->temporaries[temporary];
  const bool may_have_blocks = t->reduction != EXPR_NONE && p->graph->ndims;
  const int64_t nblocks = may_have_blocks ? loop_nblocks(s->kernel, &s->loops[t->loop]) : 0;
  if (!nblocks) return (OpenSize){.number = t->nelems, .monomial = t->monomial};
  return (OpenSize){t->nelems / nblocks, t->monomial, true, kernel, t->loop};
}

const ProgramSliceGroup *program_slice_group(const Program *p, size_t kernel) {
  for (size_t i = 0; i < p->nslice_groups; i++)
    if (kernel >= p->slice_groups[i].first && kernel < p->slice_groups[i].end) return &p->slice_groups[i];
  return NULL;
}

uint32_t program_unit_first(const Program *p, uint32_t kernel) {
  const ProgramSliceGroup *slice_group = program_slice_group(p, kernel);
  if (slice_group) return slice_group->first;
  while (p->schedules[kernel]->follows) kernel--;
  return kernel;
}

uint32_t program_unit_end(const Program *p, uint32_t kernel) {
  const ProgramSliceGroup *slice_group = program_slice_group(p, kernel);
  if (slice_group) return slice_group->end;
  for (kernel++; kernel < p->nkernels && p->schedules[kernel]->follows;) kernel++;
  return kernel;
}

// The index of the temporary in the same memory as t; ntemporaries: there is none.
static uint32_t find_same(const Schedule *s, const Temporary *t) {
  uint32_t i = 0;
  while (i < s->ntemporaries &&
         (s->temporaries[i].is_own || s->temporaries[i].offset != t->offset || s->temporaries[i].nelems != t->nelems))
    i++;
  return i;
}

size_t program_maker(const Program *p, size_t kernel, uint32_t *temporary) {
  const Temporary *t = &p->schedules[kernel]->temporaries[*temporary];
  while (t->is_reused) {
    do *temporary = find_same(p->schedules[--kernel], t);
    while (*temporary == p->schedules[kernel]->ntemporaries);
    t = &p->schedules[kernel]->temporaries[*temporary];
  }
  return kernel;
}

int64_t slice_group_first_slice(const ProgramSliceGroup *v, int64_t chunk) {
  return v->slices->nslices * chunk / v->nchunks;
}

bool slice_group_is_private(const ProgramSliceGroup *v, const Value *value) {
  const SlicedTensor *tensor = v ? slice_group_find(v->slices, value) : NULL;
  return tensor && tensor->is_private;
}

static void print_name(const char *name, Text *out) {
  text_add_string(out, " ");
  text_add_user_string(out, SINK_TERMINAL, name);
}

static void print_traffic(const Kernel *k, Text *out) {
  const Traffic traffic = kernel_tensor_nbytes(k);
  for (int is_written = 0; is_written < 2; is_written++) {
    text_add_string(out, is_written ? "  writes" : "  reads");
    for (AccessId i = 0; i < k->naccesses; i++)
      if (k->accesses[i].value && kernel_stores(k, i) == is_written && !access_reads_again(k, i))
        print_name(k->accesses[i].value->name, out);
    text_format(out, ": %lld bytes\n", (long long)(is_written ? traffic.written : traffic.read));
  }
  for (AccessId i = 0; i < k->naccesses; i++) {
    if (!k->accesses[i].nbounds || !k->accesses[i].value) continue;
    text_add_string(out, "  windows of");
    print_name(k->accesses[i].value->name, out);
    access_print_bounds(k, &k->accesses[i], out);
    text_add_string(out, "\n");
  }
}

typedef struct Printing {
  const Program *program;
  Text *out;
  uint32_t told[MOST_REFUSALS]; // for the current kernel: the kernels for which a refusal has been printed
  uint32_t ntold;
} Printing;

// Records that a kernel is named. False: it was named before, or the list is full.
static bool names_kernel(Printing *p, uint32_t kernel) {
  if (p->ntold == MOST_REFUSALS) return false;
  for (uint32_t i = 0; i < p->ntold; i++)
    if (p->told[i] == kernel) return false;
  p->told[p->ntold++] = kernel;
  return true;
}

// The node of an alias of the value that the kernel reads; NULL: none.
static const Node *alias_between(const Printing *p, const Value *v, uint32_t kernel) {
  int looked = 0;
  for (const Use *use = v->uses; use && looked < MOST_USES; use = use->next, looked++) {
    const Value *alias = use->node->noutputs ? use->node->outputs[0] : NULL;
    if (!alias || !alias->alias) continue;
    for (const Use *own = alias->uses; own; own = own->next)
      if (p->program->first_kernel[own->node->index] == kernel) return use->node;
    if (alias_between(p, alias, kernel)) return use->node;
  }
  return NULL;
}

// Prints that the kernel reads the value of another kernel through an alias.
static void print_alias(Printing *p, const Kernel *k, const Value *v) {
  const uint32_t *kernel_of = p->program->first_kernel, own = kernel_of[k->nodes[0]->index];
  const Node *alias = v->producer && kernel_of[v->producer->index] != own ? alias_between(p, v, own) : NULL;
  if (!alias || !names_kernel(p, kernel_of[v->producer->index])) return;
  text_format(p->out, "  not with kernel %u, ", (unsigned)kernel_of[v->producer->index]);
  node_print(v->producer, p->out);
  text_add_string(p->out, ":");
  print_name(v->name, p->out);
  text_add_string(p->out, " is read in place of the result of ");
  node_print(alias, p->out);
  text_add_string(p->out, "\n");
}

// Prints why the node is not fused into the kernel, unless the node's own kernel has been named already.
static void print_refusal(Printing *p, const Kernel *k, const Node *node) {
  if (!node) return;
  const uint32_t *kernel_of = p->program->first_kernel, own = kernel_of[k->nodes[0]->index];
  const uint32_t other = kernel_of[node->index];
  const Refusal *r = p->program->partition->refusals[node->index];
  while (r && kernel_of[r->with->index] != own) r = r->next;
  if (!r || other == own || other == UINT32_MAX || !names_kernel(p, other)) return;
  text_format(p->out, "  not with kernel %u, ", (unsigned)other);
  node_print(node, p->out);
  text_add_string(p->out, ":");
  print_name(r->why, p->out);
  text_add_string(p->out, "\n");
}

// Prints, for each kernel that produces, reads or shares a value of this one, the first reason why the two are not
// fused.
static void print_refusals(Printing *p, const Kernel *k) {
  p->ntold = 0;
  for (AccessId i = 0; i < k->naccesses; i++) {
    const Value *v = k->accesses[i].value;
    if (!v) continue;
    print_refusal(p, k, v->producer);
    print_alias(p, k, v);
    int looked = 0;
    for (const Use *use = v->uses; use && looked < MOST_USES; use = use->next, looked++) print_refusal(p, k, use->node);
  }
}

static void print_slice_group(const ProgramSliceGroup *v, Text *out) {
  const SliceGroup *slices = v->slices;
  text_format(out, "kernels %u to %u go over %lld slices together:", v->first, v->end - 1, (long long)slices->nslices);
  for (int i = 0; i < slices->nlevels; i++) text_format(out, "%s%lld", i ? " x " : " ", (long long)slices->extent[i]);
  if (slices->block) text_format(out, ", blocks of %lld", (long long)slices->block);
  const char *before = "\n  between them, a slice at a time:";
  for (size_t i = 0; i < slices->ntensors; i++) {
    if (!slices->tensors[i].is_private) continue;
    text_add_string(out, before);
    print_name(slices->tensors[i].value->name, out);
    before = "";
  }
  text_add_string(out, "\n");
}

void program_print(const Program *p, Text *out) {
  Printing printing = {.program = p, .out = out};
  for (size_t i = 0; i < p->nkernels; i++) {
    const Kernel *k = p->schedules[i]->kernel;
    const ProgramSliceGroup *slice_group = program_slice_group(p, i);
    if (slice_group && slice_group->first == i) print_slice_group(slice_group, out);
    text_format(out, "kernel %zu: ", i);
    kernel_print_nodes(k, out);
    text_add_string(out, k->is_s64 ? ", in s64\n" : k->is_f64 ? ", in f64\n" : "\n");
    print_traffic(k, out);
    print_refusals(&printing, k);
    if (p->schedules[i]->shown) text_add_string(out, p->schedules[i]->shown);
    else schedule_print(p->schedules[i], out);
  }
  text_format(out, "workspace: %zu bytes, %zu without reuse\n", p->workspace_nbytes, p->unshared_nbytes);
}

size_t program_slot_nbytes(const Program *p, Type type, int64_t nelems, Monomial monomial) {
  enum { LARGEST_ELEMENT = 8 };
  const size_t nbytes = type_array_nbytes(type, (size_t)open_factor(p->graph, nelems, monomial));
  if (!monomial || nbytes >= (size_t)8 * LINE_NBYTES) return whole_lines(nbytes);
  return (nbytes + LARGEST_ELEMENT - 1) / LARGEST_ELEMENT * LARGEST_ELEMENT;
}
