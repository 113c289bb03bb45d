#!/bin/sh
# ngrad fit: it gives the same bits however it is run, stopped and resumed; its output; and errors. With NGRAD_CHECK
# (tests/effort.h), also large tables and real data.
set -u
ngrad=$(realpath "$1")
models=$(realpath "$(dirname "$0")/../../models/train")
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
told='stdout stderr'
unset NO_COLOR

expect() { # STATUS STDOUT STDERR ARGUMENT...; a line of each matches, an empty pattern wants nothing there
  status=$1 out=$2 err=$3
  shift 3
  said=0
  "$ngrad" "$@" >stdout 2>stderr </dev/null || said=$?
  { [ "$said" -eq "$status" ] && matches stdout "$out" && matches stderr "$err"; }
  count "ngrad $* (status $said, expected $status)"
}
matches() { # FILE PATTERN
  if [ -z "$2" ]; then [ ! -s "$1" ]; else [ "$2" = '.*' ] || grep -qE -- "$2" "$1"; fi
}
hash_of() { # ARGUMENT...
  "$ngrad" fit step/net_step.yaml "$@" -q 2>stderr | sed -n 's/^sha256 of the states: //p'
}

# Labels that a network can learn, and samples of them: ngrad makes both.
cp "$here/make.yaml" .
cat >net.yaml <<'Y'
format: ngrad/1
name: net
dims: {N: 10}
inputs:
  - {name: x, type: f32, shape: [N, 6]}
  - {name: labels, type: s32, shape: [N]}
state:
  - {name: w1, type: f32, shape: [6, 17], init: {fan_in: 6}}
  - {name: b1, type: f32, shape: [17], init: zeros}
  - {name: w2, type: f32, shape: [17, 3], init: {fan_in: 17}}
constants:
  - {name: zero, type: f32, shape: [], value: 0}
  - {name: one, type: f32, shape: [], value: 1}
nodes:
  - {op: MatMul, inputs: [x, w1, b1], outputs: [hidden]}
  - {op: ReLU, inputs: [hidden], outputs: [active]}
  - {op: MatMul, inputs: [active, w2], outputs: [logits]}
  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}
  - {op: ArgMax, inputs: [logits], outputs: [class], attributes: {axis: 1}}
  - {op: Equal, inputs: [class, labels], outputs: [is_right]}
  - {op: Select, inputs: [is_right, one, zero], outputs: [right]}
  - {op: ReduceMean, inputs: [right], outputs: [accuracy], attributes: {axes: [0]}}
outputs: [loss, accuracy, logits]
Y
expect 0 'wrote 3 outputs' '' run make.yaml --random --out data
expect 0 'wrote step/net_step.yaml' '' train net.yaml --loss loss --optimizer adam --learning-rate 0.01 -o step
grep -q updates: step/net_step.yaml
count 'a step graph to train with'

# Training, the short batch at the end of an epoch too
expect 0 '^net_step: 203 samples, 21 steps an epoch of 10 samples; 203 samples to test' '' \
  fit step/net_step.yaml --in data --test data --epochs 30 -o out
grep -qE '^epoch 30: loss [0-9.e-]+, accuracy (1|0\.9[0-9]*); test: loss [0-9.e-]+, accuracy (1|0\.9[0-9]*); step 630, ' stdout
count 'the network learns'
grep -q '^out/net.npz has step 630' stdout && [ -s out/net.npz ]
count 'what was learnt is saved'
expect 0 'accuracy  f32   \[\]  *(1|0\.9)' '' run step/net_test.yaml --state out/net.npz --in data --dim N=203
expect 0 'wrote 1 output' '' run step/net_infer.yaml --state out/net.npz --in data --dim N=203 --out results
for shape in '2, 3' '1, 6'; do # what fit converts
  rm -rf nested && mkdir nested && { head -c 128 data/x.npy | sed "s/(203, 6), }   /(203, $shape), }/" && tail -c +129 data/x.npy; } >nested/x.npy
  expect 0 'wrote 1 output' '' run step/net_infer.yaml --state out/net.npz --in nested --out nested/out
  cmp results/logits.npy nested/out/logits.npy
  count "run takes samples of [$shape] where fit does"
done
sed 's/(203, 1, 6)/(609, 1, 2)/' nested/x.npy >nested/x && mv nested/x nested/x.npy
expect 1 '' 'nested/x.npy: error: expected f32 \[_, 6\], found f32 \[609, 1, 2\]' run step/net_infer.yaml --state out/net.npz --in nested
sed 's/^name: net/name: words/' net.yaml >words.yaml
expect 0 'wrote words/words_.c' '' train words.yaml --loss loss --threads none -o words
expect 0 '^words/words_.npz has step' '' fit words/words__step.yaml --in data -q -o words
grep -q '^int words__train_step(' words/words_.h
count 'a step and its checkpoint have one name, of C'
expect 0 '^net_step: 200 of 203 samples, 20 steps' '' fit step/net_step.yaml --in data --drop-last
expect 0 '^sha256' '' fit step/net_step.yaml --in data --batch 500

# Sums of samples: those of two epochs are twice that of one only where no sample is left out, as others are each time.
printf '\0\0\010\1\0\0\0\013\1\2\3\4\5\6\7\010\011\012\013' >x.idx
for result in once twice; do
  cat >$result.yaml <<Y
format: ngrad/1
name: sum
dims: {N: 4}
inputs: [{name: x, type: f32, shape: [N]}]
state: [{name: total, type: f32, shape: [], init: zeros}]
nodes:
  - {op: ReduceSum, inputs: [x], outputs: [sum], attributes: {axes: [0]}}
  - {op: Add, inputs: [total, sum], outputs: [once]}
  - {op: Add, inputs: [once, sum], outputs: [twice]}
