#!/bin/sh
# An installation has all that a program outside of the repository needs: builds and runs the documents' examples with
# an installed prefix, and with the contents of the Debian packages. Examples that train need Fashion-MNIST. Skipped
# (77) if the build has sanitizers, which the examples would need too, or if cmake or ninja is missing.
set -u
build=$(realpath "$(dirname "$1")")
here=$(realpath "$(dirname "$0")")
docs=$here/../../docs
for tool in cmake ninja pkg-config; do
  command -v $tool >/dev/null || { echo "left out: package: no $tool" && exit 77; }
done
if grep -q '^CMAKE_C_FLAGS:.*-fsanitize' "$build/CMakeCache.txt"; then
  echo 'left out: package: the build has sanitizers'
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

# The documents' code blocks whose fence names a file, as files in FOLDER; of two with one name, the last.
extract() { # FOLDER
  mkdir -p "$1" && awk -v folder="$1" '
    /^```/ { if (file != "") close(file); file = NF == 2 && !/^```console/ ? folder "/" $2 : ""; next }
    file != "" { print > file }
  ' "$docs/emit.md" "$docs/library.md" "$docs/training.md"
}

# Runs the examples with what is installed in PREFIX, and with nothing of the build.
examples() { # PREFIX LIBRARIES
  folder=$work/$(basename "$1")-examples
  extract "$folder"
  for example in embed hessian cmake; do
    (
      cd "$folder" && PATH=$1/bin:$PATH PKG_CONFIG_PATH=$2/pkgconfig LD_LIBRARY_PATH=$2 CMAKE_PREFIX_PATH=$1 \
        CFLAGS="-Wall -Wextra -Werror" sh -eu $example.sh
    ) >"$log" 2>&1 && tail -n 1 "$log" | grep -qxF "$(told_in "$folder/$example.sh")"
    count "example $example.sh with $1"
  done
  (cd "$folder" && build/embed) >"$log" 2>&1 && grep -qx 'dbeta\[0\] = 32' "$log"
  count "CMake knows where the library of $1 is"
}

# The module in PREFIX loads the library there.
python_module() { # PREFIX
  for python in python3 /usr/bin/python3 ''; do
    if [ -n "$python" ] && "$python" -c 'import numpy' 2>/dev/null; then break; fi
  done
  [ -n "$python" ] || { echo 'package: no python3 with numpy' && return; }
  module=$(dirname "$(find "$1" -path '*-packages/ngrad/__init__.py')")
  (
    unset NGRAD_LIBRARY
    cd / && PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(dirname "$module") "$python" -c '
import ngrad
assert ngrad.__file__.startswith(__import__("sys").argv[1])
assert any("libngrad.so" in line and __import__("sys").argv[1] in line for line in open("/proc/self/maps"))
graph = ngrad.loads("format: ngrad/1\ninputs: [{name: x, type: f32, shape: []}]\noutputs: [x]\n")
print(ngrad.version(), graph(2)["x"])' "$1"
  ) >"$log" 2>&1 && grep -qx "$version 2.0" "$log" && [ -e "$module/py.typed" ]
  count "Python finds the library of $1"
}

# The training page's programs, with what is installed in PREFIX: the class that a small device computes of each image, and the
# logits, which must be those of ngrad run.
training_examples() { # PREFIX
  data=/usr/share/datasets/fashion-mnist
  [ -e $data/t10k-images-idx3-ubyte.gz ] || { echo 'left out: package: no dataset-fashion-mnist, so no training' && return; }
  folder=$work/training
  extract "$folder"
  cd "$folder" || exit 1
  cp "$here/../../models/train/mlp.yaml" .
  (PATH=$1/bin:$PATH sh -eu train.sh) >"$log" 2>&1 && tail -n 1 "$log" | grep -qxF "$(told_in train.sh)"
  count 'example train.sh'
  for device in arm-linux-gnueabihf/qemu-arm aarch64-linux-gnu/qemu-aarch64; do
    compiler=${device%/*}-gcc emulator=${device#*/}
    for tool in "$compiler" "$emulator"; do
      command -v "$tool" >/dev/null || { echo "left out: package: no $tool" && continue 2; }
    done
    rm -f logits.f32
    sed "s/arm-linux-gnueabihf-gcc/$compiler/; s/qemu-arm/$emulator/" classify.sh >device.sh
    (PATH=$1/bin:$PATH sh -eu device.sh) >"$log" 2>&1 && tail -n 1 "$log" | grep -qxF "$(told_in classify.sh)"
    count "example classify.sh with $compiler"
    for image in 0 1 9; do
      same_logits "$1" $image
      count "the bits of image $image with $compiler"
    done
  done
  cd "$work" || exit 1
}
told_in() { # FILE; what its last line says that is printed
  sed -n '$s/.*# //p' "$1"
}
same_logits() { # PREFIX IMAGE
  mkdir -p image
  header="{'descr': '|u1', 'fortran_order': False, 'shape': (1, 28, 28), }"
  { printf '\223NUMPY\1\0\166\0%-117s\n' "$header" && tail -c +$((17 + $2 * 784)) test.idx | head -c 784; } >image/x.npy
  "$1/bin/ngrad" run mlp_infer.yaml --state mlp.npz --dim N=1 --in image --out image >"$log" 2>&1 &&
    tail -c 40 image/logits.npy >expected.f32 &&
    tail -c +$((1 + $2 * 40)) logits.f32 | head -c 40 | cmp - expected.f32 >"$log" 2>&1
}

