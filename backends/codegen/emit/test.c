// Prints a program that tests an emitted file on the machine on which it runs. Inputs come from a small generator,
// which the program contains too. Samples of the outputs are compared with the interpreter's, and all instruction sets
// must give the same bits, with all outputs or each alone.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/print/types.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SAMPLES = 64 };

// An element of an input: the number that fill_input in self_test.in computes. Each is exact in its type. Types of 32
// bits and more have 23 random bits, so that no quotient is as near to the middle of two quantised numbers as rounding
// errors are large.
static double generated_number(uint32_t input, uint32_t element, Type type, ValueRange range) {
  const uint32_t nbits = type == TYPE_F32 || type == TYPE_F64 ? 23 : 7;
  uint32_t h = input * 0x9E3779B9U + element;
  h = (h ^ h >> 16) * 0x7FEB352DU;
  h = (h ^ h >> 15) * 0x846CA68BU;
  const int k = (int)((h ^ h >> 16) >> (32 - nbits)), half = 1 << (nbits - 1);
  if (type == TYPE_BOOLEAN) return k & 1;
  if (type == TYPE_U8) return k;
  if (type == TYPE_U4) return k & 15;
  if (type == TYPE_S4) return (k & 15) - 8;
  if (TYPES_F8 & TYPE_BIT(type)) return ((k & 15) - 8) / 4.0;
  if (!type_is_float(type)) return k - 64;
  return range == RANGE_PROBABILITY ? (2 * k + 1) / (4.0 * half)
         : range == RANGE_POSITIVE  ? (half + k) / (1.0 * half)
                                    : (k - half) / (0.5 * half);
}

void self_test_input(Tensor *t, size_t input, ValueRange range) {
  int64_t nelems = tensor_nelems(t);
  for (int64_t i = 0; i < nelems; i++)
    type_store(t->type, t->data, (size_t)i, generated_number((uint32_t)input, (uint32_t)i, t->type, range));
}

// The text of self_test.in, in which @ stands for the prefix, and %NAME% for a part that depends on the graph.
extern const char self_test[];

static const char pool[] =
    "/* Runs blocks in descending order, to show that the order does not matter. Compile with -DPARALLEL_FOR=NAME to\n"
    "   run them by a function of your own. */\n"
    "#ifdef PARALLEL_FOR\n"
    "#ifdef __cplusplus\nextern \"C\"\n#endif\n"
    "@_parallel_for PARALLEL_FOR;\n"
    "#else\n#define PARALLEL_FOR backwards\n"
    "static void backwards(void *context, size_t nblocks, @_task *task, const void *args) {\n"
    "  (void)context;\n"
    "  while (nblocks-- > 0) task(args, nblocks);\n"
    "}\n#endif\n\n";

static size_t noutputs_of(const SelfTest *t) {
  return t->file->programs[0]->graph->noutputs;
}

// Adds a number in hexadecimal, as an integer and a power of two, which does not depend on the locale.
static void add_hex(Text *out, double x) {
  int exponent = 0;
  if (x != x) text_add_string(out, "(double)NAN");
  else if (x - x != 0) text_add_string(out, x > 0 ? "(double)INFINITY" : "-(double)INFINITY");
  else {
    long long mantissa = (long long)ldexp(frexp(fabs(x), &exponent), 53);
    exponent -= 53;
    while (mantissa && mantissa % 16 == 0) {
      mantissa /= 16;
      exponent += 4;
    }
    text_format(out, "%s0x%llxp%d", signbit(x) ? "-" : "", mantissa, mantissa ? exponent : 0);
  }
}

