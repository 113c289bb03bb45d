// A sweep: the loops around its vectors, and the sums that it makes of a row.
//
// Sums are kept in chains short enough for f32: a row's elements go by runs, of each of which the sum enters a total in
// f64.
#include "backends/codegen/loop_printer.h"

enum { LONGEST_RUN = 24 }; // additions in a chain before sums move to f64; the rest may add a few more

typedef struct Runs { // how a sweep's additions are kept in short chains
  bool has_sums, has_totals;
  int64_t vector_run; // elements of the innermost axis in a run; 0: all of them
  int64_t middle_run; // iterations of the last middle axis in a run; 0: all
  bool is_open;       // middle_run is made when it is called, by the chain of an iteration
} Runs;

// The greatest of numbers is one of them: no run of it is too long.
static bool is_exact_in_f32(const LoopPrinter *l, ExprId id) {
  return !l->k->is_f64 && l->k->exprs[id].op == EXPR_REDUCE_MAXIMUM;
}

// Whether a sweep adds up vectors: sums of any kind, or such as must be kept in short chains.
static bool has_sums_in(const LoopPrinter *l, int sweep, bool must_be_short) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (is_vector_sum(l, root) && root->sweep == sweep && !(must_be_short && is_exact_in_f32(l, root->expr)))
      return true;
  }
  return false;
}

static AxisSet middle_axes(const LoopPrinter *l) {
  return loop_inner_axes(l->loop) & ~(1U << loop_vector_axis(l->loop));
}

// One run has the bits of no runs at all, so that where extents are open they may always be there.
static Runs plan_runs(const LoopPrinter *l, int sweep) {
  const Loop *loop = l->loop;
  Runs runs = {.has_sums = has_sums_in(l, sweep, false)};
  if (!has_sums_in(l, sweep, true) || l->k->is_f64 || loop->is_across) return runs; // across lanes, rows are short
  const Axis *vector = &l->k->axes[loop_vector_axis(loop)];
  int64_t width = loop->tile ? loop->tile : vector->extent, group = (int64_t)LANES * loop->accumulators;
  int64_t chain = width / group + width % group / LANES + (width % LANES != 0); // the first accumulator takes the rest
  AxisSet middle = loop->is_nested ? 0 : middle_axes(l);                        // whose iterations a chain goes through
  bool is_open = axes_powers(l->k, middle), is_vector_open = !loop->tile && vector->powers;
  if (is_vector_open && middle) runs.is_open = true;
  else if (is_vector_open || chain > LONGEST_RUN) runs.vector_run = LONGEST_RUN * group;
  else if (chain * axes_nelems(l->k, middle) > LONGEST_RUN || (is_open && chain)) runs.middle_run = LONGEST_RUN / chain;
  runs.has_totals = runs.vector_run || runs.middle_run || runs.is_open;
  return runs;
}

static void for_each_sum(LoopPrinter *l, int sweep, void (*f)(LoopPrinter *, ExprId)) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (is_vector_sum(l, &l->loop->roots[i]) && l->loop->roots[i].sweep == sweep) f(l, l->loop->roots[i].expr);
}

// The sums over the middle axes of a nested loop.
static void for_each_middle_sum(LoopPrinter *l, int sweep, void (*f)(LoopPrinter *, ExprId)) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER && root->sweep == sweep && !is_vector_sum(l, root)) f(l, root->expr);
  }
}

static int nparts(const LoopPrinter *l) {
  return has_rows(l) ? l->loop->rows : l->loop->accumulators;
}

static void print_identity(LoopPrinter *l, ExprId id, char prefix, const char *type, const char *stem,
                           const char *index) {
  print_indent(l);
  text_format(l->out, "%s%s_%s%s = %c_set(", type, stem, l->name[id], index, prefix);
  add_number(l, reductions[l->k->exprs[id].op].identity, prefix == 'd');
  text_add_string(l->out, ");\n");
}

// `count` of a vector type, each the identity of the reduction.
static void declare_identities(LoopPrinter *l, ExprId id, char prefix, const char *stem, int count) {
  const char *type = prefix == 'd' ? "dvec " : "vec ";
  if (count == 1 && !has_rows(l)) {
    print_identity(l, id, prefix, type, stem, "");
    return;
  }
  print_line(l, "%s%s_%s[%d];", type, stem, l->name[id], count);
  print_line(l, "UNROLL for (int u = 0; u < %d; u++)", count);
  open_brace(l);
  print_identity(l, id, prefix, "", stem, "[u]");
  l->indent--;
}

