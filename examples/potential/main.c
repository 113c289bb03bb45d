// A small molecular dynamics code that learns its forces: it trains the network on energies and forces of a Morse
// potential, a stand-in for data of quantum chemistry, and then moves four atoms by the network's forces.
#include "potential.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { BATCH = 32, ATOMS = 4, COORDINATES = 3 * ATOMS, TRAINING_STEPS = 4000, TESTS = 200, MD_STEPS = 2000 };
static _Alignas(64) unsigned char parameters[potential_PARAMETERS_NBYTES], optimizer[potential_OPTIMIZER_NBYTES];
static _Alignas(64) unsigned char workspace[potential_WORKSPACE_NBYTES];

static double uniform(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005U + 1442695040888963407U;
  return (double)(state >> 11) * 0x1p-53;
}

// The sum over pairs of (1 - e^(1 - r))^2 - 1, whose minimum is at r = 1; f: the forces.
static double morse(const float *x, double *f) {
  double energy = 0;
  memset(f, 0, COORDINATES * sizeof *f);
  for (int i = 0; i < ATOMS; i++)
    for (int k = 0; k < i; k++) {
      double d[3], square = 0;
      for (int c = 0; c < 3; c++) d[c] = (double)x[3 * i + c] - (double)x[3 * k + c], square += d[c] * d[c];
      const double r = sqrt(square), e = exp(1 - r), slope = 2 * (1 - e) * e / r;
      energy += (1 - e) * (1 - e) - 1;
      for (int c = 0; c < 3; c++) f[3 * i + c] -= slope * d[c], f[3 * k + c] += slope * d[c];
    }
  return energy;
}

static void place_atoms(float *x, double spread) { // near the corners of a tetrahedron with edges of 1
  static const double corners[COORDINATES] = {0, 0, 0, 1, 0, 0, 0.5, 0.866, 0, 0.5, 0.289, 0.816};
  for (int i = 0; i < COORDINATES; i++) x[i] = (float)(1.1 * corners[i] + spread * (2 * uniform() - 1));
}

static int train(void) {
  static float x[BATCH * COORDINATES], energies[BATCH], forces[BATCH * COORDINATES];
  float energy_loss, force_loss;
  double f[COORDINATES];
  int status = potential_init(parameters, optimizer, 0);
  for (int step = 0; step < TRAINING_STEPS && !status; step++) {
    for (int b = 0; b < BATCH; b++) {
      place_atoms(x + b * COORDINATES, 0.35);
      energies[b] = (float)morse(x + b * COORDINATES, f);
      for (int i = 0; i < COORDINATES; i++) forces[b * COORDINATES + i] = (float)f[i];
    }
    status = potential_train_step(x, energies, forces, &energy_loss, &force_loss, parameters, optimizer, workspace,
                                  sizeof workspace, potential_ISA_BEST);
  }
  return status;
}

static int compute(const float *x, float *energy, float *force) {
  return potential_infer(x, energy, force, parameters, workspace, sizeof workspace, potential_ISA_BEST);
}

int main(void) {
  float x[COORDINATES], v[COORDINATES] = {0}, energy, f[COORDINATES];
  double reference[COORDINATES], square = 0, size = 0, first = 0, worst = 0, moved = 0;
  int status = train();
  for (int t = 0; t < TESTS && !status; t++) {
    place_atoms(x, 0.3);
    morse(x, reference);
    status = compute(x, &energy, f);
    for (int i = 0; i < COORDINATES; i++)
      square += pow((double)f[i] - reference[i], 2), size += reference[i] * reference[i];
  }
  printf("forces: error %.3f, of %.3f (root of mean squares)\n", sqrt(square / (TESTS * COORDINATES)),
         sqrt(size / (TESTS * COORDINATES)));

  // Velocity Verlet, masses of 1: forces that are the gradient of an energy keep the sum of both energies.
  const float dt = 0.01F;
  place_atoms(x, 0.15);
  status = status ? status : compute(x, &energy, f);
  for (int step = 0; step < MD_STEPS && !status; step++) {
    double kinetic = 0;
    for (int i = 0; i < COORDINATES; i++) v[i] += dt / 2 * f[i], x[i] += dt * v[i];
    status = compute(x, &energy, f);
    for (int i = 0; i < COORDINATES; i++) v[i] += dt / 2 * f[i], kinetic += (double)v[i] * (double)v[i] / 2;
    if (!step) first = kinetic + (double)energy;
    worst = fmax(worst, fabs(kinetic + (double)energy - first));
    moved = fmax(moved, kinetic);
  }
  printf("%d steps: the energy %.3f stays within %.1e, while up to %.3f of it is motion\n", MD_STEPS, first, worst,
         moved);
  return status || sqrt(square / size) > 0.1 || worst > 0.01 || moved < 0.01;
}
