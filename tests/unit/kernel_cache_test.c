// Files in the cache of kernels that are not valid entries, and folders that are not a valid cache: none is run, waited
// for, or the cause of a permanent error.
#include "tests/unit/toolchain_case.h"

#include <errno.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>

static const char other_graph[] = "format: ngrad/1\nname: other\n"
                                  "inputs: [{name: x, type: f32, shape: [7]}]\n"
                                  "nodes: [{op: Tanh, inputs: [x], outputs: [z]}]\noutputs: [z]\n";

static bool was_cached(const char *graph) {
  Compiled c = compile_graph(graph);
  if (!c.kernel) fail_msg("%s", ng_messages_text(c.ctx, 0));
  bool is = ng_kernel_get_info(c.kernel).was_cached;
  assert_true(agrees(&c));
  compiled_deinit(&c);
  return is;
}

// The warning that compiling the small graph gives; "": none.
static const char *warning(void) {
  static char text[1024];
  Compiled c = compile_graph(small_graph);
  if (!c.kernel) fail_msg("%s", ng_messages_text(c.ctx, 0));
  snprintf(text, sizeof text, "%s", ng_messages_text(c.ctx, 0));
  compiled_deinit(&c);
  return text;
}

static void must_warn(const char *words) {
  const char *text = warning();
  if (!strstr(text, "warning: compiled kernels cannot be cached in") || !strstr(text, words))
    fail_msg("expected a warning with: %s\nfound: %s", words, text);
}

static void copy_file(const char *from, const char *to) {
  char bytes[4096];
  FILE *in = fopen(from, "r"), *out = fopen(to, "w");
  assert_non_null(in);
  assert_non_null(out);
  for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;) assert_int_equal(fwrite(bytes, 1, n, out), n);
  fclose(in);
  fclose(out);
}

// The entry of the small graph, alone in the cache.
static void make_entry(char entry[PATH_BYTES]) {
  assert_false(is_cached());
  assert_int_equal(list(in_folder("cache/ngrad"), entry), 1);
}

static void entry_of_another_key_is_not_run(void **state) {
  (void)state;
  char small[PATH_BYTES], other[PATH_BYTES];
  make_entry(small);
  assert_int_equal(rename(small, in_folder("kept")), 0);
  assert_false(was_cached(other_graph));
  assert_int_equal(list(in_folder("cache/ngrad"), other), 1);
  copy_file(in_folder("kept"), other); // sound where it was
  assert_false(was_cached(other_graph));
  assert_true(was_cached(other_graph));
  copy_file(other, small);
  assert_false(is_cached());
  assert_true(is_cached());
}

static void make_socket(const char *path) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s", in_folder("s")); // entries' names are too long
  assert_int_equal(bind(s, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(rename(in_folder("s"), path), 0);
  close(s);
}

static void what_is_no_entry_makes_place(void **state) {
  (void)state;
  char entry[PATH_BYTES];
  make_entry(entry);
  for (int kind = 0; kind < 7; kind++) {
    copy_file(entry, in_folder("copy"));
    if (kind != 5) assert_int_equal(unlink(entry), 0);
    switch (kind) {
    case 0: assert_int_equal(mkfifo(entry, 0600), 0); break;
    case 1: assert_int_equal(mkdir(entry, 0700), 0); break;
    case 2: assert_int_equal(symlink("/dev/zero", entry), 0); break;
    case 3: assert_int_equal(symlink(in_folder("copy"), entry), 0); break;
    case 4: make_socket(entry); break;
    case 5: assert_int_equal(chmod(entry, 0770), 0); break; // others may have written to it
    default:
      copy_file(in_folder("copy"), entry);
      if (chown(entry, 12345, (gid_t)-1) != 0) continue; // only root can
      break;
    }
    alarm(60);
    assert_false(is_cached());
    assert_true(is_cached());
    alarm(0);
  }
}

static void folder_with_files_in_an_entrys_place_is_worked_around(void **state) {
  (void)state;
  char entry[PATH_BYTES], file[PATH_BYTES + 8];
  make_entry(entry);
  assert_int_equal(unlink(entry), 0);
  assert_int_equal(mkdir(entry, 0700), 0);
  snprintf(file, sizeof file, "%s/file", entry);
  write_file(file, "somebody's", 0600);
  must_warn("Directory not empty");
  assert_string_equal(warning(), ""); // once
  assert_int_equal(access(file, F_OK), 0);
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
}

// The compiler is at fault, and is asked again.
static void object_without_the_entry_point_is_not_kept(void **state) {
  (void)state;
  char then[5000];
  snprintf(then, sizeof then,
           "while [ \"$1\" != -o ]; do shift; done; echo 'int x;' >'%s/x.c'; exec %s -shared -o \"$2\" '%s/x.c'",
           folder, user_cc, folder);
  use_compiler(then);
  must_fail_with("no entry point");
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 0);
  must_fail_with("no entry point");
}

