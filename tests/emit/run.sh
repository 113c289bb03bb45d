#!/bin/sh
# Files that ngrad emit writes. They have the same bytes if emitted twice, from another folder and in another locale.
# All installed compilers and analysers accept them as C and as C++ without warnings. Their self-tests pass with guard
# pages around all memory and under sanitizers, with the same bits for every compiler, language, instruction set and way
# to run threads, here and on other machines.
#
#   run.sh NGRAD              a sample; without NGRAD_CHECK (tests/effort.h), of gcc and clang alone
#   run.sh NGRAD all [CASE]   every model and golden case, or that one, in every combination
set -u
ngrad=$(realpath "$1")
effort=${2:-sample}
# The level of what has one way only, and tests no compiler.
plain=-O1
[ -n "${2:-}${NGRAD_CHECK-}" ] || effort=quick plain=-O0
here=$(realpath "$(dirname "$0")")
models=$here/../../models
golden=${NGRAD_SHARED:-$here/../../../shared}/golden
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
export OMP_NUM_THREADS=3 OMP_WAIT_POLICY=passive

# Compilers

warnings='-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wcast-align -Wdouble-promotion -Wundef -Werror'
strict="$warnings -Wstrict-aliasing=1 -O3"
# Every warning of clang but those on C90, C++ and padding, on x != x, and on what it cannot know: that a loop runs, that
# a condition is constant for this instruction set only, a macro for another compiler, int64_t long in one of them only.
everything='-Weverything -Werror -Wno-declaration-after-statement -Wno-unsafe-buffer-usage -Wno-padded -Wno-float-equal
  -Wno-conditional-uninitialized -Wno-unreachable-code -Wno-unused-macros -Wno-vector-conversion -Wno-unknown-warning-option'
more_compilers=
for compiler in clang-14 clang-15 clang-16 clang-17 clang-18 clang-19; do
  if [ "$effort" != quick ] && has $compiler; then more_compilers="$more_compilers $compiler"; fi
done

# Compiles one file of the pair.
compile() { # OBJECT FILE COMPILER LANGUAGE OPTION...
  object=$1 file=$2 compiler=$3 standard=$4
  shift 4
  "$compiler" -x "${standard%%[0-9]*}" -std="$standard" "$@" -c "$file" -o "$object" >log 2>&1 && [ ! -s log ]
}

# Compiles the pair and its test. Pairs with the same header have the same test, and share its object.
compiles() { # COMPILER LANGUAGE OPTION...
  test_object=$(echo "$@" | cat - "$test" pair/*.h | cksum | tr ' ' _).o
  [ -f "$test_object" ] || compile "$test_object" "$test" "$@" || return
  compile pair.o "$source" "$@" || return
  compiler=$1 library=
  case $2 in c++*) library=-lstdc++ ;; esac
  shift 2
  "$compiler" "$@" pair.o "$test_object" guard.o -Wl,--wrap=malloc -Wl,--wrap=free $library -lm -o program >log 2>&1
}

# Whether the compiler sees the same text as for C11, so that it makes the same of it; it takes it without a word, too.
is_as_c11() { # COMPILER LANGUAGE OPTION...
  compiler=$1 standard=$2
  shift 2
  "$compiler" -std=c11 "$@" -E -P "$source" "$test" >c11_text 2>log &&
    "$compiler" -std="$standard" "$@" -E -P "$source" "$test" 2>log | cmp c11_text - >log &&
    "$compiler" -std="$standard" "$@" -fsyntax-only "$source" "$test" >log 2>&1 && [ ! -s log ]
}

# The bits of all outputs are those that the case had before.
has_same_bits() {
  sed -n 's/^isa [0-9]* \(output [0-9]*\): .*bits/\1/p' log | sort -u >bits
  [ -f first ] || cp bits first
  cmp -s bits first
}

# Compiles the pair and its test, and runs it with guards behind and before. Where all is, C17 is what C11 was.
passes() { # COMPILER LANGUAGE OPTION...
  if [ "$effort/$2" = all/c17 ] && is_as_c11 "$@"; then return; fi
  compiles "$@" && ./program >log 2>&1 && has_same_bits && GUARD=before ./program >log 2>&1 && has_same_bits
}

# One language each, or all.
check_compilers() { # NAME
  number=0
  for compiler in $more_compilers; do
    number=$((number + 1))
    for language in c11 c17 c++17; do
      case $effort/$((number % 3))/$language in all/* | */0/c11 | */1/c17 | */2/c++17) ;; *) continue ;; esac
      # shellcheck disable=SC2086
      passes "$compiler" $language $strict
      count "$1, $compiler -O3 as $language"
    done
  done
  for compiler in ${more_compilers:-clang}; do
    has "$compiler" || continue
    # shellcheck disable=SC2086
    compile pair.o "$source" "$compiler" c11 $everything -O1
    count "$1, every warning of $compiler"
  done
}

