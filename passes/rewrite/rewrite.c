// The matcher works on a list of goals: a term and the value that the term must match. When a goal matches, it calls
// the matcher on the rest of the list. If that returns false, the goal tries its next choice: this is backtracking.
#include "passes/rewrite/rewrite.h"

#include "ir/graph/builder.h"
#include "passes/rewrite/dead_code.h"

#include <math.h>
#include <string.h>

// Printing

static void print_term(const Term *t, Text *out) {
  static const char letters[MOST_NAMED + 1] = "xyzcdefg";
  if (t->kind == TERM_NUMBER) {
    if (t->is_computed) text_add_string(out, "k");
    else text_add_number(out, t->number, false);
  } else if (t->kind != TERM_NODE) {
    text_add(out, &letters[t->name], 1);
  } else {
    text_add_string(out, t->op == OP_COUNT ? "op" : operators[t->op].name);
    if (t->setting) {
      text_format(out, "[%s: ", t->setting);
      text_add_number(out, t->is, false);
      text_add_string(out, "]");
    }
    text_add_string(out, "(");
    for (int i = 0; i < MOST_ARGUMENTS && t->arguments[i]; i++) {
      if (i) text_add_string(out, ", ");
      print_term(t->arguments[i], out);
    }
    text_add_string(out, ")");
  }
}

void rule_print(const Rule *rule, Text *out) {
  print_term(rule->pattern, out);
  text_add_string(out, " -> ");
  print_term(rule->replacement, out);
}

// Matching

typedef struct Goal {
  const Term *term;
  Value *value;
  const struct Goal *rest;
} Goal;

static bool is_number(const Value *v, double number) {
  if (!v->constant || !v->constant->is_splat) return false;
  double found = type_load(v->type, v->constant->data, 0);
  return found == number && !signbit(found) == !signbit(number);
}

static bool has_setting(const Node *node, const Term *t) {
  if (!t->setting) return true;
  uint32_t i = 0;
  while (strcmp(node->op->attributes[i].name, t->setting) != 0) i++;
  const AttributeValue *value = &node->attributes[i];
  switch (node->op->attributes[i].kind) {
  case ATTRIBUTE_BOOL: return value->boolean == (t->is != 0);
  case ATTRIBUTE_F32: return value->f32 == t->is;
  default: return value->s64 == (int64_t)t->is;
  }
}

static bool is_used_once(const Value *v) {
  return v->uses && !v->uses->next && !v->is_output;
}

static bool match_goals(const Rule *rule, Match *m, const Goal *goal);

static bool match_bound(const Rule *rule, Match *m, const Goal *goal) {
  Value **bound = &m->values[goal->term->name];
  if (*bound) return *bound == goal->value && match_goals(rule, m, goal->rest);
  if (goal->term->kind == TERM_CONSTANT && !goal->value->constant) return false;
  *bound = goal->value;
  if (match_goals(rule, m, goal->rest)) return true;
  *bound = NULL;
  return false;
}

// Matches the operands, in order or with the first two exchanged, as goals in front of the remaining goals.
static bool match_operands(const Rule *rule, Match *m, const Goal *goal, bool is_exchanged) {
  const Node *node = goal->value->producer;
  Goal goals[MOST_ARGUMENTS];
  const Goal *rest = goal->rest;
  for (uint32_t i = MOST_ARGUMENTS; i-- > 0;) {
    uint32_t slot = is_exchanged && i < 2 ? 1 - i : i;
    const Term *term = goal->term->arguments[i];
    if (!term) {
      if (slot < node->ninputs && node->inputs[slot]) return false;
      continue;
    }
    if (slot >= node->ninputs || !node->inputs[slot]) return false;
    goals[i] = (Goal){term, node->inputs[slot], rest};
    rest = &goals[i];
  }
  return match_goals(rule, m, rest);
}

bool node_may_be_moved(const Node *node) {
  return node->op->traits & TRAIT_ELEMENTWISE && !node_places_by_axis(node);
}

static bool is_operator(const Node *node, const Term *t) {
  if (t->op != OP_COUNT) return node->op->id == t->op;
  uint32_t count = 0;
  while (count < MOST_ARGUMENTS && t->arguments[count]) count++;
  return node_may_be_moved(node) && node->ninputs == count;
}

static bool match_node(const Rule *rule, Match *m, const Goal *goal) {
  Node *node = goal->value->producer;
  const Term *t = goal->term;
  if (!node || !is_operator(node, t) || goal->value->output_slot || m->nmatched == MOST_MATCHED) return false;
  if (!has_setting(node, t) || (t->is_only_used && !is_used_once(goal->value))) return false;
  Node *before = m->nodes[t->name];
  if (!before) m->nodes[t->name] = node;
  m->matched[m->nmatched++] = node;
  if (match_operands(rule, m, goal, false)) return true;
  if (node->op->is_commutative && match_operands(rule, m, goal, true)) return true;
  m->nmatched--;
  m->nodes[t->name] = before;
  return false;
}

