// The system's C compiler and the cache of what it made.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_TOOLCHAIN_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_TOOLCHAIN_H

#include "ir/support/diagnostics.h"

typedef struct Loaded {
  void *library; // for dlclose
  void *symbol;
} Loaded;

typedef struct ToolchainTimes {
  double compile_ms, load_ms;
  bool was_cached;
} ToolchainTimes;

// The shared object made of `source`, loaded, and its symbol. The compiler is $CC, else cc, with the library's own
// flags and not those of $CFLAGS; it is run without a shell, and only when the cache has no sound entry for this
// source, these flags and this compiler (backends/codegen/toolchain/kernel_cache.h). The cache is
// $XDG_CACHE_HOME/ngrad, else
// ~/.cache/ngrad. Where nothing can be kept there or run from there, a warning says so once, and a private folder in
// $TMPDIR, /tmp, $XDG_RUNTIME_DIR, /dev/shm or /var/tmp does, which is removed after loading.
//
// A compiler that takes more than timeout_s (0: none) is killed with all of its process group.
//
// False after telling why; *compiler_failed says whether it was the compiler.
bool toolchain_load(const Text *source, const char *symbol, double timeout_s, Loaded *loaded, ToolchainTimes *times,
                    bool *compiler_failed, Diagnostics *d);

double milliseconds_now(void); // of a clock that only goes forward

#endif
