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

#endif
