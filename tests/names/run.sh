#!/bin/sh
# Puts the hostile names in hostile.txt into every output in place of every kind of name: C must compile without warnings
# and work, YAML must be read back, DOT and JSON must be valid, and text must show every character. With NGRAD_CHECK
# (tests/effort.h), also takes the names of macros, of MPI, and of emitted functions and variables, with every compiler.
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"

has gcc || { echo 'left out: names: no gcc'; exit 77; }
# shellcheck disable=SC2046 # several options
gcc -O1 "$here/visible.c" -o visible $(pkg-config --cflags --libs jansson) || exit 1

# Graphs

# Writes a graph for each line of a file: the line is the name of the graph, a dim, an input and a node's label; the next line is the name of the output.
graphs() { # LIST FOLDER
  mkdir -p "$2"
  awk -v folder="$2" -v ORS= '
    { name[NR] = $0 }
    END {
      for (i = 1; i <= NR; i++) {
        next_name = name[i % NR + 1]
        file = sprintf("%s/%03d.yaml", folder, i)
        dim = name[i] == "_" ? "_d" : name[i] # which stands for no dim
        print "format: ngrad/1\nname: \"" name[i] "\"\ndims: {\"" dim "\": 3}\n" >file
        print "inputs:\n  - {name: \"" name[i] "\", type: f32, shape: [\"" dim "\", 2]}\n" >file
        print "nodes:\n  - {op: ReLU, inputs: [\"" name[i] "\"], outputs: [\"= middle\"], label: \"" name[i] "\"}\n" >file
        print "  - {op: ReduceMean, inputs: [\"= middle\"], outputs: [\"" next_name "\"], attributes: {axes: [0]}}\n" >file
        print "  - {op: Concat, inputs: [\"= middle\", \"= middle\"], outputs: [\"= twice\"], attributes: {axis: 0}}\n" >file
        print "outputs: [\"" next_name "\", \"= twice\"]\n" >file
        close(file)
      }
    }' "$1"
}

# A graph with all lines of a file as names of inputs, labels, and values between.
whole() { # LIST NAME
  awk -v ORS= -v name="$2" '
    { input[NR] = $0 }
    END {
      print "format: ngrad/1\nname: \"" name "\"\ninputs:\n"
      for (i = 1; i <= NR; i++) print "  - {name: \"" input[i] "\", type: f32, shape: [5, 3]}\n"
      print "nodes:\n"
      for (i = 2; i <= NR; i++)
        print "  - {op: " (i % 2 ? "Add" : "Maximum") ", inputs: [\"" (i == 2 ? input[1] : "= " input[i - 1]) "\", \"" input[i] \
          "\"], outputs: [\"= " input[i] "\"], label: \"" input[i] "\"}\n"
      print "  - {op: SoftMax, inputs: [\"= " input[NR] "\"], outputs: [\"= \"], attributes: {axis: 1}}\n"
      print "outputs: [\"= \", \"= " input[NR] "\"]\n"
    }' "$1"
}

# C

warnings='-Wall -Wextra -Wpedantic -Wshadow -Werror'
takes() { # COMPILER STANDARD FILE...
  compiler=$1 standard=$2
  shift 2
  # shellcheck disable=SC2086 # several options
  "$compiler" -x "${standard%%[0-9]*}" -std="$standard" $warnings -I. -fsyntax-only "$@" >log 2>&1 && [ ! -s log ]
}
works() { # COMPILER STANDARD FILE...
  compiler=$1 standard=$2
  shift 2
  # shellcheck disable=SC2086
  "$compiler" -x "${standard%%[0-9]*}" -std="$standard" $warnings -I. "$@" -lm -o program >log 2>&1 && ./program >log 2>&1
}

