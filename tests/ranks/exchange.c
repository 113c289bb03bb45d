// Exchanges messages between all ranks, in several slots at once, and checks every byte. With an argument, the rank of
// that number dies on the way: `exchange kill 1`, `exchange exit 1`. STANDALONE: with the functions of a file for
// mpicc, else with those that the library loads.
#ifdef STANDALONE
#include "ng_mpi.h"
typedef ng_message ng_transfer; // as the API has it
#else
#include "frontend/api/ngrad.h"
#endif

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 3, MESSAGES = 2, MOST_RANKS = 8, ROUNDS = 40, MOST_NBYTES = 5000 };

static unsigned char sent[SLOTS][MOST_RANKS][MESSAGES][MOST_NBYTES], received[SLOTS][MOST_RANKS][MESSAGES][MOST_NBYTES];

static unsigned mix(unsigned round, unsigned slot, unsigned from, unsigned to, unsigned message) {
  unsigned x = 1;
  const unsigned parts[] = {round, slot, from, to, message};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) x = (x ^ parts[i]) * 2654435761U + 12345;
  return x ^ x >> 15;
}

static size_t length_of(unsigned x) { // some messages are empty
  return x % 5 ? x / 5 % MOST_NBYTES : 0;
}

static int start(const ng_ranks *r, unsigned round, int slot) {
  ng_transfer sends[MOST_RANKS * MESSAGES], receives[MOST_RANKS * MESSAGES];
  size_t n = 0;
  for (int peer = 0; peer < r->count; peer++)
    for (unsigned m = 0; m < MESSAGES && peer != r->rank; m++, n++) {
      const unsigned out = mix(round, (unsigned)slot, (unsigned)r->rank, (unsigned)peer, m);
      const unsigned in = mix(round, (unsigned)slot, (unsigned)peer, (unsigned)r->rank, m);
      sends[n] = (ng_transfer){peer, sent[slot][peer][m], length_of(out)};
      receives[n] = (ng_transfer){peer, received[slot][peer][m], length_of(in)};
      for (size_t i = 0; i < sends[n].nbytes; i++) sent[slot][peer][m][i] = (unsigned char)(out + i);
    }
  memset(received[slot], 0, sizeof received[slot]);
  return r->start(r->context, slot, sends, n, receives, n);
}

static int check(const ng_ranks *r, unsigned round, int slot) {
  int wrong = 0;
  for (int peer = 0; peer < r->count; peer++)
    for (unsigned m = 0; m < MESSAGES && peer != r->rank; m++) {
      const unsigned in = mix(round, (unsigned)slot, (unsigned)peer, (unsigned)r->rank, m);
      for (size_t i = 0; i < length_of(in); i++) wrong += received[slot][peer][m][i] != (unsigned char)(in + i);
    }
  return wrong;
}

static int run(const ng_ranks *r, const char *death, int victim) {
  int wrong = 0;
  for (unsigned round = 0; round < ROUNDS; round++) {
    int is_done = 0;
    if (round == ROUNDS / 2 && r->rank == victim) {
      if (strcmp(death, "kill") == 0) raise(SIGKILL);
      exit(0);
    }
    for (int slot = 0; slot < SLOTS; slot++)
      if (start(r, round, slot) != 0) return -1;
    while (!is_done)
      if (r->test(r->context, 1, &is_done) != 0) return -1;
    for (int slot = 0; slot < SLOTS; slot++) {
      if (slot != 1 && r->wait(r->context, slot) != 0) return -1;
      wrong += check(r, round, slot);
    }
  }
  return wrong;
}

int main(int argc, char **argv) {
  ng_ranks ranks = {0};
  int wrong;
#ifdef STANDALONE
  if (MPI_Init(&argc, &argv) != MPI_SUCCESS || ng_mpi_open(&ranks, MPI_COMM_WORLD) != 0) return 2;
#else
  int64_t nlocal;
  ng_context *ctx = ng_context_new(NULL);
  if (!ctx || ng_mpi_open(ctx, &ranks, &nlocal) != NG_OK) {
    if (ctx) fputs(ng_messages_text(ctx, 0), stderr);
    return 2;
  }
  if (nlocal != ranks.count) printf("FAILED: %d of %d ranks here\n", (int)nlocal, (int)ranks.count);
#endif
  wrong = ranks.count < 2 ? 0
          : ranks.count > MOST_RANKS
              ? -1
              : run(&ranks, argc > 1 ? argv[1] : "", argc > 2 ? (int)strtol(argv[2], NULL, 10) : -1);
  printf("rank %d of %d: %s\n", (int)ranks.rank, (int)ranks.count, wrong ? "FAILED" : "ok");
  ng_mpi_close(&ranks);
#ifdef STANDALONE
  MPI_Finalize();
#else
  ng_context_free(ctx);
#endif
  return wrong != 0;
}
