// Constructors of trees. Memory is the arena's; without it they return NULL, which they take as an operand, too, so
// that only the end of a recipe needs to look.
#include "ir/loops/loops.h"

#include <assert.h>

bool var_is_int(Var v) {
  return v.kind == VAR_ROW || v.kind == VAR_ROWS || v.kind == VAR_WAY || v.kind == VAR_LANES || v.kind == VAR_IS_AHEAD;
}

static const Index *make(TreeBuilder *b, Index index) {
  Index *made = ARENA_NEW(b->arena, Index);
  if (made) *made = index;
  else b->out_of_memory = true;
  return made;
}

const Index *index_number(TreeBuilder *b, int64_t number, Powers powers) {
  return make(b, (Index){.op = INDEX_NUMBER, .number = number, .powers = number ? powers : 0});
}

const Index *index_var(TreeBuilder *b, VarKind kind, uint32_t of) {
  return make(b, (Index){.op = INDEX_VAR, .var = {kind, of}});
}

const Index *index_loop(TreeBuilder *b, IndexOp op, uint32_t loop) {
  return make(b, (Index){.op = op, .loop = loop});
}

bool index_is(const Index *i, int64_t number) {
  return i && i->op == INDEX_NUMBER && i->number == number && !i->powers;
}

IndexType index_type(const Index *i) {
  IndexType type = INDEX_EITHER;
  switch (i->op) {
  case INDEX_NUMBER: return i->powers ? INDEX_SIZE : INDEX_EITHER;
  case INDEX_VAR: return var_is_int(i->var) ? INDEX_INT : INDEX_SIZE;
  case INDEX_BLOCK_LENGTH:
  case INDEX_NCHUNKS:
  case INDEX_SIGNED: return INDEX_SIZE;
  case INDEX_LESS:
  case INDEX_AT_MOST:
  case INDEX_AT_LEAST:
  case INDEX_MORE:
  case INDEX_DIFFERS: return INDEX_EITHER;
  default: break;
  }
  for (int a = i->op == INDEX_CHOOSE; a < 3 && i->args[a]; a++)
    if (index_type(i->args[a]) > type) type = index_type(i->args[a]);
  return type;
}

bool expr_is_long(ExprOp op) {
  static const bool is_one[EXPR_OP_COUNT] = {
      [EXPR_EXP] = true,       [EXPR_EXPM1] = true,      [EXPR_LOG] = true,        [EXPR_LOG1P] = true,
      [EXPR_TANH] = true,      [EXPR_GELU] = true,       [EXPR_GELU_SLOPE] = true, [EXPR_POW] = true,
      [EXPR_ROUND_F16] = true, [EXPR_ROUND_E4M3] = true, [EXPR_ROUND_E5M2] = true,
  };
  return is_one[op];
}

const Index *index_of(TreeBuilder *b, IndexOp op, const Index *x, const Index *y) {
  if (!x || !y) return NULL;
  if (op == INDEX_ADD && index_is(x, 0)) return y;
  if ((op == INDEX_ADD || op == INDEX_SUBTRACT) && index_is(y, 0)) return x;
  if ((op == INDEX_MULTIPLY || op == INDEX_DIVIDE) && index_is(y, 1)) return x;
  return make(b, (Index){.op = op, .args = {x, y}});
}

const Index *index_choose(TreeBuilder *b, const Index *test, const Index *x, const Index *y) {
  return test && x && y ? make(b, (Index){.op = INDEX_CHOOSE, .args = {test, x, y}}) : NULL;
}

const Index *index_apart(TreeBuilder *t, const Index *a, const Index *b, const Index *below, const Index *extent,
                         const Index *stride) {
  const Index *there = index_of(t, INDEX_REMAINDER, index_of(t, INDEX_DIVIDE, a, below), extent);
  const Index *here = index_of(t, INDEX_REMAINDER, index_of(t, INDEX_DIVIDE, b, below), extent);
  const Index *apart = index_of(t, INDEX_MULTIPLY, index_of(t, INDEX_SUBTRACT, there, here), stride);
  return apart ? make(t, (Index){.op = INDEX_SIGNED, .args = {apart}}) : NULL;
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

void tree_open(TreeBuilder *b, LoopNode **body) {
  assert(b->depth < MOST_NESTED);
  b->ends[b->depth++] = b->end;
  b->end = body;
}

void tree_close(TreeBuilder *b) {
  b->end = b->ends[--b->depth];
}
