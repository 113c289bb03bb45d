// Looks up passes over kernels.
#include "passes/schedule/kernel_pass.h"

#include <string.h>

const KernelPass *kernel_pass_at(size_t i) {
  if (i < norder_passes) return &order_passes[i];
  return i < norder_passes + ntune_passes ? &tune_passes[i - norder_passes] : NULL;
}

const KernelPass *kernel_pass_find(const char *name) {
  const KernelPass *pass = NULL;
  for (size_t i = 0; (pass = kernel_pass_at(i)) && strcmp(pass->name, name) != 0;) i++;
  return pass;
}
