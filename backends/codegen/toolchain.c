// Running the compiler, keeping and checking what it made.
#include "backends/codegen/toolchain.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <nettle/sha2.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_COMPLAINT = 4000, LARGEST_OBJECT = 1 << 28 };

static const char *const flags[] = {"-std=c11", "-O2",     "-ffp-contract=off",    "-fno-math-errno",
                                    "-fPIC",    "-shared", "-fvisibility=default", "-w"};
enum { NFLAGS = sizeof flags / sizeof *flags };

typedef struct Paths {
  char compiler[PATH_MAX];
  char folder[PATH_MAX];
  char entry[PATH_MAX + 96];  // the cached object
  char source[PATH_MAX + 96]; // written for the compiler, then removed
  char object[PATH_MAX + 96]; // what it makes, then renamed to entry
  bool is_temporary;          // the folder is removed after loading
} Paths;

double milliseconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static bool is_program(const char *path) {
  struct stat status;
  return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

// The compiler's path, as a shell would find it; links stay, for programs such as ccache look at their own name.
static bool find_compiler(char *path, Diagnostics *d) {
  const char *name = getenv("CC"), *folders = getenv("PATH");
  if (!name || !*name) name = "cc";
  if (strchr(name, '/')) {
    if (snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path)) return true;
    return error_at(d, (Position){0}, "no C compiler: %s is no program; install one or set CC", name);
  }
  for (const char *folder = folders ? folders : "/usr/bin:/bin"; *folder;) {
    size_t length = strcspn(folder, ":");
    if (snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name) < PATH_MAX && is_program(path)) return true;
    folder += length + (folder[length] == ':');
  }
  return error_at(d, (Position){0}, "no C compiler: %s is not in PATH; install one or set CC", name);
}

