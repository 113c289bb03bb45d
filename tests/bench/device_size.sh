#!/bin/sh
# Prints a table of what training steps and inferences take on a Cortex-M4: code and constants, stack of the largest
# function, states and workspace, in bytes, and the seconds of processor time that gcc takes. Of the fast form, by -O2, and
# of the form of little size, by -Os; for a batch of 4. With OLD, an earlier program, its fast form comes first.
#
#   tests/bench/device_size.sh NGRAD [OLD]
set -eu
new=$(realpath "$1")
old=${2:+$(realpath "$2")}
root=$(realpath "$(dirname "$0")/../..")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
awk '/^```yaml kws.yaml/ { on = 1; next } /^```/ { on = 0 } on' "$root/docs/microcontrollers.md" >kws.yaml
cp "$root"/models/train/mlp.yaml "$root"/models/train/cnn.yaml "$root"/models/train/resnet8.yaml .

number() { # MACRO; 0 if the header lacks it
  sed -n "s/^#define ${name}_$1 ((size_t)\([0-9]*\))/\1/p" "c/$name.h" | grep . || echo 0
}

measure() { # NGRAD OPTIMISATION OPTION...; of $graph and $part
  program=$1 optimisation=$2
  shift 2
  rm -rf t c
  "$program" train "$graph.yaml" --optimizer momentum --dim N=4 "$@" --threads none -o t >log 2>&1 || return 1
  "$program" emit "t/${graph}_$part.yaml" --dim N=4 "$@" --threads none -o c >log 2>&1 || return 1
  name=${graph}_$part
  (
    # shellcheck disable=SC3045 # dash and bash have it
    arm-none-eabi-gcc -std=c11 "$optimisation" -mcpu=cortex-m4 -mthumb -mfpu=fpv4-sp-d16 -mfloat-abi=hard \
      "-D${name}_NO_FILES" -fstack-usage -c "c/$name.c" -o o.o
    times >spent
  )
  printf ' %d | %d | %d | %d | %s |' "$(arm-none-eabi-size o.o | awk 'NR == 2 { print $1 }')" \
    "$(awk -F '\t' '$2 > most { most = $2 } END { print most }' o.su)" \
    "$(($(number PARAMETERS_NBYTES) + $(number OPTIMIZER_NBYTES)))" "$(number WORKSPACE_NBYTES)" \
    "$(awk 'NR == 2 { split($1, user, /[ms]/); printf "%.1f", user[1] * 60 + user[2] }' spent)"
}

columns=' code | stack | states | workspace | gcc, s |'
printf '| |%s%s%s\n' "${old:+$columns}" "$columns" "$columns"
printf '|---|' && for _ in ${old:+1} 2 3; do printf -- '---:|---:|---:|---:|---:|'; done && echo
for graph in kws mlp cnn resnet8; do
  for part in step infer; do
    printf '| %s, %s |' "$graph" "$part"
    [ -z "$old" ] || measure "$old" -O2 --isa scalar || printf ' | | | | |' # it may refuse the graph
    measure "$new" -O2 --isa scalar
    measure "$new" -Os --optimize size
    echo
  done
done
