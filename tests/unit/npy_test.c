// .npy files: every type, byte order and layout that is read, the written bytes, and files with wrong headers.
#include "frontend/npy/npy.h"
#include "tests/unit/failing_allocator.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

// A file in memory: version, header text, data.
typedef struct File {
  char bytes[1024];
  size_t nbytes;
} File;

static File make_file(int version, const char *header, const void *data, size_t ndata) {
  File f = {.bytes = "\x93NUMPY"};
  size_t n = strlen(header), start = version == 1 ? 10 : 12;
  f.bytes[6] = (char)version;
  f.bytes[8] = (char)(n & 0xFF);
  f.bytes[9] = (char)(n >> 8);
  memcpy(f.bytes + start, header, n);
  if (ndata) memcpy(f.bytes + start + n, data, ndata);
  f.nbytes = start + n + ndata;
  return f;
}

static const Shape any_shape = {.rank = -1};

// The file's elements in row-major order after reading as `type`.
static void must_give(const File *f, Type type, const Shape *shape, Type expected_type, const double *expected,
                      size_t count) {
  Diagnostics d;
  Tensor t;
  diagnostics_init(&d, &system_allocator);
  bool ok = npy_read_bytes("x.npy", f->bytes, f->nbytes, type, shape, &t, &system_allocator, &d);
  if (!ok) print_error("%s\n", d.items[0].message);
  assert_true(ok);
  assert_int_equal(t.type, expected_type);
  assert_int_equal(tensor_nelems(&t), count);
  for (size_t i = 0; i < count; i++) assert_true(type_load(t.type, t.data, i) == expected[i]);
  tensor_free(&t, &system_allocator);
  diagnostics_deinit(&d);
}

static void must_refuse(const File *f, Type type, const Shape *shape, const char *message) {
  Diagnostics d;
  Tensor t;
  diagnostics_init(&d, &system_allocator);
  char *exact = malloc(f->nbytes ? f->nbytes : 1); // so that reading behind it shows
  memcpy(exact, f->bytes, f->nbytes);
  assert_false(npy_read_bytes("x.npy", exact, f->nbytes, type, shape, &t, &system_allocator, &d));
  assert_null(t.data);
  assert_int_equal(d.count, 1);
  assert_string_equal(d.items[0].message, message);
  assert_string_equal(d.items[0].file, "x.npy");
  free(exact);
  diagnostics_deinit(&d);
}

#define HEADER(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }    \n"
#define DOUBLES(...) (const double[]){__VA_ARGS__}, sizeof(const double[]){__VA_ARGS__} / sizeof(double)

