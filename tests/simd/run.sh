#!/bin/sh
# Tests every function of backends/codegen/simd on each ISA of this machine and of qemu-user, compiled as emitted C is:
# without flags for the ISA, which a pragma selects. Each must be right, and give the same bits as scalar.h. Without
# NGRAD_CHECK (tests/effort.h), takes fewer inputs, less optimisation, and scalar code on this machine alone. With the
# argument --exhaustive, then takes all 2^32 inputs of the elementary functions, on the processor's best ISA, and half a
# billion multiply-adds in scalar code.
set -eu
cd "$(dirname "$0")/../.."
cc=${CC:-cc}
level=-O0
if [ -n "${NGRAD_CHECK-}" ] || [ "${1-}" = --exhaustive ]; then level=-O2; fi
bits=
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
status=0

has() { # PROGRAM...
  for program; do
    command -v "$program" >/dev/null || return 1
  done
}

processor_has() { # FLAG...
  for flag; do
    grep -qsw "$flag" /proc/cpuinfo || return 1
  done
}

# What emitted C for an ISA looks like, with the test for kernels.
write_source() { # TEST ISA TARGET; the ISA's name begins with that of the one that it takes the rest from
  test=$1
  shift
  if [ -n "$2" ]; then
    cat <<TEXT
#ifdef __clang__
#pragma clang attribute push(__attribute__((target("$2"))), apply_to = function)
#else
#pragma GCC target("$2")
#endif
TEXT
  fi
  printf '#include <%s.h>\n' math stddef stdint string
  cat "backends/codegen/simd/$1.h"
  [ "${1%_*}" = "$1" ] || cat "backends/codegen/simd/${1%_*}.h"
  sed -n '/ common\[\] = {/,/}/p' backends/codegen/print/vocabulary.c | grep -o 'simd_[a-z_]*' | while read -r part; do
    cat "backends/codegen/simd/${part#simd_}.h"
  done
  echo "#include \"tests/simd/$test.c\""
  if [ -n "$2" ]; then
    printf '#ifdef __clang__\n#pragma clang attribute pop\n#endif\n'
  fi
}

# Runs the tests; their output must be that of the first ISA.
check() { # NAME ISA TARGET COMPILER [EMULATOR...]
  for test in simd_test memory_test math_test flush_test; do check_one "$test" "$@"; done
}

check_one() { # TEST NAME ISA TARGET COMPILER [EMULATOR...]
  test=$1 name=$2 isa=$3 target=$4 compiler=$5
  shift 5
  program=$work/$test-$name
  write_source "$test" "$isa" "$target" >"$program.c"
  # shellcheck disable=SC2086 # CC may be a command with arguments, and bits be empty
  if ! $compiler -std=c17 -D_GNU_SOURCE $level -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wshadow \
    -Wcast-align -Wdouble-promotion -Werror -Wno-unused-function -I. -o "$program" "$program.c" -lm; then
    echo "FAILED: $test on $name does not compile"
    status=1
  elif ! "$@" "$program" $bits >"$program.out"; then
    echo "FAILED: $test on $name"
    status=1
  elif ! diff "$work/$test-scalar.out" "$program.out"; then
    echo "FAILED: $test on $name differs from scalar"
    status=1
  else
    echo "passed: $test on $name"
    [ "$*" != env ] || best=$name
  fi
}

# The tiles of AMX: the header's model, and the processor where it has them. Elsewhere only assembles the instructions.
check_amx() {
  {
    write_source amx_test scalar '' | sed '$d'
    cat backends/codegen/simd/amx_bf16.h
    printf '#define AMX_WITH_HEADER\n#include "tests/simd/amx_test.c"\n'
  } >"$work/amx.c"
  for define in AMX_MODEL AMX; do
    # shellcheck disable=SC2086 # CC may be a command with arguments
    $cc -std=c17 -D_GNU_SOURCE $level -ffp-contract=off -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align \
      -Wdouble-promotion -Werror -Wno-unused-function -D$define -I. -o "$work/$define" "$work/amx.c" -lm || {
      echo "FAILED: amx_test with $define does not compile"
      status=1
      return
    }
  done
  if "$work/AMX_MODEL" >"$work/model.out"; then echo "passed: amx_test on the model"; else status=1; fi
  ran=0
  "$work/AMX" >"$work/amx.out" || ran=$?
  if [ $ran -eq 77 ]; then
    echo "left out: simd: amx_bf16, which the processor lacks"
  elif [ $ran -eq 0 ] && diff "$work/model.out" "$work/amx.out"; then
    echo "passed: amx_test on amx_bf16"
  else
    echo "FAILED: amx_test on amx_bf16"
    status=1
  fi
}

avx2=avx2,fma,f16c
avx512=avx512f,avx512bw,avx512dq,avx512vl,$avx2
check scalar scalar '' "$cc" env
[ $status -eq 0 ] || exit 1
case $(uname -m) in
  x86_64)
    if processor_has avx2 fma f16c; then
      check avx2 avx2 $avx2 "$cc" env
    else
      echo "left out: simd: avx2, which the processor lacks (and whose masked loads qemu-user 7.2 gets wrong)"
    fi
    if processor_has avx512f avx512bw avx512dq avx512vl; then
      check avx512 avx512 $avx512 "$cc" env
    else
      echo "left out: simd: avx512, which the processor lacks"
    fi
    if processor_has avx512_bf16 avx512vbmi; then
      check avx512_bf16 avx512_bf16 avx512bf16,avx512vbmi,$avx512 "$cc" env
    else
      echo "left out: simd: avx512_bf16, which the processor lacks"
    fi
    ;;
esac
check_amx
case $(uname -m) in
  aarch64) check neon neon '' "$cc" env ;;
  *)
    if has aarch64-linux-gnu-gcc qemu-aarch64; then
      # What an emulator takes longest for: errors, which follow from the bits, and code without optimisation.
      if [ -z "${NGRAD_CHECK-}" ]; then bits=--bits level=-Og; fi
      check neon neon '' 'aarch64-linux-gnu-gcc -static' qemu-aarch64
      [ -z "${NGRAD_CHECK-}" ] || check scalar-aarch64 scalar '' 'aarch64-linux-gnu-gcc -static' qemu-aarch64
    else
      echo "left out: simd: neon, for want of aarch64-linux-gnu-gcc and qemu-aarch64"
    fi
    ;;
esac
if [ "${1:-}" = --exhaustive ]; then
  echo "every f32 on $best:"
  "$work/math_test-$best" --exhaustive || status=1
  "$work/simd_test-scalar" --exhaustive || status=1
fi
exit $status
