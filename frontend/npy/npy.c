// Reads .npy files: the header's dictionary, then the elements, which are converted and transposed while reading.
#include "frontend/npy/npy.h"

#include "frontend/file.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_HEADER = 1 << 16, LONGEST_WORD = 32, BUFFER_BYTES = 1 << 13, DESCRIPTION_BYTES = 192 };

// The source of the bytes, and the position of its messages.
typedef struct Input {
  const char *prefix; // of messages
  Position at;
  Diagnostics *d;
  NpyStream stream;
  size_t left; // not read yet
} Input;

typedef struct Header {
  Type type;
  size_t nbytes_each;
  bool is_swapped; // has the other byte order
  bool is_fortran; // column-major
  Shape shape;
  char descr[LONGEST_WORD];
} Header;

static bool fail(const Input *in, const char *format, ...) __attribute__((format(printf, 2, 3)));

static bool fail(const Input *in, const char *format, ...) {
  char message[512];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  return error_at(in->d, in->at, "%s%s", in->prefix, message);
}

static bool take(Input *in, void *to, size_t nbytes) {
  char problem[PROBLEM_BYTES];
  if (nbytes > in->left) return fail(in, "damaged: the file ends early, after %zu bytes", in->stream.nbytes);
  in->left -= nbytes;
  return in->stream.read(in->stream.context, to, nbytes, problem) || fail(in, "%s", problem);
}

static bool read_memory(void *context, void *to, size_t nbytes, char problem[PROBLEM_BYTES]) {
  const char **next = context;
  *problem = 0;
  memcpy(to, *next, nbytes);
  *next += nbytes;
  return true;
}

static bool read_descriptor(void *context, void *to, size_t nbytes, char problem[PROBLEM_BYTES]) {
  const int *fd = context;
  for (size_t done = 0; done < nbytes;) {
    ssize_t n = read(*fd, (char *)to + done, nbytes - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) file_problem(errno, problem);
    if (n == 0) snprintf(problem, PROBLEM_BYTES, "damaged: the file became shorter while it was read");
    if (n <= 0) return false;
    done += (size_t)n;
  }
  return true;
}

// Parses the header's dictionary, such as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }

typedef struct Parser {
  const Input *in;
  const char *next; // ends in a zero
} Parser;

static void skip_space(Parser *p) {
  while (*p->next == ' ' || *p->next == '\t' || *p->next == '\n' || *p->next == '\r') p->next++;
}

static bool parse_mark(Parser *p, char mark) {
  skip_space(p);
  if (*p->next != mark) return false;
  p->next++;
  return true;
}

static bool tell_syntax(const Parser *p, const char *expected) {
  char found[16];
  size_t n = 0;
  for (; n < 12 && p->next[n] >= ' ' && p->next[n] < 0x7F; n++) found[n] = p->next[n];
  found[n] = 0;
  return fail(p->in, "damaged header: expected %s, found \"%s\"", expected, found);
}

static bool parse_string(Parser *p, char word[LONGEST_WORD]) {
  char quote = parse_mark(p, '\'') ? '\'' : parse_mark(p, '"') ? '"' : 0;
  size_t n = 0;
  while (quote && p->next[n] >= ' ' && p->next[n] < 0x7F && p->next[n] != quote && p->next[n] != '\\') n++;
  if (!quote || p->next[n] != quote || n >= LONGEST_WORD) return tell_syntax(p, "a short string");
  memcpy(word, p->next, n);
  word[n] = 0;
  p->next += n + 1;
  return true;
}

static bool parse_bool(Parser *p, bool *value) {
  skip_space(p);
  *value = strncmp(p->next, "True", 4) == 0;
  if (!*value && strncmp(p->next, "False", 5) != 0) return tell_syntax(p, "True or False");
  p->next += *value ? 4 : 5;
  return true;
}

