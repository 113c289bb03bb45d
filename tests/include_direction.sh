#!/bin/sh
# Checks that every #include points down the layers: a folder sees what its row below says, by paths from the
# repository's root. Prints each line that does not as file:line: message.
set -eu
cd "$(dirname "$0")/.."

find ir passes backends frontend -type f \( -name '*.c' -o -name '*.h' -o -name '*.def' \) -exec awk '
  BEGIN {
    sees["ir"] = "ir"
    sees["passes"] = "ir passes"
    sees["backends"] = "ir backends"
    sees["frontend"] = "ir frontend"
    sees["frontend/api"] = "ir passes backends frontend frontend/api"
    sees["frontend/cli"] = "frontend/cli" # and the API: ngrad.h
  }

  function layer(path) {
    return match(path, "^frontend/(api|cli)/") ? substr(path, 1, RLENGTH - 1) : substr(path, 1, index(path, "/") - 1)
  }

  function complain(what) {
    printf "%s:%d: %s\n", FILENAME, FNR, what
    failed = 1
  }

  match($0, /^[ \t]*#[ \t]*include[ \t]*["<]/) {
    is_quoted = substr($0, RLENGTH, 1) == "\""
    path = substr($0, RLENGTH + 1)
    sub(/[">].*/, "", path)
    from = layer(FILENAME)
    to = layer(path)
    if (!(to in sees)) {
      if (is_quoted) complain("the path is not from the root of the repository: \"" path "\"")
    } else if (path ~ /(^|\/)\.\.?\//) {
      complain("the path is not plain: \"" path "\"")
    } else if (index(" " sees[from] " ", " " to " ") == 0 && !(from == "frontend/cli" && path == "frontend/api/ngrad.h")) {
      complain(from " must not include " to ": \"" path "\"")
    }
  }

  END { exit failed }
' {} +
