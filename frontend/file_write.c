// Writing files.
#include "frontend/file.h"

#include "ir/support/unfinished.h"

#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

bool file_write_all(int fd, const void *bytes, size_t nbytes) {
  for (const char *next = bytes; nbytes;) {
    ssize_t n = write(fd, next, nbytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    next += n;
    nbytes -= (size_t)n;
  }
  return true;
}

// A new file beside `path`, whose name no other process or thread makes.
static int create_beside(const char *path, char name[PATH_MAX], Unfinished *unfinished) {
  static atomic_uint counter;
  int fd = -1;
  do {
    int n = snprintf(name, PATH_MAX, "%s.%ld-%u.tmp", path, (long)getpid(), atomic_fetch_add(&counter, 1));
    if (n < 0 || n >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return -1;
    }
    fd = unfinished_create_file(unfinished, name, 0666);
  } while (fd < 0 && errno == EEXIST);
  return fd;
}

bool file_replace(const char *path, bool (*write)(int fd, const void *content), const void *content, Diagnostics *d) {
  char name[PATH_MAX], problem[PROBLEM_BYTES];
  const Source source = {.name = path};
  Unfinished unfinished;
  int fd = create_beside(path, name, &unfinished);
  bool ok = fd >= 0 && write(fd, content);
  int error = errno;
  if (fd >= 0 && close(fd) < 0 && ok) {
    ok = false;
    error = errno;
  }
  if (ok && rename(name, path) < 0) {
    ok = false;
    error = errno;
  }
  if (!ok && fd >= 0) unlink(name);
  if (fd >= 0) unfinished_end(&unfinished);
  return ok || error_at(d, (Position){&source, 0, 0}, "%s", file_problem(error, problem));
}
