// The operator table and the signatures: invariants of every row, and the rows of the five systems as their documents
// define them.
#include "ir/operators/operator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

// Calls back for each operator under each of its names.
static void for_each_name(void (*check)(OperatorName n)) {
  for (size_t i = 0; i < OP_COUNT; i++) check((OperatorName){&operators[i], NULL});
  for (size_t i = 0; i < nsignatures; i++) check((OperatorName){&operators[signatures[i].op], &signatures[i]});
}

static bool is_identifier(const char *name) {
  static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
  return name && *name && strspn(name, letters) == strlen(name) && !(*name >= '0' && *name <= '9');
}

// A family is a file in each layer. Tests run in the repository's root.
static void assert_family_exists(const char *family) {
  static const char *const folders[] = {"ir/operators", "backends/interpreter", "passes/lower"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    char path[128];
    snprintf(path, sizeof path, "%s/%s.c", folders[i], family);
    if (access(path, R_OK) != 0) fail_msg("no file %s", path);
  }
}

// Rows

static void rows_are_complete(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const Operator *op = &operators[i];
    assert_int_equal(op->id, i);
    assert_true(is_identifier(op->name));
    assert_family_exists(op->family);
    assert_true(op->infer && op->doc && *op->doc && op->formula && *op->formula);
    assert_null(strchr(op->doc, '\n'));
    assert_true(op->doc[strlen(op->doc) - 1] != '.');
    assert_true(op->ninputs >= 1 && op->ninputs <= MAX_OPERANDS);
    assert_true(op->noutputs >= 1 && op->noutputs <= MAX_OPERANDS);
    assert_true(op->nattributes <= MAX_ATTRIBUTES);
    assert_false(
        op->outputs[0].is_optional); // the first output defines a region's domain, and is the purpose of the node
  }
}

static bool has_weights_side(const Operator *op) {
  return op->inputs[1].side == SIDE_WEIGHTS || op->outputs[0].side == SIDE_WEIGHTS;
}

// Rows with a trait or a scope have the attributes that passes then read. Other rows do not have the attributes of
// norms; only convolutions have groups, too.
static void columns_promise_attributes_that_are_there(void **state) {
  static const char *const scopes[] = {[SCOPE_ROW] = "begin_norm_axis", [SCOPE_GROUP] = "groups"};
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const Operator *op = &operators[i];
    assert_int_equal(strcmp(op->family, "norm") == 0, op->norm_scope != SCOPE_NONE);
    for (NormScope scope = SCOPE_ROW; scope <= SCOPE_GROUP; scope++)
      assert_int_equal(operator_has_attribute(op, scopes[scope]) && !has_weights_side(op), op->norm_scope == scope);
    if (op->norm_scope == SCOPE_CHANNEL) assert_true(operator_has_attribute(op, "data_format"));
    const bool has_one_axis = operator_has_attribute(op, "axis"); // ArgMax
    assert_int_equal(operator_has_attribute(op, "keep_dims") && !has_one_axis, (op->traits & TRAIT_REDUCES) != 0);
    if (op->traits & TRAIT_REDUCES) assert_true(operator_has_attribute(op, "axes"));
    if (op->traits & TRAIT_ALONG_AXIS) assert_true(op->traits & TRAIT_ELEMENTWISE);
    if (!(op->traits & TRAIT_ELEMENTWISE)) continue;
    assert_int_equal(operator_has_attribute(op, "axis"), (op->traits & TRAIT_ALONG_AXIS) != 0);
    assert_int_equal(operator_has_attribute(op, "axis") || operator_has_attribute(op, "data_format"),
                     operator_places_by_axis(op));
    assert_int_equal(operator_has_attribute(op, "use_dst"), op->inputs[0].dst_name != NULL);
  }
}

static TypeSet types_of(const Operator *op, char letter) {
  for (const TypeVariable *t = op->types; t->letter; t++)
    if (t->letter == letter) return t->types;
  return 0;
}

static void check_operands(const Operator *op, const Operand *operands, uint32_t count) {
  bool was_hidden = false;
  for (uint32_t i = 0; i < MAX_OPERANDS; i++) {
    const Operand *row = &operands[i];
    assert_int_equal(row->name != NULL, i < count); // the count is the number of rows
    if (i >= count) continue;
    if (!is_identifier(row->name) || !types_of(op, row->type)) fail_msg("%s: %s", op->name, row->name);
    assert_true(row->is_hidden || !was_hidden); // hidden ones stand last
    assert_true(!row->is_hidden || row->is_optional);
    was_hidden = row->is_hidden;
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(row->name, operands[k].name);
  }
}

