/* ngrad: compile computation graphs of training steps.
 *
 * This is the only installed header. A graph is read from a file or from memory. It can then be interpreted (the
 * reference), compiled for this processor and called with the caller's pointers, or emitted as C source.
 *
 *   ng_context *ctx = ng_context_new(NULL);
 *   ng_graph *g = ng_graph_read_file(ctx, "layer_norm.yaml");
 *   if (!g) fputs(ng_messages_text(ctx, 0), stderr);
 *
 * Errors. A function returns an ng_status, or a handle or text that is NULL on failure, and adds the reason to the
 * context's message list. No function prints, exits or changes a global setting (locale, signals, floating-point
 * modes). Unless a comment says otherwise, pointers must not be NULL and indices must be below their counts.
 *
 * Ownership. The caller owns the result of a function named _new, _read, _show, _run_passes, _random, _compile or
 * _emit, and frees it with the function declared beside it: first kernels, graphs, tensors and texts, in any order
 * unless a comment says otherwise, then their context. Strings in a result belong to the object that was queried.
 * Functions keep no pointer to their arguments.
 *
 * Units. Lengths in memory are in bytes and named nbytes; nelems counts elements; an extent is an axis's length in
 * elements; times are in milliseconds and named _ms.
 *
 * Threads. Only one thread at a time may use a context and the objects made with it, except that several threads may
 * call ng_kernel_run for one kernel at once. Different contexts are independent. Functions without a handle may be
 * called at any time. Compiling reads the environment (CC, NGRAD_MPICC, PATH, HOME, XDG_CACHE_HOME, TMPDIR,
 * XDG_RUNTIME_DIR), which must not change meanwhile. Compiling also starts a child process and waits for it, so a
 * handler of SIGCHLD must not wait for arbitrary children.
 *
 * Versions. Before 1.0.0 each minor version has its own API, ABI and soname. A zeroed struct, (ng_options){0}, holds
 * the defaults, and later versions keep this rule.
 */
#ifndef NGRAD_H
#define NGRAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NG_VERSION "0.2.0" /* of this header */
/* Which bits results have: the number is raised when an order of additions, a formula or the making of random numbers
   changes, so that some graph gives other bits than before (docs/versions.md). */
#define NG_BITS 1
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
  NG_COMPILER_FAILED = 4, /* the system's C compiler is missing or failed; the messages hold its output */
  NG_OUT_OF_MEMORY = 5,
  NG_RANKS_FAILED = 6 /* an exchange with other ranks failed */
} ng_status;

NG_API const char *ng_version(void); /* of the library: "0.2.0" */
NG_API int ng_bits(void);            /* of the library: its NG_BITS */
NG_API const char *ng_status_text(ng_status status);

/* A context: an allocator, and the messages of the calls that used it. */

typedef struct ng_context ng_context;

/* resize(user, p, 0) frees p; resize(user, NULL, n) allocates n bytes, aligned for any type. On failure it returns NULL
   and leaves p untouched. Several threads call it at once only if several threads run a kernel. All memory that grows
   with graphs and tensors comes from it; the C library, the YAML parser and threads use the system's allocator. */
typedef struct ng_allocator {
  void *(*resize)(void *user, void *p, size_t nbytes);
  void *user;
} ng_allocator;

NG_API ng_context *ng_context_new(const ng_allocator *allocator); /* NULL: the system's; returns NULL: out of memory */
NG_API void ng_context_free(ng_context *ctx); /* after freeing every object made with it; ctx may be NULL */

typedef struct ng_message {
  int is_error;          /* 0: a warning */
  const char *file;      /* NULL: none */
  unsigned line, column; /* from 1, in characters; 0: none */
  const char *text; /* "subject: expected ..., found ...": lower case, no full stop; in a text of several lines each
                       ends in \n */
} ng_message;

/* Messages accumulate until they are cleared; the list holds the first 100. Running out of memory adds no message: it
   is a status, and a line of ng_messages_text. */
NG_API size_t ng_message_count(const ng_context *ctx);
NG_API ng_message ng_message_at(const ng_context *ctx, size_t i); /* its strings are valid until messages are cleared */
NG_API const char *ng_messages_text(ng_context *ctx, int colour); /* formatted like a compiler's diagnostics; "" without
                                                                     messages; valid until the function's next call */
NG_API void ng_messages_clear(ng_context *ctx);
NG_API ng_status ng_last_status(const ng_context *ctx); /* why the last function that returns a handle or a text
                                                           returned NULL; NG_OK if it succeeded */

/* For a process that must exit while calls are running: kills the compilers that run, and deletes temporary files and
   folders of compiling and writing. Calls in other threads that compile or write never return. The function may block,
   so call it from a thread that receives signals with sigwait, not from a signal handler. */
NG_API void ng_abandon(void);

/* The log is called with each message as the message is added, by the thread whose call caused the message. It must not
   use the context. NULL: no log. */
NG_API void ng_context_set_log(ng_context *ctx, void (*log)(void *user, const ng_message *message), void *user);

/* The memory budget: the most bytes that the context's allocator may have handed out at a time. A call that would
   exceed it fails with NG_OUT_OF_MEMORY, where possible with a message and before it allocates anything. The default,
   which 0 restores, is three quarters of the memory available when the context was made, as limited by the machine, the
   process's control groups and its resource limits. The C compiler is another process and not counted. */
NG_API void ng_context_set_max_memory(ng_context *ctx, uint64_t nbytes);
NG_API uint64_t ng_context_max_memory(const ng_context *ctx);

/* The most steps that one call may spend on compiling a graph, so that compiling ends within seconds for every graph. A
   graph that needs more is refused with NG_WRONG. 0: the default. Steps count work, not time, so the limit acts the
   same on every machine. */
NG_API void ng_context_set_max_steps(ng_context *ctx, uint64_t nsteps);

/* The calls between these two spend the steps of one call together, so that what a program does for one graph ends
   within seconds, too. Pairs may be nested. `name` is that of the graph in messages. */
NG_API void ng_steps_begin(ng_context *ctx, const char *name);
NG_API void ng_steps_end(ng_context *ctx);

typedef struct ng_memory_part {
  const char *what; /* "inputs" */
  uint64_t nbytes;
} ng_memory_part;

/* Checks that the sum of the parts fits into the rest of the budget, and reserves nothing. Otherwise NG_OUT_OF_MEMORY,
   after a message that begins with `doing` ("running layer_norm") and lists the parts. */
NG_API ng_status ng_context_check_memory(ng_context *ctx, const char *doing, const ng_memory_part *parts,
                                         size_t nparts);

/* Progress of long work (compiling, interpreting, timing): called with a fraction in [0, 1], or -1 if it is unknown, by
   the calling thread. NULL: no calls. */
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
  NG_S4, /* two elements a byte, the first in the low half; an odd count leaves the last high half unchanged */
  NG_U4,
  NG_S16,
  NG_U16,
  NG_U32,
  NG_U64,
  NG_TYPE_COUNT
} ng_type;

typedef struct ng_tensor_info {
  const char *name;
  ng_type type;
  int rank;                         /* -1: unknown */
  int64_t extent[NG_MAX_RANK];      /* -1: unknown, or a name without a value; else a number, or the name's value */
  const char *dim[NG_MAX_RANK];     /* the name of a named extent, or its formula; NULL: a number or unknown */
  unsigned char order[NG_MAX_RANK]; /* the layout, as in ng_tensor */
} ng_tensor_info;

NG_API const char *ng_type_name(ng_type type);
NG_API size_t ng_type_nbytes(ng_type type); /* 1 for types of 4 bits too; ng_tensor_nbytes counts them as half a byte */

