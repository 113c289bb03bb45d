// The growing string.
#include "ir/support/text.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(Text *t, const Allocator *allocator) {
  *t = (Text){.allocator = allocator};
}

void text_deinit(Text *t) {
  allocator_free(t->allocator, t->bytes);
  text_init(t, t->allocator);
}

// Ensures capacity for nbytes more and a final zero.
static bool text_grow(Text *t, size_t nbytes) {
  if (nbytes < t->capacity - t->nbytes) return true;
  size_t wanted = t->capacity ? t->capacity : 256;
  while (wanted - t->nbytes <= nbytes && wanted <= PTRDIFF_MAX / 2) wanted *= 2;
  char *bytes = wanted - t->nbytes <= nbytes ? NULL : t->allocator->resize(t->allocator->context, t->bytes, wanted);
  if (!bytes) {
    t->out_of_memory = true;
    return false;
  }
  t->bytes = bytes;
  t->capacity = wanted;
  return true;
}

enum { STEP_NBYTES = 16 }; // bytes that are printed in a step

void text_give_steps(Text *t, size_t nbytes) {
  steps_take(t->allocator->steps, -(int64_t)(nbytes / STEP_NBYTES));
}

// Adds the bytes that have been written behind the text, and takes their steps.
static void text_add_written(Text *t, size_t nbytes) {
  const size_t nsteps = (t->nbytes + nbytes) / STEP_NBYTES - t->nbytes / STEP_NBYTES;
  t->nbytes += nbytes;
  if (!steps_take(t->allocator->steps, (int64_t)nsteps)) t->out_of_memory = true;
}

static bool text_reserve(Text *t, size_t nbytes) {
  return !t->out_of_memory && text_grow(t, nbytes);
}

void text_add(Text *t, const char *bytes, size_t nbytes) {
  if (!text_reserve(t, nbytes)) return;
  memcpy(t->bytes + t->nbytes, bytes, nbytes);
  t->bytes[t->nbytes + nbytes] = 0;
  text_add_written(t, nbytes);
}

void text_add_string(Text *t, const char *string) {
  text_add(t, string, strlen(string));
}

// Most texts fit into the free capacity, so they are formatted once.
void text_format_list(Text *t, const char *format, va_list args) {
  va_list again;
  if (!text_reserve(t, 0)) return;
  va_copy(again, args);
  const size_t left = t->capacity - t->nbytes;
  const int length = vsnprintf(t->bytes + t->nbytes, left, format, args);
  const bool fits = length >= 0 && (size_t)length < left;
  if (!fits) t->bytes[t->nbytes] = 0;
  if (!fits && length >= 0 && text_grow(t, (size_t)length))
    vsnprintf(t->bytes + t->nbytes, (size_t)length + 1, format, again);
  va_end(again);
  if (length >= 0 && !t->out_of_memory) text_add_written(t, (size_t)length);
}

void text_format(Text *t, const char *format, ...) {
  va_list args;
  va_start(args, format);
  text_format_list(t, format, args);
  va_end(args);
}

void text_add_number(Text *t, double value, bool is_f32) {
  if (isnan(value)) {
    text_add_string(t, ".nan");
    return;
  }
  if (isinf(value)) {
    text_add_string(t, value > 0 ? ".inf" : "-.inf");
    return;
  }
  char digits[40];
  bool is_whole = fabs(value) < 1e15 && value == trunc(value);
  if (is_whole) snprintf(digits, sizeof digits, "%.0f", value);
  for (int precision = 1; precision <= 17 && !is_whole; precision++) {
    snprintf(digits, sizeof digits, "%.*g", precision, value);
    double back = strtod(digits, NULL);
    if (is_f32 ? (float)back == (float)value : back == value) break;
  }
  size_t ndigits = strspn(digits, "-0123456789"), point = strcspn(digits + ndigits, "e0123456789");
  text_add(t, digits, ndigits);
  if (point) text_add_string(t, "."); // the locale's decimal point may be another character, of several bytes
  text_add_string(t, digits + ndigits + point);
  if (!point && !digits[ndigits]) text_add_string(t, ".0");
}

const char *text_string(const Text *t) {
  return t->bytes ? t->bytes : "";
}

uint64_t bytes_hash(const void *bytes, size_t nbytes) {
  const unsigned char *at = bytes;
  uint64_t hash = 0xcbf29ce484222325U;
  for (size_t i = 0; i < nbytes; i++) hash = (hash ^ at[i]) * 0x100000001b3U;
  return hash;
}
