#!/bin/sh
# What is installed is all that a program outside of the repository needs: the README's examples are built and run with
# an installed prefix, and with what the Debian packages hold. Skipped (77) where the build has sanitizers, which the
# examples would need too, and where no cmake or ninja is.
set -u
build=$(realpath "$(dirname "$1")")
here=$(realpath "$(dirname "$0")")
readme=$here/../../README.md
for tool in cmake ninja pkg-config; do
  command -v $tool >/dev/null || { echo "package: no $tool" && exit 77; }
done
if grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
  echo 'package: the build has sanitizers'
  exit 77
fi
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
XDG_CACHE_HOME=$work/cache
CMAKE_GENERATOR=Ninja
export XDG_CACHE_HOME CMAKE_GENERATOR
unset CC CFLAGS DESTDIR CMAKE_PREFIX_PATH LD_LIBRARY_PATH PKG_CONFIG_PATH
mkdir "$XDG_CACHE_HOME"
log=$work/log # of the step that is being checked
failed=0
passed=0

count() { # WHAT; the status of what was checked, whose output is in $log
  if [ "$?" -eq 0 ]; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $1"
    tail -n 20 "$log" | sed 's/^/  /'
  fi
}

# The README's code blocks whose fence names a file, as files in FOLDER.
extract() { # FOLDER
  mkdir -p "$1" && awk -v folder="$1" '
    /^```/ { file = NF == 2 ? folder "/" $2 : ""; next }
    file != "" { print > file }
  ' "$readme"
}

# Runs the examples with what is installed in PREFIX, and with nothing of the build.
examples() { # PREFIX LIBRARIES
  folder=$work/$(basename "$1")-examples
  extract "$folder"
  for example in call embed cmake; do
    (
      cd "$folder" && PATH=$1/bin:$PATH PKG_CONFIG_PATH=$2/pkgconfig LD_LIBRARY_PATH=$2 CMAKE_PREFIX_PATH=$1 \
        CFLAGS="-Wall -Wextra -Werror" sh -eu $example.sh
    ) >"$log" 2>&1 && tail -n 1 "$log" | grep -qx 'dbeta\[0\] = 32'
    count "example $example.sh with $1"
  done
  (cd "$folder" && build/embed) >"$log" 2>&1 && grep -qx 'dbeta\[0\] = 32' "$log"
  count "CMake knows where the library of $1 is"
}

# An installation

prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$log" 2>&1
count 'cmake --install'
libraries=$(dirname "$(find "$prefix" -name libngrad.so)")
for file in bin/ngrad include/ngrad.h share/man/man1/ngrad.1 share/bash-completion/completions/ngrad share/doc/ngrad/LICENSE; do
  [ -f "$prefix/$file" ]
  count "$file is installed"
done
"$prefix/bin/ngrad" --version >"$log" 2>&1 && ldd "$prefix/bin/ngrad" | grep -q "$prefix.*/libngrad.so"
count 'the program finds the library beside it'
version=$("$prefix/bin/ngrad" --version | sed -n 's/^ngrad //p')
readelf -d "$libraries/libngrad.so" >"$log" && grep -q "SONAME.*\[libngrad.so.${version%.*}\]" "$log"
count 'the soname has the version'
nm -D --defined-only "$libraries/libngrad.so" | awk '{ print $3 }' | LC_ALL=C sort >symbols
grep -oE '\bng_[a-z_]+\(' "$prefix/include/ngrad.h" | tr -d '(' | LC_ALL=C sort -u >declared
[ -s declared ] && diff declared symbols >"$log"
count 'the library shows what the header declares, and nothing else'
PKG_CONFIG_PATH=$libraries/pkgconfig pkg-config --modversion ngrad | grep -qx "$version"
count 'pkg-config knows the version'
for compiler in c++ clang++; do
  command -v $compiler >/dev/null || continue
  $compiler -std=c++17 -Wall -Wextra -Wpedantic -Werror -x c++ -fsyntax-only "$prefix/include/ngrad.h" >"$log" 2>&1
  count "$compiler accepts the header"
done
DESTDIR=$work/stage cmake --install "$build" --prefix /opt/ngrad >"$log" 2>&1 &&
  [ "$(cd stage/opt/ngrad && find . | sort)" = "$(cd "$prefix" && find . | sort)" ]
count 'DESTDIR'
examples "$prefix" "$libraries"

# ngrad_add_kernel

emits() { # WHAT YES-OR-NO GENERATOR; builds, and looks whether the graph was emitted
  cmake --build tree >"$log" 2>&1
  built=$?
  found=no
  if grep -q 'Emitting kernel.c' "$log"; then found=yes; fi
  [ $built -eq 0 ] && [ $found = "$2" ]
  count "$3: $1"
}
value() { # NUMBER; the graph with another constant
  printf '%s\n' 'format: ngrad/1' 'inputs: [{name: x, type: f32, shape: [3]}]' \
    "constants: [{name: half, type: f32, shape: [], value: $1}, {name: c, type: f32, shape: [_], file: c.npy}]" \
    'nodes: [{op: Multiply, inputs: [x, half], outputs: [y]}]' 'outputs: [y, c]' >kernel.yaml
}
for generator in Ninja 'Unix Makefiles'; do
  [ "$generator" = Ninja ] || command -v make >/dev/null || continue
  mkdir "$work/project of $generator" && cd "$work/project of $generator" || exit 1
  cp "$here/../errors/data/f32.npy" c.npy
  value 0.5
  printf '#include "%s"\n' kernel.h times_two.h >user.c
  printf '%s\n' 'format: ngrad/1' 'name: times_two' 'inputs: [{name: x, type: f32, shape: [3]}]' \
    'nodes: [{op: Add, inputs: [x, x], outputs: [y]}]' 'outputs: [y]' >other.yaml
  cat >CMakeLists.txt <<'C'
cmake_minimum_required(VERSION 3.10)
project(user LANGUAGES C)
find_package(ngrad REQUIRED)
add_library(user STATIC user.c)
ngrad_add_kernel(user kernel.yaml --isa scalar)
ngrad_add_kernel(user other.yaml --isa scalar)
C
  cmake -S . -B tree -G "$generator" -D CMAKE_PREFIX_PATH="$prefix" >"$log" 2>&1
  count "$generator: find_package"
  emits 'a build emits' yes "$generator"
  emits 'nothing changed, nothing is emitted' no "$generator"
  sleep 1 # make sees whole seconds
  value 0.25
  emits 'a changed graph is emitted again' yes "$generator"
  grep -q '0x1p-2\|0.25' tree/ngrad/user/kernel.c
  count "$generator: what is emitted is what the graph says now"
  sed -i s/times_two/twice/ other.yaml user.c
  cmake --build tree >"$log" 2>&1 && [ -f tree/ngrad/user/twice.h ]
  count "$generator: a graph's name is asked for, again when it may have changed"
  sleep 1
  touch c.npy
  emits 'a changed file of constants, too' yes "$generator"
  emits 'and once only' no "$generator"
  value half
  ! cmake --build tree >"$log" 2>&1 && grep -q 'kernel.yaml:3:.*error: ' "$log"
  count "$generator: a wrong graph is told where it is wrong"
  cd "$work" || exit 1
done

# Debian's packages

for tool in cpack dpkg-deb dpkg-shlibdeps file; do
  command -v $tool >/dev/null || { echo "package: no $tool, so no Debian packages" && tool= && break; }
done
if [ -n "$tool" ]; then
  (cd "$build" && cpack -G DEB -B "$work/deb") >"$log" 2>&1
  count cpack
  for package in deb/*.deb; do dpkg-deb -x "$package" debian; done
  [ "$(cd debian/usr && find . -name '*ngrad*' ! -path './share/doc/*' ! -name ngrad.1.gz | sort)" = \
    "$(cd "$prefix" && find . -name '*ngrad*' ! -path './share/doc/*' ! -name ngrad.1 | sort)" ]
  count 'the packages hold what an installation does'
  dpkg-deb -f deb/libngrad0*.deb Depends Suggests >"$log" 2>&1 &&
    grep -q 'Depends: .*libc6 .*libnettle.*libyaml' "$log" && grep -q 'Suggests: gcc' "$log"
  count 'the library depends on what it is linked with'
  dpkg-deb -f deb/ngrad_*.deb Depends >"$log" 2>&1 && grep -q "libngrad${version%.*} (= $version)" "$log"
  count 'the program depends on its library'
  examples "$work/debian/usr" "$(dirname "$(find "$work/debian" -name libngrad.so)")"
  if command -v lintian >/dev/null; then
    # Who answers for a package says so when making it; that the maintainer's scripts call ldconfig is cpack's doing;
    # a build that is not configured for /usr has no folder for each architecture.
    lintian --allow-root --fail-on error,warning --suppress-tags bogus-mail-host,bogus-mail-host-in-debian-changelog \
      --suppress-tags maintscript-calls-ldconfig,pkg-config-unavailable-for-cross-compilation deb/*.deb >"$log" 2>&1
    count lintian
  fi
fi

echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
