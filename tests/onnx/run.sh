#!/bin/sh
# ONNX's own models, if libonnx-testdata is installed. Usage: run.sh NGRAD [OPTION...]; models.py has the options.
set -u
program=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
shift
for python in python3 /usr/bin/python3; do
  "$python" -c 'import numpy' 2>/dev/null && exec "$python" "$here/models.py" "$program" "$@"
done
echo "left out: onnx: no python3 with numpy, so none of ONNX's models"
exit 77
