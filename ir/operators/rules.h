// The inference and check functions that rows of ir/operators/operators.def name; each is in its family's file.
#ifndef NGRAD_IR_OPERATORS_RULES_H
#define NGRAD_IR_OPERATORS_RULES_H

#include "ir/operators/infer.h"

// elementwise.c
bool infer_type_cast(Inference *inf, Node *node);
bool infer_binary(Inference *inf, Node *node);
bool infer_binary_arithmetic(Inference *inf, Node *node);
bool infer_bias_add(Inference *inf, Node *node);
bool infer_bias_add_backward(Inference *inf, Node *node);
bool infer_prelu(Inference *inf, Node *node);
bool infer_prelu_backward(Inference *inf, Node *node);
bool check_clamp(Node *node, Diagnostics *d);
bool check_elu_backward(Node *node, Diagnostics *d);

// reduce.c
bool infer_reduce(Inference *inf, Node *node);
bool infer_arg_reduce(Inference *inf, Node *node); // indices are s32, unless s64 is declared

// softmax.c
bool infer_softmax(Inference *inf, Node *node);
bool infer_softmax_backward(Inference *inf, Node *node);
void warn_softmax(const Node *node, Diagnostics *d);

// loss.c
bool infer_softmax_cross_entropy(Inference *inf, Node *node);
bool infer_softmax_cross_entropy_backward(Inference *inf, Node *node);
bool infer_loss(Inference *inf, Node *node);
bool check_label_smoothing(Node *node, Diagnostics *d);
bool check_cross_entropy_backward(Node *node, Diagnostics *d);

// movement.c
bool infer_static_reshape(Inference *inf, Node *node);
bool infer_static_transpose(Inference *inf, Node *node);
bool infer_diagonal(Inference *inf, Node *node);
bool infer_gen_index(Inference *inf, Node *node);
bool infer_concat(Inference *inf, Node *node);
bool infer_slice(Inference *inf, Node *node);
bool infer_pad(Inference *inf, Node *node);
bool infer_split(Inference *inf, Node *node);
bool infer_tile(Inference *inf, Node *node);
void tile_domain(const Node *node, Domain *d); // src's shape, and an extra axis for each repeated axis
bool infer_one_hot(Inference *inf, Node *node);
bool infer_gather(Inference *inf, Node *node);
bool infer_gradient(Inference *inf, Node *node);
bool infer_gather_backward(Inference *inf, Node *node);
void gather_backward_domain(const Node *node, Domain *d); // diff_src's shape, and the axes of indices

// interpolate.c
bool infer_interpolate(Inference *inf, Node *node);
bool infer_interpolate_backward(Inference *inf, Node *node);
void interpolate_backward_domain(const Node *node, Domain *d);
bool check_interpolate(Node *node, Diagnostics *d);

// window.c. infer_window_ranks infers the rank of all operands on a side, and checks the lengths of lists.
// infer_windows infers spatial extents, once ranks are known: the small side's from the large side's, or for
// ConvTranspose the large side's from the small side's.
bool infer_window_ranks(Inference *inf, const Node *node);
bool infer_windows(Inference *inf, const Node *node);
bool check_window(Node *node, Diagnostics *d);
void window_domain(const Node *node, Domain *d);  // an extra axis over the taps for each spatial axis
void winners_domain(const Node *node, Domain *d); // likewise, but none if the taps are few: an expression each

// For an output whose shape is given by an attribute, an operand or a declaration: infer_given_shape reads the
// attribute or operand, and check_given_shape requires one of the three.
bool infer_given_shape(Inference *inf, const Node *node);
bool check_given_shape(const Node *node, Diagnostics *d);

// contraction.c
bool infer_matmul(Inference *inf, Node *node);
void matmul_domain(const Node *node, Domain *d);
bool infer_convolution(Inference *inf, Node *node);
void convolution_domain(const Node *node, Domain *d);
bool check_convolution(Node *node, Diagnostics *d);

// pool.c
bool infer_pool(Inference *inf, Node *node);
bool infer_max_pool_backward(Inference *inf, Node *node);
bool infer_max_pool_winners(Inference *inf, Node *node);
bool infer_max_pool_scatter(Inference *inf, Node *node);
bool infer_max_pool_gather(Inference *inf, Node *node);
bool check_max_pool_scatter(Node *node, Diagnostics *d);
bool infer_avg_pool_backward(Inference *inf, Node *node);
bool check_avg_pool_backward(Node *node, Diagnostics *d);

// dropout.c
bool infer_dropout(Inference *inf, Node *node);

// leaves.c
bool infer_leaf(Inference *inf, Node *node);
bool infer_all_reduce(Inference *inf, Node *node);

// optimizer.c
bool infer_optimizer(Inference *inf, Node *node);
bool check_optimizer(Node *node, Diagnostics *d);

// quantize.c
bool infer_quantize(Inference *inf, Node *node);
bool infer_dynamic_quantize(Inference *inf, Node *node);
bool check_quantize(Node *node, Diagnostics *d);
void warn_quantize(const Node *node, Diagnostics *d);
void warn_dynamic_quantize(const Node *node, Diagnostics *d);

// norm.c
bool infer_norm(Inference *inf, Node *node); // all but RMSNorm
bool infer_rms_norm(Inference *inf, Node *node);
bool infer_rms_norm_backward(Inference *inf, Node *node);
bool check_rms_norm_backward(Node *node, Diagnostics *d);
bool check_batch_norm_forward_training(Node *node, Diagnostics *d);
bool check_batch_norm_backward(Node *node, Diagnostics *d);
bool check_layer_norm(Node *node, Diagnostics *d);
bool check_layer_norm_backward(Node *node, Diagnostics *d);

#endif
