// Builds indices and trees. Out of memory, constructors return NULL, and they accept NULL as an operand, so that a
// builder checks out_of_memory once, at its end.
#include "ir/loops/loops.h"

#include <assert.h>

const VarInfo var_info[VAR_KINDS] = {
#define VARIABLE(kind, prefix, suffix, owner, is_int) {prefix, suffix, owner, is_int},
#include "ir/loops/variables.def"
};

const BufferInfo buffer_info[BUFFER_KINDS] = {
    [BUFFER_NONE] = {"", SPACE_TENSOR},
    [BUFFER_TENSOR] = {"", SPACE_TENSOR},
    [BUFFER_ROW] = {"p_", SPACE_TENSOR},
    [BUFFER_PARTIALS] = {"part_", SPACE_BLOCK},
    [BUFFER_COPY] = {"rows_", SPACE_STACK},
    [BUFFER_SPILL] = {"spilled_", SPACE_STACK, .is_of_expr = true},
    [BUFFER_VALUE] = {"", SPACE_REGISTERS, .is_of_expr = true},
    [BUFFER_SUM] = {"acc_", SPACE_REGISTERS, .is_of_expr = true},
    [BUFFER_TOTAL] = {"total_", SPACE_REGISTERS, .is_of_expr = true},
    [BUFFER_HELD] = {"held_", SPACE_REGISTERS},
};

static const Index own_rows = {.op = INDEX_VAR, .var = {VAR_ROWS, 0}},
                   vectors_before = {.op = INDEX_MULTIPLY, .args = {&item_of_vector, &own_rows}};
const Index item_of_row = {.op = INDEX_VAR, .var = {VAR_ROW, 0}},
            item_of_vector = {.op = INDEX_VAR, .var = {VAR_VECTOR, 0}},
            item_of_both = {.op = INDEX_ADD, .args = {&vectors_before, &item_of_row}};

const IndexOperator index_operators[] = {
    [INDEX_NUMBER] = {"", PRECEDENCE_VALUE},
    [INDEX_VAR] = {"", PRECEDENCE_VALUE},
    [INDEX_BLOCK_LENGTH] = {"", PRECEDENCE_VALUE, INDEX_SIZE},
    [INDEX_NCUT_BLOCKS] = {"", PRECEDENCE_VALUE, INDEX_SIZE},
    [INDEX_ADD] = {" + ", PRECEDENCE_SUM, INDEX_OF_ARGS},
    [INDEX_SUBTRACT] = {" - ", PRECEDENCE_SUM, INDEX_OF_ARGS},
    [INDEX_MULTIPLY] = {" * ", PRECEDENCE_PRODUCT, INDEX_OF_ARGS},
    [INDEX_DIVIDE] = {" / ", PRECEDENCE_PRODUCT, INDEX_OF_ARGS},
    [INDEX_REMAINDER] = {" % ", PRECEDENCE_PRODUCT, INDEX_OF_ARGS},
    [INDEX_LESS] = {" < ", PRECEDENCE_COMPARISON},
    [INDEX_AT_MOST] = {" <= ", PRECEDENCE_COMPARISON},
    [INDEX_AT_LEAST] = {" >= ", PRECEDENCE_COMPARISON},
    [INDEX_MORE] = {" > ", PRECEDENCE_COMPARISON},
    [INDEX_EXCEEDS] = {" > ", PRECEDENCE_COMPARISON},
    [INDEX_DIFFERS] = {" != ", PRECEDENCE_COMPARISON},
    [INDEX_BOTH] = {" && ", PRECEDENCE_BOTH},
    [INDEX_CHOOSE] = {" : ", PRECEDENCE_CHOICE, INDEX_OF_ARGS},
    [INDEX_SIGNED] = {"", PRECEDENCE_VALUE, INDEX_SIZE},
    [INDEX_EXISTS] = {"", PRECEDENCE_VALUE},
    [INDEX_IS_AT_LINE] = {"", PRECEDENCE_VALUE},
    [INDEX_TO_LINE] = {"", PRECEDENCE_VALUE, INDEX_INT},
};

static const Index *make(TreeBuilder *b, Index index) {
  Index *made = ARENA_NEW(b->arena, Index);
  if (made) *made = index;
  else b->out_of_memory = true;
  return made;
}

const Index *index_number(TreeBuilder *b, int64_t number, Monomial monomial) {
  return make(b, (Index){.op = INDEX_NUMBER, .number = number, .monomial = number ? monomial : 0});
}

const Index *index_var(TreeBuilder *b, VarKind kind, uint32_t of) {
  return make(b, (Index){.op = INDEX_VAR, .var = {kind, of}});
}

const Index *index_of_address(TreeBuilder *b, IndexOp op, Address at) {
  Address *address = ARENA_NEW(b->arena, Address);
  if (address) *address = at;
  else b->out_of_memory = true;
  return make(b, (Index){.op = op, .address = address});
}