/* Reads a graph, infers its types and shapes, and verifies it. NULL after a message. The content decides the format:
   ngrad/1, ONNX, or JSON of oneDNN Graph or nGraph. `folder` is where file: constants are looked up; with NULL such
   constants are errors. ng_graph_read_file uses the folder of `path`; path "-" reads standard input, which has no
   folder. `name` stands for the text in messages. The text is copied. */
NG_API ng_graph *ng_graph_read_file(ng_context *ctx, const char *path);
/* Options for reading an ONNX model. Inputs not in `constants` and extents not in `dims` become inputs and dims of the
   graph. */
typedef struct ng_read_options {
  const char *const *constants; /* "NAME=FILE": an input that becomes a constant, for example an input that is a shape;
                                   FILE is a .npy file or holds a TensorProto */
  size_t nconstants;
  const struct ng_dim_info *dims; /* named extents, with the values that they get when the model is read */
  size_t ndims;
  /* Asked for the shape of each input, which the model's unknown and named extents get when the model is read. Returns
     the number of extents, of which -1 is as the model says; -1: not known. A shape that contradicts the model's is
     ignored. NULL: no shape is known. */
  int (*find_shape)(void *user, const char *input, int64_t extent[NG_MAX_RANK]);
  void *find_shape_user;
  int trains_batch_norms; /* batch norms compute the statistics of each batch, and the next running ones, as if all had
                             training_mode: exporters write a network that is to be trained as one for inference */
} ng_read_options;
NG_API ng_graph *ng_graph_read_file_with(ng_context *ctx, const char *path, const ng_read_options *options);
NG_API ng_graph *ng_graph_read(ng_context *ctx, const char *name, const char *text, size_t nbytes, const char *folder);
NG_API ng_graph *ng_graph_read_with(ng_context *ctx, const char *name, const char *text, size_t nbytes,
                                    const char *folder, const ng_read_options *options);
NG_API void ng_graph_free(ng_graph *g);

NG_API const char *ng_graph_name(const ng_graph *g);
NG_API size_t ng_graph_input_count(const ng_graph *g);
NG_API size_t ng_graph_output_count(const ng_graph *g);
/* Input or output number i, from 0; i must be below the count. The names in the result are valid as long as g. */
NG_API ng_tensor_info ng_graph_input(const ng_graph *g, size_t i);
NG_API ng_tensor_info ng_graph_output(const ng_graph *g, size_t i);
/* Whether each element has exactly one right value, also the sign of a zero: the output is not computed in floating
   point and not quantised, or it consists of elements of inputs and constants in other places. */
NG_API int ng_graph_output_is_exact(const ng_graph *g, size_t i);

/* States are tensors that persist from call to call, such as parameters and the moments of an optimizer. They are the
   graph's last inputs. Their values after a call are the graph's last outputs, of the same types and shapes. */
typedef struct ng_state {
  size_t input, output; /* indices; `output` is valid if is_updated */
  int is_updated;       /* 0: calls leave the state unchanged */
  /* Of a counter of s64, which begins with its first value and to which each call adds a number, the least and the
     greatest element: others are damage, as they would wrap around. Of other states INT64_MIN and INT64_MAX. */
  int64_t least, most;
} ng_state;
NG_API size_t ng_graph_state_count(const ng_graph *g);
NG_API ng_state ng_graph_state(const ng_graph *g, size_t i);
/* The number of leaves that the batch is divided into, which is the first extent of each input with samples; 0: no
   leaves declared. */
NG_API int64_t ng_graph_leaf_count(const ng_graph *g);

/* A named extent. A bound graph has none. */
typedef struct ng_dim_info {
  const char *name;
  int64_t value; /* -1: none */
} ng_dim_info;
NG_API size_t ng_graph_dim_count(const ng_graph *g);
NG_API ng_dim_info ng_graph_dim(const ng_graph *g, size_t i);

/* Nodes, producers before consumers. Operands and attributes are in the order of the canonical operator, whose row of
   the catalogue below names them: ng_operator_input(ng_operator_find(canonical), k). */
typedef struct ng_node_info {
  const char *name;      /* the operator's name in the file, spelled as in ng_operator_info */
  const char *canonical; /* the canonical operator for that name */
  size_t ninputs, noutputs, nattributes;
  unsigned line; /* in the file, from 1; 0: a pass made the node */
} ng_node_info;

typedef struct ng_attribute {
  const char *name;
  const char *kind;      /* as in ng_attribute_info; says which field below holds the value */
  int is_set;            /* 0: an optional attribute that is absent */
  int64_t integer;       /* "bool", "s64"; "choice": its index */
  double number;         /* "f32" */
  const int64_t *items;  /* "s64 list": nitems of them, valid as long as g; 0 for an item that is a named extent */
  const double *numbers; /* "f32 list" */
  size_t nitems;
} ng_attribute;

NG_API size_t ng_graph_node_count(const ng_graph *g);
NG_API ng_node_info ng_graph_node(const ng_graph *g, size_t i);
NG_API ng_tensor_info ng_graph_node_input(const ng_graph *g, size_t i, size_t k); /* name NULL: an absent operand */
NG_API ng_tensor_info ng_graph_node_output(const ng_graph *g, size_t i, size_t k);
NG_API ng_attribute ng_graph_node_attribute(const ng_graph *g, size_t i, size_t k);

/* The files that constants were read from, relative to the graph's folder; NULL for an i beyond their count. */
NG_API size_t ng_graph_file_count(const ng_graph *g);
NG_API const char *ng_graph_file(const ng_graph *g, size_t i);
/* Writes the weights of a model of another system to `folder`, one .npy file each: the first values of states, and
   constants of at least `least` elements. ng_graph_show then refers to these files in its yaml. g is a graph that was
   read, or that ng_graph_gradient, ng_graph_train or ng_graph_inference made from one. */
NG_API ng_status ng_graph_write_weights(ng_graph *g, const char *folder, size_t least);

/* Before a graph is bound its extents may change. ng_graph_set_dim gives a named extent another value.
   ng_graph_set_input_shape gives numbers to an input's unknown extents, and to its named extents in place of the
   graph's values (NG_WRONG if ng_graph_set_dim or another input gave a name another number, or if a fixed extent
   differs). ng_graph_bind fixes all extents, infers again, and fails if an extent still has no number. Interpreting and
   compiling bind a graph first if necessary; it stays bound. */
NG_API ng_status ng_graph_set_dim(ng_graph *g, const char *name, int64_t value);
NG_API ng_status ng_graph_set_input_shape(ng_graph *g, size_t i, int rank, const int64_t *extent);
NG_API ng_status ng_graph_bind(ng_graph *g);

/* The result of one pass. Valid during the call of `report`. */
typedef struct ng_pass_report {
  const char *name;
  size_t number; /* position in the order of passes, from 1 */
  int changed;
  double ms;
  size_t node_count; /* after the pass */
  const char *graph; /* the graph after the pass, as a graph file; NULL: unchanged, or report_graphs is 0 */
} ng_pass_report;

