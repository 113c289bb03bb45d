// Pooling and its gradients. oneDNN's gradient of max pooling reads the places of the maxima, which its forward writes
// to a workspace, while the graph's has src alone. So a forward for training goes before the gradient and counts; that
// of the graph, if it has one, serves both.
#include "tests/bench/onednn/sequence.h"

#include "ir/operators/window.h"

#include <string.h>

typedef struct Pool {
  const Value *large, *small; // src and dst, or their gradients
  Desc large_desc, small_desc, large_used, small_used;
  Windows windows;
  dnnl_alg_kind_t kind;
} Pool;

static bool is_max(const Node *node) {
  return node->op->id == OP_MaxPool || node->op->id == OP_MaxPoolBackward;
}

// 8 channels are the vector of AVX2, 16 that of AVX-512.
static bool block(Desc *desc) {
  const dnnl_format_tag_t tag = dnnl_get_effective_cpu_isa() >= dnnl_cpu_isa_avx512_core ? dnnl_nChw16c : dnnl_nChw8c;
  Desc blocked;
  if (!desc_by_tag(&blocked, desc->ndims, desc->dims, desc->data_type, tag)) return false;
  *desc = blocked;
  return true;
}

static bool pool_init(const Sequence *s, Pool *p, const Node *node) {
  memset(p, 0, sizeof *p);
  p->large = node_side(node, SIDE_LARGE);
  p->small = node_side(node, SIDE_SMALL);
  p->windows = node_windows(node);
  p->kind = is_max(node)                     ? dnnl_pooling_max
            : node_bool(node, "exclude_pad") ? dnnl_pooling_avg_exclude_padding
                                             : dnnl_pooling_avg_include_padding;
  if (!side_desc(&p->large_desc, node, p->large) || !side_desc(&p->small_desc, node, p->small)) return false;
  p->large_used = p->large_desc;
  p->small_used = p->small_desc;
  return !(s->form & FORM_BLOCKED) || (block(&p->large_used) && block(&p->small_used));
}

static dnnl_primitive_desc_t describe_forward(const Sequence *s, const Pool *p, dnnl_prop_kind_t direction) {
  return describe_pool(s->engine, direction, p->kind, &p->large_used, &p->small_used, &p->windows);
}

// The forward primitive on data in place. keeps_places: for a gradient.
static bool add_forward(Sequence *s, const Pool *p, void *src, void *dst, bool keeps_places) {
  Step *step = sequence_add(s, describe_forward(s, p, keeps_places ? dnnl_forward_training : dnnl_forward_inference));
  if (!step || !sequence_set(s, step, DNNL_ARG_SRC, &p->large_used, src) ||
      !sequence_set(s, step, DNNL_ARG_DST, &p->small_used, dst))
    return false;
  if (!keeps_places) return true;
  if (!workspace_desc(step, &s->workspace_desc)) return false;
  s->workspace = sequence_buffer(s, desc_nbytes(&s->workspace_desc));
  return s->workspace && sequence_set(s, step, DNNL_ARG_WORKSPACE, &s->workspace_desc, s->workspace);
}

static bool has_same_windows(const Node *a, const Node *b) {
  const Windows of_a = node_windows(a), of_b = node_windows(b);
  return a->inputs[0] == b->inputs[0] && memcmp(&of_a, &of_b, sizeof of_a) == 0;
}

static bool has_gradient(const Node *pool) {
  for (const Use *use = pool->inputs[0]->uses; use; use = use->next)
    if (use->node->op->id == OP_MaxPoolBackward && has_same_windows(use->node, pool)) return true;
  return false;
}

bool add_pool(Sequence *s, const Node *node) {
  Pool p;
  Chosen src, dst;
  if (!pool_init(s, &p, node) || !chosen_read(s, &src, &p.large_used, &p.large_desc, p.large) ||
      !chosen_write(s, &dst, &p.small_used, &p.small_desc, p.small))
    return false;
  const bool keeps_places = is_max(node) && has_gradient(node);
  if (keeps_places) s->pool = node;
  return add_forward(s, &p, src.place, dst.place, keeps_places) && chosen_finish(s, &dst);
}

// Makes the workspace hold the places of the maxima.
static bool keep_places(Sequence *s, const Pool *p, const Node *node) {
  Chosen src;
  Pool forward = *p;
  if (s->pool && has_same_windows(s->pool, node)) return true;
  forward.large = node->inputs[0];
  void *dst = sequence_buffer(s, desc_nbytes(&p->small_used));
  return dst && chosen_read(s, &src, &p->large_used, &p->large_desc, forward.large) &&
         add_forward(s, &forward, src.place, dst, true);
}

static Step *add_backward_step(Sequence *s, const Pool *p) {
  dnnl_primitive_desc_t hint = describe_forward(s, p, dnnl_forward_training);
  return sequence_add_gradient(
      s, describe_pool_gradient(s->engine, p->kind, &p->large_used, &p->small_used, &p->windows, hint), hint);
}

bool add_pool_backward(Sequence *s, const Node *node) {
  Pool p;
  Chosen diff_src, diff_dst;
  if (!pool_init(s, &p, node)) return false;
  p.large = node->outputs[0]; // src of MaxPoolBackward is on the large side, too
  if ((is_max(node) && !keep_places(s, &p, node)) ||
      !chosen_read(s, &diff_dst, &p.small_used, &p.small_desc, p.small) ||
      !chosen_write(s, &diff_src, &p.large_used, &p.large_desc, p.large))
    return false;
  Step *step = add_backward_step(s, &p);
  return step && sequence_set(s, step, DNNL_ARG_DIFF_DST, &diff_dst.used, diff_dst.place) &&
         sequence_set(s, step, DNNL_ARG_DIFF_SRC, &diff_src.used, diff_src.place) &&
         (!is_max(node) || sequence_set(s, step, DNNL_ARG_WORKSPACE, &s->workspace_desc, s->workspace)) &&
         chosen_finish(s, &diff_src);
}
