// Graphs with leaves: what they compute, that it does not depend on ranks, and what is refused.
#include "backends/codegen/leaves/leaves.h"
#include "frontend/api/ngrad.h"
#include "tests/unit/quick_compiler.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <pthread.h>

// Ranks that are threads of this process.

enum { MOST_RANKS = 9, MOST_SLOTS = 8, MOST_LETTERS = 16384, STEPS = 2 };

typedef struct Letter { // a message that its receiver has not taken yet
  int64_t from, to;
  int slot;
  const void *data;
  size_t nbytes;
  bool is_taken;
} Letter;

typedef struct Post {
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  Letter letters[MOST_LETTERS];
  size_t count;
  bool has_failed;
} Post;

typedef struct Rank {
  Post *post;
  ng_ranks ranks;
  const ng_transfer *receives[MOST_SLOTS];
  ng_transfer kept[MOST_SLOTS][64];
  size_t nreceives[MOST_SLOTS], nreceived[MOST_SLOTS];
  size_t nbytes_sent, nsent; // of messages; messages
} Rank;

static int start(void *context, int slot, const ng_transfer *sends, size_t nsends, const ng_transfer *receives,
                 size_t nreceives) {
  Rank *r = context;
  assert_true(slot < MOST_SLOTS && nreceives <= 64);
  memcpy(r->kept[slot], receives, nreceives * sizeof *receives);
  r->nreceives[slot] = nreceives;
  r->nreceived[slot] = 0;
  pthread_mutex_lock(&r->post->mutex);
  r->nsent += nsends;
  for (size_t i = 0; i < nsends; i++) {
    assert_true(r->post->count < MOST_LETTERS);
    r->post->letters[r->post->count++] =
        (Letter){r->ranks.rank, sends[i].peer, slot, sends[i].data, sends[i].nbytes, false};
    r->nbytes_sent += sends[i].nbytes;
  }
  pthread_cond_broadcast(&r->post->changed);
  pthread_mutex_unlock(&r->post->mutex);
  return 0;
}

// Receives arrived messages. Whether all have arrived, and all sent messages were received.
static bool take(Rank *r, int slot) {
  Post *post = r->post;
  bool is_done = true;
  for (; r->nreceived[slot] < r->nreceives[slot]; r->nreceived[slot]++) {
    const ng_transfer *wanted = &r->kept[slot][r->nreceived[slot]];
    size_t i = 0;
    while (i < post->count && (post->letters[i].is_taken || post->letters[i].to != r->ranks.rank ||
                               post->letters[i].slot != slot || post->letters[i].from != wanted->peer))
      i++;
    if (i == post->count) return false;
    assert_int_equal(post->letters[i].nbytes, wanted->nbytes);
    memcpy(wanted->data, post->letters[i].data, wanted->nbytes);
    post->letters[i].is_taken = true;
    pthread_cond_broadcast(&post->changed);
  }
  for (size_t i = 0; i < post->count; i++)
    is_done &= post->letters[i].is_taken || post->letters[i].from != r->ranks.rank || post->letters[i].slot != slot;
  return is_done;
}

static bool is_eager; // messages come at once, as far as they can

static int test(void *context, int slot, int *is_done) {
  Rank *r = context;
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_nsec += 20000000;
  end.tv_sec += end.tv_nsec / 1000000000;
  end.tv_nsec %= 1000000000;
  pthread_mutex_lock(&r->post->mutex);
  *is_done = take(r, slot);
  while (is_eager && !*is_done && pthread_cond_timedwait(&r->post->changed, &r->post->mutex, &end) == 0)
    *is_done = take(r, slot);
  pthread_mutex_unlock(&r->post->mutex);
  return 0;
}

static int await(void *context, int slot) {
  Rank *r = context;
  pthread_mutex_lock(&r->post->mutex);
  while (!r->post->has_failed && !take(r, slot)) pthread_cond_wait(&r->post->changed, &r->post->mutex);
  const bool failed = r->post->has_failed;
  pthread_mutex_unlock(&r->post->mutex);
  return failed;
}

