// Differential fuzzing of whole programs: shared by the parts of the fuzzer.
//
// The parent makes no graph itself: a child does, in memory of its own and for a bounded time, and tells what it found
// in a report that both share. So a crash, a hang or an abort is a finding like any other.
#ifndef NGRAD_TESTS_FUZZ_PROGRAM_H
#define NGRAD_TESTS_FUZZ_PROGRAM_H

#include "ir/graph/graph.h"
#include "ir/support/text.h"

enum { REPORT_TEXT = 1 << 20, EXTREME_SECONDS = 10 };
#define EXTREME_NBYTES ((uint64_t)2 << 30)

typedef struct Report {
  char group[160];             // of ways that it is at, in check_program
  char stage[64];              // what the child is at
  char kind[96];               // of the finding; "" while there is none
  char detail[512];            // what differs
  bool is_refused;             // it is no valid graph
  size_t ncompared, nunstable; // elements
  size_t ncompiled, nways;     // programs that a compiler made, and all that ran
  size_t ngradients;
  size_t nbytes;
  char text[REPORT_TEXT]; // the graph
} Report;

typedef struct FuzzOptions {
  uint64_t seed;            // of the graph to make
  uint64_t data;            // what is chosen for a graph besides: its data, passes to leave out
  const char *only;         // the kind that is looked for while reducing; NULL: all
  const char *only_group;   // and its group of ways; NULL or "": all
  const char *const *files; // to mutate
  size_t nfiles;
  const char *folder; // for temporary files
  bool
      is_extreme; // of the graph to make: random_graph.h; one that takes EXTREME_SECONDS or EXTREME_NBYTES is a finding
  bool is_compiled; // else passes are checked by the interpreter alone
  bool is_emitted;  // emitted C, with its self-test under sanitizers
  bool has_qemu;    // the same on aarch64, under an emulator
  bool no_targets;  // leave out that caches and registers of the machine do not change bits
  bool no_gradcheck;
} FuzzOptions;

// Tells a finding, once: the first counts.
void report_finding(Report *r, const char *kind, const char *format, ...) __attribute__((format(printf, 3, 4)));
void report_stage(Report *r, const char *stage);
void report_text(Report *r, const Graph *g);

// What this process may use: CPU seconds, and bytes of addresses, but for sanitizers' own.
void limit_process(uint64_t seconds, uint64_t nbytes);

// Makes the graph of options->seed as a text; in a child. False: none came of it.
bool make_program(const FuzzOptions *options, Report *r);
// Takes the text through everything; in a child.
void check_program(const FuzzOptions *options, Report *r);

// Runs a job in a child and waits for it; how it ended is in the report too.
void run_apart(void (*job)(const FuzzOptions *options, Report *r), const FuzzOptions *options, Report *r);

// Changes that keep a graph a graph, more or less: who reads its text finds out.
bool resize_extents(Graph *g, int64_t from, int64_t to); // wherever the number stands; false: nowhere, or out of memory
void forget_shapes(Graph *g);                            // of what nodes make
bool remove_output(Graph *g, size_t i);
bool remove_node(Graph *g, size_t i); // its results become inputs
void remove_idle_nodes(Graph *g);     // those that no output needs

// The smallest graph found that has the finding's kind, in r->text.
void reduce_program(const FuzzOptions *options, Report *r);

#endif
