// Profiles of kernels: operators and source lines, bytes, and times from samples.
#include "frontend/api/profile.h"

#include "frontend/api/timing.h"
#include "ir/operators/operator.h"
#include "passes/schedule/order/traffic.h"

#include <stdlib.h>

// Building

static const char *text_keep(Arena *arena, Text *text) {
  const char *copy = text->out_of_memory ? NULL : arena_copy_text(arena, text_string(text), text->nbytes);
  text_deinit(text);
  return copy;
}

static bool describe_node(Arena *arena, const Node *node, ng_profile_node *shown) {
  const Position *places = node->norigins ? node->origins : &node->position;
  size_t nplaces = node->norigins ? node->norigins : 1;
  unsigned *lines = ARENA_ARRAY(arena, unsigned, nplaces);
  if (!lines) return false;
  *shown = (ng_profile_node){.name = node->op->name, .lines = lines};
  for (size_t i = 0; i < nplaces; i++) // in the file's order
    if (places[i].line && (!i || places[i].line != places[i - 1].line)) lines[shown->nlines++] = places[i].line;
  return true;
}

static bool describe_loop(Arena *arena, const Schedule *s, const Loop *loop, ng_profile_loop *shown) {
  Traffic traffic;
  Text text;
  if (!loop_tensor_nbytes(s, loop, &traffic)) return false;
  text_init(&text, arena->allocator);
  for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
    if (sweep) text_add_string(&text, "; ");
    loop_print_sweep(s, loop, sweep, &text);
  }
  *shown = (ng_profile_loop){.text = text_keep(arena, &text),
                             .bytes_read = (uint64_t)traffic.read,
                             .bytes_written = (uint64_t)traffic.written,
                             .nblocks = loop->is_serial ? 1 : (uint64_t)loop_nblocks(s->kernel, loop)};
  return shown->text;
}

static bool describe_kernel(Arena *arena, const Schedule *s, size_t index, ng_profile_loop *loops,
                            ng_profile_kernel *shown) {
  const Kernel *k = s->kernel;
  const Traffic traffic = kernel_tensor_nbytes(k);
  ng_profile_node *nodes = ARENA_ARRAY(arena, ng_profile_node, k->nnodes + 1);
  double operations;
  Text text;
  if (!nodes || !kernel_count_operations(k, arena, &operations)) return false;
  for (size_t i = 0; i < k->nnodes; i++)
    if (!describe_node(arena, k->nodes[i], &nodes[i])) return false;
  for (size_t i = 0; i < s->nloops; i++)
    if (!describe_loop(arena, s, &s->loops[i], &loops[i])) return false;
  text_init(&text, arena->allocator);
  kernel_print_nodes(k, &text);
  *shown = (ng_profile_kernel){.text = text_keep(arena, &text),
                               .nodes = nodes,
                               .nnodes = k->nnodes,
                               .bytes_read = (uint64_t)traffic.read,
                               .bytes_written = (uint64_t)traffic.written,
                               .operations = operations,
                               .bound = "",
                               .with = index,
                               .loops = loops,
                               .nloops = s->nloops,
                               .nblocks = s->nloops == 1 ? loops[0].nblocks : 0};
  return shown->text;
}

// Adds the numbers of all kernels that process slices together to the first of them. Bytes count only tensors that
// other kernels can see.
static void join_slice_group(Profile *profile, const ProgramSliceGroup *slice_group) {
  ng_profile_kernel *first = &profile->kernels[slice_group->first];
  first->bytes_read = first->bytes_written = 0;
  first->nblocks = (uint64_t)slice_group->nchunks;
  for (size_t i = 0; i < slice_group->slices->ntensors; i++) {
    const SlicedTensor *tensor = &slice_group->slices->tensors[i];
    const Value *v = tensor->value;
    const uint64_t nbytes = value_nbytes(v);
    if (!tensor->is_private) *(tensor->is_stored ? &first->bytes_written : &first->bytes_read) += nbytes;
  }
  for (size_t i = slice_group->first; i < slice_group->end; i++) {
    ng_profile_kernel *k = &profile->kernels[i];
    k->nloops = 0;
    if (k == first) continue;
    first->operations += k->operations;
    k->operations = 0;
    k->bytes_read = k->bytes_written = 0;
    k->with = slice_group->first;
  }
}