const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop) {
  return make(b, (Index){.op = op, .loop = loop});
}

bool index_is(const Index *i, int64_t number) {
  return i && i->op == INDEX_NUMBER && i->number == number && !i->monomial;
}

bool index_equals(const Index *a, const Index *b) {
  if (!a || !b || a == b) return a == b;
  bool is_equal = a->op == b->op && a->number == b->number && a->monomial == b->monomial &&
                  a->var.kind == b->var.kind && a->var.of == b->var.of && a->loop == b->loop &&
                  a->address == b->address;
  for (int i = 0; i < 3 && is_equal; i++) is_equal = index_equals(a->args[i], b->args[i]);
  return is_equal;
}

IndexType index_type(const Index *i) {
  IndexType type = index_operators[i->op].type;
  if (i->op == INDEX_NUMBER) return i->monomial ? INDEX_SIZE : INDEX_EITHER;
  if (i->op == INDEX_VAR) return var_info[i->var.kind].is_int ? INDEX_INT : INDEX_SIZE;
  if (type != INDEX_OF_ARGS) return type;
  type = INDEX_EITHER;
  for (int a = i->op == INDEX_CHOOSE; a < 3 && i->args[a]; a++)
    if (index_type(i->args[a]) > type) type = index_type(i->args[a]);
  return type;
}

bool expr_is_long(ExprOp op) {
  return expr_info[op].is_elementary || op == EXPR_ROUND_F16 || op == EXPR_ROUND_E4M3 || op == EXPR_ROUND_E5M2;
}

// What follows from nodes

typedef struct ActionInfo {
  LoopNodeKind kind;
  unsigned to, from; // sets of buffers, by bit
  bool has_expr;
} ActionInfo;

#define IN(buffer) (1U << BUFFER_##buffer)
#define NO_BUFFER IN(NONE)
static const ActionInfo actions[ACTIONS] = {
    {0},
#define ACTION(NAME, name, kind, to, from, has_expr) {NODE_##kind, to, from, has_expr},
#include "ir/loops/actions.def"
};

Action node_action(const LoopNode *n) {
  for (int i = ACTION_NONE + 1; i < ACTIONS; i++) {
    const ActionInfo *action = &actions[i];
    if (action->kind == n->kind && action->to >> n->to.buffer & 1 && action->from >> n->from.buffer & 1 &&
        action->has_expr == (n->expr > 0))
      return (Action)i;
  }
  return ACTION_NONE;
}

Load node_load(const LoopTree *t, const LoopNode *n) {
  const Expr *e = &t->k->exprs[n->expr];
  const Space from = buffer_info[n->from.buffer].space;
  if (from == SPACE_STACK) return LOAD_WHOLE;
  if (!n->from.buffer || from != SPACE_TENSOR || e->op == EXPR_IS_KEPT) return LOAD_NONE;
  if (!n->is_vector) return LOAD_ELEMENT;
  if (loop_has(t->loop, LOOP_ROW_LANES) && index_is(n->step, 0)) return LOAD_BROADCAST;
  if (e->args[0] && t->form[e->args[0]] == FORM_VECTOR) return LOAD_GATHERED;
  return node_is_strided(n) ? LOAD_STRIDED : LOAD_DENSE;
}

const Bound *node_lane_bound(const LoopTree *t, const LoopNode *n) {
  const bool is_load = n->is_vector && t->k->exprs[n->expr].op == EXPR_LOAD && n->from.buffer != BUFFER_SPILL;
  const Access *a = &t->k->accesses[node_access(n)];
  for (size_t i = 0; is_load && i < a->nbounds; i++)
    if (a->bounds[i].factor[loop_lane_axis(t->loop)] && !bound_always_holds(t->k, &a->bounds[i])) return &a->bounds[i];
  return NULL;
}

bool node_uses_all_lanes(const LoopTree *t, const LoopNode *n) {
  const Expr *e = &t->k->exprs[n->expr];
  if (n->kind == NODE_UPDATE)
    return n->to.buffer == BUFFER_SUM && !(t->k->exprs[n->to.of].reduced >> loop_lane_axis(t->loop) & 1);
  const bool is_access = n->kind == NODE_STORE || (e->op == EXPR_LOAD && n->from.buffer != BUFFER_SPILL);
  return is_access && t->k->accesses[node_access(n)].panel_axis == loop_lane_axis(t->loop) + 1;
}

bool node_is_strided(const LoopNode *n) {
  return n->step && !index_is(n->step, 1);
}

