#!/bin/sh
# Should a kernel with more live values than registers be two kernels? Writes a graph whose region computes VALUES
# values of x, then their sum t, and then uses each value again, so that all are live at t. Split in two, the first
# kernel stores t, and the second loads it and computes the values again. One kernel was faster or equal in all settings
# tried (up to 64 values, each level of memory, AVX2 and AVX-512) but one: with 16 cheap values in memory on AVX-512,
# two kernels were 1.1 times as fast in some runs.
#
#   tests/bench/live_values.sh VALUES whole|first|second cheap|costly TYPE ELEMENTS > graph.yaml
#   tests/bench/live_values.sh --time build/ngrad [OPTION...]     times them; options go to ngrad bench: --isa avx2
set -eu

usage() {
  echo "usage: live_values.sh VALUES whole|first|second cheap|costly TYPE ELEMENTS | --time NGRAD [OPTION...]" >&2
  exit 2
}

if [ "${1-}" = --time ]; then
  [ $# -ge 2 ] || usage
  ngrad=$2 script=$0
  shift 2
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  echo "type values functions elements | one kernel, two kernels, in ms | one / two"
  for type in f32 bf16; do
    for functions in cheap costly; do
      for elements in 16384 1048576 16777216; do # in the first level of a core or two, in the second, in memory
        for values in 4 8 16 24 32; do
          for part in whole first second; do
            "$script" $values $part $functions $type $elements >"$work/$part.yaml"
          done
          "$ngrad" bench "$@" --json "$work/whole.yaml" "$work/first.yaml" "$work/second.yaml" |
            awk -v what="$type $values $functions $elements" '
              /"median_ms"/ {gsub(/[,"]/, ""); ms[++n] = $2}
              END {printf "%s | %.4g %.4g | %.3f\n", what, ms[1], ms[2] + ms[3], ms[1] / (ms[2] + ms[3])}'
        done
      done
    done
  done
  exit
fi

[ $# -eq 5 ] || usage
awk -v values="$1" -v part="$2" -v functions="$3" -v type="$4" -v elements="$5" '
  function node(op, inputs, output, attributes) {
    printf "  - {op: %s, inputs: [%s], outputs: [%s]%s}\n", op, inputs, output, attributes ? ", attributes: {" attributes "}" : ""
  }
  # As a balanced tree: a chain would be bound by the latency of additions.
  function add_up(a, name, last,   n, i) {
    for (n = values; n > 1; n = int((n + 1) / 2))
      for (i = 1; i <= n / 2; i++) {
        node("Add", a[i] ", " a[n + 1 - i], n == 2 ? last : name n "_" i)
        a[i] = n == 2 ? last : name n "_" i
      }
  }
  BEGIN {
    printf "format: ngrad/1\nname: live_%d_%s_%s\ninputs:\n", values, functions, part
    printf "  - {name: x, type: %s, shape: [%d]}\n", type, elements
    if (part == "second") printf "  - {name: t, type: %s, shape: [%d]}\n", type, elements
    if (functions == "cheap") print "constants:"
    for (i = 1; functions == "cheap" && i <= values; i++) printf "  - {name: c%d, type: %s, shape: [], value: %d}\n", i, type, i
    print "nodes:"
    for (i = 1; i <= values; i++)
      if (functions == "cheap") node("Add", "x, c" i, "v" i)
      else node("Elu", "x", "v" i, "alpha: " i)
    for (i = 1; part != "second" && i <= values; i++) a[i] = "v" i
    if (part != "second") add_up(a, "s", "t")
    for (i = 1; part != "first" && i <= values; i++) {
      node("SquaredDifference", "t, v" i, "d" i)
      a[i] = "d" i
    }
    if (part != "first") add_up(a, "r", "w")
    print "outputs: [" (part == "first" ? "t" : "w") "]"
  }'
