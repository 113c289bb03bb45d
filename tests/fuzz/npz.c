// Any bytes as a .npz file: its entries are read, or refused with errors.
#include "frontend/npz/npz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  enum { COUNT = 2 };
  char path[64];
  Diagnostics d;
  NpzEntry entries[COUNT] = {{"w", {.type = TYPE_F32, .rank = 1, .extent = {-1}}}, {"step", {.type = TYPE_S64}}};
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, nbytes) != (ssize_t)nbytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  diagnostics_init(&d, &system_allocator);
  bool ok = npz_read(path, entries, COUNT, nbytes % 2, &system_allocator, &d);
  if (ok != (d.nerrors == 0) && !d.out_of_memory) abort();
  double sum = 0;
  for (size_t e = 0; e < COUNT; e++) {
    Tensor *t = &entries[e].tensor;
    for (int64_t i = 0; t->data && i < tensor_nelems(t); i++) sum += type_load(t->type, t->data, (size_t)i);
    tensor_free(t, &system_allocator);
  }
  volatile double sink = sum; // loads every element
  (void)sink;
  close(fd);
  diagnostics_deinit(&d);
  return 0;
}
