// nGraph's JSON: tests/fuzz/graph.c, with a mutator that keeps most files in the format. It knows strings, numbers and
// the objects of operators: it exchanges, copies and removes whole tokens, so that most mutated files reach the
// translators. Every eighth file is libFuzzer's, any bytes at all.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t nbytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t most, unsigned seed);

typedef struct Span {
  size_t begin, end;
} Span;

enum { MOST_SPANS = 4096, MOST_DEPTH = 64 };

typedef enum SpanKind { STRINGS, NUMBERS, OBJECTS, NSPAN_KINDS } SpanKind;

typedef struct Spans {
  Span items[NSPAN_KINDS][MOST_SPANS];
  size_t count[NSPAN_KINDS];
} Spans;

static uint32_t next_random(uint32_t *state) {
  *state = *state * 1664525U + 1013904223U;
  return *state >> 8;
}

static void add_span(Spans *s, SpanKind kind, size_t begin, size_t end) {
  if (s->count[kind] < MOST_SPANS) s->items[kind][s->count[kind]++] = (Span){begin, end};
}

// Strings and numbers, and lists and objects with all that is in them.
static void find_spans(const uint8_t *data, size_t nbytes, Spans *s) {
  size_t open[MOST_DEPTH], depth = 0;
  memset(s->count, 0, sizeof s->count);
  for (size_t i = 0; i < nbytes; i++) {
    const size_t begin = i;
    if (data[i] == '"') {
      while (++i < nbytes && data[i] != '"') continue;
      add_span(s, STRINGS, begin, i < nbytes ? i + 1 : nbytes);
    } else if ((data[i] >= '0' && data[i] <= '9') || data[i] == '-') {
      while (i + 1 < nbytes && data[i + 1] && strchr("0123456789.e-+", data[i + 1])) i++;
      add_span(s, NUMBERS, begin, i + 1);
    } else if (data[i] == '{' || data[i] == '[') {
      if (depth < MOST_DEPTH) open[depth++] = i;
    } else if ((data[i] == '}' || data[i] == ']') && depth) {
      add_span(s, OBJECTS, open[--depth], i + 1);
    }
  }
}

// Replaces a span by `count` bytes; returns the new length, or the old length if the buffer is too small.
static size_t put(uint8_t *data, size_t nbytes, size_t most, Span at, const uint8_t *bytes, size_t count) {
  const size_t length = nbytes - (at.end - at.begin) + count;
  if (length > most) return nbytes;
  memmove(data + at.begin + count, data + at.end, nbytes - at.end);
  memcpy(data + at.begin, bytes, count);
  return length;
}

static size_t put_text(uint8_t *data, size_t nbytes, size_t most, Span at, const char *text) {
  return put(data, nbytes, most, at, (const uint8_t *)text, strlen(text));
}

static size_t mutate_once(uint8_t *data, size_t nbytes, size_t most, uint32_t *state) {
  static const char *const numbers[] = {
      "0",     "1",  "2", "3", "-1", "7", "8", "64", "4096", "2147483648", "140737488355327", "9223372036854775807",
      "1e300", "0.5"};
  static const char *const words[] = {
#define OP(name) "\"" name "\""
      OP("Add"),
      OP("Broadcast"),
      OP("Reshape"),
      OP("Slice"),
      OP("ReplaceSlice"),
      OP("Pad"),
      OP("Concat"),
      OP("Dot"),
      OP("Sum"),
      OP("Convolution"),
      OP("ConvolutionBackpropData"),
      OP("AvgPool"),
      OP("MaxPoolBackprop"),
      OP("OneHot"),
      OP("GetOutputElement"),
      OP("BatchNormTraining"),
      OP("BatchNormTrainingBackprop"),
      OP("Select"),
      OP("Convert"),
      OP("Reverse"),
      OP("Softmax"),
      OP("Product"),
      OP("Divide"),
      OP("float"),
      OP("double"),
      OP("int64_t"),
      OP("int32_t"),
      OP("char"),
      OP("int8_t"),
      OP("axes"),
      OP("shape"),
      OP("padding_below"),
      OP("padding_interior"),
      OP("strides"),
      OP("reduction_axes_count"),
      OP("data_dilation_strides"),
      OP("auto_broadcast")};
#undef OP
  static Spans spans;
  find_spans(data, nbytes, &spans);
  const SpanKind kind = (SpanKind)(next_random(state) % NSPAN_KINDS);
  if (!spans.count[kind]) return nbytes;
  const Span at = spans.items[kind][next_random(state) % spans.count[kind]],
             other = spans.items[kind][next_random(state) % spans.count[kind]];
  if (kind == NUMBERS && next_random(state) % 2)
    return put_text(data, nbytes, most, at, numbers[next_random(state) % (sizeof numbers / sizeof *numbers)]);
  if (kind == STRINGS && next_random(state) % 3 == 0)
    return put_text(data, nbytes, most, at, words[next_random(state) % (sizeof words / sizeof *words)]);
  if (kind == OBJECTS && next_random(state) % 4 == 0) return put_text(data, nbytes, most, at, "[]");
  uint8_t *copy = malloc(other.end - other.begin + 1);
  if (!copy) return nbytes;
  size_t count = other.end - other.begin;
  memcpy(copy, data + other.begin, count);
  Span place = at;
  if (kind == OBJECTS && next_random(state) % 3 == 0) { // adds an item to a list
    place.end = place.begin;
    copy[count++] = ',';
  }
  nbytes = put(data, nbytes, most, place, copy, count);
  free(copy);
  return nbytes;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t most, unsigned seed) {
  uint32_t state = seed;
  if (next_random(&state) % 8 == 0) return LLVMFuzzerMutate(data, nbytes, most);
  for (uint32_t n = 1 + next_random(&state) % 4; n > 0; n--) nbytes = mutate_once(data, nbytes, most, &state);
  return nbytes;
}