TreeSlots tree_slots(const LoopTree *t) {
  const size_t naccesses = t->k->naccesses ? t->k->naccesses : 1;
  const size_t owners[] = {[OWNER_FUNCTION] = 1, [OWNER_AXIS] = MAX_AXES, [OWNER_ACCESS] = naccesses};
  TreeSlots s = {.vars = {0}};
  for (int kind = 0; kind < VAR_KINDS; kind++) s.vars[kind + 1] = s.vars[kind] + owners[var_info[kind].owner];
  for (int kind = 0; kind < BUFFER_KINDS; kind++)
    s.buffers[kind + 1] = s.buffers[kind] + (buffer_info[kind].is_of_expr ? t->k->nexprs : naccesses);
  return s;
}

int tree_parameters(const LoopTree *t, bool is_tail, Var *parameters) {
  const Loop *loop = t->loop;
  int count = 0;
  if (!loop_tile(loop) || loop->nouter) parameters[count++] = loop_var(VAR_OUTER);
  if (loop_tile(loop)) {
    parameters[count++] = loop_var(VAR_BEGIN);
    parameters[count++] = loop_var(VAR_END);
  }
  if (loop->rows > 1) parameters[count++] = loop_var(VAR_ROWS);
  else if (is_tail) parameters[count++] = loop_var(VAR_LANES);
  if (loop->columns) {
    parameters[count++] = loop_var(VAR_COLUMN);
    parameters[count++] = loop_var(VAR_COLUMN_END);
  }
  return count;
}

bool access_is_own(const LoopTree *t, AccessId id) {
  const Access *a = &t->k->accesses[id];
  return !a->value && a->type != TYPE_NONE && t->schedule->temporaries[a->temporary].is_own;
}

int tree_element_sums(const LoopTree *t, ExprId sum) {
  if (!loop_sums_rows(t->loop) || reduction_is_exact(t->k, t->k->exprs[sum].op)) return 0;
  const int64_t width = axes_nelems(t->k, t->k->exprs[sum].reduced);
  return width < LANES ? (int)width : LANES;
}

AccessId node_access(const LoopNode *n) {
  if (n->from.buffer && !buffer_info[n->from.buffer].is_of_expr) return n->from.of;
  return n->to.buffer && !buffer_info[n->to.buffer].is_of_expr ? n->to.of : 0;
}

const Address *node_memory(const LoopNode *n) {
  return n->from.buffer && buffer_info[n->from.buffer].space != SPACE_REGISTERS ? &n->from : &n->to;
}

const Address *node_sum(const LoopNode *n) {
  return n->kind == NODE_LET ? &n->from : &n->to;
}

// Of a sum in registers; NULL: the buffer has none.
static const Expr *sum_expr(const LoopTree *t, const Address *sum) {
  const bool is_sum = sum->buffer == BUFFER_SUM || sum->buffer == BUFFER_TOTAL;
  return is_sum ? &t->k->exprs[sum->of] : NULL;
}

bool node_ends_sum(const LoopNode *n) {
  return n->kind == NODE_LET && (n->from.buffer == BUFFER_SUM || n->from.buffer == BUFFER_TOTAL);
}

bool node_is_of_rows(const LoopTree *t, const LoopNode *n) {
  if (n->kind == NODE_MOVE) return n->to.item || n->from.item;
  if (n->kind == NODE_UPDATE) return n->from.buffer == BUFFER_SUM && t->loop->rows > 1;
  return node_ends_sum(n) && t->form[n->expr] == FORM_ROWS;
}

bool node_combines(const LoopTree *t, const LoopNode *n) {
  const Expr *e = sum_expr(t, node_sum(n));
  return e && e->op == EXPR_COMBINE;
}

ExprOp node_reduction(const LoopTree *t, const LoopNode *n) {
  const Address *sum = node_sum(n);
  const Expr *e = sum_expr(t, sum);
  if (e && e->op != EXPR_COMBINE) return e->op;
  const Access *a = &t->k->accesses[e ? e->access : buffer_info[sum->buffer].is_of_expr ? 0 : sum->of];
  return a->value || a->type == TYPE_NONE ? EXPR_NONE : t->schedule->temporaries[a->temporary].reduction;
}

bool node_adds_lanes(const LoopTree *t, const LoopNode *n) {
  const Expr *e = sum_expr(t, node_sum(n));
  return e && e->op != EXPR_COMBINE && e->reduced >> loop_lane_axis(t->loop) & 1;
}

bool node_is_f64(const LoopTree *t, const LoopNode *n) {
  const Address *sum = node_sum(n);
  if (sum->buffer == BUFFER_TOTAL) return true;
  if (sum->buffer == BUFFER_SUM) return t->k->is_f64;
  return t->k->accesses[sum->of].type == TYPE_F64 && !loop_has(t->loop, LOOP_ROW_LANES);
}

bool node_is_widened(const LoopTree *t, const LoopNode *n) {
  return node_is_f64(t, n) && !t->k->is_f64;
}

