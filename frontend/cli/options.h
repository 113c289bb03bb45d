// The command line's options: one table, from which parsing, checking and help are made.
#ifndef NGRAD_FRONTEND_CLI_OPTIONS_H
#define NGRAD_FRONTEND_CLI_OPTIONS_H

#include "frontend/api/ngrad.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct DimSetting {
  const char *name;
  int64_t value;
} DimSetting;

typedef struct ShapeSetting {
  const char *name; // of an input
  int rank;
  int64_t extent[NG_MAX_RANK]; // -1: as the model says
} ShapeSetting;

typedef struct NumberSetting {
  const char *name; // of the option
  double value;
} NumberSetting;

// The given options, with defaults for the others. Strings are argv's.
typedef struct TextList {
  const char **items;
  size_t count;
} TextList;

typedef struct FitSettings {
  TextList inputs, test_inputs; // NAME=FILE
  const char *labels, *text, *test, *test_labels, *test_text, *test_graph;
  int64_t epochs, steps, batch; // 0: not given
  bool resumes, drops_last, keeps_order, is_quiet, tells_each_step, has_ranks;
} FitSettings;

typedef struct ScaleSettings {
  const char *ranks;
  int64_t leaves;                  // 0: not given
  double latency, overhead;        // ms; -1: not given
  double leaf_time, common_time;   // ms; not given: -1, 0
  double bandwidth, add_bandwidth; // bytes a second; 0: not given
  int cores;
} ScaleSettings;

typedef struct Settings {
  const struct Verb *verb;
  const char **operands; // arguments that are no options, in order
  size_t noperands;
  const char *backend, *in, *out, *expect, *isa, *after, *format, *dump, *state, *save, *trace, *weights;
  double tolerance, max_ulp, seconds, compile_timeout; // -1: not given
  uint64_t seed;
  bool has_seed;
  int threads;      // 0: all processors
  bool lists_onnx;  // ops
  bool lists_costs; // passes
  bool is_random, compares, checks_nan, is_json, no_fuse, is_cold, wants_help, wants_schema, fast_math, times_passes,
      has_self_test;
  bool has_profile, has_no_times, prints_values;
  uint64_t max_memory; // bytes; 0: the default
  int64_t max_steps;   // of compiling; 0: the default
  uint64_t memory;     // limit of bytes between kernels; 0: none
  DimSetting *dims;
  size_t ndims;
  ShapeSetting *shapes;
  size_t nshapes;
  TextList constants; // NAME=FILE
  TextList disabled, schedule, costs, wrt, of, loss, freeze, no_decay, keep_f32;
  const char *optimizer, *rate_schedule, *forward, *to, *precision;
  NumberSetting *numbers; // settings of training
  size_t nnumbers;
  bool is_nesterov, syncs_batch_norms, trains_batch_norms, lists_parameters;
  bool is_forward_mode, is_hvp, is_jacobian, is_hessian; // of grad; at most one
  const char *depfile, *sharing, *prefix, *package, *optimize;
  const char *other_program; // a program whose times are compared; NULL: none
  TextList exports;
  TextList against;          // options that the second of two timings in turns has, too
  const char *sweep;         // NAME=VALUES
  const char *thread_counts; // of bench, which sets `threads` to one after the other; NULL: 0
  TextList given; // the options in their original form, --NAME or --NAME=VALUE, for another program that bench starts
  FitSettings fit;
  ScaleSettings scale;
} Settings;

// The options that a verb takes: a set of these bits. Every verb takes OPTION_ANY.
enum {
  OPTION_BACKEND = 1 << 0,
  OPTION_IN = 1 << 1,
  OPTION_RANDOM = 1 << 2, // and --seed
  OPTION_OUT = 1 << 3,
  OPTION_DIM = 1 << 4,
  OPTION_THREADS = 1 << 5,
  OPTION_ISA = 1 << 6,
  OPTION_PASSES = 1 << 7,   // --no-fuse, --fast-math, --disable, --schedule, --cost
  OPTION_EXPECTED = 1 << 8, // --expect, --compare, --tolerance, --max-ulp
  OPTION_NAN_CHECK = 1 << 9,
  OPTION_JSON = 1 << 10,
  OPTION_AFTER = 1 << 11,
  OPTION_FORMAT = 1 << 12,
  OPTION_SOURCE_OUT = 1 << 13,
  OPTION_COLD = 1 << 14,
  OPTION_SECONDS = 1 << 15,
  OPTION_FILE_OUT = 1 << 16,
  OPTION_WATCH = 1 << 17,     // --time-passes, --dump-dir
  OPTION_GRADIENT = 1 << 18,  // --wrt, --of
  OPTION_GRADCHECK = 1 << 19, // --seed, --tolerance
  OPTION_PROFILE = 1 << 20,   // --profile, --trace
  OPTION_MEMORY = 1 << 21,    // --max-memory, --max-steps
  OPTION_COMPILE = 1 << 22,   // --compile-timeout
  OPTION_STATE = 1 << 23,     // --state, --save
  OPTION_TRAIN = 1 << 24,
  OPTION_FIT = 1 << 25,
  OPTION_FORWARD = 1 << 26, // --forward, --forward-mode, --hvp, --jacobian, --hessian
  OPTION_ARENA = 1 << 27,   // --memory
  OPTION_SCHEMA = 1 << 28,  // --schema
  OPTION_TURNS = 1 << 29,   // --export, --with, --against, --sweep, --threads N,N
  OPTION_REPORT = 1 << 30,  // --no-times
};
#define OPTION_ANY (UINT64_C(1) << 31)
#define OPTION_TO (UINT64_C(1) << 32) // --to
#define OPTION_SCALE (UINT64_C(1) << 33)
#define OPTION_COSTS (UINT64_C(1) << 34)    // --costs
#define OPTION_OPTIMIZE (UINT64_C(1) << 35) // --optimize
#define OPTION_VALUES (UINT64_C(1) << 36)   // --values

// A command: `ngrad name operands`.
typedef struct Verb {
  const char *name;
  const char *operands; // "GRAPH..."
  size_t least_operands, most_operands;
  const char *summary;                  // one line
  const char *details;                  // lines for --help; NULL: none
  const char *example;                  // one command a line
  uint64_t options;                     // OPTION_...
  unsigned statuses;                    // bit i: may exit with i
  int (*run)(const Settings *settings); // returns the exit status
} Verb;

// False after an error message. settings_free must follow in any case.
bool settings_parse(Settings *s, const Verb *verb, int argc, char **argv);
void settings_free(Settings *s);

// False after an error message: the file to write is one of the graphs. path NULL: no file.
bool settings_keep_graphs(const Settings *s, const char *path);

void verb_print_help(const Verb *verb);

bool option_exists(uint64_t groups, const char *name); // with the long name, without --

#endif
