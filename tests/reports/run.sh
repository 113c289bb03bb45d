#!/bin/sh
# Cases that people reported of other systems, and attacks: ../shared/reports and ../shared/attacks, one line each. Results
# are those of the interpreter, of scalar C and of this machine's best instruction set. Usage: run.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
tests=$(realpath "$here/..")
reports=$(realpath "$tests/../../shared/reports" 2>/dev/null)
attacks=$(realpath "$tests/../../shared/attacks" 2>/dev/null)
if [ ! -d "$reports" ] || [ ! -d "$attacks" ]; then
  echo 'left out: reports: no cases, as there is no ../shared'
  exit 77
fi
# shellcheck source=tests/quick_compiler.sh
. "$tests/quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$tests/checks.sh"

# A graph that returns its inputs, which are results: of what is in its inputs nothing is rounded, so that a comparison excuses nothing.
write_comparison() { # FOLDER
  echo 'format: ngrad/1'
  echo 'inputs:'
  for file in "$1"/*.npy; do
    name=$(basename "$file" .npy)
    printf '%s\n' "$(LC_ALL=C head -c 400 "results/$name.npy" | tr -cd ' -~')" |
      sed "s|.*'descr': '.\([a-z][0-9]\)'.*'shape': (\([^)]*\)).*|  - {name: $name, type: \1, shape: [\2]}|"
  done | sed 's/type: b1/type: boolean/; s/type: f4/type: f32/; s/type: f8/type: f64/; s/type: i8/type: s64/; s/type: i4/type: s32/; s/,]/]/'
  echo 'outputs:'
  for file in "$1"/*.npy; do echo "  - $(basename "$file" .npy)"; done
}

same() { # FOLDER TOLERANCE: the results are those of FOLDER; a step has state s as s.next
  for file in "$1"/*.npy; do
    name=$(basename "$file" .npy)
    [ -e "results/$name.npy" ] || mv "results/$name.next.npy" "results/$name.npy" || return 1
  done
  write_comparison "$1" >comparison.yaml
  "$ngrad" run comparison.yaml --in results --expect "$1" --backend interpreter --tolerance "$2" >>log 2>&1
}

runs() { # GRAPH OUT TOLERANCE OPTION...: every backend gives the results in OUT
  graph=$1 out=$2 tolerance=$3
  shift 3
  for how in '--backend interpreter' '--isa scalar' ''; do
    rm -rf results
    # shellcheck disable=SC2086
    "$ngrad" run "$graph" "$@" --out results $how >log 2>&1 || return 1
    same "$out" "$tolerance" || return 1
  done
}

train() { # FILE OPTION...: leaves the step in step/
  rm -rf step
  "$ngrad" train "$@" -o step >log 2>&1
}

# At most 10 s of CPU and 2 GB, status 0 or 1, and memory is not what lacks.
within_limits() { # ARGUMENT...
  (
    # shellcheck disable=SC3045 # dash and others have both
    ulimit -t 10 -v 2097152
    exec "$ngrad" "$@"
  ) >stdout 2>log
  [ $? -le 1 ] && ! grep -q 'out of memory' log
}

in_case() { # CASE HOW FILE TOLERANCE-OR-TEXT [OPTION...]
  case=$reports/$1 how=$2 file=$reports/$1/$3 wanted=$4
  [ "$1" != attacks ] || file=$attacks/$3
  shift 4
  case $how in
  run) runs "$file" "$case/out" "$wanted" --in "$case/in" ;;
  grad) "$ngrad" grad "$file" "$@" -o gradient.yaml >log 2>&1 && runs gradient.yaml "$case/out" "$wanted" --in "$case/in" ;;
  train) train "$file" "$@" && runs step/*_step.yaml "$case/out" "$wanted" --in "$case/in" ;;
  fit) # is trained for two steps
    rm -rf fitted
    train "$file" "$@" && "$ngrad" fit step/*_step.yaml --in "$case/in" --batch "$wanted" --steps 2 -o fitted >log 2>&1
    ;;
  trains) # the compiled step gives the interpreter's results
    train "$file" "$@" && "$ngrad" run step/*_step.yaml --random --compare >log 2>&1
    ;;
  gradcheck) "$ngrad" gradcheck "$file" >log 2>&1 ;;
  compare) # every backend gives the interpreter's results
    "$ngrad" run "$file" --random --backend interpreter --out expected >log 2>&1 && runs "$file" expected "$wanted" --random
    ;;
  differs) # the results are not those of the folder
    "$ngrad" run "$file" --in "$case/in" --expect "$case/$wanted" >log 2>&1
    [ $? -eq 3 ]
    ;;
  does) # a verb, status 0; the text is in what it prints
    "$ngrad" "$@" "$file" >log 2>&1 && grep -qF -- "$wanted" log
    ;;
  says) # a message, and status 1
    "$ngrad" "$@" "$file" >log 2>&1
    [ $? -eq 1 ] && grep -qF -- "$wanted" log
    ;;
  python) # the last line
    [ -n "$python" ] || return 0
    PYTHONPATH=frontend/python NGRAD_LIBRARY=build/libngrad.so "$python" "$file" "$@" >log 2>&1
    [ "$(tail -n 1 log)" = "$wanted" ]
    ;;
  limits) within_limits "$@" "$file" ;;
  *) false ;;
  esac
}

python=
for candidate in python3 /usr/bin/python3; do
  [ -n "$python" ] || ! "$candidate" -c 'import numpy' 2>/dev/null || python=$candidate
done
[ -n "$python" ] || echo 'left out: reports: no python3 with numpy'
ln -s "$(dirname "$ngrad")" build && ln -s "$tests/../frontend" frontend # where these programs look

# Case, what is done with which file, the tolerance or text, options. A tolerance of 0 is for results of which each bit is
# known.
while read -r line; do
  case $line in '' | '#'*) continue ;; esac
  : >log
  eval "in_case $line"
  count "$line"
done <<'ROWS'
cast_s64_to_s32 run model.onnx 0
clip_norm_large_gradients train forward.yaml 1e-6 --loss loss --optimizer sgd --clip-norm 1 --learning-rate 0.5
compare_passes_wrong_choice differs graph.yaml wrong
compare_passes_wrong_choice run graph.yaml 0
comparison_only_parameter says forward.yaml --freeze train --loss loss -o x
comparison_only_parameter trains forward.yaml '' --loss loss --freeze t
concat_open_axis trains f2.yaml '' --loss loss --optimizer sgd
concat_open_axis trains forward.yaml '' --loss loss --optimizer sgd
cross_entropy_total_out_of_range says graph.yaml 'labels[1]: expected an index from 0 to 2, found 3' run --in "$reports/cross_entropy_total_out_of_range/in"
cross_entropy_weights_gradient gradcheck graph.yaml ''
cross_entropy_weights_gradient gradcheck graph2.yaml ''
directml_training_grad_given_mean run graph.yaml 1e-6
f64_norm_statistics compare forward.yaml 1e-12
f64_norm_statistics compare min.yaml 1e-12
gradcheck_all_ignored gradcheck forward.yaml ''
group_norm_bf16_gradient grad forward.yaml 5e-3
inference_statistics_trained does forward.yaml 'states that are not trained' train --loss loss -o step
nll_random_labels gradcheck model.onnx ''
nll_random_labels run model.onnx 1e-6
order_open_convolution does forward.yaml '' emit -o emitted
pow_beta_0_gradient grad forward.yaml 0
python_copy_of_kernel python repro.py 36.0
recurrent_onnx_not_trainable fit model.onnx 6 --loss cross-entropy
recurrent_onnx_not_trainable fit model.onnx 6 --loss cross-entropy --dim N=6
reduce_l1_l2_no_axes run model.onnx 0
reverse_open_axis trains forward.yaml '' --loss loss --optimizer sgd
scalar_parameters_not_trained train model.onnx 1e-6 --loss mse
swish_gradient_at_infinity grad forward.yaml 0
topk_nan run model.onnx 0
clip_norm_large_gradients train forward.yaml 1e-6 --clip-norm 1 --learning-rate 0.5
../foreign/reduce-max-of-nothing run model.onnx 0
../foreign/shrink-of-integers run model.onnx 0
../foreign/com-microsoft-gelu run model.onnx 1e-6
../foreign/data-dependent-if run model.onnx 0
../foreign/extent-minus-one run model.onnx 0
../foreign/found-none says model.onnx 'follows from H: give that one, as in --dim H=1' check --dim N=1
../foreign/asks-for-the-same-dim-again says model.onnx 'as in --dim C=1' check --dim N=2
../foreign/gridsample-linear run model.onnx 1e-6
attacks python find-6b.py 'ngrad.UsageError: x: expected the address of elements, found an array [64, 64] without data' null
attacks python find-6b.py 'ngrad.UsageError: x: expected at most 8 axes, found 1000000000' ndim
attacks python find-6b.py "ngrad.UsageError: x: expected memory of the CPU, found that of DLPack's device type 2" device
attacks limits find-4.onnx '' check
attacks limits find-5.onnx '' check
attacks limits find-11.onnx '' check
attacks limits find-9.onnx '' show --format kernels
attacks limits find-10.onnx '' report --no-times -o report.html
ROWS

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
