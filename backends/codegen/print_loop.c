// One loop as C: a step function for a few outer iterations (or a tile), and a block function that runs its steps.
//
// Expressions are printed where they belong by the axes they vary over: not at all (constants), once a row (scalars),
// once an iteration of a middle axis, or for each vector. Within a level they follow each other in the order of their
// ids, which has operands before users.
#include "backends/codegen/emit.h"
#include "backends/codegen/loop_printer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LONGEST_RUN = 24 }; // additions in a chain before sums move to f64; the rest may add a few more

// Vectors

// The function of the vocabulary that combines two results of a reduction, without its prefix.
static const char *combine_name(ExprOp reduction) {
  return expr_info[reductions[reduction].combine].name;
}

typedef struct Sum { // a vector that is added to: "acc_total[r]"
  const char *kind, *name, *index;
} Sum;

static void add_sum(LoopPrinter *l, const Sum *sum) {
  text_format(l->out, "%s_%s%s", sum->kind, sum->name, sum->index);
}

static void add_accumulate(LoopPrinter *l, const Root *root, const Sum *sum) {
  ExprId operand = root_operand(l, root);
  const Expr *e = &l->k->exprs[operand];
  if (is_fused_product(l, root)) {
    text_format(l->out, "%c_fma(", l->prefix);
    add_vector(l, e->args[0]);
    text_add_string(l->out, ", ");
    add_vector(l, e->args[1]);
    text_add_string(l->out, ", ");
    add_sum(l, sum);
  } else {
    text_format(l->out, "%c_%s(", l->prefix, combine_name(root_reduction(l, root)));
    add_sum(l, sum);
    text_add_string(l->out, ", ");
    add_vector(l, operand);
  }
  text_add_string(l->out, ")");
}

// sum = sum + operand, in the first n lanes only where the others must stay as they are.
static void print_merged_sum(LoopPrinter *l, const Root *root, const Sum *sum, bool is_merged) {
  print_indent(l);
  if (root->kind == ROOT_REDUCE_OUTER) add_part_test(l, root->access);
  add_sum(l, sum);
  text_add_string(l->out, " = ");
  if (is_merged) text_format(l->out, "%c_merge(n, ", l->prefix);
  add_accumulate(l, root, sum);
  if (is_merged) {
    text_add_string(l->out, ", ");
    add_sum(l, sum);
    text_add_string(l->out, ")");
  }
  text_add_string(l->out, ";\n");
}

static void print_vector_root(LoopPrinter *l, const Root *root) {
  const Sum share = {"held", l->access_name[root->access], ""}, sum = {"acc", l->name[root->expr], l->part};
  if (root->kind == ROOT_STORE) print_vector_store(l, root);
  else if (root->kind == ROOT_REDUCE_OUTER) print_merged_sum(l, root, &share, l->is_tail && l->loop->is_across);
  else print_merged_sum(l, root, &sum, l->is_tail && !l->loop->is_across);
}

static void print_array_sums(LoopPrinter *l, int sweep, bool is_load) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->sweep != sweep || !is_array_sum(l, root)) continue;
    const char *name = l->access_name[root->access];
    bool is_part = l->is_tail && !l->loop->is_across;
    const char *tail = is_part ? "_n" : "", *n = is_part ? ", n" : "";
    print_indent(l);
    bool may_be_null = may_be_unwanted(l, root->access) && !l->loop->is_across;
    const char *test = may_be_null ? arena_format(l->p->scratch, "part_%s ? ", name) : "";
    if (!is_load) add_part_test(l, root->access);
    if (is_load) text_format(l->out, "%s held_%s = %s%c_load%s(part_%s", l->vec, name, test, l->prefix, tail, name);
    else text_format(l->out, "%c_store%s(part_%s", l->prefix, tail, name);
    add_terms(l, &l->k->accesses[root->access], loop_inner_axes(l->loop) & ~(1U << loop_vector_axis(l->loop)), true);
    text_format(l->out, " + %s", l->lane);
    if (l->loop->is_across) text_format(l->out, " * %d", LANES);
    if (!is_load) text_format(l->out, ", held_%s", name);
    text_format(l->out, "%s)", n);
    if (is_load && may_be_null) text_add_string(l->out, l->k->is_f64 ? " : d_set(0.0)" : " : v_set(0.0f)");
    text_add_string(l->out, ";\n");
  }
}

