#!/bin/sh
# Training gives the same bits everywhere: some steps of a CNN and of a small GPT, also in mixed precision, with scalar,
# AVX2 and AVX-512 code and with NEON under qemu, on 1, 2 and 3 threads, compiled by gcc and clang with -O1, -O2 and
# -O3, run by ngrad and by emitted C, stopped and resumed, and with and without a limit on memory.
#
#   run.sh NGRAD [STEPS [all]]
#
# Each compiler meets each level and each ISA once; with `all`, every combination. ./dev test, which has no NGRAD_CHECK
# (tests/effort.h) and says no number of steps, takes the GPT alone, the plainest ISA with gcc, for size, which takes a
# quarter of the time of -O1 to 3, the best with clang, and the others without optimisation.
set -u
ngrad=$(realpath "$1")
steps=${2:-2}
here=$(realpath "$(dirname "$0")")
models=$here/../../models/train
# shellcheck source=tests/quick_compiler.sh
. "$here/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
has gcc || { echo 'left out: bits: no gcc'; exit 77; }
is_full=false is_quick=false neon_level=-O2 ceiling_level=-O1
[ -n "${2:-}${NGRAD_CHECK-}" ] || is_quick=true neon_level=-O0 ceiling_level=-O0
[ "${3:-}" != all ] || is_full=true

npy() { # FILE DESCR SHAPE; data from standard input
  header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
  { printf '\223NUMPY\1\0\166\0%-117s\n' "$header" && cat; } >"$1"
}
numbers() { # COUNT FACTOR MOST NBYTES; of i * FACTOR % MOST, each a byte with zeros behind it
  # shellcheck disable=SC2059
  printf "$(awk -v n="$1" -v factor="$2" -v most="$3" -v nbytes="$4" 'BEGIN {
    for (i = 0; i < n; i++) for (k = 0; k < nbytes; k++) printf "\\%03o", k ? 0 : i * factor % most }')"
}

# A model's graph of a step, its data, and what the driver has to know.
make_model() { # NAME
  mkdir "$1" && cd "$1" || exit 1
  precision=f32
  case $1 in
  cnn)
    cp "$models/cnn.yaml" .
    dim=N=4 ceiling=13.2M optimizer=momentum
    numbers 3136 37 251 1 | npy x.npy '|u1' '4, 28, 28'
    numbers 4 5 10 4 | npy labels.npy '<i4' '4,'
    defines='-DX=uint8_t -DX_COUNT=3136 -DX_MOST=251 -DLABELS=4 -DLABEL_MOST=10 -DRESULTS=&results[0],&results[1]'
    ;;
  *)
    sh "$models/gpt.sh" "$1" 1 32 2 16 64 2 >"$1.yaml"
    dim=B=2 optimizer=adamw
    case $1 in
    gpt) ceiling=100K ;;
    bf16) ceiling=70K precision=bf16 ;;
    f16) ceiling=94K precision=f16 ;;
    esac
    numbers 32 37 64 4 | npy tokens.npy '<i4' '2, 16'
    numbers 32 5 64 4 | npy labels.npy '<i4' '2, 16'
    defines='-DX=int32_t -DX_COUNT=32 -DX_MOST=64 -DLABELS=32 -DLABEL_MOST=64 -DRESULTS=&results[0]'
    ;;
  esac
  "$ngrad" train "$1.yaml" --optimizer "$optimizer" --precision "$precision" -o . >log 2>&1
  count "$1: a training step"
}

emit() { # ISA FOLDER OPTION...
  isa=$1 folder=$2
  shift 2
  "$ngrad" emit "${model}_step.yaml" --dim "$dim" --isa "$isa" --prefix bits -o "$folder" "$@" >"$folder.log" 2>&1
}

# Compiles the driver with an emitted step, in the background, two at a time.
compile() { # PROGRAM FOLDER COMPILER OPTION...
  program=$1 folder=$2
  shift 2
  # shellcheck disable=SC2086
  "$@" -std=c11 -D_GNU_SOURCE $defines "-DHEADER=\"$folder/${model}_step.h\"" -I. "$folder/${model}_step.c" "$here/driver.c" -lm \
    -o "$program" >"$program.log" 2>&1 &
  njobs=$((njobs + 1))
  [ $((njobs % 2)) -ne 0 ] || wait
}

