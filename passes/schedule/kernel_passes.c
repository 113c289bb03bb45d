// Looks up passes over kernels, and says which run and are shown.
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

bool schedule_disables(const ScheduleOverrides *overrides, const char *pass) {
  for (size_t i = 0; i < overrides->ndisabled; i++)
    if (strcmp(overrides->disabled[i], pass) == 0) return true;
  return false;
}

bool kernel_pass_runs(const KernelPass *pass, const ScheduleOverrides *overrides) {
  if (pass->use == FOR_SPEED && overrides->for_size) return false;
  return pass->use == NEEDED || !schedule_disables(overrides, pass->name);
}

bool schedule_keep_text(Schedule *s, const ScheduleOverrides *overrides, const char *pass) {
  if (!overrides->after || strcmp(overrides->after, pass) != 0) return true;
  Text text;
  text_init(&text, s->kernel->arena->allocator);
  schedule_print(s, &text);
  s->shown = text.out_of_memory ? NULL : arena_format(s->kernel->arena, "%s", text_string(&text));
  text_deinit(&text);
  s->kernel->out_of_memory |= !s->shown;
  return s->shown;
}
