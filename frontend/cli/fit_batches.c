// Gathers samples from files into batches, and calls the graph with them.
#include "frontend/cli/fit_batches.h"
#include "frontend/cli/progress.h"

#include "frontend/cli/fit_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Marks inputs that a node Leaf divides.
static void find_inputs_with_leaves(Batches *b) {
  for (size_t n = 0; n < ng_graph_node_count(b->graph); n++) {
    if (strcmp(ng_graph_node(b->graph, n).canonical, "Leaf") != 0) continue;
    const char *name = ng_graph_node_input(b->graph, n, 0).name;
    for (size_t i = 0; i < b->ninputs; i++)
      if (strcmp(ng_graph_input(b->graph, i).name, name) == 0) b->has_leaves[i] = true;
  }
}

// Whether the extent is that of the batch: its name or, if the batch is a number, this number.
static bool is_batch(const Batches *b, const ng_tensor_info *info) {
  const int axis = b->nleading - 1;
  if (info->rank < b->nleading) return false;
  return b->dim ? info->dim[axis] && strcmp(info->dim[axis], b->dim) == 0 : info->extent[axis] == b->length;
}

static bool has_samples(const Batches *b, size_t i) {
  const ng_tensor_info info = ng_graph_input(b->graph, i);
  return is_batch(b, &info) && (b->has_leaves[i] || !ng_graph_leaf_count(b->graph));
}

// The batch is the first named extent that is an input's first axis; if there is none, the number that is the first
// input's. In a graph that declares leaves, it is the second axis, and only inputs with leaves count.
static bool find_batch(Batches *b) {
  b->nleaves = ng_graph_leaf_count(b->graph);
  b->nleading = b->nleaves ? 2 : 1;
  for (int wants_name = 1; wants_name >= 0; wants_name--)
    for (size_t i = 0; i < b->ninputs; i++) {
      const ng_tensor_info info = ng_graph_input(b->graph, i);
      if (info.rank < b->nleading || (b->nleaves && !b->has_leaves[i])) continue;
      b->dim = info.dim[b->nleading - 1];
      b->length = info.extent[b->nleading - 1];
      if (wants_name ? b->dim != NULL : b->length > 0) {
        if (!b->nleaves) b->nleaves = 1;
        return true;
      }
    }
  plain_error("%s: expected an input whose %s extent is the batch, as in {name: x, type: f32, shape: [%sN, 784]}",
              b->path, b->nleading > 1 ? "second" : "first", b->nleading > 1 ? "LEAVES, " : "");
  return false;
}

static bool leaves_agree(const Batches *b) {
  for (size_t i = 0; i < b->ninputs; i++) {
    const ng_tensor_info info = ng_graph_input(b->graph, i);
    if (b->nleading < 2 || !has_samples(b, i) || info.extent[0] == b->nleaves) continue;
    plain_error("%s: %s: expected %lld leaves, found %lld", b->path, info.name, (long long)b->nleaves,
                (long long)info.extent[0]);
    return false;
  }
  return true;
}

// Sets named extents without a value from the file.
static ng_status take_extents(Batches *b, const ng_tensor_info *info, const ng_tensor *t, int skipped,
                              int skipped_of_t) {
  ng_status status = NG_OK;
  if (info->rank - skipped != t->rank - skipped_of_t) return NG_OK; // ng_data_check reports this
  for (int axis = skipped; axis < info->rank && status == NG_OK; axis++)
    if (info->dim[axis] && info->extent[axis] < 0)
      status = ng_graph_set_dim(b->graph, info->dim[axis], t->extent[axis - skipped + skipped_of_t]);
  return status;
}

// Elements of a sample; 0: unknown.
static int64_t sample_nelems(const Batches *b, const ng_tensor_info *info) {
  int64_t nelems = 1;
  for (int i = b->nleading; i < info->rank; i++) nelems = info->extent[i] > 0 ? nelems * info->extent[i] : 0;
  return nelems;
}

