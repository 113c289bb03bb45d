// From a graph file to something that can be timed.
#include "tests/bench/case.h"

#include "frontend/cli/session.h"
#include "ir/operators/contraction.h"
#include "ir/operators/norm.h"
#include "ir/operators/window.h"
#include "tests/bench/data.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const family_names[FAMILY_COUNT] = {
    [FAMILY_LAYER_NORM_GRADIENT] = "layer norm gradient",
    [FAMILY_BATCH_NORM_NCX_GRADIENT] = "batch norm NCX gradient",
    [FAMILY_BATCH_NORM_NXC_GRADIENT] = "batch norm NXC gradient",
    [FAMILY_RMS_NORM_GRADIENT] = "RMS norm gradient",
    [FAMILY_GROUP_NORM_GRADIENT] = "group norm gradient",
    [FAMILY_FUSED] = "fused neighbours",
    [FAMILY_FORWARD] = "forward",
    [FAMILY_SOFTMAX] = "softmax",
    [FAMILY_SUMS] = "sums",
    [FAMILY_PRODUCTS] = "products",
    [FAMILY_FUSED_PRODUCTS] = "products and neighbours",
    [FAMILY_ATTENTION] = "attention",
    [FAMILY_CONVOLUTIONS] = "convolutions",
    [FAMILY_DEPTHWISE] = "depthwise convolutions",
    [FAMILY_POOLING] = "pooling",
};

// Each group has one channel, on both sides.
static bool is_depthwise(const Node *node) {
  const Convolution c = node_convolution(node);
  return c.groups > 1 && c.groups == extent_value(node_side(node, SIDE_LARGE)->shape.extent[c.channels]);
}

// The family of a graph with products, convolutions or windows; FAMILY_COUNT: it has none.
static Family contraction_family(const Graph *g) {
  size_t nproducts = 0;
  const Node *convolution = NULL, *pool = NULL;
  bool has_softmax = false;
  for (size_t i = 0; i < g->nnodes; i++) {
    const Node *node = g->nodes[i];
    if (node->op->id == OP_MatMul) nproducts++;
    else if (strcmp(node->op->family, "contraction") == 0) convolution = node;
    else if (strcmp(node->op->family, "pool") == 0) pool = node;
    else if (strcmp(node->op->family, "softmax") == 0) has_softmax = true;
  }
  if (convolution) return is_depthwise(convolution) ? FAMILY_DEPTHWISE : FAMILY_CONVOLUTIONS;
  if (nproducts && has_softmax) return FAMILY_ATTENTION;
  if (nproducts) return nproducts == g->nnodes ? FAMILY_PRODUCTS : FAMILY_FUSED_PRODUCTS;
  return pool ? FAMILY_POOLING : FAMILY_COUNT;
}

Family case_family(const Case *c) {
  const Graph *g = c->graph->graph;
  const Family family = contraction_family(g);
  if (family != FAMILY_COUNT) return family;
  if (g->nnodes != 1) return FAMILY_FUSED;
  if (strcmp(g->nodes[0]->op->family, "softmax") == 0) return FAMILY_SOFTMAX;
  switch (g->nodes[0]->op->id) {
  case OP_LayerNormBackward: return FAMILY_LAYER_NORM_GRADIENT;
  case OP_BatchNormTrainingBackward:
  case OP_BatchNormInferenceBackward:
    return node_s64(g->nodes[0], "data_format") == FORMAT_NCX ? FAMILY_BATCH_NORM_NCX_GRADIENT
                                                              : FAMILY_BATCH_NORM_NXC_GRADIENT;
  case OP_RMSNormBackward: return FAMILY_RMS_NORM_GRADIENT;
  case OP_GroupNormBackward:
  case OP_InstanceNormBackward: return FAMILY_GROUP_NORM_GRADIENT;
  case OP_ReduceSum:
  case OP_BiasAddBackward: return FAMILY_SUMS;
  default: return FAMILY_FORWARD;
  }
}

static uint64_t total_nbytes(const ng_tensor *tensors, size_t count) {
  uint64_t total = 0;
  for (size_t i = 0; i < count; i++) total += ng_tensor_nbytes(&tensors[i]);
  return total;
}

uint64_t case_bytes_read(const Case *c) {
  return total_nbytes(c->inputs, c->ninputs);
}

uint64_t case_bytes_written(const Case *c) {
  return total_nbytes(c->outputs, c->noutputs);
}

// Fills outputs with NaN, so that elements that are not computed compare as different, and so that every page is
// mapped.
static ng_status outputs_make(Case *c, ng_tensor *outputs) {
  for (size_t i = 0; i < c->noutputs; i++) {
    ng_tensor_info info = ng_graph_output(c->graph, i);
    ng_status status = ng_tensor_new(c->ctx, &info, &outputs[i]);
    if (status != NG_OK) return status;
    memset(outputs[i].data, 0xFF, ng_tensor_nbytes(&outputs[i]));
  }
  return NG_OK;
}

