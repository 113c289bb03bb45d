// Code generation: scheduled kernels → C text → machine code that is loaded and called.
#ifndef NGRAD_BACKENDS_CODEGEN_CODEGEN_H
#define NGRAD_BACKENDS_CODEGEN_CODEGEN_H

#include "backends/codegen/isa.h"
#include "ir/graph/tensor.h"
#include "ir/kernel/program.h"
#include "ir/operators/operator.h"
#include "ir/support/diagnostics.h"

// Prints a program as C for one instruction set, with the entry point that compiled_run calls. `identifier` is the
// prefix of its names. Constant tensors are passed to the entry point if are_constants_given, else printed as arrays.
// If is_profiled, the program calls its caller after each loop. False: out of memory.
bool emit_for_loading(const Program *p, const Isa *isa, const char *identifier, bool are_constants_given,
                      bool is_profiled, Text *source);

typedef enum EmitThreads { EMIT_SERIAL, EMIT_OPENMP, EMIT_CALLBACK } EmitThreads;

enum { MOST_IN_PLACE = 16 }; // inputs listed for an output; others are treated as if they could not be overwritten
typedef struct InPlace {     // the inputs, by number, whose memory an output may use
  uint32_t count;
  uint32_t inputs[MOST_IN_PLACE]; // ascending
} InPlace;

// A graph as a C source file and a header, for users to keep. Both compile as C11 and C++17 and need libc and libm
// only.
typedef struct EmittedFile {
  const char *file_stem; // the header is file_stem.h
  const char *prefix;    // of every external symbol; a C identifier
  const char *hash;      // of the graph, in hexadecimal
  EmitThreads threads;
  const Program *const *programs; // the graph's program for each instruction set; several may be the same program
  const Isa *const *isas;         // parallel to programs, in the order of the table; the first is scalar
  size_t nisas;
  InPlace *in_place;       // set by emit_file: an array by output, owned by the caller; or NULL
  bool has_open_workspace; // set by emit_file: the size of the workspace depends on open dims
} EmittedFile;
bool emit_file(EmittedFile *f, const Allocator *allocator, Text *source, Text *header); // false: out of memory

// A program that tests an emitted file. Its inputs are pseudorandom numbers, which self_test_input generates here and
// the emitted program generates again.
typedef struct SelfTestCase {
  int64_t extents[MAX_OPEN_DIMS]; // the values of open dims
  const int64_t *nelems;          // number of elements by input, then by output
  const Tensor *expected;         // by output: the interpreter's result for those inputs
  const double *magnitudes;       // by output: the result of interpret_magnitudes
} SelfTestCase;

typedef struct SelfTest {
  const EmittedFile *file;  // after emit_file has set in_place
  const ValueRange *ranges; // by input: which values it may have
  const SelfTestCase *cases;
  size_t ncases; // at least 1
} SelfTest;
void self_test_input(Tensor *t, size_t input, ValueRange range); // fills t, the input with that number
bool emit_self_test(const SelfTest *t, Text *out);               // false: out of memory

// Adds the name as an identifier for a C function. Characters other than letters and digits become an underscore and
// their code. A name that C, its library or emitted files use gets an underscore appended. A very long name is cut and
// gets a hash appended.
void emit_identifier(const char *name, Text *out);

typedef struct Compiled Compiled;

typedef struct CompileTimes {
  double emit_ms, compile_ms, load_ms;
  bool was_cached;
} CompileTimes;

// Prints the program as C, compiles it with the system's C compiler unless the cache has the result, and loads it. The
// compiler is killed after timeout_s seconds (0: no limit). The result reads the constants of p's graph, which must
// outlive it. NULL: an error has been reported to d; *compiler_failed says whether the compiler failed.
Compiled *codegen_compile(const Program *p, const Isa *isa, bool is_profiled, double timeout_s,
                          const Allocator *allocator, CompileTimes *times, bool *compiler_failed, Diagnostics *d);
// Runs the program. `inputs` and `outputs` are parallel to the graph's. May be called from several threads at once.
// threads <= 0: as many as there are processors. If the program was compiled with is_profiled and spent_ms is not NULL,
// the time in milliseconds before the first loop is added to spent_ms[0], and that of loop i, counted through all
// kernels, to spent_ms[1 + i]. False: out of memory.
bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, double *spent_ms);
size_t compiled_workspace_nbytes(const Compiled *c);
void compiled_free(Compiled *c);

#endif
