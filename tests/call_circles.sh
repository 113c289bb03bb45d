#!/bin/sh
# Checks that no C files of the product stand in a circle of calls: that none needs a function or a variable of a file
# that needs it in turn, be it through others. Reads the symbols of the object files in build/.
set -eu
cd "$(dirname "$0")/.."

# Tables with a function for each operator. Their rows name functions but call none: who looks up a row calls it.
tables='^(ir/operators/operators|(backends/interpreter|passes/(gradient|lower)|frontend/(ngraph|onnx))/table)$'

sources() { find ir passes backends frontend -name '*.c' "$@"; }
if [ ! -e build/ngrad ] || [ -n "$(sources -newer build/ngrad)" ]; then
  echo 'calls are read from build/, which is missing or older than the sources: run ./dev build first'
  exit 1
fi
sources | sed 's,.*,libngrad.dir/&.o,; s,lib\(ngrad.dir/frontend/cli/\),\1,; s,^,build/CMakeFiles/,' |
  xargs nm -A -P -g >build/symbols
awk -v tables="$tables" '
  { sub(/.*ngrad\.dir\//, "", $1); sub(/\.c\.o:$/, "", $1) }
  { of = $1 ~ /^frontend\/cli\// ? "program" : "library" } # the program links the API alone
  $3 != "U" { home[of, $2] = $1 }
  $3 == "U" { from[++n] = $1; name[n] = $2; by[n] = of }
  END {
    for (i = 1; i <= n; i++) {
      to = home[by[i], name[i]]
      if (to != "" && from[i] !~ tables) print from[i], to, name[i]
    }
  }' build/symbols >build/calls

# tsort orders pairs, and names the files of each circle.
cut -d ' ' -f 1,2 build/calls | LC_ALL=C tsort 2>&1 >/dev/null | awk '
  NR > FNR { is_in_circle[$2] = !/ contains a loop:$/; next }
  { from[NR] = $1; to[NR] = $2; name[NR] = $3; n = NR }
  END {
    for (i = 1; i <= n; i++) {
      if (!is_in_circle[from[i]] || !is_in_circle[to[i]]) continue
      if (!failed++) print "files call each other in a circle:"
      print "  " from[i] " needs " name[i] " of " to[i]
    }
    exit failed > 0
  }' build/calls -
