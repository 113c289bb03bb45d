// The loop: makes a graph, checks it, reduces and reports findings.
#include "tests/fuzz/program/program.h"

#include "tests/effort.h"
#include "tests/random_graph.h"

#include <assert.h>
#include <errno.h>
#include <ftw.h>
#include <glob.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: ngrad_fuzz_program [OPTION...] [FILE...]\n\n"
    "Makes graphs and takes each through everything; what is found is reduced and written to a folder.\n"
    "Of files, checks these instead.\n\n"
    "  --seconds N     stop after so long (default 60)\n"
    "  --count N       stop after so many graphs\n"
    "  --seed N        the first graph's (default: from the time)\n"
    "  --out DIR       where findings go (default build-fuzz/findings)\n"
    "  --jobs N        so many processes (default 1)\n"
    "  --reduce FILE   check the file, and write it reduced\n"
    "  --mutate GLOB   files to mutate; repeatable\n"
    "  --compile N     compiled code for every N-th graph (default 8; 0: never)\n"
    "  --emit N        emitted C under sanitizers for every N-th graph (default 160; 0: never)\n"
    "  --extreme N     extents, strides, kernels up to 2^40 in every N-th graph, which may take 10 s of CPU and 2 GB\n"
    "                  (default 8; 0: never)\n"
    "  --qemu          emitted C on aarch64 too\n"
    "  --no-targets    let caches and registers of the machine change bits\n"
    "  --no-gradcheck  leave out gradcheck\n"
    "  --quick         compile files without optimisation, but those that say \"# optimised\"; not with NGRAD_CHECK\n"
    "  --print         print the graphs, and check nothing\n"
    "  --no-reduce     leave findings as they are\n";

enum { CHILD_SECONDS = 240, MOST_KINDS = 1000 };
#define CHILD_NBYTES ((uint64_t)4 << 30)

typedef struct Session {
  FuzzOptions options;
  Report *report; // shared with children
  uint64_t count, compile_every, emit_every, extreme_every;
  time_t end;
  const char *out, *reduce;
  bool no_reduce, is_print, is_quick;
  glob_t files;            // to mutate
  uint64_t job, njobs;     // this process takes seed job, job + njobs and so on
  char *known[MOST_KINDS]; // kinds of findings, with their operators
  size_t nknown, nfindings, ngraphs, nrefused, ncompared, nunstable, nways, ncompiled, ngradients;
} Session;

// Reports

void report_finding(Report *r, const char *kind, const char *format, ...) {
  if (r->kind[0]) return;
  va_list args;
  va_start(args, format);
  vsnprintf(r->detail, sizeof r->detail, format, args);
  va_end(args);
  snprintf(r->kind, sizeof r->kind, "%s", kind);
}

void report_stage(Report *r, const char *stage) {
  snprintf(r->stage, sizeof r->stage, "%s", stage);
}

static struct rlimit at_most(rlim_t n) {
  return (struct rlimit){n, RLIM_INFINITY};
}

void limit_process(uint64_t seconds, uint64_t nbytes) {
  const struct rlimit of_cpu = at_most(seconds), of_memory = at_most(nbytes);
  setrlimit(RLIMIT_CPU, &of_cpu);
#ifdef __SANITIZE_ADDRESS__
  (void)of_memory;
#else
  setrlimit(RLIMIT_AS, &of_memory);
#endif
}

static void child(void (*job)(const FuzzOptions *options, Report *r), const FuzzOptions *options, Report *r) {
  const struct rlimit no_core = at_most(0);
  setpgid(0, 0);
  if (options->is_extreme) limit_process(EXTREME_SECONDS, EXTREME_NBYTES);
  else limit_process(CPU_SECONDS, CHILD_NBYTES);
  setrlimit(RLIMIT_CORE, &no_core);
  alarm(CHILD_SECONDS);
  char log[4096];
  snprintf(log, sizeof log, "%s/stderr", options->folder);
  if (!freopen(log, "w", stderr)) _exit(100);
  setvbuf(stderr, NULL, _IONBF, 0); // an abort writes nothing out
  job(options, r);
  fflush(stderr);
  _exit(0);
}

