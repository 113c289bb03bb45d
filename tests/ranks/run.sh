#!/bin/sh
# Ranks under mpirun, of Open MPI and of MPICH, if installed: the exchange of messages, as a loaded library and as a
# file for mpicc; ngrad fit --ranks, with the same bits on any number of ranks; and how all ranks end when one fails.
# Without NGRAD_CHECK (tests/effort.h): one MPI, few ranks, one failure.
set -u
ngrad=$(realpath "$1")
here=$(cd "$(dirname "$0")" && pwd)
exchange=$(dirname "$ngrad")/tests/ngrad_ranks_exchange
emit=$here/../../backends/codegen/emit
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
told='stdout stderr'
unset CC NO_COLOR NGRAD_MPICC
XDG_CACHE_HOME=$work/cache
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 # containers run tests as root
# Neither a network nor a core for each rank is needed.
export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_hwloc_base_binding_policy=none OMPI_MCA_btl=self,vader

launchers=
for mpi in openmpi mpich; do
  if has mpirun.$mpi && has mpicc.$mpi; then launchers="$launchers $mpi"; else echo "left out: ranks: no $mpi"; fi
done
[ -n "$launchers" ] || exit 77
is_quick=false level=-O1 counts='1 2 3 4 7' emitted_counts='1 2 3 4 7 9'
if ! takes_all; then
  is_quick=true level=-O0 launchers=${launchers##* } counts='2 3' emitted_counts=3
fi

# A minute is much more than anything here takes: who hangs is ended, with status 124.
start() { # MPI RANKS COMMAND...; sets $said, and $took in seconds, which are told
  mpi=$1 n=$2
  shift 2
  said=0
  began=$(date +%s)
  timeout 60 "mpirun.$mpi" -np "$n" "$@" >stdout 2>stderr </dev/null || said=$?
  took=$(($(date +%s) - began))
}

template() { # NAME...
  for name in "$@"; do sed 's/@/ng/g' "$emit/$name.in"; done
}
template ranks_types >types.h
template ranks_mpi | sed -e '/%DECLARATIONS%/{r types.h' -e 'd}' >ng_mpi.c
{
  printf '#include <mpi.h>\n#include <stddef.h>\n#include <stdint.h>\n'
  cat types.h
} >ng_mpi.h
template ranks_process >process.c
cat ng_mpi.c process.c >whole.c

for mpi in $launchers; do
  for compiler in gcc clang; do
    has $compiler || continue
    OMPI_CC=$compiler MPICH_CC=$compiler "mpicc.$mpi" -std=c11 -O1 -Wall -Wextra -Wpedantic -Wconversion -Wshadow \
      -Wc++-compat -Werror -c whole.c -o whole.o >stdout 2>stderr
    count "the file for mpicc compiles without warnings by $mpi's $compiler"
  done
  "mpicc.$mpi" -std=c11 -Wall -Wextra -Werror -DSTANDALONE -Dng_MPI_MOST_NBYTES=1000 -I. "$here/exchange.c" ng_mpi.c \
    -o "exchange_$mpi" >stdout 2>stderr
  count "a program of its own compiles by $mpi's mpicc"
  for n in $counts; do
    for program in "$exchange" "./exchange_$mpi"; do
      start "$mpi" "$n" "$program"
      [ "$said" -eq 0 ] && [ "$(grep -c "of $n: ok" stdout)" -eq "$n" ] && ! grep -q FAILED stdout
      count "$n ranks of $mpi exchange messages: $(basename "$program")"
    done
  done
  ! $is_quick || continue
  for death in kill exit; do
    start "$mpi" 3 "$exchange" $death 1
    ! grep -q 'rank [02] of' stdout && [ "$said" -ne 124 ]
    count "all ranks of $mpi end where one dies by $death ($took s)"
  done
  NGRAD_MPICC=none start "$mpi" 2 "$exchange"
  [ "$said" -ne 0 ] && grep -q 'no MPI compiler: none is not in PATH; install one (Debian: .*) or set NGRAD_MPICC' stderr
  count "$mpi without mpicc"
  NGRAD_MPICC=false start "$mpi" 2 "$exchange"
  [ "$said" -ne 0 ] && grep -q 'error: /.*/false failed:' stderr
  count "$mpi with an mpicc that fails"
done
if [ "$launchers" = ' openmpi mpich' ]; then
  NGRAD_MPICC=mpicc.mpich start openmpi 2 "$exchange"
  grep -q 'mpirun is of Open MPI and started 2 ranks, but the MPI library knows of 1; set NGRAD_MPICC' stderr
  count "Open MPI's mpirun with MPICH's mpicc"
  NGRAD_MPICC=mpicc.openmpi start mpich 2 "$exchange"
  grep -q 'mpirun is of MPICH and started 2 ranks, but the MPI library knows of 1; set NGRAD_MPICC' stderr
  count "MPICH's mpirun with Open MPI's mpicc"
fi

# ngrad fit --ranks: samples that a network can learn, in batches of 8 leaves and of 5.
cp "$here/../fit/make.yaml" .
cat >net.yaml <<'Y'
format: ngrad/1
name: net
dims: {N: 5}
inputs:
  - {name: x, type: f32, shape: [N, 6]}
  - {name: labels, type: s32, shape: [N]}
state:
  - {name: w1, type: f32, shape: [6, 17], init: {fan_in: 6}}
  - {name: b1, type: f32, shape: [17], init: zeros}
  - {name: w2, type: f32, shape: [17, 3], init: {fan_in: 17}}
nodes:
  - {op: MatMul, inputs: [x, w1, b1], outputs: [hidden]}
  - {op: ReLU, inputs: [hidden], outputs: [active]}
  - {op: MatMul, inputs: [active, w2], outputs: [logits]}
  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}
