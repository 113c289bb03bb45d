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
// False: out of memory.
bool emit_for_loading(const Program *p, const Isa *isa, const char *identifier, bool are_constants_given, Text *source);

typedef enum EmitThreads {
  EMIT_SERIAL,
  EMIT_OPENMP,
  EMIT_CALLBACK,
  EMIT_LIST // for loading: the caller takes a list of all loops, and then runs them
} EmitThreads;

// A graph with leaves, cut into the functions of its stages.
typedef struct EmittedStages {
  const Graph *graph;
  const struct ngrad_step *step;
  const Value *const *numbers;           // the constants with a row for each leaf
  const Program *const *const *programs; // by function of the step, for each instruction set
  size_t nfunctions;
} EmittedStages;

enum { MOST_FUNCTIONS = 2, MOST_BLOCKS = 2 };

// A graph as a C function.
typedef struct EmittedFunction {
  const char *name;               // a C identifier: the file's prefix, or PREFIX_NAME
  const char *hash;               // of the graph, in hexadecimal
  const Program *const *programs; // the graph's program for each instruction set; several may be the same program
  const EmittedStages *stages;    // used instead of `programs` for a graph with leaves; else NULL
  InPlace *in_place;              // set by emit_file: an array by output, owned by the caller; or NULL
  bool has_open_workspace;        // set by emit_file: the size of the workspace depends on open dims
  bool *is_stored;                // set by emit_file: by state, whether its value is in the source; owned by the caller
  bool uses_block[MOST_BLOCKS];   // set by emit_file: by block of states
} EmittedFunction;

// A layout of files in which an emitted pair is a library of another build system.
enum { MOST_PACKAGE_FILES = 3 };
typedef struct PackageFile {
  const char *path, *text; // templates (emit/template.h)
} PackageFile;
typedef struct Package {
  const char *name;                      // as users write it
  const char *sources, *headers, *tests; // the folders of these files, with a final slash; tests NULL: has none
  bool is_for_devices;                   // no files, no MPI; fixed extents; by default scalar C for one thread
  PackageFile files[MOST_PACKAGE_FILES]; // besides; unused ones at the end have no path
} Package;
const Package *package_at(size_t i); // NULL behind the last

// Graphs as a C source file and a header that users keep. Both compile as C11 and C++17 and need only libc and libm.
// States are in blocks of memory that the caller provides: one block has the last graph's states, the other the states
// that only earlier graphs have. The first graph has all states. With stores_states, states that no graph updates are
// constants of the source instead, with their first values.
typedef struct EmittedFile {
  const char *file_stem; // the header is file_stem.h
  const char *prefix;    // of every external symbol; a C identifier
  EmitThreads threads;
  bool stores_states;
  const Package *package; // NULL: the files stand alone
  bool has_test;          // there is a self-test for each function
  EmittedFunction *functions;
  size_t nfunctions;      // at most MOST_FUNCTIONS
  int nblocks;            // set by emit_file: the number of blocks of states
  const Isa *const *isas; // parallel to programs, in the order of the table; the first is scalar
  size_t nisas;
} EmittedFile;
const Graph *emitted_graph(const EmittedFunction *f);
bool emit_file(EmittedFile *f, const Allocator *allocator, Text *source, Text *header); // false: out of memory
// Prints file i of the package's own files, after emit_file. False: there is none.
bool package_file(const EmittedFile *f, size_t i, Text *path, Text *text);

// A program that tests an emitted file. Its inputs are pseudorandom numbers, which self_test_input generates here and
// the emitted program generates again.
typedef struct SelfTestCase {
  int64_t extents[MAX_OPEN_DIMS]; // the values of open dims
  const int64_t *nelems;          // numbers of elements, of inputs, then of outputs
  const int64_t *nindices;        // by input: n > 0: elements are indices, from first_index to first_index + n - 1
  const int64_t *first_index;
  const int64_t *checked;   // by input: 1 + the position of an element that must be a valid index; 0: none
  const Tensor *expected;   // by output: the interpreter's result, perhaps rounded between kernels
  const double *magnitudes; // by output: the result of interpret_magnitudes
} SelfTestCase;

