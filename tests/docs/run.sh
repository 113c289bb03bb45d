#!/bin/sh
# Runs the documents, README.md and docs/*.md. A code block whose fence names a file is the content of that file. In a block
# ```console, each line behind "$ " is a command, followed by its output. Each page runs in its own folder, with models/ in
# it and ngrad in the PATH. In the output,
# - a line "..." stands for any lines, up to the first line that equals the next one;
# - in a block ```console varying, numbers, instruction sets and the number of threads are not compared;
# - a block ```console shown is not run.
# Without NGRAD_CHECK (tests/effort.h), emitted C is compiled with -O0 in place of -O2: its bits depend on no level.
# Links between pages must be valid. In CONTRIBUTING.md and tests/README.md, too, and there are the files and folders that
# they name by paths from the repository's root. Usage: run.sh NGRAD [PAGE...]
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
root=$here/../..
shift
pages_of_work=
[ $# -gt 0 ] || { set -- "$root"/README.md "$root"/docs/*.md && pages_of_work="CONTRIBUTING.md examples/README.md CHANGELOG.md SECURITY.md tests/README.md"; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/bin" && ln -s "$program" "$work/bin/ngrad" || exit 1
PATH=$work/bin:$PATH
XDG_CACHE_HOME=$work/cache
mkdir "$XDG_CACHE_HOME" || exit 1
export PATH XDG_CACHE_HOME LC_ALL=C
failed=0
passed=0
level=-O0
[ -z "${NGRAD_CHECK-}" ] || level=-O2

# Writes the page's files into FOLDER and its commands into FOLDER/.commands: N.run, N.expected, and N.varying.
take_apart() { # PAGE FOLDER
  mkdir -p "$2/.commands" && awk -v folder="$2" '
    function close_block() { file = ""; in_console = is_shown = 0 }
    /^```/ && (file != "" || in_console || is_shown) { close_block(); next }
    /^```console/ { in_console = $2 != "shown"; is_shown = !in_console; is_varying = $2 == "varying"; next }
    /^```[a-z]+ / { file = folder "/" $2; next }
    /^```/ { is_shown = 1; next }
    file != "" { print > file }
    in_console && /^\$ / {
      name = sprintf("%s/.commands/%03d", folder, ++count)
      print substr($0, 3) > (name ".run")
      printf "" > (name ".expected")
      if (is_varying) printf "" > (name ".varying")
      continues = /\\$/
      next
    }
    in_console && continues { print > (name ".run"); continues = /\\$/; next }
    in_console { print > (name ".expected") }
  ' "$1"
}

# Whether the lines of FOUND are those of EXPECTED, in which "..." stands for any.
matches() { # EXPECTED FOUND
  awk '
    NR == FNR { expected[++n] = $0; next }
    { found[++m] = $0 }
    END {
      for (i = j = 1; i <= n; i++) {
        if (expected[i] != "...") { if (j > m || expected[i] != found[j++]) exit 1; continue }
        if (i == n) exit 0
        while (j <= m && found[j] != expected[i + 1]) j++
      }
      exit j <= m
    }
  ' "$1" "$2"
}

mask() { # FILE
  sed -e 's/avx[0-9a-z_]*\|scalar\|neon/ISA/' -e 's/threads/thread/' -e 's/[0-9][0-9.,]*\(e[-+][0-9]*\)\{0,1\}/#/g' -e 's/  */ /g' -e 's/ $//' "$1"
}

check_page() { # PAGE
  folder=$work/$(basename "$1" .md)
  take_apart "$1" "$folder" || return 1
  ln -s "$(realpath "$root/models")" "$folder/models"
  for run in "$folder"/.commands/*.run; do
    [ -f "$run" ] || continue
    expected=${run%.run}.expected
    found=${run%.run}.found
    (cd "$folder" && sh -ec "$(sed "s/^\(cc .*\)-O2 /\1$level /" "$run")") >"$found" 2>&1 </dev/null
    if [ -f "${run%.run}.varying" ]; then
      mask "$expected" >"$expected.masked" && mask "$found" >"$found.masked"
      expected=$expected.masked
      found=$found.masked
    fi
    if matches "$expected" "$found"; then
      passed=$((passed + 1))
    else
      failed=$((failed + 1))
      echo "FAILED: $(basename "$1"): $(cat "$run")"
      diff "$expected" "$found" | head -n 40 | sed 's/^/  /'
    fi
  done
}

links() { # PAGE; of its text, not of code blocks
  awk '
    /^```/ { in_code = !in_code; next }
    in_code { next }
    { while (match($0, /\]\([^)]*\)/)) { print substr($0, RSTART + 2, RLENGTH - 3); $0 = substr($0, RSTART + RLENGTH) } }
  ' "$1"
}

# Links to files and to headings of pages.
check_links() { # PAGE
  folder=$(dirname "$1")
  for link in $(links "$1"); do
    case $link in
    *://*) continue ;;
    esac
    target=${link%%#*}
    heading=${link#"$target"}
    file=${target:+$folder/$target}
    file=${file:-$1}
    if [ ! -e "$file" ]; then
      echo "FAILED: $(basename "$1"): no file $target"
      failed=$((failed + 1))
    elif [ -n "$heading" ] && ! grep '^#' "$file" | tr '[:upper:] ' '[:lower:]-' | tr -cd 'a-z0-9_\n-' | sed 's/^-//' | grep -qx "${heading#\#}"; then
      echo "FAILED: $(basename "$1"): no heading $link"
      failed=$((failed + 1))
    else
      passed=$((passed + 1))
    fi
  done
}

for page in "$@"; do
  check_page "$page"
  check_links "$page"
done
# Words in backquotes that are paths; NAME, FAMILY and PASS in them stand for any letters.
check_paths() { # PAGE
  words=$(awk -F '`' '!/^```/ { for (i = 2; i <= NF; i += 2) print $i }' "$1" | tr ' ' '\n' |
    grep -Ex '(ir|passes|backends|frontend|tests|docs|models)/[A-Za-z0-9_.*/-]*' | sort -u)
  set -f
  for path in $words; do
    set +f
    pattern=$(echo "$path" | sed 's/NAME\|FAMILY\|PASS/*/g')
    # shellcheck disable=SC2086 # a pattern
    if (cd "$root" && ls -d $pattern) >/dev/null 2>&1; then
      passed=$((passed + 1))
    else
      echo "FAILED: $(basename "$1"): no file $path"
      failed=$((failed + 1))
    fi
  done
  set +f
}

