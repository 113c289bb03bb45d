// Calls the functions that orders.sh emits, on the same numbers, with open and with fixed extents, and compares their
// results bit by bit. Samples are the first elements of larger batches.
#include "calls.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Fixed {
  int64_t n;
  int (*call)(int64_t n, void *const *tensors, void *workspace, size_t workspace_nbytes);
  size_t (*workspace_nbytes)(void);
} Fixed;
#include "table.h"

enum { LINE = 64, MOST = 1024, LEAST_WIDTH = 5, NFIXED = sizeof fixed / sizeof *fixed };

static void *lines(size_t nbytes) { // aligned to a cache line
  void *memory = aligned_alloc(LINE, (nbytes / LINE + 1) * LINE);
  if (!memory) exit(2);
  return memory;
}

// The bytes of a tensor of f32.
static size_t tensor_nbytes(const opened_tensor *t, int64_t n) {
  size_t nbytes = sizeof(float);
  for (int axis = 0; axis < t->rank; axis++)
    nbytes *= (size_t)(t->extent[axis] < 0 ? -t->extent[axis] * n : t->extent[axis]);
  return nbytes;
}

// The length of a name without "_alone" and what follows, with which a part ends that has some results of another part.
static size_t stem_length(const char *name) {
  const char *end = strstr(name, "_alone");
  return end ? (size_t)(end - name) : strlen(name);
}

// The number of the tensor of the whole part, of the same stem.
static size_t find_whole(const opened_info *info, size_t i) {
  const char *name = info->tensors[i].name;
  const size_t length = stem_length(name);
  for (size_t other = 0; name[length] && other < info->ninputs + info->noutputs; other++)
    if (strncmp(info->tensors[other].name, name, length) == 0 && !info->tensors[other].name[length]) return other;
  return i;
}

// Numbers from 1/2 to 3/2 or, but for variances, below 0: each depends on its place and its tensor's stem alone.
static void fill(const opened_tensor *t, float *items, size_t count) {
  uint64_t state = 14695981039346656037U;
  for (size_t i = 0; i < stem_length(t->name); i++) state = (state ^ (unsigned char)t->name[i]) * 1099511628211U;
  for (size_t i = 0; i < count; i++) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    items[i] = 0.5F + (float)(state >> 40) / (1 << 24);
    if (state >> 39 & 1 && strncmp(t->name, "variance", strlen("variance")) != 0) items[i] = -items[i];
  }
}

// Memory for all tensors; the inputs are filled.
static void make_tensors(const opened_info *info, int64_t n, void **tensors) {
  for (size_t i = 0; i < info->ninputs + info->noutputs; i++) {
    const size_t nbytes = tensor_nbytes(&info->tensors[i], n);
    tensors[i] = lines(nbytes);
    memset(tensors[i], 0xFF, nbytes);
    if (i < info->ninputs) fill(&info->tensors[i], tensors[i], nbytes / sizeof(float));
  }
}

// Whether the result is a number in each element, and not all are 0.
static bool is_result(const float *items, size_t count) {
  bool is_any = false;
  for (size_t i = 0; i < count; i++) {
    if (items[i] != items[i]) return false;
    is_any |= items[i] != 0;
  }
  return is_any;
}

// FNV-1a of results, as little-endian words.
static uint64_t hashed(uint64_t hash, const float *items, size_t count) {
  for (size_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &items[i], sizeof bits);
    for (int shift = 0; shift < 32; shift += 8) hash = (hash ^ (bits >> shift & 0xFF)) * 1099511628211U;
  }
  return hash;
}

int main(void) {
  uint64_t hash = 14695981039346656037U;
  const opened_info *info = opened_get_info();
  const size_t ntensors = info->ninputs + info->noutputs;
  static void *most[MOST], *open[MOST], *own[MOST];
  int nwrong = 0;
  if (ntensors > MOST) return 2;
  const int64_t largest = fixed[NFIXED - 1].n;
  for (int f = NFIXED - 1; f >= 0; f--) {
    const int64_t n = fixed[f].n;
    void **tensors = n == largest ? most : open;
    make_tensors(info, n, tensors);
    make_tensors(info, n, own);
    const size_t nbytes = opened_workspace_nbytes(n), fixed_nbytes = fixed[f].workspace_nbytes();
    int status = call_opened(n, tensors, lines(nbytes), nbytes);
    if (!status) status = fixed[f].call(n, own, lines(fixed_nbytes), fixed_nbytes);
    if (status) return printf("status %d\n", status), 2;
    for (size_t i = info->ninputs; i < ntensors; i++) {
      const opened_tensor *t = &info->tensors[i];
      const size_t size = tensor_nbytes(t, n);
      const bool is_sample = strncmp(t->name, "row_", 4) == 0;
      if (n < LEAST_WIDTH && strncmp(t->name, "width_", 6) == 0) continue;
      if (n == largest) hash = hashed(hash, own[i], size / sizeof(float));
      const char *wrong = !is_result(own[i], size / sizeof(float))              ? "no numbers"
                          : memcmp(tensors[i], own[i], size) != 0               ? f ? "open, fixed" : "fused, apart"
                          : is_sample && memcmp(tensors[i], most[i], size) != 0 ? "alone, among others"
                          : memcmp(own[i], own[find_whole(info, i)], size) != 0 ? "without other results, with them"
                                                                                : NULL;
      if (wrong) printf("%s, N = %lld: %s\n", t->name, (long long)n, wrong);
      nwrong += wrong != NULL;
    }
  }
  printf("bits %d %016llx\n", info->bits, (unsigned long long)hash);
  return nwrong != 0;
}