static void operands_are_named_typed_and_hidden_ones_last(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const Operator *op = &operators[i];
    check_operands(op, op->inputs, op->ninputs);
    check_operands(op, op->outputs, op->noutputs);
    for (uint32_t k = 1; k < op->noutputs && op->traits & TRAIT_ELEMENTWISE; k++)
      assert_true(op->outputs[k].is_optional && op->outputs[k].is_statistic); // the first is the one to follow
    for (uint32_t k = 0; k < op->noutputs; k++) assert_false(op->outputs[k].is_positive);
  }
}

static void type_variables_are_distinct_and_used(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const Operator *op = &operators[i];
    for (const TypeVariable *t = op->types; t->letter; t++) {
      bool is_used = false;
      assert_true(t < &op->types[sizeof op->types / sizeof *op->types - 1]); // a zero ends the list
      for (uint32_t k = 0; k < MAX_OPERANDS; k++)
        is_used |= op->inputs[k].type == t->letter || op->outputs[k].type == t->letter;
      assert_true(is_used);
      assert_true(t->types && t->types < TYPE_BIT(TYPE_COUNT) && !(t->types & TYPE_BIT(TYPE_NONE)));
      for (const TypeVariable *other = op->types; other < t; other++) assert_true(other->letter != t->letter);
    }
  }
}

static uint32_t count_choices(const Attribute *row) {
  uint32_t n = 0;
  while (n < MAX_CHOICES && row->choices[n]) n++;
  for (uint32_t i = n; i < MAX_CHOICES; i++) assert_null(row->choices[i]);
  for (uint32_t i = 0; i < n; i++)
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(row->choices[i], row->choices[k]);
  return n;
}

static bool is_default_in_range(const Attribute *row, double value) {
  if (!isfinite(value) || (row->must_be_positive && value <= 0)) return false;
  switch (row->kind) {
  case ATTRIBUTE_BOOL: return value == 0 || value == 1;
  case ATTRIBUTE_S64: return value == trunc(value) && fabs(value) < 0x1p53;
  case ATTRIBUTE_CHOICE: return value == trunc(value) && value >= 0 && value < count_choices(row);
  case ATTRIBUTE_S64_LIST:
  case ATTRIBUTE_F32_LIST: return value == 0;
  default: return true;
  }
}

static void attributes_are_named_and_their_defaults_in_range(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    const Operator *op = &operators[i];
    for (uint32_t k = 0; k < MAX_ATTRIBUTES; k++) {
      const Attribute *row = &op->attributes[k];
      assert_int_equal(row->name != NULL, k < op->nattributes);
      if (!row->name) continue;
      assert_true(is_identifier(row->name));
      for (uint32_t n = 0; n < k; n++) assert_string_not_equal(row->name, op->attributes[n].name);
      assert_true((row->kind == ATTRIBUTE_CHOICE) == (count_choices(row) >= 2));
      assert_false(row->is_required && row->is_optional);
      assert_false(row->is_hidden && row->is_required); // nobody could give it
      if (row->is_required || row->is_optional) assert_true(row->default_value == 0);
      else if (!is_default_in_range(row, row->default_value)) fail_msg("%s: %s", op->name, row->name);
    }
  }
}

// Names

static void names_are_unique_and_found(void **state) {
  (void)state;
  for (size_t i = 0; i < OP_COUNT; i++) {
    char home[128];
    snprintf(home, sizeof home, "onednn.%s", operators[i].name);
    OperatorName found = operator_find(operators[i].name), at_home = operator_find(home);
    assert_ptr_equal(found.op, &operators[i]);
    assert_null(found.signature);
    assert_ptr_equal(at_home.op, &operators[i]);
    for (size_t k = 0; k < i; k++) assert_string_not_equal(operators[i].name, operators[k].name);
  }
  for (size_t i = 0; i < nsignatures; i++) {
    const Signature *s = &signatures[i];
    assert_ptr_equal(operator_find(s->full_name).signature, s); // so no other has this name
    if (s->is_canonical_too) assert_ptr_equal(operator_find(s->name).signature, s);
    for (size_t k = 0; k < OP_COUNT; k++) assert_string_not_equal(s->name, operators[k].name);
  }
  static const char *const unknown[] = {"",
                                        ".",
                                        "Relu",
                                        "onednn.",
                                        "ngraph.ReLU",
                                        "onednn.onednn.ReLU",
                                        "ReLU ",
                                        "BATCH_NORMALIZATION_GRAD",
                                        "onednn.BatchNormTrainingBackprop"};
  for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) assert_null(operator_find(unknown[i]).op);
}

