// Output and exit statuses of every verb: messages and progress on stderr, JSON and tables on stdout.
#ifndef NGRAD_FRONTEND_CLI_SESSION_H
#define NGRAD_FRONTEND_CLI_SESSION_H

#include "frontend/api/ngrad.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

// A context with budgets of bytes and of compile steps (0: the default). Draws its progress on stderr if that is a
// terminal. Exits when out of memory.
ng_context *session_open(uint64_t max_memory, int64_t max_steps);
void session_close(ng_context *ctx);

// Prefixes all later errors with the rank.
void session_set_rank(int64_t rank);

// Prints the context's messages to stderr, and clears them.
void session_tell(ng_context *ctx);

// Reports an error of the command line; returns its exit status.
int usage_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Reports an error that is not about the graph's file; returns 1.
int plain_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
void plain_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

// Prints to stdout. `format` may end in a line break; other control characters and invisible characters become question
// marks.
void say(const char *format, ...) __attribute__((format(printf, 1, 2)));
// The same as a text, which the caller frees.
char *terminal_text(const char *format, va_list args) __attribute__((format(printf, 1, 0)));

int exit_status(ng_status status);

// Returns p, or exits if p is NULL.
void *memory_or_exit(void *p);

// A text that is printed to a stream. Exits when out of memory.
typedef struct TextStream {
  FILE *out;
  char *text; // valid after text_close
  size_t nbytes;
} TextStream;
FILE *text_open(TextStream *t);
char *text_close(TextStream *t); // the text, which the caller frees

// Prints to a text, which the caller frees. Exits when out of memory.
char *text_of_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

bool ends_in(const char *text, const char *ending);

// Whether both paths name the same existing regular file.
bool is_same_file(const char *a, const char *b);

// Writes a file whole or not at all. False after an error message.
bool file_write(const char *path, const char *text);
bool file_write_bytes(const char *path, const void *bytes, size_t nbytes);
// Makes a folder and its parents. False after an error message.
bool folder_make(const char *path);
char *path_join(const char *folder, const char *name, const char *ending); // the caller frees it

// Green and red on a terminal.
const char *verdict(bool is_ok);

// JSON without failures: numbers that JSON cannot represent become null, and invalid UTF-8 becomes '?'.
json_t *json_text(const char *text); // NULL gives null
json_t *json_number(double value);
json_t *json_shape(const ng_tensor_info *info);
json_t *json_order(const ng_tensor_info *info); // the layout; null if row-major
// The errors and warnings printed since the last call, and the context's messages.
json_t *json_messages(const ng_context *ctx);
json_t *json_count(uint64_t count);
void json_set(json_t *object, const char *key, json_t *value);
typedef struct JsonField {
  const char *key; // NULL: the end of the list
  json_t *value;
} JsonField;
json_t *json_set_list(json_t *object, const JsonField *fields); // returns the object
#define json_set_all(object, ...) json_set_list(object, (const JsonField[]){__VA_ARGS__, {NULL, NULL}})
#define json_object_of(...) json_set_all(memory_or_exit(json_object()), __VA_ARGS__)
void json_add(json_t *array, json_t *value);
const char *json_text_at(const json_t *object, const char *key); // "" if it is missing
char *json_to_text(json_t *document, size_t layout);             // by jansson's flags for spaces; the caller frees it
void json_print(json_t *document);                               // to stdout; frees it
void json_print_line(json_t *document);                          // the same in one line, flushed

#endif