static ng_data *open_data(const Batches *b, const ng_tensor_info *info, const char *path, bool is_text) {
  if (!is_text) return ng_data_open(b->ctx, path);
  return ng_data_open_text(b->ctx, path, sample_nelems(b, info), strcmp(info->name, "labels") == 0);
}

static ng_status open_samples(Batches *b, size_t i, const char *path, bool is_text) {
  const ng_tensor_info info = ng_graph_input(b->graph, i);
  b->data[i] = open_data(b, &info, path, is_text);
  if (!b->data[i]) return ng_last_status(b->ctx);
  const ng_tensor t = ng_data_tensor(b->data[i]);
  // Before all data is read, which a sparse file has without end.
  const ng_memory_part part = {"the order of samples", t.rank ? (uint64_t)t.extent[0] * sizeof(int64_t) : 0};
  ng_status status = ng_context_check_memory(b->ctx, path, &part, 1);
  if (status == NG_OK) status = take_extents(b, &info, &t, b->nleading, 1);
  if (status == NG_OK) status = ng_data_check(b->data[i], b->graph, i, b->nleading);
  if (status != NG_OK) return status;
  if (b->nfound < 0) b->nfound = t.extent[0];
  if (b->nfound == t.extent[0]) return NG_OK;
  plain_error("%s: %s has %lld samples, other inputs have %lld", path, info.name, (long long)t.extent[0],
              (long long)b->nfound);
  return NG_WRONG;
}

// A file with samples may be meant for an input whose batch is another axis.
static void tell_whole(const Batches *b, const ng_tensor_info *info, const char *path) {
  char number[32];
  snprintf(number, sizeof number, "%lld", (long long)b->length);
  plain_error(
      "%s: %s is read once for all batches, because its %s axis is not the batch, %s: expected samples along the "
      "first axis",
      path, info->name, b->nleading > 1 ? "second" : "first", b->dim ? b->dim : number);
}

static ng_status read_whole(Batches *b, size_t i, const char *path) {
  const ng_tensor_info info = ng_graph_input(b->graph, i);
  ng_status status = ng_tensor_read_npy(b->ctx, path, &info, 0, &b->tensors[i]);
  if (status == NG_WRONG && info.rank && access(path, R_OK) == 0) tell_whole(b, &info, path);
  return status == NG_OK ? take_extents(b, &info, &b->tensors[i], 0, 0) : status;
}

static ng_status open_inputs(Batches *b, const Files *files) {
  ng_status status = NG_OK;
  for (size_t i = 0; i < b->ninputs && status == NG_OK; i++) {
    const ng_tensor_info info = ng_graph_input(b->graph, i);
    const bool is_text = has_samples(b, i) && input_is_text(files, info.name);
    char *path = is_text ? memory_or_exit(strdup(files->text)) : input_file(files, info.name);
    if (!path) return NG_WRONG;
    status = has_samples(b, i) ? open_samples(b, i, path, is_text) : read_whole(b, i, path);
    free(path);
  }
  return status;
}

// A batch that is a number stays this number, and shorter batches are left out.
static ng_status choose_lengths(Batches *b, int64_t batch) {
  const bool drops_last = b->settings->fit.drops_last || !b->dim;
  if (!b->dim) batch = b->length * b->nleaves;
  for (size_t i = 0; i < ng_graph_dim_count(b->graph) && !batch; i++) {
    const ng_dim_info dim = ng_graph_dim(b->graph, i);
    if (strcmp(dim.name, b->dim) == 0 && dim.value > 0) batch = dim.value * b->nleaves;
  }
  if (!batch) {
    usage_error("%s: the batch %s has no value in dims: expected --batch N", b->path, b->dim);
    return NG_USAGE;
  }
  if (batch % b->nleaves) {
    usage_error("--batch: expected a multiple of the graph's %lld leaves, found %lld", (long long)b->nleaves,
                (long long)batch);
    return NG_USAGE;
  }
  const int64_t rest = b->nfound % batch;
  if (b->nfound >= batch) b->whole.nsamples = batch;
  if (!drops_last) b->last.nsamples = rest - rest % b->nleaves;
  b->nsamples = b->nfound - rest + b->last.nsamples;
  if (b->nsamples > 0) return NG_OK;
  if (rest) plain_error("%s: no samples: there are fewer than a batch takes, %lld", b->path, (long long)batch);
  else plain_error("%s: no samples in the files of its inputs", b->path);
  return NG_WRONG;
}

