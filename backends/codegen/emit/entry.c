// Prints the external functions of an emitted source file: the size of the workspace, a test for an instruction set, a
// description of the graph, and the entry point, which checks its arguments and calls the program for an instruction
// set.
#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/emit/template.h"
#include "ir/graph/formula.h"
#include "ir/graph/open_dims.h"
#include "ir/support/escape.h"

#include <string.h>

extern const char entry_text[];

static void print_runs(const FilePrinter *f, size_t isa, Text *out) {
  add_isa_case(f, isa, out);
  text_format(out, "return %s;\n", f->file->isas[isa]->runs);
}

// Adds the open dims of a monomial as a C string with * between them; NULL for no open dims.
static void add_dim_names(const FilePrinter *f, Monomial monomial, Text *out) {
  const Graph *g = f->graph;
  const char *before = "";
  Text names;
  text_init(&names, f->scratch->allocator);
  for (size_t i = 0; monomial && i < g->ndims; i++)
    for (int n = monomial_exponent(monomial, i); n > 0; n--, before = "*")
      text_format(&names, g->dims[i]->terms ? "%s(%s)" : "%s%s", before, g->dims[i]->name);
  if (monomial) text_add_user_string(out, SINK_STRING, text_string(&names));
  else text_add_string(out, "NULL");
  out->out_of_memory |= names.out_of_memory;
  text_deinit(&names);
}

// Prints a row of the table of tensors. Array members beyond the rank stay 0.
static void print_tensor(const FilePrinter *f, const Value *v, Text *out) {
  const int rank = v->shape.rank;
  text_add_string(out, "    {");
  text_add_user_string(out, SINK_STRING, v->name);
  text_format(out, ", \"%s\", %d, {", type_name(v->type), rank);
  for (int k = 0; k < rank; k++) {
    const Extent e = v->shape.extent[k];
    const int64_t factor = open_factor(f->graph, extent_value(e), extent_monomial(e));
    text_format(out, "%s%lld", k ? ", " : "", (long long)(extent_monomial(e) ? -factor : factor));
  }
  text_add_string(out, rank ? "}, {" : "0}, {");
  for (int k = 0; k < rank; k++) {
    if (k) text_add_string(out, ", ");
    add_dim_names(f, extent_monomial(v->shape.extent[k]), out);
  }
  text_add_string(out, rank ? "}, {" : "NULL}, {");
  for (int k = 0; k < rank; k++) text_format(out, "%s%d", k ? ", " : "", layout_axis(&v->layout, k));
  text_add_string(out, rank ? "}},\n" : "0}},\n");
}

// Prints the function that tells callers of the tensors, dims and sizes.
static void print_info(const FilePrinter *f, Text *out) {
  static const char *const threads[] = {[EMIT_SERIAL] = "none", [EMIT_OPENMP] = "openmp", [EMIT_CALLBACK] = "callback"};
  const Graph *g = f->graph;
  text_format(out, "const %s_info *%s_get_info(void) {\n  static const %s_tensor tensors[] = {\n", f->prefix,
              f->function->name, f->prefix);
  for (size_t i = 0; i < ninputs_given(g); i++) print_tensor(f, g->inputs[i], out);
  for (size_t i = 0; i < noutputs_given(g); i++) print_tensor(f, g->outputs[i], out);
  text_add_string(out, "  };\n");
  if (g->ndims) {
    text_add_string(out, "  static const char *const dims[] = {");
    for (size_t i = 0; i < graph_narguments(g); i++) {
      if (i) text_add_string(out, ", ");
      text_add_user_string(out, SINK_STRING, g->dims[i]->name);
    }
    text_add_string(out, "};\n  static const int64_t hints[] = {");
    for (size_t i = 0; i < graph_narguments(g); i++)
      text_format(out, "%s%lld", i ? ", " : "", (long long)g->dims[i]->value);
    text_add_string(out, "};\n");
  }
  text_format(out, "  static const %s_info info = {%d, \"" NGRAD_VERSION "\", ", f->prefix, ABI);
  text_add_user_string(out, SINK_STRING, g->name);
  text_format(out, ",\n    \"%s\",\n    \"", f->function->hash);
  const char *before = "";
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->has_section[i]) continue;
    text_format(out, "%s%s", before, f->file->isas[i]->name);
    before = " ";
  }
  text_format(out, "\", \"%s\", %zu, %zu, %zu, tensors, %zu, %s, %d};\n  return &info;\n}\n\n",
              threads[f->file->threads], f->has_open_workspace ? 0 : f->workspace_nbytes, ninputs_given(g),
              noutputs_given(g), graph_narguments(g), g->ndims ? "dims, hints" : "NULL, NULL", NGRAD_BITS);
}

