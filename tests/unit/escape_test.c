// How hostile text is escaped for each kind of output.
#include "ir/support/escape.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void becomes(Sink sink, const char *text, const char *expected) {
  Text t;
  text_init(&t, &system_allocator);
  text_add_user_string(&t, sink, text);
  assert_string_equal(text_string(&t), expected);
  text_deinit(&t);
}

static void every_sink_writes_its_own_specials(void **state) {
  (void)state;
  becomes(SINK_IDENTIFIER, "a_1-b/\xC3\xA4\xFF", "a_1_2db_2f_c3_a4_ff");
  becomes(SINK_COMMENT, "2 * a*/ /* \\ ?\?/ f(x) \"q\" \xC3\xA4", "2 * a*_ _* _ ___ f_x) _q_ _");
  becomes(SINK_STRING, "a\"b\\n?\?/\xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80",
          "\"a\\042b\\134n\\077\\077/\\303\\244\\342\\202\\254\\360\\237\\230\\200\"");
  becomes(SINK_DOT, "a\"b\\N &lt; <b>", "a\\\"b\\\\N &amp;lt; <b>");
  becomes(SINK_YAML, "a\"b\\n \xC3\xA4", "\"a\\\"b\\\\n \xC3\xA4\"");
  becomes(SINK_HTML, "<a href=\"x\" y='&'>", "&#60;a href=&#34;x&#34; y=&#39;&#38;&#39;&#62;");
  becomes(SINK_TERMINAL, "a\"b\\n\t\xC3\xA4", "a\"b\\n \xC3\xA4");
  becomes(SINK_MAKEFILE, "a b#c:d$e", "a\\ b\\#c\\:d$$e");
  becomes(SINK_JSON, "a\"b\\n </script> '&' \xC3\xA4\xF0\x9F\x98\x80",
          "\"a\\u0022b\\u005cn \\u003c/script\\u003e \\u0027\\u0026\\u0027 \\u00e4\\ud83d\\ude00\"");
}

static void what_cannot_be_seen_is_not_let_through(void **state) {
  (void)state;
  static const char text[] =
      "\n\x1B\xC2\x9B\xE2\x80\xAE\xE2\x81\xA6\xEF\xBB\xBF\xF3\xA0\x80\xA1\xFF"; // NOLINT(misc-misleading-bidirectional)
  becomes(SINK_COMMENT, text, "________");
  becomes(SINK_STRING, text,
          "\"\\012\\033\\302\\233\\342\\200\\256\\342\\201\\246\\357\\273\\277\\363\\240\\200\\241\\377\"");
  becomes(SINK_DOT, text, "????????");
  becomes(SINK_YAML, text, "\"\\u000A\\u001B\\u009B\\u202E\\u2066\\uFEFF\\U000E0021\\u00FF\"");
  becomes(SINK_HTML, text, "????????");
  becomes(SINK_TERMINAL, text, "????????");
  becomes(SINK_JSON, text, "\"\\u000a\\u001b\\u009b\\u202e\\u2066\\ufeff\\udb40\\udc21?\"");
}

static void a_zero_is_a_control_character(void **state) {
  (void)state;
  Text t;
  text_init(&t, &system_allocator);
  text_add_escaped(&t, SINK_TERMINAL, "a\0b", 3);
  text_add_escaped(&t, SINK_STRING, "a\0b", 3);
  assert_string_equal(text_string(&t), "a?b\"a\\000b\"");
  text_deinit(&t);
}

static void what_is_no_utf8_is_taken_byte_by_byte(void **state) {
  (void)state;
  becomes(SINK_TERMINAL, "\xC0\xAE.", "??.");           // a longer form of a dot
  becomes(SINK_TERMINAL, "\xED\xA0\x80.", "???.");      // a surrogate
  becomes(SINK_TERMINAL, "\xF4\x90\x80\x80.", "????."); // beyond U+10FFFF
  becomes(SINK_TERMINAL, "\xE2\x80", "??");             // cut
  becomes(SINK_TERMINAL, "\xE2\x80z", "??z");
}

// For every character, a terminal gets a visible character or a question mark, and C gets printable ASCII.
static void no_character_at_all_is_let_through_that_cannot_be_seen(void **state) {
  (void)state;
  Text t;
  text_init(&t, &system_allocator);
  for (uint32_t c = 1; c < 0x110000; c++) {
    if (c >= 0xD800 && c < 0xE000) continue;
    char text[5] = {0};
    if (c < 0x80) text[0] = (char)c;
    else if (c < 0x800) snprintf(text, sizeof text, "%c%c", (int)(0xC0 | c >> 6), (int)(0x80 | (c & 63)));
    else if (c < 0x10000)
      snprintf(text, sizeof text, "%c%c%c", (int)(0xE0 | c >> 12), (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    else
      snprintf(text, sizeof text, "%c%c%c%c", (int)(0xF0 | c >> 18), (int)(0x80 | (c >> 12 & 63)),
               (int)(0x80 | (c >> 6 & 63)), (int)(0x80 | (c & 63)));
    const char *at = text;
    assert_int_equal(escape_next(&at, text + strlen(text)), c);
    assert_ptr_equal(at, text + strlen(text));
    t.nbytes = 0;
    text_add_user_string(&t, SINK_TERMINAL, text);
    if (strcmp(text_string(&t), text) == 0) assert_true(escape_is_visible(c));
    else assert_string_equal(text_string(&t), c == '\t' ? " " : "?");
    t.nbytes = 0;
    text_add_user_string(&t, SINK_COMMENT, text);
    text_add_user_string(&t, SINK_IDENTIFIER, text);
    text_add_user_string(&t, SINK_STRING, text);
    text_add_user_string(&t, SINK_JSON, text);
    for (const char *b = text_string(&t); *b; b++) assert_true(*b >= 0x20 && *b < 0x7F);
  }
  text_deinit(&t);
}

static void a_makefile_has_no_way_to_write_some_names(void **state) {
  (void)state;
  static const char *const refused[] = {"a;rm", "a=b", "a|b", "a\nb", "a\tb", "a\\b", "a%b", "\x7F"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) assert_false(text_is_for_makefile(refused[i]));
  assert_true(text_is_for_makefile("a b$(c)#d:e\xFF"));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_sink_writes_its_own_specials),
      cmocka_unit_test(what_cannot_be_seen_is_not_let_through),
      cmocka_unit_test(a_zero_is_a_control_character),
      cmocka_unit_test(what_is_no_utf8_is_taken_byte_by_byte),
      cmocka_unit_test(no_character_at_all_is_let_through_that_cannot_be_seen),
      cmocka_unit_test(a_makefile_has_no_way_to_write_some_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
