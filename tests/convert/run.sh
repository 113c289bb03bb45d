#!/bin/sh
# ngrad convert --to onnx: the written model is read back as a graph with the same results, for every graph of the tests
# that runs on random data; without NGRAD_CHECK (tests/effort.h), for each fourth. If python3-onnx is installed, its checker
# and its shape inference must accept the model. Usage: run.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
tests=$(realpath "$here/..")
# shellcheck source=tests/checks.sh
. "$tests/checks.sh"

# usage of the program: the head of cases.c
cases=$(dirname "$ngrad")/tests/ngrad_convert_cases
[ -x "$cases" ] || { echo 'convert: tests/ngrad_convert_cases is not built' && exit 77; }

# shellcheck disable=SC2034 # of count
told=stderr
set --
turn=0
for graph in "$tests"/../models/*.yaml "$tests"/gradient/*.yaml "$tests"/golden/*/*.yaml "$tests"/emit/*.yaml "$tests"/fuzz/corpus/*.yaml; do
  turn=$((turn + 1))
  takes_all || [ $((turn % 4)) -eq 0 ] || continue
  set -- "$@" "$graph"
done
random=100
takes_all && random=1000
"$cases" --out models "$@" --random 0 "$random" >verdicts 2>stderr
[ $? -le 1 ] # 1: some have FAILED
count 'all graphs have a verdict'
while read -r verdict name why; do
  case $verdict in
  ok) passed=$((passed + 1)) ;;
  FAILED)
    echo "FAILED: $name as a model gives the same results: $why"
    failed=$((failed + 1))
    ;;
  esac
done <verdicts
grep -q '^ok' verdicts
count 'graphs as models give the same results'

# What is in a file

cat >net.yaml <<'Y'
format: ngrad/1
dims: {N: 4}
inputs:
  - {name: x, type: f32, shape: [N, 8, 8, 3]}
  - {name: w, type: f32, shape: [3, 3, 3, 5]}
  - {name: v, type: f32, shape: [10, 5]}
nodes:
  - {op: Convolution, inputs: [x, w], outputs: [c], attributes: {strides: [2, 2], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}
  - {op: ReLU, inputs: [c], outputs: [r]}
  - {op: ReduceMean, inputs: [r], outputs: [m], attributes: {axes: [1, 2]}}
  - {op: MatMul, inputs: [m, v], outputs: [y], attributes: {transpose_b: true}}
outputs: [y]
Y
"$ngrad" convert net.yaml -o net.onnx >stdout 2>stderr && "$ngrad" convert net.onnx >back.yaml 2>stderr &&
  grep -q '^dims: {N: 4}$' back.yaml && [ "$(grep -c '^  - op: StaticTranspose' back.yaml)" -eq 3 ] && ! grep -aq ngrad.ReLU net.onnx
count 'a network with channels last becomes operators of ONNX alone; --out NAME.onnx is enough, and dims keep their numbers'
cat >bounds.yaml <<'Y'
format: ngrad/1
dims: {N: 6, T: 3}
inputs:
  - {name: x, type: f32, shape: [N, T, 2, 2, 2]}
nodes:
  - {op: Pad, inputs: [x], outputs: [p], attributes: {pads_begin: [-1, T, 0, 0, 0], pads_end: [1, 2, 0, N, -1], value: 0.5}}
  - {op: Slice, inputs: [p], outputs: [y], attributes: {axes: [1, 0], starts: [T, -3], ends: [2 * T, -1]}}
outputs: [y]
Y
"$ngrad" convert bounds.yaml -o bounds.onnx >stdout 2>stderr && "$ngrad" convert bounds.onnx >back.yaml 2>stderr &&
  grep -qF 'pads_begin: [-1, T, 0, 0, 0], pads_end: [1, 2, 0, N, -1]' back.yaml && grep -qF 'starts: [T, -3], ends: [2 * T, -1]' back.yaml
count 'numbers below 0 beside names in pads and slices are written, and read again'
"$ngrad" grad net.yaml -o net_grad.yaml >stdout 2>stderr && "$ngrad" convert net_grad.yaml --to onnx >net_grad.onnx 2>stderr &&
  [ ! -s stderr ] && "$ngrad" convert net_grad.onnx >stdout 2>stderr && grep -q 'op: Convolution' stdout
count "gradients are formulas in ONNX's operators"
cat >pool.yaml <<'Y'
format: ngrad/1
dims: {N: 2}
inputs: [{name: x, type: f32, shape: [N, 3, 8, 8]}, {name: dy, type: f32, shape: [N, 3, 4, 4]}]
nodes:
  - {op: MaxPoolBackward, inputs: [x, dy], outputs: [dx], attributes: {strides: [2, 2], pads_begin: [0, 0], pads_end: [0, 0], kernel: [2, 2], data_format: NCX}}
outputs: [dx]
Y
"$ngrad" convert pool.yaml -o pool.onnx >stdout 2>stderr &&
  grep -q 'warning: ONNX has no form of MaxPoolBackward beside named extents: it is written' stderr &&
  "$ngrad" convert pool.yaml --dim N=3 -o pool.onnx >stdout 2>stderr && [ ! -s stderr ] &&
  "$ngrad" convert pool.onnx >stdout && grep -q 'name: x, type: f32, shape: \[3, 3, 8, 8\]' stdout
count '--dim writes numbers in place of names'
cat >dropout.yaml <<'Y'
format: ngrad/1
inputs:
  - {name: x, type: f32, shape: [64]}
  - {name: seed, type: s64, shape: []}
  - {name: calls, type: s64, shape: []}
  - {name: p, type: f32, shape: []}
nodes:
  - {op: Dropout, inputs: [x, seed, calls, p], outputs: [y]}
outputs: [y]
Y
"$ngrad" convert dropout.yaml -o dropout.onnx >stdout 2>stderr && grep -q 'warning: ONNX has no form of Dropout: it is written in the domain ngrad' stderr &&
  "$ngrad" convert dropout.onnx >stdout 2>stderr && grep -q 'op: Dropout' stdout
count 'what ONNX does not have is told, and read back as it was'
cat >labels.yaml <<'Y'
format: ngrad/1
inputs: [{name: x, type: f32, shape: [4]}]
nodes:
  - {op: ReLU, label: same, inputs: [x], outputs: [a]}
  - {op: ReLU, label: same, inputs: [a], outputs: [b]}
  - {op: ReLU, label: same (2), inputs: [b], outputs: [y]}
outputs: [y]
Y
"$ngrad" convert labels.yaml -o labels.onnx >stdout 2>stderr &&
  tr -c '[:print:]' '\n' <labels.onnx | grep '^same' | sort >names && [ "$(uniq -d names | wc -l)" -eq 0 ] && [ "$(wc -l <names)" -eq 3 ]
count 'nodes that share a label get names that differ, as ONNX Runtime wants them'
"$ngrad" convert net.yaml --to netron >stdout 2>stderr
[ $? -eq 2 ] && grep -q 'expected yaml or onnx, found netron' stderr
count 'an unknown format'
"$ngrad" convert net.yaml --to onnx --json >stdout 2>stderr
[ $? -eq 2 ] && grep -q 'expected --out FILE' stderr
count 'a model is no part of a document'
"$ngrad" convert net.yaml --to onnx >/dev/full 2>stderr
[ $? -eq 1 ] && grep -q 'cannot write' stderr
count 'a full disk is told'

# What is read back

cat >pads.yaml <<'Y'
format: ngrad/1
dims: {N: 5, T: 2}
inputs: [{name: x, type: f32, shape: [N, 3]}, {name: t, type: f32, shape: [T]}]
nodes:
  - {op: Pad, inputs: [x], outputs: [y], attributes: {pads_begin: [T, 0], pads_end: [N - T, -1], value: 0.5}}
  - {op: Slice, inputs: [y], outputs: [z], attributes: {starts: [-4, 0], ends: [N + 2 * T, 1], axes: [0, 1]}}
outputs: [y, z]
Y
cat >zero_point.yaml <<'Y'
format: ngrad/1
inputs: [{name: x, type: f32, shape: [7, 2]}]
nodes:
  - {op: Quantize, inputs: [x], outputs: [{name: q, type: s8}], attributes: {qtype: per_channel, scales: [0.25], zps: [5]}}
  - {op: Dequantize, inputs: [q], outputs: [{name: y, type: f32}], attributes: {qtype: per_channel, scales: [0.25], zps: [5]}}
outputs: [q, y]
Y
cat >leaves.yaml <<'Y'
format: ngrad/1
leaves: 3
inputs: [{name: x, type: f32, shape: [3, 4]}]
nodes:
  - {op: Leaf, inputs: [x], outputs: [y]}
  - {op: AllReduce, inputs: [y], outputs: [z], attributes: {reduction: mean}}
outputs: [z]
Y
for graph in pads zero_point leaves; do
  "$cases" "$graph.yaml" >stdout 2>stderr
  grep -q "^ok $graph" stdout
  count "a model of $graph is read back with the same results"
done
"$ngrad" convert pads.yaml -o pads.onnx >stdout 2>stderr && "$ngrad" convert pads.onnx >stdout 2>stderr &&
  grep -q 'pads_begin: \[T, 0\], pads_end: \[N - T, -1\]' stdout
count 'pads that are named extents stay open'

# NaN

cat >extremes.yaml <<'Y'
format: ngrad/1
constants:
  - {name: a, type: f32, shape: [3], values: [.nan, 1, 2]}
  - {name: b, type: f32, shape: [3], values: [1, .nan, 3]}
  - {name: one, type: f32, shape: [], values: [1.5]}
nodes:
  - {op: Maximum, inputs: [a, b], outputs: [greater]}
  - {op: Minimum, inputs: [a, b], outputs: [lesser]}
  - {op: Maximum, inputs: [a, one], outputs: [above]}
  - {op: Minimum, inputs: [one, a], outputs: [below]}
outputs: [greater, lesser, above, below]
Y
cat >expected.yaml <<'Y'
format: ngrad/1
constants:
  - {name: a, type: f32, shape: [3], values: [.nan, .nan, 3]}
  - {name: b, type: f32, shape: [3], values: [.nan, .nan, 2]}
  - {name: c, type: f32, shape: [3], values: [.nan, 1.5, 2]}
  - {name: d, type: f32, shape: [3], values: [.nan, 1, 1.5]}
nodes:
  - {op: Abs, inputs: [a], outputs: [greater]}
  - {op: Abs, inputs: [b], outputs: [lesser]}
  - {op: Abs, inputs: [c], outputs: [above]}
  - {op: Abs, inputs: [d], outputs: [below]}
outputs: [greater, lesser, above, below]
Y
rm -rf results
"$ngrad" run expected.yaml -o results >stdout 2>stderr && "$ngrad" convert extremes.yaml --to onnx >extremes.onnx 2>stderr &&
  "$ngrad" run extremes.onnx --expect results >stdout 2>stderr && "$ngrad" convert extremes.onnx >stdout 2>stderr &&
  [ "$(grep -c 'op: Select' stdout)" -eq 2 ]
count "Max and Min of a model are NaN where any operand is; beside a number that is none, without a choice"

# Training

cat >weights.yaml <<'Y'
format: ngrad/1
dims: {N: ~}
inputs: [{name: x, type: f32, shape: [N, 3]}]
constants:
  - {name: w, type: f32, shape: [3, 2], values: [0.5, -0.25, 1, 0.125, -1, 2]}
  - {name: b, type: f32, shape: [2], values: [0.5, 0]}
  - {name: two, type: f32, shape: [], value: 2}
nodes:
  - {op: MatMul, inputs: [x, w], outputs: [product]}
  - {op: Add, inputs: [product, b], outputs: [sum]}
  - {op: Multiply, inputs: [sum, two], outputs: [logits]}
outputs: [logits]
Y
sed -e 's/^dims/name: net\n&/; s/^constants:/state:/; s/values: .*}/init: {file: w.npy}}/' weights.yaml |
  awk '/name: b/ { sub("w.npy", "b.npy") } /name: two/ { print "constants:" } { print }' >states.yaml
"$ngrad" convert weights.yaml -o net.onnx >stdout 2>stderr && "$ngrad" train net.onnx --loss cross-entropy -o net >stdout 2>stderr &&
  grep -q '{name: w, type: f32, shape: \[3, 2\], init: {file: net_w_[0-9]*.npy}}' net/net_step.yaml &&
  grep -q '{name: labels, type: s32, shape: \[N\]}' net/net_step.yaml && grep -q '^outputs: \[loss, accuracy\]' net/net_step.yaml &&
  [ "$(grep -c init: net/net_step.yaml)" -eq 3 ] && grep -q '^outputs: \[logits\]' net/net_infer.yaml
count "a model's weights are parameters, but no number, and a loss is added"
# 256 weights or more become a file beside a gradient.
awk 'BEGIN {
  printf "format: ngrad/1\nname: wide\ninputs: [{name: x, type: f32, shape: [2, 16]}]\nconstants:\n  - {name: w, type: f32, shape: [16, 16], values: ["
  for (i = 0; i < 256; i++) printf "%s%d", i ? ", " : "", i % 7 - 3
  printf "]}\nnodes:\n  - {op: MatMul, inputs: [x, w], outputs: [h]}\n  - {op: Tanh, inputs: [h], outputs: [y]}\noutputs: [y]\n"
}' >wide.yaml
mkdir written && "$ngrad" convert wide.yaml -o wide.onnx >stdout 2>stderr && "$ngrad" grad wide.onnx -o written/gradient.yaml >stdout 2>stderr &&
  grep -q 'file: .*_w_[0-9]*.npy}' written/gradient.yaml && "$ngrad" grad wide.yaml -o gradient.yaml >stdout 2>stderr &&
  "$ngrad" run gradient.yaml --random -o by_hand >stdout 2>stderr && "$ngrad" run written/gradient.yaml --random --expect by_hand >stdout 2>stderr
count "a gradient's weights are files beside it"
cp net/net_w_*.npy w.npy && cp net/net_b_*.npy b.npy && "$ngrad" train states.yaml --loss cross-entropy -o net2 >stdout 2>stderr &&
  "$ngrad" run net/net_step.yaml --dim N=5 --random -o one >stdout 2>stderr && "$ngrad" run net2/net_step.yaml --dim N=5 --random --expect one >stdout 2>stderr
count 'a step of a model does what the step of a graph with states does'
for loss in mse bce; do
  "$ngrad" train net.onnx --loss $loss -o $loss >stdout 2>stderr && grep -q '{name: target, type: f32, shape: \[N, 2\]}' $loss/net_step.yaml &&
    "$ngrad" run $loss/net_step.yaml --dim N=5 --random --compare >stdout 2>stderr
  count "--loss $loss adds a target"
done
"$ngrad" train net.onnx -o none >stdout 2>stderr
[ $? -eq 2 ] && grep -q 'cross-entropy, mse or bce adds one' stderr
count 'without a loss, training says how to get one'

python=$(for p in python3 /usr/bin/python3; do "$p" -c 'import onnx.checker' 2>/dev/null && echo "$p" && break; done)
if [ -n "$python" ]; then
  "$python" - models/*/model.onnx net.onnx net_grad.onnx >stdout 2>stderr <<'P'
import sys
import onnx

failed = 0
for path in sys.argv[1:]:
    model = onnx.load(path)
    elements = {t.type.tensor_type.elem_type for t in [*model.graph.input, *model.graph.output, *model.graph.value_info]}
    # 8-bit floats and 4-bit integers are younger than some versions of the package
    if max(elements) > onnx.TensorProto.BFLOAT16 or model.ir_version > onnx.IR_VERSION:
        continue
    try:
        onnx.checker.check_model(model)
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    except Exception as error:
        print(path, error, file=sys.stderr)
        failed += 1
sys.exit(failed > 0)
P
  count "ONNX's own checker takes the models"
else
  echo "left out: convert: no python3-onnx, so ONNX's own checker"
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
