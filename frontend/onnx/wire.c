// Decodes fields of messages.
#include "frontend/onnx/wire.h"

enum { MOST_VARINT_BYTES = 10, FIELD_SHIFT = 3 };

static bool take_varint(Bytes *rest, uint64_t *value) {
  *value = 0;
  for (size_t i = 0; i < MOST_VARINT_BYTES && i < rest->count; i++) {
    *value |= (uint64_t)(rest->at[i] & 0x7F) << 7 * i;
    if (rest->at[i] & 0x80) continue;
    *rest = (Bytes){rest->at + i + 1, rest->count - i - 1};
    return true;
  }
  return false;
}

static bool take_fixed(Bytes *rest, size_t nbytes, uint64_t *value) {
  if (rest->count < nbytes) return false;
  *value = 0;
  for (size_t i = 0; i < nbytes; i++) *value |= (uint64_t)rest->at[i] << 8 * i;
  *rest = (Bytes){rest->at + nbytes, rest->count - nbytes};
  return true;
}

bool wire_next_packed(Bytes *rest, WireType type, uint64_t *value) {
  switch (type) {
  case WIRE_VARINT: return take_varint(rest, value);
  case WIRE_FIXED64: return take_fixed(rest, 8, value);
  case WIRE_FIXED32: return take_fixed(rest, 4, value);
  case WIRE_BYTES: break;
  }
  return false;
}

bool wire_next(Bytes *rest, Field *field) {
  Bytes behind = *rest;
  uint64_t key;
  if (!take_varint(&behind, &key) || key >> FIELD_SHIFT == 0 || key >> 32) return false;
  *field = (Field){.number = (uint32_t)(key >> FIELD_SHIFT), .type = (WireType)(key & 7)};
  bool ok = false;
  if (field->type != WIRE_BYTES) {
    ok = wire_next_packed(&behind, field->type, &field->value);
  } else if (take_varint(&behind, &field->value) && field->value <= behind.count) {
    field->bytes = (Bytes){behind.at, (size_t)field->value};
    behind = (Bytes){behind.at + field->value, behind.count - (size_t)field->value};
    ok = true;
  }
  if (ok) *rest = behind;
  return ok;
}

bool wire_is_cut(Bytes rest, Field *field) {
  uint64_t key;
  *field = (Field){.type = WIRE_VARINT};
  if (rest.count == 0) return false;
  if (!take_varint(&rest, &key)) return rest.count < MOST_VARINT_BYTES;
  *field = (Field){.number = (uint32_t)(key >> FIELD_SHIFT), .type = (WireType)(key & 7)};
  if (field->number == 0 || key >> 32) return false;
  if (field->type == WIRE_FIXED64) return rest.count < 8;
  if (field->type == WIRE_FIXED32) return rest.count < 4;
  if (field->type != WIRE_VARINT && field->type != WIRE_BYTES) return false;
  if (!take_varint(&rest, &field->value)) return rest.count < MOST_VARINT_BYTES;
  field->bytes = rest;
  return field->type == WIRE_BYTES && field->value > rest.count;
}
