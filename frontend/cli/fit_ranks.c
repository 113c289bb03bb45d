// Ranks: comparing what must be equal on all of them, and stopping and failing together. Messages use slot 0, which is
// free between steps.
#include "frontend/cli/fit_ranks.h"

#include "frontend/cli/signals.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  DIGEST_NBYTES = 65,
  MOST_COMPARED = 1 << 26, // bytes of a tensor that are compared in full, in some tenths of a second; of more bytes,
                           // samples are compared
  SAMPLED_PARTS = 16,
  SAMPLED_NBYTES = MOST_COMPARED / (SAMPLED_PARTS + 1)
};

typedef struct Common { // an item that must be the same on all ranks
  char *what;           // "--seed"
  char digest[DIGEST_NBYTES];
} Common;

typedef struct CommonList {
  Common *items;
  size_t count;
} CommonList;

static bool has_others(const Fit *f) {
  return f->ranks.count > 1;
}

// Opening

// The ranks of a machine divide its processors.
static int default_threads(int64_t nlocal) {
  const int64_t all = sysconf(_SC_NPROCESSORS_ONLN), own = all / nlocal, allowed = ng_thread_count();
  return (int)(own < 1 ? 1 : own < allowed ? own : allowed);
}

// Without --ranks, each process would train everything into one checkpoint, or other ranks would wait for this one.
static ng_status open_alone(Fit *f) {
  const char *variable;
  f->ranks.count = ng_mpi_launched(&variable);
  if (!has_others(f)) return NG_OK;
  usage_error("mpirun started %" PRId64
              " processes: expected --ranks, to divide the leaves among them; to let each train "
              "alone, unset %s",
              f->ranks.count, variable);
  return NG_USAGE;
}

ng_status ranks_open(Fit *f, Settings *own) {
  int64_t nlocal = 1;
  if (!own->fit.has_ranks) return open_alone(f);
  const ng_status status = ng_mpi_open(f->ctx, &f->ranks, &nlocal);
  if (status != NG_OK || !has_others(f)) return status;
  if (!own->threads) own->threads = default_threads(nlocal);
  if (!own->max_memory) ng_context_set_max_memory(f->ctx, ng_context_max_memory(f->ctx) / (uint64_t)nlocal);
  if (f->ranks.rank) {
    session_set_rank(f->ranks.rank);
    own->fit.is_quiet = true;
    own->is_json = false;
  }
  return NG_OK;
}

// Exchanging

static ng_status exchange(Fit *f, const ng_transfer *sends, size_t nsends, const ng_transfer *receives,
                          size_t nreceives) {
  const ng_ranks *r = &f->ranks;
  if (r->start(r->context, 0, sends, nsends, receives, nreceives) == 0 && r->wait(r->context, 0) == 0) return NG_OK;
  return NG_RANKS_FAILED;
}

// Broadcast: in each round, the first `distance` ranks have the bytes, and each sends them to the rank `distance`
// higher.
ng_status ranks_share(Fit *f, void *bytes, size_t count) {
  const int64_t rank = f->ranks.rank, n = f->ranks.count;
  ng_status status = NG_OK;
  for (int64_t distance = 1; distance < n && status == NG_OK; distance *= 2) {
    const ng_transfer send = {rank + distance, bytes, count}, receive = {rank - distance, bytes, count};
    const bool gives = rank < distance && rank + distance < n, takes = rank >= distance && rank < 2 * distance;
    if (gives || takes) status = exchange(f, &send, gives, &receive, takes);
  }
  return status;
}