static bool match_goals(const Rule *rule, Match *m, const Goal *goal) {
  if (!goal) return !rule->condition || rule->condition(m);
  switch (goal->term->kind) {
  case TERM_NUMBER: return is_number(goal->value, goal->term->number) && match_goals(rule, m, goal->rest);
  case TERM_NODE: return match_node(rule, m, goal);
  default: return match_bound(rule, m, goal);
  }
}

bool rule_matches(const Rule *rule, Graph *g, Value *root, Match *m) {
  *m = (Match){.graph = g};
  return match_goals(rule, m, &(Goal){rule->pattern, root, NULL});
}

// The worklist

typedef struct Rewrite {
  Graph *graph;
  Builder build; // of graph
  PassContext *context;
  Arena scratch;
  const Rule **by_root[OP_COUNT]; // the enabled rules for a root with this operator; ends in NULL
  int depth;                      // depth of the deepest pattern
  Node **queue;
  size_t first, count, queue_capacity;
  bool *is_queued; // by node->index
  size_t is_queued_capacity;
  Diagnostics refusals; // inference errors of replacements that did not fit; not printed
  bool changed, out_of_memory;
} Rewrite;

static int term_depth(const Term *t) {
  int most = 0;
  for (int i = 0; i < MOST_ARGUMENTS && t->arguments[i]; i++) {
    int depth = t->arguments[i]->kind == TERM_NODE ? term_depth(t->arguments[i]) : 0;
    if (depth > most) most = depth;
  }
  return 1 + most;
}

static bool is_enabled(const PassContext *c, const Rule *rule) {
  return (c->fast_math || !rule->is_fast_math) && !pass_is_disabled(c, rule->name);
}

static bool may_be_root(const Rule *rule, size_t op) {
  return rule->pattern->op == OP_COUNT ? operators[op].traits & TRAIT_ELEMENTWISE : rule->pattern->op == op;
}

static bool index_rules(Rewrite *r, const Rules *rules) {
  for (size_t op = 0; op < OP_COUNT; op++) {
    size_t count = 0;
    for (size_t i = 0; i < rules->count; i++) count += may_be_root(&rules->items[i], op);
    r->by_root[op] = ARENA_ARRAY(&r->scratch, const Rule *, count + 1);
    if (!r->by_root[op]) return false;
    count = 0;
    for (size_t i = 0; i < rules->count; i++) {
      const Rule *rule = &rules->items[i];
      if (!may_be_root(rule, op) || !is_enabled(r->context, rule)) continue;
      r->by_root[op][count++] = rule;
      if (term_depth(rule->pattern) > r->depth) r->depth = term_depth(rule->pattern);
    }
  }
  return true;
}

static void enqueue(Rewrite *r, Node *node) {
  while (node->index >= r->is_queued_capacity && !r->out_of_memory)
    r->out_of_memory =
        !arena_grow(&r->scratch, &r->is_queued, r->is_queued_capacity, &r->is_queued_capacity, sizeof *r->is_queued);
  if (r->out_of_memory || r->is_queued[node->index] || !r->by_root[node->op->id]) return;
  if (!arena_grow(&r->scratch, &r->queue, r->count, &r->queue_capacity, sizeof *r->queue)) {
    r->out_of_memory = true;
    return;
  }
  r->is_queued[node->index] = true;
  r->queue[r->count++] = node;
}

// Enqueues the nodes for which a pattern may include v's producer.
static void enqueue_users(Rewrite *r, const Value *v, int depth) {
  if (depth <= 0) return;
  for (const Use *use = v->uses; use; use = use->next) {
    enqueue(r, use->node);
    for (uint32_t i = 0; i < use->node->noutputs; i++)
      if (use->node->outputs[i]) enqueue_users(r, use->node->outputs[i], depth - 1);
  }
}

// Detaches an unused node and its producers that become unused. Chains beyond DEEPEST are left to dead-code.
static void remove_node(Rewrite *r, Node *node, int depth) {
  enum { DEEPEST = 1000 };
  if (depth == DEEPEST) return;
  for (uint32_t i = 0; i < node->noutputs; i++)
    if (value_is_used(node->outputs[i])) return;
  for (uint32_t i = 0; i < node->noutputs; i++) node_set_output(node, i, NULL);
  for (uint32_t i = 0; i < node->ninputs; i++) {
    Value *v = node->inputs[i];
    node_set_input(node, i, NULL);
    if (!v) continue;
    if (!v->uses && v->producer) remove_node(r, v->producer, depth + 1);
    else if (is_used_once(v)) enqueue_users(r, v, r->depth);
  }
}

// Building

// Removes the nodes and values that were added after the graph had these counts.
static void forget_since(Graph *g, size_t nnodes, size_t nvalues) {
  while (g->nnodes > nnodes) {
    Node *node = g->nodes[--g->nnodes];
    for (uint32_t i = 0; i < node->ninputs; i++) node_set_input(node, i, NULL);
  }
  g->nvalues = nvalues;
}

