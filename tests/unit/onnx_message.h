// Messages of protobuf's wire format, as ONNX models are, written field by field.
#ifndef NGRAD_TESTS_UNIT_ONNX_MESSAGE_H
#define NGRAD_TESTS_UNIT_ONNX_MESSAGE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct Message {
  uint8_t bytes[1 << 14];
  size_t count;
} Message;

static inline void add_varint(Message *m, uint64_t number) {
  assert_true(m->count + 10 < sizeof m->bytes);
  for (; number >= 128; number >>= 7) m->bytes[m->count++] = (uint8_t)(number | 128);
  m->bytes[m->count++] = (uint8_t)number;
}

static inline void add_number(Message *m, uint64_t field, uint64_t number) {
  add_varint(m, field << 3);
  add_varint(m, number);
}

static inline void add_bytes(Message *m, uint64_t field, const void *bytes, size_t count) {
  add_varint(m, field << 3 | 2);
  add_varint(m, count);
  assert_true(m->count + count < sizeof m->bytes);
  if (count) memcpy(m->bytes + m->count, bytes, count);
  m->count += count;
}

static inline void add_text(Message *m, uint64_t field, const char *text) {
  add_bytes(m, field, text, strlen(text));
}

static inline void add_message(Message *m, uint64_t field, const Message *inside) {
  add_bytes(m, field, inside->bytes, inside->count);
}

static inline void add_float(Message *m, uint64_t field, float number) {
  add_varint(m, field << 3 | 5);
  assert_true(m->count + sizeof number < sizeof m->bytes);
  memcpy(m->bytes + m->count, &number, sizeof number);
  m->count += sizeof number;
}

#endif