static void every_type_is_read(void **state) {
  (void)state;
  const double f8[] = {1.5, -2};
  const float f4[] = {1.5F, -2};
  const uint16_t f2[] = {0x3E00, 0xC000}, bf16[] = {0x3FC0, 0xC000};
  const int64_t i8[] = {1, -2};
  const int32_t i4[] = {1, -2};
  const int8_t i1[] = {1, -2};
  const uint8_t u1[] = {1, 254}, b1[] = {1, 0};
  File f = make_file(1, HEADER("<f8", "False", "(2,)"), f8, sizeof f8);
  must_give(&f, TYPE_F64, &any_shape, TYPE_F64, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("<f4", "False", "(2,)"), f4, sizeof f4);
  must_give(&f, TYPE_F32, &any_shape, TYPE_F32, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("<f2", "False", "(2,)"), f2, sizeof f2);
  must_give(&f, TYPE_F16, &any_shape, TYPE_F16, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("<u2", "False", "(2,)"), bf16, sizeof bf16);
  must_give(&f, TYPE_BF16, &any_shape, TYPE_BF16, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("|V2", "False", "(2,)"), bf16, sizeof bf16);
  must_give(&f, TYPE_BF16, &any_shape, TYPE_BF16, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("<i8", "False", "(2,)"), i8, sizeof i8);
  must_give(&f, TYPE_S64, &any_shape, TYPE_S64, DOUBLES(1, -2));
  f = make_file(1, HEADER("=i4", "False", "(2,)"), i4, sizeof i4);
  must_give(&f, TYPE_S32, &any_shape, TYPE_S32, DOUBLES(1, -2));
  const int16_t i2[] = {1, -2};
  const uint64_t u8[] = {1, 3};
  const uint32_t u4[] = {1, UINT32_MAX};
  f = make_file(1, HEADER("<i2", "False", "(2,)"), i2, sizeof i2);
  must_give(&f, TYPE_S16, &any_shape, TYPE_S16, DOUBLES(1, -2));
  f = make_file(1, HEADER("<u8", "False", "(2,)"), u8, sizeof u8);
  must_give(&f, TYPE_U64, &any_shape, TYPE_U64, DOUBLES(1, 3));
  f = make_file(1, HEADER("<u4", "False", "(2,)"), u4, sizeof u4);
  must_give(&f, TYPE_U32, &any_shape, TYPE_U32, DOUBLES(1, 4294967295));
  f = make_file(1, HEADER("<u2", "False", "(2,)"), bf16, sizeof bf16);
  must_give(&f, TYPE_U16, &any_shape, TYPE_U16, DOUBLES(0x3FC0, 0xC000));
  must_give(&f, TYPE_NONE, &any_shape, TYPE_U16, DOUBLES(0x3FC0, 0xC000));
  f = make_file(1, HEADER("|i1", "False", "(2,)"), i1, sizeof i1);
  must_give(&f, TYPE_S8, &any_shape, TYPE_S8, DOUBLES(1, -2));
  f = make_file(1, HEADER("|u1", "False", "(2,)"), u1, sizeof u1);
  must_give(&f, TYPE_U8, &any_shape, TYPE_U8, DOUBLES(1, 254));
  const uint8_t e4m3[] = {60, 192}, e5m2[] = {62, 192}; // of 1.5 and -2
  f = make_file(1, HEADER("|V1", "False", "(2,)"), e4m3, sizeof e4m3);
  must_give(&f, TYPE_F8_E4M3, &any_shape, TYPE_F8_E4M3, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("|V1", "False", "(2,)"), e5m2, sizeof e5m2);
  must_give(&f, TYPE_F8_E5M2, &any_shape, TYPE_F8_E5M2, DOUBLES(1.5, -2));
  f = make_file(1, HEADER("|b1", "False", "(2,)"), b1, sizeof b1);
  must_give(&f, TYPE_BOOLEAN, &any_shape, TYPE_BOOLEAN, DOUBLES(1, 0));
}

static void four_bits_are_read_from_bytes_in_range(void **state) {
  (void)state;
  const int8_t s4[] = {-8, 7, 0, -1, 3}, s8[] = {0, 8, 0};
  const uint8_t u4[] = {15, 0, 1}, u8[] = {0, 1, 16};
  File f = make_file(1, HEADER("|i1", "False", "(5,)"), s4, sizeof s4);
  must_give(&f, TYPE_S4, &any_shape, TYPE_S4, DOUBLES(-8, 7, 0, -1, 3));
  f = make_file(1, HEADER("|u1", "False", "(3,)"), u4, sizeof u4);
  must_give(&f, TYPE_U4, &any_shape, TYPE_U4, DOUBLES(15, 0, 1));
  f = make_file(1, HEADER("|i1", "True", "(2, 2)"), s4, 4);
  must_give(&f, TYPE_S4, &any_shape, TYPE_S4, DOUBLES(-8, 0, 7, -1));
  f = make_file(1, HEADER("|i1", "False", "(3,)"), s8, sizeof s8);
  must_refuse(&f, TYPE_S4, &any_shape, "element 1 is 8, out of the range of s4");
  f = make_file(1, HEADER("|u1", "False", "(3,)"), u8, sizeof u8);
  must_refuse(&f, TYPE_U4, &any_shape, "element 2 is 16, out of the range of u4");
  must_refuse(&f, TYPE_S4, &any_shape, "expected s4 ?, found u8 [3]; convert it, as by numpy's astype(\"int8\")");
}

