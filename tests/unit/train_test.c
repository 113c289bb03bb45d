// Training steps: whole steps against finite differences, graphs for inference, and errors.
#include "tests/unit/failing_allocator.h"
#include "tests/unit/train_case.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

// Whole steps: with a learning rate of 1, SGD subtracts the gradient, which differences of the forward graph give.

static const char perceptron[] =
    "format: ngrad/1\n"
    "name: perceptron\n"
    "dims: {N: 5}\n"
    "inputs: [{name: x, type: f64, shape: [N, 3]}, {name: labels, type: s32, shape: [N]}]\n"
    "state:\n"
    "  - {name: w1, type: f64, shape: [3, 4], init: {normal: 1}}\n"
    "  - {name: b1, type: f64, shape: [4], init: {normal: 1}}\n"
    "  - {name: w2, type: f64, shape: [4, 3], init: {normal: 1}}\n"
    "nodes:\n"
    "  - {op: MatMul, inputs: [x, w1, b1], outputs: [h]}\n"
    "  - {op: Tanh, inputs: [h], outputs: [a]}\n"
    "  - {op: MatMul, inputs: [a, w2], outputs: [logits]}\n"
    "  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}\n"
    "outputs: [logits, loss]\n";

// w1 is used twice, and both losses count.
static const char two_losses[] =
    "format: ngrad/1\n"
    "name: two losses\n"
    "inputs: [{name: x, type: f64, shape: [4, 3]}, {name: t, type: f64, shape: [4, 3]}]\n"
    "state:\n"
    "  - {name: w1, type: f64, shape: [3, 3], init: {normal: 1}}\n"
    "  - {name: w2, type: f64, shape: [3], init: {normal: 1}}\n"
    "nodes:\n"
    "  - {op: MatMul, inputs: [x, w1], outputs: [h]}\n"
    "  - {op: MatMul, inputs: [h, w1], outputs: [y]}\n"
    "  - {op: Multiply, inputs: [y, w2], outputs: [z]}\n"
    "  - {op: MeanSquaredError, inputs: [z, t], outputs: [loss]}\n"
    "  - {op: Square, inputs: [w1], outputs: [squares]}\n"
    "  - {op: ReduceSum, inputs: [squares], outputs: [penalty], attributes: {axes: [0, 1]}}\n"
    "outputs: [loss, penalty]\n";

// The running statistics are states that the graph updates itself. Dropout has the same mask in each call, which the
// tests compare.
static const char normalised[] =
    "format: ngrad/1\n"
    "name: normalised\n"
    "dims: {N: 6}\n"
    "inputs: [{name: x, type: f64, shape: [N, 2, 5]}, {name: t, type: f64, shape: [N, 2, 5]}]\n"
    "state:\n"
    "  - {name: mean, type: f64, shape: [2], init: zeros}\n"
    "  - {name: var, type: f64, shape: [2], init: ones}\n"
    "  - {name: gamma, type: f64, shape: [2], init: ones}\n"
    "  - {name: beta, type: f64, shape: [2], init: zeros}\n"
    "  - {name: seed, type: s64, shape: [], init: ones}\n"
    "  - {name: w, type: f64, shape: [5, 5], init: {normal: 1}}\n"
    "constants:\n"
    "  - {name: offset, type: s64, shape: [], value: 1}\n"
    "  - {name: p, type: f32, shape: [], value: 0.25}\n"
    "nodes:\n"
    "  - {op: MatMul, inputs: [x, w], outputs: [h]}\n"
    "  - {op: BatchNormForwardTraining, inputs: [h, mean, var, gamma, beta], outputs: [n, m, v, bm, bv], "
    "attributes: {epsilon: 1.0e-3, momentum: 0.9, data_format: NCX}}\n"
    "  - {op: Dropout, inputs: [n, seed, offset, p], outputs: [d]}\n"
    "  - {op: MeanSquaredError, inputs: [d, t], outputs: [loss]}\n"
    "outputs: [loss, d]\n"
    "updates: {mean: m, var: v}\n";

static void fill(Run *r, uint64_t seed) {
  const size_t ndata = r->ninputs - ng_graph_state_count(r->g);
  for (size_t i = 0; i < r->ninputs; i++) {
    ng_tensor_free(r->ctx, &r->inputs[i]);
    const ng_status status = i < ndata ? ng_tensor_random(r->g, i, seed, &r->inputs[i])
                                       : ng_tensor_init(r->g, i - ndata, seed, &r->inputs[i]);
    assert_int_equal(status, NG_OK);
  }
}

