#!/bin/sh
# The command line: exit statuses, stdout and stderr, files, and C that compiles without warnings.
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
models=$(realpath "$here/../../models")
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
told='stdout stderr'
unset CC NO_COLOR
XDG_CACHE_HOME=$work/cache

# Runs ngrad; its exit status must be STATUS, and a line of stdout and one of stderr must match. An empty pattern
# wants nothing there, '.*' wants anything or nothing.
matches() { # FILE PATTERN
  if [ -z "$2" ]; then [ ! -s "$1" ]; else [ "$2" = '.*' ] || grep -qE -- "$2" "$1"; fi
}
expect() { # STATUS STDOUT STDERR ARGUMENT...
  status=$1 out=$2 err=$3
  shift 3
  said=0
  "$ngrad" "$@" >stdout 2>stderr </dev/null || said=$?
  { [ "$said" -eq "$status" ] && matches stdout "$out" && matches stderr "$err" && ! grep -q "$(printf '\033')" stdout stderr; }
  count "ngrad $* (status $said, expected $status)"
}

cat >sum.yaml <<'Y'
format: ngrad/1
name: sum
dims: {N: 4}
inputs:
  - {name: a, type: f32, shape: [N, 3]}
  - {name: b, type: f32, shape: [3]}
nodes:
  - {op: Add, inputs: [a, b], outputs: [c]}
outputs: [c]
Y
cat >state.yaml <<'Y'
format: ngrad/1
name: state
state:
  - {name: w, type: f32, shape: [3], init: {fan_in: 3}}
nodes:
  - {op: Square, inputs: [w], outputs: [w_next]}
outputs: []
updates: {w: w_next}
Y
sed 's/dims: {N: 4}/dims: {N: ~}/' sum.yaml >open.yaml
sed 's/Add/Ad/' sum.yaml >wrong.yaml
sed 's|outputs: \[c\]|outputs: [../c%]|' sum.yaml >escaping.yaml
cp sum.yaml ./-odd.yaml

# A graph that needs more memory than there is: a message and exit status 1, whatever is to be done with it.
cat >large.yaml <<'Y'
format: ngrad/1
name: large
dims: {N: 4000000000}
inputs: [{name: x, type: f32, shape: [N]}]
nodes:
  - {op: Tanh, inputs: [x], outputs: [y]}
outputs: [y]
Y
{
  printf 'format: ngrad/1\nname: doubling\ninputs: [{name: v0, type: f32, shape: [1024]}]\nnodes:\n'
  for i in $(seq 0 29); do
    echo "  - {op: Concat, inputs: [v$i, v$i], outputs: [v$((i + 1))], attributes: {axis: 0}}"
  done
  echo 'outputs: [v30]'
} >doubling.yaml
cat >sparse.yaml <<'Y'
format: ngrad/1
name: sparse
inputs: [{name: x, type: f32, shape: [4]}]
constants: [{name: c, type: f32, file: sparse.npy}]
nodes:
  - {op: ReduceSum, inputs: [c], outputs: [s], attributes: {axes: [0]}}
  - {op: Add, inputs: [x, s], outputs: [y]}
outputs: [y]
Y
printf "\223NUMPY\001\000\166\000%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (800000000,), }" >sparse.npy
truncate -s 3200000128 sparse.npy
needs='needs .* more than the memory budget of 2.0 GB'
expect 1 '' "error: running large $needs" run large.yaml --random --max-memory 2G
expect 1 '' "error: running large $needs" run large.yaml --random --max-memory 2G --backend interpreter
expect 1 '' "error: running large $needs" run large.yaml --random --max-memory 2G --compare
expect 1 '.*' "error: timing large $needs" bench large.yaml --max-memory 2G
expect 1 '' "error: checking the gradient of large $needs" gradcheck large.yaml --max-memory 2G
expect 1 '' "error: .* $needs" emit large.yaml -o emitted --dim N=4000000000 --self-test --max-memory 2G
expect 0 'N: 4000000000' '' convert large.yaml --max-memory 2G
expect 0 '^# memory: inputs 16000000000, outputs 16000000000, constants 0 bytes' '' check large.yaml --max-memory 2G
expect 0 '"compiled_run_bytes": 32000000000' '' check large.yaml --json
expect 0 '^# compiling: [1-9][0-9]* steps, [1-9][0-9]* bytes of C' '' check large.yaml
expect 1 '.*' 'error: large takes more than 300 steps to compile; .*--max-steps' check large.yaml --max-steps 300
expect 1 '' 'error: large takes more than 300 steps to compile; .*--max-steps' show large.yaml --format c --max-steps 300
expect 1 '' "error: running doubling $needs" run doubling.yaml --random --max-memory 2G
expect 0 'outputs: \[v30\]' '' show doubling.yaml --max-memory 2G
# report compiles once, in 420,000 steps; a compilation for each of its parts took 1,320,000.
awk 'BEGIN {
  print "format: ngrad/1\nname: chain\ninputs: [{name: v0, type: f32, shape: [16, 32]}, {name: b, type: f32, shape: [32]}]\nnodes:"
  for (i = 0; i < 3000; i += 3) {
    printf "- {op: Add, inputs: [v%d, b], outputs: [v%d]}\n- {op: Multiply, inputs: [v%d, b], outputs: [v%d]}\n", i, i + 1, i + 1, i + 2
    printf "- {op: ReLU, inputs: [v%d], outputs: [v%d]}\n", i + 2, i + 3
  }
  print "outputs: [v3000]"
}' >chain.yaml
expect 0 '' '.*' report chain.yaml --no-times -o chain.html --max-steps 600000
for verb in check run show bench convert grad gradcheck; do
  expect 1 '.*' 'sparse.npy: no memory for 3200000000 bytes' $verb sparse.yaml --max-memory 2G
done
grep -q '^note: the memory budget is 2.0 GB; raise it with --max-memory' stderr
count 'a budget that was exceeded is told'
expect 1 '' 'error: running sum needs .* more than the memory budget of 100.0 kB' \
  run sum.yaml --random --dim N=20000 --max-memory 100kB
expect 2 '' '--max-memory: expected a number of bytes' run sum.yaml --max-memory 2X
expect 2 '' '--max-memory: expected a number of bytes' run sum.yaml --max-memory 0
expect 0 'wrote converted.yaml' '' convert sum.yaml --max-memory 1.5GiB -o converted.yaml

# The same where the process itself is limited, and no budget is said. Sanitizers need more addresses than that.
# shellcheck disable=SC3045 # the shells that stand for sh here have ulimit -v
if (ulimit -v 2000000 && "$ngrad" --version) >/dev/null 2>&1; then
  limited=$ngrad
  cat >with_limit <<S
#!/bin/sh
ulimit -v 2000000
exec "$limited" "\$@"
S
  chmod +x with_limit
  ngrad=$work/with_limit
  expect 1 '' 'error: running large needs' run large.yaml --random
  expect 1 '' 'error: running large needs' run large.yaml --random --backend interpreter
  expect 1 '' 'error: running doubling needs' run doubling.yaml --random
  expect 1 '' 'no memory for 3200000000 bytes' run sparse.yaml --random
  expect 1 '' 'error: checking the gradient of large needs' gradcheck large.yaml
  # A budget that is more than there is: the system refuses.
  expect 1 '' 'out of memory' run large.yaml --random --max-memory 1T
  ngrad=$limited
fi

# Usage
expect 2 '' 'usage: ngrad VERB'
expect 0 'usage: ngrad VERB' '' --help
expect 0 '^instruction sets:.* scalar' '' --version
for verb in $("$ngrad" --help | sed -n '/^verbs:/,/^$/s/^  \([a-z]*\)  .*/\1/p'); do
  expect 0 "usage: ngrad $verb" '' "$verb" --help
  grep -q 'exit status:' stdout && grep -q 'example:' stdout
  count "$verb --help is complete"
  ! LC_ALL=C.UTF-8 grep -E '.{81}' stdout >stderr
  count "lines of $verb --help have at most 80 columns"
done
"$ngrad" --help >stdout && ! LC_ALL=C.UTF-8 grep -E '.{81}' stdout >stderr
count 'lines of --help have at most 80 columns'
expect 0 'usage: ngrad run' '' help run
"$here/manual.sh" "$ngrad" >stdout 2>stderr
count 'the manual page has every verb and option'
if command -v bash >/dev/null; then
  bash "$here/completion.sh" "$ngrad" >stdout 2>stderr
  count 'bash completes the command line'
