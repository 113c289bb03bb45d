/* Runs a step with leaves (ir/leaves/step.h): calls the functions of its stages for each leaf, and reduces the leaves'
   shared tensors, by exchanging them with other ranks.

   This file is compiled into the library, and printed into emitted C, where PREFIX_ stands for ngrad_.

   A rank has a range of consecutive leaves. Its subtrees are the largest nodes of the canonical tree within the range.
   Leaves are added up to subtrees one by one: a stack holds the complete nodes of the tree. Then ranks exchange the
   subtrees of a bucket in one of two ways, which send equally many bytes:

   - The bytes are cut into segments, one for each rank. A rank sends every other rank its subtrees of the other rank's
     segment, adds all subtrees of its own segment in the tree's order, and sends the result to all.
   - If the number of ranks is a power of two and each rank has one subtree, the ranks are the leaves of a binary tree.
     In each round up the tree, a rank exchanges half of its current bytes with a rank of the other half of the node,
     and adds; in each round down, they exchange the results.

   So each sum is the canonical tree's, whichever rank has which leaves. */
/* Calls a function. It must call `mark`, unless that is NULL, after each part of the function. */
struct ngrad_caller {
  void *context;
  int (*call)(void *context, uint32_t function, const void *const *inputs, void *const *outputs, void *scratch,
              void (*mark)(void *context, size_t part), void *mark_context);
};

enum { ngrad_RANKS_FAILED = -1 }; /* differs from all results of `call` */

/* The tree */

struct ngrad_node {
  int64_t begin, end; /* leaves */
};

enum { ngrad_MOST_NODES = 64 }; /* of a stack: more than twice the levels of the tree */

static int64_t ngrad_first_leaf(int64_t nleaves, int64_t rank, int64_t count) {
  return nleaves / count * rank + nleaves % count * rank / count;
}

/* Whether the nodes are the halves of a node. */
static int ngrad_are_halves(int64_t nleaves, const struct ngrad_node *left, const struct ngrad_node *right) {
  const int64_t size = left->end - left->begin;
  const int64_t end = left->end + size < nleaves ? left->end + size : nleaves;
  return !(size & (size - 1)) && left->begin % (2 * size) == 0 && left->end == right->begin && right->end == end;
}

/* Pushes a node on a stack of `depth` nodes. Returns how many times the two top nodes merge. */
static int ngrad_push_node(int64_t nleaves, struct ngrad_node *stack, int depth, int64_t begin, int64_t end) {
  int merges = 0;
  stack[depth].begin = begin;
  stack[depth].end = end;
  while (depth > 0 && ngrad_are_halves(nleaves, &stack[depth - 1], &stack[depth])) {
    stack[depth - 1].end = stack[depth].end;
    depth--;
    merges++;
  }
  return merges;
}

/* The subtrees of leaves from `begin` to below `end`; *most: the largest depth of the stack, with the current leaf. */
static int ngrad_find_subtrees(int64_t nleaves, int64_t begin, int64_t end, struct ngrad_node *subtrees, int *most) {
  int depth = 0;
  *most = 1;
  for (int64_t leaf = begin; leaf < end; leaf++) {
    if (depth + 1 > *most) *most = depth + 1;
    depth += 1 - ngrad_push_node(nleaves, subtrees, depth, leaf, leaf + 1);
  }
  return depth;
}

/* The rounds up the tree of ranks; 0: ranks are not the leaves of a tree. */
static int ngrad_find_rounds(int64_t nleaves, int64_t nranks) {
  const int64_t each = nleaves / nranks;
  int rounds = 0;
  if (nleaves % nranks || each & (each - 1) || nranks & (nranks - 1)) return 0;
  while ((int64_t)1 << rounds < nranks) rounds++;
  return rounds;
}

/* A run of a step */

struct ngrad_exchange {  /* the exchange of a bucket */
  int phase;             /* 0: not begun; 1, ...: subtrees, then results are under way; `over`: done */
  size_t begin, end;     /* this rank's segment or half, in the stage's bytes */
  unsigned char *others; /* received subtrees, in the order of ranks; or one received half */
};