static bool is_prefetched(const LoopPrinter *l, AccessId id) {
  if (l->loop->is_across && !is_column(l, id)) return false;
  for (ExprId e = 1; e < l->k->nexprs; e++)
    if (l->is_needed[e] && l->k->exprs[e].op == EXPR_LOAD && l->k->exprs[e].access == id && !l->k->exprs[e].args[0] &&
        !is_place(&l->k->accesses[id]) && !expr_is_mask(l->k, e) && expr_level(l, e) == LEVEL_VECTOR &&
        varies_by_row(l, l->k->exprs[e].axes))
      return true;
  return false;
}

// Sweeps that go along rows: after the last of them there may be one that only stores what they have added up.
static int count_long_sweeps(const LoopPrinter *l) {
  int count = 0;
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (is_in_sweep(l, &l->loop->roots[i], l->loop->roots[i].sweep) && l->loop->roots[i].sweep >= count)
      count = l->loop->roots[i].sweep + 1;
  return count;
}

// What later rows need is on its way while these are worked on: a share of it in each sweep, so that the bus is never
// idle, and to the second level only, as the first is full of these rows.
static void print_prefetches(LoopPrinter *l, int sweep) {
  size_t count = 0, at = 0;
  need_all(l);
  for (AccessId id = 0; id < l->k->naccesses; id++) count += is_prefetched(l, id);
  for (AccessId id = 0; count && id < l->k->naccesses; id++) {
    if (!is_prefetched(l, id) || (int)(at++ * (size_t)count_long_sweeps(l) / count) != sweep) continue;
    print_indent(l);
    text_add_string(l->out, "v_prefetch_l2(");
    add_address(l, id);
    if (l->loop->nouter > 1) {
      text_format(l->out, " + ahead_%s);\n", l->access_name[id]);
      continue;
    }
    const Access *a = &l->k->accesses[id];
    const int axis = l->loop->order[0];
    text_format(l->out, " + ahead * %s);\n", number_text(l, a->stride[axis], a->stride_powers[axis]));
  }
  need_sweep(l, sweep);
}

// How far it is in each tensor to a row ahead of `o`, where that is not the same everywhere.
static void declare_distances(LoopPrinter *l) {
  need_all(l);
  for (AccessId id = 0; l->loop->nouter > 1 && id < l->k->naccesses; id++) {
    if (!is_prefetched(l, id)) continue;
    print_indent(l);
    text_format(l->out, "const ptrdiff_t ahead_%s = 0", l->access_name[id]);
    AxisSet inside = 0; // outer axes inside of this one
    for (int i = l->loop->nouter - 1; i >= 0; i--) {
      int axis = l->loop->order[i];
      const Access *a = &l->k->accesses[id];
      const char *below = axes_text(l, inside), *extent = axes_text(l, 1U << axis);
      if (a->stride[axis]) // differences wrap around, as their products do
        text_format(l->out, " + (ptrdiff_t)(((o + ahead) / %s %% %s - o / %s %% %s) * %s)", below, extent, below,
                    extent, number_text(l, a->stride[axis], a->stride_powers[axis]));
      inside |= 1U << axis;
    }
    text_add_string(l->out, ";\n");
  }
}

// The body of the innermost loop: what all rows share, then each row.
static void print_body(LoopPrinter *l, int sweep) {
  need_sweep(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && !varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  print_array_sums(l, sweep, true);
  open_rows(l);
  if (l->loop->prefetch && !l->is_tail && !l->loop->is_across) print_prefetches(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (is_in_sweep(l, root, sweep) && (is_vector_sum(l, root) || root_level(l, root) == LEVEL_VECTOR))
      print_vector_root(l, root);
  }
  close_rows(l);
  print_array_sums(l, sweep, false);
}

// The elements before the first whole cache line of what the sweep streams.
static void print_peel(LoopPrinter *l, int sweep) {
  print_line(l, "{");
  open_brace(l);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->sweep != sweep || root->kind != ROOT_STORE) continue;
    print_indent(l);
    text_add_string(l->out, "const int n = (int)(-(uintptr_t)(");
    l->lane = "i";
    add_address(l, root->access);
    text_format(l->out, ") %% 64 / %zu);\n", type_nbytes(l->k->accesses[root->access].type));
  }
  print_line(l, "if (n) {");
  open_brace(l);
  l->is_tail = true;
  print_body(l, sweep);
  l->is_tail = false;
  close_brace(l);
  print_line(l, "i += (size_t)n;");
  close_brace(l);
}

