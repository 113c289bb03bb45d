# Completion of ngrad's command line for bash. The words come from the program: verbs, options and their values from
# --help, operators and passes from their lists.

_ngrad_help() { # COMMAND...; the help that it prints, with a verb or an option in one line: others begin far to the right
  "$@" 2>/dev/null |
    awk '/^          +[^ ]/ { sub(/^ +/, ""); line = line " " $0; next } NR > 1 { print line } { line = $0 } END { print line }'
}

_ngrad_words() { # PROGRAM SECTION ARGUMENT...; prints the first word of each line in a section of the help
  _ngrad_help "$1" "${@:3}" | awk -v section="$2:" '$0 == section { on = 1; next } /^$/ { on = 0 } on { print $1 }'
}

_ngrad_takes_value() { # PROGRAM VERB OPTION; whether the help shows an argument in capitals after the option that is no file
  _ngrad_help "$1" "$2" --help | grep -qE -- "^ +(-[a-z], )?$3 +[A-Z]+(=[A-Z]+)? " &&
    ! _ngrad_help "$1" "$2" --help | grep -qE -- "^ +(-[a-z], )?$3 +(FILE|DIR|[A-Z]+=FILE) "
}

_ngrad() {
  local ngrad=$1 word=$2 before=$3 verb=${COMP_WORDS[1]-} names=
  local IFS=$' \t\n'
  COMPREPLY=()
  [[ $word == = || $before == = ]] && return
  if ((COMP_CWORD == 1)); then
    names="$(_ngrad_words "$ngrad" verbs --help) help --help --version"
  elif [[ $before == --@(backend|format|isa|optimizer|threads) || "$verb $before" == 'train --schedule' ]]; then
    # The help of these options begins with the list of their values, up to a parenthesis.
    names=$(_ngrad_help "$ngrad" "$verb" --help |
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
    return # any value
  elif [[ $word == -* ]]; then
    names=$(_ngrad_help "$ngrad" "$verb" --help | grep -oE '^ +(-[a-z], )?--[a-z-]+' | grep -oE -- '--.*')
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

# Prints the completions for other shells, one a line.
_ngrad_print() { # WORD...: the words up to the cursor; the last may be empty
  compopt() { :; }
  COMP_WORDS=("$@")
  COMP_CWORD=$(($# - 1))
  _ngrad "$1" "${!#}" "${COMP_WORDS[COMP_CWORD - 1]}"
  printf '%s\n' "${COMPREPLY[@]}"
}
