// .npz files: the written bytes, reading them back, and archives that are damaged or hold other files.
#include "frontend/npz/npz.h"
#include "tests/unit/file_in_folder.h"

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

static float w_data[] = {1, -2, 0.5F};
static int64_t step_data[] = {INT64_MAX};
static uint16_t b_data[] = {0x3FC0, 0xC000, 0, 0x7F80};

enum { NENTRIES = 3 };
static void make_entries(NpzEntry entries[NENTRIES]) {
  entries[0] = (NpzEntry){"w", {.type = TYPE_F32, .rank = 1, .extent = {3}, .data = w_data}};
  entries[1] = (NpzEntry){"step", {.type = TYPE_S64, .data = step_data}};
  entries[2] = (NpzEntry){"b", {.type = TYPE_BF16, .rank = 2, .extent = {2, 2}, .data = b_data, .layout = {{1, 0}}}};
}

static bool write_entries(const NpzEntry *entries, size_t count) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  bool ok = npz_write(path, entries, count, &system_allocator, &d);
  assert_true(ok == (d.nerrors == 0));
  diagnostics_deinit(&d);
  return ok;
}

// Whether the file has all entries of make_entries. If not, `told` has the messages, one a line.
static bool read_all(NpzEntry entries[NENTRIES], bool takes_some, char told[1024]) {
  Diagnostics d;
  diagnostics_init(&d, &system_allocator);
  bool ok = npz_read(path, entries, NENTRIES, takes_some, &system_allocator, &d);
  assert_true(ok == (d.nerrors == 0 && !d.out_of_memory));
  *told = 0;
  for (size_t i = 0; i < d.count; i++) sprintf(told + strlen(told), "%s\n", d.items[i].message);
  diagnostics_deinit(&d);
  return ok;
}

static void free_entries(NpzEntry entries[NENTRIES]) {
  for (size_t i = 0; i < NENTRIES; i++) tensor_free(&entries[i].tensor, &system_allocator);
}

static size_t read_bytes(unsigned char *bytes, size_t most) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  size_t n = fread(bytes, 1, most, file);
  fclose(file);
  return n;
}

static void write_bytes(const unsigned char *bytes, size_t n) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(bytes, 1, n, file), n);
  assert_int_equal(fclose(file), 0);
}

static void what_is_written_is_read_back(void **state) {
  (void)state;
  char told[1024];
  NpzEntry entries[NENTRIES], all[NENTRIES];
  make_entries(all);
  assert_true(write_entries(all, NENTRIES));
  make_entries(entries);
  NpzEntry reversed[NENTRIES] = {entries[2], entries[1], entries[0]};
  assert_true(read_all(reversed, false, told));
  assert_memory_equal(reversed[2].tensor.data, w_data, sizeof w_data);
  assert_memory_equal(reversed[1].tensor.data, step_data, sizeof step_data);
  assert_memory_equal(reversed[0].tensor.data, b_data, sizeof b_data); // its layout, too
  free_entries(reversed);
}

// The same by hand: others write these bytes too.
static void bytes_depend_on_the_tensors_alone(void **state) {
  (void)state;
  static const unsigned char start[] = {'P', 'K', 3, 4, 10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0},
                             name[] = {5, 0, 0, 0, 'w', '.', 'n', 'p', 'y', 0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 0x76};
  // clang-format off
  static const unsigned char end[] = {
      'P', 'K', 1, 2, 0x3F, 3, 10, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, // made by, for, flags, method, time, date
      0, 0, 0, 0, 140, 0, 0, 0, 140, 0, 0, 0, 5, 0, 0, 0, 0, 0,  // checksum, lengths
      0, 0, 0, 0, 0, 0, 0xB6, 0x81, 0, 0, 0, 0, 'w', '.', 'n', 'p', 'y',
      'P', 'K', 5, 6, 0, 0, 0, 0, 1, 0, 1, 0, 51, 0, 0, 0, 175, 0, 0, 0, 0, 0};
  // clang-format on
  unsigned char first[512], again[512], expected[sizeof end];
  NpzEntry entries[NENTRIES];
  make_entries(entries);
  assert_true(write_entries(entries, 1));
  const size_t n = read_bytes(first, sizeof first);
  assert_int_equal(n, 30 + 5 + 128 + 12 + sizeof end);
  assert_memory_equal(first, start, sizeof start);
  assert_memory_equal(first + 26, name, sizeof name);
  assert_memory_equal(first + 30 + 5 + 128, w_data, sizeof w_data);
  memcpy(expected, end, sizeof end);
  memcpy(expected + 16, first + 14, 4); // the checksum
  assert_memory_equal(first + n - sizeof end, expected, sizeof end);
  assert_true(write_entries(entries, 1));
  assert_int_equal(read_bytes(again, sizeof again), n);
  assert_memory_equal(first, again, n);
}

