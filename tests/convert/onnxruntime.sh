#!/bin/sh
# ONNX Runtime loads and runs what ngrad convert --to onnx writes, with the interpreter's results: models, graphs of the
# tests, their gradients, training steps, and random graphs. Needs node and the package onnxruntime-node of npm, in
# build/npm or $NODE_PATH; skipped (77) without them. Usage: onnxruntime.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
tests=$(realpath "$here/..")
cases=$(dirname "$ngrad")/tests/ngrad_convert_cases
NODE_PATH="$(dirname "$ngrad")/npm/node_modules:${NODE_PATH-}"
export NODE_PATH
node -e 'require("onnxruntime-node")' >/dev/null 2>&1 || {
  echo 'onnxruntime: no node with the package onnxruntime-node, which ./dev check installs with npm'
  exit 77
}
[ -x "$cases" ] || { echo 'onnxruntime: tests/ngrad_convert_cases is not built' && exit 77; }
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"

mkdir graphs
for graph in "$tests"/../models/*.yaml "$tests"/gradient/*.yaml; do
  "$ngrad" grad "$graph" -o "graphs/$(basename "$graph" .yaml)_grad.yaml" >/dev/null 2>&1
done
for graph in "$tests"/../models/train/*.yaml; do
  name=$(basename "$graph" .yaml)
  for optimizer in sgd momentum adam adamw; do
    "$ngrad" train "$graph" --loss loss --optimizer $optimizer -o train >/dev/null 2>&1 || continue
    for step in train/*_step.yaml; do sed '/^dims/s/N: [0-9]*/N: 2/' "$step" >"graphs/${name}_$optimizer.yaml"; done
  done
  rm -rf train
done
random=300
takes_all && random=2000
"$cases" --out cases "$tests"/../models/*.yaml "$tests"/gradient/*.yaml "$tests"/golden/*/*.yaml "$tests"/emit/*.yaml \
  "$tests"/fuzz/corpus/*.yaml graphs/*.yaml --random 0 $random >verdicts 2>log
[ $? -le 1 ] # 1: some have FAILED
count 'all graphs are written'
node "$here/onnxruntime.js" cases >results 2>>log
while read -r verdict name why; do
  case $verdict in
  ok) passed=$((passed + 1)) ;;
  FAILED)
    echo "FAILED: $name $why"
    failed=$((failed + 1))
    ;;
  esac
done <results
for verdict in lacks own empty loaded; do
  echo "onnxruntime: $(grep -c "^$verdict " results) $verdict"
done
[ "$(wc -l <results)" -eq "$(find cases -mindepth 1 -maxdepth 1 | wc -l)" ]
count 'all cases are run'

# What other systems do not load, of the models.
for graph in "$tests"/../models/*.yaml; do
  name=$(basename "$graph" .yaml)
  ! grep -q "^own $name\$" results || echo "$name"
done >log
[ "$(cat log)" = bert_dropout_residual_forward ]
count "all models but one with dropout are ONNX's own operators"

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
