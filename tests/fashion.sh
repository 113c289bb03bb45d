#!/bin/sh
# Trains a model of models/train on Fashion-MNIST, from Debian's package dataset-fashion-mnist. Exits with 0 if the
# accuracy on the test images reaches the limit below and, for the mlp, the hash of all states is the one in README.md.
#
#   fashion.sh NGRAD mlp|cnn FIT-OPTION...
set -eu
ngrad=$(realpath "$1")
model=$2
shift 2
cd "$(dirname "$0")/.."
data=/usr/share/datasets/fashion-mnist
case $model in
  mlp) expected=0.88 epochs=10 optimizer='--optimizer adam' ;;
  cnn) expected=0.91 epochs=4 optimizer='--optimizer adam --schedule cosine --steps 4800' ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)
# shellcheck disable=SC2086 # several options
"$ngrad" train "models/train/$model.yaml" $optimizer -o "$work" >"$work/files"
"$ngrad" fit "$work/${model}_step.yaml" --input x=$data/train-images-idx3-ubyte.gz --labels $data/train-labels-idx1-ubyte.gz \
  --test-input x=$data/t10k-images-idx3-ubyte.gz --test-labels $data/t10k-labels-idx1-ubyte.gz --epochs "$epochs" "$@" |
  tee "$work/said" | grep -v ' of 60000 samples: ' # within an epoch
seconds=$(($(date +%s) - started))
hash=$(sed -n 's/^sha256 of the states: //p' "$work/said")
accuracy=$(sed -n 's/.*test: .*accuracy \([0-9.]*\).*/\1/p' "$work/said" | tail -n 1)
[ -n "$hash" ] || exit 1

status=0
verdict=ok
awk "BEGIN { exit !($accuracy >= $expected) }" || verdict=FAILED status=1
echo "test accuracy $accuracy after $epochs epochs, expected $expected or more: $verdict; $seconds s in all, compiling too"
if [ "$model" = mlp ]; then
  verdict=ok
  grep -qF "$hash" README.md || verdict=FAILED status=1
  echo "hash of the states $hash, expected the one that README.md shows: $verdict"
fi
exit $status