// In each round, a rank sends its maxima so far to the rank that is 1, 2, 4, … higher.
ng_status ranks_max(Fit *f, unsigned char *bytes, size_t count) {
  const int64_t rank = f->ranks.rank, n = f->ranks.count;
  ng_status status = NG_OK;
  unsigned char *heard = memory_or_exit(malloc(count));
  for (int64_t distance = 1; distance < n && status == NG_OK; distance *= 2) {
    const ng_transfer send = {(rank + distance) % n, bytes, count}, receive = {(rank + n - distance) % n, heard, count};
    status = exchange(f, &send, 1, &receive, 1);
    for (size_t i = 0; i < count && status == NG_OK; i++)
      if (heard[i] > bytes[i]) bytes[i] = heard[i];
  }
  free(heard);
  return status;
}

// The ranks on which the item differs from rank 0's, as "1, 3 to 5"; "": none. The caller frees it.
static char *differing_ranks(const Fit *f, const char *digests, size_t nitems, size_t item) {
  TextStream text;
  FILE *out = text_open(&text);
  const char *expected = digests + item * DIGEST_NBYTES;
  const size_t stride = nitems * DIGEST_NBYTES, count = (size_t)f->ranks.count;
  bool is_first = true;
  for (size_t r = 1, end; r < count; r = end + 1) {
    end = r;
    while (end < count && memcmp(expected + end * stride, expected, DIGEST_NBYTES) != 0) end++;
    if (end == r) continue;
    fprintf(out, "%s%zu", is_first ? "" : ", ", r);
    is_first = false;
    if (end - r > 1) fprintf(out, "%s%zu", end - r > 2 ? " to " : ", ", end - 1);
  }
  return text_close(&text);
}

// Rank 0 reports all differences in one message.
static bool tell_differences(const Fit *f, const CommonList *list, const char *digests) {
  TextStream all;
  FILE *out = text_open(&all);
  size_t ndifferent = 0;
  for (size_t i = 0; i < list->count; i++) {
    char *ranks = differing_ranks(f, digests, list->count, i);
    if (*ranks)
      fprintf(out, "%s%s (rank%s %s)", ndifferent++ ? "; " : "", list->items[i].what, strpbrk(ranks, ", ") ? "s" : "",
              ranks);
    free(ranks);
  }
  char *text = text_close(&all);
  if (ndifferent) plain_error("ranks differ from rank 0 in %s", text);
  free(text);
  return ndifferent > 0;
}

static ng_status compare(Fit *f, const CommonList *list) {
  const size_t nbytes = list->count * DIGEST_NBYTES, count = (size_t)f->ranks.count;
  const bool is_first = f->ranks.rank == 0;
  char *digests = memory_or_exit(malloc((is_first ? count : 1) * nbytes));
  ng_transfer *receives = memory_or_exit(calloc(count, sizeof *receives));
  for (size_t i = 0; i < list->count; i++) memcpy(digests + i * DIGEST_NBYTES, list->items[i].digest, DIGEST_NBYTES);
  for (size_t r = 1; r < count && is_first; r++)
    receives[r - 1] = (ng_transfer){(int64_t)r, digests + r * nbytes, nbytes};
  const ng_transfer send = {0, digests, nbytes};
  ng_status status = is_first ? exchange(f, NULL, 0, receives, count - 1) : exchange(f, &send, 1, NULL, 0);
  unsigned char differs = status == NG_OK && is_first && tell_differences(f, list, digests);
  if (status == NG_OK) status = ranks_max(f, &differs, 1);
  free(receives);
  free(digests);
  if (status != NG_OK || !differs) return status;
  f->is_common_end = true;
  return NG_WRONG;
}

// What is compared

static void free_list(CommonList *list) {
  for (size_t i = 0; i < list->count; i++) free(list->items[i].what);
  free(list->items);
}

static ng_status add_tensors(Fit *f, CommonList *list, const ng_tensor *tensors, size_t count, const char *what) {
  list->items = memory_or_exit(reallocarray(list->items, list->count + 1, sizeof *list->items));
  Common *c = &list->items[list->count++];
  c->what = memory_or_exit(strdup(what));
  return ng_tensors_sha256(f->ctx, tensors, count, c->digest);
}