outputs: []
updates: {total: $result}
Y
done
[ "$("$ngrad" fit once.yaml --in . --epochs 2 -q)" = "$("$ngrad" fit twice.yaml --in . -q)" ]
count 'an epoch takes each sample once'
[ "$("$ngrad" fit once.yaml --in . --drop-last --epochs 2 -q)" != "$("$ngrad" fit twice.yaml --in . --drop-last -q)" ]
count 'each epoch leaves out other samples'
expect 0 '"event":"end"' '' fit step/net_step.yaml --in data --test data --json
grep -q '"samples":203,"left_out":0,' stdout && grep -q '"event":"epoch","epoch":1,"step":21,"samples":203,"means":{"loss":' stdout && [ "$(grep -c progress stdout)" -eq 3 ]
count 'as JSON, too'
expect 0 '"event":"step","epoch":1,"step":21,"values":\{"loss":' '' fit step/net_step.yaml --in data --json --each-step
[ "$(grep -c '"event":"step"' stdout)" -eq 21 ]
count 'each step, if asked'
expect 0 '^step 21: loss ' '' fit step/net_step.yaml --in data --each-step
expect 0 '^sha256' '' fit step/net_step.yaml --in data -q -o quiet
[ "$(wc -l <stdout)" -eq 2 ]
count 'quietly, too'

