#!/bin/sh
# The order of a sum follows from the extents that it reduces, whatever the others are and whether they are open: one
# graph of many small parts is emitted with an open N, and for some fixed N. Results of both must have the same bits,
# and those of a sample, whose names begin with row_, must be the same alone and among 65. Neither may fusion decide any:
# for one N, each node is also emitted as a kernel of its own. Results whose names begin with
# width_ are compared from N = 5 on: a fixed extent of 1 is no axis, and norms of at most 4 elements are computed in f64
# if that is known.
#
#   orders.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
has gcc || { echo 'left out: orders: no gcc'; exit 77; }
level=-O0 extents='1 2 5 16 33 65'
! takes_all || level=-O2 extents='1 2 3 5 8 15 16 17 31 32 33 50 64 65'

# Adds a part of the graph. In its inputs, all f32, a line each, its nodes and its outputs, @ is the part's name.
: >inputs
: >nodes
outputs='' ninputs=0 noutputs=0
part() { # NAME INPUTS NODES OUTPUT...
  name=$1
  echo "$2" | sed '/^ *$/d; s/^ *\([^:]*\): */- {name: \1, type: f32, shape: /; s/$/}/; s/@/'"$name"'/g' >part_inputs
  echo "$3" | sed 's/^ *{/- {/; s/@/'"$name"'/g' >>nodes
  ninputs=$((ninputs + $(wc -l <part_inputs)))
  cat part_inputs >>inputs
  shift 3
  for output; do
    outputs="$outputs${outputs:+, }$(echo "$output" | sed "s/@/$name/g")"
    noutputs=$((noutputs + 1))
  done
}

