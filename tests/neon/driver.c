// Runs kernels made for another processor: reads cases from a file, calls the entry point of each, and writes what it
// made to another. Compiled for that processor together with the kernels and a table of their entry points.
//
// In the file, as often as there are entry points: the numbers of inputs and outputs and the bytes of workspace, then
// for each input its bytes' number and its bytes, then for each output its bytes' number. All numbers are uint64_t.
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_TENSORS = 1024, ALIGNMENT = 64 };

typedef void Task(const void *args, size_t block);
typedef struct Pool {
  void (*add)(void *context, size_t loop, size_t nblocks, Task *task, const void *args, size_t nbytes);
  void (*run)(void *context);
  void *context;
  const void *const *constants;
} Pool;
typedef void Entry(const void *const *inputs, void *const *outputs, void *workspace, const Pool *pool);

extern Entry *const entries[];
extern const size_t nentries;

static void run_loop(void *context, size_t loop, size_t nblocks, Task *task, const void *args, size_t nbytes) {
  (void)context, (void)loop, (void)nbytes;
  for (size_t b = nblocks; b-- > 0;) task(args, b); // in another order than the host's
}

static void run_no_more(void *context) {
  (void)context;
}

static void fail(const char *what) {
  fprintf(stderr, "driver: %s\n", what);
  exit(1);
}

static uint64_t read_number(FILE *f) {
  uint64_t number;
  if (fread(&number, sizeof number, 1, f) != 1) fail("cases end early");
  return number;
}

static void *new_memory(uint64_t nbytes) {
  void *p = aligned_alloc(ALIGNMENT, (size_t)(nbytes / ALIGNMENT + 1) * ALIGNMENT);
  if (!p) fail("out of memory");
  return p;
}

static void run_case(Entry *entry, FILE *in, FILE *out) {
  static const void *inputs[MOST_TENSORS];
  static void *outputs[MOST_TENSORS];
  static uint64_t nbytes[MOST_TENSORS];
  uint64_t ninputs = read_number(in), noutputs = read_number(in), workspace_nbytes = read_number(in);
  if (ninputs > MOST_TENSORS || noutputs > MOST_TENSORS) fail("too many tensors");
  for (uint64_t i = 0; i < ninputs; i++) {
    uint64_t n = read_number(in);
    void *data = new_memory(n);
    if (fread(data, 1, n, in) != n) fail("cases end early");
    inputs[i] = data;
  }
  for (uint64_t k = 0; k < noutputs; k++) outputs[k] = new_memory(nbytes[k] = read_number(in));
  void *workspace = new_memory(workspace_nbytes);
  const Pool pool = {run_loop, run_no_more, NULL, NULL};
  entry(inputs, outputs, workspace, &pool);
  for (uint64_t k = 0; k < noutputs; k++)
    if (fwrite(outputs[k], 1, nbytes[k], out) != nbytes[k]) fail("cannot write");
  for (uint64_t i = 0; i < ninputs; i++) free((void *)inputs[i]);
  for (uint64_t k = 0; k < noutputs; k++) free(outputs[k]);
  free(workspace);
}

int main(int argc, char **argv) {
  FILE *in = argc == 3 ? fopen(argv[1], "rb") : NULL, *out = in ? fopen(argv[2], "wb") : NULL;
  if (!out) fail("expected a file of cases and one for results");
  for (size_t i = 0; i < nentries; i++) run_case(entries[i], in, out);
  if (fclose(out) != 0) fail("cannot write");
  fclose(in);
  return 0;
}
