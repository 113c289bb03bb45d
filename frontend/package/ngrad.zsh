#compdef ngrad
# Completion of ngrad's command line for zsh, by the script for bash.
local bash_script=${functions_source[_ngrad]:h:h:h}/bash-completion/completions/ngrad
local -a found
found=(${(f)"$(bash -c 'source "$0" && _ngrad_print "$@"' $bash_script "${(@)words[1,CURRENT]}" 2>/dev/null)"})
compadd -- $found
