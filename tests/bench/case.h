// A graph that is timed: compiled, with data, and with the peer's implementation.
#ifndef NGRAD_TESTS_BENCH_CASE_H
#define NGRAD_TESTS_BENCH_CASE_H

#include "frontend/api/ceiling.h"
#include "frontend/api/handles.h"
#include "tests/bench/peer.h"
#include "tests/bench/settings.h"
#include "tests/bench/turns.h"

typedef enum Family {
  FAMILY_LAYER_NORM_GRADIENT,
  FAMILY_BATCH_NORM_NCX_GRADIENT,
  FAMILY_BATCH_NORM_NXC_GRADIENT,
  FAMILY_RMS_NORM_GRADIENT,
  FAMILY_GROUP_NORM_GRADIENT,
  FAMILY_FUSED,
  FAMILY_FORWARD,
  FAMILY_SOFTMAX,
  FAMILY_SUMS,
  FAMILY_PRODUCTS,
  FAMILY_FUSED_PRODUCTS,
  FAMILY_ATTENTION,
  FAMILY_CONVOLUTIONS,
  FAMILY_DEPTHWISE,
  FAMILY_POOLING,
  FAMILY_COUNT
} Family;
extern const char *const family_names[FAMILY_COUNT];

typedef struct Case {
  const Settings *settings;
  ng_context *ctx;
  ng_graph *graph;
  ng_kernel *kernel;
  size_t ninputs, noutputs;
  ng_tensor *inputs, *outputs, *peer_outputs;
  Peer *peer;      // NULL: there is none, or it cannot run this graph
  bool has_failed; // a run of ngrad or of the peer failed
} Case;

// False after printing why; call case_close in both cases. case_open reads a file; case_prepare takes a graph that
// exists, `c->ctx` and `c->graph`. mean: of the data, in deviations.
bool case_open(Case *c, const char *path, const Settings *s, double mean);
bool case_prepare(Case *c, const Settings *s, double mean);
void case_close(Case *c);

Family case_family(const Case *c);
// Each input, each output once.
uint64_t case_bytes_read(const Case *c);
uint64_t case_bytes_written(const Case *c);

// The programs that run in turns, on the case's data or the ceiling's own. A run that fails sets the case's flag.
Contestant case_ngrad(Case *c);
Contestant case_peer(Case *c); // there is one
Contestant case_ceiling(Ceiling *ceiling);

typedef struct Medians {
  double ngrad_ms, peer_ms, ceiling_ms; // NAN: no peer
  size_t rounds;
} Medians;

// Times ngrad's kernel, the peer and, if wanted, the ceiling, in turns. False after printing why.
bool case_measure(Case *c, bool wants_ceiling, Medians *out);

// Computes the outputs with the f64 interpreter: slow. False after printing why; call outputs_free in both cases.
bool case_interpret(Case *c, ng_tensor **outputs);
void outputs_free(Case *c, ng_tensor *outputs);

// ngrad's output i against the peer's, by the last run of each.
ng_difference case_difference(const Case *c, size_t i);

#endif