fi
expect 2 '' 'unknown verb rum, did you mean run' rum
expect 2 '' 'unknown verb --verison, did you mean --version' --verison
expect 2 '' 'unknown verb hlep, did you mean help' hlep
expect 2 '' 'unknown operator Conv1d, did you mean Convolution' ops Conv1d
expect 2 '' 'unknown option --jsn, did you mean --json' run --jsn sum.yaml
expect 2 '' 'unknown option -x' run -x sum.yaml
expect 2 '' 'unknown option --lr, did you mean --learning-rate' train sum.yaml --lr 0.1 -o o
expect 2 '' 'unknown option --batch-size, did you mean --batch' fit sum.yaml --batch-size 3
expect 2 '' 'unknown option --epochs, which other verbs have; see ngrad train --help' train sum.yaml --epochs 3 -o o
expect 2 '' '--threads: expected N after it' run sum.yaml --threads
expect 2 '' '--threads: expected a number from 0 to 1024, found two' run sum.yaml --threads=two
expect 2 '' '--random takes no value' run sum.yaml --random=1
expect 2 '' '--dim: expected NAME=N, found 4' run sum.yaml --dim 4
expect 2 '' 'expected GRAPH' run
expect 2 '' 'found wrong.yaml too' run sum.yaml wrong.yaml
expect 2 '' '--in and --random' run sum.yaml --random --in .
expect 2 '' '--seed: expected --random with it, or a graph with state' run sum.yaml --seed 1
expect 2 '' 'expected --expect or --compare' run sum.yaml --random --tolerance 1
expect 2 '' 'unknown backend interpretr, did you mean interpreter' run sum.yaml --backend interpretr
expect 2 '' 'unknown dim M, expected N' run sum.yaml --random --dim M=2
expect 2 '' 'unknown instruction set avx, did you mean avx2' run sum.yaml --random --isa avx
expect 2 '' 'unknown pass dead-cod, did you mean dead-code' show sum.yaml --after dead-cod
expect 2 '' 'expected -o DIR' emit sum.yaml
expect 0 'wrote native/sum.c' '' emit sum.yaml -o native --isa native
best=$("$ngrad" --version | sed -n 's/^instruction sets:.* //p')
isas=$(grep -c "sum_ISA_[A-Z0-9_]* = [1-9]" native/sum.h)
grep -qi "sum_ISA_$best = " native/sum.h && [ "$isas" -eq "$([ "$best" = scalar ] && echo 1 || echo 2)" ]
count 'native is the best instruction set of the processor, beside scalar C'
expect 2 '' 'unknown instruction set avx, did you mean avx2' emit sum.yaml -o emitted --isa scalar,avx
expect 2 '' 'unknown goal of optimize sise, did you mean size' emit sum.yaml -o emitted --optimize sise
expect 2 '' 'code of little size is scalar C: expected isa scalar, found avx2' emit sum.yaml -o emitted --optimize size --isa avx2
expect 2 '' 'expected isa scalar, found avx2' run sum.yaml --random --optimize size --isa avx2
expect 0 'wrote small/sum.c' '' emit sum.yaml -o small --optimize size
! grep -q 'sum_ISA_AVX\|vec ' small/sum.h small/sum.c
count 'code of little size is scalar, and has no vectors'
expect 2 '' 'unknown way to share out work opnmp, did you mean openmp' emit sum.yaml -o emitted --threads opnmp
expect 2 '' 'prefix: expected an unused C identifier, found 2d; g_2d would do' emit sum.yaml -o emitted --prefix 2d
expect 2 '' 'unknown package cmak, did you mean cmake' emit sum.yaml -o emitted --package cmak
expect 2 '' 'did you mean LayerNormBackward' ops LayerNormBackwards
expect 2 '' "ONNX's operator is read as Maximum, .*; nGraph's operator is read as ReduceMax," ops Max

# check
expect 0 'type: f32, shape: \[N, 3\]' '' check sum.yaml
expect 0 'type: f32, shape: \[N, 3\]' '' check -- -odd.yaml
expect 1 '' 'wrong.yaml:8:.*error: .*did you mean Add' check wrong.yaml
expect 1 '^# sum.yaml' 'wrong.yaml' check wrong.yaml sum.yaml
expect 1 '"ok": true' 'wrong.yaml' check wrong.yaml sum.yaml --json
expect 1 '' 'no-such' check no-such.yaml
"$ngrad" check - <sum.yaml >stdout 2>stderr && grep -q 'name: sum' stdout
count 'check reads standard input'

# Graphs in oneDNN's JSON, under any name, and what they are in YAML
tensor() { # ID SHAPE STRIDE
  printf '{"id": %d, "dtype": "f32", "shape": [%s], "stride": [%s], "layout_type": "strided", "property_type": "undef"}' \
    "$1" "$2" "$3"
}
printf '{"version": "3.0.0", "graph": [{"id": 3, "name": "", "kind": "Add", "attrs": {},\n"inputs": [%s, %s],\n"outputs": [%s]}]}\n' \
  "$(tensor 0 4,3 1,4)" "$(tensor 1 3 1)" "$(tensor 2 4,3 1,4)" >dump.txt
expect 0 'name: t0, type: f32, shape: \[4, 3\], order: \[1, 0\]' '' check dump.txt
expect 0 '"order": \[' '' check dump.txt --json
expect 0 '^t2 .* 0.00e\+00  ok$' '' run dump.txt --random --compare
expect 0 'ceiling' '' bench dump.txt --seconds 0.01
expect 0 'layout .slowest axis first.: 1 0' '' show dump.txt --format c
expect 0 '^wrote emitted/dump.c' '' emit dump.txt -o emitted
expect 0 'label: "id 3"' '' convert dump.txt
expect 0 'wrote dump.yaml' '' convert dump.txt -o dump.yaml
"$ngrad" convert dump.txt >stdout && cmp -s stdout dump.yaml && "$ngrad" convert dump.yaml >stdout && cmp -s stdout dump.yaml
count 'what convert writes is converted to itself'
expect 0 'wrote 1 output' '' run dump.txt --random --out from-json
expect 0 '^t2 .* 0.00e\+00 +ok$' '' run dump.yaml --random --expect from-json --tolerance 0
expect 1 '' 'wrong.yaml:8' convert wrong.yaml -o wrong.out
[ ! -e wrong.out ]
count 'a wrong graph is not converted'
expect 1 '' 'no-such/x.yaml: cannot write' convert dump.txt -o no-such/x.yaml

# run: where data comes from, and where it goes
expect 1 '' 'no data for a: expected --in DIR .*--random' run sum.yaml
! "$ngrad" run - <sum.yaml >stdout 2>stderr && grep -q 'no data beside it' stderr
count 'a graph from standard input needs data'
"$ngrad" run - --random --backend interpreter <sum.yaml >stdout 2>stderr
count 'a graph from standard input runs'
expect 0 '^c +f32 +\[4, 3\]' '' run sum.yaml --random --backend interpreter
expect 0 '^c +f32 +\[2, 3\]' '' run sum.yaml --random --dim N=2
expect 0 '"largest_ulp"' '' run sum.yaml --random --seed 3 --compare --json
expect 0 '"largest_error"' '' run sum.yaml --random --seed 3 --compare --json
expect 0 '"codegen_calls": 3' '' run sum.yaml --random --seed 3 --compare --json
expect 0 '^codegen: .* ms \(best of 3 calls\) with' '' run sum.yaml --random --compare
expect 0 '^codegen: .* ms \(one cold call\) with' '' run sum.yaml --random
# Sums of deviations from a mean, all of them 0
cat >cancel.yaml <<'Y'
format: ngrad/1
name: cancel
inputs: [{name: x, type: f64, shape: [8, 1000]}]
nodes:
  - {op: ReduceMean, inputs: [x], outputs: [m], attributes: {axes: [1], keep_dims: true}}
  - {op: Subtract, inputs: [x, m], outputs: [c]}
  - {op: ReduceSum, inputs: [c], outputs: [y], attributes: {axes: [1]}}
outputs: [y]
Y
expect 0 '^y +f64 .*  ok$' '' run cancel.yaml --random --compare
expect 0 '^wrote' '' run cancel.yaml --random --backend interpreter --out cancelled
expect 0 '^y +f64 .*  ok$' '' run cancel.yaml --random --expect cancelled
expect 3 '^y +f64 .*  FAILED$' '' run cancel.yaml --random --compare --tolerance 0
expect 0 '^wrote' '' emit cancel.yaml --self-test --threads none -o cancelled
cc -O2 cancelled/cancel.c cancelled/cancel_test.c -lm -o cancelled/self_test >stdout 2>stderr && cancelled/self_test >stdout
count 'the self-test of sums that cancel passes'
cat >product.yaml <<'Y'
format: ngrad/1
inputs: [{name: x, type: f32, shape: [2048, 128]}, {name: w, type: f32, shape: [128, 512]}]
nodes: [{op: MatMul, inputs: [x, w], outputs: [y]}]
outputs: [y]
Y
expect 0 '^wrote' '' emit product.yaml --isa scalar -o product
grep -q '_for(1, 16, 1, ' product/product.c
count 'a product of emitted C has blocks for several threads'
identity='nodes: []'
printf 'format: ngrad/1\nname: data\n%s\ninputs: [{name: a, type: f32, shape: [4, 3]}, {name: b, type: f32, shape: [3]}]\noutputs: [a, b]\n' \
  "$identity" >data.yaml
