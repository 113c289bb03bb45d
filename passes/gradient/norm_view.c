// A norm's operands by name, and its axes: what the rules of norms and the guards of their operands ask of a node.
#include "ir/operators/norm.h"

#include "passes/gradient/gradient_state.h"
#include "passes/gradient/norm.h"

#include <string.h>

static uint32_t slot_of(const Operand *operands, uint32_t count, const char *name) {
  uint32_t slot = 0;
  while (slot < count && strcmp(operands[slot].name, name) != 0) slot++;
  return slot;
}

void norm_set_input(Node *backward, const char *name, Value *v) {
  if (backward) node_set_input(backward, slot_of(backward->op->inputs, backward->op->ninputs, name), v);
}

uint32_t norm_input_slot(const Node *node, const char *name) {
  return slot_of(node->op->inputs, node->op->ninputs, name);
}

const Value *norm_input(const Node *node, const char *name) {
  const uint32_t slot = norm_input_slot(node, name);
  return slot < node->ninputs ? node->inputs[slot] : NULL;
}

static Shape with_ones(const Shape *shape, uint32_t axes) {
  Shape s = *shape;
  for (int i = 0; i < s.rank; i++)
    if (axes >> i & 1) s.extent[i] = EXTENT(1);
  return s;
}

// The axes on which a parameter of the same rank, or broadcast at the right, has extent 1.
static uint32_t broadcast_axes(const Shape *parameter, int rank) {
  const int missing = rank - parameter->rank;
  uint32_t axes = (1U << missing) - 1;
  for (int i = 0; i < parameter->rank; i++)
    if (extent_equals(parameter->extent[i], EXTENT(1))) axes |= 1U << (missing + i);
  return axes;
}

bool norm_view(Gradient *g, const Node *node, NormView *view) {
  const Value *src = node->inputs[0], *gamma = norm_input(node, "gamma");
  const NormScope scope = node->op->norm_scope;
  const bool has_rms = !operator_has_attribute(node->op, "use_affine") && scope == SCOPE_ROW;
  *view = (NormView){.src = src->shape, .reduced = norm_reduced_axes(node)};
  uint32_t others = ~view->reduced; // those of src that parameters lack
  if (scope == SCOPE_CHANNEL) others = view->reduced;
  if (has_rms && gamma) others = broadcast_axes(&gamma->shape, src->shape.rank);
  if (scope == SCOPE_GROUP) {
    const Extent channels = src->shape.extent[norm_channel_axis(node)], groups = norm_ngroups(node);
    const int channel = norm_channel_axis(node);
    others = ~(1U << channel);
    view->reduced &= others;
    if (!extent_equals(channels, groups)) {
      if (src->shape.rank == MAX_RANK) {
        gradient_refuse(g, node, "expected fewer than 8 axes");
        return false;
      }
      Shape *s = &view->src;
      for (int i = s->rank++; i > channel; i--) s->extent[i] = s->extent[i - 1];
      s->extent[channel] = groups;
      s->extent[channel + 1] = EXTENT(channels.value / groups.value);
      const uint32_t before = (1U << channel) - 1;
      view->reduced = (view->reduced & before) | (view->reduced & ~before) << 1 | 1U << (channel + 1);
      others = ~(3U << channel);
    }
  }
  view->statistic = with_ones(&view->src, view->reduced);
  view->parameter = with_ones(&view->src, others);
  return true;
}
