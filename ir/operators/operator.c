// Lookup in the operator table and in the signatures, and attributes of nodes by name.
#include "ir/operators/operator.h"

#include "ir/operators/quantize.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

ValueRange operand_range(const Operand *row) {
  return row->is_probability ? RANGE_PROBABILITY : row->is_positive ? RANGE_POSITIVE : RANGE_ANY;
}

// Whether the value's elements are elements of inputs and constants.
static bool is_given(const Value *v) {
  const Node *node = v->producer;
  for (uint32_t i = 0; node && i < node->ninputs; i++)
    if (!(node->op->traits & TRAIT_PIECES) || node->inputs[i]->producer) return false;
  return true;
}

bool value_is_exact(const Value *v) {
  if (!type_is_float(v->type)) return !(v->producer && v->producer->op->traits & TRAIT_QUANTIZES);
  while (v->producer && v->producer->op->traits & TRAIT_MOVES && !(v->producer->op->traits & TRAIT_RESAMPLES))
    v = v->producer->inputs[0];
  return is_given(v);
}

static bool signature_matches(const Signature *s, const char *text) {
  return strcmp(text, s->full_name) == 0 || (s->is_canonical_too && strcmp(text, s->name) == 0);
}

OperatorName operator_find(const char *text) {
  for (size_t i = 0; i < nsignatures; i++)
    if (signature_matches(&signatures[i], text)) return (OperatorName){&operators[signatures[i].op], &signatures[i]};
  static const char home[] = "onednn.";
  const char *name = strncmp(text, home, sizeof home - 1) == 0 ? text + sizeof home - 1 : text;
  for (size_t i = 0; i < NREADABLE; i++)
    if (strcmp(name, operators[i].name) == 0) return (OperatorName){&operators[i], NULL};
  return (OperatorName){NULL, NULL};
}

// What PyTorch's layers and functions are called, where operators have another name; without the number of axes, as in
// Conv2d.
static const struct {
  const char *name;
  OperatorId op;
} layers[] = {
    {"Conv", OP_Convolution},
    {"BatchNorm", OP_BatchNormForwardTraining},
    {"SyncBatchNorm", OP_BatchNormForwardTraining},
    {"Linear", OP_MatMul},
    {"Gemm", OP_MatMul},
    {"Embedding", OP_Gather},
    {"SiLU", OP_Swish},
    {"CrossEntropyLoss", OP_SoftmaxCrossEntropy},
    {"MSELoss", OP_MeanSquaredError},
    {"BCEWithLogitsLoss", OP_BinaryCrossEntropy},
    {"Flatten", OP_StaticReshape},
    {"View", OP_StaticReshape},
    {"Permute", OP_StaticTranspose},
    {"Cast", OP_TypeCast},
    {"Where", OP_Select},
    {"Upsample", OP_Interpolate},
};

static const char *find_layer(const char *text, size_t length) {
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    if (strlen(layers[i].name) == length && strncasecmp(layers[i].name, text, length) == 0)
      return operators[layers[i].op].name;
  return NULL;
}

// The length without the number of axes of a layer: 4 of Conv2d.
static size_t length_of_layer(const char *text) {
  const size_t length = strlen(text);
  const bool has_axes = length > 2 && text[length - 2] >= '1' && text[length - 2] <= '3' && text[length - 1] == 'd';
  return has_axes ? length - 2 : length;
}

// The first operator in the table whose name begins with the text.
static const char *first_with_beginning(const char *text) {
  const size_t length = strlen(text);
  for (size_t i = 0; i < NREADABLE && length >= 4; i++)
    if (strncasecmp(operators[i].name, text, length) == 0) return operators[i].name;
  return NULL;
}

// The only operator whose name ends with the text: StaticReshape for Reshape. NULL: there is none, or several.
static const char *only_with_end(const char *text) {
  const char *found = NULL;
  const size_t length = strlen(text);
  for (size_t i = 0; i < NREADABLE && length >= 3; i++) {
    const char *name = operators[i].name;
    const size_t own = strlen(name);
    if (own <= length || strcasecmp(name + own - length, text) != 0) continue;
    if (found) return NULL;
    found = name;
  }
  return found;
}

