// Libraries that can compute the same graphs, on the same data: oneDNN, OpenBLAS, or none.
#ifndef NGRAD_TESTS_BENCH_PEER_H
#define NGRAD_TESTS_BENCH_PEER_H

#include "frontend/api/ngrad.h"
#include "ir/graph/graph.h"

#include <stdbool.h>

typedef struct Peer Peer;

typedef struct PeerTask {
  const Graph *graph;       // bound, nodes in topological order
  const ng_tensor *inputs;  // parallel to the graph's
  const ng_tensor *outputs; // likewise; the peer's own
  int threads;
  bool may_reorder; // the peer may convert tensors of norms to its own layouts and back
} PeerTask;

// Must be called once, before the other functions. isa NULL: the best. name: the option name of the only library that
// may be a peer; NULL: all may. Returns the names of the libraries that may; NULL: none.
const char *peer_start(const char *isa, const char *name);

// NULL: no library can run this graph. Of several libraries, and of several ways to run it, the fastest is taken. The
// task's tensors stay the caller's and must outlive the peer. May set inputs that only say which elements a ReLU let
// through: see onednn/peer.c.
Peer *peer_new(const PeerTask *task);
bool peer_run(Peer *p);               // false: it failed
const char *peer_form(const Peer *p); // the library and the form that run the graph
void peer_free(Peer *p);

// The functions of a library. `self` is the result of make, and refers to the task's tensors.
typedef struct PeerLibrary {
  const char *name, *option;
  const char *(*start)(const char *isa); // returns name and version
  void *(*make)(const PeerTask *task);   // NULL: it cannot run this graph
  bool (*run)(void *self);
  const char *(*form)(const void *self); // "": there is only one form
  void (*free)(void *self);
} PeerLibrary;

extern const PeerLibrary onednn_library, openblas_library;

#endif