// The output of a child that crashed or was killed.
static void read_last_words(const FuzzOptions *options, Report *r) {
  char path[4096];
  snprintf(path, sizeof path, "%s/stderr", options->folder);
  FILE *f = fopen(path, "r");
  size_t n = f ? fread(r->detail, 1, sizeof r->detail - 1, f) : 0;
  r->detail[n] = 0;
  if (f) fclose(f);
}

void run_apart(void (*job)(const FuzzOptions *options, Report *r), const FuzzOptions *options, Report *r) {
  int status = 0;
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) abort();
  if (pid == 0) child(job, options, r);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  kill(-pid, SIGKILL); // compilers that it left
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
  r->is_refused = false;
  int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  if (signal == SIGALRM || signal == SIGXCPU) snprintf(r->kind, sizeof r->kind, "hang in %s", r->stage);
  else if (signal) snprintf(r->kind, sizeof r->kind, "signal %d in %s", signal, r->stage);
  else snprintf(r->kind, sizeof r->kind, "exit %d in %s", WEXITSTATUS(status), r->stage);
  read_last_words(options, r);
}

// Temporary files

static int remove_entry(const char *path, const struct stat *status, int flag, struct FTW *walk) {
  (void)status, (void)flag;
  return walk->level ? remove(path) : 0;
}

