// Makes a tree from libyaml's events. For any input, the result is a tree within the limits or one message: after an
// error in YAML's own grammar, nothing that follows can be trusted.
#include "frontend/yaml/tree.h"

#include "frontend/names.h"
#include "frontend/yaml/yaml.h"

#include <string.h>
#include <yaml.h>

enum { MOST_TAG_LINES = 100 };

typedef struct Frame {
  Yaml *node;
  size_t nitems, capacity;
} Frame;

typedef struct TreeReader {
  yaml_parser_t parser;
  const Source *source;
  Arena *arena;
  Diagnostics *d;
  Names anchors;
  Frame stack[YAML_MAX_DEPTH];
  size_t depth;
  size_t nnodes, naliased; // so far: nodes, and nodes that aliases stand for
  Yaml *root;
} TreeReader;

static Position mark_position(const TreeReader *b, yaml_mark_t mark) {
  return (Position){b->source, (uint32_t)mark.line + 1, (uint32_t)mark.column + 1};
}

// libyaml's messages, and the usual cause of each in a graph file.
static const struct {
  const char *problem, *hint;
} hints[] = {
    {"mapping values are not allowed in this context", "a value with \": \" in it needs quotes; or indent this key as "
                                                       "its neighbours"},
    {"found character that cannot start any token", "indent with spaces, not tabs; quote what begins with @, ` or %"},
    {"could not find expected ':'", "a key is followed by \": \""},
    {"did not find expected key", "indent this as its neighbours"},
    {"did not find expected ',' or '}'", "close the map with }; quote names with special characters"},
    {"did not find expected ',' or ']'", "close the list with ]; quote names with special characters"},
};

// The position of a byte. For bytes that cannot be decoded, which have no mark.
static Position offset_position(const TreeReader *b, size_t offset) {
  Position at = {b->source, 1, 1};
  if (offset > b->source->nbytes) offset = b->source->nbytes;
  for (size_t i = 0; i < offset; i++) {
    unsigned char c = (unsigned char)b->source->text[i];
    if (c == '\n') {
      at.line++;
      at.column = 1;
    } else if ((c & 0xC0U) != 0x80U) {
      at.column++;
    }
  }
  return at;
}

static bool tell_parser_error(const TreeReader *b) {
  const yaml_parser_t *p = &b->parser;
  const char *problem = p->problem ? p->problem : "unknown error";
  if (p->error == YAML_MEMORY_ERROR) return error_out_of_memory(b->d);
  if (p->error == YAML_READER_ERROR)
    return error_at(b->d, offset_position(b, p->problem_offset), "not a text in UTF-8: %s", problem);
  const char *hint = NULL;
  for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
    if (strcmp(problem, hints[i].problem) == 0) hint = hints[i].hint;
  Text where;
  text_init(&where, b->arena->allocator);
  if (p->context && p->context_mark.line != p->problem_mark.line)
    text_format(&where, " %s that begins on line %zu", p->context, p->context_mark.line + 1);
  else if (p->context) text_format(&where, " %s", p->context);
  bool may_be_json = b->source->text[strspn(b->source->text, " \t\r\n")] == '{';
  error_at(b->d, mark_position(b, p->problem_mark), "not valid YAML%s: %s%s%s%s", may_be_json ? " or JSON" : "",
           problem, text_string(&where), hint ? "; " : "", hint ? hint : "");
  text_deinit(&where);
  return false;
}

// Whether a line may begin here: after a byte that ends a line break, after the byte order mark of UTF-8, or at the
// start.
static bool is_at_line_start(const Source *source, const char *at) {
  return at == source->text || strchr("\n\r\x85\xa8\xa9\xbf", at[-1]);
}

// libyaml searches a list of all tags for each tag, so their number is limited.
static bool has_too_many_tag_lines(const Source *source) {
  const char *at = source->text, *end = at + source->nbytes;
  for (int n = 0; n <= MOST_TAG_LINES; at += 4) {
    at = memmem(at, (size_t)(end - at), "%TAG", 4);
    if (!at) return false;
    n += is_at_line_start(source, at);
  }
  return true;
}

