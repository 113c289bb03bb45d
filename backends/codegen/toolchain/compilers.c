// Starts compilers, reads their output, and waits for them until their time is over.
#include "backends/codegen/toolchain/compilers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST_COMPLAINT = 4000 };

double milliseconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

// Reads the output that the process has written so far, and appends it to its complaint up to a limit. Clears is_open
// at the end of the output.
static void read_complaint(RunningCompiler *r) {
  enum { MOST_READS = 256 }; // a compiler that prints without end must not prevent the time limit
  char buffer[1024];
  for (int i = 0; r->is_open && i < MOST_READS; i++) {
    ssize_t n = read(r->output, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno == EAGAIN) return;
    r->is_open = n > 0;
    if (n > 0 && r->complaint.nbytes < LONGEST_COMPLAINT) text_add(&r->complaint, buffer, (size_t)n);
  }
}

static bool has_ended(pid_t child) {
  siginfo_t info = {.si_pid = 0};
  int result = waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT);
  return info.si_pid != 0 || (result < 0 && errno != EINTR);
}

// Waits for a process that has ended or been killed. Does not wait for the end of its output, because processes that
// the compiler has started may keep the pipe open. Appends its output to `complaint` unless the process succeeded.
static int finish(Compilers *c, RunningCompiler *r, Text *complaint) {
  int status = 0;
  read_complaint(r);
  unfinished_end(&r->process);
  while (waitpid(r->process.group, &status, 0) < 0 && errno == EINTR) {
  }
  close(r->output);
  r->process.group = 0;
  c->count--;
  if (status && complaint) {
    text_add(complaint, text_string(&r->complaint), r->complaint.nbytes);
    complaint->out_of_memory |= r->complaint.out_of_memory;
  }
  text_deinit(&r->complaint);
  return status;
}

// Ends all processes. `complaint`: gets their output; NULL: not wanted.
static void end_all(Compilers *c, Text *complaint) {
  for (RunningCompiler *r = c->running; r < c->running + MOST_COMPILERS; r++) {
    if (!r->process.group) continue;
    kill(-r->process.group, SIGKILL); // the id is still the compiler's, because waitpid has not been called
    finish(c, r, complaint);
  }
}

static bool fail(Compilers *c, const char *why) {
  text_add_string(c->complaint, why);
  end_all(c, NULL);
  return false;
}

bool compilers_start(Compilers *c, const char *const *arguments) {
  RunningCompiler *r = c->running;
  int out[2];
  if (c->end_ms <= 0) c->end_ms = milliseconds_now() + c->timeout_s * 1e3;
  while (r->process.group) r++;
  if (pipe2(out, O_CLOEXEC) != 0) return fail(c, strerror(errno));
  fcntl(out[0], F_SETFL, O_NONBLOCK);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, out[1], STDERR_FILENO);
  int error = unfinished_spawn(&r->process, c->program, &actions, (char *const *)arguments, c->environment);
  posix_spawn_file_actions_destroy(&actions);
  close(out[1]);
  if (error) {
    close(out[0]);
    r->process.group = 0;
    return fail(c, strerror(error));
  }
  r->output = out[0];
  r->is_open = true;
  text_init(&r->complaint, c->complaint->allocator);
  c->count++;
  return true;
}

// Reads the output of all processes until something happens, at most for wait_ms. False: some process has closed its
// output, so that its end will not be noticed.
static bool read_all(Compilers *c, int wait_ms) {
  struct pollfd events[MOST_COMPILERS];
  bool are_open = true;
  for (size_t i = 0; i < MOST_COMPILERS; i++) {
    const RunningCompiler *r = &c->running[i];
    events[i] = (struct pollfd){.fd = r->process.group && r->is_open ? r->output : -1, .events = POLLIN};
  }
  poll(events, MOST_COMPILERS, wait_ms);
  for (RunningCompiler *r = c->running; r < c->running + MOST_COMPILERS; r++) {
    if (!r->process.group) continue;
    read_complaint(r);
    are_open = are_open && r->is_open;
  }
  return are_open;
}

// Finishes the processes that have ended. False: one of them failed.
static bool finish_ended(Compilers *c) {
  for (RunningCompiler *r = c->running; r < c->running + MOST_COMPILERS; r++) {
    if (!r->process.group || !has_ended(r->process.group)) continue;
    const int status = finish(c, r, c->complaint);
    if (WIFSIGNALED(status)) text_format(c->complaint, "ended by signal %d", WTERMSIG(status));
    else if (status && !c->complaint->nbytes) text_format(c->complaint, "exit status %d", WEXITSTATUS(status));
    if (status) return fail(c, "");
  }
  return true;
}

static bool fail_late(Compilers *c) {
  end_all(c, c->complaint);
  if (c->complaint->nbytes) text_add_string(c->complaint, "\n");
  text_format(c->complaint, "stopped because it was not done after %g s; %sset %s to another compiler", c->timeout_s,
              c->compiler->late, c->compiler->variable);
  return false;
}

bool compilers_wait(Compilers *c, size_t most) {
  enum { LONGEST_WAIT_MS = 50 };
  int wait_ms = LONGEST_WAIT_MS;
  if (most >= MOST_COMPILERS) most = MOST_COMPILERS - 1;
  while (finish_ended(c)) {
    if (c->count <= most) return true;
    if (c->timeout_s > 0 && milliseconds_now() > c->end_ms) return fail_late(c);
    const bool are_open = read_all(c, wait_ms);
    if (!are_open) wait_ms = wait_ms == LONGEST_WAIT_MS ? 1 : 2 * wait_ms < LONGEST_WAIT_MS ? 2 * wait_ms : wait_ms;
  }
  return false;
}
