#!/bin/sh
# The page on microcontrollers, on emulated boards with a Cortex-M4F and an M7, and no operating system: training has the
# states of ngrad fit, and inference with weights in flash the logits of ngrad run. Prints code, RAM, stack and
# instructions. Usage: run.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
page=$here/../../docs/microcontrollers.md
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
for tool in arm-none-eabi-gcc qemu-system-arm; do
  has $tool || { echo "left out: device: no $tool (Debian: gcc-arm-none-eabi, libnewlib-arm-none-eabi and qemu-system-arm)" && exit 77; }
done
PATH=$(dirname "$ngrad"):$PATH
awk '/^```/ { if (file != "") close(file); file = NF == 2 && !/^```console/ ? $2 : ""; next } file != "" { print > file }' "$page"

# As the page has them, with a clock that counts instructions.
flags=$(sed -n "s/^flags='\(.*\)'/\1/p" train.sh)
board=$(sed -n "s/^board='\(.*\)'/\1/p" train.sh)
build() { # PROGRAM SOURCE...
  program=$1
  shift
  # shellcheck disable=SC2086 # words
  arm-none-eabi-gcc $flags -Wall -Wextra -Werror -I. -Dkws_NO_FILES "$@" $board -o "$program" >log 2>&1 && [ ! -s log ]
}
emulate() { # PROGRAM [BOARD]
  timeout 600 qemu-system-arm -M "${2:-mps2-an386}" -nographic -monitor none -serial none -icount shift=0 \
    -semihosting-config enable=on,target=native -kernel "$1" >log 2>&1
}
size_of() { # SOURCE; its functions and tables
  # shellcheck disable=SC2086
  arm-none-eabi-gcc $flags -Dkws_NO_FILES -c "$1" -o size.o >log 2>&1 && arm-none-eabi-size size.o | awk 'NR == 2 { print $1 }'
}

ngrad train kws.yaml --optimizer momentum --learning-rate 0.05 --dim N=4 --isa scalar --threads none -o . >log 2>&1
count 'the step of the page'
gcc -std=c11 -O1 -I. -DHOST "$here/device.c" -o host >log 2>&1 && mkdir data && (cd data && ../host) >log 2>&1 &&
  ngrad fit kws_step.yaml --in data --batch 4 --steps 100 -o . >log 2>&1 && grep '^sha256' log >wanted
count 'ngrad fit trains it'
build device.elf "$here/device.c" kws.c && emulate device.elf && cp log trained && grep '^sha256' trained | cmp - wanted >log 2>&1
told='log trained' count 'a device has the states of ngrad fit after 100 steps'
of_m4=$flags
flags=$(echo "$flags" | sed 's/cortex-m4/cortex-m7/; s/fpv4-sp-d16/fpv5-d16/')
build device_m7.elf "$here/device.c" kws.c && emulate device_m7.elf mps2-an500 && grep '^sha256' log >a && cmp a wanted >log 2>&1
count 'so has a Cortex-M7, whose FPU has doubles'
flags=$of_m4
build train.elf train.c kws.c && emulate train.elf && [ "$(awk '$1 == $NF' log | wc -l)" -eq 5 ]
count 'the program of the page learns the words'

# Of little size: at most 30 kB for the step, and twice the instructions of the fast code.
of_speed=$flags
flags=$(echo "$flags" | sed 's/-O3/-Os/')
mkdir small && ngrad train kws.yaml --optimizer momentum --learning-rate 0.05 --dim N=4 --optimize size --threads none -o small >log 2>&1 &&
  build small.elf -Ismall "$here/device.c" small/kws.c && emulate small.elf && cp log small.trained &&
  grep '^sha256' small.trained | cmp - wanted >log 2>&1
told='log small.trained' count 'so has code of little size'
small=$(size_of small/kws.c)
instructions() { # FILE
  sed -n 's/.* \([0-9]*\) instructions a step/\1/p' "$1"
}
[ "$small" -le 20000 ] && [ "$(instructions small.trained)" -le $((2 * $(instructions trained))) ]
count 'which is at most 20 kB for step and inference, and takes at most twice the instructions'
ngrad emit kws_infer.yaml --state kws.npz --dim N=1 --optimize size --threads none -o small >log 2>&1 &&
  build small.elf -Ismall infer.c small/kws_infer.c && emulate small.elf && cp log small.logits && small_infer=$(size_of small/kws_infer.c) &&
  [ "$small_infer" -le 10000 ]
count 'inference of little size is at most 10 kB, with its weights'
flags=$of_speed

ngrad emit kws_infer.yaml --state kws.npz --dim N=1 --isa scalar --threads none -o . >log 2>&1 && build infer.elf infer.c kws_infer.c &&
  emulate infer.elf && cp log device.logits && gcc -std=c11 -O1 infer.c kws_infer.c -lm -o infer >log 2>&1 && ./infer | cmp - device.logits >log 2>&1
