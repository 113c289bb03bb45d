// The growing string, and how numbers are printed.
#include "ir/support/text.h"
#include "tests/unit/failing_allocator.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static void text_begins_empty_and_grows(void **state) {
  (void)state;
  Text t;
  text_init(&t, &system_allocator);
  assert_string_equal(text_string(&t), "");
  text_add(&t, "abcdef", 3);
  text_add_string(&t, "-");
  text_add_string(&t, "");
  text_format(&t, "%d%%", 5);
  assert_string_equal(text_string(&t), "abc-5%");
  assert_int_equal(t.nbytes, 6);
  text_deinit(&t);
  assert_string_equal(text_string(&t), "");
  text_deinit(&t);
}

static void text_of_any_length_arrives_whole(void **state) {
  (void)state;
  Text t;
  text_init(&t, &system_allocator);
  char expected[5000];
  for (size_t n = 0; n < sizeof expected; n++) {
    expected[n] = (char)('a' + n % 26);
    text_add(&t, &expected[n], 1);
  }
  text_format(&t, "%.*s", (int)sizeof expected, expected);
  assert_int_equal(t.nbytes, 2 * sizeof expected);
  assert_memory_equal(t.bytes, expected, sizeof expected);
  assert_memory_equal(t.bytes + sizeof expected, expected, sizeof expected);
  assert_int_equal(t.bytes[t.nbytes], 0);
  text_deinit(&t);
}

static void text_keeps_what_it_has_when_memory_runs_out(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, 1);
  Text t;
  text_init(&t, &memory.allocator);
  text_add_string(&t, "kept");
  for (int i = 0; i < 1000; i++) text_format(&t, "%d", i);
  assert_true(t.out_of_memory);
  assert_memory_equal(text_string(&t), "kept0123", 8);
  size_t nbytes = t.nbytes;
  text_add_string(&t, "x"); // failure is for good: nothing is missing in the middle
  assert_int_equal(t.nbytes, nbytes);
  text_deinit(&t);
  assert_int_equal(memory.nlive, 0);
}

static void number_is(double value, bool is_f32, const char *expected) {
  Text t;
  text_init(&t, &system_allocator);
  text_add_number(&t, value, is_f32);
  assert_string_equal(text_string(&t), expected);
  text_deinit(&t);
}

static void numbers_are_short(void **state) {
  (void)state;
  number_is(0.1, false, "0.1");
  number_is(0.1F, true, "0.1");
  number_is(0.1F, false, "0.10000000149011612");
  number_is(1e-5, false, "1e-05");
  number_is(1.0 / 3, false, "0.3333333333333333");
  number_is(1.0F / 3, true, "0.33333334");
  number_is(5e-324, false, "5e-324");
  number_is(1.7976931348623157e308, false, "1.7976931348623157e+308");
  number_is(3.4028234663852886e38, true, "3.4028235e+38");
}

static void numbers_look_like_real_numbers(void **state) {
  (void)state;
  number_is(0, false, "0.0");
  number_is(-0.0, false, "-0.0");
  number_is(1, false, "1.0");
  number_is(-100, true, "-100.0");
  number_is(16777216, true, "16777216.0");
  number_is(999999999999999, false, "999999999999999.0");
  number_is(1e15, false, "1e+15");
  number_is(9007199254740992, false, "9007199254740992.0");
}

static void what_is_not_finite_is_spelled_as_in_yaml(void **state) {
  (void)state;
  number_is(NAN, false, ".nan");
  number_is(-(double)NAN, true, ".nan");
  number_is(INFINITY, false, ".inf");
  number_is(-INFINITY, true, "-.inf");
}

static void numbers_read_back(void **state) {
  (void)state;
  uint64_t bits = 1;
  for (int i = 0; i < 100000; i++) {
    bits = bits * 6364136223846793005U + 1442695040888963407U;
    double value;
    memcpy(&value, &bits, sizeof value);
    float narrow;
    memcpy(&narrow, (char *)&bits + 4, sizeof narrow);
    if (!isfinite(value) || !isfinite(narrow)) continue;
    Text t;
    text_init(&t, &system_allocator);
    text_add_number(&t, value, false);
    assert_true(strtod(text_string(&t), NULL) == value);
    assert_non_null(strpbrk(text_string(&t), ".e"));
    t.nbytes = 0;
    text_add_number(&t, (double)narrow, true);
    assert_true(strtof(text_string(&t), NULL) == narrow);
    text_deinit(&t);
  }
}

// Makes a locale that defines only the decimal point, and which this process finds; false: localedef is missing.
static bool locale_make(const char *folder, const char *name, const char *point) {
  char path[64], command[256];
  snprintf(path, sizeof path, "%s/source", folder);
  FILE *source = fopen(path, "w");
  assert_non_null(source);
  fprintf(source, "LC_NUMERIC\ndecimal_point \"%s\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n", point);
  assert_int_equal(fclose(source), 0);
  snprintf(command, sizeof command, "localedef -c -i %s -f UTF-8 %s/%s >%s/log 2>&1", path, folder, name, folder);
  int status = system(command); // NOLINT(cert-env33-c): ours; 1: the other categories are missing
  return status != -1 && setlocale(LC_NUMERIC, name);
}

static void numbers_do_not_follow_the_locale(void **state) {
  (void)state;
  static const char *const points[] = {"<U002C>", "<U066B>"}; // a comma, and two bytes
  char folder[] = "/tmp/ngrad_text_test_XXXXXX", name[] = "point0", command[64];
  int nmade = 0;
  assert_non_null(mkdtemp(folder));
  setenv("LOCPATH", folder, 1);
  for (size_t i = 0; i < sizeof points / sizeof *points; i++, name[5]++) {
    if (!locale_make(folder, name, points[i])) continue;
    nmade++;
    assert_string_not_equal(localeconv()->decimal_point, ".");
    number_is(0.5, false, "0.5");
    number_is(100, false, "100.0");
    number_is(-1.25e-30, false, "-1.25e-30");
    number_is(1e300, false, "1e+300");
    setlocale(LC_NUMERIC, "C");
  }
  unsetenv("LOCPATH");
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0); // NOLINT(cert-env33-c): ours
  if (!nmade) skip();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_begins_empty_and_grows),
      cmocka_unit_test(text_of_any_length_arrives_whole),
      cmocka_unit_test(text_keeps_what_it_has_when_memory_runs_out),
      cmocka_unit_test(numbers_are_short),
      cmocka_unit_test(numbers_look_like_real_numbers),
      cmocka_unit_test(what_is_not_finite_is_spelled_as_in_yaml),
      cmocka_unit_test(numbers_read_back),
      cmocka_unit_test(numbers_do_not_follow_the_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
