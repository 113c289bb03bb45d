// Checks inputs that hold indices before anything is computed from them, in one pass over each input.
#include "frontend/api/indices.h"

#include "frontend/api/tensor.h"

#include <string.h>

typedef struct Allowed {
  int64_t least, end; // least <= index < end
  bool has_ignored;
  int64_t ignored;
} Allowed;

static Allowed allowed_by(const IndexCheck *c, Type type) {
  const int64_t extent = extent_value(c->extent), end = type == TYPE_S64 ? INT64_MAX : (int64_t)INT32_MAX + 1;
  if (c->is_count) return (Allowed){.least = 1 - c->added, .end = end - c->added};
  return (Allowed){c->counts_from_end ? -extent : 0, extent, c->ignored, c->ignored ? *c->ignored : 0};
}

static bool is_allowed(const Allowed *a, int64_t index) {
  return (index >= a->least && index < a->end) || (a->has_ignored && index == a->ignored);
}

// Numbers of u64 beyond s64 are no indices, as INT64_MAX is none.
static int64_t index_of_u64(uint64_t number) {
  return number < INT64_MAX ? (int64_t)number : INT64_MAX;
}

#define FIND_WRONG_AS(T, index)                                                                                        \
  for (const T *x = data; i < nelems && is_allowed(a, index(x[i])); i++) continue
#define FIND_WRONG(T) FIND_WRONG_AS(T, (int64_t))

// The offset in memory of the first wrong element; nelems: all are right.
static size_t find_wrong(Type type, const void *data, size_t nelems, const Allowed *a) {
  size_t i = 0;
  switch (type) {
  case TYPE_S64: FIND_WRONG(int64_t); break;
  case TYPE_S32: FIND_WRONG(int32_t); break;
  case TYPE_U64: FIND_WRONG_AS(uint64_t, index_of_u64); break;
  case TYPE_U32: FIND_WRONG(uint32_t); break;
  case TYPE_S16: FIND_WRONG(int16_t); break;
  case TYPE_U16: FIND_WRONG(uint16_t); break;
  case TYPE_S8: FIND_WRONG(int8_t); break;
  case TYPE_U8: FIND_WRONG(uint8_t); break;
  default: return nelems;
  }
  return i;
}

static int64_t index_at(const Tensor *t, size_t place) {
  const int64_t integer = integer_at(t->type, t->data, place);
  return t->type == TYPE_U64 ? index_of_u64((uint64_t)integer) : integer;
}

int64_t integer_at(Type type, const void *data, size_t place) {
  int64_t integer;
  if (type != TYPE_S64 && type != TYPE_U64) return (int64_t)type_load(type, data, place);
  memcpy(&integer, (const int64_t *)data + place, sizeof integer);
  return integer;
}

// By axis, the number of elements that are checked, and the step from one to the next in memory. Returns the place of
// the first one; -1: there is none.
static int64_t find_region(const IndexCheck *c, const Tensor *t, int64_t count[MAX_RANK], int64_t stride[MAX_RANK]) {
  int64_t place = 0, begin;
  layout_strides(&t->layout, t->rank, t->extent, stride);
  for (int i = 0; i < t->rank; i++) {
    count[i] = t->extent[i];
    if (count[i] && c->part[i]) {
      part_numbers(c->part[i], &begin, &count[i]);
      place += begin * stride[i];
      stride[i] *= c->part[i]->step;
    }
    if (!count[i]) return -1;
  }
  return place;
}

// The same for the check's parts of axes, in row-major order.
static size_t find_wrong_in_parts(const IndexCheck *c, const Tensor *t, const Allowed *a) {
  int64_t count[MAX_RANK] = {0}, stride[MAX_RANK], index[MAX_RANK] = {0}, place = find_region(c, t, count, stride);
  if (place < 0) return (size_t)tensor_nelems(t);
  int axis = 0;
  while (axis >= 0 && is_allowed(a, index_at(t, (size_t)place))) {
    for (axis = t->rank - 1; axis >= 0 && ++index[axis] == count[axis]; axis--) {
      place -= (count[axis] - 1) * stride[axis];
      index[axis] = 0;
    }
    if (axis >= 0) place += stride[axis];
  }
  return axis < 0 ? (size_t)tensor_nelems(t) : (size_t)place;
}