const char *operator_nearest(const char *given) {
  char text[64];
  snprintf(text, sizeof text, "%.*s", (int)length_of_layer(given), given);
  const char *layer = find_layer(text, strlen(text));
  if (layer) return layer;
  enum { MOST = OP_COUNT + 64 };
  const char *candidates[MOST];
  size_t count = 0;
  for (size_t i = 0; i < NREADABLE; i++) candidates[count++] = operators[i].name;
  for (size_t i = 0; i < nsignatures && count + 2 <= MOST; i++) {
    if (signatures[i].is_canonical_too) candidates[count++] = signatures[i].name;
    candidates[count++] = signatures[i].full_name;
  }
  const char *nearest = nearest_word(text, candidates, count);
  if (!nearest) nearest = only_with_end(text);
  return nearest ? nearest : first_with_beginning(text);
}

void operator_print_name(const Operator *op, const Signature *signature, Text *out) {
  if (!signature) text_add_string(out, op->name);
  else text_add_string(out, signature->is_canonical_too ? signature->name : signature->full_name);
}

const char *node_title(const Node *node, char buffer[NODE_TITLE_BYTES]) {
  const Signature *s = node->signature;
  bool has_dialect = s && !s->is_canonical_too;
  snprintf(buffer, NODE_TITLE_BYTES, "%s%s%s%s%s%s", has_dialect ? s->dialect : "", has_dialect ? "." : "",
           s ? s->name : node->op->name, node->label ? " (" : "", node->label ? node->label : "",
           node->label ? ")" : "");
  return buffer;
}

static uint32_t count_visible(const Operand *operands, uint32_t n) {
  while (n && operands[n - 1].is_hidden) n--;
  return n;
}

uint32_t named_ninputs(OperatorName n) {
  return n.signature ? n.signature->ninputs : count_visible(n.op->inputs, n.op->ninputs);
}

uint32_t named_noutputs(OperatorName n) {
  return n.signature ? n.signature->noutputs : count_visible(n.op->outputs, n.op->noutputs);
}

SignatureOperand named_input(OperatorName n, uint32_t i) {
  if (n.signature) return n.signature->inputs[i];
  return (SignatureOperand){n.op->inputs[i].name, (uint8_t)i, n.op->inputs[i].is_optional};
}

SignatureOperand named_output(OperatorName n, uint32_t i) {
  if (n.signature) return n.signature->outputs[i];
  return (SignatureOperand){n.op->outputs[i].name, (uint8_t)i, n.op->outputs[i].is_optional};
}

static uint32_t find_attribute(const Operator *op, const char *name) {
  uint32_t i = 0;
  while (i < op->nattributes && strcmp(op->attributes[i].name, name) != 0) i++;
  return i;
}

Extent node_indexed(const Node *node, uint32_t slot) {
  const Shape *indexed = slot ? &node->inputs[0]->shape : &node->outputs[0]->shape;
  const int64_t axis = node_s64(node, "axis");
  return indexed->extent[axis < 0 ? axis + indexed->rank : axis];
}

int64_t node_indexed_extent(const Node *node, uint32_t slot) {
  const bool is_index = slot < node->op->ninputs && node->op->inputs[slot].is_index;
  return is_index ? extent_value(node_indexed(node, slot)) : -1;
}

bool operator_has_attribute(const Operator *op, const char *name) {
  return find_attribute(op, name) < op->nattributes;
}

bool operator_places_by_axis(const Operator *op) {
  bool places = op->traits & TRAIT_ALONG_AXIS;
  for (uint32_t i = 0; i < op->ninputs; i++) places |= op->inputs[i].is_per_channel;
  for (uint32_t i = 0; i < op->noutputs; i++) places |= op->outputs[i].is_per_channel;
  return places;
}

bool node_places_by_axis(const Node *node) {
  const bool has_one_scale =
      operator_has_attribute(node->op, "qtype") && node_s64(node, "qtype") == QUANTIZE_PER_TENSOR;
  return operator_places_by_axis(node->op) && !has_one_scale;
}

static uint32_t attribute_index(const Operator *op, const char *name) {
  uint32_t i = find_attribute(op, name);
  assert(i < op->nattributes);
  return i;
}

const char *named_input_beside(OperatorName n, uint32_t i, const AttributeValue *attributes) {
  SignatureOperand row = named_input(n, i);
  const char *dst_name = n.op->inputs[row.slot].dst_name;
  if (!dst_name) return row.name;
  uint32_t use_dst = attribute_index(n.op, "use_dst");
  bool is_dst = attributes[use_dst].is_set ? attributes[use_dst].boolean : n.op->attributes[use_dst].default_value != 0;
  return is_dst ? dst_name : row.name;
}

// Whether the signature lists attributes. If not, the operator's list applies.
static bool has_own_attributes(OperatorName n) {
  return n.signature && n.signature->nattributes;
}

