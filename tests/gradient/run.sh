#!/bin/sh
# Graphs, and the gradients that `ngrad grad` must write for them, with the options in the graph's first line. NAME.expected
# is its stdout, or for a wrong graph (exit status 1) its stderr. show prints the written graph unchanged, both backends
# agree on it, and gradcheck accepts it. NAME.by_hand, if it exists, is the gradient written by hand, with the same names of
# inputs and outputs: both graphs must become the same kernels, and give the same results on the same data.
# Without NGRAD_CHECK (tests/effort.h), each third gradient is compiled.
# usage: run.sh [--update] NGRAD    (--update: write what it says now as what is expected; read it before committing)
set -u
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
update=
if [ "${1-}" = --update ]; then
  update=yes
  shift
fi
[ $# -eq 1 ] || { echo "usage: run.sh [--update] NGRAD" >&2; exit 2; }
ngrad=$(realpath "$1")
cd "$(dirname "$0")" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

kernels() { # GRAPH; whatever nodes they are made of
  "$ngrad" show "$1" --format kernels | sed 's/^\(kernel [0-9]*\):.*/\1/; s/ (line[s0-9, ]*)//'
}

# A graph that does nothing writes its inputs.
write_inputs() { # GRAPH DIRECTORY
  names=$(sed -n '/^inputs:/,/^[cn]/s/.*{name: \([^,]*\),.*/\1/p' "$1" | paste -sd , -)
  { sed '/^constants:/,$d; /^nodes:/,$d' "$1" && echo "outputs: [$names]"; } >"$work/inputs.yaml"
  "$ngrad" run "$work/inputs.yaml" --random --backend interpreter --out "$2"
}

compare_with_hand_written() { # GRADIENT HAND_WRITTEN
  cp "$2" "$work/by_hand.yaml"
  kernels "$1" >"$work/own" && kernels "$work/by_hand.yaml" >"$work/others" && diff -u "$work/others" "$work/own" &&
    write_inputs "$1" "$work/data" && "$ngrad" run "$1" --in "$work/data" --out "$work/results" &&
    "$ngrad" run "$work/by_hand.yaml" --in "$work/data" --expect "$work/results"
}

count() { # STATUS NAME
  if [ "$1" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $2"
    cat "$work/said"
  fi
}

turn=0
for graph in *.yaml; do
  options=$(sed -n '1s/^# ngrad grad *//p' "$graph")
  wrong=0
  # shellcheck disable=SC2086 # several words
  "$ngrad" grad "$graph" $options >"$work/gradient.yaml" 2>"$work/message" || wrong=$?
  written=$work/gradient.yaml
  [ $wrong -eq 0 ] || written=$work/message
  [ -z "$update" ] || cp "$written" "${graph%.yaml}.expected"
  diff -u "${graph%.yaml}.expected" "$written" >"$work/said"
  count $? "grad $graph $options"
  if [ $wrong -ne 0 ]; then
    [ $wrong -eq 1 ] && [ ! -s "$work/gradient.yaml" ]
    count $? "grad $graph: status $wrong, expected 1 and nothing on stdout"
    continue
  fi
  "$ngrad" show "$work/gradient.yaml" >"$work/again" 2>"$work/said" && cmp -s "$work/gradient.yaml" "$work/again"
  count $? "show the gradient of $graph"
  turn=$((turn + 1))
  if [ -n "${NGRAD_CHECK-}" ] || [ $((turn % 3)) -eq 0 ]; then
    "$ngrad" run "$work/gradient.yaml" --random --compare >"$work/said" 2>&1
    count $? "run of the gradient of $graph"
  fi
  # shellcheck disable=SC2086
  "$ngrad" gradcheck "$graph" $options >"$work/said" 2>&1
  count $? "gradcheck $graph"
  by_hand=${graph%.yaml}.by_hand
  if [ -e "$by_hand" ]; then
    compare_with_hand_written "$work/gradient.yaml" "$by_hand" >"$work/said" 2>&1
    count $? "the gradient of $graph beside $by_hand"
  fi
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