# Other machines, under an emulator: the compiler's prefix, the emulator.
machines='aarch64-linux-gnu qemu-aarch64
arm-linux-gnueabihf qemu-arm
riscv64-linux-gnu qemu-riscv64'

# One machine each, or all.
check_machines() { # NAME
  echo "$machines" >machines
  number=0
  while read -r prefix emulator; do
    number=$((number + 1))
    case $effort/$1/$((turn % 3)) in all/* | */rows_bf16_3_17/* | */$((number % 3))) ;; *) continue ;; esac
    { has "$prefix-gcc" && has "$emulator"; } || continue
    # shellcheck disable=SC2086
    "$prefix-gcc" -std=c11 $warnings -O1 -static pair/*.c -lm -o program >log 2>&1 && [ ! -s log ] &&
      "$emulator" ./program >log 2>&1 </dev/null && has_same_bits
    count "$1 on $prefix"
  done <machines
}

# Sanitizers and analysers

# Without optimisation, which takes clang twenty times as long with sanitizers.
sanitized() { # OPTION...
  # shellcheck disable=SC2086
  clang -std=c11 $warnings -O0 -fno-sanitize-recover=all "$@" "$source" "$test" -lm -o program >log 2>&1 &&
    TSAN_OPTIONS='ignore_noninstrumented_modules=1 halt_on_error=1' ./program >log 2>&1 && has_same_bits
}
check_sanitizers() { # NAME GRAPH ARGUMENT...; the pair is there
  name=$1
  shift
  has clang || return 0
  sanitized -fsanitize=address,undefined
  count "$name with ASan and UBSan"
  # ThreadSanitizer knows what OpenMP does from clang's archer.
  if [ -e "$(clang -print-resource-dir)/../../libarcher.so" ]; then
    sanitized -fopenmp -fsanitize=thread
    count "$name with TSan"
  fi
  emit "$@" --threads callback && sanitized -fsanitize=thread -DPARALLEL_FOR=pool_run "$here/pool.c"
  count "$name with TSan and threads of the caller"
}

# The order of arguments is the graph's. cppcheck takes the first arm of `a < b ? a : b` for all that it can be, misses
# some members that macros use, and minds `% V_LANES` in scalar C, whose parts have one lane.
check_analysers() { # NAME
  if has clang-tidy; then
    clang-tidy --quiet --warnings-as-errors='*' pair/*.c \
      --checks='-*,bugprone-*,cert-*,-bugprone-easily-swappable-parameters' -- -std=c11 -O2 -fopenmp >log 2>&1
    count "$1 with clang-tidy"
  fi
  if has cppcheck; then
    cppcheck --quiet --std=c11 --enable=warning,performance,portability,style --error-exitcode=1 \
      --suppress=knownConditionTrueFalse --suppress=unusedStructMember --suppress=moduloofone pair/*.c >log 2>&1
    count "$1 with cppcheck"
  fi
}

# Cases

emit() { # GRAPH ARGUMENT...; sets source, test
  rm -rf pair && "$ngrad" emit "$@" --self-test -o pair >log 2>&1 || return
  test=$(echo pair/*_test.c)
  source=${test%_test.c}.c
}

# Of a case all, or in turn one of twelve ways, one compiler, one language and one effort; of a few cases the rest.
turn=0
is_wanted() { # LANGUAGE
  case $effort/$((turn % 2))/$1 in all/* | */0/c11 | */1/c++17) return 0 ;; esac
  return 1
}
is_chosen() { # CHECK NAME
  case $effort/$1/$2 in
    quick/*) return 1 ;;
    all/* | */machines/* | */compilers/rows_bf16_3_17 | */analysers/*_17 | */sanitizers/rows_f32_5_17 | */sanitizers/rows_f32_600_65) return 0 ;;
  esac
  return 1
}
check() { # NAME GRAPH ARGUMENT...
  name=$1
  shift
  rm -f first
  way=0
  effort_of_compiler=-O$(((turn / 4 + 1) % 2))
  [ "$effort" != all ] || effort_of_compiler=-O1
  for threads in openmp none callback; do
    for isa in '' '--isa avx2,avx512' '--isa scalar' '--optimize size'; do
      way=$((way + 1))
      [ "$effort" = all ] || [ $((way % 12)) -eq $((turn % 12)) ] || continue
      # shellcheck disable=SC2086 # an option and its argument
      emit "$@" --threads $threads $isa
      count "$name, $threads, ${isa:-all} is emitted" || continue
      for compiler in gcc clang; do
        case $effort/$((turn / 2 % 2))/$compiler in all/* | */0/gcc | */1/clang) ;; *) continue ;; esac
        for language in c11 c17 c++17; do
          { is_wanted $language && has "$compiler"; } || continue
          # shellcheck disable=SC2086
          passes $compiler $language $warnings $effort_of_compiler -fopenmp
          count "$name, $threads, ${isa:-all}, $compiler $effort_of_compiler as $language"
        done
      done
    done
  done
  turn=$((turn + 1))
  emit "$@" || return
  for check in machines compilers analysers sanitizers; do
    if is_chosen $check "$name"; then check_$check "$name" "$@"; fi
  done
}