expect 0 'wrote 2 outputs to new/data' '' run data.yaml --random --backend interpreter --out new/data
expect 0 '^c +f32 +\[4, 3\]' '' run sum.yaml --in new/data
expect 0 '^c +f32 +\[4, 3\]' '' run open.yaml --in new/data
expect 1 '' 'N has no value' run open.yaml --random
expect 1 '' 'expected shape \[N, 3\], N = 5 by --dim or other data, found \[4, 3\]' run sum.yaml --in new/data --dim N=5
sed 's/N: 4/N: 9/' sum.yaml >other_dims.yaml
expect 0 '^c +f32 +\[4, 3\]' '' run other_dims.yaml --in new/data
sed 's/^inputs:.*/dims: {N: 9}\n&/; s/shape: \[4, 3\]/shape: [N, 3]/; s/shape: \[3\]/shape: [N]/' data.yaml >contradicting.yaml
expect 1 '' 'b: expected shape \[N\], N = 4 by --dim or other data, found \[3\]' run contradicting.yaml --in new/data
expect 1 '' 'no-such' run sum.yaml --in no-such
# An ONNX model that needs the number of an axis without a name, and says too much of its output
printf '\010\003\022\000:=\012\031\012\001x\022\001y\022\001j\042\004TopK*\010\012\001k\030\001\240\001\002\022\000Z\015\012\001x\022\010\012\006\010\001\022\002\012\000b\017\012\001y\022\012\012\010\010\001\022\004\012\002\010\005B\004\012\000\020\001' >best.onnx
sed 's/^inputs:.*/inputs: [{name: x, type: f32, shape: [5]}]/; s/\[a, b\]/[x]/' data.yaml >five.yaml
expect 0 'wrote 1 output to new/five' '' run five.yaml --random --backend interpreter --out new/five
expect 1 '' 'give the shape of x, as in --shape x=1' check best.onnx
expect 0 'name: x, type: f32, shape: \[4\]' 'warning: output 0 .*declared as float \[5\]' check best.onnx --shape x=4
expect 0 '^y +f32 +\[1\]' 'warning: output 0' run best.onnx --in new/five
expect 0 '^best ' 'warning: output 0' bench best.onnx --in new/five --seconds 0.01
expect 0 '^best ' 'warning: output 0' bench best.onnx --shape x=6 --seconds 0.01
expect 2 '' '--shape: expected NAME=N,N and so on, found x=4,b' check best.onnx --shape x=4,b
expect 2 '' '--shape: expected NAME=N,N and so on, found =4' check best.onnx --shape =4
expect 1 '' '--shape z: the graph has no such input' check sum.yaml --shape z=3
expect 1 '' 'b: expected shape \[3\], found \[4\]' check sum.yaml --shape b=4
expect 0 '^dims: {N: 2}$' '' check sum.yaml --shape a=2,3 --shape b=_
# Constants of more than 256 values
{
  printf 'format: ngrad/1\nname: many\nconstants: [{name: c, type: f32, shape: [257], values: [-1'
  yes ', 2' | head -256 | tr -d '\n'
  printf ']}]\nnodes: [{op: Neg, inputs: [c], outputs: [d]}]\noutputs: [d]\n'
} >many.yaml
expect 0 'name: c, type: f32, shape: \[257\]}  # 257 values from -1 to 2$' '' check many.yaml
# A million weights become C whatever the limit of steps; its arrays compile without a word, below.
{
  printf "\223NUMPY\001\000\166\000%-117s\n" "{'descr': '<f4', 'fortran_order': False, 'shape': (1048576,), }"
  yes abcdefg | head -c 4194304
} >million.npy
sed 's/^constants:.*/constants: [{name: c, type: f32, file: million.npy}]/; s/name: many/name: million/' many.yaml >million.yaml
expect 0 '^wrote emitted/million.c' '' emit million.yaml -o emitted --max-steps 100000 --isa scalar --threads none
expect 0 'shape: \[257\], values: \[-1.0, 2.0, .*2.0\]}$' '' check many.yaml --values
expect 0 'wrote 1 output' '' run sum.yaml --in new/data -o new/result
expect 0 '^c .* 0.00e\+00 +ok$' '' run sum.yaml --in new/data --expect new/result
expect 0 '^c .* 0 ulp +ok$' '' run sum.yaml --in new/data --expect new/result --backend interpreter --max-ulp 0.5
expect 0 'wrote 1 output' '' run sum.yaml --random --seed 9 --out new/other
expect 0 'wrote 1 output' '' run state.yaml --seed 9 --out state_9
expect 0 'wrote 1 output' '' run state.yaml --seed 9 --backend interpreter --out state_9_too
expect 0 'wrote 1 output' '' run state.yaml --out state_0
expect 0 'w_next' '' run state.yaml --seed 9 --save once.npz
expect 0 'w_next' '' run state.yaml --state once.npz --save twice.npz
expect 0 'w_next' '' run state.yaml --state once.npz --save again.npz --backend interpreter
cmp -s twice.npz again.npz && ! cmp -s once.npz twice.npz
count 'a checkpoint goes on where it was saved'
head -c 200 once.npz >short.npz
sed 's/shape: \[3\]/shape: [4]/' state.yaml >state_4.yaml
cp once.npz old.npz
expect 1 '' 'short.npz: error: not a whole .npz file' run state.yaml --state short.npz --save old.npz
expect 1 '' 'once.npz: error: w: expected f32 \[4\], found f32 \[3\]' run state_4.yaml --state once.npz --save old.npz
expect 1 '.*' 'no-such/x.npz: error: no such file or directory' run state.yaml --save no-such/x.npz
cmp -s once.npz old.npz
count 'what fails saves nothing'
expect 2 '' '--save: expected a graph with state' run sum.yaml --random --save x.npz
# States in C.
sed 's/name: w,/name: w_next_one,/; s/\bw\b/w_next_one/g' state.yaml >renamed.yaml
expect 1 '' 'once.npz: error: no w_next_one.npy in it, expected f32 \[3\]; it has w.npy' emit renamed.yaml --state once.npz -o c
expect 2 '' '--state: expected a graph with state' emit sum.yaml --state once.npz -o c
expect 2 '' 'weights: expected const, bf16, s8 or file, found flash' emit state.yaml --weights flash -o c
expect 0 '^1 state from once.npz$' '' emit state.yaml --state once.npz -o c
grep -q 'state_given_w' c/state.c && grep -q 'state_init' c/state.h
count 'a state that calls update begins with its value in the checkpoint'
cat >frozen.yaml <<'Y'
format: ngrad/1
name: frozen
state: [{name: w, type: f32, shape: [3], init: {fan_in: 9}}]
nodes: [{op: Add, inputs: [w, w], outputs: [y]}]
outputs: [y]
Y
expect 0 '^1 state from once.npz$' '' emit frozen.yaml --state once.npz -o c
grep -q 'frozen_given_w' c/frozen.c && ! grep -q 'void \*parameters\|_init\|_load' c/frozen.h
count 'a state that no call updates is a constant'
expect 2 '' 'state w: its first value is random' emit frozen.yaml --weights const -o c
expect 0 '^1 state from once.npz$' '' emit frozen.yaml --state once.npz --weights file -o c
grep -q 'frozen_given_w' c/frozen.c && grep -q frozen_load c/frozen.h
count 'a state that no call updates is in memory of the caller if asked for'
expect 0 '"unused": \[\]' '' emit frozen.yaml --state once.npz -o c --json
expect 2 '' '--weights: expected const or file, found s8' train sum.yaml --weights s8 -o c
expect 2 '' '--weights: expected bf16 or s8, found const' convert frozen.yaml --weights const -o c/narrow.yaml
expect 2 '' '--weights: expected a state of f32 with two or more axes' emit sum.yaml --weights s8 -o c
expect 2 '' '--state: expected --out FILE' convert frozen.yaml --state once.npz
expect 0 '^wrote c/narrow.yaml$' '' convert frozen.yaml --state once.npz -o c/narrow.yaml
expect 0 'init: \{file: frozen_w_0.npy\}' '' check c/narrow.yaml
sed 's/shape: \[3\]/shape: [2, 40]/; s/init: {.*}}/init: ones}/' frozen.yaml >wide.yaml
expect 0 '^y ' '' run wide.yaml --save wide.npz
expect 0 '^w +84 +320 +.* 1.00e.00$' '' emit wide.yaml --state wide.npz --weights s8 -o c
expect 0 '"rms": 1.0' '' emit wide.yaml --state wide.npz --weights bf16 -o c --json
cmp -s state_9/w_next.npy state_9_too/w_next.npy && ! cmp -s state_9/w_next.npy state_0/w_next.npy
count 'first values of a state depend on the seed alone'
expect 3 '^c .* FAILED$' '' run sum.yaml --in new/data --expect new/other
expect 3 '"ok": false' '' run sum.yaml --in new/data --expect new/other --json
expect 0 '^c .* ok$' '' run sum.yaml --in new/data --expect new/other --tolerance 1e9
cp new/result/c.npy new/data/
expect 0 '^c +f32' '' run new/data/../../sum.yaml --in new/data
cp sum.yaml new/data/
expect 0 '^c +f32' '' run new/data/sum.yaml
expect 0 "^wrote 1 output" "" run escaping.yaml --in new/data --out new/result
[ -s new/result/..%2Fc%25.npy ] && [ ! -e new/c%.npy ]
count 'no output outside of the folder'

# A mask that is the same for all rows, which later sweeps might load
cat >row_mask.yaml <<'Y'
format: ngrad/1
inputs:
  - {name: x, type: f32, shape: [1200, 48]}
  - {name: y, type: f32, shape: [1200, 48]}
  - {name: m, type: f32, shape: [48]}
constants: [{name: k, type: f32, shape: [], value: 0}]
nodes:
  - {op: Greater, inputs: [m, k], outputs: [g]}
  - {op: Select, inputs: [g, x, y], outputs: [a]}
  - {op: SoftMax, inputs: [a], outputs: [z], attributes: {axis: 1}}
outputs: [z]
Y
expect 0 'store z to p_z' '' show row_mask.yaml --format loops --schedule masks=1

