// Differential fuzzing of whole programs: shared by the parts of the fuzzer.
//
// The parent makes no graphs: a child process makes and checks each, in bounded time and memory, and writes its
// findings to a report that both share. So a crash, a hang or an abort is a finding like any other.
#ifndef NGRAD_TESTS_FUZZ_PROGRAM_H
#define NGRAD_TESTS_FUZZ_PROGRAM_H

#include "ir/graph/graph.h"
#include "ir/support/text.h"

enum { REPORT_TEXT = 1 << 20, CPU_SECONDS = 60, EXTREME_SECONDS = 10 };
#define EXTREME_NBYTES ((uint64_t)2 << 30)

typedef struct Report {
  char group[160];             // current group of ways, in check_program
  char stage[64];              // the child's current work
  char kind[96];               // of the finding; "": none yet
  char detail[512];            // what differs
  bool is_refused;             // the graph is not valid
  size_t ncompared, nunstable; // elements
  size_t ncompiled, nways;     // programs that were compiled, and all that ran
  size_t ngradients;
  size_t nbytes;
  char text[REPORT_TEXT]; // the graph
} Report;

typedef struct FuzzOptions {
  uint64_t seed;            // of the graph to make
  uint64_t data;            // seed of other choices: the graph's data, the disabled passes
  const char *only;         // while reducing: the kind of finding to look for; NULL: all
  const char *only_group;   // and its group of ways; NULL or "": all
  const char *const *files; // to mutate
  size_t nfiles;
  const char *folder; // for temporary files
  bool is_extreme;    // of the graph to make: random_graph.h; a graph that takes EXTREME_SECONDS or EXTREME_NBYTES is a
                      // finding
  bool is_compiled;   // else passes are checked by the interpreter alone
  bool is_quick;      // each graph is compiled without optimisation
  bool is_emitted;    // emitted C, with its self-test under sanitizers
  bool has_qemu;      // the same on aarch64, under an emulator
  bool no_targets;    // do not test that the machine's caches and registers change no bits
  bool no_gradcheck;
} FuzzOptions;

// Reports a finding; only the first one is recorded.
void report_finding(Report *r, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
void report_stage(Report *r, const char *stage);
void report_text(Report *r, const Graph *g);

// Limits this process: CPU seconds, and bytes of address space, without the sanitizers' own.
void limit_process(uint64_t seconds, uint64_t nbytes);

// Makes the text of the graph of options->seed; in a child. False: the seed gives no graph.
bool make_program(const FuzzOptions *options, Report *r);
// Takes the text through the whole compiler; in a child.
void check_program(const FuzzOptions *options, Report *r);

// Runs a job in a child and waits for it; the report also says how the child ended.
void run_apart(void (*job)(const FuzzOptions *options, Report *r), const FuzzOptions *options, Report *r);

// Changes of a graph. The result may be invalid, which is found when its text is read.
bool resize_extents(Graph *g, int64_t from, int64_t to); // everywhere in the graph; false: nowhere, or out of memory
void forget_shapes(Graph *g);                            // of the nodes' results
bool remove_output(Graph *g, size_t i);
bool remove_node(Graph *g, size_t i); // its results become inputs
void remove_idle_nodes(Graph *g);     // nodes that no output needs

// The smallest graph found that has the finding's kind, in r->text.
void reduce_program(const FuzzOptions *options, Report *r);

#endif
