// Code generation: scheduled kernels → C text → machine code that is loaded and called.
#ifndef NGRAD_BACKENDS_CODEGEN_CODEGEN_H
#define NGRAD_BACKENDS_CODEGEN_CODEGEN_H

#include "backends/codegen/isa.h"
#include "ir/diagnostics.h"
#include "ir/kernel.h"

// Writes the C source and header of a program. The source stands alone: C11, libc and libm. `identifier` is the
// prefix of every external symbol. False when out of memory.
typedef struct EmitOptions {
  const Isa *isa;
  const char *identifier;
  bool for_loading; // adds the entry point that compiled_run calls, and leaves OpenMP out
} EmitOptions;
bool emit_program(const Program *p, const EmitOptions *options, Text *source, Text *header);

// The name as the identifier of a C function: letters and digits stay, all else becomes an underscore and its code; an
// underscore follows what C or its library calls so; of a very long one the beginning stays, and a hash.
void emit_identifier(const char *name, Text *out);

typedef struct Compiled Compiled;

typedef struct CompileTimes {
  double emit_ms, compile_ms, load_ms;
  bool was_cached;
} CompileTimes;

// Emits, compiles with the system's C compiler unless the cache has it, and loads. NULL after telling why; `status`
// says whether it was the compiler (true) or anything else.
Compiled *codegen_compile(const Program *p, const Isa *isa, const Allocator *allocator, CompileTimes *times,
                          bool *compiler_failed, Diagnostics *d);
// Pointers are parallel to the graph's inputs and outputs. Safe from several threads. False: out of memory.
bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads);
size_t compiled_workspace_nbytes(const Compiled *c);
void compiled_free(Compiled *c);

#endif
