// Parses the command line: --name value, --name=value, -o value. "--" ends the options, and "-" is an operand.
#include "frontend/cli/options.h"

#include "frontend/cli/help.h"
#include "frontend/cli/session.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum OptionKind {
  KIND_FLAG,
  KIND_TEXT,
  KIND_COUNT,
  KIND_SEED,
  KIND_NUMBER,
  KIND_DIM,
  KIND_SHAPE,
  KIND_LIST,
  KIND_NAMES,
  KIND_NBYTES,
  KIND_AMOUNT, // an integer of 1 or more
  KIND_TIME,   // in milliseconds, a double
  KIND_RATE,   // in bytes a second, a double
  KIND_SETTING // one of Settings.numbers, with the option's name
} OptionKind;

typedef struct Option {
  uint64_t bit;
  const char *name;
  char letter;
  const char *argument; // NULL: a flag
  OptionKind kind;
  size_t offset; // in Settings, of the member that the option sets
  const char *help;
} Option;

#define FIELD(name) offsetof(Settings, name)
#define ISAS "scalar, avx2, avx512, avx512_bf16, neon or native"

static const Option options[] = {
    {OPTION_BACKEND, "backend", 0, "NAME", KIND_TEXT, FIELD(backend), "interpreter or codegen (default codegen)"},
    {OPTION_IN, "in", 0, "DIR", KIND_TEXT, FIELD(in),
     "read each input from DIR/NAME.npy (default: beside the graph; of bench, random)"},
    {OPTION_RANDOM, "random", 0, NULL, KIND_FLAG, FIELD(is_random), "make random inputs (default: read them)"},
    {OPTION_RANDOM, "seed", 0, "N", KIND_SEED, FIELD(seed),
     "seed of random inputs, and of first values of states (default 0)"},
    {OPTION_STATE, "state", 0, "FILE", KIND_TEXT, FIELD(state),
     "take all states from this .npz file (default: DIR/NAME.npy, else their first values)"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "state", 0, "FILE", KIND_TEXT, FIELD(state),
     "C has the values in this .npz file: states that no call updates are constants, NAME_init sets the others"},
    {OPTION_SOURCE_OUT, "weights", 0, "HOW", KIND_TEXT, FIELD(weights),
     "states that no call updates: const, in NAME.c (default with --state); bf16 or s8, in NAME.c, those with two or "
     "more axes in this type; or file, in memory that NAME_load fills (default)"},
    {OPTION_TO, "state", 0, "FILE", KIND_TEXT, FIELD(state), "states begin with the values in this .npz file"},
    {OPTION_TO, "weights", 0, "TYPE", KIND_TEXT, FIELD(weights),
     "bf16 or s8: states with two or more axes that no call updates are in this type, and converted where they are "
     "used"},
    {OPTION_TRAIN, "weights", 0, "HOW", KIND_TEXT, FIELD(weights),
     "states that no call updates: const, in NAME.c (default with --state), or file, in memory that NAME_load fills "
     "(default)"},
    {OPTION_STATE, "save", 0, "FILE", KIND_TEXT, FIELD(save), "write the states afterwards to this .npz file"},
    {OPTION_DIM, "dim", 0, "NAME=N", KIND_DIM, 0, "the value of a named extent (default: the graph's); repeatable"},
    {OPTION_DIM | OPTION_SOURCE_OUT, "shape", 0, "NAME=N,N", KIND_SHAPE, 0,
     "the shape of an input, for extents without a name; _ leaves one as it is; repeatable"},
    {OPTION_DIM | OPTION_SOURCE_OUT, "constant", 0, "NAME=FILE", KIND_LIST, FIELD(constants),
     "read this input of an ONNX model, such as a shape, from a .npy or .pb file as a constant; repeatable"},
    {OPTION_OUT, "out", 'o', "DIR", KIND_TEXT, FIELD(out), "write each output to DIR/NAME.npy (default: a summary)"},
    {OPTION_SOURCE_OUT, "dim", 0, "NAME=N", KIND_DIM, 0,
     "fix a named extent (default: an argument of the function, scheduled for the graph's value); repeatable"},
    {OPTION_SOURCE_OUT, "out", 'o', "DIR", KIND_TEXT, FIELD(out), "the folder for NAME.c and NAME.h; made if missing"},
    {OPTION_FILE_OUT, "out", 'o', "FILE", KIND_TEXT, FIELD(out), "the file to write (default: standard output)"},
    {OPTION_TO, "to", 0, "FORMAT", KIND_TEXT, FIELD(to),
     "yaml or onnx (default: onnx if FILE ends in .onnx, else yaml)"},
    {OPTION_EXPECTED, "expect", 0, "DIR", KIND_TEXT, FIELD(expect), "compare each output with DIR/NAME.npy"},
    {OPTION_EXPECTED, "compare", 0, NULL, KIND_FLAG, FIELD(compares), "run both backends on the same data and compare"},
    {OPTION_EXPECTED, "tolerance", 0, "X", KIND_NUMBER, FIELD(tolerance),
     "largest relative L2 error that passes (default f64 1e-12, f32 1e-5, f16 2e-3, bf16 1.6e-2)"},
    {OPTION_EXPECTED, "max-ulp", 0, "X", KIND_NUMBER, FIELD(max_ulp),
     "largest error of an element that passes, in units in the last place (default: no limit)"},
    {OPTION_SOURCE_OUT, "depfile", 0, "FILE", KIND_TEXT, FIELD(depfile),
     "write a makefile rule with the files that NAME.c depends on"},
    {OPTION_NAN_CHECK, "nan-check", 0, NULL, KIND_FLAG, FIELD(checks_nan),
     "interpreter: stop at the first node that makes a NaN from operands without NaN"},
    {OPTION_GRADIENT, "wrt", 0, "NAMES", KIND_NAMES, FIELD(wrt),
     "inputs, or constants such as a model's weights, to make gradients of, separated by commas (default: all "
     "floating-point inputs); repeatable"},
    {OPTION_GRADIENT, "of", 0, "NAMES", KIND_NAMES, FIELD(of),
     "outputs to differentiate (default: all floating-point outputs except statistics of norms); repeatable"},
    {OPTION_FORWARD, "forward", 0, "FILE", KIND_TEXT, FIELD(forward),
     "write GRAPH with the values that the gradient graph uses as outputs; cheap ones are recomputed instead"},
    {OPTION_FORWARD, "forward-mode", 0, NULL, KIND_FLAG, FIELD(is_forward_mode),
     "write tangent_NAME of outputs, from tangent_NAME of inputs, instead of gradients"},
    {OPTION_FORWARD, "hvp", 0, NULL, KIND_FLAG, FIELD(is_hvp),
     "write tangent_diff_NAME, the Hessian times tangent_NAME, of outputs that are single numbers"},
    {OPTION_FORWARD, "jacobian", 0, NULL, KIND_FLAG, FIELD(is_jacobian),
     "write jacobian_NAME, whose first axis goes over the elements, at most 64, of one output"},
    {OPTION_FORWARD, "hessian", 0, NULL, KIND_FLAG, FIELD(is_hessian),
     "write hessian_NAME, whose first axis goes over the elements, at most 64, of all inputs"},
    {OPTION_GRADCHECK, "seed", 0, "N", KIND_SEED, FIELD(seed), "seed of random inputs (default 0)"},
    {OPTION_GRADCHECK, "tolerance", 0, "X", KIND_NUMBER, FIELD(tolerance),
     "largest relative error of an element that passes (default 1e-6)"},
    {OPTION_VALUES, "values", 0, NULL, KIND_FLAG, FIELD(prints_values),
     "print all values of constants (default: a summary of those with more than 256)"},
    {OPTION_AFTER, "after", 0, "PASS", KIND_TEXT, FIELD(after),
     "stop after this pass (default: before the first for yaml and dot, else after the last)"},
    {OPTION_FORMAT, "format", 0, "FORMAT", KIND_TEXT, FIELD(format),
     "yaml, dot, kernels, loops, memory, memory-svg, c, json or kernels-json (default yaml)"},
    {OPTION_THREADS, "threads", 0, "N", KIND_COUNT, FIELD(threads),
     "number of threads (default 0: one for each processor)"},
    {OPTION_ISA, "isa", 0, "NAME", KIND_TEXT, FIELD(isa), ISAS " (the default), the best of this processor"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "isa", 0, "LIST", KIND_TEXT, FIELD(isa),
     ISAS " (default: all); several are separated by commas; scalar is always included"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "threads", 0, "HOW", KIND_TEXT, FIELD(sharing),
     "none, openmp or callback (default openmp); callback is a function of the caller"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "self-test", 0, NULL, KIND_FLAG, FIELD(has_self_test),
     "also write NAME_test.c, a program that tests NAME.c and NAME.h"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "package", 0, "KIND", KIND_TEXT, FIELD(package),
     "arduino, zephyr or cmake: make DIR a library for this; the first two have by default scalar code for one thread, "
     "and fixed extents"},
    {OPTION_SOURCE_OUT | OPTION_TRAIN, "prefix", 0, "NAME", KIND_TEXT, FIELD(prefix),
     "prefix of every external symbol (default: the graph's name)"},
    {OPTION_PASSES | OPTION_TRAIN | OPTION_OPTIMIZE, "optimize", 0, "FOR", KIND_TEXT, FIELD(optimize),
     "speed (default), or size: scalar C of little code, for small devices, with the same bits"},
    {OPTION_PASSES, "no-fuse", 0, NULL, KIND_FLAG, FIELD(no_fuse), "make one kernel for each operator"},
    {OPTION_PASSES, "disable", 0, "PASS", KIND_LIST, FIELD(disabled), "leave this pass or rule out; repeatable"},
    {OPTION_PASSES, "fast-math", 0, NULL, KIND_FLAG, FIELD(fast_math),
     "allow rewrites that do not hold for NaN, infinities or -0"},
    {OPTION_PASSES | OPTION_ARENA, "memory", 0, "SIZE", KIND_NBYTES, FIELD(memory),
     "limit of the memory between kernels; values are recomputed to meet it, with the same bits (default: none)"},
    {OPTION_COMPILE, "compile-timeout", 0, "X", KIND_NUMBER, FIELD(compile_timeout),
     "seconds that the C compiler may take (default 300); 0: no limit"},
    {OPTION_WATCH, "time-passes", 0, NULL, KIND_FLAG, FIELD(times_passes), "print how long each pass took"},
    {OPTION_WATCH, "dump-dir", 0, "DIR", KIND_TEXT, FIELD(dump),
     "write DIR/NN-PASS.yaml, the graph after each pass that changed it"},
    {OPTION_PASSES, "schedule", 0, "KEY=N", KIND_LIST, FIELD(schedule),
     "set a number of every kernel's schedule, for experiments; an unknown KEY lists them; repeatable"},
    {OPTION_PASSES, "cost", 0, "NAME=N", KIND_LIST, FIELD(costs),
     "set a threshold by which passes decide, for experiments; ngrad passes --costs lists them; repeatable"},
    {OPTION_COSTS, "costs", 0, NULL, KIND_FLAG, FIELD(lists_costs),
     "list the thresholds by which passes decide instead, with what they decide and how they were measured"},
    {OPTION_COLD, "cold", 0, NULL, KIND_FLAG, FIELD(is_cold), "flush the caches before each run"},
    {OPTION_SECONDS, "seconds", 0, "X", KIND_NUMBER, FIELD(seconds), "how long to time each graph (default 1)"},
    {OPTION_TURNS, "export", 0, "FILE", KIND_LIST, FIELD(exports),
     "also write the times to this file, whose name ends in .csv, .md, .json or, for --sweep, .svg; repeatable"},
    {OPTION_TURNS, "with", 0, "PROGRAM", KIND_TEXT, FIELD(other_program),
     "compare with another build of ngrad: both time each graph in turns"},
    {OPTION_TURNS, "against", 0, "OPTION", KIND_LIST, FIELD(against),
     "compare with this option added, as in --against --no-fuse: both are timed in turns; repeatable, for one set"},
    {OPTION_TURNS, "sweep", 0, "NAME=VALUES", KIND_TEXT, FIELD(sweep),
     "time for several values of a named extent: N=64,96,128 or, each twice the one before, N=64..4096"},
    {OPTION_TURNS, "threads", 0, "N,N", KIND_TEXT, FIELD(thread_counts),
     "number of threads (default 0: one for each processor), or several, which are compared: 1,2,4,8"},
    {OPTION_REPORT, "no-times", 0, NULL, KIND_FLAG, FIELD(has_no_times), "do not compile and time the graphs"},
    {OPTION_PROFILE, "profile", 0, NULL, KIND_FLAG, FIELD(has_profile),
     "print the time of each kernel, and its lines in the graph"},
    {OPTION_PROFILE, "trace", 0, "FILE", KIND_TEXT, FIELD(trace),
     "write what each thread does in one more call, for chrome://tracing or Perfetto"},
    {OPTION_MEMORY, "max-memory", 0, "SIZE", KIND_NBYTES, FIELD(max_memory),
     "limit of memory, as in 500M or 2GiB (default: three quarters of the available memory)"},
    {OPTION_MEMORY, "max-steps", 0, "N", KIND_AMOUNT, FIELD(max_steps),
     "limit of the steps of compiling a graph, which check counts (default 16777216, some seconds)"},
    {OPTION_TRAIN, "loss", 0, "NAMES", KIND_NAMES, FIELD(loss),
     "outputs whose sum is minimised (default: the only single number that depends on parameters); repeatable; or "
     "losses to add, of the first output that depends on parameters or, as mse:OUTPUT, of another: cross-entropy (with "
     "the input labels and the output accuracy), mse or bce (with the input target)"},
    {OPTION_TRAIN, "optimizer", 0, "NAME", KIND_TEXT, FIELD(optimizer),
     "sgd, momentum, adam, adamw or adagrad (default sgd)"},
    {OPTION_TRAIN, "learning-rate", 0, "X", KIND_SETTING, 0,
     "learning rate before the schedule (default 0.01; for adam and adamw 0.001)"},
    {OPTION_TRAIN, "momentum", 0, "X", KIND_SETTING, 0, "for momentum (default 0.9)"},
    {OPTION_TRAIN, "nesterov", 0, NULL, KIND_FLAG, FIELD(is_nesterov), "for momentum: use Nesterov's form"},
    {OPTION_TRAIN, "beta1", 0, "X", KIND_SETTING, 0, "for adam and adamw (default 0.9)"},
    {OPTION_TRAIN, "beta2", 0, "X", KIND_SETTING, 0, "for adam and adamw (default 0.999)"},
    {OPTION_TRAIN, "epsilon", 0, "X", KIND_SETTING, 0, "for adam and adamw (default 1e-8) and adagrad (default 1e-10)"},
    {OPTION_TRAIN, "lr-decay", 0, "X", KIND_SETTING, 0, "for adagrad (default 0)"},
    {OPTION_TRAIN, "weight-decay", 0, "X", KIND_SETTING, 0,
     "for adamw: shrink weights by rate * X (default 0.01); for the others: add X * weights to gradients (default 0)"},
    {OPTION_TRAIN, "clip-norm", 0, "X", KIND_SETTING, 0,
     "scale the gradients so that their common L2 norm is at most X (default 0: no limit)"},
    {OPTION_TRAIN, "schedule", 0, "NAME", KIND_TEXT, FIELD(rate_schedule),
     "constant, step or cosine (default constant): how the learning rate changes"},
    {OPTION_TRAIN, "warmup", 0, "N", KIND_SETTING, 0, "steps in which the learning rate first grows (default 0)"},
    {OPTION_TRAIN, "steps", 0, "N", KIND_SETTING, 0, "for cosine: the rate is 0 after N steps"},
    {OPTION_TRAIN, "step-size", 0, "N", KIND_SETTING, 0, "for step: every N steps the rate is multiplied by gamma"},
    {OPTION_TRAIN, "gamma", 0, "X", KIND_SETTING, 0, "for step (default 0.1)"},
    {OPTION_TRAIN, "freeze", 0, "PATTERN", KIND_LIST, FIELD(freeze),
     "do not train parameters whose names match, as in 'conv*'; repeatable"},
    {OPTION_TRAIN, "no-decay", 0, "PATTERN", KIND_LIST, FIELD(no_decay),
     "no weight decay for parameters whose names match; norms-and-biases: those with at most one axis, or a name that "
     "ends in bias; repeatable"},
    {OPTION_TRAIN | OPTION_FORWARD, "precision", 0, "TYPE", KIND_TEXT, FIELD(precision),
     "f32, bf16 or f16 (default f32): rounds the operands of products and convolutions, and what the backward pass "
     "keeps; states, norms, softmax and losses stay f32. train with f16 scales the losses, and skips steps whose "
     "gradients overflow"},
    {OPTION_TRAIN | OPTION_FORWARD, "keep-f32", 0, "OPS", KIND_NAMES, FIELD(keep_f32),
     "with --precision bf16 or f16: operators that stay f32, and keep f32, as in MatMul,GELU; repeatable"},
    {OPTION_TRAIN, "list-parameters", 0, NULL, KIND_FLAG, FIELD(lists_parameters),
     "print for each floating-point constant and state whether it is trained, why not, and whether it has weight "
     "decay"},
    {OPTION_TRAIN, "accumulate", 0, "N", KIND_SETTING, 0,
     "divide the batch into N leaves, and average their gradients (default 1)"},
    {OPTION_TRAIN, "sync-batch-norm", 0, NULL, KIND_FLAG, FIELD(syncs_batch_norms),
     "with --accumulate: batch norms use the statistics of the whole batch, not of a leaf"},
    {OPTION_TRAIN, "train-batch-norms", 0, NULL, KIND_FLAG, FIELD(trains_batch_norms),
     "batch norms of an ONNX model that was exported for inference use the statistics of each batch, and update their "
     "running ones"},
    {OPTION_TRAIN, "out", 'o', "DIR", KIND_TEXT, FIELD(out), "the folder for the graphs; made if missing"},
    {OPTION_FIT, "in", 0, "DIR", KIND_TEXT, FIELD(in),
     "read each input's samples from DIR/NAME.npy, .idx or the like (.gz too)"},
    {OPTION_FIT, "input", 0, "NAME=FILE", KIND_LIST, FIELD(fit.inputs), "read this input from FILE; repeatable"},
    {OPTION_FIT, "labels", 0, "FILE", KIND_TEXT, FIELD(fit.labels), "read the input labels from FILE"},
    {OPTION_FIT, "text", 0, "FILE", KIND_TEXT, FIELD(fit.text),
     "train on the bytes of FILE, cut into samples; the label of a byte is the next byte"},
    {OPTION_FIT, "epochs", 0, "N", KIND_AMOUNT, FIELD(fit.epochs),
     "number of epochs, including those before --resume (default 1; with --steps no limit)"},
    {OPTION_FIT, "steps", 0, "N", KIND_AMOUNT, FIELD(fit.steps),
     "stop after N steps, including those before --resume (default: no limit)"},
    {OPTION_FIT, "batch", 0, "N", KIND_AMOUNT, FIELD(fit.batch),
     "samples of a step (default: from the graph's dims, or the number that its batch is)"},
    {OPTION_FIT, "drop-last", 0, NULL, KIND_FLAG, FIELD(fit.drops_last), "leave out a shorter batch at an epoch's end"},
    {OPTION_FIT, "no-shuffle", 0, NULL, KIND_FLAG, FIELD(fit.keeps_order),
     "take the samples in their order in each epoch (default: in a random order)"},
    {OPTION_FIT, "seed", 0, "N", KIND_SEED, FIELD(seed),
     "seed of first values and of the order of samples (default 0)"},
    {OPTION_FIT, "state", 0, "FILE", KIND_TEXT, FIELD(state),
     "begin with the states in this .npz file (default: their first values)"},
    {OPTION_FIT, "out", 'o', "DIR", KIND_TEXT, FIELD(out), "save to DIR/NAME.npz at each epoch's end; made if missing"},
    {OPTION_FIT, "resume", 0, NULL, KIND_FLAG, FIELD(fit.resumes),
     "continue from DIR/NAME.npz, which is an error without this option"},
    {OPTION_FIT, "test", 0, "DIR", KIND_TEXT, FIELD(fit.test), "evaluate on these samples at each epoch's end"},
    {OPTION_FIT, "test-input", 0, "NAME=FILE", KIND_LIST, FIELD(fit.test_inputs), "as --input, for --test; repeatable"},
    {OPTION_FIT, "test-labels", 0, "FILE", KIND_TEXT, FIELD(fit.test_labels), "as --labels, for --test"},
    {OPTION_FIT, "test-text", 0, "FILE", KIND_TEXT, FIELD(fit.test_text), "as --text, for --test"},
    {OPTION_FIT, "test-graph", 0, "FILE", KIND_TEXT, FIELD(fit.test_graph),
     "the graph to evaluate (default: NAME_test.yaml beside NAME_step.yaml)"},
    {OPTION_FIT, "ranks", 0, NULL, KIND_FLAG, FIELD(fit.has_ranks),
     "train together with the other ranks of mpirun; each takes some leaves of every batch"},
    {OPTION_FIT, "each-step", 0, NULL, KIND_FLAG, FIELD(fit.tells_each_step), "print the numbers of each step"},
    {OPTION_FIT, "quiet", 'q', NULL, KIND_FLAG, FIELD(fit.is_quiet), "print only the end"},
    {OPTION_FIT, "json", 0, NULL, KIND_FLAG, FIELD(is_json), "print one JSON object in each line"},
    {OPTION_SCALE, "ranks", 0, "LIST", KIND_TEXT, FIELD(scale.ranks),
     "numbers of ranks, as in 1,2,4..10000, where A..B means A, 2A, 4A, ..., B (default 1..1024)"},
    {OPTION_SCALE, "latency", 0, "TIME", KIND_TIME, FIELD(scale.latency), "latency of a message (default 2us)"},
    {OPTION_SCALE, "overhead", 0, "TIME", KIND_TIME, FIELD(scale.overhead),
     "time between two messages that a rank sends (default: the latency)"},
    {OPTION_SCALE, "bandwidth", 0, "RATE", KIND_RATE, FIELD(scale.bandwidth),
     "of a rank's link in each direction, in bytes or bits, as in 12.5G or 100Gbit/s (default 12.5GB/s)"},
    {OPTION_SCALE, "add-bandwidth", 0, "RATE", KIND_RATE, FIELD(scale.add_bandwidth),
     "bytes of sums that a rank adds in a second (default: measured)"},
    {OPTION_SCALE, "leaf-time", 0, "TIME", KIND_TIME, FIELD(scale.leaf_time),
     "time of a leaf; nothing is compiled then (default: measured)"},
    {OPTION_SCALE, "common-time", 0, "TIME", KIND_TIME, FIELD(scale.common_time),
     "with --leaf-time: time of what each rank does for all leaves, such as updates (default 0)"},
    {OPTION_SCALE, "leaves", 0, "N", KIND_AMOUNT, FIELD(scale.leaves),
     "number of leaves, each as large as the step's (default: the step's number)"},
    {OPTION_SCALE, "cores", 0, "N", KIND_COUNT, FIELD(scale.cores),
     "all ranks share N processors (default: each has its own)"},
    {OPTION_SCHEMA, "onnx", 0, NULL, KIND_FLAG, FIELD(lists_onnx),
     "list the ONNX operators that can be read, their first opset, and the operators that they become"},
    {OPTION_SCHEMA, "schema", 0, NULL, KIND_FLAG, FIELD(wants_schema),
     "print the JSON schema of graph files, for editors"},
    {OPTION_JSON, "json", 0, NULL, KIND_FLAG, FIELD(is_json), "print one JSON document"},
    {~0U, "help", 'h', NULL, KIND_FLAG, FIELD(wants_help), "print this help"},
};
enum { NOPTIONS = sizeof options / sizeof *options };

