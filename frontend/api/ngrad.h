/* ngrad: compile computation graphs of training steps.
 *
 * The one installed header. A graph is read from a file or from memory, and then interpreted (the reference), compiled
 * for this processor and called with the caller's pointers, or emitted as C source.
 *
 *   ng_context *ctx = ng_context_new(NULL);
 *   ng_graph *g = ng_graph_read_file(ctx, "layer_norm.yaml");
 *   if (!g) fputs(ng_messages_text(ctx, 0), stderr);
 *
 * Errors. Functions return an ng_status, or NULL for a handle or a text, and leave what is to be told in the context's
 * message list. Nothing here prints, exits or changes a global setting (locale, signals, floating-point modes).
 * Pointers must not be NULL, indices must be below their counts, unless it says otherwise.
 *
 * Ownership. What a function named _new, _read, _show, _run_passes, _random, _compile or _emit makes is the caller's,
 * who frees it with the function beside it: kernels, graphs, tensors and texts first, in any order unless it says
 * otherwise, and their context last. Strings in results belong to what was asked; arguments are not kept.
 *
 * Units. Lengths in memory are in bytes and named nbytes; nelems counts elements; an extent is an axis's length in
 * elements; times are in milliseconds and named _ms.
 *
 * Threads. A context and all that was made with it belong to one thread at a time, except that ng_kernel_run may be
 * called for one kernel by several threads at once. Different contexts are independent. What takes no handle may be
 * called at any time. Compiling reads the environment (CC, PATH, HOME, XDG_CACHE_HOME, TMPDIR, XDG_RUNTIME_DIR), which
 * must not be changed meanwhile; the child that it starts is its own, so a handler of SIGCHLD must not wait for any.
 *
 * Versions. Before 1.0.0 each minor version is an API and an ABI of its own, and the soname says which. Structs are
 * made with zeros for what is not said, as in (ng_options){0}: that will stay the default.
 */
#ifndef NGRAD_H
#define NGRAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NG_VERSION "0.1.0" /* of this header */
#define NG_MAX_RANK 8

#if defined(__GNUC__)
#define NG_API __attribute__((visibility("default")))
#else
#define NG_API
#endif

typedef enum ng_status {
  NG_OK = 0,
  NG_WRONG = 1,           /* the graph or its data is wrong */
  NG_USAGE = 2,           /* an argument is wrong */
  NG_DIFFERENT = 3,       /* a comparison failed */
  NG_COMPILER_FAILED = 4, /* the system's C compiler is missing or failed; its words are in the messages */
  NG_OUT_OF_MEMORY = 5
} ng_status;

NG_API const char *ng_version(void); /* of the library: "0.1.0" */
NG_API const char *ng_status_text(ng_status status);

/* Context: an allocator and the messages of the calls made with it. */

typedef struct ng_context ng_context;

/* resize(user, p, 0) frees p; resize(user, NULL, n) allocates, aligned for any type; NULL when it cannot, p then
   untouched. It is called from several threads at once only if a kernel is run from several. All that grows with graphs
   and tensors comes from it; the C library, the YAML parser and OpenMP keep to the system's for what they need. */
typedef struct ng_allocator {
  void *(*resize)(void *user, void *p, size_t nbytes);
  void *user;
} ng_allocator;

NG_API ng_context *ng_context_new(const ng_allocator *allocator); /* NULL: the system's; NULL when out of memory */
NG_API void ng_context_free(ng_context *ctx);                     /* after all that was made with it; NULL is fine */

typedef struct ng_message {
  int is_error;          /* else a warning */
  const char *file;      /* NULL: none */
  unsigned line, column; /* from 1, in characters; 0: none */
  const char *text;      /* "what, expected, found": lower case, no full stop; lines of it end in \n */
} ng_message;

/* Messages add up over calls until they are cleared; the first 100 are kept. That memory ran out is a status and a line
   of ng_messages_text, not a message. */