static bool describe_program(Profile *profile, const Program *p) {
  Arena *arena = &profile->arena;
  for (size_t i = 0; i < p->nkernels; i++) profile->nloops += p->schedules[i]->nloops;
  profile->kernels = ARENA_ARRAY(arena, ng_profile_kernel, p->nkernels + 1);
  profile->loops = ARENA_ARRAY(arena, ng_profile_loop, profile->nloops + 1);
  profile->nsamples = ARENA_ARRAY(arena, size_t, p->nkernels + 1);
  if (!profile->kernels || !profile->loops || !profile->nsamples) return false;
  ng_profile_loop *loops = profile->loops;
  for (size_t i = 0; i < p->nkernels; i++) {
    if (!describe_kernel(arena, p->schedules[i], i, loops, &profile->kernels[i])) return false;
    loops += profile->nsamples[i] = p->schedules[i]->nloops;
  }
  for (size_t i = 0; i < p->nslice_groups; i++) join_slice_group(profile, &p->slice_groups[i]);
  profile->shown.kernels = profile->kernels;
  profile->shown.nkernels = p->nkernels;
  return true;
}

Profile *profile_new(const Program *p, const Allocator *allocator) {
  Profile *profile = allocator_alloc(allocator, sizeof *profile);
  if (!profile) return NULL;
  *profile = (Profile){0};
  arena_init(&profile->arena, allocator);
  if (describe_program(profile, p)) return profile;
  profile_free(profile);
  return NULL;
}

void profile_free(Profile *profile) {
  if (!profile) return;
  const Allocator *allocator = profile->arena.allocator;
  allocator_free(allocator, profile->spans);
  arena_deinit(&profile->arena);
  allocator_free(allocator, profile);
}

// Times

size_t profile_sample_length(const Profile *profile) {
  return 1 + profile->nloops;
}

void profile_set(Profile *profile, double *samples, size_t nsamples) {
  const size_t length = profile_sample_length(profile), first = nsamples * 2 / 5, count = nsamples - 2 * first;
  qsort(samples, nsamples, length * sizeof *samples, compare_numbers);
  double *mean = samples; // the mean of each number
  for (size_t i = 0; i < length; i++) {
    double sum = 0;
    for (size_t s = first; s < first + count; s++) sum += samples[s * length + i];
    mean[i] = sum / (double)count;
  }
  profile->shown.ms = profile->shown.other_ms = mean[0];
  for (size_t i = 0, loop = 0; i < profile->shown.nkernels; i++) {
    ng_profile_kernel *k = &profile->kernels[i];
    k->ms = 0;
    for (size_t l = 0; l < profile->nsamples[i]; l++, loop++) {
      profile->loops[loop].ms = mean[1 + loop];
      profile->kernels[k->with].ms += mean[1 + loop];
      profile->shown.other_ms -= mean[1 + loop];
    }
  }
}

// Finds the loop, by kernel, for a part of the program; false: the part is not a loop.
static bool find_loop(const Profile *profile, size_t part, ng_span *span) {
  size_t loop = part - 1;
  if (!part) return false;
  for (size_t i = 0; i < profile->shown.nkernels; loop -= profile->nsamples[i++]) {
    if (loop >= profile->nsamples[i]) continue;
    span->kernel = i;
    span->loop = loop;
    return true;
  }
  return false;
}

static int compare_spans(const void *a, const void *b) {
  const ng_span *x = a, *y = b;
  if (x->kernel != y->kernel) return x->kernel < y->kernel ? -1 : 1;
  if (x->loop != y->loop) return x->loop < y->loop ? -1 : 1;
  return x->thread - y->thread;
}

bool profile_set_spans(Profile *profile, const Span *spans, size_t count) {
  const Allocator *allocator = profile->arena.allocator;
  ng_span *copy = allocator_alloc(allocator, (count + 1) * sizeof *copy);
  if (!copy) return false;
  allocator_free(allocator, profile->spans);
  profile->spans = copy;
  profile->nspans = 0;
  for (size_t i = 0; i < count; i++) {
    ng_span span = {.thread = spans[i].thread,
                    .nblocks = spans[i].nblocks,
                    .begin_ms = spans[i].begin_ms,
                    .end_ms = spans[i].end_ms};
    if (find_loop(profile, spans[i].part, &span)) copy[profile->nspans++] = span;
  }
  qsort(copy, profile->nspans, sizeof *copy, compare_spans);
  return true;
}

static const char *bound_of(const ng_profile_kernel *k, double ceiling_rate, double peak_rate) {
  const double near = 0.5; // no kernel is near both bounds, and few tuned kernels are below
  if (!(k->ms > 0) || !(ceiling_rate > 0) || !(peak_rate > 0)) return "";
  const double memory = (double)(k->bytes_read + k->bytes_written) / k->ms / ceiling_rate;
  const double arithmetic = k->operations / k->ms / peak_rate;
  if (memory < near && arithmetic < near) return "neither";
  return memory >= arithmetic ? "memory" : "arithmetic";
}

void profile_set_bounds(Profile *profile, double ceiling_rate, double peak_rate) {
  for (size_t i = 0; i < profile->shown.nkernels; i++)
    profile->kernels[i].bound = bound_of(&profile->kernels[i], ceiling_rate, peak_rate);
}