// A mask of the open dims in a tensor's shape, with the bit LEAVES for the number of a rank's leaves. The tensor is
// empty if any of these numbers is 0.
enum { LEAVES = MAX_OPEN_DIMS };
static uint32_t dims_of(const FilePrinter *f, const Value *v) {
  uint32_t dims = input_has_leaves(v) ? 1U << LEAVES : 0;
  for (size_t k = 0; k < f->graph->ndims; k++)
    if (monomial_exponent(shape_monomial(&v->shape), k)) dims |= 1U << k;
  return dims;
}

static bool has_dims(const FilePrinter *f, const Value *v, uint32_t dims) {
  return shape_nelems(&v->shape) && dims_of(f, v) == dims;
}

// Prints the check that no input is NULL, for all inputs that are empty exactly if one of these dims is 0.
static void print_null_check(const FilePrinter *f, uint32_t dims, Text *out) {
  const Graph *g = f->graph;
  size_t nalike = 0;
  for (size_t i = 0; i < ninputs_given(g); i++) nalike += has_dims(f, g->inputs[i], dims);
  text_add_string(out, "  if (");
  for (size_t k = 0; k < g->ndims; k++)
    if (dims >> k & 1) text_format(out, "extents[%zu] && ", k);
  if (dims >> LEAVES & 1) text_format(out, "%s_count_leaves(ranks) && ", f->function->name);
  const bool is_group = dims && nalike > 1;
  const char *before = is_group ? "(!" : "!";
  for (size_t i = 0; i < ninputs_given(g); i++) {
    if (!has_dims(f, g->inputs[i], dims)) continue;
    text_format(out, "%s%s", before, f->member[g->inputs[i]->index]);
    before = " || !";
  }
  text_format(out, "%s) return %s_NULL_POINTER;\n", is_group ? ")" : "", f->prefix);
}

// Prints checks that no input is NULL unless it is empty. Inputs with the same open dims are in one condition.
static void print_null_checks(const FilePrinter *f, Text *out) {
  bool is_told[1U << (LEAVES + 1)] = {false};
  for (size_t i = 0; i < ninputs_given(f->graph); i++) {
    const Value *v = f->graph->inputs[i];
    const uint32_t dims = dims_of(f, v);
    if (!shape_nelems(&v->shape) || is_told[dims]) continue;
    is_told[dims] = true;
    print_null_check(f, dims, out);
  }
}

// Prints the check that all tensors whose elements have so many bytes are aligned to them.
static void print_alignment_check(const FilePrinter *f, size_t nbytes, Text *out) {
  const Graph *g = f->graph;
  const char *before = "  if ((";
  const size_t ninputs = ninputs_given(g);
  for (size_t i = 0; i < ninputs + noutputs_given(g); i++) {
    const Value *v = i < ninputs ? g->inputs[i] : g->outputs[i - ninputs];
    if (type_nbytes(v->type) != nbytes) continue;
    text_format(out, "%s(uintptr_t)", before);
    if (i < ninputs) text_add_string(out, f->member[v->index]);
    else add_output_name(f, out, i - ninputs);
    before = " | ";
  }
  if (*before == ' ' && before[1] == '|') text_format(out, ") %% %zu) return %s_MISALIGNED;\n", nbytes, f->prefix);
}

static void print_alignment_checks(const FilePrinter *f, Text *out) {
  for (size_t nbytes = 2; nbytes <= sizeof(double); nbytes *= 2) print_alignment_check(f, nbytes, out);
}

