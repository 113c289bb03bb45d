// Prints a program that tests an emitted file on the machine on which it runs. Inputs come from a small generator that
// the program contains, too. Samples of outputs are compared with the interpreter's results. All instruction sets must
// give the same bits, whether a call computes all outputs or a single output.
#include "backends/codegen/codegen.h"
#include "backends/codegen/emit/emit.h"
#include "backends/codegen/emit/file_printer.h"
#include "backends/codegen/emit/template.h"
#include "ir/graph/init.h"
#include "ir/graph/open_dims.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { MOST_SAMPLES = 64 };

// An element of an input: the number that fill_input in self_test.in computes, exact in its type. Types of 32 bits and
// more have 23 random bits, so that no quotient is within rounding errors of the middle of two quantised numbers.
static double generated_number(uint32_t input, uint32_t element, Type type, ValueRange range, int64_t nindices,
                               int64_t first) {
  const uint32_t nbits = type == TYPE_F32 || type == TYPE_F64 ? 23 : 7;
  uint32_t h = input * 0x9E3779B9U + element;
  h = (h ^ h >> 16) * 0x7FEB352DU;
  h = (h ^ h >> 15) * 0x846CA68BU;
  const int k = (int)((h ^ h >> 16) >> (32 - nbits)), half = 1 << (nbits - 1);
  if (nindices > 0) return (double)(first + k % nindices);
  if (type == TYPE_BOOLEAN) return k & 1;
  if (type_least(type) == 0 && !type_is_packed(type)) return k; // unsigned
  if (type == TYPE_U4) return k & 15;
  if (type == TYPE_S4) return (k & 15) - 8;
  if (TYPES_F8 & TYPE_BIT(type)) return ((k & 15) - 8) / 4.0;
  if (!type_is_float(type)) return range == RANGE_POSITIVE ? k % 100 + 1 : k - 64;
  return range == RANGE_PROBABILITY ? (2 * k + 1) / (4.0 * half)
         : range == RANGE_POSITIVE  ? (half + k) / (1.0 * half)
                                    : (k - half) / (0.5 * half);
}

void self_test_input(Tensor *t, size_t input, ValueRange range, int64_t nindices, int64_t first) {
  int64_t nelems = tensor_nelems(t);
  for (int64_t i = 0; i < nelems; i++)
    type_store(t->type, t->data, (size_t)i,
               generated_number((uint32_t)input, (uint32_t)i, t->type, range, nindices, first));
}

// The texts of self_test.in and state_test.in: @ stands for the prefix, %NAME% for a part that depends on the graph.
extern const char self_test[], state_test[];

static const EmittedFunction *function_of(const SelfTest *t) {
  return &t->file->functions[t->function];
}

static const Graph *graph_of(const SelfTest *t) {
  return emitted_graph(function_of(t));
}

