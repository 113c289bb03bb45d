#!/bin/sh
# Graphs beside the gradients that `ngrad grad` writes for them, with the options in the graph's first line. NAME.expected
# is what it writes to stdout, or for a graph that is wrong (exit status 1) to stderr. What it writes is a graph file that
# check prints again as it is, both backends make the same of it, and gradcheck finds it right.
# usage: run.sh [--update] NGRAD    (--update: write what it says now as what is expected; read it before committing)
set -u
update=
if [ "${1-}" = --update ]; then
  update=yes
  shift
fi
[ $# -eq 1 ] || { echo "usage: run.sh [--update] NGRAD" >&2; exit 2; }
ngrad=$(realpath "$1")
cd "$(dirname "$0")" || exit 2
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

count() { # STATUS NAME
  if [ "$1" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $2"
    cat "$work/said"
  fi
}

for graph in *.yaml; do
  options=$(sed -n '1s/^# ngrad grad *//p' "$graph")
  wrong=0
  # shellcheck disable=SC2086 # several words
  "$ngrad" grad "$graph" $options >"$work/gradient.yaml" 2>"$work/message" || wrong=$?
  written=$work/gradient.yaml
  [ $wrong -eq 0 ] || written=$work/message
  [ -z "$update" ] || cp "$written" "${graph%.yaml}.expected"
  diff -u "${graph%.yaml}.expected" "$written" >"$work/said"
  count $? "grad $graph $options"
  if [ $wrong -ne 0 ]; then
    [ $wrong -eq 1 ] && [ ! -s "$work/gradient.yaml" ]
    count $? "grad $graph: status $wrong, expected 1 and nothing on stdout"
    continue
  fi
  "$ngrad" check "$work/gradient.yaml" >"$work/again" 2>"$work/said" && cmp -s "$work/gradient.yaml" "$work/again"
  count $? "check of the gradient of $graph"
  "$ngrad" run "$work/gradient.yaml" --random --compare >"$work/said" 2>&1
  count $? "run of the gradient of $graph"
  # shellcheck disable=SC2086
  "$ngrad" gradcheck "$graph" $options >"$work/said" 2>&1
  count $? "gradcheck $graph"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
