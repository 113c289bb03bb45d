// Emitted C with its self-test, under sanitizers and on other machines.
//
// The self-test's data is its own, and its tolerances are for graphs that are not as ill-conditioned as ours may be.
// So differences from the f64 results that it prints are no findings.
#include "tests/fuzz/program/trial.h"

#include "frontend/api/ngrad.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char *const tolerated[] = {"an output is as computed in f64"};

// The program's output without tolerated messages and tables; "": nothing remains.
static void read_complaint(const char *path, char *complaint, size_t nbytes) {
  char line[512];
  FILE *f = fopen(path, "r");
  size_t used = 0;
  complaint[0] = 0;
  while (f && fgets(line, sizeof line, f)) {
    bool is_known = strncmp(line, "isa ", 4) == 0 || strncmp(line, "extents ", 8) == 0 ||
                    strcmp(line, "passed\n") == 0 || strcmp(line, "failed\n") == 0;
    for (size_t i = 0; i < sizeof tolerated / sizeof *tolerated; i++) is_known |= strstr(line, tolerated[i]) != NULL;
    if (is_known || used + strlen(line) >= nbytes) continue;
    used += (size_t)snprintf(complaint + used, nbytes - used, "%s", line);
  }
  if (f) fclose(f);
}

static bool run_command(const char *command, int *exit_status) {
  int status = system(command); // NOLINT(cert-env33-c): of names that are ours
  *exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return *exit_status == 0;
}

static void check_on(Trial *t, const char *stem, const char *compiler, const char *emulator, const char *kind) {
  char command[4096], log[512], complaint[400];
  const char *folder = t->options->folder;
  int status;
  snprintf(log, sizeof log, "%s/emitted/log", folder);
  snprintf(command, sizeof command, "cd '%s/emitted' && %s -o program %s.c %s_test.c -lm >log 2>&1", folder, compiler,
           stem, stem);
  report_stage(t->report, kind);
  bool is_compiled = run_command(command, &status);
  read_complaint(log, complaint, sizeof complaint);
  if (!is_compiled || complaint[0]) {
    report_finding(t->report, kind, "does not compile: %s", complaint);
    return;
  }
  snprintf(command, sizeof command, "cd '%s/emitted' && ulimit -S -v unlimited && %s ./program >log 2>&1 </dev/null",
           folder, emulator);
  bool is_passed = run_command(command, &status);
  read_complaint(log, complaint, sizeof complaint);
  if (complaint[0] || (!is_passed && status != 1))
    report_finding(t->report, kind, "exit status %d: %s", status, complaint);
}

void trial_check_emitted(Trial *t) {
  char command[2048], folder[512];
  int status;
  enum { SECONDS = 900 }; // that compilers may take in all, on a busy machine
  alarm(SECONDS);
  report_stage(t->report, "emit");
  snprintf(folder, sizeof folder, "%s/emitted", t->options->folder);
  snprintf(command, sizeof command, "rm -rf '%s' && mkdir '%s'", folder, folder);
  if (t->report->kind[0] || !run_command(command, &status)) return;
  ng_context *ctx = ng_context_new(NULL);
  ng_graph *g = ng_graph_read(ctx, "fuzz.yaml", t->report->text, t->report->nbytes, NULL);
  static const char *const threads[] = {"none", "openmp", "callback"};
  ng_options how = {.self_test = 1, .threads = threads[random_below(&t->choices, 3)]};
  how.isa = t->options->has_qemu ? NULL : "avx2";
  ng_status emitted = g ? ng_emit_files(g, &how, folder) : NG_WRONG;
  if (emitted != NG_OK && emitted != NG_WRONG) report_finding(t->report, "emit", "%s", ng_messages_text(ctx, 0));
  if (emitted == NG_OK) {
    check_on(t, ng_graph_identifier(g),
             "gcc -std=c11 -O0 -g -Wall -Wextra -Wno-unknown-pragmas -fsanitize=address,undefined,float-cast-overflow "
             "-fno-sanitize-recover=all",
             "", "emit-sanitized");
    if (t->options->has_qemu && !t->report->kind[0])
      check_on(t, ng_graph_identifier(g), "aarch64-linux-gnu-gcc -std=c11 -O1 -static -Wno-unknown-pragmas",
               "qemu-aarch64", "emit-aarch64");
  }
  ng_graph_free(g);
  ng_context_free(ctx);
}
