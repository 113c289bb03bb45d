#!/bin/sh
# The Python module: its tests, and the examples of docs/python.md, which must print what the page shows. Skipped (77)
# if no python3 has numpy, and if the build has sanitizers, whose libraries would have to be loaded before Python.
set -u
here=$(realpath "$(dirname "$0")")
root=$(realpath "$here/../..")
build=$(realpath "$(dirname "$1")")
if grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
  echo 'python: the build has sanitizers'
  exit 77
fi
# One that has PyTorch, too, if there is one.
python=
for wanted in 'numpy, torch' numpy; do
  for candidate in python3 /usr/bin/python3; do
    [ -n "$python" ] || ! "$candidate" -c "import $wanted" 2>/dev/null || python=$candidate
  done
done
[ -n "$python" ] || { echo 'python: no python3 has numpy' && exit 77; }
"$python" -c 'import torch' 2>/dev/null || echo 'python: no PyTorch, so nothing of it is tested'
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
export NGRAD_LIBRARY="$build/libngrad.so" PYTHONPATH="$root/frontend/python" PYTHONDONTWRITEBYTECODE=1 OMP_WAIT_POLICY=passive

"$python" -W error -W ignore::DeprecationWarning "$here/ngrad_test.py" >log 2>&1
count ngrad_test.py
sed -n 's/.*skipped .\(.*\).$/python: \1/p; /^Ran /p' log

# Type checkers find the types of the module, and no contradiction in it.
if has mypy; then
  MYPYPATH=$PYTHONPATH mypy --strict --follow-imports=silent --cache-dir="$PWD/types" "$here/typed.py" >log 2>&1 &&
    mypy --cache-dir="$PWD/types" "$root/frontend/python/ngrad.py" >log 2>&1
  count 'the types of the module'
else
  echo 'python: no mypy, so types are not tested'
fi

# What ctypes was told of structs and functions is what the header declares.
"$python" "$here/layout.py" >layout.c && cc -I "$root/frontend/api" -c layout.c -o layout.o >log 2>&1
count 'the layout of structs'

# The page's files, and the commands of its consoles, N.run, with what they print, N.expected. Of a console marked as
# varying, numbers may differ.
mkdir page && cd page || exit 1
awk '
  /^```/ && (file != "" || in_console) { file = ""; in_console = 0; next }
  /^```console/ { in_console = 1; varies = / varying/; next }
  /^```[a-z]+ / { file = $2; next }
  file != "" { print > file }
  in_console && /^\$ / { name = ++n; print substr($0, 3) > (name ".run"); printf "" > (name ".expected"); if (varies) printf "" > (name ".varies"); next }
  in_console { print > (name ".expected") }
' "$root/docs/python.md"
told='expected log'
for run in *.run; do
  if grep -q 'autograd\|replace\|model' "$run" && ! "$python" -c 'import torch' 2>/dev/null; then continue; fi
  cp "${run%.run}.expected" expected
  sed "s,^python3 ,$python ," "$run" | sh >log 2>&1
  [ ! -e "${run%.run}.varies" ] || sed -i 's/[0-9][0-9.]*/N/g' log expected
  cmp -s log expected
  count "docs/python.md: $(cat "$run")"
done

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
