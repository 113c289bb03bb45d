// Threads of a caller, for pairs that take a parallel loop: each begins, takes blocks till none is left, and ends.
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>

enum { NTHREADS = 3 };

typedef void Task(const void *args, size_t block);

typedef struct Work {
  Task *task;
  const void *args;
  size_t nblocks;
  atomic_size_t next;
} Work;

void pool_run(void *context, size_t nblocks, Task *task, const void *args);

static void *take_blocks(void *self) {
  Work *work = self;
  for (size_t block; (block = atomic_fetch_add_explicit(&work->next, 1, memory_order_relaxed)) < work->nblocks;)
    work->task(work->args, block);
  return NULL;
}

void pool_run(void *context, size_t nblocks, Task *task, const void *args) {
  Work work = {task, args, nblocks, 0};
  pthread_t threads[NTHREADS];
  int nstarted = 0;
  (void)context;
  while (nstarted < NTHREADS && pthread_create(&threads[nstarted], NULL, take_blocks, &work) == 0) nstarted++;
  if (!nstarted) take_blocks(&work);
  for (int i = 0; i < nstarted; i++) pthread_join(threads[i], NULL);
}