struct ngrad_run {
  const struct ngrad_step *step;
  const struct ngrad_ranks *ranks; /* NULL: one rank */
  const struct ngrad_caller *caller;
  const void *const *inputs;
  void *const *outputs;
  int64_t first, end, leaf, rank, nranks; /* this rank's leaves; the current leaf */
  int rounds;                             /* up the tree of ranks; 0: no tree */
  int over;                               /* the phase of a completed exchange */
  uint32_t stage;
  struct ngrad_node nodes[ngrad_MOST_NODES]; /* the stack of the stage */
  int depth;                                 /* of the stack, without the current leaf */
  int merges;                                /* merges when the current leaf is pushed */
  int status;
  unsigned char *scratch, *common, *own, *stack, *received; /* memory; `stack` lacks the first node */
  unsigned char **results;                                  /* by stage: its first node, which becomes its result */
  struct ngrad_exchange *exchanges;                         /* by bucket of the stage */
  struct ngrad_message *messages;                           /* sends, then receives */
  size_t nothers;                                           /* the number of other ranks' subtrees */
  size_t most_messages;                                     /* the most sends, and the most receives */
  const void **given;
  void **taken;
  size_t most_shared; /* bytes */
};

static size_t ngrad_round_up(size_t nbytes) {
  return (nbytes + 63) / 64 * 64;
}

static unsigned char *ngrad_take(unsigned char *memory, size_t *used, size_t nbytes) {
  unsigned char *at = memory ? memory + *used : NULL;
  *used += ngrad_round_up(nbytes);
  return at;
}

/* The most received bytes of a bucket that wait to be added on this rank. */
static size_t ngrad_received_nbytes(const struct ngrad_run *r, const struct ngrad_bucket *b) {
  return r->rounds ? ngrad_round_up(b->nbytes / 2 + 64)
                   : ngrad_round_up(b->nbytes / (size_t)r->nranks + 64) * r->nothers;
}

/* Lays out the run in `memory` (NULL: sets no pointers). Returns the number of bytes. */
static size_t ngrad_lay_out(struct ngrad_run *r, unsigned char *memory) {
  const struct ngrad_step *p = r->step;
  struct ngrad_node nodes[ngrad_MOST_NODES];
  size_t used = 0, most_buckets = 1, most_subtrees = 1, received = 0;
  int depth;
  ngrad_find_subtrees(p->nleaves, r->first, r->end, nodes, &depth);
  r->nothers = 0;
  for (int64_t q = 0; q < r->nranks && r->nranks > 1; q++) {
    int most;
    const int n = ngrad_find_subtrees(p->nleaves, ngrad_first_leaf(p->nleaves, q, r->nranks),
                                      ngrad_first_leaf(p->nleaves, q + 1, r->nranks), nodes, &most);
    if (q != r->rank) r->nothers += (size_t)n;
    if ((size_t)n > most_subtrees) most_subtrees = (size_t)n;
  }
  r->most_shared = 0;
  for (size_t i = 0; i < p->nstages; i++) {
    const struct ngrad_stage *s = &p->stages[i];
    size_t segments = 0;
    if (s->shared_nbytes > r->most_shared) r->most_shared = s->shared_nbytes;
    if (s->nbuckets > most_buckets) most_buckets = s->nbuckets;
    for (size_t b = 0; b < s->nbuckets && r->ranks; b++) segments += ngrad_received_nbytes(r, &s->buckets[b]);
    if (segments > received) received = segments;
  }
  r->most_messages = r->nranks > 1 ? (size_t)r->nranks * most_subtrees : 0;
  r->scratch = ngrad_take(memory, &used, p->scratch_nbytes);
  r->common = ngrad_take(memory, &used, p->common_nbytes);
  r->own = ngrad_take(memory, &used, p->own_nbytes * (size_t)(r->end - r->first));
  r->stack = ngrad_take(memory, &used, r->most_shared * (size_t)(depth - 1));
  r->received = ngrad_take(memory, &used, received);
  r->results = (unsigned char **)(void *)ngrad_take(memory, &used, p->nstages * sizeof *r->results);
  r->exchanges = (struct ngrad_exchange *)(void *)ngrad_take(memory, &used, most_buckets * sizeof *r->exchanges);
  r->messages = (struct ngrad_message *)(void *)ngrad_take(memory, &used, 2 * r->most_messages * sizeof *r->messages);
  r->given = (const void **)(void *)ngrad_take(memory, &used, p->most_operands * sizeof *r->given);
  r->taken = (void **)(void *)ngrad_take(memory, &used, p->most_operands * sizeof *r->taken);
  for (size_t i = 0; i < p->nstages; i++) {
    unsigned char *result = ngrad_take(memory, &used, p->stages[i].shared_nbytes);
    if (memory) r->results[i] = result;
  }
  return used;
}

