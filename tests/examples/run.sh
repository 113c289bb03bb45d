#!/bin/sh
# The projects of examples/ build with nothing but an installed ngrad, without warnings, and pass their own tests.
# Usage: run.sh NGRAD [EXAMPLE...]
set -u
build=$(realpath "$(dirname "$1")")
examples=$(realpath "$(dirname "$0")")/../../examples
shift
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"
for tool in cmake ninja; do
  has $tool || { echo "left out: examples: no $tool" && exit 77; }
done
! grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt" || { echo 'left out: examples: the build has sanitizers' && exit 77; }
export CMAKE_GENERATOR=Ninja CMAKE_PREFIX_PATH="$work/prefix" CFLAGS='-Wall -Wextra -Werror' CXXFLAGS='-Wall -Wextra -Werror'
export PYTHONPATH="$work/python" OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
unset CC CXX DESTDIR LD_LIBRARY_PATH
for component in program library development; do
  cmake --install "$build" --prefix "$work/prefix" --component $component >>log 2>&1
done
mkdir python && cp "$build/../frontend/python/ngrad.py" python/ && export NGRAD_LIBRARY="$build/libngrad.so"
count 'ngrad is installed'

python=
for candidate in python3 /usr/bin/python3; do
  "$candidate" -c 'import numpy' 2>/dev/null && python=$candidate && break
done
[ $# -gt 0 ] || set -- norms device onnx library potential newton ranks python
for example; do
  case $example in
  norms) has c++ || { echo 'left out: examples: norms, no c++' && continue; } ;;
  ranks) { has mpicc && has mpiexec; } || { echo 'left out: examples: ranks, no MPI' && continue; } ;;
  python) [ -n "$python" ] || { echo 'left out: examples: python, no numpy' && continue; } ;;
  esac
  cp -r "$examples/$example" . && cmake -S "$example" -B "$example/build" ${python:+"-DPython3_EXECUTABLE=$(command -v $python)"} >log 2>&1 &&
    cmake --build "$example/build" >>log 2>&1
  count "$example is built"
  ctest --test-dir "$example/build" --output-on-failure --no-tests=error >log 2>&1
  count "$example passes its tests"
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
