// Makes layouts in two steps, because dot does not lay out nested frames reliably: first the nodes inside each kernel,
// then the kernels as boxes of the resulting sizes. dot reads several graphs at once, and answers in its format plain.
#include "frontend/cli/report/layout.h"

#include "frontend/cli/clock.h"
#include "frontend/cli/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { INCH = 72 };                                    // pixels
enum { MOST_KERNELS = 180 };                           // of a part: dot takes seconds for more
enum { MOST_INSIDE = 60 };                             // operators of a kernel: one with more is drawn folded
enum { MOST_NODES = 120 };                             // of a graph without kernels: more are illegible
enum { MOST_BOXES = 80 };                              // with inputs and outputs: more are illegible
enum { LETTER = 7, LINE = 16, MOST_LETTERS = 34 };     // of a label, in pixels; longer lines are cut
enum { PADDING = 8, HEADING = 40, LEAST_WIDTH = 150 }; // of a kernel's frame
static const double patience_ms = 20000;
static const char not_found[] = "Graphviz's dot was not found; Debian has it in the package graphviz";

// Running dot

static char *read_all(FILE *file) {
  TextStream text;
  FILE *out = text_open(&text);
  char buffer[1 << 14];
  rewind(file);
  for (size_t n; (n = fread(buffer, 1, sizeof buffer, file)) > 0;) fwrite(buffer, 1, n, out);
  return text_close(&text);
}

static pid_t start_dot(FILE *in, FILE *out) {
  static char *const arguments[] = {"dot", "-Tplain", NULL};
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  sigset_t none;
  pid_t child = -1;
  sigemptyset(&none);
  if (posix_spawn_file_actions_init(&files) != 0) return -1;
  if (posix_spawnattr_init(&attributes) == 0) {
    const bool ok = posix_spawnattr_setsigmask(&attributes, &none) == 0 &&
                    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK) == 0 &&
                    posix_spawn_file_actions_adddup2(&files, fileno(in), STDIN_FILENO) == 0 &&
                    posix_spawn_file_actions_adddup2(&files, fileno(out), STDOUT_FILENO) == 0 &&
                    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0) == 0;
    if (!ok || posix_spawnp(&child, "dot", &files, &attributes, arguments, environ) != 0) child = -1;
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&files);
  return child;
}

// Why dot failed; NULL: it succeeded.
static const char *await_dot(pid_t child) {
  const struct timespec pause = {.tv_nsec = 5000000};
  const double began = now_ms();
  int status = 0;
  pid_t ended;
  while ((ended = waitpid(child, &status, WNOHANG)) == 0 && now_ms() - began < patience_ms) nanosleep(&pause, NULL);
  if (ended == 0) {
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return "Graphviz's dot took longer than 20 seconds";
  }
  if (ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 127) return not_found;
  return ended > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? NULL : "Graphviz's dot failed";
}

static FILE *temporary_file(void) {
  FILE *file = tmpfile();
  if (!file) exit(plain_error("cannot make a temporary file: %s", strerror(errno)));
  return file;
}

// dot's answer to the text; NULL after setting *why. The caller frees it.
static char *run_dot(const char *text, const char **why) {
  FILE *in = temporary_file(), *out = temporary_file();
  char *answer = NULL;
  if (fputs(text, in) < 0 || fflush(in) != 0) exit(plain_error("cannot write a temporary file: %s", strerror(errno)));
  rewind(in);
  const pid_t child = start_dot(in, out);
  *why = child > 0 ? await_dot(child) : not_found;
  if (!*why) answer = read_all(out);
  fclose(in);
  fclose(out);
  return answer;
}

// Reading its answer

static json_t *pixels(double inches) {
  return memory_or_exit(json_integer((json_int_t)(inches * INCH + 0.5)));
}

enum { NAME_NBYTES = 16 }; // of a box's generated name

static double read_number(const char **at) {
  char *end;
  const double number = strtod(*at, &end);
  *at = end;
  return number;
}

static void read_name(const char **at, char name[NAME_NBYTES]) {
  size_t length = 0;
  while (**at == ' ') (*at)++;
  for (; (unsigned char)**at > ' '; (*at)++)
    if (length + 1 < NAME_NBYTES) name[length++] = **at;
  name[length] = 0;
}

