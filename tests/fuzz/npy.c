// Any bytes as a .npy file: read, or refused with an error.
#include "frontend/npy/npy.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t nbytes) {
  Diagnostics d;
  Tensor t = {0};
  diagnostics_init(&d, &system_allocator);
  bool ok = npy_read_bytes("fuzz", data, nbytes, TYPE_NONE, NULL, &t, &system_allocator, &d);
  if (ok != (d.nerrors == 0) && !d.out_of_memory) abort();
  double sum = 0;
  for (int64_t i = 0; ok && i < tensor_nelems(&t); i++) sum += type_load(t.type, t.data, (size_t)i);
  volatile double sink = sum; // loads every element
  (void)sink;
  tensor_free(&t, &system_allocator);
  diagnostics_deinit(&d);
  return 0;
}
