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
// A source may have form feeds where it can be cut: the text between two of them compiles with the text before the
// first and after the last alone, and so does any sequence of such texts. If the source is long, the compiler gets it
// in parts, as many at once as there are processors, and then links them.
//
// A compiler that runs longer than timeout_s seconds (0: no limit; for all parts together) is killed with its process
// group.
//
// False after reporting an error; *compiler_failed says whether the compiler failed.
bool toolchain_load(const Text *source, const char *symbol, const CompilerChoice *compiler, double timeout_s,
                    Loaded *loaded, ToolchainTimes *times, bool *compiler_failed, Diagnostics *d);

#endif