NG_API size_t ng_message_count(const ng_context *ctx);
NG_API ng_message ng_message_at(const ng_context *ctx, size_t i); /* its strings are valid until messages are cleared */
NG_API const char *ng_messages_text(ng_context *ctx, int colour); /* as a compiler prints them; valid until the next
                                                                     call of this function; "" when there are none */
NG_API void ng_messages_clear(ng_context *ctx);
NG_API ng_status ng_last_status(const ng_context *ctx); /* why the last call that was to return a handle or a text
                                                           returned NULL; NG_OK if it did not */

/* For a process that is about to end before its calls have: kills the compilers that run, and removes the temporary
   files and folders of compiling and writing. Calls in other threads that compile or write do not return afterwards. It
   may wait, so call it from a thread that takes signals with sigwait, not from a signal's handler. */
NG_API void ng_abandon(void);

/* The log: called with each message when it is added to the list, from the thread that made the call which told it. It
   must not use the context. NULL: no. */
NG_API void ng_context_set_log(ng_context *ctx, void (*log)(void *user, const ng_message *message), void *user);

/* The memory budget: the most bytes that are in use at a time of what comes from the context's allocator. What would
   exceed it is NG_OUT_OF_MEMORY, where that can be known with a message and before any of it is allocated. By default,
   and again for 0, it is three quarters of what the machine, the control groups that the process is in, and its own
   resource limits leave when the context is made. Memory of the C compiler, which is another process, is not in it. */
NG_API void ng_context_set_max_memory(ng_context *ctx, uint64_t nbytes);
NG_API uint64_t ng_context_max_memory(const ng_context *ctx);

typedef struct ng_memory_part {
  const char *what; /* "inputs" */
  uint64_t nbytes;
} ng_memory_part;

/* Whether the sum of the parts is left of the budget. NG_OUT_OF_MEMORY, after a message that begins with `doing`
   ("running layer_norm") and lists the parts: it is not. Nothing is set aside. */
NG_API ng_status ng_context_check_memory(ng_context *ctx, const char *doing, const ng_memory_part *parts,
                                         size_t nparts);

/* Progress of long work (interpreting, timing): called with a fraction in [0, 1], from the calling thread. NULL: no. */
NG_API void ng_context_set_progress(ng_context *ctx, void (*progress)(void *user, const char *what, double fraction),
                                    void *user);

/* Graphs */

typedef struct ng_graph ng_graph;

typedef enum ng_type {
  NG_F64 = 1,
  NG_F32,
  NG_F16,
  NG_BF16,
  NG_S64,
  NG_S32,
  NG_S8,
  NG_U8,
  NG_BOOLEAN,
  NG_F8_E4M3,
  NG_F8_E5M2,
  NG_S4, /* two elements a byte, the first in the low half; an odd one's other half is left as it was */
  NG_U4,
  NG_TYPE_COUNT
} ng_type;

typedef struct ng_tensor_info {
  const char *name;
  ng_type type;
  int rank;                         /* -1: unknown */
  int64_t extent[NG_MAX_RANK];      /* -1: unknown, or named and without a value; else a number or the name's value */
  const char *dim[NG_MAX_RANK];     /* a named extent's name; NULL: a number or unknown */
  unsigned char order[NG_MAX_RANK]; /* as in ng_tensor */
} ng_tensor_info;

NG_API const char *ng_type_name(ng_type type);
NG_API size_t ng_type_nbytes(ng_type type); /* 1 for what is less: ng_tensor_nbytes knows of halves */

/* Reads, infers and verifies. NULL after telling why. `folder` is where file: constants are looked up (NULL: they
   are errors); ng_graph_read_file takes the file's own, and reads standard input for "-" (which has none). `name` is
   only what messages call the text, which is copied. The format, ngrad/1 or oneDNN Graph's JSON, is recognised by
   content. */
NG_API ng_graph *ng_graph_read_file(ng_context *ctx, const char *path);
NG_API ng_graph *ng_graph_read(ng_context *ctx, const char *name, const char *text, size_t nbytes, const char *folder);
NG_API void ng_graph_free(ng_graph *g);

