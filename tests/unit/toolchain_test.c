// From emitted C to a loaded kernel: the cache, a compiler that is missing or fails, several processes at once, and
// names that try to be code.
#include "tests/unit/toolchain_case.h"

#include "tests/effort.h"
#include "tests/unit/failing_allocator.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <sys/wait.h>

// The cache

static void second_compilation_calls_no_compiler(void **state) {
  (void)state;
  assert_false(is_cached());
  assert_int_equal(calls(), 1);
  assert_true(is_cached());
  assert_int_equal(calls(), 1);
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
  struct stat status;
  assert_int_equal(stat(in_folder("cache/ngrad"), &status), 0);
  assert_int_equal(status.st_mode & 0777, 0700);
}

static void another_compiler_has_entries_of_its_own(void **state) {
  (void)state;
  assert_false(is_cached());
  use_compiler("exec cc \"$@\" # another");
  assert_false(is_cached());
  assert_int_equal(calls(), 2);
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 2);
}

static void damage(const char *entry, int kind) {
  struct stat status;
  char byte;
  int file = open(entry, O_RDWR);
  assert_true(file >= 0);
  assert_int_equal(fstat(file, &status), 0);
  off_t at = kind == 3 ? status.st_size / 2 : status.st_size - 1;
  switch (kind) {
  case 0: assert_int_equal(ftruncate(file, 0), 0); break;
  case 1: assert_int_equal(ftruncate(file, status.st_size - 1), 0); break;
  case 2: assert_int_equal(ftruncate(file, status.st_size / 2), 0); break;
  case 3:
  case 4:
    assert_int_equal(pread(file, &byte, 1, at), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, at), 1);
    break;
  case 5: assert_int_equal(pwrite(file, "more", 4, status.st_size), 4); break;
  case 6:
    assert_int_equal(rename(entry, in_folder("elsewhere")), 0);
    assert_int_equal(symlink(in_folder("elsewhere"), entry), 0);
    break;
  default: assert_int_equal(unlink(entry), 0); break;
  }
  close(file);
}

static void damaged_entry_is_made_again(void **state) {
  (void)state;
  char entry[PATH_BYTES];
  assert_false(is_cached());
  for (int kind = 0; kind < 8; kind++) {
    assert_int_equal(list(in_folder("cache/ngrad"), entry), 1);
    damage(entry, kind);
    assert_false(is_cached());
    assert_int_equal(calls(), 2 + kind);
    assert_true(is_cached());
  }
}

// Compiling without the cache works, and leaves no files.
static void must_do_without_cache(const char *cache, int nfiles) {
  for (int i = 0; i < 2; i++) assert_false(is_cached());
  assert_int_equal(list(in_folder(cache), NULL), nfiles);
  assert_int_equal(list(in_folder("tmp"), NULL), 0);
}

static void folder_that_others_may_write_is_not_used(void **state) {
  (void)state;
  assert_int_equal(mkdir(in_folder("cache"), 0700), 0);
  assert_int_equal(mkdir(in_folder("cache/ngrad"), 0700), 0);
  assert_int_equal(chmod(in_folder("cache/ngrad"), 0770), 0);
  must_do_without_cache("cache/ngrad", 0);
  assert_int_equal(chmod(in_folder("cache/ngrad"), 0702), 0);
  must_do_without_cache("cache/ngrad", 0);
}

static void folder_that_is_none_is_not_used(void **state) {
  (void)state;
  assert_int_equal(mkdir(in_folder("other"), 0700), 0);
  assert_int_equal(mkdir(in_folder("cache"), 0700), 0);
  assert_int_equal(symlink(in_folder("other"), in_folder("cache/ngrad")),
                   0); // the owner of the link chooses the folder
  must_do_without_cache("other", 0);
  assert_int_equal(unlink(in_folder("cache/ngrad")), 0);
  write_file(in_folder("cache/ngrad"), "", 0600);
  must_do_without_cache("other", 0);
  setenv("XDG_CACHE_HOME", in_folder("no/such/folder"), 1);
  must_do_without_cache("other", 0);
  if (geteuid() == 0) return; // who may write everywhere
  assert_int_equal(unlink(in_folder("cache/ngrad")), 0);
  assert_int_equal(mkdir(in_folder("cache/ngrad"), 0500), 0);
  setenv("XDG_CACHE_HOME", in_folder("cache"), 1);
  must_do_without_cache("cache/ngrad", 0);
}