rows() { # TYPE ROWS WIDTH
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

# A model of few rows, pixels and tokens, 3 x 3 or 7 or 19 or 43. How many channels and features there are, it keeps.
few() { # GRAPH
  sed -E 's/^dims: .*/dims: {N: 19, T: 43}/; s/, ([0-9]+), \1([],])/, 3, 3\2/; s/\b(128|197)\b/7/' "$1" |
    sed -E "$(grep -q '\[N' "$1" && echo 's/, T: 43//' || echo 's/N: 19, //')"
}
# Without names for its extents.
known() {
  sed -E '/^dims:/d; /shape: /{s/\bN\b/19/g; s/\bT\b/43/g}'
}

check_case() { # NAME
  case $1 in
    open_*) check_open_case "${1#open_}" ;;
    rows_*)
      # shellcheck disable=SC2046 # three words
      rows $(echo "${1#rows_}" | tr _ ' ') >graph.yaml
      check "$1" graph.yaml
      ;;
    *)
      if [ -f "$here/$1.yaml" ]; then
        check "$1" "$here/$1.yaml"
      elif [ -f "$models/$1.yaml" ]; then
        few "$models/$1.yaml" | known >graph.yaml
        check "$1" graph.yaml
      elif [ -f "$golden/$1/graph.yaml" ]; then
        check "$1" "$golden/$1/graph.yaml"
      fi
      ;;
  esac
}

# Open extents: a pair that knows none of them computes, at those it is scheduled for, the bits of one that knows them.

# The graph with a name for each of the first eight extents above 1 that its inputs have.
named() { # GRAPH
  awk '
    /^[a-z]/ { is_inputs = /^inputs:/ }
    is_inputs && match($0, /shape: \[[^]]*\]/) {
      count = split(substr($0, RSTART + 8, RLENGTH - 9), extent, /, */)
      shape = ""
      for (i = 1; i <= count; i++) {
        e = extent[i]
        if (FNR == NR && e + 0 > 1 && !(e in name) && nnames < 8) {
          name[e] = "N" e
          dims = dims (nnames++ ? ", " : "") name[e] ": " e
        }
        shape = shape (i > 1 ? ", " : "") (e in name ? name[e] : e)
      }
      $0 = substr($0, 1, RSTART + 7) shape substr($0, RSTART + RLENGTH - 1)
    }
    FNR == NR { next }
    /^inputs:/ { print "dims: {" dims "}" }
    { print }' "$1" "$1"
}
check_open() { # NAME GRAPH-THAT-KNOWS GRAPH
  emit "$2" --isa scalar && compiles gcc c11 $plain -fopenmp && ./program >log 2>&1 && grep '^isa' log >known &&
    emit "$3" --isa scalar && compiles gcc c11 $plain -fopenmp && ./program >log 2>&1 &&
    awk '/^extents/ { cases++ } cases < 2 && /^isa/' log >hint && diff known hint >log
  count "$1 has the same bits as with its extents baked in"
  check "$1" "$3"
}
check_open_case() { # NAME, as of check_case
  case $1 in
    rows_*)
      # shellcheck disable=SC2046
      set -- "$1" $(echo "${1#rows_}" | tr _ ' ')
      rows "$2" "$3" "$4" >known.yaml
      rows "$2" N "$4" | sed "s/^inputs:/dims: {N: $3}\n&/" >open.yaml
      ;;
    *)
      if [ -f "$models/$1.yaml" ]; then
        few "$models/$1.yaml" >open.yaml
        known <open.yaml >known.yaml
        check_open "open_$1" known.yaml open.yaml
        return
      fi
      [ -f "$golden/$1/graph.yaml" ] || return 0
      cp "$golden/$1/graph.yaml" known.yaml
      named known.yaml >open.yaml
      # The length of its gamma is a product of extents, which has no name.
      if [ "$1" = ln_flat_gamma ]; then
        ! emit open.yaml && grep -q 'cannot stay open' log
        count "$1 is told that its extents cannot stay open"
        return
      fi
      ;;
  esac
  check_open "open_$1" known.yaml open.yaml
}

