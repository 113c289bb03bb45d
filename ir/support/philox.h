// Philox-4x32-10, a random number generator without state. Source: Salmon, Moraes, Dror, Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
#ifndef NGRAD_IR_SUPPORT_PHILOX_H
#define NGRAD_IR_SUPPORT_PHILOX_H

#include <stdint.h>

// Replaces the counter by four random numbers of 32 bits, which are a function of counter and key.
static inline void philox(uint32_t counter[4], uint64_t key) {
  uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
  for (int round = 0; round < 10; round++) {
    const uint64_t p = UINT64_C(0xD2511F53) * counter[0], q = UINT64_C(0xCD9E8D57) * counter[2];
    counter[0] = (uint32_t)(q >> 32) ^ counter[1] ^ k0;
    counter[1] = (uint32_t)q;
    counter[2] = (uint32_t)(p >> 32) ^ counter[3] ^ k1;
    counter[3] = (uint32_t)p;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
}

#endif
