// Inputs and outputs. Open extents of a graph are set from the files' shapes.
#include "frontend/cli/data.h"

#include "frontend/cli/weights.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

ng_options options_of_settings(const Settings *s) {
  return (ng_options){
      .isa = s->isa,
      .no_fuse = s->no_fuse,
      .memory_nbytes = s->memory,
      .disable = s->disabled.items,
      .ndisable = s->disabled.count,
      .schedule = s->schedule.items,
      .nschedule = s->schedule.count,
      .costs = s->costs.items,
      .ncosts = s->costs.count,
      .after = s->after,
      .threads = s->sharing,
      .prefix = s->prefix,
      .package = s->package,
      .optimize = s->optimize,
      .weights = weights_are_stored(s) ? "const" : NULL,
      .self_test = s->has_self_test,
      .fast_math = s->fast_math,
      .compile_timeout = s->compile_timeout > 0    ? s->compile_timeout
                         : s->compile_timeout == 0 ? -1
                                                   : 0,
  };
}

void tensors_free(Tensors *t) {
  for (size_t i = 0; i < t->count; i++) ng_tensor_free(t->ctx, &t->items[i]);
  free(t->items);
  *t = (Tensors){0};
}

static Tensors tensors_new(ng_context *ctx, size_t count) {
  return (Tensors){ctx, memory_or_exit(calloc(count + 1, sizeof(ng_tensor))), count};
}

char *tensor_file(const char *name) {
  char *file = memory_or_exit(malloc(3 * strlen(name) + 1)), *to = file;
  for (const char *c = name; *c; c++) {
    if (*c == '/' || *c == '%') to += sprintf(to, "%%%02X", (unsigned)*c);
    else *to++ = *c;
  }
  *to = 0;
  return file;
}

char *tensor_path(const char *folder, const char *name) {
  char *file = tensor_file(name), *path = path_join(folder, file, ".npy");
  free(file);
  return path;
}

char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return memory_or_exit(strdup("."));
  return memory_or_exit(strndup(path, slash == path ? 1 : (size_t)(slash - path)));
}

// The folder that inputs are read from, which the caller frees; NULL: none.
static char *data_folder(const char *path, const Settings *s) {
  const bool is_beside = s->verb->options & OPTION_RANDOM && !s->is_random && strcmp(path, "-") != 0;
  return s->in ? memory_or_exit(strdup(s->in)) : is_beside ? folder_of(path) : NULL;
}

typedef struct ShapeSearch {
  const Settings *settings;
  char *folder; // of the inputs' files; NULL: there are none
} ShapeSearch;

// As ng_read_options asks: the shape that --shape says, else that of the input's file.
static int find_shape(void *user, const char *input, int64_t extent[NG_MAX_RANK]) {
  const ShapeSearch *search = user;
  const Settings *s = search->settings;
  int rank = -1;
  for (size_t i = 0; i < s->nshapes; i++) {
    if (strcmp(s->shapes[i].name, input) != 0) continue;
    memcpy(extent, s->shapes[i].extent, sizeof s->shapes[i].extent);
    rank = s->shapes[i].rank;
  }
  if (rank >= 0 || !search->folder) return rank;
  ng_context *quiet = session_open(s->max_memory, 0);
  char *path = tensor_path(search->folder, input);
  ng_data *data = access(path, F_OK) == 0 ? ng_data_open(quiet, path) : NULL;
  if (data) {
    const ng_tensor t = ng_data_tensor(data);
    rank = t.rank;
    memcpy(extent, t.extent, sizeof t.extent);
  }
  ng_data_close(data);
  free(path);
  ng_messages_clear(quiet);
  session_close(quiet);
  return rank;
}

// Sets the shapes of --shape, which are errors where they contradict the graph's.
static ng_status set_shapes(ng_graph *g, const Settings *s) {
  ng_status status = NG_OK;
  for (size_t k = 0; k < s->nshapes && status == NG_OK; k++) {
    const ShapeSetting *shape = &s->shapes[k];
    size_t i = 0;
    while (i < ng_graph_input_count(g) && strcmp(ng_graph_input(g, i).name, shape->name) != 0) i++;
    if (i == ng_graph_input_count(g)) {
      plain_error("--shape %s: the graph has no such input", shape->name);
      return NG_WRONG;
    }
    const ng_tensor_info info = ng_graph_input(g, i);
    int64_t extent[NG_MAX_RANK];
    bool is_whole = true;
    for (int axis = 0; axis < shape->rank; axis++) {
      extent[axis] = shape->extent[axis] >= 0 || axis >= info.rank ? shape->extent[axis] : info.extent[axis];
      is_whole &= extent[axis] >= 0;
    }
    if (is_whole) status = ng_graph_set_input_shape(g, i, shape->rank, extent);
  }
  return status;
}

