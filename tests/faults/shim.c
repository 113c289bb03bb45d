// Preloaded into ngrad: the n-th call of a kind fails, as on a full disk or without memory. Compilers that ngrad starts
// are left alone.
//
//   FAULT_KIND   io: calls that make, write, name or map files; memory: allocations
//   FAULT_AT     the call that fails, from 1, counted from the beginning of main; 0: none
//   FAULT_ERROR  its errno
//   FAULT_COUNT  a file that gets the number of calls
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

typedef enum Kind { NO_KIND, IO, MEMORY } Kind;

static Kind kind;
static long at;
static int error_number;
static const char *count_path;
static atomic_long ncalls;
static atomic_bool is_active;

// Whether this call fails; errno is set then.
static _Bool fails(Kind of) {
  if (!is_active || of != kind || atomic_fetch_add(&ncalls, 1) + 1 != at) return 0;
  errno = error_number;
  return 1;
}

// The function behind ours.
#define REAL(name) __typeof__(&name) real = (__typeof__(&name))(size_t)dlsym(RTLD_NEXT, #name)

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);

void *malloc(size_t nbytes) {
  return fails(MEMORY) ? NULL : __libc_malloc(nbytes);
}

void *calloc(size_t count, size_t nbytes) {
  return fails(MEMORY) ? NULL : __libc_calloc(count, nbytes);
}

void *realloc(void *p, size_t nbytes) {
  return fails(MEMORY) ? NULL : __libc_realloc(p, nbytes);
}

void *aligned_alloc(size_t alignment, size_t nbytes) {
  return fails(MEMORY) ? NULL : __libc_memalign(alignment, nbytes);
}

int posix_memalign(void **p, size_t alignment, size_t nbytes) {
  if (fails(MEMORY)) return ENOMEM;
  *p = __libc_memalign(alignment, nbytes);
  return *p ? 0 : ENOMEM;
}

int open(const char *path, int flags, ...) {
  REAL(open);
  va_list args;
  va_start(args, flags);
  mode_t mode = flags & O_CREAT ? va_arg(args, mode_t) : 0;
  va_end(args);
  return fails(IO) ? -1 : real(path, flags, mode);
}

// Half of it arrives before the disk is full.
ssize_t write(int fd, const void *bytes, size_t nbytes) {
  REAL(write);
  if (!fails(IO)) return real(fd, bytes, nbytes);
  if (real(fd, bytes, nbytes / 2) < 0) return -1;
  errno = error_number;
  return -1;
}

int close(int fd) {
  REAL(close);
  if (!fails(IO)) return real(fd);
  real(fd);
  errno = error_number;
  return -1;
}

int fclose(FILE *file) {
  REAL(fclose);
  if (!fails(IO)) return real(file);
  real(file);
  errno = error_number;
  return EOF;
}

int fsync(int fd) {
  REAL(fsync);
  return fails(IO) ? -1 : real(fd);
}

int rename(const char *from, const char *to) {
  REAL(rename);
  return fails(IO) ? -1 : real(from, to);
}

int mkdir(const char *path, mode_t mode) {
  REAL(mkdir);
  return fails(IO) ? -1 : real(path, mode);
}

int mkstemp(char *template) {
  REAL(mkstemp);
  return fails(IO) ? -1 : real(template);
}

int mkostemp(char *template, int flags) {
  REAL(mkostemp);
  return fails(IO) ? -1 : real(template, flags);
}

char *mkdtemp(char *template) {
  REAL(mkdtemp);
  return fails(IO) ? NULL : real(template);
}

void *mmap(void *address, size_t nbytes, int protection, int flags, int fd, off_t offset) {
  REAL(mmap);
  return fails(IO) ? MAP_FAILED : real(address, nbytes, protection, flags, fd, offset);
}

// Tells the number of calls, and that nothing fails any more.
__attribute__((destructor)) static void tell(void) {
  if (!is_active) return;
  is_active = 0;
  FILE *file = fopen(count_path, "w");
  if (!file) return;
  fprintf(file, "%ld\n", atomic_load(&ncalls));
  fclose(file);
}

static int (*real_main)(int, char **, char **);

static int counted_main(int argc, char **argv, char **environment) {
  const char *text = getenv("FAULT_KIND");
  count_path = getenv("FAULT_COUNT");
  if (text && count_path && strcmp(program_invocation_short_name, "ngrad") == 0) {
    kind = strcmp(text, "io") == 0 ? IO : MEMORY;
    at = getenv("FAULT_AT") ? atol(getenv("FAULT_AT")) : 0;
    error_number = getenv("FAULT_ERROR") ? atoi(getenv("FAULT_ERROR")) : ENOMEM;
    is_active = 1;
  }
  return real_main(argc, argv, environment);
}

int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(int (*main)(int, char **, char **), int argc, char **argv, void (*init)(void), void (*fini)(void),
                      void (*rtld_fini)(void), void *stack_end) {
  REAL(__libc_start_main);
  real_main = main;
  return real(counted_main, argc, argv, init, fini, rtld_fini, stack_end);
}
