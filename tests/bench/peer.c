// The libraries that the build found, and the choice of the library that runs a graph.
#include "tests/bench/peer.h"

#include "tests/bench/turns.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const PeerLibrary *const libraries[] = {
#ifdef HAS_ONEDNN
    &onednn_library,
#endif
#ifdef HAS_OPENBLAS
    &openblas_library,
#endif
    NULL, // the end; there may be no other
};
enum { NLIBRARIES = sizeof libraries / sizeof *libraries - 1 };

struct Peer {
  const PeerLibrary *library;
  void *self;
  char form[96];
};

static bool is_allowed[NLIBRARIES + 1]; // by peer_start

const char *peer_start(const char *isa, const char *name) {
  static char names[128];
  size_t length = 0;
  for (size_t i = 0; libraries[i]; i++) {
    is_allowed[i] = !name || strcmp(name, libraries[i]->option) == 0;
    if (!is_allowed[i] || length >= sizeof names) continue;
    length +=
        (size_t)snprintf(names + length, sizeof names - length, "%s%s", length ? ", " : "", libraries[i]->start(isa));
  }
  return length ? names : NULL;
}

static Peer *new_of(const PeerLibrary *library, const PeerTask *task) {
  Peer *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->library = library;
  p->self = library->make(task);
  if (p->self) {
    const char *form = library->form(p->self);
    snprintf(p->form, sizeof p->form, "%s%s%s", library->name, *form ? ": " : "", form);
    return p;
  }
  free(p);
  return NULL;
}

static void run(void *self) {
  peer_run(self);
}

Peer *peer_new(const PeerTask *task) {
  const double seconds = 0.2;
  Contestant contestants[NLIBRARIES + 1];
  size_t count = 0, best = 0;
  for (size_t i = 0; libraries[i]; i++) {
    Peer *p = is_allowed[i] ? new_of(libraries[i], task) : NULL;
    if (p) contestants[count++] = (Contestant){run, p, 0};
  }
  if (!count) return NULL;
  if (count > 1) turns_take(contestants, count, task->threads, seconds);
  for (size_t i = 1; i < count; i++)
    if (contestants[i].median_ms < contestants[best].median_ms) best = i;
  for (size_t i = 0; i < count; i++)
    if (i != best) peer_free(contestants[i].self);
  return contestants[best].self;
}

bool peer_run(Peer *p) {
  return p->library->run(p->self);
}

const char *peer_form(const Peer *p) {
  return p->form;
}

void peer_free(Peer *p) {
  if (!p) return;
  p->library->free(p->self);
  free(p);
}