/* How a graph becomes kernels. */
typedef struct ng_options {
  const char *isa; /* "scalar", "avx2", "avx512", "avx512_bf16", "neon"; NULL or "native": the best of this processor.
                      ng_emit takes several, "avx2,avx512", and always adds "scalar"; NULL: all */
  int no_fuse;     /* one kernel for each operator */
  uint64_t memory_nbytes; /* the most bytes of the workspace (ng_graph_workspace); 0: no limit. Values are recomputed
                             until the workspace fits, and a warning tells the cost; results keep their bits. NG_WRONG,
                             with a message that tells the least possible, if it cannot fit */
  const char *const *disable; /* names of passes and rules to leave out; required passes cannot be disabled */
  size_t ndisable;
  const char *const *schedule; /* "key=number": overrides the schedule's choice for every kernel; for experiments */
  size_t nschedule;
  const char *const *costs; /* "name=number": sets a threshold by which passes decide (ng_cost_at); for experiments */
  size_t ncosts;
  const char *after; /* ng_graph_show: the last pass to run, for format "kernels" one over kernels; NULL: none for yaml
                        and dot, all for other formats */
  const char *threads; /* ng_emit: "none", "openmp" or "callback"; NULL: "openmp" */
  const char *prefix;  /* ng_emit: prefix of external symbols, a C identifier; NULL: ng_graph_identifier */
  int self_test; /* ng_emit_files: also writes STEM_test.c, a program that tests the emitted pair on the machine where
                    it runs; with an inference also STEM_infer_test.c, which belongs to this program */
  int fast_math; /* allows rewrites that do not hold for every IEEE value */
  void (*report)(void *user, const ng_pass_report *report); /* called after each pass that ran; may be NULL */
  void *report_user;
  int report_graphs;
  int profile;            /* ng_compile: ng_bench also fills ng_kernel_profile; this adds some 50 ns to each loop */
  double compile_timeout; /* ng_compile: seconds after which the C compiler and its process group are killed:
                             NG_COMPILER_FAILED; 0: 300; negative: no limit */
  const char *weights;  /* ng_emit: where states are that no call updates. "const": in the source, as constants with the
                           states' first values, which must not be random; "file": with other states in memory of the
                           caller, which a function fills from a file. NULL: "file" */
  const char *optimize; /* "size": scalar C of little code, for small devices; isa must be NULL or "scalar". NULL or
                           "speed": fast code. Results have the same bits */
  const char *package;  /* ng_emit_files, ng_emit_training_files: further files that make the pair a library: "arduino",
                           "zephyr" or "cmake". The first two fix all extents, and by default choose "scalar",
                           optimize "size" and threads "none". NULL: no further files */
  void (*wrote)(void *user, const char *path); /* the same: called after each file; may be NULL */
  void *wrote_user;
} ng_options;

/* Runs the passes on g, up to options->after if set. The result is a new graph, used like any other, but freed before
   g. Binds g. NULL after a message. options may be NULL. */
NG_API ng_graph *ng_graph_run_passes(ng_graph *g, const ng_options *options);

/* The graph, or a stage of its compilation, as text: "yaml", "summary" (yaml with comments in place of the values of
   long constants), "dot", "kernels", "loops", "c", "memory" (the plan of the workspace, as a table), "memory-svg" (as a
   picture), "json" (the graph as data) or "kernels-json" (the same after all passes, with kernels and the plan of the
   workspace). The caller frees it with ng_text_free. NULL after a message. options may be NULL. Binds g, except to
   show a graph before any pass. */
NG_API char *ng_graph_show(ng_graph *g, const char *format, const ng_options *options);
/* The graph as an ONNX model of opset 17, *nbytes long. The caller frees it with ng_text_free. What ONNX cannot
   express becomes nodes of the domain "ngrad", after a warning, which ng_graph_read_file reads. States become inputs,
   and their updates outputs. Layouts are dropped, and attributes of ONNX's own operators are rounded to f32. NULL after
   a message. */
NG_API char *ng_graph_onnx(const ng_graph *g, size_t *nbytes);

/* The workspace: bytes of memory for values that kernels pass to each other. *unshared: its length if no two values
   shared memory. */
NG_API ng_status ng_graph_workspace(ng_graph *g, const ng_options *options, size_t *nbytes, size_t *unshared);

/* The cost of compiling the graph for the options' instruction set, without the C compiler's work. */
typedef struct ng_compilation {
  uint64_t nsteps;                          /* the count that ng_context_set_max_steps limits */
  uint64_t code_nbytes;                     /* of the emitted C */
  size_t workspace_nbytes, unshared_nbytes; /* of ng_graph_workspace, which compiles the graph once more */
  size_t c_workspace_nbytes; /* of emitted C: also for outputs that a call may leave out although kernels read them */
} ng_compilation;
NG_API ng_status ng_graph_compilation(ng_graph *g, const ng_options *options, ng_compilation *out);

/* Bytes that running a graph needs beside the graph itself and a kernel's workspace. The largest number stands for all
   that exceed it. */
typedef struct ng_memory {
  uint64_t inputs_nbytes, outputs_nbytes;
  uint64_t constants_nbytes;   /* without constants of one element; the graph holds these bytes already */
  uint64_t interpreter_nbytes; /* the peak of ng_interpret's own arrays: values in f64, and sums */
} ng_memory;
NG_API ng_status ng_graph_memory(ng_graph *g, ng_memory *out); /* binds g */

NG_API void ng_text_free(ng_context *ctx, char *text);

/* Escapes a name, or other untrusted text, for insertion into a format. Invisible characters (control characters, marks
   of direction, invalid UTF-8 ...) become a question mark, an escape of the format, or an underscore. */
typedef enum ng_sink {
  NG_C_IDENTIFIER, /* part of an identifier */
  NG_C_COMMENT,    /* inside a comment */
  NG_C_STRING,     /* with its quotes */
  NG_DOT,          /* inside double quotes */
  NG_YAML,         /* with double quotes */
  NG_HTML,         /* text, or a quoted attribute's value */
  NG_TERMINAL,     /* part of a line; each character takes one column */
  NG_MAKEFILE,     /* a file's name in a rule */
  NG_JSON          /* with double quotes, in ASCII; also within a script of an HTML page */
} ng_sink;
/* From malloc; the caller frees it. NULL: out of memory, or a file name that no makefile rule can contain. */
NG_API char *ng_escape(ng_sink sink, const char *text);

/* Gradients. The lists name inputs and outputs of g. */

/* The derivatives that ng_graph_gradient makes of outputs y by inputs x. Graphs of all but the first compute g's values
   themselves; names are those of g behind a prefix. Matrices go over extents with numbers: literal ones, and dims that
   ng_graph_set_dim has set. Where no y depends on an x, all but NG_GRADIENT and NG_VJP are zeros. */
typedef enum ng_derivative {
  NG_GRADIENT, /* diff_x from diff_y: u^T J */
  NG_TANGENTS, /* forward mode: tangent_y from tangent_x: J t */
  NG_HVP,      /* tangent_diff_x from tangent_x: H t, of single numbers y, added up */
  NG_JACOBIAN, /* jacobian_x, of one output y of at most 64 elements: its first axis goes over the elements of y */
  NG_HESSIAN,  /* hessian_x, of single numbers y by inputs x of at most 64 elements together, likewise over theirs */
  NG_VJP       /* diff_x from diff_y, as NG_GRADIENT, which takes values of g in place of computing them */
} ng_derivative;

typedef struct ng_gradient_options {
  const char *const *wrt; /* inputs to make gradients of; NULL: all floating-point inputs that outputs depend on */
  size_t nwrt;
  const char *const *of; /* outputs to differentiate; NULL: all floating-point outputs except statistics of norms */
  size_t nof;
  int save_least; /* the gradient graph recomputes saved values where that is cheap from values it reads anyway */
  ng_derivative derivative; /* of ng_graph_gradient; other functions take the gradient */
  /* As in ng_train_options, of NG_GRADIENT and graphs without leaves only. The gradient takes saved values of bf16 or
     f16; ng_graph_gradient_forward gives these, and rounds the operands of its products. Nothing is scaled. */
  const char *precision;
  const char *const *keep_f32;
  size_t nkeep_f32;
} ng_gradient_options;

