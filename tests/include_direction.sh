#!/bin/sh
# Checks that every #include points down the layers: files include by paths from the repository's root, from their own
# folder and from what its row below lists. Prints other includes as file:line: message. No header may include itself
# through others.
set -eu
cd "$(dirname "$0")/.."

status=0
find ir passes backends frontend -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' \) -exec awk '
  BEGIN {
    graph = "ir/support ir/graph ir/operators" # a node has its operator, and an operator is of graphs
    ir = graph " ir/kernel ir/loops ir/leaves"
    sees["ir/support"] = ""
    sees["ir/graph"] = graph
    sees["ir/operators"] = graph
    sees["ir/kernel"] = graph
    sees["ir/loops"] = graph " ir/kernel"
    sees["ir/leaves"] = ""
    sees["passes/costs"] = graph " ir/kernel"
    sees["passes"] = ir " passes passes/costs passes/rewrite passes/lower passes/schedule/build passes/memory passes/recompute" # the pipeline
    pass = graph " ir/loops/target.h passes/pass.h"
    sees["passes/rewrite"] = pass
    sees["passes/gradient"] = graph " passes/rewrite"
    sees["passes/train"] = graph " passes/rewrite passes/gradient"
    sees["passes/leaves"] = graph " ir/leaves"
    sees["passes/lower"] = pass " ir/kernel passes/costs passes/schedule passes/schedule/order passes/schedule/tune"
    sees["passes/schedule"] = graph " ir/kernel"
    sees["passes/schedule/order"] = graph " ir/kernel passes/costs passes/schedule"
    sees["passes/schedule/tune"] = sees["passes/schedule/order"] " passes/schedule/order/order.h passes/schedule/order/traffic.h ir/loops/target.h"
    sees["passes/schedule/build"] = graph " ir/kernel ir/loops passes/costs"
    sees["passes/memory"] = ir
    sees["passes/recompute"] = ir " passes passes/lower passes/memory"
    sees["backends/interpreter"] = graph
    sees["backends/codegen"] = ir " backends/codegen/toolchain"
    sees["backends/codegen/print"] = ir " backends/codegen"
    sees["backends/codegen/emit"] = ir " backends/codegen backends/codegen/print"
    sees["backends/codegen/toolchain"] = "ir/support"
    sees["frontend"] = graph
    sees["frontend/yaml"] = graph " frontend frontend/npy frontend/onnx frontend/ngraph"
    sees["frontend/foreign"] = graph " frontend backends/interpreter/interpreter.h"
    sees["frontend/ngraph"] = graph " frontend frontend/yaml frontend/foreign"
    sees["frontend/onnx"] = graph " frontend frontend/npy frontend/foreign"
    sees["frontend/onednn"] = graph " frontend frontend/yaml"
    sees["frontend/npy"] = graph " frontend"
    sees["frontend/npz"] = graph " frontend frontend/npy"
    sees["frontend/data"] = graph " frontend frontend/npy"
    sees["frontend/dot"] = graph
    sees["frontend/api"] = "ir passes backends frontend"
    sees["frontend/cli"] = "frontend/api/ngrad.h" # the API alone
  }

  # The folders of the table; what is deeper belongs to the last of them.
  function folder(path) {
    do sub("/[^/]*$", "", path)
    while (!(path in sees) && path ~ "/")
    return path
  }

  # A row names folders, or single files; where frontend/api sees a folder, all below it.
  function is_seen(from, path, to,    i, n, seen) {
    if (to == from) return 1
    n = split(sees[from], seen, " ")
    for (i = 1; i <= n; i++)
      if (to == seen[i] || path == seen[i] || (from == "frontend/api" && index(path, seen[i] "/") == 1)) return 1
    return 0
  }

  function complain(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    failed = 1
  }

  match($0, /^[ \t]*#[ \t]*include[ \t]*["<]/) {
    is_quoted = substr($0, RLENGTH, 1) == "\""
    path = substr($0, RLENGTH + 1)
    sub(/[">].*/, "", path)
    from = folder(FILENAME)
    to = folder(path)
    if (!(path ~ "^(ir|passes|backends|frontend)/")) {
      if (is_quoted) complain("the path is not from the root of the repository: \"" path "\"")
    } else if (path ~ /(^|\/)\.\.?\//) {
      complain("the path is not plain: \"" path "\"")
    } else if (FILENAME ~ /^passes\/lower\// && path ~ /^(passes\/schedule\/tune\/.*|ir\/loops\/target\.h)$/ &&
               FILENAME !~ /^passes\/lower\/regions\.[ch]$/) {
      complain("only tuning knows the target, so that fusion cannot: \"" path "\"")
    } else if (!is_seen(from, path, to)) {
      complain(from " must not include " to ": \"" path "\"")
    }
  }

  END { exit failed }
' {} + || status=1

# tsort orders pairs, and names those that stand in a circle.
circle=$(find ir passes backends frontend -type f \( -name '*.h' -o -name '*.def' \) -exec awk '
  match($0, /^[ \t]*#[ \t]*include[ \t]*"/) {
    path = substr($0, RLENGTH + 1)
    sub(/".*/, "", path)
    print FILENAME, path
  }
' {} + | LC_ALL=C tsort 2>&1 >/dev/null | sed -n '/ contains a loop:/!s/^tsort: //p')
if [ -n "$circle" ]; then
  echo "headers include each other in a circle: $(echo "$circle" | paste -s -d ' ')"
  status=1
fi
exit $status
