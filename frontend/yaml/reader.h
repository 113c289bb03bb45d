// What the parts of the graph reader share. Internal to frontend/yaml*.c.
//
// A mistake is told and then passed over: what it leaves unknown (a type, a shape, the producer of a value) stays
// unknown in the graph, so that everything else is still checked and nothing is told twice. Functions that return
// false have told why; after out of memory they may do so without harm as often as they like.
#ifndef NGRAD_FRONTEND_YAML_READER_H
#define NGRAD_FRONTEND_YAML_READER_H

#include "frontend/names.h"
#include "frontend/yaml/tree.h"
#include "ir/graph/graph.h"

typedef struct Reader {
  Graph *graph;
  Diagnostics *d;
  const char *folder; // of constants' files; NULL: none
  Arena scratch;      // the tree and everything else that ends with the reading
  Names values, dims; // by name, of the graph
  Names files;        // of constants, that were read: by "type:path"
  unsigned nsuggested;
  bool misses_names; // what should give a name could not be read: an unknown name may be that one, so is not told
} Reader;

static inline Position reader_position(const Reader *r, const Yaml *y) {
  return yaml_position(r->graph->source, y);
}

// Whether to look for the nearest word once more: it is slow, and a file may have a million mistakes.
bool may_suggest(Reader *r);

// The entries of a map by key: found[i] is what stands under keys[i], NULL when absent. False when it is no map or
// has other keys or one twice; what was found stands in `found` all the same. `what` is the map's name in messages.
enum { MOST_KEYS = 16 };
bool read_fields(Reader *r, const Yaml *y, const char *what, const char *const *keys, size_t nkeys, const Yaml **found);

// What a name breaks of the rules in frontend/yaml/yaml.h; NULL: nothing.
const char *name_mistake(const char *name, size_t nbytes);

// A name within the rules. The text is the tree's.
bool read_name(Reader *r, const Yaml *y, const char *what, const char **name);

// The name of an entry `y`, which `given` (NULL: nothing) should be.
bool read_own_name(Reader *r, const Yaml *y, const Yaml *given, const char *what, const char **name);

// `what` is what has the type or the shape. On false they are unknown as far as they are wrong.
bool read_type(Reader *r, const Yaml *y, const char *what, Type *type);
bool read_shape(Reader *r, const Yaml *y, const char *what, Shape *shape);

// The order of a tensor's axes in memory. What is wrong leaves it row-major.
bool read_order(Reader *r, const Yaml *y, const char *what, const Shape *shape, Order *order);

// A new value that no other has the name of; NULL after telling.
Value *define_value(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, bool is_input);
Value *define_state(Reader *r, const Yaml *at, const char *name, Type type, const Shape *shape, const Init *init);

// The value of that name. An unknown one is told once and made up, for the rest to be checked; NULL: no memory, or
// no name at all.
Value *use_value(Reader *r, const Yaml *y, const char *what);

// Whether the tree is oneDNN Graph's JSON, and what it is as a tree of ngrad/1: every node has the place of what it
// came from. NULL after telling.
bool is_onednn(const Yaml *root);
const Yaml *translate_onednn(Reader *r, const Yaml *root);

// The data of the constant or state `subject` from a .npy file. Fills unknown extents of the shape.
bool read_file(Reader *r, const Yaml *y, const char *subject, Type type, Shape *shape, Constant *constant);

// The sections. False only when out of memory.
bool read_constants(Reader *r, const Yaml *list);
bool read_states(Reader *r, const Yaml *list);
bool read_updates(Reader *r, const Yaml *map);
bool read_nodes(Reader *r, const Yaml *list);

#endif
