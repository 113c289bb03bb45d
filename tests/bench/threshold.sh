#!/bin/sh
# Shows what happens beside a threshold: times graphs in turns with the cost at 1/4, 1/2, 1, 2 and 4 times its value, and
# prints a line for each value, with the median ratio of its time to the usual one and the ratio's 95 % interval. A value
# that leaves the emitted C as it is is not timed. The line of the usual value, timed beside itself, shows the noise.
# Graphs are files, or names of the suite's; unless given, the graph that the cost's row names. Other arguments go to
# ngrad bench.
#
# usage: threshold.sh NGRAD NAME [GRAPH...] [--OPTION=VALUE...]
set -eu
if [ ! -x "${1:-}" ] || [ -z "${2:-}" ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
ngrad=$(realpath "$1")
name=$2
shift 2
suite=$(realpath "$(dirname "$0")/../../models/bench")
folder=$(dirname "$ngrad")/bench-threshold
mkdir -p "$folder"
for table in "$suite"/*.table; do
  awk -v folder="$folder" -v templates="$suite/templates" -f "$(dirname "$0")/expand.awk" "$table"
done

# The members of the cost's row, one a line.
row=$("$ngrad" passes --costs --json | awk -v name="$name" '
  $1 == "\"name\":" { is_row = $2 == "\"" name "\"," }
  is_row { sub(/^ *"/, ""); sub(/,$/, ""); sub(/": "?/, " "); sub(/"$/, ""); print }')
member() { echo "$row" | sed -n "s/^$1 //p"; }
[ -n "$row" ] || exec "$ngrad" show --cost "$name=0" --format kernels "$suite/../layer_norm_forward_backward.yaml" # refuses the name

find_graph() { # GRAPH
  for file in "$1" "$suite/$1.yaml" "$suite/../$1.yaml" "$folder/$1.yaml"; do
    [ ! -f "$file" ] || { echo "$file" && return; }
  done
  echo "threshold.sh: $1: expected a file, or the name of a graph of models/bench" >&2
  return 1
}

show() { # GRAPH VALUE
  "$ngrad" show "$1" --format c --cost "$name=$2"
}

options=
graphs=
for argument; do
  case $argument in
    -*) options="$options $argument" ;;
    *) graphs="$graphs $argument" ;;
  esac
done
[ -n "$graphs" ] || graphs=$(member graph)
value=$(member value)
echo "$name = $value $(member unit): $(member what)"
[ -n "$graphs" ] || { echo 'it is not known which graph of the suite the value decides: name one' && exit 1; }
for graph in $graphs; do
  file=$(find_graph "$graph")
  show "$file" "$value" >"$folder/usual.c"
  printf '%s\n%12s  %9s  %7s  %-18s  %s\n' "$graph" value ms ratio '95 % interval' C
  last=
  for tried in $((value / 4)) $((value / 2)) "$value" $((value * 2)) $((value * 4)); do
    if [ "$tried" = "$last" ] || [ "$tried" -lt "$(member least)" ] || [ "$tried" -gt "$(member most)" ]; then continue; fi
    last=$tried
    if [ "$tried" -ne "$value" ] && show "$file" "$tried" | cmp -s - "$folder/usual.c"; then
      printf '%12s  %9s  %7s  %-18s  %s\n' "$tried" - - - same
      continue
    fi
    # shellcheck disable=SC2016 # the written program expands them
    printf '#!/bin/sh\nverb=$1\nshift\nexec %s "$verb" --cost %s "$@"\n' "'$ngrad'" "$name=$tried" >"$folder/program"
    chmod +x "$folder/program"
    # shellcheck disable=SC2086 # several options
    "$ngrad" bench --with "$folder/program" --json $options "$file" | awk -v tried="$tried" -v usual="$value" '
      { gsub(/[",:]/, "") }
      $1 == "median_ms" { ms = $2 }
      $1 == "median" || $1 == "low" || $1 == "high" { ratio[$1] = $2 }
      END {
        printf "%12s  %9.4g  %7.3f  %.3f to %.3f      %s\n", tried, ms, ratio["median"], ratio["low"], ratio["high"],
          tried == usual ? "usual" : "other"
      }'
  done
done
