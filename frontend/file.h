// Opening files that are not trusted to be files, and writing files whole.
#ifndef NGRAD_FRONTEND_FILE_H
#define NGRAD_FRONTEND_FILE_H

#include "ir/support/diagnostics.h"

// A descriptor of a regular file for reading, and its length; never waits (for a fifo's writer, say). -1 after
// telling at `at`, with `prefix` before the message.
int file_open(const char *path, size_t *nbytes, Position at, const char *prefix, Diagnostics *d);

// Puts a file in the place of what is at `path`, whole or not at all: it is written under another name beside it, then
// renamed. `write` gets a descriptor and `content`; when it returns false, errno says why.
bool file_replace(const char *path, bool (*write)(int fd, const void *content), const void *content, Diagnostics *d);
bool file_write_all(int fd, const void *bytes, size_t nbytes);

// What an errno value means, as the lower-case middle of a message.
enum { PROBLEM_BYTES = 128 };
const char *file_problem(int error, char buffer[PROBLEM_BYTES]);

#endif
