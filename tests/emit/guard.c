// Memory of the self-tests, by the linker's --wrap: it ends where a page that cannot be touched begins, or, with
// GUARD=before, starts where one ends, as far as its alignment allows.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
void *__wrap_malloc(size_t nbytes);
void __wrap_free(void *p);

void *__wrap_malloc(size_t nbytes) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (nbytes / page + 1) * page;
  const char *where = getenv("GUARD");
  unsigned char *p = mmap(NULL, inner + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (p == MAP_FAILED || mprotect(p + page, inner, PROT_READ | PROT_WRITE) != 0) return NULL;
  if (where && strcmp(where, "before") == 0) return p + page;
  return p + page + inner - nbytes;
}

void __wrap_free(void *p) {
  (void)p; // the process ends soon
}
// NOLINTEND(bugprone-reserved-identifier)
