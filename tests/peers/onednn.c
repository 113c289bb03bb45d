// oneDNN's result, by the primitives that the bench times.
#include "tests/bench/onednn/sequence.h"
#include "tests/peers/peers.h"

#include <stdio.h>

const char *onednn_name(void) {
  static char name[64];
  const dnnl_version_t *version = dnnl_version();
  snprintf(name, sizeof name, "oneDNN %d.%d.%d", version->major, version->minor, version->patch);
  return name;
}

static bool has_empty_input(const Computation *c) {
  for (size_t i = 0; i < c->ninputs; i++)
    if (ng_tensor_nelems(&c->inputs[i]) == 0) return true;
  return false;
}

// In layouts that oneDNN chooses, with which it has vector code for most; else in the graph's own.
bool onednn_compute(Computation *c) {
  static const unsigned forms[] = {FORM_ANY_WEIGHTS | FORM_ANY_DATA, 0};
  static dnnl_engine_t engine;
  if (has_empty_input(c)) return false; // some primitives divide by such an extent when they are made
  if (!engine && dnnl_engine_create(&engine, dnnl_cpu, 0) != dnnl_success) return false;
  const PeerTask task = {
      .graph = c->graph->graph, .inputs = c->inputs, .outputs = &c->output, .threads = ng_thread_count()};
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    Sequence *s = sequence_new(&task, forms[i], engine);
    const bool ok = s && sequence_run(s);
    sequence_free(s);
    if (ok) return true;
  }
  return false;
}