static bool parse_extent(Parser *p, int64_t *value) {
  skip_space(p);
  const char *first = p->next;
  for (*value = 0; *p->next >= '0' && *p->next <= '9'; p->next++) {
    *value = *value * 10 + (*p->next - '0');
    if (*value >= MAX_ELEMENTS) return fail(p->in, "an extent of its shape is not below 2^47");
  }
  if (p->next == first) return tell_syntax(p, "an extent");
  if (*p->next == 'L') p->next++; // a long integer of Python 2: (4L, 3L)
  return true;
}

// A tuple: (), (2,), (2, 3)
static bool parse_shape(Parser *p, Shape *shape) {
  shape->rank = 0;
  if (!parse_mark(p, '(')) return tell_syntax(p, "a shape, as in (2, 3)");
  while (!parse_mark(p, ')')) {
    int64_t extent;
    if (shape->rank == MAX_RANK) return fail(p->in, "more than %d axes", MAX_RANK);
    if (!parse_extent(p, &extent)) return false;
    shape->extent[shape->rank++] = EXTENT(extent);
    bool has_comma = parse_mark(p, ',');
    if (!has_comma && (shape->rank == 1 || *p->next != ')')) return tell_syntax(p, ", after an extent");
  }
  return true;
}

static const struct {
  const char *code;
  Type type;
} codes[] = {
    {"f8", TYPE_F64}, {"f4", TYPE_F32}, {"f2", TYPE_F16},     {"V2", TYPE_BF16},    {"i8", TYPE_S64},
    {"i4", TYPE_S32}, {"i2", TYPE_S16}, {"i1", TYPE_S8},      {"u8", TYPE_U64},     {"u4", TYPE_U32},
    {"u2", TYPE_U16}, {"u1", TYPE_U8},  {"b1", TYPE_BOOLEAN}, {"V1", TYPE_F8_E4M3},
};
enum { NCODES = sizeof codes / sizeof *codes };

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER '<'
#define OTHER_ORDER '>'
#else
#define OWN_ORDER '>'
#define OTHER_ORDER '<'
#endif

// '<f4': byte order, kind, number of bytes
static bool parse_descr(Parser *p, Header *header) {
  if (parse_mark(p, '[')) return fail(p->in, "holds records of several fields, expected numbers");
  if (!parse_string(p, header->descr)) return false;
  const char *code = header->descr;
  if (*code && strchr("<>=|", *code)) code++;
  header->is_swapped = header->descr[0] == OTHER_ORDER;
  for (size_t i = 0; i < NCODES; i++) {
    if (strcmp(code, codes[i].code) != 0) continue;
    header->type = codes[i].type;
    header->nbytes_each = type_nbytes(header->type);
    return true;
  }
  return fail(p->in, "holds type \"%s\", expected f8, f4, f2, V2, i8, i4, i2, i1, u8, u4, u2, u1 or b1", header->descr);
}

static bool parse_entry(Parser *p, Header *header, unsigned *seen) {
  static const char *const keys[] = {"descr", "fortran_order", "shape"};
  char key[LONGEST_WORD];
  unsigned k = 0;
  if (!parse_string(p, key)) return false;
  while (k < 3 && strcmp(key, keys[k]) != 0) k++;
  if (k == 3) return fail(p->in, "damaged header: unknown key %s", key);
  if (*seen & 1U << k) return fail(p->in, "damaged header: duplicate key %s", key);
  *seen |= 1U << k;
  if (!parse_mark(p, ':')) return tell_syntax(p, ": after a key");
  return k == 0 ? parse_descr(p, header) : k == 1 ? parse_bool(p, &header->is_fortran) : parse_shape(p, &header->shape);
}

static bool parse_dictionary(Parser *p, Header *header) {
  unsigned seen = 0;
  if (!parse_mark(p, '{')) return tell_syntax(p, "{");
  while (!parse_mark(p, '}')) {
    if (!parse_entry(p, header, &seen)) return false;
    if (!parse_mark(p, ',') && *p->next != '}') return tell_syntax(p, ", or }");
  }
  skip_space(p);
  if (*p->next) return tell_syntax(p, "the header's end");
  return seen == 7 || fail(p->in, "damaged header: expected descr, fortran_order and shape");
}