outputs: [loss, logits]
Y
"$ngrad" run make.yaml --random --out data >log 2>&1
"$ngrad" run make.yaml --random --seed 1 --out other >>log 2>&1
sed 's/203/4000/' make.yaml >many.yaml
"$ngrad" run many.yaml --random --out many >>log 2>&1
cp many/x.npy changed.npy
printf '\0\0\0\0' | dd of=changed.npy bs=1 seek=50580 conv=notrunc 2>>log
for leaves in 1 5 8; do
  "$ngrad" train net.yaml --optimizer adam --learning-rate 0.01 --accumulate $leaves -o leaves$leaves >>log 2>&1
done
sed 's/name: b1.*zeros/&, /; s/17/18/g' net.yaml >wide.yaml
"$ngrad" train wide.yaml --optimizer adam --accumulate 8 -o wide >>log 2>&1
sed 's/\(name: learning_rate.*value: \).*}/\11e38}/' leaves8/net_step.yaml >wild_step.yaml
# Steps of a rate by which weights overflow in the fourth epoch
cat >steep.yaml <<'Y'
format: ngrad/1
name: steep
dims: {N: 5}
inputs: [{name: x, type: f32, shape: [N, 6]}, {name: target, type: f32, shape: [N, 6]}]
state: [{name: w, type: f32, shape: [6, 6], init: {fan_in: 6}}]
nodes:
  - {op: MatMul, inputs: [x, w], outputs: [y]}
  - {op: MeanSquaredError, inputs: [y, target], outputs: [loss]}
outputs: [loss, y]
Y
"$ngrad" train steep.yaml --optimizer sgd --learning-rate 80 --accumulate 8 -o steep >>log 2>&1
[ -s leaves8/net_step.yaml ] && [ -s steep/steep_step.yaml ] && [ -s leaves5/net_step.yaml ] && [ -s wide/net_step.yaml ] && [ -s data/x.npy ]
count 'graphs and samples to train on'
# An input without samples, of which each leaf has a row
sed 's/^name: net/name: scaled/; s/^state:/  - {name: scale, type: f32, shape: [6]}\n&/; s/inputs: \[x, w1/inputs: [scaled, w1/
  s/^nodes:/&\n  - {op: Multiply, inputs: [x, scale], outputs: [scaled]}/' net.yaml >scaled.yaml
"$ngrad" train scaled.yaml --optimizer adam --accumulate 8 -o scaled >>log 2>&1
printf 'format: ngrad/1\nname: rows\ninputs: [{name: x, type: f32, shape: [8, 6]}]\nnodes: [{op: Abs, inputs: [x], outputs: [scale]}]\noutputs: [scale]\n' >rows.yaml
"$ngrad" run rows.yaml --random --out data >>log 2>&1
rm -rf "$XDG_CACHE_HOME"
# The same with weights that are a constant, from files that differ.
sed 's/\[loss, logits\]/[loss]/; /name: w1/d; s/^nodes:/constants: [{name: w1, type: f32, shape: [6, 17], file: w1.npy}]\nnodes:/' net.yaml >frozen.yaml
for seed in 0 1; do
  printf 'format: ngrad/1\nname: w\ninputs: [{name: x, type: f32, shape: [6, 17]}]\nnodes: [{op: Abs, inputs: [x], outputs: [w1]}]\noutputs: [w1]\n' >w.yaml
  "$ngrad" run w.yaml --random --seed $seed --out . >>log 2>&1
  "$ngrad" train frozen.yaml --accumulate 2 -o frozen$seed >>log 2>&1
