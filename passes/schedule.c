// Which axes are outer and which inner, when each expression can be computed, and where it is kept till then.
//
// An expression's time is (phase, sweep). A reduction over the inner axes is there one sweep later; a reduction over
// outer axes only one phase later, after all blocks have left their partial sums. Each phase is at most one main
// loop over the whole domain, preceded by side loops over few axes that combine partial sums and fold constants.
//
// Where outer reductions keep some of the inner axes, sums are nested: one over the vector axis is there as soon as an
// iteration of the middle axes has its vectors ("late" in its sweep), and enters the sums over these and the outer
// ones.
#include "passes/schedule.h"

#include "passes/keep_masks.h"
#include "passes/nest_sums.h"
#include "passes/reuse.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

const ScheduleKeyInfo schedule_keys[SCHEDULE_KEYS] = {
    [SCHEDULE_ROWS] = {"rows", 1, 8, false, "outer iterations handled together"},
    [SCHEDULE_ACROSS] = {"across", 0, 1, true,
                         "1: rows of at most 64 elements across lanes, where that can be; 0: never"},
    [SCHEDULE_ACCUMULATORS] = {"accumulators", 1, 8, true, "partial sums a lane keeps in a row's sum"},
    [SCHEDULE_BLOCK] = {"block", 1, LONGEST_CHAIN, true, "outer iterations in a block; sums over them go by blocks"},
    [SCHEDULE_TILE] = {"tile", 16, 1 << 24, true, "elements in a block, where there is but one axis"},
    [SCHEDULE_PREFETCH] = {"prefetch", 0, 64, false, "outer iterations ahead that are fetched; 0: none"},
    [SCHEDULE_STREAM] = {"stream", 0, 1, false, "1: store past the caches where rows are aligned; 0: never"},
    [SCHEDULE_MASKS] = {"masks", 0, 1, false, "1: keep masks that spare later sweeps a tensor; 0: never"},
};

bool schedule_override(ScheduleOverrides *overrides, const char *setting, Diagnostics *d) {
  const char *equals = strchr(setting, '=');
  size_t length = equals ? (size_t)(equals - setting) : 0;
  for (int key = 0; key < SCHEDULE_KEYS; key++) {
    const ScheduleKeyInfo *info = &schedule_keys[key];
    if (!length || strlen(info->name) != length || memcmp(info->name, setting, length) != 0) continue;
    char *end;
    long long value = strtoll(equals + 1, &end, 10);
    if (end == equals + 1 || *end || value < info->least || value > info->most)
      return error_at(d, (Position){0}, "schedule %s: expected %lld to %lld, found %s", info->name,
                      (long long)info->least, (long long)info->most, equals + 1);
    overrides->key[key].is_set = true;
    overrides->key[key].value = value;
    return true;
  }
  Text names;
  text_init(&names, d->arena.allocator);
  for (int key = 0; key < SCHEDULE_KEYS; key++) text_format(&names, "%s%s", key ? ", " : "", schedule_keys[key].name);
  error_at(d, (Position){0}, "schedule %s: expected key=number with a key of %s", setting, text_string(&names));
  text_deinit(&names);
  return false;
}

typedef struct Time {
  int phase, sweep;
} Time;

typedef struct Scheduling {
  Kernel *k;
  const Target *target;
  const ScheduleOverrides *overrides;
  int vector_axis;
  AxisSet inner, outer, kept; // kept: outer axes that outer reductions keep
  AxisSet cut;                // axes that are cut into blocks or tiles
  bool is_column;             // sums are along one short axis that is not the vector's: outer vectors lie across it
  bool is_nested;             // sums over the vector axis lie within those over the middle axes
  bool is_tiled;              // no outer axes: the vector axis is cut into tiles
  Time *time;                 // by original ExprId
  bool *is_narrow;            // does not vary over any axis that is cut
  bool *needs_combine;        // depends on an outer reduction
  bool *is_late;              // depends on a sum over the vector axis alone that is nested in others
  bool *needs_row;            // depends on an inner reduction, which is there in the loop that makes it alone
  bool *is_kept_value;        // computed by a side loop and kept in a temporary
  AccessId *kept_access;      // where
  ExprId *combine;            // by original reduction: the expression that adds up its partial sums
  ExprId *rebuilt;            // memo of one loop's expressions
  bool loads_kept;            // the loop at work finds kept values in their temporaries
  size_t noriginals;
} Scheduling;

static int64_t clamp(int64_t x, int64_t least, int64_t most) {
  return x < least ? least : x > most ? most : x;
}

static int64_t overridden(const Scheduling *s, ScheduleKey key, int64_t chosen) {
  return s->overrides->key[key].is_set ? s->overrides->key[key].value : chosen;
}

static bool is_leaf(const Expr *e) {
  return (e->op == EXPR_LOAD && !e->args[0]) || e->op == EXPR_CONSTANT || e->op == EXPR_INDEX || e->op == EXPR_COUNT ||
         e->op == EXPR_SHARE || e->op == EXPR_INTEGER;
}

static AxisSet all_axes(const Kernel *k) {
  return (1U << k->naxes) - 1;
}

