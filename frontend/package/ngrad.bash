# Completion of ngrad's command line for bash. What there is, the program is asked: verbs and options come from --help,
# operators and passes from their lists.

_ngrad_words() { # PROGRAM SECTION ARGUMENT...; the first word of each line of a help's section
  "$1" "${@:3}" 2>/dev/null | awk -v section="$2:" '$0 == section { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_ngrad() {
  local ngrad=$1 word=$2 before=$3 verb=${COMP_WORDS[1]-} names=
  local IFS=$' \t\n'
  COMPREPLY=()
  [[ $word == = || $before == = ]] && return
  if ((COMP_CWORD == 1)); then
    names="$(_ngrad_words "$ngrad" verbs --help) help --help --version"
  elif [[ $before == --@(backend|format|isa|threads) ]]; then # the help of these says what can follow
    names=$("$ngrad" "$verb" --help 2>/dev/null |
      sed -n "s/^ *$before [A-Z]* *//; T; s/(.*//; s/,\| or / /gp")
  elif [[ $before == --@(after|disable) ]]; then
    names=$("$ngrad" passes 2>/dev/null | awk -v "after=$before" '
      after == "--after" ? /^[^ ]/ : !/cannot be disabled/ { print $1 }')
  elif [[ $before == --@(in|out|expect) || $before == -o ]]; then
    compopt -o filenames
    local kind=-d
    [[ $verb == @(convert|grad) ]] && kind=-f
    mapfile -t COMPREPLY < <(compgen $kind -- "$word")
    return
  elif [[ $word == -* ]]; then
    names=$("$ngrad" "$verb" --help 2>/dev/null | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--.*')
  elif [[ $verb == ops ]]; then
    names=$("$ngrad" ops 2>/dev/null | awk '{ print $1 }')
  elif [[ $verb == help ]]; then
    names=$(_ngrad_words "$ngrad" verbs --help)
  else
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -f -X '!*.yaml' -- "$word"; compgen -f -X '!*.json' -- "$word"; compgen -d -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}

complete -F _ngrad ngrad
