// ngrad train: makes the graph of a training step from a forward graph.
#include "frontend/cli/data.h"
#include "frontend/cli/graph_output.h"
#include "frontend/cli/states.h"
#include "frontend/cli/train_parameters.h"
#include "frontend/cli/verbs.h"
#include "frontend/cli/weights.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// The settings under the library's names, with underscores; the caller frees the memory.
static ng_setting *settings_of(const Settings *s, size_t *count) {
  ng_setting *settings = memory_or_exit(calloc(s->nnumbers + 2, sizeof *settings));
  for (size_t i = 0; i < s->nnumbers; i++) {
    char *name = memory_or_exit(strdup(s->numbers[i].name));
    for (char *c = name; *c; c++)
      if (*c == '-') *c = '_';
    settings[i] = (ng_setting){name, s->numbers[i].value};
  }
  *count = s->nnumbers;
  if (s->is_nesterov) settings[(*count)++] = (ng_setting){memory_or_exit(strdup("nesterov")), 1};
  if (s->syncs_batch_norms) settings[(*count)++] = (ng_setting){memory_or_exit(strdup("sync_batch_norm")), 1};
  return settings;
}

// The library names settings as C and Python do, as in "step_size: expected ..." or "Adam (w): weight_decay: expected
// ...". Tells such an error with the option's name, --step-size.
static void tell_of_option(ng_context *ctx) {
  const ng_message m = ng_message_count(ctx) == 1 ? ng_message_at(ctx, 0) : (ng_message){.file = ""};
  if (m.file) return; // an error in a file, or none
  for (const char *at = m.text; at; at = strstr(at, ": ")) {
    at += at == m.text ? 0 : 2;
    char *name = memory_or_exit(strndup(at, strcspn(at, ":")));
    for (char *c = name; *c; c++)
      if (*c == '_') *c = '-';
    const bool is_option = option_exists(OPTION_TRAIN, name);
    if (is_option) plain_error("%.*s--%s%s", (int)(at - m.text), m.text, name, at + strlen(name));
    free(name);
    if (!is_option) continue;
    ng_messages_clear(ctx);
    return;
  }
}

// Writes g, a graph made from the forward graph. The file's name begins with the forward graph's.
static ng_status write_graph(ng_context *ctx, ng_graph *forward, ng_graph *g, const char *ending, const char *comment,
                             const Settings *s, Answer *answer) {
  const char *stem = memory_or_exit((void *)ng_graph_identifier(forward));
  char *text = ng_graph_show(g, "yaml", NULL), *path = path_join(s->out, stem, ending);
  ng_status status = ng_last_status(ctx);
  if (!settings_keep_graphs(s, path)) {
    status = NG_USAGE;
  } else if (text) {
    char *file = text_of_format("# %s\n%s", comment, text);
    if (!answer_text(answer, file, path)) status = NG_WRONG;
    free(file);
  }
  ng_text_free(ctx, text);
  free(path);
  return status;
}

// Writes step and inference as C, if an option asks for it.
static ng_status write_sources(ng_context *ctx, ng_graph *step, ng_graph *infer, const Settings *s, Answer *answer) {
  if (!s->isa && !s->sharing && !s->prefix && !s->has_self_test && !s->memory && !s->state && !s->weights &&
      !s->package && !s->optimize)
    return NG_OK;
  ng_options options = options_of_settings(s);
  options.wrote = answer_wrote_any;
  options.wrote_user = answer;
  const ng_status status = states_read_pair(ctx, step, infer, s, answer);
  return status == NG_OK ? ng_emit_training_files(step, infer, &options, s->out) : status;
}

// Makes and writes a form; *made: NULL if the graph does not have it. has_weights: the step has not written the weights
// of `forward`.
static ng_status write_inference(ng_context *ctx, ng_graph *forward, bool has_weights, ng_inference_form form,
                                 const char *ending, const char *comment, const Settings *s, Answer *answer,
                                 ng_graph **made) {
  const ng_train_options options = {.losses = s->loss.items, .nlosses = s->loss.count};
  *made = ng_graph_inference(forward, form, &options);
  const ng_status status = *made && has_weights ? ng_graph_write_weights(*made, s->out, 0) : NG_OK;
  if (*made && status != NG_OK) return status;
  if (*made) return write_graph(ctx, forward, *made, ending, comment, s, answer);
  return ng_last_status(ctx) == NG_OUT_OF_MEMORY ? NG_OUT_OF_MEMORY : NG_OK;
}

// Whether --dim gives the batch, the first extent of an input. Where a model was read with the number, the extent has
// no name; then no other --dim has the same number.
static bool is_batch(const ng_graph *g, const Settings *s, const DimSetting *dim) {
  bool any = false;
  size_t nalike = 0;
  for (size_t i = 0; i < s->ndims; i++) nalike += s->dims[i].value == dim->value;
  for (size_t i = 0; i < ng_graph_input_count(g) - ng_graph_state_count(g); i++) {
    const ng_tensor_info input = ng_graph_input(g, i);
    if (input.rank < 1) continue;
    any |= input.dim[0] ? strcmp(input.dim[0], dim->name) == 0 : nalike == 1 && input.extent[0] == dim->value;
  }
  return any;
}

