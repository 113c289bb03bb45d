// Graph files written by tests: many small independent cases in one graph, so that one run of the compiler serves all.
//
// The name of a value is its case's prefix and its role: "ln 5x300 f32.dx". The end of the role determines the random
// elements: see tests/unit/ladder.h.
#ifndef NGRAD_TESTS_UNIT_GRAPH_TEXT_H
#define NGRAD_TESTS_UNIT_GRAPH_TEXT_H

#include "ir/graph/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct Extents {
  int rank;
  int64_t extent[MAX_RANK];
} Extents;

#define EXTENTS(...) ((Extents){sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
#define NO_EXTENTS ((Extents){0, {0}})

typedef struct GraphText {
  Arena arena; // names
  const char *prefix;
  Text inputs, constants, nodes, outputs;
} GraphText;

static inline void graph_text_init(GraphText *g) {
  arena_init(&g->arena, &system_allocator);
  g->prefix = "";
  text_init(&g->inputs, &system_allocator);
  text_init(&g->constants, &system_allocator);
  text_init(&g->nodes, &system_allocator);
  text_init(&g->outputs, &system_allocator);
}

static inline void graph_text_deinit(GraphText *g) {
  arena_deinit(&g->arena);
  text_deinit(&g->inputs);
  text_deinit(&g->constants);
  text_deinit(&g->nodes);
  text_deinit(&g->outputs);
}

// Starts a case.
static inline void graph_text_case(GraphText *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline void graph_text_case(GraphText *g, const char *format, ...) {
  char prefix[160];
  va_list args;
  va_start(args, format);
  vsnprintf(prefix, sizeof prefix, format, args);
  va_end(args);
  g->prefix = arena_format(&g->arena, "%s", prefix);
}

// The extents as 3x4x5, or with another separator.
static inline const char *extents_text(GraphText *g, Extents s, const char *separator) {
  const char *text = "";
  for (int i = 0; i < s.rank; i++)
    text = arena_format(&g->arena, "%s%s%lld", text, i ? separator : "", (long long)s.extent[i]);
  return text;
}

// Names come quoted, as the file has them.
static inline const char *graph_text_name(GraphText *g, const char *role) {
  return arena_format(&g->arena, "\"%s.%s\"", g->prefix, role);
}

static inline const char *graph_text_input(GraphText *g, const char *role, const char *type, Extents s) {
  const char *name = graph_text_name(g, role);
  text_format(&g->inputs, "  - {name: %s, type: %s, shape: [%s]}\n", name, type, extents_text(g, s, ", "));
  return name;
}

static inline const char *graph_text_splat(GraphText *g, const char *role, const char *type, Extents s,
                                           const char *number) {
  const char *name = graph_text_name(g, role);
  text_format(&g->constants, "  - {name: %s, type: %s, shape: [%s], value: %s}\n", name, type, extents_text(g, s, ", "),
              number);
  return name;
}

// A constant of different numbers that are exact in every signed floating-point type.
static inline const char *graph_text_values(GraphText *g, const char *role, const char *type, Extents s) {
  const char *name = graph_text_name(g, role);
  int64_t nelems = 1;
  for (int i = 0; i < s.rank; i++) nelems *= s.extent[i];
  text_format(&g->constants, "  - {name: %s, type: %s, shape: [%s], values: [", name, type, extents_text(g, s, ", "));
  for (int64_t i = 0; i < nelems; i++) {
    long long number = i * 7 % 11 - 5;
    text_format(&g->constants, "%s%lld%s", i ? ", " : "", number, type[0] == 's' ? "" : ".5");
  }
  text_add_string(&g->constants, "]}\n");
  return name;
}

// Makes a value an output of the graph; returns it.
static inline const char *graph_text_output(GraphText *g, const char *name) {
  text_format(&g->outputs, "%s%s", g->outputs.nbytes ? ", " : "", name);
  return name;
}

static inline const char *graph_text_result(GraphText *g, const char *role) {
  return graph_text_output(g, graph_text_name(g, role));
}

// A node: its operator, then "inputs: [...], outputs: [...], attributes: {...}".
static inline void graph_text_node(GraphText *g, const char *op, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline void graph_text_node(GraphText *g, const char *op, const char *format, ...) {
  char operands[4096];
  va_list args;
  va_start(args, format);
  vsnprintf(operands, sizeof operands, format, args);
  va_end(args);
  text_format(&g->nodes, "  - {op: %s, %s}\n", op, operands);
}

// The file. The caller frees it with text_deinit.
static inline Text graph_text_finish(const GraphText *g, const char *name) {
  Text t;
  text_init(&t, &system_allocator);
  text_format(&t, "format: ngrad/1\nname: \"%s\"\n", name);
  if (g->inputs.nbytes) text_format(&t, "inputs:\n%s", text_string(&g->inputs));
  if (g->constants.nbytes) text_format(&t, "constants:\n%s", text_string(&g->constants));
  text_format(&t, "nodes:%s\n%s", g->nodes.nbytes ? "" : " []", text_string(&g->nodes));
  text_format(&t, "outputs: [%s]\n", text_string(&g->outputs));
  if (t.out_of_memory) abort();
  return t;
}

#endif