NG_API const char *ng_graph_name(const ng_graph *g);
NG_API size_t ng_graph_input_count(const ng_graph *g);
NG_API size_t ng_graph_output_count(const ng_graph *g);
NG_API ng_tensor_info ng_graph_input(const ng_graph *g, size_t i); /* its name is valid as long as g */
NG_API ng_tensor_info ng_graph_output(const ng_graph *g, size_t i);
/* Whether there is one right result for each element: it is no float that is computed with, and was not quantised. */
NG_API int ng_graph_output_is_exact(const ng_graph *g, size_t i);

/* States: tensors that live from call to call, such as parameters and what an optimizer keeps beside them. They are the
   graph's last inputs, and what a call leaves in them are its last outputs, of the same type and shape. */
typedef struct ng_state {
  size_t input, output; /* indices; output: if is_updated */
  int is_updated;       /* 0: calls leave it as it was */
} ng_state;
NG_API size_t ng_graph_state_count(const ng_graph *g);
NG_API ng_state ng_graph_state(const ng_graph *g, size_t i);

/* A named extent. There are none once a graph is bound. */
typedef struct ng_dim_info {
  const char *name;
  int64_t value; /* -1: none yet */
} ng_dim_info;
NG_API size_t ng_graph_dim_count(const ng_graph *g);
NG_API ng_dim_info ng_graph_dim(const ng_graph *g, size_t i);

/* Nodes, producers first. Operands and attributes are in the order of the canonical operator, whose row of the
   catalogue below names them: ng_operator_input(ng_operator_find(canonical), k). */
typedef struct ng_node_info {
  const char *name;      /* the operator, as ng_operator_info has it for the name that the file says */
  const char *canonical; /* the operator that it means */
  size_t ninputs, noutputs, nattributes;
  unsigned line; /* in the file, from 1; 0: a pass made it */
} ng_node_info;

typedef struct ng_attribute {
  const char *name;
  const char *kind;      /* as in ng_attribute_info; says which of the following holds the value */
  int is_set;            /* 0: optional and left out */
  int64_t integer;       /* "bool", "s64"; "choice": its index */
  double number;         /* "f32" */
  const int64_t *items;  /* "s64 list": nitems of them, valid as long as g */
  const double *numbers; /* "f32 list" */
  size_t nitems;
} ng_attribute;

NG_API size_t ng_graph_node_count(const ng_graph *g);
NG_API ng_node_info ng_graph_node(const ng_graph *g, size_t i);
NG_API ng_tensor_info ng_graph_node_input(const ng_graph *g, size_t i, size_t k); /* name NULL: an absent one */
NG_API ng_tensor_info ng_graph_node_output(const ng_graph *g, size_t i, size_t k);
NG_API ng_attribute ng_graph_node_attribute(const ng_graph *g, size_t i, size_t k);

/* The files that constants were read from, relative to the graph's folder; NULL for an i that there is not. */
NG_API size_t ng_graph_file_count(const ng_graph *g);
NG_API const char *ng_graph_file(const ng_graph *g, size_t i);

/* Until a graph is bound its extents may be changed: ng_graph_set_dim gives a named extent another value;
   ng_graph_set_input_shape gives an input's unknown extents their numbers, and named ones that have no value theirs
   (NG_WRONG if any other differs). ng_graph_bind then fixes them all, infers again, and fails if some extent still has
   no number. Interpreting and compiling bind a graph that is not bound yet, and it stays bound. */
NG_API ng_status ng_graph_set_dim(ng_graph *g, const char *name, int64_t value);
NG_API ng_status ng_graph_set_input_shape(ng_graph *g, size_t i, int rank, const int64_t *extent);
NG_API ng_status ng_graph_bind(ng_graph *g);

/* What a pass did. Valid during the call that tells it. */
typedef struct ng_pass_report {
  const char *name;
  size_t number; /* in the order of passes, from 1 */
  int changed;
  double ms;
  size_t node_count; /* afterwards */
  const char *graph; /* afterwards, as a graph file; NULL: nothing changed, or report_graphs is 0 */
} ng_pass_report;

