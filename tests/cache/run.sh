#!/bin/sh
# The cache of kernels on file systems that cannot hold it, with several processes at once, and after runs that were
# killed or interrupted. Mounts are made in a separate namespace; without permission for that, those cases are left out.
set -u
ngrad=$(realpath "$1")
models=$(realpath "$(dirname "$0")/../../models")
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
told='stdout stderr'
XDG_CACHE_HOME=$work/cache TMPDIR=$work/tmp
export XDG_CACHE_HOME TMPDIR
mkdir tmp
unset CC NO_COLOR
is_empty() { [ -z "$(ls -A "$1" 2>/dev/null)" ]; }

cat >sum.yaml <<'Y'
format: ngrad/1
name: sum
inputs: [{name: a, type: f32, shape: [4, 3]}, {name: b, type: f32, shape: [3]}]
nodes: [{op: Add, inputs: [a, b], outputs: [c]}]
outputs: [c]
Y
sed 's/Add/Multiply/' sum.yaml >product.yaml
sed 's/\[4, 3\]/[8000000, 3]/' sum.yaml >large.yaml

# Several at once, of which each finds or makes the same entries
for i in 1 2 3 4; do
  "$ngrad" run sum.yaml --random --compare >"out$i" 2>&1 &
  eval "run$i=$!"
  "$ngrad" bench sum.yaml product.yaml --seconds 0.01 --threads 1 >"bench$i" 2>&1 &
  eval "bench$i=$!"
done
ok=0
for i in 1 2 3 4; do
  eval "wait \$run$i" && eval "wait \$bench$i" || ok=1
done
cat out? bench? >stdout
: >stderr
[ "$ok" -eq 0 ] && ! grep -q 'warning: \|error: ' stdout && [ "$(find cache/ngrad | wc -l)" -eq 3 ]
count 'processes that compile the same at once'

# Signals: no temporary file, no compiler, and the status of the signal
cat >slow-cc <<'C'
#!/bin/sh
sh -c "echo \$\$ >$PWD/child; exec sleep 1000"
C
chmod +x slow-cc
wait_for() { # FILE
  for _ in $(seq 300); do
    [ -s "$1" ] && return
    sleep 0.05
  done
  return 1
}
is_gone() { # PID
  for _ in $(seq 100); do
    kill -0 "$1" 2>/dev/null && ! grep -q '^State:.Z' "/proc/$1/status" 2>/dev/null || return 0
    sleep 0.05
  done
  return 1
}
# A shell starts what is in the background with SIGINT ignored; env resets it.
interrupt() { # SIGNAL STATUS ARGUMENT...
  signal=$1 status=$2
  shift 2
  rm -rf child cache
  CC=$work/slow-cc env --default-signal=INT "$ngrad" "$@" >stdout 2>stderr &
  pid=$!
  wait_for child
  kill -s "$signal" "$pid"
  wait "$pid" 2>/dev/null
  [ "$?" -eq "$status" ] && is_gone "$(cat child)" && is_empty cache/ngrad && is_empty tmp && [ ! -s stderr ]
  count "SIG$signal while $1 compiles"
}
interrupt TERM 143 run sum.yaml --random
interrupt INT 130 run sum.yaml --random
interrupt HUP 129 bench sum.yaml
XDG_CACHE_HOME=/proc/none interrupt TERM 143 run sum.yaml --random --json
rm -rf child cache
(
  trap '' INT
  CC=$work/slow-cc exec "$ngrad" run sum.yaml --random
) >stdout 2>stderr &
pid=$!
wait_for child
kill -s INT "$pid"
sleep 0.2
kill -0 "$pid"
count 'a signal that is ignored stays so'
kill -s TERM "$pid"
wait "$pid" 2>/dev/null

