# shellcheck shell=sh
# Sourced by scripts of many checks: makes and enters an empty folder, and counts the checks that pass.
# `told` names the files with the output of a check. Kernels are cached with those of other tests, if ctest says where.
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
XDG_CACHE_HOME=${XDG_CACHE_HOME:-$work/cache}
export XDG_CACHE_HOME
passed=0
failed=0
told=log

count() { # WHAT; the status of what was checked
  if [ "$?" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    for words in $told; do sed "s/^/  $words: /; 20q" "$words"; done
  fi
}
has() {
  command -v "$1" >/dev/null
}
# As tests/effort.h has it: every combination, or a sample.
takes_all() {
  [ -n "${NGRAD_CHECK-}" ]
}
