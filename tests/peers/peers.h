// One drawn operator, computed by ngrad and by oneDNN.
#ifndef NGRAD_TESTS_PEERS_PEERS_H
#define NGRAD_TESTS_PEERS_PEERS_H

#include "frontend/api/handles.h"
#include "tests/peers/draw.h"

enum { MOST_INPUTS = 3 };

// The operator with operands of one type. Tensors are dense and row-major.
typedef struct Computation {
  ng_context *ctx;
  ng_graph *graph;
  size_t ninputs;
  ng_tensor inputs[MOST_INPUTS], output;
} Computation;

// Reads and binds the graph and makes its tensors, the inputs random. False after saying why; computation_close is due
// in both cases.
bool computation_open(Computation *c, const char *text, uint64_t seed);
void computation_close(Computation *c);
bool computation_compile_and_run(Computation *c); // false after saying why
// Sets the inputs of c to those of `from`, which have the same shapes.
void computation_copy_inputs(Computation *c, const Computation *from);
// Sets the inputs of c to their absolute values, but for those that only say where maxima are.
void computation_set_absolute(Computation *c);

// The difference of a result from the peer's.
typedef struct Closeness {
  size_t nelems, nbeyond;
  int64_t worst_element;
  double error;    // the largest |ours - theirs| / (sum of the terms' magnitudes), before rounding to the result's type
  double of_bound; // the largest |ours - theirs| / bound
} Closeness;

// Both sum n terms, products or elements, in f32 and any order, so that each is off the exact sum by at most
// g(n) * sum(|term|), where g(n) = n * u / (1 - n * u) and u = 2^-24 (Higham, Accuracy and Stability of Numerical
// Algorithms, 4.2); the peer's sum of magnitudes, `magnitudes`, is itself no less than 1 - g(n) of the exact one. Ours
// is then rounded to its type. bound = 2 * g(n) / (1 - g(n)) * magnitude + half a unit in the last place of ours.
Closeness compare(const ng_tensor *ours, const ng_tensor *theirs, const ng_tensor *magnitudes, int64_t nterms);

// The peer's results for c, whose operands are f32, are c's output. False: it lacks the operator, or failed.
bool onednn_compute(Computation *c);
const char *onednn_name(void); // with its version; NULL: this was built without it

#endif
