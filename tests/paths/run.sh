#!/bin/sh
# Whole paths: networks as torch.onnx exports them, with a named batch (models.py), are trained, and their inference is
# emitted and compiled. The compiled function, called from C with the saved states, computes the logits of ngrad run, for
# batches of any size. With the trained weights in the C, for fixed extents, it needs no file, and has the bits of ngrad
# run. Norms' gradients, as CMake packages in a project of their own, are within the bounds of docs/errors.md.
# Usage: run.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
# Bits depend on no level, and gcc takes three times as long at -O1.
level=-O0
! takes_all || level=-O1
if ! has python3; then
  echo 'left out: paths: no python3, so no networks'
  exit 77
fi
python3 "$here/models.py" . || exit 2

logits() { # FILE
  tail -c 120 "$1" # f32 of 10 samples, 3 classes
}

stored() { # NAME EXTENTS OF-DATA
  "$ngrad" emit "$1_infer.yaml" --state "trained/$1.npz" --isa scalar -o stored >log 2>&1 &&
    gcc -std=c11 $level -Wall -Wextra -Werror -Wno-unknown-pragmas -Istored "-DHEADER=\"$1_infer.h\"" "-DNAME=$1_infer" "-DEXTENTS=$2" -DSTORED \
      "stored/$1_infer.c" "$here/driver.c" -lm -o "$1_stored" >log 2>&1
  count "$1: its trained inference is emitted by three commands"
  ! grep -q 'void \*parameters\|_init\|_load' "stored/$1_infer.h" >log 2>&1
  count "$1: the C with the weights takes no states, and has nothing that sets them"
  # shellcheck disable=SC2086 # numbers
  "./$1_stored" none "$1/x.npy" "$1_stored.npy" $3 >log 2>&1 &&
    "$ngrad" run "$1_infer.yaml" --state "trained/$1.npz" --in "$1" -o "$1.run" >log 2>&1 &&
    logits "$1_stored.npy" >a && logits "$1.run/y.npy" | cmp - a >log 2>&1
  count "$1: the logits have the bits of ngrad run"
}

# Weights of 8 bits: the C has the bits of the graph that has them, and logits near those of f32.
narrow() { # NAME TYPE EXTENTS OF-DATA
  mkdir "$1.$2"
  # shellcheck disable=SC2086 # numbers
  "$ngrad" emit "$1_infer.yaml" --state "trained/$1.npz" --weights "$2" --isa scalar -o "stored$2" >log 2>&1 &&
    grep -q '^w_1  *[0-9]*  *[0-9]*  *[0-9.e-]*' log &&
    gcc -std=c11 $level -Wall -Wextra -Werror -Wno-unknown-pragmas "-Istored$2" "-DHEADER=\"$1_infer.h\"" "-DNAME=$1_infer" "-DEXTENTS=$3" -DSTORED \
      "stored$2/$1_infer.c" "$here/driver.c" -lm -o "$1_$2" >log 2>&1 && "./$1_$2" none "$1/x.npy" "$1_$2.npy" $4 >log 2>&1
  count "$1: weights of $2 are in C, and their errors are told"
  "$ngrad" convert "$1_infer.yaml" --state "trained/$1.npz" --weights "$2" -o "$1.$2/$1.yaml" >log 2>&1 &&
    "$ngrad" run "$1.$2/$1.yaml" --in "$1" -o "$1.run$2" >log 2>&1 && logits "$1_$2.npy" >a && logits "$1.run$2/y.npy" | cmp - a >log 2>&1
  count "$1: weights of $2 have the bits of the graph with them"
  "$ngrad" run "$1.$2/$1.yaml" --in "$1" --expect "$1.run" --tolerance 0.03 >log 2>&1
  count "$1: weights of $2 have logits near those of f32"
}

