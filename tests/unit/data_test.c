// Data sets: idx and .npy files, compressed or not, valid, damaged, or with wrong lengths; batches; the order of
// samples.
#include "frontend/api/ngrad.h"
#include "frontend/data/data.h"
#include "tests/unit/api_case.h"
#include "tests/unit/file_in_folder.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <zlib.h>

static void write_file(const void *bytes, size_t nbytes) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, nbytes, file), nbytes);
  assert_int_equal(fclose(file), 0);
}

static void write_packed(const void *bytes, size_t nbytes) {
  gzFile file = gzopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(gzwrite(file, bytes, (unsigned)nbytes), nbytes);
  assert_int_equal(gzclose(file), Z_OK);
}

static size_t read_file(unsigned char *bytes, size_t most) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, most, file);
  fclose(file);
  return n;
}

static void must_give(Type type, const double *expected, int64_t count) {
  Diagnostics d;
  DataSet data;
  diagnostics_init(&d, &system_allocator);
  const bool ok = data_open(path, &data, &system_allocator, &d);
  if (!ok) print_error("%s\n", d.items[0].message);
  assert_true(ok);
  assert_int_equal(data.tensor.type, type);
  assert_int_equal(tensor_nelems(&data.tensor), count);
  for (int64_t i = 0; i < count; i++) assert_true(type_load(type, data.tensor.data, (size_t)i) == expected[i]);
  data_close(&data, &system_allocator);
  diagnostics_deinit(&d);
}

static void must_refuse(const char *message) {
  Diagnostics d;
  DataSet data;
  diagnostics_init(&d, &system_allocator);
  assert_false(data_open(path, &data, &system_allocator, &d));
  assert_int_equal(d.count, 1);
  if (message) assert_string_equal(d.items[0].message, message);
  diagnostics_deinit(&d);
}

// Both plain and compressed.
static void both_must_give(const void *bytes, size_t nbytes, Type type, const double *expected, int64_t count) {
  write_file(bytes, nbytes);
  must_give(type, expected, count);
  write_packed(bytes, nbytes);
  must_give(type, expected, count);
}

static void every_idx_type_is_read(void **state) {
  (void)state;
  static const unsigned char u8[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 1, 7, 255},
                             s8[] = {0, 0, 9, 1, 0, 0, 0, 2, 7, 255}, s16[] = {0, 0, 11, 1, 0, 0, 0, 2, 1, 0, 255, 254},
                             s32[] = {0, 0, 12, 1, 0, 0, 0, 1, 255, 255, 255, 254},
                             f32[] = {0, 0, 13, 1, 0, 0, 0, 1, 0xC0, 0, 0, 0},
                             f64[] = {0, 0, 14, 1, 0, 0, 0, 1, 0x3F, 0xF8, 0, 0, 0, 0, 0, 0},
                             none[] = {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9};
  both_must_give(u8, sizeof u8, TYPE_U8, (const double[]){7, 255}, 2);
  both_must_give(s8, sizeof s8, TYPE_S8, (const double[]){7, -1}, 2);
  both_must_give(s16, sizeof s16, TYPE_S32, (const double[]){256, -2}, 2);
  both_must_give(s32, sizeof s32, TYPE_S32, (const double[]){-2}, 1);
  both_must_give(f32, sizeof f32, TYPE_F32, (const double[]){-2}, 1);
  both_must_give(f64, sizeof f64, TYPE_F64, (const double[]){1.5}, 1);
  both_must_give(none, sizeof none, TYPE_U8, NULL, 0);
}

static size_t make_npy(char *bytes, const char *header, const void *elements, size_t nbytes) {
  const size_t n = strlen(header);
  memcpy(bytes, "\x93NUMPY\x01\x00", 8);
  bytes[8] = (char)n;
  bytes[9] = 0;
  memcpy(bytes + 10, header, n);
  memcpy(bytes + 10 + n, elements, nbytes);
  return 10 + n + nbytes;
}

static void npy_files_are_read_whatever_their_order_of_bytes_and_axes(void **state) {
  (void)state;
  char bytes[512];
  const float elements[] = {1, 2, 3, 4};
  const unsigned char swapped[] = {0, 1, 255, 255}, booleans[] = {0, 1, 2};
  size_t n = make_npy(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }   ", elements, 16);
  both_must_give(bytes, n, TYPE_F32, (const double[]){1, 2, 3, 4}, 4);
  n = make_npy(bytes, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), } ", elements, 16); // not aligned
  both_must_give(bytes, n, TYPE_F32, (const double[]){1, 2, 3, 4}, 4);
  n = make_npy(bytes, "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", elements, 16);
  both_must_give(bytes, n, TYPE_F32, (const double[]){1, 3, 2, 4}, 4);
  n = make_npy(bytes, "{'descr': '>i4', 'fortran_order': False, 'shape': (1,), }", swapped, 4);
  both_must_give(bytes, n, TYPE_S32, (const double[]){131071}, 1);
  n = make_npy(bytes, "{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", booleans, 3);
  both_must_give(bytes, n, TYPE_BOOLEAN, (const double[]){0, 1, 1}, 3);
}

