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
 * called at any time. Compiling reads the environment (CC, NGRAD_MPICC, PATH, HOME, XDG_CACHE_HOME, TMPDIR,
 * XDG_RUNTIME_DIR), which must not be changed meanwhile; the child that it starts is its own, so a handler of SIGCHLD
 * must not wait for any.
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
  NG_OUT_OF_MEMORY = 5,
  NG_RANKS_FAILED = 6 /* an exchange with other ranks failed */
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

/* The most steps that a call may take to compile a graph, so that it ends within seconds whatever the graph is; one
   that takes more is refused, as NG_WRONG. 0: the default. Time plays no part in it. */
NG_API void ng_context_set_max_steps(ng_context *ctx, uint64_t nsteps);

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
   only what messages call the text, which is copied. The format, ngrad/1, ONNX, or JSON of oneDNN Graph or nGraph, is
   recognised by content. */
NG_API ng_graph *ng_graph_read_file(ng_context *ctx, const char *path);
/* What an ONNX model is read with. Its other inputs, and extents, are inputs and dims of the graph. */
typedef struct ng_read_options {
  const char *const *constants; /* "NAME=FILE": inputs that are constants, as where an input is a shape; FILE is a .npy
                                   file or holds a TensorProto */
  size_t nconstants;
  const struct ng_dim_info *dims; /* named extents that have this value when the model is read */
  size_t ndims;
} ng_read_options;
NG_API ng_graph *ng_graph_read_file_with(ng_context *ctx, const char *path, const ng_read_options *options);
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
/* The leaves that the batch is divided into, the first extent of inputs that have samples; 0: none are declared. */
NG_API int64_t ng_graph_leaf_count(const ng_graph *g);

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
/* Writes the weights of a model of another system to files in `folder`, a .npy each, and lets what ng_graph_show prints
   as yaml name these: first values of states, and constants of at least `least` elements. g is a graph that was read,
   or that ng_graph_train or ng_graph_inference made of it. */
NG_API ng_status ng_graph_write_weights(ng_graph *g, const char *folder, size_t least);

/* Until a graph is bound its extents may be changed: ng_graph_set_dim gives a named extent another value;
   ng_graph_set_input_shape gives an input's unknown extents their numbers, and named ones theirs in place of the
   graph's value (NG_WRONG if ng_graph_set_dim or another input gave a different one, or a number differs).
   ng_graph_bind then fixes them all, infers again, and fails if some extent still has no number. Interpreting and
   compiling bind a graph that is not bound yet, and it stays bound. */
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
  const char *isa;        /* "scalar", "avx2", "avx512", "avx512_bf16", "neon"; NULL: the best that this processor has.
                             ng_emit: several, "avx2,avx512", and "scalar" in any case; NULL: all */
  int no_fuse;            /* one kernel an operator */
  uint64_t memory_nbytes; /* most bytes of memory between kernels (ng_graph_workspace); 0: any. Values are computed
                             again until it is enough, and a warning tells what that costs; no result changes a bit.
                             NG_WRONG after telling what the least is */
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

/* The graph, or what is made of it, as text: "yaml", "dot", "kernels", "loops", "c", "memory" (the plan of the
   workspace, as a table), "memory-svg" (as a picture), "json" (the graph as data) or "kernels-json" (the same after all
   passes, with kernels and the plan of the workspace). The caller frees it with ng_text_free. NULL after telling why.
   options may be NULL. All but a graph before any pass binds g. */
NG_API char *ng_graph_show(ng_graph *g, const char *format, const ng_options *options);
/* The graph as an ONNX model of opset 17, of *nbytes bytes, which the caller frees with ng_text_free. Operators that
   ONNX has not are nodes of the domain "ngrad", which ng_graph_read_file takes. States are inputs, and their updates
   outputs. Layouts are left out, and attributes of ONNX's own operators are rounded to f32. NULL after telling why. */
NG_API char *ng_graph_onnx(const ng_graph *g, size_t *nbytes);

/* Bytes of memory between kernels: the workspace, and what it would be if no two values ever had the same place. */
NG_API ng_status ng_graph_workspace(ng_graph *g, const ng_options *options, size_t *nbytes, size_t *unshared);

