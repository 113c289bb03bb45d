// Checkpoints of the caller's tensors, and their hash.
#include "frontend/npz/npz.h"

#include "frontend/api/handles.h"
#include "frontend/api/tensor.h"
#include "frontend/npy/npy.h"

#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <string.h>

ng_status ng_checkpoint_write(ng_context *ctx, const char *path, const char *const *names, const ng_tensor *tensors,
                              size_t count) {
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  Call call = call_begin(ctx);
  NpzEntry *entries = ARENA_ARRAY(&scratch, NpzEntry, count + 1);
  for (size_t i = 0; entries && i < count; i++) entries[i] = (NpzEntry){names[i], tensor_of_api(&tensors[i])};
  if (entries) npz_write(path, entries, count, &ctx->allocator, &ctx->diagnostics);
  else error_out_of_memory(&ctx->diagnostics);
  arena_deinit(&scratch);
  return call_end(ctx, call);
}

ng_status ng_checkpoint_read(ng_context *ctx, const char *path, const ng_tensor_info *wanted, size_t count,
                             int takes_some, ng_tensor *out) {
  Arena scratch;
  arena_init(&scratch, &ctx->allocator);
  Call call = call_begin(ctx);
  NpzEntry *entries = ARENA_ARRAY(&scratch, NpzEntry, count + 1);
  bool ok = entries || error_out_of_memory(&ctx->diagnostics);
  memset(out, 0, count * sizeof *out);
  for (size_t i = 0; ok && i < count; i++) {
    const ng_tensor like = ng_tensor_view(wanted[i], NULL);
    entries[i] = (NpzEntry){wanted[i].name, tensor_of_api(&like)};
  }
  ok = ok && npz_read(path, entries, count, takes_some != 0, &ctx->allocator, &ctx->diagnostics);
  for (size_t i = 0; ok && i < count; i++) out[i] = tensor_to_api(&entries[i].tensor);
  arena_deinit(&scratch);
  return call_end(ctx, call);
}

ng_status ng_tensors_sha256(ng_context *ctx, const ng_tensor *tensors, size_t count, char hex[65]) {
  struct sha256_ctx hash;
  uint8_t digest[SHA256_DIGEST_SIZE];
  sha256_init(&hash);
  for (size_t i = 0; i < count; i++) {
    Tensor own = tensor_of_api(&tensors[i]), data;
    bool is_copy;
    if (!npy_data(&own, &data, &is_copy, &ctx->allocator)) return NG_OUT_OF_MEMORY;
    sha256_update(&hash, tensor_nbytes(&data), data.data);
    if (is_copy) tensor_free(&data, &ctx->allocator);
  }
  sha256_digest(&hash, sizeof digest, digest);
  base16_encode_update(hex, sizeof digest, digest);
  hex[64] = 0;
  return NG_OK;
}
