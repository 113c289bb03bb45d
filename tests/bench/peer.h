// A library that can compute the same graphs, on the same data: oneDNN, or none (peer_absent.c).
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
  bool may_reorder; // tensors into layouts that the peer likes, and back
} PeerTask;

// Once, before all else. isa NULL: the best. Returns the peer's name; NULL: there is none.
const char *peer_start(const char *isa);

// NULL: the peer cannot run this graph. Of several ways to run it the fastest is taken. The task's tensors stay the
// caller's and must outlive the peer. May set inputs that only say which elements a ReLU let through: see
// onednn/peer.c.
Peer *peer_new(const PeerTask *task);
bool peer_run(Peer *p);               // false: it failed
const char *peer_form(const Peer *p); // which way was taken
void peer_free(Peer *p);

#endif