static void add_samples(const Tensor *e, Text *out) {
  int64_t n = tensor_nelems(e), count = n < MOST_SAMPLES ? n : MOST_SAMPLES;
  text_add_string(out, "    {");
  for (int64_t s = 0; s < count; s++) {
    int64_t i = n <= MOST_SAMPLES ? s : (int64_t)((uint64_t)s * (uint64_t)(n - 1) / (MOST_SAMPLES - 1));
    text_add_string(out, s % 6 ? ", " : s ? ",\n     " : "");
    add_hex(out, type_load(e->type, e->data, (size_t)i));
  }
  text_add_string(out, count ? "},\n" : "0},\n");
}

static void add_expected(const SelfTest *t, Text *out) {
  for (size_t c = 0; c < t->ncases; c++) {
    text_add_string(out, "  {\n");
    for (size_t o = 0; o < noutputs_of(t); o++) add_samples(&t->cases[c].expected[o], out);
    text_add_string(out, "    {0},\n  },\n");
  }
}

// Adds the extents of each case, or its numbers of elements; each row ends with a 0, because C has no empty arrays.
static void add_numbers(const SelfTest *t, size_t count, bool is_extents, Text *out) {
  for (size_t c = 0; c < t->ncases; c++) {
    text_add_string(out, c ? ", {" : "{");
    for (size_t i = 0; i < count; i++)
      text_format(out, "%lld, ", (long long)(is_extents ? t->cases[c].extents[i] : t->cases[c].nelems[i]));
    text_add_string(out, "0}");
  }
}

static double tolerance_of(const Value *v) {
  if (value_is_exact(v)) return 0;
  return type_is_float(v->type) ? type_tolerance(v->type) : 1; // one step of a quantised type
}

static void add_magnitudes(const SelfTest *t, Text *out) {
  for (size_t c = 0; c < t->ncases; c++) {
    text_add_string(out, c ? ", {" : "{");
    for (size_t o = 0; o < noutputs_of(t); o++) {
      text_add_number(out, (float)fmin(t->cases[c].magnitudes[o], FLT_MAX), true);
      text_add_string(out, ", ");
    }
    text_add_string(out, "0}");
  }
}

static void add_call(const SelfTest *t, Text *out) {
  const Graph *g = t->file->programs[0]->graph;
  text_format(out, "  (void)in;\n  (void)out;\n  (void)number;\n  return %s(", t->file->prefix);
  for (size_t i = 0; i < g->ndims; i++) text_format(out, "case_extents[number][%zu], ", i);
  for (size_t i = 0; i < g->ninputs; i++)
    text_format(out, "(const %s *)in[%zu], ", element_type(g->inputs[i]->type), i);
  for (size_t o = 0; o < g->noutputs; o++) text_format(out, "(%s *)out[%zu], ", element_type(g->outputs[o]->type), o);
  text_format(out, "workspace, nbytes, isa%s);\n", t->file->threads == EMIT_CALLBACK ? ", PARALLEL_FOR, NULL" : "");
}

// Prints the call of PREFIX_workspace_nbytes, which takes extents only if the size depends on them.
static void add_workspace_call(const SelfTest *t, Text *out) {
  text_format(out, "  (void)number;\n  return %s_workspace_nbytes(", t->file->prefix);
  for (size_t i = 0; t->file->has_open_workspace && i < t->file->programs[0]->graph->ndims; i++)
    text_format(out, "%scase_extents[number][%zu]", i ? ", " : "", i);
  text_add_string(out, ");\n");
}

// Prints calls with one extent out of range; the other extents are those of the first case.
static void add_ranges(const SelfTest *t, Text *out) {
  const Graph *g = t->file->programs[0]->graph;
  const char *p = t->file->prefix;
  for (size_t k = 0; k < g->ndims; k++)
    for (int is_large = 0; is_large < 2; is_large++) {
      text_format(out, "  expect(%s(", p);
      for (size_t i = 0; i < g->ndims; i++)
        if (i != k) text_format(out, "case_extents[0][%zu], ", i);
        else text_add_string(out, is_large ? "INT64_MAX, " : "-1, ");
      for (size_t i = 0; i < g->ninputs + g->noutputs; i++) text_add_string(out, "NULL, ");
      text_format(out, "NULL, 0, 0%s) == %s_EXTENT_OUT_OF_RANGE, \"an extent out of range\");\n",
                  t->file->threads == EMIT_CALLBACK ? ", PARALLEL_FOR, NULL" : "", p);
    }
}

