// Opens files.
#include "frontend/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *file_problem(int error, char buffer[PROBLEM_BYTES]) {
  snprintf(buffer, PROBLEM_BYTES, "%s", strerrordesc_np(error) ? strerrordesc_np(error) : "unknown error");
  if (islower((unsigned char)buffer[1])) buffer[0] = (char)tolower((unsigned char)buffer[0]);
  return buffer;
}

int file_open(const char *path, size_t *nbytes, Position at, const char *prefix, Diagnostics *d) {
  char problem[PROBLEM_BYTES];
  struct stat status;
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0 || fstat(fd, &status) < 0) {
    error_at(d, at, "%s%s", prefix, file_problem(errno, problem));
  } else if (!S_ISREG(status.st_mode)) {
    error_at(d, at, "%sexpected a regular file, found %s", prefix,
             S_ISDIR(status.st_mode) ? "a folder" : "a device or pipe");
  } else {
    *nbytes = (size_t)status.st_size;
    return fd;
  }
  if (fd >= 0) close(fd);
  return -1;
}

// Reads until the end, or one byte more than the limit.
static bool read_all(int fd, Text *out, const char *path, Diagnostics *d) {
  enum { BUFFER_BYTES = 1 << 13 };
  char buffer[BUFFER_BYTES], problem[PROBLEM_BYTES];
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  size_t most = MOST_TEXT_BYTES;
  while (out->nbytes <= most) {
    ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_at(d, at, "%s", file_problem(errno, problem));
    if (n == 0) return true;
    text_add(out, buffer, (size_t)n);
    if (out->out_of_memory) return error_out_of_memory(d);
    if (iscntrl((unsigned char)out->bytes[0]) && !isspace((unsigned char)out->bytes[0])) most = MOST_BINARY_BYTES;
  }
  return error_at(d, at, "too long, expected at most %zu MiB", (most >> 20) + (most == MOST_BINARY_BYTES));
}

char *file_load(const Allocator *allocator, const char *path, size_t *nbytes, Diagnostics *d) {
  bool is_standard_input = strcmp(path, "-") == 0;
  const Source source = {.name = path};
  int fd = is_standard_input ? STDIN_FILENO : file_open(path, nbytes, (Position){&source, 0, 0}, "", d);
  if (fd < 0) return NULL;
  if (!is_standard_input && *nbytes > MOST_BINARY_BYTES) { // before reading any of it
    error_at(d, (Position){&source, 0, 0}, "too long, expected at most 2048 MiB");
    close(fd);
    return NULL;
  }
  Text text;
  text_init(&text, allocator);
  text_add(&text, "", 0); // makes an empty file a text of zero bytes
  bool ok = !text.out_of_memory ? read_all(fd, &text, path, d) : error_out_of_memory(d);
  if (!is_standard_input) close(fd);
  if (!ok) text_deinit(&text);
  *nbytes = text.nbytes;
  return text.bytes;
}

static bool leaves_folder(const char *path) {
  if (*path == '/') return true;
  for (const char *part = path; part; part = strchr(part, '/')) {
    if (*part == '/') part++;
    if (part[0] == '.' && part[1] == '.' && (part[2] == '/' || !part[2])) return true;
  }
  return false;
}

// Whether the file is below the folder. The folder itself is not; opening it reports that.
static bool is_below(const char *folder, const char *file) {
  const size_t n = strlen(folder);
  return strncmp(file, folder, n) == 0 && (strcmp(folder, "/") == 0 || file[n] == '/' || !file[n]);
}

char *file_below(const char *folder, const char *path, const char *name, Position at, Diagnostics *d) {
  char problem[PROBLEM_BYTES], *joined = NULL;
  if (!folder) return error_at(d, at, "%s: a graph that is not read from a file cannot name files", name), NULL;
  if (leaves_folder(path))
    return error_at(d, at, "%s: expected a path below the graph's folder, without ..", name), NULL;
  if (asprintf(&joined, "%s/%s", folder, path) < 0) return error_out_of_memory(d), NULL;
  char *real = realpath(folder, NULL), *file = real ? realpath(joined, NULL) : NULL;
  if (!file) {
    if (errno == ENOMEM) error_out_of_memory(d);
    else error_at(d, at, "%s: %s", name, file_problem(errno, problem));
  } else if (!is_below(real, file)) {
    error_at(d, at, "%s: a link that leaves the graph's folder", name);
    free(file);
    file = NULL;
  }
  free(real);
  free(joined);
  return file;
}

bool file_read_at(int fd, uint64_t offset, void *to, size_t nbytes) {
  while (nbytes > 0) {
    const ssize_t n = pread(fd, to, nbytes, (off_t)offset);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) errno = 0;
    if (n <= 0) return false;
    to = (char *)to + n;
    offset += (uint64_t)n;
    nbytes -= (size_t)n;
  }
  return true;
}