/* What becomes of a graph on its way to kernels. */
typedef struct ng_options {
  const char *isa; /* "scalar", "avx2", "avx512", "avx512_bf16", "neon"; NULL: the best that this processor has.
                      ng_emit: several, "avx2,avx512", and "scalar" in any case; NULL: all */
  int no_fuse;     /* one kernel an operator */
  const char *const *disable; /* names of passes and rules to leave out; passes that are needed cannot be */
  size_t ndisable;
  const char *const *schedule; /* "key=number": set for every kernel in place of what is chosen; for experiments */
  size_t nschedule;
  const char *after;   /* ng_graph_show: stop after this pass; NULL: before any for yaml and dot, else all */
  const char *threads; /* ng_emit: "none", "openmp" or "callback"; NULL: "openmp" */
  const char *prefix;  /* ng_emit: of the external symbols, a C identifier; NULL: ng_graph_identifier */
  int self_test;       /* ng_emit_files: STEM_test.c too, a program that tests the pair where it runs */
  int fast_math;       /* rewrites that do not hold for every IEEE value are allowed */
  void (*report)(void *user, const ng_pass_report *report); /* called after each pass that ran; NULL: nobody listens */
  void *report_user;
  int report_graphs;
  int profile; /* ng_compile: ng_bench tells where the time goes, in ng_kernel_profile; a loop takes some 50 ns more */
  double compile_timeout; /* ng_compile: seconds that the C compiler may take, or it is ended, with all of its process
                             group: NG_COMPILER_FAILED; 0: 300; less than 0: any time */
} ng_options;

/* What the passes make of g (up to options->after, if that is set): a new graph, which may be used like any other but
   must be freed before g. Binds g. NULL after telling why; options may be NULL. */
NG_API ng_graph *ng_graph_run_passes(ng_graph *g, const ng_options *options);

/* The graph, or what is made of it, as text: "yaml", "dot", "kernels", "loops" or "c". The caller frees it
   with ng_text_free. NULL after telling why. options may be NULL. All but a graph before any pass binds g. */
NG_API char *ng_graph_show(ng_graph *g, const char *format, const ng_options *options);
/* Bytes of memory between kernels: the workspace, and what it would be if no two values ever had the same place. */
NG_API ng_status ng_graph_workspace(ng_graph *g, const ng_options *options, size_t *nbytes, size_t *unshared);

/* Bytes that running a graph needs beside the graph itself and, compiled, its workspace. The largest number stands for
   all that exceed it. */
typedef struct ng_memory {
  uint64_t inputs_nbytes, outputs_nbytes;
  uint64_t constants_nbytes;   /* but those of one number; the graph holds them already */
  uint64_t interpreter_nbytes; /* the most that ng_interpret's own arrays, of f64, take at a time */
} ng_memory;
NG_API ng_status ng_graph_memory(ng_graph *g, ng_memory *out); /* binds g */

NG_API void ng_text_free(ng_context *ctx, char *text);

/* A name, or other text that is not to be trusted, as part of something else. What nobody can see (control characters,
   marks of direction, bytes that are no UTF-8 …) becomes a question mark, an escape of the sink's, or an underscore. */
typedef enum ng_sink {
  NG_C_IDENTIFIER, /* part of one */
  NG_C_COMMENT,    /* within one */
  NG_C_STRING,     /* with its quotes */
  NG_DOT,          /* within double quotes */
  NG_YAML,         /* with double quotes */
  NG_HTML,         /* text, or an attribute's value in quotes */
  NG_TERMINAL,     /* part of a line, one character for each */
  NG_MAKEFILE      /* a file's name in a rule */
} ng_sink;
/* From malloc: the caller frees it. NULL: out of memory, or a file's name that no rule of a makefile can have. */
NG_API char *ng_escape(ng_sink sink, const char *text);

/* Gradients. Lists of names are of inputs and outputs of g. */

