// Properties of normalisation nodes: the axes of their statistics, and the axes that they reduce.
#ifndef NGRAD_IR_OPERATORS_NORM_H
#define NGRAD_IR_OPERATORS_NORM_H

#include "ir/operators/operator.h"

// The values of the attributes `data_format`, `statistics` and `center`.
enum { FORMAT_NXC, FORMAT_NCX };
enum { STATISTICS_VECTOR, STATISTICS_BROADCAST };
enum { CENTER_MEAN, CENTER_SRC };

// The channel axis of data of this rank by the attribute data_format: 1 or the last.
int node_channel_axis(const Node *node, int rank);

// The channel axis of src. Not for layer norms, and not for batch norms with broadcast statistics.
int norm_channel_axis(const Node *node);

// Whether statistics and parameters have src's rank, with extents of 1 or src's, instead of being vectors [channels].
bool batch_norm_has_broadcast_statistics(const Node *node);

// The number of groups of consecutive channels: of a group norm, its attribute; of an instance norm, the number of
// channels; unknown for other norms. src's shape must be known.
Extent norm_ngroups(const Node *node);

// Mask of the axes of src that a norm reduces for its statistics:
//   batch norm   all but the channel axis; with broadcast statistics, the axes on which statistics have extent 1
//   layer norm   the axes from begin_norm_axis on
//   group norm   all but the batch axis; on the channel axis, the channels of one group
// Shapes must be known.
uint32_t norm_reduced_axes(const Node *node);

// The number of elements of src that one statistic is computed from, and its monomial.
int64_t norm_reduced_nelems(const Node *node);
Monomial norm_reduced_monomial(const Node *node);

// Whether the node is a norm's gradient with so few elements for each statistic that its terms cancel, and the result
// is smaller than their rounding errors in f32. With two elements, for instance, the exact result is proportional to
// epsilon. False if the number is open, whatever its value for the hints.
bool norm_cancels(const Node *node);

// begin_norm_axis counted from the left. The rank of src must be known.
int layer_norm_begin_axis(const Node *node);

#endif
