// Dropout. Source of the generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include "backends/interpreter/evaluation.h"

static uint32_t low(uint64_t x) {
  return (uint32_t)x;
}

static uint32_t high(uint64_t x) {
  return (uint32_t)(x >> 32);
}

// Philox-4x32-10
static void philox(uint32_t counter[4], uint32_t key[2]) {
  for (int round = 0; round < 10; round++) {
    uint64_t p = UINT64_C(0xD2511F53) * counter[0], q = UINT64_C(0xCD9E8D57) * counter[2];
    counter[0] = high(q) ^ counter[1] ^ key[0];
    counter[1] = low(q);
    counter[2] = high(p) ^ counter[3] ^ key[1];
    counter[3] = low(p);
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
}

// The random number for the element with this row-major index. Each call of Philox gives four numbers. With an offset
// they are for four consecutive elements; with offset 0 the four elements have the same number.
static uint32_t random_bits(uint64_t seed, uint64_t offset, uint64_t index) {
  uint64_t first = index & ~UINT64_C(3);
  uint32_t key[] = {low(seed), offset ? high(seed) : low(seed)};
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
