#include "passes/lower/fusible.h"

#include "ir/operators/contraction.h"
#include "ir/operators/elementwise.h"
#include "ir/operators/norm.h"
#include "passes/lower/aliases.h"

bool node_is_never_fused(const Node *node) {
  return node->op->traits & (TRAIT_PIECES | TRAIT_SCATTERS) || node_is_alias(node);
}

bool node_has_own_axes(const Node *node) {
  return node->op->domain;
}

static bool is_product(const Node *node) {
  return node_has_own_axes(node) && node->ninputs >= 2 &&
         (contraction_operand(node, node->inputs[0]) || contraction_operand(node, node->inputs[1]));
}

bool node_has_sums(const Node *node) {
  return !(node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_POINTWISE | TRAIT_MOVES));
}

bool node_is_pointwise(const Node *node) {
  return node->op->traits & (TRAIT_ELEMENTWISE | TRAIT_POINTWISE);
}

enum { MOST_EXPANDING = 8 }; // operators in a row that node_expands_into looks at

static bool is_read_once(const Value *v) {
  return v && !v->is_output && v->uses && !v->uses->next;
}

static bool expands(const Node *node, int most) { // NOLINT(misc-no-recursion): to depth `most`
  const Value *v = node->outputs[0];
  bool is_larger = node->op->traits & TRAIT_ELEMENTWISE && node->noutputs == 1 && most && is_read_once(v);
  for (uint32_t i = 0; i < node->ninputs && is_larger; i++) {
    const Value *input = node->inputs[i];
    is_larger =
        !input || !shape_equals(&input->shape, &v->shape) || (input->producer && expands(input->producer, most - 1));
  }
  return is_larger;
}

const Node *node_expands_into(const Node *node) {
  const Node *user = node;
  for (int i = 0; i < MOST_EXPANDING && expands(user, MOST_EXPANDING); i++) {
    user = user->outputs[0]->uses->node;
    if (user->op->traits & TRAIT_REDUCES) return user;
  }
  return NULL;
}

bool shape_broadcasts_to(const Shape *from, const Shape *to) {
  if (from->rank > to->rank) return false;
  for (int i = 1; i <= from->rank; i++) {
    Extent e = from->extent[from->rank - i];
    if (extent_value(e) != 1 && !extent_equals(e, to->extent[to->rank - i])) return false;
  }
  return true;
}

bool shape_is_domain_of_both(const Shape *one, const Shape *other) {
  const int64_t nelems = shape_nelems(one), others = shape_nelems(other);
  return nelems > others || (nelems == others && one->rank > other->rank);
}

bool value_is_data(const Value *v, const Shape *domain) {
  return v && shape_nelems(&v->shape) >= shape_nelems(domain) && shape_nelems(domain) > 1;
}

bool node_is_broadcastable(const Node *node) {
  return node->op->traits & TRAIT_ELEMENTWISE && !operator_places_by_axis(node->op);
}

// Whether the node's result is aligned at the right with its inputs' axes.
static bool is_aligned(const Node *maker) {
  return maker->op->traits & TRAIT_REDUCES ? node_bool(maker, "keep_dims") : node_is_broadcastable(maker);
}

static bool is_statistic_operand(const Node *node, const Value *v) {
  for (uint32_t i = 0; i < node->ninputs; i++)
    if (node->inputs[i] == v && !node->op->inputs[i].is_statistic) return false;
  return true;
}

// Whether the value is a statistic that one norm computes and another norm over the same axes uses, so that it varies
// over the same axes of the kernel in both.
static bool is_of_same_norm(const Node *maker, const Value *v, const Node *user) {
  const NormScope scope = maker->op->norm_scope;
  if (scope == SCOPE_NONE || user->op->norm_scope == SCOPE_NONE) return false;
  if (!maker->op->outputs[v->output_slot].is_statistic || !is_statistic_operand(user, v)) return false;
  if ((scope == SCOPE_GROUP) != (user->op->norm_scope == SCOPE_GROUP)) return false;
  if (scope == SCOPE_GROUP && !extent_equals(norm_ngroups(maker), norm_ngroups(user))) return false;
  return shape_equals(&maker->inputs[0]->shape, &user->inputs[0]->shape) &&
         norm_reduced_axes(maker) == norm_reduced_axes(user);
}

bool value_can_be_expression(const Node *maker, const Value *v, const Node *user, const Shape *domain) {
  if (shape_equals(&v->shape, domain) || is_of_same_norm(maker, v, user)) return true;
  return is_aligned(maker) && node_is_broadcastable(user) && shape_broadcasts_to(&v->shape, domain);
}