count 'inference with weights in flash has the logits of this machine'
cmp small.logits device.logits >log 2>&1
count 'which are those of little size'
mkdir one && head -c 128 data/x.npy | sed 's/16, 98/1, 98 /' >one/x.npy && tail -c +129 data/x.npy | head -c 3920 >>one/x.npy &&
  sed 's/1000 + word/0/; s/^ *for.*printf.*/fwrite(logits, sizeof logits, 1, stdout);/' infer.c >zero.c &&
  gcc -std=c11 -O1 -I. zero.c kws_infer.c -lm -o zero >log 2>&1 && ./zero | head -c 20 >zero.logits &&
  ngrad run kws_infer.yaml --state kws.npz --dim N=1 --in one -o one.out >log 2>&1 && tail -c 20 one.out/logits.npy | cmp - zero.logits >log 2>&1
count 'and those of ngrad run'
emulate_s8() {
  ngrad emit kws_infer.yaml --state kws.npz --weights s8 --dim N=1 --isa scalar --threads none -o . >log 2>&1 &&
    build narrow.elf infer.c kws_infer.c && emulate narrow.elf
}
whole=$(size_of kws_infer.c) && emulate_s8 && narrow=$(size_of kws_infer.c) && [ "$narrow" -lt "$whole" ]
count 'inference with weights of 8 bits is shorter'

# The stack that headers tell of each function, of this repository's models, of training steps, and of sums in rows of 10:
# along the last axis, and along another one, where elements are kept beyond what each function may take.
for shape in '10' '10, 49'; do
  name=softmax_$(echo "$shape" | tr -d ', ')
  printf 'format: ngrad/1\nname: %s\ndims: {N: 64}\ninputs:\n- {name: x, type: f32, shape: [N, %s]}\n- {name: dy, type: f32, shape: [N, %s]}
nodes:\n- {op: SoftMax, inputs: [x], outputs: [y], attributes: {axis: 1}}
- {op: SoftMaxBackward, inputs: [dy, y], outputs: [dx], attributes: {axis: 1}}\noutputs: [y, dx]\n' "$name" "$shape" "$shape" >"$name.yaml"
done
told_more() { # HEADER
  tr -s '\n ' ' ' <"$1" | sed -n 's/.* keeps elements of rows in \([0-9]*\) bytes more.*/\1/p'
}
stacks() { # FOLDER OPTIMISATION MOST FLAG...; adds to the file beyond
  folder=$1 optimisation=$2 most=$3
  shift 3
  mkdir "$folder"
  for model in "$here"/../../models/*.yaml; do # all, or every third
    n=$(((n + 1) % 3))
    { [ $n -eq 0 ] || takes_all; } || continue
    ngrad emit "$model" "$@" --threads none -o "$folder" || echo "$model"
  done
  for name in mlp cnn resnet8; do
    ngrad train "$here/../../models/train/$name.yaml" --optimizer momentum --dim N=4 "$@" --threads none -o "$folder/graphs/$name" &&
      mv "$folder/graphs/$name/$name".[ch] "$folder" || echo "$name"
  done
  for model in softmax_*.yaml; do ngrad emit "$model" "$@" --threads none -o "$folder" || echo "$model"; done
  for source in "$folder"/*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2086
    arm-none-eabi-gcc ${flags%%-O3*} "$optimisation" ${flags#*-O3} "-D${name}_NO_FILES" -fstack-usage -c "$source" -o "$folder/$name.o" || echo "$name"
    tr -s '\n ' ' ' <"$folder/$name.h" | grep -q 'at most 2 kB by gcc -O2 or -O3, and by -Os at most 5 kB, or 3 kB with --optimize size' || echo "$name.h"
    awk -F '\t' -v most=$((most + $(told_more "$folder/$name.h") + 0)) '$2 > most { print $1, $2 }' "$folder/$name.su" >>beyond
  done
}
: >beyond
n=0
stacks stacks -O2 2048 --isa scalar >log 2>&1
stacks os_stacks -Os 5120 --isa scalar >>log 2>&1
stacks small_stacks -Os 3072 --optimize size >>log 2>&1
! grep -v '^wrote\|^trained\|^[0-9]' log | grep -q . && [ "$(cat stacks/*.su os_stacks/*.su small_stacks/*.su | wc -l)" -gt 300 ] && [ ! -s beyond ]
told='log beyond' count 'each function takes the stack that its header tells, by -O2 and by -Os'
[ "$(told_more stacks/softmax_1049.h)" = 1280 ] && [ -z "$(told_more stacks/softmax_10.h)" ] &&
  awk -F '\t' '$2 > 2048 { n++ } END { exit !n }' stacks/softmax_1049.su && awk -F '\t' '$2 > 512 { exit 1 }' stacks/softmax_10.su
count 'elements that are kept beyond 2 kB are told; rows along the last axis keep none'
echo "largest stack of a function of models: $(cat stacks/*.su small_stacks/*.su | sort -t "$(printf '\t')" -k 2 -n -r | head -n 1 | cut -f 1,2)"

number() { # MACRO HEADER
  sed -n "s/^#define $1 ((size_t)\([0-9]*\))/\1/p" "$2"
}
echo "step and inference: code $(size_of kws.c), states $(number kws_PARAMETERS_NBYTES kws.h) + $(number kws_OPTIMIZER_NBYTES kws.h), workspace $(number kws_WORKSPACE_NBYTES kws.h) bytes"
tail -n 1 trained
echo "of little size: step and inference $small, inference and weights $small_infer bytes"
tail -n 1 small.trained
echo "inference alone: code and weights $whole, of s8 $narrow, workspace $(number kws_infer_WORKSPACE_NBYTES kws_infer.h) bytes"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