hash_of() { # FILE
  sha256sum <"$1" | cut -c 1-64
}

# The first way's hash is what all others must have.
expected=
same() { # NAME FILE
  got=missing
  [ ! -f "$2" ] || got=$(hash_of "$2")
  [ -n "$expected" ] || expected=$got
  [ "$got" = "$expected" ] && [ "$got" != missing ]
  count "$model: $1 gives $got"
}

run_steps() { # FILE OPTION...; ngrad's own code
  file=$1
  shift
  state=
  i=0
  while [ $i -lt "$steps" ]; do
    # shellcheck disable=SC2086
    "$ngrad" run "${model}_step.yaml" --in . --dim "$dim" --seed 5 $state --save "$file" "$@" >log 2>&1 || return
    state="--state $file"
    i=$((i + 1))
  done
}

qemu=
has aarch64-linux-gnu-gcc && has qemu-aarch64 && [ "$(uname -m)" != aarch64 ] && qemu='qemu-aarch64'
[ -n "$qemu" ] || [ "$(uname -m)" = aarch64 ] || echo 'left out: bits: NEON, for want of aarch64-linux-gnu-gcc and qemu-aarch64'
isas=scalar
[ "$(uname -m)" != aarch64 ] || isas="$isas neon"
for isa in avx2 avx512f avx512_bf16; do
  grep -qsw $isa /proc/cpuinfo && isas="$isas ${isa%f}"
done

best_compiler=clang
has clang || best_compiler=gcc
compile_all() {
  njobs=0
  for isa in $isas; do emit "$isa" "$isa"; done
  [ -z "$qemu" ] || emit neon neon --threads none
  emit scalar ceiling --memory "$ceiling"
  grep -q 'computed again' ceiling.log
  count "$model: values are computed again under $ceiling"
  [ -z "$qemu" ] || compile run-neon neon aarch64-linux-gnu-gcc $neon_level -static
  compile run-ceiling ceiling gcc $ceiling_level -fopenmp
  for compiler in gcc clang; do
    has $compiler || continue
    level=0
    for isa in $isas; do
      level=$((level % 3 + 1))
      case $is_quick/$compiler/$isa in true/gcc/scalar | true/"$best_compiler"/"${isas##* }" | false/*) ;; *) continue ;; esac
      levels=$level
      ! $is_quick || [ $compiler = clang ] || levels=s
      ! $is_full || levels='1 2 3'
      for own in $levels; do compile "run-$compiler-O$own-$isa" "$isa" $compiler "-O$own" -fopenmp; done
    done
  done
  wait
}

train_all() {
  for program in run-gcc-* run-clang-*; do
    [ -x "$program" ] || continue # a log, or no clang is here
    isa=${program##*-}
    for threads in 1 2 3; do
      OMP_NUM_THREADS=$threads ./"$program" "$isa" "$steps" out.npz
      same "$program, $threads threads" out.npz
      rm -f out.npz
    done
  done
  ./run-ceiling scalar "$steps" out.npz
  same "emitted under $ceiling" out.npz
  if [ -n "$qemu" ]; then
    $qemu ./run-neon neon "$steps" neon.npz
    same 'NEON under qemu' neon.npz
  fi
  half=$((steps / 2))
  ./run-ceiling scalar $half half.npz && ./run-ceiling scalar $((steps - half)) resumed.npz half.npz
  same 'stopped and resumed' resumed.npz
  for isa in $isas; do
    rm -f own.npz
    run_steps own.npz --isa "$isa" --threads 2
    same "ngrad run, $isa" own.npz
  done
  rm -f own.npz
  run_steps own.npz --threads 1 --memory "$ceiling"
  same "ngrad run under $ceiling" own.npz
}

models_taken='cnn gpt bf16 f16'
! $is_quick || models_taken=gpt
for model in $models_taken; do
  expected=
  make_model "$model"
  compile_all
  train_all
  echo "$model: $expected after $steps steps"
  cd .. || exit 1
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
