// Messages about a model's bytes, with their place: the messages around them, with index and name, and the byte.
#include "frontend/onnx/model.h"

#include <stdarg.h>
#include <stdio.h>

enum { MOST_PLACE_BYTES = 300, MOST_NAME_BYTES = 60 };

static Bytes text_in(Bytes message, uint32_t field) {
  Bytes text = {NULL, 0};
  Field f;
  while (field && wire_next(&message, &f))
    if (f.number == field && f.type == WIRE_BYTES) text = f.bytes;
  if (text.count > MOST_NAME_BYTES) text.count = MOST_NAME_BYTES;
  return text;
}

static void add_place(Text *out, const OnnxPlace *place) {
  if (place->outer) {
    add_place(out, place->outer); // three at most: function, node, attribute
    text_add_string(out, ", ");
  }
  const Bytes name = text_in(place->message, place->name_field), op = text_in(place->message, place->op_field);
  text_format(out, "%s %zu", place->noun, place->index);
  if (!name.count && !op.count) return;
  text_format(out, " (%.*s", (int)op.count, (const char *)op.at);
  if (name.count) text_format(out, "%s\"%.*s\"", op.count ? " " : "", (int)name.count, (const char *)name.at);
  text_add_string(out, ")");
}

static bool is_in(Bytes file, const uint8_t *at) {
  return at && file.at && at >= file.at && at <= file.at + file.count;
}

static void tell(const OnnxReading *r, const uint8_t *at, bool is_error, const char *what) {
  Text text;
  text_init(&text, r->arena->allocator);
  if (r->title) text_add_string(&text, r->title);
  if (r->title && r->place) text_add_string(&text, ", ");
  if (r->place) add_place(&text, r->place);
  if (is_in(r->file, at)) text_format(&text, "%sat byte %zu", text.nbytes ? " " : "", (size_t)(at - r->file.at));
  text_format(&text, "%s%s", text.nbytes ? ": " : "", what);
  if (text.out_of_memory) error_out_of_memory(r->d);
  else (is_error ? error_at : warn_at)(r->d, (Position){r->source, 0, 0}, "%s", text_string(&text));
  text_deinit(&text);
}

bool onnx_tell(const OnnxReading *r, const uint8_t *at, const char *format, ...) {
  va_list arguments;
  char what[MOST_PLACE_BYTES];
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  tell(r, at, true, what);
  return false;
}

void onnx_warn(const OnnxReading *r, const uint8_t *at, const char *what) {
  tell(r, at, false, what);
}
