// Where the time of a kernel goes: the static numbers from compiling, and the times from a bench.
#ifndef NGRAD_FRONTEND_API_PROFILE_H
#define NGRAD_FRONTEND_API_PROFILE_H

#include "backends/codegen/codegen.h"
#include "frontend/api/ngrad.h"
#include "ir/kernel/program.h"

typedef struct Profile {
  Arena arena;
  ng_profile shown; // its arrays are in the arena
  ng_profile_kernel *kernels;
  ng_profile_loop *loops; // of all kernels, in order
  size_t nloops;          // of the program, also loops that are not shown
  size_t *nsamples;       // by kernel: the number of its loops in the program
  ng_span *spans;         // of the last trace; from the arena's allocator
  size_t nspans;
} Profile;

// The profile of a program's kernels, without times. NULL: out of memory.
Profile *profile_new(const Program *p, const Allocator *allocator);
void profile_free(Profile *profile);

// A sample is an array of milliseconds: the whole run, then each loop. Returns its length.
size_t profile_sample_length(const Profile *profile);
// Averages the middle fifth of the samples, ordered by their whole runs: as robust as a median, and the loops' means
// add up to the run's. Reorders the samples; nsamples is at least 1.
void profile_set(Profile *profile, double *samples, size_t nsamples);
// Stores the spans of a trace. False: out of memory.
bool profile_set_spans(Profile *profile, const Span *spans, size_t count);
// Sets the bound of each kernel, by the rates of the ceiling and the peak: bytes and operations in a millisecond.
void profile_set_bounds(Profile *profile, double ceiling_rate, double peak_rate);

#endif