/* Bytes that running a graph needs beside the graph itself and, compiled, its workspace. The largest number stands for
   all that exceed it. */
/* What compiling the graph for the options' instruction set takes and makes, apart from the C compiler's work. */
typedef struct ng_compilation {
  uint64_t nsteps;      /* what ng_context_set_max_steps limits */
  uint64_t code_nbytes; /* of C */
} ng_compilation;
NG_API ng_status ng_graph_compilation(ng_graph *g, const ng_options *options, ng_compilation *out);

typedef struct ng_memory {
  uint64_t inputs_nbytes, outputs_nbytes;
  uint64_t constants_nbytes;   /* but those of one number; the graph holds them already */
  uint64_t interpreter_nbytes; /* the most that ng_interpret's own arrays take at a time: values in f64, and sums */
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
  NG_MAKEFILE,     /* a file's name in a rule */
  NG_JSON          /* with double quotes, in ASCII; also within a script of an HTML page */
} ng_sink;
/* From malloc: the caller frees it. NULL: out of memory, or a file's name that no rule of a makefile can have. */
NG_API char *ng_escape(ng_sink sink, const char *text);

/* Gradients. Lists of names are of inputs and outputs of g. */

typedef struct ng_gradient_options {
  const char *const *wrt; /* of which inputs gradients are made; NULL: all floating-point ones that outputs depend on */
  size_t nwrt;
  const char *const *of; /* from which outputs gradients come; NULL: all floating-point ones but norms' statistics */
  size_t nof;
  int save_least; /* compute in the gradient graph again what is cheap to compute from what it takes anyway */
} ng_gradient_options;

/* The graph that computes the gradients of g's inputs: diff_NAME for each of wrt, from diff_NAME for each of `of`. Its
   inputs are what it uses of g's inputs, of what g's nodes make (saved values, under their own names) and of those
   diff_NAME. Of a graph with leaves it takes inputs only and computes the rest again, as values of a leaf are no
   inputs. NULL after telling why: ng_last_status is NG_USAGE for an unknown name. options may be NULL. g is not bound
   by this, but every extent must have a number or a name. */
NG_API ng_graph *ng_graph_gradient(ng_graph *g, const ng_gradient_options *options);
/* g with the values that the gradient graph for the same options takes of it as further outputs, behind its own: what
   this graph and the gradient graph have by the same name is handed on. */
NG_API ng_graph *ng_graph_gradient_forward(ng_graph *g, const ng_gradient_options *options);

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

/* Training. The parameters of a graph are its floating-point states that it does not update itself. */

typedef struct ng_setting {
  const char *name; /* of a number: "learning_rate" */
  double value;
} ng_setting;

typedef struct ng_train_options {
  const char *const *losses; /* outputs of rank 0, whose sum is minimised; NULL: the only one through which gradients
                                flow to parameters */
  size_t nlosses;
  const char *optimizer; /* "sgd", "momentum", "adam", "adamw" or "adagrad"; NULL: "sgd" */
  /* "learning_rate" (else 0.01 for sgd, momentum and adagrad, 0.001 for adam and adamw); the optimizer's attributes, as
     the operators SGD, Momentum, Adam, AdamW and Adagrad have them, with 0.9 for momentum ("nesterov" is 0 or 1);
     "clip_norm"; "accumulate"; "sync_batch_norm" (0 or 1; with "accumulate"); "warmup", "steps", "step_size" and
     "gamma" of the schedule. */
  const ng_setting *settings;
  size_t nsettings;
  /* How the learning rate changes with the step t, from 0: "constant"; "step": it is multiplied by gamma (else 0.1)
     every step_size steps; "cosine": it goes to 0 along half a cosine, until t is steps. NULL: "constant". With warmup
     it first grows for that many steps, as (t + 1) / warmup, and t counts from there. */
  const char *schedule;
  const char *const *freeze; /* patterns with *, ? and [...] of parameters that stay as they are */
  size_t nfreeze;
} ng_train_options;

/* The step graph of g: a call computes the losses and updates the parameters. It has g's inputs and states, and those
   of its outputs that have rank 0. States are added: the optimizer's (NAME.momentum, NAME.m and NAME.v, or NAME.sum
   beside each parameter) and "step", which counts calls. With clip_norm, all gradients are multiplied by min(1,
   clip_norm / (norm + 1e-6)), where norm is the L2 norm of all together. NULL after telling why: ng_last_status is
   NG_USAGE for wrong options. Named extents stay open. */
