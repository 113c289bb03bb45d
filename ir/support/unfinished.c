// The list of unfinished files, folders and processes: a few entries for each thread that compiles or writes.
#include "ir/support/unfinished.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static Unfinished *first;

static void add(Unfinished *u) {
  u->owner = getpid();
  u->previous = NULL;
  u->next = first;
  if (first) first->previous = u;
  first = u;
}

// Creates the file under the lock: without it, the file could appear after unfinished_abandon has removed the others.
int unfinished_create_file(Unfinished *u, const char *path, mode_t mode) {
  *u = (Unfinished){.path = path};
  pthread_mutex_lock(&lock);
  int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file >= 0) add(u);
  pthread_mutex_unlock(&lock);
  return file;
}

bool unfinished_create_folder(Unfinished *u, const char *path) {
  *u = (Unfinished){.path = path};
  pthread_mutex_lock(&lock);
  bool ok = mkdir(path, S_IRWXU) == 0;
  if (ok) add(u);
  pthread_mutex_unlock(&lock);
  return ok;
}

void unfinished_end(Unfinished *u) {
  pthread_mutex_lock(&lock);
  if (u->previous) u->previous->next = u->next;
  else first = u->next;
  if (u->next) u->next->previous = u->previous;
  pthread_mutex_unlock(&lock);
}

int unfinished_spawn(Unfinished *u, const char *program, const posix_spawn_file_actions_t *actions,
                     char *const *arguments, char *const *environment) {
  posix_spawnattr_t attributes;
  sigset_t none;
  sigemptyset(&none);
  int error = posix_spawnattr_init(&attributes);
  if (error) return error;
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
  posix_spawnattr_setsigmask(&attributes, &none);
  *u = (Unfinished){0};
  pthread_mutex_lock(&lock); // without the lock, the program could start after unfinished_abandon has killed the others
  error = posix_spawn(&u->group, program, actions, &attributes, arguments, environment);
  if (!error) add(u);
  pthread_mutex_unlock(&lock);
  posix_spawnattr_destroy(&attributes);
  return error;
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at) {
  (void)status, (void)kind, (void)at;
  remove(path); // on failure the parent folder cannot be removed either, which remove_tree reports
  return 0;
}

bool remove_tree(const char *path) {
  enum { MOST_OPEN = 8 };
  nftw(path, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
  return access(path, F_OK) != 0;
}

// Tries again for a second: a killed process may still complete a system call that creates a file.
static void remove_persistently(const char *path) {
  enum { ATTEMPTS = 100 };
  const struct timespec pause = {.tv_nsec = 10000000}; // 10 ms
  for (int i = 0; i < ATTEMPTS && !remove_tree(path); i++) nanosleep(&pause, NULL);
}

void unfinished_abandon(void) {
  pthread_mutex_lock(&lock); // never released: see unfinished.h
  for (const Unfinished *u = first; u; u = u->next)
    if (u->group && u->owner == getpid()) kill(-u->group, SIGKILL);
  for (const Unfinished *u = first; u; u = u->next)
    if (u->path && u->owner == getpid()) remove_persistently(u->path);
}
