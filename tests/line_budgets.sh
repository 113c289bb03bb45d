#!/bin/sh
# Checks that functions of the product have at most 60 lines, and its files at most 500. A table in a file may have as
# many rows as it needs.
set -eu
cd "$(dirname "$0")/.."

# ngrad.h is the API's manual.
long=frontend/api/ngrad.h

find ir passes backends frontend -name '*.[ch]' | LC_ALL=C sort | xargs awk -v long="$long" '
  function complain(line, what) {
    print file ":" line ": " what
    failed = 1
  }

  function end_file() {
    if (lines > 500 && !(file in is_long)) complain(1, "a file of " lines " lines, expected at most 500")
    if (lines <= 500 && file in is_long) complain(1, "no longer a long file: take it from the list in tests/line_budgets.sh")
  }

  BEGIN { for (i = split(long, list); i; i--) is_long[list[i]] }
  FNR == 1 {
    if (file) end_file()
    file = FILENAME
    lines = begin = in_table = 0
  }
  { lines += !in_table }
  /^[A-Za-z_].*] = {$/ { in_table = 1 }
  /^};/ { in_table = 0 }
  /^[A-Za-z_].*\(/ && !/;$/ { begin = FNR }
  /^}/ {
    if (begin && FNR - begin >= 60) complain(begin, "a function of " FNR - begin + 1 " lines, expected at most 60")
    begin = 0
  }
  END {
    end_file()
    exit failed
  }'
