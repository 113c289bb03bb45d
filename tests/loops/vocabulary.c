// Tables of the functions in backends/codegen/simd, by operator and by type. Only this file includes these headers, as
// their macros and short names clash with others.
#include "tests/loops/vocabulary.h"

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// clang-format off: the order matters
#include "backends/codegen/simd/scalar.h"

#include "backends/codegen/simd/vector.h"

#include "backends/codegen/simd/arithmetic.h"

#include "backends/codegen/simd/wide_integers.h"

#include "backends/codegen/simd/bytes.h"

#include "backends/codegen/simd/math.h"

#include "backends/codegen/simd/power.h"

#include "backends/codegen/simd/trigonometry.h"

#include "backends/codegen/simd/integers.h"

#include "backends/codegen/simd/random.h"
// clang-format on

static vec get_v(const Lanes *x) {
  return v_load(x->f32);
}

static dvec get_d(const Lanes *x) {
  return d_load(x->f64);
}

static lvec get_l(const Lanes *x) {
  return l_load_s64(x->m64);
}

static mask get_v_mask(const Lanes *x) {
  mask m;
  memcpy(&m, x->m32, sizeof m);
  return m;
}

static dmask get_d_mask(const Lanes *x) {
  dmask m;
  memcpy(&m, x->m64, sizeof m);
  return m;
}

static void set_v(Lanes *y, vec x) {
  v_store(y->f32, x);
}

static void set_d(Lanes *y, dvec x) {
  d_store(y->f64, x);
}

static void set_l(Lanes *y, lvec x) {
  l_store_s64(y->m64, x);
}

static void set_v_mask(Lanes *y, mask m) {
  memcpy(y->m32, &m, sizeof m);
}

static void set_d_mask(Lanes *y, dmask m) {
  memcpy(y->m64, &m, sizeof m);
}

// Expressions: v_NAME and d_NAME, by the number and kind of their operands.

typedef void Call(Lanes *y, const Lanes *const *x);

#define EACH_OF_ONE(F, p)                                                                                              \
  F(p, NEG, neg)                                                                                                       \
  F(p, SQRT, sqrt)                                                                                                     \
  F(p, ROUND_F16, round_f16)                                                                                           \
  F(p, ROUND_BF16, round_bf16)                                                                                         \
  F(p, ROUND_E4M3, round_e4m3)                                                                                         \
  F(p, ROUND_E5M2, round_e5m2)                                                                                         \
  F(p, ABS, abs)                                                                                                       \
  F(p, EXP, exp)                                                                                                       \
  F(p, EXPM1, expm1)                                                                                                   \
  F(p, LOG, log)                                                                                                       \
  F(p, LOG1P, log1p)                                                                                                   \
  F(p, TANH, tanh)                                                                                                     \
  F(p, SIN, sin)                                                                                                       \
  F(p, COS, cos)                                                                                                       \
  F(p, ERF, erf)                                                                                                       \
  F(p, GELU, gelu)                                                                                                     \
  F(p, GELU_SLOPE, gelu_slope)                                                                                         \
  F(p, FLOOR, floor)                                                                                                   \
  F(p, ROUND, round)
#define EACH_OF_TWO_INTEGERS(F, p)                                                                                     \
  F(p, ADD, add)                                                                                                       \
  F(p, SUB, sub)                                                                                                       \
  F(p, MUL, mul)                                                                                                       \
  F(p, MAX, max)                                                                                                       \
  F(p, MIN, min)                                                                                                       \
  F(p, FMOD, fmod)
#define EACH_OF_TWO(F, p)                                                                                              \
  EACH_OF_TWO_INTEGERS(F, p)                                                                                           \
  F(p, DIV, div)                                                                                                       \
  F(p, MAXIMUM, maximum)                                                                                               \
  F(p, POW, pow)
#define EACH_COMPARISON(F, p)                                                                                          \
  F(p, GT, gt)                                                                                                         \
  F(p, GE, ge)                                                                                                         \
  F(p, EQ, eq)

