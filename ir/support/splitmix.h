// Random numbers by integer arithmetic, the same on every machine.
// Source: Sebastiano Vigna, splitmix64 (public domain), https://prng.di.unimi.it/splitmix64.c.
#ifndef NGRAD_IR_SUPPORT_SPLITMIX_H
#define NGRAD_IR_SUPPORT_SPLITMIX_H

#include <stdint.h>

#define SPLITMIX_STEP UINT64_C(0x9E3779B97F4A7C15) // the difference of consecutive states

// The output for a state: uniform 64 bits.
static inline uint64_t splitmix64(uint64_t state) {
  uint64_t z = state + SPLITMIX_STEP;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

#endif