static void add_prefixed(Text *out, const char *text, size_t nbytes, const char *prefix) {
  for (size_t i = 0; i < nbytes; i++) {
    if (text[i] == '@') text_add_string(out, prefix);
    else text_add(out, text + i, 1);
  }
}

// Adds the text for %NAME%.
static void add_part(const SelfTest *t, const char *name, Text *out) {
  size_t ninputs = t->file->programs[0]->graph->ninputs, ndims = t->file->programs[0]->graph->ndims;
  if (strncmp(name, "NINPUTS", 7) == 0) text_format(out, "%zu", ninputs);
  else if (strncmp(name, "NOUTPUTS", 8) == 0) text_format(out, "%zu", noutputs_of(t));
  else if (strncmp(name, "EXPECTED", 8) == 0) add_expected(t, out);
  else if (strncmp(name, "NDIMS", 5) == 0) text_format(out, "%zu", ndims);
  else if (strncmp(name, "NCASES", 6) == 0) text_format(out, "%zu", t->ncases);
  else if (strncmp(name, "EXTENTS", 7) == 0) add_numbers(t, ndims, true, out);
  else if (strncmp(name, "NELEMS", 6) == 0) add_numbers(t, ninputs + noutputs_of(t), false, out);
  else if (strncmp(name, "MAGNITUDES", 10) == 0) add_magnitudes(t, out);
  else if (strncmp(name, "RANGES", 6) == 0) add_ranges(t, out);
  else if (strncmp(name, "WANTED", 6) == 0) add_workspace_call(t, out);
  else if (strncmp(name, "CALL", 4) == 0) add_call(t, out);
  else if (strncmp(name, "VALUES", 6) == 0) {
    for (size_t i = 0; i < ninputs; i++) text_format(out, "%d, ", t->ranges[i]);
    text_add_string(out, "0");
  } else if (strncmp(name, "TOLERANCE", 9) == 0) {
    for (size_t o = 0; o < noutputs_of(t); o++) {
      text_add_number(out, tolerance_of(t->file->programs[0]->graph->outputs[o]), false);
      text_add_string(out, ", ");
    }
    text_add_string(out, "0");
  } else if (strncmp(name, "IN_PLACE", 8) == 0) {
    for (size_t o = 0; o < noutputs_of(t); o++)
      for (uint32_t i = 0; i < t->file->in_place[o].count; i++)
        text_format(out, "{%zu, %u}, ", o, t->file->in_place[o].inputs[i]);
    text_add_string(out, "{-1, -1}");
  } else if (strncmp(name, "POOL", 4) == 0 && t->file->threads == EMIT_CALLBACK) {
    add_prefixed(out, pool, strlen(pool), t->file->prefix);
  }
}

static bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool emit_self_test(const SelfTest *t, Text *out) {
  Text text;
  text_init(&text, out->allocator);
  text_format(&text,
              "/* Tests %s.c. Generated together with it by ngrad " NGRAD_VERSION
              " from the graph %s.\n\nSPDX-License-Identifier: MIT-0 */\n"
              "#include \"%s.h\"\n\n",
              t->file->file_stem, t->file->hash, t->file->file_stem);
  for (const char *at = self_test; *at;) {
    size_t plain = strcspn(at, "%");
    add_prefixed(&text, at, plain, t->file->prefix);
    at += plain;
    if (*at == '%' && is_upper(at[1])) {
      add_part(t, at + 1, &text);
      at = strchr(at + 1, '%') + 1;
    } else if (*at) {
      text_add(&text, at++, 1);
    }
  }
  return text_move_wrapped(out, &text);
}
