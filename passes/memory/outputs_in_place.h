// Outputs in place: finds the inputs whose memory a caller may pass for an output.
#ifndef NGRAD_PASSES_MEMORY_OUTPUTS_IN_PLACE_H
#define NGRAD_PASSES_MEMORY_OUTPUTS_IN_PLACE_H

#include "ir/kernel/program.h"

// Sets in_place, by output. last_read: by value->index, the last kernel with a loop that reads the value, plus 1; 0:
// none. False: out of memory.
bool find_in_place(const Program *p, const bool *is_read_again, const size_t *last_read, InPlace *in_place,
                   Arena *scratch);

#endif
