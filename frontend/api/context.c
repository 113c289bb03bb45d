// Contexts: the allocator with its budget, the messages, and the status of a call.
#include "frontend/api/handles.h"

#include "frontend/api/available_memory.h"
#include "ir/support/unfinished.h"

#include <stdarg.h>
#include <stdio.h>

const char *ng_version(void) {
  return NGRAD_VERSION;
}

int ng_bits(void) {
  return NGRAD_BITS;
}

const char *ng_status_text(ng_status status) {
  switch (status) {
  case NG_OK: return "done";
  case NG_WRONG: return "the graph or its data is wrong";
  case NG_USAGE: return "an argument is wrong";
  case NG_DIFFERENT: return "a comparison failed";
  case NG_RANKS_FAILED: return "an exchange with other ranks failed";
  case NG_COMPILER_FAILED: return "the C compiler is missing or failed";
  case NG_OUT_OF_MEMORY: return "out of memory";
  }
  return "unknown status";
}

// The default limit of steps, which allows some seconds and 2 GB. A training step of ResNet-50 takes 1.7 million steps,
// a chain of 100000 nodes 7 million.
#define DEFAULT_MOST_STEPS ((int64_t)1 << 24)

// The default memory budget.
static size_t default_max_memory(void) {
  const uint64_t part = available_memory("") / 4 * 3; // the rest is for other processes
  return part < SIZE_MAX ? (size_t)part : SIZE_MAX;
}

void ng_context_set_max_memory(ng_context *ctx, uint64_t nbytes) {
  ctx->budget.limit = !nbytes ? default_max_memory() : nbytes < SIZE_MAX ? (size_t)nbytes : SIZE_MAX;
}

void ng_context_set_max_steps(ng_context *ctx, uint64_t nsteps) {
  ctx->most_steps = !nsteps ? DEFAULT_MOST_STEPS : nsteps < INT64_MAX ? (int64_t)nsteps : INT64_MAX;
}

uint64_t ng_context_max_memory(const ng_context *ctx) {
  return ctx->budget.limit;
}

ng_context *ng_context_new(const ng_allocator *allocator) {
  Allocator a = system_allocator;
  if (allocator) a = (Allocator){.resize = allocator->resize, .context = allocator->user};
  ng_context *ctx = allocator_alloc(&a, sizeof *ctx);
  if (!ctx) return NULL;
  *ctx = (ng_context){0};
  budget_init(&ctx->budget, a, default_max_memory());
  ctx->allocator = budget_allocator(&ctx->budget);
  ctx->allocator.steps = &ctx->steps;
  atomic_init(&ctx->steps.left, INT64_MAX);
  ctx->most_steps = DEFAULT_MOST_STEPS;
  diagnostics_init(&ctx->diagnostics, &ctx->allocator);
  text_init(&ctx->rendered, &ctx->budget.lender); // messages about the budget must not be limited by it
  return ctx;
}

void ng_context_free(ng_context *ctx) {
  if (!ctx) return;
  diagnostics_deinit(&ctx->diagnostics);
  text_deinit(&ctx->rendered);
  const Allocator a = ctx->budget.lender;
  allocator_free(&a, ctx);
}

void ng_abandon(void) {
  unfinished_abandon();
}

size_t ng_message_count(const ng_context *ctx) {
  return ctx->diagnostics.count;
}

static ng_message message_of(const Diagnostic *item) {
  return (ng_message){item->severity == SEVERITY_ERROR, item->file, item->line, item->column, item->message};
}

ng_message ng_message_at(const ng_context *ctx, size_t i) {
  return message_of(&ctx->diagnostics.items[i]);
}

const char *ng_messages_text(ng_context *ctx, int colour) {
  text_deinit(&ctx->rendered);
  diagnostics_print(&ctx->diagnostics, &ctx->rendered, colour != 0);
  if (ctx->diagnostics.out_of_memory && atomic_load(&ctx->budget.refused)) {
    char limit[NBYTES_TEXT];
    text_format(&ctx->rendered, "note: the memory budget is %s; raise it with --max-memory\n",
                nbytes_string(ctx->budget.limit, limit));
  }
  return ctx->rendered.out_of_memory ? "error: out of memory\n" : text_string(&ctx->rendered);
}

void ng_messages_clear(ng_context *ctx) {
  diagnostics_deinit(&ctx->diagnostics);
  atomic_store(&ctx->budget.refused, false);
}

ng_status ng_last_status(const ng_context *ctx) {
  return ctx->last_status;
}