static bool is_core_tag(const char *tag, YamlKind kind) {
  static const char prefix[] = "tag:yaml.org,2002:";
  static const char *const scalars[] = {"str", "int", "float", "bool", "null"};
  if (strcmp(tag, "!") == 0) return true;
  if (strncmp(tag, prefix, sizeof prefix - 1) != 0) return false;
  tag += sizeof prefix - 1;
  if (kind != YAML_SCALAR) return strcmp(tag, kind == YAML_MAP ? "map" : "seq") == 0;
  for (size_t i = 0; i < sizeof scalars / sizeof *scalars; i++)
    if (strcmp(tag, scalars[i]) == 0) return true;
  return false;
}

// Adds a node that was opened or closed to the innermost open collection.
static bool attach(TreeReader *b, Yaml *node, Position at) {
  char found[DESCRIPTION_BYTES];
  if (b->depth == 0) {
    b->root = node;
    return true;
  }
  Frame *top = &b->stack[b->depth - 1];
  if (top->node->kind == YAML_MAP && top->nitems % 2 == 0 && node->kind != YAML_SCALAR)
    return error_at(b->d, at, "expected a word as key, found %s", yaml_describe(node, found));
  if (!arena_grow(b->arena, &top->node->items, top->nitems, &top->capacity, sizeof *top->node->items))
    return error_out_of_memory(b->d);
  top->node->items[top->nitems++] = node;
  return true;
}

static Yaml *new_node(TreeReader *b, YamlKind kind, const yaml_char_t *anchor, const yaml_char_t *tag, Position at) {
  if (tag && !is_core_tag((const char *)tag, kind)) {
    char found[DESCRIPTION_BYTES];
    error_at(b->d, at, "unexpected tag %s: a graph file has no types of its own", yaml_quote((const char *)tag, found));
    return NULL;
  }
  if (b->nnodes++ == YAML_MAX_NODES)
    return error_at(b->d, at, "too many YAML nodes, expected at most %d", YAML_MAX_NODES), NULL;
  Yaml *node = ARENA_NEW(b->arena, Yaml);
  const char *name =
      anchor && node ? arena_copy_text(b->arena, (const char *)anchor, strlen((const char *)anchor)) : NULL;
  if (!node || (anchor && (!name || !names_set(&b->anchors, name, node)))) return error_out_of_memory(b->d), NULL;
  node->kind = kind;
  node->line = at.line;
  node->column = at.column;
  return node;
}

static bool add_scalar(TreeReader *b, const yaml_event_t *event) {
  Position at = mark_position(b, event->start_mark);
  const char *text = (const char *)event->data.scalar.value, *tag = (const char *)event->data.scalar.tag;
  size_t nbytes = event->data.scalar.length;
  Yaml *node = new_node(b, YAML_SCALAR, event->data.scalar.anchor, event->data.scalar.tag, at);
  if (!node) return false;
  if (memchr(text, 0, nbytes)) return error_at(b->d, at, "unexpected zero character in a text");
  node->weight = 1;
  node->count = (uint32_t)nbytes;
  node->text = arena_copy_text(b->arena, text, nbytes);
  if (!node->text) return error_out_of_memory(b->d);
  node->is_plain = tag ? strcmp(tag, "!") != 0 && strcmp(tag, "tag:yaml.org,2002:str") != 0
                       : event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
  return attach(b, node, at);
}

static bool tell_depth(TreeReader *b, Position at) {
  return error_at(b->d, at, "nested too deep, expected at most %d levels", YAML_MAX_DEPTH);
}

