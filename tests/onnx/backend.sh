#!/bin/sh
# The module ngrad_onnx_backend by ONNX's own test runner, if python3-onnx is installed. Usage: backend.sh NGRAD
set -u
here=$(realpath "$(dirname "$0")")
build=$(realpath "$(dirname "$1")")
for python in python3 /usr/bin/python3; do
  "$python" -c 'import numpy, onnx.backend.test' 2>/dev/null || continue
  export NGRAD_LIBRARY="$build/libngrad.so" PYTHONPATH="$here/../../frontend/python:$here" PYTHONDONTWRITEBYTECODE=1
  NGRAD_BACKEND=interpreter "$python" -W ignore "$here/backend_test.py" 850 || exit 1
  NGRAD_BACKEND=compiled "$python" -W ignore "$here/backend_test.py" 120
  exit
done
echo "left out: onnx: no python3 with python3-onnx, so not ngrad_onnx_backend"
exit 77
