// Prints IDENTIFIER_layout, which computes, once in a call, numbers that depend on open dims: the length and number of
// blocks, and addresses in the workspace (ir/kernel/workspace.h).
#include "backends/codegen/emit/emit.h"

const char *product_text(Printer *p, int64_t number, Monomial monomial, const char *args, bool is_bare) {
  const char *names[MAX_OPEN_DIMS] = {NULL};
  for (size_t i = 0; monomial && i < p->program->graph->ndims; i++)
    names[i] = checked(p, arena_format(p->scratch, "%s%s", args, p->dim_member[i]));
  return open_number_text(p, number, monomial, names, is_bare);
}

const char *nelems_text(Printer *p, const Kernel *k, AxisSet axes) {
  return product_text(p, axes_nelems(k, axes), axes_monomial(k, axes), "a->", true);
}

const char *nblocks_text(Printer *p, size_t kernel, size_t loop, const char *args) {
  const Schedule *schedule = p->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *l = &schedule->loops[loop];
  const AxisSet batch_axes = loop_outer_axes(l) & ~loop_cut_axes(l);
  const Monomial monomial = axes_monomial(k, batch_axes);
  if (!loop_has_open_cut_blocks(k, l)) return product_text(p, loop_nblocks(k, l), monomial, args, false);
  const char *blocks = checked(p, arena_format(p->scratch, "%sk%zu_loop%zu_blocks", args, kernel, loop));
  if (!batch_axes) return blocks;
  const char *times = product_text(p, axes_nelems(k, batch_axes), monomial, args, false);
  return checked(p, arena_format(p->scratch, "%s * %s", times, blocks));
}

const char *size_text(Printer *p, const OpenSize *size, const char *args, bool is_bare) {
  const char *each = product_text(p, size->number, size->monomial, args, is_bare && !size->has_blocks);
  if (!size->has_blocks) return each;
  return checked(p, arena_format(p->scratch, "%s * %s", each, nblocks_text(p, size->kernel, size->loop, args)));
}

// Prints the statements that compute a loop's block length and number of blocks from open dims.
static void print_blocks(Printer *p, size_t kernel, size_t loop) {
  const Schedule *schedule = p->program->schedules[kernel];
  const Kernel *k = schedule->kernel;
  const Loop *l = &schedule->loops[loop];
  const AxisSet cut = loop_cut_axes(l);
  if (!loop_has_open_cut_blocks(k, l)) return;
  const char *length = product_text(p, l->cut.length, 0, "", true), *total = nelems_text(p, k, cut);
  const long long most = l->cut.most, longest = l->cut.longest;
  if (loop_has_open_length(k, l)) length = checked(p, arena_format(p->scratch, "a->k%zu_loop%zu_block", kernel, loop));
  if (loop_has_open_length(k, l)) {
    text_format(p->plain, "  %s = ((%s + %lld) / %lld + %d) / %d * %d;\n", length, total, most - 1, most, LANES - 1,
                LANES, LANES);
    if (l->cut.longest) text_format(p->plain, "  if (%s > %lld) %s = %lld;\n", length, longest, length, longest);
    text_format(p->plain, "  if (%s < %lld) %s = %lld;\n", length, (long long)l->cut.length, length,
                (long long)l->cut.length);
  }
  text_format(p->plain, "  a->k%zu_loop%zu_blocks = (%s + %s - 1) / %s;\n", kernel, loop, total, length, length);
}

static void print_place(Printer *p, const WorkspaceRow *row) {
  const Value *v = row->value;
  const Type type = v ? v->type : p->program->schedules[row->kernel]->temporaries[row->temporary].type;
  const char *member = v ? p->value_member[v->index] : *temporary_member(p, row->kernel, row->temporary);
  text_format(p->plain, "a->%s = (%s *)(void *)(memory + at%s%s);\n", member, element_types[type].name,
              row->size.number ? " + " : "", row->size.number ? size_text(p, &row->size, "a->", false) : "");
}

static bool is_printed(const Printer *p, const WorkspaceRow *row) {
  return p->program->has_optional_outputs || !row->is_for_optional;
}

