// Tensors of the caller: memory, .npy files, and conversion between ng_tensor and Tensor.
#include "frontend/api/tensor.h"

#include "frontend/api/budget.h"
#include "frontend/api/handles.h"
#include "frontend/npy/npy.h"

#include <assert.h>
#include <string.h>

static_assert(NG_MAX_RANK == MAX_RANK, "the API's ranks are the graph's");
static_assert((int)NG_F64 == (int)TYPE_F64 && (int)NG_F32 == (int)TYPE_F32 && (int)NG_F16 == (int)TYPE_F16 &&
                  (int)NG_BF16 == (int)TYPE_BF16 && (int)NG_S64 == (int)TYPE_S64 && (int)NG_S32 == (int)TYPE_S32 &&
                  (int)NG_S8 == (int)TYPE_S8 && (int)NG_U8 == (int)TYPE_U8 && (int)NG_BOOLEAN == (int)TYPE_BOOLEAN &&
                  (int)NG_F8_E4M3 == (int)TYPE_F8_E4M3 && (int)NG_F8_E5M2 == (int)TYPE_F8_E5M2 &&
                  (int)NG_S4 == (int)TYPE_S4 && (int)NG_U4 == (int)TYPE_U4 && (int)NG_S16 == (int)TYPE_S16 &&
                  (int)NG_U16 == (int)TYPE_U16 && (int)NG_U32 == (int)TYPE_U32 && (int)NG_U64 == (int)TYPE_U64 &&
                  (int)NG_TYPE_COUNT == (int)TYPE_COUNT,
              "the API's types are the graph's");

static bool is_type(ng_type type) {
  return (int)type > TYPE_NONE && (int)type < TYPE_COUNT;
}

const char *ng_type_name(ng_type type) {
  return type_name(is_type(type) ? (Type)type : TYPE_NONE);
}

size_t ng_type_nbytes(ng_type type) {
  return type_nbytes(is_type(type) ? (Type)type : TYPE_NONE);
}

Tensor tensor_of_api(const ng_tensor *t) {
  Tensor own = {.type = (Type)t->type, .rank = t->rank, .data = t->data};
  memcpy(own.extent, t->extent, sizeof own.extent);
  memcpy(own.layout.axis, t->order, sizeof own.layout.axis);
  return own;
}

ng_tensor tensor_to_api(const Tensor *t) {
  ng_tensor out = {.type = (ng_type)t->type, .rank = t->rank, .data = t->data};
  memcpy(out.extent, t->extent, sizeof out.extent);
  memcpy(out.order, t->layout.axis, sizeof out.order);
  return out;
}

ng_tensor ng_tensor_view(ng_tensor_info info, void *data) {
  ng_tensor t = {.type = info.type, .rank = info.rank, .data = data};
  memcpy(t.extent, info.extent, sizeof t.extent);
  memcpy(t.order, info.order, sizeof t.order);
  return t;
}

int64_t ng_tensor_nelems(const ng_tensor *t) {
  Tensor own = tensor_of_api(t);
  return tensor_nelems(&own);
}

size_t ng_tensor_nbytes(const ng_tensor *t) {
  Tensor own = tensor_of_api(t);
  return tensor_nbytes(&own);
}

double ng_tensor_get(const ng_tensor *t, int64_t i) {
  Tensor own = tensor_of_api(t);
  return type_load(own.type, own.data, (size_t)tensor_offset(&own, i));
}

static Layout layout_of_info(const ng_tensor_info *info) {
  Layout layout;
  memcpy(layout.axis, info->order, sizeof layout.axis);
  return layout;
}

// False: invalid type, rank or layout. Extents of -1 become unknown.
static bool shape_of_info(const ng_tensor_info *info, Shape *shape) {
  const Layout layout = layout_of_info(info);
  if (!is_type(info->type) || info->rank < -1 || info->rank > MAX_RANK || !layout_is_valid(&layout, info->rank))
    return false;
  *shape = (Shape){.rank = info->rank};
  for (int i = 0; i < info->rank; i++) {
    if (info->extent[i] >= MAX_ELEMENTS) return false;
    shape->extent[i] = info->extent[i] < 0 ? EXTENT_UNKNOWN : EXTENT(info->extent[i]);
  }
  return true;
}

ng_status ng_tensor_new(ng_context *ctx, const ng_tensor_info *info, ng_tensor *out) {
  *out = (ng_tensor){0};
  Shape shape;
  if (!shape_of_info(info, &shape) || shape_nelems(&shape) < 0)
    return argument_error(ctx, "%s: expected a type, a shape of fewer than 2^47 elements, and a valid layout",
                          info->name ? info->name : "?");
  Tensor t = {.type = (Type)info->type, .rank = info->rank, .layout = layout_of_info(info)};
  for (int i = 0; i < t.rank; i++) t.extent[i] = info->extent[i];
  if (!tensor_make(ctx, info->name, &t)) return NG_OUT_OF_MEMORY;
  memset(t.data, 0, tensor_nbytes(&t));
  *out = tensor_to_api(&t);
  return NG_OK;
}

void ng_tensor_free(ng_context *ctx, ng_tensor *t) {
  Tensor own = tensor_of_api(t);
  tensor_free(&own, &ctx->allocator);
  t->data = NULL;
}

// Copies a tensor to another layout. False after a message: out of memory.
static bool tensor_with_layout(ng_context *ctx, const Tensor *t, Layout layout, Tensor *out) {
  *out = *t;
  out->layout = layout;
  if (!tensor_alloc(out, &ctx->allocator)) return error_out_of_memory(&ctx->diagnostics);
  tensor_copy(t, out);
  return true;
}

ng_status ng_tensor_read_npy(ng_context *ctx, const char *path, const ng_tensor_info *info, int any_float,
                             ng_tensor *out) {
  *out = (ng_tensor){0};
  Shape shape;
  if (!shape_of_info(info, &shape)) return argument_error(ctx, "%s: no such type or shape", path);
  bool is_lenient = any_float && type_is_float((Type)info->type);
  Diagnostics *d = &ctx->diagnostics;
  Call call = call_begin(ctx);
  Tensor t = {0};
  bool ok = npy_read(path, is_lenient ? TYPE_NONE : (Type)info->type, &shape, &t, &ctx->allocator, d);
  if (ok && is_lenient && !type_is_float(t.type)) {
    ok = error_at(d, (Position){0}, "%s: expected a floating-point type, found %s", path, type_name(t.type));
    tensor_free(&t, &ctx->allocator);
  }
  const Layout layout = layout_of_info(info);
  if (ok && !layout_is_row_major(&layout)) {
    Tensor as_read = t;
    ok = tensor_with_layout(ctx, &as_read, layout, &t);
    tensor_free(&as_read, &ctx->allocator);
  }
  ng_status status = call_end(ctx, call);
  if (!ok) return status;
  *out = tensor_to_api(&t);
  return NG_OK;
}

ng_status ng_tensor_write_npy(ng_context *ctx, const char *path, const ng_tensor *t) {
  Tensor own = tensor_of_api(t), row_major = {0};
  if (!layout_is_valid(&own.layout, own.rank)) return argument_error(ctx, "%s: expected a valid layout", path);
  Call call = call_begin(ctx);
  bool is_permuted = !layout_is_row_major(&own.layout);
  bool ok = !is_permuted || tensor_with_layout(ctx, &own, (Layout){{0}}, &row_major);
  ok = ok && npy_write(path, is_permuted ? &row_major : &own, &ctx->diagnostics);
  tensor_free(&row_major, &ctx->allocator);
  ng_status status = call_end(ctx, call);
  return ok ? NG_OK : status;
}