static void bf16_is_rounded_from_wider_floats(void **state) {
  (void)state;
  const float f4[] = {1.00390625F, 1.01171875F}; // halfway: to even
  const double f8[] = {1.00390625, 1.0039062500001};
  File f = make_file(1, HEADER("<f4", "False", "(2,)"), f4, sizeof f4);
  must_give(&f, TYPE_BF16, &any_shape, TYPE_BF16, DOUBLES(1, 1.015625));
  f = make_file(1, HEADER("<f8", "False", "(2,)"), f8, sizeof f8);
  must_give(&f, TYPE_BF16, &any_shape, TYPE_BF16, DOUBLES(1, 1.0078125));
}

static void no_type_wanted_gives_the_files(void **state) {
  (void)state;
  const double f8[] = {0.1};
  File f = make_file(1, HEADER("<f8", "False", "()"), f8, sizeof f8);
  must_give(&f, TYPE_NONE, NULL, TYPE_F64, DOUBLES(0.1));
}

static void other_byte_order_and_versions_are_read(void **state) {
  (void)state;
  const uint8_t swapped[] = {0x3F, 0xC0, 0, 0, 0xC0, 0, 0, 0};
  for (int version = 1; version <= 3; version++) {
    File f = make_file(version, HEADER(">f4", "False", "(2,)"), swapped, sizeof swapped);
    must_give(&f, TYPE_F32, &any_shape, TYPE_F32, DOUBLES(1.5, -2));
  }
}

static void fortran_order_is_transposed(void **state) {
  (void)state;
  const int32_t two[] = {1, 4, 2, 5, 3, 6};
  const int8_t three[] = {1, 5, 3, 7, 2, 6, 4, 8};
  File f = make_file(1, HEADER("<i4", "True", "(2, 3)"), two, sizeof two);
  must_give(&f, TYPE_S32, &any_shape, TYPE_S32, DOUBLES(1, 2, 3, 4, 5, 6));
  f = make_file(1, HEADER("|i1", "True", "(2, 2, 2)"), three, sizeof three);
  must_give(&f, TYPE_S8, &any_shape, TYPE_S8, DOUBLES(1, 2, 3, 4, 5, 6, 7, 8));
  f = make_file(1, HEADER("|i1", "True", "(2, 0, 2)"), NULL, 0);
  must_give(&f, TYPE_S8, &any_shape, TYPE_S8, NULL, 0);
}

static void header_may_be_written_in_other_ways(void **state) {
  (void)state;
  const float f4[] = {1.5F, -2};
  File f = make_file(1, "{\"shape\":(2, 1),\"fortran_order\":False,\"descr\":\"f4\"}", f4, sizeof f4);
  must_give(&f, TYPE_F32, &any_shape, TYPE_F32, DOUBLES(1.5, -2));
}

static void unknown_extents_are_the_files(void **state) {
  (void)state;
  const float f4[] = {1, 2};
  const Dim n = {.name = "N", .value = -1};
  const Shape shape = {.rank = 2, .extent = {{.dim = &n, .value = -1}, EXTENT(2)}};
  const Shape wrong = {.rank = 2, .extent = {EXTENT(2), EXTENT_UNKNOWN}};
  File f = make_file(1, HEADER("<f4", "False", "(1, 2)"), f4, sizeof f4);
  must_give(&f, TYPE_F32, &shape, TYPE_F32, DOUBLES(1, 2));
  must_refuse(&f, TYPE_F32, &wrong, "expected f32 [2, _], found f32 [1, 2]");
}

static void other_types_and_shapes_are_refused(void **state) {
  (void)state;
  const double f8[] = {1, 2};
  const Shape shape = {.rank = 1, .extent = {EXTENT(2)}};
  const Shape square = {.rank = 2, .extent = {EXTENT(1), EXTENT(2)}};
  File f = make_file(1, HEADER("<f8", "False", "(2,)"), f8, sizeof f8);
  must_refuse(&f, TYPE_F32, &shape, "expected f32 [2], found f64 [2]; convert it, as by numpy's astype(\"float32\")");
  must_refuse(&f, TYPE_F64, &square, "expected f64 [1, 2], found f64 [2]");
  must_refuse(&f, TYPE_NONE, &square, "expected any type [1, 2], found f64 [2]");
  must_refuse(&f, TYPE_S64, &any_shape, "expected s64 ?, found f64 [2]; convert it, as by numpy's astype(\"int64\")");
}

