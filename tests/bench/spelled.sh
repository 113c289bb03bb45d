#!/bin/sh
# Times the gradients of norms that are spelled out, tests/bench/spelled, beside the operators that their first lines name.
# It gets the path of ngrad, beside which the bench program stands, and then that one's options.
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