static void ngrad_run_init(struct ngrad_run *r, const struct ngrad_step *step, const struct ngrad_ranks *ranks) {
  memset(r, 0, sizeof *r);
  r->step = step;
  r->ranks = ranks && ranks->count > 1 ? ranks : NULL;
  r->rank = r->ranks ? ranks->rank : 0;
  r->nranks = r->ranks ? ranks->count : 1;
  r->first = ngrad_first_leaf(step->nleaves, r->rank, r->nranks);
  r->end = ngrad_first_leaf(step->nleaves, r->rank + 1, r->nranks);
  r->rounds = ngrad_find_rounds(step->nleaves, r->nranks);
  r->over = r->rounds ? 2 * r->rounds + 1 : 3;
}

/* The bytes of memory that ngrad_step_run needs on this rank. */
static size_t ngrad_step_nbytes(const struct ngrad_step *step, const struct ngrad_ranks *ranks) {
  struct ngrad_run r;
  ngrad_run_init(&r, step, ranks);
  return ngrad_lay_out(&r, NULL);
}

/* A node of the stage's stack, from byte `offset` of the stage's bytes on. */
static unsigned char *ngrad_node_bytes(const struct ngrad_run *r, int node, size_t offset) {
  unsigned char *base = node ? r->stack + (size_t)(node - 1) * r->most_shared : r->results[r->stage];
  return base + offset;
}

static void *ngrad_find_place(const struct ngrad_run *r, const struct ngrad_place *p) {
  const size_t number = (size_t)(r->leaf - r->first);
  switch (p->kind) {
  case ngrad_PLACE_INPUT: return (void *)r->inputs[p->number];
  case ngrad_PLACE_LEAF: return (unsigned char *)r->inputs[p->number] + number * p->nbytes;
  case ngrad_PLACE_NUMBERS: return (unsigned char *)r->step->numbers[p->number] + (size_t)r->leaf * p->nbytes;
  case ngrad_PLACE_OUTPUT: return r->outputs[p->number];
  case ngrad_PLACE_COMMON: return r->common + p->offset;
  case ngrad_PLACE_OWN: return r->own + number * r->step->own_nbytes + p->offset;
  case ngrad_PLACE_SHARE: return ngrad_node_bytes(r, r->depth, p->offset);
  default: return r->results[p->number] + p->offset;
  }
}

/* Exchanges */

static void ngrad_find_segment(const struct ngrad_run *r, const struct ngrad_bucket *b, int64_t rank, size_t *begin,
                               size_t *end) {
  const size_t nlines = b->nbytes / 64, count = (size_t)r->nranks, q = (size_t)rank;
  *begin = b->offset + 64 * (nlines / count * q + nlines % count * q / count);
  *end = b->offset + 64 * (nlines / count * (q + 1) + nlines % count * (q + 1) / count);
}

static int ngrad_subtrees_of(const struct ngrad_run *r, int64_t rank, struct ngrad_node *subtrees) {
  int most;
  return ngrad_find_subtrees(r->step->nleaves, ngrad_first_leaf(r->step->nleaves, rank, r->nranks),
                             ngrad_first_leaf(r->step->nleaves, rank + 1, r->nranks), subtrees, &most);
}

static void ngrad_add_message(struct ngrad_message *messages, size_t *count, int64_t peer, void *data, size_t nbytes) {
  if (!nbytes) return;
  messages[*count].peer = peer;
  messages[*count].data = data;
  messages[(*count)++].nbytes = nbytes;
}

