#!/usr/bin/env bash
# Tests bash completion. Each row has the line before the cursor, and the expected completions, sorted.
set -u
ngrad=$1
# shellcheck source=/dev/null
source "$(dirname "$0")/../../frontend/package/ngrad.bash"
# shellcheck disable=SC2317 # called by what is sourced
compopt() { :; } # the builtin knows nothing outside of a completion
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
touch a.yaml a.txt b.onnx b.html
mkdir a.dir
failed=0

completes() { # LINE EXPECTED
  local found
  read -ra COMP_WORDS <<<"$1"
  [[ $1 == *' ' ]] && COMP_WORDS+=('')
  COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
  _ngrad "$ngrad" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  found=$(printf '%s\n' "${COMPREPLY[@]}" | LC_ALL=C sort | paste -sd ' ')
  [[ $found == "$2" ]] && return
  echo "$1: expected $2, found $found"
  failed=1
}

completes 'ngrad ch' 'check'
completes 'ngrad hel' 'help'
completes 'ngrad -' '--help --version'
completes 'ngrad help s' 'scale show'
completes 'ngrad passes -' '--costs --help --json'
completes 'ngrad run --ra' '--random'
completes 'ngrad run a.yaml --no' '--no-fuse'
completes 'ngrad check --isa' ''
completes 'ngrad run --backend ' 'codegen interpreter'
completes 'ngrad emit --isa a' 'avx2 avx512 avx512_bf16'
completes 'ngrad emit --threads ' 'callback none openmp'
completes 'ngrad run --threads ' ''
completes 'ngrad train --optimizer ' 'adagrad adam adamw momentum sgd'
completes 'ngrad train --loss ' 'bce cross-entropy mse'
completes 'ngrad convert a.yaml --to ' 'onnx yaml'
completes 'ngrad run a.yaml --dim ' ''
completes 'ngrad fit a.yaml --epochs ' ''
completes 'ngrad run --random ' 'a.dir a.yaml b.onnx'
completes 'ngrad run a.yaml --max-memory a' ''
completes 'ngrad train --schedule ' 'constant cosine step'
completes 'ngrad show --format ' 'c dot json kernels kernels-json loops memory memory-svg yaml'
completes 'ngrad show --after lo' 'long-sums'
completes 'ngrad run --disable dead' 'dead-code'
completes 'ngrad run --disable multiply-o' 'multiply-one'
completes 'ngrad run --disable quantize' ''
completes 'ngrad show --after quantize' 'quantize-scales'
completes 'ngrad ops LayerNormB' 'LayerNormBackward'
completes 'ngrad emit a.yaml -o ' 'a.dir'
completes 'ngrad bench --export ' 'a.dir a.txt a.yaml b.html b.onnx'
completes 'ngrad report a.yaml -o a.t' 'a.txt'
completes 'ngrad bench --trace a.t' 'a.txt'
completes 'ngrad check a' 'a.dir a.yaml'
completes 'ngrad check b' 'b.onnx'
completes 'ngrad report b' 'b.html b.onnx'
completes 'ngrad bogus --' ''
exit $failed
