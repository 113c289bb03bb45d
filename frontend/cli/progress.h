// A line on a terminal that says what the program does, while that takes more than a second: what and for how long, or
// which part of it is done. It is on stderr, and taken away before anything else is printed. Where stderr is no
// terminal, or one that cannot take a line away, nothing is drawn.
#ifndef NGRAD_FRONTEND_CLI_PROGRESS_H
#define NGRAD_FRONTEND_CLI_PROGRESS_H

// What is done from now on: "compiling layer_norm". Where that takes long a thread draws it.
void progress_begin(const char *what, const char *of); // of: "" for none
void progress_end(void);                               // before something else is printed, too

// Which part of the work is done, from 0 to 1; as the library calls it.
void progress_tell(void *user, const char *what, double fraction);

// At once, as far as there is room for it; stays until progress_end or the next line.
void progress_draw(const char *text);

// In another thread, before a signal ends the program: takes the line away, and none is drawn any more.
void progress_stop(void);

#endif
