// What every verb does with the outside: messages and progress on stderr, JSON and tables on stdout, exit statuses.
#ifndef NGRAD_FRONTEND_CLI_SESSION_H
#define NGRAD_FRONTEND_CLI_SESSION_H

#include "frontend/api/ngrad.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

// A context with a memory budget (bytes; 0: the default), whose progress is drawn on stderr when that is a terminal;
// exits when out of memory.
ng_context *session_open(uint64_t max_memory);
void session_close(ng_context *ctx);

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

double now_ms(void);

// Writes a file whole or not at all. False after telling why.
bool file_write(const char *path, const char *text);
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
json_t *json_messages(const ng_context *ctx);
void json_set(json_t *object, const char *key, json_t *value);
void json_add(json_t *array, json_t *value);
void json_print(json_t *document); // to stdout; frees it

#endif
