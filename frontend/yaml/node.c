// Nodes: operators by name, operands by name or position, attributes by the operator's table.
//
// Nodes may be in any order, so all outputs are defined before any input is looked up. A node with an error is left out
// of the graph; the values that it would have made stay, with unknown type and shape.
#include "frontend/ngraph/ngraph.h"
#include "frontend/onnx/onnx.h"
#include "frontend/yaml/reader.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { OP_KEY, LABEL_KEY, INPUTS_KEY, OUTPUTS_KEY, ATTRIBUTES_KEY, NKEYS };

typedef struct Draft {
  const Yaml *found[NKEYS];
  OperatorName as;
  const char *title; // the operator as written, and its label; for messages
  const char *label; // NULL: none
  bool is_broken;
  Value *outputs[MAX_OPERANDS]; // by canonical slot
  AttributeValue attributes[MAX_ATTRIBUTES];
} Draft;

// The operands of one side of a node; their names are not looked up yet.
typedef struct Operands {
  const Yaml *slots[MAX_VARIADIC]; // by canonical slot
  uint32_t count;                  // number of slots of the node
} Operands;

static SignatureOperand operand_row(const Draft *draft, bool is_input, uint32_t i) {
  if (!is_input) return named_output(draft->as, i);
  SignatureOperand row = named_input(draft->as, i);
  row.name = named_input_beside(draft->as, i, draft->attributes);
  return row;
}

// "missing inputs mean, variance"
static bool tell_missing(Reader *r, Draft *draft, const Yaml *given, bool is_input, const Operands *operands) {
  uint32_t n = is_input ? named_ninputs(draft->as) : named_noutputs(draft->as), nmissing = 0;
  Text names;
  text_init(&names, r->scratch.allocator);
  for (uint32_t i = 0; i < n; i++) {
    SignatureOperand row = operand_row(draft, is_input, i);
    if (!row.is_optional && !operands->slots[row.slot]) text_format(&names, "%s%s", nmissing++ ? ", " : "", row.name);
  }
  if (nmissing)
    reader_error(r, given ? given : draft->found[OP_KEY], "%s: missing %s%s %s", draft->title,
                 is_input ? "input" : "output", nmissing > 1 ? "s" : "", text_string(&names));
  text_deinit(&names);
  return nmissing == 0;
}

static bool bind_list(Reader *r, Draft *draft, const Yaml *given, bool is_input, Operands *operands) {
  OperatorName as = draft->as;
  bool is_variadic = is_input && (as.op->traits & TRAIT_VARIADIC);
  uint32_t n = is_input ? named_ninputs(as) : named_noutputs(as), most = is_variadic ? MAX_VARIADIC : n;
  bool ok = true;
  for (uint32_t i = 0; i < given->count && i < most; i++) {
    uint32_t slot = i < n ? operand_row(draft, is_input, i).slot : i;
    if (slot >= operands->count) operands->count = slot + 1;
    if (!yaml_is_null(given->items[i])) operands->slots[slot] = given->items[i];
    else if (i >= n) ok = reader_error(r, given->items[i], "%s: expected an input, found none", draft->title);
  }
  if (given->count > most)
    ok = reader_error(r, given->items[most], "%s: expected at most %u %s%s, found %u", draft->title, (unsigned)most,
                      is_input ? "input" : "output", most == 1 ? "" : "s", (unsigned)given->count);
  return ok;
}

// Repeated inputs have no names of their own.
static bool tell_list_wanted(Reader *r, const Draft *draft, const Yaml *given) {
  const char *name = operand_row(draft, true, 0).name;
  if (given->count == 1 && yaml_entry(given, 0)->kind == YAML_SCALAR && strcmp(yaml_key(given, 0)->text, name) == 0)
    return true;
  return reader_error(r, given, "%s: expected its inputs as a list, as in inputs: [a, b] or inputs: {%s: [a, b]}",
                      draft->title, name);
}

static bool bind_map(Reader *r, Draft *draft, const Yaml *given, bool is_input, Operands *operands) {
  if (is_input && (draft->as.op->traits & TRAIT_VARIADIC) && !tell_list_wanted(r, draft, given)) return false;
  uint32_t n = is_input ? named_ninputs(draft->as) : named_noutputs(draft->as);
  const char *keys[MAX_OPERANDS];
  const Yaml *found[MAX_OPERANDS];
  char what[2 * DESCRIPTION_BYTES];
  snprintf(what, sizeof what, "the %s of %s", is_input ? "inputs" : "outputs", draft->title);
  for (uint32_t i = 0; i < n; i++) keys[i] = operand_row(draft, is_input, i).name;
  bool ok = read_fields(r, given, what, keys, n, found);
  for (uint32_t i = 0; i < n; i++)
    if (found[i] && !yaml_is_null(found[i])) operands->slots[operand_row(draft, is_input, i).slot] = found[i];
  return ok;
}