static void cache_is_found_as_the_desktop_says(void **state) {
  (void)state;
  char home[PATH_BYTES];
  snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", in_folder(""), 1);
  assert_false(is_cached());
  assert_int_equal(list(in_folder(".cache/ngrad"), NULL), 1);
  setenv("XDG_CACHE_HOME", "relative", 1); // is to be ignored
  assert_true(is_cached());
  unsetenv("XDG_CACHE_HOME");
  unsetenv("HOME");
  must_do_without_cache("other", 0);
  setenv("HOME", home, 1);
}

// The compiler

static void missing_compiler_is_told(void **state) {
  (void)state;
  setenv("CC", "no-such-compiler", 1);
  must_fail_with("no-such-compiler");
  must_fail_with("set CC");
  setenv("CC", "/no/such/compiler", 1);
  must_fail_with("/no/such/compiler");
  setenv("CC", folder, 1); // a folder may be entered, not run
  must_fail_with(folder);
  write_file(in_folder("text"), "I am no program", 0700);
  setenv("CC", in_folder("text"), 1);
  must_fail_with("text");
  assert_int_equal(list(in_folder("tmp"), NULL), 0);
}

// As ccache does, which is called by links of compilers' names.
static void compiler_is_called_by_the_name_that_cc_says(void **state) {
  (void)state;
  char then[5000];
  snprintf(then, sizeof then, "case $0 in */link) exec %s \"$@\" ;; esac; exit 1", user_cc);
  use_compiler(then);
  assert_int_equal(symlink(in_folder("cc"), in_folder("link")), 0);
  setenv("CC", in_folder("link"), 1);
  assert_false(is_cached());
}

static void compilers_words_are_in_the_message(void **state) {
  (void)state;
  use_compiler("echo 'the disk is on fire' >&2; exit 1");
  must_fail_with("the disk is on fire");
  use_compiler("echo 'on standard output'; exit 7");
  must_fail_with("on standard output");
  use_compiler("kill -9 $$");
  must_fail_with("signal 9");
  use_compiler("exit 7");
  must_fail_with("exit status 7");
  use_compiler("i=0; while [ $i -lt 3000 ]; do echo 'many many many words'; i=$((i + 1)); done; exit 1");
  must_fail_with("many words");
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
}

// A compiler that reports success without a usable object is an error, and its object must not stay in the cache.
static void compiler_that_makes_nothing_of_use_is_told(void **state) {
  (void)state;
  use_compiler("exit 0");
  must_fail_with("wrote no shared object");
  use_compiler("while [ \"$1\" != -o ]; do shift; done; echo 'int x;' >\"$2\"");
  must_fail_with("cannot load");
  must_fail_with("cannot load");
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
}

// Several at once

static void *compile_in_thread(void *ok) {
  Compiled c = compile_graph(small_graph);
  *(bool *)ok = c.kernel && agrees(&c);
  compiled_deinit(&c);
  return NULL;
}

static void threads_compile_the_same_at_once(void **state) {
  (void)state;
  enum { THREADS = 6 };
  pthread_t threads[THREADS];
  bool ok[THREADS] = {false};
  for (int i = 0; i < THREADS; i++) assert_int_equal(pthread_create(&threads[i], NULL, compile_in_thread, &ok[i]), 0);
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; i++) assert_true(ok[i]);
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
  assert_true(is_cached());
}

