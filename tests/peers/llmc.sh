#!/bin/sh
# Times a training step of GPT-2 with 124 million parameters, of 4 sequences of 64 tokens, with AdamW, on one thread:
# ngrad's, llm.c's, and llm.c's with products of OpenBLAS, three times in turns.
#
#   llmc.sh NGRAD; $LLMC is a checkout of https://github.com/karpathy/llm.c
set -eu
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
if [ ! -e "${LLMC:-}/train_gpt2.c" ]; then
  echo "left out: llm.c: expected a checkout of karpathy/llm.c in \$LLMC"
  exit 77
fi
llmc=$(realpath "$LLMC")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
sed 's/^void \(matmul_forward\|matmul_backward\)(/void \1_loops(/' "$llmc/train_gpt2.c" >loops.c
cat >products.h <<'C'
void matmul_forward(float *, const float *, const float *, const float *, int, int, int, int);
void matmul_backward(float *, float *, float *, const float *, const float *, const float *, int, int, int, int);
C
# shellcheck disable=SC2046 # several options
cc -Ofast -march=native -w -include products.h -DLLMC='"loops.c"' -I. -I"$llmc" "$here/llmc.c" \
  $(pkg-config --cflags --libs openblas) -lm -o llmc
"$ngrad" train "$here/../../models/train/gpt2_124m.yaml" --optimizer adamw -o . >log

median() {
  sort -n | awk '{ x[NR] = $1 } END { print NR % 2 ? x[(NR + 1) / 2] : (x[NR / 2] + x[NR / 2 + 1]) / 2 }'
}
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
for turn in 1 2 3; do
  own=$("$ngrad" bench gpt2_124m_step.yaml --threads 1 --json | sed -n 's/.*"median_ms": *\([0-9.]*\).*/\1/p' | head -n 1)
  loops=$(./llmc 3 loops | sed -n 's/^seconds //p' | median)
  products=$(./llmc 3 | sed -n 's/^seconds //p' | median)
  awk -v own="$own" -v loops="$loops" -v products="$products" -v turn=$turn 'BEGIN {
    own /= 1000
    printf "turn %d: ngrad %.2f s; llm.c %.2f s, ratio %.2f; with OpenBLAS %.2f s, ratio %.2f\n",
      turn, own, loops, loops / own, products, products / own
  }'
done