// A rank's run, in a thread.
typedef struct Job {
  Rank rank;
  ng_context *ctx;
  ng_graph *g;
  ng_kernel *kernel;
  ng_tensor inputs[64], outputs[64];
  size_t ninputs, noutputs;
  int64_t nleaves;
  ng_status status;
} Job;

static void *run_job(void *job) {
  Job *j = job;
  for (int i = 0; i < STEPS; i++) { // states go on
    j->status = ng_kernel_run_ranks(j->kernel, j->inputs, j->outputs, 1, &j->rank.ranks);
    for (size_t s = 0; s < ng_graph_state_count(j->g) && j->status == NG_OK; s++) {
      const ng_state state = ng_graph_state(j->g, s);
      if (!state.is_updated) continue;
      memcpy(j->inputs[state.input].data, j->outputs[state.output].data, ng_tensor_nbytes(&j->outputs[state.output]));
    }
  }
  return NULL;
}

static ng_graph *read_text(ng_context *ctx, const char *text) {
  ng_graph *g = ng_graph_read(ctx, "test.yaml", text, strlen(text), NULL);
  if (!g) fail_msg("%s", ng_messages_text(ctx, 0));
  return g;
}

// The rank's part of each input that has leaves along its first axis.
static void cut_inputs(Job *j) {
  const int64_t first = step_first_leaf(j->nleaves, j->rank.ranks.rank, j->rank.ranks.count);
  const int64_t end = step_first_leaf(j->nleaves, j->rank.ranks.rank + 1, j->rank.ranks.count);
  const size_t ndata = j->ninputs - ng_graph_state_count(j->g);
  for (size_t i = 0; i < ndata && j->inputs[i].data; i++) {
    ng_tensor *t = &j->inputs[i];
    const size_t each = ng_tensor_nbytes(t) / (size_t)j->nleaves;
    memmove(t->data, (char *)t->data + (size_t)first * each, (size_t)(end - first) * each);
    t->extent[0] = end - first;
  }
}

static void open_job(Job *j, Post *post, const char *text, const char *isa, int64_t nleaves, int64_t rank,
                     int64_t count) {
  *j = (Job){.nleaves = nleaves};
  j->rank.post = post;
  j->rank.ranks = (ng_ranks){rank, count, &j->rank, start, test, await};
  j->ctx = ng_context_new(NULL);
  j->g = read_text(j->ctx, text);
  j->kernel = ng_compile(j->g, &(ng_options){.isa = isa});
  if (!j->kernel) fail_msg("%s", ng_messages_text(j->ctx, 0));
  j->ninputs = ng_graph_input_count(j->g);
  j->noutputs = ng_graph_output_count(j->g);
  for (size_t i = 0; i < j->ninputs; i++) {
    assert_int_equal(ng_tensor_random(j->g, i, 5, &j->inputs[i]), NG_OK);
  }
  for (size_t i = 0; i < j->noutputs; i++) {
    const ng_tensor_info info = ng_graph_output(j->g, i);
    assert_int_equal(ng_tensor_new(j->ctx, &info, &j->outputs[i]), NG_OK);
  }
  cut_inputs(j);
}

static void close_job(Job *j) {
  for (size_t i = 0; i < j->ninputs; i++) ng_tensor_free(j->ctx, &j->inputs[i]);
  for (size_t i = 0; i < j->noutputs; i++) ng_tensor_free(j->ctx, &j->outputs[i]);
  ng_kernel_free(j->kernel);
  ng_graph_free(j->g);
  ng_context_free(j->ctx);
}

typedef struct Sent { // by all ranks, and by the rank that sends most
  size_t nbytes, count, most_nbytes, most_count;
} Sent;

static size_t most(size_t a, size_t b) {
  return a > b ? a : b;
}