static void log_diagnostic(void *context, const Diagnostic *item) {
  const ng_context *ctx = context;
  const ng_message message = message_of(item);
  ctx->log(ctx->log_user, &message);
}

void ng_context_set_log(ng_context *ctx, void (*log)(void *user, const ng_message *message), void *user) {
  ctx->log = log;
  ctx->log_user = user;
  ctx->diagnostics.listen = log ? log_diagnostic : NULL;
  ctx->diagnostics.listener = ctx;
}

void ng_context_set_progress(ng_context *ctx, void (*progress)(void *user, const char *what, double fraction),
                             void *user) {
  ctx->progress = progress;
  ctx->progress_user = user;
}

void report_progress(const ng_context *ctx, const char *what, double fraction) {
  if (ctx->progress) ctx->progress(ctx->progress_user, what, fraction);
}

Call call_begin(ng_context *ctx) {
  Call call = {ctx->diagnostics.nerrors, ctx->diagnostics.out_of_memory};
  ctx->diagnostics.out_of_memory = false;
  return call;
}

void compiling_begin(ng_context *ctx, const char *name) {
  snprintf(ctx->compiled, sizeof ctx->compiled, "%s", name);
  if (!ctx->ncompiling++) atomic_store_explicit(&ctx->steps.left, ctx->most_steps, memory_order_relaxed);
  else if (ctx->has_no_steps) atomic_store_explicit(&ctx->steps.left, -1, memory_order_relaxed);
}

void compiling_end(ng_context *ctx) {
  if (--ctx->ncompiling) return;
  ctx->has_no_steps = false;
  atomic_store_explicit(&ctx->steps.left, INT64_MAX, memory_order_relaxed);
}

void ng_steps_begin(ng_context *ctx, const char *name) {
  compiling_begin(ctx, name);
}

void ng_steps_end(ng_context *ctx) {
  compiling_end(ctx);
}

// Writing the message takes steps too, so steps are unlimited from here until the next call.
static void tell_steps(ng_context *ctx) {
  atomic_store_explicit(&ctx->steps.left, INT64_MAX, memory_order_relaxed);
  ctx->has_no_steps = true;
  ctx->diagnostics.out_of_memory = false;
  error_at(
      &ctx->diagnostics, (Position){0},
      "%s takes more than %lld steps to compile; divide it into smaller graphs, or raise the limit with --max-steps",
      ctx->compiled, (long long)ctx->most_steps);
}

ng_status out_of_memory_status(ng_context *ctx) {
  Call call = call_begin(ctx);
  error_out_of_memory(&ctx->diagnostics);
  return call_end(ctx, call);
}

ng_status call_end(ng_context *ctx, Call call) {
  Diagnostics *d = &ctx->diagnostics;
  if (d->out_of_memory && ctx->ncompiling && steps_are_used_up(&ctx->steps)) tell_steps(ctx);
  ng_status status = d->out_of_memory ? NG_OUT_OF_MEMORY : d->nerrors > call.nerrors ? NG_WRONG : NG_OK;
  d->out_of_memory |= call.was_out_of_memory; // an earlier call's loss of a message remains reported
  return status;
}

ng_status argument_error(ng_context *ctx, const char *format, ...) {
  char message[1024];
  va_list args;
  va_start(args, format);
  vsnprintf(message, sizeof message, format, args);
  va_end(args);
  Call call = call_begin(ctx);
  error_at(&ctx->diagnostics, (Position){0}, "%s", message);
  return call_end(ctx, call) == NG_OUT_OF_MEMORY ? NG_OUT_OF_MEMORY : NG_USAGE;
}

ng_status unknown_name(ng_context *ctx, const char *what, const char *name, const char *const *known, size_t nknown) {
  enum { MOST_LISTED = 8 };
  const char *nearest = nearest_word(name, known, nknown);
  if (nearest) return argument_error(ctx, "unknown %s %s, did you mean %s", what, name, nearest);
  Text list;
  text_init(&list, &ctx->allocator);
  for (size_t i = 0; i < nknown && i < MOST_LISTED; i++)
    text_format(&list, "%s%s", i == 0 ? ", expected " : i + 1 == nknown ? " or " : ", ", known[i]);
  if (nknown > MOST_LISTED) text_add_string(&list, " and so on");
  ng_status status = argument_error(ctx, "unknown %s %s%s", what, name, text_string(&list));
  text_deinit(&list);
  return status;
}
