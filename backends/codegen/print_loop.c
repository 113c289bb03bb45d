// One loop as C: a step function for a few outer iterations (or a tile), and a block function that runs its steps.
//
// Expressions are printed where they belong by the axes they vary over: not at all (constants), once a row (scalars),
// once an iteration of a middle axis, or for each vector. Within a level they follow each other in the order of their
// ids, which has operands before users.
#include "backends/codegen/loop_printer.h"

#include <stdio.h>
#include <string.h>

static void add_partial_parameters(LoopPrinter *l, bool is_call) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const char *type = l->loop->is_across ? "float" : element_type(l->k->accesses[root->access].type);
    if (is_call) text_format(l->out, ", part_%s", l->access_name[root->access]);
    else text_format(l->out, ", %s *part_%s", type, l->access_name[root->access]);
  }
}

static void print_streams(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_STORE && root->is_streamed) {
      print_indent(l);
      const Access *a = &l->k->accesses[root->access];
      const bool is_peeled = l->loop->is_peeled && root->sweep == l->loop->nsweeps - 1;
      text_format(l->out, "const int streams_%s = ", l->access_name[root->access]);
      if (is_peeled) text_add_string(l->out, "1");
      else {
        text_add_string(l->out, a->offset ? "(uintptr_t)(" : "(uintptr_t)");
        add_start(l, a);
        text_add_string(l->out, a->offset ? ") % 64 == 0" : " % 64 == 0");
      }
      if (root->stream_nelems)
        text_format(l->out, " && %s > %lld", bare_text(l->p, axes_text(l, access_axes(l->k, a))),
                    (long long)root->stream_nelems);
      text_add_string(l->out, ";\n");
    }
  }
}

static void print_wants(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_STORE && is_optional(l, root->access))
      print_line(l, "const int wants_%s = a->%s != NULL;", l->access_name[root->access],
                 access_member(l, &l->k->accesses[root->access]));
  }
}

// A step of the last rows of a block, fewer than lanes, stands beside that of whole vectors.
static void add_step_name(LoopPrinter *l) {
  text_format(l->out, "%s_kernel%zu_%s%zu", l->p->identifier, l->kernel_index, l->is_tail ? "rest" : "step",
              l->loop_index);
}

static void print_loop_comment(LoopPrinter *l) {
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_order(l->k, l->loop, &words);
  print_comment(l, "A step of the loop", &words);
  text_deinit(&words);
}

static void print_step(LoopPrinter *l) {
  print_loop_comment(l);
  text_add_string(l->out, "static inline ALWAYS_INLINE void ");
  add_step_name(l);
  text_format(l->out, "(\n    const struct %s_args *a", l->p->identifier);
  add_partial_parameters(l, false);
  text_format(l->out, "%s%s) {\n", l->loop->tile ? ", size_t begin, size_t end" : ", size_t o",
              has_rows(l)  ? ", const int rows"
              : l->is_tail ? ", int n"
                           : "");
  open_brace(l);
  Text body;
  begin_body(l, &body);
  need_all(l);
  bool mentions_o = has_rows(l) || mentioned_axes(l, 0);
  if (!l->loop->tile && !mentions_o) print_line(l, "(void)o;");
  print_wants(l);
  if (!l->is_tail) print_streams(l);
  bool is_ahead_needed = false;
  for (AccessId id = 0; l->loop->prefetch && id < l->k->naccesses; id++) is_ahead_needed |= is_prefetched(l, id);
  if (is_ahead_needed) {
    int rows = l->loop->prefetch;
    print_line(l, "const size_t ahead = o + %d <= %s ? %d : 0;", rows + l->loop->rows,
               axes_text(l, loop_outer_axes(l->loop)), rows);
    declare_distances(l);
  }
  for_each_pointer(l, declare_pointer);
  for (int i = 0; i < l->loop->nreused; i++)
    print_line(l, "float kept_%s[%lld];", l->name[l->loop->reused[i].expr],
               (long long)loop_row_nelems(l->k, l->loop) * (l->loop->is_across ? LANES : l->loop->rows));
  for (int sweep = 0; sweep <= l->loop->nsweeps; sweep++) {
    print_section(l, sweep);
    if (sweep < l->loop->nsweeps) print_sweep(l, sweep);
  }
  const bool mentions_a = strstr(text_string(&body), "a->");
  end_body(l, &body);
  if (!mentions_a) print_line(l, "(void)a; // of no elements nothing is read");
  close_brace(l);
  text_add_string(l->out, "\n");
}

