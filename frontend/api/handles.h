// What the handles of ngrad.h are, and what its functions do around their work.
//
// A function brackets its work with call_begin and call_end: what the layers below told meanwhile is its status.
#ifndef NGRAD_FRONTEND_API_HANDLES_H
#define NGRAD_FRONTEND_API_HANDLES_H

#include "frontend/api/ngrad.h"
#include "ir/graph/graph.h"
#include "ir/support/budget.h"

struct ng_context {
  Allocator allocator;  // the budget's
  Budget budget;        // which lends from the caller's allocator
  Steps steps;          // the allocator's
  int64_t most_steps;   // of what one call compiles
  uint32_t ncompiling;  // calls of compiling_begin without their compiling_end
  const char *compiled; // what is being compiled
  Diagnostics diagnostics;
  Text rendered; // what ng_messages_text returned
  ng_status last_status;
  void (*progress)(void *user, const char *what, double fraction);
  void *progress_user;
  void (*log)(void *user, const ng_message *message);
  void *log_user;
};

struct ng_graph {
  ng_context *ctx;
  Graph *graph;
  bool is_bound;   // every extent has a number
  Text identifier; // empty until asked for
};

typedef struct Call {
  size_t nerrors; // told before
  bool was_out_of_memory;
} Call;

Call call_begin(ng_context *ctx);
ng_status call_end(ng_context *ctx, Call call); // NG_OK, NG_WRONG or NG_OUT_OF_MEMORY

// Between these two, steps are counted, from the first of nested calls on. A call that has used them up ends as out of
// memory, which call_end turns into a message about `name`, a graph's that must stay until compiling_end.
void compiling_begin(ng_context *ctx, const char *name);
void compiling_end(ng_context *ctx);

// What a function that was out of memory and has told nothing returns: NG_OUT_OF_MEMORY, or NG_WRONG for want of steps.
ng_status out_of_memory_status(ng_context *ctx);

// Where extents are unknown, makes numbers of the dims that ng_graph_set_dim gave a value, from which they may follow:
// gradients want to know what is broadcast.
ng_status graph_bind_fixed(ng_graph *g);

// A handle for what a reader returned, which it takes over: NULL stays NULL. Ends the call; its status is the context's
// last one.
ng_graph *graph_wrap(ng_context *ctx, Call call, Graph *graph);

// Tells of a wrong argument; returns NG_USAGE, or NG_OUT_OF_MEMORY when it cannot even be told.
ng_status argument_error(ng_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same for a name that is none of those known; says which is near, or which there are.
ng_status unknown_name(ng_context *ctx, const char *what, const char *name, const char *const *known, size_t nknown);

void report_progress(const ng_context *ctx, const char *what, double fraction);

// What is known of a value; without a name when there is none (NULL).
ng_tensor_info value_info(const Value *v);

#endif
