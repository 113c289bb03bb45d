#!/bin/sh
# Checks that thresholds stand in the table passes/costs/costs.def: no function of the passes that lower and schedule has
# an enum of its own. And that each graph that the table names is one of the benchmarks.
set -eu
cd "$(dirname "$0")/.."

status=0
if grep -n '^ .*\benum {' passes/lower/*.[ch] passes/schedule/*/*.[ch]; then
  echo 'a threshold is a row of passes/costs/costs.def; a limit that is no cost stands at the top of its file'
  status=1
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
for table in models/bench/*.table; do
  awk -v folder="$folder" -v templates=models/bench/templates -f tests/bench/expand.awk "$table"
done
# shellcheck disable=SC2013 # names are single words
for graph in $(awk -F '"' '/^COST\(/ { print $4 }' passes/costs/costs.def | sort -u); do
  if [ ! -f "models/bench/$graph.yaml" ] && [ ! -f "models/$graph.yaml" ] && [ ! -f "$folder/$graph.yaml" ]; then
    echo "passes/costs/costs.def: $graph: expected a graph of models or models/bench"
    status=1
  fi
done
exit $status
