// Decodes messages of onnx.proto into structures.
#include "frontend/onnx/model.h"

#include "frontend/onnx/fields.h"
#include "frontend/onnx/onnx.h"

#include <string.h>

bool bytes_are(Bytes bytes, const char *text) {
  return bytes.count == strlen(text) && (bytes.count == 0 || memcmp(bytes.at, text, bytes.count) == 0);
}

// The reading of a message inside of the current one.
#define INSIDE(r, noun, index, message, name, op)                                                                      \
  (&(OnnxReading){(r)->d, (r)->arena, (r)->source, (r)->file, (r)->nbytes, (r)->title,                                 \
                  &(OnnxPlace){(r)->place, noun, index, message, name, op}})

// Checks the end of a message: nothing may be left.
static bool ends(const OnnxReading *r, Bytes rest, const char *what) {
  return rest.count == 0 || onnx_tell(r, rest.at, "damaged: expected a field of %s", what);
}

static size_t count_fields(Bytes bytes, uint32_t number) {
  Field f;
  size_t count = 0;
  while (wire_next(&bytes, &f)) count += f.number == number && f.type == WIRE_BYTES;
  return count;
}

typedef struct List { // fields of a message that become an array
  uint32_t field;
  const char *what;
  size_t most, nbytes_each;
} List;

static const List nodes = {GRAPH_NODE, "nodes", ONNX_MAX_NODES, sizeof(OnnxNode)},
                  initializers = {GRAPH_INITIALIZER, "initializers", ONNX_MAX_NODES, sizeof(OnnxTensor)},
                  inputs = {GRAPH_INPUT, "inputs", ONNX_MAX_NODES, sizeof(OnnxInfo)},
                  outputs = {GRAPH_OUTPUT, "outputs", ONNX_MAX_NODES, sizeof(OnnxInfo)},
                  node_inputs = {NODE_INPUT, "operands", ONNX_MAX_OPERANDS, sizeof(Bytes)},
                  node_outputs = {NODE_OUTPUT, "operands", ONNX_MAX_OPERANDS, sizeof(Bytes)},
                  functions = {MODEL_FUNCTION, "functions", ONNX_MAX_NODES, sizeof(OnnxFunction)},
                  function_nodes = {FUNCTION_NODE, "nodes", ONNX_MAX_NODES, sizeof(OnnxNode)},
                  function_inputs = {FUNCTION_INPUT, "operands", ONNX_MAX_OPERANDS, sizeof(OnnxInfo)},
                  function_outputs = {FUNCTION_OUTPUT, "operands", ONNX_MAX_OPERANDS, sizeof(OnnxInfo)},
                  node_attributes = {NODE_ATTRIBUTE, "attributes", ONNX_MAX_ATTRIBUTES, sizeof(OnnxNamed)},
                  function_attributes = {FUNCTION_ATTRIBUTE, "attributes", ONNX_MAX_ATTRIBUTES, sizeof(OnnxNamed)};

// The array for a list of the message, counted before there is memory for it: a field of two bytes becomes hundreds.
// NULL after a message.
static void *new_array(const OnnxReading *r, Bytes bytes, const List *list) {
  const size_t count = count_fields(bytes, list->field);
  if (count > list->most) return onnx_tell(r, bytes.at, "more than %zu %s", list->most, list->what), NULL;
  if (r->nbytes && (*r->nbytes += count * list->nbytes_each) > ONNX_MAX_BYTES)
    return onnx_tell(r, bytes.at, "the model's nodes, operands, attributes and tensors take more than %d MiB",
                     ONNX_MAX_BYTES >> 20),
           NULL;
  void *array = arena_array(r->arena, count + 1, list->nbytes_each);
  return array ? array : (error_out_of_memory(r->d), NULL);
}

static bool read_dims(const OnnxReading *r, const Field *f, OnnxTensor *tensor) {
  Bytes rest = f->bytes;
  uint64_t number = f->value;
  bool is_packed = f->type == WIRE_BYTES;
  while (!is_packed || wire_next_packed(&rest, WIRE_VARINT, &number)) {
    if (tensor->rank == MAX_RANK) return onnx_tell(r, tensor->message.at, "more than 8 axes");
    if (number >= (uint64_t)MAX_ELEMENTS)
      return onnx_tell(r, tensor->message.at, "axis %d: expected an extent of 0 to 2^47 - 1, found %lld", tensor->rank,
                       (long long)number);
    tensor->extent[tensor->rank++] = (int64_t)number;
    if (!is_packed) return true;
  }
  return ends(r, rest, "the extents of a tensor");
}