// Assigns the entries of `given` to slots. For known operators only.
static bool bind_operands(Reader *r, Draft *draft, const Yaml *given, bool is_input, Operands *operands) {
  const Operator *op = draft->as.op;
  bool ok = true;
  operands->count = is_input ? op->ninputs : op->noutputs;
  if (given && yaml_is_null(given)) given = NULL;
  if (given && given->kind == YAML_LIST) ok = bind_list(r, draft, given, is_input, operands);
  else if (given && given->kind == YAML_MAP) ok = bind_map(r, draft, given, is_input, operands);
  else if (given) return false; // has_entries reports it
  return ok && tell_missing(r, draft, given, is_input, operands);
}

// The i-th entry of a list or map of operands; NULL: absent.
static const Yaml *operand_entry(const Yaml *given, uint32_t i) {
  const Yaml *entry = given->kind == YAML_MAP ? yaml_entry(given, i) : given->items[i];
  return yaml_is_null(entry) ? NULL : entry;
}

static bool has_entries(Reader *r, const Draft *draft, const Yaml *given, bool is_input) {
  if (!given || yaml_is_null(given)) return false;
  if (given->kind != YAML_SCALAR) return true;
  reader_expected(r, given, "%s of %s: expected a list or a map", is_input ? "inputs" : "outputs", draft->title);
  r->misses_names |= !is_input;
  return false;
}

// Reads an output: a name, or a map that may also declare type, shape and layout.
static Value *read_output(Reader *r, const Draft *draft, const Yaml *y) {
  enum { NAME, TYPE, SHAPE, ORDER, COUNT };
  static const char *const keys[] = {"name", "type", "shape", "order"};
  char what[2 * DESCRIPTION_BYTES];
  const Yaml *found[COUNT] = {y, NULL, NULL, NULL};
  const char *name;
  Type type = TYPE_NONE;
  Shape shape = {.rank = -1};
  Layout layout = {{0}};
  bool ok = true;
  snprintf(what, sizeof what, "an output of %s", draft->title);
  if (y->kind != YAML_SCALAR) ok = read_fields(r, y, what, keys, COUNT, found);
  if (!read_own_name(r, y, found[NAME], what, &name)) return NULL;
  if (found[TYPE] && !read_type(r, found[TYPE], name, &type)) ok = false;
  if (found[SHAPE] && !read_shape(r, found[SHAPE], name, &shape)) ok = false;
  if (found[ORDER] && !read_layout(r, found[ORDER], name, &shape, &layout)) ok = false;
  Value *v = define_value(r, found[NAME], name, type, &shape, false);
  if (v) v->layout = layout;
  return ok ? v : NULL;
}

// Reads an input of a node. A number is an error, with a hint to write it as a constant.
static Value *use_operand(Reader *r, const Yaml *y, const char *title) {
  char found[DESCRIPTION_BYTES];
  const ScalarKind kind = yaml_scalar(y).kind;
  if (y->kind != YAML_SCALAR || kind == SCALAR_STRING || kind == SCALAR_NULL || kind == SCALAR_BOOL)
    return use_value(r, y, title);
  yaml_describe(y, found);
  reader_error(
      r, y,
      "%s: expected a name, found the number %s; write it under constants:, as in {name: c, type: f32, shape: [], "
      "value: %s}, and c here",
      title, found, found);
  return NULL;
}

static void read_node_outputs(Reader *r, Draft *draft) {
  const Yaml *given = draft->found[OUTPUTS_KEY];
  Operands operands = {0};
  if (draft->as.op && !bind_operands(r, draft, given, false, &operands)) draft->is_broken = true;
  if (!has_entries(r, draft, given, false)) return;
  for (uint32_t i = 0; i < given->count; i++) {
    const Yaml *entry = operand_entry(given, i);
    Value *v = entry ? read_output(r, draft, entry) : NULL;
    if (entry && !v) draft->is_broken = true;
    for (uint32_t slot = 0; v && slot < operands.count; slot++)
      if (operands.slots[slot] == entry) draft->outputs[slot] = v;
  }
}

