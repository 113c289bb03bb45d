// Mutations of ONNX models that know the format: they add, remove, repeat, rename and exchange fields of messages, put
// names and operators into texts and unusual numbers into integers, and then write all lengths again. So the result is
// a valid encoding, down to its innermost messages. One mutation in eight changes bytes.
#include "frontend/onnx/onnx.h"
#include "frontend/onnx/fields.h"

#include <stdlib.h>
#include <string.h>

size_t LLVMFuzzerMutate(uint8_t *data, size_t nbytes, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t most, unsigned seed);

typedef enum Kind {
  NONE,
  MODEL,
  OPSET,
  FUNCTION,
  GRAPH,
  NODE,
  ATTRIBUTE,
  TENSOR,
  ENTRY,
  INFO,
  TYPE,
  TYPE_OF_TENSOR,
  SHAPE,
  DIM,
  TEXT,  // a name, an operator, a word
  BYTES, // packed numbers
  NUMBER,
  FLOAT
} Kind;

static const struct Row {
  Kind in;
  uint32_t number;
  Kind is;
} rows[] = {
    {MODEL, MODEL_GRAPH, GRAPH},
    {MODEL, MODEL_OPSET, OPSET},
    {MODEL, MODEL_FUNCTION, FUNCTION},
    {MODEL, MODEL_PROPERTY, ENTRY},
    {OPSET, OPSET_DOMAIN, TEXT},
    {OPSET, OPSET_VERSION, NUMBER},
    {FUNCTION, FUNCTION_NAME, TEXT},
    {FUNCTION, FUNCTION_INPUT, TEXT},
    {FUNCTION, FUNCTION_OUTPUT, TEXT},
    {FUNCTION, FUNCTION_NODE, NODE},
    {FUNCTION, FUNCTION_OPSET, OPSET},
    {FUNCTION, FUNCTION_DOMAIN, TEXT},
    {GRAPH, GRAPH_NODE, NODE},
    {GRAPH, GRAPH_NAME, TEXT},
    {GRAPH, GRAPH_INITIALIZER, TENSOR},
    {GRAPH, GRAPH_INPUT, INFO},
    {GRAPH, GRAPH_OUTPUT, INFO},
    {GRAPH, GRAPH_VALUE_INFO, INFO},
    {NODE, NODE_INPUT, TEXT},
    {NODE, NODE_OUTPUT, TEXT},
    {NODE, NODE_NAME, TEXT},
    {NODE, NODE_OP, TEXT},
    {NODE, NODE_ATTRIBUTE, ATTRIBUTE},
    {NODE, NODE_DOMAIN, TEXT},
    {ATTRIBUTE, ATTRIBUTE_NAME, TEXT},
    {ATTRIBUTE, ATTRIBUTE_F, FLOAT},
    {ATTRIBUTE, ATTRIBUTE_I, NUMBER},
    {ATTRIBUTE, ATTRIBUTE_S, TEXT},
    {ATTRIBUTE, ATTRIBUTE_T, TENSOR},
    {ATTRIBUTE, ATTRIBUTE_G, GRAPH},
    {ATTRIBUTE, ATTRIBUTE_FLOATS, FLOAT},
    {ATTRIBUTE, ATTRIBUTE_INTS, NUMBER},
    {ATTRIBUTE, ATTRIBUTE_STRINGS, TEXT},
    {ATTRIBUTE, ATTRIBUTE_TYPE, NUMBER},
    {ATTRIBUTE, ATTRIBUTE_OF_CALLER, TEXT},
    {TENSOR, TENSOR_DIMS, NUMBER},
    {TENSOR, TENSOR_TYPE, NUMBER},
    {TENSOR, TENSOR_NAME, TEXT},
    {TENSOR, TENSOR_RAW, BYTES},
    {TENSOR, TENSOR_EXTERNAL, ENTRY},
    {TENSOR, TENSOR_LOCATION, NUMBER},
    {ENTRY, ENTRY_KEY, TEXT},
    {ENTRY, ENTRY_VALUE, TEXT},
    {INFO, INFO_NAME, TEXT},
    {INFO, INFO_TYPE, TYPE},
    {TYPE, TYPE_TENSOR, TYPE_OF_TENSOR},
    {TYPE_OF_TENSOR, TENSOR_TYPE_ELEMENT, NUMBER},
    {TYPE_OF_TENSOR, TENSOR_TYPE_SHAPE, SHAPE},
    {SHAPE, SHAPE_DIM, DIM},
    {DIM, DIM_VALUE, NUMBER},
    {DIM, DIM_NAME, TEXT},
};
enum { NROWS = sizeof rows / sizeof *rows, MOST_SPANS = 1 << 12, MOST_BYTES = 1 << 16, MOST_DEPTH = 24 };