// A temporary's view of what varies over these axes, row-major, and how many elements that is.
static Access dense_access(const Kernel *k, AxisSet axes, int64_t *nelems, Powers *powers) {
  Access a = {0};
  *nelems = 1;
  *powers = 0;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    if (!(axes >> axis & 1)) continue;
    a.stride[axis] = *nelems;
    a.stride_powers[axis] = *powers;
    *nelems *= k->axes[axis].extent;
    *powers += k->axes[axis].powers;
  }
  return a;
}

static int64_t access_nelems(const Kernel *k, const Access *a) {
  return axes_nelems(k, access_axes(k, a));
}

// The axis along which most elements lie next to each other.
static int choose_vector_axis(const Kernel *k) {
  int best = k->naxes - 1;
  int64_t most = -1;
  for (int axis = k->naxes - 1; axis >= 0; axis--) {
    int64_t nelems = 0;
    for (size_t i = 0; i < k->naccesses; i++)
      if (k->accesses[i].stride[axis] == 1) nelems += access_nelems(k, &k->accesses[i]);
    if (nelems <= most) continue;
    most = nelems;
    best = axis;
  }
  return best;
}

// Whether something that depends on reduction r varies over what it reduces, so that the data is looked at again.
static bool is_fed_back(const Kernel *k, ExprId r, bool *depends) {
  memset(depends, 0, k->nexprs * sizeof *depends);
  depends[r] = true;
  for (ExprId i = r + 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    for (int a = 0; a < 3; a++) depends[i] |= e->args[a] && depends[e->args[a]];
    if (depends[i] && (e->axes & k->exprs[r].reduced)) return true;
  }
  return false;
}

// Whether the data waits for reductions, all over one axis that is not the vector's and so short that a vector's
// columns of each tensor fit the first level; *axes is that one's set.
static bool has_short_columns(const Scheduling *s, AxisSet *axes, bool *depends) {
  const Kernel *k = s->k;
  AxisSet all = all_axes(k), vector = 1U << s->vector_axis;
  bool waits = false;
  *axes = 0;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (e->op == EXPR_INDEX || (e->op == EXPR_LOAD && e->args[0])) return false; // nothing that lanes tell apart
    if (!expr_is_reduction(e)) continue;
    if ((*axes && e->reduced != *axes) || e->axes != (all & ~e->reduced)) return false;
    *axes = e->reduced;
    waits |= is_fed_back(k, r, depends);
  }
  if (!waits || *axes & vector || (*axes & (*axes - 1)) || axes_powers(k, *axes) || k->is_f64) return false;
  if (axes_nelems(k, *axes) > LONGEST_CHAIN || k->axes[s->vector_axis].extent < LANES) return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (a->stride[s->vector_axis] && (!is_float || a->stride[s->vector_axis] != 1)) return false;
  }
  return true;
}

// The inner axes: those of the reductions that the data waits for, if the vector axis is among them; else the vector
// axis alone, and such reductions take a full loop.
static bool choose_axes(Scheduling *s) {
  enum { FEW_ROWS = 4, MUCH_WORK = 1 << 16 };
  Kernel *k = s->k;
  AxisSet vector = 1U << s->vector_axis;
  bool *depends = ARENA_ARRAY(k->arena, bool, k->nexprs);
  if (!depends) {
    k->out_of_memory = true;
    return false;
  }
  s->inner = vector;
  bool is_found_fed_back = false, is_found = false;
  for (ExprId r = 1; r < k->nexprs; r++) {
    const Expr *e = &k->exprs[r];
    if (!expr_is_reduction(e) || !(e->reduced & vector)) continue;
    bool fed_back = is_fed_back(k, r, depends);
    bool is_better = !is_found || (fed_back && !is_found_fed_back) ||
                     (fed_back == is_found_fed_back && axes_nelems(k, e->reduced) < axes_nelems(k, s->inner));
    if (!is_better) continue;
    is_found = true;
    is_found_fed_back = fed_back;
    s->inner = e->reduced;
  }
  AxisSet all = all_axes(k), columns;
  if (overridden(s, SCHEDULE_ACROSS, true) && has_short_columns(s, &columns, depends)) {
    s->is_column = true;
    s->inner = columns;
    s->outer = all & ~columns;
    s->kept = s->outer & ~vector;
    return true;
  }
  if (axes_nelems(k, all & ~s->inner) < FEW_ROWS && s->inner != vector && axes_nelems(k, all) >= MUCH_WORK)
    s->inner = vector; // too few rows to share out
  s->outer = all & ~s->inner;
  if (!s->outer && s->inner != vector) { // several inner axes and no outer one: leave the vector axis inside alone
    s->inner = vector;
    s->outer = all & ~vector;
  }
  s->is_tiled = !s->outer;
  return true;
}

static AxisSet middle_axes(const Scheduling *s) {
  return s->inner & ~(1U << s->vector_axis);
}

// A sum over the vector axis, to be added up over the middle ones.
static bool is_nested_reduction(const Scheduling *s, const Expr *e) {
  return s->is_nested && e->reduced == 1U << s->vector_axis;
}

// The innermost axis of main loops.
static int last_axis(const Scheduling *s) {
  return s->is_column ? __builtin_ctz(s->inner) : s->vector_axis;
}

static bool is_inner_reduction(const Scheduling *s, const Expr *e) {
  if (s->is_nested) return is_nested_reduction(s, e) || e->reduced == middle_axes(s);
  return !s->is_tiled && e->reduced == s->inner;
}