static void empty_folder(const char *path) {
  nftw(path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void empty_cache(const Session *s) {
  char path[4096];
  snprintf(path, sizeof path, "%s/ngrad", s->options.folder);
  empty_folder(path);
}

// Findings

// The kind and the graph's operators: equal for most findings with the same cause.
static char *name_finding(const Report *r) {
  bool is_used[OP_COUNT] = {false};
  Text text;
  text_init(&text, &system_allocator);
  text_format(&text, "%s:", r->kind);
  for (const char *at = r->text; (at = strstr(at, "op: ")) != NULL; at += 4) {
    char name[64] = "";
    sscanf(at + 4, "%63[A-Za-z0-9_.]", name);
    const Operator *op = operator_find(name).op;
    if (op && !is_used[op->id]) text_format(&text, " %s", op->name);
    if (op) is_used[op->id] = true;
  }
  char *name = strdup(text_string(&text));
  text_deinit(&text);
  return name;
}

static bool is_known(Session *s, char *name) {
  for (size_t i = 0; i < s->nknown; i++)
    if (strcmp(s->known[i], name) == 0) return true;
  if (s->nknown < MOST_KINDS) s->known[s->nknown++] = name;
  return false;
}

static void write_finding(const Session *s, const Report *r, const char *name) {
  char path[4096], kind[96];
  snprintf(kind, sizeof kind, "%s", r->kind);
  for (char *c = kind; *c; c++)
    if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789", *c)) *c = '-';
  mkdir(s->out, 0777);
  snprintf(path, sizeof path, "%s/%s-%llu.yaml", s->out, kind, (unsigned long long)s->options.seed);
  FILE *f = fopen(path, "w");
  if (!f) {
    perror(path);
    return;
  }
  char detail[sizeof r->detail];
  snprintf(detail, sizeof detail, "%s", r->detail);
  for (char *c = detail; *c; c++)
    if (*c == '\n' && c[1]) *c = ' ';
  fprintf(f, "# %s\n# %s\n# data: %llu\n%s", name, detail, (unsigned long long)s->options.data, r->text);
  fclose(f);
  printf("FINDING %s\n  %s\n  %s\n%s  repeat: ./dev fuzz program %s\n", path, name, detail, r->text, path);
  fflush(stdout);
}

static void tell_finding(Session *s) {
  Report *const r = s->report;
  assert(r);
  printf("seed %llu: %s: %.300s\n", (unsigned long long)s->options.seed, r->kind, r->detail);
  fflush(stdout);
  s->nfindings++;
  if (!s->no_reduce && r->nbytes) reduce_program(&s->options, r);
  char *name = name_finding(r);
  if (is_known(s, name)) free(name);
  else write_finding(s, r, name);
}

static void check_one(Session *s) {
  Report *const r = s->report;
  assert(r);
  run_apart(check_program, &s->options, r);
  s->ngraphs++;
  s->nrefused += r->is_refused;
  s->ncompared += r->ncompared;
  s->nunstable += r->nunstable;
  s->nways += r->nways;
  s->ncompiled += r->ncompiled;
  s->ngradients += r->ngradients;
  if (r->kind[0]) tell_finding(s);
  empty_cache(s);
}

static void make_job(const FuzzOptions *options, Report *r) {
  if (!make_program(options, r)) r->is_refused = true;
}

static void tell_counts(const Session *s) {
  printf("%zu graphs, %zu refused, %zu gradients, %zu programs compiled, %zu run; %zu elements compared, %zu left out "
         "as unstable; %zu findings, %zu of them different\n",
         s->ngraphs, s->nrefused, s->ngradients, s->ncompiled, s->nways, s->ncompared, s->nunstable, s->nfindings,
         s->nknown);
}

// Chooses one seed in `every`, whatever the distance between seeds.
static bool is_chosen(uint64_t seed, uint64_t every) {
  return every && random_next(&seed) % every == 0;
}

static void fuzz(Session *s) {
  Report *const r = s->report;
  assert(r);
  enum { OFTEN = 100 };
  uint64_t first = s->options.seed;
  for (uint64_t i = s->job; (!s->count || i < s->count) && time(NULL) < s->end; i += s->njobs) {
    s->options.seed = s->options.data = first + i;
    if (s->ngraphs && s->ngraphs % OFTEN == 0) tell_counts(s);
    s->options.is_extreme = is_chosen(~s->options.seed, s->extreme_every);
    s->options.is_compiled = !s->options.is_extreme && is_chosen(s->options.seed, s->compile_every);
    s->options.is_emitted = !s->options.is_extreme && is_chosen(s->options.seed, s->emit_every);
    memset(r, 0, offsetof(Report, text) + 1);
    run_apart(make_job, &s->options, r);
    if (s->is_print) printf("%s", r->text);
    else if (r->kind[0]) tell_finding(s);
    else if (!r->is_refused) check_one(s);
  }
}

// A file with the number that its comment says its data is made from. Without a comment "# optimised", which tells that
// the bug was in optimised code alone, --quick takes no way but -O0.
static bool read_program(Session *s, const char *path) {
  Report *const r = s->report;
  assert(r);
  FILE *f = fopen(path, "r");
  memset(r, 0, offsetof(Report, text) + 1);
  if (!f) {
    perror(path);
    return false;
  }
  r->nbytes = fread(r->text, 1, REPORT_TEXT - 1, f);
  r->text[r->nbytes] = 0;
  fclose(f);
  const char *data = strstr(r->text, "# data: ");
  s->options.seed = s->options.data = data ? strtoull(data + 8, NULL, 10) : 0;
  s->options.is_compiled = s->compile_every > 0;
  s->options.is_quick = s->is_quick && !takes_all() && !strstr(r->text, "# optimised");
  s->options.is_emitted = s->emit_every > 0;
  return true;
}

static bool check_file(Session *s, const char *path) {
  Report *const r = s->report;
  assert(r);
  if (!read_program(s, path)) return false;
  check_one(s);
  if (r->is_refused) printf("%s: is refused\n", path);
  return !r->kind[0] && !r->is_refused;
}

// Options

static void add_files(Session *s, const char *pattern) {
  glob(pattern, s->files.gl_pathc ? GLOB_APPEND : 0, NULL, &s->files);
  s->options.files = (const char *const *)s->files.gl_pathv;
  s->options.nfiles = s->files.gl_pathc;
}

static int fail_usage(void) {
  fputs(usage, stderr);
  exit(2);
}

static int take_options(Session *s, int argc, char **argv) {
  int i = 1;
  double seconds = 60;
  for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
    const char *option = argv[i];
    if (strcmp(option, "--qemu") == 0) s->options.has_qemu = true;
    else if (strcmp(option, "--no-targets") == 0) s->options.no_targets = true;
    else if (strcmp(option, "--no-gradcheck") == 0) s->options.no_gradcheck = true;
    else if (strcmp(option, "--no-reduce") == 0) s->no_reduce = true;
    else if (strcmp(option, "--quick") == 0) s->is_quick = true;
    else if (strcmp(option, "--print") == 0) s->is_print = true;
    else if (i + 1 == argc) fail_usage();
    else if (strcmp(option, "--seconds") == 0) seconds = strtod(argv[++i], NULL);
    else if (strcmp(option, "--count") == 0) s->count = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--seed") == 0) s->options.seed = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--jobs") == 0) s->njobs = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--compile") == 0) s->compile_every = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--emit") == 0) s->emit_every = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--extreme") == 0) s->extreme_every = strtoull(argv[++i], NULL, 10);
    else if (strcmp(option, "--out") == 0) s->out = argv[++i];
    else if (strcmp(option, "--reduce") == 0) s->reduce = argv[++i];
    else if (strcmp(option, "--mutate") == 0) add_files(s, argv[++i]);
    else fail_usage();
  }
  s->end = time(NULL) + (time_t)seconds;
  return i;
}

