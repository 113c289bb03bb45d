#!/bin/sh
# Runs the suite, models/bench, on ngrad and on the peers that the bench program was built with. The first argument is the
# path of ngrad; the bench program is in the same folder. The others are options of the bench program (--help). The graphs
# of the suite's tables are written to the folder bench-suite beside the programs. With --products N as the first option,
# takes N products of random shapes in place of the suite; --seed S after it chooses other shapes.
#
# usage: run.sh NGRAD [--products N [--seed S]] [ARGUMENT...]
set -eu
if [ ! -x "${1:-}" ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
folder=$(dirname "$(realpath "$1")")
here=$(realpath "$(dirname "$0")")
suite=$(realpath "$here/../../models/bench")
shift

expand() { # TABLE
  awk -v folder="$folder/bench-suite" -v templates="$suite/templates" -f "$here/expand.awk" "$1"
}

rm -rf "$folder/bench-suite"
mkdir "$folder/bench-suite"
if [ "${1:-}" = --products ]; then
  count=${2:?--products: expected a number}
  shift 2
  seed=1
  if [ "${1:-}" = --seed ]; then
    seed=${2:?--seed: expected a number}
    shift 2
  fi
  awk -v count="$count" -v seed="$seed" -f "$here/random_products.awk" >"$folder/bench-suite/random.table"
  expand "$folder/bench-suite/random.table"
  exec "$folder/ngrad_bench_peers" "$@" "$folder/bench-suite"/*.yaml
fi
for table in "$suite"/*.table; do expand "$table"; done
exec "$folder/ngrad_bench_peers" "$@" "$suite"/*.yaml "$folder/bench-suite"/*.yaml
