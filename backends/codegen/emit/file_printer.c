#include "backends/codegen/emit/file_printer.h"

#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/template.h"
#include "ir/kernel/schedule.h"
#include "ir/operators/operator.h"

#include <ctype.h>

const Graph *emitted_graph(const EmittedFunction *f) {
  return f->stages ? f->stages->graph : f->programs[0]->graph;
}

size_t ninputs_given(const Graph *g) {
  return g->ninputs - g->nstates;
}

size_t noutputs_given(const Graph *g) {
  return g->noutputs - g->nupdates;
}

bool file_has_leaves(const EmittedFile *file) {
  for (size_t i = 0; i < file->nfunctions; i++)
    if (file->functions[i].stages) return true;
  return false;
}

bool input_has_leaves(const Value *v) {
  return v->uses && v->uses->node->op->id == OP_Leaf && shape_nelems(&v->shape);
}

void add_isa(const FilePrinter *f, size_t i, Text *out) {
  text_format(out, "%s_ISA_", f->prefix);
  for (const char *c = f->file->isas[i]->name; *c; c++) text_format(out, "%c", toupper((unsigned char)*c));
}

void add_isa_case(const FilePrinter *f, size_t i, Text *out) {
  text_add_string(out, "  case ");
  add_isa(f, i, out);
  text_add_string(out, ": ");
}

void print_for_isas(const FilePrinter *f, bool from_best, void (*print)(const FilePrinter *f, size_t isa, Text *out),
                    Text *out) {
  const char *guard = NULL;
  for (size_t n = 0; n < f->file->nisas; n++) {
    const size_t i = from_best ? f->file->nisas - 1 - n : n;
    if (!f->has_section[i]) continue;
    change_guard(&guard, f->file->isas[i], out);
    print(f, i, out);
  }
  change_guard(&guard, NULL, out);
}

static bool any_input_has_leaves(const Graph *g) {
  for (size_t i = 0; i < ninputs_given(g); i++)
    if (input_has_leaves(g->inputs[i])) return true;
  return false;
}

void add_file_part(const void *context, const char *name, Text *out) {
  const FilePrinter *f = context;
  if (is_part(name, "FUNCTION")) text_add_string(out, f->function->name);
  else if (is_part(name, "NLEAVES")) text_format(out, "%lld", (long long)f->graph->nleaves);
}

// Elements of spilled vectors. Rows that fill no lanes spill once more, and scalar C copies no rows into lanes.
static int64_t row_nelems(const Kernel *k, const Loop *loop) {
  if (!loop->nspills) return 0;
  const int64_t rows = loop_has(loop, LOOP_ROW_LANES) ? 2 * LANES : loop->rows;
  return loop->nspills * rows * loop_row_nelems(k, loop);
}

static int64_t spilled_by(const Program *p) {
  int64_t most = 0;
  for (size_t i = 0; i < p->nkernels; i++)
    for (size_t n = 0; n < p->schedules[i]->nloops; n++) {
      const int64_t nelems = row_nelems(p->schedules[i]->kernel, &p->schedules[i]->loops[n]);
      if (nelems > most) most = nelems;
    }
  return most * (int64_t)sizeof(float);
}

int64_t spilled_nbytes(const EmittedFile *file) {
  int64_t most = 0;
  for (size_t i = 0; i < file->nfunctions; i++) {
    const EmittedFunction *f = &file->functions[i];
    for (size_t part = 0; part < (f->stages ? f->stages->nfunctions : 1); part++) {
      const int64_t nbytes = spilled_by(f->stages ? f->stages->programs[part][0] : f->programs[0]);
      if (nbytes > most) most = nbytes;
    }
  }
  return most;
}

void print_file_template(const FilePrinter *f, const char *text,
                         void (*add_part)(const void *f, const char *name, Text *out), Text *out) {
  const bool is_for_device = f->file->package && f->file->package->is_for_devices;
  const TemplateFact facts[] = {
      {"CALLBACK", f->file->threads == EMIT_CALLBACK},
      {"OPENMP", f->file->threads == EMIT_OPENMP},
      {"SERIAL", f->file->threads == EMIT_SERIAL},
      {"STATES", f->states->count > f->states->nstored},
      {"STORED", f->states->nstored > 0},
      {"LEAVES", file_has_leaves(f->file)},
      {"POOL", f->file->threads == EMIT_CALLBACK || file_has_leaves(f->file)},
      {"SHARED", f->has_shared_loops},
      {"STAGES", f->function->stages},
      {"OPEN", f->has_open_workspace},
      {"FIXED", !f->has_open_workspace && !f->function->stages},
      {"UPDATES", f->graph->nupdates > 0},
      {"DIMS", f->graph->ndims > 0},
      {"WORKSPACE", f->workspace_nbytes > 0},
      {"FIRST", f->function == f->file->functions},
      {"MERGED", f->file->nisas > 1},
      {"SCALAR", f->file->nisas == 1},
      {"SPILLS", spilled_nbytes(f->file) > SCALAR_ROW_NBYTES},
      {"DEVICE", is_for_device},
      {"NO_FILES", is_for_device && f->states->count > f->states->nstored},
      {"LEAF_INPUTS", any_input_has_leaves(f->graph)},
      {NULL, false},
  };
  print_template(&(Template){text, f->prefix, add_part, f, facts}, out);
}
