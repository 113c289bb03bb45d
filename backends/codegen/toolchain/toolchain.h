// Compiles C with the system's compiler, caches the result, and loads it.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_TOOLCHAIN_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_TOOLCHAIN_H

#include "backends/codegen/toolchain/compiler_command.h"

typedef struct Loaded {
  void *library; // a handle for dlclose, owned by the caller
  void *symbol;
} Loaded;

typedef struct ToolchainTimes {
  double compile_ms, load_ms;
  bool was_cached;
} ToolchainTimes;

// Compiles `source` to a shared object, loads it and looks up `symbol`. The compiler gets a fixed list
// of flags ($CFLAGS is not used), is run without a shell, and is run only if the cache has no valid entry for this
// source, these flags and this compiler (kernel_cache.h). The cache is $XDG_CACHE_HOME/ngrad, else ~/.cache/ngrad. If
// the cache cannot be written, or code in it cannot be executed, a warning is reported once, and the compiler works in
// a private folder in $TMPDIR, /tmp, $XDG_RUNTIME_DIR, /dev/shm or /var/tmp, which is removed after loading.
//
// A compiler that runs longer than timeout_s seconds (0: no limit) is killed with its process group.
//
// False after reporting an error; *compiler_failed says whether the compiler failed.
bool toolchain_load(const Text *source, const char *symbol, const CompilerChoice *compiler, double timeout_s,
                    Loaded *loaded, ToolchainTimes *times, bool *compiler_failed, Diagnostics *d);

double milliseconds_now(void); // monotonic time

#endif