NG_API ng_graph *ng_graph_train(ng_graph *g, const ng_train_options *options);

/* g as it is used after training: batch norms take the running statistics in g's states, dropout does nothing, and no
   state is updated. All of g's states are there, used or not, and of its inputs those that are used. NULL after telling
   why, as a warning: there is none. Of the options only `losses` counts; they may be NULL. */
typedef enum ng_inference_form {
  NG_TEST, /* its outputs are those of rank 0: losses and metrics */
  NG_INFER /* those that are no losses and need only the inputs that all outputs need: no labels */
} ng_inference_form;
NG_API ng_graph *ng_graph_inference(ng_graph *g, ng_inference_form form, const ng_train_options *options);

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

/* Checkpoints: named tensors in one file, an uncompressed .npz archive, which numpy.load reads. Writing puts the whole
   file on the disk before it takes the place of the one that was there, which stays when this fails (NG_WRONG). */
NG_API ng_status ng_checkpoint_write(ng_context *ctx, const char *path, const char *const *names,
                                     const ng_tensor *tensors, size_t count);
/* Makes tensors of the names, types, shapes (extents of -1: any) and orders in `wanted`. What else is in the file is
   ignored. takes_some: what is not in the file is no error, and its data is NULL. NG_WRONG after telling all that is
   missing, of another type or shape, or damaged; then `out` has no data at all. */
NG_API ng_status ng_checkpoint_read(ng_context *ctx, const char *path, const ng_tensor_info *wanted, size_t count,
                                    int takes_some, ng_tensor *out);
/* SHA-256 of the tensors' data, one behind the other, as .npy files hold it. */
NG_API ng_status ng_tensors_sha256(ng_context *ctx, const ng_tensor *tensors, size_t count, char hex[65]);

/* Data sets: .npy files, or idx files (MNIST's format), either of which gzip may have compressed. Where a file's bytes
   are those of a tensor it is mapped, not read; it must not become shorter meanwhile. */
typedef struct ng_data ng_data;
NG_API ng_data *ng_data_open(ng_context *ctx, const char *path); /* NULL after telling why */
/* The bytes of any file in samples of so many, u8 [(bytes - 1) / length, length]; with is_next, those that follow each:
   what a model of a text is to say. */
NG_API ng_data *ng_data_open_text(ng_context *ctx, const char *path, int64_t length, int is_next);
NG_API void ng_data_close(ng_data *data);             /* before its context is freed; NULL is fine */
NG_API ng_tensor ng_data_tensor(const ng_data *data); /* row-major; only to be read */
/* Whether slices of the data along its first axis, samples, can be what input i of g has behind its first nleading
   axes: of the same shape but for extents of 1, or one of both flat; of its type or one that it can represent, where
   bf16 rounds floats and integers may be of a wider type; and, where g takes them as indices, all in range. NG_WRONG
   after telling what is not. */
NG_API ng_status ng_data_check(const ng_data *data, const ng_graph *g, size_t i, int nleading);
/* Copies `count` samples of checked data to `batch`, a tensor of that many of them. */
NG_API void ng_data_gather(const ng_data *data, const int64_t *samples, int64_t count, ng_tensor *batch);
/* A random order of 0 to count - 1, the same on every machine: for i from count - 1 down to 1, elements i and w mod (i
   + 1) change places. w is (word 0 << 32 | word 1) of Philox-4x32-10 with the seed as key and the counter (low i, high
   i, epoch, 0x73687566). */
NG_API void ng_permutation(uint64_t seed, uint32_t epoch, int64_t count, int64_t *order);