static void extents_may_be_long_integers_of_python_2(void **state) {
  (void)state;
  const float f4[] = {1, 2};
  const Shape shape = {.rank = 2, .extent = {EXTENT(1), EXTENT(2)}};
  File f = make_file(1, HEADER("<f4", "False", "(1L, 2L)"), f4, sizeof f4);
  must_give(&f, TYPE_F32, &shape, TYPE_F32, DOUBLES(1, 2));
}

static void damaged_headers_are_refused(void **state) {
  (void)state;
  static const char *const cases[][2] = {
      {"", "damaged header: expected {, found \"\""},
      {"{", "damaged header: expected a short string, found \"\""},
      {"{}", "damaged header: expected descr, fortran_order and shape"},
      {"{'descr'", "damaged header: expected : after a key, found \"\""},
      {"{'descr': '<f4'", "damaged header: expected , or }, found \"\""},
      {"{'descr': '<f4', 'descr': '<f4'}", "damaged header: duplicate key descr"},
      {"{'dtype': '<f4'}", "damaged header: unknown key dtype"},
      {"{'descr': '", "damaged header: expected a short string, found \"\""},
      {"{'descr': 'ffffffffffffffffffffffffffffffffffffffffffff'}",
       "damaged header: expected a short string, found \"ffffffffffff\""},
      {"{'descr': ''}", "holds type \"\", expected f8, f4, f2, V2, i8, i4, i2, i1, u8, u4, u2, u1 or b1"},
      {"{'descr': '<f16'}", "holds type \"<f16\", expected f8, f4, f2, V2, i8, i4, i2, i1, u8, u4, u2, u1 or b1"},
      {"{'fortran_order': 0}", "damaged header: expected True or False, found \"0}\""},
      {"{'shape': [2]}", "damaged header: expected a shape, as in (2, 3), found \"[2]}\""},
      {"{'shape': (2)}", "damaged header: expected , after an extent, found \")}\""},
      {"{'shape': (2 3)}", "damaged header: expected , after an extent, found \"3)}\""},
      {"{'shape': (2LL,)}", "damaged header: expected , after an extent, found \"L,)}\""},
      {"{'shape': (L,)}", "damaged header: expected an extent, found \"L,)}\""},
      {"{'shape': (-2,)}", "damaged header: expected an extent, found \"-2,)}\""},
      {"{'shape': (,)}", "damaged header: expected an extent, found \",)}\""},
      {"{'shape': (1,", "damaged header: expected an extent, found \"\""},
      {"{'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}", "more than 8 axes"},
      {"{'shape': (140737488355328,)}", "an extent of its shape is not below 2^47"},
      {HEADER("<f4", "False", "(8388608, 0, 8388608, 2)"),
       "holds f32 [8388608, 0, 8388608, 2], expected fewer than 2^47 elements"},
      {HEADER("<f4", "False", "(2,)") "x", "damaged header: expected the header's end, found \"x\""},
      {HEADER("<f4", "False", "(2,)"), "damaged: expected 8 bytes of data for f32 [2], found 0"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    File f = make_file(1, cases[i][0], NULL, 0);
    must_refuse(&f, TYPE_F32, &any_shape, cases[i][1]);
  }
}

static void lengths_that_lie_are_refused(void **state) {
  (void)state;
  const float f4[] = {1, 2};
  File f = make_file(1, HEADER("<f4", "False", "(3,)"), f4, sizeof f4);
  must_refuse(&f, TYPE_F32, &any_shape, "damaged: expected 12 bytes of data for f32 [3], found 8");
  f = make_file(1, HEADER("<f4", "False", "()"), f4, sizeof f4);
  must_refuse(&f, TYPE_F32, &any_shape, "damaged: expected 4 bytes of data for f32 [], found 8");
  f.bytes[9] = (char)0xFF;
  must_refuse(&f, TYPE_F32, &any_shape, "damaged: the file ends early, after 78 bytes");
  f.bytes[6] = 2;
  f.bytes[11] = (char)0xFF;
  f.bytes[10] = (char)0xFF;
  f.bytes[8] = (char)0xFF;
  must_refuse(&f, TYPE_F32, &any_shape, "damaged: a header of 4294967295 bytes, expected at most 65536");
  f.bytes[6] = 4;
  must_refuse(&f, TYPE_F32, &any_shape, ".npy format 4.0, expected 1.0, 2.0 or 3.0");
  f.nbytes = 9;
  must_refuse(&f, TYPE_F32, &any_shape, "not a .npy file: expected at least 10 bytes, found 9");
}

static void every_prefix_of_a_file_is_refused(void **state) {
  (void)state;
  const float f4[] = {1, 2};
  File f = make_file(2, HEADER("<f4", "True", "(1, 2)"), f4, sizeof f4);
  for (size_t n = 0; n < f.nbytes; n++) {
    Diagnostics d;
    Tensor t;
    diagnostics_init(&d, &system_allocator);
    char *exact = malloc(n + 1);
    memcpy(exact, f.bytes, n);
    exact = realloc(exact, n ? n : 1);
    assert_false(npy_read_bytes("x.npy", exact, n, TYPE_F32, NULL, &t, &system_allocator, &d));
    free(exact);
    diagnostics_deinit(&d);
  }
}

static void random_bytes_do_no_harm(void **state) {
  (void)state;
  const float f4[] = {1, 2, 3, 4, 5, 6};
  const File good = make_file(1, HEADER("<f4", "True", "(2, 3)"), f4, sizeof f4);
  uint32_t random = 1;
  for (int i = 0; i < 20000; i++) {
    File f = good;
    for (int k = 0; k < 1 + i % 3; k++) {
      random = random * 1664525U + 1013904223U;
      f.bytes[(random >> 8) % f.nbytes] =
          i % 2 ? (char)(random >> 24) : "0123456789(),' {}:<>=|fiu"[(random >> 24) % 25];
    }
    Diagnostics d;
    Tensor t;
    diagnostics_init(&d, &system_allocator);
    if (npy_read_bytes("x.npy", f.bytes, f.nbytes, TYPE_NONE, NULL, &t, &system_allocator, &d))
      tensor_free(&t, &system_allocator);
    else assert_true(d.nerrors == 1);
    diagnostics_deinit(&d);
  }
}

static void every_failing_allocation_is_an_error(void **state) {
  (void)state;
  const float f4[] = {1, 2};
  const File f = make_file(1, HEADER("<f4", "False", "(2,)"), f4, sizeof f4);
  FailingAllocator failing;
  failing_allocator_init(&failing, 0);
  Diagnostics d;
  Tensor t;
  diagnostics_init(&d, &failing.allocator);
  assert_false(npy_read_bytes("x.npy", f.bytes, f.nbytes, TYPE_F32, NULL, &t, &failing.allocator, &d));
  assert_true(d.out_of_memory);
  diagnostics_deinit(&d);
  assert_int_equal(failing.nlive, 0);
}

// Files on the disk

static char folder[] = "/tmp/ngrad-npy-XXXXXX";

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  (void)state;
  return rmdir(folder); // fails when a test leaves anything behind
}

