// What the parts of the reader of oneDNN's JSON share. Internal to frontend/onednn.
#ifndef NGRAD_FRONTEND_ONEDNN_TRANSLATION_H
#define NGRAD_FRONTEND_ONEDNN_TRANSLATION_H

#include "frontend/yaml/reader.h"

typedef enum TensorKey { TENSOR_ID, DTYPE, SHAPE, STRIDE, LAYOUT_TYPE, PROPERTY_TYPE, NTENSOR_KEYS } TensorKey;

typedef struct Reference { // a scalar of the new tree that names a tensor as an operand
  Yaml *name;
  struct Reference *next;
} Reference;

typedef struct OneTensor OneTensor;
struct OneTensor {
  const Yaml *found[NTENSOR_KEYS]; // where it stood first
  const Yaml *name;                // "t12"
  const Yaml *declared;            // {name: t12, type: ..., shape: ..., order: ...}
  Reference *references;
  OneTensor *passed_on; // not NULL: made by an operator that was taken out, which leaves this tensor in its place
  bool is_made, is_used, is_end;
  bool is_removed_input; // of an operator that was taken out
};

typedef struct Removed { // an operator of kind undef
  const Yaml *at;
  const char *title;
  OneTensor **inputs, *output;
  uint32_t ninputs;
  struct Removed *next;
} Removed;

typedef struct Translation {
  Reader *r;
  Names tensors, operators; // by id
  OneTensor **order;        // in the file's order
  size_t ntensors, capacity;
  Removed *removed;
  bool failed; // an error was told
} Translation;

bool tell(Translation *t, const Yaml *at, const char *format, ...) __attribute__((format(printf, 3, 4))); // false

// Nodes of the new tree. NULL when out of memory, which is then told; all take NULL for a node.
Yaml *new_node(Translation *t, YamlKind kind, const Yaml *at, size_t nitems);
Yaml *new_scalar(Translation *t, const Yaml *at, const char *text);
void list_add(Yaml *list, const Yaml *item);                       // which has room
void map_add_entry(Yaml *map, const Yaml *key, const Yaml *entry); // which has room
void map_add(Translation *t, Yaml *map, const char *key, const Yaml *entry);

// Fields. The first nrequired keys of an object must be there.
bool take_fields(Translation *t, const Yaml *y, const char *what, const char *const *keys, size_t nkeys,
                 size_t nrequired, const Yaml **found);
bool take_id(Translation *t, const Yaml *y, const char *what);
bool take_list(Translation *t, const Yaml *y, const char *what);
bool take_word(Translation *t, const Yaml *y, const char *what, const char *const *words, size_t nwords);

// The tensor that an entry of an operator's inputs or outputs is; NULL after telling.
OneTensor *take_tensor(Translation *t, const Yaml *y);

// An operator's attrs as the attributes of ngrad/1; NULL: none, or after telling.
const Yaml *translate_attributes(Translation *t, const Yaml *y, const char *kind, const char *title);

#endif