typedef struct ng_difference {
  double distance;       /* |actual - expected|, the L2 norm; NaNs at the same place count as equal */
  double norm;           /* |expected|, or of ng_compare_outputs what counts for it */
  double relative_l2;    /* distance / norm */
  double largest_error;  /* of an element: |actual - expected| / |expected|, or by the root mean square that belongs to
                            norm where |expected| is less; so an element near 0 does not count as far off */
  double largest_ulp;    /* |actual - expected| in units in the last place of actual's type at expected */
  double tolerance;      /* for relative_l2, by actual's type */
  double most_ulp;       /* for largest_ulp; infinite where only the tolerance counts, which else is infinite */
  int64_t worst_element; /* index in row-major order; -1: none differs */
  int64_t noverflown;    /* elements that are infinite or NaN where finite ones are expected, and rightly so: what they
                            are computed from overflows its type */
  int64_t nleft_out;     /* of ng_compare_outputs: elements that do not count, as rounding errors move them far */
  int is_within;
} ng_difference;

/* expected may be of another type than actual, but of the same shape (NG_WRONG and a message otherwise). Infinities
   of one sign are equal; a NaN or an infinity against anything else is infinitely far away. tolerance < 0: the default
   of actual's type: f64 1e-12, f32 1e-5, f16 2e-3, bf16 1.6e-2, 0 for s64, s32 and booleans; types of 8 and 4 bits may
   be a unit in the last place off. NG_DIFFERENT: not within it. */
NG_API ng_status ng_tensor_compare(ng_context *ctx, const ng_tensor *actual, const ng_tensor *expected,
                                   double tolerance, ng_difference *out);

typedef struct ng_kernel ng_kernel; /* a compiled graph: ng_compile */

/* The same of all outputs of a bound graph that was run on these inputs by the kernel (NULL: not known). Outputs that
   are exact (ng_graph_output_is_exact) have no default tolerance. Where terms cancel, so that nothing or little is
   expected of them, the norm is no less than their magnitude: that of what relative changes of every value, sum and
   constant do to the output. Quantised outputs may also be as far off, in L2, as such changes move them; they have
   tolerance 1 then, of that norm. Where ng_interpret's results are expected, outputs that are not within their
   tolerances even so are compared with what the compiled graph gives when every value that one of its kernels passes on
   is rounded to its declared type, and what is computed on the way overflows as in the kernel (kernel NULL, or of a
   graph with leaves: every value is rounded). At last, up to one in 50 of an output's elements are left out where such
   changes move them farther than the others, such as quotients whose divisors are near 0, unless they are even farther
   off; they may be infinite where such changes make them so. All that takes up to five interpretations of the graph, if
   outputs are not within their tolerances without it. `differences` has an element for each output. NG_DIFFERENT: not
   all are within. */
NG_API ng_status ng_compare_outputs(ng_graph *g, const ng_kernel *kernel, const ng_tensor *inputs,
                                    const ng_tensor *actual, const ng_tensor *expected, double tolerance,
                                    ng_difference *differences);

/* Running. inputs and outputs are parallel to the graph's; all have data that is aligned to its elements, of the
   graph's types, shapes and orders once it is bound, and no output overlaps anything else (NG_USAGE otherwise). */

/* Whether the inputs that hold indices, such as labels or the rows that Gather takes, hold such as exist, and those
   that hold an optimizer's step at least 1. NG_WRONG after telling of the first that does not, for each such input.
   Indices and steps that the graph computes are not known before: wrong ones give NaN. */
NG_API ng_status ng_graph_check_indices(ng_graph *g, const ng_tensor *inputs);

/* NG_WRONG, too, where ng_graph_check_indices has something to tell: nothing is written then.
   nan_check: fails at the first node that makes a NaN out of none, and names it; NG_CHECK_FINITE: also an infinity,
   when every value is rounded to its type. */
enum { NG_CHECK_FINITE = 2 };
NG_API ng_status ng_interpret(ng_graph *g, const ng_tensor *inputs, ng_tensor *outputs, int nan_check);

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
   leaves no message: NG_USAGE is a tensor for which ng_kernel_refusal says why, or a negative number of threads;
   NG_WRONG is an index for which ng_graph_check_indices says why, and nothing has been written. The update of a state
   may have the state's data, the same address; the results are the same bits as with its own. */
NG_API ng_status ng_kernel_run(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads);
/* Why ng_kernel_run does not take these tensors, as a message; NULL: it does. May be called like it. */
NG_API const char *ng_kernel_refusal(const ng_kernel *k, const ng_tensor *inputs, const ng_tensor *outputs);
NG_API void ng_kernel_free(ng_kernel *k);