// "f32 [2, 3]"
static const char *describe(Type type, const Shape *shape, char buffer[DESCRIPTION_BYTES]) {
  char text[DESCRIPTION_BYTES - 16];
  const Shape any = {.rank = -1};
  snprintf(buffer, DESCRIPTION_BYTES, "%s %s", type == TYPE_NONE ? "any type" : type_name(type),
           shape_string(shape ? shape : &any, text, sizeof text));
  return buffer;
}

static bool check_length(const Input *in, const Header *header) {
  char found[DESCRIPTION_BYTES];
  describe(header->type, &header->shape, found);
  int64_t nelems = shape_nelems(&header->shape);
  if (nelems < 0) return fail(in, "holds %s, expected fewer than 2^47 elements", found);
  uint64_t expected = (uint64_t)nelems * header->nbytes_each;
  if (expected == in->left) return true;
  return fail(in, "damaged: expected %" PRIu64 " bytes of data for %s, found %zu", expected, found, in->left);
}

// Reads a dictionary of `nbytes` bytes.
static bool read_dictionary(Input *in, size_t nbytes, Header *header, const Allocator *allocator) {
  char *text = allocator_alloc(allocator, nbytes + 1);
  if (!text) return error_out_of_memory(in->d);
  bool ok = take(in, text, nbytes);
  text[ok ? nbytes : 0] = 0;
  if (ok && strlen(text) < nbytes) ok = fail(in, "damaged header: unexpected zero byte");
  ok = ok && parse_dictionary(&(Parser){in, text}, header);
  allocator_free(allocator, text);
  return ok;
}

static bool read_header(Input *in, Header *header, const Allocator *allocator) {
  unsigned char start[12];
  *header = (Header){0};
  if (in->left < 10) return fail(in, "not a .npy file: expected at least 10 bytes, found %zu", in->left);
  if (!take(in, start, 10)) return false;
  if (memcmp(start, "\x93NUMPY", 6) != 0) return fail(in, "not a .npy file");
  if (start[6] < 1 || start[6] > 3 || start[7] != 0)
    return fail(in, ".npy format %u.%u, expected 1.0, 2.0 or 3.0", start[6], start[7]);
  if (start[6] > 1 && !take(in, start + 10, 2)) return false;
  size_t nbytes = start[8] | (size_t)start[9] << 8;
  if (start[6] > 1) nbytes |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  if (nbytes > LONGEST_HEADER)
    return fail(in, "damaged: a header of %zu bytes, expected at most %d", nbytes, LONGEST_HEADER);
  return read_dictionary(in, nbytes, header, allocator);
}

// Elements

bool npy_shape_fits(const Shape *wanted, const Shape *found) {
  if (!wanted || wanted->rank < 0) return true;
  bool ok = wanted->rank == found->rank;
  for (int i = 0; ok && i < wanted->rank; i++) {
    int64_t extent = extent_value(wanted->extent[i]);
    ok = extent < 0 || extent == found->extent[i].value;
  }
  return ok;
}

static bool type_fits(Type wanted, Type found) {
  return wanted == TYPE_NONE || wanted == found || (wanted == TYPE_BF16 && (found == TYPE_F32 || found == TYPE_F64)) ||
         (wanted == TYPE_S4 && found == TYPE_S8) || (wanted == TYPE_U4 && found == TYPE_U8);
}

const char *npy_conversion_hint(Type wanted) {
  static const char *const hints[TYPE_COUNT] = {
#define HINT(type) "; convert it, as by numpy's astype(\"" type "\")"
      [TYPE_F64] = HINT("float64"),  [TYPE_F32] = HINT("float32"), [TYPE_F16] = HINT("float16"),
      [TYPE_BF16] = HINT("float32"), [TYPE_S64] = HINT("int64"),   [TYPE_S32] = HINT("int32"),
      [TYPE_S8] = HINT("int8"),      [TYPE_U8] = HINT("uint8"),    [TYPE_BOOLEAN] = HINT("bool"),
      [TYPE_S16] = HINT("int16"),    [TYPE_U64] = HINT("uint64"),  [TYPE_U32] = HINT("uint32"),
      [TYPE_U16] = HINT("uint16"),   [TYPE_S4] = HINT("int8"),     [TYPE_U4] = HINT("uint8")};
#undef HINT
  return hints[wanted] ? hints[wanted] : "";
}