// If src may be repeated and is the only operand, `inputs: {src: [a, b]}` means `inputs: [a, b]`.
static const Yaml *given_inputs(const Draft *draft) {
  const Yaml *given = draft->found[INPUTS_KEY];
  const Operator *op = draft->as.op;
  if (!op || !(op->traits & TRAIT_VARIADIC) || op->ninputs != 1) return given;
  if (!given || given->kind != YAML_MAP || given->count != 1) return given;
  const Yaml *entry = yaml_entry(given, 0);
  const bool is_named = strcmp(yaml_key(given, 0)->text, operand_row(draft, true, 0).name) == 0;
  return is_named && entry->kind == YAML_LIST ? entry : given;
}

static void read_node_inputs(Reader *r, Draft *draft, Value *inputs[MAX_VARIADIC], uint32_t *ninputs) {
  const Yaml *given = given_inputs(draft);
  Operands operands = {0};
  const bool is_bound = !draft->as.op || bind_operands(r, draft, given, true, &operands);
  draft->is_broken |= !is_bound;
  *ninputs = operands.count;
  if (!has_entries(r, draft, given, true)) return;
  for (uint32_t i = 0; i < given->count; i++) {
    const Yaml *entry = operand_entry(given, i);
    const bool is_told = !is_bound && entry && entry->kind != YAML_SCALAR;
    Value *v = entry && !is_told ? use_operand(r, entry, draft->title) : NULL;
    if (entry && !v) draft->is_broken = true;
    for (uint32_t slot = 0; v && slot < operands.count; slot++)
      if (operands.slots[slot] == entry) inputs[slot] = v;
  }
}

// Attributes

static bool read_choice(const Yaml *y, const Attribute *row, AttributeValue *value) {
  for (int64_t i = 0; i < MAX_CHOICES && row->choices[i]; i++) {
    if (y->kind != YAML_SCALAR || strcmp(y->text, row->choices[i]) != 0) continue;
    value->s64 = i;
    return true;
  }
  return false;
}

static bool is_name(const Yaml *y) {
  return yaml_scalar(y).kind == SCALAR_STRING && !(y->is_plain && strcmp(y->text, "_") == 0);
}

// A named extent in a list of numbers.
static bool read_named_item(Reader *r, const Yaml *list, uint32_t i, AttributeValue *value) {
  Extent *extents = (Extent *)value->list.extents;
  char unknown[DESCRIPTION_BYTES];
  if (!extents) {
    value->list.extents = extents = ARENA_ARRAY(&r->graph->arena, Extent, list->count);
    if (!extents) return error_out_of_memory(r->d);
    for (uint32_t k = 0; k < list->count; k++) extents[k] = EXTENT_UNKNOWN;
  }
  return read_named_extent(r, list->items[i], &extents[i], unknown) == NAMED_IS_READ;
}

static bool read_s64_list(Reader *r, const Yaml *y, const Attribute *row, AttributeValue *value) {
  if (y->kind != YAML_LIST) return false;
  int64_t *items = ARENA_ARRAY(&r->graph->arena, int64_t, y->count);
  if (!items) return error_out_of_memory(r->d);
  for (uint32_t i = 0; i < y->count; i++) {
    Scalar s = yaml_scalar(y->items[i]);
    items[i] = s.integer;
    if (s.kind == SCALAR_INT && s.fits) continue;
    if (!row->may_be_named || !is_name(y->items[i]) || !read_named_item(r, y, i, value)) return false;
    items[i] = 0;
  }
  value->list.items = items;
  value->list.count = y->count;
  return true;
}

static bool read_f32_list(Reader *r, const Yaml *y, AttributeValue *value) {
  if (y->kind != YAML_LIST) return false;
  double *items = ARENA_ARRAY(&r->graph->arena, double, y->count);
  if (!items) return error_out_of_memory(r->d);
  for (uint32_t i = 0; i < y->count; i++) {
    Scalar s = yaml_scalar(y->items[i]);
    if ((s.kind != SCALAR_INT && s.kind != SCALAR_FLOAT) || !isfinite(s.number)) return false;
    items[i] = s.number;
  }
  value->numbers.items = items;
  value->numbers.count = y->count;
  return true;
}

static bool read_attribute_value(Reader *r, const Yaml *y, const Attribute *row, AttributeValue *value) {
  Scalar s = yaml_scalar(y);
  switch (row->kind) {
  case ATTRIBUTE_BOOL: value->boolean = s.boolean; return s.kind == SCALAR_BOOL;
  case ATTRIBUTE_S64: value->s64 = s.integer; return s.kind == SCALAR_INT && s.fits;
  case ATTRIBUTE_F32:
    value->f32 = s.number;
    return (s.kind == SCALAR_INT || s.kind == SCALAR_FLOAT) &&
           (isfinite(s.number) || (row->may_be_infinite && isinf(s.number)));
  case ATTRIBUTE_CHOICE: return read_choice(y, row, value);
  case ATTRIBUTE_S64_LIST: return read_s64_list(r, y, row, value);
  case ATTRIBUTE_F32_LIST: return read_f32_list(r, y, value);
  }
  return false;
}