#define OF_ONE(p, op, name)                                                                                            \
  static void call_##p##_##name(Lanes *y, const Lanes *const *x) {                                                     \
    set_##p(y, p##_##name(get_##p(x[0])));                                                                             \
  }
#define OF_TWO(p, op, name)                                                                                            \
  static void call_##p##_##name(Lanes *y, const Lanes *const *x) {                                                     \
    set_##p(y, p##_##name(get_##p(x[0]), get_##p(x[1])));                                                              \
  }
#define COMPARISON(p, op, name)                                                                                        \
  static void call_##p##_##name(Lanes *y, const Lanes *const *x) {                                                     \
    set_##p##_mask(y, p##_##name(get_##p(x[0]), get_##p(x[1])));                                                       \
  }
#define MULTIPLIED_AND_ADDED(p)                                                                                        \
  static void call_##p##_fma(Lanes *y, const Lanes *const *x) {                                                        \
    set_##p(y, p##_fma(get_##p(x[0]), get_##p(x[1]), get_##p(x[2])));                                                  \
  }
#define CHOICE(p, mask)                                                                                                \
  static void call_##p##_select(Lanes *y, const Lanes *const *x) {                                                     \
    set_##p(y, p##_select(get_##mask(x[0]), get_##p(x[1]), get_##p(x[2])));                                            \
  }
EACH_OF_ONE(OF_ONE, v)
EACH_OF_ONE(OF_ONE, d)
OF_ONE(d, ROUND_F32, round_f32)
OF_ONE(d, ROUND_ODD, round_odd)
EACH_OF_TWO(OF_TWO, v)
EACH_OF_TWO(OF_TWO, d)
EACH_COMPARISON(COMPARISON, v)
EACH_COMPARISON(COMPARISON, d)
MULTIPLIED_AND_ADDED(v)
MULTIPLIED_AND_ADDED(d)
MULTIPLIED_AND_ADDED(l)
CHOICE(v, v_mask)
CHOICE(d, d_mask)

// A comparison of integers gives a mask of f64's width.
static void set_l_mask(Lanes *y, dmask m) {
  set_d_mask(y, m);
}
OF_ONE(l, NEG, neg)
EACH_OF_TWO_INTEGERS(OF_TWO, l)
EACH_COMPARISON(COMPARISON, l)
CHOICE(l, d_mask)

#define ROW(p, op, name) [EXPR_##op] = call_##p##_##name,
#define ROWS(p) EACH_OF_ONE(ROW, p) EACH_OF_TWO(ROW, p) EACH_COMPARISON(ROW, p) ROW(p, FMA, fma) ROW(p, SELECT, select)
#define INTEGER_ROWS                                                                                                   \
  ROW(l, NEG, neg) EACH_OF_TWO_INTEGERS(ROW, l) EACH_COMPARISON(ROW, l) ROW(l, FMA, fma) ROW(l, SELECT, select)
static Call *const calls[][EXPR_OP_COUNT] = { // by Arithmetic
    {ROWS(v)},
    {ROWS(d) ROW(d, ROUND_F32, round_f32) ROW(d, ROUND_ODD, round_odd)},
    {INTEGER_ROWS}};

bool lanes_apply(ExprOp op, Arithmetic in, Lanes *y, const Lanes *const *x) {
  Call *call = calls[in][op];
  if (call) call(y, x);
  return call != NULL;
}

// Loads and stores of elements of each type, from and to vectors of f32 or of f64.

typedef struct Element {
  void (*load)(Lanes *y, const void *elements, int n);
  void (*store)(void *elements, const Lanes *x, int n);
  bool is_f64; // the functions take vectors of f64
} Element;