static void what_is_written_is_read(void **state) {
  (void)state;
  static const struct {
    Type type;
    const char *descr; // of the file
    int rank;
    int64_t extent[MAX_RANK];
  } cases[] = {
      {TYPE_F64, "<f8", 2, {2, 3}},     {TYPE_F32, "<f4", 1, {5}},
      {TYPE_F16, "<f2", 0, {0}},        {TYPE_BF16, "<f4", 2, {300, 200}},
      {TYPE_S64, "<i8", 3, {2, 0, 4}},  {TYPE_S32, "<i4", 8, {1, 2, 1, 2, 1, 2, 1, 2}},
      {TYPE_S8, "|i1", 1, {1}},         {TYPE_U8, "|u1", 2, {7, 1}},
      {TYPE_BOOLEAN, "|b1", 1, {65}},   {TYPE_F8_E4M3, "|V1", 1, {65}},
      {TYPE_F8_E5M2, "|V1", 2, {3, 2}}, // V1 does not say which
      {TYPE_S4, "|i1", 1, {65}},        {TYPE_U4, "|u1", 2, {300, 111}},
  };
  char path[64];
  snprintf(path, sizeof path, "%s/t.npy", folder);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    Diagnostics d;
    Tensor t = {.type = cases[i].type, .rank = cases[i].rank}, back;
    char header[128] = {0}, descr[16];
    memcpy(t.extent, cases[i].extent, sizeof t.extent);
    diagnostics_init(&d, &system_allocator);
    assert_true(tensor_alloc(&t, &system_allocator));
    memset(t.data, 0, tensor_nbytes(&t));
    for (int64_t k = 0; k < tensor_nelems(&t); k++)
      type_store(t.type, t.data, (size_t)k, (double)(k % 120) / (type_is_packed(t.type) ? 16 : 1));
    assert_true(npy_write(path, &t, &d));
    FILE *file = fopen(path, "rb");
    assert_int_equal(fread(header, 1, sizeof header - 1, file), sizeof header - 1);
    fclose(file);
    snprintf(descr, sizeof descr, "'%s'", cases[i].descr);
    assert_non_null(strstr(header + 10, descr));
    Shape shape = {.rank = t.rank};
    for (int axis = 0; axis < t.rank; axis++) shape.extent[axis] = EXTENT(t.extent[axis]);
    assert_true(npy_read(path, t.type, &shape, &back, &system_allocator, &d));
    for (int64_t k = 0; k < tensor_nelems(&t); k++)
      assert_true(type_load(back.type, back.data, (size_t)k) == type_load(t.type, t.data, (size_t)k));
    tensor_free(&t, &system_allocator);
    tensor_free(&back, &system_allocator);
    diagnostics_deinit(&d);
  }
  unlink(path);
}

