// Prints a graph as text.
#include "frontend/yaml/yaml.h"

#include "frontend/named_extent.h"
#include "frontend/names.h"
#include "ir/graph/formula.h"
#include "ir/graph/init.h"
#include "ir/operators/operator.h"
#include "ir/support/escape.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>
#include <strings.h>

// Names

static bool is_word(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
  static const char others[] = "0123456789.-+/";
  static const char *const reserved[] = {"null", "true", "false", "yes", "no", "on", "off"}; // by any YAML reader
  if (!*name || !strchr(letters, *name)) return false;
  for (const char *c = name; *c; c++)
    if (!strchr(letters, *c) && !strchr(others, *c)) return false;
  for (size_t i = 0; i < sizeof reserved / sizeof *reserved; i++)
    if (strcasecmp(name, reserved[i]) == 0) return false;
  return true;
}

void yaml_print_name(const char *name, Text *out) {
  if (is_word(name)) text_add_string(out, name);
  else text_add_user_string(out, SINK_YAML, name);
}

// Numbers, types, shapes

static void print_element(Type type, const void *data, size_t i, Text *out) {
  if (type_is_float(type) || TYPES_F8 & TYPE_BIT(type)) {
    text_add_number(out, type_load(type, data, i), type != TYPE_F64);
  } else if (type == TYPE_BOOLEAN) {
    text_add_string(out, type_load(type, data, i) != 0 ? "true" : "false");
  } else if (type == TYPE_S64) {
    text_format(out, "%" PRId64, ((const int64_t *)data)[i]); // a double would lose digits
  } else if (type == TYPE_U64) {
    text_format(out, "%" PRIu64, ((const uint64_t *)data)[i]);
  } else {
    text_format(out, "%" PRId64, (int64_t)type_load(type, data, i));
  }
}

// What printing extents needs to know.
typedef struct Dims {
  const Graph *graph;
  bool are_words; // no name has a space or is a number, so that every formula is read back
  Arena arena;
  Names names;         // the dims, unless they are words
  int64_t most_values; // of a constant; of a longer one, a comment says what they are
} Dims;

static bool dims_init(Dims *d, const Graph *g) {
  *d = (Dims){.graph = g, .are_words = true};
  bool ok = true;
  arena_init(&d->arena, g->arena.allocator);
  names_init(&d->names, &d->arena);
  for (size_t i = 0; i < g->ndims; i++) d->are_words &= g->dims[i]->terms || is_word(g->dims[i]->name);
  for (size_t i = 0; i < g->ndims && !d->are_words && ok; i++)
    ok = g->dims[i]->terms || names_set(&d->names, g->dims[i]->name, g->dims[i]);
  return ok;
}

static bool dims_are_words(const Dim *formula) {
  bool are = true;
  for (uint32_t i = 0; i < formula->nterms; i++)
    for (uint32_t k = 0; k < formula->terms[i].degree; k++) are &= is_word(formula->terms[i].dims[k]->name);
  return are;
}

// Whether the text is read back as this formula: a dim "a + b" or "2" may come in between. In quotes a dim's name comes
// before a formula.
static bool is_read_back(Dims *d, const Dim *formula, const char *text, bool is_plain) {
  Extent e;
  const char *unknown;
  size_t nbytes;
  if (d->are_words) return true;
  if (!is_plain && names_find(&d->names, text)) return false;
  return read_formula(&d->names, text, &d->arena, &e, &unknown, &nbytes) == NAMED_IS_READ &&
         extent_equals(e, (Extent){formula, -1});
}

// A formula whose text would be read as another one has its names in quotes: 2 * "N + 1". If that does not help, it
// becomes _: inference has to find it again.
static void print_formula(Dims *d, const Dim *formula, Text *out) {
  const bool is_plain = dims_are_words(formula);
  Text quoted;
  text_init(&quoted, d->arena.allocator);
  if (is_read_back(d, formula, formula->name, is_plain)) {
    if (is_plain) text_add_string(out, formula->name);
    else yaml_print_name(formula->name, out);
  } else {
    terms_print(formula->terms, formula->nterms, "\"", &quoted);
    if (is_read_back(d, formula, text_string(&quoted), false)) yaml_print_name(text_string(&quoted), out);
    else text_add_string(out, "_");
  }
  out->out_of_memory |= quoted.out_of_memory;
  text_deinit(&quoted);
}

static void print_extent(Dims *d, const Extent *e, Text *out) {
  if (!e->dim && e->value >= 0) text_format(out, "%" PRId64, e->value);
  else if (!e->dim) text_add_string(out, "_");
  else if (e->dim->terms) print_formula(d, e->dim, out);
  else yaml_print_name(e->dim->name, out);
}

static void print_shape(Dims *d, const Shape *shape, Text *out) {
  text_add_string(out, "[");
  for (int i = 0; i < shape->rank; i++) {
    if (i) text_add_string(out, ", ");
    print_extent(d, &shape->extent[i], out);
  }
  text_add_string(out, "]");
}

