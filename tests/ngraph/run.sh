#!/bin/sh
# nGraph's own graphs: the .json files under test/models and test/files of a checkout of NervanaSystems/ngraph, in
# $NGRAD_NGRAPH or in ../ngraph beside this repository. On each, both backends agree, and so does the graph after
# convert. Usage: run.sh NGRAD [all]; without all, graphs that take more than a few seconds are left out.
set -u
program=$(realpath "$1")
most=${2:-some}
folder=${NGRAD_NGRAPH:-$(realpath "$(dirname "$0")/../../..")/ngraph}
if [ ! -d "$folder/test/models" ]; then
  echo "left out: ngraph: no checkout of NervanaSystems/ngraph, so none of its graphs (NGRAD_NGRAPH)"
  exit 77
fi
scratch=$(mktemp -d) || exit 2
trap 'rm -rf "$scratch"' EXIT
find "$folder/test/models" "$folder/test/files" -name '*.json' | sort >"$scratch/files"
size=-64k
[ "$most" = some ] || size=-64M

failed=0 count=0
fail() { # FILE WHAT
  echo "not ok: $1: $2"
  sed 's/^/  /' "$scratch/said" | head -20
  failed=$((failed + 1))
}

while read -r file; do
  if ! "$program" check "$file" >/dev/null 2>"$scratch/said"; then
    fail "$file" "not read"
    continue
  fi
  # VGG takes most of a minute
  [ -n "$(find "$file" -size $size ! -name conv_bias.json)" ] || [ "$most" != some ] || continue
  count=$((count + 1))
  start=$(date +%s)
  "$program" run "$file" --random --compare >"$scratch/said" 2>&1 || fail "$file" "the backends differ"
  took=$(($(date +%s) - start))
  [ "$most" = some ] || echo "$took s: $file"
  "$program" convert "$file" >"$scratch/graph.yaml" 2>"$scratch/said" || fail "$file" "not converted"
  { "$program" run "$file" --random --out "$scratch/one" >/dev/null 2>"$scratch/said" &&
    "$program" run "$scratch/graph.yaml" --random --out "$scratch/other" >/dev/null 2>"$scratch/said" &&
    diff -r "$scratch/one" "$scratch/other" >"$scratch/said"; } || fail "$file" "the graph of convert differs"
  rm -rf "$scratch/one" "$scratch/other"
done <"$scratch/files"
echo "$count of $(wc -l <"$scratch/files") graphs run, $failed failed"
[ "$failed" -eq 0 ]