/* The graph that computes the gradients of g's inputs: diff_NAME for each name in wrt, from diff_NAME for each name in
   `of`. Its inputs are those of g's inputs that it uses, the intermediate values of g that it uses (saved values, under
   their own names), and the diff_NAME of `of`. For a graph with leaves it takes no intermediate values but recomputes
   them, because values of one leaf cannot be inputs. NULL after a message; ng_last_status is NG_USAGE for an unknown
   name. options may be NULL. g is not bound by this, but every extent must have a number or a name. */
NG_API ng_graph *ng_graph_gradient(ng_graph *g, const ng_gradient_options *options);
/* g with further outputs behind its own: the saved values that the gradient graph for the same options takes as inputs.
   Equal names connect the two graphs. */
NG_API ng_graph *ng_graph_gradient_forward(ng_graph *g, const ng_gradient_options *options);

/* A copy of g in which these floating-point constants are inputs behind g's own, in the order of the names: what
   gradients by the parameters of a model need. Names of g's inputs are passed over. NULL after a message;
   ng_last_status is NG_USAGE for another name. */
NG_API ng_graph *ng_graph_with_inputs(ng_graph *g, const char *const *names, size_t count);

/* A copy of g in which the constants that ng_graph_train takes as parameters are states with these numbers, so that
   they have gradients. If g has parameters, all its constants stay. NULL after a message. */
NG_API ng_graph *ng_graph_trainable(ng_graph *g);

typedef struct ng_gradcheck_options {
  ng_gradient_options gradient;
  uint64_t seed;    /* of the random data, as ng_tensor_random makes it */
  double tolerance; /* the largest relative error of an element that passes; 0: 1e-6 */
} ng_gradcheck_options;

typedef struct ng_gradcheck_result { /* of one input */
  int64_t nelems, nchecked;          /* nchecked 0: no gradient of this input was requested */
  int64_t nskipped; /* elements of nchecked at kinks: the slopes of the two sides differ, so the derivative does not
                       exist */
  /* |gradient - expected| divided by the largest of |gradient|, |expected|, a thousandth of the root mean square of
     the input's whole gradient, and the possible rounding error over the tolerance */
  double largest_error;
  int64_t worst_element;     /* index in row-major order; -1: no element differs */
  double gradient, expected; /* at the worst element: by the gradient graph, and by differences */
  int is_within;
} ng_gradcheck_result;

/* Compares the gradient graph with finite differences of g, both interpreted in f64. The function differentiated is the
   sum of all outputs with random weights. Inputs are random; states that begin with numbers from a file have these.
   `results` has an element for each of g's inputs. In large graphs only some elements are checked. NG_DIFFERENT: an
   element is outside the tolerance. Binds g. options may be NULL. */
NG_API ng_status ng_gradcheck(ng_graph *g, const ng_gradcheck_options *options, ng_gradcheck_result *results);

/* Training. The parameters of a graph are its floating-point states that the graph itself does not update. */

typedef struct ng_setting {
  const char *name; /* of a setting: "learning_rate" */
  double value;
} ng_setting;

typedef struct ng_train_options {
  const char *const *losses; /* outputs of rank 0, whose sum is minimised; NULL: the only output of rank 0 that depends
                                on parameters. Or losses to add: "cross-entropy", "mse" or "bce" of the first output
                                that depends on parameters, or "mse:NAME" and so on of another */
  size_t nlosses;
  const char *optimizer; /* "sgd", "momentum", "adam", "adamw" or "adagrad"; NULL: "sgd" */
  /* Settings: "learning_rate" (default 0.01 for sgd, momentum and adagrad, 0.001 for adam and adamw); the attributes of
     the operators SGD, Momentum, Adam, AdamW and Adagrad, with momentum defaulting to 0.9 and "nesterov" 0 or 1;
     "clip_norm" (0, the default, is no limit); "accumulate"; "sync_batch_norm" (0 or 1; needs "accumulate"); "warmup",
     "steps", "step_size" and "gamma" of the schedule. */
  const ng_setting *settings;
  size_t nsettings;
  /* How the learning rate depends on the step t, from 0. "constant"; "step": multiplied by gamma (default 0.1) every
     step_size steps; "cosine": falls to 0 along half a cosine until t reaches steps. NULL: "constant". With warmup, the
     rate is first multiplied by (t + 1) / warmup for that many steps, and t then counts from the end of the warmup. */
  const char *schedule;
  const char *const *freeze; /* patterns with *, ? and [...]; parameters that match are not trained */
  size_t nfreeze;
  /* Patterns of parameters without weight decay; "norms-and-biases": those with at most one axis, or a name that ends
     in "bias". */
  const char *const *no_decay;
  size_t nno_decay;
  /* "f32", "bf16" or "f16"; NULL: "f32". bf16: products and convolutions take operands of bf16 and add in f32, and
     activations that the backward pass reads are kept as bf16. States, norms, softmax, losses and all else are computed
     in f32. f16: likewise, and the gradients of the losses are multiplied by the state "loss_scale", from 65536 on, and
     those of the parameters divided by it. A step with a gradient that is not finite changes no floating-point state,
     but halves the scale; 2000 others in a row double it. "loss_scale.calls" counts these, "updates" all others. */
  const char *precision;
  const char *const *keep_f32; /* with bf16 or f16: operators that read, compute and keep f32, as do their gradients
                                  (those of Convolution are the operators ConvolutionBackward...; of MatMul, MatMul) */
  size_t nkeep_f32;
} ng_train_options;

/* The step graph of g: one call computes the losses and updates the parameters. It has g's inputs and states, and g's
   outputs of rank 0. It adds states: the optimizer's beside each parameter (NAME.momentum, or NAME.m and NAME.v, or
   NAME.sum), and "step", which counts calls. clip_norm multiplies all gradients by min(1, clip_norm / (norm + 1e-6)),
   where norm is the L2 norm of all gradients together. NULL after a message; ng_last_status is NG_USAGE for wrong
   options. Named extents stay open. */
NG_API ng_graph *ng_graph_train(ng_graph *g, const ng_train_options *options);

/* The floating-point constants and states of the graph that ng_graph_train made a step from. Their number is 0 for
   other graphs. */
typedef struct ng_parameter {
  const char *name;
  int is_constant;     /* 0: a state */
  int is_trained;      /* the step updates it */
  int has_decay;       /* with weight decay */
  const char *why_not; /* it is not trained: "frozen", "a number of a formula", ...; NULL: it is trained */
} ng_parameter;
NG_API size_t ng_graph_parameter_count(const ng_graph *step);
NG_API ng_parameter ng_graph_parameter(const ng_graph *step, size_t i);

/* The form of g to use after training: batch norms use the running statistics in g's states, dropout does nothing, and
   no state is updated. It has all of g's states, used or not, and those inputs of g that it uses. NULL after a message;
   the message is a warning if g has no such form. Only options->losses is read; options may be NULL. */
typedef enum ng_inference_form {
  NG_TEST, /* outputs of rank 0: losses and metrics */
  NG_INFER /* outputs other than losses that need only inputs needed by every output; labels are not among these */
} ng_inference_form;
NG_API ng_graph *ng_graph_inference(ng_graph *g, ng_inference_form form, const ng_train_options *options);

/* Tensors are dense. `order` is the layout: the axes from the slowest to the fastest in memory, each once; all zeros
   mean row-major. ng_graph_input and ng_graph_output tell the layouts of a graph; tensors passed to it must have these
   layouts. */

typedef struct ng_tensor {
  ng_type type;
  int rank;
  int64_t extent[NG_MAX_RANK];
  void *data;
  unsigned char order[NG_MAX_RANK];
} ng_tensor;

