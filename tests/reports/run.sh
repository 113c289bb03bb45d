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

same() { # FOLDER TOLERANCE: the results are those of FOLDER
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

in_case() { # CASE HOW FILE TOLERANCE-OR-TEXT [OPTION...]
  case=$reports/$1 how=$2 file=$reports/$1/$3 wanted=$4
  shift 4
  case $how in
  run) runs "$file" "$case/out" "$wanted" --in "$case/in" ;;
  grad) "$ngrad" grad "$file" "$@" -o gradient.yaml >log 2>&1 && runs gradient.yaml "$case/out" "$wanted" --in "$case/in" ;;
  train)
    rm -rf step
    "$ngrad" train "$file" "$@" -o step >log 2>&1 && runs step/*_step.yaml "$case/out" "$wanted" --in "$case/in"
    ;;
  gradcheck) "$ngrad" gradcheck "$file" >log 2>&1 ;;
  compare) # every backend gives the interpreter's results
    "$ngrad" run "$file" --random --backend interpreter --out expected >log 2>&1 && runs "$file" expected "$wanted" --random
    ;;
  differs) # the results are not those of the folder
    "$ngrad" run "$file" --in "$case/in" --expect "$case/$wanted" >log 2>&1
    [ $? -eq 3 ]
    ;;
  says) # a message, and status 1
    "$ngrad" "$@" "$file" >log 2>&1
    [ $? -eq 1 ] && grep -qF -- "$wanted" log
    ;;
  *) false ;;
  esac
}

# Case, what is done with which file, the tolerance or text, options
while read -r line; do
  case $line in '' | '#'*) continue ;; esac
  : >log
  eval "in_case $line"
  count "$line"
done <<'ROWS'
compare_passes_wrong_choice run graph.yaml 0
compare_passes_wrong_choice differs graph.yaml wrong
cross_entropy_total_out_of_range says graph.yaml 'labels[1]: expected an index from 0 to 2, found 3' run --in "$reports/cross_entropy_total_out_of_range/in"
nll_random_labels run model.onnx 1e-6
directml_training_grad_given_mean run graph.yaml 1e-6
group_norm_bf16_gradient grad forward.yaml 5e-3
pow_beta_0_gradient grad forward.yaml 0
swish_gradient_at_infinity grad forward.yaml 0
topk_nan run model.onnx 0
reduce_l1_l2_no_axes run model.onnx 0
cast_s64_to_s32 run model.onnx 0
clip_norm_large_gradients train forward.yaml 1e-6 --clip-norm 1 --learning-rate 0.5
../foreign/reduce-max-of-nothing run model.onnx 0
../foreign/shrink-of-integers run model.onnx 0
ROWS

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
