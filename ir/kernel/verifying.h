// Shared by the verifiers of kernels (verify.c) and of schedules (verify_schedule.c).
#ifndef NGRAD_IR_KERNEL_VERIFYING_H
#define NGRAD_IR_KERNEL_VERIFYING_H

#include "ir/kernel/schedule.h"

typedef struct KernelVerifying {
  const Kernel *k;
  const Temporary *temporaries; // temporaries that accesses may refer to
  size_t ntemporaries;
  bool is_scheduled; // expressions may read temporaries and partial results
  Text *why;
} KernelVerifying;

bool verify_any_kernel(const KernelVerifying *v);

// Describes a defect of an access; returns false.
bool wrong_access(const KernelVerifying *v, AccessId id, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