static void near_misses_are_recognised(void **state) {
  (void)state;
  assert_string_equal(operator_nearest("Relu"), "ReLU");
  assert_string_equal(operator_nearest("LayerNormBackwards"), "LayerNormBackward");
  assert_string_equal(operator_nearest("BatchNormTrainingBackpropagation"), "BatchNormTrainingBackprop");
  assert_string_equal(operator_nearest("ngraf.BatchNormTrainingBackprop"), "ngraph.BatchNormTrainingBackprop");
  assert_string_equal(operator_nearest("directml.BATCH_NORMALISATION_GRAD"), "directml.BATCH_NORMALIZATION_GRAD");
  assert_string_equal(operator_nearest("Mean"), "ReduceMean");
  assert_string_equal(operator_nearest("reshape"), "StaticReshape");
  assert_string_equal(operator_nearest("Conv1d"), "Convolution");
  assert_string_equal(operator_nearest("BatchNorm"), "BatchNormForwardTraining");
  assert_string_equal(operator_nearest("BatchNorm2d"), "BatchNormForwardTraining");
  assert_string_equal(operator_nearest("maxpool2d"), "MaxPool");
  assert_string_equal(operator_nearest("Linear"), "MatMul");
  assert_string_equal(operator_nearest("crossentropyloss"), "SoftmaxCrossEntropy");
  assert_string_equal(operator_nearest("ConvTranspose2d"), "ConvTranspose");
  assert_string_equal(operator_nearest("Layer"), "LayerNorm");
  assert_string_equal(operator_nearest("Quant"), "Quantize");
  assert_null(operator_nearest("2d"));
  assert_null(operator_nearest("Transmogrify"));
  assert_null(operator_nearest("Transpose")); // of Conv- and Static-
  assert_null(operator_nearest("ul"));
  assert_null(operator_nearest(""));
}

static void must_print_as_found(OperatorName n) {
  Text text;
  char title[NODE_TITLE_BYTES];
  text_init(&text, &system_allocator);
  operator_print_name(n.op, n.signature, &text);
  OperatorName again = operator_find(text_string(&text));
  assert_ptr_equal(again.op, n.op);
  assert_ptr_equal(again.signature, n.signature);
  assert_string_equal(node_title(&(Node){.op = n.op, .signature = n.signature}, title), text_string(&text)); // uncut
  text_deinit(&text);
}

static void printed_names_are_found_again(void **state) {
  (void)state;
  for_each_name(must_print_as_found);
}

// Signatures

static void check_signature_operands(const Signature *s, const SignatureOperand *operands, uint32_t count,
                                     const Operand *rows, uint32_t nrows) {
  bool is_named[MAX_OPERANDS] = {0};
  for (uint32_t i = 0; i < MAX_OPERANDS; i++) {
    const SignatureOperand *row = &operands[i];
    assert_int_equal(row->name != NULL, i < count);
    if (i >= count) continue;
    assert_true(is_identifier(row->name));
    assert_true(row->slot < nrows && !is_named[row->slot]);
    assert_true(rows[row->slot].is_optional || !row->is_optional);
    is_named[row->slot] = true;
    for (uint32_t k = 0; k < i; k++) assert_string_not_equal(row->name, operands[k].name);
  }
  for (uint32_t slot = 0; slot < nrows; slot++)
    if (!is_named[slot] && !rows[slot].is_optional)
      fail_msg("name %s: required operand %s has no name", s->full_name, rows[slot].name);
}

