// Data sets of the caller: opening, checking them as inputs of a graph, and gathering batches.
#include "frontend/data/data.h"
#include "frontend/npy/npy.h"

#include "frontend/api/indices.h"
#include "frontend/api/tensor.h"
#include "ir/support/philox.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct ng_data {
  ng_context *ctx;
  char *path;
  DataSet data;
};

// length 0: data_open; otherwise data_open_text.
static ng_data *open_data(ng_context *ctx, const char *path, int64_t length, bool is_next) {
  const Allocator *a = &ctx->allocator;
  Diagnostics *d = &ctx->diagnostics;
  Call call = call_begin(ctx);
  ng_data *data = allocator_alloc(a, sizeof *data);
  if (data) {
    *data = (ng_data){.ctx = ctx, .path = allocator_alloc(a, strlen(path) + 1)};
    if (data->path) memcpy(data->path, path, strlen(path) + 1);
  }
  bool ok = (data && data->path) || error_out_of_memory(d);
  if (ok) ok = length ? data_open_text(path, length, is_next, &data->data, a, d) : data_open(path, &data->data, a, d);
  ctx->last_status = call_end(ctx, call);
  if (ok) return data;
  ng_data_close(data);
  return NULL;
}

ng_data *ng_data_open(ng_context *ctx, const char *path) {
  return open_data(ctx, path, 0, false);
}

ng_data *ng_data_open_text(ng_context *ctx, const char *path, int64_t length, int is_next) {
  if (length > 0) return open_data(ctx, path, length, is_next);
  ctx->last_status = argument_error(ctx, "samples of a text: expected at least one byte in each");
  return NULL;
}

void ng_data_close(ng_data *data) {
  if (!data) return;
  const Allocator *a = &data->ctx->allocator;
  data_close(&data->data, a);
  allocator_free(a, data->path);
  allocator_free(a, data);
}

ng_tensor ng_data_tensor(const ng_data *data) {
  return tensor_to_api(&data->data.tensor);
}

// Copies the extents other than 1; returns their number.
static int squeeze(const int64_t *extent, int rank, int64_t *squeezed) {
  int n = 0;
  for (int i = 0; i < rank; i++)
    if (extent[i] != 1) squeezed[n++] = extent[i];
  return n;
}

static int64_t product(const int64_t *extent, int rank) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= extent[i];
  return n;
}

// The shapes have the same elements in the same order: equal except for extents of 1, or one of them is flat.
static bool shapes_agree(const int64_t *a, int a_rank, const int64_t *b, int b_rank) {
  int64_t x[MAX_RANK], y[MAX_RANK];
  const int n = squeeze(a, a_rank, x), m = squeeze(b, b_rank, y);
  if (n <= 1 || m <= 1) return product(x, n) == product(y, m);
  return n == m && memcmp(x, y, (size_t)n * sizeof *x) == 0;
}

typedef struct Range { // of integers
  int64_t least, greatest;
  const int64_t *ignored; // NULL: none
  const char *why;
} Range;

// u64: the bits of a number from 2^63 on are those of a negative one.
static bool is_in_range(const Range *r, Type type, int64_t value) {
  if (type == TYPE_U64 && value < 0) return false;
  return (value >= r->least && value <= r->greatest) || (r->ignored && value == *r->ignored);
}

static bool check_range(const ng_data *data, const char *name, const Range *r) {
  const Tensor *t = &data->data.tensor;
  const Source source = {.name = data->path};
  const int64_t nelems = tensor_nelems(t), nsamples = t->rank ? t->extent[0] : 1;
  for (int64_t i = 0; i < nelems; i++) {
    const int64_t value = integer_at(t->type, t->data, (size_t)i), each = nelems / nsamples;
    char also[64] = "", place[64] = "", number[32];
    if (is_in_range(r, t->type, value)) continue;
    if (r->ignored) snprintf(also, sizeof also, ", or %" PRId64 ", which is ignored", *r->ignored);
    if (t->type == TYPE_U64) snprintf(number, sizeof number, "%" PRIu64, (uint64_t)value);
    else snprintf(number, sizeof number, "%" PRId64, value);
    if (each > 1) snprintf(place, sizeof place, "element %" PRId64 " of ", i % each);
    return error_at(&data->ctx->diagnostics, (Position){&source, 0, 0},
                    "%s: %ssample %" PRId64 " is %s, expected %" PRId64 " to %" PRId64 "%s%s", name, place, i / each,
                    number, r->least, r->greatest, also, r->why);
  }
  return true;
}

