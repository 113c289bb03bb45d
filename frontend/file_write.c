// Writes files.
#include "frontend/file.h"

#include "ir/support/unfinished.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
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

// Creates a new file beside `path`, with a name that no other process or thread uses.
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

// Like the program's replaced_by_file, into `name`. False: `path` is no regular file, and is written directly.
static bool find_replaced(const char *path, char name[PATH_MAX]) {
  struct stat info;
  const size_t length = strlen(path);
  if (lstat(path, &info) == 0 && !S_ISREG(info.st_mode))
    return S_ISLNK(info.st_mode) && stat(path, &info) == 0 && S_ISREG(info.st_mode) && realpath(path, name);
  if (length < PATH_MAX) memcpy(name, path, length + 1);
  return length < PATH_MAX;
}

typedef bool Write(int fd, const void *content);

// On failure, these functions leave the reason in errno.
static bool write_and_close(int fd, Write *write, const void *content) {
  const bool ok = fd >= 0 && write(fd, content);
  const int error = errno;
  if (fd >= 0 && close(fd) < 0 && ok) return false;
  errno = error;
  return ok;
}

// The process that made the file by create_beside, from the end of the file's name, as in ".123-4.tmp". 0: none did.
static long process_of(const char *end) {
  static const char digits[] = "0123456789";
  const char *number = end + 1;
  const size_t first = *end == '.' ? strspn(number, digits) : 0;
  if (!first || number[first] != '-') return 0;
  const size_t second = strspn(number + first + 1, digits);
  return second && strcmp(number + first + 1 + second, ".tmp") == 0 ? strtol(number, NULL, 10) : 0;
}

// Locks of both kinds: emitted programs have those of POSIX alone, which end when the process closes the file.
static struct flock whole_file(void) {
  return (struct flock){.l_type = F_WRLCK, .l_whence = SEEK_SET};
}

static bool has_no_lock(int fd) {
  struct flock lock = whole_file();
  return flock(fd, LOCK_EX | LOCK_NB) == 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type == F_UNLCK;
}

// Whether a process that has ended left the file beside `base`. A process that writes one has a lock on it; where there
// are no locks, or it runs on another machine or in another container, only one of the two may tell.
static bool is_abandoned(int folder, const char *name, const char *base) {
  const size_t length = strlen(base);
  if (strncmp(name, base, length) != 0) return false;
  const long process = process_of(name + length);
  if (process <= 0 || process > INT_MAX) return false;
  if (process != getpid() && (kill((pid_t)process, 0) == 0 || errno != ESRCH)) return false;
  const int fd = openat(folder, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) return false;
  struct stat info;
  const bool ok = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && has_no_lock(fd);
  close(fd);
  return ok;
}

void file_remove_abandoned(const char *path) {
  char target[PATH_MAX];
  if (!find_replaced(path, target)) return;
  char *slash = strrchr(target, '/');
  const char *base = slash ? slash + 1 : target;
  if (slash) *slash = 0;
  DIR *dir = opendir(!slash ? "." : *target ? target : "/");
  for (struct dirent *entry; dir && (entry = readdir(dir));)
    if (is_abandoned(dirfd(dir), entry->d_name, base)) unlinkat(dirfd(dir), entry->d_name, 0);
  if (dir) closedir(dir);
}

static bool replace(const char *path, Write *write, const void *content) {
  char name[PATH_MAX];
  Unfinished unfinished;
  const int fd = create_beside(path, name, &unfinished);
  const int lock = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0); // until the file has its name
  struct flock whole = whole_file();
  if (lock >= 0) flock(lock, LOCK_EX);
  if (lock >= 0) fcntl(lock, F_SETLK, &whole);
  const bool ok = write_and_close(fd, write, content) && rename(name, path) == 0;
  const int error = errno;
  if (lock >= 0) close(lock);
  if (!ok && fd >= 0) unlink(name);
  if (fd >= 0) unfinished_end(&unfinished);
  errno = error;
  return ok;
}

bool file_replace(const char *path, Write *write, const void *content, Diagnostics *d) {
  char target[PATH_MAX], problem[PROBLEM_BYTES];
  const Source source = {.name = path};
  if (find_replaced(path, target)
          ? replace(target, write, content)
          : write_and_close(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), write, content))
    return true;
  return error_at(d, (Position){&source, 0, 0}, "%s", file_problem(errno, problem));
}

bool file_make_folders(char *path, size_t nbytes, Diagnostics *d) {
  char problem[PROBLEM_BYTES];
  bool ok = true;
  for (char *c = path + nbytes; ok && (c = strchr(c, '/')); c++) {
    *c = 0;
    ok = mkdir(path, 0777) == 0 || errno == EEXIST;
    const Source source = {.name = path};
    if (!ok) error_at(d, (Position){&source, 0, 0}, "cannot make the folder: %s", file_problem(errno, problem));
    *c = '/';
  }
  return ok;
}
