// The tree of a YAML document, and the meaning of its scalars. Internal to frontend/yaml*.c.
//
// All limits of the file's structure are enforced while the tree is built. So code that walks the tree may recurse, and
// may treat an alias as if it were written out.
#ifndef NGRAD_FRONTEND_YAML_TREE_H
#define NGRAD_FRONTEND_YAML_TREE_H

#include "ir/support/diagnostics.h"

typedef enum YamlKind { YAML_SCALAR, YAML_LIST, YAML_MAP } YamlKind;

typedef struct Yaml Yaml;
struct Yaml {
  YamlKind kind;
  bool is_plain;  // a scalar that may be a number, boolean or null, depending on its text; otherwise a string
  uint8_t height; // of the subtree: 0 for a scalar
  uint32_t line, column;
  uint32_t weight; // number of nodes in the subtree with aliases written out; 0 while it is open
  uint32_t count;  // bytes of text, items of a list, entries of a map
  union {
    const char *text; // UTF-8 with a final zero, and no other zero
    Yaml **items;     // of a map: key, value, key, value; keys are scalars
  };
};

// The tree of the only document of a text, in the arena; NULL after a message.
Yaml *yaml_tree_read(const Source *source, Arena *arena, Diagnostics *d);

// The i-th key of a map, and its entry.
static inline const Yaml *yaml_key(const Yaml *map, size_t i) {
  return map->items[2 * i];
}

static inline const Yaml *yaml_entry(const Yaml *map, size_t i) {
  return map->items[2 * i + 1];
}

static inline Position yaml_position(const Source *source, const Yaml *y) {
  return (Position){source, y->line, y->column};
}

// The kind of a scalar in YAML 1.2's core schema.
typedef enum ScalarKind { SCALAR_STRING, SCALAR_NULL, SCALAR_BOOL, SCALAR_INT, SCALAR_FLOAT } ScalarKind;

typedef struct Scalar {
  ScalarKind kind;
  bool boolean;
  bool fits; // int: `integer` can hold it; float: it is not too large for a double
  int64_t integer;
  double number; // of an int or a float
} Scalar;

// Lists and maps give SCALAR_STRING; test them with is_scalar.
Scalar yaml_scalar(const Yaml *y);
bool yaml_is_null(const Yaml *y);

// Whether y is a string only because of its quotes: "3", "true", "~".
bool yaml_is_quoted_value(const Yaml *y);

// The number of a SCALAR_INT that may be 2^63 or more; false: it is negative, or 2^64 or more.
bool yaml_unsigned(const Yaml *y, uint64_t *integer);

// Describes a node for a message: "a list", "nothing", 1.5, x, the text "1.5". The result is in buffer
// or constant.
enum { DESCRIPTION_BYTES = 96 };
const char *yaml_describe(const Yaml *y, char buffer[DESCRIPTION_BYTES]);

// A string for a message: plain if it is a word, else in quotes; cut if long.
const char *yaml_quote(const char *text, char buffer[DESCRIPTION_BYTES]);

#endif
