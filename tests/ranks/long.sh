#!/bin/sh
# Weights after 100 steps of a convolutional network on Fashion-MNIST and after 50 steps of a language model of bytes:
# one process and any number of ranks give one hash, with Open MPI and MPICH, with another instruction set for each
# rank, and if a signal stops training and another number of ranks resumes it. Takes some minutes; prints a line for
# each run.
#
#   run it as: tests/ranks/long.sh build/ngrad
# needs mpirun and mpicc of Open MPI, MPICH or both (Debian: openmpi-bin libopenmpi-dev mpich libmpich-dev) and
# dataset-fashion-mnist
set -u
if [ $# -ne 1 ] || [ "$1" = --help ]; then
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
ngrad=$(realpath "$1")
models=$(realpath "$(dirname "$0")")/../../models/train
data=/usr/share/datasets/fashion-mnist
[ -e $data/train-images-idx3-ubyte.gz ] || { echo 'left out: no dataset-fashion-mnist' >&2; exit 77; }
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 \
  OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 2

"$ngrad" train "$models/cnn.yaml" --optimizer adam --accumulate 10 -o . >/dev/null || exit 1
"$ngrad" train "$models/gpt_bytes.yaml" --optimizer adamw --accumulate 8 -o . >/dev/null || exit 1
cat /usr/share/common-licenses/GPL-* >text
# Each rank has the next instruction set of this processor.
cat >mixed.sh <<'S'
#!/bin/sh
rank=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
echo $$ >"pid.$rank"
set -- "$@" --isa "$(echo "$ISAS" | cut -d' ' -f$((rank % $(echo "$ISAS" | wc -w) + 1)))"
exec "$@"
S
chmod +x mixed.sh
ISAS=
for isa in avx512 avx2 neon scalar; do
  "$ngrad" run cnn_infer.yaml --random --isa $isa --dim N=1 >/dev/null 2>&1 && ISAS="$ISAS $isa"
done
ISAS=${ISAS# }
export ISAS

fit() { # MODEL STEPS; the arguments of ngrad fit
  case $1 in
    cnn) set -- fit cnn_step.yaml --input x=$data/train-images-idx3-ubyte.gz --labels $data/train-labels-idx1-ubyte.gz \
      --batch 50 --steps "$2" ;;
    *) set -- fit gpt_bytes_step.yaml --text text --batch 8 --steps "$2" ;;
  esac
  echo "$@"
}
hash_of() {
  sed -n 's/^sha256 of the states: //p'
}
passed=0 failed=0
check() { # HASH WHAT
  if [ "$1" = "$whole" ]; then passed=$((passed + 1)) said=same; else failed=$((failed + 1)) said=DIFFERENT; fi
  echo "$model  $(echo "${1:--}" | cut -c1-16)  $said  $2"
}

for model in cnn gpt_bytes; do
  steps=50
  [ $model = gpt_bytes ] || steps=100
  # shellcheck disable=SC2046
  whole=$("$ngrad" $(fit $model $steps) -q | hash_of)
  echo "$model  $whole  $steps steps of one process"
  [ -n "$whole" ] || exit 1
  for mpi in openmpi mpich; do
    command -v mpirun.$mpi >/dev/null || continue
    command -v mpicc.$mpi >/dev/null || continue
    for ranks in 1 2 3 4 7; do
      # shellcheck disable=SC2046
      check "$(mpirun.$mpi -np $ranks ./mixed.sh "$ngrad" $(fit $model $steps) -q --ranks </dev/null | hash_of)" \
        "$mpi, $ranks ranks"
    done
    # A rank is killed some steps behind a checkpoint, from which three ranks go on, and then one process.
    rm -rf out log
    # shellcheck disable=SC2046
    mpirun.$mpi -np 4 ./mixed.sh "$ngrad" $(fit $model $((steps / 4))) -q --ranks --out out >/dev/null </dev/null
    # shellcheck disable=SC2046
    mpirun.$mpi -np 2 ./mixed.sh "$ngrad" $(fit $model $steps) --each-step --ranks --out out --resume \
      >log 2>&1 </dev/null &
    until grep -q "^step $((steps / 4 + 2)):" log 2>/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.05; done
    if ! kill -KILL "$(cat pid.1)" || wait $!; then echo "$model  NOT KILLED  $mpi" && failed=$((failed + 1)); fi
    # shellcheck disable=SC2046
    mpirun.$mpi -np 3 ./mixed.sh "$ngrad" $(fit $model $((steps / 2))) -q --ranks --out out --resume >/dev/null </dev/null
    # shellcheck disable=SC2046
    check "$("$ngrad" $(fit $model $steps) -q --out out --resume | hash_of)" "$mpi, killed; 4, 3 ranks and one process"
  done
done
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
