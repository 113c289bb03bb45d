#!/bin/sh
# No verb needs a large stack, however deep the graph: runs them with the small stacks that some threads have. Prints
# what failed.
set -u
ngrad=$1
models=$(realpath "$(dirname "$0")/../../models")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
command -v prlimit >/dev/null || { echo 'left out: cli: no prlimit'; exit 0; }
failed=0

try() { # ARGUMENT...
  prlimit --stack=65536 "$ngrad" "$@" >stdout 2>stderr
  status=$?
  [ "$status" -eq 0 ] && return
  failed=$((failed + 1))
  echo "status $status: ngrad $*: $(head -1 stderr)"
}

awk 'BEGIN {
  print "format: ngrad/1\nname: deep\ninputs: [{name: x0, type: f32, shape: [4, 6]}, {name: w, type: f32, shape: [4, 6]}]\nnodes:"
  split("Add Subtract Multiply Tanh ReduceMean", op, " ")
  for (i = 0; i < 600; i++) {
    k = i % 5 + 1
    operands = k < 4 ? "x" i ", w" : "x" i
    attributes = k == 5 ? ", attributes: {axes: [1], keep_dims: true}" : ""
    print "  - {op: " op[k] ", inputs: [" operands "], outputs: [x" i + 1 "]" attributes "}"
    if (k == 5) {
      i++
      print "  - {op: Add, inputs: [x" i ", w], outputs: [x" i + 1 "]}"
    }
  }
  print "outputs: [x" i "]"
}' >deep.yaml
printf 'format: ngrad/1\nname: data\ninputs: [{name: a, type: bf16, shape: [40, 3]}]\nnodes: []\noutputs: [a]\n' >data.yaml

for graph in "$models/transformer_mlp_backward.yaml" "$models/dialect_directml_grad.yaml" deep.yaml; do
  try check "$graph"
  try show "$graph" --format kernels
  try show "$graph" --format loops
  try show "$graph" --format c
  try emit "$graph" -o emitted --isa scalar
  try convert "$graph"
  try run "$graph" --random --backend interpreter
done
try grad deep.yaml
try gradcheck deep.yaml --tolerance 1
try run data.yaml --random --backend interpreter --out written
try run data.yaml --in written --backend interpreter

# A kernel that is in the cache, in threads whose stacks are as small
"$ngrad" run "$models/transformer_mlp_backward.yaml" --random >stdout 2>stderr
try run "$models/transformer_mlp_backward.yaml" --random --threads 3

[ "$failed" -eq 0 ]