static void ngrad_start(struct ngrad_run *r, size_t bucket, size_t nsends, size_t nreceives) {
  if (r->ranks->start(r->ranks->context, (int)bucket, r->messages, nsends, r->messages + r->most_messages, nreceives))
    r->status = ngrad_RANKS_FAILED;
}

/* Exchanges of each rank with all others */

static void ngrad_send_subtrees(struct ngrad_run *r, size_t bucket) {
  const struct ngrad_bucket *b = &r->step->stages[r->stage].buckets[bucket];
  struct ngrad_exchange *e = &r->exchanges[bucket];
  struct ngrad_node subtrees[ngrad_MOST_NODES];
  size_t nsends = 0, nreceives = 0, used = 0, begin, end;
  const int nown = ngrad_subtrees_of(r, r->rank, subtrees);
  for (int64_t q = 0; q < r->nranks; q++) {
    if (q == r->rank) continue;
    ngrad_find_segment(r, b, q, &begin, &end);
    for (int i = 0; i < nown; i++)
      ngrad_add_message(r->messages, &nsends, q, ngrad_node_bytes(r, i, begin), end - begin);
    for (int i = ngrad_subtrees_of(r, q, subtrees); i > 0; i--, used += e->end - e->begin)
      ngrad_add_message(r->messages + r->most_messages, &nreceives, q, e->others + used, e->end - e->begin);
  }
  ngrad_start(r, bucket, nsends, nreceives);
}

/* Adds all ranks' subtrees of this rank's segment. */
static void ngrad_add_subtrees(struct ngrad_run *r, size_t bucket) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  const struct ngrad_bucket *b = &s->buckets[bucket];
  const struct ngrad_exchange *e = &r->exchanges[bucket];
  const size_t nbytes = e->end - e->begin;
  struct ngrad_node subtrees[ngrad_MOST_NODES], nodes[ngrad_MOST_NODES];
  unsigned char *const result = r->results[r->stage] + e->begin, *sums[ngrad_MOST_NODES] = {result};
  unsigned char *other = e->others;
  int depth = 0;
  if (!nbytes) return;
  for (int64_t q = 0; q < r->nranks; q++) {
    const int count = ngrad_subtrees_of(r, q, subtrees);
    for (int i = 0; i < count; i++) {
      nodes[depth] = subtrees[i];
      sums[depth++] = q == r->rank ? ngrad_node_bytes(r, i, e->begin) : other;
      if (q != r->rank) other += nbytes;
      for (; depth > 1 && ngrad_are_halves(r->step->nleaves, &nodes[depth - 2], &nodes[depth - 1]); depth--) {
        nodes[depth - 2].end = nodes[depth - 1].end;
        ngrad_reduce_bytes(s, b, e->begin, e->end, sums[depth - 2], sums[depth - 1], 0);
      }
    }
  }
  if (sums[0] != result) memcpy(result, sums[0], nbytes);
  ngrad_reduce_bytes(s, b, e->begin, e->end, result, NULL, r->step->nleaves);
}

static void ngrad_send_results(struct ngrad_run *r, size_t bucket) {
  const struct ngrad_bucket *b = &r->step->stages[r->stage].buckets[bucket];
  struct ngrad_exchange *e = &r->exchanges[bucket];
  size_t nsends = 0, nreceives = 0, begin, end;
  for (int64_t q = 0; q < r->nranks; q++) {
    if (q == r->rank) continue;
    ngrad_find_segment(r, b, q, &begin, &end);
    ngrad_add_message(r->messages, &nsends, q, r->results[r->stage] + e->begin, e->end - e->begin);
    ngrad_add_message(r->messages + r->most_messages, &nreceives, q, r->results[r->stage] + begin, end - begin);
  }
  ngrad_start(r, bucket, nsends, nreceives);
}

/* Exchanges along the tree of ranks */