static void swap_bytes(char *bytes, size_t nelems, size_t nbytes_each) {
  for (char *end = bytes + nelems * nbytes_each; bytes < end; bytes += nbytes_each)
    for (size_t i = 0; i < nbytes_each / 2; i++) {
      char byte = bytes[i];
      bytes[i] = bytes[nbytes_each - 1 - i];
      bytes[nbytes_each - 1 - i] = byte;
    }
}

// A walk over a row-major tensor with the first axis fastest.
typedef struct Walk {
  int64_t at; // offset in elements
  int64_t index[MAX_RANK], stride[MAX_RANK];
} Walk;

static Walk walk_start(const Tensor *t) {
  Walk walk = {0};
  int64_t stride = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    walk.stride[i] = stride;
    stride *= t->extent[i];
  }
  return walk;
}

static void walk_step(Walk *walk, const Tensor *t) {
  for (int i = 0; i < t->rank; i++) {
    walk->at += walk->stride[i];
    if (++walk->index[i] < t->extent[i]) return;
    walk->at -= walk->index[i] * walk->stride[i];
    walk->index[i] = 0;
  }
}

static bool check_range(const Input *in, const Tensor *t, Type type, const char *from, size_t i, int64_t at) {
  double number = type_load(type, from, i);
  if (!type_is_packed(t->type) || type_round(t->type, number) == number) return true;
  return fail(in, "element %lld is %g, out of the range of %s", (long long)at, number, type_name(t->type));
}

static void store(const Tensor *t, int64_t to, Type type, const char *from, size_t i) {
  size_t nbytes = type_nbytes(type);
  if (type == t->type && type != TYPE_BOOLEAN) memcpy((char *)t->data + (size_t)to * nbytes, from + i * nbytes, nbytes);
  else type_store(t->type, t->data, (size_t)to, type_load(type, from, i));
}

static bool read_elements(Input *in, const Header *header, const Tensor *out) {
  char buffer[BUFFER_BYTES];
  assert(header->nbytes_each > 0); // else the type was refused
  int64_t nelems = tensor_nelems(out);
  bool is_same = header->type == out->type && header->type != TYPE_BOOLEAN && !header->is_swapped;
  if (is_same && (!header->is_fortran || out->rank < 2)) return take(in, out->data, tensor_nbytes(out));
  Walk walk = walk_start(out);
  for (int64_t done = 0; done < nelems;) {
    size_t n = BUFFER_BYTES / header->nbytes_each;
    if ((uint64_t)(nelems - done) < n) n = (size_t)(nelems - done);
    if (!take(in, buffer, n * header->nbytes_each)) return false;
    if (header->is_swapped) swap_bytes(buffer, n, header->nbytes_each);
    for (size_t i = 0; i < n; i++) {
      if (!check_range(in, out, header->type, buffer, i, done + (int64_t)i)) return false;
      store(out, header->is_fortran ? walk.at : done + (int64_t)i, header->type, buffer, i);
      walk_step(&walk, out);
    }
    done += (int64_t)n;
  }
  return true;
}

static bool read_tensor(Input *in, Type type, const Shape *shape, Tensor *out, const Allocator *allocator) {
  char wanted[DESCRIPTION_BYTES], found[DESCRIPTION_BYTES];
  Header header;
  *out = (Tensor){0};
  if (!read_header(in, &header, allocator) || !check_length(in, &header)) return false;
  if (header.type == TYPE_F8_E4M3 && type == TYPE_F8_E5M2) header.type = type; // both are V1
  if (header.type == TYPE_U16 && type == TYPE_BF16) header.type = type;        // its bits
  if (!type_fits(type, header.type) || !npy_shape_fits(shape, &header.shape))
    return fail(in, "expected %s, found %s%s", describe(type, shape, wanted),
                describe(header.type, &header.shape, found),
                type_fits(type, header.type) ? "" : npy_conversion_hint(type));
  Tensor t = {.type = type == TYPE_NONE ? header.type : type, .rank = header.shape.rank};
  for (int i = 0; i < t.rank; i++) t.extent[i] = header.shape.extent[i].value;
  if (!tensor_alloc(&t, allocator)) {
    fail(in, "no memory for %zu bytes of data, %s", tensor_nbytes(&t), describe(header.type, &header.shape, found));
    return error_out_of_memory(in->d);
  }
  if (read_elements(in, &header, &t)) {
    *out = t;
    return true;
  }
  tensor_free(&t, allocator);
  return false;
}