// name: x, type: f32, shape: [2, 3]
static void print_typed_name(Dims *d, const Value *v, Text *out) {
  text_add_string(out, "name: ");
  yaml_print_name(v->name, out);
  if (v->type != TYPE_NONE) text_format(out, ", type: %s", type_name(v->type));
  if (v->shape.rank < 0) return;
  text_add_string(out, ", shape: ");
  print_shape(d, &v->shape, out);
  if (layout_is_row_major(&v->layout)) return;
  for (int i = 0; i < v->shape.rank; i++) text_format(out, "%s%d", i ? ", " : ", order: [", layout_axis(&v->layout, i));
  text_add_string(out, "]");
}

// Adds what is known of all elements: 25088 values from -0.5 to 0.5
static void print_range(const Value *v, Text *out) {
  const int64_t nelems = shape_nelems(&v->shape);
  double least = INFINITY, most = -INFINITY;
  bool has_nan = false;
  for (int64_t i = 0; i < nelems; i++) {
    const double x = type_load(v->type, v->constant->data, (size_t)i);
    least = fmin(least, x);
    most = fmax(most, x);
    has_nan |= isnan(x);
  }
  text_format(out, "}  # %" PRId64 " values", nelems);
  if (least <= most) text_format(out, " from %g to %g", least, most);
  text_add_string(out, has_nan ? " and NaN\n" : "\n");
}

static void print_constant(Dims *d, const Value *v, Text *out) {
  const Constant *constant = v->constant;
  text_add_string(out, "  - {");
  print_typed_name(d, v, out);
  if (constant->file) {
    text_add_string(out, ", file: ");
    yaml_print_name(constant->file, out);
  } else if (constant->is_splat) {
    text_add_string(out, ", value: ");
    print_element(v->type, constant->data, 0, out);
  } else if (shape_nelems(&v->shape) > d->most_values) {
    print_range(v, out);
    return;
  } else {
    int64_t nelems = shape_nelems(&v->shape);
    text_add_string(out, ", values: [");
    for (int64_t i = 0; i < nelems; i++) {
      if (i) text_add_string(out, ", ");
      print_element(v->type, constant->data, (size_t)i, out);
    }
    text_add_string(out, "]");
  }
  text_add_string(out, "}\n");
}

// Nodes

static void print_attribute(Dims *d, const Attribute *row, const AttributeValue *value, Text *out) {
  switch (row->kind) {
  case ATTRIBUTE_BOOL: text_add_string(out, value->boolean ? "true" : "false"); break;
  case ATTRIBUTE_S64: text_format(out, "%" PRId64, value->s64); break;
  case ATTRIBUTE_F32: text_add_number(out, value->f32, false); break;
  case ATTRIBUTE_CHOICE: text_add_string(out, row->choices[value->s64]); break;
  case ATTRIBUTE_S64_LIST:
    text_add_string(out, "[");
    for (size_t i = 0; i < value->list.count; i++) {
      if (i) text_add_string(out, ", ");
      if (value->list.extents && value->list.extents[i].dim) print_extent(d, &value->list.extents[i], out);
      else text_format(out, "%" PRId64, value->list.items[i]);
    }
    text_add_string(out, "]");
    break;
  case ATTRIBUTE_F32_LIST:
    text_add_string(out, "[");
    for (size_t i = 0; i < value->numbers.count; i++) {
      if (i) text_add_string(out, ", ");
      text_add_number(out, value->numbers.items[i], false);
    }
    text_add_string(out, "]");
    break;
  }
}

static void print_attributes(Dims *d, const Node *node, OperatorName as, Text *out) {
  const char *before = "    attributes: {";
  for (uint32_t i = 0; i < named_nattributes(as); i++) {
    NamedAttribute named = named_attribute(as, i);
    if (!node->attributes[named.index].is_set) continue;
    text_format(out, "%s%s: ", before, named.name);
    print_attribute(d, &node->op->attributes[named.index], &node->attributes[named.index], out);
    before = ", ";
  }
  if (*before == ',') text_add_string(out, "}\n");
}

static void print_inputs(const Node *node, OperatorName as, Text *out) {
  bool is_list = node->op->traits & TRAIT_VARIADIC; // the last operand's repetitions have no names
  uint32_t count = is_list ? node->ninputs : named_ninputs(as);
  const char *before = is_list ? "    inputs: [" : "    inputs: {";
  for (uint32_t i = 0; i < count; i++) {
    const Value *v = node->inputs[is_list ? i : named_input(as, i).slot];
    if (!v && !is_list) continue;
    text_add_string(out, before);
    if (!is_list) text_format(out, "%s: ", named_input_beside(as, i, node->attributes));
    if (v) yaml_print_name(v->name, out);
    else text_add_string(out, "~");
    before = ", ";
  }
  if (*before == ',') text_add_string(out, is_list ? "]\n" : "}\n");
}