// Outer reductions must agree in which outer axes they keep, vary over all of these, and leave either all or none of
// the vector axis.
static bool check_reductions(Scheduling *s) {
  const Kernel *k = s->k;
  AxisSet removed = 0;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (!expr_is_reduction(e) || is_inner_reduction(s, e)) continue;
    bool has_vector = e->reduced >> s->vector_axis & 1;
    if (!s->is_tiled && !(e->reduced & s->outer)) return false;
    if (has_vector ? (e->reduced & s->inner) != s->inner : (e->reduced & s->inner) != 0) return false;
    if (removed && removed != (e->reduced & s->outer)) return false;
    removed = e->reduced & s->outer;
  }
  if (removed) s->kept = s->outer & ~removed;
  for (ExprId i = 1; i < k->nexprs; i++) {
    const Expr *e = &k->exprs[i];
    if (expr_is_reduction(e) && !is_inner_reduction(s, e) && (s->kept & ~e->axes)) return false;
  }
  return true;
}

// The same, with sums taken apart if they do not agree as they are.
static bool agree_reductions(Scheduling *s) {
  if (check_reductions(s)) return true;
  if (s->is_tiled || !middle_axes(s)) return false;
  s->is_nested = true;
  return kernel_nest_sums(s->k, s->vector_axis, s->inner) && check_reductions(s);
}

static Time later(Time a, Time b) {
  if (a.phase != b.phase) return a.phase > b.phase ? a : b;
  return a.sweep > b.sweep ? a : b;
}

// What depends on a nested sum is there at the end of each iteration of the middle axes, then and no more.
static bool find_lateness(Scheduling *s, ExprId id, Time t) {
  const Expr *e = &s->k->exprs[id];
  for (int a = 0; a < 3 && e->args[a]; a++) {
    if (!s->is_late[e->args[a]]) continue;
    Time arg = s->time[e->args[a]];
    if (arg.phase < t.phase || arg.sweep < t.sweep) return false;
    s->is_late[id] = !expr_is_reduction(e);
  }
  bool is_over_middle = s->is_nested && expr_is_reduction(e) && e->reduced == middle_axes(s);
  if (is_over_middle && !s->is_late[e->args[0]]) return false;
  s->is_late[id] |= expr_is_reduction(e) && is_nested_reduction(s, e);
  return !s->is_late[id] || (e->axes & s->inner) == middle_axes(s);
}

// A reduction over outer axes that contains the vector axis first sums inside each row. False where a row's sum would
// be needed in a later phase.
static bool find_times(Scheduling *s) {
  const Kernel *k = s->k;
  s->cut = s->is_tiled ? s->inner : s->outer & ~s->kept;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    Time t = {0, 0};
    for (int a = 0; a < 3 && e->args[a]; a++) {
      t = later(t, s->time[e->args[a]]);
      s->needs_combine[i] |= s->needs_combine[e->args[a]];
      s->needs_row[i] |= s->needs_row[e->args[a]];
    }
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (s->needs_row[e->args[a]] && s->time[e->args[a]].phase < t.phase) return false;
    if (!find_lateness(s, i, t)) return false;
    if (expr_is_reduction(e) && is_inner_reduction(s, e)) {
      t.sweep += !s->is_late[i];
      s->needs_row[i] = true;
    } else if (expr_is_reduction(e)) {
      t = (Time){t.phase + 1, 0};
      s->needs_combine[i] = true;
      s->needs_row[i] = false; // its blocks' shares lie in memory
    }
    s->time[i] = t;
    s->is_narrow[i] = !(e->axes & s->cut);
  }
  return true;
}

static AxisSet store_axes(const Kernel *k, const Store *store) {
  return root_axes(k, &(Root){.kind = ROOT_STORE, .expr = store->value, .access = store->access});
}

static bool is_narrow_store(const Scheduling *s, const Store *store) {
  return s->k->naxes && !(store_axes(s->k, store) & s->cut);
}

// Whether a loop can store or add up what varies over these inner axes: with vectors, or at the end of each iteration
// of the middle axes.
static bool is_root_along(const Scheduling *s, ExprId value, AxisSet inner) {
  return s->is_late[value] ? inner == middle_axes(s) : !inner || inner >> last_axis(s) & 1;
}

// Side loops have no sums of their own, and nothing is stored or added up along inner axes without the vector's but
// what has just been summed over that.
static bool check_roots(const Scheduling *s) {
  const Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    if (expr_is_reduction(e) && !is_root_along(s, e->args[0], k->exprs[e->args[0]].axes & s->inner)) return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    ExprId value = k->stores[i].value;
    AxisSet own = store_axes(k, &k->stores[i]) & s->inner;
    if (is_narrow_store(s, &k->stores[i]) ? s->needs_row[value] : !is_root_along(s, value, own)) return false;
  }
  return true;
}

// Narrow values that wide ones, reductions or stores use are kept, unless they are cheap to compute again: loads,
// and what does not vary over inner axes and needs no partial sums. Masks are nothing that memory holds.
static bool should_keep(const Scheduling *s, ExprId id) {
  const Expr *e = &s->k->exprs[id];
  if (!s->is_narrow[id] || is_leaf(e) || expr_info[e->op].is_mask || s->needs_row[id]) return false;
  return s->needs_combine[id] || (e->axes & s->inner);
}

