// Shared by the tests of the toolchain: a folder of its own, a compiler whose calls are counted, and a small graph.
#ifndef NGRAD_TESTS_UNIT_TOOLCHAIN_CASE_H
#define NGRAD_TESTS_UNIT_TOOLCHAIN_CASE_H

#include "frontend/api/handles.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { PATH_BYTES = 512 };

static char folder[64];    // of the running test; removed after it
static char user_cc[4096]; // the compiler of the user

static const char small_graph[] = "format: ngrad/1\nname: small\n"
                                  "inputs: [{name: x, type: f32, shape: [3, 20]}, {name: y, type: f32, shape: [20]}]\n"
                                  "nodes: [{op: Add, inputs: [x, y], outputs: [z]}]\noutputs: [z]\n";

// Files

static inline const char *in_folder(const char *name) {
  static char paths[8][PATH_BYTES];
  static unsigned next;
  char *path = paths[next++ % 8];
  snprintf(path, PATH_BYTES, "%s/%s", folder, name);
  return path;
}

static inline void write_file(const char *path, const char *text, mode_t mode) {
  FILE *f = fopen(path, "w");
  assert_non_null(f);
  fputs(text, f);
  fclose(f);
  assert_int_equal(chmod(path, mode), 0);
}

static inline int count_lines(const char *path) {
  FILE *f = fopen(path, "r");
  int count = 0;
  for (int c; f && (c = getc(f)) != EOF;) count += c == '\n';
  if (f) fclose(f);
  return count;
}

// The number of files in a folder, and the path of the last one.
static inline int list(const char *path, char *last) {
  DIR *d = opendir(path);
  int count = 0;
  for (struct dirent *entry; d && (entry = readdir(d));) {
    if (entry->d_name[0] == '.') continue;
    count++;
    if (last) snprintf(last, PATH_BYTES, "%s/%.200s", path, entry->d_name);
  }
  if (d) closedir(d);
  return count;
}

static inline int remove_one(const char *path, const struct stat *status, int kind, struct FTW *at) {
  (void)status, (void)kind, (void)at;
  return remove(path);
}

// A compiler that writes a line to the file "calls", and then runs the command `then`.
static inline void use_compiler(const char *then) {
  char script[8192];
  snprintf(script, sizeof script, "#!/bin/sh\necho called >>'%s/calls'\n%s\n", folder, then);
  write_file(in_folder("cc"), script, 0700);
  setenv("CC", in_folder("cc"), 1);
}

static inline void use_working_compiler(void) {
  char then[5000];
  snprintf(then, sizeof then, "exec %s \"$@\"", user_cc);
  use_compiler(then);
}

static inline int calls(void) {
  return count_lines(in_folder("calls"));
}

static inline int set_up(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/ngrad-toolchain-XXXXXX");
  if (!mkdtemp(folder) || mkdir(in_folder("tmp"), 0700) != 0) return -1;
  setenv("XDG_CACHE_HOME", in_folder("cache"), 1);
  setenv("TMPDIR", in_folder("tmp"), 1);
  use_working_compiler();
  return 0;
}

static inline int tear_down(void **state) {
  (void)state;
  return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

// Graphs

typedef struct Compiled {
  ng_context *ctx;
  ng_graph *graph;
  ng_kernel *kernel;
  ng_status status;
} Compiled;

static inline Compiled compile_graph(const char *text) {
  Compiled c = {.ctx = ng_context_new(NULL)};
  c.graph = ng_graph_read(c.ctx, "test.yaml", text, strlen(text), NULL);
  if (!c.graph) fail_msg("%s", ng_messages_text(c.ctx, 0));
  c.kernel = ng_compile(c.graph, NULL);
  c.status = ng_last_status(c.ctx);
  return c;
}

static inline void compiled_deinit(Compiled *c) {
  ng_kernel_free(c->kernel);
  ng_graph_free(c->graph);
  ng_context_free(c->ctx);
}

// Runs both ways and compares.
static inline bool agrees(const Compiled *c) {
  enum { MOST = 64 };
  ng_tensor inputs[MOST] = {0}, outputs[MOST] = {0}, expected[MOST] = {0};
  size_t ninputs = ng_graph_input_count(c->graph), noutputs = ng_graph_output_count(c->graph);
  bool ok = ninputs <= MOST && noutputs <= MOST;
  for (size_t i = 0; i < ninputs && ok; i++) ok = ng_tensor_random(c->graph, i, 3, &inputs[i]) == NG_OK;
  for (size_t k = 0; k < noutputs && ok; k++) {
    ng_tensor_info info = ng_graph_output(c->graph, k);
    ok = ng_tensor_new(c->ctx, &info, &outputs[k]) == NG_OK && ng_tensor_new(c->ctx, &info, &expected[k]) == NG_OK;
  }
  ok = ok && ng_kernel_run(c->kernel, inputs, outputs, 2) == NG_OK &&
       ng_interpret(c->graph, inputs, expected, 0) == NG_OK;
  for (size_t k = 0; k < noutputs && ok; k++) {
    ng_difference difference;
    ok = ng_tensor_compare(c->ctx, &outputs[k], &expected[k], -1, &difference) == NG_OK;
  }
  for (size_t i = 0; i < ninputs && i < MOST; i++) ng_tensor_free(c->ctx, &inputs[i]);
  for (size_t k = 0; k < noutputs && k < MOST; k++) {
    ng_tensor_free(c->ctx, &outputs[k]);
    ng_tensor_free(c->ctx, &expected[k]);
  }
  return ok;
}

// Whether the small graph came from the cache; its kernel must be right.
static inline bool is_cached(void) {
  Compiled c = compile_graph(small_graph);
  if (!c.kernel) fail_msg("%s", ng_messages_text(c.ctx, 0));
  bool was_cached = ng_kernel_get_info(c.kernel).was_cached;
  assert_true(agrees(&c));
  compiled_deinit(&c);
  return was_cached;
}

static inline void must_fail_with(const char *words) {
  Compiled c = compile_graph(small_graph);
  assert_null(c.kernel);
  assert_int_equal(c.status, NG_COMPILER_FAILED);
  if (!strstr(ng_messages_text(c.ctx, 0), words))
    fail_msg("expected a message with: %s\nfound: %s", words, ng_messages_text(c.ctx, 0));
  compiled_deinit(&c);
}

#endif
