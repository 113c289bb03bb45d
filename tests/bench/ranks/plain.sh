#!/bin/sh
# Times a training step on two ranks beside the same computation with plain MPI_Allreduce: medians of steps in turns,
# and their ratio, for a perceptron and a convolutional network, with Open MPI and MPICH, if installed.
#
#   run it as: tests/bench/ranks/plain.sh build/ngrad
set -u
if [ $# -ne 1 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
for model in mlp cnn; do
  for pair in net:8 part:4; do # as many leaves as a rank of two has
    name=${pair%:*}
    sed "s/^name: .*/name: $name/" "$here/../../../models/train/$model.yaml" >"$name.yaml"
    "$ngrad" train "$name.yaml" --optimizer adam --accumulate "${pair#*:}" --dim N=8 --threads none -o . >log 2>&1 || { cat log; exit 1; }
  done
  for mpi in openmpi mpich; do
    command -v mpicc.$mpi >/dev/null || continue
    mpicc.$mpi -std=c11 -O2 -DLEAVES=8 -DSAMPLES=8 -I. "$here/plain.c" net.c net_mpi.c part.c -lm -o plain || exit 1
    printf '%s, %s: ' $model $mpi
    mpirun.$mpi -np 2 ./plain </dev/null || exit 1
  done
done
