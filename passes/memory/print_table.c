// The memory plan as a table.
#include "passes/memory/map.h"

#include <stdio.h>

static void print_tenants(const MemoryMap *m, Text *out) {
  if (m->count) text_add_string(out, "\n       bytes       offset  kernels      value\n");
  for (size_t i = 0; i < m->count; i++) {
    const Tenant *t = &m->tenants[i];
    char kernels[32];
    snprintf(kernels, sizeof kernels, t->first == t->last ? "%u" : "%u to %u", t->first, t->last);
    text_format(out, "%12zu %12zu  %-11s  ", t->nbytes, t->offset, kernels);
    tenant_print(m, t, SINK_TERMINAL, out);
    text_add_string(out, "\n");
  }
}

static void print_peak(const MemoryMap *m, Text *out) {
  if (!m->count) return;
  text_format(out, "\npeak: %zu bytes at kernel %u, ", m->live[m->peak], m->peak);
  kernel_print_nodes(m->program->schedules[m->peak]->kernel, out);
  const size_t gaps = m->program->workspace_nbytes - m->live[m->peak]; // between values that are in use then
  if (gaps) text_format(out, "; with gaps of %zu bytes, the workspace", gaps);
  text_add_string(out, "\n");
}

bool memory_print_table(const Program *p, Text *out) {
  MemoryMap m;
  const bool ok = memory_map_init(&m, p, NULL);
  if (ok) {
    const size_t states = m.parameter_nbytes + m.optimizer_nbytes;
    text_add_string(out, "       bytes  block\n");
    text_format(out, "%12zu  parameters\n%12zu  optimizer\n%12zu  workspace, %zu without reuse\n", m.parameter_nbytes,
                m.optimizer_nbytes, p->workspace_nbytes, p->unshared_nbytes);
    text_format(out, "%12zu  total, %zu without reuse\n", states + p->workspace_nbytes, states + p->unshared_nbytes);
    print_tenants(&m, out);
    print_peak(&m, out);
  }
  memory_map_deinit(&m);
  return ok && !out->out_of_memory;
}
