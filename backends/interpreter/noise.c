// Noise on elements needs no state, as it is a function of the element. Noise on sums uses a counter.
#include "backends/interpreter/noise.h"

#include "ir/support/splitmix.h"

#include <float.h>
#include <math.h>
#include <string.h>

// Relative noise, a function of the number, which is 0 in the mean, and its opposite on the other side.
static double noise_beside(const Noise *n, Type type, double exact) {
  uint64_t bits;
  memcpy(&bits, &exact, sizeof bits);
  const double unit = (double)(splitmix64(n->seed ^ bits) >> 11) * 0x1p-53 - 0.5;
  return n->side * unit * type_tolerance(type);
}

void noise_add(const Noise *n, Type type, const double *exact, double *x, size_t nelems) {
  if (!n->seed || !type_is_float(type)) return;
  for (size_t i = 0; n->side && i < nelems; i++) {
    const double moved = x[i] * (1 + noise_beside(n, type, exact[i]));
    if (isfinite(moved)) x[i] = moved;
  }
  if (n->side) return;
  const int nbits = (int)lround(-log2(type_tolerance(type))); // mantissa bits that remain
  const uint64_t low = (UINT64_C(1) << (DBL_MANT_DIG - 1 - nbits)) - 1, sign = UINT64_C(1) << 63;
  const uint64_t offset = splitmix64(n->seed) & low; // of the cells
  for (size_t i = 0; i < nelems; i++) {
    uint64_t bits;
    double moved;
    memcpy(&bits, &x[i], sizeof bits);
    const uint64_t cell = ((bits & ~sign) + offset) & ~low;
    if (cell == 0 || !isfinite(x[i])) continue; // 0, or as good as 0
    bits = (bits & sign) | ((cell | (splitmix64(n->seed ^ cell) & low)) - offset);
    memcpy(&moved, &bits, sizeof moved);
    if (isfinite(moved)) x[i] = moved;
  }
}

double noise_overflow(const Noise *n, double x) {
  return n && n->overflows && fabs(x) > n->greatest ? copysign(INFINITY, x) : x;
}

double noise_sum(Noise *n, double sum, double squares) {
  sum = noise_overflow(n, sum);
  if (!n->seed || isinf(sum)) return sum;
  const double unit = 2 * (double)(splitmix64(n->seed + n->state++) >> 11) * 0x1p-53 - 1; // in [-1, 1)
  return sum + (n->side < 0 ? -unit : unit) * n->sum * sqrt(squares);
}

Noise noise_after(const Noise *n, int64_t nsums) {
  Noise after = n ? *n : (Noise){0};
  after.state += (uint64_t)nsums;
  return after;
}

static bool is_other_float(const Value *v) {
  return v && type_is_float(v->type) && v->type != TYPE_F64;
}

void noise_begin_node(Noise *n, const Node *node, Type type) {
  bool is_f64 = true;
  for (uint32_t k = 0; k < node->ninputs; k++) is_f64 &= !is_other_float(node->inputs[k]);
  for (uint32_t k = 0; k < node->noutputs; k++) is_f64 &= !is_other_float(node->outputs[k]);
  if (type == TYPE_NONE) type = is_f64 ? TYPE_F64 : TYPE_F32;
  n->sum = type_tolerance(type);
  n->greatest = type_greatest(type);
}
