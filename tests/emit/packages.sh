#!/bin/sh
# ngrad emit --package: an Arduino library as its specification has it, which compiles for a Cortex-M4; a Zephyr module,
# whose CMake list runs with stubs of Zephyr's functions; and a CMake package, which other projects find installed and as
# a subfolder, with the results of ngrad run. Usage: packages.sh NGRAD
set -u
ngrad=$(realpath "$1")
here=$(realpath "$(dirname "$0")")
# shellcheck source=tests/quick_compiler.sh
. "$(dirname "$0")/../quick_compiler.sh"
# shellcheck source=tests/checks.sh
. "$(dirname "$0")/../checks.sh"

# Names of tensors are macros of Arduino's core.
cat >net.yaml <<'END'
format: ngrad/1
name: net
dims: {N: 4}
inputs:
  - {name: INPUT, type: f32, shape: [N, 6]}
  - {name: B1, type: f32, shape: [3]}
state:
  - {name: PI, type: f32, shape: [6, 3], init: ones}
  - {name: count, type: s32, shape: [], init: zeros}
constants:
  - {name: one, type: s32, shape: [], value: 1}
nodes:
  - {op: MatMul, inputs: [INPUT, PI, B1], outputs: [LOW]}
  - {op: SoftMax, inputs: [LOW], outputs: [OUTPUT], attributes: {axis: 1}}
  - {op: Add, inputs: [count, one], outputs: [next]}
outputs: [OUTPUT]
updates: {count: next}
END
sed -e '/count/d' -e '/constants/,/one/d' net.yaml >infer.yaml
files() { # FOLDER; below it
  (cd "$1" && find . -type f | LC_ALL=C sort | tr '\n' ' ')
}

"$ngrad" emit net.yaml --package arduino -o arduino >log 2>&1 && grep -c '^wrote arduino/' log | grep -qx 5 &&
  [ "$(files arduino)" = './examples/net/net.ino ./keywords.txt ./library.properties ./src/net.c ./src/net.h ' ]
count 'an Arduino library has the folders of the specification'
for key in name version author maintainer sentence paragraph category url architectures; do
  grep -q "^$key=." arduino/library.properties || echo "no $key"
done >log
[ ! -s log ] && ! grep -qv '^[a-z]*=' arduino/library.properties && grep -qx 'name=net' arduino/library.properties &&
  grep -qx 'version=[0-9]*\.[0-9]*\.[0-9]*' arduino/library.properties && grep -qx 'includes=net.h' arduino/library.properties
count 'library.properties has all fields'
tab=$(printf '\t')
! grep -v '^#' arduino/keywords.txt | grep -v '^$' | grep -qv "^[A-Za-z0-9_]*${tab}\(KEYWORD[12]\|LITERAL1\)\$" && grep -qx "net${tab}KEYWORD2" arduino/keywords.txt
count 'keywords.txt has fields with single tabs between'
! grep -q 'avx\|neon\|_OPENMP' arduino/src/net.c && grep -q '^#define net_NO_FILES' arduino/src/net.h arduino/src/net.c
count 'its C is scalar, for one thread, and has no files'

# What the core of a board gives to a sketch, as far as the example needs it, and macros that meet names of graphs.
cat >Arduino.h <<'END'
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#define HIGH 0x1
#define LOW 0x0
#define INPUT 0x0
#define OUTPUT 0x1
#define PI 3.1415926535897932384626433832795
#define B1 1
#define F(text) text
struct Stream { void begin(long); void print(const char *); void print(int); void println(unsigned long); };
extern Stream Serial;
unsigned long micros();
void delay(unsigned long);
void setup();
void loop();
END
cc=gcc cxx=g++ flags=-O1
if has arm-none-eabi-g++; then
  cc=arm-none-eabi-gcc cxx=arm-none-eabi-g++ flags='-Os -mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=fpv4-sp-d16'
else
  echo 'left out: packages: no arm-none-eabi-g++, so the example is compiled for this machine'
