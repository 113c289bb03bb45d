# Whether zsh completes `ngrad show --after fu` with what is installed in PREFIX. Usage: zsh -f completion.zsh PREFIX
zmodload zsh/zpty || exit 1
read_until() { # TEXT; in $out
  local part
  out=
  for ((i = 0; i < 200; i++)); do
    zpty -r -t shell part && out+=$part
    [[ $out == *$1* ]] && return
    sleep 0.05
  done
  print -r -- ${(V)out}
  exit 1
}
zpty -b shell 'PS1= TERM=dumb zsh -f -i'
zpty -w shell "fpath=($1/share/zsh/vendor-completions \$fpath) PATH=$1/bin:\$PATH; autoload -Uz compinit; compinit -u -D; echo re''ady"
read_until ready
zpty -w -n shell $'ngrad show --after fu\t'
read_until '--after fuse'