/* Several processes, ranks, that take the steps of one training together. The batch of a step graph with N leaves is
   divided among them: rank r of `count` has the leaves from N * r / count to N * (r + 1) / count, which may be none. */

typedef struct ng_transfer { /* of a message to or from another rank */
  int64_t peer;              /* its rank */
  void *data;
  size_t nbytes;
} ng_transfer;

/* What moves messages between ranks. Functions return 0; anything else is a failure, after which nothing more can be
   exchanged. They are called by one thread at a time. */
typedef struct ng_ranks {
  int64_t rank, count;
  void *context; /* the functions' first argument */
  /* Begins an exchange, whose data stay in place and untouched until it is over. Exchanges that are under way at the
     same time have different slots, numbered from 0. Messages between two ranks in a slot match in their order. */
  int (*start)(void *context, int slot, const ng_transfer *sends, size_t nsends, const ng_transfer *receives,
               size_t nreceives);
  int (*test)(void *context, int slot, int *is_done); /* makes progress, and does not wait */
  int (*wait)(void *context, int slot);
} ng_ranks;

/* ng_kernel_run as one of several ranks, all of which must call it. Of inputs whose first axis is that of the leaves, a
   rank gives those of its own leaves: their first extent is the number of these. What a run leaves in outputs and
   states is the same on all ranks, and the same bits for any number of them. `ranks` NULL, or one rank: this process
   has all leaves. NG_RANKS_FAILED: an exchange failed. NG_USAGE also for several ranks and a graph without leaves. A
   rank whose call fails has to end the others, which may wait for it. */
NG_API ng_status ng_kernel_run_ranks(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads,
                                     const ng_ranks *ranks);

/* The ranks that mpirun started, of which this process is one; where no mpirun did, or for one, one rank without
   functions. *nlocal: ranks on this machine. The MPI library is loaded by this, through functions that $NGRAD_MPICC, or
   the mpicc of Open MPI or of MPICH, whichever mpirun is of, compiles: NG_COMPILER_FAILED. Once in a process, by the
   thread that will exchange messages. When it fails, ranks->count is more than 1 if others may be waiting for this one:
   end the process by a signal then, as MPICH's mpirun ends them for that alone. */
NG_API ng_status ng_mpi_open(ng_context *ctx, ng_ranks *ranks, int64_t *nlocal);
/* How many processes mpirun started, by the environment alone; 1: no mpirun did, or it does not say. *variable, unless
   NULL: that of the environment which says so. */
NG_API int64_t ng_mpi_launched(const char **variable);
NG_API void ng_mpi_close(ng_ranks *ranks); /* waits until all ranks do; one that was never opened but zeroed is fine */
/* Ends the processes of all ranks, this one with the exit status; returns where there is one rank. */
NG_API void ng_mpi_abort(const ng_ranks *ranks, int status);

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
/* The same as files in a folder that is there: STEM.c and STEM.h (of a graph with leaves also STEM_mpi.c, which moves
   messages between ranks by MPI), each written whole or not at all, with STEM from
   ng_graph_identifier. NG_WRONG: one cannot be written. */
NG_API ng_status ng_emit_files(ng_graph *g, const ng_options *options, const char *folder);
/* A training step and, unless it is NULL, what its parameters are trained for, as one pair of files NAME.c and NAME.h,
   where NAME is the step's name without "_step" at its end: the functions PREFIX_train_step and PREFIX_infer (PREFIX
   alone, if infer is NULL), which share their states. The states of infer are one block of memory, and those that only
   the step has another; step has all states. Other functions fill, save and load both. */
NG_API ng_status ng_emit_training_files(ng_graph *step, ng_graph *infer, const ng_options *options, const char *folder);
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
  size_t samples;                     /* of one run, or of several at once where these are very short */
  double min_ms, median_ms, max_ms;   /* of the samples, for a run */
  double mad_ms;                      /* median absolute deviation: of |sample - median_ms| */
  size_t outliers;                    /* samples that are farther from the median than 5 standard deviations of a
                                         normal distribution with this mad_ms, which are 7.413 mad_ms */
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

/* What a step with leaves costs on many ranks, by a model: the times of its functions, and the messages that the ranks
   exchange. A rank has one processor, which computes, adds and posts messages, and one link, which sends and receives
   at the same time; all ranks are as busy as the busiest one, and the network between them has no bottleneck. */