# The same bits
threads_taken='1 3' stops='1 21 50'
! takes_all || threads_taken='1 2 3' stops='1 20 21 22 50'
whole=$(hash_of --in data --epochs 3)
[ ${#whole} -eq 64 ]
count 'the states have a hash'
for isa in scalar avx2 avx512 neon; do
  "$ngrad" --version | grep -q "instruction sets:.* $isa" || continue
  for threads in $threads_taken; do
    [ "$(hash_of --in data --epochs 3 --isa $isa --threads "$threads")" = "$whole" ]
    count "the same bits with $isa and $threads threads"
  done
done
gzip -c data/x.npy >x.gz
[ "$(hash_of --input x=x.gz --labels data/labels.npy --epochs 3)" = "$whole" ]
count 'the same bits from a compressed file'
{
  printf '\0\0\010\001\0\0\0\313'
  tail -c 812 data/labels.npy | od -An -v -td4 | tr -s ' ' '\n' | sed '/^$/d; s/^/\\00/' | while read -r digit; do printf %b "$digit"; done
} >labels.idx
[ "$(hash_of --in data --labels labels.idx --epochs 3)" = "$whole" ]
count 'the same bits from labels in an idx file'
[ "$(hash_of --in data --epochs 3 --seed 1)" != "$whole" ]
count 'other bits from another seed'

# Stopped anywhere and resumed
for steps in $stops; do
  rm -rf parts
  [ -n "$(hash_of --in data --steps "$steps" -o parts)" ] && [ "$(hash_of --in data --epochs 3 -o parts --resume)" = "$whole" ]
  count "the same bits when it is resumed at step $steps"
done
hash_of --in data --epochs 3 -o once >/dev/null
cmp -s once/net.npz parts/net.npz
count 'the same file, too'
expect 0 '^resumed at step 63' '' fit step/net_step.yaml --in data --epochs 3 -o parts --resume
grep -q '^nothing is left to train: 3 epochs are done; a larger --epochs' stdout
count 'it says that nothing is left to train'
sed -e 's/^  - {name: b1,.*/&\n  - {name: m, type: f32, shape: [17], init: zeros}\n  - {name: v, type: f32, shape: [17], init: ones}/' \
  -e 's/^  - {op: ReLU.*/  - {op: BatchNormForwardTraining, inputs: [hidden, m, v], outputs: [active, m2, v2, bm, bv], attributes: {epsilon: 1e-5}}/' \
  -e '$a updates: {m: m2, v: v2}' net.yaml >norm.yaml
expect 0 '^sha256' 'warning: norm.yaml: only running statistics .* w1 and 2 other states stay .* ngrad train norm.yaml -o DIR' fit norm.yaml --in data -q
expect 0 'wrote norm/net_step.yaml' '' train norm.yaml --loss loss --freeze w1 -o norm
expect 0 '^sha256' '' fit norm/net_step.yaml --in data -q
expect 0 '^epoch 4: ' '' fit step/net_step.yaml --in data --epochs 4 -o parts --resume
"$ngrad" fit step/net_step.yaml --in data --steps 100000000 -o stopped >stdout 2>stderr &
child=$!
for _ in $(seq 100); do
  grep -q '^epoch 2' stdout && break
  sleep 0.1
done
kill -TERM $child
wait $child 2>/dev/null
[ $? -eq 143 ] && grep -q '^stopped/net.npz has step' stdout
count 'a signal ends it with everything saved'
steps=$(sed -n 's/^stopped.net.npz has step //p' stdout)
[ "$(hash_of --in data --steps $((steps + 5)) -o stopped --resume)" = "$(hash_of --in data --steps $((steps + 5)))" ]
count 'the same bits after a signal'

# Beginning with other states
expect 0 '^sha256' '' fit step/net_step.yaml --in data --state once/net.npz -o tuned
printf 'format: ngrad/1\nname: g\nstate: [{name: v, type: f32, shape: [2], init: ones}]\nnodes:\n  - {op: Abs, inputs: [v], outputs: [u]}\noutputs: [u]\n' >other.yaml
"$ngrad" run other.yaml --save other.npz >/dev/null
expect 1 '' 'other.npz: has none of the states of net_step' fit step/net_step.yaml --in data --state other.npz

# With numpy
python=
for candidate in /usr/bin/python3 python3; do
  "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
if [ -n "$python" ]; then
  "$python" -c "
import numpy
saved = dict(numpy.load('once/net.npz'))
assert saved['w1'].shape == (6, 17) and saved['w1.m'].dtype == 'float32' and saved['step'] == 63, saved
numpy.savez('numpy.npz', **saved)" >stdout 2>stderr
  count 'numpy reads what was saved'
  "$python" -W ignore -c "
import zipfile
with zipfile.ZipFile('doubled.npz', 'w') as z, zipfile.ZipFile('once/net.npz') as once:
  for i in range(2): z.writestr('w1.npy', once.read('w1.npy'))" >stdout 2>stderr
  expect 1 '' 'doubled.npz: error: damaged: it has two entries of the same name' fit step/net_step.yaml --in data --state doubled.npz
  mkdir late
  "$python" -c "
import numpy
saved = dict(numpy.load('once/net.npz'))
saved['.fit'][3] = 2**63 - 1
numpy.savez('late/net.npz', **saved)" >stdout 2>stderr
  expect 1 '' 'late/net.npz: damaged: the position in training is impossible' fit step/net_step.yaml --in data -o late --resume
  mkdir other_bits
  "$python" -c "
import numpy
saved = dict(numpy.load('once/net.npz'))
saved['.fit'][7] = 0
numpy.savez('other_bits/net.npz', **saved)" >stdout 2>stderr
  expect 0 '^resumed at' 'other_bits/net.npz: was computed with bits 0, this is bits [1-9]' fit step/net_step.yaml --in data -o other_bits --resume
  mkdir counter
  # Further steps would wrap around, it is no number of steps, or fewer than those of the training.
  for step in 9223372036854775807 4611686018427387904 -1 62; do
    "$python" -c "
import numpy
saved = dict(numpy.load('once/net.npz'))
saved['step'] = numpy.int64($step)
numpy.savez('counter/net.npz', **saved)" >stdout 2>stderr
    expect 1 '' "counter/net.npz: damaged: step is $step, expected a count from 63 to 4611686018427387903" \
      fit step/net_step.yaml --in data -o counter --resume
    [ "$step" = 62 ] || expect 1 '' "counter/net.npz: damaged: step is $step, expected a count from 0 to 4611686018427387903" \
      fit step/net_step.yaml --in data --state counter/net.npz
  done
  mkdir numpy && mv numpy.npz numpy/net.npz
  [ "$(hash_of --in data --epochs 5 -o numpy --resume)" = "$(hash_of --in data --epochs 5)" ]
  count 'what numpy saved is resumed'
else
  echo 'left out: fit: no numpy, so none of its files'
fi

# Leaves: a batch in two parts
expect 0 'wrote leaves/net_step.yaml' '' train net.yaml --loss loss --accumulate 2 -o leaves
expect 0 '202 of 203 samples, 11 steps an epoch of 20 samples' '' fit leaves/net_step.yaml --in data
sed '/Equal/d; /Select/d; /ReduceMean/d; s/type: s32/type: s64/; s/loss, accuracy/loss/' net.yaml >wide_labels.yaml
expect 0 'wrote wide_leaves/net_step.yaml' '' train wide_labels.yaml --loss loss --accumulate 2 -o wide_leaves
sed '/Equal/d; /Select/d; /ReduceMean/d; s/loss, accuracy/loss/' net.yaml >labels.yaml
expect 0 'wrote narrow_leaves/net_step.yaml' '' train labels.yaml --loss loss --accumulate 2 -o narrow_leaves
[ "$("$ngrad" fit wide_leaves/net_step.yaml --in data -q | sed -n 's/^sha256 of the states: //p')" = \
  "$("$ngrad" fit narrow_leaves/net_step.yaml --in data -q | sed -n 's/^sha256 of the states: //p')" ]
count 'labels of 64 bits are leaves, too'
expect 2 '' 'expected a multiple of the graph.s 2 leaves, found 7' fit leaves/net_step.yaml --in data --batch 7

# A batch that is a number
sed '/^dims/d; s/shape: \[N/shape: [10/' net.yaml >numbers.yaml
expect 0 'wrote numbers/net_step.yaml' '' train numbers.yaml --loss loss --optimizer adam --learning-rate 0.01 -o numbers
expect 0 '^net_step: 200 of 203 samples, 20 steps an epoch of 10 samples; 200 of 203 samples to test$' '' \
  fit numbers/net_step.yaml --in data --test data -o numbers --batch 10
[ "$("$ngrad" fit numbers/net_step.yaml --in data -q)" = "$("$ngrad" fit step/net_step.yaml --in data --drop-last -q)" ]
count 'a batch that is a number gives the bits of one with a name'
expect 2 '' '^error: --batch: expected 10, the number of samples in numbers/net_step.yaml, found 20; ' \
  fit numbers/net_step.yaml --in data --batch 20
expect 2 '' '^error: unknown dim N: net_infer has no extents with names$' emit numbers/net_infer.yaml --dim N=1 -o numbers
expect 0 'wrote number_leaves/net_step.yaml' '' train numbers.yaml --loss loss --accumulate 3 -o number_leaves
expect 0 '^net_step: 180 of 203 samples, 6 steps an epoch of 30 samples; 200 of 203 samples to test$' '' \
  fit number_leaves/net_step.yaml --in data --test data
sed 's/shape: \[10/shape: [250/' numbers.yaml >many.yaml
expect 0 'wrote many/net_step.yaml' '' train many.yaml --loss loss -o many
expect 1 '' 'no samples: there are fewer than a batch takes, 250$' fit many/net_step.yaml --in data

# An ONNX model with a batch of 8, whose convolution is trained, and used from C: the logits of the program and of the C
# are the same bytes.
cat >images.yaml <<'Y'
format: ngrad/1
name: images
inputs: [{name: noise, type: f32, shape: [40, 1, 6, 6]}]
constants: [{name: zero, type: f32, shape: [], value: 0}]
nodes:
  - {op: ReduceMean, inputs: [noise], outputs: [mean], attributes: {axes: [1, 2, 3]}}
  - {op: Greater, inputs: [mean, zero], outputs: [is_bright]}
  - {op: Abs, inputs: [noise], outputs: [x]}
  - {op: TypeCast, inputs: [is_bright], outputs: [{name: labels, type: s32, shape: [40]}]}
outputs: [x, labels]
Y
cat >cnn.yaml <<'Y'
format: ngrad/1
name: cnn
dims: {N: ~}
inputs: [{name: x, type: f32, shape: [BATCH, 1, 6, 6]}]
constants:
  - {name: filter, type: f32, shape: [2, 1, 3, 3], file: filter.npy}
  - {name: weights, type: f32, shape: [32, 2], file: weights.npy}
  - {name: scale, type: f32, shape: [], file: scale.npy}
nodes:
  - {op: Convolution, inputs: [x, filter], outputs: [h], attributes: {strides: [1, 1], pads_begin: [0, 0], pads_end: [0, 0], dilations: [1, 1], data_format: NCX, weights_format: OIX}}
  - {op: ReLU, inputs: [h], outputs: [a]}
  - {op: StaticReshape, inputs: [a], outputs: [flat], attributes: {shape: [BATCH_OR_0, 32], special_zero: true}}
  - {op: MatMul, inputs: [flat, weights], outputs: [product]}
  - {op: Multiply, inputs: [product, scale], outputs: [logits]}
outputs: [logits]
Y
cat >first.yaml <<'Y'
format: ngrad/1
inputs: [{name: a, type: f32, shape: [2, 1, 3, 3]}, {name: b, type: f32, shape: [32, 2]}, {name: c, type: f32, shape: []}]
nodes:
  - {op: Tanh, inputs: [a], outputs: [filter]}
  - {op: Tanh, inputs: [b], outputs: [weights]}
  - {op: Abs, inputs: [c], outputs: [scale]}
outputs: [filter, weights, scale]
Y
expect 0 'wrote 2 outputs' '' run images.yaml --random --out pictures
expect 0 'wrote 3 outputs' '' run first.yaml --random --out .
cat >infer.c <<'C'
#include "cnn_infer.h"
#include <stdio.h>
static _Alignas(64) unsigned char parameters[cnn_infer_PARAMETERS_NBYTES], workspace[cnn_infer_WORKSPACE_NBYTES + 1];
static float x[8 * 36], logits[8 * 2];
int main(void) {
  FILE *file = fopen("pictures/x.npy", "rb");
  if (!file || fseek(file, 128, SEEK_SET) != 0 || fread(x, sizeof x, 1, file) != 1) return 1;
  int status = cnn_infer_load(parameters, "cnn/cnn.npz");
  if (!status) status = cnn_infer(x, logits, parameters, workspace, sizeof workspace, cnn_infer_ISA_BEST);
  fwrite(logits, sizeof logits, 1, stdout);
  return status;
}
C
for form in number name; do
  case $form in
    number) sed '/^dims/d; s/BATCH_OR_0/8/; s/BATCH/8/' cnn.yaml >own.yaml && set -- ;;
    name) sed 's/BATCH_OR_0/0/; s/BATCH/N/' cnn.yaml >own.yaml && set -- --dim N=8 ;;
  esac
  rm -rf cnn cnn.onnx
  expect 0 '^trained: 3 of 3 constants$' '' train own.yaml --loss cross-entropy -o files
  expect 0 'wrote cnn.onnx' '' convert own.yaml -o cnn.onnx
  expect 0 '^trained: 3 of 3 constants$' '' train cnn.onnx --loss cross-entropy --optimizer adam -o cnn "$@"
  expect 0 '^cnn_step: 40 samples, 5 steps an epoch of 8 samples; 40 samples to test$' '' \
    fit cnn/cnn_step.yaml --in pictures --test pictures --epochs 3 -o cnn
  expect 0 'wrote cnn/cnn_infer.c' '' emit cnn/cnn_infer.yaml "$@" --threads none --isa scalar -o cnn
  gcc -std=c11 -O1 -Wall -Wextra -Werror -I cnn infer.c cnn/cnn_infer.c -lm -o infer 2>stderr && ./infer >logits.raw
  count "what was trained with a batch by $form is compiled"
  mkdir -p eight && { head -c 128 pictures/x.npy | sed 's/(40, 1, 6, 6)/(8, 1, 6, 6) /' && tail -c +129 pictures/x.npy | head -c 1152; } >eight/x.npy
  expect 0 'wrote 1 output' '' run cnn/cnn_infer.yaml --state cnn/cnn.npz --in eight --isa scalar --out cnn/results
  tail -c 64 cnn/results/logits.npy | cmp -s - logits.raw
  count "and gives the same bytes"
  expect 0 'wrote leafy/cnn_step.yaml' '' train cnn.onnx --loss cross-entropy --accumulate 2 -o leafy "$@"
  expect 0 '^cnn_step: 32 of 40 samples, 2 steps an epoch of 16 samples$' '' fit leafy/cnn_step.yaml --in pictures
