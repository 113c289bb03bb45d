// Signals that end the program, after unfinished work is cleaned up.
#ifndef NGRAD_FRONTEND_CLI_SIGNALS_H
#define NGRAD_FRONTEND_CLI_SIGNALS_H

// Starts a thread that waits for SIGINT, SIGTERM and SIGHUP, unless they are ignored. On a signal, the thread kills the
// running compilers, deletes temporary files, and ends the program by the signal. Must be called before any other
// thread starts. Exceeding the limit of a file's size becomes a write error instead of a signal.
void signals_watch(void);

// Work between hold and release is done completely or not begun. It must be short, because signals wait for it.
void signals_hold(void);
void signals_release(void);

// From now on, the first signal is only stored for signals_stop, so that work can end where it can be resumed. The
// second signal ends the program.
void signals_defer(void);
int signals_stop(void); // 0: no signal yet

// Ends the program by a signal with its default action.
void signals_end(int number);

#endif
