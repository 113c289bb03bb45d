// Runs loops of independent blocks on the threads of this process, which stay until it ends.
//
// A call has a list of loops, and for each the earlier ones that must have ended before it begins. The calling thread
// opens loops and takes blocks; whoever else comes takes blocks, too. Nobody waits for a thread that has not begun: a
// loop ends with its last block. Several threads may call at once, and a process that was forked may.
#ifndef NGRAD_IR_SUPPORT_THREADS_H
#define NGRAD_IR_SUPPORT_THREADS_H

#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { THREADS_MOST = 1024, MOST_NEEDS = 32 };

typedef void ThreadsTask(const void *args, size_t block);

typedef struct ThreadsLoop {
  ThreadsTask *task;
  const void *args;
  size_t nblocks; // 0: nothing to do
  uint64_t ns;    // an estimate of the time of all blocks on one thread; 0: one thread must run all blocks, in order
  uint32_t needs; // bit i: the loop i + 1 places before in the list must have ended. All that are more than MOST_NEEDS
                  // places before will have.
} ThreadsLoop;

// Called while loops run. Both functions may be NULL.
typedef struct ThreadsWatch {
  void *context;
  bool is_in_turn; // each loop begins after the one before it has ended
  // By each thread that ran blocks of a loop, perhaps several times. Threads have numbers from 0, the caller's.
  void (*ran)(void *context, size_t loop, int thread, size_t nblocks, double begin_ms, double end_ms);
  // By the calling thread, for each loop in order, when it and all before it have ended.
  void (*ended)(void *context, size_t loop);
} ThreadsWatch;

// threads: at least 1, at most THREADS_MOST. watch: may be NULL.
void threads_run(const ThreadsLoop *loops, size_t nloops, int threads, const ThreadsWatch *watch);
void threads_for(int threads, size_t nblocks, ThreadsTask *task, const void *args); // one loop, of much work

int threads_processors(void); // that this process may use

// Pins the calling thread and those that help it to processors of their own, in the order of `processors`, which has at
// least as many. Only for a process in which one thread at a time calls threads_run.
void threads_pin(int threads, const cpu_set_t *processors);
void threads_unpin(int threads, const cpu_set_t *processors); // lets them run on all of `processors`

#endif