/* The caller's memory as a tensor: ng_tensor_view(ng_graph_input(g, 0), x). The caller still owns the memory, which
   must be aligned to the element type. Inputs are only read. bf16 and f16 are stored as their bits in uint16_t, a
   boolean as a byte, 0 or 1. */
NG_API ng_tensor ng_tensor_view(ng_tensor_info info, void *data);
NG_API int64_t ng_tensor_nelems(const ng_tensor *t);
NG_API size_t ng_tensor_nbytes(const ng_tensor *t);
NG_API double ng_tensor_get(const ng_tensor *t, int64_t i); /* element i in row-major order, whatever the layout */
/* Makes a tensor of zeros in info's layout, with data aligned to 64 bytes. NG_USAGE: an extent has no number. */
NG_API ng_status ng_tensor_new(ng_context *ctx, const ng_tensor_info *info, ng_tensor *out);
NG_API void ng_tensor_free(ng_context *ctx, ng_tensor *t); /* t may be freed twice; a zeroed t is fine */
/* Reading and writing convert between the tensor's layout and the file's, which is row-major or column-major. `info`
   states the expected tensor; extents of -1, or rank -1, are taken from the file. any_float: the file may hold another
   floating-point type, as expected results may; the tensor then has the file's type. */
NG_API ng_status ng_tensor_read_npy(ng_context *ctx, const char *path, const ng_tensor_info *info, int any_float,
                                    ng_tensor *out);
NG_API ng_status ng_tensor_write_npy(ng_context *ctx, const char *path, const ng_tensor *t);
/* Random data for input i of g. Binds g. The same seed gives the same data on every machine. Element e comes from the
   e-th word that splitmix64 gives from the state s(s(seed) + i), where s(x) is its first word from state x. The element
   is the sum of the word's four 16-bit parts, scaled to mean 0 and variance 1: nearly normal, and within 3.47.
   Exceptions: variances of norms and operands of roots and logarithms are uniform in [0.5, 2); probabilities are
   uniform in [1/16, 15/16). This also holds if sums, products, means, casts and moves lie between the input and the
   operator. Labels and other indices are uniform below the extent that they index. Other integers have deviation 32
   (types of 4 bits: 3), reduced where Dequantize would scale them to a variance above 1. Their mean is Dequantize's
   zero point; without one, 0, or half the range for unsigned types. Scales of DynamicQuantize and DynamicDequantize are
   uniform in [1/64, 1/16). `out` is overwritten without being freed. */
NG_API ng_status ng_tensor_random(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out);

/* The initial value of the graph's i-th state, as its `init` in the file says. Random numbers are functions of the
   seed, i and the element's index, the same on every machine: Philox-4x32-10 with the seed as key and the counter (low
   index, high index, i, 0x696E6974). A uniform number uses the first 53 bits; a normal number is the sum of the eight
   16-bit parts, scaled to mean 0 and the given deviation. `out` is overwritten without being freed. */
NG_API ng_status ng_tensor_init(ng_graph *g, size_t i, uint64_t seed, ng_tensor *out);

/* Checkpoints: named tensors in one file, an uncompressed .npz archive, which numpy.load reads. Writing is atomic: the
   new file is complete on the disk before it replaces the old one, and on failure (NG_WRONG) the old file stays. */
NG_API ng_status ng_checkpoint_write(ng_context *ctx, const char *path, const char *const *names,
                                     const ng_tensor *tensors, size_t count);
/* Reads tensors of the names, types, shapes (extents of -1: any) and layouts in `wanted`, and ignores the rest of the
   file. takes_some: a tensor missing in the file is no error; its data is NULL. NG_WRONG after a message for each
   tensor that is missing, damaged, or of another type or shape; then `out` has no data at all. */
NG_API ng_status ng_checkpoint_read(ng_context *ctx, const char *path, const ng_tensor_info *wanted, size_t count,
                                    int takes_some, ng_tensor *out);
/* The names of the tensors in the file, a line each, without those of a position in training, which begin with a dot.
   The caller frees the text with ng_text_free. NULL after a message. */
NG_API char *ng_checkpoint_names(ng_context *ctx, const char *path);
/* Gives the states of g the tensors of their names in a checkpoint as first values, which ng_tensor_init makes, C has,
   and ng_graph_write_weights writes. takes_some: as above; a state that is not in the file keeps its first value.
   NG_WRONG as above; then no state has changed. */
NG_API ng_status ng_graph_read_states(ng_graph *g, const char *path, int takes_some);
/* Makes weights narrow: states of f32 with two or more axes that no call updates and whose first values are given, by a
   file or ng_graph_read_states, become states of NG_S8 or NG_BF16 with rounded values, which nodes that the graph gets
   turn into f32. s8 has a scale for each index of one axis, or one. NG_WRONG after a message, also if a number that
   should become s8 is not finite; the graph is then of no use. */
NG_API ng_status ng_graph_narrow_weights(ng_graph *g, ng_type type);
typedef struct ng_narrow_weight {
  const char *name;
  size_t nbytes_before, nbytes;     /* with the scales */
  double max_error, rms_error, rms; /* of an element; root mean squares of the errors, and of the values before */
} ng_narrow_weight;
NG_API size_t ng_graph_narrow_count(const ng_graph *g); /* of the last call */
NG_API ng_narrow_weight ng_graph_narrow(const ng_graph *g, size_t i);
/* SHA-256 of the tensors' data, concatenated, in the form that .npy files store. */
NG_API ng_status ng_tensors_sha256(ng_context *ctx, const ng_tensor *tensors, size_t count, char hex[65]);

/* Data sets: .npy files, or idx files (MNIST's format), possibly compressed with gzip. A file whose bytes are the
   tensor's bytes is mapped into memory; it must not shrink while it is open. */
typedef struct ng_data ng_data;
NG_API ng_data *ng_data_open(ng_context *ctx, const char *path); /* NULL after a message */
/* The bytes of any file, cut into samples of `length` bytes, u8 [(bytes - 1) / length, length]. is_next: for each byte
   the byte that follows it, which are the labels of a language model. */
NG_API ng_data *ng_data_open_text(ng_context *ctx, const char *path, int64_t length, int is_next);
NG_API void ng_data_close(ng_data *data);             /* before its context is freed; NULL is fine */
NG_API ng_tensor ng_data_tensor(const ng_data *data); /* row-major; read-only */
/* Checks that slices of the data along its first axis, called samples, fit input i of g behind the input's first
   nleading axes. Shapes must be equal except for extents of 1, or one of the two is flat. The data's type must be the
   input's or representable in it; floats may be rounded to bf16, and integers may have a wider type. Indices must be in
   range. NG_WRONG after a message. */
NG_API ng_status ng_data_check(const ng_data *data, const ng_graph *g, size_t i, int nleading);
/* Copies `count` samples of checked data to `batch`, a tensor of `count` samples. */
NG_API void ng_data_gather(const ng_data *data, const int64_t *samples, int64_t count, ng_tensor *batch);
/* A random permutation of 0 to count - 1, the same on every machine: for i from count - 1 down to 1, elements i and w
   mod (i + 1) are swapped. w is (word 0 << 32 | word 1) of Philox-4x32-10 with the seed as key and the counter (low i,
   high i, epoch, 0x73687566). */
NG_API void ng_permutation(uint64_t seed, uint32_t epoch, int64_t count, int64_t *order);

