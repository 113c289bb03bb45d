// Inference and check functions of quantisation.
#include "ir/operators/quantize.h"

#include "ir/operators/movement.h"
#include "ir/operators/rules.h"

#include <math.h>

static bool is_per_channel(const Node *node) {
  return node_s64(node, "qtype") == QUANTIZE_PER_CHANNEL;
}

static int channel_axis(const Node *node) {
  return axis_of(node, node->inputs[0]->shape.rank);
}

int scaling_axis(const Node *node, int64_t nelems, int axis, int64_t *step) {
  *step = 1;
  if (node_s64(node, "qtype") == QUANTIZE_PER_GROUP) {
    *step = node_attribute(node, "group_shape")->list.items[axis];
    return axis;
  }
  return is_per_channel(node) && nelems != 1 && axis == channel_axis(node) ? 0 : -1;
}

int64_t scaling_period(const Node *node, const Shape *operand) {
  if (!is_per_channel(node) || operand->rank != 1) return 0;
  Extent own = node->inputs[0]->shape.extent[channel_axis(node)], count = operand->extent[0];
  bool is_short = extent_is_literal(own) && extent_is_literal(count) && count.value > 1 && count.value < own.value;
  return is_short ? count.value : 0;
}

int64_t scaling_greatest_place(const Node *node) {
  if (!operator_has_attribute(node->op, "qtype") || node->ninputs == 1) return 0; // scales are attributes: at most one
  const Shape *src = &node->inputs[0]->shape;
  bool is_shared = node_s64(node, "qtype") == QUANTIZE_PER_GROUP;
  int64_t greatest = 0;
  for (int i = 0; i < src->rank; i++)
    if (extent_value(src->extent[i]) > greatest) greatest = extent_value(src->extent[i]);
  for (uint32_t slot = 1; slot < node->ninputs; slot++) {
    const Value *operand = node->inputs[slot];
    if (!operand) continue;
    is_shared |= scaling_period(node, &operand->shape) != 0;
    int64_t nelems = shape_nelems(&operand->shape);
    if (nelems > greatest) greatest = nelems;
  }
  return is_shared ? greatest : 0;
}

static bool is_f8(Type type) {
  return TYPES_F8 & TYPE_BIT(type);
}

// Whether there is at least one scale or zero point for a non-empty axis of src. Their number may differ from the
// extent.
static bool is_enough(Extent count, Extent own) {
  return extent_is_literal(count) && extent_is_literal(own) && (count.value > 0 || own.value == 0);
}

bool infer_quantize(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *dst = node->outputs[0];
  const AttributeValue *scales = node_attribute(node, "scales"), *zps = node_attribute(node, "zps");
  int64_t axis;
  if (zps->list.count && (is_f8(src->type) || is_f8(dst->type)))
    return infer_error(inf, "zps: expected none for an 8-bit float");
  if (!infer_same_shape(inf, src, dst)) return false;
  if (!is_per_channel(node) || src->shape.rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), src->shape.rank, &axis)) return false;
  Extent count = EXTENT((int64_t)scales->numbers.count), own = src->shape.extent[axis];
  char text[160];
  if (is_enough(count, own)) return true;
  if (extent_is_unknown(own)) return infer_guessed_extent(inf, src, (int)axis, count);
  return infer_error(inf, "axis %d of %s %s: expected extent %lld, the number of scales", (int)axis, src->name,
                     shape_string(&src->shape, text, sizeof text), (long long)count.value);
}

// With groups, the operand with scales or zero points has src's rank and the extents src.extent / group_shape.
static bool infer_groups(Inference *inf, Node *node, Value *operand) {
  Value *src = node->inputs[0];
  const AttributeValue *groups = node_attribute(node, "group_shape");
  if (src->shape.rank < 0 || !operand) return true;
  if (groups->list.count != (size_t)src->shape.rank)
    return infer_error(inf, "group_shape: expected a number for each axis, %d, found %zu", src->shape.rank,
                       groups->list.count);
  if (!infer_rank_beside(inf, operand, src->shape.rank, src)) return false;
  for (int i = 0; i < src->shape.rank; i++) {
    int64_t group = groups->list.items[i];
    char text[160];
    Extent e = src->shape.extent[i], of = operand->shape.extent[i];
    if (group < 1 || group >= MAX_ELEMENTS) return infer_error(inf, "group_shape: expected numbers above 0");
    if (group == 1 && !infer_same_extent(inf, src, i, operand, i)) return false;
    if (group != 1 && extent_is_literal(e) && e.value % group)
      return infer_error(inf, "%s %s: expected a multiple of group_shape [%lld] on axis %d", src->name,
                         shape_string(&src->shape, text, sizeof text), (long long)group, i);
    if (group != 1 && extent_is_literal(e) && !infer_extent_beside(inf, operand, i, EXTENT(e.value / group), src))
      return false;
    if (group != 1 && extent_is_literal(of) && of.value < MAX_ELEMENTS / group &&
        !infer_extent_beside(inf, src, i, EXTENT(of.value * group), operand))
      return false;
  }
  return true;
}