done

# Inputs that are read once, and whole
for shape in '1, 10' '2, 6'; do
  cat >make_whole.yaml <<Y
format: ngrad/1
name: make_whole
inputs: [{name: noise, type: f32, shape: [$shape]}]
nodes: [{op: Abs, inputs: [noise], outputs: [whole_${shape%, *}]}]
outputs: [whole_${shape%, *}]
Y
  expect 0 'wrote 1 output' '' run make_whole.yaml --random --out data
done
cat >weighted.yaml <<'Y'
format: ngrad/1
name: weighted
dims: {N: 10}
inputs: [{name: x, type: f32, shape: [N, 6]}, {name: weights, type: f32, shape: [1, N]}]
state: [{name: total, type: f32, shape: [1, 6], init: zeros}]
nodes:
  - {op: MatMul, inputs: [weights, x], outputs: [sum]}
  - {op: Add, inputs: [total, sum], outputs: [next]}
outputs: []
updates: {total: next}
Y
weighted() { # STATUS STDOUT STDERR ARGUMENT...
  expect "$1" "$2" "$3" fit weighted.yaml --in data --input weights=data/whole_1.npy "$4" "$5"
}
weighted 0 '^sha256' '' --drop-last -q
for batch in 10:3 20:20; do
  weighted 1 '' "weights: is read once .* not depend on N: expected extent ${batch#*:} on axis 1 for a batch of ${batch#*:} samples, found 10; samples lie along the first axis$" \
    --batch ${batch%:*}
