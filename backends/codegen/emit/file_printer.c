#include "backends/codegen/emit/file_printer.h"

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
