// What every verb does with the outside: messages and progress on stderr, JSON and tables on stdout, exit statuses.
#ifndef NGRAD_FRONTEND_CLI_SESSION_H
#define NGRAD_FRONTEND_CLI_SESSION_H

#include "frontend/api/ngrad.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

// A context with budgets of bytes and of steps to compile (0: the default), whose progress is drawn on stderr when that
// is a terminal; exits when out of memory.
ng_context *session_open(uint64_t max_memory, int64_t max_steps);
void session_close(ng_context *ctx);

// Errors say from now on which rank has them.
void session_set_rank(int64_t rank);

// Prints the context's messages to stderr, and forgets them.
void session_tell(ng_context *ctx);

// Prints what is wrong with the command line; returns the exit status for that.
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints an error that is not about the graph's file; returns 1.
int plain_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints to stdout, a line where `format` ends in one. Other control characters and the like are shown as question
// marks.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same as text, which the caller frees.
char *terminal_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

int exit_status(ng_status status);

// Its argument, or no return.
void *memory_or_exit(void *p);

// Closes a stream that open_memstream made, or does not return: a write may have found no memory.
void memory_stream_close(FILE *stream, char *const *text);

double now_ms(void);

// Whether both paths name one regular file that is there.
bool is_same_file(const char *a, const char *b);

// Writes a file whole or not at all. False after telling why.
bool file_write(const char *path, const char *text);
bool file_write_bytes(const char *path, const void *bytes, size_t nbytes);
// Makes a folder and those above it. False after telling why.
bool folder_make(const char *path);
char *path_join(const char *folder, const char *name, const char *ending); // the caller frees it

// Green and red on a terminal.
const char *verdict(bool is_ok);

// JSON that cannot fail: numbers that JSON lacks become null, bytes that are no UTF-8 become '?'.
json_t *json_text(const char *text); // NULL gives null
json_t *json_number(double value);
json_t *json_shape(const ng_tensor_info *info);
json_t *json_order(const ng_tensor_info *info); // null for a row-major one
json_t *json_messages(const ng_context *ctx); // errors that were printed since the last call, and those of the context
void json_set(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);
char *json_to_text(json_t *document);   // as json_print prints it; the caller frees it
void json_print(json_t *document);      // to stdout; frees it
void json_print_line(json_t *document); // the same, at once and in one line

#endif
