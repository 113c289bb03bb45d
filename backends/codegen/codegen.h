// Code generation: scheduled kernels → C text → machine code that is loaded and called.
#ifndef NGRAD_BACKENDS_CODEGEN_CODEGEN_H
#define NGRAD_BACKENDS_CODEGEN_CODEGEN_H

#include "backends/codegen/isa.h"
#include "ir/graph/tensor.h"
#include "ir/kernel/kernel.h"
#include "ir/operators/operator.h"
#include "ir/support/diagnostics.h"

// A program as C for one instruction set, with the entry point that compiled_run calls. Constants of more than one
// number are given to that, or stand in the text. Profiled, it tells its caller when each loop is done; else the text
// has no trace of it. False: out of memory.
bool emit_for_loading(const Program *p, const Isa *isa, const char *identifier, bool are_constants_given,
                      bool is_profiled, Text *source);

typedef enum EmitThreads { EMIT_SERIAL, EMIT_OPENMP, EMIT_CALLBACK } EmitThreads;

enum { MOST_IN_PLACE = 16 }; // inputs that are told of an output
typedef struct InPlace {     // inputs, by number, of which an output may be in place
  uint32_t count;
  uint32_t inputs[MOST_IN_PLACE]; // ascending
} InPlace;

// A graph as a file and a header to keep: C11 and C++17, libc and libm.
typedef struct EmittedFile {
  const char *file_stem; // the header is file_stem.h
  const char *prefix;    // of every external symbol; a C identifier
  const char *hash;      // of the graph, in hexadecimal
  EmitThreads threads;
  const Program *const *programs; // the graph's, one for each instruction set, some the same; scalar is among them
  const Isa *const *isas;         // in the order of the table
  size_t nisas;
  InPlace *in_place;       // emit_file sets, by output; or NULL
  bool has_open_workspace; // emit_file sets: how much is needed depends on open dims
} EmittedFile;
bool emit_file(EmittedFile *f, const Allocator *allocator, Text *source, Text *header); // false: out of memory

// A program that tests an emitted file. Its inputs are made up, here by self_test_input, there again.
typedef struct SelfTestCase {
  int64_t extents[MAX_OPEN_DIMS]; // that the call gives
  const int64_t *nelems;          // by input, then by output
  const Tensor *expected;         // by output: what the interpreter makes of those inputs
  const double *magnitudes;       // by output, as interpret_magnitudes says
} SelfTestCase;

typedef struct SelfTest {
  const EmittedFile *file;  // with in_place as emit_file has set it
  const ValueRange *ranges; // by input
  const SelfTestCase *cases;
  size_t ncases; // at least 1
} SelfTest;
void self_test_input(Tensor *t, size_t input, ValueRange range);
bool emit_self_test(const SelfTest *t, Text *out); // false: out of memory

// The name as the identifier of a C function: letters and digits stay, all else becomes an underscore and its code; an
// underscore follows what C or its library calls so; of a very long one the beginning stays, and a hash.
void emit_identifier(const char *name, Text *out);

typedef struct Compiled Compiled;

typedef struct CompileTimes {
  double emit_ms, compile_ms, load_ms;
  bool was_cached;
} CompileTimes;

// Emits, compiles with the system's C compiler, in at most timeout_s (0: any time), unless the cache has it, and loads.
// What comes of it reads the constants of p's graph, which must outlive it. NULL after telling why; *compiler_failed
// says whether it was the compiler or anything else.
Compiled *codegen_compile(const Program *p, const Isa *isa, bool is_profiled, double timeout_s,
                          const Allocator *allocator, CompileTimes *times, bool *compiler_failed, Diagnostics *d);
// Pointers are parallel to the graph's inputs and outputs. Safe from several threads. Of what was compiled to be
// profiled, spent_ms (NULL: nobody asks) grows by the time until the first loop, [0], and by that of each loop, the
// first kernel's from [1] on. False: out of memory.
bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, double *spent_ms);
size_t compiled_workspace_nbytes(const Compiled *c);
void compiled_free(Compiled *c);

#endif
