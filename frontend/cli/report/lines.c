// The dictionary is a JSON object, whose keys are the lines.
#include "frontend/cli/report/lines.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_NBYTES = 3 << 20, MOST_WORDS = 1 << 18 }; // limits of a page that opens at once and can be sent by mail

void lines_init(Lines *l) {
  *l = (Lines){.index = memory_or_exit(json_object()), .list = memory_or_exit(json_array())};
}

void lines_deinit(Lines *l) {
  json_decref(l->index);
}

static json_t *add_line(Lines *l, const char *line, size_t nbytes) {
  char *copy = memory_or_exit(strndup(line, nbytes));
  json_t *text = json_text(copy);
  json_t *number = json_object_get(l->index, json_string_value(text));
  if (!number) {
    number = memory_or_exit(json_count(json_array_size(l->list)));
    if (json_object_set(l->index, json_string_value(text), number) != 0) memory_or_exit(NULL);
    json_add(l->list, json_incref(text));
    json_decref(number); // the dictionary owns it
    l->nbytes += nbytes;
  }
  l->nwords++;
  json_decref(text);
  free(copy);
  return json_incref(number);
}

// Whether another line may be added. At the limit, adds the line that says so to the text.
static bool has_space(Lines *l, json_t *text) {
  static const char left_out[] = "... left out, because the report would be too large";
  if (l->nbytes < MOST_NBYTES && l->nwords < MOST_WORDS) return true;
  l->is_full = true;
  json_add(text, add_line(l, left_out, sizeof left_out - 1));
  return false;
}

static json_t *add_part(Lines *l, const char *text, const char *end) {
  json_t *numbers = memory_or_exit(json_array());
  while (text < end && has_space(l, numbers)) {
    const char *next = memchr(text, '\n', (size_t)(end - text));
    const char *line_end = next ? next : end;
    json_add(numbers, add_line(l, text, (size_t)(line_end - text)));
    text = next ? next + 1 : end;
  }
  return numbers;
}

json_t *lines_add(Lines *l, const char *text) {
  return add_part(l, text, text + strlen(text));
}

static bool begins_with(const char *text, const char *prefix) {
  return prefix && strncmp(text, prefix, strlen(prefix)) == 0;
}

// The kernel of a heading; nkernels: the line is no heading.
static size_t heading_kernel(const char *line, const char *heading, size_t nkernels) {
  if (!begins_with(line, heading)) return nkernels;
  const char *number = line + strlen(heading);
  char *end;
  const unsigned long kernel = strtoul(number, &end, 10);
  return *number >= '0' && *number <= '9' && *end == ':' && kernel < nkernels ? kernel : nkernels;
}

json_t *lines_add_kernels(Lines *l, const char *text, size_t nkernels, const char *heading, const char *end) {
  json_t *kernels = memory_or_exit(json_array());
  for (size_t i = 0; i < nkernels; i++) json_add(kernels, json_array());
  size_t kernel = nkernels;
  for (const char *begin = text, *line = text;; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : "") {
    const size_t next = heading_kernel(line, heading, nkernels);
    if (*line && next == nkernels && !begins_with(line, end)) continue;
    const char *part_end = *line ? line : text + strlen(text);
    if (kernel < nkernels && json_array_set_new(kernels, kernel, add_part(l, begin, part_end)) != 0)
      memory_or_exit(NULL);
    begin = line;
    kernel = next;
    if (!*line) return kernels;
  }
}
