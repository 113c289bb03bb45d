// A graph as primitives of oneDNN that are executed one after the other.
//
// Functions return false or NULL if oneDNN lacks the primitive, or if memory is short. A sequence frees its memory at
// its end.
#ifndef NGRAD_TESTS_BENCH_ONEDNN_SEQUENCE_H
#define NGRAD_TESTS_BENCH_ONEDNN_SEQUENCE_H

#include "tests/bench/onednn/library.h"
#include "tests/bench/peer.h"

#include <stdbool.h>

// Ways to run the same graph, combined.
enum {
  FORM_AS_IMAGES = 1 << 0,   // batch norms of rank 2 and 3 as of rank 4, for which there are vector kernels
  FORM_FUSED_RELU = 1 << 1,  // a ReLU's gradient within the batch norm's, by the mask that oneDNN's own forward kept
  FORM_SUM = 1 << 2,         // Add by the primitive sum instead of binary
  FORM_BLOCKED = 1 << 3,     // batch norms in oneDNN's blocked layout, between reorders
  FORM_POST_OPS = 1 << 4,    // what follows a product or a convolution within its primitive
  FORM_ANY_WEIGHTS = 1 << 5, // weights in a layout that oneDNN chooses, between reorders
  FORM_ANY_DATA = 1 << 6,    // likewise the other operands
  FORM_COUNT = 1 << 7
};

enum { MAX_STEPS = 24, MAX_ARGUMENTS = 12, MAX_MEMORIES = 96, MAX_BUFFERS = 24 };

typedef struct Step {
  dnnl_primitive_t primitive;
  dnnl_exec_arg_t arguments[MAX_ARGUMENTS];
  int narguments;
} Step;

typedef struct Sequence {
  const PeerTask *task;
  unsigned form;
  dnnl_engine_t engine;
  dnnl_stream_t stream;
  Step steps[MAX_STEPS];
  size_t nsteps, nsettled; // the first nsettled have run, and are not run again
  dnnl_memory_t memories[MAX_MEMORIES];
  size_t nmemories;
  void *buffers[MAX_BUFFERS];
  size_t nbuffers;
  void **places;    // by a value's index: where its elements are
  const Node *pool; // whose places of maxima are saved for the gradient; NULL: none
  Desc workspace_desc;
  void *workspace; // the places of maxima
  bool *is_taken;  // by a node's index: another node's primitive computes it, too
} Sequence;

Sequence *sequence_new(const PeerTask *task, unsigned form, dnnl_engine_t engine);
bool sequence_run(Sequence *s); // false: some primitive did not run
void sequence_free(Sequence *s);

// For the functions that add the steps of a node.

void *sequence_buffer(Sequence *s, size_t nbytes); // zeroed, 64-byte aligned
// Adds a primitive as the next step, without arguments; NULL: there is none. The first keeps its description; the
// others destroy it, and the last the hint of a gradient, too. These may be NULL.
Step *sequence_add_primitive(Sequence *s, const_dnnl_primitive_desc_t description);
Step *sequence_add(Sequence *s, dnnl_primitive_desc_t description);
Step *sequence_add_gradient(Sequence *s, dnnl_primitive_desc_t description, dnnl_primitive_desc_t hint);
bool sequence_set(Sequence *s, Step *step, int argument, const Desc *desc, void *data);
bool sequence_set_vector(Sequence *s, Step *step, int argument, const Value *v); // the value as of rank 1
// The arguments of a norm's gradient with scale and shift, except gamma.
bool sequence_set_parameter_gradients(Sequence *s, Step *step, const Value *gamma, const Value *diff_gamma,
                                      const Value *diff_beta);
bool sequence_reorder(Sequence *s, const Desc *from_desc, void *from, const Desc *to_desc, void *to);
// to = weight_a * a + weight_b * b, all of one type and of as many elements.
bool sequence_add_weighted(Sequence *s, const Value *a, float weight_a, const Value *b, float weight_b,
                           const Value *to);
// Executes the steps that were added since the last call, now; sequence_run does not run them again.
bool sequence_settle(Sequence *s);
// If the form has post-ops and *dst's only use is in a node that can be a post-op, makes the node a post-op: sets *dst
// to its result, and *attributes, which the caller destroys. Else *attributes stays NULL.
bool can_be_post_op(const Node *node); // whatever the form
bool sequence_take_post_op(Sequence *s, const Value **dst, dnnl_primitive_attr_t *attributes);

// The layout of the workspace that the primitive writes, or reads.
bool workspace_desc(const Step *step, Desc *desc);

Windows node_windows(const Node *node);
// A side of its windows, [N, C, pixels...].
bool side_desc(Desc *desc, const Node *node, const Value *v);

// A tensor in the layout that a primitive wants.
typedef struct Chosen {
  Desc given, used;   // the graph's layout, and the primitive's
  void *home, *place; // where its elements are, in these
} Chosen;

void desc_of_any(Desc *desc); // leaves the layout to the primitive
// Whether the primitive is a plain loop, which takes minutes, while another form lets oneDNN choose more layouts.
bool is_needless_reference(const Sequence *s, const_dnnl_primitive_desc_t description);
// Adds a reorder, if it is needed, before the primitive's step. used: the primitive's layout; NULL fails.
bool chosen_read(Sequence *s, Chosen *c, const Desc *used, const Desc *given, const Value *v);
// Before the primitive's step; after the step, a reorder to the graph's layout.
bool chosen_write(Sequence *s, Chosen *c, const Desc *used, const Desc *given, const Value *v);
bool chosen_finish(Sequence *s, const Chosen *c);

// dnnl_data_type_undef: oneDNN has no such type.
dnnl_data_type_t onednn_type(Type type);
// All elements in a row.
bool vector_desc(Desc *desc, const Value *v);
// The value's own axes.
bool tensor_desc(Desc *desc, const Value *v);
// The gradient of ReLU that this batch norm's gradient includes, if the form says so; NULL: none.
const Node *fused_relu(const Sequence *s, const Node *batch_norm);

// An operator as primitives.
bool add_eltwise(Sequence *s, const Node *node); // ReLU, GELU, Multiply by a constant number
bool add_gelu_backward(Sequence *s, const Node *node);
bool add_matmul(Sequence *s, const Node *node);
bool add_convolution(Sequence *s, const Node *node);
bool add_convolution_backward_data(Sequence *s, const Node *node);
bool add_convolution_backward_weights(Sequence *s, const Node *node);
bool add_pool(Sequence *s, const Node *node);
bool add_pool_backward(Sequence *s, const Node *node);
bool add_relu_backward(Sequence *s, const Node *node);
bool add_add(Sequence *s, const Node *node);
bool add_layer_norm(Sequence *s, const Node *node);
bool add_layer_norm_backward(Sequence *s, const Node *node);
bool add_batch_norm_inference(Sequence *s, const Node *node);
bool add_batch_norm_training(Sequence *s, const Node *node);
bool add_batch_norm_backward(Sequence *s, const Node *node);
bool add_softmax(Sequence *s, const Node *node);
bool add_softmax_backward(Sequence *s, const Node *node);
bool add_reduce_sum(Sequence *s, const Node *node);
bool add_bias_backward(Sequence *s, const Node *node);

#endif