static bool infer_channels(Inference *inf, Value *operand, Value *src, int axis) {
  if (!operand || is_enough(operand->shape.extent[0], src->shape.extent[axis])) return true;
  if (extent_is_unknown(operand->shape.extent[0]) || extent_is_unknown(src->shape.extent[axis]))
    return infer_guessed_extent(inf, operand, 0, src->shape.extent[axis]) &&
           infer_guessed_extent(inf, src, axis, operand->shape.extent[0]);
  return infer_same_extent(inf, operand, 0, src, axis);
}

bool infer_dynamic_quantize(Inference *inf, Node *node) {
  Value *src = node->inputs[0], *scales = node->inputs[1], *zps = node->inputs[2];
  int64_t axis;
  if (zps && (is_f8(src->type) || is_f8(node->outputs[0]->type)))
    return infer_error(inf, "zps: expected none for an 8-bit float");
  if (!infer_same_shape(inf, src, node->outputs[0])) return false;
  if (node_s64(node, "qtype") == QUANTIZE_PER_GROUP)
    return infer_groups(inf, node, scales) && infer_groups(inf, node, zps);
  if (!infer_rank(inf, scales, 1) || !infer_rank(inf, zps, 1)) return false;
  if (!is_per_channel(node))
    return infer_extent_beside(inf, scales, 0, EXTENT(1), src) &&
           (!zps || infer_extent_beside(inf, zps, 0, EXTENT(1), src));
  if (src->shape.rank < 0) return true;
  if (!infer_axis(inf, "axis", node_s64(node, "axis"), src->shape.rank, &axis)) return false;
  bool is_single = zps && extent_equals(zps->shape.extent[0], EXTENT(1));
  return infer_channels(inf, scales, src, (int)axis) &&
         (is_single || !zps || extent_is_unknown(zps->shape.extent[0]) || infer_channels(inf, zps, src, (int)axis));
}

bool check_quantize(Node *node, Diagnostics *d) {
  const AttributeValue *scales = node_attribute(node, "scales"), *zps = node_attribute(node, "zps");
  char title[NODE_TITLE_BYTES];
  size_t count = scales->numbers.count;
  if (!is_per_channel(node) && count != 1)
    return error_at(d, node->position, "scales of %s: expected one, found %zu", node_title(node, title), count);
  if (zps->list.count && zps->list.count != count)
    return error_at(d, node->position, "zps of %s: expected as many as scales, %zu, found %zu", node_title(node, title),
                    count, zps->list.count);
  for (size_t i = 0; i < zps->list.count; i++)
    if (zps->list.items[i] != (int32_t)zps->list.items[i])
      return error_at(d, node->position, "zps of %s: expected integers of 32 bits, found %lld", node_title(node, title),
                      (long long)zps->list.items[i]);
  for (size_t i = 0; i < count; i++)
    if ((float)scales->numbers.items[i] == 0 || !isfinite((float)scales->numbers.items[i]))
      return error_at(d, node->position, "scales of %s: expected finite numbers other than 0, found %g",
                      node_title(node, title), scales->numbers.items[i]);
  return true;
}

static void warn_count(const Node *node, Diagnostics *d, bool is_zps, int64_t count) {
  char title[NODE_TITLE_BYTES], text[160];
  const Value *src = node->inputs[0];
  int axis = channel_axis(node);
  Extent own = src->shape.extent[axis];
  if (!extent_is_literal(own) || count == own.value || own.value == 0 || (is_zps && count == 1)) return;
  const char *what = is_zps ? "zps" : "scales", *rule = ": they repeat along the axis";
  if (count > own.value) rule = ": only the first are used";
  else if (is_zps) rule = ": the missing ones are 0";
  warn_at(d, node->position, "%s of %s: expected %lld, as axis %d of %s %s has, found %lld%s", what,
          node_title(node, title), (long long)own.value, axis, src->name, shape_string(&src->shape, text, sizeof text),
          (long long)count, rule);
}

void warn_quantize(const Node *node, Diagnostics *d) {
  if (!is_per_channel(node)) return;
  warn_count(node, d, false, (int64_t)node_attribute(node, "scales")->numbers.count);
  size_t nzps = node_attribute(node, "zps")->list.count;
  if (nzps) warn_count(node, d, true, (int64_t)nzps);
}

void warn_dynamic_quantize(const Node *node, Diagnostics *d) {
  if (!is_per_channel(node)) return;
  for (uint32_t slot = 1; slot < node->ninputs; slot++) {
    const Value *operand = node->inputs[slot];
    if (operand && extent_is_literal(operand->shape.extent[0]))
      warn_count(node, d, slot == 2, operand->shape.extent[0].value);
  }
}