// Reads the graph for batches of one sample, if --dim fixes the step's. The batch keeps its name if `is_named`: a model
// may need the number. NULL: --dim does not fix the batch, or the graph cannot be read so.
static ng_graph *open_for_one(ng_context *ctx, const ng_graph *g, const Settings *s, bool is_named) {
  Settings one = *s;
  ng_status status = NG_OK;
  bool any = false;
  one.ndims = 0;
  one.dims = memory_or_exit(calloc(s->ndims + 1, sizeof *one.dims));
  for (size_t i = 0; i < s->ndims; i++) {
    const bool is_one = is_batch(g, s, &s->dims[i]);
    if (!is_one || !is_named) one.dims[one.ndims++] = (DimSetting){s->dims[i].name, is_one ? 1 : s->dims[i].value};
    any |= is_one;
  }
  ng_graph *made = any && strcmp(s->operands[0], "-") != 0 ? graph_open(ctx, s->operands[0], &one, &status) : NULL;
  free(one.dims);
  for (size_t i = 0; i < s->ndims && made && is_named && status == NG_OK; i++)
    if (is_batch(g, s, &s->dims[i])) status = ng_graph_set_dim(made, s->dims[i].name, 1);
  if (status == NG_OK) return made;
  ng_graph_free(made);
  return NULL;
}

// Whether open_for_one makes a graph that has one for inference; without messages.
static bool infers_one(const ng_graph *g, const Settings *s, bool is_named) {
  ng_context *ctx = session_open(s->max_memory, s->max_steps);
  const ng_train_options options = {.losses = s->loss.items, .nlosses = s->loss.count};
  ng_graph *one = open_for_one(ctx, g, s, is_named), *infer = one ? ng_graph_inference(one, NG_INFER, &options) : NULL;
  const bool ok = infer != NULL;
  ng_graph_free(infer);
  ng_graph_free(one);
  ng_messages_clear(ctx);
  session_close(ctx);
  return ok;
}

// Inference takes one sample where --dim fixes the batch of the step. NULL, with the status: it has the step's extents.
static ng_graph *open_to_infer(ng_context *ctx, const ng_graph *g, const Settings *s, ng_status *status) {
  const bool is_named = infers_one(g, s, true);
  if (!is_named && !infers_one(g, s, false)) return NULL;
  ng_graph *one = open_for_one(ctx, g, s, is_named);
  if (!one) *status = ng_last_status(ctx);
  return one;
}

// Constants and first values that come from files: the graphs name these as GRAPH does, so they have to lie beside
// them.

static bool copy_bytes(FILE *from, FILE *to) {
  char bytes[1 << 16];
  size_t n;
  while ((n = fread(bytes, 1, sizeof bytes, from)) > 0)
    if (fwrite(bytes, 1, n, to) != n) return false;
  return !ferror(from) && fflush(to) == 0;
}

static bool copy_file(const char *from, const char *to) {
  char *folder = folder_of(to);
  bool ok = folder_make(folder);
  free(folder);
  if (!ok || is_same_file(from, to)) return ok;
  FILE *in = fopen(from, "rb"), *out = in ? fopen(to, "wb") : NULL;
  ok = out && copy_bytes(in, out);
  if (!ok) plain_error("cannot copy %s to %s: %s", from, to, strerror(errno));
  if (in) fclose(in);
  if (out && fclose(out) != 0 && ok) ok = plain_error("cannot write %s: %s", to, strerror(errno)) == 0;
  return ok;
}

static bool copy_files(const ng_graph *g, const Settings *s) {
  char *folder = folder_of(s->operands[0]);
  bool ok = true;
  for (size_t i = 0; i < ng_graph_file_count(g) && ok; i++) {
    char *from = path_join(folder, ng_graph_file(g, i), ""), *to = path_join(s->out, ng_graph_file(g, i), "");
    ok = copy_file(from, to);
    free(from);
    free(to);
  }
  free(folder);
  return ok;
}

static ng_status train(ng_context *ctx, ng_graph *g, const Settings *s, Answer *answer) {
  ng_train_options options = {.losses = s->loss.items,
                              .nlosses = s->loss.count,
                              .optimizer = s->optimizer,
                              .schedule = s->rate_schedule,
                              .freeze = s->freeze.items,
                              .nfreeze = s->freeze.count,
                              .no_decay = s->no_decay.items,
                              .nno_decay = s->no_decay.count,
                              .precision = s->precision,
                              .keep_f32 = s->keep_f32.items,
                              .nkeep_f32 = s->keep_f32.count};
  ng_setting *settings = settings_of(s, &options.nsettings);
  options.settings = settings;
  ng_graph *step = ng_graph_train(g, &options), *test = NULL, *infer = NULL, *one = NULL;
  ng_status status = ng_last_status(ctx);
  if (!step) tell_of_option(ctx);
  if (step && !(folder_make(s->out) && copy_files(g, s))) status = NG_WRONG;
  if (step) print_parameters(step, s->lists_parameters, answer);
  if (status == NG_OK) status = ng_graph_write_weights(step, s->out, 0);
  if (status == NG_OK)
    status = write_graph(ctx, g, step, "_step.yaml", "A training step: a call updates the parameters.", s, answer);
  if (status == NG_OK)
    status = write_inference(ctx, g, false, NG_TEST, "_test.yaml", "Losses and metrics on test data, without training.",
                             s, answer, &test);
  if (status == NG_OK) one = open_to_infer(ctx, g, s, &status);
  if (status == NG_OK)
    status = write_inference(ctx, one ? one : g, one != NULL, NG_INFER, "_infer.yaml",
                             "Inference: the outputs that need no labels.", s, answer, &infer);
  if (status == NG_OK) status = write_sources(ctx, step, infer, s, answer);
  ng_graph_free(infer);
  ng_graph_free(one);
  ng_graph_free(test);
  ng_graph_free(step);
  for (size_t i = 0; i < options.nsettings; i++) free((char *)settings[i].name);
  free(settings);
  return status;
}

int verb_train(const Settings *s) {
  if (!s->out) return usage_error("train: expected -o DIR, where the graphs go");
  const int wrong = weights_check(s, WEIGHTS_PLACES);
  if (wrong) return wrong;
  return answer_with(s, train);
}
