// Runs the compiler, and loads the shared object.
#include "backends/codegen/toolchain/toolchain.h"

#include "backends/codegen/toolchain/compilers.h"
#include "backends/codegen/toolchain/kernel_cache.h"
#include "backends/codegen/toolchain/work_folder.h"
#include "ir/support/threads.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { FILE_PATH_BYTES = PATH_MAX + 16 };

// The last flag is only for long sources: looking for vectors among statements takes half of the compile time there,
// and gains little in code that uses vectors already.
static const char *const flags[] = {"-std=c11",
                                    "-O2",
                                    "-ffp-contract=off",
                                    "-fno-math-errno",
                                    "-fPIC",
                                    "-fvisibility=default",
                                    "-w",
                                    "-fno-tree-slp-vectorize"};
enum { NFLAGS = sizeof flags / sizeof *flags, LONG_SOURCE = 1 << 20 };

// Lengths in bytes. Shorter parts spend more time on starting the compiler and on the text that all parts have.
enum { LONG_ENOUGH_FOR_PARTS = 1 << 16, SHORTEST_PART = 1 << 15, MOST_PARTS = 32 };

typedef struct Job {
  const Text *source;
  size_t nparts;                    // which the compiler gets one by one
  const char *cuts[MOST_PARTS + 2]; // part i lies between cuts i and i + 1; the text around all parts belongs to each
  const char *symbol;               // the object must define it
  const CompilerChoice *compiler;
  CompilerCommand command;
  double timeout_s; // 0: no limit
  KernelCache cache;
  WorkFolder work;
  const char *sources[MOST_PARTS + 1], *objects[MOST_PARTS + 1]; // of the parts: files in work
  char object_path[FILE_PATH_BYTES], link_path[FILE_PATH_BYTES]; // in work
  char temporary[PATH_MAX + 8];                                  // TMPDIR=…
  Arena arena;                                                   // for names of files
  char problem[CACHE_PROBLEM_BYTES];
} Job;

typedef enum Outcome {
  OUTCOME_LOADED,
  OUTCOME_BAD_FOLDER, // the folder cannot be used, and job->problem says why; another folder may be better
  OUTCOME_FAILED,     // an error has been reported
} Outcome;

static const char not_executable[] = "its file system is mounted noexec, so code in it cannot run";

static Outcome bad_folder(Job *j, const char *problem) {
  snprintf(j->problem, sizeof j->problem, "%s", problem);
  return OUTCOME_BAD_FOLDER;
}

static int count_flags(const Job *j) {
  return j->source->nbytes < LONG_SOURCE ? NFLAGS - 1 : NFLAGS;
}

