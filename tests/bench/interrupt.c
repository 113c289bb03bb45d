// SIGINT as a flag.
#include "tests/bench/interrupt.h"

#include <signal.h>
#include <stdio.h>

static volatile sig_atomic_t is_set;

static void set(int number) {
  (void)number;
  is_set = 1;
}

void interrupt_watch(void) {
  const struct sigaction action = {.sa_handler = set, .sa_flags = (int)(SA_RESETHAND | SA_RESTART)};
  sigaction(SIGINT, &action, NULL);
}

bool is_interrupted(void) {
  return is_set;
}

void interrupt_finish(void) {
  if (!is_set) return;
  fflush(NULL);
  raise(SIGINT); // whose handler is the default one again
}