static void add_point(json_t *list, const char **at, double height) {
  const double x = read_number(at), y = read_number(at);
  json_add(list, pixels(x));
  json_add(list, pixels(height - y));
}

// node NAME X Y WIDTH HEIGHT ...
static void read_box(const char *at, double height, json_t *boxes) {
  char name[NAME_NBYTES];
  json_t *box = memory_or_exit(json_array());
  read_name(&at, name);
  add_point(box, &at, height);
  for (int i = 0; i < 2; i++) json_add(box, pixels(read_number(&at)));
  json_set(boxes, name, box);
}

// edge TAIL HEAD NUMBER X Y X Y ...
static void read_arrow(const char *at, double height, json_t *arrows) {
  char name[NAME_NBYTES];
  json_t *arrow = memory_or_exit(json_array());
  for (int i = 0; i < 2; i++) {
    read_name(&at, name);
    json_add(arrow, json_text(name));
  }
  for (int npoints = (int)read_number(&at); npoints > 0 && *at; npoints--) add_point(arrow, &at, height);
  json_add(arrows, arrow);
}

// The rest of a line after its first word; NULL: the line begins with another word.
static const char *behind(const char *line, const char *word) {
  const size_t length = strlen(word);
  return strncmp(line, word, length) == 0 ? line + length : NULL;
}

// Reads the graph's answer at *text and advances *text: graph SCALE WIDTH HEIGHT, a line for each box and each arrow,
// and stop. NULL: no answer.
static json_t *read_layout(const char **text) {
  const char *at = behind(*text, "graph "), *rest;
  if (!at) return NULL;
  read_number(&at); // the scale, 1
  const double width = read_number(&at), height = read_number(&at);
  json_t *layout = memory_or_exit(json_object()), *size = memory_or_exit(json_array());
  json_t *boxes = memory_or_exit(json_object()), *arrows = memory_or_exit(json_array());
  json_add(size, pixels(width));
  json_add(size, pixels(height));
  json_set_all(layout, {"size", size}, {"boxes", boxes}, {"arrows", arrows});
  const char *line = *text;
  while ((line = strchr(line, '\n')) && !behind(++line, "stop")) {
    if ((rest = behind(line, "node "))) read_box(rest, height, boxes);
    else if ((rest = behind(line, "edge "))) read_arrow(rest, height, arrows);
  }
  line = line ? strchr(line, '\n') : NULL;
  *text = line ? line + 1 : "";
  return layout;
}

// Asking it

typedef struct Program {
  const json_t *values, *nodes, *kernels;
  int (*node_size)[2]; // by node, in pixels
} Program;

static size_t index_at(const json_t *list, size_t i) {
  return (size_t)json_integer_value(json_array_get(list, i));
}

static int larger(int a, int b) {
  return a > b ? a : b;
}

static int letters(const char *text) {
  int count = 0;
  for (; *text && count < MOST_LETTERS; text++) count += ((unsigned char)*text & 0xC0) != 0x80;
  return count;
}

// The lines of a label: "name" and "type [shape]".
static int value_letters(const json_t *value) {
  enum { OF_EXTENT = 6 }; // about
  const int shape =
      letters(json_text_at(value, "type")) + OF_EXTENT * (int)json_array_size(json_object_get(value, "shape"));
  const int most = larger(letters(json_text_at(value, "name")), shape + 3);
  return most < MOST_LETTERS ? most : MOST_LETTERS;
}

static void measure_node(Program *p, size_t i) {
  const json_t *node = json_array_get(p->nodes, i), *outputs = json_object_get(node, "outputs");
  int most = letters(json_text_at(node, "op")) * 9 / 8 + 6; // in bold; and the line
  for (size_t k = 0; k < json_array_size(outputs); k++)
    if (!json_is_null(json_array_get(outputs, k)))
      most = larger(most, value_letters(json_array_get(p->values, index_at(outputs, k))));
  p->node_size[i][0] = most * LETTER + 2 * PADDING;
  p->node_size[i][1] = 3 * LINE + PADDING;
}