static bool is_scalar(const ng_tensor_info *info) {
  int64_t nelems = 1;
  for (int i = 0; i < info->rank; i++) nelems *= info->extent[i];
  return info->rank >= 0 && nelems == 1 &&
         (info->type == NG_F64 || info->type == NG_F32 || info->type == NG_F16 || info->type == NG_BF16);
}

ng_status batches_open(Batches *b, ng_context *ctx, const char *path, const Settings *s, const Files *files,
                       int64_t batch) {
  ng_status status;
  *b = (Batches){.ctx = ctx, .settings = s, .path = path, .nfound = -1};
  b->graph = graph_open(ctx, path, s, &status);
  if (!b->graph) return status;
  b->nstates = ng_graph_state_count(b->graph);
  b->ninputs = ng_graph_input_count(b->graph) - b->nstates;
  b->noutputs = ng_graph_output_count(b->graph);
  b->data = memory_or_exit(calloc(b->ninputs + 1, sizeof(ng_data *)));
  b->tensors = memory_or_exit(calloc(b->ninputs + 1, sizeof *b->tensors));
  b->has_leaves = memory_or_exit(calloc(b->ninputs + 1, sizeof *b->has_leaves));
  b->results = memory_or_exit(calloc(b->noutputs + 1, sizeof *b->results));
  b->scalars = memory_or_exit(calloc(b->noutputs + 1, sizeof *b->scalars));
  if (!named_files_are_inputs(files, b->graph, b->ninputs)) return NG_USAGE;
  find_inputs_with_leaves(b);
  if (!find_batch(b) || !leaves_agree(b)) return NG_WRONG;
  status = open_inputs(b, files);
  return status == NG_OK ? choose_lengths(b, batch) : status;
}

// Reads the graph again, for a batch of so many samples, and binds it.
static ng_status bind_call(Batches *b, Call *call) {
  ng_status status;
  call->graph = graph_open(b->ctx, b->path, b->settings, &status);
  for (size_t i = 0; status == NG_OK && i < ng_graph_dim_count(b->graph); i++) {
    const ng_dim_info dim = ng_graph_dim(b->graph, i);
    const bool is_of_batch = b->dim && strcmp(dim.name, b->dim) == 0;
    if (is_of_batch || dim.value >= 0)
      status = ng_graph_set_dim(call->graph, dim.name, is_of_batch ? call->nsamples / b->nleaves : dim.value);
  }
  return status == NG_OK ? ng_graph_bind(call->graph) : status;
}

static size_t state_of_output(const Batches *b, size_t output) {
  for (size_t i = 0; i < b->nstates; i++) {
    const ng_state state = ng_graph_state(b->graph, i);
    if (state.is_updated && state.output == output) return i;
  }
  return b->nstates;
}

typedef struct Range {
  int64_t begin, end;
} Range;

// The range of leaves that this rank has.
static Range own_leaves(const Batches *b) {
  const ng_ranks *r = b->ranks;
  if (!r) return (Range){0, b->nleaves};
  return (Range){b->nleaves * r->rank / r->count, b->nleaves * (r->rank + 1) / r->count};
}

static ng_tensor_info own_input(const Batches *b, const Call *call, size_t i) {
  ng_tensor_info info = ng_graph_input(call->graph, i);
  const Range leaves = own_leaves(b);
  if (b->ranks && i < b->ninputs && b->has_leaves[i]) info.extent[0] = leaves.end - leaves.begin;
  return info;
}

