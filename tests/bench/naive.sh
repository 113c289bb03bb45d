#!/bin/sh
# Times scalar C that ngrad emits for products beside three plain loops, compiled with the same flags: the minimum of
# five calls in turns. Usage: naive.sh NGRAD [FLAG...]; the default flag is -O3.
set -eu
program=$(realpath "$1")
shift
[ $# -gt 0 ] || set -- -O3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

cat >main.c <<'C'
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static float a[M * K], b[K * N], c[M * N], d[M * N];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static __attribute__((noinline)) void three_loops(void) {
  for (int i = 0; i < M; i++)
    for (int j = 0; j < N; j++) {
      float sum = 0;
      for (int k = 0; k < K; k++) sum += a[i * K + k] * b[k * N + j];
      c[i * N + j] = sum;
    }
}

int main(void) {
  void *workspace = malloc(product_WORKSPACE_NBYTES + 64);
  void *aligned = (char *)workspace + (64 - (size_t)workspace % 64);
  double loops = 1e9, ours = 1e9;
  for (int i = 0; i < M * K; i++) a[i] = (float)(i % 17 - 8);
  for (int i = 0; i < K * N; i++) b[i] = (float)(i % 13 - 6);
  for (int run = 0; run < 5; run++) {
    const double start = now();
    three_loops();
    const double middle = now();
    if (product(a, b, d, aligned, product_WORKSPACE_NBYTES, product_ISA_SCALAR) != product_OK) return 1;
    const double end = now();
    if (middle - start < loops) loops = middle - start;
    if (end - middle < ours) ours = end - middle;
  }
  for (int i = 0; i < M * N; i++)
    if (c[i] != d[i]) return 2; // the sums are exact
  printf("%5d x %5d x %5d %10.3f %10.3f %7.2f\n", M, N, K, 1e3 * loops, 1e3 * ours, loops / ours);
  free(workspace);
  return 0;
}
C

echo "cc $*"
echo "    M x     N x     K   loops ms   ngrad ms   ratio"
for shape in '256 256 256' '960 960 1024' '64 64 576' '50 1024 3136' '125 64 64'; do
  m=${shape%% *} k=${shape##* } n=${shape#* }
  n=${n% *}
  cat >product.yaml <<YAML
format: ngrad/1
name: product
inputs: [{name: a, type: f32, shape: [$m, $k]}, {name: b, type: f32, shape: [$k, $n]}]
nodes: [{op: MatMul, inputs: [a, b], outputs: [c]}]
outputs: [c]
YAML
  "$program" emit product.yaml --isa scalar --threads none -o . >/dev/null
  ${CC:-cc} "$@" -DM="$m" -DN="$n" -DK="$k" main.c product.c -o product -lm
  ./product
done