typedef struct ng_difference {
  double distance;       /* |actual - expected|, the L2 norm; NaNs at the same place are equal */
  double norm;           /* |expected|; ng_compare_outputs may use a larger norm */
  double relative_l2;    /* distance / norm */
  double largest_error;  /* of an element: |actual - expected| / max(|expected|, the root mean square that belongs to
                            norm); the second term gives elements near 0 a meaningful error */
  double largest_ulp;    /* |actual - expected| in units in the last place of actual's type at expected */
  double tolerance;      /* limit of relative_l2; depends on actual's type. Infinite if only most_ulp counts */
  double most_ulp;       /* limit of largest_ulp; infinite if only the tolerance counts */
  int64_t worst_element; /* index in row-major order; -1: no element differs */
  int64_t noverflown; /* elements that are infinite or NaN where expected is finite, and that pass: they, or the values
                         that they are computed from, overflow their types */
  int64_t nleft_out;  /* of ng_compare_outputs: elements excluded because rounding errors change them too much */
  int64_t nflipped;   /* of ng_compare_outputs: elements that are compared with what they are if rounding errors flip
                         choices, such as comparisons of equal numbers */
  int is_within;
} ng_difference;

/* actual and expected may differ in type but not in shape (NG_WRONG after a message). Infinities of one sign are equal;
   a NaN or an infinity is infinitely far from everything else. tolerance < 0: the default of actual's type: f64 1e-12,
   f32 1e-5, f16 2e-3, bf16 1.6e-2, 0 for integers of 32 and 64 bits and booleans; types of 16, 8 and 4 bits may differ
   by a unit in the last place. NG_DIFFERENT: outside the tolerance. */
NG_API ng_status ng_tensor_compare(ng_context *ctx, const ng_tensor *actual, const ng_tensor *expected,
                                   double tolerance, ng_difference *out);

typedef struct ng_kernel ng_kernel; /* a compiled graph: ng_compile */

/* Compares all outputs of a bound graph that `kernel` (NULL: unknown) computed from these inputs. Exact outputs
   (ng_graph_output_is_exact) have the default tolerance 0, and so have quantised outputs if no choice and no type
   narrower than f32 comes before their quantisation. Without a tolerance above 0, zeros must have the right signs in
   exact outputs, and where one elementwise operator that rounds once, such as Multiply, makes the output of inputs and
   constants. With the default tolerance, no element of an f32 or f64 output that depends on no choice and no narrower
   type may differ by more than several times what noise moves it, or a typical one, plus the tolerance of its size or a
   typical one: a few large elements excuse no errors of others. An output outside its tolerance passes in four further
   cases, whose tests interpret the graph about ten times, and more often where choices remain in doubt. 1. Terms
   cancel: the norm is at least the output's magnitude, which is its change per relative change of every value, sum and
   constant. For a quantised output, tolerance is 1, of the L2 norm of its changes by rounding errors. 2. Values are
   rounded between nodes: if `expected` are results of ng_interpret, the output is compared with the compiled graph's
   results, where each value is rounded to its declared type and intermediate values overflow as in the kernel (kernel
   NULL: as the types of operands and results say). 3. Rounding errors move a few elements much farther than the others,
   for example quotients with divisors near 0: up to one element in 50 is excluded, unless it differs by more than
   rounding errors explain; excluded elements may be infinite if rounding errors can make them so. 4. Rounding errors
   flip choices (results of comparisons, integers from floats, thresholds of gradients): an element may be what it is
   with one or the other, and nothing between. Inputs, constants, and what is computed from them without rounding have
   no rounding errors. `differences` has an element for each output. NG_DIFFERENT: an output does not pass. */
NG_API ng_status ng_compare_outputs(ng_graph *g, const ng_kernel *kernel, const ng_tensor *inputs,
                                    const ng_tensor *actual, const ng_tensor *expected, double tolerance,
                                    ng_difference *differences);

/* Running. `inputs` and `outputs` are parallel to the graph's. Their data must be aligned to the elements and have the
   types, shapes and layouts of the bound graph, and no output may overlap another tensor (NG_USAGE otherwise). */

/* Checks inputs that hold indices, such as labels or Gather's rows, and inputs that hold an optimizer's step: indices
   must be in range and steps at least 1. NG_WRONG after a message for the first wrong element of each such input.
   Indices and steps that the graph computes cannot be checked here; wrong ones give NaN. */
NG_API ng_status ng_graph_check_indices(ng_graph *g, const ng_tensor *inputs);

/* NG_WRONG, before anything is written, if ng_graph_check_indices fails. nan_check: fails at the first node that makes
   a NaN from operands without NaN, and names the node. NG_CHECK_FINITE: values are rounded to their types, and a node
   that makes an infinity fails too. */
enum { NG_CHECK_FINITE = 2 };
NG_API ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check);

typedef struct ng_kernel_info {
  const char *isa;
  size_t nkernels; /* of the compiled graph, each of them loops over memory */
  size_t workspace_nbytes;
  int was_cached; /* the kernel came from the cache, without running a compiler */
  double emit_ms, compile_ms, load_ms;
} ng_kernel_info;

/* NULL after a message. The kernel may outlive the graph. options may be NULL; options->after must be NULL. */
NG_API ng_kernel *ng_compile(ng_graph *g, const ng_options *options);
/* The texts of formats that are shown after all passes, and, unless kernel is NULL, the compiled graph, all from one
   run of the passes: for each what ng_graph_show and ng_compile give. The caller frees texts[0] to texts[nformats - 1];
   after a message all are NULL, and *kernel, too. g must have no leaves. */
NG_API ng_status ng_graph_show_all(ng_graph *g, const char *const *formats, size_t nformats, const ng_options *options,
                                   char **texts, ng_kernel **kernel);
NG_API ng_kernel_info ng_kernel_get_info(const ng_kernel *k);
NG_API int ng_thread_count(void); /* the number of processors that this process may use */
/* threads 0: ng_thread_count(). The result does not depend on the number of threads. The function adds no messages,
   because several threads may call it. NG_USAGE: a negative number of threads, or a tensor that ng_kernel_refusal
   explains. NG_WRONG: an index that ng_graph_check_indices explains; nothing was written. The update of a state may be
   at the state's own address; the results have the same bits as with separate memory. */
NG_API ng_status ng_kernel_run(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads);
/* Why ng_kernel_run refuses these tensors, as a message; NULL: it takes them. Several threads may call it. */
NG_API const char *ng_kernel_refusal(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs);
NG_API void ng_kernel_free(ng_kernel *k);

/* Several processes, called ranks, that execute the steps of one training together. A step graph with N leaves divides
   its batch among them: rank r of `count` has the leaves from N * r / count up to N * (r + 1) / count, or none. */

typedef struct ng_transfer { /* a message to or from another rank */
  int64_t peer;              /* its rank */
  void *data;
  size_t nbytes;
} ng_transfer;

/* The functions that move messages between ranks. They return 0, or another number for a failure, after which no
   exchange is possible. One thread at a time calls them. */
typedef struct ng_ranks {
  int64_t rank, count;
  void *context; /* the functions' first argument */
  /* Begins an exchange. Its data must stay untouched until the exchange is done. Exchanges in progress at the same time
     have different slots, numbered from 0. Messages between two ranks in one slot match in the order in which they were
     started. */
  int (*start)(void *context, int slot, const ng_transfer *sends, size_t nsends, const ng_transfer *receives,
               size_t nreceives);
  int (*test)(void *context, int slot, int *is_done); /* makes progress without waiting */
  int (*wait)(void *context, int slot);
} ng_ranks;

/* ng_kernel_run as one of several ranks; all ranks must call it. For inputs whose first axis is the leaves, a rank
   passes only its own leaves, and the first extent is their number. Outputs and states are the same on all ranks, with
   the same bits for any number of ranks. `ranks` NULL, or one rank: this process has all leaves. NG_RANKS_FAILED: an
   exchange failed. NG_USAGE also for several ranks and a graph without leaves. If the call fails on one rank, that
   process must end the other ranks, which may be waiting for it. */