// The data of own_input. A whole tensor with leaves holds the leaves of all ranks.
static void *own_data(const Batches *b, size_t i) {
  const ng_tensor *t = &b->tensors[i];
  if (!b->ranks || !b->has_leaves[i] || b->data[i]) return t->data;
  return (char *)t->data + ng_tensor_nbytes(t) / (size_t)b->nleaves * (size_t)own_leaves(b).begin;
}

// Allocates tensors for the longest batches; shorter batches use the same memory. Updates in place need none.
static ng_status make_tensors(Batches *b, const Call *longest, bool is_in_place) {
  ng_status status = NG_OK;
  for (size_t i = 0; i < b->ninputs && status == NG_OK; i++) {
    const ng_tensor_info info = own_input(b, longest, i);
    if (b->data[i]) status = ng_tensor_new(b->ctx, &info, &b->tensors[i]);
  }
  for (size_t i = 0; i < b->noutputs && status == NG_OK; i++) {
    const ng_tensor_info info = ng_graph_output(longest->graph, i);
    const bool is_update = state_of_output(b, i) < b->nstates;
    if (!is_update && is_scalar(&info)) b->scalars[b->nscalars++] = i;
    if (!is_update || !is_in_place) status = ng_tensor_new(b->ctx, &info, &b->results[i]);
  }
  return status;
}

// Checks inputs without samples, which are read once, for batches of any length.
static bool whole_inputs_fit(const Batches *b, const Call *call) {
  for (size_t i = 0; i < b->ninputs; i++) {
    const ng_tensor_info info = ng_graph_input(call->graph, i);
    for (int axis = 0; axis < info.rank && !b->data[i]; axis++) {
      if (info.extent[axis] == b->tensors[i].extent[axis]) continue;
      plain_error("%s: %s: is read once for all batches, so its shape must not depend on %s: expected extent %lld on "
                  "axis %d for a batch of %lld samples, found %lld; samples lie along the first axis",
                  b->path, info.name, b->dim, (long long)info.extent[axis], axis, (long long)call->nsamples,
                  (long long)b->tensors[i].extent[axis]);
      return false;
    }
  }
  return true;
}

static ng_status compile_call(Batches *b, Call *call) {
  const size_t ninputs = b->ninputs + b->nstates;
  const ng_options options = options_of_settings(b->settings);
  if (!whole_inputs_fit(b, call)) return NG_WRONG;
  call->inputs = memory_or_exit(calloc(ninputs + 1, sizeof *call->inputs));
  call->outputs = memory_or_exit(calloc(b->noutputs + 1, sizeof *call->outputs));
  for (size_t i = 0; i < ninputs; i++)
    call->inputs[i] = ng_tensor_view(own_input(b, call, i), i < b->ninputs ? own_data(b, i) : NULL);
  for (size_t i = 0; i < b->noutputs; i++)
    call->outputs[i] = ng_tensor_view(ng_graph_output(call->graph, i), b->results[i].data);
  progress_begin("compiling", ng_graph_name(call->graph));
  call->kernel = ng_compile(call->graph, &options);
  progress_begin("training", ng_graph_name(call->graph));
  return call->kernel ? NG_OK : ng_last_status(b->ctx);
}

ng_status batches_compile(Batches *b, bool is_in_place) {
  ng_status status = NG_OK;
  if (b->whole.nsamples) status = bind_call(b, &b->whole);
  if (b->last.nsamples && status == NG_OK) status = bind_call(b, &b->last);
  if (status == NG_OK) status = make_tensors(b, b->whole.nsamples ? &b->whole : &b->last, is_in_place);
  if (b->whole.nsamples && status == NG_OK) status = compile_call(b, &b->whole);
  if (b->last.nsamples && status == NG_OK) status = compile_call(b, &b->last);
  return status;
}

