// The output of training: a line that is redrawn on a terminal, lines of a file, or JSON.
#include "frontend/cli/clock.h"
#include "frontend/cli/fit.h"
#include "frontend/cli/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static bool is_told(const Fit *f) {
  return !f->settings->fit.is_quiet && !f->settings->is_json;
}

static double seconds(const Fit *f) {
  return (now_ms() - f->started_ms) / 1000;
}

static int64_t steps_an_epoch(const Fit *f) { // at least 1
  const int64_t whole = f->train.whole.nsamples;
  return whole ? f->train.nsamples / whole + (f->train.last.nsamples > 0) : 1;
}

static int64_t last_step(const Fit *f) {
  const FitSettings *s = &f->settings->fit;
  const int64_t epochs = s->epochs ? s->epochs : s->steps ? INT64_MAX : 1;
  int64_t all;
  if (__builtin_mul_overflow(epochs, steps_an_epoch(f), &all)) all = INT64_MAX;
  return s->steps && s->steps < all ? s->steps : all;
}

static const char *scalar_name(const Batches *b, size_t i) {
  return ng_graph_output(b->graph, b->scalars[i]).name;
}

// "loss 0.412, accuracy 0.85"; the caller frees it.
static char *means_text(const Batches *b, const double *sums, double count) {
  TextStream text;
  FILE *out = text_open(&text);
  for (size_t i = 0; i < b->nscalars; i++) fprintf(out, "%s%s %.4g", i ? ", " : "", scalar_name(b, i), sums[i] / count);
  return text_close(&text);
}

static json_t *means_json(const Batches *b, const double *sums, double count) {
  json_t *means = memory_or_exit(json_object());
  for (size_t i = 0; i < b->nscalars; i++) json_set(means, scalar_name(b, i), json_number(sums[i] / count));
  return means;
}

static json_t *event(const Fit *f, const char *name) {
  return json_object_of({"event", json_text(name)}, {"epoch", json_integer(f->at.epoch + (f->at.done > 0))},
                        {"step", json_integer(f->at.step)});
}

void report_begin(const Fit *f) {
  const Batches *b = &f->train;
  const int64_t batch = b->whole.nsamples ? b->whole.nsamples : b->last.nsamples;
  if (f->settings->is_json) {
    json_t *object = event(f, "begin");
    json_set_all(object, {"graph", json_text(ng_graph_name(b->graph))}, {"samples", json_integer(b->nsamples)},
                 {"left_out", json_integer(b->nfound - b->nsamples)}, {"batch", json_integer(batch)},
                 {"steps_per_epoch", json_integer(steps_an_epoch(f))},
                 {"test_samples", json_integer(f->test.nsamples)});
    if (f->ranks.count > 1) json_set(object, "ranks", json_integer(f->ranks.count));
    json_set(object, "seed", json_count(f->seed));
    json_print_line(object);
  } else if (is_told(f)) {
    say("%s: %" PRId64, ng_graph_name(b->graph), b->nsamples);
    if (b->nfound > b->nsamples) say(" of %" PRId64, b->nfound);
    say(" samples, %" PRId64 " steps an epoch of %" PRId64 " samples", steps_an_epoch(f), batch);
    if (f->ranks.count > 1) say("; %" PRId64 " ranks", f->ranks.count);
    if (f->test.ctx) say("; %" PRId64, f->test.nsamples);
    if (f->test.ctx && f->test.nfound > f->test.nsamples) say(" of %" PRId64, f->test.nfound);
    if (f->test.ctx) say(" samples to test");
    say("\n");
    if (f->at.step) say("resumed at step %" PRId64 "\n", f->at.step);
    if (f->at.step && fit_is_finished(f))
      say("nothing is left to train: %" PRId64 " epochs are done; a larger --epochs or --steps goes on\n", f->at.epoch);
    fflush(stdout);
  }
  if (!f->settings->is_json) progress_begin("training", ng_graph_name(b->graph));
}

static double steps_a_second(const Fit *f) {
  const double s = seconds(f);
  return s > 0 ? (double)(f->at.step - f->started_step) / s : 0;
}

static void time_text(double s, char text[32]) {
  const long long whole = (long long)s;
  if (whole >= 3600) snprintf(text, 32, "%lld:%02lld:%02lld", whole / 3600, whole / 60 % 60, whole % 60);
  else snprintf(text, 32, "%lld:%02lld", whole / 60, whole % 60);
}

static void draw_step(Fit *f) {
  const double interval_ms = 100, now = now_ms();
  if (now - f->drawn_ms < interval_ms) return;
  f->drawn_ms = now;
  char left[32] = "", *means = means_text(&f->train, f->at.sums, (double)f->at.done);
  const double rate = steps_a_second(f);
  if (last_step(f) < INT64_MAX && rate > 0) time_text((double)(last_step(f) - f->at.step) / rate, left);
  char *line = text_of_format("epoch %" PRId64 ", %" PRId64 " of %" PRId64 " samples: %s; %.4g steps/s, %s left",
                              f->at.epoch + 1, f->at.done, f->train.nsamples, means, rate, *left ? left : "?");
  progress_end();
  progress_draw(line);
  free(line);
  free(means);
}