static int work(Session *s, int argc, char **argv, int first) {
  bool ok = true;
  if (s->reduce) {
    ok = check_file(s, s->reduce);
  } else if (first < argc) {
    s->no_reduce = true;
    for (int i = first; i < argc; i++) ok = check_file(s, argv[i]) && ok;
  } else {
    fuzz(s);
    ok = s->nfindings == 0;
  }
  tell_counts(s);
  return ok ? 0 : 1;
}

// Runs with its own folder for temporary files, and its own report, which it shares with its children.
static int work_apart(Session *s, int argc, char **argv, int first) {
  char folder[] = "/tmp/ngrad-fuzz-XXXXXX";
  s->report = mmap(NULL, sizeof *s->report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (s->report == MAP_FAILED || !mkdtemp(folder)) {
    perror("fuzz");
    return 1;
  }
  s->options.folder = folder;
  setenv("XDG_CACHE_HOME", folder, 1);
  int status = work(s, argc, argv, first);
  empty_folder(folder);
  rmdir(folder);
  s->options.folder = NULL;
  return status;
}

int main(int argc, char **argv) {
  static Session s = {
      .njobs = 1, .compile_every = 8, .emit_every = 160, .extreme_every = 8, .out = "build-fuzz/findings"};
  s.options.seed = (uint64_t)time(NULL) * 1000;
  int first = take_options(&s, argc, argv);
  if (!s.options.nfiles) {
    add_files(&s, "models/*.yaml");
    add_files(&s, "tests/golden/*/*.yaml");
    add_files(&s, "tests/gradient/*.yaml");
    add_files(&s, "tests/fuzz/corpus/*.yaml");
  }
  if (s.reduce || first < argc) return work_apart(&s, argc, argv, first);
  printf("seed %llu\n", (unsigned long long)s.options.seed);
  fflush(stdout);
  int status = 0, failures = 0;
  for (s.job = 0; s.job < s.njobs; s.job++) {
    pid_t pid = fork();
    if (pid == 0) {
      status = work_apart(&s, argc, argv, first);
      fflush(stdout);
      _exit(status);
    }
  }
  while (wait(&status) > 0) failures += status != 0;
  globfree(&s.files);
  return failures ? 1 : 0;
}