static void print_box(FILE *out, char letter, size_t index, int width, int height) {
  fprintf(out, "%c%zu[width=%.3f,height=%.3f];\n", letter, index, (double)width / INCH, (double)height / INCH);
}

static void print_begin(FILE *out) {
  fputs("digraph{nodesep=.25;ranksep=.3;node[shape=box,label=\"\",fixedsize=true];\n", out);
}

// Finds the kernel's node that makes each value: by value, 1 + the node.
static void print_inside(const Program *p, const json_t *kernel, size_t *maker, FILE *out) {
  const json_t *own = json_object_get(kernel, "nodes");
  print_begin(out);
  for (size_t i = 0; i < json_array_size(own); i++) {
    const size_t node = index_at(own, i);
    print_box(out, 'n', node, p->node_size[node][0], p->node_size[node][1]);
    const json_t *outputs = json_object_get(json_array_get(p->nodes, node), "outputs");
    for (size_t k = 0; k < json_array_size(outputs); k++)
      if (!json_is_null(json_array_get(outputs, k))) maker[index_at(outputs, k)] = node + 1;
  }
  for (size_t i = 0; i < json_array_size(own); i++) {
    const json_t *inputs = json_object_get(json_array_get(p->nodes, index_at(own, i)), "inputs");
    for (size_t k = 0; k < json_array_size(inputs); k++) {
      const json_t *input = json_array_get(inputs, k);
      const size_t from = json_is_null(input) ? 0 : maker[json_integer_value(input)];
      if (from) fprintf(out, "n%zu->n%zu;\n", from - 1, index_at(own, i));
    }
  }
  fputs("}\n", out);
  for (size_t i = 0; i < json_array_size(own); i++) {
    const json_t *outputs = json_object_get(json_array_get(p->nodes, index_at(own, i)), "outputs");
    for (size_t k = 0; k < json_array_size(outputs); k++)
      if (!json_is_null(json_array_get(outputs, k))) maker[index_at(outputs, k)] = 0;
  }
}

// Whether a kernel's operators are laid out: a single one needs no layout, and too many are folded.
static bool has_inside(const json_t *kernel) {
  const size_t count = json_array_size(json_object_get(kernel, "nodes"));
  return count > 1 && count <= MOST_INSIDE;
}

// By kernel: the layout of its operators, or null.
static json_t *layout_insides(const Program *p, const char **why) {
  const size_t nkernels = json_array_size(p->kernels);
  size_t *maker = memory_or_exit(calloc(json_array_size(p->values) + 1, sizeof *maker));
  TextStream asked;
  FILE *out = text_open(&asked);
  for (size_t i = 0; i < nkernels; i++) {
    const json_t *kernel = json_array_get(p->kernels, i);
    if (has_inside(kernel)) print_inside(p, kernel, maker, out);
  }
  free(maker);
  char *text = text_close(&asked), *answer = *text ? run_dot(text, why) : memory_or_exit(strdup(""));
  free(text);
  if (!answer) return NULL;
  const char *at = answer;
  json_t *insides = memory_or_exit(json_array());
  for (size_t i = 0; i < nkernels; i++) {
    json_t *layout = has_inside(json_array_get(p->kernels, i)) ? read_layout(&at) : NULL;
    json_add(insides, layout ? layout : json_null());
  }
  free(answer);
  return insides;
}

static void print_kernel_box(const Program *p, const json_t *insides, size_t i, FILE *out) {
  const json_t *size = json_object_get(json_array_get(insides, i), "size");
  const json_t *own = json_object_get(json_array_get(p->kernels, i), "nodes");
  int width = (int)index_at(size, 0), height = (int)index_at(size, 1);
  if (!size && json_array_size(own)) {
    width = p->node_size[index_at(own, 0)][0];
    height = p->node_size[index_at(own, 0)][1];
  }
  print_box(out, 'k', i, larger(width + 2 * PADDING, LEAST_WIDTH), height + HEADING + PADDING);
}

typedef struct Part {
  size_t first, end; // kernels
  bool has_values;
} Part;

typedef struct Outside {
  const Program *program;
  json_t *done; // names of boxes and arrows that are already in the layout
  FILE *out;
} Outside;