static bool add_kept_value(Scheduling *s, ExprId id) {
  Kernel *k = s->k;
  if (s->is_kept_value[id]) return true;
  const Expr *e = &k->exprs[id];
  int64_t nelems;
  Powers powers;
  Access a = dense_access(k, e->axes, &nelems, &powers);
  a.type = k->is_f64 ? TYPE_F64 : TYPE_F32;
  a.temporary = kernel_add_temporary(k, e->label ? e->label : "folded", a.type, nelems);
  if (!k->out_of_memory) k->temporaries[a.temporary].powers = powers;
  s->kept_access[id] = kernel_add_access(k, &a);
  s->is_kept_value[id] = true;
  return !k->out_of_memory;
}

static bool find_kept_values(Scheduling *s) {
  const Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    bool is_wide_use = !s->is_narrow[i] || expr_is_reduction(e);
    for (int a = 0; a < 3 && e->args[a]; a++)
      if (is_wide_use && should_keep(s, e->args[a]) && !add_kept_value(s, e->args[a])) return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    ExprId value = k->stores[i].value;
    if (!is_narrow_store(s, &k->stores[i]) && should_keep(s, value) && !add_kept_value(s, value)) return false;
  }
  return true;
}

static bool is_outer_reduction(const Scheduling *s, const Expr *e) {
  return expr_is_reduction(e) && !is_inner_reduction(s, e);
}

// The expression as a loop computes it: outer reductions of earlier phases combine partial sums, and in main loops
// kept values are loads.
static ExprId rebuild(Scheduling *s, ExprId id) {
  Kernel *k = s->k;
  if (!id || s->rebuilt[id]) return id ? s->rebuilt[id] : 0;
  Expr e = k->exprs[id];
  ExprId result, args[3];
  if (s->loads_kept && s->is_kept_value[id]) result = expr_load(k, s->kept_access[id]);
  else if (is_outer_reduction(s, &e)) result = s->combine[id];
  else if (is_leaf(&e)) result = id;
  else {
    for (int a = 0; a < 3; a++) args[a] = rebuild(s, e.args[a]);
    result = expr_with_arguments(k, &e, args);
  }
  expr_label(k, result, e.label);
  s->rebuilt[id] = result;
  return result;
}

static void start_loops(Scheduling *s, bool loads_kept) {
  s->loads_kept = loads_kept;
  memset(s->rebuilt, 0, s->noriginals * sizeof *s->rebuilt);
}

// Side loops: one for each set of axes that values kept or stored before this phase vary over.

static Loop *side_loop(Scheduling *s, AxisSet axes, size_t first) {
  enum { SMALL = 1 << 14 };
  Kernel *k = s->k;
  for (size_t i = first; i < k->nloops; i++)
    if ((loop_outer_axes(&k->loops[i]) | loop_inner_axes(&k->loops[i])) == axes) return &k->loops[i];
  Loop *loop = kernel_add_loop(k);
  if (!loop) return NULL;
  loop->nsweeps = 1;
  for (int axis = 0; axis < k->naxes; axis++)
    if (axes >> axis & 1) loop->order[loop->nouter++] = axis;
  if (loop->nouter) { // the last is the inner one
    loop->nouter--;
    loop->ninner = 1;
  }
  loop->block = clamp(SMALL / clamp(axes_nelems(k, loop_inner_axes(loop)), 1, SMALL), 1, SMALL);
  if (!loop->nouter && loop->ninner) loop->tile = SMALL;
  return loop;
}

static bool add_side_root(Scheduling *s, ExprId id, AccessId access, size_t first) {
  Loop *loop = side_loop(s, store_axes(s->k, &(Store){access, id}), first);
  return loop && loop_add_root(s->k, loop, (Root){ROOT_STORE, 0, rebuild(s, id), access, false, 0});
}

static bool add_side_loops(Scheduling *s, int phase) {
  Kernel *k = s->k;
  size_t first = k->nloops;
  start_loops(s, false);
  for (ExprId i = 1; i < s->noriginals; i++)
    if (s->is_kept_value[i] && s->time[i].phase == phase && !add_side_root(s, i, s->kept_access[i], first))
      return false;
  for (size_t i = 0; i < k->nstores; i++) {
    Store store = k->stores[i];
    if (is_narrow_store(s, &store) && s->time[store.value].phase == phase &&
        !add_side_root(s, store.value, store.access, first))
      return false;
  }
  return true;
}

// Main loops

// Iterations in a block: enough work to be worth handing out, few enough that a chain of additions stays short and
// partial sums stay small beside the data. Shapes alone decide.
static int64_t block_length(const Scheduling *s, bool is_small, int64_t partial_nelems, bool is_across) {
  enum { ELEMENTS = 1 << 16, FEW_ELEMENTS = 1 << 12, LEAST_WITH_PARTIALS = 32 };
  int64_t width = axes_nelems(s->k, s->inner);
  int64_t block = (is_small ? FEW_ELEMENTS : ELEMENTS) / (width > 0 ? width : 1);
  int64_t together = is_across ? LANES : 4, longest = is_across ? LONGEST_CHAIN * LANES : LONGEST_CHAIN;
  block = (clamp(block, 1, INT32_MAX) + together - 1) / together * together;
  int64_t least = width > 0 ? ((int64_t)LEAST_WITH_PARTIALS * partial_nelems + width - 1) / width : LEAST_WITH_PARTIALS;
  return partial_nelems ? clamp(block, clamp(least, 1, LEAST_WITH_PARTIALS), longest) : block;
}