// Prints this step's numbers; in JSON with all digits.
static void tell_step(const Fit *f) {
  const Batches *b = &f->train;
  double *values = memory_or_exit(calloc(b->nscalars + 1, sizeof *values));
  for (size_t i = 0; i < b->nscalars; i++) values[i] = batches_scalar(b, i);
  if (f->settings->is_json) {
    json_t *object = event(f, "step");
    json_set_all(object, {"values", means_json(b, values, 1)}, {"seconds", json_number(seconds(f))});
    json_print_line(object);
  } else {
    progress_end();
    char *text = means_text(b, values, 1);
    say("step %" PRId64 ": %s\n", f->at.step, text);
    fflush(stdout);
    free(text);
  }
  free(values);
}

void report_step(Fit *f) {
  enum { LINES = 4 }; // lines an epoch, including the line of the epoch itself
  const int64_t an_epoch = steps_an_epoch(f), length = f->train.whole.nsamples;
  if (!f->at.done || f->settings->fit.is_quiet) return;
  if (f->settings->fit.tells_each_step) {
    tell_step(f);
    return;
  }
  const bool draws = isatty(STDERR_FILENO) && !f->settings->is_json;
  if (draws) draw_step(f);
  if (draws && isatty(STDOUT_FILENO)) return;
  const int64_t i = length ? f->at.done / length : 1;
  if (i == an_epoch || i * LINES % an_epoch >= LINES) return;
  if (f->settings->is_json) {
    json_t *object = event(f, "progress");
    json_set_all(object, {"means", means_json(&f->train, f->at.sums, (double)f->at.done)},
                 {"steps_per_second", json_number(steps_a_second(f))});
    json_print_line(object);
    return;
  }
  progress_end();
  char *means = means_text(&f->train, f->at.sums, (double)f->at.done);
  say("epoch %" PRId64 ", %" PRId64 " of %" PRId64 " samples: %s; %.4g steps/s\n", f->at.epoch + 1, f->at.done,
      f->train.nsamples, means, steps_a_second(f));
  fflush(stdout);
  free(means);
}

// Prints the results of an epoch, or of the part of an epoch before training stops.
void report_epoch(Fit *f) {
  if (f->settings->is_json) {
    json_t *object = event(f, "epoch");
    json_set_all(object, {"samples", json_integer(f->at.done)},
                 {"means", means_json(&f->train, f->at.sums, (double)f->at.done)});
    if (f->has_tested) json_set(object, "test", means_json(&f->test, f->test_means, 1));
    json_set(object, "seconds", json_number(seconds(f)));
    json_print_line(object);
    return;
  }
  if (!is_told(f)) return;
  char *means = means_text(&f->train, f->at.sums, (double)f->at.done);
  progress_end();
  say("epoch %" PRId64, f->at.epoch + 1);
  if (f->at.done < f->train.nsamples) say(", %" PRId64 " of %" PRId64 " samples", f->at.done, f->train.nsamples);
  say(": %s; ", means);
  free(means);
  if (f->has_tested) {
    means = means_text(&f->test, f->test_means, 1);
    say("test: %s; ", means);
    free(means);
  }
  printf("step %" PRId64 ", %.1f s, %.4g steps/s\n", f->at.step, seconds(f), steps_a_second(f));
  fflush(stdout);
}

void report_end(Fit *f, ng_status status) {
  progress_end();
  if (f->settings->is_json) {
    json_t *object = event(f, status == NG_OK ? "end" : "error");
    if (status == NG_OK) json_set(object, "sha256", json_text(f->sha256));
    if (status == NG_OK && f->has_tested) json_set(object, "test", means_json(&f->test, f->test_means, 1));
    json_set_all(object, {"checkpoint", json_text(f->saved_step >= 0 ? f->checkpoint : NULL)},
                 {"checkpoint_step", f->saved_step >= 0 ? json_integer(f->saved_step) : json_null()},
                 {"messages", json_messages(f->ctx)});
    json_print_line(object);
    return;
  }
  if (status == NG_OK) {
    if (f->has_tested && (f->settings->fit.is_quiet || f->at.step == f->started_step)) {
      char *means = means_text(&f->test, f->test_means, 1);
      say("test: %s\n", means);
      free(means);
    }
    say("sha256 of the states: %s\n", f->sha256);
  }
  if (f->saved_step >= 0) say("%s has step %" PRId64 "\n", f->checkpoint, f->saved_step);
  else if (status == NG_OK) say("not saved; --out DIR saves the states\n");
  fflush(stdout);
}
