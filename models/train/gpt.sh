#!/bin/sh
# Writes a GPT-2 (Radford et al. 2019) as a forward graph with its loss: gpt.sh NAME LAYERS WIDTH HEADS CONTEXT VOCABULARY
# BATCH. It wrote gpt2_124m.yaml and gpt_bytes.yaml.
set -eu
[ $# -eq 7 ] || {
  echo "usage: $0 NAME LAYERS WIDTH HEADS CONTEXT VOCABULARY BATCH" >&2
  exit 2
}
exec awk -v name="$1" -v layers="$2" -v width="$3" -v heads="$4" -v context="$5" -v vocabulary="$6" -v batch="$7" '
function state(name, shape, init) { printf "  - {name: %s, type: f32, shape: [%s], init: %s}\n", name, shape, init }
function node(op, inputs, outputs, attributes) {
  printf "  - {op: %s, inputs: [%s], outputs: [%s]%s}\n", op, inputs, outputs, attributes ? ", attributes: {" attributes "}" : ""
}
function norm_states(p) { state(p ".gamma", width, "ones"); state(p ".beta", width, "zeros") }
function linear_states(p, from, to, deviation) {
  state(p ".weight", from ", " to, "{normal: " deviation "}")
  state(p ".bias", to, "zeros")
}
function norm(p, from, to) { node("LayerNorm", from ", " p ".gamma, " p ".beta", to ", " p ".mean, " p ".variance") }
function linear(p, from, to) { node("MatMul", from ", " p ".weight, " p ".bias", to) }
function head(from, to) {
  node("StaticReshape", from, from ".heads", "shape: [0, 0, " heads ", " width / heads "], special_zero: true")
  node("StaticTranspose", from ".heads", to, "order: [0, 2, 1, 3]")
}
BEGIN {
  printf "# %s layers of width %s with %s heads, %s tokens of %s; B sequences a step.\n", layers, width, heads, context, vocabulary
  printf "format: ngrad/1\nname: %s\ndims: {B: %s}\n", name, batch
  print "inputs:"
  printf "  - {name: tokens, type: s32, shape: [B, %s]}\n", context
  printf "  - {name: labels, type: s32, shape: [B, %s]}  # the tokens that follow\n", context
  print "state:"
  residual = sprintf("%.6g", 0.02 / sqrt(2 * layers))
  state("wte", vocabulary ", " width, "{normal: 0.02}")
  state("wpe", context ", " width, "{normal: 0.01}")
  for (i = 0; i < layers; i++) {
    p = "h" i
    norm_states(p ".ln1")
    linear_states(p ".qkv", width, 3 * width, 0.02)
    linear_states(p ".proj", width, width, residual)
    norm_states(p ".ln2")
    linear_states(p ".up", width, 4 * width, 0.02)
    linear_states(p ".down", 4 * width, width, residual)
  }
  norm_states("lnf")
  print "constants:"
  printf "  - {name: scale, type: f32, shape: [], value: %.9g}\n", 1 / sqrt(width / heads)
  print "  - {name: never, type: f32, shape: [], value: -.inf}"
  print "nodes:"
  node("Gather", "wte, tokens", "embedded", "axis: 0")
  node("Add", "embedded, wpe", "x0")
  for (i = 0; i < layers; i++) {
    p = "h" i
    norm(p ".ln1", "x" i, p ".ln1")
    linear(p ".qkv", p ".ln1", p ".qkv")
    node("Split", p ".qkv", p ".q, " p ".k, " p ".v", "axis: 2, parts: 3")
    head(p ".q", p ".queries")
    head(p ".k", p ".keys")
    head(p ".v", p ".values")
    node("MatMul", p ".queries, " p ".keys", p ".products", "transpose_b: true")
    node("Multiply", p ".products, scale", p ".scores")
    node("GenIndex", p ".scores", p ".row", "axis: 2")
    node("GenIndex", p ".scores", p ".column", "axis: 3")
    node("GreaterEqual", p ".row, " p ".column", p ".is_before")
    node("Select", p ".is_before, " p ".scores, never", p ".masked")
    node("SoftMax", p ".masked", p ".attention", "axis: -1")
    node("MatMul", p ".attention, " p ".values", p ".mixed")
    node("StaticTranspose", p ".mixed", p ".mixed.tokens", "order: [0, 2, 1, 3]")
    node("StaticReshape", p ".mixed.tokens", p ".mixed.rows", "shape: [0, 0, " width "], special_zero: true")
    linear(p ".proj", p ".mixed.rows", p ".proj")
    node("Add", "x" i ", " p ".proj", p ".x")
    norm(p ".ln2", p ".x", p ".ln2")
    linear(p ".up", p ".ln2", p ".up")
    node("GELU", p ".up", p ".activated", "mode: gelu_tanh")
    linear(p ".down", p ".activated", p ".down")
    node("Add", p ".x, " p ".down", "x" i + 1)
  }
  norm("lnf", "x" layers, "lnf")
  node("MatMul", "lnf, wte", "logits", "transpose_b: true")
  node("SoftmaxCrossEntropy", "logits, labels", "loss")
  print "outputs: [loss, logits]"
}'
