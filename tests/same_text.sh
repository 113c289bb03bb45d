#!/bin/sh
# Compares the C that two programs write for the same graphs, byte by byte: a change that is to move no bit and no speed
# moves no text. Of each graph:
# - show: what ngrad show --format c prints, for each instruction set and for --optimize size, with fixed extents;
# - emit: the files of ngrad emit, with all instruction sets, and named extents left open;
# - train: the files of ngrad train, for a graph with parameters.
# Both programs must also end with the same status. Graphs are those of models, docs and tests (but tests/errors), of the
# bench's tables, of the folder ../shared/golden where it is, and random ones.
#
# usage: tests/same_text.sh OLD NEW [--jobs N] [--random N] [--seed S] [GRAPH...]
#
#   OLD          a program, or a commit, which is built in the folder same-text beside NEW; none: nothing is compared
#   NEW          build/ngrad
#   --jobs N     so many at once (default: one a core)
#   --random N   so many random graphs (default 2000) ...
#   --seed S     ... from this seed on (default 1)
#   GRAPH...     of these only, and of no random graphs
#
# It ends at the first difference, prints it and the command that repeats it, and keeps the graph in same-text.
set -eu

# The words of ngrad for each way of writing a graph's C; --out DIR is added where files are written.
ways() { # GRAPH
  for isa in $ISAS; do echo "show --format c --isa $isa"; done
  echo 'show --format c --optimize size'
  echo 'emit'
  ! grep -q '^state:' "$1" || echo 'train --threads openmp'
}

# What a program writes is in $work/SIDE; its status is printed.
write_text() { # SIDE NGRAD GRAPH WORD...
  side=$1 ngrad=$2 graph=$3
  shift 3
  rm -rf "${work:?}/$side"
  mkdir "$work/$side"
  case $1 in show) out= ;; *) out="--out $work/$side" ;; esac
  status=0
  # shellcheck disable=SC2086 # no words or two
  "$ngrad" "$@" "$graph" $out >"$work/$side/out" 2>"$work/$side.messages" || status=$?
  # What it says names the folder.
  case $1 in show) ;; *) rm "$work/$side/out" ;; esac
  # As text, so that a difference in it is printed like others.
  [ $status -eq 0 ] || { rm -rf "${work:?}/$side" && mkdir "$work/$side" && echo "exit status $status" >"$work/$side/status"; }
  echo $status
}

# Some graphs, in a process of its own. Adds a line to $RESULTS for each text: its verb, and whether it was refused.
if [ "${1-}" = --some ]; then
  old=$2 new=$3
  shift 3
  work=$(mktemp -d)
  trap 'rm -rf "$work"' EXIT
  for graph; do
    ways "$graph" | while read -r way; do
      # shellcheck disable=SC2086 # several words
      status=$(write_text old "$old" "$graph" $way)
      # shellcheck disable=SC2086
      write_text new "$new" "$graph" $way >/dev/null
      if ! diff -ru "$work/old" "$work/new" >"$work/diff"; then
        mkdir "$RESULTS.difference" 2>/dev/null || exit 255 # another process tells its own
        {
          echo "same_text: ngrad $way $graph: the text differs"
          head -n 60 "$work/diff"
          sed 's/^/new: /' "$work/new.messages"
          echo "again: tests/same_text.sh $old $new $graph"
        } >"$RESULTS.difference/told"
        exit 255
      fi
      echo "${way%% *} $status"
    done >>"$RESULTS" || exit 255
  done
  exit 0
fi

usage() {
  sed -n '2,/^set/s/^# \{0,1\}//p' "$0"
}

fail() {
  echo "same_text: $1" >&2
  exit 2
}

case ${1-} in -h | --help) usage && exit ;; esac
[ $# -ge 2 ] || { usage >&2 && exit 2; }
old=$1 new=$2
shift 2
[ "$old" != none ] || { echo 'left out: no earlier program to compare with: NGRAD_OLD=COMMIT ./dev check same-text' && exit 77; }
[ -x "$new" ] || fail "$new is no program"
new=$(realpath "$new")
folder=$(dirname "$new")/same-text
jobs=$(nproc) nrandom=2000 seed=1
while [ $# -gt 0 ]; do
  case $1 in
    --jobs) jobs=${2:?--jobs: expected a number} ;;
    --random) nrandom=${2:?--random: expected a number} ;;
    --seed) seed=${2:?--seed: expected a number} ;;
    -*) fail "there is no option $1; --help lists them" ;;
    *) break ;;
  esac
  shift 2
