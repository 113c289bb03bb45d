// How much memory this process may still take, as the system says.
#ifndef NGRAD_FRONTEND_API_AVAILABLE_MEMORY_H
#define NGRAD_FRONTEND_API_AVAILABLE_MEMORY_H

#include <stdint.h>

// Bytes: the least of the machine's available memory, what each control group that the process is in leaves (version 1
// and 2, nested ones included), and the process's own limits on its address space and data. `root` is put before the
// paths of /proc and /sys ("" but in tests).
uint64_t available_memory(const char *root);

#endif
