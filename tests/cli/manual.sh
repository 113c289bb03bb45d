#!/bin/sh
# The manual page that is made agrees with --help: the verbs, their usage, and the options of each. Prints the differences:
# lines of the manual alone (-), and of the program alone (+).
set -eu
ngrad=$1
package=$(dirname "$0")/../../frontend/package
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0 manual=$work/ngrad.1
"$package/manual.sh" "$package/ngrad.1.in" "$ngrad" >"$manual"

section() { # NAME
  awk -v name=".Sh $1" '/^\.Sh / { on = $0 == name; next } on' "$manual"
}
same() { # WHAT; $work/manual and $work/program
  [ -s "$work/manual" ] && diff -u --label "manual: $1" --label "program: $1" "$work/manual" "$work/program" || failed=1
}

first_lines() { # of verbs and options: the others begin far to the right
  grep -v '^          '
}
"$ngrad" --help | first_lines | awk '$0 == "verbs:" { on = 1; next } /^$/ { on = 0 } on { print $1 }' >"$work/program"
while read -r verb; do "$ngrad" "$verb" --help; done <"$work/program" >"$work/whole"
first_lines <"$work/whole" >"$work/help"
section DESCRIPTION | awk '$1 == ".It" && $2 == "Cm" && $3 != "help" { print $3 }' >"$work/manual"
same verbs

section SYNOPSIS | awk '
  function plain(macro) {
    if (sub(/^\.Op Ar /, "[", macro)) macro = macro "]"
    sub(/^\.(Cm|Ar) /, "", macro)
    sub(/^\.Fl o Ar/, "-o", macro)
    sub(/ \.\.\./, "...", macro)
    return macro
  }
  $1 == ".Nm" { if (line) print line; line = "ngrad"; next }
  { line = line " " plain($0) }' | grep -v '^ngrad help' >"$work/manual"
sed -n 's/^usage: //p' "$work/help" >"$work/program"
same synopsis

# Lines of an option and a verb.
section OPTIONS | awk '
  $1 == ".It" { for (i = 2; i <= NF; i++) if ($i ~ /^-[a-z]/) option = "-" $i }
  $1 == ".Pq" && $2 == "Cm" { for (i = 3; i <= NF; i++) if ($i != ",") print option, $i }' | sort >"$work/manual"
awk '
  $1 == "usage:" { verb = $3 }
  $0 == "options:" { on = 1; next }
  /^$/ { on = 0 }
  on { option = $1 ~ /,$/ ? $2 : $1; if (option != "--help") print option, verb }' "$work/help" | sort >"$work/program"
same options
exit $failed
