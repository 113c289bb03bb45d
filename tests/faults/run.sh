#!/bin/sh
# Runs every verb with the n-th allocation failing, and with the n-th call failing that creates, writes, names or maps a
# file. The verb must exit with status 1 and one message, or complete its work. An output file must be the old one or
# the complete new one, and no other file may stay.
#
#   run.sh NGRAD SHIM   NGRAD_FAULTS=all takes every n of long runs too
set -u
ngrad=$(realpath "$1")
shim=$(realpath "${2:-}" 2>/dev/null) || { echo "left out: faults: no shim to preload on this system"; exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/new" "$work/wanted" "$work/tmp" || exit 1
cd "$work" || exit 1
export XDG_CACHE_HOME="$work/cache" TMPDIR="$work/tmp" OMP_NUM_THREADS=2 FAULT_COUNT="$work/count"
most=40 # calls of a verb that fail one by one; of more, as many evenly spread
[ "${NGRAD_FAULTS:-}" = all ] && most=100000
ntried=0
failed=0

cat >norm.yaml <<'Y'
format: ngrad/1
name: norm
dims: {N: 4}
inputs:
  - {name: x, type: f32, shape: [N, 3]}
  - {name: gamma, type: f32, shape: [3]}
nodes:
  - {op: ReduceMean, inputs: [x], outputs: [m], attributes: {axes: [1], keep_dims: true}}
  - {op: Subtract, inputs: [x, m], outputs: [c]}
  - {op: Multiply, inputs: [c, gamma], outputs: [y]}
outputs: [y]
Y
sed 's/Subtract/Subtrakt/' norm.yaml >wrong.yaml

cat >step.yaml <<'Y'
format: ngrad/1
name: a_step
dims: {N: 2}
inputs: [{name: x, type: f32, shape: [N, 3]}]
state: [{name: w, type: f32, shape: [3], init: {fan_in: 3}}]
nodes:
  - {op: Multiply, inputs: [x, w], outputs: [y]}
  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0, 1]}}
  - {op: ReduceMean, inputs: [y], outputs: [w_next], attributes: {axes: [0]}}
outputs: [loss]
updates: {w: w_next}
Y
cat >weights.yaml <<'Y'
format: ngrad/1
name: weights
inputs: [{name: x, type: f32, shape: [2, 3]}]
state: [{name: w, type: f32, shape: [3, 32], init: {fan_in: 3}}]
nodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]
outputs: [y]
Y
"$ngrad" run weights.yaml --random --save weights.npz >log 2>&1 || exit 1
cat >scaled.yaml <<'Y'
format: ngrad/1
name: scaled
inputs: [{name: x, type: f32, shape: [3]}]
constants: [{name: w, type: f32, shape: [3], values: [1, 2, 3]}]
nodes: [{op: Multiply, inputs: [x, w], outputs: [y]}]
outputs: [y]
Y
cat >normed.yaml <<'Y'
format: ngrad/1
name: normed
inputs: [{name: x, type: f32, shape: [2, 3]}]
state:
  - {name: w, type: f32, shape: [3], init: ones}
  - {name: mean, type: f32, shape: [3], init: zeros}
  - {name: variance, type: f32, shape: [3], init: ones}
nodes:
  - {op: Multiply, inputs: [x, w], outputs: [h]}
  - {op: BatchNormForwardTraining, inputs: [h, mean, variance], outputs: [y, m, v, bm, bv], attributes: {epsilon: 1.0e-3}}
  - {op: MeanSquaredError, inputs: [y, x], outputs: [loss]}
outputs: [loss, y]
updates: {mean: m, variance: v}
Y
sed -e '/w_next/d' -e 's/\[loss\]/[loss, y]/' step.yaml >net.yaml
printf '\0\0\010\002\0\0\0\005\0\0\0\003abcdefghijklmno' >x.idx
gzip -c x.idx >x.gz

complain() { # WHAT
  failed=$((failed + 1))
  echo "FAILED: $FAULT_KIND call $FAULT_AT, ngrad $arguments: $1"
  head -n 3 stderr | sed 's/^/  /'
}

