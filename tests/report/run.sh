#!/bin/sh
# The page of ngrad report: its contents, and its behaviour in a browser (browse.py). Skipped if Chromium (Debian:
# chromium) or python3 is missing.
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
models=$(realpath "$here/../../models")
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
told=stderr

expect() { # STATUS STDERR ARGUMENT...; a line of stderr matches; '' wants nothing there
  status=$1 err=$2 said=0
  shift 2
  "$ngrad" "$@" >stdout 2>stderr </dev/null || said=$?
  [ "$said" -eq "$status" ] && if [ -z "$err" ]; then [ ! -s stderr ]; else grep -q -- "$err" stderr; fi
  count "ngrad $* (status $said, expected $status)"
}

# Pages

norm=$models/gpt2_layer_norm_backward.yaml
sublayer=$models/transformer_sublayer_backward.yaml
warned=
has dot || warned='^warning: Graphviz.s dot was not found; Debian has it in the package graphviz'
[ -z "$warned" ] || echo 'no dot (Debian: graphviz): no drawing is tested'
expect 0 "$warned" report "$norm" --dim N=64 --seconds 0 -o norm.html
expect 0 "$warned" report "$sublayer" --no-times -o sublayer.html
expect 0 "$warned" report "$here/../golden/recognise/batch_norm_gradient_aten.yaml" --no-times -o recognise.html
expect 0 "$warned" report "$sublayer" --no-times
cmp stdout sublayer.html >stderr
count 'without times, a page is the same each time'
expect 0 "$warned" report "$sublayer" --dim N=0 --seconds 0 -o nothing.html
printf 'format: ngrad/1\nname: same\ninputs: [{name: x, type: f32, shape: [4]}]\nnodes: []\noutputs: [x]\n' >same.yaml
expect 0 "$warned" report same.yaml --seconds 0 -o same.html
cat >wide.yaml <<'Y'
format: ngrad/1
inputs:
  - {name: WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW, type: f32, shape: [4, 3]}
  - {name: ééééééééééééééééééééééééééééééééééééééééééé💩💩💩💩💩💩💩💩💩💩💩, type: f32, shape: [4, 3]}
nodes:
  - op: Add
    inputs: [WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW, ééééééééééééééééééééééééééééééééééééééééééé💩💩💩💩💩💩💩💩💩💩💩]
    outputs: [MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM]
outputs: [MMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMMM]
Y
expect 0 "$warned" report wide.yaml --no-times -o wide.html
expect 0 "$warned" report norm.html "$norm" --dim N=32 --seconds 0 -o compared.html
expect 0 '' report norm.html sublayer.html -o both.html
expect 0 '' report norm.html sublayer.html --json
grep -q '"name": "transformer_sublayer_backward"' stdout && ! grep -q '<html' stdout
count 'the data of a page as JSON'
expect 1 'error: none.html: cannot read: No such file or directory' report none.html
echo '<!doctype html><script type="application/json" id="data">{"format": "other"}</script>' >other.html
expect 1 'error: other.html: expected a page that ngrad report wrote' report other.html
echo '<!doctype html><script type="application/json" id="data">{"format": "ngrad-report/1", "graphs": []}</script>' >other.html
expect 1 'error: other.html: expected a page that ngrad report wrote' report other.html
cp wide.yaml kept.yaml
expect 2 'kept.yaml: expected another file for the page than the graph' report ./kept.yaml --no-times -o kept.yaml
cmp kept.yaml wide.yaml >stderr
count 'no page is written over its graph'
echo 'format: ngrad/2' >other.yaml
expect 1 'format: expected ngrad/1' report norm.html other.yaml --json
python3 -m json.tool stdout >stderr 2>&1 && grep -q '"severity": "error"' stdout
count 'with --json, what is wrong is in the JSON'
sed 's/"program":/"programs":/' norm.html >other.html
expect 1 'error: other.html: expected a page that ngrad report wrote' report other.html
expect 2 'report: expected GRAPH' report
"$ngrad" report - --no-times <"$sublayer" >stdin.html 2>stderr && grep -q '"name":"transformer_sublayer_backward"' stdin.html
count 'a graph comes from standard input'
mkdir empty
PATH=$PWD/empty "$ngrad" report "$norm" --no-times -o plain.html 2>stderr
grep -q '^warning: Graphviz.s dot was not found; Debian has it in the package graphviz' stderr && grep -q 'not found; Debian' plain.html
count 'without dot a page says so'
if has python3; then
  "$ngrad" report "$sublayer" --seconds 0 --json -o numbers.html >report.json 2>stderr &&
    "$ngrad" bench "$sublayer" --seconds 0 --profile --json >bench.json 2>stderr &&
    python3 "$here/same_numbers.py" bench.json report.json numbers.html >stderr 2>&1
  count 'the numbers of a page are those of bench --profile --json'
