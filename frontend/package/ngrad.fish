# Completion of ngrad's command line for fish, by the script for bash.
set -g __ngrad_bash (dirname (status filename))/../../bash-completion/completions/ngrad

function __ngrad_words
    bash -c 'source "$0" && _ngrad_print "$@"' $__ngrad_bash (commandline -opc) (commandline -ct) 2>/dev/null
end

complete -c ngrad -f -a '(__ngrad_words)'