typedef struct ng_scale_options {
  int64_t leaves;       /* 0: the graph's. Leaves stay as large as they are */
  double latency_ms;    /* of a message; 0: 0.002; less than 0: none */
  double overhead_ms;   /* from one message that a rank sends to the next; 0: latency_ms; less than 0: none */
  double bandwidth;     /* of a rank's link, bytes a second each way; 0: 12.5e9 */
  double add_bandwidth; /* bytes of sums that a rank adds in a second; 0: is measured */
  double leaf_ms;   /* of the functions of one leaf; 0: these and common_ms are measured, else nothing is compiled */
  double common_ms; /* of what each rank computes for all leaves, such as the optimizer's updates */
  int threads;      /* of a rank; 0: all */
  int cores;        /* more than 0: all ranks share so many processors */
  double seconds;   /* how long to measure; 0: about one */
} ng_scale_options;

typedef struct ng_scale_basis { /* what the model begins with */
  int64_t leaves;
  size_t exchanges, buckets; /* in a step, one after the other; and parts of them, sent as soon as they are there */
  uint64_t shared_nbytes;    /* of all buckets */
  double latency_ms, overhead_ms, bandwidth, add_bandwidth, leaf_ms, common_ms;
  int is_measured; /* leaf_ms and common_ms */
} ng_scale_basis;

/* ring: plain all-reduces of the same buckets, whose bits depend on the number of ranks. */
typedef struct ng_scale_row {
  int64_t ranks, idle_ranks, most_leaves; /* of a rank */
  double step_ms, ring_ms;
  double efficiency; /* of the time on one rank: by the number of ranks, and by step_ms */
  double leaves_ms, imbalance_ms, common_ms, additions_ms, latency_ms, bandwidth_ms; /* whose sum is step_ms */
  const char *bound;            /* the largest of these: "compute", "leaves", "common", "additions", ... */
  uint64_t nbytes, ring_nbytes; /* that a rank sends in a step; the most of any */
  uint64_t nmessages;
  uint64_t all_nbytes, all_nmessages; /* of all ranks */
  int is_uneven, is_costly; /* ranks have unequal numbers of leaves; a rank sends more than 1.1 times ring_nbytes */
  int64_t better_leaves; /* of either: for as large a batch, a number with which steps are shorter; 0: none is known */
  double better_ms;      /* step_ms with them */
  uint64_t better_nbytes;
  int64_t fewer_ranks; /* a power of two, which take fewer messages: they are faster; 0: none are */
  double fewer_ms;     /* step_ms of them */
} ng_scale_row;

/* Fills in `rows` for so many numbers of ranks, from 1 to a million. NG_USAGE for a graph without leaves. */
NG_API ng_status ng_scale(ng_graph *g, const ng_options *options, const ng_scale_options *scale, const int64_t *ranks,
                          size_t nranks, ng_scale_basis *basis, ng_scale_row *rows);

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

typedef struct ng_span { /* blocks of a loop that one thread computed without a break */
  size_t kernel, loop;   /* as in ng_profile; of kernels that go over slices together: the first kernel, loop 0 */
  int thread;            /* from 0 */
  size_t nblocks;
  double begin_ms, end_ms; /* since the call */
} ng_span;

/* ng_kernel_run of a kernel that was compiled with options->profile, else NG_USAGE, that tells which thread computed
   what when. The spans are in the order of loops; they are valid until the next call of this function, or as long as k.
   */
NG_API ng_status ng_kernel_trace(ng_kernel *k, const ng_tensor *inputs, ng_tensor *outputs, int threads,
                                 const ng_span **spans, size_t *count);

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

/* Operators of other systems, in the forms that are read. Strings are static. */
typedef struct ng_foreign_info {
  const char *system;    /* "ONNX" or "nGraph" */
  const char *name;      /* there */
  const char *canonical; /* the operator that it becomes, alone or with others; NULL: constants, or none above all */
  int since, last;       /* ONNX: from which opset to which; last 0: all later ones; since 0: any version */
} ng_foreign_info;
NG_API size_t ng_foreign_count(void);
NG_API ng_foreign_info ng_foreign_at(size_t i);

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