// From `from` to `to`: whole groups of vectors, whole vectors, what is left.
static void print_vector_loops(LoopPrinter *l, int sweep, const char *from, const char *to, bool has_sums) {
  int ways = has_sums ? l->loop->accumulators : 1;
  const char *alone = has_rows(l) ? "[r]" : l->loop->accumulators > 1 ? "[0]" : "";
  const bool is_peeled = l->loop->is_peeled && sweep == l->loop->nsweeps - 1;
  print_line(l, "size_t i = %s;", from);
  if (is_peeled) print_peel(l, sweep);
  if (ways > 1) {
    print_line(l, "for (; i + %d <= %s; i += %d) {", ways * LANES, to, ways * LANES);
    open_brace(l);
    print_line(l, "UNROLL for (int u = 0; u < %d; u++) {", ways);
    open_brace(l);
    print_line(l, "const size_t j = i + (size_t)(u * %d);", LANES);
    l->lane = "j";
    l->part = "[u]";
    print_body(l, sweep);
    close_brace(l);
    close_brace(l);
  }
  l->lane = "i";
  l->part = alone;
  print_line(l, "for (; i + %d <= %s; i += %d) {", LANES, to, LANES);
  open_brace(l);
  print_body(l, sweep);
  close_brace(l);
  const Axis *axis = &l->k->axes[loop_vector_axis(l->loop)];
  if (!is_peeled && l->loop->tile % LANES == 0 && kernel_factor(l->k, axis->extent, axis->powers) % LANES == 0) return;
  print_line(l, "if (i < %s) {", to);
  open_brace(l);
  print_line(l, "const int n = (int)(%s - i);", to);
  l->is_tail = true;
  print_body(l, sweep);
  l->is_tail = false;
  close_brace(l);
}

// Sums over a row

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

static void print_identity(LoopPrinter *l, ExprId id, char prefix, const char *stem, const char *index) {
  print_indent(l);
  text_format(l->out, "%s_%s%s = %c_set(", stem, l->name[id], index, prefix);
  add_number(l, reductions[l->k->exprs[id].op].identity, prefix == 'd');
  text_add_string(l->out, ");\n");
}

