#!/bin/sh
# Compares the step times that `ngrad scale` predicts for 1, 2 and 4 ranks on this machine with measured ones, for a
# perceptron, a convolutional network and a language model of bytes, with Open MPI and MPICH, if installed. Measures the
# latency and the bandwidth of messages between two ranks, and leaves on one thread. If there are more ranks than
# processors, they share these.
#
#   run it as: tests/bench/ranks/scale.sh build/ngrad
set -u
if [ $# -ne 1 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_btl=self,vader \
  OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2
printf '%-10s %-8s %5s  %11s  %11s  %8s\n' model MPI ranks predicted measured 'of it'
for model in mlp cnn gpt_bytes; do
  metrics='&loss,&accuracy'
  [ $model = gpt_bytes ] && metrics='&loss'
  sed 's/^name: .*/name: net/' "$here/../../../models/train/$model.yaml" >net.yaml
  "$ngrad" train net.yaml --optimizer adam --accumulate 16 --threads none -o . >log 2>&1 || { cat log; exit 1; }
  for mpi in openmpi mpich; do
    command -v mpicc.$mpi >/dev/null || continue
    mpicc.$mpi -std=c11 -O2 "-DMETRICS=$metrics" -I. "$here/scale.c" net.c net_mpi.c -lm -o net || exit 1
    for ranks in 1 2 4; do
      mpirun.$mpi -np $ranks ./net </dev/null || exit 1
    done >measured
    messages=$(awk '$1 == 2 { print "--latency", $2 "s --bandwidth", $3 }' measured)
    # shellcheck disable=SC2086
    "$ngrad" scale net_step.yaml --threads 1 --seconds 2 --cores "$(nproc)" --ranks 1,2,4 $messages --json >predicted || exit 1
    awk -v name="$model $mpi" 'FILENAME == "predicted" { if (sub(/.*"step_ms": /, "")) predicted[++n] = $0 + 0; next }
      { split(name, of); ms = $4 * 1e3
        printf "%-10s %-8s %5d  %8.2f ms  %8.2f ms  %8.2f\n", of[1], of[2], $1, predicted[FNR], ms, ms / predicted[FNR] }' \
      predicted measured
  done
done
