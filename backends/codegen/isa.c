// The table of instruction sets, and tests whether this processor supports them.
#include "backends/codegen/isa.h"

#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

extern const char simd_scalar[], simd_avx2[], simd_avx512[], simd_avx512_bf16[], simd_neon[];

static bool always(void) {
  return true;
}

#if defined(__x86_64__)
// clang 14's __builtin_cpu_supports does not know "f16c".
static bool has_f16c(void) {
  unsigned a, b, c, d;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}
#endif

static bool has_avx2(void) {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
#else
  return false;
#endif
}

static bool has_avx512(void) {
#if defined(__x86_64__)
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return false;
#endif
}

static bool has_avx512_bf16(void) {
#if defined(__x86_64__)
  return has_avx512() && __builtin_cpu_supports("avx512bf16") && __builtin_cpu_supports("avx512vbmi");
#else
  return false;
#endif
}

static bool has_neon(void) {
#if defined(__aarch64__)
  return true; // part of the base architecture
#else
  return false;
#endif
}

#define AVX512 "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"

#define GNU_C "(__GNUC__ >= 10 || __clang_major__ >= 10)"
// gcc for Windows does not align stacks to vectors, but moves vectors there as if it did, unless its assembler changes
// the moves (GCC's bug 54412).
#define COMPILES_X86                                                                                                   \
  "defined(__x86_64__) && " GNU_C " && (!defined(__SEH__) || defined(__clang__) || defined(NGRAD_UNALIGNED_MOVES))"

// Emitted C does not test for f16c, because clang 14 cannot; every processor with AVX2 has it.
#define RUNS(feature) "__builtin_cpu_supports(\"" feature "\")"
#define RUNS_AVX2 RUNS("avx2") " && " RUNS("fma")
#define RUNS_AVX512                                                                                                    \
  RUNS_AVX2 " && " RUNS("avx512f") " && " RUNS("avx512bw") " && " RUNS("avx512dq") " && " RUNS("avx512vl")

enum { MIB = 1 << 20, TWO_MIB = 2 << 20 };

const Isa isas[] = {
    {"scalar", 1, {simd_scalar}, NULL, 8, MIB, always, "1", "1"},
    {"neon", 2, {simd_neon}, NULL, 8, MIB, has_neon, "defined(__aarch64__) && !defined(__AARCH64EB__) && " GNU_C, "1"},
    {"avx2", 3, {simd_avx2}, "avx2,fma,f16c", 8, MIB, has_avx2, COMPILES_X86, RUNS_AVX2},
    {"avx512", 4, {simd_avx512}, AVX512, 32, TWO_MIB, has_avx512, COMPILES_X86, RUNS_AVX512},
    {"avx512_bf16",
     5,
     {simd_avx512_bf16, simd_avx512},
     "avx512bf16,avx512vbmi," AVX512,
     32,
     TWO_MIB,
     has_avx512_bf16,
     COMPILES_X86,
     RUNS_AVX512 " && " RUNS("avx512bf16") " && " RUNS("avx512vbmi")},
};
const size_t nisas = sizeof isas / sizeof *isas;

const Isa *isa_find(const char *name) {
  if (strcmp(name, "native") == 0) return isa_best();
  for (size_t i = 0; i < nisas; i++)
    if (strcmp(isas[i].name, name) == 0) return &isas[i];
  return NULL;
}

const Isa *isa_best(void) {
  size_t best = 0;
  for (size_t i = 0; i < nisas; i++)
    if (isas[i].is_available()) best = i;
  return &isas[best];
}
