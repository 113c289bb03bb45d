#!/bin/sh
# The graphs of ../shared/onednn-graph (or $NGRAD_SHARED/onednn-graph), unchanged: each is converted to YAML, which converts
# to itself, and both backends agree on random data. Without NGRAD_CHECK (tests/effort.h), takes a graph only if it has an
# operator that no graph before it has.
# Graphs with an operator that ngrad lacks are counted separately, and fail too.
# usage: run.sh NGRAD [--all] [ARGUMENT...]   (--all: also those of a million elements and more; the rest goes to ngrad run)
set -eu
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"

if [ "${2-}" = --case ]; then # one of several at once, started below
  ngrad=$1 name=$3
  shift 3
  work=$root/$name
  mkdir "$work"
  if "$ngrad" convert "$cases/$name" -o "$work/once.yaml" >"$work/said" 2>&1 &&
    "$ngrad" convert "$work/once.yaml" 2>"$work/warnings" | diff "$work/once.yaml" - >"$work/said" &&
    "$ngrad" run "$cases/$name" --random --compare "$@" >"$work/said" 2>&1; then
    echo "passed $name" >>"$root/results" # a short line is written at once
  else
    echo "failed $name" >>"$root/results"
    mv "$work/said" "$root/$name.said"
  fi
  rm -r "$work"
  exit 0
fi

ngrad=$(realpath "$1")
shift
most=1000000
least_new=1
[ -z "${NGRAD_CHECK-}" ] || least_new=0
if [ "${1-}" = --all ]; then
  most=1e30
  least_new=0
  shift
fi
cases=${NGRAD_SHARED:-$(realpath "$(dirname "$0")/../..")/../shared}/onednn-graph
if [ ! -d "$cases" ]; then
  echo "left out: oneDNN's graphs, as there is no $cases"
  exit 77
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
OMP_WAIT_POLICY=passive
export cases root OMP_WAIT_POLICY

# What ngrad has of what each graph needs: "runs NAME OPERATORS" or "lacks NAME OPERATORS".
: >"$root/results"
{
  "$ngrad" ops | cut -d ' ' -f 1
  printf 'End\nundef\n' # which the reader resolves
} >"$root/operators"
awk -F '\t' -v most="$most" -v least_new="$least_new" '
  NR == FNR { known[$1]; next }
  $3 + 0 < most + 0 {
    state = "runs"
    nnew = 0
    n = split($2, operators, ">")
    for (i = 1; i <= n; i++) {
      if (!(operators[i] in known)) state = "lacks"
      nnew += !taken[operators[i]]++
    }
    if (nnew < least_new) next
    print state, $1, $2, $3
  }
' "$root/operators" "$cases/index.tsv" >"$root/plan"

# Tensors of many elements are run one at a time, for the interpreter has eight bytes for each.
awk '$1 == "runs" && $4 < 1e7 { print $2 }' "$root/plan" |
  xargs -r -P "$(nproc)" -I '{}' sh "$0" "$ngrad" --case '{}' "$@"
awk '$1 == "runs" && $4 >= 1e7 { print $2 }' "$root/plan" | xargs -r -I '{}' sh "$0" "$ngrad" --case '{}' "$@"

for said in "$root"/*.said; do
  [ -e "$said" ] || continue
  echo "FAILED: $(basename "$said" .said)"
  sed 's/^/  /' "$said"
done

# A graph counts for each of its operators; one that cannot be run, for those that are lacking.
awk '
  FILENAME == ARGV[1] { known[$1]; next }
  FILENAME == ARGV[2] { result[$2] = $1; next }
  {
    state = $1 == "lacks" ? "lacking" : result[$2] == "passed" ? "passed" : "failed"
    total[state]++
    n = split($3, operators, ">")
    for (i = 1; i <= n; i++) {
      name = operators[i]
      if (seen[$2, name]++ || (state == "lacking" && name in known)) continue
      count[name, state]++
      names[name]
    }
  }
  END {
    format = "%-28s %7s %7s %14s\n"
    printf format, "operator", "passed", "failed", "not supported"
    for (name in names)
      printf format, name, count[name, "passed"] + 0, count[name, "failed"] + 0, count[name, "lacking"] + 0 | "sort"
    close("sort")
    printf "graphs: %d passed, %d failed, %d not supported\n", total["passed"], total["failed"], total["lacking"]
    exit total["failed"] || total["lacking"] || !total["passed"]
  }
' "$root/operators" "$root/results" "$root/plan"
