// Splits the variable into words and looks up the program.
#include "backends/codegen/toolchain/compiler_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const CompilerChoice c_compiler = {
    "C compiler", "CC", (const char *const[]){"cc", NULL}, "install one",
    "raise the limit with --compile-timeout (0: no limit), use --no-fuse for smaller kernels, or "};

static bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n';
}

// Copies the word at *from to *to without quotes and backslashes, terminates it, and advances both pointers. False: a
// quote is not closed.
static bool take_word(const char **from, char **to) {
  const char *in = *from;
  char *out = *to, quote = 0;
  for (; *in && (quote || !is_blank(*in)); in++) {
    bool is_escape = *in == '\\' && quote != '\'' && in[1] && (!quote || strchr("\\\"$`", in[1]));
    if (is_escape) *out++ = *++in;
    else if (quote ? *in == quote : *in == '\'' || *in == '"') quote = quote ? 0 : *in;
    else *out++ = *in;
  }
  *out++ = 0;
  *from = in;
  *to = out;
  return !quote;
}

// Splits a command into c->words. c->text is large enough, because a word with its terminator is never longer than in
// `command` with the blank after it.
static bool split(CompilerCommand *c, const char *variable, const char *command, Diagnostics *d) {
  const char *from = command;
  char *to = c->text;
  if (strlen(command) >= sizeof c->text)
    return error_at(d, (Position){0}, "%s: expected fewer than %zu characters, found %zu", variable, sizeof c->text,
                    strlen(command));
  for (;;) {
    while (is_blank(*from)) from++;
    if (!*from) return true;
    if (c->nwords == MOST_COMMAND_WORDS)
      return error_at(d, (Position){0}, "%s: expected at most %d words, found more", variable, MOST_COMMAND_WORDS);
    c->words[c->nwords++] = to;
    if (!take_word(&from, &to)) return error_at(d, (Position){0}, "%s: a quote is not closed in %s", variable, command);
  }
}

static bool is_program(const char *path, struct stat *status) {
  return access(path, X_OK) == 0 && stat(path, status) == 0 && S_ISREG(status->st_mode);
}

// Finds the path of a program as a shell would. Symbolic links are not resolved, because programs such as ccache depend
// on the name by which they are called.
static bool find_program(const char *name, char path[PATH_MAX], struct stat *status) {
  const char *folders = getenv("PATH");
  if (strchr(name, '/')) return snprintf(path, PATH_MAX, "%s", name) < PATH_MAX && is_program(path, status);
  for (const char *folder = folders ? folders : "/usr/bin:/bin"; *folder;) {
    size_t length = strcspn(folder, ":");
    int n = snprintf(path, PATH_MAX, "%.*s/%s", (int)length, folder, name);
    if (n < PATH_MAX && is_program(path, status)) return true;
    folder += length + (folder[length] == ':');
  }
  return false;
}

bool compiler_command_find(CompilerCommand *c, const CompilerChoice *choice, Diagnostics *d) {
  const char *command = getenv(choice->variable), *const *candidate = choice->candidates;
  struct stat status;
  *c = (CompilerCommand){0};
  if (!split(c, choice->variable, command ? command : "", d)) return false;
  if (!c->nwords) {
    while (candidate[1] && !find_program(*candidate, c->program, &status)) candidate++;
    c->words[c->nwords++] = *candidate;
  }
  const char *name = c->words[0];
  if (find_program(name, c->program, &status)) return true;
  return error_at(d, (Position){0}, "no %s: %s is %s; %s or set %s", choice->what, name,
                  strchr(name, '/') ? "not an executable file" : "not in PATH", choice->advice, choice->variable);
}

void compiler_command_hash(const CompilerCommand *c, struct sha256_ctx *hash) {
  char path[PATH_MAX], identity[96];
  for (size_t i = 0; i < c->nwords; i++) {
    struct stat status;
    sha256_update(hash, strlen(c->words[i]) + 1, (const uint8_t *)c->words[i]);
    if (!find_program(c->words[i], path, &status)) continue;
    int n = snprintf(identity, sizeof identity, "%lld %lld %ld", (long long)status.st_size,
                     (long long)status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
    sha256_update(hash, strlen(path) + 1, (const uint8_t *)path);
    sha256_update(hash, (size_t)n + 1, (const uint8_t *)identity);
  }
}
