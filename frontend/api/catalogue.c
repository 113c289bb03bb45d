// The catalogue of operators with all their names, passes and instruction sets, read from the tables.
#include "frontend/api/catalogue.h"

#include "backends/codegen/isa.h"
#include "frontend/api/handles.h"
#include "frontend/api/text.h"
#include "frontend/ngraph/ngraph.h"
#include "frontend/onnx/onnx.h"
#include "ir/operators/operator.h"
#include "passes/costs/costs.h"
#include "passes/gradient/gradient.h"
#include "passes/pipeline.h"
#include "passes/rewrite/rewrite.h"
#include "passes/schedule/kernel_pass.h"

// Row i of the list of names: first the operators' own names, then the signatures of other dialects.
static OperatorName operator_name_at(size_t i) {
  if (i < NREADABLE) return (OperatorName){&operators[i], NULL};
  const Signature *s = &signatures[i - NREADABLE];
  return (OperatorName){&operators[s->op], s};
}

size_t ng_operator_count(void) {
  return NREADABLE + nsignatures;
}

ng_operator_info ng_operator_at(size_t i) {
  OperatorName n = operator_name_at(i);
  return (ng_operator_info){
      .name = n.signature ? n.signature->full_name : n.op->name,
      .canonical = n.op->name,
      .family = n.op->family,
      .doc = n.op->doc,
      .formula = n.op->formula,
      .ninputs = named_ninputs(n),
      .noutputs = named_noutputs(n),
      .nattributes = named_nattributes(n),
      .no_gradient = gradient_rules[n.op->id]->of_all.why,
  };
}

static ng_operand_info operand_info(OperatorName n, SignatureOperand named, const Operand *operands,
                                    Derivative derivative) {
  static const char *const kinds[] = {
      [DERIVATIVE_COMPUTED] = "derived", [DERIVATIVE_ZERO] = "zero", [DERIVATIVE_REFUSED] = "refused"};
  const Operand *row = &operands[named.slot];
  ng_operand_info info = {.name = named.name,
                          .gradient = kinds[derivative.kind],
                          .why = derivative.why,
                          .dst_name = row->dst_name,
                          .is_optional = named.is_optional,
                          .type_variable = row->type,
                          .canonical = row->name};
  if (n.signature && n.signature->types) {
    info.type_variable = 'T'; // every operand has the same type
    info.types = n.signature->types;
    return info;
  }
  for (const TypeVariable *t = n.op->types; t->letter; t++)
    if (t->letter == row->type) info.types = t->types;
  return info;
}

ng_operand_info ng_operator_input(size_t i, size_t k) {
  OperatorName n = operator_name_at(i);
  const SignatureOperand named = named_input(n, (uint32_t)k);
  ng_operand_info info = operand_info(n, named, n.op->inputs, gradient_by_input(n.op->id, named.slot));
  info.is_repeated = n.op->traits & TRAIT_VARIADIC && k + 1 == n.op->ninputs;
  return info;
}

ng_operand_info ng_operator_output(size_t i, size_t k) {
  OperatorName n = operator_name_at(i);
  const SignatureOperand named = named_output(n, (uint32_t)k);
  return operand_info(n, named, n.op->outputs, gradient_of_result(n.op->id, named.slot));
}

const char *attribute_kind_name(AttributeKind kind) {
  static const char *const kinds[] = {
      [ATTRIBUTE_BOOL] = "bool",     [ATTRIBUTE_S64] = "s64",           [ATTRIBUTE_F32] = "f32",
      [ATTRIBUTE_CHOICE] = "choice", [ATTRIBUTE_S64_LIST] = "s64 list", [ATTRIBUTE_F32_LIST] = "f32 list",
  };
  return kinds[kind];
}

ng_attribute_info ng_operator_attribute(size_t i, size_t k) {
  OperatorName n = operator_name_at(i);
  NamedAttribute named = named_attribute(n, (uint32_t)k);
  const Attribute *row = &n.op->attributes[named.index];
  ng_attribute_info info = {
      .name = named.name,
      .kind = attribute_kind_name(row->kind),
      .is_required = named.is_required,
      .has_default = named.has_default,
      .is_positive = row->must_be_positive,
      .default_value = named.default_value,
      .choices = row->choices,
  };
  while (info.nchoices < MAX_CHOICES && row->choices[info.nchoices]) info.nchoices++;
  return info;
}

size_t ng_operator_find(const char *name) {
  OperatorName n = operator_find(name);
  if (!n.op) return ng_operator_count();
  return n.signature ? NREADABLE + (size_t)(n.signature - signatures) : n.op->id;
}

const char *ng_operator_nearest(const char *name) {
  return operator_nearest(name);
}

const char *ng_nearest(const char *word, const char *const *known, size_t nknown) {
  return nearest_word(word, known, nknown);
}

size_t ng_foreign_count(void) {
  return onnx_form_count() + ngraph_form_count();
}

ng_foreign_info ng_foreign_at(size_t i) {
  const bool is_onnx = i < onnx_form_count();
  const ForeignForm form = is_onnx ? onnx_form_at(i) : ngraph_form_at(i - onnx_form_count());
  return (ng_foreign_info){.system = is_onnx ? "ONNX" : "nGraph",
                           .name = form.name,
                           .canonical = form.op < OP_COUNT ? operators[form.op].name : NULL,
                           .since = form.since,
                           .last = form.last};
}

size_t ng_pass_count(void) {
  size_t nkernel_passes = 0;
  while (kernel_pass_at(nkernel_passes)) nkernel_passes++;
  return npasses + nkernel_passes;
}

ng_pass_info ng_pass_at(size_t i) {
  if (i < npasses) return (ng_pass_info){passes[i].name, passes[i].doc, passes[i].is_needed, false};
  const KernelPass *pass = kernel_pass_at(i - npasses);
  return (ng_pass_info){pass->name, pass->doc, pass->use == NEEDED, true};
}

size_t ng_pass_rule_count(size_t pass) {
  return pass < npasses && passes[pass].rules ? passes[pass].rules->count : 0;
}

ng_rule_info ng_pass_rule_at(size_t pass, size_t i) {
  const Rule *rule = &passes[pass].rules->items[i];
  return (ng_rule_info){rule->name, rule->is_fast_math};
}

char *ng_pass_rule_text(ng_context *ctx, size_t pass, size_t i) {
  Text text;
  text_init(&text, &ctx->allocator);
  rule_print(&passes[pass].rules->items[i], &text);
  return text_release(ctx, &text);
}

size_t ng_isa_count(void) {
  return nisas;
}

ng_isa ng_isa_at(size_t i) {
  return (ng_isa){isas[i].name, isas[i].is_available()};
}

size_t ng_cost_count(void) {
  return ncosts;
}

ng_cost_info ng_cost_at(size_t i) {
  const CostInfo *c = &cost_table[i];
  return (ng_cost_info){c->name, c->value, c->least, c->most, c->unit, c->what, c->decides, c->measured, c->graph};
}
