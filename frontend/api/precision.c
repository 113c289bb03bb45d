// The options of mixed precision, by name.
#include "frontend/api/precision.h"

#include "ir/operators/operator.h"

#include <string.h>

static ng_status choose_type(ng_context *ctx, const char *precision, Type *type) {
  static const char *const known[] = {"f32", "bf16", "f16"};
  static const Type types[] = {TYPE_NONE, TYPE_BF16, TYPE_F16};
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(precision ? precision : "f32", known[i]) != 0) continue;
    *type = types[i];
    return NG_OK;
  }
  return unknown_name(ctx, "precision", precision, known, sizeof known / sizeof *known);
}

// An operator itself, and those named after its gradient.
static bool belongs_to(const char *name, const char *of) {
  const size_t nbytes = strlen(of);
  return strcmp(name, of) == 0 || (strncmp(name, of, nbytes) == 0 && strncmp(name + nbytes, "Backward", 8) == 0);
}

static ng_status keep(ng_context *ctx, const char *name, bool *stays_wide) {
  const char *known[OP_COUNT];
  const OperatorName found = operator_find(name);
  for (size_t i = 0; i < OP_COUNT; i++) known[i] = operators[i].name;
  if (!found.op || found.op->id == OP_Gradient) return unknown_name(ctx, "operator", name, known, OP_COUNT);
  for (size_t i = 0; i < OP_COUNT; i++) stays_wide[i] |= belongs_to(operators[i].name, found.op->name);
  return NG_OK;
}

ng_status precision_choose(ng_context *ctx, const char *precision, const char *const *keep_f32, size_t nkeep_f32,
                           Arena *arena, MixedPrecision *mixed) {
  *mixed = (MixedPrecision){0};
  ng_status status = choose_type(ctx, precision, &mixed->type);
  if (status != NG_OK || !nkeep_f32) return status;
  if (!mixed->type)
    return argument_error(ctx, "keep_f32: expected precision bf16 or f16 with it; without, every operator stays f32");
  bool *stays_wide = ARENA_ARRAY(arena, bool, OP_COUNT);
  mixed->stays_wide = stays_wide;
  if (!stays_wide) return out_of_memory_status(ctx);
  for (size_t i = 0; i < nkeep_f32 && status == NG_OK; i++) status = keep(ctx, keep_f32[i], stays_wide);
  return status;
}
