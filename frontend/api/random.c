// Random inputs. Integer arithmetic and one multiplication make each element, so no machine's math library matters.
#include "frontend/api/random.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
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
static double number_of_type(Type type, double normal) {
  switch (type) {
  case TYPE_U8: return 128 + 32 * normal;
  case TYPE_S8:
  case TYPE_S32:
  case TYPE_S64: return 32 * normal;
  case TYPE_U4: return 8 + 3 * normal;
  case TYPE_S4: return 3 * normal;
  case TYPE_BOOLEAN: return normal > 0;
  default: return normal;
  }
}

static double number_in_range(Type type, ValueRange range, uint64_t word) {
  switch (range) {
  case RANGE_POSITIVE: return uniform(word, 0.5, 2);
  case RANGE_PROBABILITY: return uniform(word, 0.0625, 0.9375);
  default: return number_of_type(type, nearly_normal(word));
  }
}

void random_fill(Tensor *t, uint64_t seed, uint64_t i, ValueRange range) {
  enum { STEP = 1 << 16 };
  const uint64_t stream = splitmix64(splitmix64(seed) + i);
  const int64_t nelems = tensor_nelems(t);
#pragma omp parallel for schedule(static) if (nelems > STEP && !type_is_packed(t->type)) // no two write one byte
  for (int64_t e = 0; e < nelems; e++) {
    uint64_t word = splitmix64(stream + (uint64_t)e * SPLITMIX_STEP);
    type_store(t->type, t->data, (size_t)tensor_offset(t, e), number_in_range(t->type, range, word));
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
  random_fill(&t, seed, i, v->range);
  *out = tensor_to_api(&t);
  return NG_OK;
}
