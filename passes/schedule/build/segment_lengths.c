// The lengths of segments and chains of sums (ir/kernel/loop_sums.h) that open dims choose, as emitted code computes
// them.
#include "passes/schedule/build/nest_builder.h"

const Index *index_chain(TreeBuilder *b, const Index *width) {
  return index_of(b, INDEX_DIVIDE, index_of(b, INDEX_ADD, width, index_number(b, LANES - 1, 0)),
                  index_number(b, LANES, 0));
}

const Index *index_run_length(TreeBuilder *b) {
  const Index *chain = index_var(b, VAR_CHAIN, 0), *longest = index_number(b, LONGEST_SEGMENT, 0);
  return index_choose(b, chain, index_of(b, INDEX_DIVIDE, longest, chain), index_number(b, 1, 0));
}

// At least 1, so that a loop over chains ends.
const Index *index_chain_iterations(TreeBuilder *b, const Index *extent, int64_t inside) {
  const Index *one = index_number(b, 1, 0), *iterations = index_number(b, chain_limit(inside, 1), 0);
  for (int times = 2; times >= 1; times--) {
    const int64_t most = chain_limit(inside, times);
    const Index *length = index_number(b, most, 0);
    const Index *nchains =
        index_of(b, INDEX_DIVIDE, index_of(b, INDEX_ADD, extent, index_number(b, most - 1, 0)), length);
    for (int i = CHAIN_TRIES - 1; i >= 0; i--) {
      const Index *n = index_of(b, INDEX_ADD, nchains, index_number(b, i, 0));
      const Index *own = index_of(b, INDEX_DIVIDE, extent, n);
      const Index *divides = index_of(b, INDEX_LESS, index_of(b, INDEX_REMAINDER, extent, n), one);
      const Index *is_long =
          index_of(b, INDEX_AT_LEAST, index_of(b, INDEX_MULTIPLY, own, index_number(b, 2, 0)), length);
      iterations = index_choose(b, index_of(b, INDEX_BOTH, divides, is_long), own, iterations);
    }
  }
  const Index *is_cut = index_of(b, INDEX_AT_LEAST, index_of(b, INDEX_MULTIPLY, extent, index_number(b, inside, 0)),
                                 index_number(b, (int64_t)2 * CHAIN, 0));
  const Index *whole = index_choose(b, index_of(b, INDEX_LESS, extent, one), one, extent);
  return index_choose(b, is_cut, iterations, whole);
}
