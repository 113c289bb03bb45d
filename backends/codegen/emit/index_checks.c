// Prints the checks of indices: one function for each type of index, which goes over an input once. The user's names
// are only in the entry point, so that they cannot clash with local variables.
#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/print/printer.h"
#include "ir/graph/open_dims.h"
#include "ir/operators/indices.h"

static void add_name(const FilePrinter *f, Type type, const IndexCheck *c, Text *out) {
  text_format(out, "%s_are_indices%s%s_%s", f->function->name, c->ignored ? "_or" : "",
              check_has_parts(c) ? "_within" : "", type_name(type));
}

// Prints the function that checks the indices of a type.
static void print_function(const FilePrinter *f, Type type, const IndexCheck *c, Text *out) {
  const char *other = c->ignored ? ", int64_t other" : "";
  text_format(out, "/* Whether all %s are at least `least` and less than `end`%s. */\nstatic int ",
              check_has_parts(c) ? "integers of a part of x, rank axes of it," : "n integers",
              c->ignored ? ", or `other`" : "");
  add_name(f, type, c, out);
  if (check_has_parts(c))
    text_format(out,
                "(const %s *x, int64_t place, int rank, const int64_t *count, const int64_t *stride,\n"
                "    int64_t least, int64_t end%s) {\n  int64_t at[8] = {0};\n  int is_wrong = 0, axis = 0;\n"
                "  for (int i = 0; i < rank; i++)\n    if (count[i] == 0) return 1;\n"
                "  while (axis >= 0) {\n    const int64_t index = x[place];\n",
                element_types[type].name, other);
  else
    text_format(out,
                "(const %s *x, size_t n, int64_t least, int64_t end%s) {\n  int is_wrong = 0;\n"
                "  for (size_t i = 0; i < n; i++) {\n    const int64_t index = x[i];\n",
                element_types[type].name, other);
  text_format(out, "    is_wrong |= %sindex < least || index >= end%s;\n", c->ignored ? "(" : "",
              c->ignored ? ") && index != other" : "");
  if (check_has_parts(c))
    text_add_string(out, "    for (axis = rank - 1; axis >= 0 && ++at[axis] == count[axis]; axis--) {\n"
                         "      place -= (count[axis] - 1) * stride[axis];\n      at[axis] = 0;\n    }\n"
                         "    if (axis >= 0) place += stride[axis];\n");
  text_add_string(out, "  }\n  return !is_wrong;\n}\n\n");
}

void print_index_functions(const FilePrinter *f, Text *out) {
  enum { KINDS = 4 };
  size_t count;
  const IndexCheck *checks = graph_index_checks(f->graph, false, f->scratch, &count);
  TypeSet printed[KINDS] = {0};
  for (size_t i = 0; i < count; i++) {
    const Type type = f->graph->inputs[checks[i].input]->type;
    TypeSet *of_kind = &printed[2 * check_has_parts(&checks[i]) + (checks[i].ignored != NULL)];
    if (!(*of_kind & TYPE_BIT(type))) print_function(f, type, &checks[i], out);
    *of_kind |= TYPE_BIT(type);
  }
  out->out_of_memory |= !checks;
}

static void add_extent(const FilePrinter *f, Extent e, Text *out) {
  const Monomial monomial = extent_monomial(e);
  const int64_t factor = open_factor(f->graph, extent_value(e), monomial);
  if (!monomial || factor != 1) text_format(out, "%lld", (long long)factor);
  for (size_t i = 0; monomial && i < f->graph->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--)
      text_format(out, "%sextents[%zu]", factor != 1 ? " * " : "", i);
}

static void add_nelems(const FilePrinter *f, const Shape *shape, Text *out) {
  text_add_string(out, "(size_t)(");
  for (int i = 0; i < shape->rank; i++) {
    if (i) text_add_string(out, " * ");
    add_extent(f, shape->extent[i], out);
  }
  text_add_string(out, shape->rank ? ")" : "1)");
}

static void add_leaf_count(const FilePrinter *f, Text *out) {
  text_format(out, "%s_count_leaves(ranks)", f->function->name);
}

// Adds the stride of the axis: the product of the extents of all faster axes.
static void add_stride(const FilePrinter *f, const Value *v, int axis, Text *out) {
  int position = 0;
  while (layout_axis(&v->layout, position) != axis) position++;
  text_add_string(out, "(int64_t)1");
  for (int i = position + 1; i < v->shape.rank; i++) {
    text_add_string(out, " * ");
    add_extent(f, v->shape.extent[layout_axis(&v->layout, i)], out);
  }
}