typedef struct Buffer {
  uint8_t bytes[MOST_BYTES];
  size_t count;
  bool is_full;
} Buffer;

typedef struct Edit {
  uint64_t random;
  size_t nfields, target; // the field that changes, by its number in the order of the file
  Kind kinds[MOST_SPANS]; // of fields in the model: mutated fields get one of these kinds
  Bytes spans[MOST_SPANS];
  size_t nspans;
} Edit;

static unsigned next(Edit *e, unsigned n) {
  e->random = e->random * 6364136223846793005U + 1442695040888963407U;
  return (unsigned)(e->random >> 33) % n;
}

static Kind kind_of(Kind in, uint32_t number) {
  for (size_t i = 0; i < NROWS; i++)
    if (rows[i].in == in && rows[i].number == number) return rows[i].is;
  return NONE;
}

// A field of the message in which others are.
static struct Row random_row(Edit *e, Kind in) {
  size_t from = next(e, NROWS);
  for (size_t i = 0; i < NROWS; i++)
    if (rows[(from + i) % NROWS].in == in) return rows[(from + i) % NROWS];
  return (struct Row){in, 1, NONE};
}

static void put(Buffer *b, const void *bytes, size_t count) {
  if (count > MOST_BYTES - b->count) b->is_full = true;
  else if (count) memcpy(b->bytes + b->count, bytes, count);
  if (!b->is_full) b->count += count;
}

static void put_varint(Buffer *b, uint64_t number) {
  uint8_t byte;
  for (; number >= 128; number >>= 7) put(b, (byte = (uint8_t)(number | 128), &byte), 1);
  put(b, (byte = (uint8_t)number, &byte), 1);
}

static void put_bytes(Buffer *b, uint32_t number, Bytes bytes) {
  put_varint(b, (uint64_t)number << 3 | WIRE_BYTES);
  put_varint(b, bytes.count);
  put(b, bytes.at, bytes.count);
}

static uint64_t odd_number(Edit *e) {
  static const int64_t numbers[] = {0, 1, 2, 3, 4, 7, 8, 9, 16, 64, 1 << 16, -1, -2, INT32_MAX, INT64_MAX, INT64_MIN};
  return (uint64_t)numbers[next(e, sizeof numbers / sizeof *numbers)];
}

static Bytes word(Edit *e) {
  static const char *const words[] = {"axis",          "axes",
                                      "perm",          "to",
                                      "value",         "shape",
                                      "then_branch",   "else_branch",
                                      "alpha",         "pads",
                                      "kernel_shape",  "strides",
                                      "mode",          "cubic",
                                      "linear",        "reflect",
                                      "equation",      "ij,jk->ik",
                                      "...ii->...i",   "location",
                                      "offset",        "activations",
                                      "keepdims",      "direction",
                                      "bidirectional", "axis",
                                      "batch_dims",    "",
                                      "ngrad",         "N"};
  const size_t nwords = sizeof words / sizeof *words, i = next(e, (unsigned)(nwords + onnx_form_count()));
  const char *text = i < nwords ? words[i] : onnx_form_at(i - nwords).name;
  return (Bytes){(const uint8_t *)text, strlen(text)};
}

// Something of the kind that the model has elsewhere.
static Bytes other(Edit *e, Kind kind) {
  const size_t from = e->nspans ? next(e, (unsigned)e->nspans) : 0;
  for (size_t i = 0; i < e->nspans; i++)
    if (e->kinds[(from + i) % e->nspans] == kind) return e->spans[(from + i) % e->nspans];
  return (Bytes){NULL, 0};
}