// The messages of a step.
static Sent run_ranks(const char *text, int64_t nleaves, int64_t count, char sha256[65]) {
  static Job jobs[MOST_RANKS];
  pthread_t threads[MOST_RANKS];
  Post *post = calloc(1, sizeof *post);
  Sent sent = {0};
  pthread_mutex_init(&post->mutex, NULL);
  pthread_cond_init(&post->changed, NULL);
  for (int64_t r = 0; r < count; r++) open_job(&jobs[r], post, text, r % 2 ? "scalar" : NULL, nleaves, r, count);
  for (int64_t r = 0; r < count; r++) assert_int_equal(pthread_create(&threads[r], NULL, run_job, &jobs[r]), 0);
  for (int64_t r = 0; r < count; r++) pthread_join(threads[r], NULL);
  for (int64_t r = 0; r < count; r++) {
    char own[65];
    assert_int_equal(jobs[r].status, NG_OK);
    assert_int_equal(ng_tensors_sha256(jobs[r].ctx, jobs[r].outputs, jobs[r].noutputs, own), NG_OK);
    if (r) assert_string_equal(own, sha256);
    else memcpy(sha256, own, sizeof own);
    const size_t nbytes = jobs[r].rank.nbytes_sent / STEPS, nmessages = jobs[r].rank.nsent / STEPS;
    sent.nbytes += nbytes;
    sent.count += nmessages;
    sent.most_nbytes = most(sent.most_nbytes, nbytes);
    sent.most_count = most(sent.most_count, nmessages);
    close_job(&jobs[r]);
  }
  pthread_cond_destroy(&post->changed);
  pthread_mutex_destroy(&post->mutex);
  free(post);
  return sent;
}

// A network with a batch norm, dropout, labels and a product, each leaf of three samples.
static const char network[] =
    "format: ngrad/1\n"
    "name: network\n"
    "inputs: [{name: x, type: f32, shape: [3, 4, 5]}, {name: labels, type: s64, shape: [3]}]\n"
    "state:\n"
    "  - {name: mean, type: f32, shape: [4], init: zeros}\n"
    "  - {name: var, type: f32, shape: [4], init: ones}\n"
    "  - {name: gamma, type: f32, shape: [4], init: ones}\n"
    "  - {name: beta, type: f32, shape: [4], init: zeros}\n"
    "  - {name: w, type: f32, shape: [20, 7], init: {normal: 1}}\n"
    "  - {name: calls, type: s64, shape: [], init: zeros}\n"
    "constants:\n"
    "  - {name: one, type: s64, shape: [], value: 1}\n"
    "  - {name: seed, type: s64, shape: [], value: 3}\n"
    "  - {name: p, type: f32, shape: [], value: 0.25}\n"
    "nodes:\n"
    "  - {op: Add, inputs: [calls, one], outputs: [next]}\n"
    "  - {op: BatchNormForwardTraining, inputs: [x, mean, var, gamma, beta], outputs: [n, m, v, bm, bv], "
    "attributes: {epsilon: 1.0e-3, momentum: 0.9, data_format: NCX}}\n"
    "  - {op: Dropout, inputs: [n, seed, next, p], outputs: [d]}\n"
    "  - {op: StaticReshape, inputs: [d], outputs: [flat], attributes: {shape: [3, 20], special_zero: false}}\n"
    "  - {op: MatMul, inputs: [flat, w], outputs: [logits]}\n"
    "  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}\n"
    "outputs: [loss]\n"
    "updates: {mean: m, var: v, calls: next}\n";

static char *make_step(ng_context *ctx, const char *forward, int64_t nleaves, bool syncs_batch_norms) {
  const ng_setting settings[] = {{"accumulate", (double)nleaves}, {"sync_batch_norm", syncs_batch_norms}};
  const ng_train_options options = {.optimizer = "adam", .settings = settings, .nsettings = 2};
  ng_graph *g = read_text(ctx, forward), *step = ng_graph_train(g, &options);
  if (!step) fail_msg("%s", ng_messages_text(ctx, 0));
  char *text = ng_graph_show(step, "yaml", NULL);
  ng_graph_free(step);
  ng_graph_free(g);
  return text;
}

