// Finds, seals and removes entries. An entry is created by renaming a complete file, so several processes may use the
// cache at once.
#include "backends/codegen/toolchain/kernel_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LARGEST_OBJECT = 1 << 28, MOST_BYTES = 1 << 29 };

static bool is_private(const struct stat *status) {
  return status->st_uid == geteuid() && (status->st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

// Creates the folder if necessary, and checks that only the user may write to it.
static bool make_private_folder(const char *path, char problem[CACHE_PROBLEM_BYTES]) {
  struct stat status;
  const char *why = NULL;
  if ((mkdir(path, S_IRWXU) != 0 && errno != EEXIST) || lstat(path, &status) != 0) why = strerror(errno);
  else if (!S_ISDIR(status.st_mode)) why = "it is not a folder";
  else if (!is_private(&status)) why = "it belongs to another user, or others may write to it";
  if (why) snprintf(problem, CACHE_PROBLEM_BYTES, "%s", why);
  return !why;
}

bool cache_open(KernelCache *c, const uint8_t key[SHA256_DIGEST_SIZE], char problem[CACHE_PROBLEM_BYTES]) {
  enum { NAME_BYTES = 20 };
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char name[2 * NAME_BYTES + 1], parent[PATH_MAX];
  bool has_cache = cache && *cache == '/', has_home = home && *home == '/';
  snprintf(c->folder, sizeof c->folder, "the cache");
  if (!has_cache && !has_home) {
    snprintf(problem, CACHE_PROBLEM_BYTES, "neither XDG_CACHE_HOME nor HOME is set to an absolute path");
    return false;
  }
  for (int i = 0; i < NAME_BYTES; i++) snprintf(name + 2 * (ptrdiff_t)i, 3, "%02x", key[i]);
  memcpy(c->key, key, sizeof c->key);
  if (snprintf(parent, sizeof parent, "%s%s", has_cache ? cache : home, has_cache ? "" : "/.cache") >= PATH_MAX ||
      snprintf(c->folder, sizeof c->folder, "%s/ngrad", parent) >= PATH_MAX ||
      snprintf(c->entry, sizeof c->entry, "%s/%s.so", c->folder, name) >= PATH_MAX) {
    snprintf(problem, CACHE_PROBLEM_BYTES, "%s", strerror(ENAMETOOLONG));
    return false;
  }
  mkdir(parent, S_IRWXU);
  return make_private_folder(c->folder, problem);
}

// Computes the seal of an object, which is the first `nbytes` of the file.
static bool compute_seal(const KernelCache *c, int file, off_t nbytes, uint8_t seal[SHA256_DIGEST_SIZE]) {
  struct sha256_ctx hash;
  char buffer[1 << 12];
  sha256_init(&hash);
  sha256_update(&hash, sizeof c->key, c->key);
  if (lseek(file, 0, SEEK_SET) != 0) return false;
  while (nbytes > 0) {
    ssize_t n = read(file, buffer, nbytes < (off_t)sizeof buffer ? (size_t)nbytes : sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sha256_update(&hash, (size_t)n, (const uint8_t *)buffer);
    nbytes -= n;
  }
  sha256_digest(&hash, SHA256_DIGEST_SIZE, seal);
  return true;
}

static bool is_sound(const KernelCache *c, int file) {
  struct stat status;
  uint8_t seal[SHA256_DIGEST_SIZE], found[SHA256_DIGEST_SIZE];
  return fstat(file, &status) == 0 && S_ISREG(status.st_mode) && is_private(&status) &&
         status.st_size > SHA256_DIGEST_SIZE && status.st_size <= LARGEST_OBJECT &&
         compute_seal(c, file, status.st_size - SHA256_DIGEST_SIZE, seal) &&
         read(file, found, sizeof found) == (ssize_t)sizeof found && memcmp(seal, found, sizeof seal) == 0;
}

int cache_find(const KernelCache *c) {
  const struct timespec times[2] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
  int file = open(c->entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
  if (file >= 0 && is_sound(c, file)) {
    futimens(file, times); // sets the access time, because many file systems do not update it on reads
    return file;
  }
  if (file >= 0) close(file);
  return -1;
}

void cache_drop(const KernelCache *c) {
  unlink(c->entry);
}

// Finds the least recently used file; returns the size of all files together.
static off_t find_oldest(DIR *dir, char oldest[NAME_MAX + 1]) {
  struct timespec least = {0};
  off_t nbytes = 0;
  *oldest = 0;
  rewinddir(dir);
  for (struct dirent *entry; (entry = readdir(dir));) {
    struct stat status;
    if (fstatat(dirfd(dir), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    nbytes += status.st_size;
    bool is_older = status.st_atim.tv_sec < least.tv_sec ||
                    (status.st_atim.tv_sec == least.tv_sec && status.st_atim.tv_nsec < least.tv_nsec);
    if (*oldest && !is_older) continue;
    least = status.st_atim;
    snprintf(oldest, NAME_MAX + 1, "%s", entry->d_name);
  }
  return nbytes;
}

static void evict_oldest(const KernelCache *c) {
  char oldest[NAME_MAX + 1];
  DIR *dir = opendir(c->folder);
  while (dir && find_oldest(dir, oldest) > MOST_BYTES && unlinkat(dirfd(dir), oldest, 0) == 0) {
  }
  if (dir) closedir(dir);
}

static bool write_seal(const KernelCache *c, const char *object) {
  struct stat status;
  uint8_t seal[SHA256_DIGEST_SIZE];
  int file = open(object, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (file < 0) return false;
  bool ok = fchmod(file, S_IRWXU) == 0 && fstat(file, &status) == 0 && compute_seal(c, file, status.st_size, seal);
  ssize_t n = ok ? write(file, seal, sizeof seal) : -1;
  if (n >= 0 && n < (ssize_t)sizeof seal) errno = ENOSPC;
  return close(file) == 0 && n == (ssize_t)sizeof seal;
}

bool cache_store(const KernelCache *c, const char *object) {
  if (!write_seal(c, object)) return false;
  bool ok = rename(object, c->entry) == 0;
  if (!ok && errno == EISDIR) ok = rmdir(c->entry) == 0 && rename(object, c->entry) == 0;
  if (ok) evict_oldest(c);
  return ok;
}
