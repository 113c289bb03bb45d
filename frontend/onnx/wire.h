// The wire format of protocol buffers, in which ONNX models are: a message is fields, one after another, in a span of
// bytes. Nothing is copied, and nothing outside of the span is read, whatever its bytes say.
#ifndef NGRAD_FRONTEND_ONNX_WIRE_H
#define NGRAD_FRONTEND_ONNX_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct Bytes {
  const uint8_t *at;
  size_t count;
} Bytes;

typedef enum WireType { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 } WireType;

typedef struct Field {
  uint32_t number;
  WireType type;
  uint64_t value; // of a varint, or the bits of a fixed one
  Bytes bytes;    // WIRE_BYTES: a text, a message or packed numbers
} Field;

// The next field of a message, whose rest begins behind it. False at its end, or where it is none: then *rest is not
// empty.
bool wire_next(Bytes *rest, Field *field);

// The next number of a repeated field that may be packed: `type` is that of one number. Begin with *rest =
// field->bytes, and for a field that is not packed take its value instead. False at the end, or where it is none: then
// *rest is not empty.
bool wire_next_packed(Bytes *rest, WireType type, uint64_t *value);

#endif