#define EACH_TYPE(F)                                                                                                   \
  F(F64, d, double, , NOTHING)                                                                                         \
  F(F32, v, float, , NOTHING)                                                                                          \
  F(F16, v, uint16_t, _f16, NOTHING)                                                                                   \
  F(BF16, v, uint16_t, _bf16, NOTHING)                                                                                 \
  F(S32, d, int32_t, _s32, NOTHING)                                                                                    \
  F(S64, d, int64_t, _s64, NOTHING)                                                                                    \
  F(U32, d, uint32_t, _u32, NOTHING)                                                                                   \
  F(U64, d, uint64_t, _u64, NOTHING)                                                                                   \
  F(S16, v, int16_t, _s16, NOTHING)                                                                                    \
  F(U16, v, uint16_t, _u16, NOTHING)                                                                                   \
  F(S8, v, int8_t, _s8, NOTHING)                                                                                       \
  F(U8, v, uint8_t, _u8, NOTHING)                                                                                      \
  F(BOOLEAN, v, uint8_t, _b8, NOTHING)                                                                                 \
  F(F8_E4M3, v, uint8_t, _e4m3, NOTHING)                                                                               \
  F(F8_E5M2, v, uint8_t, _e5m2, NOTHING)                                                                               \
  F(S4, v, uint8_t, _s4, FROM_WHOLE_BYTE)                                                                              \
  F(U4, v, uint8_t, _u4, FROM_WHOLE_BYTE)

#define NOTHING
#define FROM_WHOLE_BYTE 0,
#define ELEMENT(type, p, T, suffix, first)                                                                             \
  static void load_##type(Lanes *y, const void *elements, int n) {                                                     \
    set_##p(y, p##_load_n##suffix((const T *)elements, first n));                                                      \
  }                                                                                                                    \
  static void store_##type(void *elements, const Lanes *x, int n) {                                                    \
    p##_store_n##suffix((T *)elements, first get_##p(x), n);                                                           \
  }
EACH_TYPE(ELEMENT)

enum { IS_F64_v = false, IS_F64_d = true };
#define ELEMENT_ROW(type, p, ...) [TYPE_##type] = {load_##type, store_##type, IS_F64_##p},
static const Element element_functions[TYPE_COUNT] = {EACH_TYPE(ELEMENT_ROW)};

// Elements in s64: integers and booleans.
static bool load_integers(Type type, Lanes *y, const void *elements, int n) {
  memset(y->m64, 0, sizeof y->m64);
  if (type == TYPE_S64) set_l(y, l_load_n_s64((const int64_t *)elements, n));
  else if (type == TYPE_U64) set_l(y, l_load_n_u64((const uint64_t *)elements, n));
  else
    for (int i = 0; i < n; i++) y->m64[i] = (int64_t)type_load(type, elements, (size_t)i);
  return TYPES_INTEGER & TYPE_BIT(type) || type == TYPE_BOOLEAN;
}

static bool store_integers(Type type, void *elements, const Lanes *x, int n) {
  if (type == TYPE_S64) l_store_n_s64((int64_t *)elements, get_l(x), n);
  else if (type == TYPE_U64) l_store_n_u64((uint64_t *)elements, get_l(x), n);
  else
    for (int i = 0; i < n; i++) type_store(type, elements, (size_t)i, (double)x->m64[i]);
  return TYPES_INTEGER & TYPE_BIT(type) || type == TYPE_BOOLEAN;
}

bool lanes_load(Type type, Arithmetic in, Lanes *y, const void *elements, int n) {
  const Element *e = &element_functions[type];
  const bool is_f64 = in == IN_F64;
  if (in == IN_S64) return load_integers(type, y, elements, n);
  if (!e->load) return false;
  e->load(y, elements, n);
  const Lanes loaded = *y;
  if (is_f64 && !e->is_f64) set_d(y, d_from_v(get_v(&loaded)));
  if (!is_f64 && e->is_f64) set_v(y, v_from_d(get_d(&loaded)));
  return true;
}

bool lanes_store(Type type, Arithmetic in, void *elements, const Lanes *x, int n) {
  const Element *e = &element_functions[type];
  const bool is_f64 = in == IN_F64;
  if (in == IN_S64) return store_integers(type, elements, x, n);
  if (!e->store) return false;
  Lanes stored = *x;
  if (is_f64 && !e->is_f64) set_v(&stored, v_from_d(get_d(x)));
  if (!is_f64 && e->is_f64) set_d(&stored, d_from_v(get_v(x)));
  e->store(elements, &stored, n);
  return true;
}

bool element_is_kept(const Dropping *d) {
  return is_kept(d->seed, d->offset, d->probability, d->place);
}
