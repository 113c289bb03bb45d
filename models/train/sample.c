// Continues a text with a byte-level GPT, gpt_bytes.yaml or one of gpt.sh's of that name:
//
//   ngrad emit gpt/gpt_bytes_infer.yaml --dim B=1 --threads none -o gpt
//   cc -std=c11 -O2 -I gpt sample.c gpt/gpt_bytes_infer.c -lm -o sample
//   ./sample gpt/gpt_bytes.npz BEGINNING [BYTES [TEMPERATURE [SEED]]]
//
// With temperature 0 each byte is the likeliest one.
#include "gpt_bytes_infer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VOCABULARY = 256 };
#ifndef CONTEXT
#define CONTEXT 128
#endif

static _Alignas(64) unsigned char parameters[gpt_bytes_infer_PARAMETERS_NBYTES];
static _Alignas(64) unsigned char workspace[gpt_bytes_infer_WORKSPACE_NBYTES];
static float logits[CONTEXT][VOCABULARY];

// A number in [0, 1): splitmix64.
static double next_uniform(uint64_t *state) {
  uint64_t z = *state += 0x9E3779B97F4A7C15U;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return (double)((z ^ z >> 31) >> 11) / 9007199254740992.0;
}

static int choose_byte(const float *logit, double temperature, uint64_t *state) {
  double weight[VOCABULARY], sum = 0;
  int best = 0;
  for (int i = 1; i < VOCABULARY; i++)
    if (logit[i] > logit[best]) best = i;
  if (temperature <= 0) return best;
  for (int i = 0; i < VOCABULARY; i++) sum += weight[i] = exp((logit[i] - logit[best]) / temperature);
  double left = next_uniform(state) * sum;
  for (int i = 0; i < VOCABULARY; i++)
    if ((left -= weight[i]) < 0) return i;
  return best;
}

int main(int argc, char **argv) {
  if (argc < 3 || !*argv[2])
    return fprintf(stderr, "usage: %s FILE.npz BEGINNING [BYTES [TEMPERATURE [SEED]]]\n", *argv), 2;
  const long nbytes = argc > 3 ? atol(argv[3]) : 500;
  const double temperature = argc > 4 ? atof(argv[4]) : 0.8;
  uint64_t seed = argc > 5 ? strtoull(argv[5], NULL, 10) : 0;
  int32_t tokens[CONTEXT] = {0}; // the end of the text so far; what is behind it changes no logits before
  int status = gpt_bytes_infer_load(parameters, argv[1]), count = 0;
  if (status != gpt_bytes_infer_OK) return fprintf(stderr, "%s: status %d\n", argv[1], status), 1;
  long length = (long)strlen(argv[2]);
  for (long i = 0; i < length + nbytes; i++) {
    int byte = i < length ? (unsigned char)argv[2][i] : 0;
    if (i >= length) {
      status = gpt_bytes_infer(tokens, logits[0], parameters, workspace, sizeof workspace, gpt_bytes_infer_ISA_BEST);
      if (status != gpt_bytes_infer_OK) return 1;
      byte = choose_byte(logits[count - 1], temperature, &seed);
    }
    putchar(byte);
    if (count == CONTEXT) memmove(tokens, tokens + 1, sizeof *tokens * --count);
    tokens[count++] = byte;
  }
  putchar('\n');
  return 0;
}