static void processes_compile_the_same_at_once(void **state) {
  (void)state;
  enum { PROCESSES = 4 };
  pid_t children[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i]) continue;
    Compiled c = compile_graph(small_graph);
    _exit(c.kernel && ng_kernel_get_info(c.kernel).nkernels == 1 ? 0 : 1);
  }
  for (int i = 0; i < PROCESSES; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
  assert_true(is_cached());
}

// Emitted source

typedef int Emitted(const void *, const void *, const void *, const void *, void *, void *, void *, void *, void *,
                    void *, void *, size_t, int);

static const char layer_norm_graph[] =
    "format: ngrad/1\nname: plain\n"
    "inputs: [{name: x0, type: f32, shape: [40, 50]}, {name: x1, type: f32, shape: [40, 50]}, {name: x2, type: f32, "
    "shape: [40]},\n"
    "         {name: x3, type: f32, shape: [40]}]\n"
    "constants: [{name: x4, type: f32, shape: [50], value: 2}, {name: x5, type: f32, shape: [3], values: [1, 2, 3]}]\n"
    "nodes: [{op: LayerNormBackward, inputs: [x0, x1, x2, x3, x4], outputs: [x6, x7, x8]},\n"
    "        {op: ReLU, inputs: [x6], outputs: [x9]}]\n"
    "outputs: [x9, x7, x8, x6, x5, x1]\n";

// Writes the source and the header of a graph; `command`: the compiler's arguments besides the source.
static void must_compile_emitted(ng_graph *g, const char *command) {
  char *source = NULL, *header = NULL;
  char path[PATH_BYTES], line[8192];
  assert_int_equal(ng_emit(g, NULL, &source, &header), NG_OK);
  const char *stem = ng_graph_identifier(g);
  snprintf(path, sizeof path, "%s/%.200s.c", folder, stem);
  write_file(path, source, 0600);
  snprintf(line, sizeof line, "%s -std=c11 -O1 -Wall -Wextra -Wpedantic -Werror %s '%s'", user_cc, command, path);
  snprintf(path, sizeof path, "%s/%.200s.h", folder, stem);
  write_file(path, header, 0600);
  if (system(line) != 0) // NOLINT(cert-env33-c): its words are this test's own
    fail_msg("%s: compiling it as %s gives errors or warnings", g->graph->name, stem);
  ng_text_free(g->ctx, source);
  ng_text_free(g->ctx, header);
}

static void emitted_source_does_what_the_kernel_does(void **state) {
  (void)state;
  Compiled c = compile_graph(layer_norm_graph);
  char command[PATH_BYTES];
  snprintf(command, sizeof command, "-fPIC -shared -o '%s/plain.so'", folder);
  must_compile_emitted(c.graph, command);
  void *library = dlopen(in_folder("plain.so"), RTLD_NOW | RTLD_LOCAL),
       *symbol = library ? dlsym(library, "plain") : NULL;
  Emitted *plain;
  assert_non_null(symbol);
  memcpy(&plain, &symbol, sizeof symbol);
  ng_tensor in[4], out[6], expected[6];
  for (size_t i = 0; i < 4; i++) assert_int_equal(ng_tensor_random(c.graph, i, 3, &in[i]), NG_OK);
  for (size_t k = 0; k < 6; k++) {
    ng_tensor_info info = ng_graph_output(c.graph, k);
    assert_int_equal(ng_tensor_new(c.ctx, &info, &out[k]), NG_OK);
    assert_int_equal(ng_tensor_new(c.ctx, &info, &expected[k]), NG_OK);
  }
  size_t (*workspace_nbytes)(void);
  symbol = dlsym(library, "plain_workspace_nbytes");
  assert_non_null(symbol);
  memcpy(&workspace_nbytes, &symbol, sizeof symbol);
  size_t nbytes = workspace_nbytes(), space = nbytes;
  int isa = 0;
  char *workspace = aligned_alloc(64, nbytes + 64);
#define CALL(first, memory)                                                                                            \
  plain(first, in[1].data, in[2].data, in[3].data, out[0].data, out[1].data, out[2].data, out[3].data, out[4].data,    \
        out[5].data, memory, space, isa)
  assert_int_equal(CALL(NULL, workspace), 1);
  assert_int_equal(CALL(in[0].data, NULL), 1);
  assert_int_equal(CALL(in[0].data, workspace + 4), 3);
  assert_int_equal(CALL((char *)in[0].data + 1, workspace), 3);
  space = nbytes - 1;
  assert_int_equal(CALL(in[0].data, workspace), 2);
  space = nbytes;
  isa = -1;
  assert_int_equal(CALL(in[0].data, workspace), 4);
  isa = 0;
  assert_int_equal(CALL(in[0].data, workspace), 0);
  assert_int_equal(ng_kernel_run(c.kernel, in, expected, 1), NG_OK);
  for (size_t k = 0; k < 6; k++) assert_memory_equal(out[k].data, expected[k].data, ng_tensor_nbytes(&out[k]));
  for (size_t i = 0; i < 4; i++) ng_tensor_free(c.ctx, &in[i]);
  for (size_t k = 0; k < 6; k++) {
    ng_tensor_free(c.ctx, &out[k]);
    ng_tensor_free(c.ctx, &expected[k]);
  }
  free(workspace);
  dlclose(library);
  compiled_deinit(&c);
}