# Standard output that cannot be written to
"$ngrad" ops >/dev/full 2>stderr
[ "$?" -eq 1 ] && grep -q 'cannot write to standard output' stderr
count 'a full disk is an error'
"$ngrad" ops >&- 2>stderr
[ "$?" -eq 1 ]
count 'a closed stdout is an error'
"$ngrad" run data.yaml --random --backend interpreter --out new/closed >&- 2>stderr
[ "$?" -eq 1 ] && cmp -s new/closed/a.npy new/data/a.npy
count 'what was meant for a closed stdout gets into no file'
{ "$ngrad" ops 2>stderr || :; } | : && [ ! -s stderr ]
count 'a broken pipe is quiet'

# Outputs that are links, pipes and devices
ln -s /dev/full full.yaml
expect 1 '' 'full.yaml: cannot write: No space left on device' convert sum.yaml -o full.yaml
mkdir linked
for name in c.npy sum.c; do ln -s /dev/full linked/$name; done
expect 1 '' 'linked/c.npy: error: no space left on device' run sum.yaml --in new/data -o linked
expect 1 '' 'linked/sum.c: error: no space left on device' emit sum.yaml -o linked
[ -L full.yaml ] && [ -L linked/c.npy ] && [ -L linked/sum.c ]
count 'a device is written to, not replaced'
touch target.yaml
ln -s ../target.yaml linked/link.yaml
expect 0 '^wrote' '' convert sum.yaml -o linked/link.yaml
[ -L linked/link.yaml ] && grep -q '^name: sum' target.yaml
count 'what a link leads to is replaced, not the link'
rm linked/c.npy
ln -s ../target.npy linked/c.npy
expect 0 '^wrote' '' run sum.yaml --in new/data -o linked
[ -L linked/c.npy ] && cmp -s target.npy new/result/c.npy
count 'a link to a file that is not there yet is followed'
mkfifo to_reader
cat to_reader >read.yaml &
expect 0 '^wrote' '' convert sum.yaml -o to_reader
wait "$!"
cmp -s read.yaml target.yaml && [ -p to_reader ]
count 'a pipe is written to'

# Constants' files that are none
mkfifo pipe
for file in pipe ./pipe; do
  printf 'format: ngrad/1\nconstants: [{name: c, type: f32, shape: [4], file: %s}]\noutputs: [c]\n' $file >pipe.yaml
  expect 1 '' "$file: expected a regular file, found a device or pipe" check pipe.yaml
done

"$here/small_stack.sh" "$ngrad" >stdout 2>stderr
count 'all works with a stack of 64 KiB'

# The compiler: failing, and not called again
cat >counting-cc <<'C'
#!/bin/sh
echo called >>calls
exec cc "$@"
C
chmod +x counting-cc
CC=$work/counting-cc
export CC
expect 0 '^c +f32' '' run sum.yaml --random
expect 0 'compiled before' '' run sum.yaml --random --threads 1
[ "$(wc -l <calls)" -eq 1 ]
count 'a graph that was compiled is not compiled again'
cat >failing-cc <<'C'
#!/bin/sh
echo 'kernel.c:1:1: error: these are my own words'
echo 'and these, on standard error' >&2
exit 1
C
chmod +x failing-cc
printf '#!/no/such/interpreter\n' >broken-cc
chmod +x broken-cc
# It is an error, whatever was asked for: no other backend computes instead, and nothing is printed or written.
for verb in run 'run --backend codegen' 'run --compare' 'run --out new/uncompiled'; do
  # shellcheck disable=SC2086 # a verb with its options
  CC=$work/failing-cc expect 4 '' '^kernel.c:1:1: error: these are my own words$' $verb sum.yaml --random --dim N=11
  grep -q '^and these, on standard error$' stderr
  count "$verb passes on all that the compiler says"
done
[ ! -e new/uncompiled ]
count 'no outputs without a compiler'
CC=$work/failing-cc expect 4 '"text": ".*these are my own words' '.' run sum.yaml --random --dim N=11 --json
CC=$work/failing-cc expect 4 '.*' 'these are my own words' bench sum.yaml --dim N=11 --seconds 0.01
CC=false expect 4 '' 'false failed:' run sum.yaml --random --dim N=11
CC=/no/such/compiler expect 4 '' 'no C compiler: /no/such/compiler is not an executable file' run sum.yaml --random --dim N=11
CC=no-such-cc expect 4 '' 'no C compiler: no-such-cc is not in PATH' run sum.yaml --random --backend codegen --dim N=11
CC=$work/broken-cc expect 4 '' 'broken-cc failed' run sum.yaml --random --dim N=11
CC=true expect 4 '' 'true reported success but wrote no shared object' run sum.yaml --random --dim N=11
printf '#!/bin/sh\nsleep 100\n' >slow-cc
chmod +x slow-cc
late='not done after 0.2 s.*--compile-timeout.*--no-fuse.*CC'
CC=$work/slow-cc expect 4 '' "$late" run sum.yaml --random --dim N=11 --compile-timeout 0.2
CC=$work/slow-cc expect 4 '.*' "$late" bench sum.yaml --dim N=11 --compile-timeout 0.2
CC=false expect 0 '^c +f32' '' run sum.yaml --random --dim N=11 --backend interpreter
unset CC

