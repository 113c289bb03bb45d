// Calls an emitted training step on made-up data:
//   driver ISA STEPS FILE [OLD]
// begins with the first values for the seed 5, or with the states of OLD, and writes the states to FILE. The build says
// which graph: HEADER, RESULTS (where its outputs go), the type X and the number X_COUNT of inputs below X_MOST, LABELS
// labels below LABEL_MOST.
#include HEADER

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Alignas(64) unsigned char states[bits_PARAMETERS_NBYTES];
static _Alignas(64) unsigned char arena[bits_WORKSPACE_NBYTES];

static int isa_of(const char *name) {
  static const char *const names[] = {"best", "scalar", "neon", "avx2", "avx512", "avx512_bf16"};
  for (int i = 0; i < 6; i++)
    if (strcmp(name, names[i]) == 0) return i;
  return -1;
}

int main(int argc, char **argv) {
  static X x[X_COUNT];
  int32_t labels[LABELS];
  float results[2];
  if (argc < 4 || bits_init(states, 5) != bits_OK) return 2;
  if (argc > 4 && bits_load(states, argv[4]) != bits_OK) return 3;
  for (int i = 0; i < X_COUNT; i++) x[i] = (X)(i * 37 % X_MOST);
  for (int i = 0; i < LABELS; i++) labels[i] = i * 5 % LABEL_MOST;
  for (long i = strtol(argv[2], NULL, 10); i > 0; i--) {
    const int status = bits(x, labels, RESULTS, states, arena, sizeof arena, isa_of(argv[1]));
    if (status != bits_OK) return 16 + status;
  }
  return bits_save(states, argv[3]) != bits_OK;
}