bool node_replaces_stream(const Node *node, const Shape *domain) {
  const Value *src = node->inputs[0], *dst = node->outputs[0];
  if ((src->constant && src->constant->is_splat) || !is_read_once(dst)) return false;
  return node->op->traits & TRAIT_ELEMENTWISE && node->ninputs == 1 && shape_equals(&src->shape, domain) &&
         shape_equals(&dst->shape, domain) && layout_is_row_major(&src->layout) && layout_is_row_major(&dst->layout);
}

// Lists of nodes

static void mark_node(NodeMarks *m, const Node *node) {
  m->marks[node->index] = m->newest;
}

static void mark_list(NodeMarks *m, const NodeList *list) {
  m->newest++;
  for (uint32_t i = 0; i < list->count; i++) mark_node(m, list->nodes[i]);
}

static bool is_marked(const NodeMarks *m, const Node *node) {
  return m->marks[node->index] == m->newest;
}

// Whether a node that is not marked uses the value, or it is an output.
static bool is_used_outside(const Value *v, const NodeMarks *m) {
  if (v->is_output) return true;
  for (const Use *use = v->uses; use; use = use->next)
    if (!is_marked(m, use->node)) return true;
  return false;
}

// The number of tensors of the domain's size that one kernel of these nodes would read and write; stops at most + 1.
static int64_t count_streams(const NodeList *list, const Shape *domain, int64_t most, NodeMarks *marks) {
  const Value *seen[MOST_STREAMS + 1];
  const int64_t nelems = shape_nelems(domain);
  int64_t count = 0;
  mark_list(marks, list);
  for (uint32_t i = 0; nelems > 1 && i < list->count; i++) {
    const Node *node = list->nodes[i];
    for (uint32_t s = 0; s < node->ninputs + node->noutputs; s++) {
      bool is_input = s < node->ninputs;
      const Value *v = is_input ? node->inputs[s] : node->outputs[s - node->ninputs];
      if (!v) continue;
      bool is_counted = is_input ? v->producer && is_marked(marks, v->producer) : !is_used_outside(v, marks);
      if (is_counted || shape_nelems(&v->shape) < nelems) continue;
      for (int64_t k = 0; k < count; k++) is_counted |= seen[k] == v;
      if (is_counted) continue;
      seen[count++] = v;
      if (count > most) return count;
    }
  }
  return count;
}

// Appends all elementwise producers, direct and indirect, that have not been visited yet. False: more nodes than a
// region may have.
static bool add_producers(NodeList *list, const Shape *domain, uint32_t first, NodeMarks *marks) {
  mark_list(marks, list);
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    for (uint32_t s = 0; s < node->ninputs; s++) {
      Node *maker = node->inputs[s] ? node->inputs[s]->producer : NULL;
      if (!maker || maker->index >= first || !(maker->op->traits & TRAIT_ELEMENTWISE)) continue;
      if (is_marked(marks, maker) || !shape_equals(&node->inputs[s]->shape, domain)) continue;
      if (list->count == MOST_NODES) return false;
      mark_node(marks, maker);
      list->nodes[list->count++] = maker;
    }
  }
  return true;
}

bool list_has_many_streams(const NodeList *list, const Shape *domain, int64_t most, uint32_t first, NodeMarks *marks) {
  if (count_streams(list, domain, most, marks) <= most) return false;
  NodeList all = *list;
  return !add_producers(&all, domain, first, marks) || count_streams(&all, domain, most, marks) > most;
}

Sums list_count_sums(const NodeList *list) {
  Sums sums = {0};
  for (uint32_t i = 0; i < list->count; i++) {
    const bool is_own = node_has_own_axes(list->nodes[i]);
    sums.nown += is_own;
    sums.nproducts += is_product(list->nodes[i]);
    sums.nothers += !is_own && node_has_sums(list->nodes[i]);
    sums.has_groups |= list->nodes[i]->op->norm_scope == SCOPE_GROUP;
    sums.has_bounds |= (list->nodes[i]->op->traits & TRAIT_BOUNDED) != 0;
  }
  return sums;
}

bool list_has_same_groups(const NodeList *list) {
  const Node *first = NULL;
  for (uint32_t i = 0; i < list->count; i++) {
    const Node *node = list->nodes[i];
    if (node->op->norm_scope != SCOPE_GROUP) continue;
    if (first && (norm_channel_axis(first) != norm_channel_axis(node) ||
                  !extent_equals(norm_ngroups(first), norm_ngroups(node))))
      return false;
    first = node;
  }
  return true;
}