static void declare_accumulator(LoopPrinter *l, ExprId id) {
  declare_identities(l, id, l->prefix, "acc", nparts(l));
}

static void declare_total(LoopPrinter *l, ExprId id) {
  if (is_exact_in_f32(l, id)) declare_accumulator(l, id); // for all runs
  else declare_identities(l, id, 'd', "total", has_rows(l) ? l->loop->rows : 1);
}

// The accumulators of one sum as one vector, pairwise; with rows, that of the row `r`.
static void add_merged(LoopPrinter *l, ExprId id, const char *r, int first, int count) {
  if (has_rows(l)) text_format(l->out, "acc_%s%s", l->name[id], r);
  else if (nparts(l) == 1) text_format(l->out, "acc_%s", l->name[id]);
  else if (count == 1) text_format(l->out, "acc_%s[%d]", l->name[id], first);
  else {
    text_format(l->out, "%c_%s(", l->prefix, combine_name(l->k->exprs[id].op));
    add_merged(l, id, r, first, count / 2);
    text_add_string(l->out, ", ");
    add_merged(l, id, r, first + count / 2, count - count / 2);
    text_add_string(l->out, ")");
  }
}

static void begin_run(LoopPrinter *l, ExprId id) {
  if (!is_exact_in_f32(l, id)) declare_accumulator(l, id);
}

static void end_run(LoopPrinter *l, ExprId id) {
  if (is_exact_in_f32(l, id)) return;
  print_indent(l);
  if (has_rows(l)) text_add_string(l->out, "UNROLL for (int r = 0; r < rows; r++) ");
  const char *part = has_rows(l) ? "[r]" : "";
  text_format(l->out, "total_%s%s = d_%s(total_%s%s, d_from_v(", l->name[id], part, combine_name(l->k->exprs[id].op),
              l->name[id], part);
  add_merged(l, id, "[r]", 0, nparts(l));
  text_add_string(l->out, "));\n");
}

static void finish_sum(LoopPrinter *l, ExprId id, bool has_totals) {
  if (l->loop->is_across) {
    print_line(l, "const vec %s = acc_%s;", l->name[id], l->name[id]);
    return;
  }
  bool is_array = has_rows(l) && expr_level(l, id) == LEVEL_ROW;
  if (is_array) print_line(l, "%s %s[%d];", l->scalar, l->name[id], l->loop->rows);
  print_indent(l);
  if (is_array) text_format(l->out, "UNROLL for (int r = 0; r < rows; r++) %s[r] = ", l->name[id]);
  else text_format(l->out, "const %s %s = ", l->scalar, l->name[id]);
  const char *r = is_array ? "[r]" : "[0]"; // a sum that is no row's own is the same in all
  const char *over_lanes = expr_info[l->k->exprs[id].op].name;
  if (is_exact_in_f32(l, id)) {
    text_format(l->out, "v_%s(", over_lanes);
    add_merged(l, id, r, 0, nparts(l));
    text_add_string(l->out, ");\n");
  } else if (has_totals)
    text_format(l->out, "(float)d_%s(total_%s%s);\n", over_lanes, l->name[id], has_rows(l) ? r : "");
  else {
    text_format(l->out, l->k->is_f64 ? "d_%s(" : "(float)d_%s(d_from_v(", over_lanes);
    add_merged(l, id, r, 0, nparts(l));
    text_add_string(l->out, l->k->is_f64 ? ");\n" : "));\n");
  }
}

static void finish_sums(LoopPrinter *l, int sweep, bool has_totals) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (is_vector_sum(l, &l->loop->roots[i]) && l->loop->roots[i].sweep == sweep)
      finish_sum(l, l->loop->roots[i].expr, has_totals);
}

// What varies over middle axes and is known by `time`: the sweep, or with what nested sums have just left one more.
static void print_middle_exprs(LoopPrinter *l, int sweep, int depth, int time) {
  need_sweep(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    int own;
    if (is_printed(l, id) && level_of(l, l->k->exprs[id].axes, &own) == LEVEL_MIDDLE && own == depth &&
        (time > sweep) == (l->time[id] > sweep))
      print_scalar_expr(l, id, ~0U);
  }
}

static void declare_middle_total(LoopPrinter *l, ExprId id) {
  print_indent(l);
  text_format(l->out, "double total_%s = ", l->name[id]);
  add_number(l, reductions[l->k->exprs[id].op].identity, true);
  text_add_string(l->out, ";\n");
}

