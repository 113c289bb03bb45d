// The machine that code is generated for: caches, cores and vector registers.
#ifndef NGRAD_IR_LOOPS_TARGET_H
#define NGRAD_IR_LOOPS_TARGET_H

#include <stddef.h>
#include <stdint.h>

typedef enum CodeForm {
  CODE_OF_ISAS, // fast, as text that every instruction set shares, scalar C among them
  CODE_SCALAR,  // fast, of scalar C alone: for small devices, too, whose stacks are short
  CODE_SMALL,   // scalar C of little code and memory that computes elements one by one (Loop.by_element)
} CodeForm;

typedef struct Target {
  const char *isa;                          // a row of backends/codegen/isa.h
  int vector_registers;                     // registers in units of a 64-byte vector: 32 for AVX-512, 8 for AVX2
  int64_t l1_nbytes, l2_nbytes, llc_nbytes; // data caches: l1 and l2 of one core, llc shared by all
  int threads;                              // number of cores that this process may use
  CodeForm code;                            // what is wanted of it
} Target;

// Cache sizes and cores of this machine as the system reports them, or defaults where it reports none.
Target target_of_machine(void);
// One core without vectors, for which everything is in its caches.
Target target_of_small_machine(void);
// The defaults. Decisions that affect the bits of results, such as fusion, use these on every machine to estimate
// costs.
Target target_of_any_machine(void);

#endif