stems() { # FILE...
  for file in "$@"; do basename "$file" .yaml; done
}
open_sample='rows_f32_33_1 rows_f32_33_15 rows_f32_33_17 rows_bf16_33_33 ln_2x3x4x5_axis2 bn_ncx_3x5x7 bn_nxc_3x5x7'
sample='rows_f32_5_1 rows_f32_5_15 rows_f32_5_16 rows_f32_5_17 rows_f32_5_33 rows_f32_600_65 rows_bf16_3_17 rows_f16_3_17'
others='ln_f64_f64 bn_nxc_3x5x7 bn_empty_batch dml_f16 transformer_sublayer_backward'
if [ "$effort" = quick ]; then
  open_sample='rows_f32_33_17 bn_ncx_3x5x7' sample='rows_f32_5_1 rows_f32_5_17 rows_bf16_3_17' others='ln_f64_f64 bn_empty_batch'
fi

gcc -std=c11 -D_GNU_SOURCE -O1 -c "$here/guard.c" -o guard.o || exit 1
if [ $# -gt 2 ]; then
  check_case "$3"
  [ $((passed + failed)) -gt 0 ] || echo "emit: there is no case $3" >&2
  echo "$3: $passed passed, $failed failed"
  exit $((failed > 0 || passed == 0))
fi

# Compilers with the flags of others: fast-math is refused, and gcc, without being asked to, warns of nothing.
sums() { # TYPE LENGTH
  cat <<Y
format: ngrad/1
name: sums
inputs: [{name: x, type: $1, shape: [$2]}, {name: a, type: $1, shape: [32, 48]}, {name: b, type: $1, shape: [64, 48]}]
nodes:
  - {op: ReduceSum, inputs: [x], outputs: [s], attributes: {axes: [0]}}
  - {op: MatMul, inputs: [a, b], outputs: [y], attributes: {transpose_b: true}}
outputs: [s, y]
Y
}
sums f32 768 >sums.yaml
emit sums.yaml
for compiler in gcc clang; do
  has $compiler || continue
  for flag in -ffast-math -Ofast -ffinite-math-only; do
    ! $compiler $flag -c "$source" -o pair.o >log 2>&1 && grep -q 'error: .*-ffast-math changes results' log
    count "$compiler $flag is refused"
  done
done
for type in f32 bf16; do
  sums $type 768 >sums.yaml
  emit sums.yaml && gcc -O2 -c "$source" -o pair.o >log 2>&1 && [ ! -s log ]
  count "gcc -O2 warns of nothing in sums and products of $type"
done

# The same bytes: from elsewhere, from a pipe, and where numbers have commas

layer_norm=$models/gpt2_layer_norm_backward.yaml
emit "$layer_norm" --dim N=40 && mv pair once
same() { # WHAT
  diff -r once pair >log 2>&1
  count "the same bytes $1"
}
emit "$layer_norm" --dim N=40
same again
(cd "$models" && "$ngrad" emit "$(basename "$layer_norm")" --dim N=40 --self-test -o "$work/pair") >log 2>&1
same 'in the folder of the graph'
rm -rf pair && "$ngrad" emit - --dim N=40 --self-test -o pair <"$layer_norm" >log 2>&1
same 'from a pipe'
mkdir locale
if has localedef && localedef -i de_DE -f UTF-8 locale/de_DE.UTF-8 2>log &&
  [ "$(LOCPATH=$PWD/locale LC_ALL=de_DE.UTF-8 env printf %.1f 1)" = 1,0 ]; then
  gcc -std=c11 -shared -fPIC "$here/locale.c" -o locale.so || exit 1
  rm -rf pair && LOCPATH=$PWD/locale LC_ALL=de_DE.UTF-8 LD_PRELOAD=$PWD/locale.so \
    "$ngrad" emit "$layer_norm" --dim N=40 --self-test -o pair >log 2>&1
  same 'where numbers have commas'
else
  echo 'left out: emit: no localedef, or no sources of locales, so none where numbers have commas'
fi

emit "$layer_norm" --dim N=40 --prefix p7 && gcc -std=c11 $plain -c "$source" -o symbols.o >log 2>&1 &&
  nm -g --defined-only symbols.o | awk '{ print $3 }' >log && [ "$(grep -cv '^p7' log)" -eq 0 ] && [ -s log ]
count 'every symbol has the prefix'
emit "$layer_norm" --dim N=40 && gcc -std=c11 -O2 -fno-pie -c "$source" -o code.o &&
  size code.o >log && awk 'NR == 2 { exit $1 > 65536 }' log
count 'a layer norm gradient with all instruction sets is below 64 KiB'
nm code.o >log && ! grep -E ' [bBdD] ' log
count 'it has no variables'

for name in orders heads; do
  emit "$here/$name.yaml" --isa scalar &&
    gcc -std=c11 -Ipair -DNAME=$name "-DHEADER=\"$name.h\"" "$here/describe.c" "$source" -lm -o program >log 2>&1 &&
    ./program | diff - "$here/$name.described" >log
  count "$name says what it is"
done

for name in extents load div hash_of; do
  rows f32 3 17 | sed "s/^name: rows/name: $name/" >graph.yaml
  rm -f first
  emit graph.yaml --isa scalar && passes gcc c11 $plain
  count "a graph whose name is $name"
done
rm -f first
emit "$here/shifted_labels.yaml" --isa scalar && ! grep -q '{(double)NAN' "$test" && passes gcc c11 $plain
count 'labels of a self-test are classes, after a subtraction'
cat >cubes.yaml <<'Y'
format: ngrad/1
name: cubes
dims: {N: 2}
inputs: [{name: x, type: f32, shape: [N, N, N, 4096]}]
nodes: [{op: ReduceSum, inputs: [x], outputs: [y], attributes: {axes: [0]}}]
outputs: [y]
Y
rm -f first
emit cubes.yaml --isa scalar && grep -qF '{{2, 0}, {1, 0}, {0, 0}}' "$test" && passes gcc c11 $plain
count 'a self-test without extents at which tensors are large'
cat >nothing.yaml <<'Y'
format: ngrad/1
name: nothing
dims: {N: 2}
inputs: [{name: x, type: f32, shape: [N, 3, 5, 0, N, 0]}, {name: z, type: s32, shape: [N, 3, 1, 0, N, 0]}]
nodes:
  - {op: GenIndex, inputs: [x], outputs: [{name: i, type: s32}], attributes: {axis: 2}}
  - {op: Equal, inputs: [i, z], outputs: [{name: y, type: boolean}]}
outputs: [y]
Y
rm -f first
emit nothing.yaml --isa scalar && passes gcc c11 $plain
count 'indices of axes around one that has no elements, times an open extent'
# What they share runs in many graphs; here each operator is, also of nothing, and no compiler has a word to say.
reads() { # COMPILER LANGUAGE OPTION... FILE...; without making anything of it
  compiler=$1 standard=$2
  shift 2
  "$compiler" -x "${standard%%[0-9]*}" -std="$standard" -fsyntax-only "$@" >log 2>&1 && [ ! -s log ]
}
isa_of_operators=
[ "$effort" != quick ] || isa_of_operators='--isa avx2'
# shellcheck disable=SC2086 # none or two words
awk -f "$here/operators.awk" "$here/../unit/operator_cases.h" >graph.yaml && emit graph.yaml $isa_of_operators
count 'a graph of every operator'
for compiler in gcc clang; do
  has $compiler || continue
  for language in c11 c++17; do
    case $effort/$compiler/$language in quick/clang/c11 | quick/gcc/c++17) continue ;; esac
    # shellcheck disable=SC2086
    reads $compiler $language $warnings "$source" "$test"
    count "every operator, $compiler as $language"
  done