static void finish_middle_total(LoopPrinter *l, ExprId id) {
  print_line(l, "const %s %s = (%s)total_%s;", l->scalar, l->name[id], l->scalar, l->name[id]);
}

// What the sums of an iteration of the middle axes are added to, or where they are stored.
static void print_middle_roots(LoopPrinter *l, int sweep) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    ExprId operand = root_operand(l, root);
    if (root->sweep != sweep || expr_level(l, operand) != LEVEL_MIDDLE) continue;
    if (root->kind == ROOT_STORE) {
      print_scalar_store(l, root);
      continue;
    }
    const char *combine = combine_name(root_reduction(l, root));
    print_indent(l);
    if (root->kind == ROOT_REDUCE_INNER) {
      const char *total = l->name[root->expr];
      text_format(l->out, "total_%s = f64_%s(total_%s, (double)", total, combine, total);
    } else {
      const Access *a = &l->k->accesses[root->access];
      add_part_test(l, root->access);
      text_format(l->out, "part_%s[", l->access_name[root->access]);
      add_terms(l, a, loop_inner_axes(l->loop), false);
      text_format(l->out, "] = f64_%s(part_%s[", combine, l->access_name[root->access]);
      add_terms(l, a, loop_inner_axes(l->loop), false);
      text_add_string(l->out, "], (double)");
    }
    add_scalar(l, operand);
    text_add_string(l->out, ");\n");
  }
}

// The row's elements from `from` to `to` of the innermost axis, in runs if chains would be too long.
static void print_vector_runs(LoopPrinter *l, int sweep, const Runs *runs) {
  const char *from = l->loop->tile ? "begin" : "0",
             *to = l->loop->tile ? "end" : axes_text(l, 1U << loop_vector_axis(l->loop));
  if (!runs->vector_run) {
    if (l->loop->ninner == 1) print_line(l, "{");
    if (l->loop->ninner == 1) open_brace(l);
    print_vector_loops(l, sweep, from, to, runs->has_sums);
    if (l->loop->ninner == 1) close_brace(l);
    return;
  }
  print_line(l, "for (size_t i0 = %s; i0 < %s; i0 += %lld) {", from, to, (long long)runs->vector_run);
  open_brace(l);
  print_line(l, "const size_t i1 = i0 + %lld < %s ? i0 + %lld : %s;", (long long)runs->vector_run, to,
             (long long)runs->vector_run, to);
  for_each_sum(l, sweep, begin_run);
  print_vector_loops(l, sweep, "i0", "i1", true);
  for_each_sum(l, sweep, end_run);
  close_brace(l);
}

// Where a sweep fetches ahead: the iteration of the last middle axis behind this one, or this one if it is the last.
static void print_next_index(LoopPrinter *l, int sweep, int axis, bool is_backwards) {
  need_sweep(l, sweep);
  if (axis != last_middle_axis(l->loop) || !fetches_ahead(l)) return;
  const char *name = axis_name(l, axis), *extent = axes_text(l, 1U << axis);
  if (is_backwards) print_line(l, "const size_t %s_next = %s > 0 ? %s - 1 : 0;", name, name, name);
  else print_line(l, "const size_t %s_next = %s + 1 < %s ? %s + 1 : %s;", name, name, extent, name, name);
}

static void print_middle_loops(LoopPrinter *l, int sweep, int depth, const Runs *runs) {
  if (depth == l->loop->ninner - 1) {
    print_vector_runs(l, sweep, runs);
    return;
  }
  int axis = l->loop->order[l->loop->nouter + depth];
  const char *name = axis_name(l, axis);
  const char *extent = axes_text(l, 1U << axis);
  const bool is_last = depth == l->loop->ninner - 2;
  const bool is_run = is_last && !runs->is_open && runs->middle_run == 1; // each iteration is one
  const bool in_runs = is_last && !is_run && (runs->middle_run || runs->is_open);
  bool is_backwards = l->loop->is_backwards && sweep == l->loop->nsweeps - 1 && !runs->has_sums;
  const char *run = runs->is_open ? "run" : number_text(l, runs->middle_run, 0);
  if (in_runs) {
    print_line(l, "for (size_t b = 0; b < %s; b += %s) {", extent, run);
    open_brace(l);
    for_each_sum(l, sweep, begin_run);
    print_line(l, "for (size_t %s = b; %s < b + %s && %s < %s; %s++) {", name, name, run, name, extent, name);
  } else if (is_backwards) {
    print_line(l, "for (size_t %s = %s; %s-- > 0;) {", name, extent, name);
  } else {
    print_line(l, "for (size_t %s = 0; %s < %s; %s++) {", name, name, extent, name);
  }
  open_brace(l);
  if (is_run) for_each_sum(l, sweep, begin_run);
  print_next_index(l, sweep, axis, is_backwards);
  const bool has_nested_sums = l->loop->is_nested && is_last;
  print_middle_exprs(l, sweep, depth, sweep);
  if (has_nested_sums) for_each_sum(l, sweep, runs->has_totals ? declare_total : declare_accumulator);
  print_middle_loops(l, sweep, depth + 1, runs);
  if (has_nested_sums) {
    finish_sums(l, sweep, runs->has_totals);
    print_middle_exprs(l, sweep, depth, sweep + 1);
    print_middle_roots(l, sweep);
  }
  if (is_run) for_each_sum(l, sweep, end_run);
  close_brace(l);
  if (!in_runs) return;
  for_each_sum(l, sweep, end_run);
  close_brace(l);
}

