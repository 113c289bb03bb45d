// Makes a graph from a tree: the file as a whole, and all sections except nodes and constants.
#include "frontend/yaml/yaml.h"

#include "frontend/ngraph/ngraph.h"
#include "frontend/onnx/onnx.h"
#include "frontend/yaml/reader.h"
#include "ir/graph/verify.h"
#include "ir/operators/infer.h"
#include "ir/operators/range.h"

#include <string.h>

// A section that is a list; an empty one gives NULL.
static const Yaml *as_list(Reader *r, const Yaml *y, const char *what) {
  if (!y || yaml_is_null(y)) return NULL;
  if (y->kind == YAML_LIST) return y;
  reader_expected(r, y, "%s: expected a list", what);
  r->misses_names = true;
  return NULL;
}

static bool read_dim(Reader *r, const Yaml *key, const Yaml *y) {
  char subject[DESCRIPTION_BYTES];
  const char *name;
  if (!read_name(r, key, "dims", &name)) {
    r->misses_names = true;
    return true;
  }
  if (strcmp(name, "_") == 0) {
    reader_error(r, key, "dims: unexpected name _, it stands for an unknown extent");
    return true;
  }
  const Dim *earlier = names_find(&r->dims, name);
  yaml_quote(name, subject);
  if (earlier) {
    reader_error(r, key, "duplicate dim %s, first on line %u", subject, (unsigned)earlier->position.line);
    return true;
  }
  Scalar s = yaml_scalar(y);
  bool is_given = s.kind == SCALAR_INT && s.fits && s.integer >= 0 && s.integer < MAX_ELEMENTS;
  if (!is_given && !yaml_is_null(y))
    reader_expected(r, y, "dim %s: expected a number from 0 to 2^47 - 1 or ~", subject);
  Dim *dim = graph_add_dim(r->graph, name, is_given ? s.integer : -1);
  if (!dim || !names_set(&r->dims, dim->name, dim)) return error_out_of_memory(r->d);
  dim->position = reader_position(r, key);
  return true;
}

// A section that is a map. False only when out of memory, as for read_list.
static bool read_map(Reader *r, const Yaml *map, const char *what,
                     bool (*read_entry)(Reader *r, const Yaml *key, const Yaml *y)) {
  if (!map || yaml_is_null(map)) return true;
  if (map->kind != YAML_MAP) {
    reader_expected(r, map, "%s: expected a map", what);
    r->misses_names = true;
    return true;
  }
  for (uint32_t i = 0; i < map->count; i++)
    if (!read_entry(r, yaml_key(map, i), yaml_entry(map, i))) return false;
  return true;
}

static bool read_list(Reader *r, const Yaml *list, void (*read_item)(Reader *r, const Yaml *y)) {
  for (uint32_t i = 0; list && i < list->count; i++) {
    read_item(r, list->items[i]);
    if (r->d->out_of_memory) return false;
  }
  return true;
}

static void read_leaves(Reader *r, const Yaml *y) {
  if (!y || yaml_is_null(y)) return;
  const Scalar s = yaml_scalar(y);
  if (s.kind == SCALAR_INT && s.fits && s.integer >= 1 && s.integer <= MOST_LEAVES) r->graph->nleaves = s.integer;
  else reader_expected(r, y, "leaves: expected a number from 1 to %d", MOST_LEAVES);
}

static void read_input(Reader *r, const Yaml *y) {
  enum { NAME, TYPE, SHAPE, ORDER, NKEYS };
  static const char *const keys[] = {"name", "type", "shape", "order"};
  const Yaml *found[NKEYS];
  const char *name;
  char subject[DESCRIPTION_BYTES];
  Type type = TYPE_NONE;
  Shape shape = {.rank = -1};
  Layout layout = {{0}};
  read_fields(r, y, "an input", keys, NKEYS, found);
  if (!read_own_name(r, y, found[NAME], "an input", &name)) return;
  yaml_quote(name, subject);
  if (found[TYPE]) read_type(r, found[TYPE], name, &type);
  else reader_error(r, found[NAME], "input %s: missing type, as in type: f32", subject);
  if (found[SHAPE]) read_shape(r, found[SHAPE], name, &shape);
  if (found[ORDER]) read_layout(r, found[ORDER], name, &shape, &layout);
  Value *v = define_value(r, found[NAME], name, type, &shape, true);
  if (v) v->layout = layout;
}