static size_t noutputs_of(const SelfTest *t) {
  return graph_of(t)->noutputs;
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

static void add_expected(const SelfTest *t, const SelfTestCase *c, Text *out) {
  text_add_string(out, "  {\n");
  for (size_t o = 0; o < noutputs_of(t); o++) add_samples(&c->expected[o], out);
  text_add_string(out, "    {0},\n  },\n");
}

// Whether the graph's input is a state that is a constant of the source, which a call does not take.
static bool is_stored(const EmittedFunction *f, size_t input) {
  const size_t first = ninputs_given(emitted_graph(f));
  return input >= first && f->is_stored[input - first];
}

static size_t count_inputs(const SelfTest *t) {
  size_t count = 0;
  for (size_t i = 0; i < graph_of(t)->ninputs; i++) count += !is_stored(function_of(t), i);
  return count;
}

// Adds the row of a case, which ends with a 0, because C has no empty arrays.
static void add_numbers(const SelfTest *t, const SelfTestCase *c, const int64_t *numbers, size_t count, Text *out) {
  text_add_string(out, c > t->cases ? ", {" : "{");
  for (size_t i = 0; i < count; i++) text_format(out, "%lld, ", (long long)numbers[i]);
  text_add_string(out, "0}");
}

// The same for numbers of inputs and then of `nothers` others.
static void add_tensors(const SelfTest *t, const SelfTestCase *c, const int64_t *numbers, size_t nothers, Text *out) {
  const size_t ninputs = graph_of(t)->ninputs;
  text_add_string(out, c > t->cases ? ", {" : "{");
  for (size_t i = 0; i < ninputs + nothers; i++)
    if (i >= ninputs || !is_stored(function_of(t), i)) text_format(out, "%lld, ", (long long)numbers[i]);
  text_add_string(out, "0}");
}

static double tolerance_of(const Value *v) {
  if (value_is_exact(v)) return 0;
  return type_is_float(v->type) ? type_tolerance(v->type) : 1; // one step of a quantised type
}

static void add_magnitudes(const SelfTest *t, const SelfTestCase *c, Text *out) {
  text_add_string(out, c > t->cases ? ", {" : "{");
  for (size_t o = 0; o < noutputs_of(t); o++) {
    text_add_number(out, (float)fmin(c->magnitudes[o], FLT_MAX), true);
    text_add_string(out, ", ");
  }
  text_add_string(out, "0}");
}

// Adds what the template names of each case.
static void add_case_part(const SelfTest *t, const char *name, Text *out) {
  for (const SelfTestCase *c = t->cases; c < t->cases + t->ncases; c++)
    if (is_part(name, "EXPECTED")) add_expected(t, c, out);
    else if (is_part(name, "EXTENTS")) add_numbers(t, c, c->extents, graph_narguments(graph_of(t)), out);
    else if (is_part(name, "NELEMS")) add_tensors(t, c, c->nelems, noutputs_of(t), out);
    else if (is_part(name, "INDICES")) add_tensors(t, c, c->nindices, 0, out);
    else if (is_part(name, "FIRST")) add_tensors(t, c, c->first_index, 0, out);
    else if (is_part(name, "CHECKED")) add_tensors(t, c, c->checked, 0, out);
    else if (is_part(name, "MAGNITUDES")) add_magnitudes(t, c, out);
}

// States

// The index of a state of the function's graph among the file's states in blocks, which are the first graph's.
static size_t file_state(const SelfTest *t, size_t state) {
  const EmittedFunction *first = &t->file->functions[0];
  const Graph *g = graph_of(t), *of_file = emitted_graph(first);
  const char *name = graph_state(g, state)->name;
  size_t index = 0;
  for (size_t i = 0; i + 1 < of_file->nstates && strcmp(graph_state(of_file, i)->name, name) != 0; i++)
    index += !first->is_stored[i];
  return index;
}

// The hash of a state's first value.
static uint64_t first_hash(const Graph *g, size_t state, Text *out) {
  Tensor t = tensor_like(g->inputs[g->states[state].input]);
  const size_t nbytes = tensor_nbytes(&t);
  t.data = allocator_alloc(out->allocator, nbytes + 1);
  out->out_of_memory |= !t.data;
  if (!t.data) return 0;
  init_fill(g, state, 7, &t);
  const uint64_t hash = bytes_hash(t.data, nbytes);
  allocator_free(out->allocator, t.data);
  return hash;
}

static void add_test_of_states(const SelfTest *t, const char *name, Text *out) {
  const Graph *g = graph_of(t), *first = emitted_graph(&t->file->functions[0]);
  const char *before = "";
  for (size_t i = 0; i < g->nstates; i++) {
    if (function_of(t)->is_stored[i]) continue;
    if (is_part(name, "STATE_INDEX")) text_format(out, "%s%zu", before, file_state(t, i));
    else if (is_part(name, "STATE_OUTPUT")) text_format(out, "%s%d", before, (int)g->states[i].output);
    before = ", ";
  }
  before = "";
  for (size_t i = 0; i < first->nstates && is_part(name, "FIRST_HASH"); i++) {
    if (t->file->functions[0].is_stored[i]) continue;
    text_format(out, "%s0x%llXU", before, (unsigned long long)first_hash(first, i, out));
    before = ", ";
  }
}

// Adds the arguments of a call, up to the blocks of states.
static void add_arguments(const SelfTest *t, Text *out) {
  const Graph *g = graph_of(t);
  for (size_t i = 0; i < graph_narguments(g); i++) text_format(out, "case_extents[number][%zu], ", i);
  for (size_t i = 0; i < ninputs_given(g); i++)
    text_format(out, "(const %s *)in[%zu], ", element_types[g->inputs[i]->type].name, i);
  for (size_t o = 0; o < noutputs_given(g); o++)
    text_format(out, "(%s *)out[%zu], ", element_types[g->outputs[o]->type].name, o);
  for (int b = 0; b < MOST_BLOCKS; b++)
    if (function_of(t)->uses_block[b]) text_format(out, "blocks[%d], ", b);
}

static void add_case_extents(const SelfTest *t, Text *out) {
  for (size_t i = 0; i < graph_narguments(graph_of(t)); i++)
    text_format(out, "%scase_extents[number][%zu]", i ? ", " : "", i);
}

// Prints calls with one extent out of range; the other extents are those of the first case.
static void add_ranges(const SelfTest *t, Text *out) {
  const Graph *g = graph_of(t);
  const char *p = t->file->prefix;
  const bool *uses_block = function_of(t)->uses_block;
  const size_t nblocks = (size_t)uses_block[0] + (size_t)uses_block[1];
  for (size_t k = 0; k < graph_narguments(g); k++)
    for (int is_large = 0; is_large < 2; is_large++) {
      text_format(out, "  expect(%s(", function_of(t)->name);
      for (size_t i = 0; i < graph_narguments(g); i++)
        if (i != k) text_format(out, "case_extents[0][%zu], ", i);
        else text_add_string(out, is_large ? "INT64_MAX, " : "-1, ");
      for (size_t i = 0; i < ninputs_given(g) + noutputs_given(g) + nblocks; i++) text_add_string(out, "NULL, ");
      text_format(out, "NULL, 0, 0%s) == %s_EXTENT_OUT_OF_RANGE, \"an extent out of range\");\n",
                  t->file->threads == EMIT_CALLBACK ? ", PARALLEL_FOR, NULL" : "", p);
    }
}

static void print_text(const SelfTest *t, const char *text, Text *out);

// Adds the text for %NAME%.
static void add_part(const void *context, const char *name, Text *out) {
  const SelfTest *t = context;
  size_t ninputs = graph_of(t)->ninputs, ndims = graph_narguments(graph_of(t));
  if (is_part(name, "NINPUTS")) text_format(out, "%zu", count_inputs(t));
  else if (is_part(name, "NOUTPUTS")) text_format(out, "%zu", noutputs_of(t));
  else if (is_part(name, "NGRAPHSTATES")) text_format(out, "%zu", count_inputs(t) - ninputs_given(graph_of(t)));
  else if (is_part(name, "NUPDATES")) text_format(out, "%zu", graph_of(t)->nupdates);
  else if (is_part(name, "FUNCTION")) text_add_string(out, function_of(t)->name);
  else if (is_part(name, "SECOND")) text_add_string(out, t->file->functions[1].name);
  else if (is_part(name, "STEM")) text_add_string(out, t->file->file_stem);
  else if (is_part(name, "NDIMS")) text_format(out, "%zu", ndims);
  else if (is_part(name, "NCASES")) text_format(out, "%zu", t->ncases);
  else if (is_part(name, "RANGES")) add_ranges(t, out);
  else if (is_part(name, "CASE_EXTENTS")) add_case_extents(t, out);
  else if (is_part(name, "ARGUMENTS")) add_arguments(t, out);
  else if (is_part(name, "STATE_TEST")) print_text(t, state_test, out);
  else if (is_part(name, "VALUES")) {
    for (size_t i = 0; i < ninputs; i++)
      if (!is_stored(function_of(t), i)) text_format(out, "%d, ", t->ranges[i]);
    text_add_string(out, "0");
  } else if (is_part(name, "TOLERANCE")) {
    for (size_t o = 0; o < noutputs_of(t); o++) {
      text_add_number(out, tolerance_of(graph_of(t)->outputs[o]), false);
      text_add_string(out, ", ");
    }
    text_add_string(out, "0");
  } else if (is_part(name, "IN_PLACE")) {
    for (size_t o = 0; o < noutputs_of(t); o++)
      for (uint32_t i = 0; i < function_of(t)->in_place[o].count; i++)
        text_format(out, "{%zu, %u}, ", o, function_of(t)->in_place[o].inputs[i]);
    text_add_string(out, "{-1, -1}");
  } else {
    add_case_part(t, name, out);
    add_test_of_states(t, name, out);
  }
}

static void print_text(const SelfTest *t, const char *text, Text *out) {
  const TemplateFact facts[] = {
      {"CALLBACK", t->file->threads == EMIT_CALLBACK},
      {"STATES", count_inputs(t) > ninputs_given(graph_of(t))},
      {"OPTIMIZER", t->file->nblocks > 1},
      {"STAGES", function_of(t)->stages},
      {"OPEN", function_of(t)->has_open_workspace},
      {"FIRST", t->function == 0},
      {"SECOND", t->function > 0},
      {"PAIR", t->function == 0 && t->file->nfunctions > 1},
      {NULL, false},
  };
  print_template(&(Template){text, t->file->prefix, add_part, t, facts}, out);
}

bool emit_self_test(const SelfTest *t, Text *out) {
  Text text;
  text_init(&text, out->allocator);
  text_format(&text,
              "/* Tests %s.c. Generated together with it by ngrad " NGRAD_VERSION
              " from the graph %s.\n\nSPDX-License-Identifier: MIT-0 */\n"
              "#include \"%s.h\"\n\n",
              t->file->file_stem, function_of(t)->hash, t->file->file_stem);
  print_text(t, self_test, &text);
  return text_move_wrapped(out, &text);
}