done

hash_of() { # FILE
  sed -n 's/^sha256 of the states: //p' "$1"
}
alone() { # STEP ARGUMENT...
  step=$1
  shift
  "$ngrad" fit "$step" --in data -q "$@" >stdout 2>stderr
  hash_of stdout
}
fails() { # WHAT PATTERN; all ranks ended with a message that matches
  [ "$said" -ne 0 ] && [ "$said" -ne 124 ] && [ "$(grep -cE "$2" stderr)" -eq 1 ] && ! grep -q '^sha256' stdout
  count "$mpi: $1 ($took s)"
}
step=leaves8/net_step.yaml
whole=$(alone $step --epochs 3)
whole5=$(alone leaves5/net_step.yaml --epochs 3)
scaled=$(alone scaled/scaled_step.yaml --epochs 3)
[ ${#whole} -eq 64 ] && [ ${#whole5} -eq 64 ] && [ ${#scaled} -eq 64 ]
count 'one process has a hash'
"$ngrad" fit $step --in data >stdout 2>stderr && grep -q '^net_step: 200 of 203 samples, 5 steps an epoch of 40 samples' stdout
count 'samples that are no multiple of the leaves'
steep_fails=$(alone steep/steep_step.yaml --input target=data/x.npy --epochs 9; sed -n 's/^error: step \([0-9]*\) of epoch 4 is the first.*/\1/p' stderr)
[ -n "$steep_fails" ]
count 'one process tells the step that makes a number that is not finite'
# The library with another version of as many digits
library=$(ldd "$ngrad" | sed -n 's/.*=> \(.*libngrad[^ ]*\) .*/\1/p')
version=$("$ngrad" --version | sed -n '1s/^ngrad //p')
sed "s/$(echo "$version" | sed 's/[.]/\\./g')/$(echo "$version" | tr 0-8 9)/g" "$library" >other_ngrad.so
isas=$("$ngrad" --version | sed -n 's/^instruction sets: //p')

# Each rank's process id is in pids, in the order of ranks, so that signals can be sent to one of them.
cat >numbered.sh <<'S'
#!/bin/sh
echo $$ >"pid.${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"
exec "$@"
S
chmod +x numbered.sh

train_forever() { # MPI RANKS OUT; returns when an epoch is done
  rm -f pid.*
  # shellcheck disable=SC2016 # expanded by the inner shell
  sh -c 'echo $$ >pid.mpirun; exec "$@"' sh "mpirun.$1" -np "$2" ./numbered.sh "$ngrad" fit $step --in data --ranks --epochs 100000000 -o "$3" \
    >stdout 2>stderr </dev/null &
  child=$!
  for _ in $(seq 300); do
    grep -q '^epoch 2: ' stdout && break
    sleep 0.1
  done
}
await_end() { # sets $said, $took
  began=$(date +%s)
  said=0
  wait $child || said=$?
  took=$(($(date +%s) - began))
}
none_left() { # but processes that have ended, which nobody may have waited for
  for _ in $(seq 20); do
    cat pid.* | while read -r id; do cat "/proc/$id/status"; done 2>/dev/null | grep '^State:' | grep -qv Z || return 0
    sleep 0.1
  done
  return 1
}

for mpi in $launchers; do
  for n in $counts; do
    start "$mpi" "$n" "$ngrad" fit $step --in data --ranks --epochs 3 -q
    [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$whole" ] && [ "$(wc -l <stdout)" -eq 2 ] && [ ! -s stderr ]
    count "$mpi: the same bits on $n ranks"
  done
  if $is_quick; then
    start "$mpi" 1 "$ngrad" fit $step --ranks --in data : -np 1 "$ngrad" fit $step --ranks --in data --input x=other/x.npy
    fails 'other data' '^error: ranks differ from rank 0 in the data of x \(rank 1\)$'
    continue
  fi
  start "$mpi" 7 "$ngrad" fit leaves5/net_step.yaml --in data --ranks --epochs 3 -q
  [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$whole5" ]
  count "$mpi: the same bits of 5 leaves on 7 ranks"
  for n in 2 3 9; do
    start "$mpi" "$n" "$ngrad" fit scaled/scaled_step.yaml --in data --ranks --epochs 3 -q
    [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$scaled" ]
    count "$mpi: the same bits on $n ranks that take their leaves of an input without samples"
  done
  # Other ranks may have another instruction set and another number of threads.
  mixed="$ngrad fit $step --in data --ranks --epochs 3 -q --threads 2"
  others=
  for isa in $isas; do others="$others : -np 1 $mixed --isa $isa"; done
  # shellcheck disable=SC2086 # several words
  start "$mpi" 1 $mixed --isa scalar --threads 1 $others
  [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$whole" ]
  count "$mpi: the same bits on ranks with scalar, $isas"
  start "$mpi" 3 "$ngrad" fit $step --in data --test data --ranks --json --epochs 2
  [ "$said" -eq 0 ] && [ "$(grep -c '"event":"epoch".*"test":{"loss"' stdout)" -eq 2 ] && grep -q '"event":"begin".*"ranks":3' stdout
  count "$mpi: rank 0 alone tests and tells"

  # Stopped, and resumed on another number of ranks
  for from in 3 1; do
    rm -rf parts
    start "$mpi" $from "$ngrad" fit $step --in data --ranks --steps 7 -o parts -q
    start "$mpi" $((5 - from)) "$ngrad" fit $step --in data --ranks --epochs 3 -o parts --resume -q
    [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$whole" ]
    count "$mpi: the same bits when $from ranks stop and $((5 - from)) go on"
  done
  [ "$(alone $step --epochs 4)" = "$(alone $step --epochs 4 -o parts --resume)" ]
  count "$mpi: the same bits when one process goes on"
  for rank in 0 2 mpirun; do
    rm -rf stopped
    train_forever "$mpi" 3 stopped
    kill -TERM "$(cat pid.$rank)"
    await_end
    steps=$(sed -n 's/^stopped.net.npz has step //p' stdout)
    # Open MPI's mpirun kills its ranks a second after a signal, perhaps before they have saved.
    [ "$mpi $rank" != 'openmpi mpirun' ] ||
      steps=$("$ngrad" fit $step --in data --steps 1 -o stopped --resume | sed -n 's/^resumed at step //p')
    [ -n "$steps" ] && [ "$said" -ne 0 ] && none_left
    count "$mpi: a signal to $rank stops all, and training can go on ($took s)"
    [ "$(alone $step --steps $((steps + 3)) -o stopped --resume)" = "$(alone $step --steps $((steps + 3)))" ]
    count "$mpi: the same bits after a signal to $rank"
  done

  # What fails on one rank ends all.
  for rank in 0 1; do
    rm -rf killed
    train_forever "$mpi" 3 killed
    kill -KILL "$(cat pid.$rank)"
    await_end
    [ "$said" -ne 0 ] && none_left && ! grep -q '^sha256' stdout
    count "$mpi: all ranks end when rank $rank is killed ($took s)"
    start "$mpi" 2 "$ngrad" fit $step --in data --ranks --epochs 1 -o killed --resume -q
    [ "$said" -eq 0 ] && [ -n "$(hash_of stdout)" ]
    count "$mpi: the last checkpoint is there when rank $rank is killed"
  done
  fit="$ngrad fit $step --ranks --epochs 3"
  many="$ngrad fit leaves8/net_step.yaml --ranks --in many"
  # shellcheck disable=SC2086 # several words
  {
    start "$mpi" 2 $fit --in data : -np 1 "$ngrad" fit wide/net_step.yaml --ranks --epochs 3 --in data
    fails 'another graph' '^error: ranks differ from rank 0 in the graph leaves8/net_step.yaml \(rank 2\)$'
    start "$mpi" 2 $fit --in data : -np 1 env LD_PRELOAD="$PWD/other_ngrad.so" $fit --in data
    fails 'another ngrad' "^error: ranks differ from rank 0 in ngrad's version \(rank 2\)$"
    start "$mpi" 1 $fit --in data : -np 2 $fit --in data --seed 4 : -np 1 $fit --in data --steps 9
    fails 'another seed' '^error: ranks differ from rank 0 in --seed \(ranks 1, 2\); --steps \(rank 3\)$'
    start "$mpi" 1 $fit --in data : -np 3 $fit --in data --input x=other/x.npy
    fails 'other data' '^error: ranks differ from rank 0 in the data of x \(ranks 1 to 3\)$'
    start "$mpi" 1 $many : -np 1 $many --input x=changed.npy
    fails 'one other number' '^error: ranks differ from rank 0 in the data of x \(rank 1\)$'
    start "$mpi" 1 $fit --in data : -np 1 $fit --in data --drop-last --batch 80
    fails 'another batch' '^error: ranks differ from rank 0 in the batch \(rank 1\); the number of samples \(rank 1\)$'
    start "$mpi" 1 $fit --in data : -np 1 $fit --in data --fast-math
    fails 'other passes' '^error: ranks differ from rank 0 in the options for passes \(rank 1\)$'
    start "$mpi" 1 "$ngrad" fit frozen0/net_step.yaml --ranks --in data : -np 1 "$ngrad" fit frozen1/net_step.yaml --ranks --in data
    fails 'another file of a constant' '^error: ranks differ from rank 0 in the file w1.npy \(rank 1\)$'
    start "$mpi" 1 $fit --in data : -np 1 $fit --in none
    fails 'no data' '^rank 1: error: no data for x: expected none/x.npy'
    start "$mpi" 1 $fit --in none : -np 1 $fit --in data
    fails 'no data on rank 0' '^error: no data for x: expected none/x.npy'
    start "$mpi" 1 $fit --in data --state parts/net.npz : -np 1 $fit --in data
    fails 'other states' '^error: ranks differ from rank 0 in the states before training \(rank 1\)$'
    start "$mpi" 1 $fit --in data : -np 1 env NGRAD_MPICC=none $fit --in data
    fails 'no mpicc for one rank' '^error: no MPI compiler: none is not in PATH'
    start "$mpi" 1 $fit --in data : -np 1 $fit --in data --resume
    fails 'a wrong option' '^rank 1: error: --resume: expected --out DIR'
    # What is wrong before MPI has begun
    for wrong in --unknown '--steps x' '--threads 9999999' --in; do
      start "$mpi" 1 $fit --in data : -np 1 $fit $wrong : -np 1 $fit --in data
      fails "a rank with $wrong" '^error: (unknown option --unknown|--[a-z]*: expected)'
    done
    start "$mpi" 1 $fit --unknown : -np 2 $fit --in data
    fails 'an unknown option of rank 0' '^error: unknown option --unknown'
    without="$ngrad fit $step --epochs 3 --in data -q"
    start "$mpi" 2 $fit --in data : -np 1 $without
    fails 'a rank without --ranks' '^error: mpirun started 3 processes: expected --ranks'
    start "$mpi" 2 $without
    [ "$said" -ne 0 ] && grep -q '^error: mpirun started 2 processes: expected --ranks' stderr
    count "$mpi: no rank has --ranks"
    start "$mpi" 2 env -u PMI_SIZE -u OMPI_COMM_WORLD_SIZE $without
    [ "$said" -eq 0 ] && [ "$(grep -c "^sha256 of the states: $whole" stdout)" -eq 2 ]
    count "$mpi: trainings of their own"
    start "$mpi" 1 $without
    [ "$said" -eq 0 ] && [ "$(hash_of stdout)" = "$whole" ]
    count "$mpi: one process without --ranks"
    start "$mpi" 1 $fit --in data : -np 1 $fit --in data --max-memory 10K
    fails 'too little memory' '^note: the memory budget is 10.0 kB'
    if [ "$launchers" = ' openmpi mpich' ]; then
      other=mpich
      [ "$mpi" = openmpi ] || other=openmpi
      start "$mpi" 1 $fit --in data : -np 1 env NGRAD_MPICC=mpicc.$other $fit --in data
      fails 'a rank with another MPI' 'the MPI library knows of 1; set NGRAD_MPICC to the mpicc of the same MPI$'
    fi
    start "$mpi" 2 $fit --in data --input x=data/logarithm.npy
    fails 'data that are not finite' '^error: x: sample [0-9]+ of its data has -inf$'
    start "$mpi" 3 "$ngrad" fit wild_step.yaml --ranks --in data --epochs 3
    fails 'a number that is not finite' '^wild_step.yaml:[0-9:]* error: [A-Za-z0-9]+ computes (NaN|an infinity) from'
    # Rank 0's checkpoint, if it has one, is where all go back to.
    steep="$ngrad fit steep/steep_step.yaml --ranks --in data --input target=data/x.npy --epochs 9 -q"
    for outs in '-osaved:' ':-oothers' '-osaved:-oothers'; do
      rm -rf saved
      start "$mpi" 1 $steep ${outs%:*} : -np 2 $steep ${outs#*:}
      fails "a number that is not finite where ranks have $outs" "^error: step $steep_fails of epoch 4 is the first that makes such a number$"
    done
    start "$mpi" 2 "$ngrad" fit leaves1/net_step.yaml --ranks --in data
    fails 'a graph without leaves' '^error: --ranks: .* has no leaves to divide among ranks; ngrad train --accumulate N, for N of 2 or more, writes'
  }
  # shellcheck disable=SC2086 # several words
  if has gcc; then
    printf 'const char *ng_version(void);\nconst char *ng_version(void) { return "0.0.9"; }\n' >version.c
    gcc -shared -fPIC version.c -o version.so
    start "$mpi" 2 $fit --in data : -np 1 env LD_PRELOAD=./version.so $fit --in data
    fails "another ngrad" "^error: ranks differ from rank 0 in ngrad's version \(rank 2\)$"
  fi
done
expect_alone=$("$ngrad" fit $step --in data --epochs 3 --ranks -q 2>stderr | sed -n 's/^sha256 of the states: //p')
[ "$expect_alone" = "$whole" ] && [ ! -s stderr ]
count 'one rank without mpirun'
for wrong in -3 0 x; do
  [ "$(PMI_SIZE=$wrong "$ngrad" fit $step --in data --epochs 3 -q 2>stderr | sed -n 's/^sha256 of the states: //p')" = "$whole" ] && [ ! -s stderr ]
  count "a number of ranks that is none: $wrong"
done

# Emitted C
"$ngrad" train net.yaml --optimizer adam --accumulate 8 --threads none -o c >stdout 2>stderr
count 'C of a step with leaves'
gcc -std=c11 $level -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -Ic -c c/net.c -o net.o >stdout 2>stderr &&
  gcc -std=c11 $level -Wall -Wextra -Werror -Ic "$here/emitted.c" net.o -lm -o alone >stdout 2>stderr && ./alone alone.npz >stdout
count 'C of one process'
for mpi in $launchers; do
  "mpicc.$mpi" -std=c11 $level -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror -DUSES_MPI -Ic "$here/emitted.c" net.o c/net_mpi.c \
    -lm -o "ranks_$mpi" >stdout 2>stderr
  count "C of ranks compiles by $mpi's mpicc without warnings"
  for n in $emitted_counts; do
    rm -f ranks.npz
    start "$mpi" "$n" "./ranks_$mpi" ranks.npz
    [ "$said" -eq 0 ] && cmp -s ranks.npz alone.npz
    count "$mpi: the same file from C on $n ranks"
  done
done

# Of an input without leaves every rank gives all indices, and all are checked.
cat >common.yaml <<'Y'
format: ngrad/1
name: common
leaves: 4
inputs:
  - {name: x, type: s32, shape: [4, 3]}
  - {name: index, type: s32, shape: [3]}
  - {name: table, type: s32, shape: [5]}
nodes:
  - {op: Leaf, inputs: [x], outputs: [leaf]}
  - {op: AllReduce, inputs: [leaf], outputs: [sum]}
  - {op: Gather, inputs: [table, index], outputs: [rows], attributes: {axis: 0}}
  - {op: Add, inputs: [sum, rows], outputs: [y]}
outputs: [y]
Y
cat >common.c <<'C'
#include "c/common.h"
int main(void) {
  static _Alignas(64) unsigned char workspace[common_WORKSPACE_NBYTES + 1];
  const int32_t x[12] = {0}, table[5] = {0}, index[3] = {0, 0, 5};
  int32_t y[3];
  return common(x, index, table, y, workspace, sizeof workspace, common_ISA_BEST, NULL) != common_INDEX_OUT_OF_RANGE;
}
C
"$ngrad" emit common.yaml --threads none -o c >stdout 2>stderr &&
  gcc -std=c11 $level -Wall -Wextra -Werror common.c c/common.c -lm -o common >stdout 2>stderr && ./common >stdout
count 'C checks all indices of an input without leaves'
for loss in mse bce; do
  printf 'format: ngrad/1\nname: %s\ndims: {N: 5}\ninputs: [{name: x, type: f32, shape: [N, 6]}]\nstate: [{name: w, type: f32, shape: [6, 2], init: {fan_in: 6}}]\nnodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]\noutputs: [y]\n' $loss >$loss.yaml
  "$ngrad" train $loss.yaml --loss $loss --accumulate 4 --threads none -o c >stdout 2>stderr &&
    gcc -std=c11 $level -Wall -Wextra -Wshadow -Werror -c c/$loss.c -o $loss.o >stdout 2>stderr
  count "C of a step with the input that --loss $loss adds"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
