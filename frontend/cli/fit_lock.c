// A lock beside the checkpoint, NAME.npz.lock, so that one training at a time saves there. The kernel releases it when
// the process ends, however it ends; a file that a killed process left is not locked. Only rank 0 saves, and takes the
// lock.
#include "frontend/cli/fit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static char *lock_path(const Fit *f) {
  return text_of_format("%s.lock", f->checkpoint);
}

// Whether the path still leads to the locked file, which another process may have removed before it was locked.
static bool is_there(int fd, const char *path) {
  struct stat locked, there;
  return fstat(fd, &locked) == 0 && lstat(path, &there) == 0 && locked.st_ino == there.st_ino &&
         locked.st_dev == there.st_dev;
}

// Locks a new or an abandoned file at the path. False: another process has the lock. Without a lock, f->lock stays -1:
// a file system may have no locks, and two trainings are then the caller's care.
static bool take_lock(Fit *f, const char *path) {
  enum { ATTEMPTS = 16 };
  for (int i = 0; i < ATTEMPTS; i++) {
    const int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0666);
    if (fd < 0) return true; // saving reports why nothing can be written there
    const bool is_taken = flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_taken && is_there(fd, path)) {
      f->lock = fd;
      return true;
    }
    close(fd);
    if (is_taken) return false;
  }
  return true;
}

bool fit_lock(Fit *f) {
  char *path = lock_path(f);
  const bool ok = take_lock(f, path);
  if (!ok) plain_error("%s: another training that has not ended saves there: choose another --out", f->checkpoint);
  free(path);
  return ok;
}

void fit_unlock(Fit *f) {
  if (f->lock < 0) return;
  char *path = lock_path(f);
  unlink(path);
  close(f->lock);
  free(path);
}