static void print_node(Dims *d, const Node *node, Text *out) {
  OperatorName as = {node->op, node->signature};
  if (node->comment) text_format(out, "  # %s\n", node->comment);
  text_add_string(out, "  - op: ");
  operator_print_name(node->op, node->signature, out);
  if (node->label) text_add_string(out, "\n    label: ");
  if (node->label) yaml_print_name(node->label, out);
  text_add_string(out, "\n");
  print_inputs(node, as, out);
  text_add_string(out, "    outputs:\n");
  for (uint32_t i = 0; i < named_noutputs(as); i++) {
    SignatureOperand row = named_output(as, i);
    const Value *v = node->outputs[row.slot];
    if (!v) continue;
    text_format(out, "      %s: {", row.name);
    print_typed_name(d, v, out);
    text_add_string(out, "}\n");
  }
  print_attributes(d, node, as, out);
}

// The file

static void print_dims(const Graph *g, Text *out) {
  text_add_string(out, "dims: {");
  for (size_t i = 0; i < g->ndims; i++) {
    if (i) text_add_string(out, ", ");
    yaml_print_name(g->dims[i]->name, out);
    if (g->dims[i]->value < 0) text_add_string(out, ": ~");
    else text_format(out, ": %" PRId64, g->dims[i]->value);
  }
  text_add_string(out, "}\n");
}

static void print_inputs_section(Dims *d, Text *out) {
  const Graph *g = d->graph;
  text_add_string(out, "inputs:\n");
  for (size_t i = 0; i < g->ninputs - g->nstates; i++) {
    text_add_string(out, "  - {");
    print_typed_name(d, g->inputs[i], out);
    text_add_string(out, "}\n");
  }
}

static void print_init(const Init *init, Text *out) {
  text_format(out, init->kind < INIT_UNIFORM ? "%s" : "{%s: ", init_names[init->kind]);
  switch (init->kind) {
  case INIT_UNIFORM:
    text_add_string(out, "[");
    text_add_number(out, init->low, false);
    text_add_string(out, ", ");
    text_add_number(out, init->high, false);
    text_add_string(out, "]");
    break;
  case INIT_NORMAL: text_add_number(out, init->deviation, false); break;
  case INIT_FAN_IN: text_add_number(out, init->fan_in, false); break;
  case INIT_FILE: yaml_print_name(init->constant->file, out); break;
  default: return;
  }
  text_add_string(out, "}");
}

static void print_states(Dims *d, Text *out) {
  const Graph *g = d->graph;
  text_add_string(out, "state:\n");
  for (size_t i = 0; i < g->nstates; i++) {
    text_add_string(out, "  - {");
    print_typed_name(d, g->inputs[g->states[i].input], out);
    text_add_string(out, ", init: ");
    print_init(&g->states[i].init, out);
    text_add_string(out, "}\n");
  }
}

static void print_updates(const Graph *g, Text *out) {
  const char *before = "updates: {";
  for (size_t i = 0; i < g->nstates; i++) {
    const State *state = &g->states[i];
    if (state->output < 0) continue;
    text_add_string(out, before);
    yaml_print_name(g->inputs[state->input]->name, out);
    text_add_string(out, ": ");
    yaml_print_name(g->outputs[state->output]->name, out);
    before = ", ";
  }
  text_add_string(out, "}\n");
}

static void print_constants(Dims *d, Text *out) {
  const Graph *g = d->graph;
  bool is_first = true;
  for (size_t i = 0; i < g->nvalues; i++) {
    const Value *v = g->values[i];
    if (!v->constant || (!v->uses && !v->is_output)) continue;
    if (is_first) text_add_string(out, "constants:\n");
    is_first = false;
    print_constant(d, v, out);
  }
}

void yaml_print(const Graph *g, Text *out) {
  yaml_print_most(g, INT64_MAX, out);
}

void yaml_print_most(const Graph *g, int64_t most_values, Text *out) {
  Dims d;
  if (!dims_init(&d, g)) out->out_of_memory = true;
  d.most_values = most_values;
  text_add_string(out, "format: ngrad/1\nname: ");
  yaml_print_name(g->name, out);
  text_add_string(out, "\n");
  if (g->ndims) print_dims(g, out);
  if (g->nleaves) text_format(out, "leaves: %lld\n", (long long)g->nleaves);
  if (g->ninputs > g->nstates) print_inputs_section(&d, out);
  if (g->nstates) print_states(&d, out);
  print_constants(&d, out);
  if (g->nnodes) text_add_string(out, "nodes:\n");
  for (size_t i = 0; i < g->nnodes; i++) print_node(&d, g->nodes[i], out);
  text_add_string(out, "outputs: [");
  for (size_t i = 0; i < g->noutputs - g->nupdates; i++) {
    if (i) text_add_string(out, ", ");
    yaml_print_name(g->outputs[i]->name, out);
  }
  text_add_string(out, "]\n");
  if (g->nupdates) print_updates(g, out);
  arena_deinit(&d.arena);
}
