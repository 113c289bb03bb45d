#!/bin/sh
# Times gradients of norms in elementary operators, tests/bench/spelled, beside the operators that their first lines name.
# The first argument is the path of ngrad; the bench program is in the same folder. The others are its options.
set -eu
bench=$(dirname "$(realpath "$1")")/ngrad_bench_peers
cd "$(dirname "$0")/../.."
shift
status=0
for graph in tests/bench/spelled/*.yaml; do
  operator=$(sed -n '1s/^# \([^ ]*\) .*/\1/p' "$graph")
  "$bench" "$@" --beside "$operator" "$graph" || status=$?
done
exit $status
