// Makes the graph of a finding smaller, as long as the same kind of finding stays.
#include "tests/fuzz/program/program.h"
#include "tests/random_graph.h"

#include "frontend/yaml/yaml.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_SECONDS = 120 };

typedef struct Reduction {
  FuzzOptions options;
  Report *best, *trial; // trial is shared with the child
  time_t end;
  char kind[sizeof((Report *)0)->kind], group[sizeof((Report *)0)->group];
} Reduction;

static Graph *read_best(const Reduction *r) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  Graph *g = yaml_read(&system_allocator, "fuzz.yaml", r->best->text, r->best->nbytes, NULL, &d);
  diagnostics_deinit(&d);
  return g;
}

// Whether the changed graph still has the finding; then it is the best so far. Frees it.
static bool is_still_found(Reduction *r, Graph *g) {
  memset(r->trial, 0, sizeof *r->trial);
  report_text(r->trial, g);
  graph_free(g);
  if (!r->trial->nbytes || strcmp(r->trial->text, r->best->text) == 0 || time(NULL) > r->end) return false;
  run_apart(check_program, &r->options, r->trial);
  if (r->trial->is_refused || strcmp(r->trial->kind, r->kind) != 0) return false;
  memcpy(r->best, r->trial, sizeof *r->best);
  return true;
}

static size_t count_of(const Reduction *r, bool of_nodes) {
  Graph *g = read_best(r);
  size_t n = !g ? 0 : of_nodes ? g->nnodes : g->noutputs;
  graph_free(g);
  return n;
}

// Removes as many outputs, or nodes, as possible; tries to remove neighbours together first.
static bool drop(Reduction *r, bool nodes) {
  bool is_better = false;
  for (size_t size = count_of(r, nodes); size > 0; size /= 2)
    for (size_t end = count_of(r, nodes); end > 0; end -= size < end ? size : end) {
      Graph *g = read_best(r);
      bool ok = g != NULL;
      for (size_t i = end; ok && i-- > (size < end ? end - size : 0);) {
        if (nodes) ok = i < g->nnodes && remove_node(g, i);
        else if (g->noutputs > 1) ok = i < g->noutputs && remove_output(g, i);
      }
      if (ok) is_better |= is_still_found(r, g);
      else graph_free(g);
    }
  return is_better;
}

// Tries each output alone, with the nodes that it needs.
static void keep_one_output(Reduction *r) {
  for (size_t i = count_of(r, false); i-- > 0;) {
    Graph *g = read_best(r);
    if (!g || g->noutputs < 2) {
      graph_free(g);
      return;
    }
    for (size_t k = g->noutputs; k-- > 0;)
      if (k != i) remove_output(g, k);
    remove_idle_nodes(g);
    if (is_still_found(r, g)) return;
  }
}

// Replaces a node's result by its first operand of the same type and shape.
static bool bypass_nodes(Reduction *r) {
  bool is_better = false;
  for (size_t n = 0;; n++) {
    Graph *g = read_best(r);
    if (!g || n >= g->nnodes) {
      graph_free(g);
      return is_better;
    }
    Node *node = g->nodes[n];
    Value *out = node->outputs[0], *in = NULL;
    for (uint32_t k = 0; out && !in && k < node->ninputs; k++)
      if (node->inputs[k] && node->inputs[k]->type == out->type && shape_equals(&node->inputs[k]->shape, &out->shape))
        in = node->inputs[k];
    if (in && out->uses) {
      value_replace_uses(out, in);
      is_better |= is_still_found(r, g);
    } else {
      graph_free(g);
    }
  }
}

static int compare_numbers(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return x < y ? 1 : x > y ? -1 : 0;
}

