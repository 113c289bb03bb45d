// Signals that end the program: what it has begun is taken back first.
#ifndef NGRAD_FRONTEND_CLI_SIGNALS_H
#define NGRAD_FRONTEND_CLI_SIGNALS_H

// Starts a thread that waits for SIGINT, SIGTERM and SIGHUP, those of them that are not ignored. On one it kills the
// compilers that run, removes temporary files, and ends the program by the signal. Call it before any other thread
// starts. A limit to the size of files is an error of writing, no signal.
void signals_watch(void);

// What is done between these is done whole or not begun. Short work only: signals wait for it.
void signals_hold(void);
void signals_release(void);

// From now on the first such signal is only kept for signals_stop: work comes to an end that can be resumed. The second
// ends the program.
void signals_defer(void);
int signals_stop(void); // 0: none yet

// Ends the program by a signal, as if nothing had been done about that.
void signals_end(int number);

#endif