static bool is_positive(const Attribute *row, const AttributeValue *value) {
  return row->kind == ATTRIBUTE_F32 ? value->f32 > 0 : value->s64 > 0;
}

static void describe_expected(const Attribute *row, Text *out) {
  static const char *const kinds[] = {
      [ATTRIBUTE_BOOL] = "true or false",          [ATTRIBUTE_S64] = "an integer",
      [ATTRIBUTE_F32] = "a finite number",         [ATTRIBUTE_CHOICE] = "",
      [ATTRIBUTE_S64_LIST] = "a list of integers", [ATTRIBUTE_F32_LIST] = "a list of finite numbers"};
  text_add_string(out, row->may_be_infinite ? "a number"
                       : row->may_be_named  ? "a list of integers and names of dims"
                                            : kinds[row->kind]);
  if (row->must_be_positive) text_add_string(out, " above 0");
  for (int i = 0; row->kind == ATTRIBUTE_CHOICE && i < MAX_CHOICES && row->choices[i]; i++)
    text_format(out, "%s%s", i == 0 ? "" : i + 1 < MAX_CHOICES && row->choices[i + 1] ? ", " : " or ", row->choices[i]);
}

// The part of a value to blame: the first element of a list that is no number, else the whole value.
static const Yaml *wrong_part(Reader *r, const Yaml *y, const Attribute *row) {
  const bool is_list = row->kind == ATTRIBUTE_S64_LIST || row->kind == ATTRIBUTE_F32_LIST;
  for (uint32_t i = 0; is_list && y->kind == YAML_LIST && i < y->count; i++) {
    const Scalar s = yaml_scalar(y->items[i]);
    char unknown[DESCRIPTION_BYTES];
    Extent named;
    if (row->may_be_named && is_name(y->items[i]) &&
        read_named_extent(r, y->items[i], &named, unknown) == NAMED_IS_READ)
      continue;
    if (s.kind == SCALAR_INT ? !s.fits
                             : row->kind == ATTRIBUTE_S64_LIST || s.kind != SCALAR_FLOAT || !isfinite(s.number))
      return y->items[i];
  }
  return y;
}

static bool read_attribute(Reader *r, const Draft *draft, const Yaml *y, NamedAttribute named, AttributeValue *value) {
  const Attribute *row = &draft->as.op->attributes[named.index];
  char found[DESCRIPTION_BYTES];
  value->is_set = read_attribute_value(r, y, row, value) && (!row->must_be_positive || is_positive(row, value));
  if (value->is_set) return true;
  Text expected;
  text_init(&expected, r->scratch.allocator);
  describe_expected(row, &expected);
  const Yaml *wrong = wrong_part(r, y, row);
  reader_error(r, wrong, "%s of %s: expected %s, found %s%s", named.name, draft->title, text_string(&expected),
               yaml_describe(wrong, found), wrong == y ? "" : " in it");
  text_deinit(&expected);
  return false;
}

static bool read_attributes(Reader *r, Draft *draft) {
  const Yaml *given = draft->found[ATTRIBUTES_KEY], *found[MAX_ATTRIBUTES] = {0};
  const char *keys[MAX_ATTRIBUTES];
  char what[2 * DESCRIPTION_BYTES];
  uint32_t n = named_nattributes(draft->as);
  bool ok = true;
  for (uint32_t i = 0; i < n; i++) keys[i] = named_attribute(draft->as, i).name;
  snprintf(what, sizeof what, "the attributes of %s", draft->title);
  if (given && !yaml_is_null(given)) ok = read_fields(r, given, what, keys, n, found);
  for (uint32_t i = 0; i < n; i++) {
    NamedAttribute named = named_attribute(draft->as, i);
    if (found[i]) ok &= read_attribute(r, draft, found[i], named, &draft->attributes[named.index]);
    else if (named.is_required)
      ok = reader_error(r, draft->found[OP_KEY], "%s: missing attribute %s", draft->title, named.name);
  }
  return ok;
}

// The node itself

// The operator that an operator of ONNX or, failing that, of nGraph becomes; NULL: neither has the name, or it becomes
// several of equal rank.
static const char *find_elsewhere(const char *name, const char **system) {
  for (size_t i = 0; i < onnx_form_count() + ngraph_form_count(); i++) {
    const bool is_onnx = i < onnx_form_count();
    const ForeignForm form = is_onnx ? onnx_form_at(i) : ngraph_form_at(i - onnx_form_count());
    *system = is_onnx ? "ONNX" : "nGraph";
    if (form.op < OP_COUNT && strcmp(form.name, name) == 0) return operators[form.op].name;
  }
  return NULL;
}