static bool is_new(Outside *o, const char *name) {
  if (json_object_get(o->done, name)) return false;
  json_set(o->done, name, memory_or_exit(json_true()));
  return true;
}

static void print_value_box(Outside *o, char letter, size_t value) {
  char name[24];
  snprintf(name, sizeof name, "%c%zu", letter, value);
  if (is_new(o, name))
    print_box(o->out, letter, value, value_letters(json_array_get(o->program->values, value)) * LETTER + 3 * PADDING,
              2 * LINE + PADDING);
}

static void print_arrow(Outside *o, char from_letter, size_t from, char to_letter, size_t to) {
  char name[48];
  snprintf(name, sizeof name, "%c%zu->%c%zu", from_letter, from, to_letter, to);
  if (is_new(o, name)) fprintf(o->out, "%s;\n", name);
}

// Adds the arrows to the kernel: from the kernels that wrote a value that it reads, or from the value if no kernel
// before wrote it.
static void print_reads(Outside *o, const json_t *const *writers, const Part *part, size_t kernel) {
  const json_t *reads = json_object_get(json_array_get(o->program->kernels, kernel), "reads");
  for (size_t r = 0; r < json_array_size(reads); r++) {
    const size_t value = index_at(reads, r);
    bool is_made = false;
    for (size_t w = 0; w < json_array_size(writers[value]); w++) {
      const size_t writer = index_at(writers[value], w);
      if (writer >= kernel || writer < part->first) continue;
      print_arrow(o, 'k', writer, 'k', kernel);
      is_made = true;
    }
    if (is_made || !part->has_values) continue;
    print_value_box(o, 'v', value);
    print_arrow(o, 'v', value, 'k', kernel);
  }
}

static void print_part(const Program *p, const json_t *insides, const json_t *const *writers, const Part *part,
                       FILE *out) {
  Outside o = {p, memory_or_exit(json_object()), out};
  print_begin(out);
  for (size_t i = part->first; i < part->end; i++) {
    print_kernel_box(p, insides, i, out);
    print_reads(&o, writers, part, i);
    const json_t *writes = json_object_get(json_array_get(p->kernels, i), "writes");
    for (size_t w = 0; part->has_values && w < json_array_size(writes); w++) {
      const size_t value = index_at(writes, w);
      if (!json_is_true(json_object_get(json_array_get(p->values, value), "output"))) continue;
      print_value_box(&o, 'o', value);
      print_arrow(&o, 'k', i, 'o', value);
    }
  }
  fputs("}\n", out);
  json_decref(o.done);
}

// By value: the kernels that write it, ascending; NULL: none.
static json_t **find_writers(const Program *p) {
  json_t **writers = memory_or_exit(calloc(json_array_size(p->values) + 1, sizeof *writers));
  for (size_t i = 0; i < json_array_size(p->kernels); i++) {
    const json_t *writes = json_object_get(json_array_get(p->kernels, i), "writes");
    for (size_t w = 0; w < json_array_size(writes); w++) {
      json_t **of = &writers[index_at(writes, w)];
      if (!*of) *of = memory_or_exit(json_array());
      json_add(*of, json_count(i));
    }
  }
  return writers;
}

// The number of values that are inputs, constants or outputs.
static size_t count_outer(const Program *p, json_t *const *writers) {
  size_t count = 0;
  for (size_t v = 0; v < json_array_size(p->values); v++)
    count += !writers[v] || json_is_true(json_object_get(json_array_get(p->values, v), "output"));
  return count;
}

static json_t *layout_parts(const Program *p, const json_t *insides, bool *has_values, const char **why) {
  const size_t nkernels = json_array_size(p->kernels), nparts = (nkernels + MOST_KERNELS - 1) / MOST_KERNELS;
  json_t **writers = find_writers(p);
  *has_values = nkernels + count_outer(p, writers) <= MOST_BOXES;
  TextStream asked;
  FILE *out = text_open(&asked);
  for (size_t i = 0; i < nparts; i++)
    print_part(p, insides, (const json_t *const *)writers,
               &(Part){nkernels * i / nparts, nkernels * (i + 1) / nparts, *has_values}, out);
  for (size_t v = 0; v < json_array_size(p->values); v++) json_decref(writers[v]);
  free(writers);
  char *text = text_close(&asked), *answer = run_dot(text, why);
  free(text);
  if (!answer) return NULL;
  const char *at = answer;
  json_t *parts = memory_or_exit(json_array());
  for (size_t i = 0; i < nparts; i++) {
    json_t *part = memory_or_exit(json_object()), *layout = read_layout(&at);
    json_set_all(part, {"first", json_integer((json_int_t)(nkernels * i / nparts))},
                 {"end", json_integer((json_int_t)(nkernels * (i + 1) / nparts))},
                 {"layout", layout ? layout : json_null()});
    json_add(parts, part);
  }
  free(answer);
  return parts;
}