uint32_t named_nattributes(OperatorName n) {
  uint32_t count = 0;
  if (has_own_attributes(n)) {
    for (uint32_t i = 0; i < n.signature->nattributes; i++) count += n.signature->attributes[i].name != NULL;
    return count;
  }
  for (uint32_t i = 0; i < n.op->nattributes; i++) count += !n.op->attributes[i].is_hidden;
  return count;
}

NamedAttribute named_attribute(OperatorName n, uint32_t i) {
  uint32_t at = 0;
  if (has_own_attributes(n)) {
    for (const SignatureAttribute *a = n.signature->attributes;; a++) {
      if (!a->name || at++ != i) continue;
      return (NamedAttribute){a->name, attribute_index(n.op, a->canonical), a->is_required, !a->is_required, a->value};
    }
  }
  for (uint32_t k = 0;; k++) {
    const Attribute *a = &n.op->attributes[k];
    if (a->is_hidden || at++ != i) continue;
    return (NamedAttribute){a->name, k, a->is_required, !a->is_required && !a->is_optional, a->default_value};
  }
}

static void set_number(AttributeValue *value, AttributeKind kind, double number) {
  if (value->is_set) return;
  value->is_set = value->is_default = true;
  switch (kind) {
  case ATTRIBUTE_BOOL: value->boolean = number != 0; break;
  case ATTRIBUTE_F32: value->f32 = number; break;
  case ATTRIBUTE_S64_LIST:
    value->list.items = NULL;
    value->list.count = 0;
    break;
  case ATTRIBUTE_F32_LIST:
    value->numbers.items = NULL;
    value->numbers.count = 0;
    break;
  default: value->s64 = (int64_t)number; break;
  }
}

void node_set_defaults(Node *node) {
  const Operator *op = node->op;
  const Signature *s = node->signature;
  for (uint32_t i = 0; s && i < s->nattributes; i++) {
    const SignatureAttribute *a = &s->attributes[i];
    uint32_t k = attribute_index(op, a->canonical);
    if (!a->is_required) set_number(&node->attributes[k], op->attributes[k].kind, a->value);
  }
  for (uint32_t k = 0; k < op->nattributes; k++) {
    const Attribute *a = &op->attributes[k];
    if (!a->is_required && !a->is_optional) set_number(&node->attributes[k], a->kind, a->default_value);
  }
}

Value *node_operand_at(const Node *node, uint32_t i, const Operand **row) {
  const Operator *op = node->op;
  bool is_input = i < node->ninputs;
  uint32_t k = is_input ? i : i - node->ninputs;
  uint32_t last = is_input ? op->ninputs - 1 : op->noutputs - 1;
  *row = is_input ? &op->inputs[k < last ? k : last] : &op->outputs[k < last ? k : last];
  return is_input ? node->inputs[k] : node->outputs[k];
}

const AttributeValue *node_attribute(const Node *node, const char *name) {
  return &node->attributes[attribute_index(node->op, name)];
}

AttributeValue *node_attribute_slot(Node *node, const char *name) {
  return &node->attributes[attribute_index(node->op, name)];
}

bool node_set_list(Graph *g, Node *node, const char *name, const int64_t *items, size_t count) {
  int64_t *copy = ARENA_ARRAY(&g->arena, int64_t, count + 1);
  if (!copy) return false;
  if (count) memcpy(copy, items, count * sizeof *copy);
  *node_attribute_slot(node, name) = (AttributeValue){.is_set = true, .list = {copy, count}};
  return true;
}

bool node_set_extents(Graph *g, Node *node, const char *name, const Extent *extents, size_t count) {
  int64_t *items = ARENA_ARRAY(&g->arena, int64_t, count + 1);
  Extent *copy = ARENA_ARRAY(&g->arena, Extent, count + 1);
  bool any = false;
  if (!items || !copy) return false;
  for (size_t i = 0; i < count; i++) {
    any |= extents[i].dim != NULL;
    copy[i] = extents[i].dim ? extents[i] : EXTENT_UNKNOWN;
    items[i] = extents[i].dim ? 0 : extents[i].value;
  }
  *node_attribute_slot(node, name) = (AttributeValue){.is_set = true, .list = {items, count, any ? copy : NULL}};
  return true;
}

bool node_bool(const Node *node, const char *name) {
  return node_attribute(node, name)->boolean;
}

int64_t node_s64(const Node *node, const char *name) {
  return node_attribute(node, name)->s64;
}

double node_f32(const Node *node, const char *name) {
  return node_attribute(node, name)->f32;
}
