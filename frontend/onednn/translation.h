// Functions shared by the parts of the reader of oneDNN's JSON. Internal to frontend/onednn.
#ifndef NGRAD_FRONTEND_ONEDNN_TRANSLATION_H
#define NGRAD_FRONTEND_ONEDNN_TRANSLATION_H

#include "frontend/yaml/reader.h"

typedef enum TensorKey { TENSOR_ID, DTYPE, SHAPE, STRIDE, LAYOUT_TYPE, PROPERTY_TYPE, NTENSOR_KEYS } TensorKey;

typedef struct Reference { // a scalar of the new tree that names a tensor as operand
  Yaml *name;
  struct Reference *next;
} Reference;

typedef struct OneTensor OneTensor;
struct OneTensor {
  const Yaml *found[NTENSOR_KEYS]; // of the first occurrence
  const Yaml *name;                // "t12"
  const Yaml *declared;            // {name: t12, type: ..., shape: ..., order: ...}
  Reference *references;
  OneTensor *passed_on; // the tensor that replaces this one, whose operator was removed; NULL: none
  bool is_made, is_used, is_end;
  bool is_removed_input; // input of an operator that was removed
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
  size_t nerrors; // before the translation
} Translation;

// Nodes of the new tree. NULL after reporting out of memory; all functions accept NULL as a node.
Yaml *new_node(Translation *t, YamlKind kind, const Yaml *at, size_t nitems);
Yaml *new_scalar(Translation *t, const Yaml *at, const char *text);
void list_add(Yaml *list, const Yaml *item);                       // the list has memory for it
void map_add_entry(Yaml *map, const Yaml *key, const Yaml *entry); // the map has memory for it
void map_add(Translation *t, Yaml *map, const char *key, const Yaml *entry);

// The fields of an object. The first nrequired keys must be present.
bool take_fields(Translation *t, const Yaml *y, const char *what, const char *const *keys, size_t nkeys,
                 size_t nrequired, const Yaml **found);
bool take_id(Translation *t, const Yaml *y, const char *what);
bool take_list(Translation *t, const Yaml *y, const char *what);
bool take_word(Translation *t, const Yaml *y, const char *what, const char *const *words, size_t nwords);

// The tensor of an entry in an operator's inputs or outputs; NULL after a message.
OneTensor *take_tensor(Translation *t, const Yaml *y);

// An operator's attrs as attributes of ngrad/1; NULL: none, or after a message.
const Yaml *translate_attributes(Translation *t, const Yaml *y, const char *kind, const char *title);

#endif
