// Dropout. Source of the generator: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
#include "backends/interpreter/evaluation.h"
#include "backends/interpreter/walk.h"

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

// For the element at this place. Four neighbours have a counter in common; without an offset, the number too.
static uint32_t random_bits(uint64_t seed, uint64_t offset, uint64_t place) {
  uint64_t first = place & ~UINT64_C(3);
  uint32_t key[] = {low(seed), offset ? high(seed) : low(seed)};
  uint32_t with_offset[] = {low(offset), high(offset), low(first), high(first)};
  uint32_t without[] = {low(first), low(first) + 1, low(first), low(first) + 3};
  uint32_t *counter = offset ? with_offset : without;
  philox(counter, key);
  return counter[offset ? place & 3 : 2];
}

bool interpret_Dropout(const Evaluation *e) {
  const Value *dst = e->node->outputs[0];
  uint64_t seed = (uint64_t)evaluation_s64(e, 1), offset = (uint64_t)evaluation_s64(e, 2);
  double probability = e->inputs[3][0] < 0 ? 0 : e->inputs[3][0];
  Walk w = walk_over(&dst->shape);
  int64_t stride[MAX_RANK];
  order_strides(&dst->order, w.rank, w.extent, stride);
  for (int axis = 0; axis < w.rank; axis++) w.stride[axis][0] = stride[axis];
  for (; w.i < w.nelems; walk_step(&w)) {
    bool is_kept = random_bits(seed, offset, (uint64_t)w.at[0]) > 4294967295.0 * probability;
    e->outputs[0][w.i] = is_kept ? e->inputs[0][w.i] / (1 - probability) : 0;
    if (e->outputs[1]) e->outputs[1][w.i] = is_kept;
  }
  return true;
}