# While outputs are written: whole or not there
mkdir out emitted
for delay in 0.05 0.1 0.2 0.3 0.5 0.8; do
  "$ngrad" run large.yaml --random --backend interpreter --out out >stdout 2>stderr &
  pid=$!
  for _ in $(seq 400); do # from when it writes
    is_empty out || break
    kill -0 "$pid" 2>/dev/null || break
    sleep 0.01
  done
  kill -s TERM "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  [ -z "$(find out -name '*.tmp')" ]
  count "SIGTERM while outputs are written leaves no part"
  rm -f out/*
  "$ngrad" emit "$models/transformer_mlp_backward.yaml" -o emitted >stdout 2>stderr &
  pid=$!
  sleep "$delay"
  kill -s TERM "$pid" 2>/dev/null
  wait "$pid" 2>/dev/null
  [ -z "$(find emitted -name '*.tmp')" ]
  count "SIGTERM after $delay s of emitting leaves no part"
done

# What kill -9 leaves goes with the next run
rm -rf child cache
CC=$work/slow-cc "$ngrad" run sum.yaml --random >stdout 2>stderr &
pid=$!
wait_for child
kill -9 "$pid"
wait "$pid" 2>/dev/null
kill "$(cat child)"
[ "$(find cache/ngrad -name '*.tmp' | wc -l)" -eq 1 ] && "$ngrad" run sum.yaml --random >stdout 2>stderr &&
  [ "$(find cache/ngrad -name '*.tmp' | wc -l)" -eq 0 ]
count 'the folder of a killed run is swept'

# File systems of no use
if unshare -rm sh -c "mount -t tmpfs none '$work/tmp'" 2>/dev/null; then
  mounted() { # WHAT OPTIONS COMMAND
    unshare -rm sh -c "mount -t tmpfs -o '$2' none '$work/cache' && $3" >stdout 2>stderr
    count "$1"
  }
  run="'$ngrad' run sum.yaml --random"
  once="grep -c 'warning: compiled kernels cannot be cached in' told | grep -qx 1 && grep -q"
  mkdir -p cache
  mounted 'a full cache is told and worked around' size=64k \
    "mkdir -m 700 cache/ngrad; head -c 1M /dev/zero >cache/ngrad/full 2>/dev/null; $run 2>told && $once 'No space left' told"
  for size in 4k 8k 12k 16k 20k 24k; do # for the folder, the source, what the compiler makes of it, or the seal
    mounted "a cache of $size is worked around" size=$size \
      "mkdir -m 700 cache/ngrad; $run 2>told && $once 'No space left' told"
  done
  mounted 'a cache without inodes is worked around' nr_inodes=2 \
    "mkdir -m 700 cache/ngrad; $run 2>told && $once 'No space left' told"
  mounted 'a cache that lets no code run is worked around' noexec "$run 2>told && $once noexec told && $run 2>told && $once noexec told"
  mounted 'it is told once for several graphs' noexec \
    "'$ngrad' bench sum.yaml product.yaml --seconds 0.01 2>told && $once noexec told"
  mounted 'a cache that is read-only is read' size=10m \
    "$run && mount -o remount,ro '$work/cache' && $run 2>told | grep -q 'compiled before' && [ ! -s told ] &&
     '$ngrad' run product.yaml --random 2>told && $once 'Read-only file system' told"
  mounted 'a compiler that fails is told, not the file system' size=10m \
    "! CC=false $run 2>told && ! grep -q warning told && grep -q 'false failed' told"
  # The program and the graph may lie in a folder that is covered, so both are also seen elsewhere.
  noexec="for folder in '$work/cache' '$work/tmp' /tmp /dev/shm /var/tmp; do mount -t tmpfs -o noexec none \$folder || exit 1; done"
  mounted 'where no folder lets code run, it runs from memory' size=10m \
    "unset XDG_RUNTIME_DIR; mount --bind '$(dirname "$ngrad")' /mnt && exec 3<sum.yaml && $noexec && /mnt/ngrad run - --random --compare <&3"
else
  echo 'left out: cache: full, read-only and noexec file systems, which cannot be mounted here'
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