static bool check_indices(const ng_data *data, const Graph *g, size_t input) {
  Arena scratch;
  size_t count;
  arena_init(&scratch, &data->ctx->allocator);
  const IndexCheck *checks = graph_index_checks(g, false, &scratch, &count);
  bool ok = checks || error_out_of_memory(&data->ctx->diagnostics);
  for (size_t i = 0; checks && ok && i < count; i++) {
    const int64_t extent = extent_value(checks[i].extent);
    const Range range = {checks[i].counts_from_end ? -extent : 0, extent - 1, checks[i].ignored, ""};
    const bool is_whole = !check_has_parts(&checks[i]); // checks of parts are left to each step
    if (checks[i].input == input && is_whole && extent >= 0) ok = check_range(data, g->inputs[input]->name, &range);
  }
  arena_deinit(&scratch);
  return ok;
}

// Integers may have a wider type, if all of them fit into the input's type.
static bool check_type(const ng_data *data, const Value *v) {
  const Type from = data->data.tensor.type;
  const Source source = {.name = data->path};
  if (data_type_fits(from, v->type)) return true;
  if (TYPES_INTEGER & TYPE_BIT(from) && TYPES_INTEGER & TYPE_BIT(v->type))
    return check_range(data, v->name,
                       &(Range){type_integer(type_least(v->type)), type_integer(type_greatest(v->type)), NULL,
                                ", the range of its type"});
  return error_at(&data->ctx->diagnostics, (Position){&source, 0, 0}, "%s: expected numbers of type %s, found %s%s",
                  v->name, type_name(v->type), type_name(from), npy_conversion_hint(v->type));
}

static bool check_shape(const ng_data *data, const Value *v, int nleading) {
  char expected[160], found[160];
  const Tensor *t = &data->data.tensor;
  const Source source = {.name = data->path};
  const Position at = {&source, 0, 0};
  Shape sample = {.rank = v->shape.rank - nleading}, other = {.rank = t->rank - 1};
  int64_t extent[MAX_RANK];
  if (v->shape.rank < nleading || t->rank < 1)
    return error_at(&data->ctx->diagnostics, at, "%s: expected samples along the first axis", v->name);
  for (int i = 0; i < other.rank; i++) other.extent[i] = EXTENT(t->extent[i + 1]);
  for (int i = 0; i < sample.rank; i++) {
    sample.extent[i] = v->shape.extent[nleading + i];
    extent[i] = extent_value(sample.extent[i]);
    if (extent[i] >= 0) sample.extent[i] = EXTENT(extent[i]); // a dim's value becomes the extent
  }
  if (shape_is_known(&sample) && shapes_agree(extent, sample.rank, t->extent + 1, t->rank - 1)) return true;
  const char *indices = TYPES_INTEGER & TYPE_BIT(v->type) ? "; numpy's argmax(1) makes numbers of one-hot rows" : "";
  if (!sample.rank)
    return error_at(&data->ctx->diagnostics, at,
                    "%s: expected one number for each sample, found %" PRId64 " of shape %s%s", v->name, t->extent[0],
                    shape_string(&other, found, sizeof found), indices);
  return error_at(&data->ctx->diagnostics, at,
                  "%s: expected samples of shape %s along the first axis, found %" PRId64 " of shape %s", v->name,
                  shape_string(&sample, expected, sizeof expected), t->extent[0],
                  shape_string(&other, found, sizeof found));
}

ng_status ng_data_check(const ng_data *data, const ng_graph *g, size_t i, int nleading) {
  if (i >= g->graph->ninputs || nleading < 0) return argument_error(data->ctx, "no such input");
  const Value *v = g->graph->inputs[i];
  Call call = call_begin(data->ctx);
  if (check_shape(data, v, nleading) && check_type(data, v) && TYPES_INTEGER & TYPE_BIT(data->data.tensor.type))
    check_indices(data, g->graph, i);
  return call_end(data->ctx, call);
}

void ng_data_gather(const ng_data *data, const int64_t *samples, int64_t count, ng_tensor *batch) {
  const Tensor to = tensor_of_api(batch);
  data_gather(&data->data.tensor, samples, count, &to);
}

void ng_permutation(uint64_t seed, uint32_t epoch, int64_t count, int64_t *order) {
  enum { STREAM = 0x73687566 }; // the last counter word; dropout and init use others
  for (int64_t i = 0; i < count; i++) order[i] = i;
  for (int64_t i = count - 1; i > 0; i--) {
    uint32_t words[] = {(uint32_t)i, (uint32_t)((uint64_t)i >> 32), epoch, STREAM};
    philox(words, seed);
    const uint64_t word = (uint64_t)words[0] << 32 | words[1];
    const int64_t j = (int64_t)(word % ((uint64_t)i + 1)), old = order[i];
    order[i] = order[j];
    order[j] = old;
  }
}
