// Prints the emitted header: status codes, instruction sets, the entry point and its contract, and the structs that
// describe the graph.
#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/template.h"
#include "ir/graph/open_dims.h"
#include "ir/support/escape.h"

#include <string.h>

extern const char origin_text[], header_text[], contract_text[];

// Parameters

void add_output_name(const FilePrinter *f, Text *out, size_t i) {
  const char *member = f->member[f->graph->outputs[i]->index];
  if (!output_is_copy(f->graph, i)) text_add_string(out, member);
  else text_format(out, "%s_%zu_out", member ? member : "constant", i);
}

void add_dim_parameters(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < graph_narguments(f->graph); i++)
    text_format(out, "%sint64_t %s", i ? ", " : "", f->dim_member[i]);
}

void add_parameters(const FilePrinter *f, bool is_bare, Text *out) {
  const Graph *g = f->graph;
  if (g->ndims) text_add_string(out, "    ");
  add_dim_parameters(f, out);
  if (g->ndims) text_add_string(out, ",\n");
  for (size_t i = 0; i < ninputs_given(g); i++) {
    const Value *v = g->inputs[i];
    const char *name = is_bare ? "" : f->member[v->index];
    text_format(out, "    const %s *", element_types[v->type].name);
    if (!f->may_be_overwritten[i]) text_format(out, "%s_RESTRICT%s", f->prefix, is_bare ? "" : " ");
    text_format(out, "%s, /* ", name);
    add_tensor_comment(out, v, name);
    text_add_string(out, " */\n");
  }
  for (size_t i = 0; i < noutputs_given(g); i++) {
    const Value *v = g->outputs[i];
    text_format(out, "    %s *", element_types[v->type].name);
    if (!f->in_place[i].count) text_format(out, "%s_RESTRICT%s", f->prefix, is_bare ? "" : " ");
    if (!is_bare) add_output_name(f, out, i);
    text_add_string(out, ", /* ");
    add_tensor_comment(out, v, is_bare || output_is_copy(g, i) ? "" : f->member[v->index]);
    text_add_string(out, " */\n");
  }
  add_block_parameters(f, out);
  text_add_string(out, "    void *workspace, size_t workspace_nbytes, int isa");
  if (f->file->threads == EMIT_CALLBACK)
    text_format(out, ",\n    %s_parallel_for *parallel_for, void *context", f->prefix);
  if (f->function->stages)
    text_format(out, ",\n    const %s_ranks *ranks /* NULL: one process has all leaves */", f->prefix);
}

// Header

static void add_origin_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  if (is_part(name, "VERSION")) text_add_string(out, NGRAD_VERSION);
  else if (is_part(name, "BITS")) text_format(out, "%d", NGRAD_BITS);
  else if (is_part(name, "GRAPH")) text_add_user_string(out, SINK_COMMENT, f->graph->name);
  else text_add_string(out, f->file->functions[0].hash);
}

void print_origin(const FilePrinter *f, Text *out) {
  print_file_template(f, origin_text, add_origin_part, out);
}

static void add_isas(const FilePrinter *f, Text *out) {
  for (size_t i = 0; i < f->file->nisas; i++) {
    if (!f->has_section[i]) continue;
    text_add_string(out, i ? ",\n  " : "  ");
    add_isa(f, i, out);
    text_format(out, " = %d", f->file->isas[i]->number);
  }
}

// Prints which outputs may be in the memory of which inputs.
static void print_in_place(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  const char *before = "   No output may overlap another tensor";
  bool is_any = false;
  for (size_t o = 0; o < noutputs_given(g); o++) {
    const InPlace *places = &f->in_place[o];
    if (!places->count) continue;
    if (!is_any)
      text_format(out, "%s, except that it may be computed in place,\n   in the memory of an input (one output each): ",
                  before);
    text_add_string(out, is_any ? "; " : "");
    add_output_name(f, out, o);
    for (uint32_t i = 0; i < places->count; i++)
      text_format(out, "%s %s", i ? " or" : " in", f->member[g->inputs[places->inputs[i]]->index]);
    is_any = true;
  }
  text_format(out, "%s.\n", is_any ? "" : before);
}

// Prints a comment on the extents that are arguments, and the values for which the schedule was made.
static void print_dims(const FilePrinter *f, Text *out) {
  const Graph *g = f->graph;
  if (!g->ndims) return;
  text_add_string(out, "/* Extents that are arguments of a call, 0 or more:");
  for (size_t i = 0; i < graph_narguments(g); i++) {
    text_format(out, "%s %s", i ? "," : "", f->dim_member[i]);
    if (strcmp(f->dim_member[i], g->dims[i]->name) != 0) {
      text_add_string(out, " (");
      text_add_user_string(out, SINK_COMMENT, g->dims[i]->name);
      text_add_string(out, ")");
    }
    text_format(out, ", scheduled for %lld", (long long)g->dims[i]->value);
  }
  text_add_string(out, ".\n   Results have the bits of code for fixed extents. */\n\n");
}

static void add_contract_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  if (is_part(name, "DIMS")) print_dims(f, out);
  else if (is_part(name, "DIM_PARAMETERS")) add_dim_parameters(f, out);
  else if (is_part(name, "IN_PLACE")) print_in_place(f, out);
  else if (is_part(name, "PARAMETERS")) add_parameters(f, f->file->package && f->file->package->is_for_devices, out);
  else if (is_part(name, "NBYTES")) text_format(out, "%zu", f->workspace_nbytes);
  else add_file_part(f, name, out);
}

// The largest workspace of the file's functions.
static void print_workspace(const FilePrinter *functions, Text *out) {
  const size_t count = functions->file->nfunctions;
  size_t most = 0;
  for (size_t i = 0; i < count; i++) {
    if (functions[i].has_open_workspace) return;
    if (functions[i].workspace_nbytes > most) most = functions[i].workspace_nbytes;
  }
  if (count > 1)
    text_format(out, "/* Enough workspace for any of the functions. */\n#define %s_WORKSPACE_NBYTES ((size_t)%zu)\n\n",
                functions->prefix, most);
}

static void add_header_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context; // the first of the file's functions
  if (is_part(name, "ISAS")) add_isas(f, out);
  else if (is_part(name, "SPILLS")) text_format(out, "%lld", (long long)spilled_nbytes(f->file));
  else if (is_part(name, "ABI")) text_format(out, "%d", ABI);
  else if (is_part(name, "RANKS") && file_has_leaves(f->file)) emit_ranks_types(f->prefix, out);
  else if (is_part(name, "WORKSPACE")) print_workspace(f, out);
  else if (!is_part(name, "CONTRACTS")) add_state_part(f, name, out);
  for (size_t i = 0; is_part(name, "CONTRACTS") && i < f->file->nfunctions; i++)
    print_file_template(&f[i], contract_text, add_contract_part, out);
}

void print_header(const FilePrinter *functions, Text *out) {
  print_origin(functions, out);
  print_file_template(functions, header_text, add_header_part, out);
}