// The row of a long name with `length` characters or, if name is NULL, of a letter.
static const Option *find_option(const Verb *verb, const char *name, size_t length, char letter) {
  for (const Option *o = options; o < options + NOPTIONS; o++) {
    if (!(o->bit & (verb->options | OPTION_ANY))) continue;
    if (name ? strlen(o->name) == length && memcmp(o->name, name, length) == 0 : letter && o->letter == letter)
      return o;
  }
  return NULL;
}

bool option_exists(uint64_t groups, const char *name) {
  return find_option(&(Verb){.options = groups}, name, strlen(name), 0) != NULL;
}

// The verb's option for a name that other programs use; NULL: none.
static const char *other_name(const Verb *verb, const char *name) {
  static const char *const names[][2] = {
      {"lr", "learning-rate"}, {"wd", "weight-decay"}, {"batch-size", "batch"}, {"scheduler", "schedule"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(name, names[i][0]) == 0 && find_option(verb, names[i][1], strlen(names[i][1]), 0)) return names[i][1];
  return NULL;
}

static bool tell_unknown(const Verb *verb, const char *given) {
  const char *known[NOPTIONS];
  size_t nknown = 0;
  for (const Option *o = options; o < options + NOPTIONS; o++)
    if (o->bit & (verb->options | OPTION_ANY)) known[nknown++] = o->name;
  const char *name = strncmp(given, "--", 2) == 0 ? given + 2 : "", *nearest = other_name(verb, name);
  if (!nearest && *name) nearest = ng_nearest(name, known, nknown);
  if (nearest) usage_error("unknown option %s, did you mean --%s", given, nearest);
  else if (option_exists(~UINT64_C(0), name))
    usage_error("unknown option %s, which other verbs have; see ngrad %s --help", given, verb->name);
  else usage_error("unknown option %s, see ngrad %s --help", given, verb->name);
  return false;
}

static bool parse_integer(const char *text, int64_t most, int64_t *value) {
  char *end;
  errno = 0;
  if (*text < '0' || *text > '9') return false;
  long long parsed = strtoll(text, &end, 10);
  if (errno || *end || parsed > most) return false;
  *value = parsed;
  return true;
}

// Parsers by kind; false: the text is not what the kind's row says.

static bool parse_text(const char *text, void *field) {
  *(const char **)field = text;
  return true;
}

static bool parse_count(const char *text, void *field) {
  enum { MOST = 1024 };
  int64_t parsed;
  const bool ok = parse_integer(text, MOST, &parsed);
  if (ok) *(int *)field = (int)parsed;
  return ok;
}

static bool parse_amount(const char *text, void *field) {
  const int64_t most = INT64_C(1) << 47;
  return parse_integer(text, most, field) && *(int64_t *)field > 0;
}

static bool parse_seed(const char *text, void *field) {
  char *end;
  errno = 0;
  *(uint64_t *)field = strtoull(text, &end, 10);
  return !errno && !*end && *text >= '0' && *text <= '9';
}

static bool parse_number(const char *text, void *field) {
  char *end;
  const double parsed = strtod(text, &end);
  *(double *)field = parsed;
  return end > text && !*end && parsed >= 0 && !isinf(parsed);
}

// A number of 1 or more, with an optional unit: K, M, G, T, or KB and so on, are powers of 1000; KiB and so on of 1024.
static bool parse_nbytes(const char *text, void *field) {
  static const char prefixes[] = "KMGT";
  char *end = (char *)text;
  errno = 0;
  double number = *text >= '0' && *text <= '9' ? strtod(text, &end) : 0;
  if (!(number > 0) || errno) return false;
  const char *prefix = *end ? strchr(prefixes, *end == 'k' ? 'K' : *end) : NULL;
  const bool is_binary = prefix && strncmp(end + 1, "iB", 2) == 0;
  if (prefix) end += is_binary ? 3 : end[1] == 'B' ? 2 : 1;
  else if (*end == 'B') end++;
  for (const char *c = prefixes; prefix && c <= prefix; c++) number *= is_binary ? 1024 : 1000;
  if (*end || number < 1 || number >= 0x1p63) return false;
  *(uint64_t *)field = (uint64_t)number;
  return true;
}

typedef struct Unit {
  const char *name;
  double factor;
} Unit;

// A number with a unit.
static bool parse_unit(const char *text, const Unit *units, double *value) {
  char *end = (char *)text;
  errno = 0;
  const double number = (*text >= '0' && *text <= '9') || *text == '.' ? strtod(text, &end) : -1;
  if (errno || end == text || !(number >= 0) || isinf(number)) return false;
  while (units->name && strcmp(units->name, end) != 0) units++;
  *value = number * units->factor;
  return units->name;
}

static bool parse_time(const char *text, void *ms) {
  static const Unit units[] = {{"ns", 1e-6}, {"us", 1e-3}, {"ms", 1}, {"s", 1e3}, {NULL, 0}};
  const double most = 1e12; // milliseconds, about thirty years
  return parse_unit(text, units, ms) && *(double *)ms <= most;
}

static bool parse_rate(const char *text, void *rate) {
  static const Unit units[] = {
      {"", 1},        {"M", 1e6},          {"G", 1e9},          {"T", 1e12},          {"MB/s", 1e6}, {"GB/s", 1e9},
      {"TB/s", 1e12}, {"Mbit/s", 1e6 / 8}, {"Gbit/s", 1e9 / 8}, {"Tbit/s", 1e12 / 8}, {NULL, 0}};
  return parse_unit(text, units, rate) && *(double *)rate > 0;
}

static const struct {
  bool (*parse)(const char *text, void *field);
  const char *expected;
} kinds[] = {
    [KIND_TEXT] = {parse_text, NULL},
    [KIND_COUNT] = {parse_count, "a number from 0 to 1024"},
    [KIND_SEED] = {parse_seed, "a number from 0 to 2^64 - 1"},
    [KIND_NUMBER] = {parse_number, "a finite number of 0 or more"},
    [KIND_NBYTES] = {parse_nbytes, "a number of bytes, as in 2000000, 500M or 2GiB"},
    [KIND_AMOUNT] = {parse_amount, "a number from 1 to 2^47"},
    [KIND_TIME] = {parse_time, "a time in ns, us, ms or s, as in 2us"},
    [KIND_RATE] = {parse_rate, "bytes or bits a second, as in 12.5GB/s or 100Gbit/s"},
};

static bool parse_field(const Option *o, OptionKind kind, const char *text, void *field) {
  if (kinds[kind].parse(text, field)) return true;
  usage_error("--%s: expected %s, found %s", o->name, kinds[kind].expected, text);
  return false;
}

// Parses NAME=N; cuts argv's string at the last '='.
static bool parse_dim(char *text, Settings *s) {
  char *equals = strrchr(text, '=');
  int64_t value;
  if (!equals || equals == text || !parse_integer(equals + 1, INT64_MAX, &value)) {
    usage_error("--dim: expected NAME=N, found %s", text);
    return false;
  }
  *equals = 0;
  s->dims[s->ndims++] = (DimSetting){text, value};
  return true;
}

// Parses NAME=N,N,_; cuts argv's string at the last '='.
static bool parse_shape(char *text, Settings *s) {
  char *equals = strrchr(text, '=');
  ShapeSetting shape = {.name = text};
  bool ok = equals && equals != text;
  for (char *at = equals, *next; ok && at && at[1]; at = next) {
    next = strchr(++at, ',');
    const size_t length = next ? (size_t)(next - at) : strlen(at);
    char *number = memory_or_exit(strndup(at, length));
    int64_t *extent = &shape.extent[shape.rank];
    ok = shape.rank < NG_MAX_RANK &&
         (strcmp(number, "_") == 0 ? (*extent = -1, true) : parse_integer(number, INT64_MAX, extent));
    shape.rank++;
    free(number);
  }
  if (!ok) return usage_error("--shape: expected NAME=N,N and so on, found %s", text), false;
  *equals = 0;
  s->shapes[s->nshapes++] = shape;
  return true;
}

static void list_add(TextList *list, const char *text) {
  list->items = memory_or_exit(reallocarray(list->items, list->count + 1, sizeof *list->items));
  list->items[list->count++] = text;
}

// Cuts argv's string at commas.
static bool parse_names(const Option *o, char *text, TextList *list) {
  for (char *next = text; next; text = next) {
    next = strchr(text, ',');
    if (next) *next++ = 0;
    if (!*text) {
      usage_error("--%s: expected names with single commas between", o->name);
      return false;
    }
    list_add(list, text);
  }
  return true;
}

static bool set_option(Settings *s, const Option *o, char *value) {
  void *field = (char *)s + o->offset;
  s->has_seed |= o->kind == KIND_SEED;
  switch (o->kind) {
  case KIND_DIM: return parse_dim(value, s);
  case KIND_SHAPE: return parse_shape(value, s);
  case KIND_SETTING: {
    NumberSetting *number = &s->numbers[s->nnumbers++];
    number->name = o->name;
    return parse_field(o, KIND_NUMBER, value, &number->value);
  }
  case KIND_NAMES: return parse_names(o, value, field);
  case KIND_LIST: list_add(field, value); return true;
  default: return parse_field(o, o->kind, value, field);
  }
}

// Stores the option for another program, before parsing cuts its string.
static void keep_given(Settings *s, const Option *o, const char *value) {
  if (o->bit & (OPTION_TURNS | OPTION_JSON | OPTION_SECONDS)) return;
  list_add(&s->given, text_of_format("--%s%s%s", o->name, value ? "=" : "", value ? value : ""));
}

// Parses the option at argv[*i], and its value.
static bool parse_option(Settings *s, const Verb *verb, int argc, char **argv, int *i) {
  char *given = argv[*i], *value = NULL;
  const Option *o;
  if (given[1] == '-') {
    value = strchr(given, '=');
    o = find_option(verb, given + 2, value ? (size_t)(value - given - 2) : strlen(given + 2), 0);
    if (value && !o) *value = 0;
    if (value) value++;
  } else {
    o = find_option(verb, NULL, 0, given[1]);
    if (given[2]) value = given + 2;
  }
  if (!o) return tell_unknown(verb, given);
  if (!o->argument) {
    if (value) usage_error("--%s takes no value", o->name);
    *(bool *)((char *)s + o->offset) = true;
    keep_given(s, o, NULL);
    return !value;
  }
  if (!value && *i + 1 < argc) value = argv[++*i];
  if (value && *value) {
    keep_given(s, o, value);
    return set_option(s, o, value);
  }
  usage_error("--%s: expected %s after it", o->name, o->argument);
  return false;
}

bool settings_parse(Settings *s, const Verb *verb, int argc, char **argv) {
  *s = (Settings){.verb = verb, .tolerance = -1, .max_ulp = -1, .seconds = -1, .compile_timeout = -1};
  s->scale.latency = s->scale.overhead = s->scale.leaf_time = -1;
  size_t most = (size_t)argc + 1;
  s->operands = memory_or_exit(calloc(most, sizeof *s->operands));
  s->dims = memory_or_exit(calloc(most, sizeof *s->dims));
  s->shapes = memory_or_exit(calloc(most, sizeof *s->shapes));
  s->numbers = memory_or_exit(calloc(most, sizeof *s->numbers));
  bool only_operands = false;
  for (int i = 0; i < argc; i++) {
    if (!only_operands && strcmp(argv[i], "--") == 0) only_operands = true;
    else if (only_operands || argv[i][0] != '-' || !argv[i][1]) s->operands[s->noperands++] = argv[i];
    else if (!parse_option(s, verb, argc, argv, &i)) return false;
  }
  if (s->wants_help) return true;
  if (s->noperands < verb->least_operands)
    usage_error("%s: expected %s, see ngrad %s --help", verb->name, verb->operands, verb->name);
  else if (s->noperands > verb->most_operands)
    usage_error("%s: expected %s, found %s too", verb->name, verb->most_operands ? verb->operands : "no operands",
                s->operands[verb->most_operands]);
  else return true;
  return false;
}

bool settings_keep_graphs(const Settings *s, const char *path) {
  for (size_t i = 0; path && i < s->noperands; i++)
    if (is_same_file(s->operands[i], path)) {
      usage_error("%s: expected another file to write to than the graph's", path);
      return false;
    }
  return true;
}

// Each list is the member of one row.
void settings_free(Settings *s) {
  free(s->operands);
  free(s->dims);
  free(s->shapes);
  free(s->numbers);
  for (size_t i = 0; i < s->given.count; i++) free((char *)s->given.items[i]);
  free(s->given.items);
  for (const Option *o = options; o < options + NOPTIONS; o++)
    if (o->kind == KIND_LIST || o->kind == KIND_NAMES) free(((TextList *)(void *)((char *)s + o->offset))->items);
}

static void print_options(const Verb *verb) {
  enum { behind_option = 25 };
  printf("\noptions:\n");
  for (const Option *o = options; o < options + NOPTIONS; o++) {
    if (!(o->bit & (verb->options | OPTION_ANY))) continue;
    char left[48];
    const char *argument = o->argument ? o->argument : "", *space = o->argument ? " " : "";
    if (o->letter) snprintf(left, sizeof left, "-%c, --%s%s%s", o->letter, o->name, space, argument);
    else snprintf(left, sizeof left, "    --%s%s%s", o->name, space, argument);
    const int column = printf("  %-22s ", left);
    help_print_wrapped(stdout, o->help, (size_t)column, behind_option);
  }
}

void verb_print_help(const Verb *verb) {
  static const char *const meanings[] = {
      "done", "the graph or its data is wrong", "wrong usage", "a comparison failed", "the C compiler failed",
  };
  printf("usage: ngrad %s [OPTION...]%s%s\n\n", verb->name, *verb->operands ? " " : "", verb->operands);
  help_print_wrapped(stdout, verb->summary, 0, 0);
  if (verb->details) fputc('\n', stdout), help_print_wrapped(stdout, verb->details, 0, 0);
  print_options(verb);
  printf("\nexit status:\n");
  for (unsigned i = 0; i < sizeof meanings / sizeof *meanings; i++)
    if (verb->statuses & 1U << i) printf("  %u  %s\n", i, meanings[i]);
  printf("\nexample:\n%s", verb->example);
}
