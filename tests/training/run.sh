#!/bin/sh
# A training step and its inference as a pair of C files: they compile without warnings; steps, first values and saved
# files have the bytes of ngrad's own; training that was stopped goes on to the same bytes; damaged files change
# nothing; numpy reads saved files, and files that numpy wrote are read.
#
#   run.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
has gcc || { echo 'left out: training: no gcc'; exit 77; }
# Bits depend on no level; gcc takes half a minute at -O1.
level=-O0 optimizers=adam step=13 ways='gcc/c11 clang/c++17'
if takes_all; then
  level=-O1 optimizers='momentum adam' step=1 ways='gcc/c11 clang/c11 clang/c++17 gcc/c++17'
fi
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Wdouble-promotion -Wundef -Werror'

python=
for candidate in /usr/bin/python3 python3; do
  "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done

# Data of tests/training/driver.c, as files; and b1's first value.
cp "$here/mlp.yaml" .
mkdir data
npy() { # FILE DESCR SHAPE; data from standard input
  header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
  { printf '\223NUMPY\1\0\166\0%-117s\n' "$header" && cat; } >"$1"
}
floats() { # numbers k / 64 as f32, one a line
  awk '{ x = $1 / 64; s = x < 0 ? 128 : 0; x = x < 0 ? -x : x; e = 0
    if (x) { e = 127; while (x >= 2) { x /= 2; e++ } while (x < 1) { x *= 2; e-- } x -= 1 }
    m = int(x * 8388608)
    printf "\\%03o\\%03o\\%03o\\%03o", m % 256, int(m / 256) % 256, (e % 2) * 128 + int(m / 65536), s + int(e / 2) }'
}
# shellcheck disable=SC2059
printf "$(awk 'BEGIN { for (i = 0; i < 7; i++) print i * 3 - 9 }' | floats)" | npy b1.npy '<f4' '7,'
# shellcheck disable=SC2059
printf "$(awk 'BEGIN { for (i = 0; i < 260; i++) print i * 37 % 101 - 50 }' | floats)" | npy data/x.npy '<f4' '20, 13'
# shellcheck disable=SC2059
printf "$(awk 'BEGIN { for (i = 0; i < 20; i++) printf "\\%03o\\0\\0\\0\\0\\0\\0\\0", i * 5 % 7 }')" |
  npy data/labels.npy '<i8' '20,'

compile() { # COMPILER OPTION...; the driver, with the pair of C files
  # shellcheck disable=SC2086
  "$@" $warnings -I. mlp.c "$here/driver.c" -lm -o driver >log 2>&1 && [ ! -s log ]
}

sed 's/s64/s32/; s/\[20/[N/; s/^inputs/dims: {N: 20}\ninputs/' mlp.yaml >open.yaml
# shellcheck disable=SC2086
"$ngrad" train open.yaml --loss loss --accumulate 5 --threads none --self-test -o leaves >log 2>&1 &&
  gcc -std=c11 $warnings -O0 leaves/mlp.c leaves/mlp_test.c leaves/mlp_infer_test.c -lm -o self_test >log 2>&1 && ./self_test >log
count 'a step in leaves, whose batch has the number that dims gives'
# A frozen layer's parameters, and those of the inference that the step does not train, are constants of the C.
"$ngrad" train mlp.yaml --loss loss --optimizer adam --freeze 'w0' --freeze 'b0' --isa scalar -o frozen >log 2>&1 &&
  "$ngrad" run frozen/mlp_step.yaml --in data --seed 5 --save frozen.npz >log 2>&1 &&
  "$ngrad" train mlp.yaml --loss loss --optimizer adam --freeze 'w0' --freeze 'b0' --state frozen.npz --self-test --isa avx2 --threads none -o frozen >log 2>&1 &&
  grep -q 'mlp_given_w0' frozen/mlp.c && ! grep -q 'mlp_w0_OFFSET' frozen/mlp.h && grep -q 'mlp_w1_OFFSET' frozen/mlp.h
count 'states that neither a step nor its inference updates are constants of the C'
# shellcheck disable=SC2086
gcc -std=c11 $warnings -O0 frozen/mlp.c frozen/mlp_test.c frozen/mlp_infer_test.c -lm -o self_test >log 2>&1 && ./self_test >log
count 'the self-test of a step and its inference with states in the C'