// The cache's key: a hash of source, flags and compiler.
static void compute_key(const Job *j, uint8_t key[SHA256_DIGEST_SIZE]) {
  struct sha256_ctx hash;
  sha256_init(&hash);
  sha256_update(&hash, j->source->nbytes, (const uint8_t *)text_string(j->source));
  for (int i = 0; i < count_flags(j); i++) sha256_update(&hash, strlen(flags[i]) + 1, (const uint8_t *)flags[i]);
  compiler_command_hash(&j->command, &hash);
  sha256_digest(&hash, SHA256_DIGEST_SIZE, key);
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

// Whether the file's code may be executed. It may not if the file system is mounted noexec.
static bool is_executable(int file) {
  void *page = mmap(NULL, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
  if (page == MAP_FAILED) return false;
  munmap(page, 1);
  return true;
}

static bool write_part(const Job *j, size_t part, bool *may_execute) {
  const char *text = text_string(j->source), *end = j->cuts[j->nparts];
  int file = open(j->sources[part], O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return false;
  bool ok = write_all(file, text, (size_t)(j->cuts[0] - text)) &&
            write_all(file, j->cuts[part], (size_t)(j->cuts[part + 1] - j->cuts[part])) &&
            write_all(file, end, (size_t)(text + j->source->nbytes - end));
  int error = errno;
  *may_execute = ok && is_executable(file);
  if (!ok) errno = error;
  return close(file) == 0 && ok;
}

static bool write_source(const Job *j, bool *may_execute) {
  bool ok = true;
  for (size_t i = 0; ok && i < j->nparts; i++) ok = write_part(j, i, may_execute);
  return ok;
}

// The environment with TMPDIR set to the work folder, so that files that a compiler leaves are removed with the folder.
// NULL: out of memory.
static char **make_environment(Job *j, const Allocator *allocator) {
  size_t count = 0, n = 0;
  while (environ[count]) count++;
  char **made = allocator_alloc(allocator, (count + 2) * sizeof *made);
  if (!made) return NULL;
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "TMPDIR=", 7) != 0) made[n++] = environ[i];
  snprintf(j->temporary, sizeof j->temporary, "TMPDIR=%s", j->work.path);
  made[n++] = j->temporary;
  made[n] = NULL;
  return made;
}

// Starts a process that makes `output` of the files. `kind`: -c or -shared.
static bool start(const Job *j, Compilers *team, const char *kind, const char *output, const char *const *files,
                  size_t nfiles) {
  const char *arguments[MOST_COMMAND_WORDS + NFLAGS + MOST_PARTS + 6];
  size_t count = 0;
  for (size_t i = 0; i < j->command.nwords; i++) arguments[count++] = i ? j->command.words[i] : j->command.program;
  for (int i = 0; i < count_flags(j); i++) arguments[count++] = flags[i];
  arguments[count++] = kind;
  arguments[count++] = "-o";
  arguments[count++] = output;
  for (size_t i = 0; i < nfiles; i++) arguments[count++] = files[i];
  if (strcmp(kind, "-shared") == 0) arguments[count++] = "-lm";
  arguments[count] = NULL;
  return compilers_start(team, arguments);
}

static bool compile_parts(const Job *j, Compilers *team) {
  const size_t most = (size_t)threads_processors();
  for (size_t i = 0; i < j->nparts; i++)
    if (!compilers_wait(team, most - 1) || !start(j, team, "-c", j->objects[i], &j->sources[i], 1)) return false;
  return compilers_wait(team, 0);
}

// Runs the compiler. False: it failed, and `complaint` holds its output and the reason.
static bool run_compiler(Job *j, Text *complaint) {
  Compilers team = {
      .program = j->command.program, .compiler = j->compiler, .timeout_s = j->timeout_s, .complaint = complaint};
  team.environment = make_environment(j, complaint->allocator);
  complaint->out_of_memory |= !team.environment;
  const bool is_whole = j->nparts == 1;
  const bool ok = team.environment && (is_whole || compile_parts(j, &team)) &&
                  start(j, &team, "-shared", j->object_path, is_whole ? j->sources : j->objects, j->nparts) &&
                  compilers_wait(&team, 0);
  allocator_free(complaint->allocator, team.environment);
  return ok;
}

// Compiles in the work folder. If the file system is full, a failure counts as the folder's, not the compiler's.
static Outcome compile(Job *j, Diagnostics *d) {
  Text complaint;
  text_init(&complaint, d->arena.allocator);
  bool ok = run_compiler(j, &complaint), is_made = ok && access(j->object_path, F_OK) == 0;
  Outcome outcome = is_made ? OUTCOME_LOADED : OUTCOME_FAILED;
  if (!is_made && work_folder_is_full(&j->work)) outcome = bad_folder(j, strerror(ENOSPC));
  else if (!ok && complaint.out_of_memory) error_out_of_memory(d);
  else if (!ok) error_with_output(d, text_string(&complaint), "%s failed:", j->command.program);
  else if (!is_made)
    error_at(d, (Position){0}, "%s reported success but wrote no shared object; set %s to a C compiler",
             j->command.program, j->compiler->variable);
  text_deinit(&complaint);
  return outcome;
}

// False: loaded->library is NULL, and `problem` says why.
static bool load(Job *j, const char *path, Loaded *loaded) {
  loaded->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  loaded->symbol = loaded->library ? dlsym(loaded->library, j->symbol) : NULL;
  if (loaded->symbol) return true;
  const char *why = loaded->library ? "it has no entry point" : dlerror();
  snprintf(j->problem, sizeof j->problem, "%s", why ? why : "unknown error");
  if (loaded->library) dlclose(loaded->library);
  *loaded = (Loaded){0};
  return false;
}

// Loads the object through a memory file (memfd), for systems on which no file system allows execution. A link in the
// work folder gives it a unique path, because the loader takes objects with the same path for the same object.
static bool load_from_memory(Job *j, Loaded *loaded) {
  enum { BUFFER_BYTES = 1 << 12 };
  char buffer[BUFFER_BYTES], target[64];
  ssize_t n = -1;
  int object = open(j->object_path, O_RDONLY | O_CLOEXEC), memory = memfd_create("ngrad", MFD_CLOEXEC);
  while (object >= 0 && memory >= 0 && (n = read(object, buffer, sizeof buffer)) > 0)
    if (!write_all(memory, buffer, (size_t)n)) break;
  snprintf(target, sizeof target, "/proc/self/fd/%d", memory);
  bool is_copied = n == 0 && symlink(target, j->link_path) == 0;
  if (!is_copied) snprintf(j->problem, sizeof j->problem, "%s", strerror(errno));
  bool ok = is_copied && load(j, j->link_path, loaded);
  if (object >= 0) close(object);
  if (memory >= 0) close(memory);
  return ok;
}

// Cuts a long source at some of its form feeds. The parts depend on the source alone.
static void find_parts(Job *j) {
  const char *text = text_string(j->source), *first = strchr(text, '\f'), *last = strrchr(text, '\f');
  j->nparts = 1;
  j->cuts[0] = text;
  j->cuts[1] = text + j->source->nbytes;
  if (j->source->nbytes < LONG_ENOUGH_FOR_PARTS || first == last) return;
  ptrdiff_t shortest = (last - first) / MOST_PARTS;
  if (shortest < SHORTEST_PART) shortest = SHORTEST_PART;
  if (shortest < (first - text) / 2) shortest = (first - text) / 2;
  j->nparts = 0;
  j->cuts[0] = first;
  for (const char *at = first; at < last;) {
    at = strchr(at + 1, '\f');
    if (at == last || at - j->cuts[j->nparts] >= shortest) j->cuts[++j->nparts] = at;
  }
}

// False: out of memory.
static bool name_files(Job *j) {
  bool ok = true;
  for (size_t i = 0; ok && i < j->nparts; i++) {
    j->sources[i] = arena_format(&j->arena, "%s/kernel%zu.c", j->work.path, i);
    j->objects[i] = arena_format(&j->arena, "%s/kernel%zu.o", j->work.path, i);
    ok = j->sources[i] && j->objects[i];
  }
  snprintf(j->object_path, FILE_PATH_BYTES, "%s/kernel.so", j->work.path);
  snprintf(j->link_path, FILE_PATH_BYTES, "%s/memory.so", j->work.path);
  return ok;
}

// Compiles and loads in the open work folder.
static Outcome build(Job *j, bool in_memory, Loaded *loaded, ToolchainTimes *times, Diagnostics *d) {
  double start = milliseconds_now();
  bool may_execute = false;
  if (!name_files(j)) {
    error_out_of_memory(d);
    return OUTCOME_FAILED;
  }
  if (!write_source(j, &may_execute)) return bad_folder(j, strerror(errno));
  if (!may_execute && !in_memory) return bad_folder(j, not_executable);
  Outcome outcome = compile(j, d);
  times->compile_ms = milliseconds_now() - start;
  if (outcome != OUTCOME_LOADED) return outcome;
  if (may_execute ? load(j, j->object_path, loaded) : load_from_memory(j, loaded)) return OUTCOME_LOADED;
  error_at(d, (Position){0}, "cannot load the shared object that %s made: %s", j->command.program, j->problem);
  return OUTCOME_FAILED;
}

// Warns that the cache is not used, unless that was this process's last warning.
static void warn_once(const Job *j, Diagnostics *d) {
  static _Atomic uint64_t last;
  char message[PATH_MAX + 2 * CACHE_PROBLEM_BYTES];
  uint64_t hash = 1;
  snprintf(message, sizeof message, "compiled kernels cannot be cached in %s: %s", j->cache.folder, j->problem);
  for (const char *c = message; *c; c++) hash = (hash ^ (unsigned char)*c) * 0x100000001B3U;
  if (atomic_exchange(&last, hash) != hash) warn_at(d, (Position){0}, "%s", message);
}

static Outcome build_in_cache(Job *j, Loaded *loaded, ToolchainTimes *times, Diagnostics *d) {
  if (!work_folder_open(&j->work, j->cache.folder)) return bad_folder(j, strerror(errno));
  Outcome outcome = build(j, false, loaded, times, d);
  if (outcome == OUTCOME_LOADED && !cache_store(&j->cache, j->object_path)) {
    bad_folder(j, strerror(errno)); // only a warning: the kernel is already loaded
    warn_once(j, d);
  }
  work_folder_close(&j->work);
  return outcome;
}

// Compiles and loads in the first temporary folder that can be used. If none allows execution, a second round loads the
// object from memory.
static Outcome build_elsewhere(Job *j, Loaded *loaded, ToolchainTimes *times, Diagnostics *d) {
  const char *const folders[] = {getenv("TMPDIR"), "/tmp", getenv("XDG_RUNTIME_DIR"), "/dev/shm", "/var/tmp"};
  enum { COUNT = sizeof folders / sizeof *folders };
  Outcome outcome = OUTCOME_BAD_FOLDER;
  const char *last = "";
  for (int i = 0; i < 2 * COUNT && outcome == OUTCOME_BAD_FOLDER; i++) {
    const char *folder = folders[i % COUNT];
    if (!folder || !*folder) continue;
    last = folder;
    if (!work_folder_open(&j->work, folder)) {
      bad_folder(j, strerror(errno));
      continue;
    }
    outcome = build(j, i >= COUNT, loaded, times, d);
    work_folder_close(&j->work);
  }
  if (outcome == OUTCOME_BAD_FOLDER) {
    error_at(d, (Position){0}, "cannot compile in %s: %s; set TMPDIR to a folder with free space", last, j->problem);
  }
  return outcome;
}

// Loads the job's entry if the cache has one. False: the cache cannot be used, and j->problem says why.
static bool search_cache(Job *j, Loaded *loaded) {
  uint8_t key[SHA256_DIGEST_SIZE];
  compute_key(j, key);
  if (!cache_open(&j->cache, key, j->problem)) return false;
  int file = cache_find(&j->cache);
  if (file < 0) return true;
  bool may_execute = is_executable(file);
  close(file);
  if (!may_execute) bad_folder(j, not_executable);
  else if (!load(j, j->cache.entry, loaded)) cache_drop(&j->cache);
  return may_execute;
}

static Outcome find_or_build(Job *j, Loaded *loaded, ToolchainTimes *times, Diagnostics *d) {
  Outcome outcome = OUTCOME_BAD_FOLDER;
  if (search_cache(j, loaded)) {
    times->was_cached = loaded->library != NULL;
    outcome = loaded->library ? OUTCOME_LOADED : build_in_cache(j, loaded, times, d);
  }
  if (outcome == OUTCOME_BAD_FOLDER) {
    warn_once(j, d);
    outcome = build_elsewhere(j, loaded, times, d);
  }
  return outcome;
}

bool toolchain_load(const Text *source, const char *symbol, const CompilerChoice *compiler, double timeout_s,
                    Loaded *loaded, ToolchainTimes *times, bool *compiler_failed, Diagnostics *d) {
  Job *j = allocator_alloc(d->arena.allocator, sizeof *j);
  double start = milliseconds_now();
  *times = (ToolchainTimes){0};
  *loaded = (Loaded){0};
  *compiler_failed = false;
  if (!j) return error_out_of_memory(d);
  *j = (Job){.source = source, .symbol = symbol, .compiler = compiler, .timeout_s = timeout_s};
  arena_init(&j->arena, d->arena.allocator);
  find_parts(j);
  if (!compiler_command_find(&j->command, compiler, d)) *compiler_failed = true;
  else *compiler_failed = find_or_build(j, loaded, times, d) == OUTCOME_FAILED;
  times->load_ms = milliseconds_now() - start - times->compile_ms;
  arena_deinit(&j->arena);
  allocator_free(d->arena.allocator, j);
  return loaded->library != NULL;
}
