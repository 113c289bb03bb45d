// Memory budgets: the allocator, the memory that the system has available, and checks before allocation.
#include "frontend/api/available_memory.h"
#include "ir/support/budget.h"
#include "ir/support/text.h"
#include "tests/unit/api_case.h"
#include "tests/unit/failing_allocator.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

// The allocator

static void budget_refuses_what_exceeds_it(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  Budget budget;
  budget_init(&budget, memory.allocator, 1000);
  const Allocator a = budget_allocator(&budget);
  void *p = allocator_alloc(&a, 600);
  assert_non_null(p);
  assert_int_equal((uintptr_t)p % alignof(max_align_t), 0);
  assert_false(atomic_load(&budget.refused));
  assert_null(allocator_alloc(&a, 401));
  assert_true(atomic_load(&budget.refused));
  assert_null(a.resize(a.context, p, 1001));
  p = a.resize(a.context, p, 1000);
  assert_non_null(p);
  assert_int_equal(budget_left(&budget), 0);
  p = a.resize(a.context, p, 10);
  assert_int_equal(budget_left(&budget), 990);
  assert_null(allocator_alloc(&a, SIZE_MAX));
  allocator_free(&a, p);
  assert_int_equal(budget_left(&budget), 1000);
  assert_int_equal(memory.nlive, 0);
}

static void what_the_lender_refuses_is_not_in_use(void **state) {
  (void)state;
  FailingAllocator memory;
  failing_allocator_init(&memory, 1);
  Budget budget;
  budget_init(&budget, memory.allocator, 1000);
  const Allocator a = budget_allocator(&budget);
  void *p = allocator_alloc(&a, 100);
  assert_null(a.resize(a.context, p, 200));
  assert_int_equal(budget_left(&budget), 900);
  assert_false(atomic_load(&budget.refused));
  allocator_free(&a, p);
}

static void sums_of_bytes_do_not_overflow(void **state) {
  (void)state;
  char text[NBYTES_TEXT];
  assert_true(nbytes_add(UINT64_MAX - 1, 2) == UINT64_MAX);
  assert_true(nbytes_multiply(UINT64_MAX / 2, 3) == UINT64_MAX);
  assert_int_equal(nbytes_multiply(7, 3), 21);
  assert_string_equal(nbytes_string(999, text), "999 bytes");
  assert_string_equal(nbytes_string(16000000000, text), "16.0 GB");
  assert_string_equal(nbytes_string(999960, text), "1.0 MB");
}

// The system: a folder that looks like its root

typedef struct Root {
  char path[64];
} Root;