# Epochs in C, from the same seed and in the same order.
mkdir long
# shellcheck disable=SC2059
printf "$(awk 'BEGIN { for (i = 0; i < 53 * 13; i++) print i * 37 % 101 - 50 }' | floats)" | npy long/x.npy '<f4' '53, 13'
# shellcheck disable=SC2059
printf "$(awk 'BEGIN { for (i = 0; i < 53; i++) printf "\\%03o\\0\\0\\0", i * 5 % 7 }')" | npy long/labels.npy '<i4' '53,'
# shellcheck disable=SC2086
"$ngrad" train open.yaml --loss loss --optimizer adam --threads none --isa scalar -o opened >log 2>&1 &&
  gcc -std=c11 $warnings -O0 -I. opened/mlp.c "$here/epochs.c" -lm -o epochs >>log 2>&1
count 'a step of batches of any size'
"$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 3 --seed 5 -q -o shuffled >log 2>&1 && ./epochs shuffled shuffled/mlp.npz
count 'C repeats the epochs of ngrad fit'
"$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 3 --seed 5 -q -o ordered --no-shuffle >log 2>&1 &&
  ./epochs in-order ordered/mlp.npz && ! ./epochs shuffled ordered/mlp.npz
count 'C repeats the epochs of ngrad fit --no-shuffle'
! "$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 4 -q -o ordered --resume >log 2>&1 &&
  grep -q 'mlp.npz: was begun with --no-shuffle, found training without it' log &&
  "$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 4 -q -o ordered --resume --no-shuffle >log 2>&1
count 'training that was begun in order goes on in order'

for precision in bf16 f16; do
  # shellcheck disable=SC2086 # several options
  "$ngrad" train open.yaml --loss loss --optimizer adam --precision $precision --threads none --isa scalar -o opened >log 2>&1 &&
    gcc -std=c11 $warnings -O0 -I. opened/mlp.c "$here/epochs.c" -lm -o epochs >>log 2>&1 &&
    "$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 2 --seed 5 -q -o $precision >log 2>&1 &&
    "$ngrad" fit opened/mlp_step.yaml --in long --drop-last --epochs 3 --seed 5 -q -o $precision --resume >log 2>&1 &&
    ./epochs shuffled $precision/mlp.npz && ! ./epochs shuffled shuffled/mlp.npz
  count "C repeats the epochs of ngrad fit in $precision, stopped and resumed"
done

for optimizer in $optimizers; do
  "$ngrad" train mlp.yaml --loss loss --optimizer "$optimizer" --threads none --isa avx2 --self-test -o . >log 2>&1
  count "$optimizer: a step, its inference and its C"
  for way in $ways; do
    language=${way##*/} compiler=${way%/*}
    case $optimizer/$language in momentum/c++17) continue ;; esac
    has "$compiler" || continue
    library=
    case $language in c++*) library=-lstdc++ ;; esac
    # shellcheck disable=SC2086
    "$compiler" -x "${language%%[0-9]*}" -std="$language" $warnings -O0 mlp.c mlp_test.c mlp_infer_test.c -x none $library -lm -o self_test >log 2>&1 &&
      ./self_test >log && grep -q '^mlp_infer:' log && [ "$(tail -n 1 log)" = passed ]
    count "$optimizer: the self-test of step and inference, $compiler as $language"
  done
  awk '/_NBYTES \(\(size_t\)/ { gsub(/[^0-9]/, "", $3); n[$2] = $3 }
    END { print n["mlp_PARAMETERS_NBYTES"] + n["mlp_OPTIMIZER_NBYTES"] ", workspace " n["mlp_train_step_WORKSPACE_NBYTES"] }' mlp.h >ram
  "$ngrad" check mlp_step.yaml >log && grep -q "^# RAM in C: states $(cat ram)," log
  count "$optimizer: check tells the memory that C needs"
  compile gcc -std=c11 $level && ./driver train 4 four.npz >log && ./driver train 2 two.npz >>log &&
    ./driver resume 2 two.npz resumed.npz >>log && cmp four.npz resumed.npz >>log
  count "$optimizer: a stopped training goes on to the same bytes"
  "$ngrad" run mlp_step.yaml --in data --seed 5 --isa avx2 --save own.npz >log 2>&1 &&
    "$ngrad" run mlp_step.yaml --in data --state own.npz --isa avx2 --save own.npz >log 2>&1 && cmp own.npz two.npz >log
  count "$optimizer: two steps are the bytes of ngrad run"
  "$ngrad" run mlp_step.yaml --in data --state four.npz >log 2>&1
  count "$optimizer: ngrad run reads what was saved"
  ./driver load own.npz >log && grep -q 'status 0, changed' log
  count "$optimizer: what ngrad run saved is read"