# emit
for model in "$models"/*.yaml; do
  expect 0 '^wrote emitted/.*\.c$' '' emit "$model" -o emitted --isa avx2
done
for isa in scalar avx2 avx512; do
  expect 0 '"files"' '' emit sum.yaml -o "emitted/$isa" --isa $isa --json
done
expect 0 '^wrote emitted/bf16/sum.c' '' emit sum.yaml -o emitted/bf16 --isa avx512_bf16
grep -q '^#if .*x86_64' emitted/bf16/sum.c
count 'an instruction set that was asked for is there'
expect 0 '^wrote emitted/neon/sum.h' '' emit sum.yaml --out emitted/neon --isa neon
cp "$models/../tests/errors/data/f32.npy" 'with space.npy'
cat >constant.yaml <<'Y'
format: ngrad/1
name: constant
constants: [{name: c, type: f32, shape: [_], file: with space.npy}]
nodes: [{op: Add, inputs: [c, c], outputs: [d]}]
outputs: [d]
Y
expect 0 '^wrote emitted/constant.c' '' emit constant.yaml -o emitted --isa scalar --depfile emitted/constant.d
printf 'emitted/constant.c: constant.yaml \\\n  ./with\\ space.npy\n' | cmp -s - emitted/constant.d
count 'a rule names the files that a source is made of'
mv 'with space.npy' 'w;touch made;.npy'
sed 's/with space/w;touch made;/' constant.yaml >recipe.yaml
expect 1 '' '--depfile: ./w;touch made;.npy: expected a name without' emit recipe.yaml -o emitted --depfile emitted/recipe.d
[ ! -e emitted/recipe.d ]
count 'a rule that would run what a file is called is not written'
mv 'w;touch made;.npy' 'with space.npy'
expect 1 '' 'new/none/d: cannot write' emit sum.yaml -o emitted --depfile new/none/d
expect 1 '' '/step: cannot make the folder' emit sum.yaml -o /proc/step
level=-O0
! takes_all || level=-O1
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  for source in emitted/*.c emitted/scalar/*.c emitted/avx512/*.c; do
    $compiler -std=c11 $level -Wall -Wextra -Wpedantic -c "$source" -o emitted.o >stdout 2>stderr && [ ! -s stderr ]
    count "$compiler compiles $source without a word"
  done
done

# grad, gradcheck
cat >gelu.yaml <<'Y'
format: ngrad/1
name: net
inputs: [{name: x, type: f32, shape: [4, 3]}, {name: w, type: f32, shape: [3, 5]}, {name: v, type: f32, shape: [5, 2]}]
nodes:
  - {op: MatMul, inputs: [x, w], outputs: [h]}
  - {op: GELU, inputs: [h], outputs: [a]}
  - {op: MatMul, inputs: [a, v], outputs: [y]}
outputs: [y]
Y
expect 0 '^outputs: \[diff_a, diff_b\]$' '' grad sum.yaml
expect 0 '^outputs: \[diff_b\]$' '' grad sum.yaml --wrt b --of c
expect 0 '^gradients of outputs of sum: diff_c$' '' grad sum.yaml --wrt=a --wrt b -o gradient.yaml
expect 0 'diff_b' '' run gradient.yaml --random --compare
expect 0 '^saved by net: h$' '' grad gelu.yaml --forward kept.yaml -o gradient.yaml
expect 0 '^outputs: \[y, h\]$' '' check kept.yaml
expect 0 'op: GELU$' '' check gradient.yaml
expect 1 '' 'cannot|No such' grad gelu.yaml --forward no/such/folder.yaml -o gradient.yaml
cat >energy.yaml <<'Y'
format: ngrad/1
name: energy
inputs: [{name: x, type: f32, shape: [3]}]
nodes:
  - {op: Square, inputs: [x], outputs: [s]}
  - {op: ReduceSum, inputs: [s], outputs: [e], attributes: {axes: [0]}}
outputs: [s, e]
Y
expect 0 '^tangents of inputs of sum: tangent_a tangent_b$' '' grad sum.yaml --forward-mode -o tangents.yaml
expect 0 '^outputs: \[tangent_c\]$' '' show tangents.yaml
expect 0 '^outputs: \[tangent_diff_x\]$' '' grad energy.yaml --hvp --of e
expect 0 'name: jacobian_x, type: f32, shape: \[3, 3\]' '' grad energy.yaml --jacobian --of s
expect 0 '^wrote hessian.yaml$' '' grad energy.yaml --hessian --of e -o hessian.yaml
expect 0 'hessian_x' '' run hessian.yaml --random --compare
expect 0 '"origin": "tangent"' '' grad energy.yaml --hvp --of e --json -o answer.yaml
expect 1 '' 's \[3\]: expected an output that is a single number' grad energy.yaml --hvp --of s
expect 2 '' 'expected one of --forward, --forward-mode' grad energy.yaml --hvp --forward kept.yaml
expect 0 '^gradients of outputs of net_backward: diff2_diff_x' '' grad gradient.yaml -o second.yaml
expect 2 '' 'unknown input d, expected a or b' grad sum.yaml --wrt a,d
expect 2 '' 'unknown output d, did you mean c|unknown output d, expected c' grad sum.yaml --of d
expect 2 '' 'b: expected each input once' grad sum.yaml --wrt b,a,b
expect 2 '' '--wrt: expected names with single commas between' grad sum.yaml --wrt a,,b
expect 1 '' 'wrong.yaml' grad wrong.yaml
expect 1 '' 'cannot|No such' grad sum.yaml -o no/such/folder.yaml
expect 0 'ok$' '' gradcheck sum.yaml
# One document on standard output, of every verb.
expect 0 '"format": "kernels"' '' show sum.yaml --format kernels --json
expect 0 '"text": "format: ngrad/1' '' convert sum.yaml --json
expect 0 '"answer.yaml"' '' convert sum.yaml --json -o answer.yaml
expect 0 '"text": "format: ngrad/1' '' grad sum.yaml --json
expect 0 '"origin": "gradient"' '' grad sum.yaml --json --forward answer_forward.yaml -o answer.yaml
expect 0 '"answer/sum_test.c"' '' emit sum.yaml --json --self-test -o answer
for verb in show convert grad gradcheck 'emit -o answer' 'train -o answer'; do
  # shellcheck disable=SC2086
  expect 1 '"severity": "error"' 'unknown operator' $verb wrong.yaml --json
done
# No graph is lost by what is made of it.
cp sum.yaml kept.yaml
cp sum.yaml kept.csv
kept='expected another file to write to than the graph'
expect 2 '' "kept.yaml: $kept" grad kept.yaml -o ./kept.yaml
expect 2 '' "kept.yaml: $kept" grad ./kept.yaml --forward kept.yaml -o answer.yaml
expect 2 '^wrote' 'both.yaml: expected another file for the gradient' grad sum.yaml --forward ./both.yaml -o both.yaml
expect 2 '' "kept.yaml: $kept" emit kept.yaml -o answer --depfile kept.yaml
expect 2 '' "kept.yaml: $kept" bench sum.yaml kept.yaml --seconds 0 --trace kept.yaml
expect 2 '' "kept.csv: $kept" bench kept.csv --seconds 0 --export kept.csv
cmp kept.yaml sum.yaml && cmp kept.csv sum.yaml
count 'graphs stay what they are'
expect 0 '"relative_error"' '' gradcheck sum.yaml --json --seed 3 --tolerance 1e-7 --dim N=2
sed 's/op: Add, inputs: \[a, b\], outputs: \[c\]/op: SoftPlus, inputs: [a], outputs: [c], attributes: {beta: 0}/' sum.yaml >infinite.yaml
expect 3 'diff_a\[0, 0\] is .*, differences give -?nan' '' gradcheck infinite.yaml
# Constants that train takes as parameters are checked, at their own numbers: beside 2, a random one would be at a kink.
cat >weights.yaml <<'END'
format: ngrad/1
inputs: [{name: w, type: f32, shape: [3]}]
constants: [{name: zero, type: f32, shape: [], value: 0}, {name: two, type: f32, shape: [], value: 2}]
nodes:
  - {op: Multiply, inputs: [w, zero], outputs: [none]}
  - {op: Add, inputs: [none, two], outputs: [weights]}
outputs: [weights]
END
cat >weighted.yaml <<'END'
format: ngrad/1
inputs: [{name: x, type: f32, shape: [4, 3]}]
constants: [{name: w, type: f32, shape: [3], file: weights/weights.npy}]
nodes:
  - {op: Round, inputs: [w], outputs: [whole]}
  - {op: Equal, inputs: [w, whole], outputs: [is_whole]}
  - {op: Multiply, inputs: [x, w], outputs: [product]}
  - {op: Select, inputs: [is_whole, product, x], outputs: [y]}
outputs: [y]
END
expect 0 'wrote 1 output' '' run weights.yaml --random --out weights
expect 3 '^w  *3  *3  *3 .*FAILED' 'Round: its gradient is 0' gradcheck weighted.yaml
expect 3 '^diff_w is not checked: every element is at a kink' 'Round: its gradient is 0' gradcheck weighted.yaml
expect 0 'ok$' '' gradcheck weighted.yaml --wrt x
expect 0 '^outputs: \[diff_w\]$' 'Round: its gradient is 0' grad weighted.yaml --wrt w
expect 0 '^wrote forward.yaml' '.*' grad weighted.yaml --wrt w --forward forward.yaml -o gradient.yaml
grep -q '{name: w, type: f32, shape: \[3\]}$' forward.yaml
count 'a constant to differentiate by is an input of the forward graph, too'
expect 2 '' 'unknown input q, expected x or w' grad weighted.yaml --wrt q
expect 1 '' 'N has no value' gradcheck open.yaml

# train
cat >net.yaml <<'Y'
format: ngrad/1
dims: {N: 4}
inputs: [{name: x, type: f32, shape: [N, 3]}, {name: labels, type: s32, shape: [N]}]
state:
  - {name: w, type: f32, shape: [3, 5], init: {fan_in: 3}}
  - {name: b, type: f32, shape: [5], init: zeros}
nodes:
  - {op: MatMul, inputs: [x, w, b], outputs: [logits]}
  - {op: SoftmaxCrossEntropy, inputs: [logits, labels], outputs: [loss]}
outputs: [loss, logits]
Y
expect 0 '^wrote trained/net_step.yaml$' '' train net.yaml -o trained
expect 0 '"trained/net_step.yaml"' '' train net.yaml -o trained --json
sed '/^name:/d; s/^format:.*/&\nname: net/' net.yaml | tee named.yaml >net_step.yaml
expect 2 '' 'net_step.yaml: expected another file to write to than the graph' train net_step.yaml -o .
cmp named.yaml net_step.yaml
rm net_step.yaml
count 'a graph to train stays what it is'
expect 0 '^wrote trained/net_test.yaml$' '' train net.yaml -o trained
expect 0 '^wrote trained/net_infer.yaml$' '' train net.yaml -o trained
expect 0 '^w.next .* ok$' '' run trained/net_step.yaml --random --compare --dim N=7
expect 0 '^logits .* ok$' '' run trained/net_infer.yaml --random --compare --dim N=1
for optimizer in momentum adam adamw adagrad; do
  expect 0 . '' train net.yaml --optimizer $optimizer --weight-decay 0.1 --clip-norm 1 -o trained
  expect 0 '^b.next .* ok$' '' run trained/net_step.yaml --random --compare
done
expect 0 . '' train net.yaml --optimizer momentum --nesterov --momentum 0.8 --freeze 'w*' -o trained
expect 0 '^updates: {b: b.next, step: step.next, b.momentum: b.momentum.next}$' '' check trained/net_step.yaml
sed 's/init: zeros/init: {file: first\/b.npy}/' net.yaml >first.yaml
mkdir first
expect 0 . '' run trained/net_step.yaml --random --backend interpreter -o first
mv first/b.next.npy first/b.npy
expect 0 . '' train first.yaml -o elsewhere
expect 0 'init: \{file: first/b.npy\}' '' check elsewhere/first_step.yaml
expect 0 . '' train first.yaml -o .
expect 0 'init: \{file: first/b.npy\}' '' check first_step.yaml
expect 1 '^wrote' 'the size of the workspace depends on N, expected a number for it: --dim N=' train net.yaml --memory 1M -o trained
expect 1 '^wrote' 'expected a workspace of at most 10 bytes, found at least [0-9]+' train net.yaml --dim N=4 --memory 10 -o trained

# scale
expect 0 '^wrote leaves/net_step.yaml$' '' train net.yaml --dim N=4 --accumulate 8 -o leaves
expect_given() { # STATUS STDOUT STDERR OPTION...
  status=$1 out=$2 err=$3
  shift 3
  expect "$status" "$out" "$err" scale leaves/net_step.yaml --leaf-time 2ms --latency 0us --bandwidth 1000TB/s \
    --add-bandwidth 1000T "$@"
}
expect_given 0 '^net_step: 8 leaves, each 2 ms; common to all 1 ms \(given\)$' '' --common-time 1ms
expect_given 0 '^ *4 +2 +5 ms +85.0 %  compute 80 % ' '' --common-time 1ms --ranks 4
expect_given 0 '^ *16 +1 ' '' --ranks 1,2..16
expect_given 0 '^16 ranks, 8 idle: .* with 16 leaves instead of 8 ' '' --ranks 16
expect_given 0 '"step_ms": 4\.0' '' --ranks 4 --json
expect_given 0 '"step_ms": 8\.0' '' --ranks 4 --threads 1 --cores 2 --json
expect 0 '"is_measured": true' '' scale leaves/net_step.yaml --seconds 0.01 --threads 1 --leaves 64 --json
expect 2 '' 'sum: has no leaves' scale sum.yaml
expect 2 '' 'leaves/net_step.yaml: has leaves, and report cannot show such graphs; ngrad show' report leaves/net_step.yaml -o leaves.html
for option in --profile '--trace leaves.json'; do
  # shellcheck disable=SC2086 # two words
  expect 2 '.*' 'leaves/net_step.yaml has leaves, so its kernels cannot be timed one by one' bench leaves/net_step.yaml $option
