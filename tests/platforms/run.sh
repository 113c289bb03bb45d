#!/bin/sh
# The page on platforms: its program gives the page's SHA-256 wherever a compiler and an emulator are installed; so do
# self-tests of emitted C in types of 8 and 16 bits, and a training step of a small GPT with each instruction set.
# Usage: run.sh NGRAD [PLATFORM...]
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
root=$here/../..
shift
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
PATH=$(dirname "$ngrad"):$PATH
export WINEPREFIX="$work/wine" WINEDEBUG=-all

# One line a platform: its name, what it needs besides the compiler, the compiler with its options, what runs a program,
# and its instruction sets that this machine can run, a number each.
x86_sets=1
for isa in avx2:3 avx512vl:4; do grep -qsw ${isa%:*} /proc/cpuinfo && x86_sets="$x86_sets ${isa#*:}"; done
windows="-L$(dirname "$(x86_64-w64-mingw32-gcc -print-libgcc-file-name 2>/dev/null || echo .)")"
wine=/usr/lib/wine/wine64
table() {
  cat <<T
gcc||gcc||$x86_sets
clang||clang||$x86_sets
musl||musl-gcc -static||$x86_sets
i686||i686-linux-gnu-gcc -static -msse2 -mfpmath=sse||1
i686-clang|i686-linux-gnu-gcc|clang --target=i686-linux-gnu -static -msse2 -mfpmath=sse||1
aarch64|qemu-aarch64|aarch64-linux-gnu-gcc -static|qemu-aarch64|1 2
arm|qemu-arm|arm-linux-gnueabihf-gcc -static|qemu-arm|1
riscv64|qemu-riscv64|riscv64-linux-gnu-gcc -static|qemu-riscv64|1
s390x|qemu-s390x|s390x-linux-gnu-gcc -static -std=gnu11|qemu-s390x|1
windows-gcc|$wine|x86_64-w64-mingw32-gcc|$wine|1
windows-gcc-avx|$wine|x86_64-w64-mingw32-gcc -Wa,-muse-unaligned-vector-move -DNGRAD_UNALIGNED_MOVES|$wine|$x86_sets
windows-clang|$wine x86_64-w64-mingw32-gcc|clang --target=x86_64-w64-mingw32 $windows|$wine|$x86_sets
wasm|wasm-ld node /usr/include/wasm32-wasi/stdio.h|clang --target=wasm32-wasi|node --no-warnings $work/wasi.mjs|1
wasm-simd|wasm-ld node /usr/include/wasm32-wasi/stdio.h|clang --target=wasm32-wasi -msimd128|node --no-warnings $work/wasi.mjs|1
T
}

# The page's files and its hash; what else is compiled.
awk '/^```/ { if (file != "") close(file); file = NF == 2 && !/^```console/ ? $2 : ""; next } file != "" { print > file }' \
  "$root/docs/platforms.md"
expected=$(sed -n 's/^\([0-9a-f]\{64\}\)  -$/\1/p' "$root/docs/platforms.md")
ngrad train "$root/models/train/mlp.yaml" --optimizer adam --dim N=16 --threads none -o . >log 2>&1 &&
  ngrad emit norm.yaml --threads none -o . >log 2>&1
count 'the files of the page'
sh "$root/models/train/gpt.sh" gpt 1 32 2 16 64 2 >gpt.yaml && ngrad train gpt.yaml --optimizer adamw -o . >log 2>&1 &&
  ngrad emit gpt_step.yaml --dim B=2 --prefix bits --threads none -o . >log 2>&1
count 'a step of a GPT'
tested='llama_rms_norm_backward_bf16 requantised states'
for graph in "$root/models/llama_rms_norm_backward_bf16.yaml" "$here"/../emit/requantised.yaml "$here"/../emit/states.yaml; do
  ngrad emit "$graph" --self-test --threads none -o . >log 2>&1
  count "the self-test of $(basename "$graph")"
