// oneDNN as a peer, in the form that is best on this machine: every form that fits the graph is timed, and the fastest
// stays.
//
// If a batch norm's gradient follows a ReLU's, one form is oneDNN's own fusion of the two. It reads the mask that
// oneDNN's forward pass saved instead of y. So the forward pass runs first, once, and all libraries get its y: then the
// mask and y > 0 are equal. The other forms are a sequence in place: ReLU's gradient, batch norm's gradient, addition.
#include "tests/bench/onednn/sequence.h"
#include "tests/bench/turns.h"

#include "ir/operators/norm.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct OnednnPeer {
  PeerTask task; // the sequence refers to its tensors
  Sequence *sequence;
  dnnl_engine_t engine;
  char form[64];
} OnednnPeer;

static const char *start(const char *isa) {
  static char name[64];
  const dnnl_version_t *version = dnnl_version();
  bool is_limited = isa && strcmp(isa, "avx2") == 0 && dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2) == dnnl_success;
  snprintf(name, sizeof name, "oneDNN %d.%d.%d%s", version->major, version->minor, version->patch,
           is_limited ? " up to avx2" : "");
  return name;
}

static void run_sequence(void *self) {
  sequence_run(self);
}

// The forms that make a difference to this graph.
static unsigned forms_of(const PeerTask *task) {
  unsigned forms = 0;
  for (size_t i = 0; i < task->graph->nnodes; i++) {
    const Node *node = task->graph->nodes[i];
    const bool is_layer_norm = node->op->id == OP_LayerNorm || node->op->id == OP_LayerNormBackward;
    if (node->op->id == OP_Add) forms |= FORM_SUM;
    if (strcmp(node->op->family, "contraction") == 0) forms |= FORM_ANY_WEIGHTS | FORM_ANY_DATA;
    if (strcmp(node->op->family, "pool") == 0 && node->inputs[0]->shape.rank == 4) forms |= FORM_BLOCKED;
    if (can_be_post_op(node)) forms |= FORM_POST_OPS;
    const Sequence fused = {.form = FORM_FUSED_RELU};
    if (node->op->id == OP_BatchNormTrainingBackward && fused_relu(&fused, node)) forms |= FORM_FUSED_RELU;
    if (strcmp(node->op->family, "norm") != 0 || is_layer_norm) continue;
    if (node->inputs[0]->shape.rank < 4) forms |= FORM_AS_IMAGES;
    if (task->may_reorder) forms |= FORM_BLOCKED;
  }
  return forms;
}

static void name_form(unsigned form, char *text, size_t nbytes) {
  static const char *const names[] = {"as images", "fused ReLU",  "sum",     "blocked",
                                      "post-ops",  "any weights", "any data"};
  size_t length = 0;
  text[0] = 0;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (form & 1U << i && length < nbytes)
      length += (size_t)snprintf(text + length, nbytes - length, "%s%s", length ? ", " : "", names[i]);
}

// Makes all possible forms, and keeps the fastest.
static void choose_form(OnednnPeer *p) {
  const double seconds = 0.2;
  const unsigned forms = forms_of(&p->task);
  Contestant contestants[MOST_CONTESTANTS];
  size_t count = 0, best = 0;
  for (unsigned form = 0; form < FORM_COUNT && count < MOST_CONTESTANTS; form++) {
    // Images are the only reorderable form of lower ranks, so the one implies the other.
    if ((form & ~forms) || (form & FORM_BLOCKED && form & FORM_AS_IMAGES)) continue;
    Sequence *s = sequence_new(&p->task, form, p->engine);
    if (s && sequence_run(s)) contestants[count++] = (Contestant){run_sequence, s};
    else sequence_free(s); // a form that oneDNN refuses to run would be the fastest
  }
  if (count > 1) turns_take(contestants, count, p->task.threads, seconds);
  for (size_t i = 1; i < count; i++)
    if (contestants[i].median_ms < contestants[best].median_ms) best = i;
  for (size_t i = 0; i < count; i++)
    if (i == best) p->sequence = contestants[i].self;
    else sequence_free(contestants[i].self);
}

static void free_peer(void *self) {
  OnednnPeer *p = self;
  sequence_free(p->sequence);
  if (p->engine) dnnl_engine_destroy(p->engine);
  free(p);
}

static void *make(const PeerTask *task) {
  OnednnPeer *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->task = *task;
  if (dnnl_engine_create(&p->engine, dnnl_cpu, 0) == dnnl_success) choose_form(p);
  if (p->sequence) {
    name_form(p->sequence->form, p->form, sizeof p->form);
    return p;
  }
  free_peer(p);
  return NULL;
}

static bool run(void *self) {
  const OnednnPeer *p = self;
  return sequence_run(p->sequence);
}

static const char *form(const void *self) {
  const OnednnPeer *p = self;
  return p->form;
}

const PeerLibrary onednn_library = {"oneDNN", "onednn", start, make, run, form, free_peer};
