// Threads that run loops of blocks: every block once, loops after those that they need, threads that stay.
#include "ir/support/threads.h"

#include <dirent.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { MOST_BLOCKS = 3000, NLOOPS = 200, LONG_NS = 1 << 30 };

typedef struct Counts {
  atomic_int runs[MOST_BLOCKS];
} Counts;

static void count_block(const void *args, size_t block) {
  Counts *c = (Counts *)args;
  atomic_fetch_add(&c->runs[block], 1);
}

static void every_block_runs_once(void **state) {
  static const size_t nblocks[] = {0, 1, 2, 3, 7, 64, 1000, MOST_BLOCKS};
  static const int threads[] = {1, 2, 3, 5, 16, 40};
  static Counts counts;
  (void)state;
  for (int round = 0; round < 20; round++)
    for (size_t i = 0; i < sizeof nblocks / sizeof *nblocks; i++)
      for (size_t t = 0; t < sizeof threads / sizeof *threads; t++) {
        memset(&counts, 0, sizeof counts);
        threads_for(threads[t], nblocks[i], count_block, &counts);
        for (size_t b = 0; b < MOST_BLOCKS; b++) assert_int_equal(counts.runs[b], b < nblocks[i]);
      }
}

// Random programs: each loop looks whether the loops that it needs have ended.

typedef struct Step {
  struct Program *program;
  size_t number, nblocks;
  atomic_size_t nended; // blocks
} Step;

typedef struct Program {
  Step steps[NLOOPS];
  ThreadsLoop loops[NLOOPS];
  size_t ntold; // loops whose end was told
  atomic_bool is_wrong;
} Program;

static bool has_ended(const Program *p, size_t step) {
  return p->steps[step].nended == p->steps[step].nblocks;
}

static void run_step(const void *args, size_t block) {
  Step *s = (Step *)args;
  Program *p = s->program;
  for (size_t i = 0; i < s->number; i++) {
    const size_t before = s->number - i;
    const bool is_needed = before > MOST_NEEDS || p->loops[s->number].needs >> (before - 1) & 1;
    if (is_needed && !has_ended(p, i)) p->is_wrong = true;
  }
  if (!p->loops[s->number].ns && block != s->nended) p->is_wrong = true; // in order
  atomic_fetch_add(&s->nended, 1);
}

static void told_end(void *context, size_t loop) {
  Program *p = context;
  for (size_t i = 0; i <= loop; i++)
    if (!has_ended(p, i)) p->is_wrong = true;
  if (p->ntold++ != loop) p->is_wrong = true;
}

static uint32_t draw(uint32_t *state, uint32_t below) {
  *state = *state * 1664525 + 1013904223;
  return (*state >> 8) % below;
}

static void make_program(Program *p, uint32_t seed) {
  memset(p, 0, sizeof *p);
  for (size_t i = 0; i < NLOOPS; i++) {
    Step *s = &p->steps[i];
    *s = (Step){.program = p, .number = i, .nblocks = draw(&seed, 4) ? draw(&seed, 40) : 0};
    const uint32_t needs = draw(&seed, 3) ? 1U << draw(&seed, MOST_NEEDS) | 1U << draw(&seed, 4) : 0;
    p->loops[i] = (ThreadsLoop){run_step, s, s->nblocks, draw(&seed, 5) ? LONG_NS : 0, needs};
  }
}

static void loops_run_after_what_they_need(void **state) {
  static Program p;
  (void)state;
  for (uint32_t seed = 0; seed < 60; seed++) {
    make_program(&p, seed);
    const ThreadsWatch watch = {.context = &p, .ended = told_end};
    threads_run(p.loops, NLOOPS, 1 + (int)seed % 6, &watch);
    assert_false(p.is_wrong);
    assert_int_equal(p.ntold, NLOOPS);
    for (size_t i = 0; i < NLOOPS; i++) assert_true(has_ended(&p, i));
  }
}

static void add_blocks(void *context, size_t loop, int thread, size_t nblocks, double begin_ms, double end_ms) {
  Step *s = &((Program *)context)->steps[loop];
  assert_true(thread >= 0 && thread < 4 && begin_ms <= end_ms);
  atomic_fetch_sub(&s->nended, nblocks);
}

static void a_watch_sees_every_block(void **state) {
  static Program p;
  (void)state;
  make_program(&p, 7);
  const ThreadsWatch watch = {.context = &p, .is_in_turn = true, .ran = add_blocks};
  for (size_t i = 0; i < NLOOPS; i++) p.loops[i].needs = 0, p.loops[i].ns = LONG_NS;
  threads_run(p.loops, NLOOPS, 4, &watch);
  for (size_t i = 0; i < NLOOPS; i++) assert_int_equal(p.steps[i].nended, 0);
}

