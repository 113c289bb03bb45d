#!/bin/sh
# Runs what ./dev test leaves out, in named parts: each test with all its combinations, sanitizers, fuzzers, and a new
# machine. A part that has passed on a commit is not run again on it, so that an interrupted run can go on. The output
# of a part is in build/check/COMMIT/PART.log.
#
# usage: ./dev check [--again] [PART...]    --list: the parts; --again: also those that have passed
#
# NGRAD_SECONDS=1800: how long each fuzzer runs, a minute unless said. NGRAD_JOBS=1: how many parts run at once, one a core
# unless said. NGRAD_OLD=COMMIT: an earlier commit or program, from whose C same-text allows no difference.
set -u
cd "$(dirname "$0")/.." || exit 2
export NGRAD_CHECK=1

# One line a part: its name, its program, and what it is for. Long ones begin first.
table() {
  ctest --preset release --print-labels | sed -n 's/^  //p' | grep -vx check | while read -r label; do
    printf '%s|with_all %s|ctest -L %s, with every combination\n' "$label" "$label" "$label"
  done
  cat <<'T'
sanitize|env NGRAD_CHECK= ./dev sanitize|unit, errors, golden and cli tests under ASan and UBSan; the API's under TSan
emit-all|tests/emit/run.sh build/ngrad all|what is emitted, by each compiler, language, instruction set and way to share out work
oneDNN-graphs|./dev conformance|all of ../shared/onednn-graph, the largest too
programs|./dev fuzz program --seed 1 --seconds SECONDS|random graphs through everything
programs-sanitized|./dev fuzz program --sanitize --seed 2 --seconds SECONDS|the same with a library under sanitizers
fuzz-graph|./dev fuzz graph -max_total_time=SECONDS|hostile graph files
fuzz-onednn|./dev fuzz onednn -max_total_time=SECONDS|hostile dumps of oneDNN
fuzz-onnx|./dev fuzz onnx -max_total_time=SECONDS|hostile ONNX models
fuzz-ngraph|./dev fuzz ngraph -max_total_time=SECONDS|hostile JSON of nGraph
fuzz-npy|./dev fuzz npy -max_total_time=SECONDS|hostile tensors
fuzz-npz|./dev fuzz npz -max_total_time=SECONDS|hostile checkpoints
fuzz-data|./dev fuzz data -max_total_time=SECONDS|hostile data sets
check-speed|build/tests/test_check_speed_test|the time of ngrad check, by the nodes and beside a fixed loop
exhaustive|./dev exhaustive|exp, log, tanh ... on every f32
same-text|tests/same_text.sh OLD build/ngrad|the C of models and random graphs is byte for byte that of NGRAD_OLD
site|./dev docs|the site of the documents, with what they say
new-machine|tests/new_machine.sh|README's two commands on a Debian 12 that was never used
T
}

with_all() { # LABEL
  ctest --preset release -L "^$1\$" --timeout 14400
}

# One of several at once, started below. Its state: passed, failed or skipped, and the seconds.
if [ "${1-}" = --part ]; then
  part=$2 state=$3
  program=$(table | sed -n "s/^$part|\([^|]*\)|.*/\1/p" |
    sed "s/SECONDS/${NGRAD_SECONDS:-60}/; s| OLD | ${NGRAD_OLD:-none} |")
  echo "check: $part begins"
  start=$(date +%s) status=0
  if [ "${program%% *}" = with_all ]; then
    $program >"$state/$part.log" 2>&1 </dev/null || status=$?
  else
    # shellcheck disable=SC2086 # several words
    env $program >"$state/$part.log" 2>&1 </dev/null || status=$?
  fi
  case $status in 0) verdict=passed ;; 77) verdict=skipped ;; *) verdict=FAILED ;; esac
  echo "$verdict $(($(date +%s) - start))" >"$state/$part.state"
  echo "check: $part $(cat "$state/$part.state") s"
  exit 0
fi

if [ "${1-}" = --list ]; then
  table | awk -F '|' '{ printf "%-20s %s\n", $1, $3 }'
  exit
fi
commit=$(git describe --always --dirty --abbrev=12 2>/dev/null) || commit=unknown
state=build/check/$commit
case $commit in *-dirty | unknown) rm -rf "$state" ;; esac
mkdir -p "$state"
if [ "${1-}" = --again ]; then
  shift
  rm -f "$state"/*.state
fi
# shellcheck disable=SC2046 # a word a part
[ $# -gt 0 ] || set -- $(table | cut -d '|' -f 1)
for part; do
  table | grep -q "^$part|" || { echo "check: there is no part $part; ./dev check --list names them" >&2 && exit 2; }
done
echo "check: $# parts on $commit; what they print goes to $state"
for part; do
  grep -qs '^passed' "$state/$part.state" || echo "$part"
done | xargs -r -n 1 -P "${NGRAD_JOBS:-$(nproc)}" -I '{}' "$0" --part '{}' "$state"

echo
failed=0
for part; do
  read -r verdict seconds <"$state/$part.state" || verdict=interrupted seconds=0
  printf '%-20s %-8s %6d s\n' "$part" "$verdict" "$seconds"
  case $verdict in passed | skipped) continue ;; esac
  failed=$((failed + 1))
  grep -E 'FAILED|\*\*\*|[: ]error:|^dev: |finding' "$state/$part.log" | head -n 10 | sed 's/^/    /'
done
sed -n 's/^left out: /  /p' "$state"/*.log | sort -u | sed '1s/^/left out on this machine:\n/'
echo "check: $commit: $(($# - failed)) passed or skipped, $failed failed"
[ "$failed" -eq 0 ]