// The sum of the losses after moving an element of a state.
static double loss_at(Run *forward, ng_tensor *state, int64_t element, double by, const char *const *losses,
                      size_t nlosses) {
  double *data = state->data, sum = 0;
  data[element] += by;
  call(forward);
  data[element] -= by;
  for (size_t i = 0; i < nlosses; i++) sum += number(forward, losses[i]);
  return sum;
}

static void check_whole_step(const char *text, const char *const *losses, size_t nlosses,
                             const char *const *parameters) {
  enum { SEED = 5 };
  ng_context *ctx = new_context();
  const ng_setting rate = {"learning_rate", 1};
  const ng_train_options options = {.losses = losses, .nlosses = nlosses, .settings = &rate, .nsettings = 1};
  ng_graph *g = must_read(ctx, text);
  Run step = run_open(ctx, ng_graph_train(g, &options)), forward = run_open(ctx, g);
  fill(&forward, SEED);
  for (size_t i = 0; i < forward.ninputs; i++) {
    ng_tensor *to = find_tensor(&step, ng_graph_input(forward.g, i).name);
    memcpy(to->data, forward.inputs[i].data, ng_tensor_nbytes(to));
  }
  call(&step);
  for (; *parameters; parameters++) {
    ng_tensor *w = find_tensor(&forward, *parameters);
    char next[64];
    snprintf(next, sizeof next, "%s.next", *parameters);
    for (int64_t i = 0; i < ng_tensor_nelems(w); i++) {
      const double h = 1e-4, gradient = ng_tensor_get(w, i) - ng_tensor_get(find_tensor(&step, next), i);
      const double expected =
          (8 * (loss_at(&forward, w, i, h, losses, nlosses) - loss_at(&forward, w, i, -h, losses, nlosses)) -
           (loss_at(&forward, w, i, 2 * h, losses, nlosses) - loss_at(&forward, w, i, -2 * h, losses, nlosses))) /
          (12 * h);
      if (!(fabs(gradient - expected) <= 1e-8 * fmax(1, fabs(expected))))
        fail_msg("%s[%lld]: %.12g, expected %.12g", *parameters, (long long)i, gradient, expected);
    }
  }
  run_close(&step);
  run_close(&forward);
  ng_context_free(ctx);
}

static void steps_of_gradient_descent_subtract_differences(void **state) {
  (void)state;
  check_whole_step(perceptron, (const char *[]){"loss"}, 1, (const char *[]){"w1", "b1", "w2", NULL});
  check_whole_step(two_losses, (const char *[]){"loss", "penalty"}, 2, (const char *[]){"w1", "w2", NULL});
  check_whole_step(normalised, (const char *[]){"loss"}, 1, (const char *[]){"w", "gamma", "beta", NULL});
}

// Leaves: one call for each leaf, all from the same states, gives outputs and changes of states. Their means equal the
// outputs and changes of one call for all leaves.

enum { MOST_TRIED = 7, MOST_CHANGED = 5 };

static Run leaves_open(ng_context *ctx, ng_graph *g, size_t nleaves) {
  const ng_setting settings[] = {{"learning_rate", 1}, {"accumulate", (double)nleaves}};
  const ng_train_options options = {.settings = settings, .nsettings = 2};
  return run_open(ctx, ng_graph_train(g, &options));
}

static void copy_leaf(Run *one, Run *all, size_t nleaves, size_t leaf) {
  for (size_t i = 0; i < one->ninputs - ng_graph_state_count(one->g); i++) {
    const size_t nbytes = ng_tensor_nbytes(&one->inputs[i]);
    assert_int_equal(all->inputs[i].rank, one->inputs[i].rank + 1);
    assert_int_equal(all->inputs[i].extent[0], nleaves);
    memcpy(one->inputs[i].data, (char *)all->inputs[i].data + leaf * nbytes, nbytes);
  }
}

// The difference that a call makes to an element of a state.
static double change(Run *r, const ng_state *s, int64_t element) {
  return ng_tensor_get(&r->outputs[s->output], element) - ng_tensor_get(&r->inputs[s->input], element);
}

