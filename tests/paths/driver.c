// Calls an emitted inference function with trained states: driver STATES.npz X.npy Y.npy N [T]. HEADER is the emitted
// header, NAME the function's name, EXTENTS its first arguments. With STORED, extents are fixed, and the states are in
// the emitted source.
#include HEADER

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
enum { CLASSES = 3, LINE = 64 };

// Memory aligned to a cache line.
static void *lines(size_t nbytes) {
  void *memory = aligned_alloc(LINE, (nbytes / LINE + 1) * LINE);
  if (!memory) exit(2);
  return memory;
}

// The elements of an .npy file of version 1.
static float *read_npy(const char *path) {
  static char bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  const size_t nbytes = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  const size_t head = 10 + (size_t)(unsigned char)bytes[8] + 256 * (size_t)(unsigned char)bytes[9];
  if (!file || nbytes < head) exit(2);
  fclose(file);
  float *items = lines(nbytes - head);
  memcpy(items, bytes + head, nbytes - head);
  return items;
}

static void write_npy(const char *path, const float *items, int64_t rows) {
  char head[128];
  FILE *file = fopen(path, "wb");
  if (!file) exit(2);
  const int used = snprintf(head, sizeof head, "\x93NUMPY%c%cv%c", 1, 0, 0);
  memset(head + used, ' ', sizeof head - (size_t)used);
  head[8] = sizeof head - 10;
  head[9] = 0;
  const int length =
      snprintf(head + 10, sizeof head - 10, "{'descr': '<f4', 'fortran_order': False, 'shape': (%lld, %d), }",
               (long long)rows, CLASSES);
  head[10 + length] = ' ';
  head[sizeof head - 1] = '\n';
  fwrite(head, 1, sizeof head, file);
  fwrite(items, sizeof *items, (size_t)rows * CLASSES, file);
  fclose(file);
}

int main(int argc, char **argv) {
  const int64_t N = argc > 4 ? strtoll(argv[4], NULL, 10) : 0, T = argc > 5 ? strtoll(argv[5], NULL, 10) : 0;
  float *y = lines((size_t)N * CLASSES * sizeof *y);
  (void)T;
  if (argc < 5) return 1;
#ifdef STORED
  const size_t nbytes = JOIN(NAME, _workspace_nbytes)(EXTENTS);
  const int status = NAME(EXTENTS, read_npy(argv[2]), y, lines(nbytes), nbytes, JOIN(NAME, _ISA_BEST));
#else
  void *parameters = lines(JOIN(NAME, _PARAMETERS_NBYTES));
  if (JOIN(NAME, _load)(parameters, argv[1])) return 1;
  const size_t nbytes = JOIN(NAME, _workspace_nbytes)(EXTENTS);
  const int status = NAME(EXTENTS, read_npy(argv[2]), y, parameters, lines(nbytes), nbytes, JOIN(NAME, _ISA_BEST));
#endif
  if (status) return fprintf(stderr, "status %d\n", status), 1;
  write_npy(argv[3], y, N);
  return 0;
}