bool onnx_read_tensor(const OnnxReading *r, Bytes bytes, OnnxTensor *tensor) {
  Field f;
  *tensor = (OnnxTensor){.message = bytes};
  while (wire_next(&bytes, &f)) {
    if (f.number == TENSOR_DIMS && !read_dims(r, &f, tensor)) return false;
    if (f.number == TENSOR_TYPE) tensor->type = f.value;
    if (f.number == TENSOR_NAME) tensor->name = f.bytes;
    if (f.number == TENSOR_LOCATION) tensor->is_external = f.value == 1;
    if (f.number != TENSOR_RAW) continue;
    tensor->raw = f.bytes;
    tensor->has_raw = true;
  }
  return ends(r, bytes, "a tensor");
}

// A decimal number below 2^63.
static bool read_decimal(Bytes text, uint64_t *number) {
  *number = 0;
  for (size_t i = 0; i < text.count; i++) {
    const uint8_t digit = (uint8_t)(text.at[i] - '0');
    if (digit > 9 || *number > ((uint64_t)INT64_MAX - digit) / 10) return false;
    *number = *number * 10 + digit;
  }
  return text.count > 0;
}

// The next pair of texts in fields of this number.
static bool next_entry(Bytes *rest, uint32_t field, Bytes *key, Bytes *value) {
  Field f, inside;
  while (wire_next(rest, &f)) {
    if (f.number != field || f.type != WIRE_BYTES) continue;
    *key = *value = (Bytes){NULL, 0};
    while (wire_next(&f.bytes, &inside)) {
      if (inside.number == ENTRY_KEY) *key = inside.bytes;
      if (inside.number == ENTRY_VALUE) *value = inside.bytes;
    }
    return true;
  }
  return false;
}

bool onnx_read_external(const OnnxReading *r, const OnnxTensor *tensor, OnnxExternal *external) {
  Bytes rest = tensor->message, key, value;
  *external = (OnnxExternal){.location = {NULL, 0}};
  while (next_entry(&rest, TENSOR_EXTERNAL, &key, &value)) {
    bool ok = true;
    if (bytes_are(key, "location")) external->location = value;
    else if (bytes_are(key, "offset")) ok = read_decimal(value, &external->offset);
    else if (bytes_are(key, "length")) ok = external->has_nbytes = read_decimal(value, &external->nbytes);
    if (!ok) return onnx_tell(r, value.at, "external data: expected offset and length to be decimal numbers");
  }
  return external->location.count > 0 || onnx_tell(r, NULL, "external data: expected a location");
}

static bool read_dim(const OnnxReading *r, Bytes bytes, OnnxInfo *info) {
  const uint8_t *at = bytes.at;
  Field f;
  if (info->rank == MAX_RANK) return onnx_tell(r, at, "more than 8 axes");
  Extent *extent = &info->extent[info->rank];
  *extent = EXTENT_UNKNOWN;
  info->dim[info->rank++] = (Bytes){NULL, 0};
  while (wire_next(&bytes, &f)) {
    if (f.number == DIM_VALUE && f.value == UINT64_MAX) continue; // -1, which exporters write for unknown
    if (f.number == DIM_VALUE && f.value >= (uint64_t)MAX_ELEMENTS)
      return onnx_tell(r, at, "axis %d: expected an extent of 0 to 2^47 - 1, found %lld", info->rank - 1,
                       (long long)f.value);
    if (f.number == DIM_VALUE) *extent = EXTENT((int64_t)f.value);
    if (f.number == DIM_NAME) info->dim[info->rank - 1] = f.bytes;
  }
  return ends(r, bytes, "an extent");
}

static bool read_shape(const OnnxReading *r, Bytes bytes, OnnxInfo *info) {
  Field f;
  info->rank = 0;
  while (wire_next(&bytes, &f))
    if (f.number == SHAPE_DIM && !read_dim(r, f.bytes, info)) return false;
  return ends(r, bytes, "a shape");
}

static bool read_tensor_type(const OnnxReading *r, Bytes bytes, OnnxInfo *info) {
  Field f;
  while (wire_next(&bytes, &f)) {
    if (f.number == TENSOR_TYPE_ELEMENT) info->type = f.value;
    if (f.number == TENSOR_TYPE_SHAPE && !read_shape(r, f.bytes, info)) return false;
  }
  return ends(r, bytes, "a tensor's type");
}

