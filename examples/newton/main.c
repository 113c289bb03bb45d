// Model predictive control: a network learns how a pendulum moves; each torque is then the first of five that a Newton
// step finds, by the gradient and the Hessian of their cost through the network. Nothing is allocated.
#include "control.h"
#include "control_hessian.h"
#include "model.h"

#include <math.h>
#include <stdio.h>

enum { BATCH = 64, TRAINING_STEPS = 4000, HORIZON = 5, STEPS = 40 };
static _Alignas(64) unsigned char parameters[model_PARAMETERS_NBYTES], optimizer[model_OPTIMIZER_NBYTES];
static _Alignas(64) unsigned char workspace[model_WORKSPACE_NBYTES];
static _Alignas(64) unsigned char more[control_WORKSPACE_NBYTES], most[control_hessian_WORKSPACE_NBYTES];

static double uniform(double range) {
  static uint64_t state = 1;
  state = state * 6364136223846793005U + 1442695040888963407U;
  return range * (2 * (double)(state >> 11) * 0x1p-53 - 1);
}

// An upright pendulum, which falls over; 0.1 s.
static void pendulum(const float *s, float torque, float *next) {
  double angle = (double)s[0], speed = (double)s[1];
  for (int i = 0; i < 20; i++) speed += 0.005 * (9.81 * sin(angle) + (double)torque), angle += 0.005 * speed;
  next[0] = (float)angle, next[1] = (float)speed;
}

static int train(float *loss) {
  static float s[BATCH][2], torque[BATCH], wanted[BATCH][2];
  int status = model_init(parameters, optimizer, 0);
  for (int step = 0; step < TRAINING_STEPS && !status; step++) {
    for (int b = 0; b < BATCH; b++) {
      s[b][0] = (float)uniform(1.2), s[b][1] = (float)uniform(4), torque[b] = (float)uniform(20);
      pendulum(s[b], torque[b], wanted[b]);
    }
    status = model_train_step(s[0], torque, wanted[0], loss, parameters, optimizer, workspace, sizeof workspace,
                              model_ISA_BEST);
  }
  return status;
}

// Solves h d = g by Cholesky, with a multiple of the identity added until h is positive definite.
static void solve(float (*h)[HORIZON], const float *g, double *d) {
  double l[HORIZON][HORIZON];
  for (double ridge = 1e-6, least = 0; least <= 0; ridge *= 10) {
    least = 1;
    for (int i = 0; i < HORIZON; i++)
      for (int k = 0; k <= i; k++) {
        double sum = (double)h[i][k] + (i == k ? ridge : 0);
        for (int j = 0; j < k; j++) sum -= l[i][j] * l[k][j];
        if (i == k) least = fmin(least, sum);
        l[i][k] = i == k ? sqrt(fmax(sum, 1e-30)) : sum / l[k][k];
      }
  }
  for (int i = 0; i < HORIZON; i++) {
    d[i] = (double)g[i];
    for (int k = 0; k < i; k++) d[i] -= l[i][k] * d[k];
    d[i] /= l[i][i];
  }
  for (int i = HORIZON; i-- > 0;) {
    for (int k = i + 1; k < HORIZON; k++) d[i] -= l[k][i] * d[k];
    d[i] /= l[i][i];
  }
}

static int newton_step(const float *s, float *u, float *cost) {
  const float *w1 = (const void *)(parameters + model_w1_OFFSET), *b1 = (const void *)(parameters + model_b1_OFFSET);
  const float *w2 = (const void *)(parameters + model_w2_OFFSET);
  float slope[HORIZON], hessian[HORIZON][HORIZON];
  double d[HORIZON];
  int status = control(s, u, w1, b1, w2, cost, slope, more, sizeof more, control_ISA_BEST);
  status = status ? status : control_hessian(s, u, w1, b1, w2, hessian[0], most, sizeof most, control_hessian_ISA_BEST);
  solve(hessian, slope, d);
  for (int i = 0; i < HORIZON; i++) u[i] -= (float)d[i];
  return status;
}

int main(void) {
  float loss, s[2] = {0.8F, 0}, u[HORIZON] = {0}, cost = 0, next[2];
  int status = train(&loss);
  printf("model: mean square of errors %.1e\n", (double)loss);
  for (int step = 0; step < STEPS && !status; step++) {
    status = newton_step(s, u, &cost);
    if (step % 8 == 0)
      printf("%.1f s: angle %6.3f, torque %6.2f, cost before the step %.4f\n", 0.1 * step, (double)s[0], (double)u[0],
             (double)cost);
    pendulum(s, u[0], next);
    s[0] = next[0], s[1] = next[1];
    for (int i = 0; i + 1 < HORIZON; i++) u[i] = u[i + 1]; // the next step begins with the rest of the plan
  }
  printf("%.1f s: angle %6.3f\n", 0.1 * STEPS, (double)s[0]);
  return status || !(fabsf(s[0]) < 0.02F) || !(loss < 1e-2F);
}
