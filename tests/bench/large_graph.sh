#!/bin/sh
# Writes a graph of about NODES nodes to stdout, with work for each pass: identities, constants to fold, casts back and
# forth, transposes and reshapes that cancel, common subexpressions, dead nodes, and layer norms spelled out.
#
#   tests/bench/large_graph.sh 100000 > large.yaml
#   tests/bench/large_graph.sh --time build/ngrad     reads, infers, rewrites, fuses, lowers and plans 10000 and 100000 nodes
set -eu

if [ "${1-}" = --time ]; then
  graph=$(mktemp)
  trap 'rm -f "$graph"' EXIT
  for nodes in 10000 100000; do
    "$0" "$nodes" >"$graph"
    start=$(date +%s%N)
    # 500 MB of address space are more than that of memory.
    # shellcheck disable=SC3045
    left=$(ulimit -v 500000 && "$2" show "$graph" --format kernels | grep -c "^kernel")
    ms=$((($(date +%s%N) - start) / 1000000))
    echo "$nodes nodes in $(wc -c <"$graph") bytes: $ms ms, $left kernels, $((ms * 1000000 / nodes)) ns a node"
  done
  exit
fi

case ${1-} in
'' | *[!0-9]*)
  echo "usage: large_graph.sh NODES | --time NGRAD" >&2
  exit 2
  ;;
esac

awk -v nodes="$1" '
  function node(op, inputs, attributes) {
    printf "  - {op: %s, inputs: [%s], outputs: [%s]%s}\n", op, inputs, "v" ++count, attributes ? ", attributes: {" attributes "}" : ""
    return "v" count
  }
  BEGIN {
    print "format: ngrad/1\nname: large\ninputs:\n  - {name: x, type: f32, shape: [8, 16]}\n  - {name: g, type: f32, shape: [16]}"
    print "  - {name: half, type: bf16, shape: [8, 16]}"
    print "constants:\n  - {name: one, type: f32, shape: [], value: 1}\n  - {name: two, type: f32, shape: [], value: 2}"
    print "  - {name: epsilon, type: f32, shape: [], value: 1e-5}\nnodes:"
    last = "x"
    while (count < nodes) {
      dead = node("Exp", last)
      a = node("Multiply", last ", one")
      b = node("Multiply", "one, " last)
      c = node("Add", a ", " b)
      d = node("Multiply", "two, two")
      e = node("Divide", c ", " d)
      t = node("StaticTranspose", e, "order: [1, 0]")
      r = node("ReLU", t)
      u = node("StaticTranspose", r, "order: [1, 0]")
      s = node("StaticReshape", u, "shape: [128], special_zero: false")
      w = node("StaticReshape", s, "shape: [8, 16], special_zero: false")
      printf "  - {op: TypeCast, inputs: [half], outputs: [{name: v%d, type: f32}]}\n", ++count
      printf "  - {op: TypeCast, inputs: [v%d], outputs: [{name: v%d, type: bf16}]}\n", count, count + 1
      count++
      printf "  - {op: TypeCast, inputs: [v%d], outputs: [{name: v%d, type: f32}]}\n", count, count + 1
      h = "v" ++count
      y = node("Add", w ", " h)
      m = node("ReduceMean", y, "axes: [1], keep_dims: true")
      k = node("Subtract", y ", " m)
      q = node("Square", k)
      v = node("ReduceMean", q, "axes: [1], keep_dims: true")
      p = node("Add", v ", epsilon")
      z = node("Sqrt", p)
      n = node("Divide", k ", " z)
      last = node("Multiply", n ", g")
    }
    print "outputs: [" last "]"
  }'