// Names

static const char *const hostile[] = {
    "x; } int main(void) {", "*/", "/*", "//", "a\nb", "?\?/", "a\\", "\"", "'", "%s%n", "#define x", "größe", "数",
    "\x01",
    // keywords, macros, types, functions
    "int", "for", "if", "while", "return", "void", "restrict", "inline", "register", "sizeof", "class", "new",
    "template", "NULL", "NAN", "INFINITY", "INT32_MAX", "M_PI", "errno", "linux", "size_t", "uint16_t", "float_t",
    "sqrtf", "fmaf", "memcpy", "main", "asm", "typeof", "__FILE__", "_Bool", "UNROLL", "V_INLINE", "ALWAYS_INLINE",
    "v_add", "v_load", "d_set", "vec", "dvec", "mask", "f32_from_f16",
    // names of the emitter's own
    "a", "args", "i", "i0", "n", "r", "o", "u", "rows", "begin", "end", "block", "memory", "workspace", "task", "pool",
    "p_x", "x", "p_rows", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "acc_sum_g", "part_mean", "held_mean",
    "total_sum_g", "total_n", "streams_i", "wants_i", "d0", "d1", "k0_0_dg", "run", "OK", "x", "x_out", "mean",
    "mean_1", "x_mean_1", "int_1", "int_", "_", "__", "_x", "0", "0x1", "e1", "rstd", "centered", "g", "slope",
    "offset", "sum_g", "inputs", "outputs", "context", "parallel_for", "ngrad_entry"};
enum { NHOSTILE = sizeof hostile / sizeof *hostile };

// The graph file's reader would refuse some of these names; a graph made by a program may have them.
static void rename_values(ng_graph *g, int from) {
  for (size_t i = 0; i < g->graph->nvalues; i++) g->graph->values[i]->name = hostile[((size_t)from + i) % NHOSTILE];
}

static void must_survive_names(int from, const char *graph_name) {
  Compiled c = {.ctx = ng_context_new(NULL)};
  c.graph = ng_graph_read(c.ctx, "test.yaml", layer_norm_graph, strlen(layer_norm_graph), NULL);
  assert_non_null(c.graph);
  rename_values(c.graph, from);
  c.graph->graph->name = graph_name;
  c.kernel = ng_compile(c.graph, NULL);
  if (!c.kernel) fail_msg("from %s, graph %s: %s", hostile[from % NHOSTILE], graph_name, ng_messages_text(c.ctx, 0));
  if (!agrees(&c)) fail_msg("in folder %s, graph %s gives wrong results", hostile[from % NHOSTILE], graph_name);
  must_compile_emitted(c.graph, "-fsyntax-only");
  compiled_deinit(&c);
}