# Emits each graph of a folder, with threads in turn.
emit_all() { # FOLDER
  turn=0
  : >log
  for graph in "$1"/*.yaml; do
    turn=$((turn + 1))
    case $((turn % 3)) in 0) threads=none ;; 1) threads=openmp ;; *) threads=callback ;; esac
    "$ngrad" emit "$graph" --self-test --isa scalar --threads $threads -o "${graph%.yaml}.pair" >>log 2>&1 || echo "$graph" >>log
  done
  [ "$(grep -vc '^wrote ' log)" -eq 0 ]
  count "graphs whose names are those of $1 are emitted"
  ./visible -a "$1"/*.pair/* >log
  count "there is ASCII alone in what is emitted of $1"
}

# One translation unit of them all: headers and perhaps sources, then in C++ the self-tests, each in a namespace.
gather() { # FOLDER ENDING...
  folder=$1
  shift
  for ending in "$@"; do
    for file in "$folder"/*.pair/*"$ending"; do
      case $ending$file in .c*_test.c) continue ;; esac
      number=${file#"$folder"/}
      number=${number%%.*}
      case $ending in
      _test.c) printf '#undef PARALLEL_FOR\nnamespace n%s {\n#include "%s"\n}\n' "$number" "$file" ;;
      *) echo "#include \"$file\"" ;;
      esac
    done
  done
}
standard_headers() {
  for header in math stddef stdint stdio stdlib string; do echo "#include <$header.h>"; done
}

graphs "$here/hostile.txt" hostile
emit_all hostile
gather hostile .h .c >all.c
compilers=gcc
! takes_all || compilers='gcc clang'
for compiler in $compilers; do
  has "$compiler" || continue
  takes "$compiler" c11 -Wno-shadow all.c # one graph's names hide another's
  count "$compiler takes all sources as C without a word"
done
{
  standard_headers
  gather hostile .h .c
  echo '#define main self_test'
  gather hostile _test.c
  printf '#undef main\nint main(void) {\n  int failed = 0;\n'
  for graph in hostile/*.yaml; do echo "  failed |= n$(basename "$graph" .yaml)::self_test();"; done
  printf '  return failed;\n}\n'
} >all.cc
if takes_all; then
  works g++ c++17 -Wno-shadow all.cc
  count 'all self-tests pass as C++'
else
  takes g++ c++17 -Wno-shadow all.cc
  count 'all self-tests are taken as C++'
fi
if takes_all && has clang++; then
  takes clang++ c++17 -Wno-shadow all.cc
  count 'clang takes all self-tests as C++ without a word'
fi
for name in workspace nbytes isa in out number x int NULL; do
  number=$(grep -nxF -- "$name" "$here/hostile.txt" | cut -d: -f1)
  works gcc c11 hostile/"$(printf %03d "$number")".pair/*.c
  count "the self-test of a graph whose name is $name passes"
done

# The loops of a product of windows, which are copied, have further variables.
mkdir -p product
cat >product/names.yaml <<'END'
format: ngrad/1
name: names
inputs: [{name: p0, type: f32, shape: [2, 9, 9, 8]}, {name: c_end, type: f32, shape: [3, 3, 8, 40]}, {name: p2, type: f32, shape: [40]}]
nodes:
  - {op: Convolution, inputs: [p0, c_end, p2], outputs: [c], attributes: {strides: [1, 1], pads_begin: [1, 1], pads_end: [1, 1], dilations: [1, 1]}}
  - {op: ReLU, inputs: [c], outputs: [p1]}
outputs: [c, p1]
END
emit_all product
works gcc c11 product/names.pair/*.c
count 'the self-test of a product whose operands are called as its loops call their variables passes'

# What a self-test has as a word of its own is the name of no graph.
sed 's/%[A-Z_]*%//g; s|/\*.*\*/||; s/"[^"]*"//g' "$here/../../backends/codegen/emit/self_test.in" |
  grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u >words.txt
graphs words.txt words
emit_all words
{
  standard_headers
  gather words .h
  echo '#define main self_test'
  gather words _test.c
} >words.cc
takes g++ c++17 -Wno-shadow -Wno-unused-function words.cc
count 'a graph whose name is a word of the self-test has a self-test'

# One graph with all names, then with the words of what that became, and with the macros of all headers of C

