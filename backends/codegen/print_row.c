// What belongs to a row of a loop: what its sweeps need, its scalars, and pointers to where it starts.
#include "backends/codegen/loop_printer.h"

#include <string.h>

// What a sweep needs

bool is_row_sum(const LoopPrinter *l, ExprId id) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind == ROOT_REDUCE_INNER && l->loop->roots[i].expr == id) return true;
  return false;
}

// The sweep that leaves a vector for later ones; no sweep: none does.
static int leaving_sweep(const LoopPrinter *l, ExprId id) {
  for (int i = 0; i < l->loop->nreused; i++)
    if (l->loop->reused[i].expr == id) return l->loop->reused[i].sweep;
  return l->loop->nsweeps;
}

bool is_found_again(const LoopPrinter *l, ExprId id) {
  return l->sweep > leaving_sweep(l, id);
}

bool is_left(const LoopPrinter *l, ExprId id) {
  return l->sweep == leaving_sweep(l, id);
}

void need_expr(LoopPrinter *l, ExprId id) {
  if (!id || l->is_needed[id]) return;
  l->is_needed[id] = true;
  if (is_row_sum(l, id) || is_found_again(l, id)) return;
  for (int a = 0; a < 3; a++) need_expr(l, l->k->exprs[id].args[a]);
}

ExprOp root_reduction(const LoopPrinter *l, const Root *root) {
  if (root->kind == ROOT_STORE) return EXPR_NONE;
  if (root->kind == ROOT_REDUCE_INNER) return l->k->exprs[root->expr].op;
  return l->k->temporaries[l->k->accesses[root->access].temporary].reduction;
}

bool is_fused_product(const LoopPrinter *l, const Root *root) {
  ExprId operand = root_operand(l, root);
  return root_reduction(l, root) == EXPR_REDUCE_SUM && l->k->exprs[operand].op == EXPR_MUL && l->nuses[operand] == 1 &&
         !is_widened_sum(l, root);
}

bool is_widened_sum(const LoopPrinter *l, const Root *root) {
  return !l->k->is_f64 && is_array_sum(l, root) && l->k->accesses[root->access].type == TYPE_F64;
}

ExprId root_operand(const LoopPrinter *l, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER ? l->k->exprs[root->expr].args[0] : root->expr;
}

bool is_array_sum(const LoopPrinter *l, const Root *root) {
  return root->kind == ROOT_REDUCE_OUTER && root_level(l, root) == LEVEL_VECTOR;
}

bool is_vector_sum(const LoopPrinter *l, const Root *root) {
  return root->kind == ROOT_REDUCE_INNER && l->k->exprs[root->expr].reduced >> loop_vector_axis(l->loop) & 1;
}

bool is_in_sweep(const LoopPrinter *l, const Root *root, int sweep) {
  return root->sweep == sweep && (root->kind == ROOT_REDUCE_INNER || root_level(l, root) >= LEVEL_MIDDLE);
}

static void need_root(LoopPrinter *l, const Root *root) {
  ExprId operand = root_operand(l, root);
  // A product that later sweeps find again is there beside the sum that it is fused into.
  if (expr_level(l, operand) == LEVEL_VECTOR && is_fused_product(l, root) && !is_left(l, operand)) {
    need_expr(l, l->k->exprs[operand].args[0]);
    need_expr(l, l->k->exprs[operand].args[1]);
  } else {
    need_expr(l, operand);
  }
}

// How often what these roots compute is used, a fused product not yet being one.
static void count_uses(LoopPrinter *l, int sweep) {
  memset(l->nuses, 0, l->k->nexprs * sizeof *l->nuses);
  memset(l->is_needed, 0, l->k->nexprs * sizeof *l->is_needed);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (sweep != ALL_SWEEPS && !is_in_sweep(l, root, sweep)) continue;
    l->nuses[root_operand(l, root)]++;
    need_expr(l, root_operand(l, root));
  }
  for (ExprId id = 1; id < l->k->nexprs; id++)
    for (int a = 0; a < 3 && l->is_needed[id] && !is_row_sum(l, id) && !is_found_again(l, id); a++)
      l->nuses[l->k->exprs[id].args[a]]++;
}

