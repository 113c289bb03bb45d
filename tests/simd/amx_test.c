// The tiles of amx_bf16.h against a model of tdpbf16ps. With AMX_MODEL it tests the header's own model; without, the
// processor, and ends with status 77 where it has no AMX. Both print the same.
#include "tests/simd/flush.h"
#ifndef AMX_WITH_HEADER
#include "backends/codegen/simd/amx_bf16.h"
#endif

typedef struct Case {
  int rows, columns, pairs;
  uint16_t a[16][32], b[16][32];
  float sums[16][16];
} Case;

static void make_case(Case *t) {
  const uint64_t bits = next();
  t->rows = bits & 1 ? 16 : 1 + (int)(bits >> 8 & 15);
  t->columns = bits & 1 ? 16 : 1 + (int)(bits >> 16 & 15);
  t->pairs = bits & 2 ? 16 : 1 + (int)(bits >> 24 & 15);
  float unused;
  for (int i = 0; i < 16; i++)
    for (int j = 0; j < 32; j++) next_bf16_multiply_add(&t->a[i][j], &t->b[i][j], j < 16 ? &t->sums[i][j] : &unused);
}

static float model_sum(const Case *t, ptrdiff_t row, ptrdiff_t column) {
  float even = 0, odd = 0;
  for (ptrdiff_t k = 0; k < t->pairs; k++) {
    even = model_fma(of_bf16(t->a[row][2 * k]), of_bf16(t->b[k][2 * column]), even);
    odd = model_fma(of_bf16(t->a[row][2 * k + 1]), of_bf16(t->b[k][2 * column + 1]), odd);
  }
  return model_add(t->sums[row][column], model_add(even, odd));
}

static void set_shape(amx_shapes *shapes, int tile, int rows, int row_nbytes) {
  shapes->rows[tile] = (uint8_t)rows;
  shapes->row_nbytes[tile] = (uint16_t)row_nbytes;
}

// Tiles 0 and 3 are sums, 1 and 2 the factors, as other numbers of tiles than the assembler's order has.
static void test_products(void) {
  begin("amx_multiply");
  for (int n = 0; n < 400; n++) {
    Case t;
    amx_shapes shapes = {.palette = 1};
    float sums[16][16], zeros[16][16];
    make_case(&t);
    memset(sums, 0x55, sizeof sums);
    memset(zeros, 0x55, sizeof zeros);
    set_shape(&shapes, 0, t.rows, 4 * t.columns);
    set_shape(&shapes, 1, t.rows, 4 * t.pairs);
    set_shape(&shapes, 2, t.pairs, 4 * t.columns);
    set_shape(&shapes, 3, t.rows, 4 * t.columns);
    amx_configure(&shapes);
    amx_load(0, t.sums, 64);
    amx_load(1, t.a, 64);
    amx_load(2, t.b, 64);
    amx_load(3, t.sums, 64);
    amx_multiply(0, 1, 2);
    amx_zero(3);
    amx_store(0, sums, 64);
    amx_store(3, zeros, 64);
    amx_release();
    for (int i = 0; i < 16; i++)
      for (int j = 0; j < 16; j++) {
        const bool is_inside = i < t.rows && j < t.columns;
        expect_number((double)sums[i][j], is_inside ? (double)model_sum(&t, i, j) : 0x1.aaaaaap+43);
        expect_number((double)zeros[i][j], is_inside ? 0 : 0x1.aaaaaap+43);
      }
  }
  end();
}

int main(void) {
  if (!amx_is_available()) return 77;
  test_products();
  if (failures) fprintf(stderr, "amx_test: %d failures\n", failures);
  return failures != 0;
}
