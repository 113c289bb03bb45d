// Any bytes as a data set, in the formats that are recognised by content: opened, or refused with an error.
#include "frontend/data/data.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  char path[64];
  Diagnostics d;
  DataSet opened;
  const int fd = memfd_create("fuzz", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, nbytes) != (ssize_t)nbytes) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  diagnostics_init(&d, &system_allocator);
  const bool ok = data_open(path, &opened, &system_allocator, &d);
  if (ok != (d.nerrors == 0) && !d.out_of_memory) abort();
  if (ok) {
    const Tensor *t = &opened.tensor;
    double sum = 0;
    for (int64_t i = 0; i < tensor_nelems(t); i++) sum += type_load(t->type, t->data, (size_t)i);
    volatile double sink = sum; // every element was there to be loaded
    (void)sink;
    data_close(&opened, &system_allocator);
  }
  close(fd);
  diagnostics_deinit(&d);
  return 0;
}
