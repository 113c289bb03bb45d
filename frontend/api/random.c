// Random inputs. Integer arithmetic and one multiplication make each element, so no machine's math library matters.
#include "frontend/api/random.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
#include "ir/graph/init.h"
#include "ir/operators/operator.h"
#include "ir/support/splitmix.h"

// Four uniform 16-bit numbers have a sum of mean 2 * 65535 and variance (2^32 - 1) / 3.
static double nearly_normal(uint64_t word) {
  const int64_t mean = 2 * INT64_C(65535);
  const double reciprocal_deviation = 0x1.bb67ae86627e8p-16; // sqrt(3 / (2^32 - 1))
  int64_t sum = (int64_t)(word & 0xFFFF) + (int64_t)(word >> 16 & 0xFFFF) + (int64_t)(word >> 32 & 0xFFFF) +
                (int64_t)(word >> 48);
  return (double)(sum - mean) * reciprocal_deviation;
}

static double uniform(uint64_t word, double least, double beyond) {
  return least + (beyond - least) * ((double)(word >> 11) * 0x1p-53);
}

// Values of integer types keep the normal's shape, not its narrow range.
static double deviation_of(Type type) {
  switch (type) {
  case TYPE_U8:
  case TYPE_S8:
  case TYPE_S32:
  case TYPE_S64: return 32;
  case TYPE_U4:
  case TYPE_S4: return 3;
  default: return 1;
  }
}

Distribution distribution_any(Type type) {
  return (Distribution){.range = RANGE_ANY, .factor = 1, .centre = type == TYPE_U8 ? 128 : type == TYPE_U4 ? 8 : 0};
}

// Quantised numbers of which Dequantize makes numbers of variance 1 if its type has so many steps, around 0.
static void distribution_adapt(Distribution *d, const Node *dequantize, Type type) {
  const AttributeValue *scales = node_attribute(dequantize, "scales"), *zps = node_attribute(dequantize, "zps");
  const double steps = deviation_of(type), scale = scales->numbers.count ? scales->numbers.items[0] : 1;
  if (scale * steps > 1) d->factor = 1 / (scale * steps);
  if (zps->list.count) d->centre = (double)zps->list.items[0];
}

// Scales of 8-bit integers make of these numbers of variance 1, those of other types smaller ones. A single number that
// all others are divided by is not near 0: it would make them as large as no network's scores are.
Distribution distribution_of(const Value *v) {
  const double of_scales = 1.0 / 32;
  Distribution d = distribution_any(v->type);
  d.range = v->range;
  for (const Use *use = v->uses; use; use = use->next) {
    const Operator *op = use->node->op;
    if (use->slot < op->ninputs && op->inputs[use->slot].is_scale) d.factor = of_scales;
    if (op->id == OP_Divide && use->slot == 1 && shape_nelems(&v->shape) == 1) d.range = RANGE_POSITIVE;
    if (op->id == OP_Dequantize && !type_is_float(v->type)) distribution_adapt(&d, use->node, v->type);
    const int64_t extent = node_indexed_extent(use->node, use->slot);
    if (extent > 0 && (!d.nindices || extent < d.nindices)) d.nindices = extent;
  }
  return d;
}

static double number_of(Type type, const Distribution *d, uint64_t word) {
  if (d->nindices) return (double)((word >> 11) % (uint64_t)d->nindices);
  switch (d->range) {
  case RANGE_POSITIVE: return d->factor * uniform(word, 0.5, 2);
  case RANGE_PROBABILITY: return uniform(word, 0.0625, 0.9375);
  default: break;
  }
  const double normal = nearly_normal(word);
  if (type == TYPE_BOOLEAN) return normal > 0;
  return type_is_float(type) ? normal : d->centre + deviation_of(type) * d->factor * normal;
}

void random_fill(Tensor *t, uint64_t seed, uint64_t i, Distribution distribution) {
  enum { STEP = 1 << 16 };
  const uint64_t stream = splitmix64(splitmix64(seed) + i);
  const int64_t nelems = tensor_nelems(t);
#pragma omp parallel for schedule(static) if (nelems > STEP && !type_is_packed(t->type)) // no two write one byte
  for (int64_t e = 0; e < nelems; e++) {
    uint64_t word = splitmix64(stream + (uint64_t)e * SPLITMIX_STEP);
    type_store(t->type, t->data, (size_t)tensor_offset(t, e), number_of(t->type, &distribution, word));
  }
}

ng_status ng_tensor_random(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out) {
  *out = (ng_tensor){0};
  if (i >= g->graph->ninputs) return argument_error(g->ctx, "no such input");
  ng_status status = ng_graph_bind(g);
  if (status != NG_OK) return status;
  const Value *v = g->graph->inputs[i];
  Tensor t = tensor_like(v);
  if (!tensor_make(g->ctx, v->name, &t)) return NG_OUT_OF_MEMORY;
  random_fill(&t, seed, i, distribution_of(v));
  *out = tensor_to_api(&t);
  return NG_OK;
}

ng_status ng_tensor_init(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out) {
  *out = (ng_tensor){0};
  if (i >= g->graph->nstates) return argument_error(g->ctx, "no such state");
  const Value *v = g->graph->inputs[g->graph->states[i].input];
  Tensor t = tensor_like(v);
  if (!tensor_make(g->ctx, v->name, &t)) return NG_OUT_OF_MEMORY;
  init_fill(g->graph, i, seed, &t);
  *out = tensor_to_api(&t);
  return NG_OK;
}
