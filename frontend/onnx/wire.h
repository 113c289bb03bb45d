// The wire format of protocol buffers, which ONNX models use: a message is a span of bytes with one field after
// another. Nothing is copied, and no byte outside of the span is read, whatever its bytes are.
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
  uint64_t value; // of a varint, or the bits of a fixed number
  Bytes bytes;    // WIRE_BYTES: a text, a message or packed numbers
} Field;

// Reads the next field of a message; *rest then begins behind it. False at the end, or if the bytes are no field: then
// *rest is not empty.
bool wire_next(Bytes *rest, Field *field);

// Whether the bytes are the beginning of a field that is longer. *field: as far as known, with the length that it
// states in `value` (0: unknown) and the bytes that are there.
bool wire_is_cut(Bytes rest, Field *field);

// Reads the next number of a repeated field that may be packed; `type` is the type of one number. Begin with *rest =
// field->bytes; for an unpacked field, use its value instead. False at the end, or if the bytes are no number: then
// *rest is not empty.
bool wire_next_packed(Bytes *rest, WireType type, uint64_t *value);

#endif