// Adds the expression that chooses the best instruction set of the machine.
static void add_best(const FilePrinter *f, Text *out) {
  for (size_t i = f->file->nisas; i-- > 1;) {
    if (!f->has_section[i]) continue;
    text_format(out, "%s_has_isa(", f->prefix);
    add_isa(f, i, out);
    text_add_string(out, ") ? ");
    add_isa(f, i, out);
    text_add_string(out, "\n          : ");
  }
  add_isa(f, 0, out);
}

static void print_choice(const FilePrinter *f, size_t isa, Text *out) {
  add_isa_case(f, isa, out);
  text_format(out, "%s_%s_run(inputs, outputs, %s(unsigned char *)workspace, %s); break;\n", f->function->name,
              f->file->isas[isa]->name, f->graph->ndims ? "extents, " : "",
              f->file->threads == EMIT_CALLBACK ? "&pool" : "NULL");
}

static void print_extents(const FilePrinter *f, Text *out) {
  if (!f->graph->ndims) return;
  const size_t narguments = graph_narguments(f->graph);
  text_format(out, "  %sint64_t extents[] = {", f->graph->nsums ? "" : "const ");
  for (size_t i = 0; i < f->graph->ndims; i++)
    text_format(out, "%s%s", i ? ", " : "", i < narguments ? f->dim_member[i] : "-1");
  text_add_string(out, "};\n");
  if (f->graph->nsums) text_format(out, "  %s_sums(extents);\n", f->function->name);
}

static void add_term(const FilePrinter *f, const FormulaTerm *term, Text *out) {
  text_format(out, "%lld.0", (long long)term->factor);
  for (uint32_t k = 0; k < term->degree; k++)
    for (size_t i = 0; i < graph_narguments(f->graph); i++)
      if (f->graph->dims[i] == term->dims[k]) text_format(out, " * (double)extents[%zu]", i);
}

// Prints PREFIX_sums(extents), which computes the sums behind the arguments. Doubles hold their terms without overflow.
static void print_sums(const FilePrinter *f, Text *out) {
  const char *p = f->function->name;
  const size_t narguments = graph_narguments(f->graph);
  if (!f->graph->nsums) return;
  text_format(out,
              "/* The sum of a few numbers, or -1 if it is out of range. */\n"
              "static int64_t %s_sum(const double *terms, int count) {\n"
              "  const double most = 1125899906842624.0; /* 2^50: the sum is exact */\n"
              "  double sum = 0;\n"
              "  for (int i = 0; i < count; i++) {\n"
              "    if (terms[i] > most || terms[i] < -most) return -1;\n"
              "    sum += terms[i];\n  }\n  return sum < 0 ? -1 : (int64_t)sum;\n}\n\n"
              "static void %s_sums(int64_t *extents) {\n",
              p, p);
  for (size_t i = narguments; i < f->graph->ndims; i++) {
    const Dim *dim = f->graph->dims[i];
    text_add_string(out, "  {\n    const double terms[] = {");
    for (uint32_t k = 0; k < dim->nterms; k++) {
      if (k) text_add_string(out, ", ");
      add_term(f, &dim->terms[k], out);
    }
    text_format(out, "};\n    extents[%zu] = %s_sum(terms, %u);\n  }\n", i, p, (unsigned)dim->nterms);
  }
  text_add_string(out, "}\n\n");
}

