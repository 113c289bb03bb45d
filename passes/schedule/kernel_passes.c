// Looks up passes over kernels.
#include "passes/schedule/kernel_pass.h"

#include <string.h>

const KernelPass *kernel_pass_at(size_t i) {
  if (i < norder_passes) return &order_passes[i];
  return i < norder_passes + ntune_passes ? &tune_passes[i - norder_passes] : NULL;
}

bool kernel_pass_runs(const KernelPass *pass, const ScheduleOverrides *overrides) {
  if (pass->use == FOR_SPEED && overrides->for_size) return false;
  return pass->use == NEEDED || !schedule_disables(overrides, pass->name);
}

const KernelPass *kernel_pass_find(const char *name) {
  const KernelPass *pass = NULL;
  for (size_t i = 0; (pass = kernel_pass_at(i)) && strcmp(pass->name, name) != 0;) i++;
  return pass;
}