typedef struct ng_gradient_options {
  const char *const *wrt; /* of which inputs gradients are made; NULL: all floating-point ones that outputs depend on */
  size_t nwrt;
  const char *const *of; /* from which outputs gradients come; NULL: all floating-point ones but norms' statistics */
  size_t nof;
} ng_gradient_options;

/* The graph that computes the gradients of g's inputs: diff_NAME for each of wrt, from diff_NAME for each of `of`. Its
   inputs are what it uses of g's inputs, of what g's nodes make (saved values, under their own names) and of those
   diff_NAME. NULL after telling why: ng_last_status is NG_USAGE for an unknown name. options may be NULL. g is not
   bound by this, but every extent must have a number or a name. */
NG_API ng_graph *ng_graph_gradient(ng_graph *g, const ng_gradient_options *options);

typedef struct ng_gradcheck_options {
  ng_gradient_options gradient;
  uint64_t seed;    /* of the data, which is that of ng_tensor_random */
  double tolerance; /* most relative error of an element; 0: 1e-6 */
} ng_gradcheck_options;

typedef struct ng_gradcheck_result { /* of an input */
  int64_t nelems, nchecked;          /* nchecked 0: no gradient was asked for */
  int64_t nskipped;      /* of those, at kinks: the slopes on both sides differ, so that there is no derivative */
  double largest_error;  /* |gradient - expected| by the larger of both; where both are small, by a thousandth of the
                            root mean square of the input's whole gradient, or by what rounding lets be known */
  int64_t worst_element; /* index in row-major order; -1: none is off */
  double gradient, expected; /* at the worst element: from the gradient graph, from differences */
  int is_within;
} ng_gradcheck_result;

/* Compares the gradient graph with differences of the graph itself, both interpreted in f64, of one sum of all outputs
   with random weights. `results` has an element for each of g's inputs. Of large graphs only some elements are checked.
   NG_DIFFERENT: not all are within the tolerance. Binds g. options may be NULL. */
NG_API ng_status ng_gradcheck(ng_graph *g, const ng_gradcheck_options *options, ng_gradcheck_result *results);

/* Tensors: dense. `order` is how the elements lie in memory: the axes from the slowest to the fastest, each once, or
   all zeros, which is row-major. A graph says how its own lie (ng_graph_input, ng_graph_output); those that it is run
   with must lie so. */

typedef struct ng_tensor {
  ng_type type;
  int rank;
  int64_t extent[NG_MAX_RANK];
  void *data;
  unsigned char order[NG_MAX_RANK];
} ng_tensor;

/* The caller's memory as a tensor: ng_tensor_view(ng_graph_input(g, 0), x). It stays the caller's, and that of an input
   is only read. It is aligned to its elements; bf16 and f16 are their bits as uint16_t, a boolean is a byte, 0 or 1. */
NG_API ng_tensor ng_tensor_view(ng_tensor_info info, void *data);
NG_API int64_t ng_tensor_nelems(const ng_tensor *t);
NG_API size_t ng_tensor_nbytes(const ng_tensor *t);
NG_API double ng_tensor_get(const ng_tensor *t, int64_t i); /* element i in row-major order, wherever it lies */
/* Makes a tensor of zeros in info's order, its data aligned to 64 bytes. NG_USAGE: not every extent of info has a
   number. */
NG_API ng_status ng_tensor_new(ng_context *ctx, const ng_tensor_info *info, ng_tensor *out);
NG_API void ng_tensor_free(ng_context *ctx, ng_tensor *t); /* a second time, or of one never made but zeroed, is fine */
/* A file's elements are row-major or column-major and become, or were, in the tensor's order.
   `info` says what is wanted: extents of -1, or rank -1, are taken from the file. any_float: an expected result may
   be stored as another floating-point type; the tensor then has the file's type. */
NG_API ng_status ng_tensor_read_npy(ng_context *ctx, const char *path, const ng_tensor_info *info, int any_float,
                                    ng_tensor *out);