/* The bytes that a rank has after `rounds` rounds up. */
static void ngrad_find_half(const struct ngrad_bucket *b, int64_t rank, int rounds, size_t *begin, size_t *end) {
  *begin = b->offset;
  *end = b->offset + b->nbytes;
  for (int i = 0; i < rounds; i++) {
    const size_t middle = *begin + (*end - *begin) / 128 * 64;
    if (rank >> i & 1) *begin = middle;
    else *end = middle;
  }
}

/* Exchanges halves with the rank's partner of round `round`. */
static void ngrad_send_half(struct ngrad_run *r, size_t bucket, int round, int is_up) {
  const struct ngrad_bucket *b = &r->step->stages[r->stage].buckets[bucket];
  struct ngrad_exchange *e = &r->exchanges[bucket];
  unsigned char *results = r->results[r->stage];
  const int64_t other = r->rank ^ (int64_t)1 << round;
  size_t nsends = 0, nreceives = 0, begin, end;
  ngrad_find_half(b, r->rank, round + 1, &e->begin, &e->end);
  ngrad_find_half(b, other, round + 1, &begin, &end);
  if (is_up) {
    ngrad_add_message(r->messages, &nsends, other, results + begin, end - begin);
    ngrad_add_message(r->messages + r->most_messages, &nreceives, other, e->others, e->end - e->begin);
  } else {
    ngrad_add_message(r->messages, &nsends, other, results + e->begin, e->end - e->begin);
    ngrad_add_message(r->messages + r->most_messages, &nreceives, other, results + begin, end - begin);
  }
  ngrad_start(r, bucket, nsends, nreceives);
}

static void ngrad_add_half(struct ngrad_run *r, size_t bucket, int round) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  const struct ngrad_bucket *b = &s->buckets[bucket];
  const struct ngrad_exchange *e = &r->exchanges[bucket];
  unsigned char *own = r->results[r->stage] + e->begin;
  if (r->rank >> round & 1) {
    ngrad_reduce_bytes(s, b, e->begin, e->end, e->others, own, 0);
    memcpy(own, e->others, e->end - e->begin);
  } else {
    ngrad_reduce_bytes(s, b, e->begin, e->end, own, e->others, 0);
  }
  if (round + 1 == r->rounds) ngrad_reduce_bytes(s, b, e->begin, e->end, own, NULL, r->step->nleaves);
}

/* Begins the next phase of an exchange, after the previous phase's messages have arrived. */
static void ngrad_go_on(struct ngrad_run *r, size_t bucket) {
  const int before = r->exchanges[bucket].phase++, phase = before + 1;
  if (before && before <= r->rounds) ngrad_add_half(r, bucket, before - 1);
  if (phase == r->over) return;
  if (r->rounds) {
    const int is_up = phase <= r->rounds;
    ngrad_send_half(r, bucket, is_up ? phase - 1 : 2 * r->rounds - phase, is_up);
  } else if (phase == 1) {
    ngrad_send_subtrees(r, bucket);
  } else {
    ngrad_add_subtrees(r, bucket);
    ngrad_send_results(r, bucket);
  }
}

static void ngrad_poke(struct ngrad_run *r) {
  for (size_t i = 0; i < r->step->stages[r->stage].nbuckets && !r->status; i++) {
    int is_done = 0;
    if (!r->exchanges[i].phase || r->exchanges[i].phase == r->over) continue;
    if (r->ranks->test(r->ranks->context, (int)i, &is_done)) r->status = ngrad_RANKS_FAILED;
    if (is_done && !r->status) ngrad_go_on(r, i);
  }
}

static void ngrad_await(struct ngrad_run *r, size_t bucket) {
  while (!r->status && r->exchanges[bucket].phase < r->over) {
    if (r->ranks->wait(r->ranks->context, (int)bucket)) r->status = ngrad_RANKS_FAILED;
    else ngrad_go_on(r, bucket);
    if (!r->status) ngrad_poke(r);
  }
}

/* Stages */

/* Adds the current leaf's bytes of a bucket to the stack. */
static void ngrad_add_leaf(struct ngrad_run *r, const struct ngrad_bucket *b) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  for (int top = r->depth; top > r->depth - r->merges; top--)
    ngrad_reduce_bytes(s, b, b->offset, b->offset + b->nbytes, ngrad_node_bytes(r, top - 1, b->offset),
                       ngrad_node_bytes(r, top, b->offset), 0);
}

