// Asks the system for the sizes of caches and the number of cores.
#include "ir/loops/target.h"

#include "ir/support/threads.h"

#include <unistd.h>

Target target_of_any_machine(void) {
  return (Target){.l1_nbytes = 32 << 10, .l2_nbytes = 1 << 20, .llc_nbytes = 8 << 20, .threads = 1};
}

Target target_of_small_machine(void) {
  enum { ALL = 1 << 30 };
  return (Target){.isa = "scalar",
                  .code = CODE_SMALL,
                  .vector_registers = 2,
                  .l1_nbytes = ALL,
                  .l2_nbytes = ALL,
                  .llc_nbytes = ALL,
                  .threads = 1};
}

#ifdef _SC_LEVEL1_DCACHE_SIZE
static void ask(int name, int64_t *nbytes) {
  const long n = sysconf(name);
  if (n > 0) *nbytes = n;
}
#endif

Target target_of_machine(void) {
  Target t = target_of_any_machine();
#ifdef _SC_LEVEL1_DCACHE_SIZE // of glibc; musl does not tell
  ask(_SC_LEVEL1_DCACHE_SIZE, &t.l1_nbytes);
  ask(_SC_LEVEL2_CACHE_SIZE, &t.l2_nbytes);
  ask(_SC_LEVEL3_CACHE_SIZE, &t.llc_nbytes);
#endif
  t.threads = threads_processors();
  return t;
}