static void set_attributes(Node *node, const Term *t, const Node *like) {
  if (like && like->op == node->op)
    memcpy(node->attributes, like->attributes, node->op->nattributes * sizeof *node->attributes);
  for (uint32_t i = 0; t->setting && i < node->op->nattributes; i++) {
    if (strcmp(node->op->attributes[i].name, t->setting) != 0) continue;
    AttributeValue *value = &node->attributes[i];
    value->is_set = true;
    switch (node->op->attributes[i].kind) {
    case ATTRIBUTE_BOOL: value->boolean = t->is != 0; break;
    case ATTRIBUTE_F32: value->f32 = t->is; break;
    default: value->s64 = (int64_t)t->is; break;
    }
  }
  node_set_defaults(node);
}

// The value of a replacement's term: a matched value, or a new value. NULL: inference rejects a node, or out of memory.
static Value *build(Rewrite *r, const Match *m, const Rule *rule, const Term *t, const Value *root) {
  Builder *b = &r->build;
  Type type = root->type;
  b->stem = NULL;
  if (t->kind == TERM_NUMBER)
    return build_number(b, type, t == rule->replacement ? &root->shape : NULL, t->is_computed ? m->number : t->number);
  if (t->kind != TERM_NODE) return m->values[t->name];
  Value *operands[MOST_ARGUMENTS] = {NULL};
  uint32_t count = 0;
  for (; count < MOST_ARGUMENTS && t->arguments[count]; count++) {
    operands[count] = build(r, m, rule, t->arguments[count], root);
    if (!operands[count]) return NULL;
  }
  const Node *like = m->nodes[t->name];
  const Operator *op = t->op == OP_COUNT ? like->op : &operators[t->op];
  if (like && like->op == op) type = like->outputs[0]->type; // for casts, whose type cannot be inferred
  b->stem = op->name;
  Node *node = build_node(b, op->id, count, operands);
  Value *v = build_result(b, node, 0, op->id == OP_TypeCast ? type : TYPE_NONE);
  if (!v) return NULL;
  set_attributes(node, t, like);
  node->position = m->matched[0]->position;
  for (uint32_t i = 0; i < m->nmatched; i++)
    if (!node_add_origin(r->graph, node, m->matched[i])) r->out_of_memory = true;
  if (t == rule->replacement && rule->finish && !rule->finish(m, node)) return NULL;
  return build_infer(b, node) ? v : NULL;
}

static bool has_same_type(const Value *a, const Value *b) {
  return a->type == b->type && shape_equals(&a->shape, &b->shape);
}

// Replaces root by v. An output of the graph must remain, with its name: v's producer then produces root instead of v.
// This is impossible if v is also an output, or has no producer.
static bool replace_root(Rewrite *r, Value *root, Value *v) {
  if (!has_same_type(root, v)) return false;
  Node *node = root->producer;
  if (root->is_output && (v->is_output || !v->producer)) return false;
  enqueue_users(r, root, r->depth); // v's users need no visit, as their operands do not change
  if (!root->is_output) {
    value_replace_uses(root, v);
  } else {
    node_set_output(node, root->output_slot, NULL);
    node_set_output(v->producer, v->output_slot, root);
    value_replace_uses(v, root);
  }
  remove_node(r, node, 0);
  return true;
}

static bool apply(Rewrite *r, const Rule *rule, Value *root) {
  Match m;
  Graph *g = r->graph;
  if (!rule_matches(rule, g, root, &m)) return false;
  m.out_of_memory = &r->out_of_memory;
  size_t nnodes = g->nnodes, nvalues = g->nvalues;
  Value *v = build(r, &m, rule, rule->replacement, root);
  r->out_of_memory |= r->refusals.out_of_memory;
  if (!v || r->out_of_memory || !replace_root(r, root, v)) {
    forget_since(g, nnodes, nvalues);
    return false;
  }
  for (size_t i = nnodes; i < g->nnodes; i++) enqueue(r, g->nodes[i]);
  return r->changed = true;
}

static void run_worklist(Rewrite *r) {
  enum { MOST_A_NODE = 64 }; // visits to a node, on average; stops rules that undo each other
  size_t most = MOST_A_NODE * (r->graph->nnodes + 1);
  for (size_t i = 0; i < r->graph->nnodes; i++) enqueue(r, r->graph->nodes[i]);
  while (r->first < r->count && r->first < most && !r->out_of_memory) {
    Node *node = r->queue[r->first++];
    r->is_queued[node->index] = false;
    Value *root = node->noutputs ? node->outputs[0] : NULL;
    const Rule **rule = r->by_root[node->op->id];
    while (root && *rule && !apply(r, *rule, root)) rule++;
  }
}

bool rewrite_graph(Graph *g, PassContext *c, const Rules *rules) {
  Rewrite r = {.graph = g, .build = {.graph = g, .d = &r.refusals}, .context = c};
  arena_init(&r.scratch, c->allocator);
  diagnostics_init(&r.refusals, c->allocator);
  if (index_rules(&r, rules)) run_worklist(&r);
  else r.out_of_memory = true;
  arena_deinit(&r.scratch);
  pass_end(g, c, r.out_of_memory || r.refusals.out_of_memory, r.changed);
  diagnostics_deinit(&r.refusals);
  return r.changed;
}