done
cat >common.yaml <<'Y'
format: ngrad/1
name: common
leaves: 2
dims: {D: 2, N: 5}
inputs: [{name: rows, type: f32, shape: [D, 6]}, {name: x, type: f32, shape: [2, N, 6]}]
state: [{name: total, type: f32, shape: [6], init: zeros}]
nodes:
  - {op: ReduceSum, inputs: [rows], outputs: [scale], attributes: {axes: [0]}}
  - {op: Leaf, inputs: [x], outputs: [leaf]}
  - {op: Multiply, inputs: [leaf, scale], outputs: [scaled]}
  - {op: ReduceSum, inputs: [scaled], outputs: [own], attributes: {axes: [0]}}
  - {op: AllReduce, inputs: [own], outputs: [sum]}
  - {op: Add, inputs: [total, sum], outputs: [next]}
outputs: []
updates: {total: next}
Y
expect 0 '^common: 202 of 203 samples, 21 steps an epoch of 10 samples' '' fit common.yaml --in data --input rows=data/whole_2.npy

# The batch is the first axis. An input that has it elsewhere is read once.
cat >turned.yaml <<'Y'
format: ngrad/1
name: turned
dims: {N: 10}
inputs: [{name: x, type: f32, shape: [6, N]}, {name: labels, type: s32, shape: [N]}]
state: [{name: w, type: f32, shape: [4, 6], init: {fan_in: 6}}]
nodes:
  - {op: MatMul, inputs: [w, x], outputs: [h], attributes: {}}
  - {op: SoftmaxCrossEntropy, inputs: [h, labels], outputs: [loss], attributes: {axis: 0}}
outputs: [loss]
Y
"$ngrad" train turned.yaml --loss loss -o . >log 2>&1
expect 1 '' 'x is read once for all batches, because its first axis is not the batch, N: expected samples along the first axis$' \
  fit turned_step.yaml --in data

# Numbers that are not finite
cp once/net.npz before.npz
sed 's/\(name: learning_rate.*value: \).*}/\11e38}/' step/net_step.yaml >step/wild_step.yaml
expect 1 '^once/net.npz has step 63' 'is the first that makes such a number' fit step/wild_step.yaml --in data --epochs 9 -o once --resume
grep -qE '^step/wild_step.yaml:[0-9]+:[0-9]+: error: [A-Za-z]+ computes (NaN|an infinity) from' stderr && cmp -s before.npz once/net.npz
count 'the first node that makes a NaN is named, and the last checkpoint stays'
expect 1 '' 'x: sample [0-9]+ of its data has -inf' fit step/net_step.yaml --input x=data/logarithm.npy --labels data/labels.npy -q

cat >nan.yaml <<'Y'
format: ngrad/1
constants: [{name: number, type: f32, shape: [], value: .nan}]
nodes: [{op: Neg, inputs: [number], outputs: [nan]}]
outputs: [nan]
Y
"$ngrad" run nan.yaml --out . >stdout 2>stderr && sed 's/zeros/{file: nan.npy}/' once.yaml >spoilt.yaml
expect 1 '' 'the state total has nan before the step' fit spoilt.yaml --input x=x.idx -q
sed 's/\.nan/.inf/; s/nan/inf/g' nan.yaml >inf.yaml
"$ngrad" run inf.yaml --out . >stdout 2>stderr &&
  sed 's/state: \[/&{name: mask, type: f32, shape: [], init: {file: inf.npy}}, /; s/nodes:/&\n  - {op: Maximum, inputs: [total, mask], outputs: [masked]}/; s/outputs: \[\]/outputs: [masked]/' once.yaml >masked.yaml
expect 0 '^sha256' '' fit masked.yaml --input x=x.idx -q

# Checkpoints that do not go with it
expect 1 '' '^error: once/net.npz: is there already: --resume goes on from it; to begin anew, remove it or choose another --out$' \
  fit step/net_step.yaml --in data -o once
