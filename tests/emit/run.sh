#!/bin/sh
# What ngrad emits for people to keep: emitted twice, and in another locale, it is the same bytes; gcc and clang compile
# it as C and as C++ without a word; its own test passes with guard pages around all memory, and has the same bits with
# every compiler, language, instruction set and way to share out work, here and on aarch64.
#
#   run.sh NGRAD [all]     all: every model, golden case, threads, set of instruction sets and language; else a sample
set -u
ngrad=$(realpath "$1")
effort=${2:-sample}
here=$(realpath "$(dirname "$0")")
models=$here/../../models
golden=${NGRAD_SHARED:-$here/../../../shared}/golden
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
export OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive
warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Wdouble-promotion -Werror'
passed=0
failed=0

count() { # WHAT; the status of what was checked, whose words are in log
  if [ "$?" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    head -n 20 log | sed 's/^/  /'
  fi
}
has() {
  command -v "$1" >/dev/null
}

# The bits of all outputs are those that the case had before.
has_same_bits() {
  sed -n 's/^isa [0-9]* \(output [0-9]*\): .*bits/\1/p' log | sort -u >bits
  [ -f first ] || cp bits first
  cmp -s bits first
}

# Compiles the pair and its test, and runs it with guards behind and before.
passes() { # COMPILER LANGUAGE
  case $2 in c++*) language="-x c++ -std=$2" ;; *) language=-std=$2 ;; esac
  # shellcheck disable=SC2086 # several options each
  $1 $language $warnings -O1 -fopenmp -Wl,--wrap=malloc -Wl,--wrap=free pair/*.c -x none guard.o -lm -o program >log 2>&1 &&
    [ ! -s log ] && ./program >log 2>&1 && has_same_bits && GUARD=before ./program >log 2>&1 && has_same_bits
}

emit() { # GRAPH ARGUMENT...
  rm -rf pair && "$ngrad" emit "$@" --self-test -o pair >log 2>&1
}

cross() { # NAME
  has aarch64-linux-gnu-gcc && has qemu-aarch64 || return 0
  # shellcheck disable=SC2086
  aarch64-linux-gnu-gcc -std=c11 $warnings -O1 -static pair/*.c -lm -o program >log 2>&1 && [ ! -s log ] &&
    qemu-aarch64 ./program >log 2>&1 && has_same_bits
  count "$1 on aarch64"
}

# Two of nine ways and one language in turn for each case, or all.
turn=0
is_wanted() { # LANGUAGE
  case $effort/$((turn % 2))/$1 in all/* | */0/c11 | */1/c++17) return 0 ;; esac
  return 1
}
check() { # NAME GRAPH ARGUMENT...
  name=$1
  shift
  rm -f first
  way=0
  for threads in openmp none callback; do
    for isa in '' avx2,avx512 scalar; do
      way=$((way + 1))
      [ "$effort" = all ] || [ $((way % 9)) -eq $((turn % 9)) ] || [ $((way % 9)) -eq $(((turn + 4) % 9)) ] || continue
      emit "$@" --threads $threads ${isa:+--isa $isa}
      count "$name, $threads, ${isa:-all} is emitted" || continue
      for compiler in gcc clang; do
        for language in c11 c17 c++17; do
          { is_wanted $language && has $compiler; } || continue
          passes $compiler $language
          count "$name, $threads, ${isa:-all}, $compiler as $language"
        done
      done
      [ -n "$isa" ] || cross "$name"
    done
  done
  turn=$((turn + 1))
}

graph() { # TYPE ROWS WIDTH
  sed "s/TYPE/$1/; s/ROWS/$2/g; s/WIDTH/$3/g; s/TYPE/$1/g" <<'Y'
format: ngrad/1
name: rows
inputs:
  - {name: x, type: TYPE, shape: [ROWS, WIDTH]}
  - {name: mask, type: TYPE, shape: [ROWS, WIDTH]}
  - {name: mean, type: f32, shape: [ROWS]}
  - {name: var, type: f32, shape: [ROWS]}
  - {name: gamma, type: f32, shape: [WIDTH]}
nodes:
  - {op: LayerNormBackward, inputs: {src: x, diff_dst: mask, mean: mean, variance: var, gamma: gamma},
     outputs: {diff_src: dx, diff_gamma: dgamma, diff_beta: dbeta}}
  - {op: ReLUBackward, inputs: [x, dx], outputs: [y]}
outputs: [dx, y, dgamma, dbeta]
Y
}

gcc -std=c11 -D_GNU_SOURCE -O1 -c "$here/guard.c" -o guard.o || exit 1
has aarch64-linux-gnu-gcc && has qemu-aarch64 || echo 'emit: no aarch64 compiler or no qemu-aarch64, so only this machine'

# The same bytes
emit "$models/gpt2_layer_norm_backward.yaml" && mv pair once && for locale in C C.UTF-8 de_DE.UTF-8; do
  LC_ALL=$locale emit "$models/gpt2_layer_norm_backward.yaml" && diff -r once pair >log 2>&1
  count "the same bytes in the locale $locale"
done
rm -rf once
emit "$models/gpt2_layer_norm_backward.yaml" --dim N=40 --prefix p7 && gcc -std=c11 -O1 -c pair/gpt2*d.c -o symbols.o >log 2>&1 &&
  nm -g --defined-only symbols.o | awk '{ print $3 }' >log && [ "$(grep -cv '^p7' log)" -eq 0 ] && [ -s log ]
count 'every symbol has the prefix'
emit "$models/gpt2_layer_norm_backward.yaml" --dim N=40 && gcc -std=c11 -O2 -fno-pie -c pair/gpt2*d.c -o code.o &&
  size code.o >log && awk 'NR == 2 { exit $1 > 65536 }' log
count 'a layer norm gradient with all instruction sets is below 64 KiB'
nm code.o >log && ! grep -E ' [bBdD] ' log
count 'it has no variables'

for width in 1 15 16 17 33; do
  graph f32 5 $width >graph.yaml
  check "rows of $width" graph.yaml
done
for type in bf16 f16; do
  graph $type 3 17 >graph.yaml
  check "rows of 17 $type" graph.yaml
done
cases='ln_f64_f64 bn_nxc_3x5x7 bn_empty_batch dml_f16'
[ "$effort" = all ] && cases=$(ls "$golden" 2>/dev/null)
for case in $cases; do
  [ -f "$golden/$case/graph.yaml" ] || continue
  check "$case" "$golden/$case/graph.yaml"
done
[ -d "$golden" ] || echo "emit: no cases in $golden"
if [ "$effort" = all ]; then
  for model in "$models"/*.yaml; do
    check "$(basename "$model")" "$model" --dim N=19
  done
else
  check transformer_sublayer_backward "$models/transformer_sublayer_backward.yaml" --dim N=19
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
