// ngrad fit: trains. Calls a step graph with batches of samples. The states stay at one address, where each call
// updates them.
#include "frontend/cli/clock.h"
#include "frontend/cli/fit_ranks.h"
#include "frontend/cli/progress.h"
#include "frontend/cli/signals.h"
#include "frontend/cli/verbs.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool has_test(const FitSettings *s) {
  return s->test || s->test_labels || s->test_text || s->test_inputs.count;
}

// Whether this rank tests, saves and prints: rank 0, also without ranks.
static bool is_first(const Fit *f) {
  return f->ranks.rank == 0;
}

static int check_settings(const Settings *s) {
  const FitSettings *fit = &s->fit;
  const bool tests = has_test(fit);
  if (strcmp(s->operands[0], "-") == 0) return usage_error("a step graph is read more than once, expected a file");
  if (fit->resumes && !s->out) return usage_error("--resume: expected --out DIR with it, where the checkpoint is");
  if (fit->resumes && s->state) return usage_error("--resume and --state: expected one of them");
  if (fit->test_graph && !tests) return usage_error("--test-graph: expected --test DIR with it");
  if (tests && !fit->test_graph && !ends_in(s->operands[0], "_step.yaml"))
    return usage_error(
        "--test: the name of %s does not end in _step.yaml, so its test graph is unknown: expected --test-graph FILE",
        s->operands[0]);
  return 0;
}

// Opening

static ng_status open_training(Fit *f) {
  const Settings *s = f->settings;
  const Files files = {s->in, s->fit.labels, s->fit.text, &s->fit.inputs, "in", "input"};
  ng_status status = batches_open(&f->train, f->ctx, s->operands[0], s, &files, s->fit.batch);
  const int64_t fixed = f->train.dim ? 0 : f->train.length * f->train.nleaves;
  if (status == NG_OK && fixed && s->fit.batch && s->fit.batch != fixed) {
    usage_error("--batch: expected %lld, the number of samples in %s, found %lld; it takes any if the first extents of "
                "the inputs of the graph to train have a name",
                (long long)fixed, s->operands[0], (long long)s->fit.batch);
    return NG_USAGE;
  }
  size_t nupdates = 0;
  for (size_t i = 0; i < f->train.nstates; i++) nupdates += (size_t)ng_graph_state(f->train.graph, i).is_updated;
  if (status != NG_OK) return status;
  if (nupdates) return ranks_begin(f);
  plain_error("%s: expected a graph with updates, as ngrad train writes", s->operands[0]);
  return NG_WRONG;
}

static char *test_path(const Settings *s) {
  if (s->fit.test_graph) return memory_or_exit(strdup(s->fit.test_graph));
  const int stem = (int)(strlen(s->operands[0]) - strlen("_step.yaml"));
  return text_of_format("%.*s_test.yaml", stem, s->operands[0]);
}

static ng_status open_test(Fit *f, const char *path) {
  const Settings *s = f->settings;
  const Files files = {s->fit.test, s->fit.test_labels, s->fit.test_text, &s->fit.test_inputs, "test", "test-input"};
  const int64_t batch = f->train.whole.nsamples ? f->train.whole.nsamples : f->train.last.nsamples;
  ng_status status = batches_open(&f->test, f->ctx, path, s, &files, batch);
  if (status == NG_OK) status = batches_compile(&f->test, false);
  return status;
}

static bool states_agree(const ng_tensor_info *a, const ng_tensor *b) {
  bool ok = a->type == b->type && a->rank == b->rank;
  for (int i = 0; ok && i < a->rank; i++) ok = a->extent[i] == b->extent[i] && a->order[i] == b->order[i];
  return ok;
}

// The test graph uses the states of the same names of the step graph.
static ng_status share_states(Fit *f) {
  for (size_t i = 0; i < f->test.nstates; i++) {
    const ng_tensor_info info = batches_state(&f->test, i);
    size_t k = 0;
    while (k < f->train.nstates && strcmp(batches_state(&f->train, k).name, info.name) != 0) k++;
    if (k == f->train.nstates || !states_agree(&info, &f->states[k])) {
      plain_error("%s: its state %s is %s of %s", f->test.path, info.name,
                  k == f->train.nstates ? "none" : "unlike that", f->train.path);
      return NG_WRONG;
    }
    f->tested[i] = f->states[k];
  }
  batches_use_states(&f->test, f->tested, false);
  return NG_OK;
}