bool onnx_read_info(const OnnxReading *r, Bytes bytes, OnnxInfo *info) {
  Field f, type;
  *info = (OnnxInfo){.rank = -1, .message = bytes};
  while (wire_next(&bytes, &f)) {
    if (f.number == INFO_NAME) info->name = f.bytes;
    if (f.number != INFO_TYPE) continue;
    Bytes rest = f.bytes;
    while (wire_next(&rest, &type))
      if (type.number == TYPE_TENSOR && !read_tensor_type(r, type.bytes, info)) return false;
    if (!ends(r, rest, "a type")) return false;
  }
  return ends(r, bytes, "an input or output");
}

// Whether packed numbers end with a number.
static bool are_numbers(Bytes packed, WireType type) {
  uint64_t bits;
  while (wire_next_packed(&packed, type, &bits)) continue;
  return packed.count == 0;
}

static bool read_attribute_name(const OnnxReading *r, Bytes bytes, OnnxNamed *named) {
  Field f;
  *named = (OnnxNamed){.message = bytes};
  while (wire_next(&bytes, &f)) {
    if (f.number == ATTRIBUTE_NAME) named->name = f.bytes;
    if (f.number == ATTRIBUTE_OF_CALLER) named->of_caller = f.bytes;
    if ((f.number != ATTRIBUTE_INTS && f.number != ATTRIBUTE_FLOATS) || f.type != WIRE_BYTES) continue;
    if (!are_numbers(f.bytes, f.number == ATTRIBUTE_INTS ? WIRE_VARINT : WIRE_FIXED32))
      return onnx_tell(r, f.bytes.at, "damaged: expected a list of numbers");
  }
  return ends(r, bytes, "an attribute");
}

// The attributes in a field of a node or a function.
static bool read_attributes(const OnnxReading *r, Bytes bytes, const List *of, OnnxAttributes *list) {
  Field f;
  *list = (OnnxAttributes){.items = new_array(r, bytes, of)};
  if (!list->items) return false;
  while (wire_next(&bytes, &f)) {
    if (f.number != of->field || f.type != WIRE_BYTES) continue;
    if (!read_attribute_name(INSIDE(r, "attribute", list->count, f.bytes, ATTRIBUTE_NAME, 0), f.bytes,
                             &list->items[list->count]))
      return false;
    list->count++;
  }
  return true;
}

static bool read_node(const OnnxReading *r, Bytes bytes, OnnxNode *node) {
  Field f;
  *node = (OnnxNode){.inputs = new_array(r, bytes, &node_inputs)};
  if (!node->inputs || !(node->outputs = new_array(r, bytes, &node_outputs))) return false;
  if (!read_attributes(r, bytes, &node_attributes, &node->attributes)) return false;
  while (wire_next(&bytes, &f)) {
    if (f.type != WIRE_BYTES) continue;
    if (f.number == NODE_INPUT) node->inputs[node->ninputs++] = f.bytes;
    if (f.number == NODE_OUTPUT) node->outputs[node->noutputs++] = f.bytes;
    if (f.number == NODE_NAME) node->name = f.bytes;
    if (f.number == NODE_OP) node->op = f.bytes;
    if (f.number == NODE_DOMAIN) node->domain = f.bytes;
  }
  return ends(r, bytes, "a node");
}

static bool add_node(const OnnxReading *r, Bytes bytes, OnnxGraph *g) {
  const size_t i = g->nnodes++;
  return read_node(INSIDE(r, "node", i, bytes, NODE_NAME, NODE_OP), bytes, &g->nodes[i]);
}

static bool add_initializer(const OnnxReading *r, Bytes bytes, OnnxGraph *g) {
  const size_t i = g->ninitializers++;
  return onnx_read_tensor(INSIDE(r, "initializer", i, bytes, TENSOR_NAME, 0), bytes, &g->initializers[i]);
}

static bool add_info(const OnnxReading *r, Bytes bytes, const char *noun, OnnxInfo *list, size_t *count) {
  const size_t i = (*count)++;
  return onnx_read_info(INSIDE(r, noun, i, bytes, INFO_NAME, 0), bytes, &list[i]);
}