static void print_partials(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &l->k->accesses[root->access];
    AxisSet axes = access_axes(l->k, a);
    const char *nelems = axes_text(l, axes);
    const char *name = l->access_name[root->access];
    if (l->loop->is_across) { // one for each lane
      nelems = number_text(l, axes_nelems(l->k, axes) * LANES, 0);
      print_line(l, "float part_%s[%s];", name, nelems);
    } else {
      const char *member = access_member(l, a);
      bool may_be_null = may_be_unwanted(l, root->access);
      const char *test = may_be_null ? arena_format(l->p->scratch, "a->%s ? ", member) : "";
      print_line(l, "%s *const part_%s = %sa->%s + block * %s%s;", element_type(a->type), name, test, member, nelems,
                 may_be_null ? " : NULL" : "");
    }
    if (!axes_nelems(l->k, axes)) continue;
    print_indent(l);
    add_part_test(l, root->access);
    text_format(l->out, "for (size_t i = 0; i < %s; i++) part_%s[i] = ", nelems, name);
    add_number(l, reductions[root_reduction(l, root)].identity, !l->loop->is_across && a->type == TYPE_F64);
    text_add_string(l->out, ";\n");
  }
}

// Where rows lie across lanes, a block's partial sums are those of its lanes.
static void print_lane_sums(LoopPrinter *l) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_OUTER) continue;
    const Access *a = &l->k->accesses[root->access];
    const char *nelems = axes_text(l, access_axes(l->k, a));
    print_indent(l);
    if (may_be_unwanted(l, root->access)) text_format(l->out, "if (a->%s) ", access_member(l, a));
    text_format(l->out, "for (size_t i = 0; i < %s; i++)\n", nelems);
    print_line(l, "  a->%s[block * %s + i] = (%s)d_%s(d_from_v(v_load(part_%s + i * %d)));", access_member(l, a),
               nelems, element_type(a->type), expr_info[root_reduction(l, root)].name, l->access_name[root->access],
               LANES);
  }
}

static void print_block_range(LoopPrinter *l) {
  const Loop *loop = l->loop;
  const char *total = axes_text(l, loop_cut_axes(loop)), *length = block_text(l);
  bool has_partials = false;
  for (size_t i = 0; i < loop->nroots; i++) has_partials |= loop->roots[i].kind == ROOT_REDUCE_OUTER;
  if (!loop->nkept && !loop_has_open_chunks(l->k, loop) && loop_nblocks(l->k, loop) == 1) {
    if (!has_partials) print_line(l, "(void)block; // there is but one");
    print_line(l, "const size_t begin = 0, end = %s;", total);
  } else if (loop->nkept) {
    const char *chunks = chunks_text(l, (uint32_t)l->loop_index);
    if (strcmp(chunks, "0") == 0 || strcmp(chunks, "1") == 0) {
      print_line(l, "const size_t begin = block * %s, end = begin + %s;", total, total);
      return;
    }
    print_line(l, "const size_t start = block / %s * %s, chunk = block %% %s * %s;", chunks, total, chunks, length);
    print_line(l, "const size_t begin = start + chunk, end = start + (chunk + %s < %s ? chunk + %s : %s);", length,
               total, length, total);
  } else {
    print_line(l, "const size_t begin = block * %s, end = begin + %s < %s ? begin + %s : %s;", length, length, total,
               length, total);
  }
}

static void add_step_call(LoopPrinter *l, const char *range, const char *rows) {
  add_step_name(l);
  text_add_string(l->out, "(a");
  add_partial_parameters(l, true);
  text_format(l->out, ", %s%s);\n", range, rows);
}

