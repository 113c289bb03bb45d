// No library to compare with was there when this was built.
#include "tests/bench/peer.h"

const char *peer_start(const char *isa) {
  (void)isa;
  return NULL;
}

Peer *peer_new(const PeerTask *task) {
  (void)task;
  return NULL;
}

bool peer_run(Peer *p) {
  (void)p;
  return false;
}

const char *peer_form(const Peer *p) {
  (void)p;
  return NULL;
}

void peer_free(Peer *p) {
  (void)p;
}