static void choose_block(const Scheduling *s, Loop *loop, int64_t partial_nelems) {
  enum { SMALL = 1 << 18 };
  AxisSet axes = (s->outer & ~s->kept) | s->inner;
  bool is_small = axes_nelems(s->k, axes) <= SMALL, is_set = s->overrides->key[SCHEDULE_BLOCK].is_set;
  loop->block = overridden(s, SCHEDULE_BLOCK, block_length(s, is_small, partial_nelems, loop->is_across));
  if (is_set || s->is_tiled || !axes_powers(s->k, axes)) return;
  loop->few_block = block_length(s, true, partial_nelems, loop->is_across);
  loop->many_block = block_length(s, false, partial_nelems, loop->is_across);
  if (loop->few_block != loop->many_block) loop->few_work = SMALL;
}

// Bytes that an outer iteration reads.
static int64_t row_nbytes(const Scheduling *s) {
  const Kernel *k = s->k;
  int64_t nbytes = 0;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    AxisSet axes = access_axes(k, a);
    bool is_stored = false; // past the caches, when there is much
    for (size_t n = 0; n < k->nstores; n++) is_stored |= k->stores[n].access == i;
    if (a->value && !is_stored && (axes & s->outer) && (axes & s->inner))
      nbytes += axes_nelems(k, s->inner) * (int64_t)type_nbytes(a->type);
  }
  return nbytes;
}

// Whether a row's run along the vector axis is shorter than two cache lines, so that its neighbours' share them.
static bool has_short_runs(const Scheduling *s) {
  enum { TWO_LINES = 128 };
  const Kernel *k = s->k;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    int64_t nbytes = k->axes[s->vector_axis].extent * (int64_t)type_nbytes(a->type);
    if (a->value && (access_axes(k, a) & s->outer) && a->stride[s->vector_axis] == 1 && nbytes < TWO_LINES) return true;
  }
  return false;
}

// Rows to fetch ahead: so many that they and those at work take up half of a core's second level. With more, what is
// fetched pushes out what is still needed.
static int64_t choose_prefetch(const Scheduling *s, const Loop *loop) {
  int64_t nbytes = row_nbytes(s), fit = nbytes ? s->target->l2_nbytes / 2 / nbytes : 0;
  return clamp(fit - loop->rows, 0, loop->rows > 1 ? 2 * (int64_t)loop->rows : 1);
}

// Rows so short that vectors along them are mostly sums across lanes and rests go across lanes instead: one outer axis,
// one inner, and every access along both in the order of rows or of columns.
static bool can_go_across(const Scheduling *s, const Loop *loop) {
  enum { WIDEST = 64 }; // what a row's copy in the first level allows
  const Kernel *k = s->k;
  if (s->is_tiled || k->is_f64 || loop->nouter != 1 || loop->nkept || loop->ninner != 1) return false;
  int outer = loop->order[0], inner = loop->order[1];
  for (size_t i = 0; i < loop->nroots; i++) // a sum of no row's own would be the same in each lane
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && !(k->exprs[loop->roots[i].expr].axes >> outer & 1)) return false;
  if (k->axes[outer].extent < LANES || k->axes[inner].powers || k->axes[inner].extent < 1 ||
      k->axes[inner].extent > WIDEST)
    return false;
  for (ExprId i = 1; i < k->nexprs; i++) // nor are coordinates and what lies at them
    if (k->exprs[i].op == EXPR_INDEX || k->exprs[i].op == EXPR_IS_KEPT ||
        (k->exprs[i].op == EXPR_LOAD && k->exprs[i].args[0]))
      return false;
  for (size_t i = 0; i < k->naccesses; i++) {
    const Access *a = &k->accesses[i];
    bool is_float = a->type == TYPE_F32 || a->type == TYPE_BF16 || a->type == TYPE_F16;
    if (type_is_packed(a->type)) return false;
    if (a->stride[outer] && (!is_float || (a->stride[inner] > 1 && a->stride[outer] != 1))) return false;
  }
  return true;
}

// Measured on layer norm's gradient, from width 8 to 64: across lanes a row costs by its elements; along it, by its
// vectors, by sums across lanes, and by a last part, which delays as much as two or three vectors.
static bool should_go_across(const Scheduling *s, const Loop *loop, bool has_inner_sums) {
  int64_t width = axes_nelems(s->k, s->inner);
  bool is_short = has_inner_sums ? width <= LANES || (width % LANES && width < 5 * LANES / 2) : width < LANES;
  return can_go_across(s, loop) && overridden(s, SCHEDULE_ACROSS, is_short);
}

// Vectors of 16-bit numbers fill a line by halves, and lines that wait for their other half are few.
static int count_narrow_stores(const Scheduling *s) {
  int n = 0;
  for (size_t i = 0; i < s->k->nstores; i++) {
    const Access *a = &s->k->accesses[s->k->stores[i].access];
    n += type_nbytes(a->type) < 4 && (access_axes(s->k, a) & s->outer);
  }
  return n;
}

