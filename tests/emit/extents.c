// Calls the pair of extents.yaml with every length of rows from none to beyond two vectors of lanes, few rows and as
// many, and for each instruction set: tensors and workspace end where a page that cannot be touched begins, and again
// begin where one ends. Bits are the same each time.
#include "every_extent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { NINPUTS = 10, NOUTPUTS = 6, LANES = 16, MOST = 2 * LANES + 1, ROOM = 1 << 16, MOST_ISAS = 32 };

typedef struct Memory {
  unsigned char *begin, *end; // between pages that cannot be touched
} Memory;

static Memory memories[NINPUTS + NOUTPUTS + 1]; // the last for the workspace
static unsigned char wanted[NOUTPUTS][ROOM];

static Memory new_memory(void) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE);
  unsigned char *p = mmap(NULL, ROOM + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + page, ROOM, PROT_READ | PROT_WRITE) != 0) exit(2);
  return (Memory){p + page, p + page + ROOM};
}

static size_t nbytes_of(const every_extent_tensor *t, const int64_t *dims) {
  size_t nbytes = strcmp(t->type, "f32") == 0 ? sizeof(float) : sizeof(uint16_t);
  const every_extent_info *info = every_extent_get_info();
  for (int axis = 0; axis < t->rank; axis++)
    for (size_t d = 0; d < info->ndims; d++)
      if (strcmp(t->dim[axis], info->dims[d]) == 0) nbytes *= (size_t)dims[d];
  if (nbytes > ROOM) exit(2);
  return nbytes;
}

static int call(const int64_t *dims, void *const *p, size_t nbytes, int isa) {
  return every_extent(dims[0], dims[1], dims[2], p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7], p[8], p[9], p[10],
                      p[11], p[12], p[13], p[14], p[15], p[16], nbytes, isa);
}

// Small numbers, of which every one is positive, as a variance must be.
static void fill(void *data, size_t nbytes, const char *type, size_t seed) {
  const size_t nelems = nbytes / (strcmp(type, "f32") == 0 ? sizeof(float) : sizeof(uint16_t));
  for (size_t i = 0; i < nelems; i++) {
    const float x = 0.5F + (float)((i * 7 + seed * 5) % 32) / 32;
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (strcmp(type, "f32") == 0) memcpy((float *)data + i, &x, sizeof x);
    else ((uint16_t *)data)[i] = (uint16_t)(bits >> 16);
  }
}

static void check(int is_right, const char *what, const int64_t *dims, int isa) {
  if (is_right) return;
  printf("%s with %ld, %ld, %ld, isa %d\n", what, (long)dims[0], (long)dims[1], (long)dims[2], isa);
  exit(1);
}

static void test(const int64_t *dims, int isa, int is_at_end) {
  const every_extent_tensor *tensors = every_extent_get_info()->tensors;
  void *p[NINPUTS + NOUTPUTS + 1];
  size_t nbytes[NINPUTS + NOUTPUTS];
  for (size_t i = 0; i < NINPUTS + NOUTPUTS; i++) {
    nbytes[i] = nbytes_of(&tensors[i], dims);
    p[i] = is_at_end ? memories[i].end - nbytes[i] : memories[i].begin;
    if (i < NINPUTS) fill(p[i], nbytes[i], tensors[i].type, i);
    else memset(p[i], 0xA5, nbytes[i]);
  }
  const size_t workspace_nbytes = every_extent_workspace_nbytes(dims[0], dims[1], dims[2]);
  const Memory *memory = &memories[NINPUTS + NOUTPUTS];
  check(workspace_nbytes <= ROOM && workspace_nbytes % 64 == 0, "workspace", dims, isa);
  p[NINPUTS + NOUTPUTS] = is_at_end ? memory->end - workspace_nbytes : memory->begin;
  check(call(dims, p, workspace_nbytes, isa) == every_extent_OK, "a call", dims, isa);
  for (int o = 0; o < NOUTPUTS; o++) {
    if (isa == every_extent_ISA_SCALAR && is_at_end) memcpy(wanted[o], p[NINPUTS + o], nbytes[NINPUTS + o]);
    check(memcmp(wanted[o], p[NINPUTS + o], nbytes[NINPUTS + o]) == 0, "other bits", dims, isa);
  }
}

static int test_all(int64_t n, int64_t c, int64_t w) {
  const int64_t dims[] = {n, c, w};
  int ncalls = 0;
  for (int isa = every_extent_ISA_SCALAR; isa < MOST_ISAS; isa++)
    for (int is_at_end = 1; is_at_end >= 0 && every_extent_has_isa(isa); is_at_end--, ncalls++)
      test(dims, isa, is_at_end);
  return ncalls;
}

int main(void) {
  static const int64_t few[][2] = {{1, 1}, {3, 2}, {0, 2}, {LANES + 1, 3}, {MOST, 1}};
  int ncalls = 0;
  for (size_t i = 0; i < sizeof memories / sizeof *memories; i++) memories[i] = new_memory();
  for (int64_t length = 0; length <= MOST; length++)
    for (size_t f = 0; f < sizeof few / sizeof *few; f++)
      ncalls += test_all(few[f][0], few[f][1], length) + test_all(length, few[f][1], few[f][0]);
  printf("%d calls\n", ncalls);
  return 0;
}