// Prints the places among the rows, under one "if (memory)". Returns their number.
static size_t print_places(Printer *p, const WorkspaceRow *rows, const WorkspaceRow *end) {
  size_t count = 0, n = 0;
  for (const WorkspaceRow *row = rows; row < end; row++) count += !row->kind && is_printed(p, row);
  for (const WorkspaceRow *row = rows; row < end; row++) {
    if (row->kind || !is_printed(p, row)) continue;
    text_add_string(p->plain, n++ ? "    " : count > 1 ? "  if (memory) {\n    " : "  if (memory) ");
    print_place(p, row);
  }
  if (count > 1) text_add_string(p->plain, "  }\n");
  return count;
}

// Advances the end of the workspace. Returns the number of bytes if it is a constant, else 0.
static size_t print_advance(Printer *p, const OpenSize *size) {
  const bool is_constant = !size->monomial && !size->has_blocks;
  const char *cast = size->monomial ? "" : "(uint64_t)"; // the dims in a product are cast already
  p->has_open_workspace |= !is_constant;
  text_format(p->plain, "  at += (%s%s + %d) / %d * %d;\n", cast, size_text(p, size, "(uint64_t)a->", true),
              LINE_NBYTES - 1, LINE_NBYTES, LINE_NBYTES);
  return is_constant ? whole_lines((size_t)size->number) : 0;
}

static void print_start(Printer *p, const WorkspaceRow *row) {
  text_add_string(p->plain, "  at = start");
  if (row->size.number)
    text_format(p->plain, " + (%s%s + %d) / %d * %d", row->size.monomial ? "" : "(uint64_t)",
                size_text(p, &row->size, "(uint64_t)a->", true), LINE_NBYTES - 1, LINE_NBYTES, LINE_NBYTES);
  text_format(p->plain, "; /* temporaries of kernel %u */\n", (unsigned)row->kernel);
}

// Prints the statements that lay out the workspace. Places wait until their arena is known.
static void print_rows(Printer *p) {
  const OpenWorkspace *w = &p->program->open_workspace;
  const WorkspaceRow *begin = w->rows, *end = w->rows + w->nrows; // begin: of places that wait to be printed
  size_t at = 0, start = 0, most = 0, nplaces = 0;                // constant parts of the emitted variables
  for (const WorkspaceRow *row = w->rows; row < end; row++) {
    if (!is_printed(p, row)) continue;
    switch (row->kind) {
    case WORKSPACE_PLACE: break;
    case WORKSPACE_ADVANCE:
      nplaces += print_places(p, begin, row);
      at += print_advance(p, &row->size);
      begin = row + 1;
      break;
    case WORKSPACE_TEMPORARIES:
      text_add_string(p->plain, "  start = most = at;\n");
      start = most = at;
      break;
    case WORKSPACE_KERNEL:
      print_start(p, row);
      at = start + (row->size.monomial ? 0 : whole_lines((size_t)row->size.number));
      break;
    case WORKSPACE_END_KERNEL:
      text_add_string(p->plain, "  if (at > most) most = at;\n");
      if (at > most) most = at;
      break;
    }
  }
  nplaces += print_places(p, begin, end);
  if (!nplaces) text_add_string(p->plain, "  (void)memory;\n");
  p->workspace_nbytes = w->has_temporaries ? most : at;
}

void print_layout(Printer *p) {
  const Program *program = p->program;
  const Graph *g = program->graph;
  const bool has_temporaries = program->open_workspace.has_temporaries;
  part_begin_named(p->parts, p->plain, "%s_layout", p->identifier);
  text_format(p->plain,
              "static uint64_t %s_layout(struct %s_args *a, const int64_t *extents, unsigned char *memory) {\n"
              "  uint64_t at = 0;\n%s",
              p->identifier, p->identifier, has_temporaries ? "  uint64_t start, most;\n" : "");
  for (size_t i = 0; i < g->ndims; i++) text_format(p->plain, "  a->%s = (size_t)extents[%zu];\n", p->dim_member[i], i);
  for (size_t i = 0; i < program->nkernels; i++)
    for (size_t l = 0; l < program->schedules[i]->nloops; l++) print_blocks(p, i, l);
  print_rows(p);
  text_format(p->plain, "  return %s;\n}\n\n", has_temporaries ? "most" : "at");
}