NG_API ng_status ng_kernel_run_ranks(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads,
                                     const ng_ranks *ranks);

/* The ranks that mpirun started, this process among them; one rank without functions, if mpirun started one process or
   was not used. *nlocal: ranks on this machine. This call loads the MPI library through functions compiled with
   $NGRAD_MPICC, or with the mpicc of the MPI (Open MPI or MPICH) that mpirun belongs to; NG_COMPILER_FAILED if that
   fails. Call it once in a process, in the thread that will exchange messages. If it fails and ranks->count is more
   than 1, other ranks may be waiting: end the process by a signal, because MPICH's mpirun ends the others only then. */
NG_API ng_status ng_mpi_open(ng_context *ctx, ng_ranks *ranks, int64_t *nlocal);
/* How many processes mpirun started, according to the environment; 1: no mpirun, or it does not say. *variable, unless
   NULL: the environment variable that says so. */
NG_API int64_t ng_mpi_launched(const char **variable);
NG_API void ng_mpi_close(ng_ranks *ranks); /* waits until all ranks call it; zeroed, unopened ranks are fine */
/* Ends the processes of all ranks, this one with the exit status; returns if there is only one rank. */
NG_API void ng_mpi_abort(const ng_ranks *ranks, int status);

/* The code generator's instruction sets. */
typedef struct ng_isa {
  const char *name;
  int is_available; /* on this processor */
} ng_isa;
NG_API size_t ng_isa_count(void);
NG_API ng_isa ng_isa_at(size_t i);

/* C source: NAME.c and NAME.h as texts to be freed with ng_text_free. The source is valid C11 and C++17, needs only
   libc and libm, and depends on the graph and the options but not on this machine. A named extent becomes an argument
   of the function, unless ng_graph_set_dim or ng_graph_set_input_shape gave it a number or the graph is bound; its
   value in the graph only guides the schedule. NG_WRONG also if an extent cannot be an argument. */
NG_API ng_status ng_emit(ng_graph *g, const ng_options *options, char **source, char **header);
/* Writes the same to files in an existing folder: STEM.c and STEM.h, and for a graph with leaves also STEM_mpi.c, which
   moves messages between ranks by MPI. STEM is ng_graph_identifier. In a package, they are in folders below, which are
   made if missing. Each file is written whole or not at all. NG_WRONG: a file cannot be written. */
NG_API ng_status ng_emit_files(ng_graph *g, const ng_options *options, const char *folder);
/* Writes a training step and its inference graph, which may be NULL, as one pair of files NAME.c and NAME.h, where NAME
   is ng_graph_step_identifier. They hold the functions PREFIX_train_step and PREFIX_infer (with infer
   NULL just PREFIX), which share their states: one block of memory for the states of `infer`, and another for the
   states that only `step` has. `step` must have all states of `infer`. Further functions initialise, save and load
   both blocks. */
NG_API ng_status ng_emit_training_files(ng_graph *step, ng_graph *infer, const ng_options *options, const char *folder);
/* The stem of emitted files' names: the graph's name as a C identifier. Valid as long as g; NULL: out of memory. */
NG_API const char *ng_graph_identifier(ng_graph *g);
/* The stem of the names of a training step's C files and checkpoint: its name without a final "_step", as a C
   identifier. Valid as long as `step`; NULL: out of memory. */
NG_API const char *ng_graph_step_identifier(ng_graph *step);

/* Timing */

typedef struct ng_bench_options {
  int threads;    /* 0: all processors */
  int cold;       /* flush the caches before each run */
  double seconds; /* how long to measure; 0: about one */
} ng_bench_options;

typedef struct ng_bench_result {
  size_t runs;                      /* of the kernel, in all samples */
  size_t samples;                   /* each times one run, or several runs if a run is very short */
  double min_ms, median_ms, max_ms; /* of the samples, in ms a run */
  double mad_ms;                    /* median absolute deviation: the median of |sample - median_ms| */
  size_t outliers; /* samples farther from the median than 7.413 mad_ms: 5 standard deviations of a normal distribution
                      with this mad_ms */
  uint64_t bytes_read, bytes_written; /* each graph input and output counted once */
  double ceiling_ms;                  /* median of a plain loop over as many bytes, timed in alternation */
  double ceiling_ratio;               /* ceiling_ms / median_ms */
  double operations;   /* in a run: additions, multiplications, maxima and function calls, each counted as one */
  double peak_gflops;  /* rate of f32 multiply-adds on registers, counted as two operations each, on as many threads,
                          timed in alternation */
  int computes_longer; /* the operations at the peak rate take longer than the bytes at the ceiling */
} ng_bench_result;

/* Runs on options->threads threads, each pinned to a processor of its own while timing. NG_USAGE: more threads than the
   process may use processors. */
NG_API ng_status ng_bench(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, const ng_bench_options *options,
                          ng_bench_result *result);

/* The cost of a step with leaves on many ranks, by a model of its functions' times and of the messages that the ranks
   exchange. A rank has one processor, which computes, adds and posts messages, and one link, which sends and receives
   at the same time. All ranks are as busy as the busiest one, and the network has no bottleneck. */

typedef struct ng_scale_options {
  int64_t leaves;       /* 0: the graph's. The length of a leaf does not change */
  double latency_ms;    /* of a message; 0: 0.002; negative: none */
  double overhead_ms;   /* between two messages that a rank sends; 0: latency_ms; negative: none */
  double bandwidth;     /* of a rank's link, bytes a second in each direction; 0: 12.5e9 */
  double add_bandwidth; /* bytes of sums that a rank adds in a second; 0: measured */
  double leaf_ms; /* time of the functions of one leaf; 0: this and common_ms are measured; else nothing is compiled */
  double common_ms; /* time of the work that each rank does for all leaves, such as the optimizer's updates */
  int threads;      /* of a rank; 0: all processors */
  int cores;        /* more than 0: all ranks share this number of processors */
  double seconds;   /* how long to measure; 0: about one */
} ng_scale_options;

typedef struct ng_scale_basis { /* the inputs of the model */
  int64_t leaves;
  size_t exchanges, buckets; /* exchanges of a step, which follow each other; and the buckets that they consist of, each
                                sent as soon as it is complete */
  uint64_t shared_nbytes;    /* of all buckets */
  double latency_ms, overhead_ms, bandwidth, add_bandwidth, leaf_ms, common_ms;
  int is_measured; /* leaf_ms and common_ms */
} ng_scale_basis;

/* ring_...: plain ring all-reduces of the same buckets, whose bits would depend on the number of ranks. */
typedef struct ng_scale_row {
  int64_t ranks, idle_ranks, most_leaves; /* most_leaves: of any rank */
  double step_ms, ring_ms;
  double efficiency; /* time on one rank / (ranks * step_ms) */
  double leaves_ms, imbalance_ms, common_ms, additions_ms, latency_ms, bandwidth_ms; /* the sum of these is step_ms */
  const char *bound;            /* the largest of these: "compute", "leaves", "common", "additions", ... */
  uint64_t nbytes, ring_nbytes; /* sent by a rank in a step; the most of any rank */
  uint64_t nmessages;
  uint64_t all_nbytes, all_nmessages; /* of all ranks together */
  int is_uneven, is_costly; /* ranks have unequal numbers of leaves; a rank sends more than 1.1 times ring_nbytes */
  int64_t better_leaves; /* if is_uneven or is_costly: a number of leaves that makes steps of the same batch shorter; 0:
                            none is known */
  double better_ms;      /* step_ms with better_leaves */
  uint64_t better_nbytes;
  int64_t fewer_ranks; /* a smaller number of ranks, a power of two, that is faster because it needs fewer messages; 0:
                          none */
  double fewer_ms;     /* step_ms with fewer_ranks */
} ng_scale_row;