done
expect 2 '' 'accumulate: net_step has 8 leaves already, expected a graph without leaves' train leaves/net_step.yaml --accumulate 4 -o twice
expect 2 '' 'ranks: expected numbers of ranks from 1, at most 1000 of them, as in .*, found 4..2$' scale leaves/net_step.yaml --ranks 4..2
expect_given 2 '' 'expected ranks from 1 to 1000000, found 1000001$' --ranks 1000001
expect 2 '' 'latency: expected a time in ns, us, ms or s, as in 2us, found 3$' scale leaves/net_step.yaml --latency 3
expect 2 '' 'bandwidth: expected bytes or bits a second' scale leaves/net_step.yaml --bandwidth 3x
expect 2 '' 'leaf-time: expected more than 0$' scale leaves/net_step.yaml --leaf-time 0ms
expect 2 '' 'leaf-time: expected a time in .*, found 1e308s$' scale leaves/net_step.yaml --leaf-time 1e308s
expect_given 0 '^9 ranks, 1 idle: [0-9.]+ times a ring.s bytes, [0-9.]+ ms$' '' --ranks 9 --leaf-time 1us --latency 1ms
expect 2 '' 'common-time: expected --leaf-time, too$' scale leaves/net_step.yaml --common-time 1ms
expect 0 '^wrote trained/net.c$' '' train net.yaml --dim N=4 --memory 1M -o trained
grep -q 'f32 \[4, 3\]' trained/net.h && grep -q 'f32 \[1, 3\]' trained/net.h && grep -q 'dims: {N: 1}' trained/net_infer.yaml
count 'inference takes one sample where the batch of the step is fixed'
expect 0 '^wrote trained/net.c$' '' train net.yaml --accumulate 4 --threads none -o trained
grep -q 'int64_t N,' trained/net.h
count 'inference is open in the batch where the step has leaves'
expect 0 . '' train net.yaml --precision bf16 --accumulate 2 -o mixed
expect 0 'src: leaf.x_bf16, weights: w_bf16, bias: b_bf16' '' show mixed/net_step.yaml
expect 0 '^w.next .* ok$' '' run mixed/net_step.yaml --random --compare
expect 0 . '' train net.yaml --precision bf16 --keep-f32 MatMul -o mixed
expect 0 'src: x, weights: w, bias: b' '' show mixed/net_step.yaml
expect 2 '' 'unknown operator Matmul, did you mean MatMul' train net.yaml --precision bf16 --keep-f32 GELU,Matmul -o mixed
expect 2 '' '--keep-f32: expected precision bf16 or f16 with it' train net.yaml --keep-f32 GELU -o mixed
expect 2 '' 'unknown precision f8, expected f32, bf16 or f16' train net.yaml --precision f8 -o mixed
expect 0 . '' train net.yaml --precision f16 --accumulate 2 --clip-norm 1 -o mixed
expect 0 'src: leaf.x_f16, weights: w_f16, bias: b_f16' '' show mixed/net_step.yaml
expect 0 '^w.next .* ok$' '' run mixed/net_step.yaml --random --compare
# Mixed precision takes at most three quarters of the memory of f32, however small the batch.
workspace() { # MODEL DIM PRECISION
  "$ngrad" train "$models/train/$1.yaml" --precision "$3" -o mixed >log && "$ngrad" check "mixed/$1_step.yaml" --dim "$2" | sed -n 's/^# workspace: \([0-9]*\) bytes.*/\1/p'
}
for model in 'gpt_bytes B=1' 'gpt_bytes B=16' 'mlp N=4'; do
  # shellcheck disable=SC2086 # two words
  [ "$(workspace $model bf16)" -lt "$(($(workspace $model f32) * 3 / 4))" ]
  count "memory in mixed precision of $model"
done
expect 0 'src: x_bf16, weights: diff_logits_bf16' '' grad net.yaml --of loss --precision bf16
expect 2 '' 'precision: expected the gradient with it' grad net.yaml --precision bf16 --hvp
expect 0 . '' train net.yaml --accumulate 3 -o trained
expect 0 'x, type: f32, shape: \[3, N, 3\]' '' convert trained/net_step.yaml
expect 0 '^loss .* ok$' '' run trained/net_step.yaml --random --compare
cat >normed.yaml <<'EOF'
format: ngrad/1
name: normed
dims: {N: 2}
inputs: [{name: x, type: bf16, shape: [N, 3, 4]}, {name: y, type: bf16, shape: [N, 3, 4]}]
state:
  - {name: w, type: bf16, shape: [3, 4], init: ones}
  - {name: mean, type: f32, shape: [3], init: zeros}
  - {name: variance, type: f32, shape: [3], init: ones}
nodes:
  - {op: Multiply, inputs: [x, w], outputs: [h]}
  - {op: BatchNormForwardTraining, inputs: [h, mean, variance], outputs: [n, m, v, bm, bv], attributes: {epsilon: 1.0e-3, data_format: NCX}}
  - {op: MeanSquaredError, inputs: [n, y], outputs: [loss]}
outputs: [loss, n]
updates: {mean: m, variance: v}
EOF
expect 0 . '' train normed.yaml --accumulate 3 --sync-batch-norm -o trained
expect 0 'reduction: mean' '' convert trained/normed_step.yaml
expect 0 '^w.next .* ok$' '' run trained/normed_step.yaml --random --compare
expect 0 . '' train normed.yaml --accumulate 1 --sync-batch-norm -o trained
expect 2 '' '^error: --sync-batch-norm: expected accumulate with it, the number of leaves' train normed.yaml --sync-batch-norm -o trained
expect 2 '' '^error: --accumulate: expected a whole number from 1 to 1048576, found 1.5' train net.yaml --accumulate 1.5 -o trained
expect 2 '' 'unknown optimizer adm, did you mean adam' train net.yaml --optimizer adm -o trained
expect 2 '' 'unknown output los, did you mean loss' train net.yaml --loss los -o trained
expect 2 '' 'expected a floating-point number, found logits, which is f32 \[N, 5\]; ReduceMean' \
  train net.yaml --loss logits -o trained
expect 2 '' '^error: --freeze: no parameter matches conv\*; there are w, b' train net.yaml --freeze 'conv*' -o trained
expect 2 '' '^error: --no-decay: no parameter matches conv\*; there are w, b' train net.yaml --no-decay 'conv*' -o trained
expect 0 . '' train net.yaml --optimizer adamw --no-decay norms-and-biases -o trained
[ "$(grep -c 'weight_decay: 0.0[,}]' trained/net_step.yaml)" = 1 ] && [ "$(grep -c 'weight_decay: 0.01' trained/net_step.yaml)" = 1 ]
count 'biases have no weight decay'
expect 0 '^w +yes +yes$' '' train net.yaml --optimizer adamw --no-decay norms-and-biases --list-parameters -o trained
expect 0 '^b +yes +no$' '' train net.yaml --optimizer adamw --no-decay norms-and-biases --list-parameters -o trained
expect 0 '^b +no, frozen' '' train net.yaml --freeze b --list-parameters -o trained
expect 0 '"why_not": "frozen"' '' train net.yaml --freeze b --json -o trained
expect 2 '' '^error: --beta1: not a setting of sgd, but of adam' train net.yaml --beta1 0.9 -o trained
expect 2 '' '^error: --gamma: the schedule constant does not use it' train net.yaml --gamma 0.9 -o trained
expect 2 '' '^error: --step-size: the schedule step needs the number of steps' train net.yaml --schedule step -o trained
expect 1 '' 'expected a parameter that is not frozen' train net.yaml --freeze '*' -o trained
expect 2 '' 'expected -o DIR' train net.yaml
expect 1 '' '^error: Adam .*: --beta1: expected at least 0 and less than 1' \
  train net.yaml --optimizer adam --beta1 1 -o trained
expect 1 '' '^error: SGD .*: --weight-decay: expected at least 0 and within the range of f32, found 1e.60' train net.yaml --weight-decay 1e60 -o trained
expect 1 '' 'sum: expected parameters to train: states, as in' train sum.yaml -o trained

# show, bench, passes
expect 0 '^digraph' '' show sum.yaml --format dot
expect 0 'shape: \[4, 3\]' '' show sum.yaml --after dead-code
expect 0 '.' '' show sum.yaml --format kernels

# Where a group's scale stands is computed in f32 while that is exact.
for extent in 16777216 16777218; do
  cat >groups.yaml <<Y
format: ngrad/1
inputs:
  - {name: x, type: s8, shape: [$extent]}
  - {name: s, type: f32, shape: [$((extent / 2))]}
nodes:
  - {op: DynamicDequantize, inputs: [x, s], outputs: [y], attributes: {qtype: per_group, group_shape: [2]}}
outputs: [y]
Y
  in_f64=
  [ "$extent" = 16777216 ] || in_f64=', in f64'
  expect 0 "^kernel 0: DynamicDequantize \(line 6\)$in_f64\$" '' show groups.yaml --format kernels