done
mv driver plain_driver
if has clang; then
  compile clang -std=c11 -O0 -fsanitize=address,undefined -fno-sanitize-recover=all && ./driver fuzz four.npz $step >log
  count 'damaged files are refused, or are the same'
fi
compile gcc -std=c11 $level -Dmlp_MOST_32=100U && ./driver train 4 long.npz >log && ./driver load long.npz >log &&
  grep -q 'status 0' log
count 'records of 64 bits are read'
# shellcheck disable=SC2086
gcc -std=c11 $warnings -Dmlp_NO_FILES $level -c mlp.c -o small.o >log 2>&1 && ! nm small.o | grep -q 'fopen\|printf'
count 'without files, nothing of stdio is needed'
cp plain_driver driver
mkdir saved && cp four.npz saved/there.npz && ! (trap '' XFSZ && ulimit -f 1 && ./driver train 1 saved/there.npz) >/dev/null 2>&1 &&
  cmp four.npz saved/there.npz >log && [ "$(ls saved)" = there.npz ]
count 'where the disk is full, the old file stays, and no other'
./driver links saved/there.npz >log 2>&1 && [ "$(ls saved)" = there.npz ]
count 'a file is saved, and not through a link'
./driver abandoned saved/there.npz >log 2>&1 && [ "$(ls saved)" = there.npz ]
count 'files of killed savers are removed'
./driver counts counts.npz >log 2>&1
count 'a count of steps that would wrap around is damage'
./driver together saved/there.npz >log 2>&1 && [ "$(ls saved)" = there.npz ]
count 'two processes save to one path, and leave one whole file'
compile gcc -std=c11 -U__unix__ $level && ./driver train 4 saved/plain.npz >log && cmp four.npz saved/plain.npz >log &&
  ./driver together saved/there.npz >log 2>&1 && [ "$(ls saved)" = "$(printf 'plain.npz\nthere.npz')" ]
count 'so it is with nothing but the C library'

# With numpy

if [ -n "$python" ]; then
  cp plain_driver driver
  cat >check.py <<'P'
import sys, numpy
four, own = numpy.load('four.npz'), numpy.load('long.npz')
assert four.files[:5] == ['w0', 'b0', 'w1', 'b1', 'γ'], four.files
assert all((four[n] == own[n]).all() and four[n].dtype == own[n].dtype for n in four.files)
all_ = {n: four[n] for n in reversed(four.files)}
all_['w1'] = numpy.asfortranarray(all_['w1'])
numpy.savez('numpy.npz', other=numpy.zeros((3, 4)), **all_)
numpy.savez_compressed('compressed.npz', **all_)
numpy.savez('missing.npz', **{n: a for n, a in all_.items() if n != 'b0'})
numpy.savez('wrong.npz', **{n: a.astype('f8') if n == 'b0' else a for n, a in all_.items()})
numpy.savez('shape.npz', **{n: a[:3] if n == 'b0' else a for n, a in all_.items()})
open('text.npz', 'w').write('no archive, but long enough')
P
  "$python" check.py >log 2>&1
  count 'numpy reads what was saved'
  ./driver load numpy.npz >log && grep -q 'status 0, changed' log && ./driver resume 0 numpy.npz again.npz >log &&
    cmp again.npz four.npz >log
  count 'what numpy saved is read, in any order, by rows or columns'
  for case in compressed/22 missing/23 wrong/24 shape/24 text/19 none/16; do
    ./driver load "${case%/*}.npz" >log && grep -q "status ${case#*/}, kept" log
    count "a file is refused: $case"
  done
else
  echo 'left out: training: no numpy, so none of its files'
fi