static bool read_file(const char *path, const char *prefix, Position at, Type type, const Shape *shape, Tensor *out,
                      const Allocator *allocator, Diagnostics *d) {
  NpyStream stream = {.read = read_descriptor};
  *out = (Tensor){0};
  int fd = file_open(path, &stream.nbytes, at, prefix, d);
  if (fd < 0) return false;
  stream.context = &fd;
  bool ok = npy_read_stream(&stream, prefix, at, type, shape, out, allocator, d);
  close(fd);
  return ok;
}

bool npy_read_stream(const NpyStream *stream, const char *prefix, Position at, Type type, const Shape *shape,
                     Tensor *out, const Allocator *allocator, Diagnostics *d) {
  Input in = {.prefix = prefix, .at = at, .d = d, .stream = *stream, .left = stream->nbytes};
  return read_tensor(&in, type, shape, out, allocator);
}

static Input input_of_bytes(const char *const *next, size_t nbytes, const Source *source, Diagnostics *d) {
  return (Input){"", {source, 0, 0}, d, {read_memory, (void *)next, nbytes}, nbytes};
}

bool npy_whole_nbytes(const char *name, const void *start, size_t nbytes, uint64_t *whole, const Allocator *allocator,
                      Diagnostics *d) {
  const Source source = {.name = name};
  const char *next = start;
  Input in = input_of_bytes(&next, nbytes, &source, d);
  Header header;
  if (!read_header(&in, &header, allocator)) return false;
  const int64_t nelems = shape_nelems(&header.shape);
  if (nelems < 0) return fail(&in, "expected fewer than 2^47 elements");
  *whole = (uint64_t)nelems * header.nbytes_each + (uint64_t)(next - (const char *)start);
  return true;
}

bool npy_view_bytes(const char *name, const void *bytes, size_t nbytes, Tensor *out, const Allocator *allocator,
                    Diagnostics *d) {
  const Source source = {.name = name};
  const char *next = bytes;
  Input in = input_of_bytes(&next, nbytes, &source, d);
  Header header;
  *out = (Tensor){0};
  if (!read_header(&in, &header, allocator) || !check_length(&in, &header)) return false;
  if (header.is_swapped || (header.is_fortran && header.shape.rank > 1) || header.type == TYPE_BOOLEAN) return true;
  assert(header.nbytes_each > 0); // else the type was refused
  if ((uintptr_t)next % header.nbytes_each) return true;
  *out = (Tensor){.type = header.type, .rank = header.shape.rank, .data = (void *)next};
  for (int i = 0; i < out->rank; i++) out->extent[i] = header.shape.extent[i].value;
  return true;
}

bool npy_read(const char *path, Type type, const Shape *shape, Tensor *out, const Allocator *allocator,
              Diagnostics *d) {
  const Source source = {.name = path};
  return read_file(path, "", (Position){&source, 0, 0}, type, shape, out, allocator, d);
}

bool npy_read_named(const char *path, const char *name, Position at, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d) {
  char prefix[DESCRIPTION_BYTES];
  snprintf(prefix, sizeof prefix, "%s: ", name);
  return read_file(path, prefix, at, type, shape, out, allocator, d);
}

bool npy_read_bytes(const char *name, const void *bytes, size_t nbytes, Type type, const Shape *shape, Tensor *out,
                    const Allocator *allocator, Diagnostics *d) {
  const Source source = {.name = name};
  const char *next = bytes;
  Input in = input_of_bytes(&next, nbytes, &source, d);
  return read_tensor(&in, type, shape, out, allocator);
}