NG_API ng_status ng_tensor_write_npy(ng_context *ctx, const char *path, const ng_tensor *t);
/* Random data for input i of g, which is bound by this; the same for the same seed on every machine. Element e comes
   from the e-th word that splitmix64 gives from the state s(s(seed) + i), where s is its first word from a state: the
   sum of the word's four 16-bit parts, brought to mean 0 and variance 1, so nearly normal and within 3.47. Variances of
   norms and what roots and logarithms are taken of are uniform in [0.5, 2), probabilities in [1/16, 15/16), also where
   sums, products, means, casts and moves lie between input and operator. Labels and other indices are uniform below the
   extent that they select from. Other integers have deviation 32, those of 4 bits 3, and less if Dequantize makes of
   these numbers of a variance above 1; its zero point, else 0 and of unsigned types half their range, is the mean.
   Scales of DynamicQuantize and DynamicDequantize are uniform in [1/64, 1/16). `out` is made anew. */
NG_API ng_status ng_tensor_random(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out);

/* The first value of the graph's i-th state, as its init in the file says. Random numbers are functions of the seed, i
   and the element's index, the same on every machine: Philox-4x32-10 with the seed as key and the counter (low index,
   high index, i, 0x696E6974). Uniform ones are the first 53 of its bits, normal ones the sum of its eight 16-bit parts,
   brought to mean 0 and the deviation asked for. `out` is made anew. */
NG_API ng_status ng_tensor_init(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out);

typedef struct ng_difference {
  double distance;       /* |actual - expected|, the L2 norm; NaNs at the same place count as equal */
  double norm;           /* |expected|, or of ng_compare_outputs what counts for it */
  double relative_l2;    /* distance / norm */
  double largest_ulp;    /* |actual - expected| in units in the last place of actual's type at expected */
  double tolerance;      /* for relative_l2, by actual's type */
  double most_ulp;       /* for largest_ulp; infinite where only the tolerance counts, which else is infinite */
  int64_t worst_element; /* index in row-major order; -1: none differs */
  int is_within;
} ng_difference;

/* expected may be of another type than actual, but of the same shape (NG_WRONG and a message otherwise). Infinities
   of one sign are equal; a NaN or an infinity against anything else is infinitely far away. tolerance < 0: the default
   of actual's type: f64 1e-12, f32 1e-5, f16 2e-3, bf16 1.6e-2, 0 for s64, s32 and booleans; types of 8 and 4 bits may
   be a unit in the last place off. NG_DIFFERENT: not within it. */
NG_API ng_status ng_tensor_compare(ng_context *ctx, const ng_tensor *actual, const ng_tensor *expected,
                                   double tolerance, ng_difference *out);

/* The same of all outputs of a bound graph that was run on these inputs. Outputs that are exact
   (ng_graph_output_is_exact) have no default tolerance. Where terms cancel, so that nothing or little is expected of
   them, the norm is no less than their magnitude: that of what relative changes of every value, sum and constant do to
   the output. Quantised outputs may also be as far off, in L2, as such changes move them; they have tolerance 1 then,
   of that norm. Where ng_interpret's results are expected, outputs that are not within their tolerances even so are
   compared with what rounding every value to its declared type gives: a tensor between operators may overflow. All that
   takes four interpretations of the graph, if outputs are not within their tolerances without it. `differences` has an
   element for each output. NG_DIFFERENT: not all are within. */
NG_API ng_status ng_compare_outputs(ng_graph *g, const ng_tensor *inputs, const ng_tensor *actual,
                                    const ng_tensor *expected, double tolerance, ng_difference *differences);

/* Running. inputs and outputs are parallel to the graph's; all have data that is aligned to its elements, of the
   graph's types, shapes and orders once it is bound, and no output overlaps anything else (NG_USAGE otherwise). */

/* nan_check: fails at the first node that makes a NaN out of none, and names it. */
NG_API ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check);

typedef struct ng_kernel ng_kernel;

typedef struct ng_kernel_info {
  const char *isa;
  size_t nkernels; /* loops over memory that the graph became */
  size_t workspace_nbytes;
  int was_cached; /* no compiler was run */
  double emit_ms, compile_ms, load_ms;
} ng_kernel_info;