// The model counts what ranks send.
static ng_scale_row expect_model(ng_context *ctx, const char *text, int64_t count, const Sent *sent) {
  ng_graph *g = read_text(ctx, text);
  const ng_scale_options options = {.leaf_ms = 1, .add_bandwidth = 1e10};
  ng_scale_basis basis;
  ng_scale_row row;
  assert_int_equal(ng_scale(g, NULL, &options, &count, 1, &basis, &row), NG_OK);
  assert_int_equal(row.all_nbytes, sent->nbytes);
  assert_int_equal(row.all_nmessages, sent->count);
  assert_int_equal(row.nbytes, sent->most_nbytes);
  assert_int_equal(row.nmessages, sent->most_count);
  ng_graph_free(g);
  return row;
}

static void check_ranks(bool syncs_batch_norms) {
  static const int64_t counts[] = {2, 3, 4, 7, 8, MOST_RANKS};
  for (int64_t nleaves = 2; nleaves <= 16; nleaves += nleaves == 8 ? 8 : 3) {
    ng_context *ctx = ng_context_new(NULL);
    char *text = make_step(ctx, network, nleaves, syncs_batch_norms), alone[65], sha256[65];
    assert_int_equal(run_ranks(text, nleaves, 1, alone).nbytes, 0);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
      const Sent sent = run_ranks(text, nleaves, counts[i], sha256);
      expect_model(ctx, text, counts[i], &sent);
      assert_string_equal(sha256, alone);
    }
    ng_text_free(ctx, text);
    ng_context_free(ctx);
  }
}

static void ranks_change_no_bit(void **state) {
  (void)state;
  check_ranks(false);
}

static void ranks_change_no_bit_of_the_statistics_of_a_batch(void **state) {
  (void)state;
  check_ranks(true);
}

// v and its sum, which are being sent to other ranks, are operands of later kernels of the same leaf.
static void messages_wait_for_readers(void **state) {
  (void)state;
  static const char format[] = "format: ngrad/1\n"
                               "name: readers\n"
                               "leaves: %d\n"
                               "inputs: [{name: x, type: f32, shape: [%d, 7, 20]}]\n"
                               "state:\n"
                               "  - {name: s, type: f32, shape: [20, 20], init: zeros}\n"
                               "  - {name: t, type: f32, shape: [20, 20], init: zeros}\n"
                               "nodes:\n"
                               "  - {op: Leaf, inputs: [x], outputs: [m]}\n"
                               "  - {op: MatMul, inputs: [m, m], outputs: [v], attributes: {transpose_a: true}}\n"
                               "  - {op: AllReduce, inputs: [v], outputs: [vsum]}\n"
                               "  - {op: SoftMax, inputs: [v], outputs: [a], attributes: {axis: 1}}\n"
                               "  - {op: MatMul, inputs: [a, a], outputs: [b]}\n"
                               "  - {op: MatMul, inputs: [b, v], outputs: [w]}\n"
                               "  - {op: MatMul, inputs: [w, %s], outputs: [last]}\n"
                               "  - {op: AllReduce, inputs: [last], outputs: [wsum]}\n"
                               "outputs: []\n"
                               "updates: {s: vsum, t: wsum}\n";
  is_eager = true;
  for (int nleaves = 2; nleaves <= 4; nleaves++)
    for (int is_later = 0; is_later < 2; is_later++) {
      char text[1024], alone[65], sha256[65];
      snprintf(text, sizeof text, format, nleaves, nleaves, is_later ? "vsum" : "w");
      run_ranks(text, nleaves, 1, alone);
      for (int64_t count = 2; count <= 5; count++) {
        run_ranks(text, nleaves, count, sha256);
        assert_string_equal(sha256, alone);
      }
    }
  is_eager = false;
}

// Gradients through AllReduce equal finite differences.

