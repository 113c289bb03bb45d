// visible FILE...: whether each is UTF-8 in which every character is seen; with -a before them, ASCII. JSON (-j) is
// parsed too. Written apart from what it tests.
#include <jansson.h>
#include <stdio.h>
#include <string.h>

// 0 at the end, -1 where there is no UTF-8.
static long next(const unsigned char **at, const unsigned char *end) {
  if (*at == end) return 0;
  const unsigned char *c = *at;
  const int length = *c < 0x80 ? 1 : *c < 0xC2 ? 0 : *c < 0xE0 ? 2 : *c < 0xF0 ? 3 : *c < 0xF5 ? 4 : 0;
  if (!length || end - c < length) return -1;
  long value = length == 1 ? *c : *c & (0x7F >> length);
  for (int i = 1; i < length; i++) {
    if ((c[i] & 0xC0) != 0x80) return -1;
    value = value << 6 | (c[i] & 0x3F);
  }
  *at += length;
  return value ? value : -1;
}

static int is_seen(long c) {
  return c == '\n' || (c >= 0x20 && !(c >= 0x7F && c < 0xA0) && c != 0xAD && c != 0x61C &&
                       !(c >= 0x200B && c <= 0x200F) && !(c >= 0x2028 && c <= 0x202E) &&
                       !(c >= 0x2060 && c <= 0x206F) && c != 0xFEFF && !(c >= 0xE0000 && c < 0xE1000));
}

int main(int argc, char **argv) {
  static unsigned char text[1 << 26];
  int is_ascii = 0, is_json = 0, failed = 0;
  for (int i = 1; i < argc; i++) {
    if (strcmp(argv[i], "-a") == 0) is_ascii = 1;
    else if (strcmp(argv[i], "-j") == 0) is_json = 1;
    else {
      FILE *file = fopen(argv[i], "rb");
      if (!file) return 2;
      const unsigned char *at = text, *end = text + fread(text, 1, sizeof text, file);
      fclose(file);
      for (long c, line = 1; (c = next(&at, end)); line += c == '\n') {
        if (is_seen(c) && (!is_ascii || c < 0x7F)) continue;
        printf("%s:%ld: a character that is not seen: %lx\n", argv[i], line, (unsigned long)c);
        failed = 1;
        if (c < 0) break;
      }
      json_error_t error;
      json_t *document = is_json ? json_load_file(argv[i], 0, &error) : NULL;
      if (is_json && !document) printf("%s: %s\n", argv[i], error.text);
      failed |= is_json && !document;
      json_decref(document);
    }
  }
  return failed;
}