static void written_data_is_aligned(void **state) {
  (void)state;
  char path[64];
  struct stat status;
  Tensor t = {.type = TYPE_U8, .rank = 0, .data = (unsigned char[]){1}};
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  snprintf(path, sizeof path, "%s/t.npy", folder);
  assert_true(npy_write(path, &t, &d));
  assert_int_equal(stat(path, &status), 0);
  assert_int_equal(status.st_size % 64, 1);
  unlink(path);
  diagnostics_deinit(&d);
}

static void file_errors_are_told(void **state) {
  (void)state;
  char path[64];
  Tensor t = {.type = TYPE_F32, .rank = 0, .data = (float[]){1}}, back;
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  snprintf(path, sizeof path, "%s/none/t.npy", folder);
  assert_false(npy_write(path, &t, &d));
  assert_string_equal(d.items[0].message, "no such file or directory");
  assert_false(npy_read(path, TYPE_F32, NULL, &back, &system_allocator, &d));
  assert_string_equal(d.items[1].message, "no such file or directory");
  assert_string_equal(d.items[1].file, path);
  assert_false(npy_read(folder, TYPE_F32, NULL, &back, &system_allocator, &d));
  assert_string_equal(d.items[2].message, "expected a regular file, found a folder");
  assert_false(npy_write(folder, &t, &d)); // nothing is left behind: remove_folder sees it
  assert_string_equal(d.items[3].message, "is a directory");
  diagnostics_deinit(&d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_type_is_read),
      cmocka_unit_test(four_bits_are_read_from_bytes_in_range),
      cmocka_unit_test(bf16_is_rounded_from_wider_floats),
      cmocka_unit_test(no_type_wanted_gives_the_files),
      cmocka_unit_test(other_byte_order_and_versions_are_read),
      cmocka_unit_test(fortran_order_is_transposed),
      cmocka_unit_test(header_may_be_written_in_other_ways),
      cmocka_unit_test(unknown_extents_are_the_files),
      cmocka_unit_test(other_types_and_shapes_are_refused),
      cmocka_unit_test(extents_may_be_long_integers_of_python_2),
      cmocka_unit_test(damaged_headers_are_refused),
      cmocka_unit_test(lengths_that_lie_are_refused),
      cmocka_unit_test(every_prefix_of_a_file_is_refused),
      cmocka_unit_test(random_bytes_do_no_harm),
      cmocka_unit_test(every_failing_allocation_is_an_error),
      cmocka_unit_test(what_is_written_is_read),
      cmocka_unit_test(written_data_is_aligned),
      cmocka_unit_test(file_errors_are_told),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