# Products: [N, K] by [K, M], and gradients by weights, which are summed over N
for size in '784 32' '3000 20' '33 17' '64 1' '5 3' '2048 3'; do
  k=${size% *} m=${size#* }
  part "product_${k}_$m" "x_@: [N, $k]
    w_@: [$k, $m]
    b_@: [$m]" "{op: MatMul, inputs: [x_@, w_@, b_@], outputs: [row_@]}" row_@
  part "transposed_${k}_$m" "x_@: [N, $k]
    w_@: [$m, $k]" "{op: MatMul, inputs: [x_@, w_@], outputs: [row_@], attributes: {transpose_b: true}}" row_@
done
for size in '40 10' '16 16' '3 5'; do
  k=${size% *} m=${size#* }
  part "by_weights_${k}_$m" "x_@: [N, $k]
    dy_@: [N, $m]" "{op: MatMul, inputs: [x_@, dy_@], outputs: [dw_@], attributes: {transpose_a: true}}
    {op: ReduceSum, inputs: [dy_@], outputs: [db_@], attributes: {axes: [0]}}" dw_@ db_@
done
# 65 * 50 products are several chains, 16 * 50 are one.
part chains 'x_@: [N, 50, 3, 1]
  dy_@: [N, 50, 1, 20]' '{op: Multiply, inputs: [x_@, dy_@], outputs: [xdy_@]}
  {op: ReduceSum, inputs: [xdy_@], outputs: [dw_@], attributes: {axes: [0, 1]}}' dw_@
part attention 'q_@: [3, N, 16]
  k_@: [3, N, 16]
  v_@: [3, N, 16]' '{op: MatMul, inputs: [q_@, k_@], outputs: [s_@], attributes: {transpose_b: true}}
  {op: SoftMax, inputs: [s_@], outputs: [p_@], attributes: {axis: 2}}
  {op: MatMul, inputs: [p_@, v_@], outputs: [y_@]}' y_@

# Rows of many lengths, and sums over N
for c in 3 10 16 17 100 768; do
  part "softmax_$c" "x_@: [N, $c]" '{op: SoftMax, inputs: [x_@], outputs: [row_@], attributes: {axis: 1}}' row_@
  part "sums_$c" "x_@: [N, $c]" '{op: ReduceSum, inputs: [x_@], outputs: [row_@], attributes: {axes: [1]}}
    {op: ReduceSum, inputs: [x_@], outputs: [columns_@], attributes: {axes: [0]}}
    {op: ReduceSum, inputs: [x_@], outputs: [all_@], attributes: {axes: [0, 1]}}' row_@ columns_@ all_@
  part "layer_norm_$c" "x_@: [N, $c]
    dy_@: [N, $c]
    mean_@: [N]
    variance_@: [N]
    gamma_@: [$c]" "{op: LayerNormBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [row_dx_@, dg_@, db_@]}" \
    row_dx_@ dg_@ db_@
done
part long_row 'x_@: [N, 20000]' '{op: SoftMax, inputs: [x_@], outputs: [p_@], attributes: {axis: 1}}
  {op: ReduceSum, inputs: [p_@], outputs: [row_@], attributes: {axes: [1]}}
  {op: ReduceL2, inputs: [x_@], outputs: [row_l2_@], attributes: {axes: [1]}}' row_@ row_l2_@
# The sine of a large number depends on all bits of f64.
for axes in 1 '0, 1'; do
  row=$([ "$axes" = 1 ] && echo row || echo all)
  part "f64_${row}s" 'x_@: [N, 10000]' "{op: TypeCast, inputs: [x_@], outputs: [{name: h_@, type: f64}]}
    {op: Square, inputs: [h_@], outputs: [e_@]}
    {op: ReduceSum, inputs: [e_@], outputs: [s_@], attributes: {axes: [$axes]}}
    {op: Pow, inputs: [s_@], outputs: [p_@], attributes: {beta: 4}}
    {op: Sin, inputs: [p_@], outputs: [z_@]}
    {op: TypeCast, inputs: [z_@], outputs: [{name: ${row}_@, type: f32}]}" "${row}_@"
done
part few_channels 'x_@: [N, 2, 24, 25]
  dy_@: [N, 2, 24, 25]
  mean_@: [2]
  variance_@: [2]
  gamma_@: [2]' '{op: BatchNormTrainingBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [dx_@, dg_@, db_@], attributes: {epsilon: 1.0e-5, data_format: NCX}}' dx_@ dg_@ db_@
part softmax_of_channels 'x_@: [N, 10, 6, 6]' '{op: SoftMax, inputs: [x_@], outputs: [row_@], attributes: {axis: 1}}' row_@
part squares 'x_@: [N, 8, 7, 7]' '{op: Multiply, inputs: [x_@, x_@], outputs: [y_@]}
  {op: ReduceSum, inputs: [y_@], outputs: [row_planes_@], attributes: {axes: [2, 3]}}
  {op: ReduceSum, inputs: [y_@], outputs: [channels_@], attributes: {axes: [0, 2, 3]}}
  {op: ReduceSum, inputs: [y_@], outputs: [row_middle_@], attributes: {axes: [1, 2]}}
  {op: ReduceSum, inputs: [y_@], outputs: [ends_@], attributes: {axes: [0, 3]}}' row_planes_@ channels_@ row_middle_@ ends_@

# Convolutions and batch norms
for format in NCX NXC; do
  for size in '16 3 5 3 1 1' '16 3 5 3 2 1' '2 2 5 5 1 1' '3 8 9 3 1 1' '16 16 7 3 1 1' '16 24 7 3 2 1' '32 8 5 1 1 1' '24 24 7 3 1 24' '40 3 1 3 1 1' '40 24 1 3 1 1'; do
    # shellcheck disable=SC2086
    set -- $size
    shape="N, $1, $3, $3"
    [ $format = NCX ] || shape="N, $3, $3, $1"
    part "conv_$1_$2_$3_$4_$5_$format" "x_@: [$shape]
      w_@: [$2, $(($1 / $6)), $4, $4]" "{op: Convolution, inputs: [x_@, w_@], outputs: [row_@], attributes: {strides: [$5, $5], pads_begin: [$(($4 / 2)), $(($4 / 2))], pads_end: [$(($4 / 2)), $(($4 / 2))], dilations: [1, 1], groups: $6, data_format: $format, weights_format: OIX}}" row_@
  done
  for size in '16 12' '3 9' '40 5'; do
    c=${size% *} h=${size#* } shape="N, ${size% *}, ${size#* }, ${size#* }"
    [ $format = NCX ] || shape="N, $h, $h, $c"
    part "batch_norm_${c}_$format" "x_@: [$shape]
      dy_@: [$shape]
      mean_@: [$c]
      variance_@: [$c]
      gamma_@: [$c]" "{op: BatchNormTrainingBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [dx_@, dg_@, db_@], attributes: {epsilon: 1e-5, data_format: $format}}" \
      dx_@ dg_@ db_@
    part "batch_statistics_${c}_$format" "x_@: [$shape]
      mean_@: [$c]
      variance_@: [$c]
      gamma_@: [$c]
      beta_@: [$c]" "{op: BatchNormForwardTraining, inputs: [x_@, mean_@, variance_@, gamma_@, beta_@], outputs: [y_@, m_@, v_@, bm_@, bv_@], attributes: {epsilon: 1e-5, momentum: 0.9, data_format: $format}}" \
      y_@ m_@ v_@
  done
done

# A sum over all axes of a sample, beside a tensor that has only one of them
for format in NCX NXC; do
  shape='N, 16, 6, 7'
  [ $format = NCX ] || shape='N, 6, 7, 16'
  part "group_norm_$format" "x_@: [$shape]
    gamma_@: [16]
    beta_@: [16]" "{op: GroupNorm, inputs: [x_@, gamma_@, beta_@], outputs: [row_@, row_mean_@, row_variance_@], attributes: {groups: 1, data_format: $format}}" \
    row_@ row_mean_@ row_variance_@
done
# Which results of a norm are used decides no order.
for size in '1 6 5' '2 8 4'; do
  for format in NCX NXC; do
    # shellcheck disable=SC2086
    set -- $size
    shape="N, $2, $3, $3"
    [ $format = NCX ] || shape="N, $3, $3, $2"
    for used in '' row_y row_mean row_variance; do
      # shellcheck disable=SC2046,SC2086 # several names
      part "group_norm_$1_$2_$format${used:+_alone_$used}" "x_@: [$shape]
        gamma_@: [$2]
        beta_@: [$2]" "{op: GroupNorm, inputs: [x_@, gamma_@, beta_@], outputs: [row_y_@, row_mean_@, row_variance_@], attributes: {groups: $1, data_format: $format}}" \
        $(printf '%s_@ ' ${used:-row_y row_mean row_variance})
    done
    for used in '' row_dx dg db; do
      # shellcheck disable=SC2046,SC2086 # several names
      part "group_norm_gradient_$1_$2_$format${used:+_alone_$used}" "x_@: [$shape]
        dy_@: [$shape]
        mean_@: [N, $1]
        variance_@: [N, $1]
        gamma_@: [$2]" "{op: GroupNormBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [row_dx_@, dg_@, db_@], attributes: {groups: $1, data_format: $format}}" \
        $(printf '%s_@ ' ${used:-row_dx dg db})
    done
  done
done
part scaled_sample 'x_@: [N, 30, 40]
  scale_@: [30, 1]' '{op: Multiply, inputs: [x_@, scale_@], outputs: [p_@]}
  {op: ReduceMean, inputs: [p_@], outputs: [row_@], attributes: {axes: [1, 2]}}' row_@

# What is fused beside a sum or a product
part maximum 'x_@: [N, 37, 40]' '{op: Exp, inputs: [x_@], outputs: [e_@]}
  {op: ReduceSum, inputs: [e_@], outputs: [all_@], attributes: {axes: [0, 1, 2]}}
  {op: ReduceSum, inputs: [e_@], outputs: [row_@], attributes: {axes: [1, 2]}}
  {op: ReduceMax, inputs: [e_@], outputs: [m_@], attributes: {axes: [1, 2], keep_dims: true}}
  {op: Multiply, inputs: [e_@, m_@], outputs: [row_y_@]}' all_@ row_@ row_y_@
for width in 40 48 64; do
  part "centred_$width" "x_@: [N, 30, $width]" '{op: ReduceMean, inputs: [x_@], outputs: [m_@], attributes: {axes: [2], keep_dims: true}}
    {op: Subtract, inputs: [x_@, m_@], outputs: [c_@]}
    {op: Exp, inputs: [c_@], outputs: [e_@]}
    {op: ReduceSum, inputs: [e_@], outputs: [row_@], attributes: {axes: [1, 2]}}
    {op: ReduceSum, inputs: [e_@], outputs: [all_@], attributes: {axes: [0, 1, 2]}}' row_@ all_@
done
part added_numbers 'x_@: [N, 20, 30]
  b_@: [30]
  n_@: [20, 1]' '{op: Add, inputs: [x_@, b_@], outputs: [y_@]}
  {op: Subtract, inputs: [y_@, n_@], outputs: [z_@]}
  {op: Square, inputs: [z_@], outputs: [q_@]}
  {op: ReduceSum, inputs: [q_@], outputs: [all_@], attributes: {axes: [0, 1, 2]}}
  {op: ReduceSum, inputs: [q_@], outputs: [columns_@], attributes: {axes: [0, 1]}}' all_@ columns_@
for use in Abs 'Multiply, x_@' Exp; do
  part "products_and_${use%%,*}" 'x_@: [N, 70]
    y_@: [N, 70]' "{op: Multiply, inputs: [x_@, y_@], outputs: [p_@]}
    {op: ReduceSum, inputs: [p_@], outputs: [row_@], attributes: {axes: [1]}}
    {op: ReduceSum, inputs: [p_@], outputs: [columns_@], attributes: {axes: [0]}}
    {op: ${use%%,*}, inputs: [p_@${use#"${use%%,*}"}], outputs: [row_u_@]}" row_@ columns_@ row_u_@
done
part spelled_product 'x_@: [N, 1, 50]
  w_@: [20, 50]' '{op: Multiply, inputs: [x_@, w_@], outputs: [p_@]}
  {op: ReduceSum, inputs: [p_@], outputs: [width_y_@], attributes: {axes: [2]}}' width_y_@
# Tensors of 16 bits are rounded, in memory or not; N = 5 has tiles.
for type in f16 bf16; do
  cast="{op: TypeCast, inputs: [x_@], outputs: [{name: h_@, type: $type}]}"
  part "${type}_softmax" 'x_@: [N, 5000]' "$cast
    {op: ReduceMax, inputs: [h_@], outputs: [m_@], attributes: {axes: [1], keep_dims: true}}
    {op: Subtract, inputs: [h_@, m_@], outputs: [c_@]}
    {op: Exp, inputs: [c_@], outputs: [e_@]}
    {op: ReduceSum, inputs: [e_@], outputs: [s_@], attributes: {axes: [1], keep_dims: true}}
    {op: Divide, inputs: [e_@, s_@], outputs: [y_@]}
    {op: TypeCast, inputs: [y_@], outputs: [{name: row_@, type: f32}]}" row_@
  part "${type}_layer" 'x_@: [N, 100]
    w_@: [100, 24]
    b_@: [24]' "$cast
    {op: TypeCast, inputs: [w_@], outputs: [{name: v_@, type: $type}]}
    {op: TypeCast, inputs: [b_@], outputs: [{name: c_@, type: $type}]}
    {op: MatMul, inputs: [h_@, v_@], outputs: [a_@]}
    {op: Add, inputs: [a_@, c_@], outputs: [z_@]}
    {op: ReLU, inputs: [z_@], outputs: [r_@]}
    {op: Multiply, inputs: [r_@, r_@], outputs: [q_@]}
    {op: ReduceSum, inputs: [q_@], outputs: [s_@], attributes: {axes: [1]}}
    {op: TypeCast, inputs: [r_@], outputs: [{name: row_@, type: f32}]}
    {op: TypeCast, inputs: [s_@], outputs: [{name: row_s_@, type: f32}]}" row_@ row_s_@
  part "${type}_sums" 'x_@: [N, 100]' "$cast
    {op: Exp, inputs: [h_@], outputs: [e_@]}
    {op: ReduceSum, inputs: [e_@], outputs: [s_@], attributes: {axes: [0]}}
    {op: Multiply, inputs: [s_@, s_@], outputs: [t_@]}
    {op: TypeCast, inputs: [t_@], outputs: [{name: columns_@, type: f32}]}" columns_@
done
# bf16 has no 0.9: padding is rounded for whoever reads it.
part padded 'x_@: [N, 33]' '{op: TypeCast, inputs: [x_@], outputs: [{name: h_@, type: bf16}]}
  {op: Pad, inputs: [h_@], outputs: [p_@], attributes: {pads_begin: [0, 2], pads_end: [0, 3], value: 0.9}}
  {op: TypeCast, inputs: [p_@], outputs: [{name: row_@, type: f32}]}' row_@
# Norms compute in f64, their neighbours in f32.
part length 'x_@: [N, 100]
  y_@: [N, 100]' '{op: Multiply, inputs: [x_@, y_@], outputs: [p_@]}
  {op: Exp, inputs: [p_@], outputs: [e_@]}
  {op: ReduceL2, inputs: [e_@], outputs: [l_@], attributes: {axes: [1], keep_dims: true}}
  {op: Divide, inputs: [e_@, l_@], outputs: [d_@]}
  {op: Exp, inputs: [d_@], outputs: [row_@]}
  {op: ReduceSum, inputs: [row_@], outputs: [columns_@], attributes: {axes: [0]}}' row_@ columns_@

# A transposed tensor is a view of its operand, with and without fusion: its sum has the order of the operand's rows.
part transposed_rows 'x_@: [33, 6, 16]
  y_@: [N, 16]' '{op: StaticTranspose, inputs: [x_@], outputs: [t_@], attributes: {order: [1, 0, 2]}}
  {op: ReduceSum, inputs: [t_@], outputs: [s_@], attributes: {axes: [0, 1]}}
  {op: Add, inputs: [y_@, s_@], outputs: [row_@]}' row_@
part transposed_planes 'x_@: [N, 6, 4, N]' '{op: StaticTranspose, inputs: [x_@], outputs: [t_@], attributes: {order: [2, 1, 0, 3]}}
  {op: ReduceSum, inputs: [t_@], outputs: [width_s_@], attributes: {axes: [1, 2, 3]}}
  {op: ReduceSum, inputs: [t_@], outputs: [width_ends_@], attributes: {axes: [0, 3]}}
  {op: LayerNorm, inputs: [t_@], outputs: [width_y_@], attributes: {use_affine: false, keep_stats: false, begin_norm_axis: 2}}' \
  width_s_@ width_ends_@ width_y_@
# Two sums over as many elements have the layouts of their operands, not of their neighbours'.
part square 'x_@: [300, 300]' '{op: StaticTranspose, inputs: [x_@], outputs: [t_@], attributes: {order: [1, 0]}}
  {op: ReduceSum, inputs: [t_@], outputs: [first_@], attributes: {axes: [0]}}
  {op: ReduceSum, inputs: [t_@], outputs: [last_@], attributes: {axes: [1]}}' first_@ last_@
part box 'x_@: [20, 30, 40]' '{op: StaticTranspose, inputs: [x_@], outputs: [t_@], attributes: {order: [2, 1, 0]}}
  {op: ReduceSum, inputs: [t_@], outputs: [first_@], attributes: {axes: [0]}}
  {op: ReduceSum, inputs: [t_@], outputs: [last_@], attributes: {axes: [2]}}
  {op: LayerNorm, inputs: [t_@], outputs: [y_@], attributes: {use_affine: false, keep_stats: false}}' first_@ last_@ y_@
part square_planes 'x_@: [17, 65, 17]
  g_@: [17]
  b_@: [17]' '{op: StaticTranspose, inputs: [x_@], outputs: [t_@], attributes: {order: [1, 2, 0]}}
  {op: Abs, inputs: [t_@], outputs: [a_@]}
  {op: GroupNorm, inputs: [t_@, g_@, b_@], outputs: [y_@, m_@, v_@], attributes: {groups: 1, data_format: NCX}}' \
  a_@ y_@ m_@ v_@
# Nor do the operators in front of a convolution to few channels, or of a sum of what no tensor holds, decide its order.
part few_outputs 'x_@: [5, 8, 1, 5]
  w_@: [1, 3, 8, 3]' '{op: Sigmoid, inputs: [x_@], outputs: [a_@]}
  {op: Convolution, inputs: [a_@, w_@], outputs: [y_@], attributes: {strides: [1, 2], data_format: NCX}}' y_@
part outer 'x_@: [40, 300, 1]
  w_@: [1, 300, 50]
  b_@: [50]' '{op: Multiply, inputs: [x_@, w_@], outputs: [p_@]}
  {op: Maximum, inputs: [p_@, b_@], outputs: [q_@]}
  {op: ReduceSum, inputs: [q_@], outputs: [y_@], attributes: {axes: [1]}}' y_@

# Nor does the number of samples, by the sizes of other tensors: whether lanes lie along the sum or beside it.
part channels_of_planes 'x_@: [N, 49, 96], order: [0, 2, 1]
  g_@: [96]
  b_@: [96]' '{op: LayerNorm, inputs: [x_@, g_@, b_@], outputs: [row_@, row_mean_@, row_variance_@]}' \
  row_@ row_mean_@ row_variance_@
part features_of_samples 'x_@: [N, 40], order: [1, 0]
  g_@: [40]
  b_@: [40]' '{op: LayerNorm, inputs: [x_@, g_@, b_@], outputs: [y_@, m_@, v_@]}' y_@ m_@ v_@
part added_outer 'x_@: [N, 5, 4, 4, 1]
  y_@: [N, 1, 1, 1, 20]
  z_@: [5, 4, 1, 20]' '{op: Add, inputs: [x_@, y_@], outputs: [a_@]}
  {op: Add, inputs: [a_@, z_@], outputs: [s_@]}
  {op: ReduceSum, inputs: [s_@], outputs: [row_@], attributes: {axes: [1, 4]}}' row_@

# N is what is summed, or is beside it
part norm_of_width 'x_@: [40, N]
  dy_@: [40, N]
  mean_@: [40]
  variance_@: [40]
  gamma_@: [N]' "{op: LayerNormBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [width_dx_@, width_dg_@, width_db_@]}" \
  width_dx_@ width_dg_@ width_db_@
part softmax_of_width 'x_@: [300, N]' '{op: SoftMax, inputs: [x_@], outputs: [width_y_@], attributes: {axis: 1}}
  {op: Multiply, inputs: [width_y_@, x_@], outputs: [p_@]}
  {op: ReduceSum, inputs: [p_@], outputs: [width_all_@], attributes: {axes: [0, 1]}}
  {op: ReduceSum, inputs: [p_@], outputs: [width_columns_@], attributes: {axes: [0]}}' width_y_@ width_all_@ width_columns_@
part columns 'x_@: [20, N, 30]' '{op: SoftMax, inputs: [x_@], outputs: [width_y_@], attributes: {axis: 1}}
  {op: ReduceSum, inputs: [width_y_@], outputs: [width_all_@], attributes: {axes: [0, 1, 2]}}
  {op: ReduceSum, inputs: [width_y_@], outputs: [width_last_@], attributes: {axes: [0, 1]}}' width_y_@ width_all_@ width_last_@
part columns_of_width 'x_@: [20, 30, N]' '{op: SoftMax, inputs: [x_@], outputs: [width_y_@], attributes: {axis: 1}}
  {op: ReduceSum, inputs: [width_y_@], outputs: [width_all_@], attributes: {axes: [0, 1, 2]}}
  {op: ReduceSum, inputs: [width_y_@], outputs: [width_last_@], attributes: {axes: [0, 1]}}' width_y_@ width_all_@ width_last_@
part planes_of_width 'x_@: [4, 6, N, N]
  dy_@: [4, 6, N, N]
  mean_@: [6]
  variance_@: [6]
  gamma_@: [6]' "{op: BatchNormTrainingBackward, inputs: [x_@, dy_@, mean_@, variance_@, gamma_@], outputs: [width_dx_@, width_dg_@, width_db_@], attributes: {epsilon: 1e-5, data_format: NCX}}" \
  width_dx_@ width_dg_@ width_db_@

printf 'format: ngrad/1\nname: orders\ndims: {N: 7}\ninputs:\n%s\nnodes:\n%s\noutputs: [%s]\n' "$(cat inputs)" "$(cat nodes)" \
  "$outputs" >orders.yaml

# A function for all tensors in one array, in place of one with a parameter for each
call() { # NAME PARAMETERS
  awk -v name="$1" -v parameters="$2" -v n=$((ninputs + noutputs)) 'BEGIN {
    printf "#include \"%s.h\"\nstatic int call_%s(int64_t n, void *const *t, void *workspace, size_t nbytes) {\n", name, name
    printf "  (void)n;\n  return %s(%s", name, parameters
    for (i = 0; i < n; i++) printf "t[%d], ", i
    printf "workspace, nbytes, %s_ISA_SCALAR);\n}\n", name
  }'
}
emit() { # NAME OPTION...
  prefix=$1
  shift
  "$ngrad" emit orders.yaml --isa scalar --threads none --prefix "$prefix" -o "$prefix" "$@" >log 2>&1 &&
    mv "$prefix/orders.c" "$prefix.c" && mv "$prefix/orders.h" "$prefix.h" && sed -i "s/\"orders\.h\"/\"$prefix.h\"/" "$prefix.c"
  count "$prefix is emitted"
  gcc -std=c11 $level -w -c "$prefix.c" -o "$prefix.o" &
}
call opened 'n, ' >calls.h
emit opened
for n in $extents; do
  call "fixed$n" '' >>calls.h
  emit "fixed$n" --dim "N=$n" --cost tiled_nelems=4096 # few long sums have tiles, which open ones have not
done
call apart33 '' >>calls.h
emit apart33 --dim N=33 --no-fuse
wait
{
  echo 'static const Fixed fixed[] = {'
  echo '  {33, call_apart33, apart33_workspace_nbytes},'
  for n in $extents; do echo "  {$n, call_fixed$n, fixed${n}_workspace_nbytes},"; done
  echo '};'
} >table.h
gcc -std=c11 -O1 -Wall -Wextra -Werror -I. "$here/orders.c" ./*.o -lm -o orders >log 2>&1
count 'the driver is compiled'
./orders >log 2>&1
count 'open = fixed = apart, and a sample alone = among others'
# Who changes an order raises NG_BITS in ngrad.h, once between two releases, and writes the new line there.
grep '^bits ' log >bits
cmp bits "$here/recorded" >>log 2>&1
count 'these results have the bits of tests/bits/recorded; others want another NG_BITS'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
