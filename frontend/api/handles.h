// The structs behind ngrad.h's handles, and the brackets around its functions.
//
// A function does its work between call_begin and call_end; the errors reported in between determine its status.
#ifndef NGRAD_FRONTEND_API_HANDLES_H
#define NGRAD_FRONTEND_API_HANDLES_H

#include "frontend/api/ngrad.h"
#include "ir/graph/graph.h"
#include "ir/support/budget.h"

struct ng_context {
  Allocator allocator; // the budget's
  Budget budget;       // lends from the caller's allocator
  Steps steps;         // counted by the allocator
  int64_t most_steps;  // limit of the steps that one call may spend on compiling
  uint32_t ncompiling; // calls of compiling_begin that are still open
  char compiled[256];  // name of the graph that is being compiled
  bool has_no_steps;   // the steps were used up, and this was reported
  Diagnostics diagnostics;
  Text rendered; // the text that ng_messages_text returned
  ng_status last_status;
  void (*progress)(void *user, const char *what, double fraction);
  void *progress_user;
  void (*log)(void *user, const ng_message *message);
  void *log_user;
};

struct ng_graph {
  ng_context *ctx;
  Graph *graph;
  bool is_bound;            // every extent has a number
  Text identifier;          // empty until requested
  Text step_identifier;     // the same
  ng_parameter *parameters; // of a training step, in the graph's memory
  size_t nparameters;
  ng_narrow_weight *narrow; // of ng_graph_narrow_weights, likewise
  size_t nnarrow;
};

typedef struct Call {
  size_t nerrors; // number of errors before the call
  bool was_out_of_memory;
} Call;

Call call_begin(ng_context *ctx);
ng_status call_end(ng_context *ctx, Call call); // NG_OK, NG_WRONG or NG_OUT_OF_MEMORY

// Steps are counted from compiling_begin to compiling_end; in nested pairs, from the outermost one. When the steps are
// used up, allocation fails, and call_end turns that into a message about `name`, a graph's name.
void compiling_begin(ng_context *ctx, const char *name);
void compiling_end(ng_context *ctx);

// The status of a function that ran out of memory without a message: NG_OUT_OF_MEMORY, or NG_WRONG if its steps were
// used up.
ng_status out_of_memory_status(ng_context *ctx);

// If extents are unknown, fixes the dims that ng_graph_set_dim set, since other extents may follow from them. Gradients
// must know which operands are broadcast.
ng_status graph_bind_fixed(ng_graph *g);

// Wraps a reader's result in a handle, which owns it: NULL stays NULL. Ends the call and sets the context's last
// status.
ng_graph *graph_wrap(ng_context *ctx, Call call, Graph *graph);

// Reports a wrong argument. Returns NG_USAGE, or NG_OUT_OF_MEMORY without memory for the message.
ng_status argument_error(ng_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same for an unknown name; suggests a similar known name, or lists the known ones.
ng_status unknown_name(ng_context *ctx, const char *what, const char *name, const char *const *known, size_t nknown);

void report_progress(const ng_context *ctx, const char *what, double fraction);

// Describes a value; NULL gives an info without a name.
ng_tensor_info value_info(const Value *v);

#endif