static bool read_outputs(Reader *r, const Yaml *list, bool has_updates, const Yaml *root) {
  char text[DESCRIPTION_BYTES];
  if ((!list || list->count == 0) && !has_updates) {
    reader_error(r, list ? list : root, "no outputs, expected at least one, as in outputs: [y]");
    return true;
  }
  for (uint32_t i = 0; list && i < list->count; i++) {
    const Yaml *y = list->items[i];
    Value *v = use_value(r, y, "outputs");
    if (v && v->is_output) reader_error(r, y, "outputs: duplicate %s", yaml_quote(v->name, text));
    else if (v && !graph_add_output(r->graph, v)) return error_out_of_memory(r->d);
    if (r->d->out_of_memory) return false;
  }
  return true;
}

// The file's name without folder and suffix.
static const char *name_of_path(Arena *arena, const char *path) {
  const char *slash = strrchr(path, '/'), *from = slash ? slash + 1 : path, *dot = strrchr(from, '.');
  const char *name = arena_copy_text(arena, from, dot && dot > from ? (size_t)(dot - from) : strlen(from));
  bool is_ascii = true;
  for (const char *c = name; c && *c; c++) is_ascii &= (unsigned char)*c < 0x80; // a path need not be UTF-8
  return name && (name_mistake(name, strlen(name)) || !is_ascii || strcmp(name, "-") == 0) ? "graph" : name;
}

static bool read_graph_name(Reader *r, const Yaml *y) {
  const char *name = NULL;
  Arena *arena = &r->graph->arena;
  if (!y) name = name_of_path(arena, r->graph->source->name);
  else if (read_name(r, y, "name of the graph", &name)) name = arena_copy_text(arena, name, strlen(name));
  else return true;
  if (!name) return error_out_of_memory(r->d);
  r->graph->name = name;
  return true;
}

// Reports a wrong version or kind of file alone, because other errors may follow from it.
static bool check_format(Reader *r, const Yaml *root) {
  const Yaml *format = NULL;
  if (root->kind != YAML_MAP) return reader_expected(r, root, "expected a map that begins with format: ngrad/1");
  for (uint32_t i = 0; i < root->count && !format; i++)
    if (strcmp(yaml_key(root, i)->text, "format") == 0) format = yaml_entry(root, i);
  if (!format) return reader_error(r, root, "missing key format, expected format: ngrad/1");
  if (format->kind == YAML_SCALAR && strcmp(format->text, "ngrad/1") == 0) return true;
  return reader_expected(r, format, "format: expected ngrad/1");
}

static bool read_sections(Reader *r, const Yaml *root) {
  enum { FORMAT, NAME, DIMS, LEAVES, INPUTS, STATE, CONSTANTS, NODES, OUTPUTS, UPDATES, NKEYS };
  static const char *const keys[] = {"format", "name",      "dims",  "leaves",  "inputs",
                                     "state",  "constants", "nodes", "outputs", "updates"};
  const Yaml *found[NKEYS];
  if (!check_format(r, root)) return false;
  if (!read_fields(r, root, "the graph", keys, NKEYS, found)) r->misses_names = true;
  const Yaml *inputs = as_list(r, found[INPUTS], "inputs"), *states = as_list(r, found[STATE], "state"),
             *constants = as_list(r, found[CONSTANTS], "constants"), *nodes = as_list(r, found[NODES], "nodes"),
             *outputs = as_list(r, found[OUTPUTS], "outputs"), *updates = found[UPDATES];
  const bool has_outputs = outputs || !found[OUTPUTS] || yaml_is_null(found[OUTPUTS]);
  const bool has_updates = updates && !(updates->kind == YAML_MAP && updates->count == 0);
  read_leaves(r, found[LEAVES]);
  return read_graph_name(r, found[NAME]) && read_map(r, found[DIMS], "dims", read_dim) &&
         read_list(r, inputs, read_input) && read_list(r, states, read_state) &&
         read_list(r, constants, read_constant) && read_nodes(r, nodes) &&
         (!has_outputs || read_outputs(r, outputs, has_updates, root)) && read_map(r, updates, "updates", read_update);
}

