#!/bin/sh
# The wheel that ./dev wheel makes, in a new virtual environment in which nothing of the build is found: it trains the
# line of examples/python. Skipped (77) without venv, pip or numpy.
set -u
build=$(realpath "$(dirname "$1")")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/checks.sh
. "$here/../checks.sh"
! grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt" || { echo 'left out: wheel: the build has sanitizers' && exit 77; }
unset NGRAD_LIBRARY PYTHONPATH LD_LIBRARY_PATH
python=
for candidate in python3 /usr/bin/python3; do # numpy comes from its own folder: no index may be asked
  "$candidate" -c 'import numpy, venv, ensurepip' 2>/dev/null && python=$candidate && break
done
{ [ -n "$python" ] && has objdump; } || { echo 'left out: wheel: no python3 with numpy, venv and ensurepip, or no objdump' && exit 77; }
cmake --build "$build" --target wheel >log 2>&1 && wheel=$(ls "$build"/wheel/ngrad-*-py3-none-manylinux_*.whl 2>>log)
count 'the wheel is made'
"$python" -m venv --system-site-packages new >log 2>&1 && new/bin/python -m pip install --no-index --no-deps "$wheel" >>log 2>&1
count 'pip installs it'
new/bin/python "$here/../../examples/python/line.py" >log 2>&1 && grep -q '^slope 3.000' log
count 'a line is fitted'
# Those that modules of Python itself load first, such as libz, are taken as they are.
new/bin/python -c '
import bz2, os, ssl, zlib, numpy
def loaded(): return {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
before = {os.path.basename(path).split(".so")[0] for path in loaded()}
import ngrad
folder = os.path.dirname(os.path.realpath(ngrad.__file__))
assert folder.startswith(os.path.realpath("new")), folder
own = {name for name in os.listdir(folder) if ".so" in name and name.split(".so")[0] not in before}
assert len(own) > 2 and any(name.startswith("libngrad") for name in own), own
for name in own: assert os.path.join(folder, name) in loaded(), name' >log 2>&1
count 'every library is that of the wheel'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
