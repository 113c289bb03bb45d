// A progress line for work that takes more than a second: the work and its time, or the fraction done. It is on stderr,
// and erased before anything else is printed. Nothing is drawn if stderr is no terminal, or a terminal that cannot
// erase lines.
#ifndef NGRAD_FRONTEND_CLI_PROGRESS_H
#define NGRAD_FRONTEND_CLI_PROGRESS_H

// Sets the current work: "compiling layer_norm". If the work takes long, a thread draws the line.
void progress_begin(const char *what, const char *of); // of: "" for none
void progress_end(void);                               // also before other output

// Sets the fraction of the work that is done, from 0 to 1; called by the library.
void progress_tell(void *user, const char *what, double fraction);

// Draws a line at once, cut to the terminal's width; it stays until progress_end or the next line.
void progress_draw(const char *text);

// For another thread, before a signal ends the program: erases the line and stops drawing.
void progress_stop(void);

#endif