static void cache_that_cannot_be_used_is_told_once(void **state) {
  (void)state;
  char home[PATH_BYTES];
  snprintf(home, sizeof home, "%s", getenv("HOME") ? getenv("HOME") : "");
  setenv("XDG_CACHE_HOME", in_folder("no/such/folder"), 1);
  must_warn("No such file or directory");
  assert_string_equal(warning(), "");
  unsetenv("XDG_CACHE_HOME");
  setenv("HOME", in_folder("no/such/home"), 1);
  must_warn("No such file or directory");
  unsetenv("HOME");
  must_warn("neither XDG_CACHE_HOME nor HOME");
  assert_string_equal(warning(), "");
  setenv("HOME", home, 1);
  assert_int_equal(mkdir(in_folder("cache"), 0700), 0);
  assert_int_equal(mkdir(in_folder("cache/ngrad"), 0777), 0);
  assert_int_equal(chmod(in_folder("cache/ngrad"), 0777), 0);
  setenv("XDG_CACHE_HOME", in_folder("cache"), 1);
  must_warn("others may write to it");
  setenv("TMPDIR", in_folder("no/such/tmp"), 1); // then another folder does
  assert_string_equal(warning(), "");
  assert_int_equal(list(in_folder("tmp"), NULL), 0);
}

static void umask_does_not_keep_entries_from_being_used(void **state) {
  (void)state;
  mode_t before = umask(0);
  assert_false(is_cached());
  bool is = is_cached();
  umask(before);
  assert_true(is);
}

// Makes a folder as a run makes it. Returns its lock.
static int make_work_folder(const char *parent, char digit) {
  char path[PATH_BYTES], file[PATH_BYTES + 16];
  snprintf(path, sizeof path, "%.300s/ngrad-%.15s%c.tmp", parent, "0123456789abcdef", digit);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(file, sizeof file, "%s/kernel.c", path);
  write_file(file, "int x;", 0600);
  int lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  assert_int_equal(flock(lock, LOCK_EX), 0);
  return lock;
}

static void folders_of_killed_runs_are_swept(void **state) {
  (void)state;
  assert_false(is_cached());
  int alive = make_work_folder(in_folder("cache/ngrad"), '0'), dead = make_work_folder(in_folder("cache/ngrad"), '1');
  close(dead);
  assert_false(was_cached(other_graph));
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 3); // two entries, and the folder whose run is alive
  close(alive);
  dead = make_work_folder(in_folder("tmp"), '2');
  close(dead);
  assert_int_equal(mkdir(in_folder("tmp/ngrad-mine.tmp"), 0700), 0);
  setenv("XDG_CACHE_HOME", in_folder("none/such"), 1);
  assert_false(is_cached());
  assert_int_equal(list(in_folder("tmp"), NULL), 1);
}

static void compilers_own_files_go_with_the_run(void **state) {
  (void)state;
  char then[5000];
  snprintf(then, sizeof then, "mkdir \"$TMPDIR/left\" && echo >\"$TMPDIR/left/behind\" && exec %s \"$@\"", user_cc);
  use_compiler(then);
  assert_false(is_cached());
  assert_int_equal(list(in_folder("cache/ngrad"), NULL), 1);
  assert_int_equal(list(in_folder("tmp"), NULL), 0);
}

