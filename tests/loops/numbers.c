#include "tests/loops/numbers.h"

#include "tests/loops/vocabulary.h"

#include <string.h>

static Arithmetic arithmetic_of(Type type) {
  return type == TYPE_F64 ? IN_F64 : type == TYPE_S64 ? IN_S64 : IN_F32;
}

static void to_lanes(Type type, int n, const Datum *x, Lanes *y) {
  memset(y, 0, sizeof *y);
  for (int i = 0; i < n; i++) {
    if (type == TYPE_F32) y->f32[i] = x[i].f32;
    else y->m64[i] = x[i].s64;
  }
}

static void from_lanes(Type type, int n, const Lanes *x, Datum *y) {
  for (int i = 0; i < n; i++) {
    y[i].s64 = 0;
    if (type == TYPE_F32) y[i].f32 = x->f32[i];
    else y[i].s64 = x->m64[i];
  }
}

static void mask_to_lanes(Type type, int n, const Datum *x, Lanes *y) {
  memset(y, 0, sizeof *y);
  for (int i = 0; i < n; i++) {
    if (type == TYPE_F32) y->m32[i] = x[i].s64 ? -1 : 0;
    else y->m64[i] = x[i].s64 ? -1 : 0;
  }
}

static void mask_from_lanes(Type type, int n, const Lanes *x, Datum *y) {
  for (int i = 0; i < n; i++) y[i].s64 = type == TYPE_F32 ? x->m32[i] != 0 : x->m64[i] != 0;
}

// Values

static Datum make_number(void *context, Type type, double x) {
  Datum y = {.s64 = 0};
  (void)context;
  if (type == TYPE_F32) y.f32 = (float)x;
  else y.f64 = x;
  return y;
}

static Datum make_integer(void *context, int64_t integer) {
  (void)context;
  return (Datum){.s64 = integer};
}

static double as_double(Type type, Datum x) {
  return type == TYPE_F32 ? (double)x.f32 : type == TYPE_F64 ? x.f64 : (double)x.s64;
}

static Datum is_kept(void *context, Type type, const Datum *args, int64_t place) {
  (void)context;
  const Dropping d = {args[0].s64, args[1].s64, as_double(type, args[2]), (uint64_t)place};
  return (Datum){.s64 = element_is_kept(&d)};
}

static void apply_to_numbers(void *context, ExprOp op, Type type, int n, const Datum *const *args, Datum *y) {
  Lanes x[3], result;
  for (int a = 0; a < expr_info[op].narguments; a++) {
    if (op == EXPR_SELECT && !a) mask_to_lanes(type, n, args[a], &x[a]);
    else to_lanes(type, n, args[a], &x[a]);
  }
  if (!lanes_apply(op, arithmetic_of(type), &result, (const Lanes *const[]){&x[0], &x[1], &x[2]})) {
    ((Numbers *)context)->fault = "nothing computes an operation";
    memset(&result, 0, sizeof result);
  }
  if (expr_info[op].is_mask) mask_from_lanes(type, n, &result, y);
  else from_lanes(type, n, &result, y);
}

static void convert_numbers(void *context, Type from, Type to, int n, const Datum *x, Datum *y) {
  for (int i = 0; i < n; i++) y[i] = make_number(context, to, as_double(from, x[i]));
}

// Memory

static bool find_element(Numbers *numbers, const Access *a, int64_t element, int64_t *at) {
  const NumberTensor *t = &numbers->tensors[a->value->index];
  *at = t->first + element;
  if (t->data && *at >= 0 && *at < t->nelems) return true;
  numbers->fault = "an element is not in its tensor";
  return false;
}

static void load_numbers(void *context, Type type, const Access *a, int n, const int64_t *elements,
                         const Datum *offsets, Datum *y) {
  unsigned char bytes[LANES * MOST_ELEMENT_NBYTES] = {0};
  Lanes lanes;
  const size_t nbytes = type_nbytes(a->type);
  Numbers *numbers = context;
  const unsigned char *data = numbers->tensors[a->value->index].data;
  for (int i = 0; i < n; i++) {
    int64_t at;
    const int64_t offset = !offsets ? 0 : type == TYPE_S64 ? offsets[i].s64 : (int64_t)as_double(type, offsets[i]);
    if (!find_element(numbers, a, elements[i] + offset, &at)) return;
    if (type_is_packed(a->type)) bytes[i / 2] |= (unsigned char)((data[at / 2] >> at % 2 * 4 & 0xF) << i % 2 * 4);
    else memcpy(bytes + (size_t)i * nbytes, data + (size_t)at * nbytes, nbytes);
  }
  if (!lanes_load(a->type, arithmetic_of(type), &lanes, bytes, n)) numbers->fault = "it loads no numbers";
  from_lanes(type, n, &lanes, y);
}

static void store_numbers(void *context, Type type, const Access *a, int n, const int64_t *elements, const Datum *x,
                          bool is_mask) {
  unsigned char bytes[LANES * MOST_ELEMENT_NBYTES] = {0};
  Datum stored[LANES];
  Lanes lanes;
  const size_t nbytes = type_nbytes(a->type);
  Numbers *numbers = context;
  unsigned char *data = numbers->tensors[a->value->index].data;
  for (int i = 0; i < n; i++) {
    stored[i] = x[i];
    if (is_mask || a->type == TYPE_BOOLEAN) {
      const bool is_true = is_mask ? x[i].s64 != 0 : as_double(type, x[i]) != 0;
      stored[i] = type == TYPE_S64 ? (Datum){.s64 = is_true} : make_number(NULL, type, is_true);
    }
  }
  to_lanes(type, n, stored, &lanes);
  if (!lanes_store(a->type, arithmetic_of(type), bytes, &lanes, n)) numbers->fault = "it stores no numbers";
  for (int i = 0; i < n; i++) {
    int64_t at;
    if (!find_element(numbers, a, elements[i], &at)) return;
    if (!type_is_packed(a->type)) {
      memcpy(data + (size_t)at * nbytes, bytes + (size_t)i * nbytes, nbytes);
      continue;
    }
    const unsigned half = bytes[i / 2] >> i % 2 * 4 & 0xFU;
    data[at / 2] = (unsigned char)((data[at / 2] & 0xF0U >> at % 2 * 4) | half << at % 2 * 4);
  }
}

ValueDomain domain_of_numbers(Numbers *numbers) {
  return (ValueDomain){.context = numbers,
                       .number = make_number,
                       .integer = make_integer,
                       .load = load_numbers,
                       .is_kept = is_kept,
                       .apply = apply_to_numbers,
                       .convert = convert_numbers,
                       .store = store_numbers};
}