for page in $pages_of_work; do
  check_links "$root/$page"
  check_paths "$root/$page"
done
# Numbers that pages repeat are those of ngrad.h, whose bits are those of the results that tests/bits recorded.
version=$(sed -n 's/^#define NG_VERSION "\(.*\)".*/\1/p' "$root/frontend/api/ngrad.h")
bits=$(sed -n 's/^#define NG_BITS //p' "$root/frontend/api/ngrad.h")
abi=$(sed -n 's/^ *ABI = \([0-9]*\),.*/\1/p' "$root/backends/codegen/emit/file_printer.h")
soname=${version%.*}
states() { # FILE TEXT
  if grep -qF "$2" "$root/$1"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1: expected $2"
  fi
}
states CHANGELOG.md "## $version,"
states CHANGELOG.md "bits $bits, emitted ABI $abi, soname $soname."
states CITATION.cff "version: $version"
states docs/versions.md "\`ng_version()\` | $version |"
states docs/versions.md "\`libngrad.so.$soname\` | $soname |"
states docs/versions.md "_get_info()->abi\` | $abi |"
states docs/versions.md "of Python's module | $bits |"
states frontend/python/ngrad.py "\"libngrad.so.$soname\""
states tests/bits/recorded "bits $bits "
echo "docs: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