bool onnx_read_graph(const OnnxReading *r, Bytes bytes, OnnxGraph *g) {
  Field f;
  *g = (OnnxGraph){.message = bytes};
  bool ok = (g->nodes = new_array(r, bytes, &nodes)) && (g->initializers = new_array(r, bytes, &initializers)) &&
            (g->inputs = new_array(r, bytes, &inputs)) && (g->outputs = new_array(r, bytes, &outputs));
  while (ok && wire_next(&bytes, &f)) {
    if (f.type != WIRE_BYTES) continue;
    if (f.number == GRAPH_NODE) ok = add_node(r, f.bytes, g);
    else if (f.number == GRAPH_INITIALIZER) ok = add_initializer(r, f.bytes, g);
    else if (f.number == GRAPH_INPUT) ok = add_info(r, f.bytes, "input", g->inputs, &g->ninputs);
    else if (f.number == GRAPH_OUTPUT) ok = add_info(r, f.bytes, "output", g->outputs, &g->noutputs);
    else if (f.number == GRAPH_NAME) g->name = f.bytes;
  }
  return ok && ends(r, bytes, "the graph");
}

static bool read_opset(const OnnxReading *r, Bytes bytes, int64_t *opset) {
  Bytes domain = {NULL, 0};
  int64_t version = 0;
  Field f;
  while (wire_next(&bytes, &f)) {
    if (f.number == OPSET_DOMAIN) domain = f.bytes;
    if (f.number == OPSET_VERSION) version = (int64_t)f.value;
  }
  if (domain.count == 0 || bytes_are(domain, "ai.onnx")) *opset = version;
  return ends(r, bytes, "an opset");
}

static bool read_function(const OnnxReading *r, Bytes bytes, OnnxFunction *function) {
  OnnxGraph *g = &function->graph;
  Field f;
  *function = (OnnxFunction){.nbytes = bytes.count};
  bool ok = (g->nodes = new_array(r, bytes, &function_nodes)) && (g->inputs = new_array(r, bytes, &function_inputs)) &&
            (g->outputs = new_array(r, bytes, &function_outputs)) &&
            read_attributes(r, bytes, &function_attributes, &function->defaults);
  while (ok && wire_next(&bytes, &f)) {
    if (f.type != WIRE_BYTES) continue;
    if (f.number == FUNCTION_NAME) function->name = f.bytes;
    if (f.number == FUNCTION_DOMAIN) function->domain = f.bytes;
    if (f.number == FUNCTION_INPUT) g->inputs[g->ninputs++].name = f.bytes;
    if (f.number == FUNCTION_OUTPUT) g->outputs[g->noutputs++].name = f.bytes;
    if (f.number == FUNCTION_OPSET) ok = read_opset(r, f.bytes, &function->opset);
    if (f.number == FUNCTION_NODE) ok = add_node(r, f.bytes, g);
  }
  return ok && ends(r, bytes, "a function");
}

static bool add_function(const OnnxReading *r, Bytes bytes, OnnxModel *model) {
  const size_t i = model->nfunctions++;
  return read_function(INSIDE(r, "function", i, bytes, FUNCTION_NAME, 0), bytes, &model->functions[i]);
}

// Reports a model whose last field is damaged, or ends behind the file.
static bool tell_truncated(const OnnxReading *r, Bytes rest) {
  Field f;
  if (!wire_is_cut(rest, &f)) return ends(r, rest, "a model");
  const char *what = f.number == MODEL_GRAPH ? "the graph" : "its last field";
  if (!f.value) return onnx_tell(r, rest.at, "truncated ONNX model: the file ends within %s", what);
  return onnx_tell(r, rest.at, "truncated ONNX model: expected %llu bytes of %s, found %zu",
                   (unsigned long long)f.value, what, f.bytes.count);
}

bool onnx_read_model(const OnnxReading *r, Bytes bytes, OnnxModel *model) {
  Bytes graph = {NULL, 0};
  Field f;
  *model = (OnnxModel){.message = bytes, .functions = new_array(r, bytes, &functions)};
  if (!model->functions) return false;
  bool ok = true;
  while (ok && wire_next(&bytes, &f)) {
    if (f.type != WIRE_BYTES) continue;
    if (f.number == MODEL_GRAPH) graph = f.bytes;
    if (f.number == MODEL_OPSET) ok = read_opset(r, f.bytes, &model->opset);
    if (f.number == MODEL_FUNCTION) ok = add_function(r, f.bytes, model);
  }
  if (!ok) return false;
  if (bytes.count) return tell_truncated(r, bytes);
  return graph.at ? onnx_read_graph(r, graph, &model->graph) : onnx_tell(r, NULL, "the ONNX model has no graph");
}

