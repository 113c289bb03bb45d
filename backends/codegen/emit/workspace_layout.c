// Prints IDENTIFIER_layout, which computes, once in a call, numbers that depend on open dims: the length and number of
// blocks, and addresses in the workspace. The workspace begins with one arena per monomial, for the values between
// kernels whose sizes are multiples of that monomial. After the arenas come temporaries; all kernels use the same
// memory for their temporaries.
#include "backends/codegen/emit/workspace_layout.h"

#include "backends/codegen/print/types.h"
#include "ir/graph/open_dims.h"

#include <stdlib.h>
#include <string.h>

static const char *checked(Printer *p, const char *text) {
  p->out_of_memory |= !text;
  return text ? text : "1";
}

const char *size_text(Printer *p, int64_t number, Monomial monomial, const char *args) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; monomial && i < p->program->graph->ndims; i++)
    names[i] = checked(p, arena_format(p->scratch, "%s%s", args, p->dim_member[i]));
  return open_number_text(p, number, monomial, names);
}

const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args) {
  const Schedule *schedule = p->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *l = &schedule->loops[loop];
  const AxisSet free_axes = loop_outer_axes(l) & ~loop_cut_axes(l);
  if (!loop_has_open_cut_blocks(k, l)) return size_text(p, loop_nblocks(k, l), axes_monomial(k, free_axes), args);
  const char *chunks = checked(p, arena_format(p->scratch, "%sk%zu_loop%zu_chunks", args, kernel, loop));
  if (!free_axes) return chunks;
  const char *times = size_text(p, axes_nelems(k, free_axes), axes_monomial(k, free_axes), args);
  return checked(p, arena_format(p->scratch, "%s * %s", times, chunks));
}

const char *temporary_text(Printer *p, size_t kernel, size_t temporary, size_t nbytes_each, const char *args) {
  const Schedule *schedule = p->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Temporary *t = &schedule->temporaries[temporary];
  const int64_t nbytes = t->nelems * (int64_t)nbytes_each;
  if (t->reduction == EXPR_NONE) return size_text(p, nbytes, t->monomial, args);
  const Loop *loop = &schedule->loops[t->loop];
  const int64_t nblocks = loop_nblocks(k, loop);
  if (!nblocks || !p->program->graph->ndims) return size_text(p, nbytes, t->monomial, args);
  const char *each = size_text(p, nbytes / nblocks, t->monomial, args);
  const char *blocks = nblocks_text(p, kernel, t->loop, args);
  return checked(p, arena_format(p->scratch, "%s * %s", each, blocks));
}

static bool is_literal(const char *text) {
  return *text >= '0' && *text <= '9' && !text[strspn(text, "0123456789")];
}

static void print_blocks(Printer *p, size_t kernel, size_t loop) {
  const Schedule *schedule = p->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *l = &schedule->loops[loop];
  const AxisSet cut = loop_cut_axes(l), all = loop_inner_axes(l) | cut;
  if (!loop_has_open_cut_blocks(k, l)) return;
  const char *length = size_text(p, l->tile ? l->tile : l->block, 0, "");
  const char *total = bare_text(p, size_text(p, axes_nelems(k, cut), axes_monomial(k, cut), "a->"));
  if (loop_has_open_length(k, l)) length = checked(p, arena_format(p->scratch, "a->k%zu_loop%zu_block", kernel, loop));
  if (l->few_work)
    text_format(p->plain, "  %s = %s <= %lld ? %lld : %lld;\n", length,
                bare_text(p, size_text(p, axes_nelems(k, all), axes_monomial(k, all), "a->")), (long long)l->few_work,
                (long long)l->few_block, (long long)l->many_block);
  else if (l->most_cut_blocks) text_format(p->plain, "  %s = %lld;\n", length, (long long)l->block);
  if (l->most_cut_blocks)
    text_format(p->plain, "  if (%s < (%s + %lld) / %lld) %s = (%s + %lld) / %lld;\n", length, total,
                (long long)l->most_cut_blocks - 1, (long long)l->most_cut_blocks, length, total,
                (long long)l->most_cut_blocks - 1, (long long)l->most_cut_blocks);
  text_format(p->plain, "  a->k%zu_loop%zu_chunks = (%s + %s - 1) / %s;\n", kernel, loop, total, length, length);
}

// Assignments of addresses that wait in `lines`, so that they are printed under one "if (memory)".
typedef struct Places {
  Text lines;
  size_t count;
} Places;

static void add_place(Printer *p, Places *places, const char *member, Type type, const char *offset) {
  text_format(&places->lines, "a->%s = (%s *)(void *)(memory + at%s%s);\n", member, element_type(type),
              strcmp(offset, "0") != 0 ? " + " : "", strcmp(offset, "0") != 0 ? offset : "");
  places->count++;
  p->out_of_memory |= places->lines.out_of_memory;
}

static void print_places(Printer *p, Places *places) {
  const char *line = text_string(&places->lines);
  if (places->count == 1) text_format(p->plain, "  if (memory) %s", line);
  if (places->count > 1) text_add_string(p->plain, "  if (memory) {\n");
  for (const char *end; places->count > 1 && *line; line = end + 1) {
    end = strchr(line, '\n');
    text_format(p->plain, "    %.*s\n", (int)(end - line), line);
  }
  if (places->count > 1) text_add_string(p->plain, "  }\n");
  places->lines.nbytes = 0;
  places->count = 0;
}

