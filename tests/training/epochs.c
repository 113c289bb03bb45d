// Repeats ngrad fit of tests/training/mlp.yaml, made open, in emitted C: epochs of 53 samples, in
// batches of 20, without the rest.
//   epochs shuffled|in-order FILE   compares the states, bit for bit, with those that ngrad fit saved to FILE
#include "opened/mlp.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES = 53, NX = 13, BATCH = 20, EPOCHS = 3 };

typedef struct States {
  _Alignas(64) unsigned char parameters[mlp_PARAMETERS_NBYTES];
  _Alignas(64) unsigned char optimizer[mlp_OPTIMIZER_NBYTES];
} States;

static States trained, wanted;
static _Alignas(64) unsigned char workspace[1 << 20];

static int step(const int64_t *samples) {
  static float x[BATCH * NX];
  static int32_t labels[BATCH];
  float loss;
  for (int64_t i = 0; i < BATCH; i++) {
    for (int64_t k = 0; k < NX; k++) x[i * NX + k] = (float)((samples[i] * NX + k) * 37 % 101 - 50) / 64;
    labels[i] = (int32_t)(samples[i] * 5 % 7);
  }
  return mlp_train_step(BATCH, x, labels, &loss, trained.parameters, trained.optimizer, workspace, sizeof workspace,
                        mlp_ISA_BEST);
}

int main(int argc, char **argv) {
  if (argc < 3 || mlp_init(trained.parameters, trained.optimizer, 5) != mlp_OK) return 2;
  const int is_shuffled = strcmp(argv[1], "shuffled") == 0;
  int64_t order[SAMPLES];
  for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
    for (int64_t i = 0; i < SAMPLES; i++) order[i] = i;
    if (is_shuffled) mlp_permutation(5, epoch, SAMPLES, order);
    for (int64_t done = 0; done + BATCH <= SAMPLES; done += BATCH)
      if (step(order + done) != mlp_OK) return 3;
  }
  if (mlp_load(wanted.parameters, wanted.optimizer, argv[2]) != mlp_OK) return 4;
  return memcmp(&trained, &wanted, sizeof trained) != 0;
}
