// Prints schedules.
#include "ir/kernel/nest.h"

#include "ir/kernel/scatter.h"
#include "ir/support/escape.h"

static void print_name(const char *before, const char *name, Text *out) {
  text_format(out, "%s ", before);
  text_add_user_string(out, SINK_TERMINAL, name);
}

static void print_axes(const Kernel *k, const int *order, int count, Text *out) {
  for (int i = 0; i < count; i++)
    text_format(out, "%s%s %lld", i ? ", " : "", k->axes[order[i]].name, (long long)k->axes[order[i]].extent);
}

static const char *access_name(const Schedule *s, AccessId id) {
  const Access *a = &s->kernel->accesses[id];
  return a->value ? a->value->name : s->temporaries[a->temporary].name;
}

static const char *store_verb(const Schedule *s, const Root *root) {
  const Access *a = &s->kernel->accesses[root->access];
  if (!a->value && s->temporaries[a->temporary].is_own) return "keep";
  return root->is_streamed ? "stream" : "store";
}

static ExprOp outer_reduction(const Schedule *s, const Root *root) {
  return s->temporaries[s->kernel->accesses[root->access].temporary].reduction;
}

static void print_parts(int64_t count, const char *part, int64_t length, Text *out) {
  text_format(out, " in %lld %s%s", (long long)count, part, count == 1 ? "" : "s");
  if (count != 1) text_format(out, " of %lld", (long long)length);
}

void loop_print_order(const Kernel *k, const Loop *loop, Text *out) {
  text_add_string(out, "over ");
  if (loop->nouter) {
    print_axes(k, loop->axes, loop->nouter, out);
    if (!loop_tile(loop)) print_parts(loop_nblocks(k, loop), "block", loop_block_length(k, loop), out);
    if (loop_has(loop, LOOP_ROW_LANES)) text_format(out, ", %d rows in lanes", LANES);
    if (loop->rows > 1) text_format(out, ", %d at once", loop->rows);
    text_add_string(out, "; inside ");
  }
  print_axes(k, loop->axes + loop->nouter, loop->ninner, out);
  if (!loop->ninner) text_add_string(out, "nothing");
  if (loop_tile(loop)) print_parts(loop_nblocks(k, loop), "tile", loop_tile(loop), out);
  if (loop->is_peeled) text_add_string(out, ", rows peeled to cache lines");
  if (loop_has_nested_sums(k, loop)) text_add_string(out, ", sums within sums");
  if (kernel_is_scatter(k)) text_add_string(out, ", each row added to the row at its index");
  else if (loop_sums_in_lanes(loop))
    text_format(out, ", %d vector%s of sums at once", loop->vectors, loop->vectors == 1 ? "" : "s");
  if (loop->is_serial) text_add_string(out, ", on one thread");
  if (loop->is_reused) text_add_string(out, ", done by an earlier kernel");
  if (loop->is_backwards) text_add_string(out, ", last sweep backwards");
  if (loop->prefetch) text_format(out, ", prefetching %d row%s ahead", loop->prefetch, loop->prefetch == 1 ? "" : "s");
  if (loop->fetches_rows) text_format(out, ", prefetching the next rows");
  if (loop->ahead) text_format(out, ", prefetching %d elements ahead", loop->ahead);
  if (loop->iterations_ahead)
    text_format(out, ", prefetching %d iteration%s ahead", loop->iterations_ahead,
                loop->iterations_ahead == 1 ? "" : "s");
}

