// Messages, progress, files, JSON.
#include "frontend/cli/session.h"

#include "frontend/cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

// Colour and progress

static bool wants_colour(FILE *file) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fileno(file)) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

const char *verdict(bool is_ok) {
  if (!wants_colour(stdout)) return is_ok ? "ok" : "FAILED";
  return is_ok ? "\033[32mok\033[0m" : "\033[1;31mFAILED\033[0m";
}

double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

static struct {
  char what[64];
  double started, drawn;
  bool is_shown;
} progress;

static void progress_clear(void) {
  if (progress.is_shown) fputs("\r\033[K", stderr);
  progress.is_shown = false;
}

// Work of under a second stays quiet.
static void progress_draw(void *user, const char *what, double fraction) {
  const double patience_ms = 1000, interval_ms = 100;
  (void)user;
  double now = now_ms();
  if (strncmp(progress.what, what, sizeof progress.what - 1) != 0) {
    progress_clear();
    snprintf(progress.what, sizeof progress.what, "%s", what);
    progress.started = now;
  }
  if (now - progress.started < patience_ms || now - progress.drawn < interval_ms) return;
  char *shown = memory_or_exit(ng_escape(NG_TERMINAL, progress.what));
  fprintf(stderr, "\r\033[K%s %.0f%%", shown, fraction * 100);
  free(shown);
  fflush(stderr);
  progress.drawn = now;
  progress.is_shown = true;
}

ng_context *session_open(uint64_t max_memory) {
  ng_context *ctx = memory_or_exit(ng_context_new(NULL));
  if (max_memory) ng_context_set_max_memory(ctx, max_memory);
  if (isatty(STDERR_FILENO)) ng_context_set_progress(ctx, progress_draw, NULL);
  return ctx;
}

void session_close(ng_context *ctx) {
  session_tell(ctx);
  ng_context_free(ctx);
}

// Messages

void session_tell(ng_context *ctx) {
  progress_clear();
  progress.what[0] = 0;
  fputs(ng_messages_text(ctx, wants_colour(stderr)), stderr);
  ng_messages_clear(ctx);
}

char *terminal_text(const char *format, va_list args) {
  char *text = NULL;
  if (vasprintf(&text, format, args) < 0) text = NULL;
  char *shown = ng_escape(NG_TERMINAL, memory_or_exit(text));
  free(text);
  return memory_or_exit(shown);
}

void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = terminal_text(format, args);
  va_end(args);
  const size_t length = strlen(text);
  const bool is_line = length && format[strlen(format) - 1] == '\n'; // which is a question mark by now
  printf("%.*s%s", (int)(length - is_line), text, is_line ? "\n" : "");
  free(text);
}

static void print_error(const char *format, va_list args) {
  bool colour = wants_colour(stderr);
  fprintf(stderr, "%serror:%s ", colour ? "\033[1;31m" : "", colour ? "\033[0m" : "");
  char *text = terminal_text(format, args);
  fprintf(stderr, "%s\n", text);
  free(text);
}

int usage_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_error(format, args);
  va_end(args);
  return NG_USAGE;
}

int plain_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_error(format, args);
  va_end(args);
  return NG_WRONG;
}

int exit_status(ng_status status) {
  return status == NG_OUT_OF_MEMORY ? NG_WRONG : (int)status;
}

void *memory_or_exit(void *p) {
  if (p) return p;
  exit(plain_error("out of memory"));
}

// Files

char *path_join(const char *folder, const char *name, const char *ending) {
  size_t nbytes = strlen(folder) + strlen(name) + strlen(ending) + 2;
  char *path = memory_or_exit(malloc(nbytes));
  snprintf(path, nbytes, "%s/%s%s", folder, name, ending);
  return path;
}

bool folder_make(const char *path) {
  struct stat info;
  char *copy = memory_or_exit(strdup(path));
  bool ok = true;
  for (char *c = copy + 1; ok; c++) {
    if (*c && *c != '/') continue;
    char separator = *c;
    *c = 0;
    ok = mkdir(copy, 0777) == 0 || errno == EEXIST;
    *c = separator;
    if (!separator) break;
  }
  if (!ok) plain_error("%s: cannot make the folder: %s", path, strerror(errno));
  else if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
    ok = false;
    plain_error("%s: expected a folder", path);
  }
  free(copy);
  return ok;
}

bool file_write(const char *path, const char *text) {
  size_t nbytes = strlen(path) + 32;
  char *temporary = memory_or_exit(malloc(nbytes));
  snprintf(temporary, nbytes, "%s.%ld.tmp", path, (long)getpid());
  signals_hold(); // or the temporary file could stay
  int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  bool ok = file != NULL;
  if (ok) {
    ok = fputs(text, file) >= 0;
    if (fclose(file) != 0) ok = false;
    ok = ok && rename(temporary, path) == 0;
  }
  int error = errno;
  if (!ok && fd >= 0) unlink(temporary);
  signals_release();
  if (!ok) plain_error("%s: cannot write: %s", path, strerror(error));
  free(temporary);
  return ok;
}

// JSON

json_t *json_text(const char *text) {
  if (!text) return memory_or_exit(json_null());
  json_t *value = json_string(text);
  if (value) return value;
  char *plain = memory_or_exit(strdup(text));
  for (char *c = plain; *c; c++)
    if ((unsigned char)*c >= 0x80) *c = '?';
  value = memory_or_exit(json_string(plain));
  free(plain);
  return value;
}

json_t *json_number(double value) {
  return memory_or_exit(isfinite(value) ? json_real(value) : json_null());
}

json_t *json_shape(const ng_tensor_info *info) {
  if (info->rank < 0) return json_text(NULL);
  json_t *shape = memory_or_exit(json_array());
  for (int i = 0; i < info->rank; i++) {
    if (info->dim[i]) json_add(shape, json_text(info->dim[i]));
    else json_add(shape, info->extent[i] < 0 ? json_null() : json_integer(info->extent[i]));
  }
  return shape;
}

json_t *json_order(const ng_tensor_info *info) {
  if (info->order[0] == info->order[1]) return json_text(NULL);
  json_t *order = memory_or_exit(json_array());
  for (int i = 0; i < info->rank; i++) json_add(order, json_integer(info->order[i]));
  return order;
}

json_t *json_messages(const ng_context *ctx) {
  json_t *messages = memory_or_exit(json_array());
  for (size_t i = 0; i < ng_message_count(ctx); i++) {
    ng_message m = ng_message_at(ctx, i);
    json_t *message = memory_or_exit(json_object());
    json_set(message, "severity", json_text(m.is_error ? "error" : "warning"));
    json_set(message, "file", json_text(m.file));
    json_set(message, "line", m.line ? json_integer(m.line) : json_null());
    json_set(message, "column", m.column ? json_integer(m.column) : json_null());
    json_set(message, "text", json_text(m.text));
    json_add(messages, message);
  }
  return messages;
}

void json_set(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value) != 0) memory_or_exit(NULL);
}

void json_add(json_t *array, json_t *value) {
  if (json_array_append_new(array, value) != 0) memory_or_exit(NULL);
}

// Errors stay in stdout's state. Not json_dumps: without memory it loses parts of the text and says nothing.
static int print_part(const char *text, size_t nbytes, void *unused) {
  (void)unused;
  fwrite(text, 1, nbytes, stdout);
  return 0;
}

void json_print(json_t *document) {
  enum { DIGITS = 9 };
  const size_t flags = JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS);
  if (json_dump_callback(document, print_part, NULL, flags) != 0) memory_or_exit(NULL);
  putchar('\n');
  json_decref(document);
}