static void put(const Root *root, const char *path, const char *text) {
  char whole[512];
  snprintf(whole, sizeof whole, "%s%s", root->path, path);
  for (char *c = whole + strlen(root->path) + 1; *c; c++) {
    if (*c != '/') continue;
    *c = 0;
    mkdir(whole, 0700);
    *c = '/';
  }
  FILE *file = fopen(whole, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static Root root_new(const char *meminfo, const char *groups) {
  Root root = {"/tmp/ngrad-budget-XXXXXX"};
  assert_non_null(mkdtemp(root.path));
  put(&root, "/proc/meminfo", meminfo);
  put(&root, "/proc/self/cgroup", groups);
  return root;
}

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *place) {
  (void)info;
  (void)kind;
  (void)place;
  return remove(path);
}

static void remove_folder(const char *path) {
  enum { DESCRIPTORS = 8 };
  assert_int_equal(nftw(path, remove_entry, DESCRIPTORS, FTW_DEPTH | FTW_PHYS), 0);
}

static void root_free(const Root *root) {
  remove_folder(root->path);
}

#define MEMINFO "MemTotal:       9000 kB\nMemFree:         100 kB\nMemAvailable:   8000 kB\n"

static void machine_limits_where_no_group_does(void **state) {
  (void)state;
  Root root = root_new(MEMINFO, "0::/\n");
  assert_int_equal(available_memory(root.path), 8000 * 1024);
  put(&root, "/sys/fs/cgroup/memory.max", "max\n");
  put(&root, "/sys/fs/cgroup/memory.current", "5000\n");
  assert_int_equal(available_memory(root.path), 8000 * 1024);
  root_free(&root);
}

static void nested_groups_limit_each(void **state) {
  (void)state;
  Root root = root_new(MEMINFO, "0::/a/b\n");
  put(&root, "/sys/fs/cgroup/a/b/memory.max", "max\n");
  put(&root, "/sys/fs/cgroup/a/b/memory.high", "900000\n");
  put(&root, "/sys/fs/cgroup/a/memory.max", "1000000\n");
  put(&root, "/sys/fs/cgroup/a/memory.current", "700000\n");
  put(&root, "/sys/fs/cgroup/a/memory.stat", "anon 1\ninactive_file 200000\nactive_file 3\n");
  assert_int_equal(available_memory(root.path), 500000);
  put(&root, "/sys/fs/cgroup/a/b/memory.current", "899000\n");
  assert_int_equal(available_memory(root.path), 1000);
  put(&root, "/sys/fs/cgroup/a/memory.current", "1300000\n"); // above its limit
  assert_int_equal(available_memory(root.path), 0);
  root_free(&root);
}

static void groups_of_version_1_limit_too(void **state) {
  (void)state;
  Root root = root_new(MEMINFO, "5:cpu,cpuacct:/x\n4:hugetlb,memory:/docker/1\n1:name=systemd:/x\n");
  put(&root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put(&root, "/sys/fs/cgroup/memory/memory.usage_in_bytes", "5000\n");
  assert_int_equal(available_memory(root.path), 8000 * 1024);
  put(&root, "/sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes", "600000\n");
  put(&root, "/sys/fs/cgroup/memory/docker/1/memory.usage_in_bytes", "250000\n");
  put(&root, "/sys/fs/cgroup/memory/docker/1/memory.stat", "total_inactive_file 50000\n");
  assert_int_equal(available_memory(root.path), 400000);
  root_free(&root);
}

// Inside a container the group's path is the host's, and the container's limit stands at the mount.
static void containers_limit_stands_at_the_mount(void **state) {
  (void)state;
  Root root = root_new(MEMINFO, "4:memory:/docker/beyond\n");
  put(&root, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "300000\n");
  assert_int_equal(available_memory(root.path), 300000);
  root_free(&root);
}

// Contexts

typedef struct Recorder { // an allocator that knows the most that was asked for
  size_t largest;
} Recorder;

static void *record_resize(void *user, void *p, size_t nbytes) {
  Recorder *recorder = user;
  if (nbytes > recorder->largest) recorder->largest = nbytes;
  return system_allocator.resize(NULL, p, nbytes);
}

static const char tanh_of[] = "format: ngrad/1\nname: large\ndims: {N: 3000000}\n"
                              "inputs: [{name: x, type: f32, shape: [N]}]\n"
                              "nodes:\n  - {op: Tanh, inputs: [x], outputs: [y]}\noutputs: [y]\n";

static void nothing_large_is_allocated_that_does_not_fit(void **state) {
  (void)state;
  enum { NELEMS = 3000000, BUDGET = 1 << 20 };
  Recorder recorder = {0};
  const ng_allocator allocator = {record_resize, &recorder};
  ng_context *ctx = ng_context_new(&allocator);
  ng_context_set_max_memory(ctx, BUDGET);
  assert_int_equal(ng_context_max_memory(ctx), BUDGET);
  ng_graph *g = must_read(ctx, tanh_of);
  float *x = calloc(NELEMS, sizeof *x), *y = calloc(NELEMS, sizeof *y);
  ng_tensor in = ng_tensor_view(ng_graph_input(g, 0), x), out = ng_tensor_view(ng_graph_output(g, 0), y), t;
  assert_int_equal(ng_tensor_random(g, 0, 1, &t), NG_OUT_OF_MEMORY);
  must_have_said(ctx, "the tensor x needs 12.0 MB (f32 12.0 MB), more than the memory budget of 1.0 MB; raise it with "
                      "--max-memory");
  ng_messages_clear(ctx);
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OUT_OF_MEMORY);
  must_have_said(
      ctx, "interpreting large needs 48.0 MB (values and sums in f64 48.0 MB), more than the memory budget of 1.0 MB; "
           "raise it with --max-memory");
  ng_messages_clear(ctx);
  ng_gradcheck_result result;
  assert_int_equal(ng_gradcheck(g, NULL, &result), NG_OUT_OF_MEMORY);
  assert_int_equal(ng_message_count(ctx), 1);
  ng_messages_clear(ctx);
  assert_true(recorder.largest < BUDGET / 2);
  ng_context_set_max_memory(ctx, 0);
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OK);
  free(x);
  free(y);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// The interpreter takes the memory that ng_graph_memory says.
static void interpreter_takes_what_was_foretold(void **state) {
  (void)state;
  static const char chain[] = "format: ngrad/1\nname: chain\ninputs: [{name: x, type: f32, shape: [100000]}]\n"
                              "constants: [{name: c, type: f32, shape: [100000], value: 2}]\n"
                              "nodes:\n"
                              "  - {op: Tanh, inputs: [x], outputs: [a]}\n"
                              "  - {op: Multiply, inputs: [a, c], outputs: [b]}\n"
                              "  - {op: Tanh, inputs: [b], outputs: [d]}\n"
                              "  - {op: Add, inputs: [d, a], outputs: [y]}\n"
                              "outputs: [y]\n";
  enum { NELEMS = 100000, SLACK = 1 << 17 };
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, chain);
  float *x = calloc(NELEMS, sizeof *x), *y = calloc(NELEMS, sizeof *y);
  ng_tensor in = ng_tensor_view(ng_graph_input(g, 0), x), out = ng_tensor_view(ng_graph_output(g, 0), y);
  ng_memory memory;
  assert_int_equal(ng_graph_memory(g, &memory), NG_OK);
  assert_int_equal(memory.inputs_nbytes, NELEMS * sizeof(float));
  assert_int_equal(memory.outputs_nbytes, NELEMS * sizeof(float));
  assert_int_equal(memory.constants_nbytes, 0); // one number
  assert_int_equal(memory.interpreter_nbytes, 3 * sizeof(double) * NELEMS);
  ng_context_set_max_memory(ctx, memory.interpreter_nbytes + SLACK);
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OK);
  ng_context_set_max_memory(ctx, memory.interpreter_nbytes);
  assert_int_equal(ng_interpret(g, &in, &out, 0), NG_OUT_OF_MEMORY);
  free(x);
  free(y);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// A constant's file takes memory for its bytes once, without a second copy or memory for reading in another layout.