// `count` of a vector type, each the identity of the reduction.
static void declare_identities(LoopPrinter *l, ExprId id, char prefix, const char *stem, int count) {
  const char *type = prefix == 'd' ? "dvec" : "vec";
  if (count == 1 && !has_rows(l)) {
    print_line(l, "%s %s_%s;", type, stem, l->name[id]);
    print_identity(l, id, prefix, stem, "");
    return;
  }
  print_line(l, "%s %s_%s[%d];", type, stem, l->name[id], count);
  print_line(l, "UNROLL for (int u = 0; u < %d; u++)", count);
  open_brace(l);
  print_identity(l, id, prefix, stem, "[u]");
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

static void print_middle_loops(LoopPrinter *l, int sweep, int depth, const Runs *runs) {
  if (depth == l->loop->ninner - 1) {
    print_vector_runs(l, sweep, runs);
    return;
  }
  int axis = l->loop->order[l->loop->nouter + depth];
  const char *name = axis_name(l, axis);
  const char *extent = axes_text(l, 1U << axis);
  bool in_runs = (runs->middle_run || runs->is_open) && depth == l->loop->ninner - 2;
  const char *run = runs->is_open ? "run" : number_text(l, runs->middle_run, 0);
  if (in_runs) {
    print_line(l, "for (size_t b = 0; b < %s; b += %s) {", extent, run);
    open_brace(l);
    for_each_sum(l, sweep, begin_run);
    print_line(l, "for (size_t %s = b; %s < b + %s && %s < %s; %s++) {", name, name, run, name, extent, name);
  } else if (l->loop->is_backwards && sweep == l->loop->nsweeps - 1 && !runs->has_sums) {
    print_line(l, "for (size_t %s = %s; %s-- > 0;) {", name, extent, name);
  } else {
    print_line(l, "for (size_t %s = 0; %s < %s; %s++) {", name, name, extent, name);
  }
  open_brace(l);
  const bool has_nested_sums = l->loop->is_nested && depth == l->loop->ninner - 2;
  print_middle_exprs(l, sweep, depth, sweep);
  if (has_nested_sums) for_each_sum(l, sweep, runs->has_totals ? declare_total : declare_accumulator);
  print_middle_loops(l, sweep, depth + 1, runs);
  if (has_nested_sums) {
    finish_sums(l, sweep, runs->has_totals);
    print_middle_exprs(l, sweep, depth, sweep + 1);
    print_middle_roots(l, sweep);
  }
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

// What the schedule says, as a comment behind `what`.
static void print_comment(LoopPrinter *l, const char *what, const Text *words) {
  print_indent(l);
  text_format(l->out, "// %s ", what);
  add_comment_text(l->out, text_string(words));
  text_add_string(l->out, "\n");
  l->p->out_of_memory |= words->out_of_memory;
}

static void print_sweep_comment(LoopPrinter *l, int sweep) {
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_sweep(l->k, l->loop, sweep, &words);
  print_comment(l, "Sweep:", &words);
  text_deinit(&words);
}

static void print_loop_comment(LoopPrinter *l) {
  Text words;
  text_init(&words, l->out->allocator);
  loop_print_order(l->k, l->loop, &words);
  print_comment(l, "A step of the loop", &words);
  text_deinit(&words);
}

static void print_sweep(LoopPrinter *l, int sweep) {
  bool has_work = false;
  for (size_t i = 0; i < l->loop->nroots; i++) has_work |= is_in_sweep(l, &l->loop->roots[i], sweep);
  if (!has_work) return;
  print_sweep_comment(l, sweep);
  Runs runs = plan_runs(l, sweep);
  if (l->loop->is_nested) for_each_middle_sum(l, sweep, declare_middle_total);
  else for_each_sum(l, sweep, runs.has_totals ? declare_total : declare_accumulator);
  if (l->loop->is_across) print_across_loop(l, sweep);
  else if (!axes_nelems(l->k, loop_inner_axes(l->loop))) {
    // nothing to go over
  } else if (runs.is_open) {
    print_open_runs(l, sweep, &runs);
  } else {
    print_middle_loops(l, sweep, 0, &runs);
  }
  if (l->loop->is_nested) for_each_middle_sum(l, sweep, finish_middle_total);
  else finish_sums(l, sweep, runs.has_totals);
}

// Functions

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
        text_add_string(l->out, "(uintptr_t)(");
        add_start(l, a);
        text_add_string(l->out, ") % 64 == 0");
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
  end_body(l, &body);
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
    add_constant(l, reductions[root_reduction(l, root)].identity);
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
    if (strcmp(chunks, "0") == 0) chunks = "1";
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
static void name_access(LoopPrinter *l, AccessId id) {
  const Access *a = &l->k->accesses[id];
  const char *own = a->value               ? access_member(l, a)
                    : a->type == TYPE_NONE ? "place"
                                           : l->k->temporaries[a->temporary].name;
  if (!l->access_name[id]) l->access_name[id] = print_local_name(l->p, own, l->access_name, l->k->naccesses, id);
}

static bool prepare(LoopPrinter *l) {
  Arena *scratch = l->p->scratch;
  size_t n = l->k->nexprs;
  l->name = ARENA_ARRAY(scratch, const char *, n + MAX_OPEN_DIMS);
  l->access_name = ARENA_ARRAY(scratch, const char *, l->k->naccesses + 1);
  l->nuses = ARENA_ARRAY(scratch, uint32_t, n);
  l->time = ARENA_ARRAY(scratch, int, n);
  l->is_needed = ARENA_ARRAY(scratch, bool, n);
  if (!l->name || !l->access_name || !l->nuses || !l->time || !l->is_needed) return false;
  for (size_t i = 0; i < l->loop->nroots; i++) need_expr(l, root_operand(l, &l->loop->roots[i]));
  for (ExprId id = 1; id < n; id++)
    if (l->is_needed[id] || is_row_sum(l, id))
      l->name[id] = print_local_name(l->p, l->k->exprs[id].label, l->name, id, id);
  for (ExprId id = 1; id < n; id++)
    if (l->is_needed[id] && expr_has_access(&l->k->exprs[id])) name_access(l, l->k->exprs[id].access);
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind != ROOT_REDUCE_INNER) name_access(l, l->loop->roots[i].access);
  for (size_t i = 0; l->k->graph && i < l->k->graph->ndims; i++)
    l->name[n + i] = print_local_name(l->p, l->k->graph->dims[i]->name, l->name, n + i, i);
  find_times(l);
  return true;
}

void print_loop_functions(Printer *p, size_t kernel, size_t loop) {
  const Kernel *k = p->program->kernels[kernel];
  LoopPrinter l = {.p = p, .out = p->out, .k = k, .loop = &k->loops[loop], .kernel_index = kernel, .loop_index = loop};
  l.vec = k->is_f64 ? "dvec" : "vec";
  l.scalar = k->is_f64 ? "double" : "float";
  l.mask = k->is_f64 ? "dmask" : "mask";
  l.prefix = k->is_f64 ? 'd' : 'v';
  if (!prepare(&l)) {
    p->out_of_memory = true;
    return;
  }
  print_step(&l);
  l.is_tail = l.loop->is_across;
  if (l.is_tail) print_step(&l);
  l.is_tail = false;
  print_block(&l);
}
