# Completion of ngrad's command line for bash. What there is, the program is asked: verbs and options come from --help,
# operators and passes from their lists.

_ngrad_words() { # PROGRAM SECTION ARGUMENT...; the first word of each line of a help's section
  "$1" "${@:3}" 2>/dev/null | awk -v section="$2:" '$0 == section { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_ngrad_takes_value() { # PROGRAM VERB OPTION: its help has a word in capitals behind the option, which no file's name is
  "$1" "$2" --help 2>/dev/null | grep -qE -- "^ +(-[a-z], )?$3 +[A-Z]+(=[A-Z]+)? " &&
    ! "$1" "$2" --help 2>/dev/null | grep -qE -- "^ +(-[a-z], )?$3 +(FILE|DIR|[A-Z]+=FILE) "
}

_ngrad() {
  local ngrad=$1 word=$2 before=$3 verb=${COMP_WORDS[1]-} names=
  local IFS=$' \t\n'
  COMPREPLY=()
  [[ $word == = || $before == = ]] && return
  if ((COMP_CWORD == 1)); then
    names="$(_ngrad_words "$ngrad" verbs --help) help --help --version"
  elif [[ $before == --@(backend|format|isa|optimizer|threads) || "$verb $before" == 'train --schedule' ]]; then
    # The help of these says what can follow.
    names=$("$ngrad" "$verb" --help 2>/dev/null |
      sed -n "s/^ *$before [A-Z]* *//; T; s/(.*//; s/,\| or / /gp")
  elif [[ $before == --@(after|disable) ]]; then
    names=$("$ngrad" passes 2>/dev/null | awk -v "after=$before" '
      after == "--after" ? /^[^ ]/ : !/cannot be disabled/ { print $1 }')
  elif [[ $before == --@(in|out|expect|export|with|state|save|trace|labels|text|test|test-graph|test-labels|test-text) || $before == -o ]]; then
    compopt -o filenames
    local kind=-d
    [[ $verb == @(convert|grad|report) || $before == --@(export|with|state|save|trace|labels|text|test-graph|test-labels|test-text) ]] && kind=-f
    mapfile -t COMPREPLY < <(compgen $kind -- "$word")
    return
  elif [[ "$verb $before" == 'train --loss' ]]; then
    names='cross-entropy mse bce'
  elif [[ $before == --to ]]; then
    names='yaml onnx'
  elif [[ $word != -* && $before == --* ]] && _ngrad_takes_value "$ngrad" "$verb" "$before"; then
    return # nothing that we know of
  elif [[ $word == -* ]]; then
    names=$("$ngrad" "$verb" --help 2>/dev/null | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--.*')
  elif [[ $verb == ops ]]; then
    names=$("$ngrad" ops 2>/dev/null | awk '{ print $1 }')
  elif [[ $verb == help ]]; then
    names="$(_ngrad_words "$ngrad" verbs --help) format"
  else
    compopt -o filenames
    local endings='yaml json onnx' ending
    [[ $verb != report ]] || endings+=' html'
    mapfile -t COMPREPLY < <(for ending in $endings; do compgen -f -X "!*.$ending" -- "$word"; done; compgen -d -- "$word")
    return
  fi
  mapfile -t COMPREPLY < <(compgen -W "$names" -- "$word")
}

complete -F _ngrad ngrad

# The same for other shells, a line each.
_ngrad_print() { # WORD...: those of the line up to the cursor, the last of which may be empty
  compopt() { :; }
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _ngrad "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\n' "${COMPREPLY[@]}"
}
