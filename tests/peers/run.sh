#!/bin/sh
# Operators of random shape beside oneDNN, and beside PyTorch where a python3 has it (Debian: python3-torch).
# usage: run.sh NGRAD_CHECK_PEERS [ARGUMENT...]   (--count N, --seed N)
set -eu
check=$(realpath "$1")
shift
case " $* " in *" --help "*) exec "$check" --help ;; esac
status=0
"$check" "$@" || status=$?

python=
for candidate in python3 /usr/bin/python3; do
  if "$candidate" -c 'import numpy, torch, yaml' 2>/dev/null; then
    python=$candidate
    break
  fi
done
if [ -z "$python" ]; then
  echo "not compared with PyTorch: no python3 has it, with numpy and yaml"
  exit $status
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$check" "$@" --export "$folder"
echo
"$python" "$(dirname "$0")/peers.py" "$folder" || status=1
exit $status