static void check_leaves(size_t nleaves, const char *const *changed) {
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, normalised);
  Run all = leaves_open(ctx, g, nleaves), one = leaves_open(ctx, g, 1);
  double loss = 0, changes[MOST_CHANGED][25] = {{0}};
  fill(&all, 3);
  fill(&one, 3);
  call(&all);
  for (size_t leaf = 0; leaf < nleaves; leaf++) {
    copy_leaf(&one, &all, nleaves, leaf);
    call(&one);
    loss += number(&one, "loss") / (double)nleaves;
    for (size_t i = 0; i < ng_graph_state_count(one.g); i++) {
      const ng_state s = ng_graph_state(one.g, i);
      const ng_tensor *to = &one.inputs[s.input];
      for (size_t p = 0; p < MOST_CHANGED; p++)
        for (int64_t k = 0; strcmp(changed[p], ng_graph_input(one.g, s.input).name) == 0 && k < ng_tensor_nelems(to);
             k++)
          changes[p][k] += change(&one, &s, k) / (double)nleaves;
    }
  }
  must_be_near(number(&all, "loss"), loss, "loss");
  for (size_t i = 0; i < ng_graph_state_count(all.g); i++) {
    const ng_state s = ng_graph_state(all.g, i);
    const char *name = ng_graph_input(all.g, s.input).name;
    for (int64_t k = 0; k < ng_tensor_nelems(&all.inputs[s.input]); k++) {
      for (size_t p = 0; p < MOST_CHANGED; p++)
        if (strcmp(name, changed[p]) == 0) must_be_near(change(&all, &s, k), changes[p][k], name);
    }
  }
  run_close(&all);
  run_close(&one);
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void leaves_give_means(void **state) {
  (void)state;
  for (size_t nleaves = 2; nleaves <= MOST_TRIED; nleaves++)
    check_leaves(nleaves, (const char *[MOST_CHANGED]){"w", "gamma", "beta", "mean", "var"});
}

// Graphs made of others

static void must_show(ng_context *ctx, ng_graph *g, const char *const *parts, const char *const *others) {
  assert_non_null(g);
  char *text = ng_graph_show(g, "yaml", NULL);
  assert_non_null(text);
  for (; *parts; parts++)
    if (!strstr(text, *parts)) fail_msg("expected %s in\n%s", *parts, text);
  for (; *others; others++)
    if (strstr(text, *others)) fail_msg("expected no %s in\n%s", *others, text);
  ng_text_free(ctx, text);
  ng_graph_free(g);
}