// Where the innermost extent is open, so is whether an iteration's chain is too long by itself.
static void print_open_runs(LoopPrinter *l, int sweep, const Runs *runs) {
  const int group = LANES * l->loop->accumulators;
  const char *width = axes_text(l, 1U << loop_vector_axis(l->loop));
  Runs whole = *runs, cut = {.has_sums = true, .has_totals = true, .vector_run = (int64_t)LONGEST_RUN * group};
  print_line(l, "{");
  open_brace(l);
  print_line(l, "const size_t chain = %s / %d + %s %% %d / %d + (%s %% %d != 0);", width, group, width, group, LANES,
             width, LANES);
  print_line(l, "if (chain > %d) {", LONGEST_RUN);
  open_brace(l);
  print_middle_loops(l, sweep, 0, &cut);
  l->indent--;
  print_line(l, "} else {");
  open_brace(l);
  print_line(l, "const size_t run = chain ? %d / chain : 1;", LONGEST_RUN);
  print_middle_loops(l, sweep, 0, &whole);
  close_brace(l);
  close_brace(l);
}

// The inner axis one by one, then rows that this sweep has written, transposed back.
static void print_across_loop(LoopPrinter *l, int sweep) {
  long long width = (long long)l->k->axes[l->loop->order[l->loop->nouter]].extent;
  l->lane = "i";
  l->part = "";
  print_line(l, "for (size_t i = 0; i < %lld; i++) {", width);
  open_brace(l);
  print_body(l, sweep);
  close_brace(l);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_STORE || root->sweep != sweep || !is_transposed(l, root->access)) continue;
    const Access *a = &l->k->accesses[root->access];
    const char *name = l->access_name[root->access];
    const char *suffix = type_suffix(a->type), *otherwise = root->is_streamed ? "else " : "";
    open_store(l, root);
    if (root->is_streamed)
      print_line(l, "if (streams_%s) v_stream_rows%s(p_%s, rows_%s, %lld);", name, suffix, name, name, width);
    print_line(l, "%sv_store_rows%s(p_%s, %s, rows_%s, %lld);", otherwise, suffix, name, row_stride_text(l, a), name,
               width);
    close_store(l, root);
  }
}

static void print_sweep_comment(LoopPrinter *l, int sweep) {
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_sweep(l->k, l->loop, sweep, &words);
  print_comment(l, "Sweep:", &words);
  text_deinit(&words);
}

void print_sweep(LoopPrinter *l, int sweep) {
  bool has_work = false;
  for (size_t i = 0; i < l->loop->nroots; i++) has_work |= is_in_sweep(l, &l->loop->roots[i], sweep);
  if (!has_work) return;
  print_sweep_comment(l, sweep);
  Runs runs = plan_runs(l, sweep);
  if (l->loop->is_nested) for_each_middle_sum(l, sweep, declare_middle_total);
  else for_each_sum(l, sweep, runs.has_totals ? declare_total : declare_accumulator);
  if (!axes_nelems(l->k, loop_inner_axes(l->loop))) {
    // nothing to go over
  } else if (l->loop->is_across) {
    print_across_loop(l, sweep);
  } else if (runs.is_open) {
    print_open_runs(l, sweep, &runs);
  } else {
    print_middle_loops(l, sweep, 0, &runs);
  }
  if (l->loop->is_nested) for_each_middle_sum(l, sweep, finish_middle_total);
  else finish_sums(l, sweep, runs.has_totals);
}