static void ngrad_begin_exchange(struct ngrad_run *r, size_t bucket) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  const struct ngrad_bucket *b = &s->buckets[bucket];
  if (r->end > r->first) ngrad_add_leaf(r, b);
  if (r->ranks) {
    ngrad_go_on(r, bucket);
  } else {
    ngrad_reduce_bytes(s, b, b->offset, b->offset + b->nbytes, ngrad_node_bytes(r, 0, b->offset), NULL,
                       r->step->nleaves);
    r->exchanges[bucket].phase = r->over;
  }
}

/* Called after a part of the last leaf's function: begins exchanges of complete buckets. */
static void ngrad_mark(void *context, size_t part) {
  struct ngrad_run *r = (struct ngrad_run *)context;
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  for (size_t i = 0; i < s->nbuckets && !r->status; i++)
    if (!r->exchanges[i].phase && s->buckets[i].part <= part) ngrad_begin_exchange(r, i);
  if (!r->status) ngrad_poke(r);
}

static void ngrad_call(struct ngrad_run *r, const struct ngrad_function *f, int is_marked) {
  for (size_t i = 0; i < f->ninputs; i++) r->given[i] = ngrad_find_place(r, &f->inputs[i]);
  for (size_t i = 0; i < f->noutputs; i++) r->taken[i] = ngrad_find_place(r, &f->outputs[i]);
  if (r->status) return;
  r->status =
      r->caller->call(r->caller->context, f->number, r->given, r->taken, r->scratch, is_marked ? ngrad_mark : NULL, r);
}

static void ngrad_run_leaf(struct ngrad_run *r) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  const int is_last = r->leaf + 1 == r->end;
  r->merges = ngrad_push_node(r->step->nleaves, r->nodes, r->depth, r->leaf, r->leaf + 1);
  ngrad_call(r, s->leaf, is_last && r->ranks);
  for (size_t i = 0; i < s->nbuckets && !is_last; i++) ngrad_add_leaf(r, &s->buckets[i]);
  if (!is_last) r->depth += 1 - r->merges;
}

static void ngrad_run_stage(struct ngrad_run *r) {
  const struct ngrad_stage *s = &r->step->stages[r->stage];
  unsigned char *others = r->received;
  for (size_t i = 0; i < s->nbuckets; i++) {
    struct ngrad_exchange *e = &r->exchanges[i];
    e->phase = 0;
    if (!r->ranks) continue;
    e->others = others;
    ngrad_find_segment(r, &s->buckets[i], r->rank, &e->begin, &e->end);
    others += ngrad_received_nbytes(r, &s->buckets[i]);
  }
  r->leaf = r->first;
  r->depth = 0;
  r->merges = 0;
  if (s->common) ngrad_call(r, s->common, 0);
  for (; s->leaf && r->leaf < r->end && !r->status; r->leaf++) ngrad_run_leaf(r);
  for (size_t i = 0; i < s->nbuckets && !r->status; i++)
    if (!r->exchanges[i].phase) ngrad_begin_exchange(r, i);
  for (size_t i = 0; i < s->nbuckets && r->ranks; i++) ngrad_await(r, i);
}

/* Runs the step. `memory` is aligned to 64 bytes. Returns 0, the failed `call`'s result, or
   ngrad_RANKS_FAILED. Inputs with a first axis of leaves have only this rank's leaves. */
static int ngrad_step_run(const struct ngrad_step *step, const struct ngrad_ranks *ranks,
                          const struct ngrad_caller *caller, const void *const *inputs, void *const *outputs,
                          void *memory) {
  struct ngrad_run r;
  ngrad_run_init(&r, step, ranks);
  r.caller = caller;
  r.inputs = inputs;
  r.outputs = outputs;
  ngrad_lay_out(&r, (unsigned char *)memory);
  for (; r.stage < step->nstages && !r.status; r.stage++) ngrad_run_stage(&r);
  return r.status;
}