static void operands_of_signatures_are_slots_of_their_operators(void **state) {
  (void)state;
  for (size_t i = 0; i < nsignatures; i++) {
    const Signature *s = &signatures[i];
    const Operator *op = &operators[s->op];
    char full_name[128];
    snprintf(full_name, sizeof full_name, "%s.%s", s->dialect, s->name);
    assert_string_equal(s->full_name, full_name);
    assert_true(s->op < OP_COUNT && is_identifier(s->dialect) && is_identifier(s->name));
    check_signature_operands(s, s->inputs, s->ninputs, op->inputs, op->ninputs);
    check_signature_operands(s, s->outputs, s->noutputs, op->outputs, op->noutputs);
    for (const TypeVariable *t = op->types; s->types && t->letter; t++) assert_int_equal(s->types & ~t->types, 0);
  }
}

static const Attribute *attribute_row(const Operator *op, const char *name) {
  for (uint32_t k = 0; k < op->nattributes; k++)
    if (strcmp(op->attributes[k].name, name) == 0) return &op->attributes[k];
  return NULL;
}

static void attributes_of_signatures_are_their_operators(void **state) {
  (void)state;
  for (size_t i = 0; i < nsignatures; i++) {
    const Signature *s = &signatures[i];
    const Operator *op = &operators[s->op];
    bool is_named[MAX_ATTRIBUTES] = {0};
    for (uint32_t k = 0; k < s->nattributes; k++) {
      const SignatureAttribute *a = &s->attributes[k];
      const Attribute *row = attribute_row(op, a->canonical);
      if (!row) fail_msg("name %s: the operator has no attribute %s", s->full_name, a->canonical);
      assert_true(!a->name || is_identifier(a->name));
      assert_false(!a->name && a->is_required); // fixed
      assert_true(a->is_required ? a->value == 0 : is_default_in_range(row, a->value));
      assert_false(is_named[row - op->attributes]);
      is_named[row - op->attributes] = true;
    }
    for (uint32_t k = 0; k < op->nattributes; k++) // else a node under this name could never be complete
      if (s->nattributes && op->attributes[k].is_required && !is_named[k])
        fail_msg("name %s: attribute %s is missing", s->full_name, op->attributes[k].name);
  }
}

// Defaults of a node under a name, where required attributes have been given as 3.
static void must_set_defaults(OperatorName n) {
  AttributeValue values[MAX_ATTRIBUTES] = {0};
  Node node = {.op = n.op, .signature = n.signature, .attributes = values};
  for (uint32_t i = 0; i < named_nattributes(n); i++) {
    NamedAttribute a = named_attribute(n, i);
    if (!a.is_required) continue;
    values[a.index] = (AttributeValue){.is_set = true, .s64 = 3};
    if (n.op->attributes[a.index].kind == ATTRIBUTE_F32) values[a.index].f32 = 3;
    if (n.op->attributes[a.index].kind == ATTRIBUTE_BOOL) values[a.index].boolean = true;
  }
  node_set_defaults(&node);
  for (uint32_t k = 0; k < n.op->nattributes; k++) {
    const Attribute *row = &n.op->attributes[k];
    assert_true(values[k].is_set || row->is_optional);
    assert_ptr_equal(node_attribute(&node, row->name), &values[k]);
  }
  for (uint32_t i = 0; i < named_nattributes(n); i++) {
    NamedAttribute a = named_attribute(n, i);
    const Attribute *row = &n.op->attributes[a.index];
    double expected = a.is_required ? 3 : a.default_value;
    if (!a.is_required && !a.has_default) continue;
    if (row->kind == ATTRIBUTE_F32) assert_true(node_f32(&node, row->name) == expected);
    else if (row->kind == ATTRIBUTE_BOOL) assert_true(node_bool(&node, row->name) == (expected != 0));
    else if (row->kind != ATTRIBUTE_S64_LIST && row->kind != ATTRIBUTE_F32_LIST)
      assert_true(node_s64(&node, row->name) == (int64_t)expected);
  }
  for (uint32_t i = 0; n.signature && i < n.signature->nattributes; i++) { // attributes that the name fixes
    const SignatureAttribute *a = &n.signature->attributes[i];
    if (!a->name) assert_int_equal(node_s64(&node, a->canonical), (int64_t)a->value);
  }
}

static void defaults_fill_in_what_was_not_given(void **state) {
  (void)state;
  for_each_name(must_set_defaults);
}