static bool open_collection(TreeReader *b, YamlKind kind, const yaml_char_t *anchor, const yaml_char_t *tag,
                            yaml_mark_t mark) {
  Position at = mark_position(b, mark);
  if (b->depth == YAML_MAX_DEPTH) return tell_depth(b, at);
  Yaml *node = new_node(b, kind, anchor, tag, at);
  if (!node || !attach(b, node, at)) return false;
  b->stack[b->depth++] = (Frame){.node = node};
  return true;
}

static void close_collection(TreeReader *b) {
  const Frame *top = &b->stack[--b->depth];
  Yaml *node = top->node;
  uint32_t weight = 1;
  uint8_t height = 0;
  for (size_t i = 0; i < top->nitems; i++) {
    weight += node->items[i]->weight;
    if (node->items[i]->height > height) height = node->items[i]->height;
  }
  node->weight = weight;
  node->height = (uint8_t)(height + 1);
  node->count = (uint32_t)(node->kind == YAML_MAP ? top->nitems / 2 : top->nitems);
}

static bool add_alias(TreeReader *b, const yaml_event_t *event) {
  Position at = mark_position(b, event->start_mark);
  const char *name = (const char *)event->data.alias.anchor;
  char found[DESCRIPTION_BYTES];
  Yaml *node = names_find(&b->anchors, name);
  if (!node)
    return error_at(b->d, at, "unknown alias *%s, expected an anchor &%s before it", yaml_quote(name, found), found);
  if (node->weight == 0) return error_at(b->d, at, "alias *%s is inside its own anchor", yaml_quote(name, found));
  if (b->depth + node->height > YAML_MAX_DEPTH) return tell_depth(b, at);
  b->naliased += node->weight;
  if (b->naliased > YAML_MAX_ALIASED)
    return error_at(b->d, at, "aliases stand for too many YAML nodes, expected at most %d", YAML_MAX_ALIASED);
  return attach(b, node, at);
}

static bool add_event(TreeReader *b, const yaml_event_t *event) {
  switch (event->type) {
  case YAML_DOCUMENT_START_EVENT:
    if (!b->root) return true;
    return error_at(b->d, mark_position(b, event->start_mark), "expected one document, found a second");
  case YAML_SCALAR_EVENT: return add_scalar(b, event);
  case YAML_SEQUENCE_START_EVENT:
    return open_collection(b, YAML_LIST, event->data.sequence_start.anchor, event->data.sequence_start.tag,
                           event->start_mark);
  case YAML_MAPPING_START_EVENT:
    return open_collection(b, YAML_MAP, event->data.mapping_start.anchor, event->data.mapping_start.tag,
                           event->start_mark);
  case YAML_SEQUENCE_END_EVENT:
  case YAML_MAPPING_END_EVENT: close_collection(b); return true;
  case YAML_ALIAS_EVENT: return add_alias(b, event);
  default: return true;
  }
}

static bool build(TreeReader *b) {
  for (;;) {
    yaml_event_t event;
    if (!yaml_parser_parse(&b->parser, &event)) return tell_parser_error(b);
    bool is_end = event.type == YAML_STREAM_END_EVENT, ok = add_event(b, &event);
    yaml_event_delete(&event);
    if (!ok || is_end) return ok;
  }
}

Yaml *yaml_tree_read(const Source *source, Arena *arena, Diagnostics *d) {
  TreeReader b = {.source = source, .arena = arena, .d = d};
  names_init(&b.anchors, arena);
  if (has_too_many_tag_lines(source))
    return error_at(d, (Position){source, 0, 0}, "more than %d %%TAG directives", MOST_TAG_LINES), NULL;
  if (!yaml_parser_initialize(&b.parser)) return error_out_of_memory(d), NULL;
  yaml_parser_set_input_string(&b.parser, (const unsigned char *)source->text, source->nbytes);
  yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING); // prevents guessing UTF-16
  bool ok = build(&b);
  yaml_parser_delete(&b.parser);
  if (ok && !b.root)
    ok = error_at(d, (Position){source, 0, 0}, "empty file, expected a graph that begins with format: ngrad/1");
  return ok ? b.root : NULL;
}