const Index *index_unfolded(TreeBuilder *b, IndexOp op, const Index *x, const Index *y) {
  return x && y ? make(b, (Index){.op = op, .args = {x, y}}) : NULL;
}

const Index *index_of(TreeBuilder *b, IndexOp op, const Index *x, const Index *y) {
  if (!x || !y) return NULL;
  if (op == INDEX_ADD && index_is(x, 0)) return y;
  if ((op == INDEX_ADD || op == INDEX_SUBTRACT) && index_is(y, 0)) return x;
  if ((op == INDEX_MULTIPLY || op == INDEX_DIVIDE) && index_is(y, 1)) return x;
  return index_unfolded(b, op, x, y);
}

const Index *index_signed(TreeBuilder *b, const Index *x) {
  return x ? make(b, (Index){.op = INDEX_SIGNED, .args = {x}}) : NULL;
}

const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y) {
  return test && x && y ? make(b, (Index){.op = INDEX_CHOOSE, .args = {test, x, y}}) : NULL;
}

LoopNode *tree_add(TreeBuilder *b, LoopNode node) {
  LoopNode *added = ARENA_NEW(b->arena, LoopNode);
  if (!added) {
    b->out_of_memory = true;
    return &b->spare;
  }
  *added = node;
  *b->end = added;
  b->end = &added->next;
  return added;
}

void tree_open(TreeBuilder *b, LoopNode **at) {
  assert(b->depth < MOST_NESTED);
  b->ends[b->depth] = b->end;
  b->following[b->depth++] = *at;
  b->end = at;
}

void tree_close(TreeBuilder *b) {
  *b->end = b->following[--b->depth];
  b->end = b->ends[b->depth];
}

Var loop_var(VarKind kind) {
  return (Var){kind, 0};
}

bool index_is_var(const Index *i, Var var) {
  return i && i->op == INDEX_VAR && i->var.kind == var.kind && i->var.of == var.of;
}

static bool index_mentions(const Index *i, Var v) {
  if (!i) return false;
  if (i->op == INDEX_VAR) return index_is_var(i, v);
  if (i->address) return index_mentions(i->address->index, v);
  return index_mentions(i->args[0], v) || index_mentions(i->args[1], v) || index_mentions(i->args[2], v);
}

const Index **node_index(LoopNode *n, int i) {
  const Index **const indices[NODE_INDICES] = {&n->value,   &n->end,      &n->step,       &n->test,
                                               &n->bound,   &n->to.index, &n->from.index, &n->from.within,
                                               &n->to.item, &n->from.item};
  return indices[i];
}

bool nodes_mention(const LoopNode *n, Var v) {
  bool is_found = false;
  for (; n && !is_found; n = n->next) {
    for (int i = 0; i < NODE_INDICES; i++) is_found |= index_mentions(*node_index((LoopNode *)n, i), v);
    is_found = is_found || nodes_mention(n->body, v) || nodes_mention(n->otherwise, v);
  }
  return is_found;
}

// Copying

typedef struct Copying {
  TreeBuilder *b;
  Var replaced;
  const Index *with;
  bool (*change)(LoopNode *copy, const LoopTree *t, int count);
  const LoopTree *t;
  int count;
} Copying;

// Returns i itself if it does not mention the variable, as nodes may share indices.
const Index *index_replace(TreeBuilder *b, const Index *i, Var replaced, const Index *with) {
  if (!i || !with) return NULL;
  if (i->op == INDEX_VAR) return index_is_var(i, replaced) ? with : i;
  Index copy = *i;
  bool is_changed = false;
  for (int a = 0; a < 3 && i->args[a]; a++) {
    copy.args[a] = index_replace(b, i->args[a], replaced, with);
    if (!copy.args[a]) return NULL;
    is_changed |= copy.args[a] != i->args[a];
  }
  return is_changed ? make(b, copy) : i;
}

static void copy_nodes(const Copying *c, const LoopNode *n) {
  for (; n; n = n->next) {
    LoopNode copy = *n;
    copy.next = copy.body = copy.otherwise = NULL;
    for (int i = 0; i < NODE_INDICES; i++)
      *node_index(&copy, i) = index_replace(c->b, *node_index(&copy, i), c->replaced, c->with);
    if (c->change && !c->change(&copy, c->t, c->count)) continue;
    LoopNode *added = tree_add(c->b, copy);
    tree_open(c->b, &added->body);
    copy_nodes(c, n->body);
    tree_close(c->b);
    tree_open(c->b, &added->otherwise);
    copy_nodes(c, n->otherwise);
    tree_close(c->b);
  }
}

void tree_add_copy(TreeBuilder *b, const LoopNode *nodes, Var replaced, const Index *with,
                   bool (*change)(LoopNode *copy, const LoopTree *t, int count), const LoopTree *t, int count) {
  copy_nodes(&(Copying){b, replaced, with, change, t, count}, nodes);
}
