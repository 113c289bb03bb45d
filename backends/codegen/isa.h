// The instruction sets that code can be emitted for: one row and one header in simd/ each.
#ifndef NGRAD_BACKENDS_CODEGEN_ISA_H
#define NGRAD_BACKENDS_CODEGEN_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Isa {
  const char *name;
  int number;                 // in emitted headers, for good
  const char *vocabulary[2];  // text of its header, and of the header whose definitions it takes for the rest; or NULL
  const char *target;         // for the compiler's target attribute; NULL: nothing to say
  int vector_registers;       // how many 64-byte virtual vectors its registers hold
  int64_t l2_nbytes;          // what cores that have it have, for files that run on any
  bool (*is_available)(void); // on this processor
  const char *compiles;       // for #if in emitted C: whether this compiler can make it
  const char *runs;           // in emitted C: whether the processor has it
} Isa;

extern const Isa isas[]; // from the plainest to the best
extern const size_t nisas;

const Isa *isa_find(const char *name); // NULL: there is none
const Isa *isa_best(void);             // the best that this processor has

#endif