emit_whole() { # LIST NAME
  whole "$1" "$2" >whole.yaml
  rm -rf pair
  "$ngrad" emit whole.yaml --self-test --isa scalar -o pair >log 2>&1
  count "a graph of many names is emitted ($1, $2)"
  ./visible -a pair/* >log
  count "there is ASCII alone in it ($1, $2)"
  { cat "$here/headers.h" && echo "#include \"$(echo pair/*.h)\""; } >user.c
  for standard in c17 c++17; do
    takes gcc $standard user.c
    count "its header stands behind all headers of C, as $standard ($1, $2)"
  done
  takes gcc c17 -D_GNU_SOURCE user.c
  count "its header stands behind all headers of the GNU C library ($1, $2)"
  takes g++ c++17 pair/*.c
  count "it is taken as C++ ($1, $2)"
}
{ cat "$here/hostile.txt" && echo a_2db; } >all.txt # which a-b becomes
emit_whole all.txt x
works gcc c11 pair/*.c
count 'the self-test of all names passes'
"$ngrad" run whole.yaml --random --compare >log 2>&1
count 'a graph of all names is run'
cat pair/*.c pair/*.h | sed 's|/\*.*\*/||; s|//.*||' | grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u >own.txt
if takes_all; then
  emit_whole own.txt x
  sed 's/^x_/g_/; s/_x_/_g_/' own.txt | sort -u >other.txt
  emit_whole other.txt g
  gcc -std=gnu17 -D_GNU_SOURCE -dM -E -x c "$here/headers.h" | awk '$2 !~ /^_|[(]/ { print $2 }' | sort -u >macros.txt
  emit_whole macros.txt macros
fi

# A step with leaves whose inputs have all names, then the words of what that became, as parameters, variables and functions

emit_step() { # LIST NAME
  awk -v ORS= -v name="$2" '
    { input[NR] = $0 }
    END {
      print "format: ngrad/1\nname: \"" name "\"\nleaves: 2\ninputs:\n"
      for (i = 1; i <= NR; i++) print "  - {name: \"" input[i] "\", type: s32, shape: [2, 3]}\n"
      print "  - {name: \"= table\", type: s32, shape: [5]}\n"
      print "state: [{name: \"= state\", type: s32, shape: [3], init: zeros}]\nnodes:\n"
      for (i = 1; i <= NR; i++) print "  - {op: Leaf, inputs: [\"" input[i] "\"], outputs: [\"= " i "\"]}\n"
      print "  - {op: Gather, inputs: [\"= table\", \"= 1\"], outputs: [\"= sum 1\"], attributes: {axis: 0}}\n"
      for (i = 2; i <= NR; i++)
        print "  - {op: Add, inputs: [\"= sum " i - 1 "\", \"= " i "\"], outputs: [\"= sum " i "\"]}\n"
      print "  - {op: AllReduce, inputs: [\"= sum " NR "\"], outputs: [\"= result\"]}\n"
      print "outputs: []\nupdates: {\"= state\": \"= result\"}\n"
    }' "$1" >step.yaml
  threads_taken=callback
  ! takes_all || threads_taken='none callback'
  for threads in $threads_taken; do
    rm -rf step
    "$ngrad" emit step.yaml --isa scalar --threads "$threads" -o step >log 2>&1
    count "a step of many names is emitted ($1, $2, $threads)"
    for standard in c17 c++17; do
      takes gcc $standard "step/$2.c"
      count "it is taken as $standard ($1, $2, $threads)"
    done
    for mpi in openmpi mpich; do
      has mpicc.$mpi || continue
      printf '#include <mpi.h>\n#include "step/%s.h"\n' "$2" >user.c
      takes mpicc.$mpi c17 user.c && takes mpicc.$mpi c17 "step/${2}_mpi.c"
      count "its header stands behind that of $mpi, and its messages move ($1, $2, $threads)"
    done
  done
}
emit_step all.txt x
if takes_all; then
  cat step/*.c step/*.h | sed 's|/\*.*\*/||; s|//.*||' | grep -oE '[A-Za-z_][A-Za-z_0-9]*' | sort -u >own.txt
  emit_step own.txt x
  sed 's/^x_/g_/; s/_x_/_g_/' own.txt | sort -u >other.txt
  emit_step other.txt g
  for name in ranks step caller context; do emit_step "$here/hostile.txt" $name; done
  for mpi in openmpi mpich; do
    has mpicc.$mpi || continue
    echo '#include <mpi.h>' | mpicc.$mpi -dM -E -x c - | awk '$2 !~ /^_|[(]/ { print $2 }' | sort -u >macros.txt
    emit_step macros.txt macros
  done
fi

# Text

whole "$here/hostile.txt" '\u202e*/' >whole.yaml
dims=$(head -n 60 "$here/hostile.txt" | grep -vx _ | sed 's/.*/"&": 2/' | paste -sd,)
{
  sed -n '1,2p' whole.yaml
  printf 'dims: {%s, unused: ~}\n' "$dims"
  sed '1,2d' whole.yaml
} >dims.yaml
seen() { # STATUS ARGUMENT...; what is on either output is seen
  status=$1 said=0
  shift
  "$ngrad" "$@" >stdout 2>stderr </dev/null || said=$?
  { [ "$said" -eq "$status" ] && ./visible stdout stderr; } >log
  count "every character that ngrad $* prints is seen (status $said)"
}
for format in yaml dot kernels loops memory memory-svg c json kernels-json; do
  seen 0 show whole.yaml --format $format
  if [ $format = dot ] && has dot; then
    dot -Tsvg -o svg stdout >log 2>&1 && [ ! -s log ] && grep -qF '&amp;lt;b&amp;gt;' svg
    count 'Graphviz takes it'
  fi
  if [ $format = memory-svg ] && has xmllint; then
    xmllint --noout stdout >log 2>&1
    count 'the picture of the memory is well-formed'
  fi
done
for format in json kernels-json; do
  "$ngrad" show whole.yaml --format $format >stdout
  ./visible -a -j stdout >log
  count "ngrad show --format $format prints JSON"
done
seen 0 report whole.yaml --no-times -o report.html
./visible report.html >log
count 'every character of the page of a report is seen'
"$ngrad" bench whole.yaml --seconds 0 --trace trace.json >log 2>&1 && ./visible -a -j trace.json >log
count 'ngrad bench --trace writes JSON'
seen 0 check dims.yaml
cp stdout again.yaml
seen 0 check again.yaml
cmp again.yaml stdout >log
count 'YAML is read back'
for graph in hostile/*.yaml; do # with a formula of a dim
  "$ngrad" convert "$graph" >stdout && "$ngrad" convert stdout | cmp - stdout &&
    grep -q 'twice", type: f32, shape: .*2 \* ' stdout && ./visible stdout || echo "$graph"
done >log 2>&1
[ ! -s log ]
count 'formulas of all names are read back'
# Packages: no name makes a line of its own, and CMake reads all lists.
printf 'cmake_minimum_required(VERSION 3.15)\nproject(stubs LANGUAGES C)\n' >CMakeLists.txt
for name in library_named library_sources library_compile_options include_directories; do
  printf 'function(zephyr_%s)\nendfunction()\n' $name >>CMakeLists.txt
done
for graph in hostile/*.yaml; do
  number=$(basename "$graph" .yaml)
  for kind in arduino zephyr cmake; do
    "$ngrad" emit "$graph" --package $kind --isa scalar --prefix "n$number" -o "$kind/$number" || echo "$graph"
  done
  sed 's/[^=]*$//' "arduino/$number/library.properties" | tr -d '\n' | grep -qx 'name=version=author=maintainer=sentence=paragraph=category=url=architectures=includes=' &&
    cat "arduino/$number"/*.* "arduino/$number"/examples/*/* "zephyr/$number"/[CK]* "zephyr/$number"/zephyr/* | tr -d '\t' >shown && ./visible shown ||
    echo "$graph: lines"
  printf 'set(CONFIG_NGRAD_N%s y)\nadd_subdirectory(zephyr/%s)\nadd_subdirectory(cmake/%s)\n' "$number" "$number" "$number" >>CMakeLists.txt
done >log 2>&1
[ "$(grep -vc '^wrote ' log)" -eq 0 ]
count 'packages have the names of all graphs'
if has cmake; then
  cmake -S . -B of_packages >log 2>&1
  count 'CMake reads them'
fi
seen 0 run whole.yaml --random
seen 0 grad whole.yaml
seen 0 bench whole.yaml --seconds 0 --profile
for verb in 'check dims.yaml' 'run whole.yaml --random' 'bench whole.yaml --seconds 0 --profile'; do
  # shellcheck disable=SC2086 # several words
  seen 0 $verb --json
  ./visible -a -j stdout >log
  count "ngrad $verb --json prints JSON"
done

# Messages: one line each, whatever a name has

hostile=$(printf '\033[31m\nerror: x\342\200\256\302\233\377')
mkdir "$hostile"
cp whole.yaml "$hostile/$hostile.yaml"
echo 'format: none' >"$hostile/wrong.yaml"
seen 0 check whole.yaml "$hostile/$hostile.yaml"
seen 1 check "$hostile/wrong.yaml"
seen 1 check "$hostile"
seen 1 check "$hostile/none"
seen 1 run "$hostile/$hostile.yaml"
graph=hostile/$(printf %03d "$(grep -nxF a-b "$here/hostile.txt" | cut -d: -f1)").yaml
seen 0 run "$graph" --random --out "$hostile/out"
seen 0 emit "$graph" --self-test -o "$hostile/out"
seen 1 emit "$graph" -o "$hostile/out" --depfile "$hostile/out/d"
for option in isa disable dim schedule; do seen 2 show whole.yaml --format kernels "--$option" "$hostile"; done
seen 2 show whole.yaml --after "$hostile"
seen 2 emit whole.yaml -o pair --prefix "$hostile"
seen 2 emit whole.yaml -o pair --threads "$hostile"
seen 2 grad whole.yaml --wrt "$hostile"
seen 2 run whole.yaml --threads "$hostile"
seen 2 show whole.yaml --format "$hostile"
seen 2 show "$hostile" "$hostile"
seen 2 show "--$hostile"
seen 2 "$hostile"
seen 2 ops "$hostile"
said=$(grep -c . stderr)
[ "$said" -eq 1 ]
count 'a message is one line'
sed 's/"??\/"/"\\e[31m\\u202e\\nerror: forged"/' whole.yaml >control.yaml
seen 1 check control.yaml
! grep -q '^error: forged' stderr
count 'no name makes a line of its own'
sed 's/label: "\([^"]*\)"/attributes: {"\\e\1\\n": 1}/' whole.yaml >attributes.yaml
seen 1 check attributes.yaml
sed 's/op: Add/op: "A\\u202e\\ed"/' whole.yaml >operators.yaml
seen 1 check operators.yaml
sed 's/^inputs:/constants: [{name: c, type: f32, shape: [_], file: "\\u202e\\n\\e"}]\n&/' whole.yaml >file.yaml
seen 1 check file.yaml
sed '0,/shape: \[5, 3\]/s//shape: ["\\u202e*\/", 7]/; s/^inputs:/dims: {"\\u202e*\/": 5}\n&/' whole.yaml >shapes.yaml
seen 1 check shapes.yaml
cat >onednn.json <<'J'
{"version": "3.0.0", "engine_kind": "cpu\u202e\u001b", "fpmath_mode": "strict", "input_ports": [0], "output_ports": [1],
 "graph": [{"id": 0, "name": "\u202e\u001b\n", "kind": "Re\u202e\u001bLU", "attrs": {"\u202e": {"type": "s64", "value": 1}},
            "inputs": [], "outputs": []}]}
J
seen 1 check onednn.json

# Names of files stay in their folder

mkdir folder
for name in ../x a/b . .. /etc/x; do
  number=$(grep -nxF -- "$name" "$here/hostile.txt" | cut -d: -f1)
  "$ngrad" emit "hostile/$(printf %03d "$number").yaml" --isa scalar -o folder/out >log 2>&1
  count "a graph whose name is $name is emitted"
done
[ "$(ls -A folder)" = out ] && [ "$(find folder/out -name '[A-Za-z]*.[ch]' | wc -l)" -eq 10 ] && [ "$(find folder/out | wc -l)" -eq 11 ]
count 'each has files of its own in the folder'
[ ! -e made ]
count 'nothing was run'

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