ng_graph *graph_open(ng_context *ctx, const char *path, const Settings *settings, ng_status *status) {
  ng_dim_info *dims = memory_or_exit(calloc(settings->ndims + 1, sizeof *dims));
  for (size_t i = 0; i < settings->ndims; i++) dims[i] = (ng_dim_info){settings->dims[i].name, settings->dims[i].value};
  ShapeSearch search = {settings, data_folder(path, settings)};
  const ng_read_options options = {.constants = settings->constants.items,
                                   .nconstants = settings->constants.count,
                                   .dims = dims,
                                   .ndims = settings->ndims,
                                   .find_shape = find_shape,
                                   .find_shape_user = &search,
                                   .trains_batch_norms = settings->trains_batch_norms};
  ng_graph *g = ng_graph_read_file_with(ctx, path, &options);
  *status = ng_last_status(ctx);
  free(search.folder);
  free(dims);
  if (g && *status == NG_OK) *status = set_shapes(g, settings);
  for (size_t i = 0; g && *status == NG_OK && i < settings->ndims; i++)
    *status = ng_graph_set_dim(g, settings->dims[i].name, settings->dims[i].value);
  if (g && *status != NG_OK) {
    ng_graph_free(g);
    g = NULL;
  }
  return g;
}

static char *list_text(const int64_t *items, int count) {
  TextStream text;
  FILE *out = text_open(&text);
  fputc('[', out);
  for (int i = 0; i < count; i++) fprintf(out, "%s%lld", i ? ", " : "", (long long)items[i]);
  fputc(']', out);
  return text_close(&text);
}

char *shape_text(const ng_tensor_info *info) {
  return list_text(info->extent, info->rank);
}

char *indices_text(const ng_tensor_info *info, int64_t element) {
  int64_t index[NG_MAX_RANK];
  for (int axis = info->rank - 1; axis >= 0; axis--) {
    index[axis] = element % info->extent[axis];
    element /= info->extent[axis];
  }
  return list_text(index, info->rank);
}

static size_t first_state(const Tensors *inputs, const ng_graph *g) {
  return inputs->count - ng_graph_state_count(g);
}

// Whether ng_tensor_read_npy takes data of this type and shape for the input, if any.
static bool is_as_declared(const ng_tensor *t, const ng_tensor_info *info) {
  const bool has_numpy_type = info->type == NG_F64 || info->type == NG_F32 || info->type == NG_F16 ||
                              info->type == NG_S64 || info->type == NG_S32 || info->type == NG_S8 ||
                              info->type == NG_U8; // files of the others hold a type of numpy
  bool ok = t->rank == info->rank && (t->type == info->type || !has_numpy_type);
  for (int axis = 0; ok && axis < t->rank; axis++) ok = info->extent[axis] < 0 || info->extent[axis] == t->extent[axis];
  return ok;
}

static ng_status gather_all(Tensors *inputs, size_t i, const ng_data *data, ng_tensor_info info) {
  const int64_t count = info.extent[0] = ng_data_tensor(data).extent[0];
  const ng_memory_part part = {"the order of samples", (uint64_t)count * sizeof(int64_t)};
  ng_status status = ng_context_check_memory(inputs->ctx, info.name, &part, 1);
  if (status == NG_OK) status = ng_tensor_new(inputs->ctx, &info, &inputs->items[i]);
  if (status != NG_OK) return status;
  int64_t *order = memory_or_exit(calloc((size_t)count + 1, sizeof *order));
  for (int64_t sample = 0; sample < count; sample++) order[sample] = sample;
  ng_data_gather(data, order, count, &inputs->items[i]);
  free(order);
  return status;
}

// Reads samples that fit would convert: along the first axis of the file, of another type or shape than the input's.
// *is_read is false, without a message, if the file holds none.
static ng_status samples_read(Tensors *inputs, ng_graph *g, size_t i, const ng_tensor_info *declared, const char *path,
                              bool *is_read) {
  ng_context *quiet = session_open(ng_context_max_memory(inputs->ctx), 0);
  ng_data *data = ng_data_open(quiet, path);
  const ng_tensor t = data ? ng_data_tensor(data) : (ng_tensor){0};
  *is_read = data && !is_as_declared(&t, declared) && ng_data_check(data, g, i, 1) == NG_OK;
  const ng_status status = *is_read ? gather_all(inputs, i, data, ng_graph_input(g, i)) : NG_OK;
  ng_data_close(data);
  ng_messages_clear(quiet);
  session_close(quiet);
  return status;
}

static ng_status input_read(Tensors *inputs, ng_graph *g, size_t i, const char *path) {
  ng_tensor_info info = ng_graph_input(g, i);
  const bool has_samples = info.rank > 0 && info.dim[0] && i < first_state(inputs, g);
  bool is_read = false;
  for (int axis = 0; axis < info.rank; axis++)
    if (info.dim[axis]) info.extent[axis] = -1; // the error message about a contradiction names the dim
  ng_tensor *t = &inputs->items[i];
  ng_status status = has_samples ? samples_read(inputs, g, i, &info, path, &is_read) : NG_OK;
  if (!is_read) status = ng_tensor_read_npy(inputs->ctx, path, &info, 0, t);
  return status == NG_OK ? ng_graph_set_input_shape(g, i, t->rank, t->extent) : status;
}