done
for compiler in ${more_compilers:-clang}; do
  has "$compiler" || continue
  # shellcheck disable=SC2086
  reads "$compiler" c11 $everything "$source"
  count "every operator, every warning of $compiler"
done

emit "$here/extents.yaml"
for compiler in gcc clang; do
  { has $compiler && [ "$effort/$compiler" != quick/clang ]; } || continue
  $compiler -std=c11 -D_GNU_SOURCE -O1 -fopenmp -Ipair "$here/extents.c" "$source" -lm -o program >log 2>&1 && ./program >log
  count "every length of rows between guard pages, $compiler"
done

# Rows of fewer elements than a vector.
cat >joined.yaml <<'Y'
format: ngrad/1
name: joined
dims: {N: 8}
inputs: [{name: x, type: f32, shape: [N, 4]}, {name: y, type: f32, shape: [N, 28]}]
nodes: [{op: Concat, inputs: [x, y], outputs: [z], attributes: {axis: 1}}]
outputs: [z]
Y
# shellcheck disable=SC2086
emit joined.yaml --threads none && reads gcc c11 $warnings "$source"
count 'rows of fewer elements than a vector'

# Rows of a tensor that is larger than f32 can count.
cat >taken.yaml <<'Y'
format: ngrad/1
name: taken
dims: {N: 16}
inputs: [{name: x, type: u8, shape: [N, 7]}, {name: i, type: s32, shape: [3]}]
nodes: [{op: Gather, inputs: [x, i], outputs: [y]}]
outputs: [y]
Y
cat >taken.c <<'C'
#include "taken.h"