static void truncated_files_are_refused(void **state) {
  (void)state;
  char told[1024];
  unsigned char bytes[2048];
  NpzEntry entries[NENTRIES];
  make_entries(entries);
  assert_true(write_entries(entries, NENTRIES));
  const size_t n = read_bytes(bytes, sizeof bytes);
  for (size_t kept = 0; kept < n; kept++) {
    write_bytes(bytes, kept);
    make_entries(entries);
    assert_false(read_all(entries, false, told));
    for (size_t i = 0; i < NENTRIES; i++) assert_null(entries[i].tensor.data);
  }
}

static void flipped_bits_of_data_are_found(void **state) {
  (void)state;
  char told[1024];
  unsigned char bytes[2048];
  NpzEntry entries[NENTRIES];
  make_entries(entries);
  assert_true(write_entries(entries, NENTRIES));
  const size_t n = read_bytes(bytes, sizeof bytes);
  for (size_t i = 0; i < n; i++) {
    bytes[i] ^= 0x10;
    write_bytes(bytes, n);
    bytes[i] ^= 0x10;
    make_entries(entries);
    if (!read_all(entries, false, told)) continue;
    assert_memory_equal(entries[0].tensor.data, w_data, sizeof w_data);
    assert_memory_equal(entries[1].tensor.data, step_data, sizeof step_data);
    assert_memory_equal(entries[2].tensor.data, b_data, sizeof b_data);
    free_entries(entries);
  }
  bytes[30 + 5 + 128] ^= 1;
  write_bytes(bytes, n);
  make_entries(entries);
  assert_false(read_all(entries, false, told));
  assert_string_equal(told, "w: damaged: its checksum is wrong\n");
}

static void everything_that_does_not_fit_is_told(void **state) {
  (void)state;
  char told[1024];
  NpzEntry entries[NENTRIES];
  make_entries(entries);
  assert_true(write_entries(entries, NENTRIES));
  entries[0].name = "v";
  entries[1].tensor.type = TYPE_F32;
  entries[2].tensor.extent[1] = 3;
  assert_false(read_all(entries, false, told));
  assert_string_equal(told, "no v.npy in it, expected f32 [3]; it has w.npy\n"
                            "step: expected f32 [], found s64 []; convert it, as by numpy's astype(\"float32\")\n"
                            "b: expected bf16 [2, 3], found f32 [2, 2]\n");
  make_entries(entries);
  entries[0].name = "net.layer_1.w"; // as modules of PyTorch name it
  assert_false(read_all(entries, false, told));
  assert_string_equal(told, "no net.layer_1.w.npy in it, expected f32 [3]; did you mean w.npy\n");
  entries[0].name = "slow"; // no part of a name
  assert_false(read_all(entries, false, told));
  assert_string_equal(told, "no slow.npy in it, expected f32 [3]; it has w.npy\n");
}

static void some_may_be_missing(void **state) {
  (void)state;
  char told[1024];
  NpzEntry entries[NENTRIES];
  make_entries(entries);
  assert_true(write_entries(entries, 1));
  entries[0].tensor.extent[0] = -1;
  assert_true(read_all(entries, true, told));
  assert_int_equal(entries[0].tensor.extent[0], 3);
  assert_null(entries[1].tensor.data);
  free_entries(entries);
}

static void a_full_disk_leaves_the_old_file(void **state) {
  (void)state;
  unsigned char before[2048], after[2048];
  NpzEntry entries[NENTRIES];
  struct rlimit unlimited, little;
  make_entries(entries);
  assert_true(write_entries(entries, NENTRIES));
  const size_t n = read_bytes(before, sizeof before);
  assert_int_equal(getrlimit(RLIMIT_FSIZE, &unlimited), 0);
  signal(SIGXFSZ, SIG_IGN);
  for (rlim_t most = 0; most < n; most += 50) {
    little = (struct rlimit){most, unlimited.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
    bool ok = write_entries(entries, NENTRIES);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &unlimited), 0);
    assert_false(ok);
    assert_int_equal(read_bytes(after, sizeof after), n);
    assert_memory_equal(before, after, n);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_is_written_is_read_back),         cmocka_unit_test(bytes_depend_on_the_tensors_alone),
      cmocka_unit_test(truncated_files_are_refused),          cmocka_unit_test(flipped_bits_of_data_are_found),
      cmocka_unit_test(everything_that_does_not_fit_is_told), cmocka_unit_test(some_may_be_missing),
      cmocka_unit_test(a_full_disk_leaves_the_old_file),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
