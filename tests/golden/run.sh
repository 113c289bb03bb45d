#!/bin/sh
# Every dump is an input: what check prints of a model, and what is left of it after each pass, is a graph file that
# check prints again as it is.
set -eu
ngrad=$(realpath "$1")
cd "$(dirname "$0")/../.."

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
passed=0
failed=0

# The text in $work/first is printed again unchanged.
fixed_point() { # NAME
  if "$ngrad" check "$work/first" >"$work/second" && cmp -s "$work/first" "$work/second"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    diff -u "$work/first" "$work/second" || :
  fi
}

passes=$("$ngrad" passes | cut -d ' ' -f 1)
for model in models/*.yaml; do
  "$ngrad" check "$model" >"$work/first" || : >"$work/first"
  fixed_point "check $model"
  for pass in $passes; do
    "$ngrad" show "$model" --after "$pass" >"$work/first" || : >"$work/first"
    fixed_point "show $model --after $pass"
  done
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