static void defaults_leave_what_was_given(void **state) {
  (void)state;
  OperatorName n = operator_find("directml.BATCH_NORMALIZATION_GRAD");
  AttributeValue values[MAX_ATTRIBUTES] = {0};
  Node node = {.op = n.op, .signature = n.signature, .attributes = values};
  values[named_attribute(n, 0).index] = (AttributeValue){.is_set = true, .f32 = 0.25};
  node_set_defaults(&node);
  assert_true(node_f32(&node, "epsilon") == 0.25);
}

// The rows of OPS.md §1, and the others that a graph may use: "name? ..." in order, attributes with their defaults.

typedef struct Expected {
  const char *name, *op;
  const char *inputs, *outputs, *attributes;
} Expected;

#define BN_BACKWARD "src diff_dst mean variance gamma?", "diff_src diff_gamma? diff_beta?"
#define BN_SPEC "input_forward output_delta mean variance gamma?", "input_delta gamma_delta? beta_delta?"
#define DIRECTML_INPUTS "InputTensor InputGradientTensor MeanTensor VarianceTensor ScaleTensor"
#define DIRECTML_OUTPUTS "OutputGradientTensor OutputScaleGradientTensor OutputBiasGradientTensor"
#define DIRECTML DIRECTML_INPUTS, DIRECTML_OUTPUTS
#define LN_BACKWARD "src diff_dst mean variance gamma? beta?", "diff_src diff_gamma? diff_beta?"
#define LN_ATTRIBUTES "begin_norm_axis=-1 use_affine=1 epsilon=1e-05"