static void choose_numbers(const Scheduling *s, Loop *loop) {
  enum {
    COLUMNS_AHEAD = 2 * LANES,
    MANY_ROWS = 16,
    LONG_ROW = 1 << 14,
    TILE = 1 << 15,
    TILE_WITH_SUMS = 1 << 13,
    PAGE = 1 << 10, // of f32
    FEW_ELEMENTS = 1 << 15
  };
  bool has_inner_sums = false;
  int64_t partial_nelems = 0; // of the largest array of partial sums
  for (size_t i = 0; i < loop->nroots; i++) {
    has_inner_sums |= loop->roots[i].kind == ROOT_REDUCE_INNER;
    const Access *a = &s->k->accesses[loop->roots[i].access];
    if (loop->roots[i].kind != ROOT_REDUCE_OUTER || !access_axes(s->k, a)) continue;
    if (access_nelems(s->k, a) > partial_nelems) partial_nelems = access_nelems(s->k, a);
  }
  const bool has_partials = partial_nelems;
  int64_t rows = axes_nelems(s->k, s->outer), width = axes_nelems(s->k, s->inner);
  loop->is_serial = rows * width <= FEW_ELEMENTS;
  if (axes_powers(s->k, s->outer | s->inner)) loop->serial_work = FEW_ELEMENTS;
  loop->is_across = s->is_column || should_go_across(s, loop, has_inner_sums);
  bool can_share_rows = !loop->is_across && !loop->is_nested && loop->nouter && rows >= MANY_ROWS &&
                        width <= LONG_ROW && (loop->ninner == 1 || has_short_runs(s));
  if (s->is_tiled) loop->tile = overridden(s, SCHEDULE_TILE, has_inner_sums ? TILE_WITH_SUMS : TILE);
  choose_block(s, loop, partial_nelems);
  if (s->is_column) loop->block = (loop->block + LANES - 1) / LANES * LANES;
  if (s->is_column && rows * width > FEW_ELEMENTS)
    loop->prefetch = (int)overridden(s, SCHEDULE_PREFETCH, COLUMNS_AHEAD);
  if (loop->is_across) return;
  if (has_inner_sums) loop->accumulators = (int)overridden(s, SCHEDULE_ACCUMULATORS, can_share_rows ? 1 : 4);
  if (can_share_rows && loop->accumulators == 1) {
    int most = s->target->vector_registers < 16 ? 2 : 4, narrow = count_narrow_stores(s);
    if (loop->ninner == 1 && narrow) most = narrow > 1 ? 1 : 2;
    // What is looked at again must stay in the first level, unless shared partial sums are worth more.
    while (has_inner_sums && !has_partials && most > 1 && most * row_nbytes(s) > s->target->l1_nbytes) most /= 2;
    bool are_shared = has_inner_sums || has_partials || width >= PAGE; // shorter ones are best one behind the other
    loop->rows = (int)overridden(s, SCHEDULE_ROWS, are_shared ? most : 1);
  }
  if (has_inner_sums && (loop->nouter == 1 || loop->rows == 1) && rows * width > FEW_ELEMENTS)
    loop->prefetch = (int)overridden(s, SCHEDULE_PREFETCH, choose_prefetch(s, loop));
}

// Elements of an access that stay in the caches.
static int64_t cached_nelems(const Scheduling *s, const Access *a) {
  return 2 * s->target->l2_nbytes / (int64_t)type_nbytes(a->type);
}

static bool is_worth_streaming(const Scheduling *s, const Access *a) {
  return overridden(s, SCHEDULE_STREAM, access_nelems(s->k, a) > cached_nelems(s, a));
}

// Whether some row of an access begins within a cache line though the tensor begins one.
static bool has_rows_within_lines(const Scheduling *s, const Access *a) {
  enum { LINE = 64 };
  for (int axis = 0; axis < s->k->naxes; axis++)
    if (axis != s->vector_axis &&
        kernel_factor(s->k, a->stride[axis], a->stride_powers[axis]) * (int64_t)type_nbytes(a->type) % LINE)
      return true;
  return false;
}

// Long rows that do not all begin a cache line: a sweep with one store and no sums may begin where a line does.
static bool should_peel(const Scheduling *s, const Loop *loop) {
  enum { LONG_RUN = 1 << 12 };
  const Kernel *k = s->k;
  const Root *store = NULL;
  if (loop->is_across || s->is_tiled || loop->rows > 1 || k->is_f64) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_STORE && loop->roots[i].sweep == loop->nsweeps - 1) store = &loop->roots[i];
  if (!store || k->axes[s->vector_axis].extent < LONG_RUN || k->axes[s->vector_axis].powers) return false;
  for (size_t i = 0; i < loop->nroots; i++)
    if (&loop->roots[i] != store && loop->roots[i].sweep == store->sweep) return false;
  const Access *a = &k->accesses[store->access];
  return a->value && a->type == TYPE_F32 && a->stride[s->vector_axis] == 1 && has_rows_within_lines(s, a) &&
         is_worth_streaming(s, a);
}

// Stores go past the caches when they would not stay there, and every row of them starts a cache line; across lanes,
// every LANES rows that lie one behind the other.
static bool can_stream(const Scheduling *s, const Loop *loop, const Root *store) {
  const Kernel *k = s->k;
  const Access *a = &k->accesses[store->access];
  if (!a->value || !type_is_float(a->type) || k->is_f64 != (a->type == TYPE_F64) || a->stride[s->vector_axis] != 1)
    return false;
  const bool is_peeled = loop->is_peeled && store->sweep == loop->nsweeps - 1;
  if (!loop->is_across || s->is_column) return is_peeled || !has_rows_within_lines(s, a);
  return a->stride[loop->order[0]] == k->axes[s->vector_axis].extent &&
         a->stride_powers[loop->order[0]] == k->axes[s->vector_axis].powers;
}