static void damaged_files_are_refused(void **state) {
  (void)state;
  static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};
  unsigned char bytes[256];
  write_file("", 0);
  must_refuse("expected a .npy or idx file, or one that gzip compressed");
  write_file("\x1F\x8B", 2);
  must_refuse(NULL);
  for (size_t n = 4; n < sizeof good; n++) {
    write_file(good, n);
    must_refuse(NULL);
    write_packed(good, n);
    must_refuse(NULL);
  }
  memcpy(bytes, good, sizeof good);
  bytes[sizeof good] = 0;
  write_file(bytes, sizeof good + 1);
  must_refuse("damaged: expected 18 bytes, found 19");
  write_packed(bytes, sizeof good + 1);
  must_refuse("damaged: expected 18 unpacked bytes, found more");
  bytes[2] = 10;
  write_file(bytes, sizeof good);
  must_refuse("holds idx type 0x0A, expected 0x08, 0x09, 0x0B, 0x0C, 0x0D or 0x0E");
  memcpy(bytes, (const unsigned char[]){0, 0, 8, 9}, 4);
  write_file(bytes, sizeof good);
  must_refuse("more than 8 axes");
  memcpy(bytes, (const unsigned char[]){0, 0, 8, 2, 255, 255, 255, 255, 255, 255, 255, 255}, 12);
  write_file(bytes, sizeof good);
  must_refuse("expected fewer than 2^47 elements");
}

static void compressed_files_that_lie_are_refused(void **state) {
  (void)state;
  static const unsigned char good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6},
                             huge[] = {0, 0, 8, 2, 0, 1, 0, 0, 255, 255, 255, 255, 1, 2};
  unsigned char bytes[256];
  write_packed(huge, sizeof huge); // no memory is asked for
  must_refuse(NULL);
  write_packed(good, sizeof good);
  const size_t n = read_file(bytes, sizeof bytes);
  for (size_t kept = 2; kept < n; kept++) {
    write_file(bytes, kept);
    must_refuse(NULL);
  }
  must_refuse("damaged: the file ends early");
  bytes[n - 8] ^= 1; // the checksum
  write_file(bytes, n);
  must_refuse("damaged: its checksum or compression is wrong");
}

static const char graph_text[] = "format: ngrad/1\n"
                                 "name: g\n"
                                 "dims: {N: 2, C: 5}\n"
                                 "inputs:\n"
                                 "  - {name: x, type: f32, shape: [N, C]}\n"
                                 "  - {name: labels, type: s32, shape: [N]}\n"
                                 "  - {name: image, type: f32, shape: [N, 2, 3, 1]}\n"
                                 "  - {name: narrow, type: bf16, shape: [N]}\n"
                                 "nodes:\n"
                                 "  - {op: SoftmaxCrossEntropy, inputs: [x, labels], outputs: [loss],\n"
                                 "     attributes: {ignore_index: -100}}\n"
                                 "  - {op: Abs, inputs: [image], outputs: [y]}\n"
                                 "  - {op: Abs, inputs: [narrow], outputs: [z]}\n"
                                 "outputs: [loss, y, z]\n";

static void must_check(ng_context *ctx, const ng_graph *g, size_t i, const void *bytes, size_t nbytes,
                       const char *message) {
  write_file(bytes, nbytes);
  ng_data *data = ng_data_open(ctx, path);
  assert_non_null(data);
  assert_int_equal(ng_data_check(data, g, i, 1), message ? NG_WRONG : NG_OK);
  assert_int_equal(ng_message_count(ctx), message ? 1 : 0);
  if (message) assert_string_equal(ng_message_at(ctx, 0).text, message);
  ng_messages_clear(ctx);
  ng_data_close(data);
}

