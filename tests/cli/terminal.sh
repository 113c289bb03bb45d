#!/bin/sh
# What a terminal shows: a line of progress while work takes more than a second, which is erased at the end and by
# Ctrl-C; Ctrl-C also leaves no file. script(1) is the terminal.
set -u
ngrad=$(realpath "$1")
modules=$(realpath "$(dirname "$0")/../../frontend/python")
command -v script >/dev/null || { echo 'left out: terminal: no script(1)' && exit 77; }
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
mkdir "$work/tmp" && cd "$work" || exit 1
export TMPDIR="$work/tmp" XDG_CACHE_HOME="$work/cache" TERM=xterm NO_COLOR=1
PATH=$(dirname "$ngrad"):$PATH
failed=0

complain() { # WHAT
  failed=1
  echo "$1"
  tr '\r\033' '\n^' <screen | tail -n 20 | sed 's/^/  /'
}
escape=$(printf '\033')
# The lines that stay: of each, what follows the last time that it was taken away.
stays() {
  tr -d '\r' <screen | sed "s/.*$escape\[K//"
}
on_terminal() { # COMMAND; its status, and the screen in a file
  script -qec "$1" /dev/null <"${typed:-/dev/null}" >screen 2>&1
}
# What is slow waits until the progress is seen, however busy the machine is.
shows() { # PROGRESS COMMAND
  export PROGRESS="$1"
  : >screen
  on_terminal "$2" || complain "$2: status $?"
  grep -q "$1" screen || complain "$2: does not show $1"
  ! stays | grep -q "$1" || complain "$2: $1 stays"
}

cat >sum.yaml <<'Y'
format: ngrad/1
dims: {N: 4}
inputs: [{name: a, type: f32, shape: [N, 3]}, {name: b, type: f32, shape: [3]}]
nodes: [{op: Add, inputs: [a, b], outputs: [c]}]
outputs: [c]
Y
cat >wait-for-progress <<'S'
#!/bin/sh
[ -n "${PROGRESS-}" ] || exec sleep 1.3
for _ in $(seq 300); do
  grep -q "$PROGRESS" screen && exit
  sleep 0.2
done
S
cat >late <<'S'
#!/bin/sh
./wait-for-progress
exec cat "$@"
S
cat >slow-cc <<'S'
#!/bin/sh
./wait-for-progress
exec cc "$@"
S
chmod +x wait-for-progress late slow-cc

# Reading, as every verb does.
for verb in check show convert grad; do
  shows "$verb -: 1 s" "./late sum.yaml | ngrad $verb -"
  stays | grep -q '^format: ngrad/1' || complain "$verb: the graph does not begin a line"
done
shows 'emit -: 1 s' './late sum.yaml | ngrad emit - -o emitted'
stays | grep -q '^wrote emitted/' || complain 'emit: what was written does not begin a line'
# Compiling
shows 'compiling 1 kernel of sum: 1 s' 'CC=./slow-cc ngrad run sum.yaml --random'
stays | grep -q '^output' || complain 'run: the table does not begin a line'
shows 'compiling 1 kernel of sum: 1 s' 'CC=./slow-cc ngrad bench sum.yaml --dim N=5 --seconds 0.01'
sed 's/^inputs:/name: net\ninputs:/; s/{name: b, type/{name: x, type/; s/\[a, b\]/[a, w]/
  s/^nodes/state: [{name: w, type: f32, shape: [3], init: ones}]\nnodes/
  s/outputs: \[c\]}\]/outputs: [c]}, {op: ReduceSum, inputs: [c], outputs: [loss], attributes: {axes: [0, 1]}}]/
  s/^outputs.*/outputs: [loss]/; s/, {name: x[^}]*}//' sum.yaml >net.yaml
shows 'train -: 1 s' './late net.yaml | ngrad train - -o .'
ngrad train net.yaml -o . >/dev/null 2>&1 || complain 'train'
printf '\0\0\010\002\0\0\0\005\0\0\0\003abcdefghijklmno' >a.idx
shows 'compiling [0-9]* kernels* of net_step: 1 s' 'CC=./slow-cc ngrad fit net_step.yaml --input a=a.idx'
for python in python3 /usr/bin/python3; do
  ! grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$(dirname "$ngrad")/CMakeCache.txt" || break
  "$python" -c 'import numpy' 2>/dev/null || continue
  NGRAD_LIBRARY=$(dirname "$ngrad")/libngrad.so PYTHONPATH=$modules
  export NGRAD_LIBRARY PYTHONPATH PYTHONDONTWRITEBYTECODE=1
  shows 'compiling 1 kernel of sum' "CC=./slow-cc $python -c 'import ngrad; ngrad.load(\"sum.yaml\").with_dims(N=6).compile()'"
  break
done
# None where nobody would see it, or it could not be taken away.
PROGRESS=
on_terminal './late sum.yaml | ngrad check - 2>/dev/null'
! grep -q 'check -:' screen || complain 'what is no terminal gets progress'
on_terminal './late sum.yaml | TERM=dumb ngrad check -'
! grep -q 'check -:' screen || complain 'a dumb terminal gets progress'

# Ctrl-C, as soon as the progress is there: a busy machine may compile for longer than one would guess.
mkfifo keys
press() { # PROGRESS
  for _ in $(seq 300); do
    grep -q "$1" screen && break
    sleep 0.2
  done
  printf '\003' && sleep 1
}
interrupt() { # PROGRESS COMMAND
  : >screen
  press "$1" >keys &
  typed=keys
  on_terminal "$2"
  status=$?
  typed=
  wait
  [ $status -eq 130 ] || complain "$2: expected to end by SIGINT, found status $status"
  grep -q "$1" screen || complain "$2: does not show $1"
  ! stays | grep -q "$1" || complain "$2: $1 stays"
  [ -z "$(ls tmp)" ] || complain "$2: leaves $(ls tmp)"
}
cat >product.yaml <<'Y'
format: ngrad/1
dims: {N: 400}
inputs: [{name: a, type: f32, shape: [N, N]}, {name: b, type: f32, shape: [N, N]}]
nodes: [{op: MatMul, inputs: [a, b], outputs: [c]}]
outputs: [c]
Y
interrupt 'interpreting [0-9]*%' 'ngrad run product.yaml --dim N=3000 --random --backend interpreter'
interrupt 'checking gradients [0-9]*%' 'ngrad gradcheck product.yaml --dim N=500'
interrupt 'timing sum' 'ngrad bench sum.yaml --seconds 30'
interrupt 'timing in turns' 'ngrad bench sum.yaml sum.yaml --seconds 30'
interrupt 'timing in turns' 'ngrad bench sum.yaml --with ngrad --seconds 30'
interrupt 'steps/s, .* left' 'ngrad fit net_step.yaml --input a=a.idx --epochs 1000000000 --out fitted'
[ -s fitted/net.npz ] || complain 'fit: a run that is interrupted is not saved'
sed -i 's/.*wait-for.*/sleep 100/' slow-cc
interrupt 'compiling 1 kernel of sum' 'CC=./slow-cc ngrad run sum.yaml --random --dim N=7'
exit $failed