static ng_tensor bytes_tensor(const void *bytes, size_t nbytes) {
  return (ng_tensor){.type = NG_U8, .rank = 1, .extent = {(int64_t)nbytes}, .data = (void *)bytes};
}

static ng_status add_bytes(Fit *f, CommonList *list, const void *bytes, size_t nbytes, const char *what) {
  const ng_tensor t = bytes_tensor(bytes, nbytes);
  return add_tensors(f, list, &t, 1, what);
}

static ng_status add_number(Fit *f, CommonList *list, uint64_t number, const char *what) {
  return add_bytes(f, list, &number, sizeof number, what);
}

static ng_status add_text(Fit *f, CommonList *list, const char *text, const char *what) {
  return add_bytes(f, list, text, strlen(text), what);
}

static ng_status add_graph(Fit *f, CommonList *list) {
  char *text = ng_graph_show(f->train.graph, "yaml", NULL);
  if (!text) return ng_last_status(f->ctx);
  char *what = text_of_format("the graph %s", f->train.path);
  const ng_status status = add_text(f, list, text, what);
  free(what);
  ng_text_free(f->ctx, text);
  return status;
}

// Adds the options that may change the kernels.
static ng_status add_passes(Fit *f, CommonList *list) {
  const Settings *s = f->settings;
  TextStream all;
  FILE *out = text_open(&all);
  fprintf(out, "%d %d %" PRIu64, s->no_fuse, s->fast_math, s->memory);
  for (size_t i = 0; i < s->disabled.count; i++) fprintf(out, " disable %s", s->disabled.items[i]);
  for (size_t i = 0; i < s->schedule.count; i++) fprintf(out, " schedule %s", s->schedule.items[i]);
  for (size_t i = 0; i < s->costs.count; i++) fprintf(out, " cost %s", s->costs.items[i]);
  char *text = text_close(&all);
  const ng_status status = add_text(f, list, text, "the options for passes");
  free(text);
  return status;
}

// Adds the shape and the bytes, or samples of the bytes of a large tensor.
static ng_status add_sampled(Fit *f, CommonList *list, const ng_tensor *t, const char *kind, const char *name) {
  const size_t nbytes = ng_tensor_nbytes(t), part = nbytes > MOST_COMPARED ? SAMPLED_NBYTES : 0;
  ng_tensor parts[SAMPLED_PARTS + 2];
  for (size_t i = 0; i < SAMPLED_PARTS; i++)
    parts[i] = bytes_tensor((const char *)t->data + (nbytes - part) / SAMPLED_PARTS * i, part);
  const size_t last = part ? part : nbytes;
  parts[SAMPLED_PARTS] = bytes_tensor((const char *)t->data + nbytes - last, last);
  parts[SAMPLED_PARTS + 1] = bytes_tensor(t->extent, (size_t)t->rank * sizeof *t->extent);
  char *what = text_of_format("%s %s", kind, name);
  const ng_status status = add_tensors(f, list, parts, SAMPLED_PARTS + 2, what);
  free(what);
  return status;
}

static ng_status add_input(Fit *f, CommonList *list, size_t i) {
  const Batches *b = &f->train;
  const ng_tensor t = b->data[i] ? ng_data_tensor(b->data[i]) : b->tensors[i];
  return add_sampled(f, list, &t, "the data of", ng_graph_input(b->graph, i).name);
}

static ng_status add_file(Fit *f, CommonList *list, size_t i) {
  const char *name = ng_graph_file(f->train.graph, i);
  char *folder = folder_of(f->train.path), *path = path_join(folder, name, "");
  ng_data *data = ng_data_open_text(f->ctx, path, 1, 0);
  ng_status status = ng_last_status(f->ctx);
  if (data) {
    const ng_tensor t = ng_data_tensor(data);
    status = add_sampled(f, list, &t, "the file", name);
  }
  ng_data_close(data);
  free(path);
  free(folder);
  return status;
}

