// Opens paths that may not name regular files, and writes files whole.
#ifndef NGRAD_FRONTEND_FILE_H
#define NGRAD_FRONTEND_FILE_H

#include "ir/support/diagnostics.h"

// Opens a regular file for reading, without waiting (for example for a fifo's writer). Returns a descriptor and the
// file's length. -1 after a message at `at` that begins with `prefix`.
int file_open(const char *path, size_t *nbytes, Position at, const char *prefix, Diagnostics *d);

// The bytes of a regular file, or of standard input for "-", followed by a zero. The caller frees them with the
// allocator. NULL after a message: no such file, not regular, or too long. A file that begins with a control character
// is binary, and its limit is MOST_BINARY_BYTES, which is the limit of protocol buffers.
enum { MOST_TEXT_BYTES = 64 << 20, MOST_BINARY_BYTES = INT32_MAX };
char *file_load(const Allocator *allocator, const char *path, size_t *nbytes, Diagnostics *d);

// The resolved path of the file that a graph calls `path`, which must be below the folder after all links are followed.
// The caller frees it. `name` is the path in messages. NULL after a message. folder NULL: the graph is not read from a
// file.
char *file_below(const char *folder, const char *path, const char *name, Position at, Diagnostics *d);

// Reads exactly nbytes from `offset`. False: errno is the reason, or 0 if the file is too short.
bool file_read_at(int fd, uint64_t offset, void *to, size_t nbytes);

// Replaces the file at `path`, whole or not at all: writes a new file beside it, then renames. If `path` is a link, its
// target is replaced; a device or a pipe is written directly. `write` gets a descriptor and `content`; if it returns
// false, errno is the reason.
bool file_replace(const char *path, bool (*write)(int fd, const void *content), const void *content, Diagnostics *d);
// Makes the folders of the file at `path` that are missing, of those behind the first `nbytes` of the path. False after
// a message.
bool file_make_folders(char *path, size_t nbytes, Diagnostics *d);
// Removes the new files beside `path` that processes left which ended before they had renamed them.
void file_remove_abandoned(const char *path);
bool file_write_all(int fd, const void *bytes, size_t nbytes);

// The text of an errno value, in lower case for the middle of a message.
enum { PROBLEM_BYTES = 128 };
const char *file_problem(int error, char buffer[PROBLEM_BYTES]);

#endif