int64_t indices_place(const IndexCheck *c, const Tensor *t) {
  int64_t count[MAX_RANK], stride[MAX_RANK];
  return check_has_parts(c) ? find_region(c, t, count, stride) : tensor_nelems(t) - 1;
}

static size_t wrong_place(const IndexCheck *c, const ng_tensor *inputs) {
  const Tensor t = tensor_of_api(&inputs[c->input]);
  const Allowed a = allowed_by(c, t.type);
  if (check_has_parts(c)) return find_wrong_in_parts(c, &t, &a);
  return find_wrong(t.type, t.data, (size_t)tensor_nelems(&t), &a);
}

bool indices_are_right(const IndexCheck *checks, size_t count, const ng_tensor *inputs) {
  for (size_t i = 0; i < count; i++)
    if (wrong_place(&checks[i], inputs) < (size_t)ng_tensor_nelems(&inputs[checks[i].input])) return false;
  return true;
}

// Adds the name of the element at an offset in memory, such as labels[3, 0].
static void add_element(Text *out, const char *name, const Tensor *t, size_t place) {
  int64_t index[MAX_RANK] = {0};
  for (int i = t->rank - 1; i >= 0; i--) {
    const int axis = layout_axis(&t->layout, i);
    index[axis] = (int64_t)(place % (size_t)t->extent[axis]);
    place /= (size_t)t->extent[axis];
  }
  text_add_string(out, name);
  for (int i = 0; i < t->rank; i++) text_format(out, "%s%lld", i ? ", " : "[", (long long)index[i]);
  if (t->rank) text_add_string(out, "]");
}

static void tell(ng_context *ctx, const Graph *g, const IndexCheck *c, const ng_tensor *input, size_t place) {
  const Tensor t = tensor_of_api(input);
  const Allowed a = allowed_by(c, t.type);
  char title[NODE_TITLE_BYTES];
  Text text;
  text_init(&text, &ctx->allocator);
  add_element(&text, g->inputs[c->input]->name, &t, place);
  if (c->added)
    text_format(&text, ": expected a number of steps from %lld to %lld, because %lld is added to it",
                (long long)a.least, (long long)a.end - 1, (long long)c->added);
  else if (c->is_count) text_add_string(&text, ": expected a step of at least 1, because steps count from 1");
  else if (a.end) text_format(&text, ": expected an index from %lld to %lld", (long long)a.least, (long long)a.end - 1);
  else text_add_string(&text, ": expected no index, because the indexed axis is empty");
  if (a.has_ignored) text_format(&text, ", or %lld, which is ignored", (long long)a.ignored);
  const int64_t found = integer_at(t.type, t.data, place);
  text_format(&text, t.type == TYPE_U64 ? ", found %llu" : ", found %lld", (unsigned long long)found);
  if (text.out_of_memory) error_out_of_memory(&ctx->diagnostics);
  else error_at(&ctx->diagnostics, c->node->position, "%s: %s", node_title(c->node, title), text_string(&text));
  text_deinit(&text);
}

ng_status indices_tell(ng_context *ctx, const Graph *g, const ng_tensor *inputs) {
  Arena scratch;
  size_t count;
  arena_init(&scratch, &ctx->allocator);
  const Call call = call_begin(ctx);
  const IndexCheck *checks = graph_index_checks(g, true, &scratch, &count);
  if (!checks) error_out_of_memory(&ctx->diagnostics);
  for (size_t i = 0; checks && i < count; i++) {
    const size_t place = wrong_place(&checks[i], inputs);
    if (place < (size_t)ng_tensor_nelems(&inputs[checks[i].input]))
      tell(ctx, g, &checks[i], &inputs[checks[i].input], place);
  }
  arena_deinit(&scratch);
  return call_end(ctx, call);
}

ng_status ng_graph_check_indices(ng_graph *g, const ng_tensor *inputs) {
  const ng_status status = ng_graph_bind(g);
  return status == NG_OK ? indices_tell(g->ctx, g->graph, inputs) : status;
}