# Tokens of which slices are indices and labels: element 6 of a row is neither.
cat >text.yaml <<'Y'
format: ngrad/1
name: text
dims: {N: 4}
inputs: [{name: tokens, type: s32, shape: [N, 7], order: [1, 0]}]
state:
  - {name: table, type: f32, shape: [5, 6], init: {fan_in: 6}}
  - {name: out, type: f32, shape: [6, 5], init: {fan_in: 6}}
nodes:
  - {op: Slice, inputs: [tokens], outputs: [used], attributes: {axes: [1], starts: [0], ends: [6]}}
  - {op: Slice, inputs: [used], outputs: [here], attributes: {axes: [1], starts: [0], ends: [5]}}
  - {op: Slice, inputs: [used], outputs: [next], attributes: {axes: [1], starts: [5], ends: [0], steps: [-1]}}
  - {op: Gather, inputs: [table, here], outputs: [x]}
  - {op: MatMul, inputs: [x, out], outputs: [y]}
  - {op: SoftmaxCrossEntropy, inputs: [y, next], outputs: [loss], attributes: {ignore_index: -100}}
outputs: [loss]
Y
cat >text.c <<'C'
#include "c/text.h"
#include <string.h>
static _Alignas(64) unsigned char parameters[text_PARAMETERS_NBYTES], before[text_PARAMETERS_NBYTES];
static _Alignas(64) unsigned char workspace[1 << 20];
int main(void) {
  for (int row = 0; row < 4; row++)
    for (int i = 0; i < 7; i++) {
      int32_t tokens[7 * 4] = {0}; /* [4, 7] by columns */
      float loss;
      tokens[4 * i + row] = i < 6 ? 5 : 77;
      if (text_init(parameters, 1)) return 1;
      memcpy(before, parameters, sizeof before);
      int status = text(4, tokens, &loss, parameters, workspace, sizeof workspace, text_ISA_BEST);
      if (status != (i < 6 ? text_INDEX_OUT_OF_RANGE : text_OK)) return 2;
      if (i < 6 && memcmp(before, parameters, sizeof before)) return 3;
      if (i == 6 && loss != loss) return 4;
      tokens[4 * i + row] = -100; /* ignored as a label; no index */
      status = text(4, tokens, &loss, parameters, workspace, sizeof workspace, text_ISA_BEST);
      if (status != (i < 5 ? text_INDEX_OUT_OF_RANGE : text_OK)) return 5;
    }
  return 0;
}
C
"$ngrad" train text.yaml --optimizer sgd --threads none --isa scalar -o c >log 2>&1 &&
  gcc -std=c11 $level -Wall -Wextra -Wshadow -Wconversion -Werror -fsanitize=address,undefined -fno-sanitize-recover=all text.c c/text.c -lm -o text >>log 2>&1 && ./text >>log 2>&1
count 'C checks the parts of an input that are indices, and no others'
cat >unused.yaml <<'Y'
format: ngrad/1
name: unused
inputs: [{name: x, type: f32, shape: [2, 3]}, {name: labels, type: s32, shape: [2]}]
nodes:
  - {op: SoftmaxCrossEntropy, inputs: [x, labels], outputs: [loss]}
  - {op: LessEqual, inputs: [x, x], outputs: [y]}
outputs: [y]
Y
"$ngrad" emit unused.yaml --self-test --threads none --isa scalar -o unused >log 2>&1 &&
  gcc -std=c11 $level unused/unused.c unused/unused_test.c -lm -o self_test >>log 2>&1 && ./self_test >>log 2>&1
count 'nor labels that nothing needs'

# The last element of an input is no index, and an input and an extent have names that the checks might have.
for order in '[0, 1]' '[1, 0]'; do
  cat >part.yaml <<Y
format: ngrad/1
name: part
dims: {stride: 4}
inputs: [{name: count, type: s32, shape: [stride, 7], order: $order}, {name: table, type: f32, shape: [5, 6]}]
nodes:
  - {op: Slice, inputs: [count], outputs: [ids], attributes: {axes: [1], starts: [1], ends: [6], steps: [2]}}
  - {op: Gather, inputs: [table, ids], outputs: [rows]}
outputs: [rows]
Y
  # shellcheck disable=SC2086
  "$ngrad" emit part.yaml --threads none --self-test -o c >log 2>&1 &&
    gcc -std=c11 $warnings $level c/part.c c/part_test.c -lm -o part >log 2>&1 && ./part >log
  count "the self-test of a part of an input of layout $order"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
