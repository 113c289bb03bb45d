// Starts a program and reads its output through a pipe.
#include "frontend/cli/subprocess.h"

#include "frontend/cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CANNOT_RUN = 127 };

// Runs in the child, where only async-signal-safe functions are allowed. The child has a process group of its own,
// which Ctrl-C does not reach, and ends with its parent: otherwise the parent could report the child's end before its
// own.
static _Noreturn void become(const char *const *arguments, char *const *environment, int output, pid_t parent) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent && dup2(output, STDOUT_FILENO) >= 0)
    execvpe(arguments[0], (char *const *)arguments, environment);
  _exit(CANNOT_RUN);
}

// An environment in which the program draws no progress; the caller frees the array.
static char **environment_new(void) {
  static char terminal[] = "TERM=dumb";
  size_t count = 0, n = 0;
  while (environ[count]) count++;
  char **made = memory_or_exit(calloc(count + 2, sizeof *made));
  for (size_t i = 0; i < count; i++)
    if (strncmp(environ[i], "TERM=", 5) != 0) made[n++] = environ[i];
  made[n] = terminal;
  return made;
}

int program_json(const char *const *arguments, json_t **document) {
  int ends[2], status = 0;
  *document = NULL;
  if (pipe2(ends, O_CLOEXEC) != 0) return plain_error("%s: %s", arguments[0], strerror(errno));
  char **environment = environment_new();
  const pid_t parent = getpid(), child = fork();
  if (child == 0) become(arguments, environment, ends[1], parent);
  free(environment);
  close(ends[1]);
  if (child < 0) {
    close(ends[0]);
    return plain_error("%s: %s", arguments[0], strerror(errno));
  }
  *document = json_loadfd(ends[0], 0, NULL);
  close(ends[0]);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  if (WIFEXITED(status) && WEXITSTATUS(status) != CANNOT_RUN) return WEXITSTATUS(status);
  if (WIFSIGNALED(status)) return plain_error("%s: ended by signal %d", arguments[0], WTERMSIG(status));
  return plain_error("%s: cannot be run", arguments[0]);
}
