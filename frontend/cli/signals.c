// Waits for signals in a thread of its own, which may do more than a signal handler.
#include "frontend/cli/signals.h"

#include "frontend/api/ngrad.h"
#include "frontend/cli/progress.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <unistd.h>

static sigset_t watched;
static atomic_bool defers;
static atomic_int stop;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void signals_hold(void) {
  pthread_mutex_lock(&lock);
}

void signals_release(void) {
  pthread_mutex_unlock(&lock);
}

void signals_defer(void) {
  atomic_store(&defers, true);
}

int signals_stop(void) {
  return atomic_load(&stop);
}

void signals_end(int number) {
  signal(number, SIG_DFL);
  pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
  kill(getpid(), number);
}

static void *watch(void *unused) {
  int number, none = 0;
  do {
    if (sigwait(&watched, &number) != 0) return unused;
  } while (atomic_load(&defers) && atomic_compare_exchange_strong(&stop, &none, number));
  signals_hold();
  progress_stop();
  ng_abandon();
  signals_end(number);
  return unused;
}

void signals_watch(void) {
  enum { STACK_NBYTES = 1 << 18 };
  static const int ending[] = {SIGINT, SIGTERM, SIGHUP};
  pthread_attr_t attributes;
  pthread_t thread;
  signal(SIGXFSZ, SIG_IGN); // exceeding the limit of a file's size becomes an ordinary write error
  sigemptyset(&watched);
  for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
    struct sigaction action;
    if (sigaction(ending[i], NULL, &action) == 0 && action.sa_handler == SIG_IGN) continue; // nohup
    sigaddset(&watched, ending[i]);
  }
  pthread_sigmask(SIG_BLOCK, &watched, NULL); // inherited by all threads
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_NBYTES);
  if (pthread_create(&thread, &attributes, watch, NULL) != 0) pthread_sigmask(SIG_UNBLOCK, &watched, NULL);
  pthread_attr_destroy(&attributes);
}