// Every leaf scales its part of x by w, and by a value that is common to all leaves.
static const char through[] = "format: ngrad/1\n"
                              "name: through\n"
                              "leaves: 3\n"
                              "inputs: [{name: x, type: f64, shape: [3, 4, 5]}]\n"
                              "state: [{name: w, type: f64, shape: [4, 5], init: {normal: 1}}]\n"
                              "nodes:\n"
                              "  - {op: Leaf, inputs: [x], outputs: [mine]}\n"
                              "  - {op: Multiply, inputs: [mine, w], outputs: [scaled]}\n"
                              "  - {op: ReduceSum, inputs: [scaled], outputs: [part], attributes: {axes: [0]}}\n"
                              "  - {op: AllReduce, inputs: [part], outputs: [common], attributes: {reduction: %s}}\n"
                              "  - {op: Tanh, inputs: [common], outputs: [bounded]}\n"
                              "  - {op: Multiply, inputs: [scaled, bounded], outputs: [product]}\n"
                              "  - {op: Multiply, inputs: [product, w], outputs: [again]}\n"
                              "  - {op: ReduceSum, inputs: [again], outputs: [own], attributes: {axes: [0, 1]}}\n"
                              "  - {op: AllReduce, inputs: [own], outputs: [mean], attributes: {reduction: mean}}\n"
                              "  - {op: Square, inputs: [w], outputs: [squares]}\n"
                              "  - {op: ReduceSum, inputs: [squares], outputs: [decay], attributes: {axes: [0, 1]}}\n"
                              "  - {op: Add, inputs: [mean, decay], outputs: [loss]}\n"
                              "outputs: [loss]\n";

typedef struct Call {
  ng_context *ctx;
  ng_graph *g;
  ng_tensor inputs[3], outputs[3];
} Call;

static void call(Call *c) {
  if (ng_interpret(c->g, c->inputs, c->outputs, 0) != NG_OK) fail_msg("%s", ng_messages_text(c->ctx, 0));
}

static void open_call(Call *c, ng_context *ctx, ng_graph *step) {
  *c = (Call){.ctx = ctx, .g = step};
  assert_int_equal(ng_graph_input_count(step), 3); // x, w, step
  assert_int_equal(ng_graph_output_count(step), 3);
  for (size_t i = 0; i < 3; i++) {
    const ng_tensor_info info = ng_graph_output(step, i);
    assert_int_equal(ng_tensor_random(step, i, 7, &c->inputs[i]), NG_OK);
    assert_int_equal(ng_tensor_new(ctx, &info, &c->outputs[i]), NG_OK);
  }
}

static void close_call(Call *c) {
  for (size_t i = 0; i < 3; i++) {
    ng_tensor_free(c->ctx, &c->inputs[i]);
    ng_tensor_free(c->ctx, &c->outputs[i]);
  }
}