done
expect 0 '^ *vector c = add\(a, b\)$' '' show sum.yaml --format loops
expect 0 '#include' '' show sum.yaml --format c
expect 0 '^ *0  workspace, 0 without reuse$' '' show sum.yaml --format memory
# C has memory for y where a call leaves it out.
cat >two.yaml <<'Y'
format: ngrad/1
name: two
inputs: [{name: x, type: f32, shape: [64, 64]}]
nodes:
  - {op: MatMul, inputs: [x, x], outputs: [y]}
  - {op: MatMul, inputs: [y, y], outputs: [z]}
outputs: [y, z]
Y
expect 0 '^# RAM in C: states 0, workspace 16384, together 16384 bytes$' '' check two.yaml
expect 0 '^# workspace: 0 bytes' '' check two.yaml
expect 0 'wrote' '' emit two.yaml -o c
grep -q 'two_WORKSPACE_NBYTES ((size_t)16384)' c/two.h
count 'check tells the workspace of C'
expect 0 'of the states are constants: 0 bytes$' '' check frozen.yaml
expect 0 '^</svg>$' '' show sum.yaml --format memory-svg
cat >kept.yaml <<'EOF'
format: ngrad/1
name: kept
inputs: [{name: x, type: f32, shape: [1024]}]
nodes:
  - {op: Tanh, inputs: [x], outputs: [a]}
  - {op: Exp, inputs: [a], outputs: [b]}
  - {op: ReduceSum, inputs: [b], outputs: [s], attributes: {axes: [0], keep_dims: true}}
  - {op: Subtract, inputs: [b, s], outputs: [c]}
  - {op: Multiply, inputs: [c, b], outputs: [d]}
  - {op: Multiply, inputs: [d, a], outputs: [e]}
outputs: [e]
EOF
expect 0 '^ *8256  workspace' '1 value is computed again' show kept.yaml --format memory --no-fuse --isa scalar --memory 12000
expect 0 'ok$' '1 value is computed again' run kept.yaml --random --compare --no-fuse --memory 12000
expect 1 '' 'at most 8000 bytes, found at least 8256' run kept.yaml --random --no-fuse --memory 8000
expect 2 '' '^error: format memory comes after all passes, .* found dead-code$' show sum.yaml --format memory --after dead-code
expect 0 'ceiling' '' bench sum.yaml --seconds 0.01 --threads 1
expect 2 '^graph' "error: expected at most $(nproc) threads, one for each processor that this process may use, found 1000" \
  bench sum.yaml --threads 1000
if [ "$(nproc)" -gt 1 ]; then
  expect 0 '"efficiency": [0-9]' '' bench sum.yaml --seconds 0.01 --threads 1,2 --json
  expect 0 'speed-up  efficiency' '' bench sum.yaml --seconds 0.01 --threads 1,2
  rows=$("$ngrad" bench sum.yaml sum.yaml --seconds 0.01 --threads 1,2 2>/dev/null | awk '$1 == "sum" { printf "%s ", $3 }')
  [ "$rows" = '1 2 1 2 ' ]
  count "bench --threads 1,2 times each graph in turns ($rows)"
  expect 0 '"speedup": 1.0,' '' bench sum.yaml sum.yaml --seconds 0.01 --threads 1,2 --json
  [ "$(grep -c '"speedup": 1.0,' stdout)" -eq 2 ]
  count 'each graph gains over its own first number of threads, whatever its name'
fi
for threads in 2,1 1,1 0,1 x '1,'; do
  expect 2 '' '--threads: expected a number of threads, or at most 16 ascending ones' bench sum.yaml --threads "$threads"
done
expect 2 '' '--with and --threads N,N: expected one of them' bench sum.yaml --with true --threads 1,2
expect 0 '"ceiling_ratio"' '' bench sum.yaml --seconds 0.01 --json --cold
expect 0 '"operations": 12' '' bench sum.yaml --seconds 0.01 --json
expect 0 '"peak_gflops": [1-9]' '' bench sum.yaml --seconds 0.01 --json
expect 1 '^sum' 'wrong.yaml' bench wrong.yaml sum.yaml --seconds 0.01
expect 1 '^sum' 'wrong.yaml' bench sum.yaml wrong.yaml --seconds 0.01
expect 0 '"mad_ms": [0-9]' '' bench sum.yaml --seconds 0.01 --json
expect 0 '"outliers": [0-9]' '' bench sum.yaml --seconds 0.01 --json
# Two graphs in turns, and two programs.
ratio='takes [0-9.]* times as long as'
expect 0 "^state.yaml $ratio sum.yaml; 95 % interval [0-9.]* to [0-9.]*, of [0-9]* turns" '' \
  bench sum.yaml state.yaml --seconds 0.01 --export times.csv --export times.md --export times.json
[ "$(wc -l <times.csv)" -eq 3 ] && awk -F, 'NR == 1 { n = NF } NF != n { exit 1 } END { exit n != 28 }' times.csv &&
  grep -q '^sum.yaml,sum,' times.csv && sed -n 2p times.md | grep -q '^|---|---|---:|' && grep -q '"beside": "sum.yaml"' times.json
count 'bench exports its times'
# shellcheck disable=SC2016 # markup, no command
sed 's/^name: sum/name: "<b>_a_|`c` d_e\\\\"/' sum.yaml >markup.yaml
"$ngrad" bench markup.yaml --seconds 0 --export markup.md >stdout 2>stderr
# shellcheck disable=SC2016 # markup
grep -qF '| \<b\>\_a\_\|\`c\` d_e\\ |' markup.md
count 'a name is no markup in Markdown'
expect 0 '"median": [0-9]' '' bench sum.yaml state.yaml --seconds 0.01 --json
expect 0 '^graph' '' bench sum.yaml state.yaml --seconds 0.01 --profile
! grep -q 'times as long' stdout
count 'profiles are taken of one graph after the other'
expect 0 "^$ngrad $ratio this program; 95" '' bench sum.yaml --dim N=5 --threads 1 --seconds 0.01 --with "$ngrad"
expect 0 '"program": "this program"' '' bench sum.yaml --isa=scalar --seconds 0.01 --json --with "$ngrad"
[ "$(grep -c '"isa": "scalar"' stdout)" -eq 2 ]
count 'both programs take the options'
expect 1 '^graph' 'wrong.yaml' bench wrong.yaml --seconds 0.01 --with "$ngrad"
expect 1 '^graph' 'no-such: cannot be run' bench sum.yaml --seconds 0.01 --with "$work/no-such"
expect 1 '^graph' 'true: expected a program that can bench --json' bench sum.yaml --seconds 0.01 --with true
expect 2 '' '--with and --profile: expected one of them' bench sum.yaml --with true --profile
expect 2 '' '--with and --against: expected one of them' bench sum.yaml --with true --against --no-fuse
expect 0 "^sum.yaml with --isa=scalar --no-fuse $ratio sum.yaml; 95" '' \
  bench sum.yaml --dim N=5 --seconds 0.01 --against --isa=scalar --against --no-fuse
expect 0 '"options": "--isa=scalar"' '' bench sum.yaml --dim N=5 --isa avx2 --seconds 0.01 --json --against --isa=scalar
[ "$(grep '"isa"' stdout | tr -d ' \n')" = '"isa":"avx2","isa":"scalar",' ]
count 'the option that is added comes after the given ones'
expect 2 '' 'unknown option --isas, did you mean --isa' bench sum.yaml --against --isas=scalar
expect 2 '' 'bench: expected no operands, found other.yaml too' bench sum.yaml --against other.yaml
expect 1 '^graph' 'wrong.yaml' bench wrong.yaml --seconds 0.01 --against --no-fuse
# Sweeps: a row for each extent, and a plot.
expect 0 '^sum, N=8 ' '' bench sum.yaml --sweep N=2..9 --seconds 0.01 --export sweep.csv --export sweep.svg
[ "$(cut -d , -f 22,23 sweep.csv | tr '\n' ' ')" = 'dim,extent N,2 N,4 N,8 ' ] &&
  [ "$(grep -o '<circle' sweep.svg | wc -l)" -eq 3 ] && { ! has xmllint || xmllint --noout sweep.svg; }
count 'a sweep has a row and a point for each extent'
expect 0 "^N=3: sum.yaml with --no-fuse $ratio sum.yaml" '' \
  bench sum.yaml --sweep N=3,5 --against --no-fuse --seconds 0.01 --export sweep.svg
[ "$(grep -c 'class="line"' sweep.svg)" -eq 4 ] && grep -qF '>sum (--no-fuse)<' sweep.svg
count 'a plot has a line, and an entry of the legend, for each set of options'
if [ "$(nproc)" -gt 1 ]; then
  expect 0 '^sum, N=5 ' '' bench sum.yaml --sweep N=3,5 --threads 1,2 --seconds 0.01 --export sweep.svg
  [ "$(grep -c 'class="line".*L' sweep.svg)" -eq 2 ] && grep -qF '>sum, 1 thread<' sweep.svg && grep -qF '>sum, 2 threads<' sweep.svg
  count 'a plot has a line for each number of threads'