static void file_of_a_constant_is_read_once(void **state) {
  (void)state;
  enum { NELEMS = 1 << 22, SLACK = 3 << 20 };
  char folder[] = "/tmp/ngrad-budget-XXXXXX", path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/c.npy", folder);
  ng_context *ctx = new_context();
  const ng_tensor_info info = {.name = "c", .type = NG_F32, .rank = 1, .extent = {NELEMS}};
  ng_tensor t;
  assert_int_equal(ng_tensor_new(ctx, &info, &t), NG_OK);
  assert_int_equal(ng_tensor_write_npy(ctx, path, &t), NG_OK);
  ng_tensor_free(ctx, &t);
  static const char text[] = "format: ngrad/1\nname: constant\ninputs: [{name: x, type: f32, shape: [4194304]}]\n"
                             "constants: [{name: c, type: f32, file: c.npy}, {name: d, type: f32, file: ./c.npy}]\n"
                             "nodes:\n  - {op: Add, inputs: [x, c], outputs: [z]}\n"
                             "  - {op: Add, inputs: [z, d], outputs: [y]}\noutputs: [y]\n";
  ng_context_set_max_memory(ctx, NELEMS * sizeof(float) + SLACK);
  ng_graph *g = ng_graph_read(ctx, "test.yaml", text, strlen(text), folder);
  if (!g) print_error("%s", ng_messages_text(ctx, 0));
  assert_non_null(g);
  ng_memory memory;
  assert_int_equal(ng_graph_memory(g, &memory), NG_OK);
  assert_int_equal(memory.constants_nbytes, NELEMS * sizeof(float));
  ng_graph_free(g);
  ng_context_set_max_memory(ctx, NELEMS * sizeof(float) / 2);
  assert_null(ng_graph_read(ctx, "test.yaml", text, strlen(text), folder));
  assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
  assert_non_null(strstr(ng_messages_text(ctx, 0), "note: the memory budget is 8.4 MB"));
  ng_context_free(ctx);
  remove_folder(folder);
}

// Sums of tensors' bytes that exceed 64 bits are told, not wrapped.
static void tensors_beyond_all_addresses_are_told(void **state) {
  (void)state;
  Text text;
  text_init(&text, &system_allocator);
  text_add_string(&text, "format: ngrad/1\nname: beyond\ninputs: [{name: v0, type: f64, shape: [70368744177664]}]\n"
                         "nodes:\n");
  enum { COUNT = 5000 };
  for (int i = 0; i < COUNT; i++) text_format(&text, "  - {op: Tanh, inputs: [v%d], outputs: [v%d]}\n", i, i + 1);
  text_format(&text, "outputs: [v%d]\n", (int)COUNT);
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text_string(&text));
  size_t nbytes, unshared;
  assert_int_equal(ng_graph_workspace(g, &(ng_options){.no_fuse = 1}, &nbytes, &unshared), NG_WRONG);
  must_have_said(ctx, "beyond: its tensors exceed the address space");
  ng_graph_free(g);
  ng_context_free(ctx);
  text_deinit(&text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(budget_refuses_what_exceeds_it),
      cmocka_unit_test(what_the_lender_refuses_is_not_in_use),
      cmocka_unit_test(sums_of_bytes_do_not_overflow),
      cmocka_unit_test(machine_limits_where_no_group_does),
      cmocka_unit_test(nested_groups_limit_each),
      cmocka_unit_test(groups_of_version_1_limit_too),
      cmocka_unit_test(containers_limit_stands_at_the_mount),
      cmocka_unit_test(nothing_large_is_allocated_that_does_not_fit),
      cmocka_unit_test(interpreter_takes_what_was_foretold),
      cmocka_unit_test(file_of_a_constant_is_read_once),
      cmocka_unit_test(tensors_beyond_all_addresses_are_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
