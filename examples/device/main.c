// Learns on a device: all memory is static, a call takes four samples, and nothing but the step is linked.
#include "sensor.h"

#include <stdio.h>

enum { BATCH = 4, READINGS = 16, STEPS = 300, TESTS = 20 };
static _Alignas(64) unsigned char parameters[sensor_PARAMETERS_NBYTES], optimizer[sensor_OPTIMIZER_NBYTES];
static _Alignas(64) unsigned char workspace[sensor_WORKSPACE_NBYTES];
static float readings[BATCH][READINGS];
static int32_t labels[BATCH];

// A worn motor shakes in every fourth reading.
static void measure(int sample, float *to) {
  for (int i = 0; i < READINGS; i++)
    to[i] = (float)((sample * 7 + i * 13) % 11) / 11 + (sample % 2 && i % 4 == 0 ? 1.0F : 0);
}

int main(void) {
  float loss = 0, logits[2];
  int status = sensor_init(parameters, optimizer, 0), right = 0;
  for (int step = 0; step < STEPS && !status; step++) {
    for (int i = 0; i < BATCH; i++) measure(BATCH * step + i, readings[i]), labels[i] = (BATCH * step + i) % 2;
    status = sensor_train_step(readings[0], labels, &loss, parameters, optimizer, workspace, sizeof workspace,
                               sensor_ISA_SCALAR);
  }
  for (int sample = 0; sample < TESTS && !status; sample++) { // inference takes one sample
    measure(10001 + sample, readings[0]);
    status = sensor_infer(readings[0], logits, parameters, workspace, sizeof workspace, sensor_ISA_SCALAR);
    right += (logits[1] > logits[0]) == (10001 + sample) % 2;
  }
  printf("loss %.3g, %d of %d right, %zu bytes of parameters, %zu of workspace\n", (double)loss, right, TESTS,
         sizeof parameters, sizeof workspace);
  return status || right < TESTS;
}
