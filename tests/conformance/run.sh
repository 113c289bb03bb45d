#!/bin/sh
# The cases of ../shared/golden (or $NGRAD_SHARED/golden): graphs with inputs and results in double precision. The
# interpreter must be within 1 ulp of them (f64: relative L2 1e-12), and compiled code within the tolerance of its type,
# on each instruction set of this machine and with 1, 2 and 3 threads, with the same bits on all. Without NGRAD_CHECK
# (tests/effort.h), each case takes one instruction set, in turn, and 1 and 3 threads.
set -eu
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"

# For each check that does not hold a line that begins with FAILED, and what the program said.
passed=0
pass_if() { # WHAT COMMAND...
  what=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    echo "FAILED: $case: $what"
    sed 's/^/  /' "$work/said"
  fi
}

# Reads run's table: fails for an output further off than its type allows, or when there is no output.
agrees() { # F32-TOLERANCE
  awk -v f32="$1" '
    BEGIN { most["f64"] = 1e-12; most["f32"] = f32; most["f16"] = 1e-3; most["bf16"] = 8e-3 }
    $2 in most { rows++; if ($3 ~ /inf|nan/ || $3 + 0 > most[$2]) wrong = 1 }
    END { exit wrong || !rows }
  ' "$work/said"
}

run() { # ARGUMENT...
  "$ngrad" run "$golden/$case/graph.yaml" --in "$golden/$case/in" --expect "$golden/$case/out" "$@" >"$work/said" 2>&1
}

run_agrees() { # F32-TOLERANCE ARGUMENT...
  tolerance=$1
  shift
  run "$@" && agrees "$tolerance"
}

has_same_bits() { # FOLDER
  diff -r "$first" "$1" >"$work/said" 2>&1
}

check_case() {
  work=$root/$case
  mkdir "$work"
  tolerance=1e-6
  case $case in *_large_mean) tolerance=5e-6 ;; esac
  case $case in
    *f64*) pass_if interpreter run --backend interpreter --tolerance 1e-12 ;;
    # The results are of the exact mean, MeanTensor is that rounded to f32.
    dml_training_*) pass_if interpreter run --backend interpreter --max-ulp 4 ;;
    *) pass_if interpreter run --backend interpreter --max-ulp 1 ;;
  esac
  first=
  threads_taken='1 2 3'
  if [ -z "${NGRAD_CHECK-}" ]; then
    # shellcheck disable=SC2086 # a word an instruction set
    set -- $isas
    shift $(($(echo "$case" | cksum | cut -d ' ' -f 1) % $#))
    isas=$1 threads_taken='1 3'
  fi
  for isa in $isas; do
    for threads in $threads_taken; do
      out=$work/$isa-$threads
      pass_if "$isa, $threads threads" run_agrees $tolerance --isa "$isa" --threads "$threads" --out "$out"
      [ -n "$first" ] || first=$out
      [ "$first" = "$out" ] || pass_if "bits of $isa, $threads threads" has_same_bits "$out"
    done
  done
  echo "PASSED $passed"
  rm -rf "$work"
}

if [ "${2-}" = --case ]; then # one of several at once, started below
  ngrad=$1
  case=$3
  check_case
  exit 0
fi

ngrad=$(realpath "$1")
golden=${NGRAD_SHARED:-$(dirname "$0")/../../../shared}/golden
if [ ! -d "$golden" ]; then
  echo "left out: cases of other systems, as there is no $golden"
  exit 77
fi
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
isas=$("$ngrad" --version | sed -n 's/^instruction sets: //p')
XDG_CACHE_HOME=${XDG_CACHE_HOME:-$root/cache}
OMP_WAIT_POLICY=passive
export golden root isas XDG_CACHE_HOME OMP_WAIT_POLICY

for folder in "$golden"/*/; do basename "$folder"; done |
  xargs -P "$(nproc)" -I '{}' sh "$0" "$ngrad" --case '{}' >"$root/results"
grep -v '^PASSED' "$root/results" || :
awk -v isas="$isas" '
  /^PASSED/ { passed += $2 }
  /^FAILED/ { failed++ }
  END {
    printf "instruction sets %s: %d passed, %d failed\n", isas, passed, failed
    exit failed || !passed
  }
' "$root/results"