static void put_new(Buffer *b, Edit *e, struct Row row) {
  uint8_t numbers[64];
  if (row.is == NUMBER) {
    put_varint(b, (uint64_t)row.number << 3);
    put_varint(b, odd_number(e));
  } else if (row.is == FLOAT) {
    const float number = (float)(int64_t)odd_number(e);
    put_varint(b, (uint64_t)row.number << 3 | WIRE_FIXED32);
    put(b, &number, sizeof number);
  } else if (row.is == TEXT) {
    put_bytes(b, row.number, next(e, 2) ? word(e) : other(e, TEXT));
  } else if (row.is == BYTES) {
    for (size_t i = 0; i < sizeof numbers; i++) numbers[i] = (uint8_t)(next(e, 4) ? 0 : odd_number(e));
    put_bytes(b, row.number, (Bytes){numbers, next(e, sizeof numbers)});
  } else {
    put_bytes(b, row.number, other(e, row.is));
  }
}

static void put_as_it_is(Buffer *b, const Field *f) {
  if (f->type == WIRE_BYTES) {
    put_bytes(b, f->number, f->bytes);
    return;
  }
  put_varint(b, (uint64_t)f->number << 3 | (uint64_t)f->type);
  if (f->type == WIRE_VARINT) put_varint(b, f->value);
  else put(b, &f->value, f->type == WIRE_FIXED64 ? 8 : 4); // little-endian
}

// Copies a message and changes one field; b NULL: counts the fields, and records their kinds.
static void rewrite(Buffer *b, Bytes message, Kind kind, Edit *e, int depth) {
  Field f;
  while (wire_next(&message, &f)) {
    const size_t own = e->nfields++;
    const Kind is = kind_of(kind, f.number);
    const bool is_message = is > NONE && is < TEXT && f.type == WIRE_BYTES && depth < MOST_DEPTH;
    if (!b && f.type == WIRE_BYTES && e->nspans < MOST_SPANS) {
      e->kinds[e->nspans] = is;
      e->spans[e->nspans++] = f.bytes;
    }
    if (b && own == e->target) {
      struct Row row = random_row(e, kind);
      switch (next(e, 6)) {
      case 0: continue; // left out
      case 1: put_as_it_is(b, &f); break;
      case 2: put_new(b, e, row); break;
      case 3: put_new(b, e, (struct Row){kind, f.number, is}); continue;
      case 4: f.number = row.number; break;
      default:
        if (is_message) put_new(b, e, random_row(e, is)); // beside it, for the message that is next
        else put_new(b, e, (struct Row){kind, f.number, is});
        break;
      }
    }
    if (!is_message) {
      if (b) put_as_it_is(b, &f);
      continue;
    }
    Buffer *inside = b ? malloc(sizeof *inside) : NULL;
    if (inside) inside->count = inside->is_full = 0;
    if (!b || inside) rewrite(inside, f.bytes, is, e, depth + 1);
    if (inside) put_bytes(b, f.number, (Bytes){inside->bytes, inside->count});
    if (inside) b->is_full |= inside->is_full;
    free(inside);
  }
  if (b) put(b, message.at, message.count);
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t nbytes, size_t most, unsigned seed) {
  static Edit e;
  static Buffer b;
  e.random = seed;
  e.nfields = e.nspans = 0;
  if (next(&e, 8) == 0) return LLVMFuzzerMutate(data, nbytes, most);
  rewrite(NULL, (Bytes){data, nbytes}, MODEL, &e, 0);
  if (e.nfields == 0) return LLVMFuzzerMutate(data, nbytes, most);
  e.target = next(&e, (unsigned)e.nfields);
  e.nfields = 0;
  b.count = b.is_full = 0;
  rewrite(&b, (Bytes){data, nbytes}, MODEL, &e, 0);
  if (b.is_full || b.count > most) return nbytes;
  memcpy(data, b.bytes, b.count);
  return b.count;
}