cmp -s before.npz once/net.npz
count 'training anew leaves the checkpoint of an earlier training'
expect 2 '' 'expected --out DIR' fit step/net_step.yaml --in data --resume
expect 1 '' 'none/net.npz: nothing to resume from' fit step/net_step.yaml --in data -o none --resume
mkdir saved && "$ngrad" run step/net_step.yaml --random --save saved/net.npz >/dev/null 2>&1
expect 1 '' 'saved/net.npz: error: no .fit.npy in it, which only ngrad fit writes: --state begins' fit step/net_step.yaml --in data -o saved --resume
expect 1 '' 'was begun with --seed 0, found --seed 4' fit step/net_step.yaml --in data -o once --resume --seed 4
expect 1 '' 'was begun with batches of 10 samples, found 20' fit step/net_step.yaml --in data -o once --resume --batch 20
expect 1 '' 'was begun with epochs of 203 samples, found 200' fit step/net_step.yaml --in data -o once --resume --drop-last
sed 's/17/18/' net.yaml >wide.yaml
"$ngrad" train wide.yaml --loss loss --optimizer adam -o wide >/dev/null
expect 1 '' 'once/net.npz: error: w1: expected f32 \[6, 18\], found f32 \[6, 17\]' fit wide/net_step.yaml --in data -o once --resume
grep -q 'error: b1: expected f32 \[18\], found f32 \[17\]' stderr
count 'all that does not fit is told'
mkdir -p folder/net.npz
expect 1 '' 'folder/net.npz: expected a file or nothing there' fit step/net_step.yaml --in data -o folder
sed 's/b1/.fit/' net.yaml >taken.yaml
"$ngrad" train taken.yaml --loss loss -o taken >/dev/null
expect 1 '' 'the state .fit: expected another name' fit taken/net_step.yaml --in data -o taken
expect 0 'not saved' '' fit taken/net_step.yaml --in data
mkdir short damaged
cp once/net.npz damaged
printf '\377' | dd of=damaged/net.npz bs=1 seek=200 conv=notrunc 2>log
expect 1 '' 'damaged/net.npz: error: ' fit step/net_step.yaml --in data -o damaged --resume
cp damaged/net.npz short
head -c 1000 once/net.npz >short/net.npz
expect 1 '' 'short/net.npz: error: not a whole .npz file' fit step/net_step.yaml --in data -o short --resume
# shellcheck disable=SC3045 # the shells that stand for sh here have ulimit -f
(ulimit -f 1 && "$ngrad" fit step/net_step.yaml --in data --epochs 4 -o once --resume) >stdout 2>stderr
[ $? -eq 1 ] && grep -q 'once/net.npz: error: file too large' stderr && cmp -s before.npz once/net.npz && [ "$(ls once)" = net.npz ]
count 'a full disk leaves the old checkpoint'

# Two trainings on one folder; and what a killed one leaves
"$ngrad" fit step/net_step.yaml --in data --epochs 4000000000 -o shared -q >/dev/null 2>&1 &
first=$!
while [ ! -e shared/net.npz ]; do sleep 0.02; done
for option in '' --resume; do
  # shellcheck disable=SC2086 # no word, or one
  expect 1 '' '^error: shared/net.npz: another training that has not ended saves there: choose another --out$' \
    fit step/net_step.yaml --in data -o shared $option
done
kill -KILL $first
wait $first 2>/dev/null
touch shared/net.npz.99999999-0.tmp shared/net.npz.$first-7.tmp shared/net.npz.$$-0.tmp shared/net.npz.1-0.tmp.old shared/net.npz.notes.tmp
rm shared/net.npz
expect 0 'net.npz has step 1$' '' fit step/net_step.yaml --in data --steps 1 -o shared
ls shared >left
rm -f shared/net.npz.$$-0.tmp # this shell's, which has not ended
[ "$(cd shared && echo ./*)" = './net.npz ./net.npz.1-0.tmp.old ./net.npz.notes.tmp' ] && grep -q "net.npz.$$-0.tmp" left
count 'a save removes what killed processes left, and nothing else'
sleep 1000 >/dev/null 2>&1 &
other=$!
touch once/net.npz.$other-0.tmp
expect 0 'net.npz has step' '' fit step/net_step.yaml --in data --epochs 4 -o once --resume
kill $other
[ -e once/net.npz.$other-0.tmp ]
count 'the file of a process that has not ended stays'
rm -f once/net.npz.$other-0.tmp
cp before.npz once/net.npz

# A file of more samples than memory has numbers for their order: refused before it is read. It has no blocks on the disk.
printf '\0\0\010\001\377\377\377\377' >sparse.idx
dd if=/dev/zero of=sparse.idx bs=1 count=1 seek=4294967302 conv=notrunc 2>log
expect 1 '' 'sparse.idx needs 34.4 GB \(the order of samples 34.4 GB\), more than the memory budget of 1.0 GB' \
  fit step/net_step.yaml --in data --labels sparse.idx --max-memory 1G
rm sparse.idx

# Texts, and a table; with NGRAD_CHECK, one that is large enough for pieces of its products
columns=64
if takes_all; then columns=70001; fi
cat >table.yaml <<'Y'
format: ngrad/1
name: table
dims: {N: 1}
inputs:
  - {name: tokens, type: s32, shape: [N, 64]}
  - {name: labels, type: s32, shape: [N, 64]}
state:
  - {name: table, type: f32, shape: [COLUMNS, 180], init: {normal: 0.1}}
nodes:
  - {op: Gather, inputs: [table, tokens], outputs: [rows], attributes: {axis: 0}}
  - {op: MatMul, inputs: [rows, table], outputs: [logits], attributes: {transpose_b: true}}
  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}
outputs: [loss]
Y
sed -i "s/COLUMNS/$columns/" table.yaml
expect 0 'wrote table/table_step.yaml' '.*' train table.yaml -o table
[ $columns -eq 64 ] || expect 0 'MatMul .* at \[:, :, .*:70001\]' '' show table/table_step.yaml --format kernels
if [ $columns -ne 64 ]; then
  cat >update.yaml <<'Y'