static ng_status tensors_make(Case *c, double mean) {
  ng_status status = ng_graph_bind(c->graph);
  if (status != NG_OK) return status;
  c->ninputs = ng_graph_input_count(c->graph);
  c->noutputs = ng_graph_output_count(c->graph);
  c->inputs = memory_or_exit(calloc(c->ninputs + 1, sizeof *c->inputs));
  c->outputs = memory_or_exit(calloc(c->noutputs + 1, sizeof *c->outputs));
  c->peer_outputs = memory_or_exit(calloc(c->noutputs + 1, sizeof *c->peer_outputs));
  status = inputs_make(c->graph, mean, c->inputs);
  if (status == NG_OK) status = outputs_make(c, c->outputs);
  if (status == NG_OK) status = outputs_make(c, c->peer_outputs);
  return status;
}

bool case_prepare(Case *c, const Settings *s, double mean) {
  c->settings = s;
  if (tensors_make(c, mean) != NG_OK) return false;
  const ng_options options = {.isa = s->isa};
  c->kernel = ng_compile(c->graph, &options);
  if (!c->kernel) return false;
  const PeerTask task = {c->graph->graph, c->inputs, c->peer_outputs, s->threads, s->may_reorder};
  if (!s->has_no_peer) c->peer = peer_new(&task);
  return true;
}

bool case_open(Case *c, const char *path, const Settings *s, double mean) {
  *c = (Case){.ctx = session_open(0, 0)};
  c->graph = ng_graph_read_file(c->ctx, path);
  return c->graph && case_prepare(c, s, mean);
}

static void tensors_free(Case *c, ng_tensor *tensors, size_t count) {
  for (size_t i = 0; tensors && i < count; i++) ng_tensor_free(c->ctx, &tensors[i]);
  free(tensors);
}

void case_close(Case *c) {
  peer_free(c->peer);
  tensors_free(c, c->inputs, c->ninputs);
  tensors_free(c, c->outputs, c->noutputs);
  tensors_free(c, c->peer_outputs, c->noutputs);
  ng_kernel_free(c->kernel);
  ng_graph_free(c->graph);
  session_close(c->ctx);
  *c = (Case){0};
}

// Timing

static void run_ngrad(void *self) {
  Case *c = self;
  if (ng_kernel_run(c->kernel, c->inputs, c->outputs, c->settings->threads) != NG_OK) c->has_failed = true;
}

static void run_peer(void *self) {
  Case *c = self;
  if (!peer_run(c->peer)) c->has_failed = true;
}

static void run_ceiling(void *self) {
  ceiling_run(self);
}

Contestant case_ngrad(Case *c) {
  return (Contestant){.run = run_ngrad, .self = c};
}

Contestant case_peer(Case *c) {
  return (Contestant){.run = run_peer, .self = c};
}

Contestant case_ceiling(Ceiling *ceiling) {
  return (Contestant){.run = run_ceiling, .self = ceiling};
}

// Which way of writing is faster depends on the machine and on the caches.
static void ceiling_choose(Ceiling *plain) {
  const double seconds = 0.05;
  Ceiling streaming = *plain;
  streaming.bypasses_cache = true;
  Contestant ways[2] = {case_ceiling(plain), case_ceiling(&streaming)};
  if (turns_take(ways, 2, plain->threads, seconds) && ways[1].median_ms < ways[0].median_ms) *plain = streaming;
}

static bool measure(Case *c, Ceiling *ceiling, Medians *out) {
  Contestant contestants[3] = {case_ngrad(c)};
  size_t count = 1, peer_at = 0, ceiling_at = 0;
  if (c->peer) contestants[peer_at = count++] = case_peer(c);
  if (ceiling) contestants[ceiling_at = count++] = case_ceiling(ceiling);
  out->rounds = turns_take(contestants, count, c->settings->threads, c->settings->seconds);
  out->ngrad_ms = contestants[0].median_ms;
  out->peer_ms = peer_at ? contestants[peer_at].median_ms : NAN;
  out->ceiling_ms = ceiling_at ? contestants[ceiling_at].median_ms : NAN;
  if (c->has_failed) plain_error("%s: it did not run", ng_graph_name(c->graph));
  return out->rounds && !c->has_failed;
}

bool case_measure(Case *c, bool wants_ceiling, Medians *out) {
  if (!wants_ceiling) return measure(c, NULL, out);
  Ceiling ceiling;
  if (!ceiling_init(&ceiling, &system_allocator, case_bytes_read(c), case_bytes_written(c), c->settings->threads)) {
    plain_error("%s: out of memory", ng_graph_name(c->graph));
    return false;
  }
  ceiling_choose(&ceiling);
  bool ok = measure(c, &ceiling, out);
  ceiling_deinit(&ceiling);
  return ok;
}

bool case_interpret(Case *c, ng_tensor **outputs) {
  *outputs = memory_or_exit(calloc(c->noutputs + 1, sizeof **outputs));
  return outputs_make(c, *outputs) == NG_OK && ng_interpret(c->graph, c->inputs, *outputs, 0) == NG_OK;
}

void outputs_free(Case *c, ng_tensor *outputs) {
  tensors_free(c, outputs, c->noutputs);
}

ng_difference case_difference(const Case *c, size_t i) {
  ng_difference difference;
  ng_tensor_compare(c->ctx, &c->outputs[i], &c->peer_outputs[i], -1, &difference);
  return difference;
}