// Reads all states from a checkpoint.
static ng_status read_states(Tensors *inputs, ng_graph *g, const char *path) {
  const size_t first = first_state(inputs, g), count = inputs->count - first;
  ng_tensor_info *wanted = memory_or_exit(calloc(count + 1, sizeof *wanted));
  for (size_t i = 0; i < count; i++) {
    wanted[i] = ng_graph_input(g, first + i);
    for (int axis = 0; axis < wanted[i].rank; axis++)
      if (wanted[i].dim[axis]) wanted[i].extent[axis] = -1; // as in input_read
  }
  ng_status status = ng_checkpoint_read(inputs->ctx, path, wanted, count, 0, inputs->items + first);
  for (size_t i = 0; i < count && status == NG_OK; i++) {
    const ng_tensor *t = &inputs->items[first + i];
    bool is_open = false;
    for (int axis = 0; axis < wanted[i].rank; axis++) is_open |= wanted[i].extent[axis] < 0;
    if (is_open) status = ng_graph_set_input_shape(g, first + i, t->rank, t->extent);
  }
  free(wanted);
  return status;
}

// A state without a file gets its first value.
static ng_status inputs_read(Tensors *inputs, size_t count, ng_graph *g, const char *folder, bool is_beside,
                             uint64_t seed) {
  ng_status status = NG_OK;
  const size_t first = first_state(inputs, g);
  for (size_t i = 0; i < count && status == NG_OK; i++) {
    const char *name = ng_graph_input(g, i).name;
    char *path = tensor_path(folder, name);
    const bool is_there = access(path, F_OK) == 0;
    if (!is_there && i >= first) {
      status = ng_tensor_init(g, i - first, seed, &inputs->items[i]);
    } else if (is_beside && !is_there) {
      plain_error("no data for %s: expected --in DIR with %s.npy and so on, --random, or %s", name, name, path);
      status = NG_WRONG;
    } else {
      status = input_read(inputs, g, i, path);
    }
    free(path);
  }
  return status;
}

static ng_status inputs_random(Tensors *inputs, size_t count, ng_graph *g, uint64_t seed) {
  ng_status status = ng_graph_bind(g);
  for (size_t i = 0; i < count && status == NG_OK; i++) status = ng_tensor_random(g, i, seed, &inputs->items[i]);
  return status;
}

ng_status inputs_make(Tensors *inputs, ng_context *ctx, ng_graph *g, const char *path, const Settings *settings) {
  *inputs = tensors_new(ctx, ng_graph_input_count(g));
  const size_t count = settings->state ? first_state(inputs, g) : inputs->count; // the checkpoint has the others
  ng_status status;
  if (settings->is_random) {
    status = inputs_random(inputs, count, g, settings->seed);
  } else if (settings->in) {
    status = inputs_read(inputs, count, g, settings->in, false, settings->seed);
  } else if (strcmp(path, "-") == 0 && count) {
    plain_error("a graph from standard input has no data beside it: expected --in DIR or --random");
    status = NG_WRONG;
  } else {
    char *folder = folder_of(path);
    status = inputs_read(inputs, count, g, folder, true, settings->seed);
    free(folder);
  }
  if (status == NG_OK && settings->state) status = read_states(inputs, g, settings->state);
  return status == NG_OK ? ng_graph_bind(g) : status;
}

ng_status memory_check(ng_context *ctx, ng_graph *g, const char *doing, int noutputs, bool interprets,
                       bool has_inputs) {
  ng_memory m;
  ng_status status = ng_graph_memory(g, &m);
  if (status != NG_OK) return status;
  const uint64_t most = UINT64_MAX / 2;
  const ng_memory_part parts[] = {
      {"inputs", has_inputs ? 0 : m.inputs_nbytes},
      {noutputs > 1 ? "outputs, twice" : "outputs",
       m.outputs_nbytes < most ? m.outputs_nbytes * (uint64_t)noutputs : m.outputs_nbytes},
      {"values and sums in f64", interprets ? m.interpreter_nbytes : 0},
  };
  char *words = text_of_format("%s %s", doing, ng_graph_name(g));
  status = ng_context_check_memory(ctx, words, parts, sizeof parts / sizeof *parts);
  free(words);
  return status;
}

ng_status outputs_make(Tensors *outputs, ng_context *ctx, ng_graph *g) {
  *outputs = tensors_new(ctx, ng_graph_output_count(g));
  ng_status status = NG_OK;
  for (size_t i = 0; i < outputs->count && status == NG_OK; i++) {
    ng_tensor_info info = ng_graph_output(g, i);
    status = ng_tensor_new(ctx, &info, &outputs->items[i]);
  }
  return status;
}