// Adds a part's first index or number of indices. Its value fits, and its terms are added as unsigned numbers, which
// may wrap around on the way.
static void add_formula(const FilePrinter *f, const Formula *formula, Text *out) {
  int64_t number;
  if (formula_is_number(formula, &number)) {
    text_format(out, "%lld", (long long)number);
    return;
  }
  text_add_string(out, "(int64_t)(");
  for (uint32_t t = 0; t < formula->nterms; t++) {
    const FormulaTerm *term = &formula->terms[t];
    const int64_t factor = term->factor < 0 ? -term->factor : term->factor;
    const char *sign = term->factor < 0 ? t ? " - " : "0 - " : t ? " + " : "";
    const char *times = "";
    text_add_string(out, sign);
    if (factor != 1 || !term->degree) text_format(out, "(uint64_t)%lld", (long long)factor), times = " * ";
    for (size_t i = 0; i < graph_narguments(f->graph); i++)
      for (uint32_t k = 0; k < term->degree; k++) {
        if (term->dims[k] != f->graph->dims[i]) continue;
        text_format(out, "%s(uint64_t)extents[%zu]", times, i);
        times = " * ";
      }
  }
  text_add_string(out, ")");
}

// Prints the arrays that describe the checked elements. Their names begin with the prefix, which no parameter's name
// does.
static void add_parts(const FilePrinter *f, const IndexCheck *c, const Value *v, Text *out) {
  text_format(out, "  {\n    const int64_t %s_part_count[] = {", f->prefix);
  for (int i = 0; i < v->shape.rank; i++) {
    if (i) text_add_string(out, ", ");
    if (c->part[i]) add_formula(f, &c->part[i]->count, out);
    else if (i == 0 && input_has_leaves(v)) add_leaf_count(f, out);
    else add_extent(f, v->shape.extent[i], out);
  }
  text_format(out, "};\n    const int64_t %s_part_stride[] = {", f->prefix);
  for (int i = 0; i < v->shape.rank; i++) {
    if (i) text_add_string(out, ", ");
    add_stride(f, v, i, out);
    if (c->part[i] && c->part[i]->step != 1) text_format(out, " * %lld", (long long)c->part[i]->step);
  }
  text_add_string(out, "};\n  ");
}

// Adds the offset in memory of the first element of the parts.
static void add_first_place(const FilePrinter *f, const IndexCheck *c, const Value *v, Text *out) {
  text_add_string(out, "0");
  for (int i = 0; i < v->shape.rank; i++) {
    if (!c->part[i] || !c->part[i]->begin.nterms) continue;
    text_add_string(out, " + ");
    add_formula(f, &c->part[i]->begin, out);
    text_add_string(out, " * ");
    add_stride(f, v, i, out);
  }
}

// Kernels clamp indices that they compute, which takes an element at least.
static void print_empty_checks(const FilePrinter *f, Text *out) {
  for (size_t n = 0; n < f->graph->nnodes; n++) {
    const Node *node = f->graph->nodes[n];
    const bool is_open = node->op->id == OP_Gather && extent_monomial(node_indexed(node, 1));
    if (!is_open) continue;
    text_add_string(out, "  if (!(");
    add_extent(f, node_indexed(node, 1), out);
    text_add_string(out, ") && ");
    add_nelems(f, &node->inputs[1]->shape, out);
    text_format(out, ") return %s_INDEX_OUT_OF_RANGE;\n", f->prefix);
  }
}

void print_index_checks(const FilePrinter *f, Text *out) {
  size_t count;
  const IndexCheck *checks = graph_index_checks(f->graph, false, f->scratch, &count);
  for (size_t i = 0; i < count; i++) {
    const IndexCheck *c = &checks[i];
    const Value *v = f->graph->inputs[c->input];
    if (check_has_parts(c)) add_parts(f, c, v, out);
    text_add_string(out, "  if (!");
    add_name(f, v->type, c, out);
    if (c->input < ninputs_given(f->graph)) text_format(out, "(%s, ", f->member[v->index]);
    else text_format(out, "((const %s *)inputs[%zu], ", element_types[v->type].name, (size_t)c->input);
    if (check_has_parts(c)) {
      add_first_place(f, c, v, out);
      text_format(out, ", %d, %s_part_count, %s_part_stride", v->shape.rank, f->prefix, f->prefix);
    } else {
      add_nelems(f, &v->shape, out);
      if (input_has_leaves(v)) {
        text_format(out, " / %lld * (size_t)", (long long)f->graph->nleaves);
        add_leaf_count(f, out);
      }
    }
    text_add_string(out, c->counts_from_end ? ", -(" : ", ");
    if (c->counts_from_end) add_extent(f, c->extent, out);
    text_add_string(out, c->counts_from_end ? "), " : "0, ");
    add_extent(f, c->extent, out);
    if (c->ignored && *c->ignored == INT64_MIN) text_add_string(out, ", INT64_MIN");
    else if (c->ignored) text_format(out, ", %lld", (long long)*c->ignored);
    text_format(out, ")) return %s_INDEX_OUT_OF_RANGE;\n%s", f->prefix, check_has_parts(c) ? "  }\n" : "");
  }
  print_empty_checks(f, out);
  out->out_of_memory |= !checks;
}
