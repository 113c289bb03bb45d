// A program of a project that takes two packages of ngrad: the gradients of a layer norm and of a batch norm, for
// batches of any size. Compares them with f64 and with the bounds of docs/errors.md, for each instruction set.
#include "batch_norm_gradient.h"
#include "layer_norm_gradient.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_ROWS = 200, CHANNELS = 96, IMAGE = 49, MOST = MOST_ROWS * CHANNELS * IMAGE };
static float x[MOST], dy[MOST], dx[MOST], mean[MOST_ROWS], var[MOST_ROWS], scale[CHANNELS], dscale[CHANNELS],
    dshift[CHANNELS];
static double largest; // error, as a part of its bound

static double g(double k) {
  const double u = 0x1p-24;
  return k * u / (1 - k * u);
}

static double row(double n) {
  return fmin(ceil(n / 16), 64) + 5;
}

static double column(double n) {
  return fmin(n, fmin(fmax(16 * ceil(n / 1024), 64), 256)) + 1;
}

static void hold(double got, double exact, double bound) {
  const double part = fabs(got - exact) / bound;
  if (!(part <= largest)) largest = part;
}

static void fill(double far) {
  uint32_t state = 1;
  for (int i = 0; i < MOST; i++) {
    state = state * 1664525U + 1013904223U;
    x[i] = (float)(far + (double)(state >> 8) * 0x1p-23 - 1);
    state = state * 1664525U + 1013904223U;
    dy[i] = (float)((double)(state >> 8) * 0x1p-23 - 1);
  }
  for (int i = 0; i < MOST_ROWS; i++) mean[i] = (float)(far + i * 1e-3), var[i] = (float)(0.3 + i * 1e-3);
  for (int i = 0; i < CHANNELS; i++) scale[i] = (float)(0.5 + i * 0.01);
}

static void check_layer_norm(int64_t rows) {
  const double h = row(CHANNELS);
  double sum[CHANNELS] = {0}, size[CHANNELS] = {0}, plain[CHANNELS] = {0}, plain_size[CHANNELS] = {0};
  for (int64_t r = 0; r < rows; r++) {
    const double deviation = sqrt(var[r] + (double)1e-5F);
    double first = 0, second = 0, first_size = 0, second_size = 0;
    for (int c = 0; c < CHANNELS; c++) {
      const double normal = ((double)x[r * CHANNELS + c] - mean[r]) / deviation, d = dy[r * CHANNELS + c],
                   e = d * scale[c];
      first += e / CHANNELS, first_size += fabs(e) / CHANNELS;
      second += e * normal / CHANNELS, second_size += fabs(e * normal) / CHANNELS;
      sum[c] += d * normal, size[c] += fabs(d * normal), plain[c] += d, plain_size[c] += fabs(d);
    }
    for (int c = 0; c < CHANNELS; c++) {
      const double normal = ((double)x[r * CHANNELS + c] - mean[r]) / deviation,
                   e = (double)dy[r * CHANNELS + c] * scale[c];
      hold(dx[r * CHANNELS + c], (e - first - normal * second) / deviation,
           (g(5) * fabs(e) + g(h + 9) * first_size + g(h + 14) * fabs(normal) * second_size) / deviation);
    }
  }
  for (int c = 0; c < CHANNELS; c++) {
    hold(dscale[c], sum[c], g(column((double)rows) + 6) * size[c]);
    hold(dshift[c], plain[c], g(column((double)rows)) * plain_size[c]);
  }
}

static void check_batch_norm(int64_t images) {
  const int64_t n = images * IMAGE;
  const double h = column((double)n);
  for (int c = 0; c < CHANNELS; c++) {
    const double deviation = sqrt(var[c] + (double)1e-5F);
    double first = 0, second = 0, first_size = 0, second_size = 0;
    for (int64_t i = 0; i < n; i++) {
      const double d = dy[i * CHANNELS + c], normal = ((double)x[i * CHANNELS + c] - mean[c]) / deviation;
      first += d, first_size += fabs(d), second += d * normal, second_size += fabs(d * normal);
    }
    for (int64_t i = 0; i < n; i++) {
      const double d = dy[i * CHANNELS + c], normal = ((double)x[i * CHANNELS + c] - mean[c]) / deviation;
      const double factor = scale[c] / deviation, count = (double)n;
      hold(dx[i * CHANNELS + c], factor * (d - first / count - normal * second / count),
           factor * (g(6) * fabs(d) + g(h + 8) * first_size / count + g(h + 12) * fabs(normal) * second_size / count));
    }
    hold(dscale[c], second, g(h + 6) * second_size);
    hold(dshift[c], first, g(h) * first_size);
  }
}

int main(void) {
  static const int64_t sizes[] = {1, 3, 70, MOST_ROWS};
  for (int far = 0; far < 2; far++)
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
      for (int isa = 0; isa < 32; isa++) {
        const int64_t n = sizes[i];
        const size_t nbytes = layer_norm_gradient_workspace_nbytes(n), others = batch_norm_gradient_workspace_nbytes(n);
        void *workspace = aligned_alloc(64, (nbytes > others ? nbytes : others) + 64);
        fill(far * 100);
        if (layer_norm_gradient_has_isa(isa)) {
          if (layer_norm_gradient(n, x, dy, mean, var, scale, dx, dscale, dshift, workspace, nbytes, isa)) return 1;
          check_layer_norm(n);
        }
        if (batch_norm_gradient_has_isa(isa)) {
          if (batch_norm_gradient(n, x, dy, mean, var, scale, dx, dscale, dshift, workspace, others, isa)) return 1;
          check_batch_norm(n);
        }
        free(workspace);
      }
  printf("largest error: %.2f of its bound\n", largest);
  return largest > 0.01 && largest <= 1 ? 0 : 1;
}
