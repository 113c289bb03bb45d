// The instruction sets that code can be emitted for. Each has a row in the table and a header in simd/.
#ifndef NGRAD_BACKENDS_CODEGEN_ISA_H
#define NGRAD_BACKENDS_CODEGEN_ISA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Isa {
  const char *name;
  int number;                 // PREFIX_ISA_NAME in emitted headers; must never change
  const char *vocabulary[2];  // texts of its header in simd/, and of the header it falls back to or NULL
  const char *target;         // argument of the compiler's target attribute; NULL: not needed
  int vector_registers;       // the number of 64-byte virtual vectors in its registers
  int64_t l2_nbytes;          // typical L2 cache of cores with it; for files that run on any machine
  bool (*is_available)(void); // whether this processor has it
  const char *compiles;       // condition of an #if in emitted C: the compiler supports it
  const char *runs;           // C expression in emitted C: the processor has it
} Isa;

extern const Isa isas[]; // ordered from the least to the most capable
extern const size_t nisas;

const Isa *isa_find(const char *name); // NULL: no such instruction set
const Isa *isa_best(void);             // the last row that this processor supports

#endif
