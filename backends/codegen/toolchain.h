// The system's C compiler and the cache of what it made.
#ifndef NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_H
#define NGRAD_BACKENDS_CODEGEN_TOOLCHAIN_H

#include "ir/diagnostics.h"

// The shared object made of `source`, loaded. The compiler is $CC, else cc; it is run without a shell, and only when
// the cache has no sound entry for this source, these flags and this compiler. The cache is $XDG_CACHE_HOME/ngrad,
// else ~/.cache/ngrad: private to the user, entries written under another name and then renamed, each with a digest
// at its end; a damaged one is made again. Where there is no such folder, nothing is kept.
//
// Returns a handle for dlsym and dlclose. NULL after telling why; *compiler_failed says whether it was the compiler.
typedef struct ToolchainTimes {
  double compile_ms, load_ms;
  bool was_cached;
} ToolchainTimes;
void *toolchain_load(const Text *source, ToolchainTimes *times, bool *compiler_failed, Diagnostics *d);

double milliseconds_now(void); // of a clock that only goes forward

#endif
