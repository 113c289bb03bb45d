// Where the time of a kernel goes: what is known when it is compiled, and what a bench then measures.
#ifndef NGRAD_FRONTEND_API_PROFILE_H
#define NGRAD_FRONTEND_API_PROFILE_H

#include "backends/codegen/codegen.h"
#include "frontend/api/ngrad.h"
#include "ir/kernel/program.h"

typedef struct Profile {
  Arena arena;
  ng_profile shown; // of which all arrays are the arena's
  ng_profile_kernel *kernels;
  ng_profile_loop *loops; // all kernels', in order
  size_t nloops;          // the program's, also those that are not shown
  size_t *nsamples;       // by kernel: the program's loops
  ng_span *spans;         // of the last trace, from the arena's allocator
  size_t nspans;
} Profile;

// Of a program's kernels, without times. NULL: out of memory.
Profile *profile_new(const Program *p, const Allocator *allocator);
void profile_free(Profile *profile);

// A sample is numbers of milliseconds: the whole run, and each loop. So many they are:
size_t profile_sample_length(const Profile *profile);
// Takes the mean of the middle fifth of the samples, ordered by their whole runs: as steady as a median, but the parts
// add up. Changes the samples' order. At least one.
void profile_set(Profile *profile, double *samples, size_t nsamples);
// Keeps what a trace told of loops. False: out of memory.
bool profile_set_spans(Profile *profile, const Span *spans, size_t count);
// Says which bound each kernel is near, by the rates of the ceiling and of the peak: bytes and operations in a
// millisecond.
void profile_set_bounds(Profile *profile, double ceiling_rate, double peak_rate);

#endif
