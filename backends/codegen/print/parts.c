// The list of the parts of an emitted text, each with the name that it begins with.
#include "backends/codegen/print/printer.h"

static void add(Parts *parts, Part part) {
  parts->out_of_memory |= !arena_grow(parts->arena, &parts->items, parts->count, &parts->capacity, sizeof part);
  if (!parts->out_of_memory) parts->items[parts->count++] = part;
}

void part_begin(Parts *parts, const Text *text, const char *name) {
  if (parts) add(parts, (Part){text, text->nbytes, text->nbytes, name});
}

void part_begin_named(Parts *parts, const Text *text, const char *format, ...) {
  if (!parts) return;
  Text name;
  va_list args;
  va_start(args, format);
  text_init(&name, parts->arena->allocator);
  text_format_list(&name, format, args);
  const char *copy = arena_copy_text(parts->arena, text_string(&name), name.nbytes);
  parts->out_of_memory |= !copy || name.out_of_memory;
  part_begin(parts, text, copy);
  text_deinit(&name);
  va_end(args);
}

void part_end_comment(Parts *parts) {
  if (parts && parts->count) parts->items[parts->count - 1].code = parts->items[parts->count - 1].text->nbytes;
}

void parts_add(Parts *to, Text *out, const Parts *from, const Text *text) {
  for (size_t i = 0; i < from->count; i++) {
    const Part *p = &from->items[i];
    if (p->text == text) add(to, (Part){out, out->nbytes + p->begin, out->nbytes + p->code, p->name});
  }
  text_add(out, text_string(text), text->nbytes);
}
