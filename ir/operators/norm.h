// What every layer asks of a normalisation node: which axes its statistics keep and which it reduces.
#ifndef NGRAD_IR_OPERATORS_NORM_H
#define NGRAD_IR_OPERATORS_NORM_H

#include "ir/operators/operator.h"

// The values of the choice attributes.
enum { FORMAT_NXC, FORMAT_NCX };
enum { STATISTICS_VECTOR, STATISTICS_BROADCAST };
enum { CENTER_MEAN, CENTER_SRC };

// The channel axis of data of this rank, as data_format names it.
int node_channel_axis(const Node *node, int rank);

// The channel axis of a norm with a data_format, and vector statistics if it is a batch norm.
int norm_channel_axis(const Node *node);

// Whether the statistics have src's rank, each extent 1 or src's, instead of one vector.
bool batch_norm_has_broadcast_statistics(const Node *node);

// How many groups a group norm's channels are in, each of as many neighbours: an instance norm's each in its own.
// Unknown: it is no group norm. Src's shape must be known.
Extent norm_ngroups(const Node *node);

// Mask of the axes of src that a norm's sums run over for its statistics: every axis but the channel's, those of
// extent 1 in broadcast statistics, those from begin_norm_axis on, or all but the batch's, where the channel axis
// counts within a group. Shapes must be known.
uint32_t norm_reduced_axes(const Node *node);

// Elements of src that one statistic is taken over.
int64_t norm_reduced_nelems(const Node *node);
Monomial norm_reduced_monomial(const Node *node); // of their number

// Whether the node is a norm's gradient of statistics over so few elements that cancellation leaves a remainder smaller
// than f32's rounding of the terms: with two elements to a statistic only epsilon is left.
bool norm_cancels(const Node *node);

// begin_norm_axis counted from the left. The rank of src must be known.
int layer_norm_begin_axis(const Node *node);

#endif