static void tell_unknown_operator(Reader *r, const Yaml *y, const char *label) {
  char found[DESCRIPTION_BYTES], hint[2 * DESCRIPTION_BYTES] = ", see ngrad ops for the list";
  if (may_suggest(r)) {
    const char *system, *nearest = operator_nearest(y->text), *elsewhere = find_elsewhere(y->text, &system);
    if (nearest && (!elsewhere || strcmp(elsewhere, nearest) == 0 || strcasecmp(y->text, nearest) == 0))
      snprintf(hint, sizeof hint, ", did you mean %s", nearest);
    else if (elsewhere)
      snprintf(hint, sizeof hint, ": %s's operator becomes %s here, alone or with others%s%s", system, elsewhere,
               nearest ? "; or did you mean " : "", nearest ? nearest : "");
  }
  reader_error(r, y, "unknown operator %s%s%s%s%s", yaml_quote(y->text, found), label ? " (" : "", label ? label : "",
               label ? ")" : "", hint);
}

// Makes the title: the operator's name as written, and the label.
static const char *make_title(Reader *r, const Draft *draft, const char *name) {
  const char *title = draft->label ? arena_format(&r->scratch, "%s (%s)", name, draft->label) : name;
  if (!title) error_out_of_memory(r->d);
  return title ? title : name;
}

static void read_draft(Reader *r, const Yaml *y, Draft *draft) {
  static const char *const keys[] = {"op", "label", "inputs", "outputs", "attributes"};
  draft->title = "a node";
  draft->is_broken = !read_fields(r, y, "a node", keys, NKEYS, draft->found);
  r->misses_names |= draft->is_broken;
  const Yaml *op = draft->found[OP_KEY], *label = draft->found[LABEL_KEY];
  if (label && !read_name(r, label, "label of a node", &draft->label)) draft->is_broken = true;
  if (y->kind == YAML_MAP && (!op || yaml_is_null(op))) {
    reader_error(r, y, "node without an operator, expected op: NAME");
  } else if (op && op->kind != YAML_SCALAR) {
    reader_expected(r, op, "op: expected an operator's name");
  } else if (op) {
    draft->as = operator_find(op->text);
    if (draft->as.op) draft->title = make_title(r, draft, op->text);
    else tell_unknown_operator(r, op, draft->label);
  }
  if (!draft->as.op) draft->is_broken = true;
}

static bool add_node(Reader *r, const Draft *draft, Value *const inputs[], uint32_t ninputs) {
  const Operator *op = draft->as.op;
  assert(op && draft->found[OP_KEY]); // else the node is broken
  Node *node = graph_add_node(r->graph, op, draft->as.signature, ninputs, op->noutputs);
  if (!node) return error_out_of_memory(r->d);
  node->position = reader_position(r, draft->found[OP_KEY]);
  if (draft->label) node->label = arena_copy_text(&r->graph->arena, draft->label, strlen(draft->label));
  if (draft->label && !node->label) return error_out_of_memory(r->d);
  for (uint32_t i = 0; i < ninputs; i++) node_set_input(node, i, inputs[i]);
  for (uint32_t i = 0; i < op->noutputs; i++) node_set_output(node, i, draft->outputs[i]);
  for (uint32_t i = 0; i < op->nattributes; i++) node->attributes[i] = draft->attributes[i];
  return true;
}

static bool finish_node(Reader *r, Draft *draft) {
  Value *inputs[MAX_VARIADIC] = {0};
  uint32_t ninputs = 0;
  if (draft->as.op && !read_attributes(r, draft)) draft->is_broken = true; // first: input names may depend on it
  read_node_inputs(r, draft, inputs, &ninputs);
  if (r->d->out_of_memory) return false;
  return draft->is_broken || add_node(r, draft, inputs, ninputs);
}

bool read_nodes(Reader *r, const Yaml *list) {
  if (!list) return true;
  Draft *drafts = ARENA_ARRAY(&r->scratch, Draft, list->count);
  if (!drafts) return error_out_of_memory(r->d);
  for (uint32_t i = 0; i < list->count; i++) {
    read_draft(r, list->items[i], &drafts[i]);
    read_node_outputs(r, &drafts[i]);
    if (r->d->out_of_memory) return false;
  }
  for (uint32_t i = 0; i < list->count; i++)
    if (!finish_node(r, &drafts[i])) return false;
  return true;
}