static void samples_are_checked(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, graph_text);
  char npy[256];
  static const int64_t s64[] = {4, 0, -100}, wide[] = {INT64_C(1) << 32}, ones[] = {-1};
  static const uint16_t bits[] = {0x3F80, 0xC000};
  static const unsigned char labels[] = {0, 0, 8, 1, 0, 0, 0, 3, 4, 5, 0},
                             flat[] = {0, 0, 8, 2, 0, 0, 0, 1, 0, 0, 0, 6, 1, 2, 3, 4, 5, 6},
                             image[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6},
                             turned[] = {0, 0, 8, 3, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 6};
  must_check(ctx, g, 1, labels, sizeof labels, "labels: sample 1 is 5, expected 0 to 4, or -100, which is ignored");
  must_check(ctx, g, 2, flat, sizeof flat, NULL);
  must_check(ctx, g, 2, image, sizeof image, NULL);
  must_check(ctx, g, 2, turned, sizeof turned,
             "image: expected samples of shape [2, 3, 1] along the first axis, found 1 of shape [3, 2]");
  must_check(ctx, g, 0, flat, sizeof flat,
             "x: expected samples of shape [5] along the first axis, found 1 of shape [6]");
  size_t n = make_npy(npy, "{'descr': '<i8', 'fortran_order': False, 'shape': (3,), }", s64, sizeof s64);
  must_check(ctx, g, 1, npy, n, NULL);
  n = make_npy(npy, "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }", wide, sizeof wide);
  must_check(ctx, g, 1, npy, n,
             "labels: sample 0 is 4294967296, expected -2147483648 to 2147483647, the range of its type");
  n = make_npy(npy, "{'descr': '<u8', 'fortran_order': False, 'shape': (1,), }", ones, sizeof ones);
  must_check(ctx, g, 1, npy, n,
             "labels: sample 0 is 18446744073709551615, expected -2147483648 to 2147483647, the range of its type");
  n = make_npy(npy, "{'descr': '<u2', 'fortran_order': False, 'shape': (2,), }", bits, sizeof bits);
  must_check(ctx, g, 3, npy, n, NULL);
  n = make_npy(npy, "{'descr': '<f8', 'fortran_order': False, 'shape': (3,), }", s64, sizeof s64);
  must_check(ctx, g, 1, npy, n,
             "labels: expected numbers of type s32, found f64; convert it, as by numpy's astype(\"int32\")");
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void batches_are_converted(void **state) {
  (void)state;
  static const unsigned char bytes[] = {0, 0, 8, 2, 0, 0, 0, 3, 0, 0, 0, 2, 1, 2, 3, 4, 5, 255};
  static const double expected[] = {5, 255, 1, 2};
  static const ng_type types[] = {NG_U8, NG_F32, NG_F64, NG_BF16, NG_F16, NG_S32, NG_S64};
  const int64_t samples[] = {2, 0};
  ng_context *ctx = new_context();
  write_file(bytes, sizeof bytes);
  ng_data *data = ng_data_open(ctx, path);
  assert_non_null(data);
  for (size_t i = 0; i < sizeof types / sizeof *types; i++)
    for (unsigned char slowest = 0; slowest < 2; slowest++) {
      const ng_tensor_info info = {.name = "batch", .type = types[i], .rank = 2, .extent = {2, 2}, .order = {slowest}};
      ng_tensor batch;
      assert_int_equal(ng_tensor_new(ctx, &info, &batch), NG_OK);
      ng_data_gather(data, samples, 2, &batch);
      for (int64_t e = 0; e < 4; e++) assert_true(ng_tensor_get(&batch, e) == expected[e]);
      ng_tensor_free(ctx, &batch);
    }
  ng_data_close(data);
  ng_context_free(ctx);
}

// u16 may be the bits of bf16.
static void bits_of_bf16_are_kept(void **state) {
  (void)state;
  static const uint16_t bits[] = {0x3F80, 0xC000, 0x7F80};
  static const double expected[] = {INFINITY, 1};
  const int64_t samples[] = {2, 0};
  char npy[256];
  const size_t n = make_npy(npy, "{'descr': '<u2', 'fortran_order': False, 'shape': (3, 1), }", bits, sizeof bits);
  ng_context *ctx = new_context();
  write_file(npy, n);
  ng_data *data = ng_data_open(ctx, path);
  assert_non_null(data);
  for (unsigned char slowest = 0; slowest < 2; slowest++) {
    const ng_tensor_info info = {.name = "batch", .type = NG_BF16, .rank = 2, .extent = {2, 1}, .order = {slowest}};
    ng_tensor batch;
    assert_int_equal(ng_tensor_new(ctx, &info, &batch), NG_OK);
    ng_data_gather(data, samples, 2, &batch);
    for (int64_t e = 0; e < 2; e++) assert_true(ng_tensor_get(&batch, e) == expected[e]);
    ng_tensor_free(ctx, &batch);
  }
  ng_data_close(data);
  ng_context_free(ctx);
}

// Anybody else who shuffles as ngrad.h says gets this order.
static void the_order_is_the_same_everywhere(void **state) {
  (void)state;
  enum { COUNT = 10 };
  static const int64_t expected[2][COUNT] = {{5, 0, 4, 1, 8, 2, 9, 3, 7, 6}, {5, 8, 3, 7, 1, 2, 9, 4, 6, 0}};
  int64_t order[COUNT];
  for (uint32_t epoch = 0; epoch < 2; epoch++) {
    ng_permutation(7, epoch, COUNT, order);
    assert_memory_equal(order, expected[epoch], sizeof order);
  }
  ng_permutation(7, 0, 0, order);
  ng_permutation(7, 0, 1, order);
  assert_int_equal(order[0], 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_idx_type_is_read),
      cmocka_unit_test(npy_files_are_read_whatever_their_order_of_bytes_and_axes),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(compressed_files_that_lie_are_refused),
      cmocka_unit_test(samples_are_checked),
      cmocka_unit_test(batches_are_converted),
      cmocka_unit_test(bits_of_bf16_are_kept),
      cmocka_unit_test(the_order_is_the_same_everywhere),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
