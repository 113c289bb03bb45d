// What the handles of ngrad.h are, and what its functions do around their work.
//
// A function brackets its work with call_begin and call_end: what the layers below told meanwhile is its status.
#ifndef NGRAD_FRONTEND_API_HANDLES_H
#define NGRAD_FRONTEND_API_HANDLES_H

#include "frontend/api/ngrad.h"
#include "ir/graph/tensor.h"
#include "ir/operators/operator.h"
#include "ir/support/budget.h"

struct ng_context {
  Allocator allocator; // the budget's
  Budget budget;       // which lends from the caller's allocator
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

// A handle for what a reader returned, which it takes over: NULL stays NULL. Ends the call; its status is the context's
// last one.
ng_graph *graph_wrap(ng_context *ctx, Call call, Graph *graph);

// Tells of a wrong argument; returns NG_USAGE, or NG_OUT_OF_MEMORY when it cannot even be told.
ng_status argument_error(ng_context *ctx, const char *format, ...) __attribute__((format(printf, 2, 3)));

// The same for a name that is none of those known; says which is near, or which there are.
ng_status unknown_name(ng_context *ctx, const char *what, const char *name, const char *const *known, size_t nknown);

// Hands the bytes over to the caller, who frees them with ng_text_free, or tells that there was no memory for them.
char *text_release(ng_context *ctx, Text *t);

void report_progress(const ng_context *ctx, const char *what, double fraction);

// The budget that a context begins with.
size_t default_max_memory(void);

// Memory for the tensor `name` (NULL: it has none). False after telling that there is none, or too little left of the
// budget.
bool tensor_make(ng_context *ctx, const char *name, Tensor *t);

// ng_context_check_memory for one part: "interpreting NAME needs ...".
ng_status graph_check_memory(ng_graph *g, const char *doing, const char *what, uint64_t nbytes);

uint64_t values_nbytes(Value *const *values, size_t count); // as tensors; all extents have numbers

// What is known of a value; without a name when there is none (NULL).
ng_tensor_info value_info(const Value *v);

const char *attribute_kind_name(AttributeKind kind);

// A tensor of the API as the layers below see it, and back. Data is shared.
Tensor tensor_of_api(const ng_tensor *t);
ng_tensor tensor_to_api(const Tensor *t);

// Why a graph is not run with these: one of them is unlike `wanted`, which has what the inputs and then the outputs
// must be like, is misaligned, or overlaps an output. NULL: it is. refused_for_memory: that could not be found out.
const char *tensors_refusal(const ng_tensor *inputs, size_t ninputs, const ng_tensor *outputs, size_t noutputs,
                            const Tensor *wanted, const Allocator *allocator);
extern const char refused_for_memory[];

// What ng_tensor_random fills a tensor with.
void random_fill(Tensor *t, uint64_t seed, uint64_t i, ValueRange range);

#endif