bool onnx_next_property(Bytes *rest, Bytes *key, Bytes *value) {
  return next_entry(rest, MODEL_PROPERTY, key, value);
}

// Text never begins with the byte 8, the key of the version that writers put first. So a model that begins with it is
// recognised without its graph, too, if the file is cut.
bool is_onnx(Bytes bytes) {
  enum { LAST_MODEL_FIELD = 25 };
  Field f;
  bool is_model =
      wire_next(&(Bytes){bytes.at, bytes.count}, &f) && f.number == MODEL_IR_VERSION && f.type == WIRE_VARINT;
  while (wire_next(&bytes, &f)) {
    if (f.number > LAST_MODEL_FIELD) return false;
    is_model |= f.number == MODEL_GRAPH && f.type == WIRE_BYTES;
  }
  return is_model && (bytes.count == 0 || wire_is_cut(bytes, &f));
}

static float float_of(uint64_t bits) {
  const uint32_t low = (uint32_t)bits;
  float number;
  memcpy(&number, &low, sizeof number);
  return number;
}

static void read_attribute(Bytes bytes, OnnxAttribute *a) {
  Field f;
  *a = (OnnxAttribute){.message = bytes};
  while (wire_next(&bytes, &f)) {
    if (f.number == ATTRIBUTE_TYPE) a->type = f.value;
    if (f.number == ATTRIBUTE_F) a->f = float_of(f.value);
    if (f.number == ATTRIBUTE_I) a->i = (int64_t)f.value;
    if (f.number == ATTRIBUTE_S) a->s = f.bytes;
    if (f.number == ATTRIBUTE_T) a->t = f.bytes;
    if (f.number == ATTRIBUTE_G) a->g = f.bytes;
  }
}

static bool same_bytes(Bytes a, Bytes b) {
  return a.count == b.count && (a.count == 0 || memcmp(a.at, b.at, a.count) == 0);
}

static const OnnxNamed *find_in(const OnnxAttributes *list, Bytes name) {
  for (size_t i = 0; i < list->count; i++)
    if (same_bytes(list->items[i].name, name)) return &list->items[i];
  return NULL;
}

static const OnnxNamed *find_own(const OnnxNode *node, Bytes name) {
  const OnnxNamed *named = find_in(&node->attributes, name);
  return named ? named : find_in(&node->defaults, name);
}

bool onnx_find_attribute(const OnnxNode *node, const char *name, OnnxAttribute *a) {
  Bytes wanted = {(const uint8_t *)name, strlen(name)};
  const OnnxNamed *named;
  for (; node && (named = find_own(node, wanted)) != NULL; node = node->caller) {
    if (named->of_caller.count == 0) {
      read_attribute(named->message, a);
      return true;
    }
    wanted = named->of_caller;
  }
  return false;
}

// Calls `take` with the bits of each number of a repeated field.
static size_t for_each_number(const OnnxAttribute *a, uint32_t number, WireType type,
                              void (*take)(void *, size_t, uint64_t), void *items, size_t most) {
  Bytes rest = a->message;
  Field f;
  size_t count = 0;
  while (wire_next(&rest, &f)) {
    if (f.number != number) continue;
    uint64_t bits = f.value;
    if (f.type == type && count++ < most) take(items, count - 1, bits);
    while (f.type == WIRE_BYTES && wire_next_packed(&f.bytes, type, &bits))
      if (count++ < most) take(items, count - 1, bits);
  }
  return count;
}

static void take_int(void *items, size_t i, uint64_t bits) {
  ((int64_t *)items)[i] = (int64_t)bits;
}

static void take_float(void *items, size_t i, uint64_t bits) {
  ((double *)items)[i] = (double)float_of(bits);
}

size_t onnx_ints(const OnnxAttribute *a, int64_t *items, size_t most) {
  return for_each_number(a, ATTRIBUTE_INTS, WIRE_VARINT, take_int, items, most);
}

size_t onnx_floats(const OnnxAttribute *a, double *items, size_t most) {
  return for_each_number(a, ATTRIBUTE_FLOATS, WIRE_FIXED32, take_float, items, most);
}

size_t onnx_strings(const OnnxAttribute *a, Bytes *items, size_t most) {
  Bytes rest = a->message;
  Field f;
  size_t count = 0;
  while (wire_next(&rest, &f))
    if (f.number == ATTRIBUTE_STRINGS && f.type == WIRE_BYTES && count++ < most) items[count - 1] = f.bytes;
  return count;
}