format: ngrad/1
name: update
inputs:
  - {name: x, type: f32, shape: [192, 70001]}
  - {name: dy, type: f32, shape: [192, 48]}
  - {name: rate, type: f32, shape: []}
state:
  - {name: w, type: f32, shape: [70001, 48], init: zeros}
nodes:
  - {op: MatMul, inputs: [x, dy], outputs: [dw], attributes: {transpose_a: true}}
  - {op: SGD, inputs: [w, dw, rate], outputs: [w_next]}
outputs: []
updates: {w: w_next}
Y
  expect 0 'MatMul .*, SGD .* at \[.*:70001, :\]' '' show update.yaml --format kernels
  expect 0 'w_next .* ok$' '' run update.yaml --random --compare
  "$ngrad" show update.yaml --format memory >stdout
  ! grep -q 'to be copied' stdout
  count 'pieces of an update are stored in its place'
fi
seq 100 >text # 292 bytes: the last sample has 35 bytes too few
table_hash() { # ARGUMENT...
  "$ngrad" fit table/table_step.yaml --steps 1 "$@" --batch 1 -q 2>stderr | sed -n 's/^sha256 of the states: //p'
}
expect 0 '^table_step: 4 samples, 4 steps .*; 4 samples to test' '' \
  fit table/table_step.yaml --text text --test-text text --steps 1