// Sorts and infers the graph. It runs in spite of errors: nodes with errors are left out, and their outputs are
// unknown.
static bool finish(Reader *r, size_t errors_before) {
  Graph *g = r->graph;
  Diagnostics *d = r->d;
  for (size_t i = 0; i < g->nnodes; i++) node_set_defaults(g->nodes[i]);
  if (!graph_sort(g, d)) return false;
  for (size_t i = 0; i < g->nnodes; i++)
    if (g->nodes[i]->op->check) g->nodes[i]->op->check(g->nodes[i], d);
  if (!graph_infer(g, d) || d->nerrors != errors_before || d->out_of_memory || !graph_verify(g, d)) return false;
  for (size_t i = 0; i < g->nnodes; i++)
    if (g->nodes[i]->op->warn) g->nodes[i]->op->warn(g->nodes[i], d);
  graph_find_ranges(g);
  return true;
}

// Sorts messages by their place in the file, because sections are read in another order.
static void sort_messages(Diagnostics *d, size_t from) {
  for (size_t i = from + 1; i < d->count; i++) {
    Diagnostic item = d->items[i];
    size_t k = i;
    for (; k > from; k--) {
      const Diagnostic *before = &d->items[k - 1];
      if (before->line < item.line || (before->line == item.line && before->column <= item.column)) break;
      d->items[k] = *before;
    }
    d->items[k] = item;
  }
}

static bool attach_source(Graph *g, const char *path, const char *text, size_t nbytes) {
  Source *source = ARENA_NEW(&g->arena, Source);
  if (!source) return false;
  source->name = arena_copy_text(&g->arena, path, strlen(path));
  source->text = arena_copy_text(&g->arena, text, nbytes);
  source->nbytes = nbytes;
  g->source = source;
  return source->name && source->text;
}

// A byte order mark, as some editors write it.
static bool has_mark(const char *text, size_t nbytes) {
  return nbytes >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0;
}

// Recognises UTF-16 by its byte order mark, or by the zero byte of the first character, since graphs begin in ASCII.
static bool is_utf16(const char *text, size_t nbytes) {
  if (nbytes < 2) return false;
  if (memcmp(text, "\xFF\xFE", 2) == 0 || memcmp(text, "\xFE\xFF", 2) == 0) return true;
  const char character = text[0] ? text[0] : text[1];
  return !text[0] != !text[1] && (character == '\n' || (character >= ' ' && character <= '~'));
}

Graph *yaml_read(const Allocator *allocator, const char *path, const char *text, size_t nbytes, const char *folder,
                 Diagnostics *d) {
  return yaml_read_with(allocator, path, text, nbytes, &(ReadSettings){.folder = folder}, d);
}

Graph *yaml_read_with(const Allocator *allocator, const char *path, const char *text, size_t nbytes,
                      const ReadSettings *settings, Diagnostics *d) {
  const Bytes bytes = {(const uint8_t *)text, nbytes};
  if (is_onnx(bytes)) return onnx_read(allocator, path, bytes, settings, d);
  const Position file = {&(Source){.name = path}, 0, 0};
  if (nbytes > YAML_MAX_BYTES)
    return error_at(d, file, "too long, expected at most %d MiB", YAML_MAX_BYTES >> 20), NULL;
  if (settings->nconstants)
    return error_at(
               d, file,
               "constants are given to ONNX models only; here, the key constants has them: {name: ..., file: ...}"),
           NULL;
  if (is_utf16(text, nbytes)) return error_at(d, file, "expected a text in UTF-8, found UTF-16 or UTF-32"), NULL;
  if (has_mark(text, nbytes)) {
    text += 3;
    nbytes -= 3;
  }
  Graph *g = graph_new(allocator, "graph");
  if (!g || !attach_source(g, path, text, nbytes)) {
    error_out_of_memory(d);
    graph_free(g);
    return NULL;
  }
  Reader r = {.graph = g, .d = d, .folder = settings->folder};
  size_t count = d->count, errors = d->nerrors;
  arena_init(&r.scratch, allocator);
  names_init(&r.values, &r.scratch);
  names_init(&r.dims, &r.scratch);
  names_init(&r.files, &r.scratch);
  const Yaml *root = yaml_tree_read(g->source, &r.scratch, d);
  if (root && is_onednn(root)) root = translate_onednn(&r, root);
  const bool is_read =
      root && (is_ngraph(root) ? read_graph_name(&r, NULL) && ngraph_read(&r, root) : read_sections(&r, root));
  bool ok = is_read && finish(&r, errors) && d->nerrors == errors && !d->out_of_memory;
  sort_messages(d, count);
  arena_deinit(&r.scratch);
  if (ok) return g;
  graph_free(g);
  return NULL;
}