static char *checkpoint_path(const Fit *f) {
  const char *stem = memory_or_exit((void *)ng_graph_step_identifier(f->train.graph));
  return path_join(f->settings->out, stem, ".npz");
}

static bool folder_is_ready(Fit *f) {
  const char *folder = f->settings->out;
  struct stat there;
  if (!folder_make(folder)) return false;
  if (access(folder, W_OK) != 0) plain_error("%s: cannot write to the folder: %s", folder, strerror(errno));
  else if (!fit_lock(f)) return false;
  else if (stat(f->checkpoint, &there) != 0) return true;
  else if (!S_ISREG(there.st_mode)) plain_error("%s: expected a file or nothing there", f->checkpoint);
  else if (f->settings->fit.resumes) return true;
  else
    plain_error("%s: is there already: --resume goes on from it; to begin anew, remove it or choose another --out",
                f->checkpoint);
  return false;
}

static bool is_float(ng_type type) {
  return type == NG_F64 || type == NG_F32 || type == NG_F16 || type == NG_BF16;
}

// Whether a batch norm computes the tensor, which updates a state: a running statistic.
static bool is_running_statistic(const ng_graph *g, const char *name) {
  for (size_t i = 0; i < ng_graph_node_count(g); i++) {
    const ng_node_info node = ng_graph_node(g, i);
    for (size_t k = 0; k < node.noutputs; k++) {
      const char *output = ng_graph_node_output(g, i, k).name;
      if (output && strcmp(output, name) == 0) return strcmp(node.canonical, "BatchNormForwardTraining") == 0;
    }
  }
  return false;
}

// Warns where only the running statistics of batch norms change: the graph is then the one to give to ngrad train.
static void tell_untrained(const Fit *f) {
  const ng_graph *g = f->train.graph;
  const char *left = NULL;
  size_t nleft = 0, nstatistics = 0;
  for (size_t i = 0; i < f->train.nstates; i++) {
    const ng_state state = ng_graph_state(g, i);
    const ng_tensor_info info = ng_graph_input(g, state.input);
    if (!is_float(info.type)) continue;
    if (!state.is_updated) nleft++, left = left ? left : info.name;
    else if (!is_running_statistic(g, ng_graph_output(g, state.output).name)) return;
    else nstatistics++;
  }
  if (!nleft || !nstatistics) return;
  plain_warning("%s: only running statistics of batch norms are updated; %s and %zu other states stay as they are: "
                "expected a step, such as ngrad train %s -o DIR writes",
                f->train.path, left, nleft - 1, f->train.path);
}

// Finds all errors of options, graphs and data before training begins.
static ng_status open_all(Fit *f) {
  const Settings *s = f->settings;
  ng_status status = open_training(f);
  if (status != NG_OK) return status;
  if (!is_first(f)) ng_messages_clear(f->ctx); // rank 0 prints the same warnings
  session_tell(f->ctx);
  if (is_first(f)) tell_untrained(f);
  if (s->out) f->checkpoint = checkpoint_path(f);
  if (s->out && is_first(f) && !folder_is_ready(f)) return NG_WRONG;
  if (s->fit.resumes && access(f->checkpoint, F_OK) != 0) {
    plain_error("%s: nothing to resume from; without --resume training begins", f->checkpoint);
    return NG_WRONG;
  }
  status = batches_compile(&f->train, true);
  if (status != NG_OK) return status;
  f->order = memory_or_exit(calloc((size_t)f->train.nfound, sizeof *f->order));
  f->states = memory_or_exit(calloc(f->train.nstates + 1, sizeof *f->states));
  f->at.sums = memory_or_exit(calloc(f->train.nscalars + 1, sizeof *f->at.sums));
  status = fit_begin(f);
  if (status == NG_OK) status = ranks_compare_states(f, "the states before training");
  if (status == NG_OK && is_first(f) && has_test(&s->fit)) {
    char *path = f->test_file = test_path(s);
    status = open_test(f, path);
    if (status == NG_OK) {
      f->tested = memory_or_exit(calloc(f->test.nstates + 1, sizeof *f->tested));
      f->test_means = memory_or_exit(calloc(f->test.nscalars + 1, sizeof *f->test_means));
      status = share_states(f);
    }
  }
  if (status == NG_OK) ng_messages_clear(f->ctx); // drops the warnings of graphs that were read twice
  return status;
}