// The sum of the threads' ids, and their number.
static void list_threads(long *sum, int *count) {
  DIR *folder = opendir("/proc/self/task");
  *sum = *count = 0;
  for (const struct dirent *e; (e = readdir(folder));) {
    *sum += strtol(e->d_name, NULL, 10);
    *count += e->d_name[0] != '.';
  }
  closedir(folder);
}

static void threads_stay(void **state) {
  static Counts counts;
  long before, after;
  int count, count_after;
  (void)state;
  threads_for(6, 100, count_block, &counts);
  list_threads(&before, &count);
  for (int i = 0; i < 1000; i++) threads_for(2 + i % 5, (size_t)(i % 7), count_block, &counts);
  list_threads(&after, &count_after);
  assert_int_equal(count, count_after);
  assert_int_equal(before, after);
}

// Several callers

typedef struct Gate {
  atomic_int nwaiting;
  atomic_bool is_open;
} Gate;

static void wait_at_gate(const void *args, size_t block) {
  Gate *g = (Gate *)args;
  (void)block;
  atomic_fetch_add(&g->nwaiting, 1);
  while (!g->is_open) usleep(100);
}

static void *call_until_open(void *gate) {
  threads_for(3, 3, wait_at_gate, gate);
  return NULL;
}

// Each caller's blocks hold the threads that help it. A further call does not wait for them.
static void a_call_ends_while_the_threads_are_busy(void **state) {
  enum { NCALLERS = 4 };
  static Gate gate;
  static Counts counts;
  pthread_t callers[NCALLERS];
  (void)state;
  for (int i = 0; i < NCALLERS; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_until_open, &gate), 0);
  while (gate.nwaiting < NCALLERS) usleep(100);
  for (int i = 0; i < 100; i++) threads_for(3, 50, count_block, &counts);
  for (size_t b = 0; b < 50; b++) assert_int_equal(counts.runs[b], 100);
  gate.is_open = true;
  for (int i = 0; i < NCALLERS; i++) pthread_join(callers[i], NULL);
}

static void *call_often(void *unused) {
  Counts *counts = calloc(1, sizeof *counts);
  for (int i = 0; i < 500; i++) threads_for(1 + i % 4, 30, count_block, counts);
  for (size_t b = 0; b < 30; b++)
    if (counts->runs[b] != 500) unused = counts;
  free(counts);
  return unused;
}

static void several_threads_may_call_at_once(void **state) {
  pthread_t callers[5];
  (void)state;
  for (int i = 0; i < 5; i++) assert_int_equal(pthread_create(&callers[i], NULL, call_often, NULL), 0);
  for (int i = 0; i < 5; i++) {
    void *failed;
    pthread_join(callers[i], &failed);
    assert_null(failed);
  }
}

static void a_forked_process_may_call(void **state) {
  static Counts counts;
  (void)state;
  threads_for(3, 100, count_block, &counts);
  for (int threads = 1; threads <= 3; threads++) {
    const pid_t child = fork();
    if (!child) {
      alarm(60); // a child that hangs fails
      memset(&counts, 0, sizeof counts);
      for (int i = 0; i < 200; i++) threads_for(threads, 40, count_block, &counts);
      for (size_t b = 0; b < 40; b++)
        if (counts.runs[b] != 200) _exit(1);
      _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    threads_for(3, 100, count_block, &counts); // the parent goes on
  }
}

static void find_processor(const void *args, size_t block) {
  atomic_int *found = (atomic_int *)args;
  (void)block;
  cpu_set_t own;
  sched_getaffinity(0, sizeof own, &own);
  if (CPU_COUNT(&own) > *found) *found = CPU_COUNT(&own);
  usleep(50);
}

static void each_thread_may_have_a_processor(void **state) {
  cpu_set_t all;
  atomic_int most = 0;
  (void)state;
  sched_getaffinity(0, sizeof all, &all);
  const int n = CPU_COUNT(&all) < 4 ? CPU_COUNT(&all) : 4;
  threads_pin(n, &all);
  threads_for(n, 200, find_processor, &most);
  assert_int_equal(most, 1);
  threads_unpin(n, &all);
  threads_for(n, 200, find_processor, &most);
  assert_int_equal(most, CPU_COUNT(&all));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_block_runs_once),
      cmocka_unit_test(loops_run_after_what_they_need),
      cmocka_unit_test(a_watch_sees_every_block),
      cmocka_unit_test(threads_stay),
      cmocka_unit_test(a_call_ends_while_the_threads_are_busy),
      cmocka_unit_test(several_threads_may_call_at_once),
      cmocka_unit_test(a_forked_process_may_call),
      cmocka_unit_test(each_thread_may_have_a_processor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
