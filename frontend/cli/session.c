// Messages, files, JSON.
#include "frontend/cli/session.h"

#include "frontend/cli/progress.h"
#include "frontend/cli/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// Colour

static bool wants_colour(FILE *file) {
  const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
  return isatty(fileno(file)) && !(no_color && *no_color) && !(term && strcmp(term, "dumb") == 0);
}

const char *verdict(bool is_ok) {
  if (!wants_colour(stdout)) return is_ok ? "ok" : "FAILED";
  return is_ok ? "\033[32mok\033[0m" : "\033[1;31mFAILED\033[0m";
}

ng_context *session_open(uint64_t max_memory, int64_t max_steps) {
  ng_context *ctx = memory_or_exit(ng_context_new(NULL));
  if (max_memory) ng_context_set_max_memory(ctx, max_memory);
  ng_context_set_max_steps(ctx, (uint64_t)max_steps);
  ng_context_set_progress(ctx, progress_tell, NULL);
  return ctx;
}

void session_close(ng_context *ctx) {
  session_tell(ctx);
  ng_context_free(ctx);
}

// Messages

static char speaker[32]; // prefix of messages: "rank 3: "

void session_set_rank(int64_t rank) {
  snprintf(speaker, sizeof speaker, "rank %lld: ", (long long)rank);
}

void session_tell(ng_context *ctx) {
  progress_end();
  const char *text = ng_messages_text(ctx, wants_colour(stderr));
  if (*text) fprintf(stderr, "%s%s", speaker, text);
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
  progress_end();
  const bool is_line = length && format[strlen(format) - 1] == '\n'; // a question mark in `text`
  printf("%.*s%s", (int)(length - is_line), text, is_line ? "\n" : "");
  free(text);
}

// Errors and warnings without a position, for the next JSON document. NULL: none. Without memory, they are on stderr
// only.
static json_t *told;

static void print_message(bool is_error, const char *format, va_list args) {
  const bool colour = wants_colour(stderr);
  const char *severity = is_error ? "error" : "warning";
  progress_end();
  char *text = terminal_text(format, args);
  if (!told) told = json_array();
  json_array_append_new(
      told, json_pack("{s:s, s:n, s:n, s:n, s:s}", "severity", severity, "file", "line", "column", "text", text));
  fprintf(stderr, "%s%s%s:%s %s\n", speaker,
          !colour    ? ""
          : is_error ? "\033[1;31m"
                     : "\033[1;35m",
          severity, colour ? "\033[0m" : "", text);
  free(text);
}

int usage_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(true, format, args);
  va_end(args);
  return NG_USAGE;
}

int plain_error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(true, format, args);
  va_end(args);
  return NG_WRONG;
}

void plain_warning(const char *format, ...) {
  va_list args;
  va_start(args, format);
  print_message(false, format, args);
  va_end(args);
}

int exit_status(ng_status status) {
  return status == NG_OUT_OF_MEMORY || status == NG_RANKS_FAILED ? NG_WRONG : (int)status;
}

void *memory_or_exit(void *p) {
  if (p) return p;
  exit(plain_error("out of memory"));
}

FILE *text_open(TextStream *t) {
  *t = (TextStream){0};
  return t->out = memory_or_exit(open_memstream(&t->text, &t->nbytes));
}

char *text_close(TextStream *t) {
  const bool ok = !ferror(t->out);
  if (fclose(t->out) != 0 || !ok) memory_or_exit(NULL);
  return memory_or_exit(t->text);
}

char *text_of_format(const char *format, ...) {
  char *text;
  va_list args;
  va_start(args, format);
  if (vasprintf(&text, format, args) < 0) text = NULL;
  va_end(args);
  return memory_or_exit(text);
}

bool ends_in(const char *text, const char *ending) {
  const size_t length = strlen(text), n = strlen(ending);
  return length >= n && strcmp(text + length - n, ending) == 0;
}

// Files

