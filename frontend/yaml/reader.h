// Functions shared by the parts of the graph reader. Internal to frontend/yaml*.c.
//
// An error is reported and reading continues: the affected type, shape or producer stays unknown in the graph, so that
// the rest is still checked and no error is reported twice. Functions that return false have reported the error. After
// out of memory, they may be called again without harm.
#ifndef NGRAD_FRONTEND_YAML_READER_H
#define NGRAD_FRONTEND_YAML_READER_H

#include "frontend/named_extent.h"
#include "frontend/names.h"
#include "frontend/yaml/tree.h"
#include "ir/graph/graph.h"

typedef struct Reader {
  Graph *graph;
  Diagnostics *d;
  const char *folder; // of constants' files; NULL: no folder
  Arena scratch;      // the tree and other memory that is freed after reading
  Names values, dims; // by name; items of the graph
  Names files;        // files of constants read so far, by "type:path"
  unsigned nsuggested;
  bool misses_names; // a definition could not be read; it may define unknown names, so they are not reported
} Reader;

static inline Position reader_position(const Reader *r, const Yaml *y) {
  return yaml_position(r->graph->source, y);
}

// Reports an error at y; false.
bool reader_error(const Reader *r, const Yaml *y, const char *format, ...) __attribute__((format(printf, 3, 4)));
// The same, ending in what y is: "..., found a list".
bool reader_expected(const Reader *r, const Yaml *y, const char *format, ...) __attribute__((format(printf, 3, 4)));

// Whether to search for the most similar word once more. The search is slow, and a file may have a million errors.
bool may_suggest(Reader *r);

// Finds the entries of a map by key: found[i] is the entry of keys[i], or NULL. False if `y` is no map, or has unknown
// or repeated keys; `found` is valid even then. `what` names the map in messages.
enum { MOST_KEYS = 16 };
bool read_fields(Reader *r, const Yaml *y, const char *what, const char *const *keys, size_t nkeys, const Yaml **found);

// The rule of names (frontend/yaml/yaml.h) that a name breaks; NULL: none.
const char *name_mistake(const char *name, size_t nbytes);

// A valid name. The text is in the tree.
bool read_name(Reader *r, const Yaml *y, const char *what, const char **name);

// The name of entry `y`, which is `given` (NULL: missing).
bool read_own_name(Reader *r, const Yaml *y, const Yaml *given, const char *what, const char **name);

// `what` names the thing with the type or the shape in messages. On false, the wrong parts are unknown.
bool read_type(Reader *r, const Yaml *y, const char *what, Type *type);
bool read_shape(Reader *r, const Yaml *y, const char *what, Shape *shape);

// The extent of a scalar that is the name of a dim or a formula (frontend/named_extent.h). Reports only that memory has
// run out. `unknown`: the name that no dim has, or the text.
NamedResult read_named_extent(Reader *r, const Yaml *y, Extent *e, char unknown[DESCRIPTION_BYTES]);

// The layout of a tensor. On an error, it is row-major.
bool read_layout(Reader *r, const Yaml *y, const char *what, const Shape *shape, Layout *layout);

// A new value, whose name must be new; NULL after a message.
Value *define_value(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, bool is_input);
Value *define_state(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, const Init *init);

// The value of that name. An unknown name is reported once, and a value is made up so that the rest can be checked.
// NULL: out of memory, or not a name.
Value *use_value(Reader *r, const Yaml *y, const char *what);

// Whether the tree is oneDNN Graph's JSON; and its translation to a tree of ngrad/1, in which every node has the
// position of its origin. NULL after a message.
bool is_onednn(const Yaml *root);
const Yaml *translate_onednn(Reader *r, const Yaml *root);

// The data of the constant or state `subject` from a .npy file. Sets unknown extents of the shape.
bool read_file(Reader *r, const Yaml *y, const char *subject, Type type, Shape *shape, Constant *constant);

// The items of sections.
void read_constant(Reader *r, const Yaml *y);
void read_state(Reader *r, const Yaml *y);
// These functions return false only when out of memory.
bool read_update(Reader *r, const Yaml *key, const Yaml *y);
bool read_nodes(Reader *r, const Yaml *list);

#endif