// Prints PREFIX_fits(extents): whether no tensor is too large with these extents. Only the largest tensors of all
// programs are checked.
static void print_fits(const FilePrinter *f, Text *out) {
  LargestTensors largest = {.count = 0};
  const char *p = f->function->name;
  for (size_t i = 0; i < f->file->nisas; i++)
    out->out_of_memory |= !graph_add_largest(f->function->programs[i]->graph, &largest, f->scratch);
  if (largest.count)
    text_format(out,
                "/* n * extent, or UINT64_MAX if that overflows. An extent of 0 counts as 1. */\n"
                "static uint64_t %s_times(uint64_t n, int64_t extent) {\n"
                "  const uint64_t by = extent ? (uint64_t)extent : 1;\n"
                "  return n > UINT64_MAX / by ? UINT64_MAX : n * by;\n}\n\n",
                p);
  text_format(out, "static int %s_fits(const int64_t *extents) {\n  const uint64_t most = (UINT64_C(1) << 47) - 1;\n",
              p);
  if (largest.count) text_add_string(out, "  uint64_t n;\n");
  for (size_t i = 0; i < f->graph->ndims; i++)
    if (!f->graph->dims[i]->is_place)
      text_format(out, "  if (extents[%zu] < 0 || (uint64_t)extents[%zu] > most) return 0;\n", i, i);
  for (const TensorSize *size = largest.items; size < largest.items + largest.count; size++) {
    text_format(out, "  n = %lld;\n", (long long)size->factor);
    for (size_t i = 0; i < f->graph->ndims; i++)
      for (int k = monomial_exponent(size->monomial, i); k > 0; k--)
        text_format(out, "  n = %s_times(n, extents[%zu]);\n", p, i);
    text_format(out, "  if (n > most || n > SIZE_MAX / %zu) return 0;\n", size->nbytes);
  }
  if (f->has_open_workspace) text_format(out, "  if (%s_nbytes(extents) > SIZE_MAX) return 0;\n", p);
  text_add_string(out, "  return 1;\n}\n\n");
}

static void print_layout_of(const FilePrinter *f, size_t isa, Text *out) {
  const char *p = f->function->name, *name = f->file->isas[isa]->name;
  text_format(out,
              "  {\n    struct %s_%s_args a;\n    const uint64_t own = %s_%s_layout(&a, extents, NULL);\n"
              "    if (own > most) most = own;\n  }\n",
              p, name, p, name);
}

static void add_state_pointer(const FilePrinter *f, size_t state, Text *out) {
  add_state_address(f, f->graph->inputs[f->graph->states[state].input], out);
  text_add_string(out, ",\n    ");
}

static void add_update_pointer(const FilePrinter *f, size_t output, Text *out) {
  for (size_t i = 0; i < f->graph->nstates; i++)
    if (f->graph->states[i].output == (int64_t)output) add_state_pointer(f, i, out);
}

static void add_inputs(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  for (size_t i = 0; i < ninputs_given(g); i++) text_format(out, "%s, ", f->member[g->inputs[i]->index]);
  for (size_t i = 0; i < g->nstates; i++) add_state_pointer(f, i, out);
}

static void add_outputs(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < noutputs_given(f->graph); i++) {
    add_output_name(f, out, i);
    text_add_string(out, ", ");
  }
  for (size_t i = noutputs_given(f->graph); i < f->graph->noutputs; i++) add_update_pointer(f, i, out);
}

static void add_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  if (is_part(name, "TABLES") && f->function->stages) print_stages(f, out);
  else if (is_part(name, "LAYOUTS")) print_for_isas(f, false, print_layout_of, out);
  else if (is_part(name, "FITS")) print_sums(f, out), print_fits(f, out);
  else if (is_part(name, "LEAST")) add_isa(f, 0, out);
  else if (is_part(name, "DIM_PARAMETERS")) add_dim_parameters(f, out);
  else if (is_part(name, "EXTENTS")) print_extents(f, out);
  else if (is_part(name, "ISAS")) print_for_isas(f, false, print_runs, out);
  else if (is_part(name, "INFO")) print_info(f, out);
  else if (is_part(name, "INDEX_FUNCTIONS")) print_index_functions(f, out);
  else if (is_part(name, "PARAMETERS")) add_parameters(f, false, out);
  else if (is_part(name, "INPUTS")) add_inputs(f, out);
  else if (is_part(name, "OUTPUTS")) add_outputs(f, out);
  else if (is_part(name, "BLOCK_CHECKS")) print_block_checks(f, out); // before addresses in the blocks are computed
  else if (is_part(name, "CHECKS")) print_null_checks(f, out);
  else if (is_part(name, "FURTHER_CHECKS")) print_alignment_checks(f, out), print_index_checks(f, out);
  else if (is_part(name, "BEST")) add_best(f, out);
  else if (is_part(name, "CHOICES")) print_for_isas(f, true, print_choice, out);
  else add_file_part(f, name, out);
}

void print_entry_points(const FilePrinter *f, Text *out) {
  print_file_template(f, entry_text, add_part, out);
}