static Program program_init(const json_t *json) {
  Program p = {json_object_get(json, "values"), json_object_get(json, "nodes"), json_object_get(json, "kernels"), NULL};
  p.node_size = memory_or_exit(calloc(json_array_size(p.nodes) + 1, sizeof *p.node_size));
  for (size_t i = 0; i < json_array_size(p.nodes); i++) measure_node(&p, i);
  return p;
}

// Adds the boxes and arrows of a node. maker: by value, 1 + the earlier node that makes it.
static void print_node(Outside *o, size_t node, size_t *maker) {
  const Program *p = o->program;
  const json_t *inputs = json_object_get(json_array_get(p->nodes, node), "inputs");
  const json_t *outputs = json_object_get(json_array_get(p->nodes, node), "outputs");
  print_box(o->out, 'n', node, p->node_size[node][0], p->node_size[node][1]);
  for (size_t k = 0; k < json_array_size(inputs); k++) {
    if (json_is_null(json_array_get(inputs, k))) continue;
    const size_t value = index_at(inputs, k);
    if (!maker[value]) print_value_box(o, 'v', value);
    print_arrow(o, maker[value] ? 'n' : 'v', maker[value] ? maker[value] - 1 : value, 'n', node);
  }
  for (size_t k = 0; k < json_array_size(outputs); k++) {
    if (json_is_null(json_array_get(outputs, k))) continue;
    const size_t value = index_at(outputs, k);
    maker[value] = node + 1;
    if (!json_is_true(json_object_get(json_array_get(p->values, value), "output"))) continue;
    print_value_box(o, 'o', value);
    print_arrow(o, 'n', node, 'o', value);
  }
}

json_t *layout_graph(const json_t *graph) {
  if (json_array_size(json_object_get(graph, "nodes")) > MOST_NODES) return NULL;
  Program p = program_init(graph);
  TextStream asked;
  Outside o = {&p, memory_or_exit(json_object()), text_open(&asked)};
  size_t *maker = memory_or_exit(calloc(json_array_size(p.values) + 1, sizeof *maker));
  print_begin(o.out);
  for (size_t i = 0; i < json_array_size(p.nodes); i++) print_node(&o, i, maker);
  fputs("}\n", o.out);
  const char *why;
  char *text = text_close(&asked), *answer = run_dot(text, &why);
  const char *at = answer;
  json_t *layout = answer ? read_layout(&at) : NULL;
  free(answer);
  free(text);
  free(maker);
  free(p.node_size);
  json_decref(o.done);
  return layout;
}

static json_t *sizes_json(const Program *p) {
  json_t *sizes = memory_or_exit(json_array());
  for (size_t i = 0; i < json_array_size(p->nodes); i++) {
    json_t *size = memory_or_exit(json_array());
    json_add(size, json_integer(p->node_size[i][0]));
    json_add(size, json_integer(p->node_size[i][1]));
    json_add(sizes, size);
  }
  return sizes;
}

json_t *layout_program(const json_t *program, const char **why) {
  Program p = program_init(program);
  bool has_values = false;
  json_t *insides = layout_insides(&p, why);
  json_t *parts = insides ? layout_parts(&p, insides, &has_values, why) : NULL;
  json_t *drawing = parts ? memory_or_exit(json_object()) : NULL;
  if (drawing) {
    json_set_all(drawing, {"nodes", sizes_json(&p)}, {"inside", insides}, {"parts", parts},
                 {"has_values", json_boolean(has_values)});
  } else {
    json_decref(insides);
  }
  free(p.node_size);
  return drawing;
}
