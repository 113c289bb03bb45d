// Dropout.
#include "backends/interpreter/evaluation.h"
#include "ir/support/philox.h"

static uint32_t low(uint64_t x) {
  return (uint32_t)x;
}

static uint32_t high(uint64_t x) {
  return (uint32_t)(x >> 32);
}

// The random number for the element with this row-major index. Each call of Philox gives four numbers. With an offset
// they are for four consecutive elements; with offset 0 the four elements have the same number.
static uint32_t random_bits(uint64_t seed, uint64_t offset, uint64_t index) {
  uint64_t first = index & ~UINT64_C(3);
  const uint64_t key = offset ? seed : (uint64_t)low(seed) << 32 | low(seed);
  uint32_t with_offset[] = {low(offset), high(offset), low(first), high(first)};
  uint32_t without[] = {low(first), low(first) + 1, low(first), low(first) + 3};
  uint32_t *counter = offset ? with_offset : without;
  philox(counter, key);
  return counter[offset ? index & 3 : 2];
}

bool interpret_Dropout(const Evaluation *e) {
  uint64_t seed = (uint64_t)evaluation_s64(e, 1), offset = (uint64_t)evaluation_s64(e, 2);
  double probability = e->inputs[3][0] < 0 ? 0 : e->inputs[3][0];
  for (int64_t i = 0, n = shape_nelems(&e->node->outputs[0]->shape); i < n; i++) {
    bool is_kept = random_bits(seed, offset, (uint64_t)i) > 4294967295.0 * probability;
    e->outputs[0][i] = is_kept ? e->inputs[0][i] / (1 - probability) : 0;
    if (e->outputs[1]) e->outputs[1][i] = is_kept;
  }
  return true;
}
