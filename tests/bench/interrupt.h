// Ctrl-C: a long measurement stops between two runs, and the results so far are printed.
#ifndef NGRAD_TESTS_BENCH_INTERRUPT_H
#define NGRAD_TESTS_BENCH_INTERRUPT_H

#include <stdbool.h>

// From now on the first SIGINT sets a flag, and a second one ends the program.
void interrupt_watch(void);
bool is_interrupted(void);

// Ends the program by the signal, as its caller expects, if it was interrupted.
void interrupt_finish(void);

#endif