# An installation

prefix=$work/prefix
cmake --install "$build" --prefix "$prefix" >"$log" 2>&1
count 'cmake --install'
libraries=$(dirname "$(find "$prefix" -name libngrad.so)")
for file in bin/ngrad include/ngrad.h share/man/man1/ngrad.1 share/bash-completion/completions/ngrad share/doc/ngrad/LICENSE \
  share/doc/ngrad/examples/train/cnn.yaml; do
  [ -f "$prefix/$file" ]
  count "$file is installed"
done
if command -v lowdown >/dev/null; then
  [ -f "$prefix/share/man/man5/ngrad-format.5" ]
  count 'the manual page on the format is installed'
else
  echo 'left out: package: no lowdown, so no manual page on the format'
fi
if command -v fish >/dev/null; then
  PATH=$prefix/bin:$PATH fish --no-config -c "source $prefix/share/fish/vendor_completions.d/ngrad.fish; complete -C 'ngrad show --after fu'" \
    >"$log" 2>&1 && grep -qx fuse "$log"
  count 'fish completes'
else
  echo 'left out: package: no fish, so nothing that it completes'
fi
if command -v zsh >/dev/null; then
  zsh -f "$here/completion.zsh" "$prefix" >"$log" 2>&1
  count 'zsh completes'
else
  echo 'left out: package: no zsh, so nothing that it completes'
fi
"$prefix/bin/ngrad" --version >"$log" 2>&1 && ldd "$prefix/bin/ngrad" | grep -q "$prefix.*/libngrad.so"
count 'the program finds the library beside it'
version=$("$prefix/bin/ngrad" --version | sed -n 's/^ngrad //p')
readelf -d "$libraries/libngrad.so" >"$log" && grep -q "SONAME.*\[libngrad.so.${version%.*}\]" "$log"
count 'the soname has the version'
nm -D --defined-only "$libraries/libngrad.so" | awk '{ print $3 }' | LC_ALL=C sort >symbols
grep -oE '\bng_[a-z0-9_]+\(' "$prefix/include/ngrad.h" | tr -d '(' | LC_ALL=C sort -u >declared
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
python_module "$prefix"
examples "$prefix" "$libraries"
training_examples "$prefix"

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
  command -v $tool >/dev/null || { echo "left out: package: no $tool, so no Debian packages" && tool= && break; }
done
if [ -n "$tool" ]; then
  (cd "$build" && cpack -G DEB -B "$work/deb") >"$log" 2>&1
  count cpack
  for package in deb/*.deb; do dpkg-deb -x "$package" debian; done
  [ "$(cd debian/usr && find . -name '*ngrad*' ! -path './share/doc/*' ! -path './share/man/*' | sort)" = \
    "$(cd "$prefix" && find . -name '*ngrad*' ! -path './share/doc/*' ! -path './share/man/*' | sort)" ]
  count 'the packages hold what an installation does'
  dpkg-deb -f deb/libngrad0*.deb Depends Suggests >"$log" 2>&1 &&
    grep -q 'Depends: .*libc6 .*libnettle.*libyaml.*libzip.*zlib1g' "$log" && grep -q 'Suggests: gcc' "$log"
  count 'the library depends on what it is linked with'
  dpkg-deb -f deb/ngrad_*.deb Depends >"$log" 2>&1 && grep -q "libngrad${version%.*} (= $version)" "$log"
  count 'the program depends on its library'
  dpkg-deb -f deb/python3-ngrad_*_all.deb Depends >"$log" 2>&1 && grep -q "libngrad${version%.*} (>= $version), python3:any, python3-numpy" "$log"
  count 'the Python module depends on the library and on numpy'
  python_module "$work/debian/usr"
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
