#!/bin/sh
# Trains networks that torch.onnx exported, here and in PyTorch, and compares them, if python3-torch is installed.
# Usage: run.sh NGRAD
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
XDG_CACHE_HOME=$work/cache
export XDG_CACHE_HOME
for python in python3 /usr/bin/python3; do
  "$python" -c 'import torch, numpy' 2>/dev/null || continue
  "$python" "$here/train.py" "$program"
  exit
done
echo 'left out: export: no python3 with torch and numpy (Debian: python3-torch), so no exported networks'
exit 77