fi
sh "$models/train/gpt.sh" large 12 64 4 16 512 2 >large.yaml
expect 0 '' train large.yaml --optimizer adam -o .
expect 0 "$warned" report large_step.yaml --no-times -o large.html
[ "$(wc -c <large.html)" -lt 4000000 ]
count 'the page of a training step of 12 layers has less than 4 MB'

{
  printf 'format: ngrad/1\nname: folded\ninputs: [{name: x, type: f32, shape: [4]}]\noutputs: [y70]\nnodes:\n'
  awk 'BEGIN { for (i = 1; i <= 70; i++) print "  - {op: Tanh, inputs: [" (i > 1 ? "y" i - 1 : "x") "], outputs: [y" i "]}" }'
} >folded.yaml
expect 0 "$warned" report folded.yaml --no-times -o folded.html

# Traces

for threads in 1 2; do
  expect 0 '' bench "$norm" "$sublayer" --dim N=64 --seconds 0 --threads $threads --trace trace.json
  if has python3; then
    python3 "$here/check_trace.py" trace.json $threads gpt2_layer_norm_backward transformer_sublayer_backward >stderr 2>&1
    count "the trace of $threads threads is as chrome://tracing and Perfetto want it"
  fi
done
expect 1 'cannot write' bench "$norm" --dim N=64 --seconds 0 --trace none/trace.json

# Names: each is on the page as a text, and nothing else
cat >'hostile<script>alert(8)<.yaml' <<'Y'
format: ngrad/1
name: "</script><script>alert(1)</script>"
inputs:
  - {name: "<img src=x onerror=alert(2)>", type: f32, shape: [5, 3]}
  - {name: "&amp;&lt;\"\u202e\u2028'`${alert(3)}<!--<script>", type: f32, shape: [5, 3]}
nodes:
  - {op: Add, inputs: ["<img src=x onerror=alert(2)>", "&amp;&lt;\"\u202e\u2028'`${alert(3)}<!--<script>"],
     outputs: ["]]></script><svg onload=alert(4)>"], label: "<b onclick=alert(5)>"}
  - {op: SoftMax, inputs: ["]]></script><svg onload=alert(4)>"], outputs: ["javascript:alert(6)"], attributes: {axis: 1}}
outputs: ["javascript:alert(6)"] # </script><script>alert(7)</script>
Y
expect 0 "$warned" report 'hostile<script>alert(8)<.yaml' --seconds 0 -o hostile.html
[ "$(grep -o '<script' hostile.html | wc -l)" -eq "$(grep -o '<script' norm.html | wc -l)" ]
count 'no name adds a script'

[ "$failed" -eq 0 ] || { echo "$passed passed, $failed failed"; exit 1; }
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome)
[ -n "$browser" ] || { echo 'no chromium to open pages in'; exit 77; }
has python3 || { echo 'no python3 to drive the browser'; exit 77; }
for page in norm nothing same wide sublayer recognise compared both plain large folded hostile; do
  python3 "$here/browse.py" "$browser" "$page.html" >stderr 2>&1
  count "a browser opens $page.html, and all that can be clicked works"
done
sed 's/"nodes":\[/"nodes":5,"n":[/' norm.html >damaged.html
python3 "$here/damaged.py" "$browser" damaged.html >stderr 2>&1
count 'a page whose data is damaged says so'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
