// The tree of a YAML document, and what its scalars mean. Internal to frontend/yaml*.c.
//
// All limits on the file's structure are enforced while the tree is built, so who walks it may recurse, and may
// treat an alias as if it were written out.
#ifndef NGRAD_FRONTEND_YAML_TREE_H
#define NGRAD_FRONTEND_YAML_TREE_H

#include "ir/support/diagnostics.h"

typedef enum YamlKind { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlKind;

typedef struct Yaml Yaml;
struct Yaml {
  YamlKind kind;
  bool is_plain;  // a scalar whose text decides what it is; else it is a string
  uint8_t height; // of the tree below: 0 for a scalar
  uint32_t line, column;
  uint32_t weight; // nodes it stands for, itself and aliases included; 0 while it is still open
  uint32_t count;  // bytes of text, items of a list, entries of a map
  union {
    const char *text; // UTF-8 with a final zero, and no other
    Yaml **items;     // of a map: key, value, key, value; keys are scalars
  };
};

// The tree of the only document in a text, in the arena; NULL after telling the error.
Yaml *yaml_tree_read(const Source *source, Arena *arena, Diagnostics *d);

// The i-th key of a map and what stands under it.
static inline const Yaml *yaml_key(const Yaml *map, size_t i) {
  return map->items[2 * i];
}

static inline const Yaml *yaml_entry(const Yaml *map, size_t i) {
  return map->items[2 * i + 1];
}

static inline Position yaml_position(const Source *source, const Yaml *y) {
  return (Position){source, y->line, y->column};
}

// What a scalar is by YAML 1.2's core schema.
typedef enum ScalarKind { SCALAR_STRING, SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT } ScalarKind;

typedef struct Scalar {
  ScalarKind kind;
  bool boolean;
  bool fits; // of an int: `integer` can hold it; of a float: it is not too large for a double
  int64_t integer;
  double number; // of an int or a float
} Scalar;

// Not for lists and maps: those are SCALAR_STRING, and is_scalar tells them apart.
Scalar yaml_scalar(const Yaml *y);
bool yaml_is_null(const Yaml *y);

// How a message calls what was found: "a list", "nothing", "the number 1.5", "x". The result is in buffer.
enum { DESCRIPTION_BYTES = 96 };
const char *yaml_describe(const Yaml *y, char buffer[DESCRIPTION_BYTES]);

// A string for a message: plain where it is a word, else in quotes; cut when long.
const char *yaml_quote(const char *text, char buffer[DESCRIPTION_BYTES]);

#endif