// Compares versions first, because other versions may compare other items, and graphs before data, because another
// graph may have other inputs.
static ng_status compare_settings(Fit *f) {
  const FitSettings *s = &f->settings->fit;
  const Batches *b = &f->train;
  CommonList version = {0}, list = {0}, data = {0};
  ng_status status = add_text(f, &version, ng_version(), "ngrad's version");
  if (status == NG_OK) status = compare(f, &version);
  if (status == NG_OK) status = add_graph(f, &list);
  if (status == NG_OK) status = add_passes(f, &list);
  if (status == NG_OK) status = add_number(f, &list, f->settings->seed, "--seed");
  if (status == NG_OK) status = add_number(f, &list, (uint64_t)s->epochs, "--epochs");
  if (status == NG_OK) status = add_number(f, &list, (uint64_t)s->steps, "--steps");
  if (status == NG_OK) status = add_number(f, &list, (uint64_t)b->whole.nsamples, "the batch");
  if (status == NG_OK) status = add_number(f, &list, (uint64_t)b->nsamples, "the number of samples");
  if (status == NG_OK) status = add_number(f, &list, s->keeps_order, "--no-shuffle");
  if (status == NG_OK) status = add_number(f, &list, s->resumes, "--resume");
  if (status == NG_OK) status = compare(f, &list);
  for (size_t i = 0; i < b->ninputs && status == NG_OK; i++) status = add_input(f, &data, i);
  for (size_t i = 0; i < ng_graph_file_count(b->graph) && status == NG_OK; i++) status = add_file(f, &data, i);
  if (status == NG_OK) status = compare(f, &data);
  free_list(&version);
  free_list(&list);
  free_list(&data);
  return status;
}

ng_status ranks_begin(Fit *f) {
  if (!has_others(f)) return NG_OK;
  const ng_status status = compare_settings(f);
  if (status != NG_OK) return status;
  f->train.ranks = &f->ranks;
  if (ng_graph_leaf_count(f->train.graph)) return NG_OK;
  if (!f->ranks.rank)
    plain_error("--ranks: %s has no leaves to divide among ranks; ngrad train --accumulate N, for N of 2 or more, "
                "writes a step with leaves",
                f->train.path);
  f->is_common_end = true;
  return NG_WRONG;
}

ng_status ranks_compare_states(Fit *f, const char *when) {
  const int64_t at[] = {f->at.epoch, f->at.done, f->at.step, (int64_t)f->seed};
  CommonList list = {0};
  if (!has_others(f)) return NG_OK;
  ng_status status = add_tensors(f, &list, f->states, f->train.nstates, when);
  if (status == NG_OK) status = add_bytes(f, &list, at, sizeof at, "the position in the training");
  if (status == NG_OK) status = compare(f, &list);
  free_list(&list);
  return status;
}

// Closing

// mpirun may lose output that it has not passed on yet.
static void abort_all(const Fit *f, ng_status status) {
  const struct timespec delay = {.tv_nsec = 200000000};
  nanosleep(&delay, NULL);
  ng_mpi_abort(&f->ranks, exit_status(status));
  signals_end(SIGTERM); // MPI is not initialised yet
}

void ranks_end_unopened(void) {
  if (ng_mpi_launched(NULL) > 1) abort_all(&(Fit){0}, NG_USAGE);
}

// mpirun ends all ranks as soon as one ends with a status other than 0, so ranks first wait for all messages.
void ranks_close(Fit *f, ng_status status) {
  unsigned char none = 0;
  if (!has_others(f)) return;
  if (status == NG_RANKS_FAILED) plain_error("%s", ng_status_text(status));
  fflush(NULL);
  const bool is_common = status == NG_OK || f->is_common_end;
  if (!is_common) abort_all(f, status);
  else if (ranks_max(f, &none, 1) != NG_OK) abort_all(f, NG_WRONG);
  ng_mpi_close(&f->ranks);
}
