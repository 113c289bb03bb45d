// What every layer asks of a normalisation node: which axes its statistics keep and which it reduces.
#ifndef NGRAD_IR_NORM_H
#define NGRAD_IR_NORM_H

#include "ir/operator.h"

// The values of the choice attributes.
enum { FORMAT_NXC, FORMAT_NCX };
enum { STATISTICS_VECTOR, STATISTICS_BROADCAST };
enum { CENTER_MEAN, CENTER_SRC };

// The channel axis of data of this rank, as data_format names it.
int node_channel_axis(const Node *node, int rank);

// The channel axis of a batch norm with vector statistics.
int batch_norm_channel_axis(const Node *node);

// Whether the statistics have src's rank, each extent 1 or src's, instead of one vector.
bool batch_norm_has_broadcast_statistics(const Node *node);

// Mask of the axes of src that a norm's sums run over for its statistics: every axis but the channel's, those of
// extent 1 in broadcast statistics, or those from begin_norm_axis on. Shapes must be known.
uint32_t norm_reduced_axes(const Node *node);

// begin_norm_axis counted from the left. The rank of src must be known.
int layer_norm_begin_axis(const Node *node);

#endif
