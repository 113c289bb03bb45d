#!/bin/sh
# The command line: exit statuses, what goes to stdout and what to stderr, files, and C that compiles without a word.
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
models=$(realpath "$here/../../models")
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
told='stdout stderr'
unset CC NO_COLOR

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
sed 's|outputs: \[c\]|outputs: [../c]|' sum.yaml >escaping.yaml
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
expect 1 '' "error: running doubling $needs" run doubling.yaml --random --max-memory 2G
expect 0 'outputs: \[v30\]' '' show doubling.yaml --max-memory 2G
for verb in check run show bench convert grad gradcheck; do
  expect 1 '.*' 'sparse.npy: no memory for 3200000000 bytes' $verb sparse.yaml --max-memory 2G
done
grep -q '^note: the memory budget is 2.0 GB; raise it with --max-memory' stderr
count 'a budget that was exceeded is told'
expect 1 '' 'error: running sum needs .* more than the memory budget of 100.0 kB' \
  run sum.yaml --random --dim N=20000 --max-memory 100kB
expect 2 '' '--max-memory: expected a number of bytes' run sum.yaml --max-memory 2X
expect 2 '' '--max-memory: expected a number of bytes' run sum.yaml --max-memory 0
expect 0 '' '' convert sum.yaml --max-memory 1.5GiB -o converted.yaml

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
for verb in check run emit show bench convert ops passes; do
  expect 0 "usage: ngrad $verb" '' $verb --help
  grep -q 'exit status:' stdout && grep -q 'example:' stdout
  count "$verb --help is complete"
done
expect 0 'usage: ngrad run' '' help run
"$here/manual.sh" "$ngrad" >stdout 2>stderr
count 'the manual page has every verb and option'
if command -v bash >/dev/null; then
  bash "$here/completion.sh" "$ngrad" >stdout 2>stderr
  count 'bash completes the command line'
fi
expect 2 '' 'unknown verb rum, did you mean run' rum
expect 2 '' 'unknown option --jsn, did you mean --json' run --jsn sum.yaml
expect 2 '' 'unknown option -x' run -x sum.yaml
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
expect 2 '' 'unknown instruction set avx, did you mean avx2' emit sum.yaml -o emitted --isa scalar,avx
expect 2 '' 'unknown way to share out work opnmp, did you mean openmp' emit sum.yaml -o emitted --threads opnmp
expect 2 '' 'prefix: expected a C identifier that nothing else has, found 2d; g_2d would do' emit sum.yaml -o emitted --prefix 2d
expect 2 '' 'did you mean LayerNormBackward' ops LayerNormBackwards

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
expect 0 '^t2 .* 0  ok$' '' run dump.txt --random --compare
expect 0 'ceiling' '' bench dump.txt --seconds 0.01
expect 0 'layout .slowest axis first.: 1 0' '' show dump.txt --format c
expect 0 '^wrote emitted/dump.c' '' emit dump.txt -o emitted
expect 0 'label: "id 3"' '' convert dump.txt
expect 0 '' '' convert dump.txt -o dump.yaml
"$ngrad" convert dump.txt >stdout && cmp -s stdout dump.yaml && "$ngrad" convert dump.yaml >stdout && cmp -s stdout dump.yaml
count 'what convert writes is converted to itself'
expect 0 'wrote 1 output' '' run dump.txt --random --out from-json
expect 0 '^t2 .* 0 +ok$' '' run dump.yaml --random --expect from-json --tolerance 0
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
identity='nodes: []'
printf 'format: ngrad/1\nname: data\n%s\ninputs: [{name: a, type: f32, shape: [4, 3]}, {name: b, type: f32, shape: [3]}]\noutputs: [a, b]\n' \
  "$identity" >data.yaml