// Training

static bool is_stopped(const Fit *f) {
  return f->stop || signals_stop();
}

static ng_status evaluate(Fit *f) {
  Batches *b = &f->test;
  f->has_tested = false;
  if (!b->ctx) return NG_OK;
  ng_status status = NG_OK;
  int64_t *samples = memory_or_exit(calloc((size_t)(b->whole.nsamples + b->last.nsamples), sizeof *samples));
  memset(f->test_means, 0, b->nscalars * sizeof *f->test_means);
  for (int64_t done = 0, count; done < b->nsamples && status == NG_OK && !is_stopped(f); done += count) {
    const int64_t left = b->nsamples - done;
    count = b->whole.nsamples && b->whole.nsamples <= left ? b->whole.nsamples : left;
    progress_tell(NULL, "testing", (double)done / (double)b->nsamples);
    for (int64_t i = 0; i < count; i++) samples[i] = done + i;
    status = batches_run(b, samples, count);
    for (size_t i = 0; i < b->nscalars; i++)
      f->test_means[i] += batches_scalar(b, i) * (double)count / (double)b->nsamples;
  }
  progress_end();
  f->has_tested = status == NG_OK && !is_stopped(f);
  free(samples);
  return status;
}

// Ends an epoch, or the part of an epoch before training stops.
static ng_status end_epoch(Fit *f) {
  if (!fit_is_finite(f)) return fit_explain(f);
  ng_status status = evaluate(f);
  if (status != NG_OK) return status;
  report_epoch(f);
  if (f->at.done == f->train.nsamples) {
    f->at.epoch++;
    f->at.done = 0;
    memset(f->at.sums, 0, f->train.nscalars * sizeof *f->at.sums);
  }
  return fit_save(f);
}

static ng_status train(Fit *f) {
  ng_status status = NG_OK;
  bool stops = false;
  f->started_ms = now_ms();
  f->started_step = f->at.step;
  if (fit_is_finished(f)) return evaluate(f);
  while (status == NG_OK && !stops) {
    status = fit_step(f);
    if (status == NG_OK && !fit_loss_is_finite(f)) return fit_explain(f);
    if (status == NG_OK) report_step(f);
    stops = fit_is_finished(f) || f->stop;
    if (status == NG_OK && (f->at.done == f->train.nsamples || stops)) status = end_epoch(f);
  }
  return status;
}

// Handles SIGBUS: a mapped file became shorter.
static void tell_lost_data(int number) {
  static const char text[] = "error: a data file became shorter while it was read\n";
  (void)number;
  if (write(STDERR_FILENO, text, sizeof text - 1) >= 0) _exit(NG_WRONG);
  _exit(NG_WRONG);
}

static void close_all(Fit *f) {
  for (size_t i = 0; f->states && i < f->train.nstates; i++) ng_tensor_free(f->ctx, &f->states[i]);
  batches_close(&f->train);
  batches_close(&f->test);
  fit_unlock(f);
  free(f->states);
  free(f->tested);
  free(f->test_means);
  free(f->at.sums);
  free(f->order);
  free(f->checkpoint);
  free(f->test_file);
  session_close(f->ctx);
}

int verb_fit(const Settings *s) {
  Settings own = *s;
  Fit f = {.settings = &own,
           .ctx = session_open(s->max_memory, s->max_steps),
           .seed = s->seed,
           .saved_step = -1,
           .lock = -1};
  ng_status status = ranks_open(&f, &own);
  signal(SIGBUS, tell_lost_data);
  if (status == NG_OK) status = (ng_status)check_settings(s);
  if (status == NG_OK) status = open_all(&f);
  if (status == NG_OK) {
    signals_defer();
    report_begin(&f);
    status = train(&f);
  }
  if (status == NG_OK) status = ranks_compare_states(&f, "the states after training");
  if (status == NG_OK) status = ng_tensors_sha256(f.ctx, f.states, f.train.nstates, f.sha256);
  if (is_first(&f)) report_end(&f, status);
  else if (status == NG_OK) ng_messages_clear(f.ctx);
  session_tell(f.ctx);
  const int stop = f.stop ? f.stop : signals_stop();
  ranks_close(&f, status);
  close_all(&f);
  fflush(stdout);
  if (stop) signals_end(stop);
  return exit_status(status);
}
