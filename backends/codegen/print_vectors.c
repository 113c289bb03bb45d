// The innermost loop of a sweep: whole groups of vectors, whole vectors, what is left of a row; and what it fetches
// ahead.
#include "backends/codegen/loop_printer.h"

const char *combine_name(ExprOp reduction) {
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
  if (is_widened_sum(l, root)) {
    text_format(l->out, "d_%s(", combine_name(root_reduction(l, root)));
    add_sum(l, sum);
    text_add_string(l->out, ", d_from_v(");
    add_vector(l, operand);
    text_add_string(l->out, ")");
  } else if (is_fused_product(l, root)) {
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
    const bool is_f64 = l->k->is_f64 || is_widened_sum(l, root);
    const char prefix = is_f64 ? 'd' : 'v';
    print_indent(l);
    bool may_be_null = may_be_unwanted(l, root->access) && !l->loop->is_across;
    const char *test = may_be_null ? arena_format(l->p->scratch, "part_%s ? ", name) : "";
    if (!is_load) add_part_test(l, root->access);
    if (is_load)
      text_format(l->out, "%s held_%s = %s%c_load%s(part_%s", is_f64 ? "dvec" : "vec", name, test, prefix, tail, name);
    else text_format(l->out, "%c_store%s(part_%s", prefix, tail, name);
    add_terms(l, &l->k->accesses[root->access], loop_inner_axes(l->loop) & ~(1U << loop_vector_axis(l->loop)), true);
    text_format(l->out, " + %s", l->lane);
    if (l->loop->is_across) text_format(l->out, " * %d", LANES);
    if (!is_load) text_format(l->out, ", held_%s", name);
    text_format(l->out, "%s)", n);
    if (is_load && may_be_null) text_add_string(l->out, is_f64 ? " : d_set(0.0)" : " : v_set(0.0f)");
    text_add_string(l->out, ";\n");
  }
}

bool is_prefetched(const LoopPrinter *l, AccessId id) {
  if (l->loop->is_across && !is_column(l, id)) return false;
  for (ExprId e = 1; e < l->k->nexprs; e++)
    if (l->is_needed[e] && l->k->exprs[e].op == EXPR_LOAD && l->k->exprs[e].access == id && !l->k->exprs[e].args[0] &&
        !is_place(&l->k->accesses[id]) && !expr_is_mask(l->k, e) && expr_level(l, e) == LEVEL_VECTOR &&
        varies_by_row(l, l->k->exprs[e].axes))
      return true;
  return false;
}

bool fetches_ahead(const LoopPrinter *l) {
  for (AccessId id = 0; l->loop->ahead && id < l->k->naccesses; id++)
    if (is_prefetched(l, id)) return true;
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

// What a run along the vector axis will need is on its way as well, from the next run on when this one ends.
static void print_prefetches_ahead(LoopPrinter *l) {
  const char *lane = l->lane, *axis = axis_name(l, last_middle_axis(l->loop));
  const int ahead = l->loop->ahead;
  const char *extent = axes_text(l, 1U << loop_vector_axis(l->loop));
  print_line(l, "const int is_next = %s + %d >= %s;", lane, ahead, extent);
  print_line(l, "const size_t ahead_%s = is_next ? %s_next : %s;", axis, axis, axis);
  print_line(l, "const size_t ahead_i = is_next ? %s + %d - %s : %s + %d;", lane, ahead, extent, lane, ahead);
  l->is_ahead = true;
  l->lane = "ahead_i";
  for (AccessId id = 0; id < l->k->naccesses; id++) {
    if (!is_prefetched(l, id)) continue;
    print_indent(l);
    text_add_string(l->out, "v_prefetch_l2(");
    add_address(l, id);
    text_add_string(l->out, ");\n");
  }
  l->is_ahead = false;
  l->lane = lane;
}

void declare_distances(LoopPrinter *l) {
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

static bool is_vector_root(const LoopPrinter *l, const Root *root, int sweep) {
  return is_in_sweep(l, root, sweep) && (is_vector_sum(l, root) || root_level(l, root) == LEVEL_VECTOR);
}

// The one sum in memory of a sweep where it is the last that is added up: that and its store stand under one condition.
static const Root *find_lone_sum(const LoopPrinter *l, int sweep) {
  const Root *last = NULL;
  size_t count = 0;
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    count += root->sweep == sweep && is_array_sum(l, root);
    if (is_vector_root(l, root, sweep)) last = root;
  }
  bool is_lone = last && count == 1 && is_array_sum(l, last) && !has_rows(l) && !l->loop->is_across;
  return is_lone && may_be_unwanted(l, last->access) ? last : NULL;
}

void print_body(LoopPrinter *l, int sweep) {
  need_sweep(l, sweep);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && !varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  print_array_sums(l, sweep, true);
  open_rows(l);
  if (l->loop->prefetch && !l->is_tail && !l->loop->is_across) print_prefetches(l, sweep);
  if (fetches_ahead(l) && !l->is_tail) print_prefetches_ahead(l);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && expr_level(l, id) == LEVEL_VECTOR && varies_by_row(l, l->k->exprs[id].axes))
      print_vector_expr(l, id);
  const Root *lone = find_lone_sum(l, sweep);
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (is_vector_root(l, &l->loop->roots[i], sweep) && &l->loop->roots[i] != lone)
      print_vector_root(l, &l->loop->roots[i]);
  close_rows(l);
  if (lone) {
    print_line(l, "if (part_%s) {", l->access_name[lone->access]);
    open_brace(l);
    l->is_part_tested = true;
    print_vector_root(l, lone);
  }
  print_array_sums(l, sweep, false);
  l->is_part_tested = false;
  if (lone) close_brace(l);
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

void print_vector_loops(LoopPrinter *l, int sweep, const char *from, const char *to, bool has_sums) {
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