// A folder that belongs to the user alone, made if need be.
static bool open_private_folder(const char *path) {
  struct stat status;
  if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
  return lstat(path, &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == geteuid() &&
         (status.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

static bool choose_folder(Paths *p, Diagnostics *d) {
  const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
  char parent[PATH_MAX - 8];
  int n = -1;
  if (cache && *cache == '/') n = snprintf(parent, sizeof parent, "%s", cache);
  else if (home && *home == '/') n = snprintf(parent, sizeof parent, "%s/.cache", home);
  if (n > 0 && (size_t)n < sizeof parent) {
    if (mkdir(parent, 0700) != 0 && errno != EEXIST) n = -1;
    snprintf(p->folder, sizeof p->folder, "%s/ngrad", parent);
    if (n > 0 && open_private_folder(p->folder)) return true;
  }
  const char *temporary = getenv("TMPDIR");
  snprintf(p->folder, sizeof p->folder, "%.*s/ngrad-XXXXXX", PATH_MAX - 32,
           temporary && *temporary ? temporary : "/tmp");
  p->is_temporary = true;
  if (mkdtemp(p->folder)) return true;
  return error_at(d, (Position){0}, "%s: cannot make a folder to compile in: %s", p->folder, strerror(errno));
}

static void update_string(struct sha256_ctx *hash, const char *string) {
  sha256_update(hash, strlen(string) + 1, (const uint8_t *)string);
}

// Source, flags, and the compiler: its path, size and time of change stand for its version.
static void name_entry(Paths *p, const Text *source) {
  struct sha256_ctx hash;
  struct stat status = {0};
  uint8_t digest[SHA256_DIGEST_SIZE];
  char hex[2 * SHA256_DIGEST_SIZE + 1], identity[96];
  stat(p->compiler, &status);
  snprintf(identity, sizeof identity, "%lld %lld %ld", (long long)status.st_size, (long long)status.st_mtim.tv_sec,
           status.st_mtim.tv_nsec);
  sha256_init(&hash);
  sha256_update(&hash, source->nbytes, (const uint8_t *)text_string(source));
  for (int i = 0; i < NFLAGS; i++) update_string(&hash, flags[i]);
  update_string(&hash, p->compiler);
  update_string(&hash, identity);
  sha256_digest(&hash, sizeof digest, digest);
  for (int i = 0; i < SHA256_DIGEST_SIZE; i++) snprintf(hex + 2 * (ptrdiff_t)i, 3, "%02x", digest[i]);
  snprintf(p->entry, sizeof p->entry, "%s/%.40s.so", p->folder, hex);
  snprintf(p->source, sizeof p->source, "%s/%.40s.%ld.%p.c", p->folder, hex, (long)getpid(), (void *)p);
  snprintf(p->object, sizeof p->object, "%s/%.40s.%ld.%p.so", p->folder, hex, (long)getpid(), (void *)p);
}

static bool write_all(int file, const void *bytes, size_t nbytes) {
  for (const char *at = bytes; nbytes;) {
    ssize_t n = write(file, at, nbytes);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    at += n;
    nbytes -= (size_t)n;
  }
  return true;
}

static bool write_source(const Paths *p, const Text *source) {
  int file = open(p->source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  bool ok = write_all(file, text_string(source), source->nbytes);
  return close(file) == 0 && ok;
}

// The digest of the first `nbytes` of a file.
static bool digest_file(int file, off_t nbytes, uint8_t *digest) {
  struct sha256_ctx hash;
  char buffer[1 << 14];
  sha256_init(&hash);
  if (lseek(file, 0, SEEK_SET) != 0) return false;
  while (nbytes > 0) {
    ssize_t n = read(file, buffer, nbytes < (off_t)sizeof buffer ? (size_t)nbytes : sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return false;
    sha256_update(&hash, (size_t)n, (const uint8_t *)buffer);
    nbytes -= n;
  }
  sha256_digest(&hash, SHA256_DIGEST_SIZE, digest);
  return true;
}

// Adds the digest behind the object, where loaders do not look, and gives it its name.
static bool seal(const Paths *p) {
  int file = open(p->object, O_RDWR | O_CLOEXEC);
  struct stat status;
  uint8_t digest[SHA256_DIGEST_SIZE];
  if (file < 0) return false;
  bool ok =
      fstat(file, &status) == 0 && digest_file(file, status.st_size, digest) && write_all(file, digest, sizeof digest);
  ok = close(file) == 0 && ok;
  return ok && rename(p->object, p->entry) == 0;
}

static bool is_sound(const Paths *p) {
  int file = open(p->entry, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  struct stat status;
  uint8_t digest[SHA256_DIGEST_SIZE], sealed[SHA256_DIGEST_SIZE];
  if (file < 0) return false;
  bool ok = fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid() &&
            status.st_size > SHA256_DIGEST_SIZE && status.st_size < LARGEST_OBJECT &&
            digest_file(file, status.st_size - SHA256_DIGEST_SIZE, digest) &&
            read(file, sealed, sizeof sealed) == (ssize_t)sizeof sealed && memcmp(digest, sealed, sizeof digest) == 0;
  close(file);
  return ok;
}

// Everything that the compiler says, as far as it fits.
static void read_complaint(int from, Text *complaint) {
  char buffer[1024];
  for (;;) {
    ssize_t n = read(from, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    if (complaint->nbytes < LONGEST_COMPLAINT) text_add(complaint, buffer, (size_t)n);
  }
}

// True when it says that all went well.
static bool run_compiler(const Paths *p, Text *complaint) {
  const char *arguments[NFLAGS + 8] = {p->compiler};
  int count = 1, out[2], result, status = 0;
  for (int i = 0; i < NFLAGS; i++) arguments[count++] = flags[i];
  const char *rest[] = {"-o", p->object, p->source, "-lm"};
  for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) arguments[count++] = rest[i];
  if (pipe2(out, O_CLOEXEC) != 0) {
    text_add_string(complaint, strerror(errno));
    return false;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
  pid_t child;
  result = posix_spawn(&child, p->compiler, &actions, NULL, (char *const *)arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  if (result == 0) {
    read_complaint(out[0], complaint);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  close(out[0]);
  if (result != 0) text_add_string(complaint, strerror(result));
  else if (WIFSIGNALED(status)) text_format(complaint, "ended by signal %d", WTERMSIG(status));
  else if (status && !complaint->nbytes) text_format(complaint, "exit status %d", WEXITSTATUS(status));
  return result == 0 && status == 0;
}

static bool compile(const Paths *p, const Text *source, bool *compiler_failed, Diagnostics *d) {
  if (!write_source(p, source)) {
    error_at(d, (Position){0}, "%s: cannot write: %s", p->source, strerror(errno));
    unlink(p->source);
    return false;
  }
  Text complaint;
  text_init(&complaint, d->arena.allocator);
  bool ok = run_compiler(p, &complaint);
  unlink(p->source);
  *compiler_failed = !ok || access(p->object, F_OK) != 0;
  if (!ok) {
    error_with_output(d, text_string(&complaint), "%s failed:", p->compiler);
  } else if (*compiler_failed) {
    ok = error_at(d, (Position){0}, "%s made nothing", p->compiler);
  } else if (!seal(p)) {
    ok = error_at(d, (Position){0}, "%s: cannot write: %s", p->entry, strerror(errno));
  }
  unlink(p->object);
  text_deinit(&complaint);
  return ok;
}

// An entry that does not load is of no use: it goes, and one that was in the cache is made again.
static void *load_entry(const Paths *p, const Text *source, ToolchainTimes *times, bool *compiler_failed,
                        Diagnostics *d) {
  double start = milliseconds_now();
  void *handle = is_sound(p) ? dlopen(p->entry, RTLD_NOW | RTLD_LOCAL) : NULL;
  times->was_cached = handle != NULL;
  if (!handle) {
    bool is_made = compile(p, source, compiler_failed, d);
    times->compile_ms = milliseconds_now() - start;
    if (is_made && !(handle = dlopen(p->entry, RTLD_NOW | RTLD_LOCAL))) {
      *compiler_failed = true;
      error_at(d, (Position){0}, "cannot load what %s made: %s", p->compiler, dlerror());
      unlink(p->entry);
    }
  }
  times->load_ms = milliseconds_now() - start - times->compile_ms;
  return handle;
}

void *toolchain_load(const Text *source, ToolchainTimes *times, bool *compiler_failed, Diagnostics *d) {
  Paths *p = allocator_alloc(d->arena.allocator, sizeof *p);
  *times = (ToolchainTimes){0};
  *compiler_failed = false;
  if (!p) {
    error_out_of_memory(d);
    return NULL;
  }
  *p = (Paths){0};
  void *handle = NULL;
  if (!find_compiler(p->compiler, d)) *compiler_failed = true;
  else if (choose_folder(p, d)) {
    name_entry(p, source);
    handle = load_entry(p, source, times, compiler_failed, d);
    if (p->is_temporary) {
      unlink(p->entry);
      rmdir(p->folder);
    }
  }
  allocator_free(d->arena.allocator, p);
  return handle;
}