static void print_block(LoopPrinter *l) {
  const Loop *loop = l->loop;
  const char *id = l->p->identifier;
  bool has_streams = false;
  for (size_t i = 0; i < loop->nroots; i++) has_streams |= loop->roots[i].is_streamed;
  print_line(l, "static void %s_kernel%zu_loop%zu(const void *args, size_t block) {", id, l->kernel_index,
             l->loop_index);
  open_brace(l);
  print_line(l, "const struct %s_args *a = (const struct %s_args *)args;", id, id);
  Text body;
  begin_body(l, &body);
  print_block_range(l);
  print_partials(l);
  if (loop->tile) {
    print_indent(l);
    add_step_call(l, "begin, end", "");
  } else if (loop->is_across) {
    print_line(l, "size_t o = begin;");
    print_indent(l);
    text_format(l->out, "for (; o + %d <= end; o += %d) ", LANES, LANES);
    add_step_call(l, "o", "");
    print_indent(l);
    text_add_string(l->out, "if (o < end) ");
    l->is_tail = true;
    add_step_call(l, "o, (int)(end - o)", "");
    l->is_tail = false;
    print_lane_sums(l);
  } else {
    print_line(l, "size_t o = begin;");
    if (has_rows(l)) {
      print_indent(l);
      text_format(l->out, "for (; o + %d <= end; o += %d) ", loop->rows, loop->rows);
      char rows[16];
      snprintf(rows, sizeof rows, ", %d", loop->rows);
      add_step_call(l, "o", rows);
    }
    print_indent(l);
    text_add_string(l->out, "for (; o < end; o++) ");
    add_step_call(l, "o", has_rows(l) ? ", 1" : "");
  }
  if (has_streams) print_line(l, "v_fence();");
  end_body(l, &body);
  close_brace(l);
  text_add_string(l->out, "\n");
}

// As what it reaches, with a number where the loop reaches that in several ways.
static void name_access(LoopPrinter *l, AccessId id, NameSet *taken) {
  const Access *a = &l->k->accesses[id];
  const char *own = a->value               ? access_member(l, a)
                    : a->type == TYPE_NONE ? "place"
                                           : l->k->temporaries[a->temporary].name;
  if (!l->access_name[id]) l->access_name[id] = print_local_name(l->p, own, taken, id);
}

static bool prepare(LoopPrinter *l) {
  Arena *scratch = l->p->scratch;
  size_t n = l->k->nexprs;
  NameSet taken = {0}, taken_by_accesses = {0};
  l->name = ARENA_ARRAY(scratch, const char *, n + MAX_OPEN_DIMS);
  l->access_name = ARENA_ARRAY(scratch, const char *, l->k->naccesses + 1);
  l->nuses = ARENA_ARRAY(scratch, uint32_t, n);
  l->time = ARENA_ARRAY(scratch, int, n);
  l->is_needed = ARENA_ARRAY(scratch, bool, n);
  if (!l->name || !l->access_name || !l->nuses || !l->time || !l->is_needed) return false;
  for (size_t i = 0; i < l->loop->nroots; i++) need_expr(l, root_operand(l, &l->loop->roots[i]));
  for (ExprId id = 1; id < n; id++)
    if (l->is_needed[id] || is_row_sum(l, id)) l->name[id] = print_local_name(l->p, l->k->exprs[id].label, &taken, id);
  for (ExprId id = 1; id < n; id++)
    if (l->is_needed[id] && expr_has_access(&l->k->exprs[id]))
      name_access(l, l->k->exprs[id].access, &taken_by_accesses);
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind != ROOT_REDUCE_INNER) name_access(l, l->loop->roots[i].access, &taken_by_accesses);
  for (size_t i = 0; l->k->graph && i < l->k->graph->ndims; i++)
    l->name[n + i] = print_local_name(l->p, l->k->graph->dims[i]->name, &taken, i);
  find_times(l);
  return true;
}

// With a scratch arena of its own, for all names and texts are this loop's.
void print_loop_functions(Printer *printer, size_t kernel, size_t loop) {
  const Kernel *k = printer->program->kernels[kernel];
  Arena scratch;
  Printer own = *printer, *p = &own;
  arena_init(&scratch, printer->scratch->allocator);
  own.scratch = &scratch;
  LoopPrinter l = {.p = p, .out = p->out, .k = k, .loop = &k->loops[loop], .kernel_index = kernel, .loop_index = loop};
  l.vec = k->is_f64 ? "dvec" : "vec";
  l.scalar = k->is_f64 ? "double" : "float";
  l.mask = k->is_f64 ? "dmask" : "mask";
  l.prefix = k->is_f64 ? 'd' : 'v';
  const bool ok = prepare(&l);
  if (ok) print_callables(&l);
  if (ok) print_step(&l);
  l.is_tail = l.loop->is_across;
  if (ok && l.is_tail) print_step(&l);
  l.is_tail = false;
  if (ok) print_block(&l);
  printer->out_of_memory |= !ok || own.out_of_memory;
  memcpy(printer->is_callable, own.is_callable, sizeof own.is_callable);
  arena_deinit(&scratch);
}
