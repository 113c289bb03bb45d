// Checks that tensors fit a graph: type, shape, layout, alignment, and disjoint memory.
#include "frontend/api/tensor_check.h"

#include "frontend/api/tensor.h"

#include <stdint.h>

typedef struct Range { // of addresses
  uintptr_t begin, end;
  bool is_output;
} Range;

static const char *tensor_refusal(const ng_tensor *t, const Tensor *wanted) {
  if (!t->data) return "expected tensors with data";
  const Tensor own = tensor_of_api(t);
  bool ok = own.type == wanted->type && own.rank == wanted->rank;
  for (int i = 0; ok && i < own.rank; i++)
    ok = own.extent[i] == wanted->extent[i] && layout_axis(&own.layout, i) == layout_axis(&wanted->layout, i);
  if (!ok) return "expected tensors of the graph's types, shapes and layouts";
  return (uintptr_t)t->data % type_nbytes(own.type) ? "expected data that is aligned to its elements" : NULL;
}

static Range range_of(const ng_tensor *t, bool is_output) {
  const uintptr_t begin = (uintptr_t)t->data;
  return (Range){begin, begin + ng_tensor_nbytes(t), is_output};
}

// Sorts by `begin`. Shell's sort needs no memory.
static void sort_ranges(Range *ranges, size_t count) {
  for (size_t gap = count / 2; gap; gap /= 2)
    for (size_t i = gap; i < count; i++) {
      const Range range = ranges[i];
      size_t k = i;
      for (; k >= gap && ranges[k - gap].begin > range.begin; k -= gap) ranges[k] = ranges[k - gap];
      ranges[k] = range;
    }
}

static bool outputs_overlap(Range *ranges, size_t count) {
  uintptr_t end = 0, end_of_outputs = 0; // the greatest ends so far, of all ranges and of outputs
  sort_ranges(ranges, count);
  for (size_t i = 0; i < count; i++) {
    const Range *range = &ranges[i];
    if (range->begin == range->end) continue;
    if (range->begin < (range->is_output ? end : end_of_outputs)) return true;
    if (range->end > end) end = range->end;
    if (range->is_output && range->end > end_of_outputs) end_of_outputs = range->end;
  }
  return false;
}

// Merges a state and its update into one output range, if they begin at the same address.
static void join_state(const State *state, Range *ranges, size_t ninputs) {
  Range *before = &ranges[state->input], *after = state->output < 0 ? NULL : &ranges[ninputs + (size_t)state->output];
  if (!after || before->begin != after->begin) return;
  before->is_output = true;
  after->end = after->begin;
}

const char *tensors_refusal(const ng_tensor *inputs, size_t ninputs, const ng_tensor *outputs, size_t noutputs,
                            const Tensor *wanted, const Graph *in_place, const Allocator *allocator) {
  enum { FEW = 64 };
  Range few[FEW];
  const size_t count = ninputs + noutputs;
  for (size_t i = 0; i < count; i++) {
    const char *why = tensor_refusal(i < ninputs ? &inputs[i] : &outputs[i - ninputs], &wanted[i]);
    if (why) return why;
  }
  Range *ranges = count <= FEW ? few : allocator_alloc(allocator, count * sizeof *ranges);
  if (!ranges) return refused_for_memory;
  for (size_t i = 0; i < count; i++)
    ranges[i] = i < ninputs ? range_of(&inputs[i], false) : range_of(&outputs[i - ninputs], true);
  for (size_t i = 0; in_place && i < in_place->nstates; i++) join_state(&in_place->states[i], ranges, ninputs);
  const char *why = outputs_overlap(ranges, count) ? "expected outputs that overlap no other tensor" : NULL;
  if (ranges != few) allocator_free(allocator, ranges);
  return why;
}

const char refused_for_memory[] = "out of memory";