whole=$(table_hash --text text)
{ printf '\0\0\010\002\0\0\0\004\0\0\0\100' && head -c 256 text; } >tokens.idx
{ printf '\0\0\010\002\0\0\0\004\0\0\0\100' && tail -c +2 text | head -c 256; } >next.idx
[ "$(table_hash --input tokens=tokens.idx --labels next.idx)" = "$whole" ] && [ ${#whole} -eq 64 ]
count 'a text is its bytes, and labels those that follow'
[ "$(table_hash --text text --labels next.idx --threads 3)" = "$whole" ]
count 'labels may be of a file, beside a text'
for isa in scalar avx2 avx512 neon; do
  "$ngrad" --version | grep -q "instruction sets:.* $isa" || continue
  [ "$(table_hash --text text --isa $isa --threads 1)" = "$whole" ]
  count "the same bits of pieces with $isa"
done
expect 1 '' '/dev/null: error: expected a regular file' fit table/table_step.yaml --text /dev/null
head -c 64 text >short.txt
expect 1 '' 'short.txt: error: expected a text of more than 64 bytes, found 64' fit table/table_step.yaml --text short.txt

# A model of bytes continues a text
if takes_all; then
  "$models/gpt.sh" gpt_bytes 1 16 2 16 256 1 >gpt_bytes.yaml
  expect 0 'wrote gpt/gpt_bytes_infer.yaml' '' train gpt_bytes.yaml --optimizer adam --learning-rate 0.02 -o gpt
  for _ in $(seq 64); do printf abcdefg; done >cycle
  expect 0 'gpt/gpt_bytes.npz has step 420' '' fit gpt/gpt_bytes_step.yaml --text cycle --batch 4 --epochs 60 -o gpt
  expect 0 'wrote gpt/gpt_bytes_infer.c' '' emit gpt/gpt_bytes_infer.yaml --dim B=1 --threads none --isa scalar -o gpt
  gcc -std=c11 -O1 -Wall -Wextra -Werror -DCONTEXT=16 -I gpt "$models/sample.c" gpt/gpt_bytes_infer.c -lm -o sample
  [ "$(./sample gpt/gpt_bytes.npz efg 20 0)" = efgabcdefgabcdefgabcdef ] && [ "$(./sample gpt/gpt_bytes.npz efg 20 0.1 3)" = efgabcdefgabcdefgabcdef ]
  count 'models/train/sample.c says what was learnt'
fi

# Data that does not go with it
expect 1 '' 'no data for x: expected --in DIR or --input x=FILE' fit step/net_step.yaml
# A slash in an input's name is %2F in that of its file, as run --out writes it.
cat >slash.yaml <<'Y'
format: ngrad/1
name: slash
dims: {N: 2}
inputs: [{name: a/x, type: f32, shape: [N, 3]}]
state: [{name: w, type: f32, shape: [3], init: ones}]
nodes:
  - {op: Multiply, inputs: [a/x, w], outputs: [y]}
  - {op: ReduceMean, inputs: [y], outputs: [loss], attributes: {axes: [0, 1]}}
  - {op: ReduceMean, inputs: [y], outputs: [w_next], attributes: {axes: [0]}}
outputs: [loss]
updates: {w: w_next}
Y
sed -n '/^state/d; /ReduceMean/d; /^updates/d; s/a.x/x/g; s/, w]/, x]/; s/[[]y[]]/[a\/x]/; s/[[]loss[]]/[a\/x]/; p' slash.yaml >files.yaml
"$ngrad" run files.yaml --random --out slashed >/dev/null 2>&1
expect 0 '^epoch 1: loss ' '' fit slash.yaml --in slashed
expect 1 '' 'no data for a/x: expected none/a%2Fx.npy or .idx' fit slash.yaml --in none
expect 1 '' 'no data for labels: expected none/labels.npy or .idx' fit step/net_step.yaml --in none --input x=data/x.npy
expect 1 '' 'x.npy: error: no such file' fit step/net_step.yaml --in data --input x=none/x.npy
expect 2 '' 'expected NAME=FILE with an input of net_step, found y=1; its inputs: x, labels' fit step/net_step.yaml --in data --input y=1
expect 2 '' 'found label=data/labels.npy; did you mean labels; its inputs: x, labels' fit step/net_step.yaml --in data --input label=data/labels.npy
expect 1 '' 'labels: expected one number for each sample, found 203 of shape \[6\]; numpy.s argmax' fit step/net_step.yaml --in data --labels data/x.npy
printf '\0\0\015\001\0\0\0\001\0\0\0\0' >float.idx
expect 1 '' 'float.idx: error: labels: expected numbers of type s32, found f32' fit step/net_step.yaml --in data --labels float.idx
{ printf '\0\0\016\002\0\0\0\001\0\0\0\006' && head -c 48 /dev/zero; } >double.idx
expect 1 '' 'double.idx: error: x: expected numbers of type f32, found f64; convert it, as by numpy.s astype..float32' fit step/net_step.yaml --in data --input x=double.idx
mkdir twice && cp data/x.npy double.idx twice && cp labels.idx twice/labels.idx && mv twice/double.idx twice/x.idx
expect 1 '' '^error: x: expected one file, found twice/x.npy and twice/x.idx' fit step/net_step.yaml --in twice
printf '\0\0\010\001\0\0\0\002\0\0' >two.idx
expect 1 '' 'two.idx: labels has 2 samples, other inputs have 203' fit step/net_step.yaml --in data --labels two.idx
{ head -c 108 labels.idx; printf '\003'; tail -c 102 labels.idx; } >high.idx
expect 1 '' 'high.idx: error: labels: sample 100 is 3, expected 0 to 2' fit step/net_step.yaml --in data --labels high.idx
cat >embedding.yaml <<'Y'
format: ngrad/1
name: embedding
dims: {N: 2}
inputs: [{name: words, type: s32, shape: [N, 3]}]
state: [{name: table, type: f32, shape: [5, 4], init: ones}]
nodes:
  - {op: Gather, inputs: [table, words], outputs: [vectors]}
  - {op: ReduceMean, inputs: [vectors], outputs: [loss], attributes: {axes: [0, 1, 2]}}
outputs: [loss]
Y
"$ngrad" train embedding.yaml -o embedding >log 2>&1
printf '\0\0\010\002\0\0\0\002\0\0\0\003\001\004\0\0\005\001' >words.idx
expect 1 '' 'words.idx: error: words: element 1 of sample 1 is 5, expected -5 to 4' \
  fit embedding/embedding_step.yaml --input words=words.idx
printf '\0\0\010\001\0\0\0\0' >none.idx
printf '\0\0\010\002\0\0\0\0\0\0\0\006' >nothing.idx
expect 1 '' 'no samples in the files of its inputs' fit step/net_step.yaml --labels none.idx --input x=nothing.idx
expect 1 '' 'fewer than a batch takes' fit step/net_step.yaml --in data --batch 500 --drop-last
expect 1 '' 'the memory budget is 100.0 kB; raise it with --max-memory' fit step/net_step.yaml --in data --max-memory 100K
expect 1 '' 'the memory budget is 1 bytes; raise it with --max-memory' fit step/net_step.yaml --in data --max-memory 1
sed 's/17/1000000/' net.yaml >large.yaml
"$ngrad" train large.yaml --loss loss -o large >/dev/null
expect 1 '' 'needs .* more than the memory budget of 20.0 MB' fit large/net_step.yaml --in data --max-memory 20M
expect 1 '' 'expected a graph with updates' fit step/net_test.yaml --in data
expect 2 '' 'expected --test-graph FILE' fit net.yaml --in data --test data
expect 1 '' 'net_test.yaml: error: no such file' fit step/net_step.yaml --in data --test data --test-graph none/net_test.yaml
sed 's/w2/w3/g' step/net_test.yaml >step/odd_test.yaml
expect 1 '' 'odd_test.yaml: its state w3 is none of step/net_step.yaml' \
  fit step/net_step.yaml --in data --test data --test-graph step/odd_test.yaml
expect 2 '' 'expected a number from 1 to 2.47, found 0' fit step/net_step.yaml --in data --batch 0
expect 2 '' 'expected a number from 1 to 2.47, found 9000000000000000000' fit step/net_step.yaml --in data --batch 9000000000000000000
{ sed 's/^outputs: .*/outputs: []/' other.yaml; echo 'updates: {v: u}'; } >other_step.yaml
expect 1 '' 'expected an input whose first extent is the batch' fit other_step.yaml --in data

# The models: what gpt.sh writes, and each of them as a step.
"$models/gpt.sh" gpt_bytes 4 128 4 128 256 16 >gpt_bytes.yaml 2>stderr && cmp gpt_bytes.yaml "$models/gpt_bytes.yaml" >stdout
count 'gpt_bytes.yaml is what gpt.sh writes'
"$models/gpt.sh" gpt2_124m 12 768 12 64 50257 4 >gpt2.yaml 2>stderr && cmp gpt2.yaml "$models/gpt2_124m.yaml" >stdout
count 'gpt2_124m.yaml is what gpt.sh writes'
for model in "$models"/*.yaml; do
  expect 0 'wrote .*_step.yaml' '' train "$model" -o models
  expect 0 'total' '' show "models/$(basename "$model" .yaml)_step.yaml" --format memory
done

# Real data: the accuracy and the hash that the README shows.
if ! takes_all; then
  echo 'left out: fit: real data, which ./dev demo trains on'
elif [ -e /usr/share/datasets/fashion-mnist/t10k-labels-idx1-ubyte.gz ]; then
  "$models/../../tests/fashion.sh" "$ngrad" mlp --threads 1 >stdout 2>stderr
  count 'models/train/mlp.yaml on Fashion-MNIST'
else
  echo 'left out: fit: no dataset-fashion-mnist, so nothing is trained on it'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
