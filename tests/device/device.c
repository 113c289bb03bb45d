// Trains kws.yaml of docs/microcontrollers.md on an emulated Cortex-M: prints the SHA-256 of all states, and the stack
// and the instructions of a step. With HOST, writes the same samples as files for ngrad fit instead.
#include "kws.h"
#include "samples.h"

#include <stdio.h>
#include <string.h>

enum { SAMPLES = 16, BATCH = 4, STEPS = 100 };

static int32_t label_of(int sample) {
  return sample % WORDS;
}

#ifdef HOST
static int write_npy(const char *path, const char *descr, const char *shape, const void *data, size_t nbytes) {
  char head[128];
  memset(head, ' ', sizeof head);
  memcpy(head, "\x93NUMPY\1\0v", 10);
  head[9] = 0;
  const int length =
      snprintf(head + 10, sizeof head - 10, "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, shape);
  head[10 + length] = ' ';
  head[sizeof head - 1] = '\n';
  FILE *file = fopen(path, "wb");
  if (!file) return 1;
  fwrite(head, 1, sizeof head, file);
  fwrite(data, 1, nbytes, file);
  return fclose(file) != 0;
}

int main(void) {
  static int8_t x[SAMPLES][LENGTH];
  static int32_t labels[SAMPLES];
  for (int i = 0; i < SAMPLES; i++) make_sample(i, x[i]), labels[i] = label_of(i);
  return write_npy("x.npy", "|i1", "16, 98, 40, 1", x, sizeof x) ||
         write_npy("labels.npy", "<i4", "16,", labels, sizeof labels);
}
#else

// Philox-4x32-10, and the order of samples that ngrad.h describes at ng_permutation, for seed 0.
static uint64_t draw(uint32_t i, uint32_t epoch) {
  uint32_t c[4] = {i, 0, epoch, 0x73687566}, k0 = 0, k1 = 0;
  for (int round = 0; round < 10; round++, k0 += 0x9E3779B9U, k1 += 0xBB67AE85U) {
    const uint64_t p = (uint64_t)0xD2511F53U * c[0], q = (uint64_t)0xCD9E8D57U * c[2];
    c[0] = (uint32_t)(q >> 32) ^ c[1] ^ k0, c[1] = (uint32_t)q;
    c[2] = (uint32_t)(p >> 32) ^ c[3] ^ k1, c[3] = (uint32_t)p;
  }
  return (uint64_t)c[0] << 32 | c[1];
}

static void order_samples(uint32_t epoch, int order[SAMPLES]) {
  for (int i = 0; i < SAMPLES; i++) order[i] = i;
  for (int i = SAMPLES - 1; i > 0; i--) {
    const int k = (int)(draw((uint32_t)i, epoch) % (uint64_t)(i + 1)), other = order[k];
    order[k] = order[i];
    order[i] = other;
  }
}

// SHA-256

typedef struct Hash {
  uint32_t h[8];
  unsigned char block[64];
  uint64_t nbytes;
} Hash;

static uint32_t rotated(uint32_t x, int n) {
  return x >> n | x << (32 - n);
}

static void hash_block(Hash *hash) {
  static const uint32_t k[64] = {
      0x428A2F98, 0x71374491, 0xB5C0FBCF, 0xE9B5DBA5, 0x3956C25B, 0x59F111F1, 0x923F82A4, 0xAB1C5ED5,
      0xD807AA98, 0x12835B01, 0x243185BE, 0x550C7DC3, 0x72BE5D74, 0x80DEB1FE, 0x9BDC06A7, 0xC19BF174,
      0xE49B69C1, 0xEFBE4786, 0x0FC19DC6, 0x240CA1CC, 0x2DE92C6F, 0x4A7484AA, 0x5CB0A9DC, 0x76F988DA,
      0x983E5152, 0xA831C66D, 0xB00327C8, 0xBF597FC7, 0xC6E00BF3, 0xD5A79147, 0x06CA6351, 0x14292967,
      0x27B70A85, 0x2E1B2138, 0x4D2C6DFC, 0x53380D13, 0x650A7354, 0x766A0ABB, 0x81C2C92E, 0x92722C85,
      0xA2BFE8A1, 0xA81A664B, 0xC24B8B70, 0xC76C51A3, 0xD192E819, 0xD6990624, 0xF40E3585, 0x106AA070,
      0x19A4C116, 0x1E376C08, 0x2748774C, 0x34B0BCB5, 0x391C0CB3, 0x4ED8AA4A, 0x5B9CCA4F, 0x682E6FF3,
      0x748F82EE, 0x78A5636F, 0x84C87814, 0x8CC70208, 0x90BEFFFA, 0xA4506CEB, 0xBEF9A3F7, 0xC67178F2,
  };
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++) {
    const unsigned char *b = &hash->block[4 * i];
    w[i] = (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
  }
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(v, hash->h, sizeof v);
  for (int i = 0; i < 64; i++) {
    const uint32_t e = rotated(v[4], 6) ^ rotated(v[4], 11) ^ rotated(v[4], 25);
    const uint32_t a = rotated(v[0], 2) ^ rotated(v[0], 13) ^ rotated(v[0], 22);
    const uint32_t t = v[7] + e + ((v[4] & v[5]) ^ (~v[4] & v[6])) + k[i] + w[i];
    const uint32_t u = a + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t;
    v[0] = t + u;
  }
  for (int i = 0; i < 8; i++) hash->h[i] += v[i];
}

static void hash_bytes(Hash *hash, const unsigned char *bytes, size_t n) {
  for (size_t i = 0; i < n; i++) {
    hash->block[hash->nbytes++ % 64] = bytes[i];
    if (hash->nbytes % 64 == 0) hash_block(hash);
  }
}

static void hash_end(Hash *hash) {
  static const unsigned char one = 0x80, zero;
  const uint64_t nbits = 8 * hash->nbytes;
  hash_bytes(hash, &one, 1);
  while (hash->nbytes % 64 != 56) hash_bytes(hash, &zero, 1);
  for (int i = 7; i >= 0; i--) hash_bytes(hash, &(unsigned char){(unsigned char)(nbits >> 8 * i)}, 1);
}

// The device

static _Alignas(64) unsigned char parameters[kws_PARAMETERS_NBYTES], optimizer[kws_OPTIMIZER_NBYTES];
static _Alignas(64) unsigned char workspace[kws_train_step_WORKSPACE_NBYTES];
static int8_t x[BATCH][LENGTH];
static int32_t labels[BATCH];

static void print_hash(void) {
  Hash hash = {
      {0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19}, {0}, 0};
  for (int i = 0; i < kws_NSTATES; i++) {
    const kws_state *s = &kws_get_states()[i];
    hash_bytes(&hash, (s->block ? optimizer : parameters) + s->offset, s->nbytes);
  }
  hash_end(&hash);
  printf("sha256 of the states: ");
  for (int i = 0; i < 8; i++) printf("%08lx", (unsigned long)hash.h[i]);
  printf("\n");
}

enum { STACK = 1 << 15, PAINT = 0x5A };

// Paints the stack below this function's frame.
static __attribute__((noinline)) unsigned char *paint(void) {
  unsigned char *top = (unsigned char *)__builtin_frame_address(0) - 64;
  for (unsigned char *at = top - STACK; at < top; at++) *(volatile unsigned char *)at = PAINT;
  return top;
}

static unsigned long used(const unsigned char *top) {
  const unsigned char *at = top - STACK;
  while (at < top && *(const volatile unsigned char *)at == PAINT) at++;
  return (unsigned long)(top - at);
}

// SysTick counts down at 25 MHz: with -icount shift=0, 40 instructions a tick.
static volatile uint32_t *const systick = (volatile uint32_t *)0xE000E010;

int main(void) {
  int order[SAMPLES], status = kws_init(parameters, optimizer, 0);
  float loss = 0;
  unsigned long ticks = 0;
  unsigned char *const top = paint();
  for (int step = 0; step < STEPS && status == kws_OK; step++) {
    const int first = step * BATCH % SAMPLES;
    if (!first) order_samples((uint32_t)(step * BATCH / SAMPLES), order);
    for (int i = 0; i < BATCH; i++) make_sample(order[first + i], x[i]), labels[i] = label_of(order[first + i]);
    systick[1] = 0xFFFFFF;
    systick[2] = 0;
    systick[0] = 5;
    status = kws_train_step(x[0], labels, &loss, parameters, optimizer, workspace, sizeof workspace, kws_ISA_BEST);
    ticks = 0xFFFFFF - systick[2];
    if (systick[0] & 1 << 16) ticks = 0; // it wrapped around
  }
  printf("status %d, loss %.9g\n", status, (double)loss);
  print_hash();
  printf("stack %lu bytes, %lu instructions a step\n", used(top), 40 * ticks);
  return status;
}
#endif