static void call_free(Call *call) {
  ng_kernel_free(call->kernel);
  ng_graph_free(call->graph);
  free(call->inputs);
  free(call->outputs);
}

void batches_close(Batches *b) {
  call_free(&b->whole);
  call_free(&b->last);
  for (size_t i = 0; b->data && i < b->ninputs; i++) ng_data_close(b->data[i]);
  for (size_t i = 0; b->tensors && i < b->ninputs; i++) ng_tensor_free(b->ctx, &b->tensors[i]);
  for (size_t i = 0; b->results && i < b->noutputs; i++) ng_tensor_free(b->ctx, &b->results[i]);
  free(b->data);
  free(b->tensors);
  free(b->has_leaves);
  free(b->results);
  free(b->scalars);
  ng_graph_free(b->graph);
  *b = (Batches){0};
}

ng_graph *batches_bound_graph(const Batches *b) {
  return b->whole.nsamples ? b->whole.graph : b->last.graph;
}

ng_tensor_info batches_state(const Batches *b, size_t i) {
  return ng_graph_input(batches_bound_graph(b), b->ninputs + i);
}

void batches_use_states(Batches *b, const ng_tensor *states, bool is_in_place) {
  Call *const calls[] = {&b->whole, &b->last};
  for (size_t c = 0; c < 2; c++)
    for (size_t i = 0; i < b->nstates && calls[c]->nsamples; i++) {
      const ng_state state = ng_graph_state(b->graph, i);
      calls[c]->inputs[state.input].data = states[i].data;
      if (is_in_place && state.is_updated) calls[c]->outputs[state.output].data = states[i].data;
    }
}

Call *batches_call(Batches *b, int64_t count) {
  return count == b->whole.nsamples ? &b->whole : &b->last;
}

static void gather(Batches *b, Call *call, const int64_t *samples, int64_t count) {
  const Range leaves = own_leaves(b);
  const int64_t length = count / b->nleaves, own = (leaves.end - leaves.begin) * length;
  for (size_t i = 0; i < b->ninputs; i++)
    if (b->data[i]) ng_data_gather(b->data[i], samples + leaves.begin * length, own, &call->inputs[i]);
}

ng_status batches_make_whole(Batches *b, const int64_t *samples, int64_t count, ng_tensor **inputs) {
  const Call *call = batches_call(b, count);
  const size_t ninputs = b->ninputs + b->nstates;
  ng_status status = NG_OK;
  *inputs = memory_or_exit(calloc(ninputs + 1, sizeof **inputs));
  for (size_t i = 0; i < ninputs && status == NG_OK; i++) {
    const ng_tensor_info info = ng_graph_input(call->graph, i);
    ng_tensor *t = &(*inputs)[i];
    *t = i < b->ninputs && !b->data[i] ? b->tensors[i] : call->inputs[i];
    if (i < b->ninputs && b->data[i]) status = ng_tensor_new(b->ctx, &info, t);
    if (i < b->ninputs && b->data[i] && status == NG_OK) ng_data_gather(b->data[i], samples, count, t);
  }
  return status;
}

void batches_free_whole(Batches *b, ng_tensor *inputs) {
  for (size_t i = 0; i < b->ninputs; i++)
    if (b->data[i]) ng_tensor_free(b->ctx, &inputs[i]);
  free(inputs);
}

ng_status batches_run(Batches *b, const int64_t *samples, int64_t count) {
  Call *call = batches_call(b, count);
  gather(b, call, samples, count);
  const ng_status status =
      ng_kernel_run_ranks(call->kernel, call->inputs, call->outputs, b->settings->threads, b->ranks);
  if (status == NG_WRONG) ng_graph_check_indices(call->graph, call->inputs); // reports the error
  if (status == NG_OUT_OF_MEMORY) plain_error("out of memory");
  return status;
}

double batches_scalar(const Batches *b, size_t i) {
  return ng_tensor_get(&b->results[b->scalars[i]], 0);
}
