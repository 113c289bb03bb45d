// How much a test does. In ./dev test, a test takes a sample of the combinations; ./dev check sets NGRAD_CHECK, and
// tests take all of them.
#ifndef NGRAD_TESTS_EFFORT_H
#define NGRAD_TESTS_EFFORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

static inline bool takes_all(void) {
  const char *check = getenv("NGRAD_CHECK");
  return check && *check;
}

// One of `count` ways in turn, by the letters of a case's name: the same in each run.
static inline size_t turn_of(const char *name, size_t count) {
  uint32_t hash = 2166136261; // FNV-1a
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619;
  return hash % count;
}

#endif