fi
expect 0 "^N=3: $ngrad $ratio this program" '' bench sum.yaml --sweep N=3 --seconds 0.01 --with "$ngrad"
"$ngrad" bench markup.yaml --sweep N=1 --seconds 0 --export markup.svg >stdout 2>stderr && grep -qF '>&#60;b&#62;_a_' markup.svg
count 'a name is no markup in a plot'
expect 2 '^graph' 'unknown dim M, expected N' bench sum.yaml --sweep M=1,2 --seconds 0.01 --export sweep.svg
for values in N N= =3 N=0 N=4,3 'N=3,' N=4..3 N=3..x N=1..2..3 N=3,1000000000000000 N=-1; do
  expect 2 '' '--sweep: expected NAME=N,N,... or NAME=FIRST..LAST' bench sum.yaml --sweep $values
done
for file in times.txt times.svg; do
  expect 2 '' "--export: expected a file whose name ends in .csv, .md, .json or, with --sweep, .svg, found $file" bench sum.yaml --export $file
done
expect 1 '"graph"' 'no-such/x.csv: cannot write' bench sum.yaml --seconds 0.01 --export no-such/x.csv --json
profiled() { # LEFT COLUMNS RIGHT; N in the columns: a measured number
  columns=$(echo "$2" | sed 's/N/[-+0-9.e]+/g')
  expect 0 "^$1 +$columns  $3\$" '' bench "$models/transformer_mlp_backward.yaml" --dim N=64 --seconds 0.01 --profile
}
profiled transformer_mlp_backward 'ms +share +blocks +bytes' ' *GB/s +GF/s +near'
profiled 'kernel 0' 'N +N % +([0-9]+ +)?992768 +N +N +(memory|arithmetic|neither) *' 'LayerNormBackward \(line 16\), Multiply \(line 20\)'
profiled 'kernel 1' 'N +N % +([0-9]+ +)?2371584 +N +N +(memory|arithmetic|neither) *' 'GELUBackward \(line 23\), BiasAddBackward \(line 26\)'
profiled '  loop 1' 'N +N % +[0-9]+ +[0-9]+ +N *' '  store dgamma, store dbeta'
profiled other N ' *[-+0-9.e]+ %'
expect 0 'its blocks, each of which one thread computes, limit what threads gain to [0-9.]+ on 2, [0-9.]+ on 4' '' \
  bench "$models/transformer_mlp_backward.yaml" --dim N=64 --seconds 0.01 --profile
profiled whole N '100.0 % +[0-9]+ +[-+0-9.e]+'
expect 0 '"profile": \{' '' bench sum.yaml --seconds 0.01 --profile --json
tr -d ' \n' <stdout | grep -qE '"profile":\{"ms":[-+0-9.e]+,"other_ms":[-+0-9.e]+,"kernels":\[\{"ms":[-+0-9.e]+,"bytes_read":60,"bytes_written":48,"operations":[0-9.]+,"gflops":[-+0-9.e]+,"bound":"[a-z]+","with":0,"operators":\[\{"name":"Add","lines":\[8\]\}\],"loops":\[\{"ms":[-+0-9.e]+,"bytes_read":60,"bytes_written":48,"text":"storec","blocks":1\}\]\}\],"most_speedup":\{("[0-9]+":[0-9.]+,?){6}\}\}\}\]$'
count 'a profile is data too'
expect 2 '' 'unknown option --profile' run sum.yaml --random --profile
expect 0 '"doc"' '' passes --json
expect 0 '^dead-code' '' passes
expect 0 '^  multiply-one  *Multiply\(x, 1.0\) -> x$' '' passes
expect 0 '^fuse .*\(cannot be disabled\)$' '' passes
expect 0 '"fast_math": true' '' passes --json
expect 0 '"needed": true' '' passes --json
expect 0 '^serial_work  *32768  elements  *schedule  *loops of at most' '' passes --costs
expect 0 '"decides": "fusion"' '' passes --costs --json
expect 0 '^make-loops .*  \(on kernels\)  \(cannot be disabled\)$' '' passes
expect 0 '"kernels": true' '' passes --json

# Passes and rules: what they leave, how long they take, and which are left out
cat >rewritten.yaml <<'Y'
format: ngrad/1
name: rewritten
inputs:
  - {name: a, type: f32, shape: [4, 3]}
constants:
  - {name: one, type: f32, shape: [], value: 1}
  - {name: zero, type: f32, shape: [], value: 0}
nodes:
  - {op: Multiply, inputs: [a, one], outputs: [b]}
  - {op: Add, inputs: [b, zero], outputs: [c]}
  - {op: Tanh, inputs: [c], outputs: [d]}
outputs: [d]
Y
expect 0 'src_0: a, src_1: zero' '' show rewritten.yaml --after simplify
expect 0 'src_0: a, src_1: one' '' show rewritten.yaml --after simplify --disable multiply-one
expect 0 'src: a}' '' show rewritten.yaml --after simplify --fast-math
expect 2 '' 'unknown pass or rule multiply-on, did you mean multiply-one' show rewritten.yaml --disable multiply-on --after fuse
expect 2 '' '^error: pass fuse cannot be disabled, .* expected dead-code, .* slice-regions, column-blocks, .* prefetch or a rule$' show rewritten.yaml --format kernels --disable fuse
expect 2 '' '^  rows  *1 to 32  *outer iterations' show rewritten.yaml --format kernels --schedule row=1
expect 2 '' '^error: unknown cost serial_wurk, did you mean serial_work$' show rewritten.yaml --format kernels --cost serial_wurk=1
expect 2 '' '^error: unknown cost 7: ngrad passes --costs lists them$' show rewritten.yaml --format kernels --cost 7
expect 2 '' '^error: cost tile: expected tile=N with N from 16 to 16777216 \(elements\), found tile=1x$' show rewritten.yaml --format kernels --cost tile=1x
expect 2 '' 'found tile=15$' show rewritten.yaml --format kernels --cost tile=15
expect 0 '^kernel 1: Tanh' '' show rewritten.yaml --format kernels --cost fusion_streams=1
expect 2 '' 'unknown pass multiply-one' show rewritten.yaml --after multiply-one
expect 2 '' '^error: pass make-loops cannot be disabled, ' show rewritten.yaml --format kernels --disable make-loops
expect 2 '' '^error: format yaml: pass make-loops is one over kernels, expected format kernels$' show rewritten.yaml --after make-loops
expect 0 '^  over d0 12$' '' show rewritten.yaml --format kernels --after choose-axes
expect 0 'subgraph cluster_1' '' show rewritten.yaml --after fuse --format dot
expect 0 'Add \(lines 9, 10\)|Add \(line 10\)' '' show rewritten.yaml --format c
expect 0 '^kernel 0: Add \(lines? (9, )?10\), Tanh \(line 11\)$' '' show rewritten.yaml --format kernels
expect 0 'label="Tanh.nline 11"' '' show rewritten.yaml --after fuse --format dot
cat >pieces.yaml <<'Y'
format: ngrad/1
name: pieces
inputs:
  - {name: a, type: f32, shape: [1, 2, 4, 4]}
  - {name: w, type: f32, shape: [2, 2, 3, 3]}
nodes:
  - {op: Concat, inputs: [a, a], attributes: {axis: 1}, outputs: [b]}
  - op: ConvTranspose
    inputs: [a, w]
    attributes: {strides: [2, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1], data_format: NCX, weights_format: IOX}
    outputs: [c]
outputs: [b, c]
Y
expect 0 '^kernel 1: Concat \(line 7\) of input 2$' '' show pieces.yaml --format kernels
expect 0 '^kernel [0-9]: ConvTranspose \(line 8\) at \[:, :, 1::2, :\]$' '' show pieces.yaml --format kernels
expect 0 '^simplify .* changed' '' run rewritten.yaml --random --time-passes
expect 0 '"passes"' '' run rewritten.yaml --random --time-passes --json
expect 2 '' 'the interpreter runs no passes' run rewritten.yaml --random --time-passes --backend interpreter
expect 0 '.' '' run rewritten.yaml --random --dump-dir dumps
[ -s dumps/05-simplify.yaml ] && ! [ -e dumps/02-dead-code.yaml ]
count 'dumps are of passes that changed something'
expect 0 '.' '' check dumps/05-simplify.yaml
expect 0 '"choices"' '' ops Add --json
expect 0 '"name": "Mul"' '' ops --onnx --json
expect 1 '"text": "no data for a: ' 'no data for a' run sum.yaml --json
expect 0 'LayerNorm\(src, gamma\?, beta\?; .* epsilon = 1e-05\) -> dst, mean\?, variance\?' '' ops LayerNorm
expect 0 'Gradient\(of, by\.\.\.\) -> diff, diff_1\?, ' '' ops Gradient
expect 0 '^Gradient  *gradients of ' '' ops
expect 0 '^also onednn_spec.BatchNormTrainingBackprop, ngraph' '' ops BatchNormTrainingBackward
expect 0 'InputGradientTensor  *T  *diff_dst' '' ops directml.BATCH_NORMALIZATION_GRAD
expect 0 '^  src  zero, because the result is rounded' '' ops Quantize
expect 0 '^  weights  derived' '' ops SoftmaxCrossEntropy
expect 0 '^  running_mean  *refused, because gradients do not flow through running statistics' '' ops BatchNormForwardTraining
expect 0 '"gradient_why": "they are integers"' '' ops SoftmaxCrossEntropy --json
expect 0 'Q  s8 u8 f8_e4m3 f8_e5m2 s4 u4' '' ops Quantize
expect 0 'Concat\(src\.\.\.; axis\) -> dst' '' ops Concat

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