typedef struct SelfTest {
  const EmittedFile *file;  // after emit_file has set in_place
  size_t function;          // the function of the file to test
  const ValueRange *ranges; // by input: its range of values
  const SelfTestCase *cases;
  size_t ncases; // at least 1
} SelfTest;
// Fills t with the numbers that the emitted program generates for input number `input`. If nindices > 0, the elements
// are indices, from `first` to first + nindices - 1.
void self_test_input(Tensor *t, size_t input, ValueRange range, int64_t nindices, int64_t first);
bool emit_self_test(const SelfTest *t, Text *out); // false: out of memory

// Prints the declarations of PREFIX_ranks and PREFIX_message, which have the layout of ng_ranks and ng_transfer, for a
// header that includes stddef.h and stdint.h.
void emit_ranks_types(const char *prefix, Text *out);
// Prints a file for mpicc that moves messages between ranks. It includes `header`, which declares PREFIX_ranks.
void emit_mpi(const char *prefix, const char *header, Text *out);
// The same with the declarations, and with functions that begin and end MPI (ranks_process.in).
void emit_mpi_process(const char *prefix, Text *out);

// Adds the name as an identifier for a C function. Characters other than letters and digits become an underscore and
// their code. A name that C, its library or emitted files use gets an underscore appended. A very long name is cut and
// gets a hash appended.
void emit_identifier(const char *name, Text *out);

typedef struct Compiled Compiled;

// The MPI that started this process, detected by environment variables that mpirun sets.
typedef struct MpiLauncher {
  const char *name;             // NULL: no MPI did
  const char *variable;         // the environment variable that shows it
  int64_t nranks;               // the number of ranks that it started; 0: not known
  const char *const *compilers; // compilers for this MPI, ended by NULL; the first that is installed is used
  const char *packages;         // the Debian packages of these compilers
} MpiLauncher;
MpiLauncher mpi_find_launcher(void);

// Compiles the text of emit_mpi_process with $NGRAD_MPICC or the launcher's compiler, and loads it. Returns the struct
// ngrad_mpi_functions of ranks_process.in; NULL after reporting an error.
const void *codegen_load_mpi(const MpiLauncher *launcher, const Allocator *allocator, bool *compiler_failed,
                             Diagnostics *d);

typedef struct CompileTimes {
  double emit_ms, compile_ms, load_ms;
  bool was_cached;
} CompileTimes;

// Prints the program as C, compiles it with the system's C compiler unless the cache has the result, and loads it. The
// compiler is killed after timeout_s seconds (0: no limit). The result reads the constants of p's graph, which must
// outlive it. NULL after reporting an error; *compiler_failed says whether the compiler failed.
Compiled *codegen_compile(const Program *p, const Isa *isa, double timeout_s, const Allocator *allocator,
                          CompileTimes *times, bool *compiler_failed, Diagnostics *d);

typedef struct Span {      // blocks of a loop that one thread computed
  size_t part;             // of the loop
  int thread;              // from 0
  size_t nblocks;          // 1 if one thread must run the whole loop
  double begin_ms, end_ms; // since the call began
} Span;

// What a call tells of its loops. Parts are 0, the code before the loops, and 1 + a loop's number, counted through all
// kernels; a slice group is the part of its first loop.
typedef struct Watch {
  double *spent_ms; // by part: milliseconds are added, and loops run one after the other; NULL: not wanted
  Span *spans;      // NULL: not wanted
  size_t nspans, most_spans;
  // Called by the calling thread for each part in order, after it and all before it; NULL: not called.
  void (*mark)(void *context, size_t part);
  void *mark_context;
} Watch;

// Runs the program. `inputs` and `outputs` are parallel to the graph's. May be called from several threads at once.
// threads <= 0: as many as there are processors. `watch` may be NULL. False: out of memory.
bool compiled_run(const Compiled *c, void *const *inputs, void *const *outputs, int threads, Watch *watch);
size_t compiled_workspace_nbytes(const Compiled *c);
void compiled_free(Compiled *c);

#endif