static void gradients_go_through_all_reduces(void **state) {
  (void)state;
  static const char *const ways[] = {"sum", "mean", "max"};
  for (size_t r = 0; r < 3; r++) {
    char text[2048];
    ng_context *ctx = ng_context_new(NULL);
    const ng_setting settings[] = {{"learning_rate", 1}};
    const ng_train_options options = {.settings = settings, .nsettings = 1};
    snprintf(text, sizeof text, through, ways[r]);
    ng_graph *g = read_text(ctx, text), *step = ng_graph_train(g, &options);
    if (!step) fail_msg("%s", ng_messages_text(ctx, 0));
    Call c;
    open_call(&c, ctx, step);
    call(&c);
    double gradient[20], *w = c.inputs[1].data;
    for (int i = 0; i < 20; i++) gradient[i] = w[i] - ng_tensor_get(&c.outputs[1], i);
    for (int i = 0; i < 20; i++) {
      const double h = 1e-6, before = w[i];
      w[i] = before + h;
      call(&c);
      const double above = ng_tensor_get(&c.outputs[0], 0);
      w[i] = before - h;
      call(&c);
      const double slope = (above - ng_tensor_get(&c.outputs[0], 0)) / (2 * h);
      w[i] = before;
      if (fabs(slope - gradient[i]) > 1e-6 * (1 + fabs(slope)))
        fail_msg("%s: gradient %d is %.9g, expected %.9g", ways[r], i, gradient[i], slope);
    }
    close_call(&c);
    ng_graph_free(step);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// As a graph of its own, the gradient takes no value of a leaf. Where no inputs are named, those with leaves are left
// out.
static void gradient_graphs_compute_the_values_of_leaves(void **state) {
  (void)state;
  static const char *const ways[] = {"sum", "mean", "max"};
  for (size_t r = 0; r < 6; r++) {
    char text[2048];
    const char *const wrt[] = {"w"};
    const ng_gradcheck_options options = {.gradient = {.wrt = r < 3 ? wrt : NULL, .nwrt = r < 3}, .seed = 1};
    ng_gradcheck_result results[2];
    ng_context *ctx = ng_context_new(NULL);
    snprintf(text, sizeof text, through, ways[r % 3]);
    ng_graph *g = read_text(ctx, text), *gradient = ng_graph_gradient(g, &options.gradient);
    if (!gradient) fail_msg("%s", ng_messages_text(ctx, 0));
    assert_int_equal(ng_graph_input_count(gradient), 3); // x, w, diff_loss
    assert_int_equal(ng_gradcheck(g, &options, results), NG_OK);
    assert_true(results[1].nchecked == 20 && results[1].is_within);
    ng_graph_free(gradient);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static const char product[] = "format: ngrad/1\n"
                              "name: product\n"
                              "inputs: [{name: x, type: f32, shape: [3, 70]}, {name: labels, type: s64, shape: [3]}]\n"
                              "state: [{name: w, type: f32, shape: [70, 90], init: {normal: 1}}]\n"
                              "nodes:\n"
                              "  - {op: MatMul, inputs: [x, w], outputs: [logits]}\n"
                              "  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}\n"
                              "outputs: [loss]\n";

// If the number of leaves is a power of two times the number of ranks, a rank sends as many bytes as in a ring.
static void as_many_leaves_send_as_much_as_a_ring(void **state) {
  (void)state;
  for (int64_t count = 2; count <= 8; count += count == 4 ? 3 : 1)
    for (int64_t each = 1; each <= 4; each *= 2) {
      ng_context *ctx = ng_context_new(NULL);
      char *text = make_step(ctx, product, count * each, false), sha256[65];
      const Sent sent = run_ranks(text, count * each, count, sha256);
      const ng_scale_row row = expect_model(ctx, text, count, &sent);
      assert_true((double)sent.most_nbytes <= 1.1 * (double)row.ring_nbytes);
      assert_int_equal(row.better_leaves, 0);
      ng_text_free(ctx, text);
      ng_context_free(ctx);
    }
}

// Rates and times that make each part of a step the largest.
static void model_names_what_bounds_a_step(void **state) {
  (void)state;
  static const struct {
    ng_scale_options options;
    int64_t ranks;
    const char *bound;
  } cases[] = {
      {{.leaf_ms = 1, .latency_ms = -1, .add_bandwidth = 1e15}, 4, "compute"},
      {{.leaf_ms = 1, .latency_ms = -1, .add_bandwidth = 1e15}, 16, "leaves"},
      {{.leaf_ms = 1e-3, .common_ms = 1, .latency_ms = -1, .add_bandwidth = 1e15}, 4, "common"},
      {{.leaf_ms = 1e-3, .latency_ms = -1, .add_bandwidth = 1e6}, 4, "additions"},
      {{.leaf_ms = 1e-3, .latency_ms = 10, .add_bandwidth = 1e15}, 4, "latency"},
      {{.leaf_ms = 1e-3, .latency_ms = -1, .bandwidth = 1e6, .add_bandwidth = 1e15}, 4, "bandwidth"},
  };
  ng_context *ctx = ng_context_new(NULL);
  char *text = make_step(ctx, product, 6, false);
  ng_graph *g = read_text(ctx, text);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    ng_scale_basis basis;
    ng_scale_row row;
    assert_int_equal(ng_scale(g, NULL, &cases[i].options, &cases[i].ranks, 1, &basis, &row), NG_OK);
    assert_string_equal(row.bound, cases[i].bound);
    assert_true(row.better_leaves % cases[i].ranks == 0);
    assert_true(row.better_leaves == 0 || row.better_ms < row.step_ms);
    assert_true(row.efficiency > 0 && row.efficiency <= 1);
    const double sum =
        row.leaves_ms + row.imbalance_ms + row.common_ms + row.additions_ms + row.latency_ms + row.bandwidth_ms;
    assert_true(sum > 0.999 * row.step_ms && sum < 1.001 * row.step_ms);
  }
  // Without messages and additions, four ranks of which two have two leaves and two one.
  const ng_scale_options plain = {
      .leaf_ms = 3, .common_ms = 2, .latency_ms = -1, .bandwidth = 1e18, .add_bandwidth = 1e18};
  const int64_t ranks[] = {1, 4};
  ng_scale_basis basis;
  ng_scale_row rows[2];
  assert_int_equal(ng_scale(g, NULL, &plain, ranks, 2, &basis, rows), NG_OK);
  assert_true(rows[0].step_ms > 19.99 && rows[0].step_ms < 20.01 && rows[0].efficiency == 1);
  assert_true(rows[1].step_ms > 7.99 && rows[1].step_ms < 8.01 && rows[1].most_leaves == 2);
  // Eight leaves, and slow messages: four ranks exchange halves twice, up and down; one of five sends its two pieces to
  // all others.
  const ng_scale_options slow = {.leaves = 8, .leaf_ms = 1, .latency_ms = 1, .bandwidth = 1e18, .add_bandwidth = 1e18};
  const int64_t more[] = {4, 5};
  assert_int_equal(ng_scale(g, NULL, &slow, more, 2, &basis, rows), NG_OK);
  assert_true(rows[0].step_ms > 5.99 && rows[0].step_ms < 6.01 && rows[0].nmessages == 4 && rows[0].fewer_ranks == 0);
  assert_true(rows[1].nmessages == 12 && rows[1].fewer_ranks == 4 && rows[1].fewer_ms == rows[0].step_ms);
  ng_graph_free(g);
  ng_text_free(ctx, text);
  ng_context_free(ctx);
}

static void instruction_sets_of_other_processors_are_refused(void **state) {
  (void)state;
  ng_context *ctx = ng_context_new(NULL);
  char *text = make_step(ctx, network, 2, false);
  for (size_t i = 0; i < ng_isa_count(); i++) {
    const ng_isa isa = ng_isa_at(i);
    if (isa.is_available) continue;
    ng_graph *g = read_text(ctx, text);
    assert_null(ng_compile(g, &(ng_options){.isa = isa.name}));
    assert_int_equal(ng_last_status(ctx), NG_USAGE);
    assert_non_null(strstr(ng_messages_text(ctx, 0), ": this processor does not have that instruction set"));
    ng_messages_clear(ctx);
    ng_graph_free(g);
  }
  ng_text_free(ctx, text);
  ng_context_free(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(ranks_change_no_bit),
      cmocka_unit_test(as_many_leaves_send_as_much_as_a_ring),
      cmocka_unit_test(model_names_what_bounds_a_step),
      cmocka_unit_test(ranks_change_no_bit_of_the_statistics_of_a_batch),
      cmocka_unit_test(messages_wait_for_readers),
      cmocka_unit_test(instruction_sets_of_other_processors_are_refused),
      cmocka_unit_test(gradients_go_through_all_reduces),
      cmocka_unit_test(gradient_graphs_compute_the_values_of_leaves),
  };
  return cmocka_run_group_tests(tests, compile_by_effort, NULL);
}