static void what_the_compiler_leaves_running_holds_nobody_up(void **state) {
  (void)state;
  char then[5000];
  struct timespec from, to;
  snprintf(then, sizeof then, "sleep 1000 & echo $! >'%s/sleeper'; exec %s \"$@\"", folder, user_cc);
  use_compiler(then);
  clock_gettime(CLOCK_MONOTONIC, &from);
  assert_false(is_cached());
  clock_gettime(CLOCK_MONOTONIC, &to);
  FILE *f = fopen(in_folder("sleeper"), "r");
  int sleeper = 0;
  assert_non_null(f);
  assert_int_equal(fscanf(f, "%d", &sleeper), 1); // NOLINT(cert-err34-c): a number or not
  fclose(f);
  assert_int_equal(kill(sleeper, SIGTERM), 0);
  assert_true(to.tv_sec - from.tv_sec < 500);
}

// Files as long as the whole cache may be, of nothing.
static void cache_has_a_bound(void **state) {
  (void)state;
  char entry[PATH_BYTES];
  const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}}, older[2] = {{.tv_sec = 500}, {.tv_sec = 500}};
  make_entry(entry);
  assert_int_equal(utimensat(AT_FDCWD, entry, old, 0), 0);
  assert_true(is_cached()); // which counts as use
  write_file(in_folder("cache/ngrad/a"), "", 0600);
  write_file(in_folder("cache/ngrad/b"), "", 0600);
  assert_int_equal(truncate(in_folder("cache/ngrad/a"), (off_t)300 << 20), 0);
  assert_int_equal(truncate(in_folder("cache/ngrad/b"), (off_t)300 << 20), 0);
  assert_int_equal(utimensat(AT_FDCWD, in_folder("cache/ngrad/a"), old, 0), 0);
  assert_int_equal(utimensat(AT_FDCWD, in_folder("cache/ngrad/b"), older, 0), 0);
  assert_false(was_cached(other_graph));
  assert_int_equal(access(in_folder("cache/ngrad/b"), F_OK), -1);
  assert_int_equal(access(in_folder("cache/ngrad/a"), F_OK), 0);
  assert_true(is_cached());
  assert_true(was_cached(other_graph));
}

// $CC

static void cc_is_split_as_a_shell_does(void **state) {
  (void)state;
  char then[5000], command[PATH_BYTES + 200];
  snprintf(then, sizeof then,
           "[ \"$1,$2,$3,$4,$5\" = \"-m64,a b,c'd\\\"e,\\$x,\" ] || { echo \"found $1,$2,$3,$4,$5\"; exit 1; }\n"
           "shift 5; exec %s \"$@\"",
           user_cc);
  use_compiler(then);
  snprintf(command, sizeof command, " %s  -m64 'a b' \"c'd\\\"e\" \\$x '' ", in_folder("cc"));
  setenv("CC", command, 1);
  assert_false(is_cached());
  assert_true(is_cached());
  snprintf(command, sizeof command, "%s 'open", in_folder("cc"));
  setenv("CC", command, 1);
  must_fail_with("a quote is not closed");
  setenv("CC", " \t", 1); // as without
  assert_false(is_cached());
}

// As in "ccache gcc": the first word is the same, but the compiler that it runs differs.
static void every_program_in_cc_counts(void **state) {
  (void)state;
  char command[2 * PATH_BYTES];
  write_file(in_folder("run"), "#!/bin/sh\nexec \"$@\"\n", 0700);
  snprintf(command, sizeof command, "%s %s", in_folder("run"), in_folder("cc"));
  setenv("CC", command, 1);
  assert_false(is_cached());
  assert_true(is_cached());
  use_compiler("exec cc \"$@\" # another");
  setenv("CC", command, 1);
  assert_false(is_cached());
}

int main(void) {
  const char *cc = getenv("CC");
  snprintf(user_cc, sizeof user_cc, "%s", cc && *cc ? cc : "cc");
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
  const struct CMUnitTest tests[] = {
      TEST(entry_of_another_key_is_not_run),
      TEST(what_is_no_entry_makes_place),
      TEST(folder_with_files_in_an_entrys_place_is_worked_around),
      TEST(object_without_the_entry_point_is_not_kept),
      TEST(cache_that_cannot_be_used_is_told_once),
      TEST(umask_does_not_keep_entries_from_being_used),
      TEST(folders_of_killed_runs_are_swept),
      TEST(compilers_own_files_go_with_the_run),
      TEST(what_the_compiler_leaves_running_holds_nobody_up),
      TEST(cache_has_a_bound),
      TEST(cc_is_split_as_a_shell_does),
      TEST(every_program_in_cc_counts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
