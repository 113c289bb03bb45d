// How much more memory this process may take, according to the system.
#ifndef NGRAD_FRONTEND_API_AVAILABLE_MEMORY_H
#define NGRAD_FRONTEND_API_AVAILABLE_MEMORY_H

#include <stdint.h>

// In bytes: the least of the machine's available memory, the remaining memory of each control group of the process
// (version 1 and 2, with all ancestors), and the process's own limits of address space and data. `root` precedes the
// paths of /proc and /sys; it is "" except in tests.
uint64_t available_memory(const char *root);

#endif
