// Finds the inputs whose elements are indices, from the nodes that take them.
#include "ir/operators/indices.h"

// Maps the region through a Slice or Split: from the part to the node's input. False: the region depends on extents
// without numbers, or is at a named place.
static bool take_part(const Value *part, IndexCheck *c) {
  const Node *node = part->producer;
  const Shape *from = &node->inputs[0]->shape, *to = &part->shape;
  AxisRead reads[MAX_RANK];
  int64_t starts[MAX_OPERANDS + 1];
  for (int i = 0; i < from->rank; i++) reads[i] = (AxisRead){0, 1};
  if (node->op->id == OP_Slice) {
    Extent first, last;
    node_reads(node, reads);
    for (int i = 0; i < from->rank; i++)
      if (node_has_named_reads(node, i, &first, &last)) return false;
  } else {
    const int axis = axis_of(node, from->rank);
    if (!extent_is_literal(from->extent[axis]) || !extent_is_literal(to->extent[axis])) return false;
    split_starts(node, starts);
    reads[axis].begin = starts[part->output_slot];
  }
  for (int i = 0; i < from->rank; i++) {
    if (extent_equals(from->extent[i], to->extent[i]) && reads[i].begin == 0 && reads[i].step == 1) continue;
    if (!extent_is_literal(from->extent[i]) || !extent_is_literal(to->extent[i])) return false;
    const bool is_whole = c->count[i] == WHOLE_AXIS;
    c->read[i].begin = reads[i].begin + (is_whole ? 0 : reads[i].step * c->read[i].begin);
    c->read[i].step = reads[i].step * (is_whole ? 1 : c->read[i].step);
    if (is_whole) c->count[i] = to->extent[i].value;
    c->has_region = true;
  }
  return true;
}

// Maps the check from v to the input of v's producer. False: the checked elements cannot be found there.
static bool goes_up(const Value *v, IndexCheck *c) {
  const Node *node = v->producer;
  if (type_is_float(v->type)) return false;
  if (node->op->id == OP_Slice || node->op->id == OP_Split) return take_part(v, c);
  if (node->op->id != OP_Leaf)
    return node->op->traits & TRAIT_PERMUTES && (!c->has_region || node->op->traits & TRAIT_ELEMENTWISE);
  for (int i = v->shape.rank; i-- > 0;) {
    c->read[i + 1] = c->read[i];
    c->count[i + 1] = c->count[i];
  }
  c->read[0] = (AxisRead){0, 1};
  c->count[0] = WHOLE_AXIS;
  return true;
}

// Sets c->input to the input that holds the value's elements, and the region to these elements; graph->ninputs: no
// input holds them.
static void find_input(const Graph *g, const Value *v, IndexCheck *c) {
  for (int i = 0; i < MAX_RANK; i++) {
    c->read[i] = (AxisRead){0, 1};
    c->count[i] = WHOLE_AXIS;
  }
  while (v->producer && goes_up(v, c)) v = v->producer->inputs[0];
  c->input = g->ninputs;
  if (!v->is_input || type_is_float(v->type) || v->type == TYPE_BOOLEAN || type_is_packed(v->type)) return;
  for (c->input = 0; c->input < g->ninputs && g->inputs[c->input] != v;) c->input++;
}

static bool regions_equal(const IndexCheck *a, const IndexCheck *b) {
  bool are_equal = true;
  for (int i = 0; i < MAX_RANK; i++)
    are_equal &=
        a->count[i] == b->count[i] && a->read[i].begin == b->read[i].begin && a->read[i].step == b->read[i].step;
  return are_equal;
}

static bool checks_equal(const IndexCheck *a, const IndexCheck *b) {
  return a->input == b->input && a->is_count == b->is_count && a->added == b->added &&
         extent_equals(a->extent, b->extent) && a->counts_from_end == b->counts_from_end &&
         !a->ignored == !b->ignored && (!a->ignored || *a->ignored == *b->ignored) && regions_equal(a, b);
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
static IndexCheck check_of(const Graph *g, const Node *node, uint32_t slot) {
  const Operand *row = &node->op->inputs[slot];
  IndexCheck own = {.node = node, .counts_from_end = row->counts_from_end, .is_count = row->is_count};
  if (!row->is_count) own.extent = node_indexed(node, slot);
  find_input(g, own.is_count ? before_addition(node->inputs[slot], &own) : node->inputs[slot], &own);
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
  for (size_t n = 0; checks && n < g->nnodes; n++) {
    const Node *node = g->nodes[n];
    for (uint32_t slot = 0; slot < node->op->ninputs; slot++) {
      const Operand *row = &node->op->inputs[slot];
      if (!node->inputs[slot] || !(row->is_index || (with_counts && row->is_count))) continue;
      const IndexCheck own = check_of(g, node, slot);
      bool is_new = own.input < g->ninputs;
      for (size_t i = 0; i < *count; i++) is_new &= !checks_equal(&checks[i], &own);
      if (is_new) checks[(*count)++] = own;
    }
  }
  return checks;
}
