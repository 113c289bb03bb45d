#!/bin/sh
# Compiles every model, runs both backends on the same random data, and prints their largest difference over all outputs
# and the time of each. Exits with 0 if all agree.
set -eu
ngrad=$(realpath "$1")
shift
cd "$(dirname "$0")/.."
[ $# -gt 0 ] || set -- models/*.yaml

said=$(mktemp)
trap 'rm -f "$said"' EXIT
status=0
"$ngrad" --version
printf '%-34s %11s %13s %10s %11s %14s\n' model 'relative L2' 'largest error' 'compile ms' 'codegen ms' 'interpreter ms'
for model in "$@"; do
  "$ngrad" run "$model" --random --compare >"$said" || status=1
  awk -v model="$(basename "$model" .yaml)" '
    function larger(a, b) { return a ~ /inf|nan/ || (b !~ /inf|nan/ && a + 0 > b + 0) }
    $NF == "ok" || $NF == "FAILED" {
      rows++
      if (larger($3, l2)) l2 = $3
      if (larger($5, error)) error = $5
      if ($NF == "FAILED") wrong = 1
    }
    $1 == "codegen:" { codegen = $2; if (match($0, /compiled in [^ ]*/)) compile = substr($0, RSTART + 12, RLENGTH - 12) }
    $1 == "interpreter:" { interpreter = $2 }
    END {
      if (!rows) l2 = error = codegen = interpreter = "-"
      if (compile == "") compile = "cached"
      verdict = wrong || !rows ? "FAILED" : "ok"
      printf "%-34s %11s %13s %10s %11s %14s  %s\n", model, l2, error, compile, codegen, interpreter, verdict
    }
  ' "$said"
done
exit $status
