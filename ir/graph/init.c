// Computes each number by integer arithmetic and basic f64 operations, so that results do not depend on a math library.
#include "ir/graph/init.h"

#include "ir/support/philox.h"

#include <math.h>

const char *const init_names[] = {[INIT_ZEROS] = "zeros",   [INIT_ONES] = "ones",     [INIT_UNIFORM] = "uniform",
                                  [INIT_NORMAL] = "normal", [INIT_FAN_IN] = "fan_in", [INIT_FILE] = "file"};

static double uniform(const uint32_t words[4], double low, double high) {
  const uint64_t bits = ((uint64_t)words[0] << 32 | words[1]) >> 11;
  const double part = (double)bits * 0x1p-53;
  return isfinite(high - low) ? low + (high - low) * part : 2 * (low / 2 + (high / 2 - low / 2) * part);
}

// The sum of eight uniform 16-bit numbers has mean 8 * 65535 / 2 and variance 8 * (2^32 - 1) / 12. Standardised, it is
// nearly normal.
static double nearly_normal(const uint32_t words[4]) {
  const int64_t mean = 4 * INT64_C(65535);
  const double reciprocal_deviation = 0x1.3988e1412ed76p-16; // sqrt(3 / (2 * (2^32 - 1)))
  int64_t sum = 0;
  for (int i = 0; i < 4; i++) sum += (int64_t)(words[i] & 0xFFFF) + (int64_t)(words[i] >> 16);
  return (double)(sum - mean) * reciprocal_deviation;
}

static double number_of(const Init *init, const uint32_t words[4]) {
  switch (init->kind) {
  case INIT_ONES: return 1;
  case INIT_UNIFORM: return uniform(words, init->low, init->high);
  case INIT_NORMAL: return init->deviation * nearly_normal(words);
  case INIT_FAN_IN: return uniform(words, -1 / sqrt(init->fan_in), 1 / sqrt(init->fan_in));
  default: return 0;
  }
}

void init_fill(const Graph *g, size_t state, uint64_t seed, Tensor *t) {
  enum { STREAM = 0x696E6974 }; // the last word of the counter; dropout uses smaller last words
  const Init *init = &g->states[state].init;
  if (init->kind == INIT_FILE) {
    Tensor file = tensor_like(graph_state(g, state));
    file.layout = (Layout){{0}};
    file.data = init->constant->data;
    tensor_copy(&file, t);
    return;
  }
  for (int64_t i = 0, n = tensor_nelems(t); i < n; i++) {
    uint32_t words[] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), (uint32_t)state, STREAM};
    philox(words, seed);
    type_store(t->type, t->data, (size_t)tensor_offset(t, i), number_of(init, words));
  }
}