done

hash_of() { # FILE...
  cat "$@" 2>/dev/null | sha256sum | cut -c 1-64
}
build() { # PROGRAM ARGUMENT...; wine wants the ending
  program=$1
  shift
  # shellcheck disable=SC2086 # words
  $compiler -Wall -Wextra -Werror $level -I. "$@" -lm -o "$program.exe" >log 2>&1
}
launch() { # PROGRAM ARGUMENT...
  program=$1
  shift
  # shellcheck disable=SC2086
  timeout 300 $runner ./"$program.exe" "$@" >log 2>&1
}

check_platform() { # NAME; $compiler, $runner and $sets are set
  rm -f states.npz gradient program* ./*.tmp
  echo mine >states.npz.0.tmp
  build program everywhere.c mlp.c norm.c && launch program && [ "$(hash_of states.npz gradient)" = "$expected" ]
  count "$1: the program of the page has the page's SHA-256"
  [ "$(cat states.npz.0.tmp 2>&1)" = mine ] && launch program && [ "$(hash_of states.npz gradient)" = "$expected" ]
  count "$1: a state file is replaced, and no other file"
  level=-O0 build gpt_program '-DHEADER="gpt_step.h"' -DX=int32_t -DX_COUNT=32 -DX_MOST=64 -DLABELS=32 -DLABEL_MOST=64 \
    '-DRESULTS=&results[0]' gpt_step.c "$here/../bits/driver.c"
  count "$1: a step of a GPT"
  for set in $sets; do
    rm -f out.npz half.npz
    launch gpt_program "$(echo 'best scalar neon avx2 avx512' | cut -d ' ' -f $((set + 1)))" 1 half.npz &&
      launch gpt_program best 1 out.npz half.npz
    count "$1: two steps, the first with instruction set $set"
    [ -n "$gpt_expected" ] || gpt_expected=$(hash_of out.npz)
    [ -s out.npz ] && [ "$(hash_of out.npz)" = "$gpt_expected" ]
    count "$1: they end in the states of the first platform"
  done
  for name in $tested; do
    level=-O0 build program "$name.c" "${name}_test.c" && launch program && tr -d '\r' <log | tail -n 1 | grep -qx passed
    count "$1: the self-test of $name"
  done
}

available() { # NEED...
  for tool; do
    case $tool in /*) [ -e "$tool" ] ;; *) has "$tool" ;; esac || { missing=$tool && return 1; }
  done
}

gpt_expected='' level=-O2
table >platforms
# shellcheck disable=SC2046 # a word a platform
[ $# -gt 0 ] || set -- $(cut -d '|' -f 1 platforms)
for platform; do
  row=$(grep "^$platform|" platforms) || { echo "platforms: there is no $platform" >&2 && exit 2; }
  needs=$(echo "$row" | cut -d '|' -f 2) compiler=$(echo "$row" | cut -d '|' -f 3)
  runner=$(echo "$row" | cut -d '|' -f 4) sets=$(echo "$row" | cut -d '|' -f 5)
  # shellcheck disable=SC2086
  available ${compiler%% *} $needs || { echo "left out: platforms: $platform, for want of $missing" && continue; }
  case $compiler in *-std=*) ;; *) compiler="$compiler -std=c11" ;; esac
  check_platform "$platform"
  echo "$platform: $passed passed, $failed failed so far"
done

# What would compute other bits does not compile.
refuses() { # COMPILER OPTION...
  has "$1" || { echo "left out: platforms: what is refused by $1" && return; }
  ! "$@" -c norm.c -o refused.o >log 2>&1 && grep -q 'error.*wider types' log
  count "refused: $*"
}
refuses i686-linux-gnu-gcc -std=c11 -O2
refuses i686-linux-gnu-gcc -std=gnu11 -O2 -msse2 -mfpmath=both
refuses s390x-linux-gnu-gcc -std=c11 -O2

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