// Advances the end of the workspace, `at`, by the bytes of the places before, rounded up to whole cache lines. Returns
// the number of these bytes if it is a constant, else 0.
static size_t print_take(Printer *p, Places *places, const char *nbytes) {
  p->has_open_workspace |= !is_literal(nbytes);
  if (strcmp(nbytes, "0") == 0) return 0;
  print_places(p, places);
  const char *cast = *nbytes == '(' ? "" : "(uint64_t)"; // the dims in a product are cast already
  text_format(p->plain, "  at += (%s%s + 63) / 64 * 64;\n", cast, bare_text(p, nbytes));
  return is_literal(nbytes) ? (size_t)(strtoull(nbytes, NULL, 10) + 63) / 64 * 64 : 0;
}

static size_t print_arenas(Printer *p, Places *places) {
  size_t nbytes = 0;
  const Program *program = p->program;
  const Graph *g = program->graph;
  for (size_t i = 0; i < program->narenas; i++) {
    const MonomialArena *arena = &program->arenas[i];
    const int64_t hint = monomial_value(g, arena->monomial, NULL);
    for (size_t v = 0; v < g->nvalues; v++)
      if (program->is_in_workspace[v] && shape_monomial(&g->values[v]->shape) == arena->monomial)
        add_place(p, places, p->value_member[v], g->values[v]->type,
                  size_text(p, (int64_t)program->value_offset[v] * hint, program->value_offset[v] ? arena->monomial : 0,
                            "a->"));
    nbytes += print_take(p, places, size_text(p, (int64_t)arena->nbytes * hint, arena->monomial, "(uint64_t)a->"));
  }
  return nbytes;
}

bool output_has_memory(const Printer *p, size_t i) {
  const Graph *g = p->program->graph;
  return p->has_optional_outputs && p->liveness->is_read_again[g->outputs[i]->index] && !output_is_update(g, i);
}

static size_t print_outputs(Printer *p, Places *places) {
  size_t nbytes = 0;
  const Graph *g = p->program->graph;
  for (size_t i = 0; i < g->noutputs; i++) {
    const Value *v = g->outputs[i];
    if (program_copies_output(p->program, i) || !output_has_memory(p, i)) continue;
    add_place(p, places, p->value_member[v->index], v->type, "0");
    nbytes += print_take(p, places,
                         size_text(p, shape_nelems(&v->shape) * (int64_t)type_nbytes(v->type),
                                   shape_monomial(&v->shape), "(uint64_t)a->"));
  }
  return nbytes;
}

static bool takes_any(Printer *p, size_t kernel) {
  const Schedule *s = p->program->schedules[kernel];
  for (size_t t = 0; t < s->ntemporaries; t++)
    if (!s->temporaries[t].is_own && strcmp(temporary_text(p, kernel, t, 1, "a->"), "0") != 0) return true;
  return false;
}

void print_layout(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  bool has_temporaries = false;
  text_format(p->plain,
              "static uint64_t %s_layout(struct %s_args *a, const int64_t *extents, unsigned char *memory) {\n"
              "  uint64_t at = 0;\n",
              p->identifier, p->identifier);
  for (size_t i = 0; i < program->nkernels; i++) has_temporaries |= takes_any(p, i);
  if (has_temporaries) text_add_string(p->plain, "  uint64_t start, most;\n");
  for (size_t i = 0; i < g->ndims; i++) text_format(p->plain, "  a->%s = (size_t)extents[%zu];\n", p->dim_member[i], i);
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t l = 0; l < program->schedules[i]->nloops; l++) print_blocks(p, i, l);
  const size_t begin = p->plain->nbytes;
  Places places = {.count = 0};
  text_init(&places.lines, p->plain->allocator);
  size_t nbytes = print_arenas(p, &places) + print_outputs(p, &places), most = 0;
  if (has_temporaries) text_add_string(p->plain, "  start = most = at;\n");
  for (size_t i = 0; i < program->nkernels; i++) {
    const Schedule *schedule = program->schedules[i];
    if (takes_any(p, i)) text_format(p->plain, "  at = start; /* temporaries of kernel %zu */\n", i);
    size_t own = 0;
    for (size_t t = 0; t < schedule->ntemporaries; t++) {
      if (schedule->temporaries[t].is_own) continue;
      add_place(p, &places, *temporary_member(p, i, t), schedule->temporaries[t].type, "0");
      own +=
          print_take(p, &places, temporary_text(p, i, t, type_nbytes(schedule->temporaries[t].type), "(uint64_t)a->"));
    }
    if (takes_any(p, i)) text_add_string(p->plain, "  if (at > most) most = at;\n");
    if (own > most) most = own;
  }
  p->workspace_nbytes = nbytes + most;
  print_places(p, &places);
  text_deinit(&places.lines);
  if (!strstr(text_string(p->plain) + begin, "if (memory)")) text_add_string(p->plain, "  (void)memory;\n");
  text_format(p->plain, "  return %s;\n}\n\n", has_temporaries ? "most" : "at");
}
