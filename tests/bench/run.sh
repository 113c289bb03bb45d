#!/bin/sh
# Runs the suite, models/bench, on ngrad and on what peers the program was built with. It gets the path of ngrad, beside
# which the bench program stands, and then that one's options; --help tells them. The graphs of the suite's tables are
# written to the folder bench-suite beside the two.
set -eu
folder=$(dirname "$(realpath "$1")")
here=$(realpath "$(dirname "$0")")
suite=$(realpath "$here/../../models/bench")
shift
rm -rf "$folder/bench-suite"
mkdir "$folder/bench-suite"
for table in "$suite"/*.table; do
  awk -v folder="$folder/bench-suite" -v templates="$suite/templates" -f "$here/expand.awk" "$table"
done
exec "$folder/ngrad_bench_peers" "$@" "$suite"/*.yaml "$folder/bench-suite"/*.yaml
