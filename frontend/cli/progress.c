// A lock protects the line. The program's thread sets the work, a second thread draws it as time passes, and a third
// erases it when a signal comes. Out of memory, "?" is drawn: the line is no reason to end the program.
#include "frontend/cli/progress.h"

#include "frontend/api/ngrad.h"
#include "frontend/cli/clock.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { INTERVAL_MS = 100, PATIENCE_MS = 1000, LONGEST_NAME = 80 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  char what[LONGEST_NAME]; // "": no work
  double fraction;         // negative: unknown
  double started_ms;
  bool is_shown;
} line;

// Only the program's thread calls it.
static bool is_terminal(void) {
  static int is_one = -1;
  const char *term = getenv("TERM");
  if (is_one < 0) is_one = isatty(STDERR_FILENO) && !(term && strcmp(term, "dumb") == 0);
  return is_one;
}

// The caller holds the lock.

static void clear(void) {
  if (line.is_shown) fputs("\r\033[K", stderr);
  line.is_shown = false;
}

static void draw(const char *text) {
  struct winsize window = {0};
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) != 0 || !window.ws_col) window.ws_col = 80;
  fprintf(stderr, "\r\033[K%.*s", window.ws_col - 1, text);
  fflush(stderr);
  line.is_shown = true;
}

static void draw_if_late(void) {
  char text[LONGEST_NAME + 32];
  const double spent_ms = now_ms() - line.started_ms;
  if (!*line.what || spent_ms < PATIENCE_MS) return;
  if (line.fraction < 0) snprintf(text, sizeof text, "%s: %.0f s", line.what, spent_ms / 1e3);
  else snprintf(text, sizeof text, "%s %.0f%%", line.what, line.fraction * 100);
  draw(text);
}

static void *keep_drawing(void *unused) {
  const struct timespec interval = {.tv_nsec = INTERVAL_MS * 1000000L};
  for (;;) {
    nanosleep(&interval, NULL);
    pthread_mutex_lock(&lock);
    draw_if_late();
    pthread_mutex_unlock(&lock);
  }
  return unused;
}

// Without the thread there is no line; that is no error.
static void start_drawing(void) {
  enum { STACK_NBYTES = 1 << 18 };
  static bool is_started;
  pthread_attr_t attributes;
  pthread_t thread;
  if (is_started || !is_terminal() || pthread_attr_init(&attributes) != 0) return;
  is_started = true;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_attr_setstacksize(&attributes, STACK_NBYTES);
  pthread_create(&thread, &attributes, keep_drawing, NULL);
  pthread_attr_destroy(&attributes);
}

static void set(const char *what, double fraction) {
  pthread_mutex_lock(&lock);
  if (!*what || strcmp(line.what, what) != 0) {
    clear();
    snprintf(line.what, sizeof line.what, "%s", what);
    line.started_ms = now_ms();
  }
  line.fraction = fraction;
  pthread_mutex_unlock(&lock);
}

void progress_begin(const char *what, const char *of) {
  if (!is_terminal()) return;
  char text[LONGEST_NAME];
  char *shown = ng_escape(NG_TERMINAL, of);
  snprintf(text, sizeof text, "%s%s%s", what, *of ? " " : "", shown ? shown : "?");
  free(shown);
  set(text, -1);
  start_drawing();
}

void progress_end(void) {
  set("", -1);
}

void progress_tell(void *user, const char *what, double fraction) {
  (void)user;
  if (!is_terminal()) return;
  char text[LONGEST_NAME];
  char *shown = ng_escape(NG_TERMINAL, what);
  snprintf(text, sizeof text, "%s", shown ? shown : "?");
  free(shown);
  set(text, fraction);
}

void progress_draw(const char *text) {
  if (!is_terminal()) return;
  char *shown = ng_escape(NG_TERMINAL, text);
  pthread_mutex_lock(&lock);
  draw(shown ? shown : "?");
  pthread_mutex_unlock(&lock);
  free(shown);
}

void progress_stop(void) {
  const long most_ns = 100000000; // a stopped terminal (Ctrl-S) blocks the drawing thread, which holds the lock
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += (until.tv_nsec + most_ns) / 1000000000;
  until.tv_nsec = (until.tv_nsec + most_ns) % 1000000000;
  if (pthread_mutex_timedlock(&lock, &until) == 0) clear(); // and holds the lock from now on
}
