#!/bin/sh
# Runs a python3 that has PyTorch (Debian: python3-torch); where none has, says so and exits with 77.
# usage: python.sh ARGUMENT...
for python in python3 /usr/bin/python3; do
  if "$python" -c 'import numpy, torch, yaml' 2>/dev/null; then exec "$python" "$@"; fi
done
echo "left out: PyTorch: no python3 has it, with numpy and yaml"
exit 77
