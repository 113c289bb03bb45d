// Hashes. The last bit of a hash says whether the value may have more digits than an f32: widening an f32 leaves its
// hash as it is, as nothing is lost, and narrowing what was widened gives it back. Numbers that an f32 holds are known
// by their hashes, and operations on them are computed: loops find a place, and whether it is inside of a tensor, by
// other operations than the kernel.
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

enum { MARK = 0x2c9277b5, MARK_SHIFT = 33, EXACT = 1 << 24 }; // MARK: in front of the number's bits

static bool is_known(Datum x) {
  return x.hash >> MARK_SHIFT == MARK && !(x.hash & 1);
}

static double known_number(Datum x) {
  const uint32_t bits = (uint32_t)(x.hash >> 1);
  float number;
  memcpy(&number, &bits, sizeof number);
  return (double)number;
}

// The identity of maxima is 0, as sums of hashes stand for maxima.
static Datum hash_number(void *context, Type type, double x) {
  const float narrow = (float)x;
  uint64_t bits;
  uint32_t narrow_bits;
  (void)context;
  memcpy(&bits, &x, sizeof bits);
  memcpy(&narrow_bits, &narrow, sizeof narrow_bits);
  if (x == -INFINITY) return (Datum){.hash = 0};
  if (isfinite(x) && (double)narrow == x && !(x == 0 && signbit(x)))
    return (Datum){.hash = (uint64_t)MARK << MARK_SHIFT | (uint64_t)narrow_bits << 1};
  return datum_of(isnan(x) || (double)narrow == x ? TYPE_F32 : type, mix(1, bits));
}

static Datum hash_integer(void *context, int64_t integer) {
  if (integer > -EXACT && integer < EXACT) return hash_number(context, TYPE_S64, (double)integer);
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

// Of known numbers. False: the operation is another, or its result is none.
static bool compute(ExprOp op, Type type, const double *x, double *y) {
  switch (op) {
  case EXPR_ADD: *y = x[0] + x[1]; break;
  case EXPR_SUB: *y = x[0] - x[1]; break;
  case EXPR_MUL: *y = x[0] * x[1]; break;
  case EXPR_FMA: *y = fma(x[0], x[1], x[2]); break;
  case EXPR_NEG: *y = -x[0]; break;
  case EXPR_GT: *y = x[0] > x[1]; break;
  case EXPR_GE: *y = x[0] >= x[1]; break;
  case EXPR_EQ: *y = x[0] == x[1]; break;
  default: return false;
  }
  if (type == TYPE_F32) *y = (double)(float)*y;
  return type != TYPE_S64 || fabs(*y) < EXACT;
}

// Whether the result of value i follows from known numbers, of which the first operand is one: of all operands, or of a
// choice.
static bool follows(ExprOp op, Type type, const Datum *const *args, int i, Datum *y) {
  double known[3] = {0}, number;
  bool all = true;
  for (int a = 0; a < expr_info[op].narguments && all; a++) {
    all = is_known(args[a][i]);
    known[a] = known_number(args[a][i]);
  }
  if (op == EXPR_SELECT) *y = args[known[0] != 0 ? 1 : 2][i];
  else if (all && compute(op, type, known, &number)) *y = hash_number(NULL, type, number);
  else return false;
  return true;
}

static void apply_to_hashes(void *context, ExprOp op, Type type, int n, const Datum *const *args, Datum *y) {
  const uint64_t operation = mix(mix(3, op), (uint64_t)type);
  (void)context;
  for (int i = 0; i < n; i++) {
    uint64_t hash = operation;
    if (is_known(args[0][i]) && follows(op, type, args, i, &y[i])) continue;
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