path() { # NAME EXTENTS OF-DATA OF-ANOTHER-CALL
  "$ngrad" train "$1.onnx" --loss cross-entropy --optimizer adam --learning-rate 0.02 -o . >log 2>&1 &&
    "$ngrad" fit "$1_step.yaml" --in "$1" --batch 4 --epochs 6 -o trained >log 2>&1
  count "$1 is trained with a batch of any size"
  "$ngrad" emit "$1_infer.yaml" -o . >log 2>&1 &&
    gcc -std=c11 $level -Wall -Wextra -Werror -Wno-unknown-pragmas -I. "-DHEADER=\"$1_infer.h\"" "-DNAME=$1_infer" "-DEXTENTS=$2" \
      "$1_infer.c" "$here/driver.c" -lm -o "$1_driver" >log 2>&1
  count "$1: its inference is emitted with open extents"
  mkdir "$1.logits"
  # shellcheck disable=SC2086 # numbers
  "./$1_driver" "trained/$1.npz" "$1/x.npy" "$1.logits/y.npy" $3 >log 2>&1 &&
    "$ngrad" run "$1_infer.yaml" --state "trained/$1.npz" --in "$1" --expect "$1.logits" >log 2>&1
  count "$1: compiled C computes the logits of ngrad run"
  # shellcheck disable=SC2086
  "./$1_driver" "trained/$1.npz" "$1/x.npy" few.npy $4 >log 2>&1 && tail -c +129 few.npy >few &&
    tail -c +129 "$1.logits/y.npy" | head -c "$(wc -c <few)" | cmp - few >log 2>&1
  count "$1: a smaller batch has the same bits"
}
# Of a step whose batch is fixed, the inference takes one sample.
fixed() { # NAME
  "$ngrad" train "$1.onnx" --loss cross-entropy --dim N=4 --threads none --isa scalar -o fixed >log 2>&1 &&
    grep -q 'x, .* f32 \[4, ' "fixed/$1.h" && grep -q 'x, .* f32 \[1, ' "fixed/$1.h" && grep -q 'dims: {N: 1' "fixed/$1_infer.yaml"
  count "$1: inference takes one sample"
}
norms() {
  cat >layer_norm.yaml <<'END'
format: ngrad/1
name: layer_norm_gradient
dims: {N: 64}
inputs:
  - {name: x, type: f32, shape: [N, 96]}
  - {name: dy, type: f32, shape: [N, 96]}
  - {name: mean, type: f32, shape: [N]}
  - {name: var, type: f32, shape: [N]}
  - {name: gamma, type: f32, shape: [96]}
nodes:
  - op: LayerNormBackward
    inputs: {src: x, diff_dst: dy, mean: mean, variance: var, gamma: gamma}
    outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta}
outputs: [dx, dgamma, dbeta]
END
  cat >batch_norm.yaml <<'END'
format: ngrad/1
name: batch_norm_gradient
dims: {N: 64}
inputs:
  - {name: x, type: f32, shape: [N, 7, 7, 96]}
  - {name: dy, type: f32, shape: [N, 7, 7, 96]}
  - {name: mean, type: f32, shape: [96]}
  - {name: var, type: f32, shape: [96]}
  - {name: gamma, type: f32, shape: [96]}
nodes:
  - op: onednn_spec.BatchNormTrainingBackprop
    inputs: {input_forward: x, output_delta: dy, mean: mean, variance: var, gamma: gamma}
    outputs: {input_delta: dx, gamma_delta: dgamma, beta_delta: dbeta}
    attributes: {epsilon: 1.0e-5}
outputs: [dx, dgamma, dbeta]
END
  mkdir project && cp "$here/norms.c" project
  "$ngrad" emit layer_norm.yaml --package cmake -o project/layer_norm >log 2>&1 &&
    "$ngrad" emit batch_norm.yaml --package cmake -o project/batch_norm >log 2>&1
  count 'gradients of norms are emitted as CMake packages'
  cat >project/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.15)
project(framework LANGUAGES C)
set(CMAKE_BUILD_TYPE Release)
set(CMAKE_C_STANDARD 11)
add_subdirectory(layer_norm)
add_subdirectory(batch_norm)
add_executable(norms norms.c)
target_link_libraries(norms PRIVATE layer_norm_gradient::layer_norm_gradient batch_norm_gradient::batch_norm_gradient m)
END
  cmake -S project -B built >log 2>&1 && cmake --build built >log 2>&1 && ./built/norms >log 2>&1 && grep -q '^largest error: 0' log
  count 'a project that takes them has gradients within the bounds'
}
if has cmake; then norms; else echo 'left out: norms: no cmake'; fi
fixed resnet
fixed transformer
path resnet N 10 3
path lstm N 10 1
path transformer N,T '10 7' '2 7'
stored resnet N 10
stored lstm N 10
stored transformer N,T '10 7'
narrow resnet s8 N 10
narrow transformer bf16 N,T '10 7'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