# Old contents, in the places of what the verb writes.
place_old() {
  rm -rf new
  mkdir new
  find wanted -type f | while read -r file; do
    mkdir -p "$(dirname "new/${file#wanted/}")" && echo old >"new/${file#wanted/}"
  done
}

check_files() {
  find new -type f >listed
  while read -r file; do
    name=${file#new/}
    if [ ! -e "wanted/$name" ]; then complain "left $name"
    elif ! cmp -s "$file" "wanted/$name"; then
      [ "$(cat "$file")" = old ] || complain "half of $name"
      [ "$status" -eq 0 ] && complain "no new $name"
    fi
  done <listed
  for file in tmp/*; do [ -e "$file" ] && complain "left $file"; done
  for file in cache/ngrad/*.tmp* cache/ngrad/*/*.tmp*; do [ -e "$file" ] && complain "left $file"; done
}

run_once() { # ARGUMENT...; with FAULT_KIND and FAULT_AT
  status=0
  if [ -n "$cold" ]; then rm -rf cache; fi
  PATH=${programs-$PATH} LD_PRELOAD=$shim "$ngrad" "$@" >stdout 2>stderr </dev/null || status=$?
}

check_once() {
  nmessages=$(grep -c 'error:\|^libgomp: ' stderr)
  case $status in
    "$usual") [ "$usual" -ne 0 ] || [ "$nmessages" -eq 0 ] || complain 'status 0 and an error' ;;
    1) [ "$nmessages" -eq 1 ] || complain "$nmessages messages" ;;
    4) [ -n "$cold" ] || complain 'status 4 without a compiler' ;;
    *) complain "status $status" ;;
  esac
  if [ "$is_repeatable" = yes ] && [ "$status" -eq 0 ]; then cmp -s stdout wanted.out || complain 'another output'; fi
  check_files
}

# is_repeatable: stdout is the same each time.  cold: the kernel is compiled each time.
inject() { # IS_REPEATABLE COLD ARGUMENT...
  is_repeatable=$1 cold=$2
  shift 2
  arguments=$*
  rm -rf wanted new
  mkdir wanted new
  FAULT_KIND=none FAULT_AT=0
  export FAULT_KIND FAULT_AT FAULT_ERROR
  run_once "$@"
  usual=$status
  cp -r new/. wanted
  cp stdout wanted.out
  for FAULT_KIND in io memory; do
    FAULT_AT=0
    place_old
    rm -f count
    run_once "$@"
    if ! ncalls=$(cat count 2>/dev/null); then
      echo "the shim is not preloaded"
      exit 1
    fi
    step=$(((ncalls + most - 1) / most))
    [ "$step" -gt 0 ] || step=1
    FAULT_AT=1
    while [ "$FAULT_AT" -le "$ncalls" ]; do
      FAULT_ERROR=12 # ENOMEM
      [ "$FAULT_KIND" = memory ] || FAULT_ERROR=$((FAULT_AT % 2 ? 28 : 5)) # ENOSPC, EIO
      place_old
      run_once "$@"
      check_once
      ntried=$((ntried + 1))
      FAULT_AT=$((FAULT_AT + step))
    done
  done
}

inject yes '' check norm.yaml
inject yes '' check norm.yaml --json
inject yes '' check wrong.yaml
inject yes '' show norm.yaml --format kernels
inject yes '' show norm.yaml --format loops
inject yes '' convert norm.yaml -o new/converted.yaml
inject yes '' convert step.yaml -o new/converted.onnx
inject yes '' grad norm.yaml -o new/gradient.yaml
inject yes '' grad norm.yaml
inject yes '' grad scaled.yaml --wrt w
inject yes '' grad norm.yaml --forward-mode -o new/tangents.yaml
inject yes '' grad normed.yaml --hessian --wrt w --of loss -o new/hessian.yaml
inject yes '' grad norm.yaml --forward new/forward.yaml -o new/gradient.yaml
inject yes '' train net.yaml --optimizer adam --accumulate 2 -o new
inject yes '' train normed.yaml --accumulate 2 --sync-batch-norm -o new
inject yes '' gradcheck norm.yaml
inject yes '' gradcheck norm.yaml --json
inject yes '' emit norm.yaml --self-test --depfile new/norm.d -o new
inject yes '' emit weights.yaml --state weights.npz --weights s8 -o new
inject yes '' emit norm.yaml --package cmake --self-test -o new
inject yes '' emit norm.yaml --package arduino -o new
inject yes '' convert weights.yaml --state weights.npz --weights bf16 -o new/narrow.yaml
inject no '' run norm.yaml --random --out new
inject no '' run norm.yaml --random --compare --json
inject no '' run norm.yaml --random --dump-dir new
inject no '' run step.yaml --random --save new/state.npz
inject no '' fit step.yaml --input x=x.idx -o new
inject no '' fit step.yaml --input x=x.gz -q
inject no '' bench norm.yaml --seconds 0.001 --sweep N=2 --against --no-fuse
programs=none # a failure of dot's is not ngrad's
inject yes '' report norm.yaml --no-times -o new/report.html
unset programs
inject yes '' ops LayerNorm
inject yes '' ops --json
inject yes '' passes
most=$((most / 8))
inject no cold run norm.yaml --random --out new
echo "$ntried runs with a fault, $failed wrong"
[ "$failed" -eq 0 ]
