// Arenas, and the allocator under them.
#include "ir/support/memory.h"
#include "tests/unit/failing_allocator.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

static void arena_memory_is_zero_and_aligned(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  Arena arena;
  arena_init(&arena, &memory.allocator);
  for (size_t nbytes = 0; nbytes < 3000; nbytes += 7) {
    unsigned char *p = arena_alloc(&arena, nbytes);
    assert_non_null(p);
    assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
    for (size_t i = 0; i < nbytes; i++) assert_int_equal(p[i], 0);
    memset(p, 0xFF, nbytes);
  }
  arena_deinit(&arena);
  assert_int_equal(memory.nlive, 0);
}

static void arena_blocks_do_not_overlap(void **state) {
  (void)state;
  enum { COUNT = 400 };
  Arena arena;
  arena_init(&arena, &system_allocator);
  unsigned char *blocks[COUNT];
  for (size_t i = 0; i < COUNT; i++) {
    blocks[i] = arena_alloc(&arena, i * 5);
    assert_non_null(blocks[i]);
    memset(blocks[i], (int)(i % 251), i * 5);
  }
  for (size_t i = 0; i < COUNT; i++)
    for (size_t k = 0; k < i * 5; k++) assert_int_equal(blocks[i][k], i % 251);
  arena_deinit(&arena);
}

static void arena_takes_few_blocks(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  Arena arena;
  arena_init(&arena, &memory.allocator);
  assert_int_equal(memory.ncalls, 0);
  for (int i = 0; i < 100000; i++) assert_non_null(arena_alloc(&arena, 32));
  assert_true(memory.ncalls < 32);
  assert_non_null(arena_alloc(&arena, 8 << 20)); // more than a block
  assert_true(arena.nbytes >= (8 << 20) + 3200000);
  arena_deinit(&arena);
  assert_int_equal(arena.nbytes, 0);
  assert_int_equal(memory.nlive, 0);
}

static void arena_of_nothing_is_not_out_of_memory(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  assert_non_null(arena_alloc(&arena, 0));
  assert_non_null(ARENA_ARRAY(&arena, double, 0));
  arena_deinit(&arena);
  arena_init(&arena, &system_allocator);
  arena_deinit(&arena); // nothing was taken
}

static void arena_refuses_what_overflows(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  assert_null(arena_alloc(&arena, SIZE_MAX));
  assert_null(arena_alloc(&arena, (size_t)PTRDIFF_MAX + 1));
  assert_null(arena_array(&arena, SIZE_MAX / 8 + 2, 8));
  assert_null(arena_array(&arena, SIZE_MAX / 2, 3));
  assert_non_null(arena_array(&arena, 3, 8)); // and is usable after
  arena_deinit(&arena);
}

static void arena_without_memory_gives_null_and_leaks_nothing(void **state) {
  (void)state;
  for (size_t failing = 0; failing < 4; failing++) {
    FailingAllocator memory;
    failing_allocator_init(&memory, failing);
    Arena arena;
    arena_init(&arena, &memory.allocator);
    size_t nfailed = 0;
    for (int i = 0; i < 100; i++) nfailed += !arena_alloc(&arena, 1000);
    assert_int_equal(nfailed, 1);
    arena_deinit(&arena);
    assert_int_equal(memory.nlive, 0);
  }
  FailingAllocator memory;
  failing_allocator_init(&memory, 0);
  Arena arena;
  arena_init(&arena, &memory.allocator);
  assert_null(arena_copy_text(&arena, "abc", 3));
  arena_deinit(&arena);
  failing_allocator_init(&memory, 0);
  assert_null(arena_format(&arena, "%d", 5));
  arena_deinit(&arena);
}

static void arena_texts_end_in_zero(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  assert_string_equal(arena_copy_text(&arena, "abcdef", 3), "abc");
  assert_string_equal(arena_copy_text(&arena, NULL, 0), "");
  assert_string_equal(arena_format(&arena, "%s-%04d", "x", 42), "x-0042");
  assert_string_equal(arena_format(&arena, "%s", ""), "");
  char longest[10000];
  memset(longest, 'y', sizeof longest);
  assert_memory_equal(arena_format(&arena, "%.*s", (int)sizeof longest, longest), longest, sizeof longest);
  arena_deinit(&arena);
}

static void arena_arrays_grow(void **state) {
  (void)state;
  Arena arena;
  arena_init(&arena, &system_allocator);
  int *items = NULL;
  size_t count = 0, capacity = 0;
  for (; count < 1000; count++) {
    assert_true(arena_grow(&arena, &items, count, &capacity, sizeof *items));
    assert_true(capacity > count);
    items[count] = (int)count;
  }
  for (size_t i = 0; i < count; i++) assert_int_equal(items[i], i);
  arena_deinit(&arena);
}

static void an_array_that_cannot_grow_stays_as_it_was(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, 1);
  Arena arena;
  arena_init(&arena, &memory.allocator);
  int *items = NULL;
  size_t count = 0, capacity = 0;
  while (arena_grow(&arena, &items, count, &capacity, sizeof *items)) items[count] = (int)count, count++;
  assert_true(count > 0 && count == capacity);
  for (size_t i = 0; i < count; i++) assert_int_equal(items[i], i);
  assert_true(arena_grow(&arena, &items, count, &capacity, sizeof *items)); // memory is back
  arena_deinit(&arena);
  assert_int_equal(memory.nlive, 0);
}

static void allocators_give_something_for_nothing(void **state) {
  (void)state;
  void *p = allocator_alloc(&system_allocator, 0);
  assert_non_null(p);
  allocator_free(&system_allocator, p);
  allocator_free(&system_allocator, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arena_memory_is_zero_and_aligned),
      cmocka_unit_test(arena_blocks_do_not_overlap),
      cmocka_unit_test(arena_takes_few_blocks),
      cmocka_unit_test(arena_of_nothing_is_not_out_of_memory),
      cmocka_unit_test(arena_refuses_what_overflows),
      cmocka_unit_test(arena_without_memory_gives_null_and_leaks_nothing),
      cmocka_unit_test(arena_texts_end_in_zero),
      cmocka_unit_test(arena_arrays_grow),
      cmocka_unit_test(an_array_that_cannot_grow_stays_as_it_was),
      cmocka_unit_test(allocators_give_something_for_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