void need_sweep(LoopPrinter *l, int sweep) {
  l->sweep = sweep;
  count_uses(l, sweep);
  memset(l->is_needed, 0, l->k->nexprs * sizeof *l->is_needed);
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (sweep != ALL_SWEEPS && !is_in_sweep(l, root, sweep)) continue;
    need_root(l, root);
    if (sweep == ALL_SWEEPS && root->kind == ROOT_REDUCE_INNER) need_expr(l, root->expr);
  }
}

void need_all(LoopPrinter *l) {
  need_sweep(l, ALL_SWEEPS);
}

bool is_printed(const LoopPrinter *l, ExprId id) {
  const Expr *e = &l->k->exprs[id];
  return l->is_needed[id] && e->op != EXPR_CONSTANT && !is_row_sum(l, id);
}

// Rows: scalars, and pointers to where a row starts

void open_rows(LoopPrinter *l) {
  if (!has_rows(l)) return;
  print_line(l, "UNROLL for (int r = 0; r < rows; r++) {");
  open_brace(l);
}

void close_rows(LoopPrinter *l) {
  if (has_rows(l)) close_brace(l);
}

// A place is a number, and where elements lie a pointer.
static void add_pointer_type(LoopPrinter *l, const Access *a, bool is_written) {
  if (is_place(a)) text_add_string(l->out, "size_t ");
  else text_format(l->out, "%s%s *", is_written ? "" : "const ", element_type(a->type));
}

static void open_pointer(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  print_indent(l);
  if (is_place(a)) text_add_string(l->out, "const ");
  add_pointer_type(l, a, is_written);
  text_format(l->out, is_place(a) ? "p_%s = " : "const p_%s = ", l->access_name[id]);
}

void declare_pointer(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  const Temporary *temporary = a->value || is_place(a) ? NULL : &l->k->temporaries[a->temporary];
  if (temporary && temporary->is_own) {
    print_line(l, "%s p_%s[%lld];", element_type(a->type), l->access_name[id], (long long)temporary->nelems);
    return;
  }
  if (has_rows(l) && varies_by_row(l, access_axes(l->k, a))) {
    print_indent(l);
    add_pointer_type(l, a, is_written);
    text_format(l->out, "p_%s[%d];\n", l->access_name[id], l->loop->rows);
    return;
  }
  if (varies_by_row(l, access_axes(l->k, a))) return; // where the row is known
  open_pointer(l, id, is_written);
  add_start(l, a);
  text_add_string(l->out, ";\n");
}

static void set_pointer(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  if (!varies_by_row(l, access_axes(l->k, a))) return;
  if (has_rows(l)) print_indent(l);
  if (has_rows(l)) text_format(l->out, "p_%s[r] = ", l->access_name[id]);
  else open_pointer(l, id, is_written);
  bool may_be_null = is_written && !is_place(a) && is_optional(l, id);
  if (may_be_null) text_format(l->out, "wants_%s ? ", l->access_name[id]);
  add_start(l, a);
  add_terms(l, a, loop_outer_axes(l->loop), true);
  text_add_string(l->out, may_be_null ? " : NULL;\n" : ";\n");
}

static void copy_column(LoopPrinter *l, AccessId id, long long width) {
  const Access *a = &l->k->accesses[id];
  const int axis = l->loop->order[l->loop->nouter];
  const char *name = l->access_name[id], *stride = number_text(l, a->stride[axis], a->stride_powers[axis]);
  print_line(l, "for (size_t i = 0; i < %lld; i++) {", width);
  open_brace(l);
  if (l->loop->prefetch && l->loop->nouter > 1)
    print_line(l, "v_prefetch_l2(p_%s + i * %s + ahead_%s);", name, stride, name);
  else if (l->loop->prefetch) print_line(l, "v_prefetch_l2(p_%s + i * %s + ahead);", name, stride);
  print_line(l, "v_store(rows_%s + i * %d, v_load%s(p_%s + i * %s));", name, LANES, type_suffix(a->type), name, stride);
  close_brace(l);
}

