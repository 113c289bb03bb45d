// Opening files.
#include "frontend/file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
