// Finds the inputs whose elements are indices, from the nodes that take them.
#include "ir/operators/indices.h"

#include <string.h>

// Finding a check goes from the indices up to an input. A part of an axis that a Slice or Split takes becomes a part of
// the axis of its input.
typedef struct Search {
  const Graph *graph;
  Arena *arena;
  bool *out_of_memory;
} Search;

bool check_has_parts(const IndexCheck *c) {
  bool has_parts = false;
  for (int i = 0; i < MAX_RANK; i++) has_parts |= c->part[i] != NULL;
  return has_parts;
}

void part_numbers(const AxisPart *part, int64_t *begin, int64_t *count) {
  formula_is_number(&part->begin, begin);
  formula_is_number(&part->count, count);
}

static bool number_formula(int64_t number, Formula *f) {
  *f = (Formula){.nterms = number != 0, .terms = {{.factor = number}}};
  return true;
}

// The elements of v, the result of a Slice or Split, along the axis of the node's input. False: they have no formula.
static bool taken_part(const Value *v, int axis, AxisPart *part) {
  const Node *node = v->producer;
  const Extent from = node->inputs[0]->shape.extent[axis], to = v->shape.extent[axis];
  AxisRead reads[MAX_RANK];
  int64_t starts[MAX_OPERANDS + 1];
  Extent first, last;
  const bool are_numbers = extent_is_literal(from) && extent_is_literal(to);
  part->step = 1;
  if (node->op->id == OP_Split) {
    const bool is_split = axis == axis_of(node, v->shape.rank);
    if (is_split && !are_numbers) return false;
    if (is_split) split_starts(node, starts);
    return number_formula(is_split ? starts[v->output_slot] : 0, &part->begin) && formula_of(to, &part->count);
  }
  node_reads(node, reads);
  part->step = reads[axis].step;
  if (!are_numbers || node_has_named_reads(node, axis, &first, &last))
    return node_read_formulas(node, axis, &part->begin, &part->count);
  return number_formula(reads[axis].begin, &part->begin) && formula_of(to, &part->count);
}

// Maps the parts through a Slice or Split, to the node's input. False: a part has no formula.
static bool take_parts(const Search *s, const Value *v, IndexCheck *c) {
  const Shape *from = &v->producer->inputs[0]->shape;
  for (int i = 0; i < from->rank; i++) {
    AxisPart taken, *own = ARENA_NEW(s->arena, AxisPart);
    *s->out_of_memory |= !own;
    if (!own || !taken_part(v, i, &taken)) return false;
    if (extent_equals(from->extent[i], v->shape.extent[i]) && !taken.begin.nterms && taken.step == 1) continue;
    *own = taken;
    if (c->part[i]) {
      own->step *= c->part[i]->step;
      own->count = c->part[i]->count;
      if (!formula_add(&own->begin, &c->part[i]->begin, taken.step)) return false;
    }
    c->part[i] = own;
  }
  return true;
}

// Maps the parts through a transpose, or a reshape that adds and removes axes of one element. False: another reshape.
static bool permute_parts(const Node *node, IndexCheck *c) {
  const Shape *from = &node->inputs[0]->shape, *to = &node->outputs[0]->shape;
  const AxisPart *part[MAX_RANK] = {NULL};
  int axes[MAX_RANK], i = 0, k = 0;
  if (node->op->traits & TRAIT_ELEMENTWISE || !check_has_parts(c)) return true;
  if (operator_has_attribute(node->op, "order")) {
    transpose_axes(node, to->rank, axes); // of a verified graph
    for (i = 0; i < to->rank; i++) part[axes[i]] = c->part[i];
  } else {
    while (i < from->rank || k < to->rank) {
      if (i < from->rank && k < to->rank && extent_equals(from->extent[i], to->extent[k])) part[i++] = c->part[k++];
      else if (k < to->rank && extent_equals(to->extent[k], EXTENT(1)) && !c->part[k]) k++;
      else if (i < from->rank && extent_equals(from->extent[i], EXTENT(1))) i++;
      else return false;
    }
  }
  memcpy(c->part, part, sizeof part);
  return true;
}

// Maps the check from v to the input of v's producer. False: the checked elements cannot be found there.
static bool goes_up(const Search *s, const Value *v, IndexCheck *c) {
  const Node *node = v->producer;
  if (type_is_float(v->type)) return false;
  if (node->op->id == OP_Slice || node->op->id == OP_Split) return take_parts(s, v, c);
  if (node->op->id != OP_Leaf) return node->op->traits & TRAIT_PERMUTES && permute_parts(node, c);
  for (int i = v->shape.rank; i-- > 0;) c->part[i + 1] = c->part[i];
  c->part[0] = NULL;
  return true;
}