// Where rows lie across lanes, what is along both axes: read at once, written at the end of its sweep.
static void declare_rows(LoopPrinter *l, AccessId id, bool is_written) {
  const Access *a = &l->k->accesses[id];
  const bool is_copied = is_column(l, id) && !is_written;
  if (!is_transposed(l, id) && !is_copied) return;
  long long width = (long long)l->k->axes[l->loop->order[l->loop->nouter]].extent;
  print_line(l, "float rows_%s[%lld];", l->access_name[id], width * LANES);
  if (is_copied) copy_column(l, id, width);
  else if (!is_written)
    print_line(l, "v_load_rows%s(rows_%s, p_%s, %s, %lld);", type_suffix(a->type), l->access_name[id],
               l->access_name[id], row_stride_text(l, a), width);
}

static bool is_stored(const LoopPrinter *l, AccessId id) {
  for (size_t i = 0; i < l->loop->nroots; i++)
    if (l->loop->roots[i].kind == ROOT_STORE && l->loop->roots[i].access == id) return true;
  return false;
}

// No vector reads or writes anything where an inner axis has no elements.
static bool has_vectors(const LoopPrinter *l) {
  return axes_nelems(l->k, loop_inner_axes(l->loop)) != 0;
}

void for_each_pointer(LoopPrinter *l, void (*f)(LoopPrinter *, AccessId, bool)) {
  if (!has_vectors(l)) return;
  need_all(l);
  bool *seen = arena_array(l->p->scratch, l->k->naccesses + 1, sizeof *seen);
  if (!seen) {
    l->p->out_of_memory = true;
    return;
  }
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    if (!l->is_needed[id] || !expr_has_access(e) || expr_level(l, id) != LEVEL_VECTOR || seen[e->access]) continue;
    seen[e->access] = true;
    f(l, e->access, is_stored(l, e->access));
  }
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_STORE || root_level(l, root) != LEVEL_VECTOR || seen[root->access]) continue;
    seen[root->access] = true;
    f(l, root->access, true);
  }
}

void find_times(LoopPrinter *l) {
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    int t = 0;
    for (int a = 0; a < 3; a++)
      if (e->args[a] && l->time[e->args[a]] > t) t = l->time[e->args[a]];
    for (size_t i = 0; i < l->loop->nroots; i++) {
      const Root *root = &l->loop->roots[i];
      if (root->kind == ROOT_REDUCE_INNER && root->expr == id) t = root->sweep + 1;
    }
    l->time[id] = t;
  }
}

static bool has_row_work(const LoopPrinter *l, int section) {
  if (section == 0) return true;
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && l->time[id] == section && expr_level(l, id) <= LEVEL_ROW) return true;
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_REDUCE_INNER && root_level(l, root) <= LEVEL_ROW && l->time[root->expr] == section)
      return true;
  }
  return false;
}

// What a row, or a row in each lane, adds to an outer reduction of scalars.
static void print_row_share(LoopPrinter *l, const Root *root) {
  const char *name = l->access_name[root->access];
  print_indent(l);
  const char *combine = expr_info[reductions[root_reduction(l, root)].combine].name;
  if (!l->loop->is_across) {
    add_part_test(l, root->access);
    text_format(l->out, "*part_%s = f64_%s(*part_%s, (double)", name, combine, name);
    add_scalar(l, root->expr);
    text_add_string(l->out, ");\n");
    return;
  }
  const char *merge = l->is_tail ? "v_merge(n, " : "";
  text_format(l->out, "v_store(part_%s, %sv_%s(v_load(part_%s), ", name, merge, combine, name);
  add_vector(l, root->expr);
  if (l->is_tail) text_format(l->out, "), v_load(part_%s)));\n", name);
  else text_add_string(l->out, "));\n");
}