/* NULL after telling why. The kernel may outlive the graph. options may be NULL; its `after` must be. */
NG_API ng_kernel *ng_compile(ng_graph *g, const ng_options *options);
NG_API ng_kernel_info ng_kernel_get_info(const ng_kernel *k);
NG_API int ng_thread_count(void); /* the processors that this process may use */
/* threads 0: ng_thread_count() of them. The result does not depend on it. As it may be called from several threads, it
   leaves no message: NG_USAGE is a tensor for which ng_kernel_refusal says why, or a negative number of threads. */
NG_API ng_status ng_kernel_run(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads);
/* Why ng_kernel_run does not take these tensors, as a message; NULL: it does. May be called like it. */
NG_API const char *ng_kernel_refusal(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs);
NG_API void ng_kernel_free(ng_kernel *k);

/* Instruction sets known to the code generator. */
typedef struct ng_isa {
  const char *name;
  int is_available; /* on this processor */
} ng_isa;
NG_API size_t ng_isa_count(void);
NG_API ng_isa ng_isa_at(size_t i);

/* Source code: NAME.c and NAME.h as texts to be freed with ng_text_free. C11 and C++17 that needs libc and libm only;
   it depends on the graph and the options alone, and not on this machine. Named extents are arguments of the function
   but for those that ng_graph_set_dim or ng_graph_set_input_shape gave a number, or all if the graph is bound; what
   else they have is what the function is scheduled for. NG_WRONG also where one cannot be an argument. */
NG_API ng_status ng_emit(ng_graph *g, const ng_options *options, char **source, char **header);
/* The same as files in a folder that is there: STEM.c and STEM.h, each written whole or not at all, with STEM from
   ng_graph_identifier. NG_WRONG: one cannot be written. */
NG_API ng_status ng_emit_files(ng_graph *g, const ng_options *options, const char *folder);
/* The file name stem that goes with it: the graph's name as a C identifier. Valid as long as g; NULL: out of memory. */
NG_API const char *ng_graph_identifier(ng_graph *g);

/* Timing */

typedef struct ng_bench_options {
  int threads;    /* 0: all */
  int cold;       /* flush the caches before each run */
  double seconds; /* how long to go on; 0: about one */
} ng_bench_options;

typedef struct ng_bench_result {
  size_t runs;                        /* of the kernel that were timed */
  double min_ms, median_ms;           /* of a run; very short ones are timed several at once */
  uint64_t bytes_read, bytes_written; /* each graph input and output once */
  double ceiling_ms;                  /* median of a plain loop that reads and writes as many bytes, run in turns */
  double ceiling_ratio;               /* ceiling_ms / median_ms */
  double operations;                  /* of a run: additions, multiplications, maxima, functions, each one */
  double peak_gflops;  /* f32 multiply-adds on registers alone, two operations each; as many threads, run in turns */
  int computes_longer; /* at the peak the operations take longer than the bytes at the ceiling */
} ng_bench_result;

/* Runs on as many threads as said, each pinned to a processor for that time. */
NG_API ng_status ng_bench(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, const ng_bench_options *options,
                          ng_bench_result *result);

/* Where the time of a kernel goes. What a graph became are kernels, one after the other, and each of these is loops one
   after the other; the threads meet behind each loop. Bytes are of the tensors that it reads and writes, each once; a
   kernel's own memory between its loops counts for the loops only. */

typedef struct ng_profile_node { /* an operator that a kernel computes */
  const char *name;              /* the canonical one */
  const unsigned *lines; /* nlines of the graph's file, ascending: of all nodes that it stands for after passes */
  size_t nlines;         /* 0: it came from no file */
} ng_profile_node;

typedef struct ng_profile_loop {
  const char *text; /* what it does, sweep by sweep, as ng_graph_show's "kernels" has it */
  uint64_t bytes_read, bytes_written;
  double ms;
} ng_profile_loop;