// Sets c->input to the input that holds the value's elements, and the parts to these elements; graph->ninputs: no
// input holds them.
static void find_input(const Search *s, const Value *v, IndexCheck *c) {
  const Graph *g = s->graph;
  while (v->producer && goes_up(s, v, c)) v = v->producer->inputs[0];
  c->input = g->ninputs;
  if (!v->is_input || type_is_float(v->type) || v->type == TYPE_BOOLEAN || type_is_packed(v->type)) return;
  for (c->input = 0; c->input < g->ninputs && g->inputs[c->input] != v;) c->input++;
}

static bool parts_equal(const IndexCheck *a, const IndexCheck *b) {
  bool are_equal = true;
  for (int i = 0; i < MAX_RANK && are_equal; i++) {
    const AxisPart *p = a->part[i], *q = b->part[i];
    are_equal = p && q
                    ? p->step == q->step && formula_equals(&p->begin, &q->begin) && formula_equals(&p->count, &q->count)
                    : p == q;
  }
  return are_equal;
}

static bool checks_equal(const IndexCheck *a, const IndexCheck *b) {
  return a->input == b->input && a->is_count == b->is_count && a->added == b->added &&
         extent_equals(a->extent, b->extent) && a->counts_from_end == b->counts_from_end &&
         !a->ignored == !b->ignored && (!a->ignored || *a->ignored == *b->ignored) && parts_equal(a, b);
}

bool value_adds_constant(const Value *a, const Value *b, int64_t *number) {
  const Node *node = b->producer;
  if (!node || node->op->id != OP_Add || (a->type != TYPE_S32 && a->type != TYPE_S64)) return false;
  const Value *other = node->inputs[0] == a ? node->inputs[1] : node->inputs[1] == a ? node->inputs[0] : NULL;
  if (!other || !other->constant || !other->constant->is_splat || other->type != a->type) return false;
  *number = a->type == TYPE_S64 ? *(const int64_t *)other->constant->data : *(const int32_t *)other->constant->data;
  return true;
}

void state_range(const Graph *g, const State *state, int64_t *least, int64_t *most) {
  const int64_t most_added = (int64_t)1 << 32; // larger numbers are no counts, but may wrap around on purpose
  const Value *v = g->inputs[state->input];
  int64_t number;
  *least = INT64_MIN;
  *most = INT64_MAX;
  if (state->output < 0 || v->type != TYPE_S64 || !value_adds_constant(v, g->outputs[state->output], &number)) return;
  if (number <= 0 || number > most_added) return;
  *most = INT64_MAX / 2; // further calls cannot overflow
  if (state->init.kind == INIT_ZEROS || state->init.kind == INIT_ONES) *least = state->init.kind == INIT_ONES;
}

// The operand of an Add of a constant, which becomes a part of the check; else v.
static const Value *before_addition(const Value *v, IndexCheck *c) {
  const Node *node = v->producer;
  for (uint32_t i = 0; node && i < node->ninputs; i++) {
    int64_t number;
    if (!node->inputs[i] || !value_adds_constant(node->inputs[i], v, &number) || number < 0) continue;
    c->added = number;
    return node->inputs[i];
  }
  return v;
}

// The check for the node's operand in this slot.
static IndexCheck check_of(const Search *s, const Node *node, uint32_t slot) {
  const Operand *row = &node->op->inputs[slot];
  IndexCheck own = {.node = node, .counts_from_end = row->counts_from_end, .is_count = row->is_count};
  if (!row->is_count) own.extent = node_indexed(node, slot);
  find_input(s, own.is_count ? before_addition(node->inputs[slot], &own) : node->inputs[slot], &own);
  const bool may_ignore = operator_has_attribute(node->op, "ignore_index");
  const AttributeValue *ignored = may_ignore ? node_attribute(node, "ignore_index") : NULL;
  if (ignored && ignored->is_set) own.ignored = &ignored->s64;
  return own;
}

const IndexCheck *graph_index_checks(const Graph *g, bool with_counts, Arena *arena, size_t *count) {
  size_t most = 1;
  *count = 0;
  for (size_t n = 0; n < g->nnodes; n++)
    for (uint32_t slot = 0; slot < g->nodes[n]->op->ninputs; slot++)
      most += g->nodes[n]->op->inputs[slot].is_index || g->nodes[n]->op->inputs[slot].is_count;
  IndexCheck *checks = ARENA_ARRAY(arena, IndexCheck, most);
  bool out_of_memory = !checks;
  const Search search = {g, arena, &out_of_memory};
  for (size_t n = 0; !out_of_memory && n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    for (uint32_t slot = 0; slot < node->op->ninputs; slot++) {
      const Operand *row = &node->op->inputs[slot];
      if (!node->inputs[slot] || !(row->is_index || (with_counts && row->is_count))) continue;
      const IndexCheck own = check_of(&search, node, slot);
      bool is_new = own.input < g->ninputs;
      for (size_t i = 0; i < *count; i++) is_new &= !checks_equal(&checks[i], &own);
      if (is_new) checks[(*count)++] = own;
    }
  }
  return out_of_memory ? NULL : checks;
}