fi
sketch() { # FOLDER; its sources and example
  for source in "$1"/src/*.c; do
    # shellcheck disable=SC2086 # words
    "$cc" $flags -std=gnu11 -Wall -Wextra -Werror -I"$1/src" -c "$source" -o "$source.o" || return 1
  done
  # shellcheck disable=SC2086
  "$cxx" $flags -std=gnu++11 -Wall -Wextra -Werror -x c++ -I. -I"$1/src" -include Arduino.h -c "$1"/examples/*/*.ino -o sketch.o &&
    "$cxx" $flags -r -nostdlib sketch.o "$1"/src/*.o -o whole.o
}
sketch arduino >log 2>&1 && "${cxx%g++}nm" whole.o >symbols && ! grep ' U .*net' symbols >log
count 'the example compiles and links with the library'
"$ngrad" emit infer.yaml --package arduino --weights const --prefix small -o weights >log 2>&1 &&
  grep -q small_given_ weights/src/net.c && ! grep -q _init weights/examples/small/small.ino && sketch weights >log 2>&1
count 'with weights in the C, the example gives no states'
"$ngrad" train "$here/../../models/train/mlp.yaml" --package arduino --dim N=2 -o step >log 2>&1 &&
  grep -q '^wrote step/examples/mlp/mlp.ino' log && grep -q 'mlp_train_step(input0' step/examples/mlp/mlp.ino && sketch step >log 2>&1
count 'so is a training step'

"$ngrad" emit net.yaml --package zephyr --prefix my_net -o zephyr >log 2>&1 &&
  [ "$(files zephyr)" = './CMakeLists.txt ./Kconfig ./include/net.h ./src/net.c ./zephyr/module.yml ' ]
count 'a Zephyr module has the files that its module.yml names'
if has python3 && python3 -c 'import yaml' 2>log; then
  python3 -c 'import yaml
module = yaml.safe_load(open("zephyr/zephyr/module.yml"))
assert module == {"name": "my_net", "build": {"cmake": ".", "kconfig": "Kconfig"}}, module' >log 2>&1
  count 'module.yml has keys that Zephyr knows'
else
  echo 'left out: packages: no python3-yaml, so module.yml is not read'
fi
if has python3 && python3 -c 'import kconfiglib' 2>log; then
  printf 'config REQUIRES_FULL_LIBC\n\tbool\nconfig FPU\n\tbool "FPU"\nsource "zephyr/Kconfig"\n' >Kconfig
  python3 -c 'import kconfiglib
k = kconfiglib.Kconfig("Kconfig")
k.syms["NGRAD_MY_NET"].set_value(2)
assert not k.warnings and k.syms["REQUIRES_FULL_LIBC"].str_value == k.syms["FPU"].str_value == "y", k.warnings' >log 2>&1
  count 'Kconfig chooses the FPU and a whole C library'
fi
grep -qx 'config NGRAD_MY_NET' zephyr/Kconfig && ! grep -v '^config' zephyr/Kconfig | grep -qv "^$tab"
count 'Kconfig has the symbol'

if ! has cmake; then
  echo 'left out: packages: no cmake'
else
  cat >stubs.cmake <<'END'
foreach(name IN ITEMS library_named library_sources library_compile_options library_compile_definitions include_directories)
  function(zephyr_${name})
    list(JOIN ARGN " " arguments)
    string(REGEX REPLACE "^zephyr_" "" called ${CMAKE_CURRENT_FUNCTION})
    message("${called}: ${arguments}")
  endfunction()
endforeach()
include(zephyr/CMakeLists.txt)
END
  cmake -D CONFIG_NGRAD_MY_NET=y -P stubs.cmake >log 2>&1 && sort log >called &&
    printf 'include_directories: include\nlibrary_compile_options: -O2\nlibrary_named: ngrad_my_net\nlibrary_sources: src/net.c\n' | cmp - called
  count 'with its symbol, the module adds a library to Zephyr'
  cmake -P stubs.cmake >log 2>&1 && [ ! -s log ]
  count 'without, nothing'

  # A package, the project that uses it, and ngrad run on the same numbers.
  cp "$here/../paths/driver.c" .
  cat >x.yaml <<'END'
format: ngrad/1
constants:
  - {name: y, type: f32, shape: [10, 6], values: [0.5, -1, 2, 0.25, 1, 3, -2, 0.125, 1, 1, 0, -4, 0.75, 1, 2, 3, 1, 5, 8, 0.5, 2, 1, 0, 1, -1, 1, 2, -2, 0.5, 3, 1, 1, 0, 2, 0.5, 0.25, 4, 0, 1, 1, 2, -3, 0.5, 1, 2, 3, 4, 5, 1, 0, -1, 2, 1, 0.5, 3, 1, 2, -2, 1, 0.75]}
nodes:
  - {op: Square, inputs: [y], outputs: [INPUT]}
outputs: [INPUT]
END
  sed -e '/B1, type/d' -e 's/, B1\]/]/' infer.yaml >found.yaml
  "$ngrad" run x.yaml -o data >log 2>&1 && "$ngrad" run found.yaml --dim N=10 --in data -o wanted >log 2>&1 &&
    "$ngrad" emit found.yaml --weights const --package cmake --self-test -o package >log 2>&1 &&
    [ "$(files package)" = './CMakeLists.txt ./cmake/netConfig.cmake ./include/net.h ./src/net.c ./tests/net_test.c ' ]
  count 'a CMake package has its files'
  CMAKE_GENERATOR='Unix Makefiles'
  has ninja && CMAKE_GENERATOR=Ninja
  export CMAKE_GENERATOR
  built() { # SOURCE BUILD [OPTION...]
    from=$1 to=$2
    shift 2
    cmake -S "$from" -B "$to" "$@" && cmake --build "$to"
  }
  built package build -D CMAKE_INSTALL_PREFIX="$PWD/prefix" >log 2>&1 && ! grep -i warning log && cmake --install build >log 2>&1 &&
    (cd build && ctest >../log 2>&1) && grep -q '100% tests passed' log
  count 'it is built, installed, and passes its test'
  mkdir found below
  cat >found/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.15)
project(user LANGUAGES C)
find_package(net 0.2 REQUIRED)
add_executable(user ../driver.c)
target_compile_definitions(user PRIVATE HEADER="net.h" NAME=net EXTENTS=N STORED)
target_link_libraries(user PRIVATE net::net)
END
  sed 's/^find_package.*/add_subdirectory(..\/package net)/' found/CMakeLists.txt >below/CMakeLists.txt
  same() { # PROGRAM
    "$1" none data/INPUT.npy y.npy 10 >log 2>&1 && tail -c 120 y.npy >a && tail -c 120 wanted/OUTPUT.npy | cmp - a >log 2>&1
  }
  mv package moved
  built found of_found -D CMAKE_PREFIX_PATH="$PWD/prefix" >log 2>&1 && ! grep -i warning log && same of_found/user
  count 'a project that finds it has the bits of ngrad run'
  mv moved package
  built below of_below >log 2>&1 && ! grep -i warning log && same of_below/user
  count 'so has a project with it as a subfolder'
  built package shared -D BUILD_SHARED_LIBS=ON -D CMAKE_INSTALL_PREFIX="$PWD/shared_prefix" >log 2>&1 && cmake --install shared >log 2>&1 &&
    built found of_shared -D CMAKE_PREFIX_PATH="$PWD/shared_prefix" >log 2>&1 && same of_shared/user
  count 'so has one with a shared library'
fi

refused() { # WORDS ARGUMENT...
  words=$1
  shift
  ! "$ngrad" emit net.yaml -o refused "$@" >log 2>&1 && grep -q "$words" log && [ ! -e refused/src ]
  count "emit $*: $words"
}
refused 'unknown package arduno, did you mean arduino' --package arduno
refused 'package zephyr: it has no place for a self-test; expected cmake, or no package' --package zephyr --self-test
refused 'package arduino: expected a prefix of at most 63 characters' --package arduino --prefix "$(printf 'n%064d' 0)"
mkdir blocked && : >blocked/src
! "$ngrad" emit net.yaml --package cmake -o blocked >log 2>&1 && grep -q 'blocked/src' log
count 'a file in place of a folder is an error'
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
