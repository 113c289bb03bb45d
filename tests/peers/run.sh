#!/bin/sh
# Compares operators of random shapes with oneDNN, and with PyTorch if a python3 has it (Debian: python3-torch).
# usage: run.sh NGRAD_CHECK_PEERS [ARGUMENT...]   (--count N, --seed N)
set -eu
check=$(realpath "$1")
python=$(dirname "$0")/python.sh
shift
case " $* " in *" --help "*) exec "$check" --help ;; esac
status=0
"$check" "$@" || status=$?
"$python" -c '' || exit $status
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$check" "$@" --export "$folder"
echo
"$python" "$(dirname "$0")/peers.py" "$folder" || status=1
exit $status
