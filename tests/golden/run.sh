#!/bin/sh
# The results of passes. tests/golden/PASS/NAME.yaml is a graph, and NAME.expected the graph after the pass; in
# tests/golden/loops, NAME.expected has its loops for AVX2.
# - Every dump is a valid input: the graph that check prints for a model or a case, and the graph after each pass, are
#   printed by check unchanged.
# - Every case, compiled with and without fusion, has the interpreter's results of the graph as written; so has each of
#   the graphs that --dump-dir writes.
# - Gradients of norms in elementary operators, tests/bench/spelled, become the loops of the operator in their first line.
# NGRAD_GOLDEN_STEP=4 takes each fourth graph: with sanitizers programs start slowly, and this test starts thousands.
# Without NGRAD_CHECK (tests/effort.h), each fourth is printed after each pass, and cases are compiled once.
# NGRAD_GOLDEN_WRITE=1 writes the expected files again; read them before you commit them.
set -eu
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
ngrad=$(realpath "$1")
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

count() { # STATUS NAME
  if [ "$1" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $2"
  fi
}

typed() { # GRAPH; without the comment on memory, which passes change
  "$ngrad" check "$1" >"$work/typed" && grep -vE '^# (workspace|memory|compiling|RAM in C):' "$work/typed"
}

# The text in $work/first is printed again unchanged.
fixed_point() { # NAME
  status=0
  { typed "$work/first" >"$work/second" && diff -u "$work/first" "$work/second"; } || status=1
  count $status "$1"
}

# Whether the graph is one of those that are taken.
step=${NGRAD_GOLDEN_STEP:-1}
number=0
is_taken() { # STEP
  number=$((number + 1))
  [ $((number % $1)) -eq 0 ]
}
printed_step=$step second_way=--no-fuse
if [ -z "${NGRAD_CHECK-}" ]; then printed_step=$((4 > step ? 4 : step)) second_way=; fi

passes=$("$ngrad" passes | sed -n '/(on kernels)/!s/^\([^ ]*\) .*/\1/p')
for graph in models/*.yaml tests/golden/*/*.yaml; do
  is_taken "$printed_step" || continue
  typed "$graph" >"$work/first" || : >"$work/first"
  fixed_point "check $graph"
  : >"$work/before"
  for pass in $passes; do
    "$ngrad" show "$graph" --after "$pass" >"$work/first" || : >"$work/first"
    # Most passes change nothing.
    { [ -s "$work/first" ] && cmp -s "$work/before" "$work/first"; } || fixed_point "show $graph --after $pass"
    mv "$work/first" "$work/before"
  done
done

for graph in tests/golden/*/*.yaml; do
  is_taken "$step" || continue
  pass=$(basename "$(dirname "$graph")")
  expected=${graph%.yaml}.expected
  how="--after $pass"
  [ "$pass" != loops ] || how='--format loops --isa avx2'
  # shellcheck disable=SC2086 # several words
  "$ngrad" show "$graph" $how >"$work/left" || : >"$work/left"
  [ -z "${NGRAD_GOLDEN_WRITE-}" ] || cp "$work/left" "$expected"
  status=0
  diff -u "$expected" "$work/left" || status=1
  count $status "show $graph $how"

  status=0
  for how in "--dump-dir=$work/dump" $second_way; do
    "$ngrad" run "$graph" --random --compare "$how" >"$work/said" || status=1
    [ $status -eq 0 ] || cat "$work/said"
  done
  count $status "run $graph --compare"

  # A graph that does nothing writes its inputs.
  names=$(sed -n '/^inputs:/,/^[cn]/s/.*{name: \([^,]*\),.*/\1/p' "$graph" | paste -sd , -)
  { sed '/^constants:/,$d; /^nodes:/,$d' "$graph" && echo "outputs: [$names]"; } >"$work/inputs.yaml"
  "$ngrad" run "$work/inputs.yaml" --random --backend interpreter --out "$work/inputs" >"$work/said" || status=1
  "$ngrad" run "$graph" --in "$work/inputs" --backend interpreter --out "$work/results" >"$work/said" || status=1
  for dump in "$work"/dump/*.yaml; do
    [ -e "$dump" ] || continue
    status=0
    "$ngrad" run "$dump" --in "$work/inputs" --backend interpreter --expect "$work/results" >"$work/said" || status=1
    [ $status -eq 0 ] || cat "$work/said"
    count $status "$graph: $(basename "$dump")"
  done
  rm -rf "$work/dump" "$work/inputs" "$work/results"
done

gradient_loops() { # GRAPH; of the kernel that has the norm's gradient
  "$ngrad" show "$1" --format kernels | sed -n '/^kernel.*NormT*[a-z]*Backward/,/^workspace/p' | grep '^ *\(loop\|sweep\)'
}

for graph in tests/bench/spelled/*.yaml; do
  operator=$(sed -n '1s/^# \([^ ]*\) .*/\1/p' "$graph")
  status=0
  { gradient_loops "$operator" >"$work/operator" && gradient_loops "$graph" >"$work/spelled" &&
    diff -u "$work/operator" "$work/spelled"; } || status=1
  count $status "the loops of $graph beside those of $operator"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
