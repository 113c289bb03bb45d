#!/bin/sh
# Prints a table of the C that is emitted for models: lines and kilobytes of the source for all instruction sets, and the seconds
# of processor time that gcc -O2 and clang -O2 take for it.
#
#   tests/bench/code_size.sh NGRAD               of models/*.yaml and of the training steps of models/train
#   tests/bench/code_size.sh NGRAD OLD           beside the C of OLD, an earlier program
#   tests/bench/code_size.sh NGRAD [OLD] -- GRAPH...
#
# A compiler that takes more than LIMIT seconds (default 600) is stopped.
set -eu
limit=${LIMIT:-600}
new=$(realpath "$1")
shift
old=
if [ $# -gt 0 ] && [ "$1" != -- ]; then
  old=$(realpath "$1")
  shift
fi
[ $# -eq 0 ] || shift
models=$(realpath "$(dirname "$0")/../../models")
[ $# -gt 0 ] || set -- "$models"/*.yaml "$models"/train/*.yaml
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Writes the C of a graph to $work/c: of a graph with parameters, of its training step.
make_source() { # NGRAD GRAPH
  rm -rf "$work/c"
  if grep -q '^state:' "$2"; then "$1" train "$2" --threads openmp -o "$work/c"
  else "$1" emit "$2" -o "$work/c"; fi >/dev/null 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
}

# The compiler's processor time, which other work on the machine changes little.
seconds() { # COMPILER SOURCE
  if (
    # shellcheck disable=SC3045 # dash and bash have it
    ulimit -t "$limit"
    "$1" -std=c11 -O2 -c "$2" -o "$work/object" 2>/dev/null || exit
    times >"$work/times"
  ); then
    awk 'NR == 2 { split($1, user, /[ms]/); printf "%.1f", user[1] * 60 + user[2] }' "$work/times"
  else
    printf '> %s' "$limit"
  fi
}

measure() { # NGRAD GRAPH
  make_source "$1" "$2"
  source=$(find "$work/c" -name '*.c' ! -name '*_mpi.c')
  printf ' %d | %d | %s | %s |' "$(wc -l <"$source")" "$((($(wc -c <"$source") + 500) / 1000))" \
    "$(seconds gcc "$source")" "$(seconds clang "$source")"
}

printf '| model |%s lines | KB | gcc, s | clang, s |\n' "${old:+ lines before | KB | gcc, s | clang, s |}"
printf '|---|%s---:|---:|---:|---:|\n' "${old:+---:|---:|---:|---:|}"
for graph in "$@"; do
  printf '| %s |' "$(basename "$graph" .yaml)"
  [ -z "$old" ] || measure "$old" "$graph"
  measure "$new" "$graph"
  printf '\n'
done
