// Getting a graph file's bytes: only what is a file, only as much as a graph may be.
#include "frontend/yaml/yaml.h"

#include "frontend/file.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

// All that the descriptor gives, at most one byte more than a graph may have.
static bool read_all(int fd, Text *out, const char *path, Diagnostics *d) {
  enum { CHUNK = 1 << 13 };
  char chunk[CHUNK], problem[PROBLEM_BYTES];
  const Source source = {.name = path};
  const Position at = {&source, 0, 0};
  while (out->nbytes <= YAML_MAX_BYTES) {
    ssize_t n = read(fd, chunk, sizeof chunk);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return error_at(d, at, "%s", file_problem(errno, problem));
    if (n == 0) return true;
    text_add(out, chunk, (size_t)n);
    if (out->out_of_memory) return error_out_of_memory(d);
  }
  return error_at(d, at, "too long, expected at most %d MiB", YAML_MAX_BYTES >> 20);
}

// The bytes of a regular file, or of standard input for "-", with a zero added; the caller frees them with the
// allocator. NULL after telling why: no such file, not a regular one, more than YAML_MAX_BYTES.
static char *load(const Allocator *allocator, const char *path, size_t *nbytes, Diagnostics *d) {
  bool is_standard_input = strcmp(path, "-") == 0;
  const Source source = {.name = path};
  int fd = is_standard_input ? STDIN_FILENO : file_open(path, nbytes, (Position){&source, 0, 0}, "", d);
  if (fd < 0) return NULL;
  Text text;
  text_init(&text, allocator);
  text_add(&text, "", 0); // an empty file is a text too
  bool ok = !text.out_of_memory ? read_all(fd, &text, path, d) : error_out_of_memory(d);
  if (!is_standard_input) close(fd);
  if (!ok) text_deinit(&text);
  *nbytes = text.nbytes;
  return text.bytes;
}

Graph *yaml_read_file(const Allocator *allocator, const char *path, Diagnostics *d) {
  size_t nbytes;
  char *text = load(allocator, path, &nbytes, d);
  if (!text) return NULL;
  const char *slash = strrchr(path, '/');
  size_t nfolder = !slash ? 1 : slash == path ? 1 : (size_t)(slash - path);
  char *folder = allocator_alloc(allocator, nfolder + 1);
  Graph *g = NULL;
  if (folder) {
    memcpy(folder, slash ? path : ".", nfolder);
    folder[nfolder] = 0;
    g = yaml_read(allocator, path, text, nbytes, strcmp(path, "-") == 0 ? NULL : folder, d);
  } else {
    error_out_of_memory(d);
  }
  allocator_free(allocator, folder);
  allocator_free(allocator, text);
  return g;
}
