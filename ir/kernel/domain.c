// Hashes. The last bit of a hash says whether the value may have more digits than an f32: widening an f32 leaves its
// hash as it is, as nothing is lost, and narrowing what was widened gives it back.
#include "ir/kernel/domain.h"

#include "ir/support/splitmix.h"

#include <math.h>
#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t x) {
  return splitmix64(hash ^ splitmix64(x + 1));
}

static Datum datum_of(Type type, uint64_t hash) {
  return (Datum){.hash = type == TYPE_F64 ? hash | 1 : hash & ~(uint64_t)1};
}

// The identity of maxima is 0, as sums of hashes stand for maxima.
static Datum hash_number(void *context, Type type, double x) {
  uint64_t bits;
  (void)context;
  memcpy(&bits, &x, sizeof bits);
  const bool is_narrow = isnan(x) || (double)(float)x == x;
  return x == -INFINITY ? (Datum){.hash = 0} : datum_of(is_narrow ? TYPE_F32 : type, mix(1, bits));
}

static Datum hash_integer(void *context, int64_t integer) {
  (void)context;
  return datum_of(TYPE_S64, mix(5, (uint64_t)integer));
}

static void hash_loads(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *offsets,
                       Datum *y) {
  const uint64_t tensor = mix(mix(2, (uint64_t)type), a->value->index);
  (void)context;
  for (int i = 0; i < n; i++) {
    const uint64_t hash = mix(tensor, (uint64_t)elements[i]);
    y[i] = datum_of(type, offsets ? mix(hash, offsets[i].hash) : hash);
  }
}

static Datum hash_is_kept(void *context, Type type, const Datum *args, int64_t counter) {
  (void)context, (void)type;
  return datum_of(TYPE_F32, mix(mix(mix(mix(6, args[0].hash), args[1].hash), args[2].hash), (uint64_t)counter));
}

// A maximum does not depend on the order of its operands, and takes each once.
static uint64_t maximum(uint64_t a, uint64_t b) {
  return (((a >> 1) + (b >> 1)) << 1) | (a & 1) | (b & 1);
}

static void apply_to_hashes(void *context, ExprOp op, Type type, int n, const Datum *const *args, Datum *y) {
  const uint64_t operation = mix(mix(3, op), (uint64_t)type);
  (void)context;
  for (int i = 0; i < n; i++) {
    uint64_t hash = operation;
    for (int a = 0; a < expr_info[op].narguments; a++) hash = mix(hash, args[a][i].hash);
    y[i] = op == EXPR_MAXIMUM ? (Datum){.hash = maximum(args[0][i].hash, args[1][i].hash)} : datum_of(type, hash);
  }
}

static void convert_hashes(void *context, Type from, Type to, int n, const Datum *x, Datum *y) {
  (void)context, (void)from;
  for (int i = 0; i < n; i++) y[i] = to == TYPE_F64 || !(x[i].hash & 1) ? x[i] : datum_of(to, mix(4, x[i].hash));
}

static void forget(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                   bool is_mask) {
  (void)context, (void)type, (void)a, (void)n, (void)elements, (void)x, (void)is_mask;
}

const ValueDomain domain_of_hashes = {.number = hash_number,
                                      .integer = hash_integer,
                                      .load = hash_loads,
                                      .is_kept = hash_is_kept,
                                      .apply = apply_to_hashes,
                                      .convert = convert_hashes,
                                      .store = forget};