// Whether two blocks may write halves of one byte: each must be neighbours in memory, from a whole byte on.
static bool shares_bytes(const Kernel *k, const Loop *loop, const Access *a) {
  int64_t nelems = loop->tile ? loop->tile : loop->block, next = 1;
  bool is_dense = !loop->nkept && a->offset % 2 == 0 && !a->offset_powers;
  if (!type_is_packed(a->type)) return false;
  for (int i = loop->nouter + loop->ninner - 1; i >= 0; i--) {
    is_dense &= a->stride[loop->order[i]] == next && !a->stride_powers[loop->order[i]];
    is_dense &= !k->axes[loop->order[i]].powers || i == 0; // of the slowest nothing depends on the extent
    next *= k->axes[loop->order[i]].extent;
    if (i >= loop->nouter && !loop->tile) nelems *= k->axes[loop->order[i]].extent;
  }
  return !is_dense || nelems % 2 || (loop->few_work && (loop->few_block % 2 || loop->many_block % 2));
}

static bool add_partial(Scheduling *s, ExprId id, AccessId *access) {
  Kernel *k = s->k;
  const Expr e = k->exprs[id];
  AxisSet own = e.axes & s->inner;
  bool is_array = own >> s->vector_axis & 1;
  int64_t nelems;
  Powers powers;
  Access a = dense_access(k, own, &nelems, &powers);
  a.type = k->is_f64 || !is_array ? TYPE_F64 : TYPE_F32;
  a.temporary = kernel_add_temporary(k, e.label ? e.label : "sum", a.type, nelems); // a block's; grown below
  if (!k->out_of_memory) {
    k->temporaries[a.temporary].reduction = e.op;
    k->temporaries[a.temporary].powers = powers;
  }
  *access = kernel_add_access(k, &a);
  return !k->out_of_memory;
}

static bool add_inner_sum(Scheduling *s, Loop *loop, ExprId sum, int sweep) {
  for (size_t i = 0; i < loop->nroots; i++)
    if (loop->roots[i].kind == ROOT_REDUCE_INNER && loop->roots[i].expr == sum) return true;
  return loop_add_root(s->k, loop, (Root){ROOT_REDUCE_INNER, sweep, sum, 0, false, 0});
}

// One row's share of an outer reduction: its operand, or the row's own sum when the vector axis is reduced too.
static bool add_outer_reduction(Scheduling *s, Loop *loop, ExprId id) {
  Kernel *k = s->k;
  Expr e = k->exprs[id];
  Time t = s->time[e.args[0]];
  ExprId share = rebuild(s, e.args[0]);
  int sweep = t.sweep;
  if (e.reduced >> s->vector_axis & 1) {
    share = expr_label(k, expr_reduce(k, e.op, share, s->inner), e.label);
    if (!add_inner_sum(s, loop, share, sweep)) return false;
  }
  AccessId access;
  if (!add_partial(s, id, &access)) return false;
  return loop_add_root(k, loop, (Root){ROOT_REDUCE_OUTER, sweep, share, access, false, 0});
}

static bool fill_main_loop(Scheduling *s, Loop *loop, int phase) {
  Kernel *k = s->k;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr *e = &k->exprs[i];
    if (!expr_is_reduction(e) || s->time[e->args[0]].phase != phase) continue;
    if (is_outer_reduction(s, e)) {
      if (!add_outer_reduction(s, loop, i)) return false;
      continue;
    }
    int sweep = s->time[e->args[0]].sweep;
    ExprId sum = rebuild(s, i);
    if (!add_inner_sum(s, loop, sum, sweep)) return false;
  }
  for (size_t i = 0; i < k->nstores; i++) {
    Store store = k->stores[i];
    Time t = s->time[store.value];
    if (t.phase != phase || is_narrow_store(s, &store)) continue;
    if (!loop_add_root(k, loop, (Root){ROOT_STORE, t.sweep, rebuild(s, store.value), store.access, false, 0}))
      return false;
  }
  return true;
}

static void choose_streams(const Scheduling *s, Loop *loop) {
  bool is_set = s->overrides->key[SCHEDULE_STREAM].is_set;
  for (size_t i = 0; i < loop->nroots; i++) {
    Root *root = &loop->roots[i];
    const Access *a = &s->k->accesses[root->access];
    if (root->kind != ROOT_STORE || !can_stream(s, loop, root)) continue;
    bool is_open = !is_set && axes_powers(s->k, access_axes(s->k, a));
    root->is_streamed = is_open || is_worth_streaming(s, a);
    root->stream_nelems = is_open ? cached_nelems(s, a) : 0;
  }
}

static void order_axes(const Scheduling *s, Loop *loop) {
  const AxisSet groups[] = {s->kept, s->outer & ~s->kept, s->inner & ~(1U << last_axis(s))};
  int n = 0;
  for (int g = 0; g < 3; g++) {
    for (int axis = 0; axis < s->k->naxes; axis++)
      if (groups[g] >> axis & 1) loop->order[n++] = axis;
    if (g == 0) loop->nkept = n;
    if (g == 1) loop->nouter = n;
  }
  loop->order[n++] = last_axis(s);
  loop->ninner = n - loop->nouter;
}