static void print_row_roots(LoopPrinter *l, int section) {
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind == ROOT_REDUCE_INNER || root_level(l, root) > LEVEL_ROW || l->time[root->expr] != section) continue;
    if (root->kind == ROOT_STORE && l->loop->is_across) print_vector_store(l, root);
    else if (root->kind == ROOT_STORE) print_scalar_store(l, root);
    else print_row_share(l, root);
  }
}

AxisSet mentioned_axes(LoopPrinter *l, int section) {
  bool is_whole = !has_rows(l);
  AxisSet axes = 0;
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    const Expr *e = &l->k->exprs[id];
    if (!l->is_needed[id] || (!expr_has_access(e) && e->op != EXPR_COMBINE && e->op != EXPR_INDEX)) continue;
    bool is_vector = expr_level(l, id) == LEVEL_VECTOR; // its row pointer is set in section 0
    if (is_vector && !has_vectors(l)) continue;
    AxisSet own = expr_has_access(e) ? access_axes(l->k, &l->k->accesses[e->access]) : e->axes;
    if (is_whole || (is_vector ? section == 0 : l->time[id] == section)) axes |= own;
  }
  for (size_t i = 0; i < l->loop->nroots; i++) {
    const Root *root = &l->loop->roots[i];
    if (root->kind != ROOT_STORE) continue;
    bool is_vector = root_level(l, root) == LEVEL_VECTOR;
    if (is_vector && !has_vectors(l)) continue;
    if (is_whole || (is_vector ? section == 0 : l->time[root->expr] == section))
      axes |= access_axes(l->k, &l->k->accesses[root->access]);
  }
  return axes & loop_outer_axes(l->loop);
}

// Those outer axes' indices from the flattened one.
static void print_row_indices(LoopPrinter *l, AxisSet axes) {
  const Loop *loop = l->loop;
  const char *row = has_rows(l) ? "o + (size_t)r" : "o", *part = has_rows(l) ? "(o + (size_t)r)" : "o";
  int64_t below = 1;
  Powers powers = 0;
  for (int i = loop->nouter - 1; i >= 0; i--) {
    int axis = loop->order[i];
    const Axis *own = &l->k->axes[axis];
    if (axes >> axis & 1) {
      print_indent(l);
      text_format(l->out, "const size_t %s = %s", axis_name(l, axis), below != 1 || i > 0 ? part : row);
      if (below != 1) text_format(l->out, " / %s", number_text(l, below, powers));
      if (i > 0) text_format(l->out, " %% %s", number_text(l, own->extent, own->powers));
      text_add_string(l->out, ";\n");
    }
    below *= own->extent > 0 ? own->extent : 1;
    powers += own->powers;
  }
}

void print_section(LoopPrinter *l, int section) {
  need_all(l);
  if (!has_row_work(l, section)) return;
  for (ExprId id = 1; id < l->k->nexprs; id++) {
    if (!is_printed(l, id) || l->time[id] != section) continue;
    Level level = expr_level(l, id);
    if (level == LEVEL_CALL) print_scalar_expr(l, id, 0);
    else if (level == LEVEL_ROW && has_rows(l))
      print_line(l, "%s %s[%d];", scalar_type(l, &l->k->exprs[id]), l->name[id], l->loop->rows);
  }
  open_rows(l);
  if (section == 0 || has_rows(l)) print_row_indices(l, mentioned_axes(l, section));
  if (section == 0) for_each_pointer(l, set_pointer);
  if (section == 0 && l->loop->is_across) for_each_pointer(l, declare_rows);
  for (ExprId id = 1; id < l->k->nexprs; id++)
    if (is_printed(l, id) && l->time[id] == section && expr_level(l, id) == LEVEL_ROW) {
      if (l->loop->is_across) print_vector_expr(l, id);
      else print_scalar_expr(l, id, loop_outer_axes(l->loop));
    }
  print_row_roots(l, section);
  close_rows(l);
}
