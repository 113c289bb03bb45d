#!/bin/sh
# The manual page names the verbs and options that the program does: its synopsis, for each verb, those that the verb's
# --help prints; its list of options, all of them.
set -eu
ngrad=$1
manual=$(dirname "$0")/../../frontend/package/ngrad.1
failed=0

section() { # NAME
  awk -v name=".Sh $1" '/^\.Sh / { on = $0 == name } on' "$manual"
}
long_options() { # sorted, each once, of mdoc's macros
  tr ' ' '\n' | grep -xE -- '-[a-z][a-z-]*' | sed 's/^/-/' | LC_ALL=C sort -u
}
same() { # WHAT MANUAL PROGRAM
  [ "$2" = "$3" ] && return
  failed=1
  echo "$1: the manual has"
  echo "$2" | tr '\n' ' '
  printf '\nand the program has\n'
  echo "$3" | tr '\n' ' '
  echo
}
helped() { # VERB; the options that its help prints, but for --help
  "$ngrad" "$1" --help | awk '$0 == "options:" { on = 1; next } /^$/ { on = 0 } on' |
    grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--.*' | grep -vx -- --help | LC_ALL=C sort -u
}

verbs=$("$ngrad" --help | awk '$0 == "verbs:" { on = 1; next } /^$/ { on = 0 } on { print $1 }')
[ -n "$verbs" ]
for verb in $verbs; do
  synopsis=$(section SYNOPSIS | awk -v verb="$verb" '$1 == ".Cm" { on = $2 == verb } on' | long_options)
  same "synopsis of $verb" "$synopsis" "$(helped "$verb")"
done
same verbs "$(section DESCRIPTION | awk '$1 == ".It" && $2 == "Cm" && $3 != "help" { print $3 }')" "$verbs"
same options "$(section OPTIONS | grep '^\.It Fl' | long_options)" \
  "$({ for verb in $verbs; do helped "$verb"; done && printf '%s\n' --help --version; } | LC_ALL=C sort -u)"
exit $failed
