// Opening files that are not trusted to be files, and writing files whole.
#ifndef NGRAD_FRONTEND_FILE_H
#define NGRAD_FRONTEND_FILE_H

#include "ir/support/diagnostics.h"

// A descriptor of a regular file for reading, and its length; never waits (for a fifo's writer, say). -1 after
// telling at `at`, with `prefix` before the message.
int file_open(const char *path, size_t *nbytes, Position at, const char *prefix, Diagnostics *d);

// The bytes of a regular file, or of standard input for "-", with a zero added; the caller frees them with the
// allocator. NULL after telling why: no such file, not a regular one, or too long. What begins with a control character
// is no text, and may have as many bytes as MOST_BINARY_BYTES, that is, as a model of protocol buffers.
enum { MOST_TEXT_BYTES = 64 << 20, MOST_BINARY_BYTES = INT32_MAX };
char *file_load(const Allocator *allocator, const char *path, size_t *nbytes, Diagnostics *d);

// The real place of the file that a graph calls `path`, which is below the folder's whatever links there are; to be
// freed. `name` is the path in messages. NULL after telling. folder NULL: the graph is not read from a file.
char *file_below(const char *folder, const char *path, const char *name, Position at, Diagnostics *d);

// Reads exactly nbytes from there on; false: errno says why not, 0 that the file has fewer.
bool file_read_at(int fd, uint64_t offset, void *to, size_t nbytes);

// Puts a file in the place of what is at `path`, whole or not at all: it is written under another name beside it, then
// renamed. What a link leads to is replaced, not the link; a device or a pipe is written to. `write` gets a descriptor
// and `content`; when it returns false, errno says why.
bool file_replace(const char *path, bool (*write)(int fd, const void *content), const void *content, Diagnostics *d);
bool file_write_all(int fd, const void *bytes, size_t nbytes);

// What an errno value means, as the lower-case middle of a message.
enum { PROBLEM_BYTES = 128 };
const char *file_problem(int error, char buffer[PROBLEM_BYTES]);

#endif