enum { N = 3000001 };
static uint8_t x[N][7], y[3][7];

int main(void) {
  const int32_t rows[] = {N - 2, -1, 2500001};
  int wrong = 0;
  for (int i = 0; i < N * 7; i++) x[i / 7][i % 7] = (uint8_t)(i % 251);
  if (taken(N, x[0], rows, y[0], 0, 0, taken_ISA_BEST) != taken_OK) return 1;
  for (int i = 0; i < 21; i++) wrong += y[i / 7][i % 7] != x[rows[i / 7] < 0 ? N - 1 : rows[i / 7]][i % 7];
  return wrong;
}
C
emit taken.yaml --threads none && gcc -std=c11 $plain -Ipair taken.c "$source" -lm -o program >log 2>&1 && ./program
count 'rows of 21 million elements'

# Rows of nothing, at indices that the function computes.
cat >chosen.yaml <<'Y'
format: ngrad/1
name: chosen
dims: {N: 5}
inputs: [{name: x, type: f32, shape: [N, 3]}, {name: z, type: f32, shape: [2, 4]}]
nodes:
  - {op: ArgMax, inputs: [z], outputs: [i], attributes: {axis: 1}}
  - {op: Gather, inputs: [x, i], outputs: [y], attributes: {axis: 0}}
outputs: [y]
Y
cat >chosen.c <<'C'
#include "chosen.h"

int main(void) {
  static _Alignas(64) char workspace[chosen_WORKSPACE_NBYTES];
  const float z[8] = {0};
  float y[6];
  return chosen(0, 0, z, y, workspace, sizeof workspace, chosen_ISA_BEST) != chosen_INDEX_OUT_OF_RANGE;
}
C
emit chosen.yaml --threads none && gcc -std=c11 $plain -Ipair chosen.c "$source" -lm -o program >log 2>&1 && ./program
count 'rows of nothing are refused'

# Cases

echo "$machines" >machines
while read -r prefix emulator; do
  { has "$prefix-gcc" && has "$emulator"; } || echo "left out: emit: no $prefix-gcc or no $emulator, so nothing on that machine"
done <machines
for tool in clang clang-tidy cppcheck; do has $tool || echo "left out: emit: no $tool"; done
[ -d "$golden" ] || echo "left out: emit: no cases in $golden"
if [ "$effort" = all ]; then
  for width in $(seq 33); do
    rows f32 20 "$width" >graph.yaml
    rm -f first
    emit graph.yaml --threads none && passes gcc c11 -O1
    count "rows of $width between guard pages"
  done
  # shellcheck disable=SC2086
  { stems $sample "$here"/*.yaml "$models"/*.yaml "$golden"/*/ && stems $open_sample "$models"/*.yaml "$golden"/*/ | sed 's/^/open_/'; } | xargs -P "$(nproc)" -n 1 "$here/run.sh" "$ngrad" all
  count 'all cases'
else
  for case in $sample $(stems "$here"/*.yaml) $others; do
    check_case "$case"
  done
  for case in $open_sample; do check_open_case "$case"; done
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