bool is_same_file(const char *a, const char *b) {
  struct stat x, y;
  return stat(a, &x) == 0 && S_ISREG(x.st_mode) && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

char *path_join(const char *folder, const char *name, const char *ending) {
  return text_of_format("%s/%s%s", folder, name, ending);
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

// The file that a new file replaces: `path`, or the target if `path` is a link. NULL: `path` is something else, such as
// a device or a pipe, and is written directly.
static char *replaced_by_file(const char *path) {
  struct stat info;
  if (lstat(path, &info) != 0 || S_ISREG(info.st_mode)) return memory_or_exit(strdup(path));
  return S_ISLNK(info.st_mode) && stat(path, &info) == 0 && S_ISREG(info.st_mode) ? realpath(path, NULL) : NULL;
}

static bool write_bytes(int fd, const void *bytes, size_t nbytes) {
  FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
  if (!file) return false;
  const bool ok = fwrite(bytes, 1, nbytes, file) == nbytes;
  return fclose(file) == 0 && ok;
}

static bool replace(const char *path, const void *bytes, size_t nbytes) {
  char *temporary = text_of_format("%s.%ld.tmp", path, (long)getpid());
  signals_hold(); // otherwise a signal could leave the temporary file
  const int fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  const bool ok = write_bytes(fd, bytes, nbytes) && rename(temporary, path) == 0;
  const int error = errno;
  if (!ok && fd >= 0) unlink(temporary);
  signals_release();
  free(temporary);
  errno = error;
  return ok;
}

bool file_write_bytes(const char *path, const void *bytes, size_t nbytes) {
  char *target = replaced_by_file(path);
  const bool ok = target ? replace(target, bytes, nbytes)
                         : write_bytes(open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), bytes, nbytes);
  if (!ok) plain_error("%s: cannot write: %s", path, strerror(errno));
  free(target);
  return ok;
}

bool file_write(const char *path, const char *text) {
  return file_write_bytes(path, text, strlen(text));
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
  json_t *messages = told ? told : memory_or_exit(json_array());
  told = NULL;
  for (size_t i = 0; i < ng_message_count(ctx); i++) {
    ng_message m = ng_message_at(ctx, i);
    json_add(messages,
             json_object_of({"severity", json_text(m.is_error ? "error" : "warning")}, {"file", json_text(m.file)},
                            {"line", m.line ? json_count(m.line) : json_null()},
                            {"column", m.column ? json_count(m.column) : json_null()}, {"text", json_text(m.text)}));
  }
  return messages;
}

const char *json_text_at(const json_t *object, const char *key) {
  const char *text = json_string_value(json_object_get(object, key));
  return text ? text : "";
}

void json_set(json_t *object, const char *key, json_t *value) {
  if (json_object_set_new(object, key, value) != 0) memory_or_exit(NULL);
}

json_t *json_set_list(json_t *object, const JsonField *fields) {
  for (; fields->key; fields++) json_set(object, fields->key, fields->value);
  return object;
}

json_t *json_count(uint64_t count) {
  return json_integer((json_int_t)count);
}

void json_add(json_t *array, json_t *value) {
  if (json_array_append_new(array, value) != 0) memory_or_exit(NULL);
}

// The stream remembers errors. json_dumps would silently lose parts of the text when out of memory.
static int print_part(const char *text, size_t nbytes, void *file) {
  fwrite(text, 1, nbytes, file);
  return 0;
}

static void json_write(json_t *document, size_t layout, FILE *file) {
  enum { DIGITS = 9 };
  const size_t flags = layout | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(DIGITS);
  if (json_dump_callback(document, print_part, file, flags) != 0) memory_or_exit(NULL);
  fputc('\n', file);
}

char *json_to_text(json_t *document, size_t layout) {
  TextStream t;
  json_write(document, layout, text_open(&t));
  return text_close(&t);
}

void json_print(json_t *document) {
  progress_end();
  json_write(document, JSON_INDENT(2), stdout);
  json_decref(document);
}

void json_print_line(json_t *document) {
  progress_end();
  json_write(document, JSON_COMPACT, stdout);
  json_decref(document);
  fflush(stdout);
}