done
for graph; do [ -r "$graph" ] || fail "there is no graph $graph"; done
mkdir -p "$folder"

# A program of a commit is kept: commits do not change.
root=$(realpath "$(dirname "$0")/..")
if [ ! -x "$old" ]; then
  commit=$(git -C "$root" rev-parse --verify --quiet "$old^{commit}") || fail "$old is neither a program nor a commit"
  old=$folder/$commit/ngrad
  if [ ! -x "$old" ]; then
    echo "same_text: builds $commit"
    rm -rf "$folder/source"
    mkdir "$folder/source"
    git -C "$root" archive "$commit" | tar -x -C "$folder/source"
    (cd "$folder/source" && cmake -S . -B "$folder/$commit" -G Ninja -DCMAKE_BUILD_TYPE=Release -DBUILD_TESTING=OFF &&
      cmake --build "$folder/$commit" --target ngrad) >"$folder/build.log" 2>&1 ||
      fail "$commit does not build: $folder/build.log"
  fi
fi
old=$(realpath "$old")
ISAS=$("$new" show --help | sed -n 's/.*--isa NAME *\(.*\) or native.*/\1/p' | tr -d ,)
[ -n "$ISAS" ] || fail 'ngrad show --help lists no instruction sets'
export ISAS RESULTS="$folder/results"
rm -rf "$RESULTS" "$RESULTS.difference"

# The graphs, a line each.
list_graphs() {
  find "$root/models" "$root/docs" "$root/tests" -path "$root/tests/errors" -prune -o -name '*.yaml' -exec grep -l '^format: ngrad' {} +
  shared=${NGRAD_SHARED:-$root/../shared}/golden
  if [ -d "$shared" ]; then find "$(realpath "$shared")" -name graph.yaml; else echo "left out: no $shared" >&2; fi
  find "$folder/tables" "$folder/random" -name '*.yaml'
}

make_graphs() {
  rm -rf "$folder/tables" "$folder/random"
  mkdir "$folder/tables" "$folder/random"
  for table in "$root"/models/bench/*.table; do
    awk -v folder="$folder/tables" -v templates="$root/models/bench/templates" -f "$root/tests/bench/expand.awk" "$table"
  done
  fuzz=$(dirname "$new")/tests/ngrad_fuzz_program
  [ "$nrandom" -eq 0 ] || [ -x "$fuzz" ] || fail "no $fuzz makes random graphs: cmake --build build --target ngrad_fuzz_program"
  [ "$nrandom" -eq 0 ] || (cd "$root" && "$fuzz" --print --extreme 0 --seed "$seed" --count "$nrandom" 2>/dev/null) |
    awk -v folder="$folder/random" '
      /^format: / { close(name); name = sprintf("%s/%05d.yaml", folder, n++) }
      name { print >name }'
}

if [ $# -eq 0 ]; then
  make_graphs
  list_graphs | sort >"$folder/graphs"
else
  realpath "$@" >"$folder/graphs"
fi
# Long ones are spread over all processes, as each takes few graphs.
status=0
tr '\n' '\0' <"$folder/graphs" |
  xargs -0 -n 4 -P "$jobs" "$0" --some "$old" "$new" 2>"$folder/errors" || status=1
[ ! -d "$RESULTS.difference" ] || { cat "$RESULTS.difference/told" >&2 && exit 1; }
[ $status -eq 0 ] || { cat "$folder/errors" >&2 && fail 'a comparison did not end'; }
awk -v graphs="$(wc -l <"$folder/graphs")" '
  { $2 ? refused++ : same[$1]++ }
  END {
    printf "same_text: %d graphs: %d texts of show, %d of emit, %d of train are the same; both programs refuse %d\n",
      graphs, same["show"], same["emit"], same["train"], refused
  }' "$RESULTS"