void loop_print_sweep(const Schedule *s, const Loop *loop, int sweep, Text *out) {
  const Kernel *k = s->kernel;
  const char *before = "";
  for (size_t i = 0; i < loop->nroots; i++) {
    const Root *root = &loop->roots[i];
    const char *label = k->exprs[root->expr].label;
    if (root->sweep != sweep) continue;
    text_add_string(out, before);
    const bool is_inner = root->kind == ROOT_REDUCE_INNER;
    const char *verb = root->kind == ROOT_STORE                      ? store_verb(s, root)
                       : is_inner                                    ? expr_info[k->exprs[root->expr].op].name
                       : outer_reduction(s, root) == EXPR_REDUCE_SUM ? "add up"
                                                                     : expr_info[outer_reduction(s, root)].name;
    print_name(verb, !is_inner ? access_name(s, root->access) : label ? label : "a row", out);
    if (root->order && root->order->is_fused) text_add_string(out, " of unrounded products");
    before = ", ";
  }
  for (int i = 0; i < loop->nspills; i++) {
    const char *label = k->exprs[loop->spills[i].expr].label;
    if (loop->spills[i].sweep == sweep) print_name(", spill", label ? label : "a vector", out);
  }
}

// Whether the sums have the same levels.
static bool are_alike(const SumOrder *a, const SumOrder *b) {
  SumOrder of = *b;
  of.reduction = a->reduction, of.is_fused = a->is_fused;
  return sum_order_equal(a, &of);
}

// Prints the orders of a loop's sums, each once.
static void print_orders(const Kernel *k, const Loop *loop, Text *out) {
  for (size_t i = 0; i < loop->nroots; i++) {
    const SumOrder *o = loop->roots[i].order;
    size_t first = 0;
    while (o && !(loop->roots[first].order && are_alike(loop->roots[first].order, o))) first++;
    if (!o || first < i) continue;
    text_add_string(out, "    sums ");
    sum_order_print(k, o, out);
    text_add_string(out, "\n");
  }
}

static void print_nest(const Kernel *k, const Loop *loop, Text *out) {
  const Segments segments = loop_segments(loop);
  const Nest nest = loop_nest(k, loop, &segments);
  text_add_string(out, "    nest ");
  nest_print(k, loop, &nest, out);
  text_add_string(out, "\n");
}

static void print_axis_names(const Kernel *k, const char *before, AxisSet axes, Text *out) {
  for (int axis = 0; axis < k->naxes; axis++) {
    if (!(axes >> axis & 1)) continue;
    text_format(out, "%s%s", before, k->axes[axis].name);
    before = ", ";
  }
}

static void print_kernel(const Kernel *k, Text *out) {
  bool *is_needed = ARENA_ARRAY(k->arena, bool, k->nexprs);
  if (!is_needed) out->out_of_memory = true;
  if (!is_needed) return;
  text_add_string(out, "  over ");
  int axes[MAX_AXES];
  for (int axis = 0; axis < k->naxes; axis++) axes[axis] = axis;
  print_axes(k, axes, k->naxes, out);
  text_add_string(out, "\n");
  for (size_t i = 0; i < k->nstores; i++) is_needed[k->stores[i].value] = true;
  for (ExprId id = (ExprId)k->nexprs; id-- > 1;)
    for (int a = 0; a < 3 && is_needed[id]; a++) is_needed[k->exprs[id].args[a]] = true;
  for (ExprId id = 1; id < k->nexprs; id++) {
    const Expr *e = &k->exprs[id];
    if (!is_needed[id] || !expr_is_reduction(e)) continue;
    text_format(out, "    %s", expr_info[e->op].name);
    if (e->label) print_name("", e->label, out);
    print_axis_names(k, " over ", e->reduced, out);
    print_axis_names(k, ", for each ", e->axes, out);
    text_add_string(out, "\n");
  }
}

void schedule_print(const Schedule *s, Text *out) {
  if (!s->nloops) print_kernel(s->kernel, out);
  for (const Loop *loop = s->loops; loop < s->loops + s->nloops; loop++) {
    text_add_string(out, "  loop ");
    loop_print_order(s->kernel, loop, out);
    text_add_string(out, "\n");
    if (loop->nouter + loop->ninner) print_nest(s->kernel, loop, out);
    print_orders(s->kernel, loop, out);
    for (int sweep = 0; sweep < loop->nsweeps; sweep++) {
      text_format(out, "    sweep %d: ", sweep + 1);
      loop_print_sweep(s, loop, sweep, out);
      text_add_string(out, "\n");
    }
  }
}