// Replaces extents by smaller numbers.
static bool shrink_extents(Reduction *r) {
  enum { MOST = 256 };
  int64_t numbers[MOST];
  size_t count = 0;
  bool is_better = false;
  Graph *g = read_best(r);
  for (size_t i = 0; g && i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank && count < MOST; axis++)
      numbers[count++] = extent_value(g->values[i]->shape.extent[axis]);
  graph_free(g);
  qsort(numbers, count, sizeof *numbers, compare_numbers);
  for (size_t i = 0; i < count; i++) {
    if (numbers[i] < 2 || (i && numbers[i] == numbers[i - 1])) continue;
    const int64_t smaller[] = {1, 2, 3, numbers[i] / 4, numbers[i] / 2, numbers[i] - numbers[i] / 4, numbers[i] - 1};
    for (size_t k = 0; k < sizeof smaller / sizeof *smaller; k++) {
      if (smaller[k] < 1 || smaller[k] >= numbers[i]) continue;
      g = read_best(r);
      if (g && resize_extents(g, numbers[i], smaller[k])) {
        if (!is_still_found(r, g)) continue;
        is_better = true;
        break;
      }
      graph_free(g);
    }
  }
  return is_better;
}

static bool forget_orders(Reduction *r) {
  bool is_better = false;
  for (size_t i = 0;; i++) {
    Graph *g = read_best(r);
    if (!g || i >= g->nvalues) {
      graph_free(g);
      return is_better;
    }
    bool has_layout = !layout_is_row_major(&g->values[i]->layout);
    g->values[i]->layout = (Layout){{0}};
    if (has_layout) is_better |= is_still_found(r, g);
    else graph_free(g);
  }
}

// Replaces named extents by literals.
static bool bind_extents(Reduction *r) {
  Graph *g = read_best(r);
  if (!g || !g->ndims) {
    graph_free(g);
    return false;
  }
  for (size_t i = 0; i < g->nvalues; i++)
    for (int axis = 0; axis < g->values[i]->shape.rank; axis++) {
      Extent *e = &g->values[i]->shape.extent[axis];
      *e = EXTENT(extent_value(*e));
    }
  g->ndims = 0;
  return is_still_found(r, g);
}

static bool use_f32(Reduction *r) {
  bool is_better = false;
  for (Type type = TYPE_F64; type <= TYPE_BF16; type++) {
    Graph *g = read_best(r);
    bool is_found = false;
    for (size_t i = 0; g && type != TYPE_F32 && i < g->nvalues; i++) {
      Value *v = g->values[i];
      if (v->type != type) continue;
      if (v->constant) v->constant = NULL, v->is_input = true, graph_add_input(g, v->name, type, &v->shape);
      v->type = TYPE_F32;
      is_found = true;
    }
    if (is_found) is_better |= is_still_found(r, g);
    else graph_free(g);
  }
  return is_better;
}

// Gives values short names, in their order.
static bool rename_values(Reduction *r) {
  Graph *g = read_best(r);
  for (size_t i = 0; g && i < g->nvalues; i++) g->values[i]->name = arena_format(&g->arena, "v%zu", i);
  return g && is_still_found(r, g);
}

void reduce_program(const FuzzOptions *options, Report *report) {
  Reduction r = {
      .options = *options, .best = malloc(sizeof *r.best), .trial = report, .end = time(NULL) + MOST_SECONDS};
  if (!r.best) return;
  memcpy(r.best, report, sizeof *r.best);
  memcpy(r.kind, report->kind, sizeof r.kind);
  memcpy(r.group, report->group, sizeof r.group);
  r.options.only = r.kind;
  bool is_of_emitted = strncmp(r.kind, "emit", 4) == 0 || strstr(r.kind, "in emit") != NULL;
  bool is_compiled = strncmp(r.kind, "bits", 4) == 0 || strncmp(r.kind, "compile", 7) == 0 ||
                     strstr(r.kind, "in run") || strstr(r.kind, "in compile");
  r.options.is_emitted &= is_of_emitted;
  r.options.is_compiled &= is_compiled;
  r.options.only_group = is_of_emitted ? "emitted" : r.group;
  keep_one_output(&r);
  for (bool is_better = true; is_better && time(NULL) < r.end;) {
    is_better = drop(&r, false);
    is_better |= drop(&r, true);
    is_better |= bypass_nodes(&r);
    is_better |= forget_orders(&r);
    is_better |= bind_extents(&r);
    is_better |= use_f32(&r);
    is_better |= shrink_extents(&r);
  }
  rename_values(&r);
  memcpy(report, r.best, sizeof *report);
  free(r.best);
}
