// Private folders to compile in. The process that creates a folder holds a lock on it, which the kernel releases when
// the process ends, however it ends. So a folder without a lock is abandoned.
#include "backends/codegen/toolchain/work_folder.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX "ngrad-"
#define ENDING ".tmp"
enum { DIGITS = 16 };

static bool is_work_folder_name(const char *name) {
  const size_t nprefix = sizeof PREFIX - 1;
  return strncmp(name, PREFIX, nprefix) == 0 && strspn(name + nprefix, "0123456789abcdef") == DIGITS &&
         strcmp(name + nprefix + DIGITS, ENDING) == 0;
}

// Whether no process uses the folder. On a file system without locks, a folder counts as abandoned after a day, because
// no compiler runs that long.
static bool is_abandoned(int folder) {
  enum { DAY = 24 * 60 * 60 };
  struct stat status;
  if (fstat(folder, &status) != 0 || status.st_uid != geteuid()) return false;
  if (flock(folder, LOCK_EX | LOCK_NB) == 0) return true;
  return errno != EWOULDBLOCK && status.st_mtim.tv_sec + DAY < time(NULL);
}

static void remove_abandoned(const char *parent) {
  DIR *dir = opendir(parent);
  for (struct dirent *entry; dir && (entry = readdir(dir));) {
    char path[PATH_MAX];
    if (!is_work_folder_name(entry->d_name)) continue;
    int folder = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (folder < 0) continue;
    if (is_abandoned(folder) && snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < PATH_MAX)
      remove_tree(path);
    close(folder);
  }
  if (dir) closedir(dir);
}

// Locks the new folder. False: another process took it for abandoned and removed it before it was locked.
static bool lock_folder(WorkFolder *w) {
  struct stat locked, there;
  w->lock = open(w->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (w->lock < 0) return false;
  flock(w->lock, LOCK_EX);
  if (fstat(w->lock, &locked) == 0 && lstat(w->path, &there) == 0 && there.st_ino == locked.st_ino) return true;
  close(w->lock);
  return false;
}

bool work_folder_open(WorkFolder *w, const char *parent) {
  enum { ATTEMPTS = 16 };
  remove_abandoned(parent);
  for (int i = 0; i < ATTEMPTS; i++) {
    uint64_t number;
    if (getrandom(&number, sizeof number, 0) != (ssize_t)sizeof number) return false;
    if (snprintf(w->path, sizeof w->path, "%s/" PREFIX "%016" PRIx64 ENDING, parent, number) >= PATH_MAX) {
      errno = ENAMETOOLONG;
      return false;
    }
    if (!unfinished_create_folder(&w->unfinished, w->path)) {
      if (errno == EEXIST) continue;
      return false;
    }
    if (lock_folder(w)) return true;
    int error = errno;
    remove_tree(w->path);
    unfinished_end(&w->unfinished);
    errno = error;
  }
  return false;
}

void work_folder_close(WorkFolder *w) {
  remove_tree(w->path);
  close(w->lock);
  unfinished_end(&w->unfinished);
}

bool work_folder_is_full(const WorkFolder *w) {
  enum { BUFFER_BYTES = 1 << 14, NEEDED = 1 << 20 };
  static const char zeros[BUFFER_BYTES];
  char path[PATH_MAX];
  struct rlimit most;
  if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < NEEDED) return false; // SIGXFSZ would end the process
  if (snprintf(path, sizeof path, "%s/probe", w->path) >= PATH_MAX) return false;
  int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  bool is_full = file < 0;
  for (int n = 0; !is_full && n < NEEDED; n += BUFFER_BYTES) is_full = write(file, zeros, BUFFER_BYTES) != BUFFER_BYTES;
  is_full = (file >= 0 && close(file) != 0) || is_full; // network file systems report exceeded quotas on close
  unlink(path);
  return is_full;
}