static void names_of_values_are_no_code(void **state) {
  (void)state;
  for (int from = 0; from < NHOSTILE; from += takes_all() ? 7 : 35) must_survive_names(from, "plain");
}

static void names_of_graphs_are_no_code(void **state) {
  (void)state;
  char longest[256];
  memset(longest, 'a', 255);
  longest[255] = 0;
  must_survive_names(0, longest);
  memset(longest, ';', 255);
  must_survive_names(0, longest);
  static const char *const names[] = {"x; } int main(void) {",
                                      "*/",
                                      "a\nb",
                                      "größe",
                                      "int",
                                      "main",
                                      "memcpy",
                                      "sqrtf",
                                      "gamma",
                                      "v",
                                      "v_add",
                                      "d",
                                      "ngrad",
                                      "ngrad_entry",
                                      "0",
                                      "_",
                                      "exp",
                                      "index",
                                      "INFINITY",
                                      "args"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i += takes_all() ? 1 : 3)
    must_survive_names((int)i * 5, names[i]);
}

// Memory

// From a graph to a loaded kernel that has run, with an allocator that fails: nothing but that is told, nothing is
// lost.
static ng_status compile_with(FailingAllocator *memory) {
  ng_allocator a = {memory->allocator.resize, memory->allocator.context};
  ng_context *ctx = ng_context_new(&a);
  if (!ctx) return NG_OUT_OF_MEMORY;
  ng_graph *g = ng_graph_read(ctx, "test.yaml", layer_norm_graph, strlen(layer_norm_graph), NULL);
  ng_kernel *k = g ? ng_compile(g, NULL) : NULL;
  ng_status status = ng_last_status(ctx);
  char *source = NULL, *header = NULL;
  if (k) status = ng_emit(g, NULL, &source, &header);
  ng_text_free(ctx, source);
  ng_text_free(ctx, header);
  ng_kernel_free(k);
  ng_graph_free(g);
  ng_context_free(ctx);
  return status;
}

static void every_failing_allocation_is_told(void **state) {
  (void)state;
  ng_status status = NG_OUT_OF_MEMORY;
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  assert_int_equal(compile_with(&memory), NG_OK); // now it is in the cache
  assert_int_equal(memory.nlive, 0);
  int before = calls();
  for (size_t failing = 0; status != NG_OK; failing += takes_all() ? 1 : 5) {
    failing_allocator_init(&memory, failing);
    status = compile_with(&memory);
    assert_int_equal(memory.nlive, 0);
    if (status != NG_OK) assert_int_equal(status, NG_OUT_OF_MEMORY);
  }
  assert_int_equal(calls(), before); // no other source was ever made of it
}

int main(void) {
  const char *cc = getenv("CC");
  snprintf(user_cc, sizeof user_cc, "%s", cc && *cc ? cc : "cc");
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(second_compilation_calls_no_compiler),
      TEST(another_compiler_has_entries_of_its_own),
      TEST(damaged_entry_is_made_again),
      TEST(folder_that_others_may_write_is_not_used),
      TEST(folder_that_is_none_is_not_used),
      TEST(cache_is_found_as_the_desktop_says),
      TEST(missing_compiler_is_told),
      TEST(compiler_is_called_by_the_name_that_cc_says),
      TEST(compilers_words_are_in_the_message),
      TEST(compiler_that_makes_nothing_of_use_is_told),
      TEST(threads_compile_the_same_at_once),
      TEST(processes_compile_the_same_at_once),
      TEST(emitted_source_does_what_the_kernel_does),
      TEST(names_of_values_are_no_code),
      TEST(names_of_graphs_are_no_code),
      TEST(every_failing_allocation_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
