// Compares the outputs of ngrad and the peer and, if these differ, both with the interpreter's.
#include "tests/bench/verdict.h"

#include "frontend/cli/session.h"

#include <math.h>

double verdict_compare(const Case *c, json_t *differences, bool *agrees) {
  double worst = NAN;
  *agrees = true;
  for (size_t i = 0; c->peer && i < c->noutputs; i++) {
    ng_difference d = case_difference(c, i);
    if (!(d.relative_l2 <= worst)) worst = d.relative_l2;
    if (!d.is_within) *agrees = false;
    json_set(differences, ng_graph_output(c->graph, i).name, json_number(d.relative_l2));
  }
  return worst;
}

const char *verdict_judge(Case *c, int *status) {
  ng_tensor *expected;
  const bool is_known = case_interpret(c, &expected);
  bool is_right = is_known;
  for (size_t i = 0; is_right && i < c->noutputs; i++) {
    ng_difference d;
    is_right = ng_tensor_compare(c->ctx, &c->outputs[i], &expected[i], -1, &d) == NG_OK;
  }
  outputs_free(c, expected);
  if (!is_right && *status == NG_OK) *status = NG_DIFFERENT;
  return !is_known ? "they differ" : is_right ? "the peer is off" : "ngrad is OFF";
}
