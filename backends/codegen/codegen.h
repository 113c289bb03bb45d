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

// A graph with leaves as the functions of its stages.
typedef struct EmittedStages {
  const Graph *graph;
  const struct ngrad_step *step;
  const Value *const *numbers;           // the constants of which the step takes rows
  const Program *const *const *programs; // by function of the step, for each instruction set
  size_t nfunctions;
} EmittedStages;

// A graph as a C function.
typedef struct EmittedFunction {
  const char *name;               // a C identifier: the file's prefix, or PREFIX_NAME
  const char *hash;               // of the graph, in hexadecimal
  const Program *const *programs; // the graph's program for each instruction set; several may be the same program
  const EmittedStages *stages;    // of a graph with leaves, in place of programs; NULL: it has none
  InPlace *in_place;              // set by emit_file: an array by output, owned by the caller; or NULL
  bool has_open_workspace;        // set by emit_file: the size of the workspace depends on open dims
} EmittedFunction;

// Graphs as a C source file and a header, for users to keep. Both compile as C11 and C++17 and need libc and libm only.
// The states of all graphs are in blocks of memory that the caller gives: the states of the last graph in one, those
// that only an earlier graph has in another. The first graph has all states.
typedef struct EmittedFile {
  const char *file_stem; // the header is file_stem.h
  const char *prefix;    // of every external symbol; a C identifier
  EmitThreads threads;
  EmittedFunction *functions;
  size_t nfunctions;      // at most MOST_FUNCTIONS
  int nblocks;            // set by emit_file: of states
  const Isa *const *isas; // parallel to programs, in the order of the table; the first is scalar
  size_t nisas;
} EmittedFile;
enum { MOST_FUNCTIONS = 2 };
const Graph *emitted_graph(const EmittedFunction *f);
bool emit_file(EmittedFile *f, const Allocator *allocator, Text *source, Text *header); // false: out of memory

// A program that tests an emitted file. Its inputs are pseudorandom numbers, which self_test_input generates here and
// the emitted program generates again.
typedef struct SelfTestCase {
  int64_t extents[MAX_OPEN_DIMS]; // the values of open dims
  const int64_t *nelems;          // number of elements by input, then by output
  const int64_t *nindices;        // by input: more than 0: its elements are indices from 0 to less than that
  const int64_t *checked;         // by input: 1 + the place of an index that is checked; 0: there is none
  const Tensor *expected;   // by output: the interpreter's result for those inputs, perhaps rounded between kernels
  const double *magnitudes; // by output: the result of interpret_magnitudes
} SelfTestCase;

typedef struct SelfTest {
  const EmittedFile *file;  // after emit_file has set in_place
  size_t function;          // of the file, which is tested
  const ValueRange *ranges; // by input: which values it may have
  const SelfTestCase *cases;
  size_t ncases; // at least 1
} SelfTest;
// Fills t, the input with that number. nindices: as in SelfTestCase.
void self_test_input(Tensor *t, size_t input, ValueRange range, int64_t nindices);
bool emit_self_test(const SelfTest *t, Text *out); // false: out of memory

// PREFIX_ranks and PREFIX_message, of the form that ng_ranks and ng_transfer have: declarations for a header
// that includes stddef.h and stdint.h.
void emit_ranks_types(const char *prefix, Text *out);
// A file for mpicc that moves messages between ranks. It includes `header`, which has these declarations.
void emit_mpi(const char *prefix, const char *header, Text *out);
// The same with its own declarations, and with functions that begin and end MPI in a process: ranks_process.in.
void emit_mpi_process(const char *prefix, Text *out);

// Adds the name as an identifier for a C function. Characters other than letters and digits become an underscore and
// their code. A name that C, its library or emitted files use gets an underscore appended. A very long name is cut and
// gets a hash appended.
void emit_identifier(const char *name, Text *out);

typedef struct Compiled Compiled;

// Which MPI started this process, by what mpirun puts into the environment.
typedef struct MpiLauncher {
  const char *name;             // NULL: none did
  const char *variable;         // of the environment, that says so
  int64_t nranks;               // that it started; 0: not known
  const char *const *compilers; // programs, ended by NULL, of which the first that is installed makes code for it
  const char *packages;         // of Debian, which have these
} MpiLauncher;
MpiLauncher mpi_find_launcher(void);

// Compiles what emit_mpi_process prints, by $NGRAD_MPICC or the launcher's compiler, and loads it. Returns the struct
// ngrad_mpi_functions of ranks_process.in; NULL: an error has been reported.
const void *codegen_load_mpi(const MpiLauncher *launcher, const Allocator *allocator, bool *compiler_failed,
                             Diagnostics *d);

typedef struct CompileTimes {
  double emit_ms, compile_ms, load_ms;
  bool was_cached;
} CompileTimes;

// Prints the program as C, compiles it with the system's C compiler unless the cache has the result, and loads it. The
// compiler is killed after timeout_s seconds (0: no limit). The result reads the constants of p's graph, which must
// outlive it. NULL: an error has been reported to d; *compiler_failed says whether the compiler failed.
Compiled *codegen_compile(const Program *p, const Isa *isa, bool is_profiled, double timeout_s,
                          const Allocator *allocator, CompileTimes *times, bool *compiler_failed, Diagnostics *d);

typedef struct Span { // blocks of a loop that one thread computed
  size_t part;        // 1 + the loop, counted through all kernels; 0: the time before the first loop
  int thread;         // from 0
  size_t nblocks;
  double begin_ms, end_ms; // since the call
} Span;

// What a call tells of a program that was compiled with is_profiled.
typedef struct Watch {
  double *spent_ms; // by part: milliseconds are added; NULL: none are wanted
  Span *spans;      // NULL: none are wanted
  size_t nspans, most_spans;
  void (*mark)(void *context, size_t part); // called with each part that is done; NULL: not called
  void *mark_context;
} Watch;

// Runs the program. `inputs` and `outputs` are parallel to the graph's. May be called from several threads at once.
// threads <= 0: as many as there are processors. `watch` may be NULL. False: out of memory.
bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, Watch *watch);
size_t compiled_workspace_nbytes(const Compiled *c);
void compiled_free(Compiled *c);

#endif
