#!/bin/sh
# Runs `MPIEXEC FLAG COUNT PROGRAM` for 1, 2 and 4 ranks: they print the same hash of the states. Usage: compare.sh MPIEXEC FLAG PROGRAM
set -eu
one=$("$1" "$2" 1 "$3")
echo "$one"
for count in 2 4; do
  [ "$("$1" "$2" "$count" "$3" | cut -d ' ' -f 1-2)" = "$(echo "$one" | cut -d ' ' -f 1-2)" ] || { echo "$count ranks have other states" && exit 1; }
done