/* Fills `rows` for each number of ranks, from 1 to a million. NG_USAGE for a graph without leaves. */
NG_API ng_status ng_scale(ng_graph *g, const ng_options *options, const ng_scale_options *scale, const int64_t *ranks,
                          size_t nranks, ng_scale_basis *basis, ng_scale_row *rows);

/* Where the time of a kernel goes. A compiled graph is a sequence of kernels, and each kernel a sequence of loops.
   While these times are taken, loops run one after the other; else, loops that need none of each other may overlap.
   Bytes count each tensor that is read or written once. A kernel's own memory between its loops counts in the loops'
   bytes but not in the kernel's. */

typedef struct ng_profile_node { /* an operator that a kernel computes */
  const char *name;              /* the canonical one */
  const unsigned *lines; /* nlines line numbers of the graph's file, ascending: of all nodes that passes merged into
                            this operator */
  size_t nlines;         /* 0: no line of a file */
} ng_profile_node;

typedef struct ng_profile_loop {
  const char *text; /* the work of its sweeps, as in "kernels" of ng_graph_show */
  uint64_t bytes_read, bytes_written;
  uint64_t nblocks; /* a thread computes a whole block, so that no more threads than blocks are of use */
  double ms;
} ng_profile_loop;

typedef struct ng_profile_kernel {
  const char *text;             /* its operators: "LayerNorm (lines 4, 7 to 9), Add (line 10)" */
  const ng_profile_node *nodes; /* the same operators as data */
  size_t nnodes;
  uint64_t bytes_read, bytes_written;
  double operations; /* as in ng_bench_result */
  uint64_t nblocks;  /* of its one loop, or of the slices; 0: of several loops */
  double ms;         /* the sum of its loops' ms */
  size_t with; /* the kernel's own index, or the index of the first of several kernels that process slices of their
                  tensors together. The first holds the numbers of all; the others have none; none of them has loops */
  const char *bound; /* "memory": at least half as fast as the ceiling; "arithmetic": as the peak; if both hold, the
                        nearer one; else "neither". "": not timed */
  const ng_profile_loop *loops;
  size_t nloops;
} ng_profile_kernel;

typedef struct ng_profile {
  const ng_profile_kernel *kernels; /* in order, numbered as in "kernels" of ng_graph_show */
  size_t nkernels;                  /* of ng_kernel_info */
  double ms;                        /* of a call: the mean over the middle fifth of the runs, as all times here */
  double other_ms;                  /* the part of ms outside kernels: the call itself, and outputs that are copies */
} ng_profile;

/* NULL: k was not compiled with options->profile. The times are from the last ng_bench that returned NG_OK, or 0. Valid
   as long as k; ng_bench changes it. */
NG_API const ng_profile *ng_kernel_profile(const ng_kernel *k);

typedef struct ng_span { /* consecutive blocks of a loop that one thread computed */
  size_t kernel, loop;   /* as in ng_profile; for kernels that process slices together: the first kernel, loop 0 */
  int thread;            /* from 0 */
  size_t nblocks;
  double begin_ms, end_ms; /* since the beginning of the call */
} ng_span;

/* ng_kernel_run that also records which thread computed what when. The kernel must have been compiled with
   options->profile (NG_USAGE otherwise). The spans are ordered by loop, and valid until the next call of this function
   or as long as k. */
NG_API ng_status ng_kernel_trace(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads,
                                 const ng_span **spans, size_t *count);

/* The catalogue: operators, passes, rules and costs. */

typedef struct ng_operator_info {
  const char *name;                   /* Name or dialect.Name; a graph may always use this name */
  const char *canonical;              /* the operator that the name stands for */
  const char *family, *doc, *formula; /* formula: in the names of the canonical operator */
  size_t ninputs, noutputs, nattributes;
  const char *no_gradient; /* why no operand has a gradient other than 0; NULL: an input's is derived */
} ng_operator_info;

typedef struct ng_operand_info {
  const char *name;
  const char *dst_name; /* the operand's name and meaning when the attribute use_dst is true; NULL: the same */
  int is_optional;
  char type_variable;    /* operands with the same letter have the same type */
  unsigned types;        /* the allowed types: bit 1 << NG_F32 and so on */
  const char *canonical; /* its name in the canonical operator */
  int is_repeated;       /* the node may have several, one after the other */
  const char *gradient;  /* "derived", "zero" or "refused": the gradient by an input, or that an output gets */
  const char *why;       /* why it is not derived; NULL: it is */
} ng_operand_info;

typedef struct ng_attribute_info {
  const char *name;
  const char *kind; /* "bool", "s64", "f32", "choice" or "s64 list" */
  int is_required, has_default, is_positive;
  double default_value;       /* of a choice: an index */
  const char *const *choices; /* nchoices of them */
  size_t nchoices;
} ng_attribute_info;

/* All names: first the operators' own, then those of other dialects. Strings are static. */
NG_API size_t ng_operator_count(void);
NG_API ng_operator_info ng_operator_at(size_t i);
NG_API ng_operand_info ng_operator_input(size_t i, size_t k);
NG_API ng_operand_info ng_operator_output(size_t i, size_t k);
NG_API ng_attribute_info ng_operator_attribute(size_t i, size_t k);
/* The row of a name in any spelling that graphs accept; ng_operator_count() for an unknown name. */
NG_API size_t ng_operator_find(const char *name);
NG_API const char *ng_operator_nearest(const char *name); /* for "did you mean"; NULL: no similar name */
NG_API const char *ng_nearest(const char *word, const char *const *known, size_t nknown); /* the same for any words */

/* Operators of other systems, in each form that can be read. Strings are static. */
typedef struct ng_foreign_info {
  const char *system;    /* "ONNX" or "nGraph" */
  const char *name;      /* in that system */
  const char *canonical; /* the operator that it becomes, alone or among others; NULL: a constant, or several equals */
  int since, last;       /* ONNX: the first and the last opset; last 0: all later ones; since 0: any version */
} ng_foreign_info;
NG_API size_t ng_foreign_count(void);
NG_API ng_foreign_info ng_foreign_at(size_t i);

typedef struct ng_pass_info {
  const char *name, *doc;
  int is_needed;     /* compiling requires the pass, so it cannot be disabled */
  int is_of_kernels; /* works on each kernel, not on the graph */
} ng_pass_info;
NG_API size_t ng_pass_count(void);
NG_API ng_pass_info ng_pass_at(size_t i);

typedef struct ng_rule_info {
  const char *name;
  int is_fast_math; /* applied only with options->fast_math */
} ng_rule_info;
NG_API size_t ng_pass_rule_count(size_t pass); /* of the rules that it applies */
NG_API ng_rule_info ng_pass_rule_at(size_t pass, size_t i);
/* A rule as text, "Multiply(x, 1) -> x". The caller frees it with ng_text_free. NULL: out of memory. */
NG_API char *ng_pass_rule_text(ng_context *ctx, size_t pass, size_t i);

/* A threshold by which passes decide. Strings are static. */
typedef struct ng_cost_info {
  const char *name;
  int64_t value, least, most; /* ng_options.costs may set least to most */
  const char *unit, *what;
  const char *decides;  /* at most: "fusion" and "order", which may change bits, or "schedule", which does not */
  const char *measured; /* where and how; NULL: nothing is recorded */
  const char *graph;    /* of the benchmarks, that the value decides; "": none is known */
} ng_cost_info;
NG_API size_t ng_cost_count(void);
NG_API ng_cost_info ng_cost_at(size_t i);

#ifdef __cplusplus
}
#endif

#endif
