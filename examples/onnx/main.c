// Calls the network that net.onnx holds: its weights are constants of the emitted file.
#include "expected.h"
#include "net.h"

#include <math.h>
#include <stdio.h>

enum { CLASSES = sizeof expected / sizeof *expected };

int main(void) {
  static _Alignas(64) unsigned char workspace[net_WORKSPACE_NBYTES + 64];
  float x[64], y[CLASSES], worst = 0;
  for (int i = 0; i < 64; i++) x[i] = (float)(i * 37 % 61) / 61;
  if (net(x, y, workspace, sizeof workspace, net_ISA_BEST) != net_OK) return 2;
  for (int i = 0; i < CLASSES; i++) worst = fmaxf(worst, fabsf(y[i] - expected[i]));
  printf("largest difference from PyTorch's results: %.1e\n", (double)worst);
  return worst > 1e-5F;
}