// After a loop's blocks are known: room for a partial sum in each, and the expressions that add them up.
static bool finish_partials(Scheduling *s, size_t loop_index, int phase) {
  Kernel *k = s->k;
  size_t next = 0;
  for (ExprId i = 1; i < s->noriginals; i++) {
    const Expr e = k->exprs[i];
    if (!is_outer_reduction(s, &e) || s->time[e.args[0]].phase != phase) continue;
    const Loop *loop = &k->loops[loop_index];
    while (loop->roots[next].kind != ROOT_REDUCE_OUTER) next++;
    AccessId access = loop->roots[next++].access;
    Temporary *temporary = &k->temporaries[k->accesses[access].temporary];
    temporary->nelems *= loop_nblocks(k, loop);
    temporary->loop = (uint32_t)loop_index;
    s->combine[i] = expr_label(k, expr_combine(k, access, (uint32_t)loop_index, e.axes), e.label);
    if (!s->combine[i]) return false;
  }
  return true;
}

static int compare_roots(const void *a, const void *b) {
  const Root *x = a, *y = b;
  if (x->sweep != y->sweep) return x->sweep < y->sweep ? -1 : 1;
  return x->kind != y->kind ? (x->kind > y->kind ? -1 : 1) : x->expr < y->expr ? -1 : x->expr > y->expr;
}

static bool add_main_loop(Scheduling *s, int phase) {
  Kernel *k = s->k;
  Loop loop = {.rows = 1, .accumulators = 1, .block = 1, .is_nested = s->is_nested};
  start_loops(s, true);
  if (!fill_main_loop(s, &loop, phase)) return false;
  if (!loop.nroots) return true;
  if (k->naxes) order_axes(s, &loop);
  choose_numbers(s, &loop);
  for (size_t i = 0; i < loop.nroots; i++) {
    if (loop.roots[i].kind != ROOT_STORE || !shares_bytes(k, &loop, &k->accesses[loop.roots[i].access])) continue;
    loop.is_serial = true;
    loop.serial_work = 0;
  }
  for (size_t i = 0; i < loop.nroots; i++)
    if (loop.roots[i].sweep >= loop.nsweeps) loop.nsweeps = loop.roots[i].sweep + 1;
  loop.is_peeled = should_peel(s, &loop);
  choose_streams(s, &loop);
  loop.is_backwards = loop.nsweeps > 1 && loop.ninner > 1 && row_nbytes(s) > s->target->l2_nbytes / 2;
  Loop *added = kernel_add_loop(k);
  if (!added) return false;
  *added = loop;
  if (!finish_partials(s, k->nloops - 1, phase)) return false;
  qsort(added->roots, added->nroots, sizeof *added->roots, compare_roots);
  return true;
}

static void place_temporaries(Kernel *k) {
  enum { LINE = 64 };
  size_t offset = 0;
  for (size_t i = 0; i < k->ntemporaries; i++) {
    k->temporaries[i].offset = offset;
    size_t nbytes = (size_t)k->temporaries[i].nelems * type_nbytes(k->temporaries[i].type);
    offset += (nbytes + LINE - 1) / LINE * LINE;
  }
}

bool kernel_schedule(Kernel *k, const Target *target, const ScheduleOverrides *overrides) {
  static const ScheduleOverrides none;
  Scheduling s = {.k = k, .target = target, .overrides = overrides ? overrides : &none};
  if (k->naxes) {
    s.vector_axis = choose_vector_axis(k);
    if (!choose_axes(&s) || !agree_reductions(&s)) return false;
  }
  s.noriginals = k->nexprs;
  s.time = ARENA_ARRAY(k->arena, Time, k->nexprs);
  s.is_narrow = ARENA_ARRAY(k->arena, bool, k->nexprs);
  s.needs_combine = ARENA_ARRAY(k->arena, bool, k->nexprs);
  s.needs_row = ARENA_ARRAY(k->arena, bool, k->nexprs);
  s.is_late = ARENA_ARRAY(k->arena, bool, k->nexprs);
  s.is_kept_value = ARENA_ARRAY(k->arena, bool, k->nexprs);
  s.kept_access = ARENA_ARRAY(k->arena, AccessId, k->nexprs);
  s.combine = ARENA_ARRAY(k->arena, ExprId, k->nexprs);
  s.rebuilt = ARENA_ARRAY(k->arena, ExprId, k->nexprs);
  if (!s.time || !s.is_narrow || !s.needs_combine || !s.needs_row || !s.is_late || !s.is_kept_value || !s.kept_access ||
      !s.combine || !s.rebuilt) {
    k->out_of_memory = true;
    return false;
  }
  if (k->naxes) {
    if (!find_times(&s) || !check_roots(&s)) return false;
    if (!find_kept_values(&s)) return false;
  }
  int last = 0;
  for (ExprId i = 1; i < s.noriginals; i++)
    if (s.time[i].phase > last) last = s.time[i].phase;
  for (int phase = 0; phase <= last; phase++)
    if (!add_side_loops(&s, phase) || !add_main_loop(&s, phase)) return false;
  if (!kernel_keep_masks(k, target, s.overrides) || !kernel_reuse_vectors(k)) return false;
  place_temporaries(k);
  return !k->out_of_memory;
}
