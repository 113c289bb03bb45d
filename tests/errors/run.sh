#!/bin/sh
# Graphs, and the messages that `ngrad check` must print for them. NAME.expected is the whole stderr (without it:
# empty). A graph with NAME.accepted is valid: exit status 0, and NAME.accepted is stdout, the typed graph. Every other
# graph is wrong: status 1.
# usage: run.sh [--update] NGRAD    (--update: write what it says now as what is expected; read it before committing)
set -u
update=
if [ "${1-}" = --update ]; then
  update=yes
  shift
fi
[ $# -eq 1 ] || { echo "usage: run.sh [--update] NGRAD" >&2; exit 2; }
case $1 in
  */*) ngrad=$(cd "$(dirname "$1")" && pwd)/$(basename "$1") ;;
  *) ngrad=$1 ;;
esac
cd "$(dirname "$0")" || exit 2
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT

failed=0 count=0
fail() { # NAME WHAT
  echo "not ok: $1: $2"
  failed=$((failed + 1))
}

for graph in *.yaml *.json; do
  name=${graph%.*}
  count=$((count + 1))
  "$ngrad" check "$graph" >"$scratch/whole" 2>"$scratch/err"
  status=$?
  grep -v '^# compiling: ' "$scratch/whole" >"$scratch/out" # which is of this machine's instruction set
  if [ "$update" ]; then
    rm -f "$name.expected" "$name.accepted"
    [ ! -s "$scratch/err" ] || cp "$scratch/err" "$name.expected"
    [ "$status" -ne 0 ] || cp "$scratch/out" "$name.accepted"
  fi
  expected=$name.expected
  [ -e "$expected" ] || expected=/dev/null
  wanted=1
  if [ -e "$name.accepted" ]; then
    wanted=0
    diff -u "$name.accepted" "$scratch/out" >"$scratch/diff" || { fail "$name" "stdout"; cat "$scratch/diff"; }
  fi
  [ "$status" -eq "$wanted" ] || fail "$name" "exit status $status, expected $wanted"
  diff -u "$expected" "$scratch/err" >"$scratch/diff" || { fail "$name" "stderr"; cat "$scratch/diff"; }
done
echo "$count graphs, $failed failures"
[ "$failed" -eq 0 ]