typedef struct ng_profile_kernel {
  const char *text;             /* its operators: "LayerNorm (lines 4, 7 to 9), Add (line 10)" */
  const ng_profile_node *nodes; /* the same as data */
  size_t nnodes;
  uint64_t bytes_read, bytes_written;
  double operations; /* as in ng_bench_result */
  double ms;         /* the sum of its loops' */
  size_t with; /* the kernel's own index; or that of the first of several kernels that go over slices of their tensors
                  together, which has the numbers of all of them: the others have none, and none of them has loops */
  const char *bound; /* at least half as fast as the ceiling: "memory"; as the peak: "arithmetic"; as both: the one it
                        is nearer to; else "neither". "": not timed */
  const ng_profile_loop *loops;
  size_t nloops;
} ng_profile_kernel;

typedef struct ng_profile {
  const ng_profile_kernel *kernels; /* in order, as ng_graph_show's "kernels" numbers them */
  size_t nkernels;                  /* of ng_kernel_info */
  double ms;                        /* of a call; a mean over the middle fifth of the runs, as all times here */
  double other_ms;                  /* of these in no kernel: the call itself, and outputs that are copies */
} ng_profile;

/* NULL: k was not compiled with options->profile. The times are those of the last ng_bench that returned NG_OK, 0
   before any. Valid as long as k; ng_bench changes it. */
NG_API const ng_profile *ng_kernel_profile(const ng_kernel *k);

/* What there is. */

typedef struct ng_operator_info {
  const char *name;                   /* Name or dialect.Name: always accepted in a graph */
  const char *canonical;              /* the operator it means */
  const char *family, *doc, *formula; /* formula: in the canonical operator's names */
  size_t ninputs, noutputs, nattributes;
  const char *no_gradient; /* why it has none; NULL: it has one */
} ng_operator_info;

typedef struct ng_operand_info {
  const char *name;
  const char *dst_name; /* what it is called, and is, when the attribute use_dst is true; NULL: the same */
  int is_optional;
  char type_variable;    /* operands with the same letter have one type */
  unsigned types;        /* those allowed: bit 1 << NG_F32 and so on */
  const char *canonical; /* what the canonical operator calls it */
  int is_repeated;       /* there may be several, one behind the other */
} ng_operand_info;

typedef struct ng_attribute_info {
  const char *name;
  const char *kind; /* "bool", "s64", "f32", "choice" or "s64 list" */
  int is_required, has_default, is_positive;
  double default_value;       /* of a choice: its index */
  const char *const *choices; /* nchoices of them */
  size_t nchoices;
} ng_attribute_info;

/* Every name: the operators' own first, then those of other dialects. Strings are static. */
NG_API size_t ng_operator_count(void);
NG_API ng_operator_info ng_operator_at(size_t i);
NG_API ng_operand_info ng_operator_input(size_t i, size_t k);
NG_API ng_operand_info ng_operator_output(size_t i, size_t k);
NG_API ng_attribute_info ng_operator_attribute(size_t i, size_t k);
/* The row of a name in any spelling that a graph may use; ng_operator_count() when there is none. */
NG_API size_t ng_operator_find(const char *name);
NG_API const char *ng_operator_nearest(const char *name); /* for "did you mean"; NULL: nothing is near */

typedef struct ng_pass_info {
  const char *name, *doc;
  int is_needed; /* compiling relies on it, so that it cannot be disabled */
} ng_pass_info;
NG_API size_t ng_pass_count(void);
NG_API ng_pass_info ng_pass_at(size_t i);

typedef struct ng_rule_info {
  const char *name;
  int is_fast_math; /* applied only when that is allowed */
} ng_rule_info;
NG_API size_t ng_pass_rule_count(size_t pass); /* of the rules that it applies */
NG_API ng_rule_info ng_pass_rule_at(size_t pass, size_t i);
/* Multiply(x, 1) -> x: for the caller to free with ng_text_free. NULL: out of memory. */
NG_API char *ng_pass_rule_text(ng_context *ctx, size_t pass, size_t i);

#ifdef __cplusplus
}
#endif

#endif