static const Expected expected[] = {
    {"BatchNormTrainingBackward", "BatchNormTrainingBackward", BN_BACKWARD, "epsilon data_format=NXC|NCX"},
    {"onednn.BatchNormTrainingBackward", "BatchNormTrainingBackward", BN_BACKWARD, "epsilon data_format=NXC|NCX"},
    {"BatchNormTrainingBackprop", "BatchNormTrainingBackward", BN_SPEC, "epsilon data_format=NXC|NCX"},
    {"onednn_spec.BatchNormTrainingBackprop", "BatchNormTrainingBackward", BN_SPEC, "epsilon data_format=NXC|NCX"},
    {"ngraph.BatchNormTrainingBackprop", "BatchNormTrainingBackward", "input gamma beta mean variance normalized_delta",
     "input_delta gamma_delta beta_delta", "epsilon"},
    {"directml.BATCH_NORMALIZATION_GRAD", "BatchNormInferenceBackward", DIRECTML, "Epsilon=1e-05"},
    {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", "BatchNormTrainingBackward", DIRECTML, "Epsilon"},
    {"LayerNormBackward", "LayerNormBackward", LN_BACKWARD, LN_ATTRIBUTES},
    {"onednn.LayerNormBackward", "LayerNormBackward", LN_BACKWARD, LN_ATTRIBUTES},
    {"BatchNormForwardTraining", "BatchNormForwardTraining", "src mean variance gamma? beta?",
     "dst running_mean running_variance batch_mean batch_variance", "epsilon data_format=NXC|NCX momentum=0.5"},
    {"BatchNormInference", "BatchNormInference", "src gamma beta mean variance", "dst", "epsilon data_format=NXC|NCX"},
    {"LayerNorm", "LayerNorm", "src gamma? beta?", "dst mean? variance?", "keep_stats=1 " LN_ATTRIBUTES},
    {"GroupNorm", "GroupNorm", "src gamma? beta?", "dst mean? variance?",
     "groups keep_stats=1 use_affine=1 epsilon=1e-05 data_format=NXC|NCX"},
    {"GroupNormBackward", "GroupNormBackward", LN_BACKWARD, "groups use_affine=1 epsilon=1e-05 data_format=NXC|NCX"},
    {"InstanceNorm", "InstanceNorm", "src gamma? beta?", "dst mean? variance?",
     "keep_stats=1 use_affine=1 epsilon=1e-05 data_format=NXC|NCX"},
    {"InstanceNormBackward", "InstanceNormBackward", LN_BACKWARD, "use_affine=1 epsilon=1e-05 data_format=NXC|NCX"},
    {"RMSNorm", "RMSNorm", "src gamma?", "dst", "begin_norm_axis=-1 epsilon=1e-05"},
    {"RMSNormBackward", "RMSNormBackward", "src diff_dst gamma?", "diff_src diff_gamma?",
     "begin_norm_axis=-1 epsilon=1e-05"},
    {"ReLU", "ReLU", "src", "dst", ""},
    {"ReLUBackward", "ReLUBackward", "src diff_dst", "diff_src", "use_dst=1"},
    {"Add", "Add", "src_0 src_1", "dst", "auto_broadcast=numpy|none"},
    {"Subtract", "Subtract", "src_0 src_1", "dst", "auto_broadcast=numpy|none"},
    {"Multiply", "Multiply", "src_0 src_1", "dst", "auto_broadcast=numpy|none"},
    {"TypeCast", "TypeCast", "src", "dst", ""},
    {"ReduceSum", "ReduceSum", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceMean", "ReduceMean", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceMax", "ReduceMax", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceMin", "ReduceMin", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceProd", "ReduceProd", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceL1", "ReduceL1", "src", "dst", "axes=0 keep_dims=0"},
    {"ReduceL2", "ReduceL2", "src", "dst", "axes=0 keep_dims=0"},
    {"SoftMax", "SoftMax", "src", "dst stats?", "axis=1 mode=none|inf_as_zero"},
    {"LogSoftmax", "LogSoftmax", "src", "dst", "axis=-1"},
    {"SoftMaxBackward", "SoftMaxBackward", "diff_dst dst", "diff_src", "axis=1"},
    {"LogSoftmaxBackward", "LogSoftmaxBackward", "diff_dst dst", "diff_src", "axis=-1"},
};

static void print_operands(OperatorName n, bool is_input, Text *out) {
  uint32_t count = is_input ? named_ninputs(n) : named_noutputs(n);
  for (uint32_t i = 0; i < count; i++) {
    SignatureOperand row = is_input ? named_input(n, i) : named_output(n, i);
    text_format(out, "%s%s%s", i ? " " : "", row.name, row.is_optional ? "?" : "");
  }
}

static void print_attributes(OperatorName n, Text *out) {
  for (uint32_t i = 0; i < named_nattributes(n); i++) {
    NamedAttribute a = named_attribute(n, i);
    const Attribute *row = &n.op->attributes[a.index];
    text_format(out, "%s%s", i ? " " : "", a.name);
    if (a.is_required) continue;
    if (row->kind != ATTRIBUTE_CHOICE) text_format(out, "=%g", a.default_value);
    for (uint32_t c = 0; c < MAX_CHOICES && row->choices[c]; c++)
      text_format(out, "%s%s", c ? "|" : "=", row->choices[c]);
    if (row->kind == ATTRIBUTE_CHOICE) assert_true(a.default_value == 0); // the first is the default
  }
}

static void assert_text(Text *text, const char *wanted) {
  assert_string_equal(text_string(text), wanted);
  text_deinit(text);
}

static void rows_are_those_of_the_documents(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    const Expected *e = &expected[i];
    OperatorName n = operator_find(e->name);
    Text text;
    assert_non_null(n.op);
    assert_string_equal(n.op->name, e->op);
    text_init(&text, &system_allocator);
    print_operands(n, true, &text);
    assert_text(&text, e->inputs);
    print_operands(n, false, &text);
    assert_text(&text, e->outputs);
    print_attributes(n, &text);
    assert_text(&text, e->attributes);
  }
}

// Operands of other names mean what the document's table says.
static void operands_of_signatures_mean_the_same(void **state) {
  (void)state;
  static const char *const rows[][3] = {
      // name, its operands, their names in BatchNormTrainingBackward
      {"BatchNormTrainingBackprop", "input_forward output_delta mean variance gamma input_delta gamma_delta beta_delta",
       "src diff_dst mean variance gamma diff_src diff_gamma diff_beta"},
      {"ngraph.BatchNormTrainingBackprop",
       "input gamma beta mean variance normalized_delta input_delta gamma_delta beta_delta",
       "src gamma beta mean variance diff_dst diff_src diff_gamma diff_beta"},
      {"directml.BATCH_NORMALIZATION_GRAD", DIRECTML_INPUTS " " DIRECTML_OUTPUTS,
       "src diff_dst mean variance gamma diff_src diff_gamma diff_beta"},
      {"directml.BATCH_NORMALIZATION_TRAINING_GRAD", DIRECTML_INPUTS " " DIRECTML_OUTPUTS,
       "src diff_dst mean variance gamma diff_src diff_gamma diff_beta"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    OperatorName n = operator_find(rows[i][0]);
    Text names, meanings;
    text_init(&names, &system_allocator);
    text_init(&meanings, &system_allocator);
    for (uint32_t k = 0; k < named_ninputs(n) + named_noutputs(n); k++) {
      bool is_input = k < named_ninputs(n);
      SignatureOperand row = is_input ? named_input(n, k) : named_output(n, k - named_ninputs(n));
      text_format(&names, "%s%s", k ? " " : "", row.name);
      text_format(&meanings, "%s%s", k ? " " : "", (is_input ? n.op->inputs : n.op->outputs)[row.slot].name);
    }
    assert_text(&names, rows[i][1]);
    assert_text(&meanings, rows[i][2]);
  }
}

static TypeSet types_under(const char *name, uint32_t input) {
  OperatorName n = operator_find(name);
  if (n.signature && n.signature->types) return n.signature->types;
  return types_of(n.op, n.op->inputs[named_input(n, input).slot].type);
}

static void types_are_those_of_the_documents(void **state) {
  (void)state;
  const TypeSet floats = TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_BF16) | TYPE_BIT(TYPE_F16) | TYPE_BIT(TYPE_F64);
  const TypeSet directml = TYPE_BIT(TYPE_F32) | TYPE_BIT(TYPE_F16);
  assert_int_equal(types_under("BatchNormTrainingBackward", 0), floats);
  assert_int_equal(types_under("BatchNormTrainingBackprop", 0), floats);
  assert_int_equal(types_under("LayerNormBackward", 0), floats);
  assert_int_equal(types_under("ngraph.BatchNormTrainingBackprop", 0), floats);
  assert_int_equal(types_under("directml.BATCH_NORMALIZATION_GRAD", 0), directml);
  assert_int_equal(types_under("directml.BATCH_NORMALIZATION_TRAINING_GRAD", 2), directml);
  assert_int_equal(types_under("Multiply", 0), floats | TYPE_BIT(TYPE_S64) | TYPE_BIT(TYPE_S32));
  assert_int_equal(types_under("Add", 0), floats | TYPE_BIT(TYPE_S64) | TYPE_BIT(TYPE_S32));
}

static void variances_scales_and_what_roots_are_of_ask_for_positive_data(void **state) {
  (void)state;
  static const OperatorId roots[] = {OP_Log, OP_Pow, OP_Power, OP_Sqrt, OP_SqrtBackward};
  for (size_t i = 0; i < OP_COUNT; i++)
    for (uint32_t k = 0; k < operators[i].ninputs; k++) {
      const char *name = operators[i].inputs[k].name;
      bool is_positive = strcmp(name, "variance") == 0 || strcmp(name, "scales") == 0;
      if (strcmp(operators[i].family, "optimizer") == 0) is_positive |= strchr("rs", *name) != NULL; // rate, step, sum
      if (strncmp(operators[i].name, "SoftmaxCrossEntropy", 19) == 0)
        is_positive |= strchr("wt", *name) != NULL; // weights, total
      for (size_t r = 0; r < sizeof roots / sizeof *roots; r++) is_positive |= operators[i].id == roots[r] && k == 0;
      assert_int_equal(operators[i].inputs[k].is_positive, is_positive);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_complete),
      cmocka_unit_test(columns_promise_attributes_that_are_there),
      cmocka_unit_test(operands_are_named_typed_and_hidden_ones_last),
      cmocka_unit_test(type_variables_are_distinct_and_used),
      cmocka_unit_test(attributes_are_named_and_their_defaults_in_range),
      cmocka_unit_test(names_are_unique_and_found),
      cmocka_unit_test(near_misses_are_recognised),
      cmocka_unit_test(printed_names_are_found_again),
      cmocka_unit_test(operands_of_signatures_are_slots_of_their_operators),
      cmocka_unit_test(attributes_of_signatures_are_their_operators),
      cmocka_unit_test(defaults_fill_in_what_was_not_given),
      cmocka_unit_test(defaults_leave_what_was_given),
      cmocka_unit_test(rows_are_those_of_the_documents),
      cmocka_unit_test(operands_of_signatures_mean_the_same),
      cmocka_unit_test(types_are_those_of_the_documents),
      cmocka_unit_test(variances_scales_and_what_roots_are_of_ask_for_positive_data),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