static void forms_for_inference_use_running_statistics_and_no_dropout(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, normalised);
  must_show(ctx, ng_graph_inference(g, NG_TEST, NULL),
            (const char *[]){"op: BatchNormInference", "mean: mean, variance: var", "name: seed", "name: t,",
                             "outputs: [loss]", NULL},
            (const char *[]){"Dropout", "Training", "updates", NULL});
  must_show(ctx, ng_graph_inference(g, NG_INFER, NULL),
            (const char *[]){"op: BatchNormInference", "name: seed", "outputs: [d]", NULL},
            (const char *[]){"Dropout", "name: t,", "loss", NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

// An output that is an input passed on, and has nothing to do with the loss, stays beside the logits; labels go.
static void outputs_of_other_inputs_are_inferred_too(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\n"
                               "inputs: [{name: x, type: f32, shape: [2, 4]}, {name: s, type: f32, shape: [2]}, "
                               "{name: t, type: f32, shape: [2, 3]}]\n"
                               "state: [{name: w, type: f32, shape: [4, 3], init: ones}]\n"
                               "nodes:\n"
                               "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
                               "  - {op: Abs, inputs: [s], outputs: [s_out]}\n"
                               "  - {op: MeanSquaredError, inputs: [y, t], outputs: [loss]}\n"
                               "outputs: [y, s_out, loss]\n");
  must_show(ctx, ng_graph_inference(g, NG_INFER, NULL),
            (const char *[]){"name: x,", "name: s,", "outputs: [y, s_out]", NULL},
            (const char *[]){"name: t,", "loss", NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void statistics_without_states_have_no_form_for_inference(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\n"
                             "inputs: [{name: x, type: f32, shape: [6, 2]}, {name: m, type: f32, shape: [2]}]\n"
                             "state: [{name: w, type: f32, shape: [2], init: ones}]\n"
                             "nodes:\n"
                             "  - {op: BatchNormForwardTraining, inputs: [x, m, w], outputs: [n, rm, rv, bm, bv], "
                             "attributes: {epsilon: 0.1}}\n"
                             "  - {op: Multiply, inputs: [n, w], outputs: [y]}\n"
                             "  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                             "outputs: [loss, y]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  assert_null(ng_graph_inference(g, NG_TEST, NULL));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_false(ng_message_at(ctx, 0).is_error);
  assert_non_null(strstr(ng_message_at(ctx, 0).text, "BatchNormForwardTraining has no form for inference"));
  ng_graph_free(g);
  ng_context_free(ctx);
}

// Frozen parameters and running statistics get neither gradients nor optimizer states.
static void frozen_parameters_stay(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, normalised);
  const ng_train_options options = {.optimizer = "adam", .freeze = (const char *[]){"gam*", "beta"}, .nfreeze = 2};
  must_show(ctx, ng_graph_train(g, &options),
            (const char *[]){"updates: {mean: m, var: v, w: w.next, step: step.next, w.m: w.m.next, w.v: w.v.next}",
                             "name: gamma", NULL},
            (const char *[]){"gamma.", "beta.", "mean.", NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void states_of_optimizers_are_f32_beside_narrow_parameters(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\n"
                             "inputs: [{name: x, type: bf16, shape: [4, 2]}, {name: t, type: bf16, shape: [4, 3]}]\n"
                             "state: [{name: w, type: bf16, shape: [2, 3], init: {normal: 1}}]\n"
                             "nodes:\n"
                             "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
                             "  - {op: MeanSquaredError, inputs: [y, t], outputs: [loss]}\n"
                             "outputs: [loss]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  const ng_setting clip = {"clip_norm", 1};
  const ng_train_options options = {.optimizer = "adagrad", .settings = &clip, .nsettings = 1};
  must_show(
      ctx, ng_graph_train(g, &options),
      (const char *[]){"name: w.sum, type: f32", "name: w.next, type: bf16", "name: diff_w.clipped, type: bf16", NULL},
      (const char *[]){NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

// No variance is negative, as in graphs that are read from files.
static void random_states_suit_the_optimizer(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, "format: ngrad/1\nname: net\ninputs: [{name: x, type: f32, shape: [2, 40]}]\n"
                               "state: [{name: w, type: f32, shape: [40], init: ones}]\n"
                               "nodes:\n  - {op: Multiply, inputs: [x, w], outputs: [y]}\n"
                               "  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                               "outputs: [loss]\n");
  ng_graph *step = ng_graph_train(g, &(ng_train_options){.optimizer = "adam"});
  assert_non_null(step);
  assert_int_equal(ng_graph_bind(step), NG_OK);
  size_t nvariances = 0;
  for (size_t i = 0; i < ng_graph_input_count(step); i++) {
    if (strcmp(ng_graph_input(step, i).name, "w.v") != 0) continue;
    ng_tensor t;
    assert_int_equal(ng_tensor_random(step, i, 7, &t), NG_OK);
    for (int64_t e = 0; e < 40; e++) assert_true(ng_tensor_get(&t, e) >= 0);
    ng_tensor_free(ctx, &t);
    nvariances++;
  }
  assert_int_equal(nvariances, 1);
  ng_graph_free(step);
  ng_graph_free(g);
  ng_context_free(ctx);
}

// All parameters that no gradient reaches are in one message, each with the reason.
static void parameters_without_gradient_are_told_together(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\n"
                             "inputs: [{name: x, type: f64, shape: [4, 3]}]\n"
                             "state:\n"
                             "  - {name: w, type: f64, shape: [3], init: ones}\n"
                             "  - {name: t, type: f64, shape: [3], init: zeros}\n"
                             "  - {name: k, type: f64, shape: [3], init: zeros}\n"
                             "  - {name: u, type: f64, shape: [3], init: zeros}\n"
                             "nodes:\n"
                             "  - {op: Multiply, inputs: [x, w], outputs: [y]}\n"
                             "  - {op: Square, inputs: [k], outputs: [squares]}\n"
                             "  - {op: ArgMax, inputs: [squares], outputs: [best], attributes: {axis: 0}}\n"
                             "  - {op: Gather, inputs: [y, best], outputs: [column], attributes: {axis: 1}}\n"
                             "  - {op: Less, inputs: [y, t], outputs: [c]}\n"
                             "  - {op: GreaterEqual, inputs: [t, y], outputs: [d]}\n"
                             "  - {op: Select, inputs: [c, x, y], outputs: [z]}\n"
                             "  - {op: Select, inputs: [d, z, y], outputs: [zz]}\n"
                             "  - {op: ReduceSum, inputs: [zz], outputs: [sum], attributes: {axes: [0, 1]}}\n"
                             "  - {op: ReduceSum, inputs: [column], outputs: [part], attributes: {axes: [0]}}\n"
                             "  - {op: Add, inputs: [sum, part], outputs: [loss]}\n"
                             "outputs: [loss]\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  assert_null(ng_graph_train(g, NULL));
  assert_int_equal(ng_last_status(ctx), NG_WRONG);
  assert_int_equal(ng_message_count(ctx), 1);
  must_have_said(ctx,
                 "no gradient reaches the parameters: t (only Less and GreaterEqual read it), k (only ArgMax reads "
                 "it), u (loss does not depend on it); --freeze t --freeze k --freeze u leaves them as they are");
  const ng_train_options options = {.freeze = (const char *[]){"[tku]"}, .nfreeze = 1};
  must_show(ctx, ng_graph_train(g, &options), (const char *[]){"updates: {w: w.next, step: step.next}", NULL},
            (const char *[]){NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

// States that nodes take as statistics or settings are not trained, and this is told.
static void given_statistics_are_not_trained(void **state) {
  (void)state;
  static const char text[] = "format: ngrad/1\n"
                             "inputs: [{name: x, type: f32, shape: [4, 3]}]\n"
                             "state:\n"
                             "  - {name: g, type: f32, shape: [3], init: ones}\n"
                             "  - {name: b, type: f32, shape: [3], init: zeros}\n"
                             "  - {name: rm, type: f32, shape: [3], init: zeros}\n"
                             "  - {name: rv, type: f32, shape: [3], init: ones}\n"
                             "  - {name: calls, type: s64, shape: [], init: ones}\n"
                             "  - {name: p, type: f32, shape: [], init: zeros}\n"
                             "constants: [{name: one, type: s64, shape: [], value: 1}]\n"
                             "nodes:\n"
                             "  - {op: BatchNormInference, inputs: [x, g, b, rm, rv], outputs: [y], "
                             "attributes: {epsilon: 1.0e-5}}\n"
                             "  - {op: Dropout, inputs: [y, one, calls, p], outputs: [d]}\n"
                             "  - {op: Add, inputs: [calls, one], outputs: [more]}\n"
                             "  - {op: ReduceMean, inputs: [d], outputs: [loss], attributes: {axes: [0, 1]}}\n"
                             "outputs: [loss]\n"
                             "updates: {calls: more}\n";
  ng_context *ctx = new_context();
  ng_graph *g = must_read(ctx, text);
  must_show(ctx, ng_graph_train(g, NULL),
            (const char *[]){"updates: {g: g.next, b: b.next, calls: more, step: step.next}", NULL},
            (const char *[]){"rm.next", " p.next", NULL});
  assert_int_equal(ng_message_count(ctx), 1);
  assert_false(ng_message_at(ctx, 0).is_error);
  assert_string_equal(ng_message_at(ctx, 0).text,
                      "states that are not trained, as nodes such as BatchNormInference "
                      "take them as statistics or settings, and have no updates: rm, rv, p");
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void what_cannot_be_trained_is_told(void **state) {
  (void)state;
  static const char unused[] =
      "format: ngrad/1\n"
      "inputs: [{name: x, type: f32, shape: [4]}]\n"
      "state: [{name: w, type: f32, shape: [4], init: ones}, {name: b, type: f32, shape: [4], init: ones}]\n"
      "constants: [{name: rate, type: f32, shape: [], value: 1}]\n"
      "nodes:\n"
      "  - {op: Multiply, inputs: [x, w], outputs: [y]}\n"
      "  - {op: SGD, inputs: [b, b, rate], outputs: [slope]}\n"
      "  - {op: Add, inputs: [y, slope], outputs: [z]}\n"
      "  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0]}}\n"
      "  - {op: ReduceMean, inputs: [z], outputs: [other], attributes: {axes: [0]}}\n"
      "outputs: [loss, other]\n";
  static const struct {
    const char *loss, *message;
    ng_status status;
  } rows[] = {
      {NULL, "loss: expected the name of one or more of the outputs loss, other", NG_USAGE},
      {"loss", "no gradient reaches the parameter: b (loss does not depend on it); --freeze b leaves it as it is",
       NG_WRONG},
      {"other", "SGD has no gradient: it ends a training step", NG_WRONG},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    ng_graph *g = must_read(ctx, unused);
    const ng_train_options options = {.losses = rows[i].loss ? &rows[i].loss : NULL, .nlosses = rows[i].loss != NULL};
    assert_null(ng_graph_train(g, &options));
    assert_int_equal(ng_last_status(ctx), rows[i].status);
    must_have_said(ctx, rows[i].message);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

// Numbers that f32 cannot hold, and graphs that do not go with a loss that is added.
static const char with_target[] =
    "format: ngrad/1\n"
    "inputs: [{name: x, type: f32, shape: [4, 2]}, {name: target, type: %s, shape: [4, 3]}]\n"
    "state: [{name: w, type: f32, shape: [2, 3], init: ones}]\n"
    "nodes:\n"
    "  - {op: MatMul, inputs: [x, w], outputs: [y]}\n"
    "  - {op: ReduceMean, inputs: [y], outputs: [mean], attributes: {axes: [0, 1]}}\n"
    "outputs: [y, mean]\n%s";

static void options_that_do_not_fit_are_told(void **state) {
  (void)state;
  static const struct {
    const char *type, *updates, *loss, *optimizer;
    ng_setting setting;
    const char *message;
    ng_status status;
  } rows[] = {
      // clang-format off
      {"f32", "", "mean", "sgd", {"learning_rate", 1e39},
       "learning_rate: expected a number within the range of f32, found 1e+39", NG_WRONG},
      {"f32", "", "mean", "sgd", {"clip_norm", 1e39},
       "clip_norm: expected a number within the range of f32, found 1e+39", NG_WRONG},
      {"f32", "", "mean", "adam", {"epsilon", 1e-39},
       "Adam (w): epsilon: expected 0 or at least 1.17549e-38, found 1e-39", NG_WRONG},
      {"f64", "", "mse", "sgd", {"warmup", 1}, "target: the loss takes this input, expected f32 [4, 3]", NG_WRONG},
      {"f32", "updates: {w: w}\n", NULL, "sgd", {"warmup", 1},
       "loss: expected an output of shape [], a floating-point number that depends on parameters, found y f32 [4, 3], "
       "mean f32 []; cross-entropy, mse or bce adds one", NG_USAGE},
      // clang-format on
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    ng_context *ctx = new_context();
    char text[1024];
    snprintf(text, sizeof text, with_target, rows[i].type, rows[i].updates);
    ng_graph *g = must_read(ctx, text);
    const ng_train_options options = {.losses = rows[i].loss ? &rows[i].loss : NULL,
                                      .nlosses = rows[i].loss != NULL,
                                      .optimizer = rows[i].optimizer,
                                      .settings = &rows[i].setting,
                                      .nsettings = 1};
    assert_null(ng_graph_train(g, &options));
    assert_int_equal(ng_last_status(ctx), rows[i].status);
    must_have_said(ctx, rows[i].message);
    ng_graph_free(g);
    ng_context_free(ctx);
  }
}

static void a_loss_that_is_added_takes_the_input_of_its_name(void **state) {
  (void)state;
  ng_context *ctx = new_context();
  char text[1024];
  snprintf(text, sizeof text, with_target, "f32", "");
  ng_graph *g = must_read(ctx, text);
  const ng_train_options options = {.losses = (const char *[]){"mse"}, .nlosses = 1};
  must_show(ctx, ng_graph_train(g, &options),
            (const char *[]){"target: target}", "outputs: [mean, loss]", "updates: {w: w.next, step: step.next}", NULL},
            (const char *[]){"target_", NULL});
  ng_graph_free(g);
  ng_context_free(ctx);
}

static void dropout_that_never_changes_is_told(void **state) {
  (void)state;
  static const char *const dropouts[] = {"[h, one, two, p]", "[h, one, sum, p]", "[h, one, calls, p]",
                                         "[h, given, two, p]"};
  for (size_t i = 0; i < sizeof dropouts / sizeof *dropouts; i++) {
    char text[2048];
    snprintf(text, sizeof text,
             "format: ngrad/1\n"
             "inputs: [{name: x, type: f32, shape: [4]}, {name: given, type: s64, shape: []}]\n"
             "state:\n"
             "  - {name: w, type: f32, shape: [4], init: ones}\n"
             "  - {name: still, type: s64, shape: [], init: ones}\n"
             "  - {name: calls, type: s64, shape: [], init: ones}\n"
             "constants:\n"
             "  - {name: one, type: s64, shape: [], value: 1}\n"
             "  - {name: two, type: s64, shape: [], value: 2}\n"
             "  - {name: p, type: f32, shape: [], value: 0.5}\n"
             "nodes:\n"
             "  - {op: Multiply, inputs: [x, w], outputs: [h]}\n"
             "  - {op: Add, inputs: [still, one], outputs: [sum]}\n"
             "  - {op: Add, inputs: [calls, one], outputs: [more]}\n"
             "  - {op: Dropout, inputs: %s, outputs: [d]}\n"
             "  - {op: ReduceMean, inputs: [d], outputs: [loss], attributes: {axes: [0]}}\n"
             "outputs: [loss]\n"
             "updates: {calls: more}\n",
             dropouts[i]);
    for (size_t nleaves = 1; nleaves <= 2; nleaves++) {
      ng_context *ctx = new_context();
      ng_graph *g = must_read(ctx, text);
      const ng_setting setting = {"accumulate", (double)nleaves};
      const ng_train_options options = {.settings = &setting, .nsettings = 1};
      ng_graph *step = ng_graph_train(g, &options);
      assert_non_null(step);
      assert_int_equal(ng_message_count(ctx), i < 2);
      if (i < 2)
        assert_non_null(strstr(ng_message_at(ctx, 0).text, "drops the same elements in each step, as one and"));
      ng_graph_free(step);
      ng_graph_free(g);
      ng_context_free(ctx);
    }
  }
}

// Whichever allocation fails, nothing is left, and the next call succeeds.
static void without_memory_there_is_no_step(void **state) {
  (void)state;
  const ng_setting settings[] = {{"clip_norm", 1}, {"warmup", 2}, {"accumulate", 3}};
  const ng_train_options options = {.optimizer = "adam", .settings = settings, .nsettings = 3};
  FailingAllocator memory;
  failing_allocator_init(&memory, NEVER_FAIL);
  const ng_allocator allocator = {failing_resize, &memory};
  ng_context *ctx = ng_context_new(&allocator);
  ng_graph *g = must_read(ctx, perceptron), *step = NULL, *test = NULL;
  for (size_t failing = 0; !step; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    step = ng_graph_train(g, &options);
    if (!step) assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
  }
  for (size_t failing = 0; !test; failing++) {
    memory.ncalls = 0;
    memory.failing = failing;
    test = ng_graph_inference(g, NG_TEST, NULL);
    if (!test) assert_int_equal(ng_last_status(ctx), NG_OUT_OF_MEMORY);
  }
  memory.failing = NEVER_FAIL;
  ng_graph_free(step);
  ng_graph_free(test);
  ng_graph_free(g);
  ng_context_free(ctx);
  assert_int_equal(memory.nlive, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(steps_of_gradient_descent_subtract_differences),
      cmocka_unit_test(leaves_give_means),
      cmocka_unit_test(forms_for_inference_use_running_statistics_and_no_dropout),
      cmocka_unit_test(outputs_of_other_inputs_are_inferred_too),
      cmocka_unit_test(statistics_without_states_have_no_form_for_inference),
      cmocka_unit_test(frozen_parameters_stay),
      cmocka_unit_test(states_of_optimizers_are_f32_beside_narrow_parameters),
      cmocka_unit_test(random_states_suit_the_optimizer),
      cmocka_unit_test(parameters_without_gradient_are_told_together),
      cmocka_unit_test(given_statistics_are_not_trained),
      cmocka_unit_test(what_cannot_be_trained_is_told),
      cmocka_unit_test(options_that_do_not_fit_are_told),
      cmocka_unit_test(a_loss_that_is_added_takes_the_input_of_its_name),
      cmocka_unit_test(dropout_that_never_changes_is_told),
      cmocka_unit_test(without_memory_there_is_no_step),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