expect 0 'wrote 2 outputs to new/data' '' run data.yaml --random --backend interpreter --out new/data
expect 0 '^c +f32 +\[4, 3\]' '' run sum.yaml --in new/data
expect 0 '^c +f32 +\[4, 3\]' '' run open.yaml --in new/data
expect 1 '' 'N has no value' run open.yaml --random
expect 1 '' 'expected shape \[N, 3\], N = 5 \(--dim gives another\), found \[4, 3\]' run sum.yaml --in new/data --dim N=5
expect 1 '' 'no-such' run sum.yaml --in no-such
expect 0 'wrote 1 output' '' run sum.yaml --in new/data -o new/result
expect 0 '^c .* 0 +ok$' '' run sum.yaml --in new/data --expect new/result
expect 0 '^c .* ok$' '' run sum.yaml --in new/data --expect new/result --backend interpreter --max-ulp 0.5
expect 0 'wrote 1 output' '' run sum.yaml --random --seed 9 --out new/other
expect 0 'wrote 1 output' '' run state.yaml --seed 9 --out state_9
expect 0 'wrote 1 output' '' run state.yaml --seed 9 --backend interpreter --out state_9_too
expect 0 'wrote 1 output' '' run state.yaml --out state_0
cmp -s state_9/w_next.npy state_9_too/w_next.npy && ! cmp -s state_9/w_next.npy state_0/w_next.npy
count 'first values of a state depend on the seed alone'
expect 3 '^c .* FAILED$' '' run sum.yaml --in new/data --expect new/other
expect 3 '"ok": false' '' run sum.yaml --in new/data --expect new/other --json
expect 0 '^c .* ok$' '' run sum.yaml --in new/data --expect new/other --tolerance 1e9
cp new/result/c.npy new/data/
expect 0 '^c +f32' '' run new/data/../../sum.yaml --in new/data
cp sum.yaml new/data/
expect 0 '^c +f32' '' run new/data/sum.yaml
expect 1 '' '\.\./c: expected a name that can be a file' run escaping.yaml --in new/data --out new/result
[ ! -e new/c.npy ]
count 'no output outside of the folder'

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
for compiler in gcc clang; do
  command -v $compiler >/dev/null || continue
  for source in emitted/*.c emitted/scalar/*.c emitted/avx512/*.c; do
    $compiler -std=c11 -O1 -Wall -Wextra -Wpedantic -c "$source" -o emitted.o >stdout 2>stderr && [ ! -s stderr ]
    count "$compiler compiles $source without a word"
  done
done

# grad, gradcheck
expect 0 '^outputs: \[diff_a, diff_b\]$' '' grad sum.yaml
expect 0 '^outputs: \[diff_b\]$' '' grad sum.yaml --wrt b --of c
expect 0 '^gradients of outputs of sum: diff_c$' '' grad sum.yaml --wrt=a --wrt b -o gradient.yaml
expect 0 'diff_b' '' run gradient.yaml --random --compare
expect 2 '' 'unknown input d, expected a or b' grad sum.yaml --wrt a,d
expect 2 '' 'unknown output d, did you mean c|unknown output d, expected c' grad sum.yaml --of d
expect 2 '' 'b: expected each input once' grad sum.yaml --wrt b,a,b
expect 2 '' '--wrt: expected names with single commas between' grad sum.yaml --wrt a,,b
expect 1 '' 'wrong.yaml' grad wrong.yaml
expect 1 '' 'cannot|No such' grad sum.yaml -o no/such/folder.yaml
expect 0 'ok$' '' gradcheck sum.yaml
expect 0 '"relative_error"' '' gradcheck sum.yaml --json --seed 3 --tolerance 1e-7 --dim N=2
sed 's/op: Add, inputs: \[a, b\], outputs: \[c\]/op: SoftPlus, inputs: [a], outputs: [c], attributes: {beta: 0}/' sum.yaml >infinite.yaml
expect 3 'diff_a\[0, 0\] is .*, differences give -?nan' '' gradcheck infinite.yaml
expect 1 '' 'N has no value' gradcheck open.yaml

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
expect 0 'ceiling' '' bench sum.yaml --seconds 0.01 --threads 1
expect 0 '"ceiling_ratio"' '' bench sum.yaml --seconds 0.01 --json --cold
expect 0 '"operations": 12' '' bench sum.yaml --seconds 0.01 --json
expect 0 '"peak_gflops": [1-9]' '' bench sum.yaml --seconds 0.01 --json
expect 1 'ceiling' 'wrong.yaml' bench wrong.yaml sum.yaml --seconds 0.01
profiled() { # LEFT COLUMNS RIGHT
  expect 0 "^$1 +$2  $3\$" '' bench "$models/transformer_mlp_backward.yaml" --dim N=64 --seconds 0.01 --profile
}
profiled transformer_mlp_backward 'ms +share +bytes' 'GB/s +GF/s +near'
profiled 'kernel 0' '[0-9.e-]+ +[0-9.]+ % +992768 +[0-9.]+ +[0-9.]+ +(memory|arithmetic|neither) *' 'LayerNormBackward \(line 16\), Multiply \(line 20\)'
profiled 'kernel 1' '[0-9.e-]+ +[0-9.]+ % +2371584 +[0-9.]+ +[0-9.]+ +(memory|arithmetic|neither) *' 'GELUBackward \(line 23\), BiasAddBackward \(line 26\)'
profiled '  loop 1' '[0-9.e-]+ +[0-9.]+ % +[0-9]+ +[0-9.]+ *' '  store dgamma, store dbeta'
profiled other '[0-9.e-]+' ' *[0-9.]+ %'
profiled whole '[0-9.e-]+' '100.0 % +[0-9]+ +[0-9.]+'
expect 0 '"profile": \{' '' bench sum.yaml --seconds 0.01 --profile --json
tr -d ' \n' <stdout | grep -qE '"profile":\{"ms":[0-9.e-]+,"other_ms":[0-9.e-]+,"kernels":\[\{"ms":[0-9.e-]+,"bytes_read":60,"bytes_written":48,"operations":[0-9.]+,"gflops":[0-9.e-]+,"bound":"[a-z]+","with":0,"operators":\[\{"name":"Add","lines":\[8\]\}\],"loops":\[\{"ms":[0-9.e-]+,"bytes_read":60,"bytes_written":48,"text":"storec"\}\]\}\]\}\}\]$'
count 'a profile is data too'
expect 2 '' 'unknown option --profile' run sum.yaml --random --profile
expect 0 '"doc"' '' passes --json
expect 0 '^dead-code' '' passes
expect 0 '^  multiply-one  *Multiply\(x, 1.0\) -> x$' '' passes
expect 0 '^fuse .*\(cannot be disabled\)$' '' passes
expect 0 '"fast_math": true' '' passes --json
expect 0 '"needed": true' '' passes --json

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
expect 2 '' '^error: pass fuse cannot be disabled, .* expected dead-code, .* visit or a rule$' show rewritten.yaml --format kernels --disable fuse
expect 2 '' '^  rows  *1 to 32  *outer iterations' show rewritten.yaml --format kernels --schedule row=1
expect 2 '' 'unknown pass multiply-one' show rewritten.yaml --after multiply-one
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
expect 0 'LayerNorm\(src, gamma\?, beta\?; .* epsilon = 1e-05\) -> dst, mean\?, variance\?' '' ops LayerNorm
expect 0 '^also onednn_spec.BatchNormTrainingBackprop, ngraph' '' ops BatchNormTrainingBackward
expect 0 'InputGradientTensor  *T  *diff_dst' '' ops directml.BATCH_NORMALIZATION_GRAD
expect 0 '^gradient: none: its derivative is 0 almost everywhere' '' ops Quantize
expect 0 'Q  s8 u8 f8_e4m3 f8_e5m2 s4 u4' '' ops Quantize
expect 0 'Concat\(src\.\.\.; axis\) -> dst' '' ops Concat

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
